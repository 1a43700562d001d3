"""What the providers over an SDK have in common."""

import gzip
import logging
import sys
import zlib

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers import sdk
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Provider
from creonowd.providers.sdk import (
    LONGEST_MESSAGE,
    MESSAGE_LENGTH,
    Address,
    ErrorReply,
    redact_upstream_message,
    retry_after_ms,
)
from testing.providers import KEY, SCRIPTED_PROVIDERS, ModelServer, Reply
from tests.providers.calls import CALL, PATIENCE, ignore

Make = type[OpenAIChat | AnthropicMessages]
over_both = pytest.mark.parametrize("make", [OpenAIChat, AnthropicMessages])

EVENT_ENDS = (b"\n\n", b"\r\r", b"\r\n\r\n")
BOMBS = {
    "zeros": (b"\0", 100_000_000),
    "comments": (b":\n", 40_000_000),
    "comments with blank lines": (b":\n\n", 2_000_000),
    "one event": (b"data: x\n", 100_000),
}


async def ask(provider: Provider) -> None:
    try:
        with anyio.fail_after(PATIENCE):
            await provider.answer(CALL, ignore)
    finally:
        await provider.close()


async def failure(provider: Provider) -> DaemonError:
    with pytest.raises(DaemonError) as caught:
        await ask(provider)
    return caught.value


