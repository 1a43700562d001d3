"""The provider for OpenAI's chat completions, and for servers that speak them."""

from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

from creonowd.providers import sdk
from creonowd.providers.provider import (
    Answer,
    Block,
    Call,
    OnText,
    Stop,
    StreamedText,
    Usage,
    usage_from,
)
from creonowd.providers.sdk import SdkProvider
from creonowd.tokens.models import CacheRule, cache_facts, facts_for

if TYPE_CHECKING:
    from openai.types import CompletionUsage
    from openai.types.chat import ChatCompletionChunk

OWN_URL = "https://api.openai.com/v1"

_STOPS = {"length": Stop.LENGTH, "content_filter": Stop.REFUSED}


class OpenAIChat(SdkProvider):
    """Streams chat completions; its connections are kept between calls."""

    name = "openai"

    def _make_client(self, library: Any) -> Any:
        address = self._address
        return library.AsyncOpenAI(
            api_key=address.key or sdk.NO_KEY,
            base_url=address.url or OWN_URL,
            max_retries=0,
            timeout=sdk.timeout(address),
            http_client=sdk.http_client(library, address),
        )

    def _unknown_parameters(self, call: Call) -> set[str]:
        """Return what a model of OpenAI's does not take: if it thinks, temperature and `top_p`, else effort."""
        facts = facts_for(call.model)
        if facts is None or facts.family != "openai":
            return set()
        return {"temperature", "top_p"} if facts.thinks else {"effort"}

    def _create(self, client: Any, call: Call) -> Awaitable[Any]:
        return client.chat.completions.create(**self._body(call))

    async def _read(self, stream: "AsyncIterator[ChatCompletionChunk]", on_text: OnText) -> Answer:
        text = StreamedText(self.name, on_text)
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
            raise sdk.answer_cut_off(self.name)
        return Answer(text=text.finish(), stop=stop, usage=usage)

    def _body(self, call: Call) -> dict[str, Any]:
        own = self._address.url in {"", OWN_URL}
        limit = "max_completion_tokens" if own else "max_tokens"
        body: dict[str, Any] = {
            "model": call.model,
            "messages": self._messages(call),
            limit: call.max_output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._address.prompt_cache and call.prefix_hash:
            body["prompt_cache_key"] = call.prefix_hash
        if self._names_break_points(call):
            body["extra_body"] = {"prompt_cache_options": {"mode": "explicit"}}
        if call.sampling.temperature is not None:
            body["temperature"] = call.sampling.temperature
        if call.sampling.top_p is not None:
            body["top_p"] = call.sampling.top_p
        if call.sampling.effort is not None:
            body["reasoning_effort"] = str(call.sampling.effort)
        return body

    def _names_break_points(self, call: Call) -> bool:
        """Return whether to name places to cache up to, which OpenAI itself takes for models from 5.6 on."""
        own = self._address.url in {"", OWN_URL}
        newer = cache_facts(call.model).rule is CacheRule.BREAK_POINTS
        wanted = self._address.prompt_cache and call.mark_prefix and bool(call.user_blocks)
        return own and newer and wanted

    def _messages(self, call: Call) -> list[dict[str, Any]]:
        contents: list[Any] = [call.system, call.user]
        if self._names_break_points(call):
            contents = [[_block(block) for block in blocks] for blocks in call.blocks]
        roles = ("system", "user")
        return [
            {"role": role, "content": content}
            for role, content in zip(roles, contents, strict=True)
        ]


def _block(block: Block) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "text", "text": block.text}
    if block.marked:
        text["prompt_cache_breakpoint"] = {"mode": "explicit"}
    return text


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
