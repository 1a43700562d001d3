"""What stays of Edit, MultiEdit and Write: which file, what changed where, the first lines of it."""

import re
from typing import Any

from creonowd.conversations.excerpts import amount, clip, first_lines, lines_of
from creonowd.conversations.observation import as_fields, as_items
from creonowd.conversations.seen import Seen

_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_OLD = ("old_string", "oldString", "old_text", "old")
_NEW = ("new_string", "newString", "new_text", "new")
_CREATED = re.compile(r"\b(?:created|new file)\b|新建|已创建", re.IGNORECASE)
_OVERWRITTEN = re.compile(r"\b(?:overw\w+|updated|replaced|modified)\b|覆盖", re.IGNORECASE)


def edit_file(seen: Seen) -> list[str]:
    """Keep the file, the range and the key lines; of a big change only what it amounts to."""
    diff = _diff(seen)
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    edits = len(_edits(seen)) or 1
    headline = f"{seen.path or '(no path)'}: {amount(edits, 'edit')}{_range(seen)}"
    headline += f", {amount(added, 'line')} added, {removed} removed" if diff else ""
    if len(diff) > seen.limits.changed:
        return [headline, f"(the change of {len(diff)} lines is too long to keep here)"]
    return [headline, *(clip(line, seen.limits.line) for line in diff)]


def write_file(seen: Seen) -> list[str]:
    """Keep the file, whether it is new, and its first lines."""
    content = seen.arguments.get("content", seen.fields.get("content", ""))
    lines = lines_of(content) if isinstance(content, str) else []
    size = f", {amount(len(lines), 'line')}" if lines else ""
    kept = [clip(line, seen.limits.line) for line in lines]
    headline = f"{seen.path or '(no path)'}: {_fate(seen)}{size}"
    return [headline, *first_lines(kept, seen.limits.changed, "lines")]


def _fate(seen: Seen) -> str:
    flags = {name: seen.fields.get(name) for name in ("created", "is_new", "isNew", "new_file")}
    told = " ".join(
        str(seen.fields.get(name, ""))
        for name in ("operation", "action", "mode", "type", "message")
    )
    if any(flag is True for flag in flags.values()) or _CREATED.search(f"{told} {seen.text}"):
        return "new file"
    overwritten = any(flag is False for flag in flags.values()) or seen.fields.get("overwritten")
    return "overwritten" if overwritten or _OVERWRITTEN.search(f"{told} {seen.text}") else "written"


def _diff(seen: Seen) -> list[str]:
    found = next((seen.fields.get(k) for k in ("diff", "patch", "diff_preview")), None)
    if isinstance(found, str) and found:
        return [line for line in lines_of(found) if not line.startswith(("---", "+++"))]
    return [line for edit in _edits(seen) for line in _replaced(edit)]


def _edits(seen: Seen) -> list[dict[str, Any]]:
    many = [as_fields(edit) for edit in as_items(seen.arguments.get("edits"))]
    single = any(seen.arguments.get(name) for name in (*_OLD, *_NEW))
    return many or ([seen.arguments] if single else [])


def _replaced(edit: dict[str, Any]) -> list[str]:
    old = next((edit[k] for k in _OLD if isinstance(edit.get(k), str)), "")
    new = next((edit[k] for k in _NEW if isinstance(edit.get(k), str)), "")
    return [*(f"-{line}" for line in lines_of(old)), *(f"+{line}" for line in lines_of(new))]


def _range(seen: Seen) -> str:
    hunks = [
        (int(match[1]), int(match[1]) + max(0, int(match[2] or 1) - 1))
        for match in _HUNK.finditer("\n".join(_diff(seen)))
    ]
    first = seen.number("start_line", "startLine", "line")
    if first is not None and not hunks:
        hunks = [(first, seen.number("end_line", "endLine") or first)]
    return " at lines " + ", ".join(f"{a}-{b}" for a, b in hunks[:8]) if hunks else ""
