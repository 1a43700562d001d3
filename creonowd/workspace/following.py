"""Follow the changes of one folder until told to stop. Blocks its thread.

Knows watchfiles and snapshots; knows no project and no subscriber.
"""

import sys
import threading
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path

import structlog
from watchfiles._rust_notify import RustNotify  # the documented low-level interface

from creonowd.workspace.snapshot import Identity, Snapshot, difference, take

QUIET_MS = 50
GATHER_MS = 400
PULSE_MS = 1000
FLOOD = 500

log = structlog.get_logger(__name__)

# A recursive watch on Linux costs one handle per folder anyhow, follows links out of the project
# and enters what does not matter; elsewhere it is one handle, and handles on inner folders would
# keep them from being deleted.
ONE_BY_ONE = sys.platform == "linux"

Armed = Callable[[], None]
Tell = Callable[[frozenset[str]], None]
Notices = set[tuple[int, str]]


class End(StrEnum):
    """Why nobody follows a folder any more."""

    STOPPED = "stopped"
    GONE = "gone"
    FAILED = "failed"


def follow(
    root: Path,
    stop: threading.Event,
    *,
    armed: Armed,
    tell: Tell,
    one_by_one: bool = ONE_BY_ONE,
) -> End:
    """Call `armed` when nothing can be missed, then `tell` with the exact paths of each change.

    `armed` is called again whenever folders came or went and listening began anew.
    """
    try:
        return _follow(root, stop, armed, tell, one_by_one=one_by_one)
    except (OSError, RuntimeError) as error:
        log.warning("context_watch_failed", error=type(error).__name__)
        return End.FAILED


def _follow(
    root: Path, stop: threading.Event, armed: Armed, tell: Tell, *, one_by_one: bool
) -> End:
    view = take(root)
    while True:
        listened = _listened(view, one_by_one=one_by_one)
        stale = False
        with _listen(root, listened, one_by_one=one_by_one) as notices:
            view = _told(view, take(root), frozenset(), tell)
            if not view:
                return End.GONE
            armed()
            while not stale and _listened(view, one_by_one=one_by_one) == listened:
                raw = notices.watch(GATHER_MS, QUIET_MS, PULSE_MS, stop)
                if stop.is_set():
                    return End.STOPPED
                named = _named(root, raw if isinstance(raw, set) else set())
                # A new folder may have the number of the old one; then only this tells them apart.
                stale = named is None or not named.isdisjoint(listened)
                view = _after(root, view, named, tell)


def _listened(view: Snapshot, *, one_by_one: bool) -> dict[str, Identity]:
    return {folder: seen.identity for folder, seen in view.items() if one_by_one or not folder}


def _listen(root: Path, folders: Iterable[str], *, one_by_one: bool) -> RustNotify:
    return RustNotify([str(root / f) for f in folders], False, False, 0, not one_by_one, True)


def _named(root: Path, notices: Notices) -> frozenset[str] | None:
    """Tell which project-relative paths the notices name; None if they cannot be relied upon."""
    if len(notices) > FLOOD:
        return None
    named = {_relative(root, path) for _, path in notices}
    return None if None in named else frozenset(path for path in named if path is not None)


def _after(root: Path, view: Snapshot, named: frozenset[str] | None, tell: Tell) -> Snapshot:
    if named is None:
        return _told(view, take(root), frozenset(), tell)
    dirty = named | {path.rpartition("/")[0] for path in named}
    return _told(view, take(root, view, dirty), named, tell)


def _told(
    before: Snapshot,
    after: Snapshot,
    named: frozenset[str],
    tell: Tell,
) -> Snapshot:
    """Tell what differs, and what was named and is there: two quick writes may look like one."""
    present = {path for path in named if _holds(after, path)}
    if changed := frozenset(difference(before, after) | present):
        tell(changed)
    return after


def _holds(snapshot: Snapshot, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return folder in snapshot and name in snapshot[folder].files


def _relative(root: Path, path: str) -> str | None:
    try:
        found = Path(path).relative_to(root).as_posix()
    except ValueError:
        return None
    return "" if found == "." else found
