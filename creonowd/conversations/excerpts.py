"""Lines that are worth keeping of a long text. Knows lines and limits; knows no tool."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from creonowd.conversations.observation import as_fields, as_items, is_binary, parsed
from creonowd.settings import Settings
from creonowd.tokens.boundaries import grapheme_floor

SHORT = 200


class Limits(NamedTuple):
    """How many lines each tool may leave in a history, and how long a line may be."""

    listed: int
    globbed: int
    matches: int
    read: int
    changed: int
    errors: int
    other: int
    line: int
    total: int


def limits_of(settings: Settings) -> Limits:
    """Take the limits from the settings."""
    return Limits(
        listed=settings.tool_ls_lines,
        globbed=settings.tool_glob_lines,
        matches=settings.tool_grep_lines,
        read=settings.tool_read_lines,
        changed=settings.tool_edit_lines,
        errors=settings.tool_stderr_lines,
        other=settings.tool_other_lines,
        line=settings.tool_line_chars,
        total=settings.tool_summary_chars,
    )


USUAL = limits_of(Settings())


def clip(text: str, limit: int = SHORT) -> str:
    """Cut a text to a number of code points, at a grapheme, with a sign that it was cut."""
    if len(text) <= limit:
        return text
    return text[: grapheme_floor(text, max(0, limit - 1))] + "…"


def one_line(text: str, limit: int = SHORT) -> str:
    """Put a text on one line and cut it."""
    return clip(" ".join(text[: 4 * limit].split()), limit)


def first_lines(lines: Sequence[str], limit: int, noun: str) -> list[str]:
    """Keep the first lines and say how many there are beyond them."""
    rest = len(lines) - limit
    return [*lines[:limit], *([f"… {rest} more {noun}"] if rest > 0 else [])]


def last_lines(lines: Sequence[str], limit: int, noun: str) -> list[str]:
    """Keep the last lines and say how many there are before them."""
    rest = len(lines) - limit
    note = [f"… {rest} {noun} before"] if rest > 0 else []
    return [*note, *lines[max(0, rest) :]]


def lines_of(text: str) -> list[str]:
    """Take a text apart at its line ends, whatever they are."""
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n").split("\n") if text else []


def amount(count: int, noun: str) -> str:
    """Spell a number of things: `1 file`, `2 files`, `2 matches`, `2 entries`."""
    if count == 1:
        return f"1 {noun}"
    plural = {"match": "matches", "entry": "entries"}.get(noun, f"{noun}s")
    return f"{count} {plural}"


def described(value: Any) -> str:
    """Say on one line what a value is; JSON is described and never repeated."""
    if isinstance(value, str):
        inner = parsed(value)
        if inner is not None:
            return described(inner)
        return f"binary, {amount(len(value), 'character')}" if is_binary(value) else one_line(value)
    if isinstance(value, dict):
        block = as_fields(value)
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            return described(block["text"])
        names = ", ".join(clip(name, 40) for name in list(as_fields(value))[:8])
        return f"object with {names}" if names else "empty object"
    if isinstance(value, list):
        return f"list of {len(as_items(value))}"
    return msgspec.json.encode(value).decode()
