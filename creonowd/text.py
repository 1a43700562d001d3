"""Text as data: well-formed Unicode, the encodings of files, and JSON in one canonical spelling.

Canonical JSON has sorted keys, no spaces and no escapes that are not needed, so equal values give
equal bytes on any machine. Files are UTF-8, UTF-16 or UTF-32 with a byte order mark, or GB18030;
their line ends stay as they are, so that positions are those of the file.
"""

import codecs
import json
import re
from array import array
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from copy import copy
from functools import cache, partial
from io import StringIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, cast, overload
from unicodedata import category, combining, normalize

import msgspec

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.threads import check_stopped, until_stopped

if TYPE_CHECKING:
    import regex

VOLATILE_KEYS = frozenset({"timestamp", "requestId", "nonce"})
"""Keys whose values differ with every call of a host, though nothing else does."""

LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
"""A line with its end; the last match may be empty."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_MOST_LONE_SURROGATES = 10_000
_MOST_SURROGATES = 200_000
_HIGH = rb"\\u[dD][89abAB][0-9a-fA-F][0-9a-fA-F]"
_LOW = rb"\\u[dD][c-fC-F][0-9a-fA-F][0-9a-fA-F]"
# An escaped half of a pair without its other half, or behind one that may not be an escape.
_LONE_ESCAPE = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F][0-9a-fA-F](?!%(low)s)"
    rb"|[c-fC-F][0-9a-fA-F][0-9a-fA-F]"
    rb"(?:(?<!%(high)s%(low)s)|(?P<doubtful>(?<=\\%(high)s%(low)s))))"
    % {b"high": _HIGH, b"low": _LOW}
)
_ESCAPES = (rb"\ud", rb"\uD")
_ESCAPE_BYTES = 6
MOST_VALUES = 100_000
"""How many values a JSON text of others may have; decoding more at once would hold everyone up."""
_VALUE_MARKS = (b",", b"[", b"{")
_SLICE_BYTES = 256 * 1024
_SLICE = 65_536

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NORMAL_PIECE = 16 * 1024
_MANY_MARKS = 32
_LINE_FEED = re.compile("\n")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x19\x1b-\x1f]")
_SAMPLE = 4096
# UTF-8 may have one broken character for so many sound ones that are not ASCII.
_SOUND_PER_BROKEN = 20


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, so that the text has UTF-8 bytes."""
    return text if text.isascii() else encode_well_formed(text)[0]


def encode_well_formed(text: str) -> tuple[str, bytes]:
    """Return a text without lone surrogates, and its UTF-8 bytes."""
    try:
        return text, text.encode()
    except UnicodeEncodeError:
        repaired = _SURROGATE.sub("\ufffd", text)
        return repaired, repaired.encode()


def join_lines(text: str) -> str:
    """Put a text on one line: what stands on several is joined by spaces."""
    lines = text.splitlines()
    if lines == [text]:
        return text
    return " ".join(stripped for line in lines if (stripped := line.strip()))


def lines_of(text: str) -> Iterator[str]:
    """Yield the lines of a text with their ends, as `splitlines` cuts them.

    A list of all lines may take twenty times the memory of a text.
    """
    start, size = 0, _SLICE
    while start + size < len(text):
        check_stopped()
        *lines, _cut = text[start : start + size].splitlines(keepends=True)
        size = _SLICE if lines else 2 * size
        start += sum(map(len, lines))
        yield from lines
    yield from text[start:].splitlines(keepends=True)


class TextLines(Sequence[str]):
    """The lines of a text without their ends, each cut out when it is asked for.

    A list of millions of short lines takes thirty times the memory of the text.
    """

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
        self._starts = array("I", _line_starts(self._text) if text else ())

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "TextLines": ...

    def __getitem__(self, index: int | slice) -> "str | TextLines":
        """Return a line, or some of the lines."""
        if isinstance(index, slice):
            return self._with(self._starts[index])
        start = self._starts[index]
        end = self._text.find("\n", start)
        return self._text[start : len(self._text) if end < 0 else end]

    def where(self, is_wanted: Callable[[str], object]) -> "TextLines":
        """Return the lines that are wanted."""
        kept = zip(self._starts, until_stopped(self), strict=True)
        return self._with(array("I", (start for start, line in kept if is_wanted(line))))

    def _with(self, starts: "array[int]") -> "TextLines":
        lines = copy(self)
        lines._starts = starts
        return lines


def _line_starts(text: str) -> Iterator[int]:
    yield 0
    for match in until_stopped(_LINE_FEED.finditer(text)):
        yield match.end()


