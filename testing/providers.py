"""AI providers for tests: a local HTTP server in place of a provider's, and the replies it sends.

The server sends one reply after the other and keeps the requests. A scripted provider makes the
same replies in the streaming format of OpenAI or of Anthropic, or with the fake, without a server.
"""

import contextlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

from creonowd.errors import ErrorCode
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.fake import Fake, Script, ScriptedAnswer
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Provider, Stop, Usage
from creonowd.providers.sdk import Address

KEY = "sk-test-8sSgu83jVb7PwkZc0AKdQ2"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
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
class Received:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class ModelServer:
    """Sends its replies in order, the last one again and again. It opens no tunnel as a proxy."""

    def __init__(self) -> None:
        self.url = ""
        self.replies: list[Reply] = []
        self.received: list[Received] = []
        self.tunnels: list[str] = []
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
        self.received.append(received)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
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


@contextlib.asynccontextmanager
async def open_model_server() -> AsyncGenerator[ModelServer]:
    """Open a server on a port of its own."""
    server = ModelServer()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.serve)
        yield server
        tasks.cancel_scope.cancel()


async def _read(stream: SocketStream) -> tuple[str, Received]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, path, _ = first.split(" ")
    return method, Received(path, headers, msgspec.json.decode(body or b"{}"))


class ScriptedProvider(Protocol):
    """One provider, and what happens on its next calls."""

    provider: Provider

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None: ...
    def refuses_the_key(self) -> None: ...
    def asks_to_slow_down(self, seconds: float) -> None: ...
    def breaks_down(self) -> None: ...
    def breaks_down_after(self, text: str) -> None: ...
    def breaks_off_after(self, text: str) -> None: ...
    def falls_silent_after(self, text: str) -> None: ...
    def never_starts(self) -> None: ...


class ScriptedFake:
    """The fake needs no server."""

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._fake = Fake()
        self.provider: Provider = self._fake

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        self._play(ScriptedAnswer(text="".join(texts), piece=len(texts[0]), stop=stop, usage=USAGE))

    def refuses_the_key(self) -> None:
        self._play(ScriptedAnswer(fail=ErrorCode.AI_AUTH_FAILED))

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
    """Chat completions, as OpenAI and its kin stream them."""

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._server = server
        self.provider: Provider = OpenAIChat(
            Address(key=KEY, url=f"{server.url}/v1", idle_ms=idle_ms)
        )

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "stop", Stop.LENGTH: "length", Stop.REFUSED: "content_filter"}
        last = _chunk({}, finish_reason=reasons[stop])
        self._reply_with(Reply([*_deltas(texts), last, _openai_usage(), b"data: [DONE]\n\n"]))

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

    def __init__(self, server: ModelServer, idle_ms: int) -> None:
        self._server = server
        self.provider: Provider = AnthropicMessages(
            Address(key=KEY, url=server.url, idle_ms=idle_ms)
        )

    def sends(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "end_turn", Stop.LENGTH: "max_tokens", Stop.REFUSED: "refusal"}
        self._reply_with(Reply([*_message(texts), *_message_end(reasons[stop])]))

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


SCRIPTED_PROVIDERS = {
    "fake": ScriptedFake,
    "openai": ScriptedOpenAI,
    "anthropic": ScriptedAnthropic,
}


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


def _openai_usage() -> bytes:
    details = {"cached_tokens": 100, "cache_write_tokens": 10}
    usage = {"prompt_tokens": 120, "completion_tokens": 7, "total_tokens": 127}
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
