"""The client as features see it, and the calls that the daemon makes to it."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import anyio
import msgspec

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc import messages
from creonowd.rpc.channel import Role

T = TypeVar("T")
Merge = Callable[[Any, Any], Any]


class Peer(Protocol):
    """One client. Lives as long as its connection."""

    @property
    def id(self) -> str:
        """The name of the connection in logs and stores; never a secret."""
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
        """Call the client; fails with TIMEOUT, DISCONNECTED or HOST_ERROR."""
        ...

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Run `callback` once when the connection ends; at once if it has."""
        ...


class _PendingCall:
    def __init__(self) -> None:
        self.done = anyio.Event()
        self.response: messages.Response | None = None


class Calls:
    """The calls of one connection that have no reply yet."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._count = 0
        self._pending: dict[str, _PendingCall] = {}
        self._closed = False

    async def call(self, method: str, params: Any, result: type[T], timeout_ms: int) -> T:
        """Call the client and decode its reply."""
        if self._closed:
            raise DaemonError(ErrorCode.DISCONNECTED)
        self._count += 1
        number = f"creonowd-{self._count}"
        pending = self._pending[number] = _PendingCall()
        self._send(messages.call(number, method, params))
        try:
            with anyio.fail_after(timeout_ms / 1000):
                await pending.done.wait()
        except TimeoutError:
            raise DaemonError(ErrorCode.TIMEOUT, f"The client did not answer {method}.") from None
        finally:
            del self._pending[number]
            if not pending.done.is_set():
                self._send(messages.notification("$/cancelRequest", {"id": number}))
        return _decode_result(pending.response, method, result)

    def resolve(self, response: messages.Response) -> bool:
        """Pass a reply to the call that waits for it; False if none does."""
        pending = self._pending.get(response.id) if isinstance(response.id, str) else None
        if pending is None or pending.done.is_set():
            return False
        pending.response = response
        pending.done.set()
        return True

    def close(self) -> None:
        """Fail every pending call: the client has gone."""
        self._closed = True
        for pending in self._pending.values():
            pending.done.set()


def _decode_result(response: messages.Response | None, method: str, result: type[T]) -> T:
    if response is None:
        raise DaemonError(ErrorCode.DISCONNECTED)
    if response.error is not None:
        raise messages.error_of(response)
    try:
        return msgspec.json.decode(response.result, type=result)
    except msgspec.ValidationError as error:
        raise DaemonError(
            ErrorCode.HOST_ERROR, f"The client's answer to {method} does not fit: {error}."
        ) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise DaemonError(
            ErrorCode.HOST_ERROR, f"The client's answer to {method} is not JSON."
        ) from None
