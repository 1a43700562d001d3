"""What really goes to Anthropic, and what comes of strange answers."""

from typing import Any

import anyio
import msgspec
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.provider import Call
from creonowd.providers.sdk import Address
from testing.providers import KEY, AnthropicScript, ProviderServer, ServerReply
from tests.providers.test_contract import CALL, PATIENCE, ignore

MARKED = msgspec.structs.replace(CALL, mark_prefix=True)


async def ask(provider: AnthropicMessages, call: Call = CALL) -> None:
    try:
        with anyio.fail_after(PATIENCE):
            await provider.answer(call, ignore)
    finally:
        await provider.close()


@pytest.mark.parametrize(
    ("call", "caching", "mark"),
    [
        (CALL, "on", {}),
        (MARKED, "on", {"cache_control": {"type": "ephemeral"}}),
        (MARKED, "off", {}),
    ],
)
async def test_the_prefix_is_sent_byte_for_byte_and_marked_when_worth_it(
    upstream: ProviderServer, call: Call, caching: str, mark: dict[str, Any]
) -> None:
    AnthropicScript(upstream, 60_000).says("好")

    await ask(
        AnthropicMessages(Address(key=KEY, url=upstream.url, prompt_cache=caching == "on")), call
    )

    (request,) = upstream.received
    assert request.path == "/v1/messages"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "some-model",
        "system": [{"type": "text", "text": CALL.system} | mark],
        "messages": [{"role": "user", "content": CALL.user}],
        "max_tokens": 1500,
        "stream": True,
    }


async def test_silence_is_a_timeout(upstream: ProviderServer) -> None:
    upstream.replies = [ServerReply(stalls=True)]

    with pytest.raises(DaemonError) as caught:
        await ask(AnthropicMessages(Address(key=KEY, url=upstream.url, idle_ms=50)))

    assert caught.value.code is ErrorCode.TIMEOUT


async def test_cancelling_hangs_up_on_the_provider(upstream: ProviderServer) -> None:
    AnthropicScript(upstream, 60_000).falls_silent_after("林")
    provider = AnthropicMessages(Address(key=KEY, url=upstream.url))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(provider.answer, CALL, ignore)
            await upstream.replied.wait()
            tasks.cancel_scope.cancel()
        await upstream.hung_up.wait()
    await provider.close()


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (ServerReply([b"event: message_start\ndata: {not json\n\n"]), "garbage"),
        (ServerReply([b'event: message_start\ndata: {"type": "message_start"}\n\n']), "garbage"),
        (ServerReply([b"<html>hello</html>"]), "cut"),
        (ServerReply([]), "cut"),
        (ServerReply([b'event: message_stop\ndata: {"type": "message_stop"}\n\n']), "cut"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_upstream_error(
    upstream: ProviderServer, reply: ServerReply, reason: str
) -> None:
    upstream.replies = [reply]

    with pytest.raises(DaemonError) as caught:
        await ask(AnthropicMessages(Address(key=KEY, url=upstream.url)))

    assert caught.value.code is ErrorCode.UPSTREAM_ERROR
    assert caught.value.details["reason"] == reason


@pytest.mark.parametrize("counts", [b'"input_tokens": "ten"', b'"input_tokens": null', b'"x": 1'])
async def test_an_answer_is_not_lost_to_counts_that_make_no_sense(
    upstream: ProviderServer, counts: bytes
) -> None:
    AnthropicScript(upstream, 60_000).says("好")
    (reply,) = upstream.replies
    reply.pieces = [piece.replace(b'"input_tokens": 10', counts) for piece in reply.pieces]
    provider = AnthropicMessages(Address(key=KEY, url=upstream.url))

    with anyio.fail_after(PATIENCE):
        answer = await provider.answer(CALL, ignore)
    await provider.close()

    assert (answer.text, answer.usage) == ("好", None)
