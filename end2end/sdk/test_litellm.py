"""LiteLLM on both sides: its client, and its proxy as a provider that nobody here wrote."""
import os
import secrets
import subprocess
import sys
import unittest
from pathlib import Path

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm  # noqa: E402
from openai import OpenAI  # noqa: E402

from provider import WORDS  # noqa: E402
from gateway import Site, free_port, wait_for  # noqa: E402

HELLO = [{"role": "user", "content": "Hello"}]
PROXY = """
model_list:
  - model_name: mock-1
    litellm_params: { model: openai/mock-1, api_key: none, mock_response: "Hello from LiteLLM." }
"""


class Client(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = Site()

    @classmethod
    def tearDownClass(cls):
        cls.site.stop()

    def complete(self, workspace="open", **more):
        return litellm.completion(model="openai/small", api_base=self.site.url, api_key=self.site.keys[workspace],
                                  messages=HELLO, **more)

    def test_an_answer_and_a_stream(self):
        answer = self.complete()
        self.assertEqual((answer.choices[0].message.content, answer.usage.total_tokens), (WORDS, 18))
        chunks = list(self.complete(stream=True))
        self.assertEqual("".join(chunk.choices[0].delta.content or "" for chunk in chunks).strip(), WORDS)

    def test_a_spent_budget_is_a_rate_limit_error(self):
        self.complete("spent")
        with self.assertRaises(litellm.RateLimitError):
            self.complete("spent", num_retries=0)


class Proxy(unittest.TestCase):
    def test_litellm_as_a_provider(self):
        port, key = free_port(), "sk-" + secrets.token_hex(20)
        site = Site([("litellm", f"http://127.0.0.1:{port}/v1", key, "mock-1", "mock")])
        self.addCleanup(site.stop)
        config = Path(site.folder.name, "litellm.yaml")
        config.write_text(PROXY)
        proxy = subprocess.Popen(
            [Path(sys.executable).with_name("litellm"), "--config", config, "--host", "127.0.0.1", "--port", str(port)],
            env={**os.environ, "LITELLM_MASTER_KEY": key}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(proxy.wait)
        self.addCleanup(proxy.terminate)
        wait_for(f"http://127.0.0.1:{port}/health/liveliness", proxy, 90)

        client = OpenAI(base_url=site.url, api_key=site.keys["open"])
        answer = client.chat.completions.create(model="mock", messages=HELLO)
        self.assertEqual(answer.choices[0].message.content, "Hello from LiteLLM.")
        stream = list(client.chat.completions.create(model="mock", messages=HELLO, stream=True))
        said = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        self.assertEqual(said, "Hello from LiteLLM.")
        self.assertTrue(all(chunk.usage is None for chunk in stream))
        reported = list(client.chat.completions.create(model="mock", messages=HELLO, stream=True,
                                                       stream_options={"include_usage": True}))[-1].usage
        today = site.today("open")
        self.assertEqual(today["requests"], 3)
        self.assertEqual(today["input_tokens"] + today["output_tokens"], answer.usage.total_tokens + 2 * reported.total_tokens)


if __name__ == "__main__":
    unittest.main()
