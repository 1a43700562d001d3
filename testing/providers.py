"""AI providers for tests: a local HTTP server in place of a provider's, and the replies it sends.

The server sends one reply after the other and keeps the requests. A scripted provider makes the
same replies in the streaming format of OpenAI or of Anthropic, or with the fake, without a server.
"""

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

from creonowd.errors import ErrorCode
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.fake import Fake, Script, ScriptedAnswer
from creonowd.providers.ollama import OllamaChat
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Provider, Stop, Usage
from creonowd.providers.sdk import Address

KEY = "sk-test-8sSgu83jVb7PwkZc0AKdQ2"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
# Where local servers are asked for their windows.
PROBED_PATHS = {"/api/ps", "/api/v0/models", "/api/v1/models", "/props", "/v1/models"}
USAGE = Usage(input_tokens=120, output_tokens=7, cache_read_tokens=100, cache_write_tokens=10)


@dataclass
class Reply:
    """One reply: a status, headers, and pieces of a body; then it ends, is cut or stalls.

    A `slow` one waits until `released` is set: before its headers with `"headers"`, before its body
    with `"body"`.
    """

    pieces: list[bytes] = field(default_factory=list[bytes])
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    stalls: bool = False
    cut: bool = False
    slow: str = ""


@dataclass
class ReceivedRequest:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """Sends its replies in order, the last one again and again. It opens no tunnel as a proxy.

    `shown` is what it says of any model at `/api/show`, beside the replies.
    """

    def __init__(self) -> None:
        self.url = ""
        self.replies: list[Reply] = []
        self.received: list[ReceivedRequest] = []
        self.tunnels: list[str] = []
        self.shown: dict[str, Any] = {}
        self.hung_up = anyio.Event()
        self.replied = anyio.Event()
        self.request_arrived = anyio.Event()
        self.released = anyio.Event()

    async def serve(self, stream: SocketStream) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            async with stream:
                while True:
                    await self._reply(stream)

    async def _reply(self, stream: SocketStream) -> None:
        method, received = await _read(stream)
        if method == "CONNECT":
            self.tunnels.append(received.path)
            raise anyio.EndOfStream
        reply = self.reply_to(received)
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"} | reply.headers
        lines = [f"HTTP/1.1 {reply.status} Reply", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        self.request_arrived.set()
        if reply.slow == "headers":
            await self.released.wait()
        await stream.send("\r\n".join(lines).encode())
        if reply.slow == "body":
            await self.released.wait()
        for piece in reply.pieces:
            await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.replied.set()
        if reply.stalls:
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await stream.receive()
            self.hung_up.set()
        if reply.stalls or reply.cut:
            raise anyio.EndOfStream
        await stream.send(b"0\r\n\r\n")

    def reply_to(self, received: ReceivedRequest) -> Reply:
        """Return the next reply; questions about a model take none of them."""
        if received.path == "/api/show":
            return json_reply(self.shown)
        if received.path in PROBED_PATHS:
            return json_reply({"error": "not found"}, 404)
        self.received.append(received)
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def json_reply(value: Any, status: int = 200) -> Reply:
    """Return a reply with JSON in it."""
    return Reply([json.dumps(value).encode()], status, {"content-type": "application/json"})


Server = TypeVar("Server", bound=ModelServer)


@contextlib.asynccontextmanager
async def open_model_server() -> AsyncGenerator[ModelServer]:
    """Open a server that sends the replies it is given."""
    async with open_server(ModelServer()) as server:
        yield server


@contextlib.asynccontextmanager
async def open_server(server: Server) -> AsyncGenerator[Server]:
    """Open a server on a port of its own."""
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


async def _read(stream: SocketStream) -> tuple[str, ReceivedRequest]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, path, _ = first.split(" ")
    return method, ReceivedRequest(path, headers, msgspec.json.decode(body or b"{}"))


class ScriptedProvider(Protocol):
    """One provider, what happens on its next calls, and the usage that it reports."""

    provider: Provider
    usage: Usage
    stops: tuple[Stop, ...]

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None: ...
    def refuses_the_key(self) -> None: ...
    def lacks_the_model(self) -> None: ...
    def refuses_effort_then_sends(self, text: str) -> None: ...
    def asks_to_slow_down(self, seconds: float) -> None: ...
    def breaks_down(self) -> None: ...
    def breaks_down_after(self, text: str) -> None: ...
    def breaks_off_after(self, text: str) -> None: ...
    def falls_silent_after(self, text: str) -> None: ...
    def never_starts(self) -> None: ...


class ScriptedFake:
    """The fake needs no server."""

    usage = USAGE
    stops: tuple[Stop, ...] = tuple(Stop)

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._fake = Fake()
        self.provider: Provider = self._fake

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        self._play(ScriptedAnswer(text="".join(texts), piece=len(texts[0]), stop=stop, usage=USAGE))

    def refuses_the_key(self) -> None:
        self._play(ScriptedAnswer(fail=ErrorCode.AI_AUTH_FAILED))

    def lacks_the_model(self) -> None:
        self._play(ScriptedAnswer(fail=ErrorCode.AI_MODEL_UNKNOWN))

    def refuses_effort_then_sends(self, text: str) -> None:
        self._play(ScriptedAnswer(text=text, unknown=frozenset({"effort"})))

    def asks_to_slow_down(self, seconds: float) -> None:
        self._play(
            ScriptedAnswer(fail=ErrorCode.AI_RATE_LIMITED, retry_after_ms=int(seconds * 1000))
        )

    def breaks_down(self) -> None:
        self._play(ScriptedAnswer(fail=ErrorCode.UPSTREAM_ERROR))

    def breaks_down_after(self, text: str) -> None:
        self._play(ScriptedAnswer(text=text, after=1, fail=ErrorCode.UPSTREAM_ERROR))

    def breaks_off_after(self, text: str) -> None:
        self.breaks_down_after(text)

    def falls_silent_after(self, text: str) -> None:
        self._play(ScriptedAnswer(text=text, after=1, stall=True))

    def never_starts(self) -> None:
        self._play(ScriptedAnswer(fail=ErrorCode.TIMEOUT))

    def _play(self, step: ScriptedAnswer) -> None:
        self._fake.play(Script(steps=(step,)))


class ScriptedOpenAI:
    """Chat completions, as OpenAI and servers like it stream them."""

    usage = USAGE
    stops: tuple[Stop, ...] = tuple(Stop)

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._server = server
        self.provider: Provider = OpenAIChat(
            Address(key=KEY, url=f"{server.url}/v1", idle_ms=idle_ms)
        )

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "stop", Stop.LENGTH: "length", Stop.REFUSED: "content_filter"}
        last = _chunk({}, finish_reason=reasons[stop])
        self._reply_with(Reply([*_deltas(texts), last, _openai_usage(), b"data: [DONE]\n\n"]))

    def lacks_the_model(self) -> None:
        message = "The model `some-model` does not exist or you do not have access to it."
        self._reply_with(_refusal(404, {"message": message, "code": "model_not_found"}))

    def refuses_effort_then_sends(self, text: str) -> None:
        self.sends(text)
        message = "Unrecognized request argument supplied: reasoning_effort"
        refusal = _refusal(400, {"message": message, "type": "invalid_request_error"})
        self._server.replies.insert(0, refusal)

    def refuses_the_key(self) -> None:
        message = f"Incorrect API key provided: {KEY}."
        self._reply_with(
            _refusal(401, {"message": message, "type": "x", "code": "invalid_api_key"})
        )

    def asks_to_slow_down(self, seconds: float) -> None:
        error = {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}
        self._reply_with(_refusal(429, error, {"retry-after": str(seconds)}))

    def breaks_down(self) -> None:
        self._reply_with(_refusal(500, {"message": f"oops {KEY}", "type": "server_error"}))

    def breaks_down_after(self, text: str) -> None:
        error = _event({"error": {"message": "gone", "type": "server_error", "code": None}})
        self._reply_with(Reply([*_deltas([text]), error]))

    def breaks_off_after(self, text: str) -> None:
        self._reply_with(Reply(_deltas([text]), cut=True))

    def falls_silent_after(self, text: str) -> None:
        self._reply_with(Reply(_deltas([text]), stalls=True))

    def never_starts(self) -> None:
        self._reply_with(Reply())

    def _reply_with(self, reply: Reply) -> None:
        self._server.replies = [reply]


