"""What every provider must do, whatever is behind it."""

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.provider import LONGEST, Call, Heard, Stop
from testing.providers import (
    KEY,
    USAGE,
    ProviderScript,
    ProviderServer,
    ServerReply,
    serve_provider,
)
from tests.providers.conftest import PROXIES

PATIENCE = 60
SENT = {
    "accept",
    "accept-encoding",
    "authorization",
    "connection",
    "content-length",
    "content-type",
    "host",
    "user-agent",
}
CALL = Call(
    model="some-model",
    system="# CreoNow\n规则 😀\n",
    user="## Task\n续写\n",
    max_output_tokens=1500,
    prefix_hash="ab" * 32,
)


def ignore(_text: str) -> None:
    """Hear nothing."""


async def failure(script: ProviderScript, heard: Heard = ignore) -> DaemonError:
    with anyio.fail_after(PATIENCE), pytest.raises(DaemonError) as caught:
        await script.provider.answer(CALL, heard)
    assert KEY not in str(caught.value) + repr(caught.value.details)
    return caught.value


async def test_pieces_are_handed_over_in_order_and_join_up(script: ProviderScript) -> None:
    heard: list[str] = []
    script.says("林远推", "门而入", "。😀")

    with anyio.fail_after(PATIENCE):
        answer = await script.provider.answer(CALL, heard.append)

    assert answer.text == "林远推门而入。😀" == "".join(heard)
    assert len(heard) > 1
    assert answer.stop is Stop.END


async def test_a_character_cut_in_two_is_made_whole(script: ProviderScript) -> None:
    heard: list[str] = []
    script.says("好", "\ud83d", "\ude00了", "\ud83d")

    with anyio.fail_after(PATIENCE):
        answer = await script.provider.answer(CALL, heard.append)

    assert answer.text == "好😀了\ufffd" == "".join(heard)


async def test_usage_is_told_with_what_came_from_the_cache(script: ProviderScript) -> None:
    script.says("好")

    with anyio.fail_after(PATIENCE):
        answer = await script.provider.answer(CALL, ignore)

    assert answer.usage == USAGE


@pytest.mark.parametrize("stop", list(Stop))
async def test_why_an_answer_ended_is_told(script: ProviderScript, stop: Stop) -> None:
    script.says("好", stop=stop)

    with anyio.fail_after(PATIENCE):
        answer = await script.provider.answer(CALL, ignore)

    assert answer.stop is stop


async def test_a_refused_key_is_an_auth_failure(script: ProviderScript) -> None:
    script.refuses_the_key()

    error = await failure(script)

    assert error.code is ErrorCode.AI_AUTH_FAILED


async def test_a_rate_limit_says_how_long_to_wait(script: ProviderScript) -> None:
    script.asks_to_slow_down(2.5)

    error = await failure(script)

    assert error.code is ErrorCode.AI_RATE_LIMITED
    assert error.details["retryAfterMs"] == 2500
    assert error.meaning.retryable


async def test_a_breakdown_is_an_upstream_error(script: ProviderScript) -> None:
    script.breaks_down()

    error = await failure(script)

    assert error.code is ErrorCode.UPSTREAM_ERROR


@pytest.mark.parametrize("how", ["breaks_down_after", "breaks_off_after"])
async def test_an_answer_that_ends_too_soon_is_an_error_and_no_answer(
    script: ProviderScript, how: str
) -> None:
    heard: list[str] = []
    getattr(script, how)("林远")

    error = await failure(script, heard.append)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert heard == ["林远"]


