"""The other end of a connection, as features see it. Knows no bytes."""

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


class _Waiting:
    def __init__(self) -> None:
        self.settled = anyio.Event()
        self.response: messages.Response | None = None


class Calls:
    """The calls of one connection that have no reply yet."""

    def __init__(self, send: Callable[[Any], None]) -> None:
        self._send = send
        self._made = 0
        self._waiting: dict[str, _Waiting] = {}
        self._closed = False

    async def ask(self, method: str, params: Any, result: type[T], timeout_ms: int) -> T:
        """Call the client and wait for a reply of the right shape."""
        if self._closed:
            raise DaemonError(ErrorCode.DISCONNECTED)
        self._made += 1
        number = f"creonowd-{self._made}"
        waiting = self._waiting[number] = _Waiting()
        self._send(messages.call(number, method, params))
        try:
            with anyio.fail_after(timeout_ms / 1000):
                await waiting.settled.wait()
        except TimeoutError:
            raise DaemonError(ErrorCode.TIMEOUT, f"The client did not answer {method}.") from None
        finally:
            del self._waiting[number]
            if not waiting.settled.is_set():
                self._send(messages.notification("$/cancelRequest", {"id": number}))
        return _read(waiting.response, method, result)

    def settle(self, response: messages.Response) -> bool:
        """Hand a reply to the call that waits for it; False if none does."""
        waiting = self._waiting.get(response.id) if isinstance(response.id, str) else None
        if waiting is None or waiting.settled.is_set():
            return False
        waiting.response = response
        waiting.settled.set()
        return True

    def close(self) -> None:
        """Fail every call that still waits: the client has gone."""
        self._closed = True
        for waiting in self._waiting.values():
            waiting.settled.set()


def _read(response: messages.Response | None, method: str, result: type[T]) -> T:
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
