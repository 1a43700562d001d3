"""What is folded reads like the original, and every place in it leads back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction.normalise import normalise, way_back

PLAIN = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cf", "Cs"], exclude_characters='\\"')
)
PIECES = (
    "a", "键", " ", "\u200b", "\xad\x00", "\U000e0041", "Ａ", "－", "\\", "\\u94a5", "\\\\u94a5", "C:",
    '" + "', "' +\n '", "x", "\ud800", "İ",
)  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(PLAIN)
def test_json_escapes_are_read_as_what_they_stand_for(text: str) -> None:
    once = json.dumps(text)[1:-1]
    twice = json.dumps(json.dumps(text))[3:-3]

    bmp = all(ord(char) < 0x10000 for char in text)

    if bmp:
        assert normalise(once).text == normalise(text).text
        assert normalise(twice).text == normalise(text).text


@given(TEXTS)
def test_every_place_leads_back(text: str) -> None:
    folded = normalise(text)
    origin = way_back(folded)

    places = [origin(place) for place in range(len(folded.text) + 1)]

    assert places == sorted(places)
    assert places[-1] == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sk\u200b-\xada", "sk-a"),
        ("ｓｋ－１", "sk-1"),
        ("s\U000e0041k", "sk"),
        ('"ab" + "cd"', '"abcd"'),
        (r"D:\\\u5199", r"D:\\写"),
        (r"D:\\\\\\u5199", r"D:\\\\写"),
        (r"C:\u5199", r"C:\u5199"),
        ("“plain”\n", "“plain”\n"),
    ],
)
def test_disguises_are_undone(text: str, expected: str) -> None:
    assert normalise(text).text == expected
