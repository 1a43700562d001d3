"""Threads of the plot: what was planted and is to be resolved, one per file of `threads/`.

Front matter says where it was `planted`, where it is `due`, its `status` and, once it is resolved,
where (`resolved`).
"""

from enum import StrEnum
from typing import Any, cast

from creonowd.context.fragment import Fragment, FragmentKind, Layer, Rule
from creonowd.context.source import SourceResult
from creonowd.context.story import Story
from creonowd.context.timeline import bounds
from creonowd.errors import WarningCode, Wording
from creonowd.sources.file_fragments import NO_PLACE, FileFaultError, FileKind, read_files
from creonowd.storage import front_matter
from creonowd.workspace.creonow_tree import Folder

THREAD_GROUP = 2

_OPEN = frozenset({"open", "未收", "未回收", "进行中"})
_CLOSED = frozenset(
    {"resolved", "closed", "done", "dropped", "已收", "已回收", "回收", "已完成", "放弃", "废弃"}
)
_STATUS = Wording("`status` must be open, resolved or dropped", "status 须为 未收、已收 或 放弃")
_NAMES = Wording("`names` must be texts", "names 须为文本")


class ThreadState(StrEnum):
    """How a thread stands at a place; `due` in the very document in which it is to be resolved."""

    NOT_YET = "not_yet"
    """It is planted later."""
    OPEN = "open"
    """It is planted and not resolved."""
    DUE = "due"
    """It is to be resolved in this very document."""
    OVERDUE = "overdue"
    """It should have been resolved before."""
    RESOLVED = "resolved"
    """It is resolved."""


OPEN = frozenset({ThreadState.OPEN, ThreadState.DUE, ThreadState.OVERDUE})


def plot_threads(folder: Folder) -> SourceResult:
    """Read every thread; one that is resolved holds until where that happened."""
    kind = FileKind(
        layer=Layer.SETTINGS,
        source="threads",
        unavailable=WarningCode.THREADS_UNAVAILABLE,
        group=THREAD_GROUP,
    )
    return read_files(kind, folder, lambda _path: True, _fields)


def _fields(_path: str, text: str) -> dict[str, Any]:
    values = front_matter.split(text).values
    status = values.get("status", "open")
    if not isinstance(status, str) or status.strip().casefold() not in _OPEN | _CLOSED:
        raise FileFaultError(_STATUS, near="status")
    names: Any = values.get("names", [])
    listed = cast("list[Any]", names) if isinstance(names, list) else [names]
    if not all(isinstance(name, str) for name in listed):
        raise FileFaultError(_NAMES, near="names")
    try:
        span = bounds({"from": values.get("planted"), "until": values.get("resolved")})
        due = bounds({"from": values.get("due")}).since
    except ValueError:
        raise FileFaultError(NO_PLACE) from None
    closed = status.strip().casefold() in _CLOSED
    return {
        "kind": FragmentKind.THREAD,
        "names": tuple(cast("list[str]", listed)),
        "since": span.since,
        "until": span.until if closed else "",
        "due": due,
        "excluded": Rule.NO_LONGER if closed and not span.until else None,
    }


def thread_state(thread: Fragment, story: Story, document: int) -> ThreadState:
    """Return how a thread stands in a document of the story, by its number."""
    if thread.excluded is not None:
        return ThreadState.RESOLVED
    if thread.since and story.find(thread.since).place.document > document:
        return ThreadState.NOT_YET
    if thread.until and story.find(thread.until).place.document <= document:
        return ThreadState.RESOLVED
    found = story.find(thread.due) if thread.due else None
    if found is None or not found.known or found.place.document > document:
        return ThreadState.OPEN
    return ThreadState.DUE if found.place.document == document else ThreadState.OVERDUE