class ScriptedAnthropic:
    """Messages, as Anthropic streams them."""

    usage = USAGE
    stops: tuple[Stop, ...] = tuple(Stop)

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._server = server
        self.provider: Provider = AnthropicMessages(
            Address(key=KEY, url=server.url, idle_ms=idle_ms)
        )

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "end_turn", Stop.LENGTH: "max_tokens", Stop.REFUSED: "refusal"}
        self._reply_with(Reply([*_message(texts), *_message_end(reasons[stop])]))

    def lacks_the_model(self) -> None:
        self._reply_with(_anthropic_refusal(404, "not_found_error", "model: some-model"))

    def refuses_effort_then_sends(self, text: str) -> None:
        self.sends(text)
        message = "This model does not support the effort parameter."
        refusal = _anthropic_refusal(400, "invalid_request_error", message)
        self._server.replies.insert(0, refusal)

    def refuses_the_key(self) -> None:
        self._reply_with(
            _anthropic_refusal(401, "authentication_error", f"invalid x-api-key {KEY}")
        )

    def asks_to_slow_down(self, seconds: float) -> None:
        reply = _anthropic_refusal(429, "rate_limit_error", "slow")
        reply.headers["retry-after"] = str(seconds)
        self._reply_with(reply)

    def breaks_down(self) -> None:
        self._reply_with(_anthropic_refusal(529, "overloaded_error", f"Overloaded {KEY}"))

    def breaks_down_after(self, text: str) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        self._reply_with(Reply([*_message([text]), _event(error, "error")]))

    def breaks_off_after(self, text: str) -> None:
        self._reply_with(Reply(_message([text]), cut=True))

    def falls_silent_after(self, text: str) -> None:
        self._reply_with(Reply(_message([text]), stalls=True))

    def never_starts(self) -> None:
        self._reply_with(Reply())

    def _reply_with(self, reply: Reply) -> None:
        self._server.replies = [reply]


