import json
import re
import sys
from itertools import product
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from creonowd.judge.bans import BannedSpan, word_pattern
from creonowd.judge.judge import MOST
from creonowd.judge.terminology import Term, WordFinder, misuses, read_terms

LETTERS = "别名1aA_Kkİiſßςσ🌙\u0307 "
GOES_ON_BEFORE = re.compile("[A-Za-z0-9_][A-Za-z0-9]")
GOES_ON_AFTER = re.compile("[A-Za-z0-9][A-Za-z0-9_]")
some_text = st.text(st.sampled_from(LETTERS), max_size=40)
some_words = st.lists(st.text(st.sampled_from("别名1aAkßς🌙_"), min_size=1, max_size=3), max_size=5)


def found(term: Term, text: str) -> list[BannedSpan]:
    return [hit for _, hit in misuses((term,), text, MOST)]


def read(content: Any) -> tuple[Term, ...] | None:
    return read_terms(json.dumps(content).encode())


def test_only_what_to_avoid_is_read() -> None:
    rows: tuple[tuple[Any, list[tuple[str, str]]], ...] = (
        (
            {"terms": [{"term": "灵石", "avoid": ["灵晶", "魔石"]}]},
            [("灵晶", "灵石"), ("魔石", "灵石")],
        ),
        ({"terms": [{"preferred": "灵石", "avoid": "灵晶"}]}, [("灵晶", "灵石")]),
        ({"terms": [{"term": "灵晶", "preferred": "灵石"}]}, [("灵晶", "灵石")]),
        ({"banned": ["忽然", " "]}, [("忽然", "")]),
        ({"terms": [{"term": "灵石", "definition": "x", "aliases": ["石头"]}]}, []),
        ({"terms": ["灵石", {"avoid": [5]}]}, []),
        ({"banned": "忽然"}, [("忽然", "")]),
    )

    wrong = [
        f"{content!r} was read as {terms}, not as {expected}"
        for content, expected in rows
        if (terms := read(content)) != tuple(Term(*term) for term in expected)
    ]

    assert not wrong, "\n".join(wrong)


def test_a_file_that_cannot_be_read_is_none_and_one_without_terms_is_empty() -> None:
    broken = (b"", b"{", b"\xff", b"[" * 100_000)

    assert [read_terms(data) for data in broken] == [None] * len(broken)
    assert read_terms(b"{}") == ()


@pytest.mark.parametrize(
    "content",
    [
        *([], "灵石", None, {"terms": 5}, {"terms": None}, {"terms": {"灵石": "灵晶"}}),
        *({"terms": [5]}, {"terms": [None]}, {"banned": 5}, {"banned": ["忽然", 5]}),
    ],
)
def test_what_a_prompt_leaves_out_for_its_shape_is_not_read_as_no_terms(content: Any) -> None:
    assert read(content) is None


def test_a_word_within_the_preferred_one_is_no_misuse() -> None:
    text = "林远看着林，林远远去"

    places = [(hit.start, hit.end) for hit in found(Term("林", "林远"), text)]

    assert places == [(4, 5)]


def test_a_word_to_use_is_known_in_any_case_that_a_text_is_read_in() -> None:
    for text in ("İstanbul", "去İstanbul城，İ"):
        assert not found(Term("istanbul", "İstanbul"), text), text


def test_a_word_in_latin_script_is_not_found_inside_another() -> None:
    assert [h.text for h in found(Term("elf", "Aelf"), "Elf self elf's Aelf")] == ["Elf", "elf"]


def test_a_number_in_a_word_is_no_reason_to_look_inside_others() -> None:
    assert [h.start for h in found(Term("R2"), "R2 R20 XR2 r2")] == [0, 11]
    assert [h.start for h in found(Term("2号"), "2号 12号")] == [0]


def test_a_word_without_case_is_found_where_the_pattern_finds_it() -> None:
    words = ("2号", "别名1", "灵晶", "7", "1号1")
    texts = ("2号 12号", "别名1 别名12 x别名1", "灵晶灵晶", "7 77 a7 7a _7 7", "x1号1号1")
    wrong: list[str] = []
    for word, text in product(words, texts):
        expected = [match.span() for match in regex.finditer(word_pattern(word), text)]
        places = [(hit.start, hit.end) for hit in found(Term(word), text)]
        if places != expected:
            wrong.append(f"{word} in {text!r}: {places}, not {expected}")

    assert not wrong, "\n".join(wrong)


def test_many_terms_are_found_in_one_pass_in_the_order_of_the_file() -> None:
    numbered = (Term(f"别名{n}", f"术语{n}") for n in range(300))
    terms = (*numbered, Term("Elf"), Term("İstanbul"))

    hits = misuses(terms, "别名7与别名12，elf，别名7。", MOST)
    odd = misuses(terms, "İSTANBUL 的 ELF 与别名3", MOST)

    assert [(term.avoid, hit.start) for term, hit in hits] == [
        ("别名7", 0),
        ("别名7", 13),
        ("别名12", 4),
        ("Elf", 9),
    ]
    assert [(term.avoid, hit.start) for term, hit in odd] == [
        ("别名3", 16),
        ("Elf", 11),
        ("İstanbul", 0),
    ]


def expected_places(words: list[str], text: str) -> set[tuple[int, int, int]]:
    """Look at every place outside of Latin words; right if the text is as long in lower case."""
    lower = text.lower()
    return {
        (number, start, start + len(word))
        for number, word in enumerate(words)
        for start in range(len(text))
        if lower[start : start + len(word)] == word.lower()
        and not GOES_ON_BEFORE.match(text[max(0, start - 1) : start + 1])
        and not GOES_ON_AFTER.match(text[start + len(word) - 1 : start + len(word) + 1])
    }


@given(some_words, some_text.filter(lambda text: len(text.lower()) == len(text)))
def test_words_are_found_wherever_they_stand(words: list[str], text: str) -> None:
    assert set(WordFinder(tuple(words)).places(text)) == expected_places(words, text)


def test_neither_case_nor_script_moves_a_place() -> None:
    rows: tuple[tuple[tuple[str, ...], str, list[tuple[int, int, int]]], ...] = (
        ((), "任何文字", []),
        (("灵晶", "晶"), "灵晶与晶", [(0, 0, 2), (1, 1, 2), (1, 3, 4)]),
        (("elf",), "🌙ELF", [(0, 1, 4)]),
        (("k",), "\N{KELVIN SIGN}", [(0, 0, 1)]),
        (("straße",), "STRASSE Straße", [(0, 8, 14)]),
        (("灵晶",), "İ灵晶", [(0, 1, 3)]),
        (("灵晶",), "\ud800灵晶", [(0, 1, 3)]),
    )

    wrong = [
        f"{words} in {text!r}: {got}, not {expected}"
        for words, text, expected in rows
        if (got := sorted(WordFinder(words).places(text))) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_bytes_are_enough_where_only_ascii_has_cases() -> None:
    """What the search in bytes rests on, for every character there is."""
    every = [chr(number) for number in range(0x80, sys.maxunicode + 1)]
    becoming = {char: char.lower() for char in every if char.lower() != char}

    to_ascii = {char for char, lower in becoming.items() if any(c.isascii() for c in lower)}
    caseless = {c for low in becoming.values() for c in low if c == c.lower() == c.upper()}

    assert to_ascii == {"\N{KELVIN SIGN}", "İ"}
    assert caseless == {"\u0307"}  # of İ, which has no lower case of its own length
