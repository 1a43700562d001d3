"""`terminology.json` as a judge reads it: which word stands for which, and which are banned.

Knows the file's form; an entry that says nothing about what to avoid bans nothing.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import msgspec
import regex

from creonowd.providers.bans import Hit, word_pattern

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


def read_terms(data: bytes) -> list[Term]:
    """Read the terms to avoid; nothing of a file that cannot be understood."""
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return []
    if not isinstance(content, dict):
        return []
    told = cast("dict[str, Any]", content)
    banned = [Term(word) for word in _words(told.get("banned"))]
    entries = told.get("terms")
    listed = cast("list[Any]", entries) if isinstance(entries, list) else []
    return [*banned, *(term for entry in listed for term in _terms(entry))]


def misuses(term: Term, text: str) -> Iterator[Hit]:
    """Find a word to avoid, except where it is part of the word to use."""
    pattern = regex.compile(word_pattern(term.avoided), regex.IGNORECASE)
    right = regex.escape(term.preferred) if term.preferred else r"(?!)"
    kept = [range(*m.span()) for m in regex.finditer(right, text)]
    for match in pattern.finditer(text):
        if not any(match.start() in span and match.end() - 1 in span for span in kept):
            yield Hit(*match.span(), match[0])


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
