"""A client that remembers what it was told; the test double of `Peer`."""

from collections.abc import Callable
from typing import Any, TypeVar

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Role
from creonowd.rpc.peer import Merge

T = TypeVar("T")


class RecordingPeer:
    """Keeps every notification, answers no call, and can hang up."""

    def __init__(self, name: str = "test", role: Role = Role.OWNER, *, utf16: bool = False) -> None:
        self.id = name
        self.role = role
        self.utf16 = utf16
        self.connected = True
        self.events: list[tuple[str, Any]] = []
        self._closers: list[Callable[[], None]] = []

    def notify(self, name: str, fields: Any, *, key: str = "", merge: Merge | None = None) -> None:
        self.events.append((name, fields))

    async def call(self, name: str, params: Any, result: type[T], timeout_ms: int) -> T:
        raise DaemonError(ErrorCode.DISCONNECTED)

    def when_closed(self, callback: Callable[[], None]) -> None:
        if self.connected:
            self._closers.append(callback)
        else:
            callback()

    def hang_up(self) -> None:
        self.connected = False
        for callback in self._closers:
            callback()
