"""The requests in OpenAI's format, and answers that do not keep to it."""

import json
from itertools import chain
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers import openai
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Call, cut_blocks
from creonowd.providers.sdk import Address
from testing.providers import KEY, ModelServer, Reply, ScriptedOpenAI
from tests.providers.calls import CALL, PATIENCE, ignore


async def ask(provider: OpenAIChat, call: Call = CALL) -> None:
    try:
        with anyio.fail_after(PATIENCE):
            await provider.answer(call, ignore)
    finally:
        await provider.close()


async def failure(provider: OpenAIChat) -> DaemonError:
    with pytest.raises(DaemonError) as caught:
        await ask(provider)
    return caught.value


async def test_the_bytes_sent_are_the_bytes_of_the_prompt(model_server: ModelServer) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("好")
    provider = OpenAIChat(Address(key=KEY, url=f"{model_server.url}/v1"))

    await ask(provider)

    (request,) = model_server.received
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": CALL.system},
            {"role": "user", "content": CALL.user},
        ],
        "max_tokens": 1500,
        "stream": True,
        "stream_options": {"include_usage": True},
        "prompt_cache_key": CALL.prefix_hash,
    }


async def test_without_prompt_caching_no_cache_key_is_sent(model_server: ModelServer) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("好")
    provider = OpenAIChat(Address(key=KEY, url=model_server.url, prompt_cache=False))

    await ask(provider)

    assert "prompt_cache_key" not in model_server.received[0].body


async def test_a_server_that_needs_no_key_is_asked_without_one(model_server: ModelServer) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("好")
    provider = OpenAIChat(Address(key="", url=model_server.url))

    await ask(provider)

    assert model_server.received[0].headers["authorization"] == "Bearer none"


async def test_a_name_and_a_password_in_the_address_go_before_a_key(
    model_server: ModelServer,
) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("好")
    provider = OpenAIChat(Address(key=KEY, url=model_server.url.replace("://", "://lin:geheim@")))

    await ask(provider)

    assert model_server.received[0].headers["authorization"] == "Basic bGluOmdlaGVpbQ=="
    assert model_server.received[0].headers["host"] == model_server.url.removeprefix("http://")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply([b"data: {not json\n\n"]), "garbage"),
        (Reply([b'data: {"choices": [{"delta": 5}]}\n\n']), "garbage"),
        (Reply([b"data: [1, 2]\n\n"]), "garbage"),
        (Reply([b"data: " + b"[" * 200_000 + b"\n\n"]), "garbage"),
        (Reply([b'data: {"choices": [{"delta": {"content": [1]}}]}\n\n']), "garbage"),
        (Reply([b"data: [DONE]\n\n"]), "cut"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_upstream_error(
    model_server: ModelServer, reply: Reply, reason: str
) -> None:
    model_server.replies = [reply]
    provider = OpenAIChat(Address(key=KEY, url=model_server.url))

    error = await failure(provider)

    assert (error.code, error.details["reason"]) == (ErrorCode.UPSTREAM_ERROR, reason)


@pytest.mark.parametrize(
    "usage",
    [
        {"total_tokens": 3},
        {"prompt_tokens": None, "completion_tokens": 3},
        {"prompt_tokens": "12", "completion_tokens": 3},
        {"prompt_tokens": 12.5, "completion_tokens": 3},
        {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "prompt_tokens_details": {"cached_tokens": []},
        },
    ],
)
async def test_an_answer_is_not_lost_to_counts_that_make_no_sense(
    model_server: ModelServer, usage: Any
) -> None:
    text: dict[str, Any] = {
        "choices": [{"index": 0, "delta": {"content": "好"}, "finish_reason": "stop"}]
    }
    chunks: tuple[Any, ...] = (text, {"choices": [], "usage": usage})
    model_server.replies = [
        Reply([b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks])
    ]
    provider = OpenAIChat(Address(key=KEY, url=model_server.url))

    with anyio.fail_after(PATIENCE):
        answer = await provider.answer(CALL, ignore)
    await provider.close()

    assert answer.text == "好"
    assert answer.usage is None or isinstance(answer.usage.cache_read_tokens, int)


BLOCKS = {
    "system_blocks": cut_blocks(CALL.system, [(len(CALL.system.encode()), True)]),
    "user_blocks": cut_blocks(CALL.user, [(3, True)]),
    "mark_prefix": True,
}


@pytest.mark.parametrize(
    ("model", "own", "named"),
    [("gpt-5.6", True, 2), ("gpt-6.1-sol", True, 2), ("gpt-5.4", True, 0), ("gpt-5.6", False, 0)],
)
async def test_break_points_are_named_to_openai_itself_for_models_that_know_them(
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    own: bool,  # noqa: FBT001
    named: int,
) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("好")
    url = f"{model_server.url}/v1"
    if own:
        monkeypatch.setattr(openai, "OWN_URL", url)
    call = replace(CALL, model=model, **BLOCKS)

    await ask(OpenAIChat(Address(key=KEY, url=url)), call)

    body = model_server.received[0].body
    contents: list[Any] = [message["content"] for message in body["messages"]]
    blocks = list(chain.from_iterable(c for c in contents if not isinstance(c, str)))
    texts = [c if isinstance(c, str) else "".join(b["text"] for b in c) for c in contents]
    assert texts == [CALL.system, CALL.user]
    assert sum("prompt_cache_breakpoint" in block for block in blocks) == named
    assert ("prompt_cache_options" in body) == bool(named)
