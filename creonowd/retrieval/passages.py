"""Cut a document into passages: whole paragraphs under one heading, about 400 tokens at most.

Where a passage ends depends on the text around that place alone, so that an edit changes the
passages near it and no others.
"""

import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from creonowd.context.fragment import Span
from creonowd.model import Model
from creonowd.redaction import PLACEHOLDER, SecretSpan
from creonowd.redaction.split_points import split_points
from creonowd.storage import front_matter
from creonowd.tokens.boundaries import grapheme_floor, sentences
from creonowd.tokens.tokenizer import about_tokens

MOST_TOKENS = 400
FEWEST_TOKENS = 220
SCRAP_TOKENS = 80
LONGEST_HEADING = 80

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")

# One block in so many may end a passage, chosen by a checksum of its text.
_ONE_IN = 3

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


class Passage(Model):
    """A stretch of a document in code points, its lines as `L120-L143`, and its text."""

    start: int
    end: int
    lines: str
    heading: tuple[str, ...]
    text: str


def cut(text: str) -> Iterator[Passage]:
    """Cut a text into passages, in order; blank stretches and front matter belong to none."""
    numbers = LineNumbers(text)
    for group in _groups(_blocks(text)):
        start, end = group[0].start, group[-1].end
        if content := text[start:end].rstrip():
            yield Passage(
                start=start,
                end=start + len(content),
                lines=numbers.spell(start, start + len(content)),
                heading=group[-1].heading,
                text=content,
            )


class LineNumbers:
    """The lines of a text."""

    def __init__(self, text: str) -> None:
        self._starts = [match.start() for match in _LINE.finditer(text)]

    def spell(self, start: int, end: int) -> str:
        """Return the lines of a stretch that is not empty, as in `L120-L143`."""
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end - 1)
        return f"L{first}-L{last}"


def lines_within(lines: str, text: str, start: int, end: int) -> str:
    """Return the lines of a stretch of a passage that has these lines in its document."""
    first = int(lines.removeprefix("L").partition("-")[0])
    spelled = LineNumbers(text).spell(start, end)
    return "-".join(f"L{first - 1 + int(one.removeprefix('L'))}" for one in spelled.split("-"))


class _Line(NamedTuple):
    start: int
    end: int
    text: str


class _Block(NamedTuple):
    """What should stay whole: a heading, a paragraph, a line or a sentence.

    `part_of` is the beginning of the line that a sentence is a part of.
    """

    start: int
    end: int
    tokens: float
    heading: tuple[str, ...]
    may_end: bool = False
    is_heading: bool = False
    part_of: int | None = None


def _groups(blocks: Iterable[_Block]) -> Iterator[list[_Block]]:
    """Join blocks to passages."""
    group: list[_Block] = []
    tokens = 0.0
    for block in blocks:
        is_full = tokens + block.tokens > MOST_TOKENS
        if group and (is_full or _is_separate(block, group[-1], tokens)):
            yield group
            group, tokens = [], 0.0
        group.append(block)
        tokens += block.tokens
        if block.may_end and tokens >= FEWEST_TOKENS:
            yield group
            group, tokens = [], 0.0
    if group:
        yield group


def _is_separate(block: _Block, before: _Block, tokens: float) -> bool:
    """Return whether a block begins a passage: a heading does, and the text after a cut line."""
    if before.is_heading or block.is_heading:
        return not before.is_heading
    return block.part_of != before.part_of and tokens >= SCRAP_TOKENS


def _blocks(text: str) -> Iterator[_Block]:
    headings = Headings()
    paragraph: list[_Line] = []
    for match in _LINE.finditer(text, len(front_matter.split(text).front_matter)):
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
            stop = _piece_end(text, start, end)
            piece = _Line(start, stop, text[start:stop])
            yield _block(piece, about_tokens(piece.text), heading, part_of=line.start)
            start = stop


def _piece_end(text: str, start: int, end: int) -> int:
    """Return the end of a stretch if it is small enough, else a grapheme boundary inside it."""
    tokens = about_tokens(text[start:end])
    if tokens <= MOST_TOKENS:
        return end
    stop = grapheme_floor(text, start + max(1, int((end - start) * MOST_TOKENS / tokens)))
    return stop if stop > start else end


def _block(
    line: _Line, tokens: float, heading: tuple[str, ...], *, part_of: int | None = None
) -> _Block:
    may_end = zlib.crc32(line.text.encode("utf-8", "surrogatepass")) % _ONE_IN == 0
    return _Block(line.start, line.end, tokens, heading, may_end=may_end, part_of=part_of)


class Heading(NamedTuple):
    """A heading's title, and how deep it stands; 1 is the top."""

    level: int
    title: str


class Headings:
    """The headings above the current line of a document that is read line by line."""

    def __init__(self) -> None:
        self._above: tuple[Heading, ...] = ()
        self._fence: str | None = None

    @property
    def path(self) -> tuple[str, ...]:
        """The titles above the current line, outermost first."""
        return tuple(heading.title for heading in self._above)

    def read(self, line: str) -> bool:
        """Read the next line and return whether it is a heading."""
        if self._is_code(line):
            return False
        found = heading_of(line)
        if found is not None:
            above = (heading for heading in self._above if heading.level < found.level)
            self._above = (*above, found)
        return found is not None

    def _is_code(self, line: str) -> bool:
        fence = _FENCE.match(line)
        if fence is not None and self._fence in (None, fence[1]):
            self._fence = None if self._fence else fence[1]
            return True
        return self._fence is not None


def heading_of(line: str) -> Heading | None:
    """Return the heading of a line: one of Markdown, or a number that opens a chapter."""
    if not line or len(line) > LONGEST_HEADING:
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


class DocumentSecretFinder(Protocol):
    """Finds secrets."""

    def find(self, text: str) -> Sequence[SecretSpan]:
        """Return where secrets stand in a text, in order."""
        ...


def text_digest(text: str) -> bytes:
    """Return the digest under which a document's text is known to its index."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def without_secrets(
    text: str, passages: Iterable[Passage], finder: DocumentSecretFinder
) -> Iterator[Passage]:
    """Return the passages of a text, with placeholders for what is secret only in its context.

    What is recognised as a secret within the passage stays: redaction finds it again later.
    """
    secrets = list(_secrets(text, finder))
    starts, ends = [secret.start for secret in secrets], [secret.end for secret in secrets]
    for passage in passages:
        first = bisect_right(ends, passage.start)
        inside = secrets[first : bisect_left(starts, passage.end)]
        yield _redact(passage, inside, finder) if inside else passage


def _secrets(text: str, finder: DocumentSecretFinder) -> Iterator[Span]:
    """Find the secrets of a text part by part: no secret reaches over a split point."""
    splits = [point.at for point in split_points(text, 0, len(text)) if not point.may_cut_secret]
    for start, end in pairwise([0, *splits, len(text)]):
        for found in finder.find(text[start:end]):
            yield Span(start + found.start, start + found.end)


def _redact(passage: Passage, secrets: Sequence[Span], finder: DocumentSecretFinder) -> Passage:
    recognised = finder.find(passage.text)
    pieces: list[str] = []
    done = 0
    for secret in secrets:
        start, end = secret.start - passage.start, secret.end - passage.start
        if any(found.start <= start and end <= found.end for found in recognised):
            continue
        pieces += [passage.text[done : max(0, start)], PLACEHOLDER]
        done = end
    return replace(passage, text="".join([*pieces, passage.text[done:]]))
