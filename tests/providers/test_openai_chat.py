"""What really goes to OpenAI and its kin, and what comes of strange answers."""

import json
import logging
import sys
from typing import Any

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Call
from creonowd.providers.sdk import Address
from testing.providers import KEY, OpenAIScript, ProviderServer, ServerReply
from tests.providers.test_contract import CALL, PATIENCE, ignore


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


async def test_the_bytes_sent_are_the_bytes_of_the_prompt(upstream: ProviderServer) -> None:
    OpenAIScript(upstream, 60_000).says("好")
    provider = OpenAIChat(Address(key=KEY, url=f"{upstream.url}/v1"))

    await ask(provider)

    (request,) = upstream.received
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


async def test_without_prompt_caching_no_cache_key_is_sent(upstream: ProviderServer) -> None:
    OpenAIScript(upstream, 60_000).says("好")
    provider = OpenAIChat(Address(key=KEY, url=upstream.url, prompt_cache=False))

    await ask(provider)

    assert "prompt_cache_key" not in upstream.received[0].body


async def test_a_server_that_needs_no_key_is_asked_without_one(upstream: ProviderServer) -> None:
    OpenAIScript(upstream, 60_000).says("好")
    provider = OpenAIChat(Address(key="", url=upstream.url))

    await ask(provider)

    assert upstream.received[0].headers["authorization"] == "Bearer none"


async def test_a_name_and_a_password_in_the_address_go_before_a_key(
    upstream: ProviderServer,
) -> None:
    OpenAIScript(upstream, 60_000).says("好")
    provider = OpenAIChat(Address(key=KEY, url=upstream.url.replace("://", "://lin:geheim@")))

    await ask(provider)

    assert upstream.received[0].headers["authorization"] == "Basic bGluOmdlaGVpbQ=="
    assert upstream.received[0].headers["host"] == upstream.url.removeprefix("http://")


async def test_a_proxy_is_used_where_it_sees_no_more_than_the_address(
    upstream: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", upstream.url)
    provider = OpenAIChat(Address(key=KEY, url="https://model.invalid/v1"))

    error = await failure(provider)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert upstream.tunnels == ["model.invalid:443"]
    assert upstream.received == []


async def test_silence_is_a_timeout_and_ends_the_call_upstream(upstream: ProviderServer) -> None:
    upstream.replies = [ServerReply(stalls=True)]
    provider = OpenAIChat(Address(key=KEY, url=upstream.url, idle_ms=50))

    error = await failure(provider)

    assert error.code is ErrorCode.TIMEOUT
    assert error.details["reason"] == "upstream_silent"
    with anyio.fail_after(PATIENCE):
        await upstream.hung_up.wait()


async def test_cancelling_hangs_up_on_the_provider(upstream: ProviderServer) -> None:
    OpenAIScript(upstream, 60_000).falls_silent_after("林")
    provider = OpenAIChat(Address(key=KEY, url=upstream.url))

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
        (ServerReply([b"data: {not json\n\n"]), "garbage"),
        (ServerReply([b'data: {"choices": [{"delta": 5}]}\n\n']), "garbage"),
        (ServerReply([b"data: [1, 2]\n\n"]), "garbage"),
        (ServerReply([b"data: " + b"[" * 200_000 + b"\n\n"]), "garbage"),
        (ServerReply([b'data: {"choices": [{"delta": {"content": [1]}}]}\n\n']), "garbage"),
        (ServerReply([b"<html>hello</html>"]), "cut"),
        (ServerReply([]), "cut"),
        (ServerReply([b"data: [DONE]\n\n"]), "cut"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_upstream_error(
    upstream: ProviderServer, reply: ServerReply, reason: str
) -> None:
    upstream.replies = [reply]
    provider = OpenAIChat(Address(key=KEY, url=upstream.url))

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
    upstream: ProviderServer, usage: Any
) -> None:
    text: dict[str, Any] = {
        "choices": [{"index": 0, "delta": {"content": "好"}, "finish_reason": "stop"}]
    }
    chunks: tuple[Any, ...] = (text, {"choices": [], "usage": usage})
    upstream.replies = [
        ServerReply([b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks])
    ]
    provider = OpenAIChat(Address(key=KEY, url=upstream.url))

    with anyio.fail_after(PATIENCE):
        answer = await provider.answer(CALL, ignore)
    await provider.close()

    assert answer.text == "好"
    assert answer.usage is None or isinstance(answer.usage.cache_read_tokens, int)


async def test_a_page_of_html_instead_of_an_error_is_an_upstream_error(
    upstream: ProviderServer,
) -> None:
    upstream.replies = [
        ServerReply([b"<html>bad gateway</html>"], 502, {"content-type": "text/html"})
    ]
    provider = OpenAIChat(Address(key=KEY, url=upstream.url))

    error = await failure(provider)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["status"] == 502


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "ftp://127.0.0.1", "http://[::1", "nonsense"]
)
async def test_an_address_where_nobody_is_says_so(url: str) -> None:
    provider = OpenAIChat(Address(key=KEY, url=url))

    error = await failure(provider)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["reason"] == "unreachable"
    assert url not in error.message


async def test_a_missing_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)

    error = await failure(OpenAIChat(Address(key=KEY)))

    assert error.code is ErrorCode.AI_NOT_CONFIGURED
    assert "creonowd[openai]" in error.message


async def test_the_library_logs_no_prompt_even_at_debug_level(
    upstream: ProviderServer, caplog: pytest.LogCaptureFixture
) -> None:
    OpenAIScript(upstream, 60_000).says("好")
    provider = OpenAIChat(Address(key=KEY, url=upstream.url))

    with caplog.at_level(logging.DEBUG):
        await ask(provider)

    assert "规则" not in caplog.text
    assert KEY not in caplog.text


def test_an_address_never_shows_its_key() -> None:
    assert KEY not in repr(Address(key=KEY))
