"""One request on its way: waiting, running, answered exactly once. Knows no transport."""

from collections.abc import Callable
from enum import Enum
from typing import Any

import anyio
from msgspec import UNSET

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc import messages
from creonowd.rpc.channel import Channel
from creonowd.rpc.messages import Request
from creonowd.rpc.payload import NO_META, Meta, Payload

Sink = Callable[[dict[str, Any] | None], None]


class Fate(Enum):
    """Why a request was stopped from outside."""

    CANCELED = ErrorCode.CANCELED
    SHUTTING_DOWN = ErrorCode.SHUTTING_DOWN
    REVOKED = ErrorCode.UNAUTHENTICATED
    GONE = ErrorCode.DISCONNECTED


class Ticket:
    """A request that has been accepted and not answered yet."""

    def __init__(self, request: Request, channel: Channel, sink: Sink, *, chinese: bool) -> None:
        self.request = request
        self.channel = channel
        self.fate: Fate | None = None
        self.meta: Meta = NO_META
        self.answered = False
        self._scope: anyio.CancelScope | None = None
        self._sink = sink
        self._chinese = chinese

    def read(self) -> Payload:
        """Decode the payload, and note what it says about the request itself."""
        payload = self.request.payload or self.channel.payload.read(self.request.params)
        self.meta = payload.meta
        return payload

    def stop(self, fate: Fate) -> None:
        """End the work, whether it runs or still waits."""
        self.fate = self.fate or fate
        if self._scope is not None:
            self._scope.cancel()

    def scope(self, seconds: float | None) -> anyio.CancelScope:
        """Open the scope that the work runs in; it ends with the deadline or with `stop`."""
        deadline = None if seconds is None else anyio.current_time() + seconds
        self._scope = (
            anyio.CancelScope() if deadline is None else anyio.CancelScope(deadline=deadline)
        )
        if self.fate is not None:
            self._scope.cancel()
        return self._scope

    def stopped(self) -> DaemonError:
        """Say why the scope ended the work."""
        return DaemonError(ErrorCode.TIMEOUT if self.fate is None else self.fate.value)

    def answer(self, result: Any) -> None:
        """Reply once."""
        self._settle(lambda to: messages.reply(to, result))

    def fail(self, error: DaemonError) -> None:
        """Reply once with an error, in the form that the channel uses."""
        if self.channel.envelope:
            self.answer(envelope_of(error, chinese=self._chinese))
        else:
            self._settle(lambda to: messages.failure(to, error, chinese=self._chinese))

    def _settle(self, message: Callable[[Any], dict[str, Any]]) -> None:
        if self.answered:
            return
        self.answered = True
        wanted = self.request.id is not UNSET and self.fate is not Fate.GONE
        self._sink(message(self.request.id) if wanted else None)


def envelope_of(error: DaemonError, *, chinese: bool) -> dict[str, Any]:
    """Spell a failure as the renderer sees it."""
    spelled = messages.error_object(error, chinese=chinese)
    body = {"code": error.code, "message": spelled["message"]}
    return {"ok": False, "error": body | ({"details": error.details} if error.details else {})}
