"""The provider for Ollama's own chat, which lets us choose the window; its OpenAI interface does not."""

import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
from anyio import to_thread

from creonowd.model import Model
from creonowd.providers import sdk
from creonowd.providers.local_server import LocalServer, base_of, read_model
from creonowd.providers.provider import (
    Answer,
    Call,
    Effort,
    OnText,
    Stop,
    StreamedText,
    Usage,
    ask_without_unknown,
    usage_from,
)
from creonowd.providers.sdk import Address, ErrorReply

if TYPE_CHECKING:
    import httpx2

OWN_URL = "http://127.0.0.1:11434"
# Ollama loads a model anew when its window changes, so the window grows in steps and never shrinks.
STEP = 1024
BYTES_PER_TOKEN = 2


class _OllamaMessage(Model):
    content: str = ""


class _ChatLine(Model, rename=None):
    message: _OllamaMessage = _OllamaMessage()
    done: bool = False
    done_reason: str = ""
    prompt_eval_count: Any = None
    eval_count: Any = None
    error: str = ""


class OllamaChat:
    """Streams Ollama's chat; its connections are kept between calls."""

    name = "ollama"
    judges = True

    def __init__(self, address: Address) -> None:
        self._address = Address(
            key=address.key, url=base_of(address.url or OWN_URL), idle_ms=address.idle_ms
        )
        self._lock = anyio.Lock()
        self._client: httpx2.AsyncClient | None = None
        self._windows: dict[str, int] = {}
        self._largest: dict[str, int | None] = {}

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Stream one answer, in a window that has room for prompt and answer."""
        client = await self._open()
        with sdk.http_errors(self.name, self._address):
            window = await self._window(client, call)

            async def ask(asked: Call) -> Answer:
                return await self._ask(client, asked, window, on_text)

            return await ask_without_unknown(call, set(), ask)

    async def close(self) -> None:
        """Close the connections to the server."""
        if self._client is not None:
            await self._client.aclose()

    async def _open(self) -> "httpx2.AsyncClient":
        async with self._lock:
            if self._client is None:
                self._client = await to_thread.run_sync(sdk.bare_client, self.name, self._address)
        return self._client

    async def _window(self, client: "httpx2.AsyncClient", call: Call) -> int:
        """Return the window to ask for: what the call needs, but no more than the model has."""
        if call.model not in self._largest:
            server = LocalServer(self.name, self._address, client)
            self._largest[call.model] = read_model(await server.show(call.model)).largest
        size = len((call.system + call.user).encode("utf-8", "replace"))
        needed = call.window or size // BYTES_PER_TOKEN + call.max_output_tokens
        needed = -(-needed // STEP) * STEP
        window = max(needed, self._windows.get(call.model, 0))
        window = min(window, self._largest[call.model] or window)
        self._windows[call.model] = window
        return window

    async def _ask(
        self, client: "httpx2.AsyncClient", call: Call, window: int, on_text: OnText
    ) -> Answer:
        url = f"{self._address.url}/api/chat"
        async with client.stream("POST", url, json=_body(call, window)) as reply:
            if reply.status_code != 200:
                await reply.aread()
                raise self._refusal(reply.status_code, _message_of(reply.content), reply.headers)
            return await self._read(_lines(reply.aiter_bytes()), on_text)

    async def _read(self, lines: AsyncIterator[bytes], on_text: OnText) -> Answer:
        text = StreamedText(self.name, on_text)
        async for line in lines:
            part = _decode(line)
            if part is None:
                raise sdk.answer_unreadable(self.name)
            if part.error:
                raise self._refusal(200, part.error)
            if part.message.content:
                text.add(part.message.content)
            if part.done:
                stop = Stop.LENGTH if part.done_reason == "length" else Stop.END
                return Answer(text=text.finish(), stop=stop, usage=_usage(part))
        raise sdk.answer_cut_off(self.name)

    def _refusal(self, status: int, message: str, headers: Any = None) -> Exception:
        reply = ErrorReply(self.name, status=status, message=message, headers=dict(headers or {}))
        return reply.as_error(self._address.key)


def _body(call: Call, window: int) -> dict[str, Any]:
    sampling = call.sampling
    options = {
        "num_ctx": window,
        "num_predict": call.max_output_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
    }
    body: dict[str, Any] = {
        "model": call.model,
        "messages": [
            {"role": "system", "content": call.system},
            {"role": "user", "content": call.user},
        ],
        "stream": True,
        "options": {name: value for name, value in options.items() if value is not None},
    }
    if sampling.effort is not None:
        body["think"] = False if sampling.effort is Effort.NONE else str(sampling.effort)
    return body


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Cut a stream at its line feeds only: other characters that end a line stand in texts."""
    rest = b""
    async for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line.strip():
                yield line
    if rest.strip():
        yield rest


def _decode(line: bytes) -> _ChatLine | None:
    """Decode a line, half characters included; None if it is in no form that we know."""
    try:
        return msgspec.convert(json.loads(line), _ChatLine)
    except (ValueError, RecursionError, msgspec.ValidationError):
        return None


def _message_of(data: bytes) -> str:
    line = _decode(data)
    return "" if line is None else line.error


def _usage(line: _ChatLine) -> Usage | None:
    """Return the counts; Ollama does not count a prompt that it still had in memory."""
    return usage_from(sent=line.prompt_eval_count, received=line.eval_count, read=0, written=0)
