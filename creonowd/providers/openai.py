"""The provider for OpenAI's chat completions, and for servers that speak them."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

from creonowd.providers import sdk
from creonowd.providers.provider import (
    Answer,
    Call,
    OnText,
    Stop,
    StreamedText,
    Usage,
    usage_from,
)
from creonowd.providers.sdk import Address, SdkClient
from creonowd.tokens.models import facts_for

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk

OWN_URL = "https://api.openai.com/v1"

_STOPS = {"length": Stop.LENGTH, "content_filter": Stop.REFUSED}


class OpenAIChat:
    """Streams chat completions; its connections are kept between calls."""

    name = "openai"
    judges = True

    def __init__(self, address: Address) -> None:
        self._address = address
        self._sdk = SdkClient(self.name, address, _client)

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Stream one completion."""
        return await self._sdk.stream(
            call,
            _unknown_parameters(call.model),
            lambda client, asked: client.chat.completions.create(**self._body(asked)),
            lambda stream: _read(stream, on_text),
        )

    async def close(self) -> None:
        """Close the connections to the provider."""
        await self._sdk.close()

    def _body(self, call: Call) -> dict[str, Any]:
        own = self._address.url in {"", OWN_URL}
        limit = "max_completion_tokens" if own else "max_tokens"
        body: dict[str, Any] = {
            "model": call.model,
            "messages": [
                {"role": "system", "content": call.system},
                {"role": "user", "content": call.user},
            ],
            limit: call.max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._address.prompt_cache and call.prefix_hash:
            body["prompt_cache_key"] = call.prefix_hash
        if call.sampling.temperature is not None:
            body["temperature"] = call.sampling.temperature
        if call.sampling.top_p is not None:
            body["top_p"] = call.sampling.top_p
        if call.sampling.effort is not None:
            body["reasoning_effort"] = str(call.sampling.effort)
        return body


def _unknown_parameters(model: str) -> set[str]:
    """Return what a model does not know: those of OpenAI's that think choose words by themselves."""
    facts = facts_for(model)
    if facts is None or facts.family != "openai":
        return set()
    return {"temperature", "top_p"} if facts.thinks else {"effort"}


def _client(library: Any, address: Address) -> Any:
    return library.AsyncOpenAI(
        api_key=address.key or sdk.NO_KEY,
        base_url=address.url or OWN_URL,
        max_retries=0,
        timeout=sdk.timeout(address),
        http_client=sdk.http_client(library, address),
    )


async def _read(stream: "AsyncIterator[ChatCompletionChunk]", on_text: OnText) -> Answer:
    text = StreamedText(OpenAIChat.name, on_text)
    stop: Stop | None = None
    usage: Usage | None = None
    async for chunk in stream:
        usage = _usage(chunk.usage) if chunk.usage else usage
        for choice in chunk.choices:
            if piece := choice.delta.content:
                text.add(piece)
            if choice.finish_reason:
                stop = _STOPS.get(choice.finish_reason, Stop.END)
    if stop is None:
        raise sdk.answer_cut_off(OpenAIChat.name)
    return Answer(text=text.finish(), stop=stop, usage=usage)


def _usage(usage: "CompletionUsage") -> Usage | None:
    """Read the counts; what came from the cache is part of the prompt's, as DeepSeek has it too."""
    details = usage.prompt_tokens_details
    read = getattr(details, "cached_tokens", None)
    return usage_from(
        sent=usage.prompt_tokens,
        received=usage.completion_tokens,
        read=read or getattr(usage, "prompt_cache_hit_tokens", None) or 0,
        written=getattr(details, "cache_write_tokens", None) or 0,
    )
