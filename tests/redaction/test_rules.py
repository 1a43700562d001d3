"""What holds for every rule, and for a scan of all of them over a text."""

import json
import random
import re
import sys
from types import FrameType
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from creonowd.redaction import redact
from creonowd.redaction.all_rules import RULES
from creonowd.redaction.redactor import placeholder_starts, replace_spans
from creonowd.redaction.rules import (
    NEAR,
    PLACEHOLDER,
    SLICE,
    make_scanner,
    normalise,
    original_position,
    scan,
)
from tests.redaction.samples import MOSAICS, fake_secret, vendor_templates

HOSTILE = (
    "eyJ", "-eyJ", "eyJ.", "eyJaaaaaaaa.", "password=", "password: ", "密码：", "密码是", "/home/a ",
    "/home/", "/home/!", "C:\\a\\", "C:\\", "C:/", "://a:b", "\\\\aa\\bb", "-----BEGIN PRIVATE KEY-----",
    "sk-", "sk-a", "key=", "cookie: a=b;", "authorization: ", "bearer a ", "\\u94a5", "a\u200b", ".aaaaaa.",
    "'/home/", '"C:\\a b', " -u a:", "mysql -p a ", "file:///a ", "C:\\a b c d e ", "/Users/A B C D E ",
    "password=a.b.", "密码（", "<password>", "sk-sk-", "a:b@tcp(", "basic aaaaaaaaaaaa", "signature=",
    fake_secret("sk-{A20} "), fake_secret("password={A9}\n"), "/home/lisi/x.md ", "ｓｋ－", '" + "a',
    "a,password\n", "a,password\nb,c\n", "password,token,pwd,key,secret\n", "a,password\nb,token\nc,pwd\n", "| a | password |\n|---|---|\n| b | Xy9k3Qz8 |\n", "password\nXy9k3Qz8\n",
    "mnemonic: ", "seed phrase: lamp orbit velvet canyon ", "12 words (", "a:b1@a.bc ", "@a.b", "密码从a1b改成c2d",
    "use Xy9k3 as the password ", "<password>Xy9k3</password>", "<key>password</key><string>", "hook/", "://hook/a",
    "wifi:P:", '"name": "sid", "value": "', "Bo: password?\nMei: Xy9k3Qz8\n", "backup codes: 1234-5678 ",
    "sk-aB3xZ9kQ2mN7pL4rT8vW\naB3xZ9kQ2mN7pL4rT8vW\n", "mysql -p", "net user ", ":543", "$1$", "pin is ", "login: a/",
    "パスワードは", "otpauth://a", "admin/", "log in with a and ", "echo a:b|chpasswd", "PIN 1234 ", "desbloque 1234 ", "wifi code ", "p a s s w o r d : ", "lower case ", "-----BEGIN OpenVPN Static key V1-----",
)  # fmt: skip

