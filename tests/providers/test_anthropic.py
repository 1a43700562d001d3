"""The requests in Anthropic's format, and answers that do not keep to it."""

from typing import Any

import anyio
import msgspec
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.provider import Call
from creonowd.providers.sdk import Address
from testing.providers import KEY, ModelServer, Reply, ScriptedAnthropic
from tests.providers.calls import CALL, PATIENCE, ignore

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
    model_server: ModelServer, call: Call, caching: str, mark: dict[str, Any]
) -> None:
    ScriptedAnthropic(model_server, 60_000).sends("好")

    await ask(
        AnthropicMessages(Address(key=KEY, url=model_server.url, prompt_cache=caching == "on")),
        call,
    )

    (request,) = model_server.received
    assert request.path == "/v1/messages"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "some-model",
        "system": [{"type": "text", "text": CALL.system} | mark],
        "messages": [{"role": "user", "content": CALL.user}],
        "max_tokens": 1500,
        "stream": True,
    }


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply([b"event: message_start\ndata: {not json\n\n"]), "garbage"),
        (Reply([b'event: message_start\ndata: {"type": "message_start"}\n\n']), "garbage"),
        (Reply([b'event: message_stop\ndata: {"type": "message_stop"}\n\n']), "cut"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_upstream_error(
    model_server: ModelServer, reply: Reply, reason: str
) -> None:
    model_server.replies = [reply]

    with pytest.raises(DaemonError) as caught:
        await ask(AnthropicMessages(Address(key=KEY, url=model_server.url)))

    assert caught.value.code is ErrorCode.UPSTREAM_ERROR
    assert caught.value.details["reason"] == reason


@pytest.mark.parametrize("counts", [b'"input_tokens": "ten"', b'"input_tokens": null', b'"x": 1'])
async def test_an_answer_is_not_lost_to_counts_that_make_no_sense(
    model_server: ModelServer, counts: bytes
) -> None:
    ScriptedAnthropic(model_server, 60_000).sends("好")
    (reply,) = model_server.replies
    reply.pieces = [piece.replace(b'"input_tokens": 10', counts) for piece in reply.pieces]
    provider = AnthropicMessages(Address(key=KEY, url=model_server.url))

    with anyio.fail_after(PATIENCE):
        answer = await provider.answer(CALL, ignore)
    await provider.close()

    assert (answer.text, answer.usage) == ("好", None)
