"""The interface everyone relies on: redacted text, evidence, places, and what holds for any text."""

import io
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction import (
    PLACEHOLDER,
    RedactionEvidence,
    Redactor,
    event_redactor,
    redact,
    redact_event,
    redact_value,
)
from tests.redaction.samples import (
    HARMLESS_LINES,
    MOSAICS,
    fake_secret,
    vendor_templates,
    wrong_redactions,
)

KEY = fake_secret("sk-{A48}")
GITHUB = fake_secret("gho_{A36}")
PROSE = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
    | st.sampled_from("，。！？“”、 \n的了是"),
    max_size=40,
)
SECRETS = (
    "sk-proj-Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3",
    "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa",
    "AKIAZQ8LW2XV9RT4YB7N",
    "password=hunter2Zq8",
    "密码：Zq8Lw2Xv9",
    "/home/mei/稿件/第一章.md",
    "C:\\Users\\mei\\notes.txt",
    "https://mei:s3cr3tZq8@example.com/x",
    PLACEHOLDER,
)
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(SECRETS),
        st.text(max_size=6),
        st.sampled_from([" ", "\n", "，", '"', "\\n"]),
    ),
    max_size=12,
).map("".join)
KEYS = st.sampled_from(
    [fake_secret(template, seed) for _, template in vendor_templates() for seed in range(3)]
)

SECRET = fake_secret("ghp_{A36}")
PLAIN = "just words"

LEAVES = (
    st.just(SECRET) | st.just(f"x {SECRET}") | st.just(SECRET.encode()) | st.text() | st.integers()
)


def test_the_example_of_the_specification_is_caught() -> None:
    redacted = redact("apiKey=sk-THIS_SHOULD_BE_REDACTED", ".creonow/rules/style.md")

    assert redacted.text == f"apiKey={PLACEHOLDER}"
    assert redacted.evidence == (
        RedactionEvidence(
            pattern_id="openai_api_key_sk", source_ref=".creonow/rules/style.md", match_count=1
        ),
    )


@pytest.mark.requirement("CN-054")
def test_evidence_counts_by_pattern_in_order_and_holds_no_value() -> None:
    text = f"{KEY} {GITHUB} {KEY} C:\\Users\\li\\a.md"

    evidence = redact(text, "rules/style.md").evidence

    assert msgspec.to_builtins(list(evidence)) == [
        {"patternId": "github_token_gho", "sourceRef": "rules/style.md", "matchCount": 1},
        {"patternId": "openai_api_key_sk", "sourceRef": "rules/style.md", "matchCount": 2},
        {"patternId": "windows_abs_path", "sourceRef": "rules/style.md", "matchCount": 1},
    ]


def test_a_secret_is_counted_once_under_its_most_telling_name() -> None:
    (piece,) = redact(f"Authorization: Bearer {GITHUB}").evidence

    assert (piece.pattern_id, piece.match_count) == ("github_token_gho", 1)


def test_the_smallest_texts_come_back_as_they_are() -> None:
    texts = ("", " ", "\n", "a", "🙂", "\ud83d", "İ", "\x00")

    wrong = wrong_redactions((text, text, "") for text in texts)

    assert not wrong, "\n".join(wrong)


def test_a_lone_surrogate_and_a_growing_capital_move_nothing() -> None:
    text = redact(f"İ\ud83d{KEY}\ud83dİ").text

    assert text == f"İ\ud83d{PLACEHOLDER}\ud83dİ"


def test_what_only_a_replacement_brings_within_reach_is_redacted_too() -> None:
    """Only so much of a header is read; once its first values are short, the last ones are."""
    values = [fake_secret("{A122}", number) for number in range(60)]
    text = "Cookie: " + "; ".join(f"sid={value}" for value in values)

    found = [text[start:end] for start, end, _ in Redactor().find(text)]

    assert found == values
    assert redact(text).text == "Cookie: " + "; ".join([f"sid={PLACEHOLDER}"] * 60)


@given(MOSAICS | st.text())
def test_redacting_again_changes_nothing(text: str) -> None:
    once = redact(text)

    again = redact(once.text)

    assert again == (once.text, ())


@given(MOSAICS)
def test_redacting_again_changes_nothing_in_sensitive_mode(text: str) -> None:
    wider = Redactor(None, [fake_secret("{A9}")], sensitive=True)
    once = wider.redact(text)

    assert wider.redact(once.text) == (once.text, ())


def in_chinese(secret: str, before: str, after: str) -> str:
    return f"{before}他把{secret}贴进了聊天框，{after}"


def in_english(secret: str, before: str, after: str) -> str:
    return f"{before} and then {secret}, {after}"


def in_json(secret: str, before: str, after: str) -> str:
    return json.dumps({"note": f"{before}\n{secret}\n{after}", "list": [before, {"x": secret}]})


