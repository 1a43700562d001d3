"""Nothing logged escapes: at any depth, under any name, in any shape, or in an exception's text."""

import io
import json
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction import PLACEHOLDER, Redactor, event_redactor, redact_event, redact_value
from tests.redaction.samples import fake_secret

SECRET = fake_secret("ghp_{A36}")
PLAIN = "just words"


class Struct(msgspec.Struct):
    text: str
    password: str = PLAIN


@dataclass
class Data:
    text: str
    api_key: str = PLAIN


class Colour(Enum):
    RED = SECRET


class Pair(NamedTuple):
    text: str
    token: str


def test_every_shape_of_value_is_redacted() -> None:
    rows: tuple[tuple[Any, Any], ...] = (
        (SECRET, PLACEHOLDER),
        (f"a {SECRET} b".encode(), f"a {PLACEHOLDER} b".encode()),
        (bytearray(SECRET.encode()), PLACEHOLDER.encode()),
        ([SECRET, 1, None, True, 2.5], [PLACEHOLDER, 1, None, True, 2.5]),
        ((SECRET, (SECRET,)), (PLACEHOLDER, (PLACEHOLDER,))),
        ({SECRET}, [PLACEHOLDER]),
        ({SECRET: {"a": [SECRET]}}, {PLACEHOLDER: {"a": [PLACEHOLDER]}}),
        ({1: SECRET, None: SECRET}, {1: PLACEHOLDER, None: PLACEHOLDER}),
        (Struct(SECRET), {"text": PLACEHOLDER, "password": PLACEHOLDER}),
        (Data(SECRET), {"text": PLACEHOLDER, "api_key": PLACEHOLDER}),
        (Pair(SECRET, PLAIN), {"text": PLACEHOLDER, "token": PLACEHOLDER}),
        (Colour.RED, PLACEHOLDER),
        (ValueError(SECRET), f"ValueError: {PLACEHOLDER}"),
        (KeyError({"a": SECRET}), f"KeyError: {{'a': '{PLACEHOLDER}'}}"),
        (PurePosixPath("/home/lisi/x"), PLACEHOLDER),
        (PureWindowsPath(r"C:\Users\li\x"), PLACEHOLDER),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (int, "<class 'int'>"),
    )

    wrong = [
        f"{value!r} became {redacted!r}, not {expected!r}"
        for value, expected in rows
        if (redacted := redact_value(value)) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_a_value_under_a_secret_name_goes_as_a_whole() -> None:
    names = (
        "password", "api_key", "apiKey", "X-Api-Key", "token", "access_token", "Authorization", "cookie",
        "Set-Cookie", "client_secret", "AWS_SECRET_ACCESS_KEY", "db.password", "密码", "登录密码", "密钥",
    )  # fmt: skip
    values: tuple[Any, ...] = (PLAIN, 123456, [PLAIN], {"deep": PLAIN}, b"x")

    wrong = [
        f"{name}: {value!r} became {redacted!r}"
        for name in names
        for value in values
        if (redacted := redact_value({name: value})) != {name: PLACEHOLDER}
    ]

    assert not wrong, "\n".join(wrong)


def test_names_that_only_sound_alike_keep_their_values() -> None:
    event = {
        "tokens": 812,
        "tokenCount": 3,
        "max_tokens": 5,
        "tokenizerId": "o200k_base",
        "key": "rules/a.md",
        "author": "林远",
        "passed": 3,
        "stablePrefixHash": "9f86d081884c7d659a2feaa0c55ad015",
    }

    assert redact_value(event) == event


def test_a_secret_name_with_nothing_or_a_flag_under_it_keeps_that() -> None:
    event = {"password": None, "has_token": True, "secret": ""}

    assert redact_value(event) == event


def test_a_name_beside_its_value_gives_it_away() -> None:
    environment = [{"name": "DB_PASSWORD", "value": PLAIN}, {"name": "PORT", "value": "5432"}]
    headers = [("Authorization", PLAIN), ("Host", "x.example")]

    assert redact_value(environment)[0]["value"] == PLACEHOLDER
    assert redact_value(environment)[1]["value"] == "5432"
    assert redact_value(headers) == [("Authorization", PLACEHOLDER), ("Host", "x.example")]


def test_a_value_inside_itself_ends() -> None:
    circle: dict[str, Any] = {"text": SECRET}
    circle["again"] = [circle]

    assert redact_value(circle) == {"text": PLACEHOLDER, "again": [PLACEHOLDER]}


def test_a_value_used_twice_is_shown_twice() -> None:
    shared = ["words"]

    assert redact_value([shared, shared]) == [["words"], ["words"]]


def test_a_value_too_deep_to_read_is_cut_off() -> None:
    deep: Any = SECRET
    for _ in range(5000):
        deep = [deep]

    assert SECRET not in repr(redact_value(deep))


def test_notes_of_an_exception_are_redacted_too() -> None:
    error = RuntimeError("failed")
    error.add_note(f"while using {SECRET}")

    assert redact_value(error) == f"RuntimeError: failed\nwhile using {PLACEHOLDER}"


def test_a_rendered_line_is_redacted_as_well() -> None:
    assert redact_event(None, "info", f'{{"a": "{SECRET}"}}') == f'{{"a": "{PLACEHOLDER}"}}'


def test_a_processor_can_know_one_users_keys() -> None:
    processor = event_redactor(Redactor(None, ["sesame"]))

    assert processor(None, "info", {"event": "open sesame"}) == {"event": f"open {PLACEHOLDER}"}


LEAVES = (
    st.just(SECRET) | st.just(f"x {SECRET}") | st.just(SECRET.encode()) | st.text() | st.integers()
)
VALUES = st.recursive(
    LEAVES | st.builds(ValueError, st.just(SECRET)) | st.builds(Struct, st.just(SECRET)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=6) | st.just(SECRET), inner, max_size=3)
        | st.builds(Data, inner)
    ),
    max_leaves=12,
)


@pytest.mark.requirement("CN-051")
@given(VALUES)
def test_nothing_logged_through_structlog_escapes(value: Any) -> None:
    written = io.StringIO()
    log = structlog.wrap_logger(
        structlog.PrintLogger(written),
        processors=[
            structlog.processors.format_exc_info,
            redact_event,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=repr),
        ],
    )

    log.info("happened", value=value, exc_info=RuntimeError(f"with {SECRET}"))

    assert SECRET not in written.getvalue()
    assert json.loads(written.getvalue())["event"] == "happened"


def test_the_traceback_of_an_exception_is_redacted() -> None:
    written = io.StringIO()
    log = structlog.wrap_logger(
        structlog.PrintLogger(written),
        processors=[
            structlog.processors.format_exc_info,
            redact_event,
            structlog.processors.JSONRenderer(),
        ],
    )

    try:
        {}[SECRET]
    except KeyError:
        log.exception("failed")

    assert "KeyError" in written.getvalue()
    assert SECRET not in written.getvalue()
