"""Runs the tests of the TypeScript SDK against a server of their own."""
import json
import os
import subprocess
import time
import unittest
from pathlib import Path

from gateway import Site


class TypeScript(unittest.TestCase):
    def test_the_typescript_sdk(self):
        site = Site()
        self.addCleanup(site.stop)
        environment = {**os.environ, "BASE_URL": site.url, "KEYS": json.dumps(site.keys)}
        done = subprocess.run(["node", "--test", str(Path(__file__).with_name("openai.test.mjs"))], env=environment,
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        time.sleep(3)
        self.assertEqual(site.today("spent")["refused_budget"], 1)
        self.assertGreaterEqual(site.today("fast")["refused_rate"], 1)
        left = site.today("told")
        self.assertEqual([left[name] for name in ("requests", "input_tokens", "output_tokens")], [1, 11, 7])


if __name__ == "__main__":
    unittest.main()
