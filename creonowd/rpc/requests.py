"""The requests of one connection: admitted, waiting, running, answered.

Knows channels as rows of a table and their rights; knows no bytes and no feature.
"""

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from enum import Enum
from typing import TYPE_CHECKING, Any

import anyio
import msgspec
import structlog
from msgspec import UNSET, Raw

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc import messages
from creonowd.rpc.boundary import as_daemon_error
from creonowd.rpc.channel import NO_META, Channel, Deadline, Meta, Payload
from creonowd.rpc.messages import Request

if TYPE_CHECKING:
    from creonowd.rpc.connection import Connection
    from creonowd.rpc.server import Server

Sink = Callable[[dict[str, Any] | None], None]


class StopReason(Enum):
    """Why a request was stopped from outside."""

    CANCELED = ErrorCode.CANCELED
    SHUTTING_DOWN = ErrorCode.SHUTTING_DOWN
    REVOKED = ErrorCode.UNAUTHENTICATED
    GONE = ErrorCode.DISCONNECTED


class PendingRequest:
    """A request that has been accepted and not answered yet."""

    def __init__(self, request: Request, channel: Channel, sink: Sink, *, chinese: bool) -> None:
        self.request = request
        self.channel = channel
        self.fate: StopReason | None = None
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

    def stop(self, fate: StopReason) -> None:
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
        wanted = self.request.id is not UNSET and self.fate is not StopReason.GONE
        self._sink(message(self.request.id) if wanted else None)


def envelope_of(error: DaemonError, *, chinese: bool) -> dict[str, Any]:
    """Spell a failure as the renderer sees it."""
    spelled = messages.error_object(error, chinese=chinese)
    body = {"code": error.code, "message": spelled["message"]}
    return {"ok": False, "error": body | ({"details": error.details} if error.details else {})}


reporter: ContextVar[Callable[[Any], None] | None] = ContextVar("reporter", default=None)


def report_progress(value: Any) -> None:
    """Tell the caller how far the current request is; nothing happens if nobody asked.

    Call it on the event loop; from a worker thread go through `anyio.from_thread`.
    """
    if (report := reporter.get()) is not None:
        report(value)


CANCEL = "$/cancelRequest"
PROGRESS = "$/progress"
_ALWAYS = frozenset({"exit", "shutdown", "app:ping"})

log = structlog.stdlib.get_logger(__name__)


