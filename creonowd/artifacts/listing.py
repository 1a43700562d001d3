"""When `manifest.json` is written: small ones at every change, big ones now and then.

Knows how far the index on the disk is behind; the records themselves are the truth.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from creonowd.artifacts import ledger
from creonowd.artifacts.ledger import Manifest
from creonowd.errors import DaemonError

_AT_ONCE = 64
_SHARE_UNLISTED = 8


class Listing:
    """The index of one conversation on the disk. Not guarded: its owner is the only writer."""

    def __init__(self, folder: Path, describe: Callable[[], Manifest]) -> None:
        self._folder = folder
        self._describe = describe
        self._unlisted = 0

    @property
    def is_behind(self) -> bool:
        """Whether something is not listed yet."""
        return self._unlisted > 0

    def note_change(self, records: int) -> None:
        """Take note of a change, and list it if the conversation is small or has changed a lot.

        The change itself is done, so a disk that refuses the index only makes it wait.
        """
        self._unlisted += 1
        if records <= max(_AT_ONCE, _SHARE_UNLISTED * self._unlisted):
            with contextlib.suppress(DaemonError):
                self.write()

    def write(self) -> None:
        """Bring the index on the disk up to date."""
        ledger.write_manifest(self._folder, self._describe())
        self._unlisted = 0
