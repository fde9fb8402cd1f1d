"""The official Python SDK, as it is, with nothing but its base URL and key changed."""
import asyncio
import base64
import time
import unittest

import openai
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from provider import USAGE, WORDS
from gateway import Site

HELLO = [{"role": "user", "content": "Hello"}]
TOOLS = [{"type": "function", "function": {
    "name": "weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]


def say(words: str) -> list:
    return [{"role": "user", "content": words}]


def text_of(chunks) -> str:
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices).strip()


class WithSite(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = Site()

    @classmethod
    def tearDownClass(cls):
        cls.site.stop()

    def client(self, workspace: str = "open", **more) -> OpenAI:
        return OpenAI(base_url=self.site.url, api_key=self.site.keys[workspace], **more)

    def asked(self) -> dict:
        return self.site.provider.requests[-1]


class Chat(WithSite):
    def test_an_answer(self):
        answer = self.client().chat.completions.create(
            model="small", messages=HELLO, temperature=0.5, seed=7, extra_body={"reasoning": {"effort": "low"}})
        self.assertEqual(answer.choices[0].message.content, WORDS)
        self.assertEqual(answer.usage.total_tokens, USAGE["total_tokens"])
        self.assertEqual(answer._request_id, "req_provider")
        self.assertEqual(self.asked(), {"model": "vendor/m-1", "messages": HELLO, "temperature": 0.5, "seed": 7,
                                        "reasoning": {"effort": "low"}})

    def test_several_answers(self):
        answer = self.client().chat.completions.create(model="small", messages=HELLO, n=3)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])

    def test_a_stream(self):
        with self.client().chat.completions.create(model="small", messages=HELLO, stream=True) as stream:
            chunks = list(stream)
        self.assertEqual(text_of(chunks), WORDS)
        self.assertEqual(chunks[-1].choices[0].finish_reason, "stop")
        self.assertTrue(all(chunk.usage is None for chunk in chunks))

    def test_a_stream_with_usage(self):
        stream = self.client().chat.completions.create(
            model="small", messages=HELLO, stream=True, stream_options={"include_usage": True})
        last = list(stream)[-1]
        self.assertEqual((last.choices, last.usage.prompt_tokens, last.usage.completion_tokens), ([], 11, 7))

    def test_a_stream_comes_as_it_goes(self):
        begun, first = time.monotonic(), None
        for chunk in self.client().chat.completions.create(model="small", messages=say("slow"), stream=True):
            if first is None and chunk.choices[0].delta.content:
                first = time.monotonic() - begun
        self.assertLess(first, time.monotonic() - begun - 0.5)

    def test_the_streaming_helper(self):
        with self.client().chat.completions.stream(model="small", messages=HELLO) as stream:
            self.assertEqual(stream.get_final_completion().choices[0].message.content.strip(), WORDS)

    def test_tools(self):
        client, messages = self.client(), say("What is the weather in Oslo?")
        message = client.chat.completions.create(model="small", messages=messages, tools=TOOLS).choices[0].message
        call = message.tool_calls[0]
        self.assertEqual((call.function.name, call.function.arguments), ("weather", '{"city": "Oslo"}'))
        messages += [message, {"role": "tool", "tool_call_id": call.id, "content": "fine"}]
        answer = client.chat.completions.create(model="small", messages=messages, tools=TOOLS)
        self.assertEqual(answer.choices[0].message.content, "It is fine.")
        self.assertEqual(self.asked()["messages"][1]["tool_calls"][0]["id"], "call_1")

    def test_tools_in_a_stream(self):
        stream = self.client().chat.completions.create(
            model="small", messages=say("What is the weather in Oslo?"), tools=TOOLS, stream=True)
        parts = [call for chunk in stream for call in chunk.choices[0].delta.tool_calls or []]
        self.assertEqual(parts[0].function.name, "weather")
        self.assertEqual("".join(part.function.arguments for part in parts), '{"city": "Oslo"}')

    def test_structured_output(self):
        class Weather(BaseModel):
            city: str
            degrees: int

        answer = self.client().chat.completions.parse(model="small", messages=HELLO, response_format=Weather)
        self.assertEqual(answer.choices[0].message.parsed, Weather(city="Oslo", degrees=7))

    def test_an_image_of_four_megabytes(self):
        url = "data:image/png;base64," + base64.b64encode(bytes(4 << 20)).decode()
        content = [{"type": "text", "text": "What is this?"}, {"type": "image_url", "image_url": {"url": url}}]
        self.client().chat.completions.create(model="small", messages=[{"role": "user", "content": content}])
        self.assertEqual(self.asked()["messages"][0]["content"], content)

    def test_models(self):
        client = self.client()
        self.assertIn("small", [model.id for model in client.models.list()])
        self.assertEqual(client.models.retrieve("scripted/vendor/m-1").owned_by, "scripted")


class OtherCalls(WithSite):
    def test_embeddings(self):
        # The SDK asks for base64 unless told otherwise, and reads it.
        answer = self.client().embeddings.create(model="small", input=["one", "two"])
        self.assertEqual([data.embedding for data in answer.data], [[0.5, -1.0, 2.0]] * 2)
        self.assertEqual((answer.usage.prompt_tokens, self.asked()["encoding_format"]), (5, "base64"))

    def test_a_response(self):
        answer = self.client().responses.create(model="small", input="Hello", instructions="Be brief.")
        self.assertEqual((answer.output_text, answer.usage.total_tokens), (WORDS, 18))
        self.assertEqual(self.asked(), {"model": "vendor/m-1", "input": "Hello", "instructions": "Be brief."})

    def test_a_response_in_a_stream(self):
        before = self.site.today("told")
        with self.client("told").responses.stream(model="small", input="Hello") as stream:
            deltas = [event.delta for event in stream if event.type == "response.output_text.delta"]
            self.assertEqual(("".join(deltas), stream.get_final_response().output_text), (WORDS, WORDS))
        after = self.site.today("told")
        self.assertEqual([after[name] - before[name] for name in ("requests", "input_tokens", "output_tokens")], [1, 11, 7])

    def test_a_response_that_breaks_off(self):
        with self.assertRaises(openai.APIError) as raised:
            list(self.client().responses.create(model="small", input="cut", stream=True))
        self.assertIn("broke off", raised.exception.message)


class Async(WithSite):
    def test_async(self):
        async def run():
            async with AsyncOpenAI(base_url=self.site.url, api_key=self.site.keys["open"]) as client:
                create = client.chat.completions.create
                answers = await asyncio.gather(*(create(model="small", messages=HELLO) for _ in range(10)))
                stream = await create(model="small", messages=HELLO, stream=True)
                return [answer.choices[0].message.content for answer in answers], [chunk async for chunk in stream]

        answers, chunks = asyncio.run(run())
        self.assertEqual(answers, [WORDS] * 10)
        self.assertEqual(text_of(chunks), WORDS)

    def test_leaving_a_stream(self):
        before = self.site.today("told")

        async def run():
            async with AsyncOpenAI(base_url=self.site.url, api_key=self.site.keys["told"]) as client:
                stream = await client.chat.completions.create(model="small", messages=say("slow"), stream=True)
                async for _ in stream:
                    break
                await stream.close()

        asyncio.run(run())
        time.sleep(3)
        after = self.site.today("told")
        used = [after[name] - before[name] for name in ("requests", "input_tokens", "output_tokens")]
        self.assertEqual(used, [1, 11, 7])


class Limits(WithSite):
    def test_a_full_rate_is_waited_for(self):
        client = self.client("fast")
        for _ in range(20):
            client.chat.completions.create(model="small", messages=HELLO)
        answer = client.chat.completions.create(model="small", messages=HELLO)
        self.assertEqual(answer.choices[0].message.content, WORDS)
        today = self.site.today("fast")
        self.assertEqual(today["requests"], 21)
        self.assertGreaterEqual(today["refused_rate"], 1)

    def test_a_spent_budget_is_not_asked_again(self):
        client = self.client("spent")
        client.chat.completions.create(model="small", messages=HELLO)
        for stream in (False, True):
            with self.assertRaises(openai.RateLimitError) as refused:
                client.chat.completions.create(model="small", messages=HELLO, stream=stream)
            error = refused.exception
            self.assertEqual((error.code, error.type, error.status_code), ("insufficient_quota", "insufficient_quota", 429))
            self.assertIn("daily token budget reached: 18 of 1 tokens used", error.message)
            self.assertEqual(error.response.headers["x-should-retry"], "false")
        self.assertEqual(self.site.today("spent")["refused_budget"], 2)

    def test_the_headers(self):
        answer = self.client("told").chat.completions.with_raw_response.create(model="small", messages=HELLO)
        self.assertEqual(answer.headers["x-ratelimit-limit-requests"], "20")
        self.assertEqual(answer.headers["x-ratelimit-limit-tokens"], "2000000")
        self.assertRegex(answer.headers["x-ratelimit-reset-requests"], r"^\d+(\.\d+)?s$")
        self.assertEqual(answer.parse().choices[0].message.content, WORDS)


class Errors(WithSite):
    def fails(self, wanted, messages=HELLO, model="small", client=None, **more):
        with self.assertRaises(wanted) as raised:
            (client or self.client()).chat.completions.create(model=model, messages=messages, **more)
        return raised.exception

    def test_no_such_model(self):
        self.assertEqual(self.fails(openai.NotFoundError, model="gpt-x").code, "model_not_found")

    def test_no_such_key(self):
        for key in ("tk_wrong", "sk-of-openai"):
            client = OpenAI(base_url=self.site.url, api_key=key)
            self.assertEqual(self.fails(openai.AuthenticationError, client=client).code, "invalid_api_key")

    def test_what_the_provider_does_not_take(self):
        error = self.fails(openai.BadRequestError, say("too long"))
        self.assertEqual((error.code, error.param), ("context_length_exceeded", "messages"))
        self.assertIn("4096 tokens", error.message)

    def test_what_we_do_not_take(self):
        self.assertEqual(self.fails(openai.UnprocessableEntityError, []).param, "messages")

    def test_too_much(self):
        error = self.fails(openai.APIStatusError, say("x" * (11 << 20)))
        self.assertEqual(error.status_code, 413)

    def test_a_provider_that_fails(self):
        client = self.client(max_retries=0)
        self.assertEqual(self.fails(openai.InternalServerError, say("break"), client=client).status_code, 502)

    def test_a_stream_that_breaks_off(self):
        stream = self.client().chat.completions.create(model="small", messages=say("cut"), stream=True)
        with self.assertRaises(openai.APIError) as raised:
            list(stream)
        self.assertIn("broke off", raised.exception.message)

    def test_time_runs_out(self):
        client = self.client(timeout=0.5, max_retries=0)
        self.fails(openai.APITimeoutError, say("wait"), client=client)

    def test_what_is_not_offered(self):
        client = self.client()
        for call, code in ((lambda: client.embeddings.create(model="chat-only", input="x"), "model_not_found"),
                           (lambda: client.responses.create(model="chat-only", input="x"), "model_not_found"),
                           (lambda: client.images.generate(model="small", prompt="x"), "unknown_url")):
            with self.assertRaises(openai.NotFoundError) as raised:
                call()
            self.assertEqual(raised.exception.code, code)
        client.chat.completions.create(model="chat-only", messages=HELLO)


if __name__ == "__main__":
    unittest.main()
