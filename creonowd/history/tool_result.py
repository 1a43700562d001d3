"""Lines that are worth keeping of a long text. Knows lines and limits; knows no tool."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from creonowd.history.observation import Form, Observation, as_fields, as_items, is_binary, parsed
from creonowd.model import Model
from creonowd.settings import Settings
from creonowd.tokens.boundaries import grapheme_floor

SHORT = 200


class LineLimits(NamedTuple):
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


def limits_of(settings: Settings) -> LineLimits:
    """Take the limits from the settings."""
    return LineLimits(
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


_PATHS = ("file_path", "filePath", "path", "file", "filename", "notebook_path", "relative_path")
TEXTS = ("content", "text", "stdout", "output", "result", "body", "data", "message")
_FAILED = re.compile(
    r"\s*(?:<tool_use_error>|(?:error|fatal|failed|错误)\s*[:：]|Traceback \(most recent"
    r"|[A-Za-z_.]{0,60}(?:Error|Exception):)",
    re.IGNORECASE,
)


class ToolUse(NamedTuple):
    """One call and what came of it, both without secrets."""

    arguments: dict[str, Any]
    observation: Observation
    fields: dict[str, Any]
    limits: LineLimits

    def find(self, *names: str) -> Any:
        """Look for the first of these names in the result, then in the arguments."""
        for place in (self.fields, self.arguments):
            for name in names:
                if place.get(name) not in (None, ""):
                    return place[name]
        return None

    def number(self, *names: str) -> int | None:
        """Look for a whole number under these names."""
        found = self.find(*names)
        if isinstance(found, str) and found.strip().lstrip("-").isdigit():
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def items(self, *names: str) -> list[Any] | None:
        """Look for a list: the result itself, or one of these fields."""
        whole: Any = self.observation.value
        if isinstance(whole, list):
            return as_items(whole)
        lists = (self.fields.get(name) for name in names)
        return next((as_items(found) for found in lists if isinstance(found, list)), None)

    @property
    def path(self) -> str:
        """The file or folder that the call is about; the arguments know best."""
        for place in (self.arguments, self.fields):
            for name in _PATHS:
                if isinstance(place.get(name), str) and place[name]:
                    return one_line(place[name])
        return ""

    @property
    def text(self) -> str:
        """The words of the result."""
        if self.observation.form in {Form.TEXT, Form.BINARY}:
            return self.observation.text
        found = (self.fields.get(name) for name in TEXTS)
        return next((text for text in found if isinstance(text, str)), "")

    @property
    def failure(self) -> str | None:
        """What went wrong, if the result says that something did."""
        error = self.fields.get("error")
        told = error if isinstance(error, str) else as_fields(error).get("message")
        status = str(self.fields.get("status", "")).lower()
        flagged = (
            status in {"error", "failed", "failure"}
            or self.fields.get("success") is False
            or self.fields.get("isError", self.fields.get("is_error")) is True
        )
        if error or flagged:
            return str(told) if told else self.text or described(error or "no reason given")
        plain = self.observation.form is Form.TEXT and _FAILED.match(self.observation.text)
        return self.observation.text if plain else None


NAMED = 3

_DONE = frozenset({"completed", "complete", "done", "finished"})
_NOW = frozenset({"in_progress", "in-progress", "inprogress", "active", "doing"})
_LEFT = frozenset({"cancelled", "canceled"})


class TodoItem(Model):
    """One thing to do; `status` is `pending`, `in_progress`, `completed` or `cancelled`."""

    text: str
    status: str = "pending"


def recap(items: Sequence[TodoItem]) -> str:
    """Say how far the list is, what is being done and what comes next."""
    counted = [item for item in items if _status(item) not in _LEFT]
    done = sum(_status(item) in _DONE for item in counted)
    now = [item for item in counted if _status(item) in _NOW]
    rest = [item for item in counted if _status(item) not in _DONE | _NOW]
    parts = [f"{done} of {len(counted)} done", *_named("now", now), *_named("next", rest)]
    return "; ".join(parts) + "."


def read_items(value: Any) -> list[TodoItem]:
    """Read a list as tools spell it: texts, or objects with a text and a status."""
    found: list[TodoItem] = []
    for item in as_items(value):
        fields = as_fields(item)
        names = ("content", "text", "title", "task", "description")
        told = (fields.get(name) for name in names)
        text = item if isinstance(item, str) else next((t for t in told if t), "")
        found.append(TodoItem(text=str(text), status=str(fields.get("status", "pending"))))
    return found


def _status(item: TodoItem) -> str:
    return item.status.strip().lower()


def _named(word: str, items: Sequence[TodoItem]) -> list[str]:
    names = [one_line(item.text, 120) for item in items[:NAMED]]
    more = len(items) - NAMED
    return [f"{word}: {', '.join(names)}{f' and {more} more' if more > 0 else ''}"] if names else []
