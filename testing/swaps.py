"""Swap a folder for a link that leads elsewhere, between any two calls that a piece of work makes.

What another process can do at a chance moment is done here at every moment in turn.
"""

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

# How many calls of the system later the folder is put back; None is never.
Spans = Sequence[int | None]
SPANS: Spans = (1, 3, 8, 21, None)
EVERY_SPAN: Spans = (*range(1, 64), None)

_PURE = {"fspath", "_path_normpath", "fsencode", "fsdecode", "getpid"}


class FolderSwap:
    """A folder that is swapped for a link before one call of the system, and back before another."""

    def __init__(self, folder: Path, outside: Path) -> None:
        self._folder, self._outside = folder, outside
        self._aside = folder.with_name(f"{folder.name} aside")
        self._lock = threading.RLock()
        self.calls = 0

    def run(self, work: Callable[[], T], start: int, span: int | None) -> T:
        """Do the work with a link in the folder's place from call `start` on, for `span` calls."""
        self.calls = 0
        inside = False

        def observe(_frame: FrameType, event: str, called: Any) -> None:
            nonlocal inside
            if event != "c_call" or inside or not _reaches_the_disk(called):
                return
            with self._lock:
                inside = True
                try:
                    self.calls += 1
                    if self.calls == start:
                        self.put_link()
                    elif span is not None and self.calls == start + span:
                        self.put_back()
                finally:
                    inside = False

        threading.setprofile(observe)
        sys.setprofile(observe)
        try:
            return work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self.put_back()

    def put_link(self) -> None:
        """Put a link in the folder's place."""
        with contextlib.suppress(OSError):
            self._folder.rename(self._aside)
            self._folder.symlink_to(self._outside, target_is_directory=True)

    def put_back(self) -> None:
        """Put the folder back; what was made in its place goes."""
        if self._aside.exists():
            if self._folder.is_symlink():
                self._folder.unlink()
            with contextlib.suppress(OSError):
                self._aside.rename(self._folder)


def _reaches_the_disk(called: Any) -> bool:
    module = getattr(called, "__module__", None)
    return module in {"posix", "nt", "_io"} and called.__name__ not in _PURE


def at_every_call(
    folder: Path,
    outside: Path,
    work: Callable[[], T],
    spans: Spans = SPANS,
    prepare: Callable[[], object] = lambda: None,
) -> Iterator[T | Exception]:
    """Do the work again and again, with the folder swapped at each of its calls, for each span.

    Yield what each run returned or raised. `prepare` is called before each run.
    """
    swap = FolderSwap(folder, outside)
    start = 1
    while True:
        last = 0
        for span in spans:
            prepare()
            try:
                yield swap.run(work, start, span)
            except Exception as error:  # noqa: BLE001 - a refusal is one of the results
                yield error
            last = max(last, swap.calls)
        if start > last:
            return
        start += 1
