"""The call of a tool with its result, how many lines of it a history may keep, and to-do lists.

A to-do list is read in any form in which tools write one.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from creonowd.history.observation import (
    Form,
    Observation,
    as_fields,
    as_items,
    describe,
    parse_json,
)
from creonowd.model import Model
from creonowd.settings import Settings
from creonowd.tokens.truncate import clip, one_line

_CONTEXT_ARGUMENTS = ("arguments", "args", "params", "params_input", "input")
PATH_KEYS = ("file_path", "filePath", "path", "file", "filename", "notebook_path", "relative_path")
TEXT_KEYS = ("content", "text", "stdout", "output", "result", "body", "data", "message")
_MESSAGE_KEYS = ("message", "msg", "reason", "detail", "description", "error", "text")
_CODE_KEYS = ("code", "errorCode", "error_code", "errno", "statusCode", "status_code")
_FAILURE = re.compile(
    r"\s*(?:<tool_use_error>|(?:error|fatal|failed|错误)\s*[:：]|Traceback \(most recent"
    r"|[A-Za-z_.]{0,60}(?:Error|Exception):)",
    re.IGNORECASE,
)


class LineLimits(NamedTuple):
    """How many lines each tool may leave in a history, and how long a line may be."""

    listing: int
    glob: int
    grep: int
    read: int
    edit: int
    errors: int
    other: int
    line: int
    total: int


def line_limits(settings: Settings) -> LineLimits:
    """Read the limits from the settings."""
    return LineLimits(
        listing=settings.tool_ls_lines,
        glob=settings.tool_glob_lines,
        grep=settings.tool_grep_lines,
        read=settings.tool_read_lines,
        edit=settings.tool_edit_lines,
        errors=settings.tool_stderr_lines,
        other=settings.tool_other_lines,
        line=settings.tool_line_chars,
        total=settings.tool_summary_chars,
    )


DEFAULT_LIMITS = line_limits(Settings())


class ToolUse(NamedTuple):
    """One call and its result, both redacted."""

    arguments: dict[str, Any]
    observation: Observation
    fields: dict[str, Any]
    limits: LineLimits

    def find(self, *names: str) -> Any:
        """Return the first of these fields in the result, its `context` or the arguments."""
        for place in (self.fields, *self._contexts, self.arguments):
            for name in names:
                if place.get(name) not in (None, ""):
                    return place[name]
        return None

    def number(self, *names: str) -> int | None:
        """Return the first of these fields if it is a whole number."""
        found = self.find(*names)
        if isinstance(found, str) and found.strip().lstrip("-").isdigit():
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def items(self, *names: str) -> list[Any] | None:
        """Return a list: the result itself, or the first of these fields that is one."""
        whole: Any = self.observation.value
        if isinstance(whole, list):
            return as_items(whole)
        lists = (self.fields.get(name) for name in names)
        return next((as_items(found) for found in lists if isinstance(found, list)), None)

    @property
    def path(self) -> str:
        """The file or folder that the call is about, in its arguments or else in its result."""
        for place in (self.arguments, self.fields, *self._contexts):
            for name in PATH_KEYS:
                if isinstance(place.get(name), str) and place[name]:
                    return one_line(place[name])
        return ""

    @property
    def _contexts(self) -> tuple[dict[str, Any], ...]:
        """What a result says about its call: its `context`, and the arguments therein."""
        context = as_fields(self.fields.get("context"))
        return context, *(as_fields(context.get(name)) for name in _CONTEXT_ARGUMENTS)

    @property
    def text(self) -> str:
        """The text of the result."""
        if self.observation.form in {Form.TEXT, Form.BINARY}:
            return self.observation.text
        found = (self.fields.get(name) for name in TEXT_KEYS)
        whole = self.observation.text if self.observation.form is Form.MALFORMED else ""
        return next((text for text in found if isinstance(text, str)), whole)

    @property
    def failure(self) -> str | None:
        """The error that the result reports, if there is one."""
        error = self.fields.get("error")
        message = _error_message(error)
        status = str(self.fields.get("status", "")).lower()
        failed = (
            status in {"error", "failed", "failure"}
            or self.fields.get("success") is False
            or self.fields.get("isError", self.fields.get("is_error")) is True
        )
        if error or failed:
            return message or self.text or describe(error or "no reason given")
        is_text = self.observation.form is Form.TEXT
        begins_like_failure = is_text and _FAILURE.match(self.observation.text)
        return self.observation.text if begins_like_failure else None

    @property
    def error_codes(self) -> list[str]:
        """The codes of the error that the result reports, the most special first."""
        error = _error_fields(self.fields.get("error"))
        inner = [error.get(name) for name in _CODE_KEYS]
        named = [error.get(name) for name in ("type", "name", "status")]
        outer = [self.fields.get(name) for name in _CODE_KEYS]
        data = as_fields(error.get("data")).get("code")
        found = [data, *(filter(_is_code, inner) if any(map(_is_code, inner)) else named), *outer]
        return list(dict.fromkeys(one_line(str(code), 60) for code in found if _is_code(code)))


def _is_code(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and value != ""


def _error_fields(error: Any) -> dict[str, Any]:
    return as_fields(parse_json(error) if isinstance(error, str) else error)


def _error_message(error: Any) -> str:
    """Return what an error says, whatever its shape; nothing if there is no error."""
    fields = _error_fields(error)
    texts = (fields.get(name) for name in _MESSAGE_KEYS)
    message = next((text for text in texts if isinstance(text, str) and text), "")
    if message or not error:
        return message
    if fields:
        return "\n".join(f"{clip(name, 80)}: {describe(value)}" for name, value in fields.items())
    if isinstance(error, list):
        return "\n".join(_error_message(one) or describe(one) for one in as_items(error))
    return error if isinstance(error, str) else ""


TODO_LISTS = ("todos", "newTodos", "items", "tasks", "list")
MOST_NAMES = 3

_DONE_WORDS = frozenset({"completed", "complete", "done", "finished"})
_CURRENT_WORDS = frozenset({"in_progress", "in-progress", "inprogress", "active", "doing"})
_CANCELLED_WORDS = frozenset({"cancelled", "canceled"})


class TodoItem(Model):
    """One thing to do."""

    text: str
    """What to do."""
    status: str = "pending"
    """`pending`, `in_progress`, `completed` or `cancelled`."""


def summarise_todo(items: Sequence[TodoItem]) -> str:
    """Summarise a list: how much is done, what is current and what comes next."""
    valid = [item for item in items if _status(item) not in _CANCELLED_WORDS]
    done = sum(_status(item) in _DONE_WORDS for item in valid)
    now = [item for item in valid if _status(item) in _CURRENT_WORDS]
    rest = [item for item in valid if _status(item) not in _DONE_WORDS | _CURRENT_WORDS]
    parts = [f"{done} of {len(valid)} done", *_first_items("now", now), *_first_items("next", rest)]
    return "; ".join(parts) + "."


def read_todo(value: Any) -> list[TodoItem]:
    """Read a to-do list in any form of tools: texts, or objects with a text and a status."""
    found: list[TodoItem] = []
    for item in as_items(value):
        fields = as_fields(item)
        names = ("content", "text", "title", "task", "description", "subject", "name", "todo")
        texts = (fields.get(name) for name in names)
        text = item if isinstance(item, str) else next((t for t in texts if t), describe(item))
        found.append(TodoItem(text=str(text), status=str(fields.get("status", "pending"))))
    return found


def read_todo_call(arguments: dict[str, Any]) -> list[TodoItem]:
    """Read the list that a call writes, under any of the names that tools have for it."""
    for name in TODO_LISTS:
        if items := read_todo(arguments.get(name)):
            return items
    return []


def finished_items(items: Sequence[TodoItem]) -> list[TodoItem]:
    """List the items that are done."""
    return [item for item in items if _status(item) in _DONE_WORDS]


def _status(item: TodoItem) -> str:
    return item.status.strip().lower()


def _first_items(word: str, items: Sequence[TodoItem]) -> list[str]:
    names = [one_line(item.text, 120) for item in items[:MOST_NAMES]]
    more = len(items) - MOST_NAMES
    return [f"{word}: {', '.join(names)}{f' and {more} more' if more > 0 else ''}"] if names else []
