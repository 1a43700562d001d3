"""Where in a JSON text something stands, for messages that people can follow. Pure."""

import json
import re
from collections.abc import Iterator

_SPACE = re.compile(r"[ \t\r\n]*")
_BYTE = re.compile(r"\(byte (\d+)\)")
_scan = json.JSONDecoder().raw_decode


def line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Turn an offset in code points into a line and a column, both counted from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


def place_of_error(data: bytes, message: str) -> tuple[int, int]:
    """Tell where msgspec's complaint about `data` points; the end if it names no place."""
    found = _BYTE.search(message)
    before = (data[: int(found.group(1))] if found else data).decode("utf-8", errors="replace")
    return line_and_column(before, len(before))


def elements_of(text: str, key: str) -> list[int]:
    """Find where each element of the top-level array called `key` begins in a valid JSON object."""
    at = _past(text, 0)
    while text[at := _skip(text, at)] != "}":
        name, at = _scan(text, at)
        at = _skip(text, _past(text, at))
        if name == key and text[at] == "[":
            return list(_elements(text, at + 1))
        _, at = _scan(text, at)
        at = _past_comma(text, at)
    return []


def _elements(text: str, at: int) -> Iterator[int]:
    while text[at := _skip(text, at)] != "]":
        yield at
        _, at = _scan(text, at)
        at = _past_comma(text, at)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _past(text: str, at: int) -> int:
    return _skip(text, at) + 1


def _past_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return at + 1 if text[at] == "," else at