class Requests:
    """What one client asked and has no answer to yet."""

    def __init__(self, server: "Server", connection: "Connection") -> None:
        self._server = server
        self._connection = connection
        self._tickets: dict[Any, PendingRequest] = {}
        self._waiting: deque[PendingRequest] = deque()
        self._parked = 0
        self._session: Any = None

    @property
    def in_flight(self) -> int:
        """How many requests are accepted and not answered."""
        return len(self._tickets) + self._parked

    def start_waiting(self) -> None:
        """Start what waited for the client to read again."""
        while self._waiting and not self._connection.outbox.congested:
            self._start(self._waiting.popleft())

    def stop(self, fate: StopReason) -> None:
        """Stop everything in flight; waiting requests are answered at once."""
        waiting, self._waiting = self._waiting, deque()
        for ticket in list(self._tickets.values()):
            ticket.stop(fate)
        for ticket in waiting:
            ticket.fail(ticket.stopped())
            self._done(ticket)

    async def invoke(self, name: str, payload: Raw) -> Any:
        """Run another channel with this connection's own rights, and count it as its own."""
        channel = self._server.channels.get(name)
        if channel is None or channel.envelope:
            raise DaemonError(ErrorCode.IPC_CHANNEL_FORBIDDEN, f"There is no channel {name!r}.")
        self._check(channel)
        self._server.metrics.started(name)
        started, code = self._server.clock.monotonic(), str(ErrorCode.CANCELED)
        try:
            result = await self._invoked(channel, payload)
            code = None
        except Exception as raised:  # noqa: BLE001 - the boundary
            error = as_daemon_error(raised, name, self._server.clock)
            code = str(error.code)
            raise error from None
        finally:
            seconds = self._server.clock.monotonic() - started
            self._server.metrics.finished(name, seconds, code)
        return result

    async def _invoked(self, channel: Channel, payload: Raw) -> Any:
        read = channel.payload.read(payload)
        self._server.metrics.counters["payload.unknown_fields"] += read.unknown
        seconds = self._seconds(channel, read.meta.timeout_ms)
        with anyio.CancelScope() as scope:
            if seconds is not None:
                scope.deadline = anyio.current_time() + seconds
            result = channel.handler(self._open_session(), read.params)
            return result if channel.inline else await result
        raise DaemonError(ErrorCode.TIMEOUT)

    def receive(self, request: Request, sink: Sink, *, waited: bool = False) -> None:
        """Admit a request and start it, or answer why not; park it while its channel is loading."""
        if not self._server.complete and request.method not in self._server.channels:
            self._park(request, sink)
            return
        if request.method == CANCEL:
            self._cancel(request)
        channel = self._server.channels.get(request.method)
        if channel is None:
            self._unknown(request, sink)
            return
        ticket = PendingRequest(request, channel, sink, chinese=self._connection.chinese)
        try:
            self._admit(ticket, waited=waited)
        except DaemonError as error:
            self._server.metrics.counters[f"refused.{error.code}"] += 1
            ticket.fail(error)
            return
        self._tickets[_key(ticket)] = ticket
        if self._connection.outbox.congested:
            self._waiting.append(ticket)
        else:
            self._start(ticket)

    def _park(self, request: Request, sink: Sink) -> None:
        self._parked += 1

        def resume() -> None:
            self._parked -= 1
            self.receive(request, sink, waited=True)
            self._connection.close_if_done()

        self._server.park(resume)

    def _unknown(self, request: Request, sink: Sink) -> None:
        if isinstance(request.id, msgspec.UnsetType):
            self._server.metrics.counters["notifications.unknown"] += request.method != CANCEL
            sink(None)
        elif request.method == CANCEL:
            sink(messages.reply(request.id, None))
        else:
            name = repr(request.method[:200])
            error = DaemonError(ErrorCode.IPC_CHANNEL_FORBIDDEN, f"There is no channel {name}.")
            self._connection.refuse(request.id, error, sink)

    def _admit(self, ticket: PendingRequest, *, waited: bool) -> None:
        limit = self._connection.most_in_flight
        if len(self._tickets) >= limit:
            raise DaemonError(ErrorCode.IPC_BACKPRESSURE, limit=limit, retryAfterMs=100)
        if ticket.request.id is not None and ticket.request.id in self._tickets:
            raise DaemonError(
                ErrorCode.INVALID_REQUEST, "A request with this id is still in flight; use another."
            )
        late = self._server.stopping.is_set() and not waited
        if late and ticket.channel.name not in _ALWAYS:
            raise DaemonError(ErrorCode.SHUTTING_DOWN)
        self._check(ticket.channel)

    def _check(self, channel: Channel) -> None:
        if channel.open:
            return
        grant = self._connection.grant
        if grant is None or not self._connection.admitted:
            raise DaemonError(
                ErrorCode.UNAUTHENTICATED, "Send `initialize` with a valid token first."
            )
        if not grant.allows(channel):
            forbidden = channel.refusal is ErrorCode.FORBIDDEN
            log.warning(
                "channel_forbidden" if forbidden else channel.refusal.lower(),
                channel=channel.name,
                role=self._connection.role,
                peer=self._connection.id,
            )
            raise DaemonError(
                channel.refusal,
                f"A {self._connection.role} connection may not call {channel.name}.",
                role=self._connection.role,
                required=channel.role,
            )

    def _cancel(self, request: Request) -> None:
        try:
            wanted = msgspec.json.decode(bytes(request.params), type=dict[str, Any]).get("id")
        except msgspec.MsgspecError:
            return
        known = isinstance(wanted, str | int | float) and not isinstance(wanted, bool)
        ticket = self._tickets.get(wanted) if known else None
        if ticket is None:
            return
        ticket.stop(StopReason.CANCELED)
        if ticket in self._waiting:
            self._waiting.remove(ticket)
            ticket.fail(ticket.stopped())
            self._done(ticket)

    def _open_session(self) -> Any:
        if self._session is None:
            opened = self._server.open_session(self._connection)
            if not self._server.complete:
                return opened
            self._session = opened
        return self._session

    def _start(self, ticket: PendingRequest) -> None:
        self._server.metrics.started(ticket.channel.name)
        if ticket.channel.inline:
            self._run_inline(ticket)
        else:
            self._server.tasks.start_soon(self._run, ticket)

    def _run_inline(self, ticket: PendingRequest) -> None:
        started = self._server.clock.monotonic()
        error: DaemonError | None = None
        try:
            payload = ticket.read()
            self._server.metrics.counters["payload.unknown_fields"] += payload.unknown
            ticket.answer(ticket.channel.handler(self._open_session(), payload.params))
        except Exception as raised:  # noqa: BLE001 - the boundary
            error = as_daemon_error(raised, ticket.channel.name, self._server.clock)
            ticket.fail(error)
        self._finished(ticket, started, error)

    async def _run(self, ticket: PendingRequest) -> None:
        started = self._server.clock.monotonic()
        error: DaemonError | None = None
        try:
            payload = ticket.read()
            self._server.metrics.counters["payload.unknown_fields"] += payload.unknown
            ticket.answer(await self._bounded(ticket, payload.params))
        except Exception as raised:  # noqa: BLE001 - the boundary
            error = as_daemon_error(raised, ticket.channel.name, self._server.clock)
            ticket.fail(error)
        finally:
            self._finished(ticket, started, error)

    async def _bounded(self, ticket: PendingRequest, params: Any) -> Any:
        token = ticket.meta.progress_token
        if token is not None:
            reporter.set(lambda value: self._progress(ticket, token, value))
        with ticket.scope(self._seconds(ticket.channel, ticket.meta.timeout_ms)):
            return await ticket.channel.handler(self._open_session(), params)
        raise ticket.stopped()

    def _progress(self, ticket: PendingRequest, token: str | int, value: Any) -> None:
        if not ticket.answered:
            self._connection.notify(PROGRESS, {"token": token, "value": value}, key=str(token))

    def _seconds(self, channel: Channel, asked_ms: int | None) -> float | None:
        settings = self._server.settings
        defaults: dict[Deadline, int | None] = {
            Deadline.REQUEST: settings.request_timeout_ms,
            Deadline.SKILL: settings.skill_timeout_ms,
            Deadline.NONE: None,
        }
        chosen = asked_ms if asked_ms is not None else defaults[channel.deadline]
        return None if chosen is None else chosen / 1000

    def _finished(self, ticket: PendingRequest, started: float, error: DaemonError | None) -> None:
        seconds = self._server.clock.monotonic() - started
        code = None if error is None else str(error.code)
        self._server.metrics.finished(ticket.channel.name, seconds, code)
        self._done(ticket)

    def _done(self, ticket: PendingRequest) -> None:
        self._tickets.pop(_key(ticket), None)
        self._connection.close_if_done()


def _key(ticket: PendingRequest) -> Any:
    named = ticket.request.id
    return ticket if named is UNSET or named is None else named
