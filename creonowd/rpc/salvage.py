"""What can be saved of a message that a strict decoder refuses: its id, its lone surrogates.

Knows JSON's outline; knows no method.
"""

import json
import math
import re
from typing import Any, cast

Id = int | float | str | None

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_SURROGATES = re.compile(
    rb"(?<!\\)(?P<backslashes>(?:\\\\)*+)"
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
_LONE = re.compile("[\ud800-\udfff]")
_ID_AT_END = re.compile(
    rb'"id"\s*:\s*(-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*")\s*'
    rb'(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}$'
)
SEARCHED = 64 * 1024


def recover_id(head: bytes, tail: bytes = b"") -> Id:
    """Find the id of a broken message among its own top-level keys; None when there is none."""
    found = _scan_for_id(head[:SEARCHED])
    if found is None and (at_end := _ID_AT_END.search(tail or head[-512:].rstrip())):
        found = at_end.group(1)
    return None if found is None else _scalar(found)


def _scan_for_id(head: bytes) -> bytes | None:
    depth = 0
    previous: list[bytes] = [b"", b""]
    for match in _TOKEN.finditer(head):
        token = match.group()
        if depth == 1 and previous == [b'"id"', b":"]:
            return token
        depth += token in {b"{", b"["}
        depth -= token in {b"}", b"]"}
        previous = [previous[1], token]
    return None


def _scalar(token: bytes) -> Id:
    try:
        value = json.loads(token)
    except (ValueError, UnicodeDecodeError):
        return None
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mend_surrogates(body: bytes) -> bytes | None:
    r"""Replace every lone `\ud83d` by `\ufffd` and nothing else; None if there is none."""
    whole = _SURROGATES.sub(_without_lone, body)
    return None if whole == body else whole


def _without_lone(escape: re.Match[bytes]) -> bytes:
    return escape["backslashes"] + rb"\ufffd" if escape["lone"] else escape.group()


def mended(value: Any) -> Any:
    """Rebuild a decoded value with no lone surrogate in any key or string."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {mended(key): mended(member) for key, member in members.items()}
    if isinstance(value, list | tuple):
        return [mended(item) for item in cast("list[Any]", value)]
    return value


def without_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, so that the text can be encoded."""
    return _LONE.sub("\ufffd", text)
