"""What is secret for one user only: the home folder, configured keys, and sensitive mode."""

import json
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any
from urllib.parse import quote

import pytest

from creonowd.redaction import PLACEHOLDER, Redactor, redact
from tests.redaction.samples import fake_secret

KEY = fake_secret("sk-{A48}")
SENSITIVE = {
    "email_address": "mei.ling+draft@example.co.uk",
    "identity_card_cn": "11010519491231002X",
    "bank_card_number": "4111 1111 1111 1111",
    "phone_number_cn": "+86 138-0013-8000",
    "ipv4_address": "192.168.10.24",
    "random_string": fake_secret("{A40}"),
}


def redactor(home: Any = None, *secrets: str, sensitive: bool = False) -> Redactor:
    """Take a foreign platform's path for a home, as only its spelling matters."""
    return Redactor(home, secrets, sensitive=sensitive)


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


def test_what_is_no_home_redacts_nothing() -> None:
    text = "/ and C:\\ and relative/x"

    for home in (None, PurePosixPath("/"), PureWindowsPath("C:\\"), PurePosixPath("relative")):
        assert redactor(home).redact(text).text == text, home


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


def test_a_configured_key_too_short_to_be_one_is_ignored() -> None:
    own = redactor(None, "", " ", "abc")

    assert own.redact("a b c abc").text == "a b c abc"


def test_a_configured_key_around_another_secret_leaves_no_rest() -> None:
    own = redactor(None, f"prefix-{KEY}-suffix")

    assert own.redact(f"x prefix-{KEY}-suffix y").text == f"x {PLACEHOLDER} y"


def test_sensitive_mode_takes_more() -> None:
    wider = redactor(sensitive=True)
    wrong: list[str] = []
    for pattern_id, secret in SENSITIVE.items():
        text = f"联系：{secret}，谢谢"
        redacted, evidence = wider.redact(text)
        found = [piece.pattern_id for piece in evidence]
        if (redacted, found) != (f"联系：{PLACEHOLDER}，谢谢", [pattern_id]):
            wrong.append(f"{text!r} became {redacted!r} by {found}, not by {pattern_id}")
        if redact(text).text != text:
            wrong.append(f"{text!r} goes without sensitive mode, too")

    assert not wrong, "\n".join(wrong)


def test_sensitive_mode_still_knows_prose() -> None:
    texts = ("2024-05-01 12:30", "第12章", "1.2.3", "task-management", "ISBN 978-7-02-000220-7")
    wider = redactor(sensitive=True)

    changed = [text for text in texts if wider.redact(text).text != text]

    assert not changed, "\n".join(changed)
