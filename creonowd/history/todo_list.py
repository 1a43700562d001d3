"""To-do lists, in any form in which tools write them: read, counted and summarised."""

from collections.abc import Sequence
from typing import Any

from creonowd.history.observation import as_fields, as_items, describe
from creonowd.model import Model
from creonowd.tokens.truncate import one_line

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
