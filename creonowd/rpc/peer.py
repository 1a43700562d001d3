"""The other end of a connection, as features see it. Knows no bytes."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from creonowd.rpc.channel import Role

T = TypeVar("T")
Merge = Callable[[Any, Any], Any]


class Peer(Protocol):
    """One client. Lives as long as its connection."""

    @property
    def id(self) -> str:
        """Tell connections apart in logs and stores; never a secret."""
        ...

    @property
    def role(self) -> Role:
        """What this connection may do; comes from the transport or its token."""
        ...

    @property
    def utf16(self) -> bool:
        """Whether positions on this connection count UTF-16 units instead of code points."""
        ...

    @property
    def connected(self) -> bool:
        """Whether anything can still be sent."""
        ...

    def notify(self, name: str, fields: Any, *, key: str = "", merge: Merge | None = None) -> None:
        """Send an event; never blocks.

        While the reader lags, a waiting event of the same name and `key` is replaced by
        `merge(waiting, fields)`; without `merge` the newest wins and the older counts as lagged.
        """
        ...

    async def call(self, name: str, params: Any, result: type[T], timeout_ms: int) -> T:
        """Ask the client; DaemonError TIMEOUT, DISCONNECTED or HOST_ERROR when it does not answer well."""
        ...

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Run `callback` once when the connection ends; at once if it has."""
        ...