def count_line_ends(text: str) -> int:
    """Count the line ends of a text: LF, CRLF or CR."""
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def as_text(data: bytes) -> str | None:
    """Read UTF-8, with or without a byte-order mark; None if it is something else."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return None


def well_formed_value(value: Any) -> Any:
    """Return a decoded JSON value with `well_formed` keys and strings."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {
            well_formed_value(key): well_formed_value(member) for key, member in members.items()
        }
    if isinstance(value, list | tuple):
        return [well_formed_value(item) for item in cast("list[Any]", value)]
    return value


def well_formed_json(body: bytes) -> bytes:
    r"""Replace each lone `\ud83d` in a JSON text by `\ufffd`, and nothing else.

    Where there are more than a text can have by accident, none is replaced.
    """
    surrogates = 0
    for start in range(0, len(body), _SLICE_BYTES):
        surrogates += sum(body.count(mark, start, start + _SLICE_BYTES) for mark in _ESCAPES)
        if surrogates > _MOST_SURROGATES:
            return body
    parts: list[bytes] = []
    end = 0
    for count, found in enumerate(_LONE_ESCAPE.finditer(body)):
        if count >= _MOST_LONE_SURROGATES:
            return body
        half = found.start() - (_ESCAPE_BYTES if found["doubtful"] is not None else 0)
        before = body[end:half]
        is_escaped = (len(before) - len(before.rstrip(b"\\"))) % 2 == 1
        if is_escaped == (found["doubtful"] is not None):
            parts.append(body[end : found.start()])
            end = found.end()
    return rb"\ufffd".join([*parts, body[end:]])


def has_too_many_values(body: bytes | bytearray) -> bool:
    """Return whether a JSON text has more values than may be decoded at once."""
    return any(count > MOST_VALUES for count in count_values(body))


def count_values(body: bytes | bytearray) -> Iterator[int]:
    """Yield how many values of a JSON text were found so far, after each slice of it.

    Nothing is yielded if they are few beyond doubt. Counts what begins or separates values outside
    of strings; a value has two bytes at least.
    """
    if len(body) <= 2 * MOST_VALUES or not _may_have_too_many(body):
        return
    count = start = in_string = 0
    while start < len(body):
        piece = bytes(body[start : start + _SLICE_BYTES])
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece += body[start + len(piece) : start + len(piece) + 1]
        start += len(piece)
        if b"\\" in piece:
            piece = piece.replace(rb"\\", b"").replace(rb"\"", b"")
        strings = piece.split(b'"')
        outside = b"".join(strings[in_string::2])
        count += sum(map(outside.count, _VALUE_MARKS))
        in_string = (in_string + len(strings) - 1) % 2
        yield count


def _may_have_too_many(body: bytes | bytearray) -> bool:
    count = 0
    for start in range(0, len(body), _SLICE_BYTES):
        count += sum(body.count(mark, start, start + _SLICE_BYTES) for mark in _VALUE_MARKS)
        if count > MOST_VALUES:
            return True
    return False


def is_json(text: str) -> bool:
    """Return whether a text is one JSON value."""
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def canonical_json(text: str, *, without: Collection[str] = ()) -> str:
    """Rewrite a JSON text canonically, leaving out some keys; ValueError if it is not JSON."""
    return encode_canonical(load_json(text), without=without)


def load_json(text: str) -> Any:
    """Decode a JSON text of somebody else; ValueError if it is none or has too many values."""
    if has_too_many_values(text.encode("utf-8", "replace")):
        raise ValueError("The JSON has too many values.")
    try:
        return json.loads(text, parse_constant=_reject)
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None


def encode_canonical(value: Any, *, without: Collection[str] = ()) -> str:
    """Encode a value as canonical JSON; ValueError if JSON cannot spell one of its numbers."""
    kept = _drop_keys(value, without) if without else value
    text = json.dumps(
        kept, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return well_formed(text)


def _drop_keys(value: Any, keys: Collection[str]) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: _drop_keys(item, keys) for key, item in items.items() if key not in keys}
    if isinstance(value, list):
        members = cast("list[Any]", value)
        return [_drop_keys(item, keys) for item in members]
    return value


