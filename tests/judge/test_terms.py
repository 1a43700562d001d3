import json
from itertools import product
from typing import Any

import regex

from creonowd.judge.bans import BannedSpan, word_pattern
from creonowd.judge.judge import MOST
from creonowd.judge.terminology import Term, misuses, read_terms


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
        ({"terms": ["灵石", 5, None, {"avoid": [5]}]}, []),
        ({"terms": "x"}, []),
        ([], []),
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

    assert [(term.avoided, hit.start) for term, hit in hits] == [
        ("别名7", 0),
        ("别名7", 13),
        ("别名12", 4),
        ("Elf", 9),
    ]
    assert [(term.avoided, hit.start) for term, hit in odd] == [
        ("别名3", 16),
        ("Elf", 11),
        ("İstanbul", 0),
    ]
