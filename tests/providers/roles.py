"""How each provider speaks: the same lines in the streaming format of OpenAI and of Anthropic."""

import json
from typing import Any, Protocol

from creonowd.errors import ErrorCode
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.fake import Fake, Script, ScriptedAnswer
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Provider, Stop, Usage
from creonowd.providers.sdk import Address
from tests.providers.stage import Scene, Stage

KEY = "sk-test-8sSgu83jVb7PwkZc0AKdQ2"
USAGE = Usage(input_tokens=120, output_tokens=7, cache_read_tokens=100, cache_write_tokens=10)


class Role(Protocol):
    """One provider that can be told what will happen on its next calls."""

    provider: Provider

    def says(self, *texts: str, stop: Stop = Stop.END) -> None: ...
    def refuses_the_key(self) -> None: ...
    def asks_to_slow_down(self, seconds: float) -> None: ...
    def breaks_down(self) -> None: ...
    def breaks_down_after(self, text: str) -> None: ...
    def breaks_off_after(self, text: str) -> None: ...
    def falls_silent_after(self, text: str) -> None: ...
    def never_starts(self) -> None: ...


class FakeRole:
    """The fake needs no stage."""

    def __init__(self, stage: Stage, idle_ms: int) -> None:
        self._fake = Fake()
        self.provider: Provider = self._fake

    def says(self, *texts: str, stop: Stop = Stop.END) -> None:
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


class OpenAIRole:
    """Chat completions, as OpenAI and its kin stream them."""

    def __init__(self, stage: Stage, idle_ms: int) -> None:
        self._stage = stage
        self.provider: Provider = OpenAIChat(
            Address(key=KEY, url=f"{stage.url}/v1", idle_ms=idle_ms)
        )

    def says(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "stop", Stop.LENGTH: "length", Stop.REFUSED: "content_filter"}
        last = _chunk({}, finish_reason=reasons[stop])
        self._plays(Scene([*_deltas(texts), last, _openai_usage(), b"data: [DONE]\n\n"]))

    def refuses_the_key(self) -> None:
        said = f"Incorrect API key provided: {KEY}."
        self._plays(_refusal(401, {"message": said, "type": "x", "code": "invalid_api_key"}))

    def asks_to_slow_down(self, seconds: float) -> None:
        error = {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}
        self._plays(_refusal(429, error, {"retry-after": str(seconds)}))

    def breaks_down(self) -> None:
        self._plays(_refusal(500, {"message": f"oops {KEY}", "type": "server_error"}))

    def breaks_down_after(self, text: str) -> None:
        error = _event({"error": {"message": "gone", "type": "server_error", "code": None}})
        self._plays(Scene([*_deltas([text]), error]))

    def breaks_off_after(self, text: str) -> None:
        self._plays(Scene(_deltas([text]), cut=True))

    def falls_silent_after(self, text: str) -> None:
        self._plays(Scene(_deltas([text]), stalls=True))

    def never_starts(self) -> None:
        self._plays(Scene())

    def _plays(self, scene: Scene) -> None:
        self._stage.scenes = [scene]


class AnthropicRole:
    """Messages, as Anthropic streams them."""

    def __init__(self, stage: Stage, idle_ms: int) -> None:
        self._stage = stage
        self.provider: Provider = AnthropicMessages(
            Address(key=KEY, url=stage.url, idle_ms=idle_ms)
        )

    def says(self, *texts: str, stop: Stop = Stop.END) -> None:
        reasons = {Stop.END: "end_turn", Stop.LENGTH: "max_tokens", Stop.REFUSED: "refusal"}
        self._plays(Scene([*_message(texts), *_message_end(reasons[stop])]))

    def refuses_the_key(self) -> None:
        self._plays(_anthropic_refusal(401, "authentication_error", f"invalid x-api-key {KEY}"))

    def asks_to_slow_down(self, seconds: float) -> None:
        scene = _anthropic_refusal(429, "rate_limit_error", "slow")
        scene.headers["retry-after"] = str(seconds)
        self._plays(scene)

    def breaks_down(self) -> None:
        self._plays(_anthropic_refusal(529, "overloaded_error", f"Overloaded {KEY}"))

    def breaks_down_after(self, text: str) -> None:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        self._plays(Scene([*_message([text]), _event(error, "error")]))

    def breaks_off_after(self, text: str) -> None:
        self._plays(Scene(_message([text]), cut=True))

    def falls_silent_after(self, text: str) -> None:
        self._plays(Scene(_message([text]), stalls=True))

    def never_starts(self) -> None:
        self._plays(Scene())

    def _plays(self, scene: Scene) -> None:
        self._stage.scenes = [scene]


ROLES = {"fake": FakeRole, "openai": OpenAIRole, "anthropic": AnthropicRole}


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


def _refusal(status: int, error: dict[str, Any], headers: dict[str, str] | None = None) -> Scene:
    body = json.dumps({"error": error}).encode()
    return Scene([body], status, {"content-type": "application/json"} | (headers or {}))


def _anthropic_refusal(status: int, kind: str, said: str) -> Scene:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": said}}).encode()
    return Scene([body], status, {"content-type": "application/json"})


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