async def test_an_answer_without_end_is_given_up(script: ProviderScript) -> None:
    heard: list[int] = []
    script.says(*["好" * (LONGEST // 4)] * 5)

    error = await failure(script, lambda text: heard.append(len(text)))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["reason"] == "endless"
    assert sum(heard) <= LONGEST


async def test_cancelling_ends_the_call_at_once(script: ProviderScript) -> None:
    heard = anyio.Event()
    script.falls_silent_after("林远")

    def note(_text: str) -> None:
        heard.set()

    with anyio.fail_after(PATIENCE), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(script.provider.answer, CALL, note)
            await heard.wait()
            scope.cancel()

    assert scope.cancelled_caught


@pytest.mark.parametrize("slow", ["headers", "body"])
async def test_a_slow_start_is_waited_for(
    script: ProviderScript, upstream: ProviderServer, slow: str
) -> None:
    heard: list[str] = []
    script.says("林远推", "门而入")
    for reply in upstream.replies:
        reply.slow = slow

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(script.provider.answer, CALL, heard.append)
            if upstream.replies:
                await upstream.asked.wait()
                assert heard == []
            upstream.go_on.set()

    assert "".join(heard) == "林远推门而入"


@pytest.mark.parametrize("slow", ["headers", "body"])
@pytest.mark.parametrize("idle_ms", [80])
async def test_a_start_that_is_too_slow_is_a_timeout(
    script: ProviderScript, upstream: ProviderServer, slow: str
) -> None:
    script.never_starts()
    for reply in upstream.replies:
        reply.slow = slow

    error = await failure(script)

    assert error.code is ErrorCode.TIMEOUT


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_prompt_is_sent_to_no_address_but_the_one_in_the_settings(
    script: ProviderScript, upstream: ProviderServer, status: int
) -> None:
    script.breaks_down()
    async with serve_provider() as elsewhere:
        elsewhere.replies = [ServerReply()]
        for reply in upstream.replies:
            reply.status = status
            reply.headers["location"] = f"{elsewhere.url}/v1/messages"

        error = await failure(script)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert elsewhere.received == []


async def test_nothing_of_the_environment_goes_with_a_prompt(
    script: ProviderScript, upstream: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        for about in ("ORG_ID", "PROJECT_ID", "ADMIN_KEY", "AUTH_TOKEN", "PROFILE"):
            monkeypatch.setenv(f"{name}_{about}", "of-this-machine")
        headers = ("Authorization", "X-Mine", "Host", "User-Agent", "Anthropic-Version", "Cookie")
        monkeypatch.setenv(
            f"{name}_CUSTOM_HEADERS", "\n".join(f"{header}: of-this-machine" for header in headers)
        )
        monkeypatch.setenv(f"{name}_BASE_URL", "http://of-this-machine.invalid")
    script.says("好", "了")

    with anyio.fail_after(PATIENCE):
        answer = await script.provider.answer(CALL, ignore)

    assert answer.text == "好了"
    for request in upstream.received:
        assert request.headers.keys() - {"anthropic-version"} == SENT
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert not [value for value in request.headers.values() if "of-this-machine" in value]


async def test_a_proxy_cannot_read_along(
    script: ProviderScript, upstream: ProviderServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over plain HTTP it would be sent the prompt instead of the address in the settings."""
    script.says("好", "了")
    async with serve_provider() as proxy:
        proxy.replies = [ServerReply()]
        for name in PROXIES:
            monkeypatch.setenv(name, proxy.url)

        with anyio.fail_after(PATIENCE):
            answer = await script.provider.answer(CALL, ignore)

    assert answer.text == "好了"
    assert proxy.received == []


async def test_a_provider_answers_again_after_it_failed(script: ProviderScript) -> None:
    script.breaks_off_after("林")
    await failure(script)
    script.says("好", "了")

    with anyio.fail_after(PATIENCE):
        answer = await script.provider.answer(CALL, ignore)

    assert answer.text == "好了"


async def test_many_calls_at_once_do_not_mix(script: ProviderScript) -> None:
    answers: list[str] = []
    if script.provider.name != "fake":
        script.says("好", "了")

    async def ask() -> None:
        answers.append((await script.provider.answer(CALL, ignore)).text)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)

    assert len(answers) == 8
    assert len(set(answers)) == 1