def _reject(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON.")


def normal_form(form: Literal["NFC", "NFD", "NFKC"], text: str) -> str:
    """Return a text in a normal form of Unicode, stopping nobody for long.

    Python puts the marks behind a letter in order within a time that grows with the square of their
    number, and holds up all threads until the whole text is done. So it is given a piece at a time,
    and long runs of marks in order.
    """
    if text.isascii() or len(text) <= _MANY_MARKS:
        return normalize(form, text)
    marks, beginning = mark_patterns()
    ordered = partial(_ordered, "NFKD" if form == "NFKC" else "NFD")
    done: list[str] = []
    start = 0
    while start < len(text):
        check_stopped()
        end = beginning.search(text, start + _NORMAL_PIECE)
        piece = text[start : len(text) if end is None else end.start()]
        done.append(normalize(form, marks.sub(ordered, piece)))
        start += len(piece)
    return "".join(done)


@cache
def mark_patterns() -> "tuple[regex.Pattern[str], regex.Pattern[str]]":
    """Return patterns for many marks, and for a character that nothing before it changes.

    What is a mark only in a compatible spelling counts too.
    """
    import regex

    return (
        regex.compile(rf"[\p{{M}}\uff9e\uff9f]{{{_MANY_MARKS},}}"),
        regex.compile(r"[^\p{M}\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\ud7b0-\ud7ff\uff9e-\uffdc]"),
    )


def _ordered(form: Literal["NFD", "NFKD"], found: "regex.Match[str]") -> str:
    """Return a run of marks decomposed and in the order of a normal form."""
    # Marks of one kind are one object here, and what is in order is text already, to which CPython
    # adds in its place: of millions, objects of their own took 200 MB, and lists of them 70 MB.
    parts = {mark: tuple(normalize(form, mark)) for mark in set(found[0])}
    decomposed = chain.from_iterable(map(parts.__getitem__, found[0]))
    ordered, waiting = "", defaultdict[int, StringIO](StringIO)
    for mark in until_stopped(chain(decomposed, ("",))):  # the empty one ends the run
        if mark and (number := combining(mark)):
            waiting[number].write(mark)
            continue
        for number in sorted(waiting):
            ordered += waiting.pop(number).getvalue()
        ordered += mark
    return ordered


def file_stem(path: str) -> str:
    """Return the name of a file without its folders and its last extension."""
    name = path.rstrip("/").rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return stem if dot and stem and extension else name


def join_surrogates(text: str) -> str:
    """Join the two halves of a character; replace a half that stands alone by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def common_prefix(one: Sequence[object], other: Sequence[object]) -> int:
    """Return how many items two sequences have in common from their beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class DecodedText(Model):
    """A text and the encoding it was written in."""

    text: str
    encoding: str


def decode_text(data: bytes) -> DecodedText:
    """Decode bytes as text; UNSUPPORTED if they are none."""
    found = _with_mark(data) or (_utf16(data) if b"\0" in data else _eight_bit(data))
    if found is None or _CONTROL.search(found.text):
        raise DaemonError(
            ErrorCode.UNSUPPORTED,
            "The file is not text in UTF-8, UTF-16 or GB18030; save it as UTF-8.",
            reason="invalid_format",
        )
    return found


def _with_mark(data: bytes) -> DecodedText | None:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return DecodedText(
                text=data[len(mark) :].decode(encoding, "replace"), encoding=encoding
            )
    return None


def _eight_bit(data: bytes) -> DecodedText | None:
    return _strict(data, "utf-8") or _damaged_utf8(data) or _strict(data, "gb18030")


def _strict(data: bytes, encoding: str) -> DecodedText | None:
    try:
        return DecodedText(text=data.decode(encoding), encoding=encoding)
    except UnicodeDecodeError:
        return None


def _utf16(data: bytes) -> DecodedText | None:
    """Recognise UTF-16 without a mark by the zero bytes of its line ends and spaces."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    found = _strict(data, "utf-16-le" if odd > even else "utf-16-be")
    if found is None or any(category(c) in {"Cn", "Co"} for c in found.text[:_SAMPLE]):
        return None
    return found


def _damaged_utf8(data: bytes) -> DecodedText | None:
    """Recognise UTF-8 with a few broken bytes, which GB18030 would turn into nonsense."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(text) - len(text.encode("ascii", "ignore")) - broken
    return DecodedText(text=text, encoding="utf-8") if broken * _SOUND_PER_BROKEN < sound else None


def late_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used.

    For what few daemons need at once: to compile these took 35 ms of a start of 1.1 s.
    """
    return cast("re.Pattern[str]", _LatePattern(pattern, flags))


class _LatePattern:
    """Stands for a pattern until it is used."""

    def __init__(self, *source: Any) -> None:
        self._source = source

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._source)
        for each in ("match", "search", "fullmatch", "findall", "finditer", "sub", "split"):
            setattr(self, each, getattr(compiled, each))
        return getattr(compiled, name)


class LineNumbers:
    """The numbers of the lines of a text, from 1."""

    def __init__(self, text: str) -> None:
        self._starts = [match.start() for match in LINE.finditer(text)]

    def spell(self, start: int, end: int) -> str:
        """Return the lines of a stretch that is not empty, as in `L120-L143`."""
        first, last = bisect_right(self._starts, start), bisect_right(self._starts, end - 1)
        return f"L{first}-L{last}"


def lines_within(lines: str, text: str, start: int, end: int) -> str:
    """Return the lines of a stretch of a passage that has these lines in its document."""
    first = int(lines.removeprefix("L").partition("-")[0])
    spelled = LineNumbers(text).spell(start, end)
    return "-".join(f"L{first - 1 + int(one.removeprefix('L'))}" for one in spelled.split("-"))
