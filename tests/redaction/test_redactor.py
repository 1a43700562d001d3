"""The interface everyone relies on: text, evidence, and what is secret for one user only."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from creonowd.redaction import PLACEHOLDER, RedactionEvidence, Redactor, redact
from tests.redaction.made_up import made_up

KEY = made_up("sk-{A48}")
GITHUB = made_up("gho_{A36}")


def redactor(home: Any = None, *secrets: str, sensitive: bool = False) -> Redactor:
    """Take a foreign platform's path for a home, as only its spelling matters."""
    return Redactor(home, secrets, sensitive=sensitive)


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


@pytest.mark.parametrize("text", ["", " ", "\n", "a", "🙂", "\ud83d", "İ", "\x00"])
def test_the_smallest_texts_come_back_as_they_are(text: str) -> None:
    assert redact(text) == (text, ())


def test_a_lone_surrogate_and_a_growing_capital_move_nothing() -> None:
    text = redact(f"İ\ud83d{KEY}\ud83dİ").text

    assert text == f"İ\ud83d{PLACEHOLDER}\ud83dİ"


@pytest.mark.parametrize(
    "home",
    [
        PurePosixPath("/srv/people/mei ling"),
        PurePosixPath("/Users/欧阳娜"),
        PureWindowsPath(r"Z:\People\欧阳 娜"),
        PureWindowsPath(r"C:\Users\mei"),
        PureWindowsPath(r"\\server\homes\mei"),
    ],
)
def test_the_home_folder_goes_in_every_spelling(home: PurePosixPath | PureWindowsPath) -> None:
    own = redactor(home)
    forward = home.as_posix()
    spellings = {
        str(home), forward, json.dumps(str(home))[1:-1], json.dumps(str(home), ensure_ascii=False)[1:-1],
        forward.replace("/", "\\/"), f"file://{'' if forward[0] == '/' else '/'}{quote(forward, safe='/:')}",
        str(home).upper(),
    }  # fmt: skip

    for spelling in spellings:
        for around in ("在 {} 里", '"{}"', "x={};", "\\n{}\\n"):
            text = own.redact(around.replace("{}", spelling)).text

            assert home.name.lower() not in text.lower(), spelling
            assert PLACEHOLDER in text


def test_what_lies_in_the_home_folder_goes_with_it() -> None:
    own = redactor(PurePosixPath("/workspace/mei"))

    text, evidence = own.redact("见 /workspace/mei/novel/ch1.md，然后")

    assert text == f"见 {PLACEHOLDER}，然后"
    assert [piece.pattern_id for piece in evidence] == ["home_abs_path"]


def test_the_neighbour_of_the_home_folder_stays() -> None:
    own = redactor(PurePosixPath("/workspace/mei"))

    for text in (
        "/workspace/meiling/x",
        "a/workspace/mei/x",
        "./workspace/mei",
        "https://x.example/workspace/mei",
    ):
        assert own.redact(text).text == text


@pytest.mark.parametrize(
    "home", [None, PurePosixPath("/"), PureWindowsPath("C:\\"), PurePosixPath("relative")]
)
def test_what_is_no_home_redacts_nothing(home: Any) -> None:
    text = "/ and C:\\ and relative/x"

    assert redactor(home).redact(text).text == text


@pytest.mark.parametrize(
    "secret", ["open sesame 42", "芝麻开门", 'q"uo\\te\nx', "a+b/c=", "plainword", "ＷＩＤＥ１２"]
)
def test_a_configured_key_goes_exactly_and_however_escaped(secret: str) -> None:
    own = redactor(None, secret)

    for spelling in (
        secret,
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
    ):
        text, evidence = own.redact(f"前{spelling}后")

        assert text == f"前{PLACEHOLDER}后"
        assert [piece.pattern_id for piece in evidence] == ["configured_secret"]


def test_a_configured_key_is_exact_to_the_letter() -> None:
    assert redactor(None, "Sesame").redact("sesame seeds").text == "sesame seeds"


@pytest.mark.parametrize("secret", ["", " ", "abc"])
def test_a_configured_key_too_short_to_be_one_is_ignored(secret: str) -> None:
    assert redactor(None, secret).redact("a b c abc").text == "a b c abc"


def test_a_configured_key_around_another_secret_leaves_no_rest() -> None:
    own = redactor(None, f"prefix-{KEY}-suffix")

    assert own.redact(f"x prefix-{KEY}-suffix y").text == f"x {PLACEHOLDER} y"


SENSITIVE = {
    "email_address": "mei.ling+draft@example.co.uk",
    "identity_card_cn": "11010519491231002X",
    "bank_card_number": "4111 1111 1111 1111",
    "phone_number_cn": "+86 138-0013-8000",
    "ipv4_address": "192.168.10.24",
    "random_string": made_up("{A40}"),
}


@pytest.mark.parametrize(("name", "secret"), SENSITIVE.items())
def test_sensitive_mode_takes_more(name: str, secret: str) -> None:
    text = f"联系：{secret}，谢谢"

    redacted, evidence = redactor(sensitive=True).redact(text)

    assert redact(text).text == text
    assert redacted == f"联系：{PLACEHOLDER}，谢谢"
    assert [piece.pattern_id for piece in evidence] == [name]


@pytest.mark.parametrize(
    "text", ["2024-05-01 12:30", "第12章", "1.2.3", "task-management", "ISBN 978-7-02-000220-7"]
)
def test_sensitive_mode_still_knows_prose(text: str) -> None:
    assert redactor(sensitive=True).redact(text).text == text


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
    assert "rulebook" not in loaded
