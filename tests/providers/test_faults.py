import pytest

from creonowd.errors import ErrorCode
from creonowd.providers.sdk import LONGEST_MESSAGE, SAID, Complaint, redacted, retry_after_ms
from testing.providers import KEY


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
        (404, "not_found_error", ErrorCode.UPSTREAM_ERROR),
        (500, None, ErrorCode.UPSTREAM_ERROR),
        (529, "overloaded_error", ErrorCode.UPSTREAM_ERROR),
    ],
)
def test_complaints_are_told_apart(status: int, kind: str | None, code: ErrorCode) -> None:
    assert Complaint("openai", status=status, kind=kind).as_error("").code is code


def test_a_kind_is_as_little_to_be_trusted_as_a_message() -> None:
    repeating = Complaint("openai", status=400, kind=f"no key {KEY}").as_error(KEY)
    endless = Complaint("openai", status=400, kind="x" * (LONGEST_MESSAGE + 1)).as_error(KEY)

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


def test_what_a_provider_says_is_passed_on_without_secrets_and_cut() -> None:
    said = redacted(f"model not found\n  (key {KEY}, path C:\\Users\\me\\x) " + "long " * 200, KEY)

    assert said.startswith("model not found (key")
    assert KEY not in said
    assert "Users" not in said
    assert len(said) == SAID + 1


def test_nothing_is_told_of_a_complaint_that_is_a_book() -> None:
    said = f"{KEY} " * LONGEST_MESSAGE

    error = Complaint("openai", status=500, said=said).as_error(KEY)

    assert error.message == "openai answered 500"


def test_a_key_of_no_known_form_is_taken_out_too() -> None:
    assert "plain secret" not in redacted("you sent plain secret, really", "plain secret")
