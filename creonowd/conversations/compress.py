"""What a history keeps of a tool's result: navigation in outline, content in part, changes in brief.

The table of tools stands at the end. Knows no conversation and no disk; the same call and result
always give the same words, and JSON is described, never repeated.
"""

import re
from collections.abc import Callable
from typing import Any

from creonowd.conversations import changes, navigation, reading, running
from creonowd.conversations.excerpts import USUAL, Limits, amount, clip
from creonowd.conversations.observation import (
    Form,
    Observation,
    as_fields,
    cleaned,
    parsed,
    relative,
)
from creonowd.conversations.seen import Seen
from creonowd.redaction import Redactor

Compressor = Callable[[Seen], list[str]]

_REF = re.compile(r"Full output: (ctx_[a-z0-9]{16,26})\Z")
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]")
_LONGEST_NAME = 64
_LONGEST_FAILURE = 20


def compress(
    tool: str, arguments: dict[str, Any], observation: Observation, limits: Limits = USUAL
) -> str:
    """Write the summary of one result for the history, its headline first."""
    seen = Seen(arguments, observation, observation.fields, limits)
    headline, *rest = _lines(tool, seen)
    name = clip(" ".join(tool.split()), _LONGEST_NAME) or "tool"
    note = " (its JSON is malformed)" if observation.form is Form.MALFORMED else ""
    told = "\n".join([f"[{name}] {headline}{note}", *rest])
    return clip(_COLOURS.sub("", told), limits.total)


def with_ref(summary: str, ref_id: str) -> str:
    """Let a summary say where the full output is."""
    return f"{summary}\nFull output: {ref_id}"


def ref_in(summary: str) -> str | None:
    """Find the ref that a summary carries."""
    found = _REF.search(summary)
    return found[1] if found else None


def headline_of(summary: str) -> str:
    """Give a summary's first line."""
    return summary.partition("\n")[0]


def shortened(summary: str, lines: int = 1) -> str:
    """Leave a summary's first lines and its ref."""
    ref = ref_in(summary)
    head = "\n".join(clip(line) for line in summary.split("\n")[:lines])
    if ref is None or ref in head:
        return head
    return with_ref(head, ref)


def read_arguments(arguments: Any, redactor: Redactor, root: str = "") -> dict[str, Any]:
    """Read a call's arguments, given as an object or as its JSON, without their secrets."""
    found = parsed(arguments) if isinstance(arguments, str) else arguments
    if isinstance(arguments, str) and found is None and arguments.strip():
        found = {"input": arguments}
    return as_fields(cleaned(relative(as_fields(found), root), redactor))


def _lines(tool: str, seen: Seen) -> list[str]:
    compressor = _TABLE.get(re.sub(r"[^a-z]", "", tool.lower()), running.tell_anything)
    if seen.observation.form is Form.BINARY:
        size = amount(len(seen.observation.text.encode()), "byte")
        return [f"{seen.path + ': ' if seen.path else ''}binary, {size}"]
    if seen.observation.form is Form.EMPTY and compressor in _SAY_NOTHING_OF_NOTHING:
        return [f"{seen.path + ': ' if seen.path else ''}empty result"]
    reason = seen.failure
    if reason is None or _tells_failures(compressor, seen) or _is_content(compressor, seen):
        return compressor(seen)
    return running.tell_failure(seen, reason)


def _is_content(compressor: Compressor, seen: Seen) -> bool:
    """Whether what looks like a failure is a long text that begins like one, such as a log."""
    plain = seen.observation.form is Form.TEXT
    return plain and compressor is reading.read_file and seen.text.count("\n") > _LONGEST_FAILURE


def _tells_failures(compressor: Compressor, seen: Seen) -> bool:
    return compressor is running.run_command and _has_streams(seen)


def _has_streams(seen: Seen) -> bool:
    return isinstance(seen.fields.get("stderr"), str)


_SAY_NOTHING_OF_NOTHING = (running.tell_anything, reading.read_file)
_TABLE: dict[str, Compressor] = {
    "ls": navigation.list_folder,
    "list": navigation.list_folder,
    "listdir": navigation.list_folder,
    "glob": navigation.find_files,
    "grep": navigation.find_lines,
    "read": reading.read_file,
    "readfile": reading.read_file,
    "edit": changes.edit_file,
    "multiedit": changes.edit_file,
    "write": changes.write_file,
    "writefile": changes.write_file,
    "bash": running.run_command,
    "shell": running.run_command,
    "todowrite": running.write_todo,
}
