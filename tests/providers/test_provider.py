"""The contract of every provider: the fake, OpenAI, Anthropic and Ollama."""

import anyio
import pytest
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.provider import LONGEST, Effort, OnText, Sampling, Stop
from testing.providers import (
    KEY,
    PROXIES,
    ModelServer,
    Reply,
    ScriptedProvider,
    open_model_server,
)
from tests.providers.calls import CALL, PATIENCE, ignore

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


async def failure(scripted: ScriptedProvider, on_text: OnText = ignore) -> DaemonError:
    with anyio.fail_after(PATIENCE), pytest.raises(DaemonError) as caught:
        await scripted.provider.answer(CALL, on_text)
    assert KEY not in str(caught.value) + repr(caught.value.details)
    return caught.value


async def test_pieces_are_handed_over_in_order_and_join_up(scripted: ScriptedProvider) -> None:
    pieces: list[str] = []
    scripted.sends("林远推", "门而入", "。😀")

    with anyio.fail_after(PATIENCE):
        answer = await scripted.provider.answer(CALL, pieces.append)

    assert answer.text == "林远推门而入。😀" == "".join(pieces)
    assert len(pieces) > 1
    assert answer.stop is Stop.END


async def test_a_character_cut_in_two_is_made_whole(scripted: ScriptedProvider) -> None:
    pieces: list[str] = []
    scripted.sends("好", "\ud83d", "\ude00了", "\ud83d")

    with anyio.fail_after(PATIENCE):
        answer = await scripted.provider.answer(CALL, pieces.append)

    assert answer.text == "好😀了\ufffd" == "".join(pieces)


async def test_the_usage_includes_what_came_from_the_cache(scripted: ScriptedProvider) -> None:
    scripted.sends("好")

    with anyio.fail_after(PATIENCE):
        answer = await scripted.provider.answer(CALL, ignore)

    assert answer.usage == scripted.usage


async def test_an_answer_says_why_it_ended(scripted: ScriptedProvider) -> None:
    stops: list[Stop] = []

    for stop in scripted.stops:
        scripted.sends("好", stop=stop)
        with anyio.fail_after(PATIENCE):
            stops.append((await scripted.provider.answer(CALL, ignore)).stop)

    assert stops == list(scripted.stops)


async def test_a_model_that_is_not_there_is_no_reason_to_try_again(
    scripted: ScriptedProvider,
) -> None:
    scripted.lacks_the_model()

    error = await failure(scripted)

    assert error.code is ErrorCode.AI_MODEL_UNKNOWN
    assert not error.meaning.retryable


async def test_a_parameter_that_is_refused_by_name_is_dropped_and_named(
    scripted: ScriptedProvider,
) -> None:
    pieces: list[str] = []
    scripted.refuses_effort_then_sends("好")
    call = replace(CALL, sampling=Sampling(temperature=0.5, effort=Effort.HIGH))

    with anyio.fail_after(PATIENCE):
        answer = await scripted.provider.answer(call, pieces.append)

    assert (answer.text, pieces) == ("好", ["好"])
    assert answer.dropped == {"effort"}


async def test_a_refused_key_is_an_auth_failure(scripted: ScriptedProvider) -> None:
    scripted.refuses_the_key()

    error = await failure(scripted)

    assert error.code is ErrorCode.AI_AUTH_FAILED


async def test_a_rate_limit_says_how_long_to_wait(scripted: ScriptedProvider) -> None:
    scripted.asks_to_slow_down(2.5)

    error = await failure(scripted)

    assert error.code is ErrorCode.AI_RATE_LIMITED
    assert error.details["retryAfterMs"] == 2500
    assert error.meaning.retryable


async def test_a_breakdown_is_an_upstream_error(scripted: ScriptedProvider) -> None:
    scripted.breaks_down()

    error = await failure(scripted)

    assert error.code is ErrorCode.UPSTREAM_ERROR


@pytest.mark.parametrize("how", ["breaks_down_after", "breaks_off_after"])
async def test_an_answer_that_ends_too_soon_is_an_error_and_no_answer(
    scripted: ScriptedProvider, how: str
) -> None:
    pieces: list[str] = []
    getattr(scripted, how)("林远")

    error = await failure(scripted, pieces.append)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert pieces == ["林远"]


