"""`terminology.json` as a judge reads it: which word stands for which, and which are banned.

Knows the file's form; an entry that says nothing about what to avoid bans nothing.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

import msgspec
import regex

from creonowd.providers.bans import Hit, stands_alone, word_pattern

REF = ".creonow/rules/terminology.json"
AVOIDED = ("avoid", "avoids", "forbidden", "banned", "wrong", "deprecated")
PREFERRED = ("preferred", "term", "name")


class Term(NamedTuple):
    """A word to avoid, and the one to use instead; empty if there is none."""

    avoided: str
    preferred: str = ""

    @property
    def says(self) -> str:
        """The rule in words."""
        instead = f"用「{self.preferred}」，" if self.preferred else ""
        return f"{instead}不用「{self.avoided}」"


@lru_cache(maxsize=64)
def read_terms(data: bytes) -> tuple[Term, ...] | None:
    """Read the terms to avoid; None if the file cannot be read at all."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(content, dict):
        return ()
    told = cast("dict[str, Any]", content)
    banned = [Term(word) for word in _words(told.get("banned"))]
    entries = told.get("terms")
    listed = cast("list[Any]", entries) if isinstance(entries, list) else []
    return (*banned, *(term for entry in listed for term in _terms(entry)))


def misuses(term: Term, text: str) -> Iterator[Hit]:
    """Find a word to avoid, except where it is part of the word to use."""
    wrong = list(_places(term.avoided, text))
    right = list(_literal(term.preferred, text)) if wrong and term.preferred else []
    for start, end in wrong:
        if not any(first <= start and end <= last for first, last in right):
            yield Hit(start, end, text[start:end])


def _places(word: str, text: str) -> Iterator[tuple[int, int]]:
    """Find a word as the judge reads it; where case does not matter, it is found faster."""
    if word.lower() == word.upper():
        yield from _alone(word, text)
    elif word.lower() in _lower(text):
        yield from (match.span() for match in _pattern(word).finditer(text))


def _alone(word: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        found = stands_alone(text, at, end)
        if found:
            yield at, end
        at = text.find(word, end if found else at + 1)


def _literal(word: str, text: str) -> Iterator[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        yield at, at + len(word)
        at = text.find(word, at + len(word))


@lru_cache(maxsize=2)
def _lower(text: str) -> str:
    return text.lower()


@lru_cache(maxsize=4096)
def _pattern(word: str) -> "regex.Pattern[str]":
    return regex.compile(word_pattern(word), regex.IGNORECASE)


def _terms(entry: Any) -> Iterator[Term]:
    if not isinstance(entry, dict):
        return
    told = cast("dict[str, Any]", entry)
    named = [word for key in PREFERRED for word in _words(told.get(key))]
    preferred = named[0] if named else ""
    avoided = [word for key in AVOIDED for word in _words(told.get(key))]
    if "preferred" in told:
        avoided += named[1:]
    yield from (Term(word, preferred) for word in avoided if word != preferred)


def _words(value: Any) -> list[str]:
    listed = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [word.strip() for word in listed if isinstance(word, str) and word.strip()]
