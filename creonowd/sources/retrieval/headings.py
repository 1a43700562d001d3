"""Which lines are headings, and under which headings a line stands. Knows lines only."""

import re
from typing import NamedTuple

LONGEST = 80

_MARKDOWN = re.compile(r" {0,3}(#{1,6})[ \t]+(.+?)[ \t]*#*[ \t]*$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_NUMBER = r"[0-9０-９〇零一二三四五六七八九十百千两]+"
_CHINESE = re.compile(
    rf"[\s\u3000]*(第\s*{_NUMBER}\s*([卷部篇集回章幕节])(?:[\s\u3000：:、·.].*)?)$"
)
_COUNTED = "one two three four five six seven eight nine ten eleven twelve thirteen".replace(
    " ", "|"
)
_ENGLISH = re.compile(
    rf"\s*((book|volume|part|chapter|act|scene)\s+(?:[0-9]+|[ivxlcdm]+|{_COUNTED})\b.*)$",
    re.IGNORECASE,
)
_OUTER = {"卷", "部", "篇", "集", "book", "volume", "part"}
_INNER = {"节", "scene"}


class Heading(NamedTuple):
    """What a heading says, and how deep it stands; 1 is the top."""

    level: int
    title: str


class Headings:
    """Reads a document line by line and knows the headings above the current one."""

    def __init__(self) -> None:
        self._above: tuple[Heading, ...] = ()
        self._fence: str | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The titles above the current line, outermost first."""
        return tuple(heading.title for heading in self._above)

    def read(self, line: str) -> bool:
        """Take in the next line and tell whether it is a heading."""
        if self._fenced(line):
            return False
        found = heading_of(line)
        if found is not None:
            above = (heading for heading in self._above if heading.level < found.level)
            self._above = (*above, found)
        return found is not None

    def _fenced(self, line: str) -> bool:
        fence = _FENCE.match(line)
        if fence is not None and self._fence in (None, fence[1]):
            self._fence = None if self._fence else fence[1]
            return True
        return self._fence is not None


def heading_of(line: str) -> Heading | None:
    """Recognise a heading of Markdown, or the numbered line that opens a chapter."""
    if not line or len(line) > LONGEST:
        return None
    if markdown := _MARKDOWN.match(line):
        return Heading(len(markdown[1]), markdown[2])
    if (numbered := _CHINESE.match(line) or _ENGLISH.match(line)) is None:
        return None
    title, unit = numbered[1].strip(), numbered[2].lower()
    level = 1 if unit in _OUTER else 3 if unit in _INNER else 2
    return None if _is_prose(title) else Heading(level, title)


def _is_prose(title: str) -> bool:
    return title.endswith((",", "，", ";", "；")) or "。" in title