def in_yaml(secret: str, before: str, after: str) -> str:
    note = json.dumps(before, ensure_ascii=False)
    return f"note: {note}\nprovider:\n  thing: {secret}\n  other: {json.dumps(after)}\n"


def in_markdown(secret: str, before: str, after: str) -> str:
    return (
        f"# {before}\n\n- **{secret}** `{secret}`\n\n```\n{secret}\n```\n\n| {after} | {secret} |\n"
    )


@pytest.mark.parametrize("place", [in_chinese, in_english, in_json, in_yaml, in_markdown])
@given(data=st.data())
def test_no_secret_survives_in_any_format(
    place: Callable[[str, str, str], str], data: st.DataObject
) -> None:
    secret = data.draw(KEYS)
    text = place(secret, data.draw(PROSE), data.draw(PROSE))

    redacted, evidence = redact(text, "chapter.md")

    assert secret not in redacted
    assert secret not in repr(evidence)


@given(PROSE.filter(str.strip), PROSE)
def test_what_stands_beside_a_secret_stays(before: str, after: str) -> None:
    plain = f"{before}\n\n{after}"
    secret = fake_secret("ghp_{A36}")

    redacted = redact(f"{before}\n{secret}\n{after}").text

    if redact(plain).text == plain:
        assert redacted == f"{before}\n{PLACEHOLDER}\n{after}"


@given(TEXTS)
def test_replacing_every_found_place_is_redacting(text: str) -> None:
    stretches = Redactor().find(text)

    pieces: list[str] = []
    done = 0
    for stretch in stretches:
        assert done <= stretch.start < stretch.end <= len(text)
        pieces += (text[done : stretch.start], PLACEHOLDER)
        done = stretch.end
    assert "".join([*pieces, text[done:]]) == redact(text).text


def test_a_found_place_has_its_pattern() -> None:
    text = f"键是 {SECRETS[1]}。"

    (stretch,) = Redactor().find(text)

    assert text[stretch.start : stretch.end] == SECRETS[1]
    assert stretch.pattern_id.startswith("github_token")


@given(texts=st.lists(MOSAICS | st.sampled_from(HARMLESS_LINES) | st.text(), max_size=12))
def test_a_text_called_spotless_has_no_secret(texts: list[str]) -> None:
    redactor = Redactor()

    spotless = redactor.are_clean(texts)

    assert len(spotless) == len(texts)
    assert not [
        text for text, clean in zip(texts, spotless, strict=True) if clean and redactor.find(text)
    ]


def test_prose_is_spotless_whatever_the_texts_beside_it_hold() -> None:
    prose = "林远推开门，雨还在下。"

    assert Redactor().are_clean([prose, KEY, prose]) == [True, False, True]
    assert Redactor().are_clean([]) == []


def test_many_threads_share_one_redactor() -> None:
    shared = Redactor(Path.home())
    texts = [f"{number} {KEY} 密码：Zq8Lw2Xv9{number:04}" for number in range(64)]

    with ThreadPoolExecutor(8) as pool:
        redacted = list(pool.map(shared.redact, texts))

    assert [text for text, _ in redacted] == [
        f"{number} {PLACEHOLDER} 密码：{PLACEHOLDER}" for number in range(64)
    ]


def test_importing_costs_neither_automaton_nor_rules() -> None:
    script = (
        "import sys, creonowd.redaction\n"
        "print([name for name in sys.modules if name.startswith(('ahocorasick', 'creonowd.redaction.'))])"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, encoding="utf-8"
    ).stdout

    assert "ahocorasick" not in loaded
    assert "all_rules" not in loaded


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


@pytest.mark.parametrize("place", ["/home/mei/", "C:\\Users\\mei\\", "/home/mei/old "])
def test_a_path_that_is_to_be_shown_hides_a_configured_key_in_it(place: str) -> None:
    """The rule for paths covers the key, and a text that names a path keeps the path."""
    shown = Redactor(None, ["unseen-form-of-a-key"]).hide_secrets(f"{place}unseen-form-of-a-key")

    assert shown == f"{place}***REDACTED***"


@pytest.mark.parametrize("secret", ["/home/a ", "C:\\a\\", "password: Xy9k3Qz8\n"])
def test_a_text_of_nothing_but_secrets_takes_memory_in_proportion(secret: str) -> None:
    """A page may send nine megabytes of them."""
    text = secret * (600_000 // len(secret))
    redact(text)
    tracemalloc.start()
    try:
        clean = redact(text).text
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert secret.strip() not in clean
    assert peak < 10 * len(text)


def test_a_text_of_nothing_but_paths_is_not_kept_twice() -> None:
    text = "/home/a " * 150_000
    redact(text)
    tracemalloc.start()
    try:
        clean = redact(text).text
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "/home/a" not in clean
    # What is worked on at a time, the spans of all, 12 bytes for each, and what is left of the text.
    assert most < 1_300_000 + 150_000 * 12 + 1.4 * len(clean)
