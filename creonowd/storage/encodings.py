"""What a file's bytes say: UTF-8 with or without a mark, UTF-16, or GB18030.

Pure. Line ends stay as they are, so that positions are those of the file; a byte order mark
is how the text is written and not part of it.
"""

import codecs
import re
from unicodedata import category

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NOT_TEXT = re.compile(r"[\x00-\x08\x0e-\x19\x1b-\x1f]")
_SAMPLE = 4096
_RARE = 20


class Decoded(Model):
    """A text and the encoding it was written in."""

    text: str
    encoding: str


def decode_text(data: bytes) -> Decoded:
    """Read bytes as text; UNSUPPORTED if they are none."""
    found = _marked(data) or (_wide(data) if b"\0" in data else _narrow(data))
    if found is None or _NOT_TEXT.search(found.text):
        raise DaemonError(
            ErrorCode.UNSUPPORTED,
            "The file is not text in UTF-8, UTF-16 or GB18030; save it as UTF-8.",
            reason="invalid_format",
        )
    return found


def _marked(data: bytes) -> Decoded | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return Decoded(text=data[len(mark) :].decode(encoding, "replace"), encoding=encoding)
    return None


def _narrow(data: bytes) -> Decoded | None:
    return _strict(data, "utf-8") or _scratched_utf8(data) or _strict(data, "gb18030")


def _strict(data: bytes, encoding: str) -> Decoded | None:
    try:
        return Decoded(text=data.decode(encoding), encoding=encoding)
    except UnicodeDecodeError:
        return None


def _wide(data: bytes) -> Decoded | None:
    """Recognise UTF-16 without a mark by the zero bytes of its line ends and spaces."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    found = _strict(data, "utf-16-le" if odd > even else "utf-16-be")
    if found is None or any(category(c) in {"Cn", "Co"} for c in found.text[:_SAMPLE]):
        return None
    return found


def _scratched_utf8(data: bytes) -> Decoded | None:
    """Recognise UTF-8 with a few broken bytes, which GB18030 would turn into nonsense."""
    text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    sound = len(text) - len(text.encode("ascii", "ignore")) - broken
    return Decoded(text=text, encoding="utf-8") if broken * _RARE < sound else None
