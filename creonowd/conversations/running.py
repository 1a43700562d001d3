"""What stays of Bash, TodoWrite, failures and tools that nobody told us about."""

from collections.abc import Iterable
from typing import Any

from creonowd.conversations.excerpts import (
    amount,
    clip,
    described,
    first_lines,
    last_lines,
    lines_of,
    one_line,
)
from creonowd.conversations.observation import Form, as_items
from creonowd.conversations.seen import Seen
from creonowd.conversations.todo import read_items, recap

_EXITS = ("exit_code", "exitCode", "returncode", "return_code", "code")


def run_command(seen: Seen) -> list[str]:
    """Keep the command, how it ended, what its output amounts to and the end of its errors."""
    command = seen.arguments.get("command", seen.arguments.get("cmd", seen.fields.get("command")))
    code = seen.number(*_EXITS)
    ended = f"exit code {code}" if code is not None else "finished"
    errors = seen.fields.get("stderr")
    lines = lines_of(errors) if isinstance(errors, str) else []
    tail = [clip(line, seen.limits.line) for line in lines]
    return [
        f"{one_line(str(command or '(no command)'))}: {ended}",
        f"stdout: {_amounts_to(_stdout(seen))}",
        *(["stderr:", *last_lines(tail, seen.limits.errors, "lines")] if lines else []),
    ]


def write_todo(seen: Seen) -> list[str]:
    """Keep the recap alone."""
    told = seen.fields.get("recap")
    if isinstance(told, str) and told.strip():
        return [one_line(told, 400)]
    found: Iterable[Any] = (
        place.get(key) for place in (seen.fields, seen.arguments) for key in ("todos", "items")
    )
    lists = [as_items(items) for items in (*found, seen.observation.value)]
    listed = next(filter(None, lists), None)
    if listed is None and seen.text.strip():
        return [one_line(seen.text, 400)]
    return [recap(read_items(listed))]


def tell_failure(seen: Seen, reason: str) -> list[str]:
    """Keep what was tried and the end of what went wrong."""
    tried = seen.arguments.get("command", seen.find("pattern", "query", "url")) or seen.path
    about = f" ({one_line(str(tried))})" if tried else ""
    lines = [clip(line, 500) for line in lines_of(reason)]
    code = seen.number(*_EXITS)
    ended = f", exit code {code}" if code is not None else ""
    return [f"failed{about}{ended}:", *last_lines(lines, seen.limits.errors, "lines")]


def tell_anything(seen: Seen) -> list[str]:
    """Keep the outline of JSON, the first lines of text."""
    value = seen.observation.value
    if isinstance(value, list):
        listed = [f"- {described(item)}" for item in as_items(value)]
        return [amount(len(listed), "item"), *first_lines(listed, seen.limits.other, "items")]
    if seen.fields:
        named = [f"{clip(key, 80)}: {described(item)}" for key, item in seen.fields.items()]
        return [amount(len(named), "field"), *first_lines(named, seen.limits.other, "fields")]
    if seen.observation.form is Form.JSON:
        return [described(value)]
    lines = [clip(line, 400) for line in lines_of(seen.text)]
    return [_size(seen.text), *first_lines(lines, seen.limits.other, "lines")]


def _stdout(seen: Seen) -> str:
    told = seen.fields.get("stdout", seen.fields.get("output"))
    return told if isinstance(told, str) else seen.text


def _amounts_to(text: str) -> str:
    lines = [line for line in lines_of(text) if line.strip()]
    if not lines:
        return "empty"
    first, last = described(lines[0]), described(lines[-1])
    if text.lstrip()[:1] in {"{", "["}:
        return f"{_size(text)}, {described(text) if len(lines) == 1 else 'structured'}"
    return f"{_size(text)}: {first}" + (f" … {last}" if len(lines) > 1 else "")


def _size(text: str) -> str:
    return f"{amount(len(lines_of(text)), 'line')}, {amount(len(text), 'character')}"
