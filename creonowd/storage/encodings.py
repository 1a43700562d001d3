"""Decode the bytes of a text file: UTF-8, UTF-16, UTF-32 with a byte order mark, or GB18030.

Line ends stay as they are, so that positions are those of the file; a byte order mark is not
part of the text.
"""

import codecs
import re
from unicodedata import category

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x19\x1b-\x1f]")
_SAMPLE = 4096
# UTF-8 may have one broken character for so many sound ones that are not ASCII.
_SOUND_PER_BROKEN = 20


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