SCANNER = make_scanner(RULES)
FAR = "他们走了很远，key and token，/a/b C: 。\n" * (NEAR // 12)

# Wide punctuation is left alone unless something else is disguised.
PLAIN = st.text(
    st.characters(
        max_codepoint=0xFFFF, exclude_categories=["Cc", "Cf", "Cs"], exclude_characters='\\"－＿．'
    )
)
PIECES = (
    "a", "键", " ", "\u200b", "\xad\x00", "\U000e0041", "Ａ", "－", "\\", "\\u94a5", "\\\\u94a5", "C:",
    '" + "', "' +\n '", "x", "\ud800", "İ",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


def calls(text: str) -> int:
    """Count the calls into Python and C code, a measure that no slow machine disturbs."""
    count = 0

    def counting(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        redact(text)
    finally:
        sys.setprofile(None)
    return count


def test_every_pattern_has_an_example() -> None:
    vendors = {pattern_id for pattern_id, _ in vendor_templates()}
    elsewhere = {
        "access_key_pair", "authorization_header", "basic_credentials", "bearer_token",
        "command_line_password", "discord_webhook_url", "feishu_webhook_url", "file_url_abs_path",
        "json_web_token", "labelled_secret", "labelled_secret_zh", "private_key_pem",
        "private_key_putty", "request_signature", "session_cookie", "slack_webhook_url",
        "unc_abs_path", "unix_abs_path", "url_credentials", "wecom_webhook_url", "windows_abs_path",
        "credential_pair", "labelled_password", "labelled_pin", "otp_secret", "password_hash",
        "pgpass_password", "recovery_code", "recovery_phrase", "secret_below_label",
        "bank_card_number", "mentioned_secret", "security_answer", "secret_in_column",
        "secret_in_markup", "webhook_url", "wifi_password",
    }  # fmt: skip

    assert {rule.pattern_id for rule in RULES} == vendors | elsewhere


def test_twice_the_text_is_not_four_times_the_work() -> None:
    """The calls may grow a little faster at first, where a longest path ends; a square would show."""
    wrong: list[str] = []
    for piece in HOSTILE:
        short = piece * (12_000 // len(piece))
        redact(short)
        once, twice = calls(short), calls(short * 2)
        if twice > 3 * once:
            wrong.append(f"{piece!r}: {once} calls, then {twice}")

    assert not wrong, "\n".join(wrong)


def test_a_piece_that_is_repeated_is_redacted_each_time() -> None:
    pieces = (
        "PIN 1234 ",
        "code: 1234\n",
        "a password is Xy9k3Qz8\n",
        "p a s s w o r d : Xy9k3Qz8\n",
    )
    times = 3 * NEAR // 9

    for piece in pieces:
        once = redact(f"{piece}Far away.\n").text.removesuffix("Far away.\n")
        wanted = f"{once * times}password: {PLACEHOLDER}\n"

        assert redact(f"{piece * times}password: Zq8Lw2Xv9\n").text == wanted


def test_a_header_of_many_names_is_read_once() -> None:
    """Each of 60 names read 64 rows of 60 cells each: a mebibyte took more than four minutes."""
    names = ("password", "token", "secret", "pwd", "key", "pass")
    rows = [",".join(names[(n + column) % 6] for column in range(60)) for n in range(40)]
    text = "\n".join(rows)
    redact(text)

    assert calls(text) < 20 * len(text)


@given(st.sampled_from(HOSTILE), st.integers(SLICE - 40, SLICE + 40))
def test_a_secret_at_the_border_of_two_slices_is_found(piece: str, place: int) -> None:
    secret = fake_secret("ghp_{A36}")
    text = ("x " * place)[:place] + f" {piece} {secret} " + "y " * 40_000

    assert secret not in redact(text).text


def test_a_text_of_nothing_but_anchors_is_redacted_in_one_pass() -> None:
    """Each anchor again and again; `scripts/bench redaction` says what the worst of them cost."""
    wrong: list[str] = []
    for anchor in sorted({anchor for rule in RULES for anchor in rule.anchors}):
        redacted = redact((anchor + "a1") * (500 // len(anchor))).text
        if redact(redacted).text != redacted:
            wrong.append(repr(anchor))

    assert not wrong, "\n".join(wrong)


def test_a_long_line_of_labels_is_redacted_in_good_time() -> None:
    """What stands above each label was all of the line before it: this took two minutes."""
    pieces = ("secret a", "secret bb", "secret: c", "secret d, ", "secret ")
    choose = random.Random(3).choice
    text = "".join(f", {choose(pieces)} " for _ in range(20_000))

    assert redact(text).text == text


@given(MOSAICS, MOSAICS, st.sampled_from(["", " ", FAR]))
def test_nothing_new_is_found_far_from_a_change(before: str, after: str, between: str) -> None:
    text = f"{FAR}{before}{between}{after}{FAR}"
    found = scan(SCANNER, text)
    clean = replace_spans(text, found)

    near = scan(SCANNER, clean, placeholder_starts(found))
    assert list(near) == list(scan(SCANNER, clean))


def test_what_a_change_brings_within_reach_is_found() -> None:
    """A header is read on only behind a secret; once the long path is short, the session is near."""
    path = "/home/lisi/" + "a/" * 2500 + "b"
    text = f"Cookie: theme={path}; sid={fake_secret('{A90}')}"
    found = scan(SCANNER, text)
    clean = replace_spans(text, found)

    more = scan(SCANNER, clean, placeholder_starts(found))

    assert (len(found), len(more)) == (1, 1)
    assert list(more) == list(scan(SCANNER, clean))


def test_what_a_rule_needs_must_be_there() -> None:
    assert not scan(SCANNER, "https://mei:Zq8Lw2Xv9/x")
    assert scan(SCANNER, "https://mei:Zq8Lw2Xv9@x.example")


@given(PLAIN)
def test_json_escapes_are_read_as_what_they_stand_for(text: str) -> None:
    """Not behind a drive: `C:\\u5199` may be a path."""
    once = json.dumps(text)[1:-1]
    twice = json.dumps(json.dumps(text))[3:-3]
    assume(not re.search(r"[A-Za-z]:\\u", once))

    plain, read_once, read_twice = (normalise(spelling).text for spelling in (text, once, twice))

    assert (read_once, read_twice) == (plain, plain)


@given(TEXTS)
def test_every_place_leads_back(text: str) -> None:
    normalised = normalise(text)
    original = original_position(normalised)

    places = [original(place) for place in range(len(normalised.text) + 1)]

    assert places == sorted(places)
    assert places[-1] == len(text)


def test_disguises_are_undone() -> None:
    rows = (
        ("sk\u200b-\xada", "sk-a"),
        ("ｓｋ－１", "sk-1"),
        ("s\U000e0041k", "sk"),
        ('"ab" + "cd"', '"abcd"'),
        (r"D:\\\u5199", r"D:\\写"),
        (r"D:\\\\\\u5199", r"D:\\\\写"),
        (r"C:\u5199", r"C:\u5199"),
        ("“plain”\n", "“plain”\n"),
    )

    wrong = [
        f"{text!r} became {plain!r}, not {expected!r}"
        for text, expected in rows
        if (plain := normalise(text).text) != expected
    ]

    assert not wrong, "\n".join(wrong)


@given(MOSAICS, st.integers(0, 60))
def test_a_secret_hidden_by_invisible_characters_is_found(text: str, place: int) -> None:
    secret = fake_secret("sk-{A48}")
    cut = place % len(secret)
    hidden = f"{secret[:cut]}\u200b{secret[cut:]}"

    redacted = redact(f"{text}\n{hidden}\n").text

    assert secret[3:cut] not in redacted or cut < 12
    assert secret[max(3, cut) :] not in redacted or cut > len(secret) - 8