class ScriptedOllama:
    """Ollama's own chat: a line of JSON for each piece; it caches, and does not say how much."""

    usage = Usage(input_tokens=120, output_tokens=7)
    stops: tuple[Stop, ...] = (Stop.END, Stop.LENGTH)

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._server = server
        self.provider: Provider = OllamaChat(Address(key=KEY, url=server.url, idle_ms=idle_ms))

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "stop", Stop.LENGTH: "length", Stop.REFUSED: "stop"}
        self._reply_with(ndjson_reply(*ollama_lines(texts), ollama_end(reasons[stop])))

    def lacks_the_model(self) -> None:
        self._fail(404, "model 'some-model' not found")

    def refuses_effort_then_sends(self, text: str) -> None:
        self.sends(text)
        replies = self._server.replies
        self._fail(400, '"some-model" does not support thinking')
        self._server.replies += replies

    def refuses_the_key(self) -> None:
        self._fail(401, f"unauthorized {KEY}")

    def asks_to_slow_down(self, seconds: float) -> None:
        self._fail(429, "too many requests", {"retry-after": str(seconds)})

    def breaks_down(self) -> None:
        self._fail(500, f"llama runner process has terminated: exit status 2 {KEY}")

    def breaks_down_after(self, text: str) -> None:
        self._reply_with(ndjson_reply(*ollama_lines([text]), {"error": "an error was encountered"}))

    def breaks_off_after(self, text: str) -> None:
        self._reply_with(ndjson_reply(*ollama_lines([text]), cut=True))

    def falls_silent_after(self, text: str) -> None:
        self._reply_with(ndjson_reply(*ollama_lines([text]), stalls=True))

    def never_starts(self) -> None:
        self._reply_with(ndjson_reply())

    def _fail(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        body = json.dumps({"error": message}).encode()
        self._reply_with(
            Reply([body], status, {"content-type": "application/json"} | (headers or {}))
        )

    def _reply_with(self, reply: Reply) -> None:
        self._server.shown = OLLAMA_MODEL
        self._server.replies = [reply]


SCRIPTED_PROVIDERS = {
    "fake": ScriptedFake,
    "openai": ScriptedOpenAI,
    "anthropic": ScriptedAnthropic,
    "ollama": ScriptedOllama,
}

OLLAMA_MODEL: dict[str, Any] = {
    "modelfile": "",
    "parameters": 'stop "<|im_end|>"\ntemperature 0.7',
    "model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960},
    "capabilities": ["completion", "tools", "thinking"],
}


def ollama_lines(texts: Any, field: str = "content") -> list[dict[str, Any]]:
    """Return the pieces of an answer in Ollama's format; those of thinking stand in `thinking`."""
    message: dict[str, Any] = {"role": "assistant", "content": ""}
    head = {"model": "m", "created_at": "2026-11-17T08:00:00.000000Z", "done": False}
    return [head | {"message": message | {field: text}} for text in texts]


def ollama_end(reason: str, prompt: int | None = 120, output: int = 7) -> dict[str, Any]:
    """Return the last line, with the counts; that of a cached prompt is left out."""
    (last,) = ollama_lines([""])
    counts = {"eval_count": output, "total_duration": 1_000_000}
    if prompt is not None:
        counts["prompt_eval_count"] = prompt
    return last | {"done": True, "done_reason": reason} | counts


def ndjson_reply(*lines: dict[str, Any], cut: bool = False, stalls: bool = False) -> Reply:
    """Return a reply with a line of JSON for each value."""
    pieces = [json.dumps(line).encode() + b"\n" for line in lines]
    return Reply(pieces, headers={"content-type": "application/x-ndjson"}, cut=cut, stalls=stalls)


def _event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _chunk(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return _event(
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        | {"choices": [choice]}
    )


def _deltas(texts: Any) -> list[bytes]:
    opening = _chunk({"role": "assistant", "content": ""})
    return [opening, *(_chunk({"content": text}) for text in texts)]


def openai_reply(text: str, reason: str, prompt: int, output: int) -> Reply:
    """Return a whole answer in OpenAI's format."""
    last = _chunk({}, finish_reason=reason)
    usage = _openai_usage(prompt, output)
    return Reply([*_deltas([text] if text else []), last, usage, b"data: [DONE]\n\n"])


def _openai_usage(prompt: int = 120, output: int = 7) -> bytes:
    details = {"cached_tokens": 100, "cache_write_tokens": 10}
    usage = {"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output}
    return _event(
        {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []}
        | {"usage": usage | {"prompt_tokens_details": details}}
    )


def _refusal(status: int, error: dict[str, Any], headers: dict[str, str] | None = None) -> Reply:
    body = json.dumps({"error": error}).encode()
    return Reply([body], status, {"content-type": "application/json"} | (headers or {}))


def _anthropic_refusal(status: int, kind: str, message: str) -> Reply:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
    return Reply([body], status, {"content-type": "application/json"})


def _message(texts: Any) -> list[bytes]:
    usage = {"input_tokens": 10, "output_tokens": 1}
    usage |= {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 10}
    message: dict[str, Any] = {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    return [
        _event({"type": "message_start", "message": message | {"usage": usage}}, "message_start"),
        _block("content_block_start", content_block={"type": "text", "text": ""}),
        _event({"type": "ping"}, "ping"),
        *(_block("content_block_delta", delta={"type": "text_delta", "text": t}) for t in texts),
    ]


def _message_end(reason: str) -> list[bytes]:
    ending = {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}
    return [
        _block("content_block_stop"),
        _event(ending | {"usage": {"output_tokens": 7}}, "message_delta"),
        _event({"type": "message_stop"}, "message_stop"),
    ]


def _block(kind: str, **fields: Any) -> bytes:
    return _event({"type": kind, "index": 0} | fields, kind)
