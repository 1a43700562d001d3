"""Which key of a YAML text stands on which line, for messages and against keys that stand twice.

Reads shapes only: what the text means is the parser's business, and it has accepted it.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

FIRST = 2

_KEY = re.compile(
    r"""( *)((?:-[ \t]+)*)(?:"([^"]*)"|'([^']*)'|([^\s"'#\[{&*!|>%@`-][^:]*?))[ \t]*:(?=[ \t]|$)(.*)"""
)
_ITEM = re.compile(r"( *)-(?:[ \t]|$)")
_BLOCK = re.compile(r"[ \t][|>][-+0-9]*[ \t]*(?:#.*)?")
_FLOW = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:''|[^'])*'|#.*|[{}\[\],]|:(?=\s)|[^\s{}\[\],"'#:]+|."""
)


class Found(NamedTuple):
    """A dotted key and its line in the file, whose first line is the opening `---`."""

    key: str
    line: int


def keys_of(header: str) -> Iterator[Found]:
    """Find the keys of block mappings, passing over the text of block scalars."""
    above: list[tuple[int, str]] = []
    scalar: int | None = None
    for number, line in enumerate(header.split("\n"), start=FIRST):
        indent = len(line) - len(line.lstrip(" "))
        if scalar is not None and (indent > scalar or not line.strip()):
            continue
        scalar = None
        if _ITEM.match(line):
            above = [*_above(above, indent), (indent, str(number))]
        if match := _KEY.match(line):
            column = indent + len(match[2])
            above = [*_above(above, column), (column, match[3] or match[4] or match[5])]
            scalar = column if _BLOCK.fullmatch(match[6]) else None
            yield Found(".".join(key for _, key in above), number)


def _above(above: list[tuple[int, str]], column: int) -> list[tuple[int, str]]:
    return [step for step in above if step[0] < column]


def repeated(header: str, found: Sequence[Found]) -> Iterator[Found]:
    """Find the keys that stand a second time in their mapping, be it in block or flow style."""
    seen: set[str] = set()
    lines = header.split("\n")
    for key, line in found:
        if key in seen:
            yield Found(key, line)
        seen.add(key)
        if _flow(lines, line, 2) and (name := _twice_in_flow(_flow(lines, line, len(lines)))):
            yield Found(f"{key}.{name}", line)


def _flow(lines: Sequence[str], line: int, count: int) -> str:
    """Give the text after a key if it begins a flow mapping."""
    rest = "\n".join(lines[line - FIRST :][:count]).partition(":")[2].lstrip()
    return rest if rest.startswith("{") else ""


def _twice_in_flow(text: str) -> str | None:
    """Find a key that stands twice in the flow mapping at the start of a text."""
    depth, before = 0, ""
    seen: set[str] = set()
    for piece in (match[0] for match in _FLOW.finditer(text) if match[0].strip()):
        if piece[0] == "#":
            continue
        depth += (piece in "{[") - (piece in "}]")
        if depth == 0:
            return None
        if depth == 1 and before in {"{", ","} and piece not in "{}[],":
            name = piece.strip("\"'")
            if name in seen:
                return name
            seen.add(name)
        before = piece
    return None
