// The official TypeScript SDK, as it is. test_node.py starts the server and says where it is.
import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";

const keys = JSON.parse(process.env.KEYS);
const WORDS = "Hello from the provider.";
const client = (workspace = "open", more = {}) =>
  new OpenAI({ baseURL: process.env.BASE_URL, apiKey: keys[workspace], ...more });
const ask = (content = "Hello", more = {}) => ({ model: "small", messages: [{ role: "user", content }], ...more });
const tools = [{ type: "function", function: { name: "weather", parameters: { type: "object", properties: {} } } }];

test("an answer", async () => {
  const answer = await client().chat.completions.create(ask());
  assert.equal(answer.choices[0].message.content, WORDS);
  assert.equal(answer.usage.total_tokens, 18);
  assert.equal(answer._request_id, "req_provider");
});

test("a stream", async () => {
  let text = "";
  for await (const chunk of await client().chat.completions.create(ask("Hello", { stream: true }))) {
    text += chunk.choices[0]?.delta?.content ?? "";
    assert.equal(chunk.usage ?? null, null);
  }
  assert.equal(text.trim(), WORDS);
});

test("tools in a stream", async () => {
  const stream = client().chat.completions.stream(ask("What is the weather?", { tools }));
  const [call] = (await stream.finalChatCompletion()).choices[0].message.tool_calls;
  assert.deepEqual([call.function.name, JSON.parse(call.function.arguments)], ["weather", { city: "Oslo" }]);
});

test("embeddings", async () => {
  const answer = await client().embeddings.create({ model: "small", input: ["one", "two"] });
  assert.deepEqual(answer.data.map((data) => [...data.embedding]), [[0.5, -1, 2], [0.5, -1, 2]]);
});

test("responses", async () => {
  const answer = await client().responses.create({ model: "small", input: "Hello" });
  assert.equal(answer.output_text, WORDS);
  const stream = client().responses.stream({ model: "small", input: "Hello" });
  assert.equal((await stream.finalResponse()).output_text, WORDS);
});

test("models", async () => {
  const ids = [];
  for await (const model of client().models.list()) ids.push(model.id);
  assert.ok(ids.includes("small"));
  assert.equal((await client().models.retrieve("small")).id, "small");
});

test("a full rate is waited for", async () => {
  const create = () => client("fast").chat.completions.create(ask());
  await Promise.all(Array.from({ length: 20 }, create));
  assert.equal((await create()).choices[0].message.content, WORDS);
});

test("a spent budget is not asked again", async () => {
  await client("spent").chat.completions.create(ask());
  const begun = Date.now();
  await assert.rejects(client("spent").chat.completions.create(ask()), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.deepEqual([error.status, error.code], [429, "insufficient_quota"]);
    return true;
  });
  assert.ok(Date.now() - begun < 400, "at once");
});

test("errors are typed", async () => {
  const fails = (kind, request, more) =>
    assert.rejects(client("open", more).chat.completions.create(request), (error) => {
      assert.ok(error instanceof kind, String(error));
      return true;
    });
  await fails(OpenAI.NotFoundError, ask("Hello", { model: "gpt-x" }));
  await fails(OpenAI.AuthenticationError, ask(), { apiKey: "tk_wrong" });
  await fails(OpenAI.BadRequestError, ask("too long"));
  await fails(OpenAI.InternalServerError, ask("break"), { maxRetries: 0 });
  await fails(OpenAI.APIConnectionTimeoutError, ask("wait"), { timeout: 500, maxRetries: 0 });
  const stream = await client().chat.completions.create(ask("cut", { stream: true }));
  await assert.rejects(async () => {
    for await (const _ of stream);
  }, /broke off/);
});

test("leaving a stream", async () => {
  const stream = await client("told").chat.completions.create(ask("slow", { stream: true }));
  for await (const _ of stream) break;
});
