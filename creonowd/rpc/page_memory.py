"""The memory that all pages together may fill with messages that are not answered yet.

A page that has begun a large message is read on only when it has its turn, one page at a time and
each for one message; what has been read counts until it is answered. Owners are read as before, and
so are the short messages of pages, such as cancellations and replies; a page that has many short
requests in flight meanwhile gets IPC_BACKPRESSURE.
"""

from typing import Protocol

import anyio
from anyio.abc import TaskGroup

PAGES_BYTES = 2 * 1024 * 1024
SHORT_MESSAGE = 128 * 1024
# A page that has its turn and does not send the rest of its message keeps others out.
TURN_SECONDS = 5.0


class Page(Protocol):
    """The connection of a page, as far as it waits for room."""

    def resume_or_pause(self) -> None:
        """Read on, if there is room for it now."""
        ...

    def abort_unfinished(self) -> None:
        """End the connection at once, unless its message has come by now."""
        ...


class PageMemory:
    """Count what pages have asked, and give them turns to send more."""

    def __init__(self, tasks: TaskGroup, turn_seconds: float = TURN_SECONDS) -> None:
        self.bytes_in_flight = 0
        self.reader: Page | None = None
        self._tasks = tasks
        self._turn_seconds = turn_seconds
        self._waiting: dict[Page, None] = {}
        self._turns = 0
        self._is_watched = False

    @property
    def is_full(self) -> bool:
        """Whether no further large message may come in."""
        return self.bytes_in_flight >= PAGES_BYTES

    def may_read_on(self, page: Page) -> bool:
        """Return whether a page that has begun a large message has its turn; else let it wait."""
        if self.reader is page:
            return True
        self._waiting.setdefault(page)
        if self.is_full or self.reader is not None or next(iter(self._waiting)) is not page:
            return False
        del self._waiting[page]
        self.reader = page
        self._turns += 1
        if not self._is_watched:
            self._is_watched = True
            self._tasks.start_soon(self._watch)
        return True

    def stop_waiting(self, page: Page) -> None:
        """Go on without a page that has begun no large message, or none any more."""
        if self._waiting:
            self._waiting.pop(page, None)
        self.end_turn(page)

    def end_turn(self, page: Page) -> None:
        """Let others read once the large message has come."""
        if self.reader is page:
            self.reader = None
            self._wake()

    def add(self, size: int) -> None:
        """Count a request that was accepted."""
        self.bytes_in_flight += size

    def remove(self, size: int) -> None:
        """Count a request no longer, since it was answered."""
        self.bytes_in_flight -= size
        if self._waiting:
            self._wake()

    def forget(self, page: Page) -> None:
        """Drop a page whose connection has ended."""
        self._waiting.pop(page, None)
        self.end_turn(page)

    def _wake(self) -> None:
        """Let those who wait look again, the first first."""
        if self.is_full:
            return
        for page in list(self._waiting):
            if page in self._waiting:
                page.resume_or_pause()

    async def _watch(self) -> None:
        """End a page that keeps its turn and sends nothing, as long as others wait for theirs."""
        try:
            while (page := self.reader) is not None:
                turn = self._turns
                await anyio.sleep(self._turn_seconds)
                if self.reader is page and turn == self._turns and self._waiting:
                    page.abort_unfinished()
        finally:
            self._is_watched = False