async def test_an_answer_without_end_fails(scripted: ScriptedProvider) -> None:
    pieces: list[int] = []
    scripted.sends(*["好" * (LONGEST // 4)] * 5)

    error = await failure(scripted, lambda text: pieces.append(len(text)))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["reason"] == "endless"
    assert sum(pieces) <= LONGEST


async def test_cancelling_ends_the_call_at_once_and_upstream(
    scripted: ScriptedProvider, model_server: ModelServer
) -> None:
    begun = anyio.Event()
    scripted.falls_silent_after("林远")

    def note(_text: str) -> None:
        begun.set()

    with anyio.fail_after(PATIENCE), anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scripted.provider.answer, CALL, note)
            await begun.wait()
            scope.cancel()

    assert scope.cancelled_caught
    if model_server.replies:
        with anyio.fail_after(PATIENCE):
            await model_server.hung_up.wait()


@pytest.mark.parametrize("slow", ["headers", "body"])
async def test_a_slow_start_is_waited_for(
    scripted: ScriptedProvider, model_server: ModelServer, slow: str
) -> None:
    pieces: list[str] = []
    scripted.sends("林远推", "门而入")
    for reply in model_server.replies:
        reply.slow = slow

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(scripted.provider.answer, CALL, pieces.append)
            if model_server.replies:
                await model_server.request_arrived.wait()
                assert pieces == []
            model_server.released.set()

    assert "".join(pieces) == "林远推门而入"


@pytest.mark.parametrize("slow", ["headers", "body"])
@pytest.mark.parametrize("idle_ms", [80])
async def test_a_start_that_is_too_slow_is_a_timeout(
    scripted: ScriptedProvider, model_server: ModelServer, slow: str
) -> None:
    scripted.never_starts()
    for reply in model_server.replies:
        reply.slow = slow

    error = await failure(scripted)

    assert error.code is ErrorCode.TIMEOUT


@pytest.mark.parametrize("idle_ms", [50])
async def test_silence_is_a_timeout_and_ends_the_call_upstream(
    scripted: ScriptedProvider, model_server: ModelServer
) -> None:
    scripted.never_starts()
    for reply in model_server.replies:
        reply.stalls = True

    error = await failure(scripted)

    assert error.code is ErrorCode.TIMEOUT
    if model_server.replies:
        assert error.details["reason"] == "upstream_silent"
        with anyio.fail_after(PATIENCE):
            await model_server.hung_up.wait()


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_a_prompt_is_sent_to_no_address_but_the_one_in_the_settings(
    scripted: ScriptedProvider, model_server: ModelServer, status: int
) -> None:
    scripted.breaks_down()
    async with open_model_server() as elsewhere:
        elsewhere.replies = [Reply()]
        for reply in model_server.replies:
            reply.status = status
            reply.headers["location"] = f"{elsewhere.url}/v1/messages"

        error = await failure(scripted)

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert elsewhere.received == []


async def test_nothing_of_the_environment_goes_with_a_prompt(
    scripted: ScriptedProvider, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC"):
        for about in ("ORG_ID", "PROJECT_ID", "ADMIN_KEY", "AUTH_TOKEN", "PROFILE"):
            monkeypatch.setenv(f"{name}_{about}", "of-this-machine")
        headers = ("Authorization", "X-Mine", "Host", "User-Agent", "Anthropic-Version", "Cookie")
        monkeypatch.setenv(
            f"{name}_CUSTOM_HEADERS", "\n".join(f"{header}: of-this-machine" for header in headers)
        )
        monkeypatch.setenv(f"{name}_BASE_URL", "http://of-this-machine.invalid")
    scripted.sends("好", "了")

    with anyio.fail_after(PATIENCE):
        answer = await scripted.provider.answer(CALL, ignore)

    assert answer.text == "好了"
    for request in model_server.received:
        assert request.headers.keys() - {"anthropic-version"} == SENT
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert not [value for value in request.headers.values() if "of-this-machine" in value]


async def test_a_proxy_cannot_read_along(
    scripted: ScriptedProvider, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over plain HTTP it would be sent the prompt instead of the address in the settings."""
    scripted.sends("好", "了")
    async with open_model_server() as proxy:
        proxy.replies = [Reply()]
        for name in PROXIES:
            monkeypatch.setenv(name, proxy.url)

        with anyio.fail_after(PATIENCE):
            answer = await scripted.provider.answer(CALL, ignore)

    assert answer.text == "好了"
    assert proxy.received == []


async def test_a_provider_answers_again_after_it_failed(scripted: ScriptedProvider) -> None:
    scripted.breaks_off_after("林")
    await failure(scripted)
    scripted.sends("好", "了")

    with anyio.fail_after(PATIENCE):
        answer = await scripted.provider.answer(CALL, ignore)

    assert answer.text == "好了"


async def test_many_calls_at_once_do_not_mix(scripted: ScriptedProvider) -> None:
    answers: list[str] = []
    if scripted.provider.name != "fake":
        scripted.sends("好", "了")

    async def ask() -> None:
        answers.append((await scripted.provider.answer(CALL, ignore)).text)

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(ask)

    assert len(answers) == 8
    assert len(set(answers)) == 1
