"""`terminology.json` as a judge reads it: which word stands for which, and which are banned.

Knows the file's form; an entry that says nothing about what to avoid bans nothing.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple, cast

import msgspec
import regex

from creonowd.providers.bans import Hit
from creonowd.providers.places import Finder

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


def misuses(terms: tuple[Term, ...], text: str, most: int) -> list[tuple[Term, Hit]]:
    """Find the words to avoid, except where they are part of the words to use instead.

    In the order of the terms; of each no more than the first `most`.
    """
    found: dict[int, list[Hit]] = {}
    ends = [0] * len(terms)
    finder, nested = _search(terms)
    for number, start, end in finder.places(text):
        if start < ends[number]:
            continue
        ends[number] = end
        of_term = found.setdefault(number, [])
        within = nested[number] and _is_part_of(terms[number].preferred, text, start, end)
        if not within and len(of_term) < most:
            of_term.append(Hit(start, end, text[start:end]))
    return [(terms[number], hit) for number in sorted(found) for hit in found[number]]


@lru_cache(maxsize=16)
def _search(terms: tuple[Term, ...]) -> tuple[Finder, list[bool]]:
    """Make what finds the words to avoid, and tell which may be a part of the word to use."""
    nested = [
        regex.search(regex.escape(avoided), preferred, regex.IGNORECASE) is not None
        for avoided, preferred in terms
    ]
    return Finder(tuple(term.avoided for term in terms)), nested


def _is_part_of(preferred: str, text: str, start: int, end: int) -> bool:
    """Tell whether a stretch lies within the word to use."""
    size = len(preferred)
    first = max(0, end - size)
    return size >= end - start and text.find(preferred, first, start + size) >= 0


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
