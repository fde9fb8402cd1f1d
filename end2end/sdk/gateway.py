"""A running Tollkeeper in front of a provider, with a key for each of its workspaces."""
from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

from provider import Provider

ROOT = Path(__file__).resolve().parents[2]
BINARY = os.environ.get("TOLLKEEPER_BIN", str(ROOT / "target/debug/tollkeeper"))

# By workspace: requests a minute, tokens a day.
LIMITS = {"open": (0, 0), "fast": (20, 0), "spent": (0, 1), "told": (20, 2_000_000)}


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_for(url: str, process: subprocess.Popen, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            if process.poll() is not None:
                raise RuntimeError(f"the server of {url} has ended with {process.returncode}")
            time.sleep(0.1)
    raise RuntimeError(f"{url} does not answer")


class Site:
    def __init__(self, models: list | None = None):
        """`models`: (platform, base URL, key, model, alias), else the provider of these tests as `small`, and as
        `chat-only` without embeddings and responses."""
        self.folder = tempfile.TemporaryDirectory(prefix="tollkeeper-sdk-")
        self.provider = Provider()
        models = models or [("scripted", self.provider.url, "sk-scripted", "vendor/m-1", "small"),
                            ("other", self.provider.url, "sk-other", "chat-only", "chat-only")]
        port = free_port()
        self.environment = {
            "PATH": os.environ["PATH"],
            "DATABASE_URL": f"sqlite://{self.folder.name}/tollkeeper.db",
            "TOLLKEEPER_ADDR": f"127.0.0.1:{port}",
            "LLM_IDLE_TIMEOUT_SECONDS": "10",
            "RUST_LOG": "error",
        }
        directory = Path(self.folder.name, "directory.toml")
        directory.write_text(self._directory(models))
        self.command("apply", str(directory))
        self.keys = {workspace: self.command("key", "create", "--user", "ada@example.com", "--workspace", workspace,
                                             "--name", "sdk").strip() for workspace in LIMITS}
        self.process = subprocess.Popen([BINARY, "serve"], cwd=self.folder.name, env=self.environment,
                                        stdout=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{port}/v1"
        wait_for(f"http://127.0.0.1:{port}/healthz", self.process, 30)

    @staticmethod
    def _directory(models: list) -> str:
        lines = []
        for workspace, (rate, budget) in LIMITS.items():
            lines += ["[[workspace]]", f'id = "{workspace}"', f'name = "{workspace}"', f"rate_per_minute = {rate}",
                      f"daily_token_budget = {budget}"]
        members = ", ".join(f'{{ workspace = "{workspace}", role = "editor" }}' for workspace in LIMITS)
        lines += ["[[user]]", 'email = "ada@example.com"', 'password = "correct-horse-battery"', f"memberships = [{members}]"]
        for platform, url, key, model, alias in models:
            lines += ["[[platform]]", f'id = "{platform}"', f'base_url = "{url}"', "[[platform.key]]", 'label = "main"',
                      f'secret = "{key}"', "[[platform.model]]", f'id = "{model}"', f'alias = "{alias}"']
        return "\n".join(lines) + "\n"

    def command(self, *arguments: str) -> str:
        done = subprocess.run([BINARY, *arguments], env=self.environment, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"tollkeeper {arguments[0]}: {done.stderr}")
        return done.stdout

    def today(self, workspace: str) -> dict:
        """The workspace's usage, once what is written in groups has been written."""
        time.sleep(0.5)
        shown = json.loads(self.command("limits", "show", workspace, "--json"))
        return (shown[0] if isinstance(shown, list) else shown)["today"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.provider.stop()
        self.folder.cleanup()
