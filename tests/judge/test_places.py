import re
import sys

from hypothesis import given
from hypothesis import strategies as st

from creonowd.judge.terminology import WordFinder

LETTERS = "别名1aA_Kkİiſßςσ🌙\u0307 "
GOES_ON_BEFORE = re.compile("[A-Za-z0-9_][A-Za-z0-9]")
GOES_ON_AFTER = re.compile("[A-Za-z0-9][A-Za-z0-9_]")
some_text = st.text(st.sampled_from(LETTERS), max_size=40)
some_words = st.lists(st.text(st.sampled_from("别名1aAkßς🌙_"), min_size=1, max_size=3), max_size=5)


def expected(words: list[str], text: str) -> set[tuple[int, int, int]]:
    """Look at every place that is not inside a Latin word; only where the text is as long in lower case can it be this simple."""
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
    assert set(WordFinder(tuple(words)).places(text)) == expected(words, text)


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
