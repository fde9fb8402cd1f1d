"""A model provider for tests: OpenAI's wire format, and what it answers is in the words of the last message."""
from __future__ import annotations

import base64
import json
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
WORDS = "Hello from the provider."


class Provider:
    """Runs until `stop`. `requests` are the bodies that it got, in order."""

    def __init__(self):
        self.requests: list[dict] = []
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                provider.requests.append(body)
                try:
                    if self.path.endswith("/embeddings"):
                        embed(self, body)
                    elif self.path.endswith("/responses"):
                        respond(self, body)
                    else:
                        answer(self, body)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()


def answer(http: BaseHTTPRequestHandler, body: dict) -> None:
    last = body["messages"][-1]
    said = last["content"] if isinstance(last["content"], str) else last["content"][0].get("text", "")
    if said == "wait":
        time.sleep(4)
    if said == "too long":
        return send(http, 400, {"error": {"message": "this model's context is 4096 tokens", "type": "invalid_request_error",
                                          "param": "messages", "code": "context_length_exceeded"}})
    if said == "break":
        return send(http, 500, {"error": {"message": "it broke", "type": "server_error"}})
    base = {"id": "chatcmpl-1", "created": 1_789_898_400, "model": body["model"]}
    finish = "stop"
    if last["role"] == "tool":
        message = {"role": "assistant", "content": f"It is {said}."}
    elif body.get("tools"):
        function = {"name": body["tools"][0]["function"]["name"], "arguments": json.dumps({"city": "Oslo"})}
        message = {"role": "assistant", "content": None,
                   "tool_calls": [{"id": "call_1", "type": "function", "function": function}]}
        finish = "tool_calls"
    elif (body.get("response_format") or {}).get("type") == "json_schema":
        message = {"role": "assistant", "content": json.dumps({"city": "Oslo", "degrees": 7})}
    else:
        message = {"role": "assistant", "content": WORDS}
    if body.get("stream"):
        return stream(http, body, base, message, finish, cut=said == "cut", slow=said == "slow")
    choices = [{"index": at, "message": message, "finish_reason": finish} for at in range(body.get("n") or 1)]
    send(http, 200, {**base, "object": "chat.completion", "choices": choices, "usage": USAGE})


def embed(http: BaseHTTPRequestHandler, body: dict) -> None:
    if body["model"].startswith("chat-only"):
        return send(http, 404, {"error": {"message": "no such route", "type": "invalid_request_error"}})
    numbers = base64.b64encode(struct.pack("<3f", 0.5, -1.0, 2.0)).decode()
    vector = numbers if body.get("encoding_format") == "base64" else [0.5, -1.0, 2.0]
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [{"object": "embedding", "index": at, "embedding": vector} for at, _ in enumerate(texts)]
    send(http, 200, {"object": "list", "model": body["model"], "data": data,
                     "usage": {"prompt_tokens": 5, "total_tokens": 5}})


def respond(http: BaseHTTPRequestHandler, body: dict) -> None:
    if body["model"].startswith("chat-only"):
        return send(http, 404, {"error": {"message": "no such route", "type": "invalid_request_error"}})
    part = {"type": "output_text", "text": WORDS, "annotations": []}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    begun = {"id": "resp_1", "object": "response", "created_at": 1_789_898_400, "model": body["model"], "error": None,
             "status": "in_progress", "output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    response = {**begun, "status": "completed", "output": [message], "usage": {
        "input_tokens": 11, "output_tokens": 7, "total_tokens": 18,
        "input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}}
    if not body.get("stream"):
        return send(http, 200, response)
    at = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    events = [{"type": "response.created", "response": begun},
              {"type": "response.output_item.added", "output_index": 0, "item": {**message, "status": "in_progress", "content": []}},
              {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}]
    words = [word + " " for word in WORDS.split(" ")]
    words[-1] = words[-1].strip()
    events += [{"type": "response.output_text.delta", **at, "delta": word, "logprobs": []} for word in words]
    if body["input"] != "cut":
        events += [{"type": "response.output_text.done", **at, "text": WORDS, "logprobs": []},
                   {"type": "response.content_part.done", **at, "part": part},
                   {"type": "response.output_item.done", "output_index": 0, "item": message},
                   {"type": "response.completed", "response": response}]
    http.send_response(200)
    http.send_header("Content-Type", "text/event-stream")
    http.send_header("Connection", "close")
    http.end_headers()
    http.close_connection = True
    for number, event in enumerate(events):
        http.wfile.write(f"event: {event['type']}\ndata: {json.dumps({**event, 'sequence_number': number})}\n\n".encode())
        http.wfile.flush()


def send(http: BaseHTTPRequestHandler, status: int, body: dict) -> None:
    payload = json.dumps(body).encode()
    http.send_response(status)
    http.send_header("Content-Type", "application/json")
    http.send_header("x-request-id", "req_provider")
    http.send_header("Content-Length", str(len(payload)))
    http.end_headers()
    http.wfile.write(payload)


def stream(http, body, base, message, finish, cut, slow) -> None:
    http.send_response(200)
    http.send_header("Content-Type", "text/event-stream")
    http.send_header("Connection", "close")
    http.end_headers()
    http.close_connection = True

    def event(data: str) -> None:
        http.wfile.write(f"data: {data}\n\n".encode())
        http.wfile.flush()

    def chunk(choices: list, **more) -> None:
        event(json.dumps({**base, "object": "chat.completion.chunk", "choices": choices, **more}))

    for at in range(body.get("n") or 1):
        chunk([{"index": at, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}])
        for call in message.get("tool_calls") or []:
            begin = {**call, "index": 0, "function": {"name": call["function"]["name"], "arguments": ""}}
            chunk([{"index": at, "delta": {"tool_calls": [begin]}, "finish_reason": None}])
            text = call["function"]["arguments"]
            for part in (text[:5], text[5:]):
                more = {"index": 0, "function": {"arguments": part}}
                chunk([{"index": at, "delta": {"tool_calls": [more]}, "finish_reason": None}])
        for word in (message["content"] or "").split():
            if slow:
                time.sleep(0.3)
            chunk([{"index": at, "delta": {"content": word + " "}, "finish_reason": None}])
            if cut:
                return
        chunk([{"index": at, "delta": {}, "finish_reason": finish}])
    if (body.get("stream_options") or {}).get("include_usage"):
        chunk([], usage=USAGE)
    event("[DONE]")