@pytest.mark.parametrize("status", [200, 400])
@over_both
async def test_a_reply_without_end_fails_though_it_has_no_text(
    make: Make, status: int, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDKs collect a line, and an error, however long it gets."""
    monkeypatch.setattr(sdk, "LONGEST_BODY", 1_000_000)
    model_server.replies = [Reply([b"x" * 100_000] * 20, status=status)]

    error = await failure(make(Address(key=KEY, url=model_server.url)))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["reason"] == "endless"


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("bomb", BOMBS)
@over_both
async def test_what_is_compressed_is_bounded_by_what_it_becomes(
    make: Make, bomb: str, status: int, model_server: ModelServer
) -> None:
    headers = {"content-encoding": "gzip"}
    if status == 400:
        headers["content-type"] = "application/json"
    unit, count = BOMBS[bomb]
    model_server.replies = [Reply([gzip.compress(unit * count, 9)], status, headers)]

    error = await failure(make(Address(key=KEY, url=model_server.url)))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert model_server.received[0].headers["accept-encoding"] == "identity"


def test_a_body_comes_in_small_pieces_and_no_further_than_its_limit() -> None:
    limits = sdk.BodyLimits("openai", "gzip", event_ends=EVENT_ENDS)
    bomb = gzip.compress(b"data: x\n\n" * 20_000_000, 9)
    seen: list[int] = []

    with pytest.raises(DaemonError) as caught:
        seen.extend(len(piece) for piece in limits.pieces(bomb))

    assert caught.value.details["reason"] == "endless"
    assert max(seen) <= sdk.PIECE_BYTES
    assert sum(seen) <= sdk.LONGEST_BODY


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
def test_a_compressed_answer_is_read_like_any_other(encoding: str) -> None:
    text = "data: 雨\n\n".encode() * 1000
    packed = {"gzip": gzip.compress(text), "deflate": zlib.compress(text), "identity": text}
    limits = sdk.BodyLimits("openai", encoding, event_ends=EVENT_ENDS)
    chunks = [packed[encoding][at : at + 7] for at in range(0, len(packed[encoding]), 7)]

    assert b"".join(piece for chunk in chunks for piece in limits.pieces(chunk)) == text


def test_a_compression_that_nobody_asked_for_is_unreadable() -> None:
    with pytest.raises(DaemonError) as caught:
        sdk.BodyLimits("openai", "br", event_ends=EVENT_ENDS)

    assert caught.value.code is ErrorCode.UPSTREAM_ERROR


@pytest.mark.parametrize("pieces", [[], [b"<html>hello</html>"]])
@over_both
async def test_a_reply_without_an_answer_is_one_that_was_cut_off(
    make: Make, pieces: list[bytes], model_server: ModelServer
) -> None:
    model_server.replies = [Reply(pieces)]

    error = await failure(make(Address(key=KEY, url=model_server.url)))

    assert (error.code, error.details["reason"]) == (ErrorCode.UPSTREAM_ERROR, "cut")


@over_both
async def test_a_page_of_html_instead_of_an_error_is_an_upstream_error(
    make: Make, model_server: ModelServer
) -> None:
    model_server.replies = [
        Reply([b"<html>bad gateway</html>"], 502, {"content-type": "text/html"})
    ]

    error = await failure(make(Address(key=KEY, url=model_server.url)))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["status"] == 502


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9", "ftp://127.0.0.1", "http://[::1", "nonsense"]
)
@over_both
async def test_an_address_without_a_server_is_unreachable(make: Make, url: str) -> None:
    error = await failure(make(Address(key=KEY, url=url)))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert error.details["reason"] == "unreachable"
    assert url not in error.message


@over_both
async def test_a_proxy_is_used_where_it_sees_no_more_than_the_address(
    make: Make, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", model_server.url)

    error = await failure(make(Address(key=KEY, url="https://model.invalid/v1")))

    assert error.code is ErrorCode.UPSTREAM_ERROR
    assert model_server.tunnels == ["model.invalid:443"]
    assert model_server.received == []


@pytest.mark.parametrize("library", ["its own", "httpx2"])
@over_both
async def test_a_missing_library_names_the_extra(
    make: Make, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, make.name if library == "its own" else library, None)

    error = await failure(make(Address(key=KEY)))

    assert error.code is ErrorCode.AI_NOT_CONFIGURED
    assert f"creonowd[{make.name}]" in error.message


@pytest.mark.parametrize("name", ["anthropic", "openai"])
async def test_the_library_logs_no_prompt_even_at_debug_level(
    name: str, model_server: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    scripted = SCRIPTED_PROVIDERS[name](model_server, 60_000)
    scripted.sends("好")

    with caplog.at_level(logging.DEBUG):
        await ask(scripted.provider)

    assert "规则" not in caplog.text
    assert KEY not in caplog.text


def test_an_address_never_shows_its_key() -> None:
    assert KEY not in repr(Address(key=KEY))


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (401, None, ErrorCode.AI_AUTH_FAILED),
        (403, "permission_error", ErrorCode.AI_AUTH_FAILED),
        (200, "authentication_error", ErrorCode.AI_AUTH_FAILED),
        (429, None, ErrorCode.AI_RATE_LIMITED),
        (200, "rate_limit_error", ErrorCode.AI_RATE_LIMITED),
        (429, "insufficient_quota", ErrorCode.AI_RATE_LIMITED),
        (400, "invalid_request_error", ErrorCode.UPSTREAM_ERROR),
        (404, "not_found_error", ErrorCode.AI_MODEL_UNKNOWN),
        (500, None, ErrorCode.UPSTREAM_ERROR),
        (529, "overloaded_error", ErrorCode.UPSTREAM_ERROR),
    ],
)
def test_an_error_reply_becomes_one_of_three_errors(
    status: int, kind: str | None, code: ErrorCode
) -> None:
    assert ErrorReply("openai", status=status, kind=kind).as_error("").code is code


def test_the_kind_of_an_error_is_redacted_like_its_message() -> None:
    repeating = ErrorReply("openai", status=400, kind=f"no key {KEY}").as_error(KEY)
    endless = ErrorReply("openai", status=400, kind="x" * (LONGEST_MESSAGE + 1)).as_error(KEY)

    assert KEY not in repeating.message
    assert endless.message == "openai answered 400"


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"Retry-After": "3"}, 3000),
        ({"retry-after": "0.25"}, 250),
        ({"retry-after-ms": "40", "retry-after": "3"}, 40),
        (
            {
                "retry-after": "Wed, 21 Oct 2026 07:28:10 GMT",
                "date": "Wed, 21 Oct 2026 07:28:00 GMT",
            },
            10_000,
        ),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:10 GMT"}, None),
        ({"retry-after": "-5"}, 0),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_is_read_in_every_spelling(headers: dict[str, str], wait: int | None) -> None:
    assert retry_after_ms(headers) == wait


def test_a_message_is_passed_on_redacted_and_cut() -> None:
    message = redact_upstream_message(
        f"model not found\n  (key {KEY}, path C:\\Users\\me\\x) " + "long " * 200, KEY
    )

    assert message.startswith("model not found (key")
    assert KEY not in message
    assert "Users" not in message
    assert len(message) == MESSAGE_LENGTH + 1


def test_a_message_as_long_as_a_book_is_dropped() -> None:
    message = f"{KEY} " * LONGEST_MESSAGE

    error = ErrorReply("openai", status=500, message=message).as_error(KEY)

    assert error.message == "openai answered 500"


def test_a_key_of_no_known_form_is_taken_out_too() -> None:
    assert "plain secret" not in redact_upstream_message(
        "you sent plain secret, really", "plain secret"
    )
