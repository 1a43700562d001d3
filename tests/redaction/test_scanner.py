"""A scan near the placeholders finds all that a scan of the whole text would."""

import json
import re

from hypothesis import assume, given
from hypothesis import strategies as st

from creonowd.redaction import redact
from creonowd.redaction.all_rules import RULES
from creonowd.redaction.redactor import placeholder_starts, replace_spans
from creonowd.redaction.scanner import NEAR, make_scanner, normalise, original_position, scan
from tests.redaction.samples import MOSAICS, fake_secret

SCANNER = make_scanner(RULES)
FAR = "他们走了很远，key and token，/a/b C: 。\n" * (NEAR // 12)


@given(MOSAICS, MOSAICS, st.sampled_from(["", " ", FAR]))
def test_nothing_new_is_found_far_from_a_change(before: str, after: str, between: str) -> None:
    text = f"{FAR}{before}{between}{after}{FAR}"
    found = scan(SCANNER, text)
    clean = replace_spans(text, found)

    assert scan(SCANNER, clean, placeholder_starts(found)) == scan(SCANNER, clean)


def test_what_a_change_brings_within_reach_is_found() -> None:
    """A header is read on only behind a secret; once the long path is short, the session is near."""
    path = "/home/lisi/" + "a/" * 2500 + "b"
    text = f"Cookie: theme={path}; sid={fake_secret('{A90}')}"
    found = scan(SCANNER, text)
    clean = replace_spans(text, found)

    more = scan(SCANNER, clean, placeholder_starts(found))

    assert (len(found), len(more)) == (1, 1)
    assert more == scan(SCANNER, clean)


def test_what_a_rule_needs_must_be_there() -> None:
    assert scan(SCANNER, "https://mei:Zq8Lw2Xv9/x") == []
    assert scan(SCANNER, "https://mei:Zq8Lw2Xv9@x.example") != []


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
