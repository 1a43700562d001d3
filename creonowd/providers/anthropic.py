"""The provider for Anthropic's messages."""

from collections.abc import AsyncIterator, Awaitable
from typing import TYPE_CHECKING, Any

from creonowd.providers import sdk
from creonowd.providers.provider import (
    Answer,
    Block,
    Call,
    Effort,
    OnText,
    Sampling,
    Stop,
    StreamedText,
    Usage,
    usage_from,
)
from creonowd.providers.sdk import SdkProvider

if TYPE_CHECKING:
    from anthropic.types import RawMessageStreamEvent

OWN_URL = "https://api.anthropic.com"
FORMAT = "2023-06-01"

_STOPS = {"max_tokens": Stop.LENGTH, "refusal": Stop.REFUSED}
_COUNTS = {
    "input_tokens": "fresh",
    "output_tokens": "output",
    "cache_read_input_tokens": "read",
    "cache_creation_input_tokens": "written",
}


class AnthropicMessages(SdkProvider):
    """Streams messages; its connections are kept between calls."""

    name = "anthropic"

    def _make_client(self, library: Any) -> Any:
        address = self._address
        return library.AsyncAnthropic(
            api_key=address.key,
            base_url=address.url or OWN_URL,
            max_retries=0,
            timeout=sdk.timeout(address),
            http_client=sdk.http_client(library, address, anthropic_version=FORMAT),
            open_telemetry=False,
        )

    def _unknown_parameters(self, call: Call) -> set[str]:
        """Return what no model of Anthropic's takes: a temperature over 1, or `top_p` beside one."""
        if call.sampling.temperature is None:
            return set()
        return {"temperature"} if call.sampling.temperature > 1 else {"top_p"}

    def _create(self, client: Any, call: Call) -> Awaitable[Any]:
        return client.messages.create(**self._body(call))

    async def _read(
        self, stream: "AsyncIterator[RawMessageStreamEvent]", on_text: OnText
    ) -> Answer:
        text = StreamedText(self.name, on_text)
        counts: dict[str, int] = {}
        stop: Stop | None = None
        ended = False
        async for event in stream:
            if event.type == "message_start":
                _update_counts(counts, event.message.usage)
            elif event.type == "content_block_delta" and event.delta.type == "text_delta":
                text.add(event.delta.text)
            elif event.type == "message_delta":
                _update_counts(counts, event.usage)
                stop = _STOPS.get(event.delta.stop_reason or "", Stop.END)
            ended = ended or event.type == "message_stop"
        if stop is None or not ended:
            raise sdk.answer_cut_off(self.name)
        return Answer(text=text.finish(), stop=stop, usage=_usage(counts))

    def _body(self, call: Call) -> dict[str, Any]:
        marks = self._address.prompt_cache and call.mark_prefix
        system, user = call.blocks
        whole = not call.user_blocks
        return {
            "model": call.model,
            "system": [_block(block, marks=marks) for block in system],
            "messages": [
                {
                    "role": "user",
                    "content": call.user if whole else [_block(b, marks=marks) for b in user],
                }
            ],
            "max_tokens": call.max_output_tokens,
            "stream": True,
        } | _sampling(call.sampling)


def _block(block: Block, *, marks: bool) -> dict[str, Any]:
    text: dict[str, Any] = {"type": "text", "text": block.text}
    if marks and block.marked:
        text["cache_control"] = {"type": "ephemeral"}
    return text


def _sampling(sampling: Sampling) -> dict[str, Any]:
    """Return the fields of a request; models do not think unless they are asked to."""
    fields: dict[str, Any] = {}
    # The SDK has no argument for these; models before 4.7 take them.
    by_hand = {"temperature": sampling.temperature, "top_p": sampling.top_p}
    if given := {name: value for name, value in by_hand.items() if value is not None}:
        fields["extra_body"] = given
    if sampling.effort not in {None, Effort.NONE}:
        fields["output_config"] = {"effort": str(sampling.effort)}
    return fields


def _update_counts(counts: dict[str, int], usage: Any) -> None:
    """Keep the newest of each count: it includes the earlier ones."""
    for name, ours in _COUNTS.items():
        if isinstance(count := getattr(usage, name, None), int):
            counts[ours] = count


def _usage(counts: dict[str, int]) -> Usage | None:
    if "fresh" not in counts:
        return None
    read, written = counts.get("read", 0), counts.get("written", 0)
    sent = counts["fresh"] + read + written
    return usage_from(sent=sent, received=counts.get("output"), read=read, written=written)
