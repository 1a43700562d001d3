"""The recap of a to-do list: short, plain, and only what matters next. Knows no tool."""

from collections.abc import Sequence
from typing import Any

from creonowd.conversations.excerpts import one_line
from creonowd.conversations.observation import as_fields, as_items
from creonowd.model import Model

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
