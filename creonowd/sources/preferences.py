"""What the memory has learnt that the author prefers: `.creonow/settings/memory.json`.

Pure: each rule of the file becomes a fragment of its own. Knows no disk.
"""

import json
from typing import Any, cast

from creonowd.context.fragment import Fragment, Layer, LeftOut, Place, Reason
from creonowd.context.plan import Fetched
from creonowd.errors import WarningCode, warning_text
from creonowd.sources.settings_files import MEMORY
from creonowd.text import as_text
from creonowd.workspace.creonow_tree import Folder, TreeFile

VERSION = 1
GROUP = 1


def preferences(folder: Folder) -> Fetched:
    """Read the rules of the memory file; one that makes no sense costs itself, not the others."""
    if any(problem.path == MEMORY for problem in folder.problems):
        return _degraded(_left_out(MEMORY, Reason.READ_ERROR))
    file = next((file for file in folder.files if file.path == MEMORY), None)
    if file is None:
        return Fetched()
    rules = _rules(file)
    if rules is None:
        return _degraded(_left_out(MEMORY, Reason.INVALID_FORMAT))
    made = [_preference(index, rule) for index, rule in enumerate(rules)]
    fragments = tuple(item for item in made if isinstance(item, Fragment))
    return _degraded(*(item for item in made if isinstance(item, LeftOut)), fragments=fragments)


def _rules(file: TreeFile) -> list[Any] | None:
    try:
        value = json.loads(as_text(file.data) or "")
    except (ValueError, RecursionError):
        return None
    held = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    rules = held.get("rules")
    return (
        cast("list[Any]", rules)
        if held.get("version") == VERSION and isinstance(rules, list)
        else None
    )


def _preference(index: int, rule: Any) -> Fragment | LeftOut:
    said = cast("dict[str, Any]", rule) if isinstance(rule, dict) else {}
    named = said.get("id")
    ref = f"{MEMORY}#{named if isinstance(named, str) and named else index + 1}"
    text, confidence = said.get("text"), said.get("confidence", 1.0)
    if not isinstance(text, str) or not text.strip() or not _is_share(confidence):
        return _left_out(ref, Reason.INVALID_FORMAT)
    return Fragment(
        layer=Layer.SETTINGS,
        source="memory",
        source_ref=ref,
        text=text,
        confidence=float(confidence),
        place=Place(GROUP, MEMORY, index),
    )


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= 1


def _left_out(ref: str, reason: Reason) -> LeftOut:
    return LeftOut(layer=Layer.SETTINGS, source="memory", source_ref=ref, reason=reason)


def _degraded(*left_out: LeftOut, fragments: tuple[Fragment, ...] = ()) -> Fetched:
    return Fetched(
        fragments=fragments,
        left_out=left_out,
        warnings=(warning_text(WarningCode.MEMORY_UNAVAILABLE),) if left_out else (),
    )
