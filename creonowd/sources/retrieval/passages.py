"""Cut a document into passages: whole paragraphs under one heading, about 400 tokens at most.

Where a passage ends depends on the text around that place alone, so that an edit changes the
passages near it and no others. Knows no file, no index and no tokenizer.
"""

import re
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from creonowd.model import Model
from creonowd.sources.retrieval.headings import Headings
from creonowd.tokens.boundaries import grapheme_floor, sentences

MOST_TOKENS = 400
FEWEST_TOKENS = 220
SCRAP_TOKENS = 80

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_RARE = re.compile(r"[\u2e80-\u2fff\u3400-\u4dbf\ua000-\ua95f\U00010000-\U0010ffff]")
_TOKENS_PER_ASCII = 0.27
_TOKENS_PER_WIDE = 1.1
_TOKENS_PER_RARE = 3.8
_ONE_IN = 3


class Passage(Model):
    """A stretch of a document in code points, its lines as `L120-L143`, and its very text."""

    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str


class _Line(NamedTuple):
    start: int
    end: int
    text: str


class _Block(NamedTuple):
    """What should stay whole. `torn` is where the paragraph begins that it is only a part of."""

    start: int
    end: int
    tokens: float
    heading: tuple[str, ...]
    closes: bool = False
    is_heading: bool = False
    torn: int | None = None


def cut(text: str) -> Iterator[Passage]:
    """Cut a text into passages, in order; blank stretches between them belong to none."""
    places = Places(text)
    for group in _packed(_blocks(text)):
        start, end = group[0].start, group[-1].end
        if said := text[start:end].rstrip():
            yield Passage(
                start=start,
                end=start + len(said),
                lines=places.lines(start, start + len(said)),
                heading=group[-1].heading,
                text=said,
            )


def about_tokens(text: str) -> float:
    """Estimate the tokens of a text from its characters, rather too high than too low."""
    if text.isascii():
        return len(text) * _TOKENS_PER_ASCII
    rare = len(_RARE.findall(text))
    wide = (len(text.encode("utf-8", "surrogatepass")) - len(text) - 3 * rare) / 2
    plain = len(text) - wide - rare
    return plain * _TOKENS_PER_ASCII + wide * _TOKENS_PER_WIDE + rare * _TOKENS_PER_RARE


class Places:
    """The lines of a text, and how a stretch of it is called."""

    def __init__(self, text: str) -> None:
        self._starts = [match.start() for match in _LINE.finditer(text)]

    def lines(self, start: int, end: int) -> str:
        """Spell the lines of a stretch that is not empty."""
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end - 1)
        return f"L{first}-L{last}"


def _blocks(text: str) -> Iterator[_Block]:
    headings = Headings()
    paragraph: list[_Line] = []
    for match in _LINE.finditer(text):
        line = _Line(match.start(), match.end(), match.group())
        is_blank, above = not line.text.strip(), headings.path
        if not is_blank and not headings.read(line.text.rstrip("\r\n")):
            paragraph.append(line)
            continue
        yield from _paragraph(text, paragraph, above)
        paragraph = []
        if not is_blank:
            tokens = about_tokens(line.text)
            yield _Block(line.start, line.end, tokens, headings.path, is_heading=True)
    yield from _paragraph(text, paragraph, headings.path)


def _paragraph(text: str, lines: list[_Line], heading: tuple[str, ...]) -> Iterator[_Block]:
    """Keep a paragraph whole if it is small enough; else its lines, else its sentences."""
    weights = [about_tokens(line.text) for line in lines]
    if lines and sum(weights) <= MOST_TOKENS:
        whole = _Line(lines[0].start, lines[-1].end, text[lines[0].start : lines[-1].end])
        yield _block(whole, sum(weights), heading)
        return
    for line, tokens in zip(lines, weights, strict=True):
        if tokens <= MOST_TOKENS:
            yield _block(line, tokens, heading)
        else:
            yield from _sentences(text, line, heading)


def _sentences(text: str, line: _Line, heading: tuple[str, ...]) -> Iterator[_Block]:
    start = line.start
    for end in (*sentences(text, line.start, line.end - 1), line.end):
        while start < end:
            stop = _reach(text, start, end)
            piece = _Line(start, stop, text[start:stop])
            yield _block(piece, about_tokens(piece.text), heading, torn=line.start)
            start = stop


def _reach(text: str, start: int, end: int) -> int:
    """Find how far a piece may go: to the end if it is small enough, else to a grapheme."""
    tokens = about_tokens(text[start:end])
    if tokens <= MOST_TOKENS:
        return end
    stop = grapheme_floor(text, start + max(1, int((end - start) * MOST_TOKENS / tokens)))
    return stop if stop > start else end


def _block(
    line: _Line, tokens: float, heading: tuple[str, ...], *, torn: int | None = None
) -> _Block:
    closes = zlib.crc32(line.text.encode("utf-8", "surrogatepass")) % _ONE_IN == 0
    return _Block(line.start, line.end, tokens, heading, closes=closes, torn=torn)


def _packed(blocks: Iterable[_Block]) -> Iterator[list[_Block]]:
    group: list[_Block] = []
    tokens = 0.0
    for block in blocks:
        full = tokens + block.tokens > MOST_TOKENS
        if group and (full or _stands_apart(block, group[-1], tokens)):
            yield group
            group, tokens = [], 0.0
        group.append(block)
        tokens += block.tokens
        if block.closes and tokens >= FEWEST_TOKENS:
            yield group
            group, tokens = [], 0.0
    if group:
        yield group


def _stands_apart(block: _Block, before: _Block, tokens: float) -> bool:
    if before.is_heading or block.is_heading:
        return not before.is_heading
    return block.torn != before.torn and tokens >= SCRAP_TOKENS
