"""The requests of one connection: accept or refuse, run within a deadline, answer once, measure.

This is the one place where exceptions become wire errors.
"""

import errno
import math
import weakref
from array import array
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import anyio
import msgspec
import structlog
from msgspec import UNSET, Raw

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, Wording, disk_error
from creonowd.model import Model
from creonowd.rpc import messages
from creonowd.rpc.channel import NO_META, Channel, Deadline, Meta, Payload, Role, invalid_payload
from creonowd.rpc.messages import SHORT_MESSAGE, ErrorStyle, Request

if TYPE_CHECKING:
    from creonowd.rpc.connection import Connection
    from creonowd.rpc.server import Server

LATENCIES = 1024
CANCEL = "$/cancelRequest"
PROGRESS = "$/progress"
LATE_SECONDS = 0.25
RENDERER_RUNNING = 6
ALLOWED_WHILE_STOPPING = frozenset({"exit", "shutdown", "app:ping"})

Sink = Callable[[dict[str, Any] | None], None]

log = structlog.stdlib.get_logger(__name__)
_reporter: ContextVar[Callable[[Any], None] | None] = ContextVar("reporter", default=None)
_current: ContextVar["PendingRequest | None"] = ContextVar("current", default=None)


def report_progress(value: Any) -> None:
    """Send how far the current request is, if its caller asked for progress.

    Call it on the event loop; from a worker thread go through `anyio.from_thread`.
    """
    if (report := _reporter.get()) is not None:
        report(value)


class StopReason(Enum):
    """Why a request was stopped from outside, with the code that it fails with."""

    CANCELED = ErrorCode.CANCELED
    SHUTTING_DOWN = ErrorCode.SHUTTING_DOWN
    REVOKED = ErrorCode.UNAUTHENTICATED
    GONE = ErrorCode.DISCONNECTED


class PendingRequest:
    """A request that has been accepted and not answered yet."""

    def __init__(self, request: Request, channel: Channel, sink: Sink, style: ErrorStyle) -> None:
        self.request = request
        self.channel = channel
        self.meta: Meta = NO_META
        self.answered = False
        self.waits_for_turn = False
        self.page_bytes = 0
        self._stop_reason: StopReason | None = None
        self._scope: anyio.CancelScope | None = None
        self._late_at = math.inf
        self._payload = request.payload
        self._sink = sink
        self._style = style

    @property
    def key(self) -> Any:
        """What it is found by: its id, or itself if it has none."""
        number = self.request.id
        return self if number is UNSET or number is None else number

    def read(self) -> Payload:
        """Decode the payload, and keep its fields about the request itself."""
        if self._payload is None:
            self._payload = self.channel.payload.read(self.request.params)
        self.meta = self._payload.meta
        return self._payload

    def take(self) -> Payload:
        """Return the payload and drop it here, since a timer may keep the request alive for longer."""
        payload = self.read()
        self._payload = None
        self.request = Request(self.request.method, Raw(), self.request.id)
        return payload

    def release(self) -> None:
        """Let go of the connection, since a timer may keep the request alive for longer."""
        self._sink = _discard
        self._scope = None

    def stop(self, reason: StopReason) -> None:
        """End the work, whether it runs or still waits."""
        self._stop_reason = self._stop_reason or reason
        if self._scope is not None:
            self._scope.cancel()
            self.fail_after(0)

    def fail_after(self, seconds: float | None) -> None:
        """Set when `fail_if_late` answers, for work in a thread that does not end with its deadline."""
        if seconds is not None:
            self._late_at = anyio.current_time() + seconds + LATE_SECONDS

    def fail_if_late(self, now: float) -> None:
        """Answer with an error if that time has passed; what the thread returns is dropped."""
        if now >= self._late_at:
            self.fail(self.stop_error())

    def scope(self, seconds: float | None) -> anyio.CancelScope:
        """Open the scope that the work runs in; it ends with the deadline or with `stop`."""
        deadline = None if seconds is None else anyio.current_time() + seconds
        self._scope = (
            anyio.CancelScope() if deadline is None else anyio.CancelScope(deadline=deadline)
        )
        if self._stop_reason is not None:
            self._scope.cancel()
        return self._scope

    def stop_error(self) -> DaemonError:
        """Return the error of a request whose scope was cancelled."""
        reason = self._stop_reason
        return DaemonError(ErrorCode.TIMEOUT if reason is None else reason.value)

    def answer(self, result: Any) -> None:
        """Reply once."""
        self._reply(lambda to: messages.reply(to, result))

    def fail(self, error: DaemonError) -> None:
        """Reply once with an error, in the form that the channel uses."""
        if self.channel.envelope:
            self.answer(_envelope(error, self._style))
        else:
            self._reply(lambda to: messages.failure(to, error, self._style))

    def _reply(self, message: Callable[[Any], dict[str, Any]]) -> None:
        if self.answered:
            return
        self.answered = True
        silent = self.request.id is UNSET or self._stop_reason is StopReason.GONE
        self._sink(None if silent else message(self.request.id))


def _discard(_reply: dict[str, Any] | None) -> None:
    """Send nothing: the request was answered."""


def _size(request: Request) -> int:
    if request.payload is not None:
        return request.size
    with memoryview(request.params) as view:
        return view.nbytes


def _short_part(size: int) -> int:
    """Return the size of a short message, else 0: a large one was counted when it had its turn."""
    return size if size <= SHORT_MESSAGE else 0


def _envelope(error: DaemonError, style: ErrorStyle) -> dict[str, Any]:
    """Return a failure as the renderer sees it."""
    rpc_error = messages.error_object(error, style)
    body = {"code": error.code, "message": rpc_error["message"]}
    details = rpc_error["data"].get("details")
    return {"ok": False, "error": body | ({"details": details} if details else {})}


def _no_channel(name: str) -> Wording:
    return Wording("There is no channel {}.", "没有通道 {}。").format(name)


class Requests:
    """The requests of one client that have no answer yet.

    It refers to its connection weakly, so that no reference cycle is left when the connection ends
    and its memory is freed at once. Thousands of connections a second would otherwise be left to the
    garbage collector, which stops every request while it searches for them.
    """

    def __init__(self, server: "Server", connection: "Connection") -> None:
        self._server = server
        self._weak_connection = weakref.ref(connection)
        self._pending: dict[Any, PendingRequest] = {}
        self._waiting: deque[PendingRequest] = deque()
        self._postponed = 0
        self._session: Any = None
        self._running = 0
        self._watching = False
        self._refusals: Counter[str] = Counter()
        self._short_bytes = 0

    @property
    def _connection(self) -> "Connection":
        """The connection; the sink of each request in flight keeps it alive."""
        connection = self._weak_connection()
        assert connection is not None
        return connection

    @property
    def in_flight(self) -> int:
        """How many requests are accepted and not answered."""
        return len(self._pending) + self._postponed

    def receive(self, request: Request, sink: Sink) -> None:
        """Accept a request and start it, or answer why not; postpone it while its channel loads."""
        host = self._server.host
        if host.is_loading and request.method not in self._server.channels:
            self._postponed += 1
            host.when_loaded(partial(self._resume, request, sink))
        else:
            self._accept(request, sink)

    def _resume(self, request: Request, sink: Sink) -> None:
        self._postponed -= 1
        self._accept(request, sink, postponed=True)
        self._connection.close_if_done()

    def _accept(self, request: Request, sink: Sink, *, postponed: bool = False) -> None:
        if request.method == CANCEL:
            self._cancel(request)
        channel = self._server.channels.get(request.method)
        if channel is None:
            self._refuse_unknown(request, sink)
            return
        pending = PendingRequest(request, channel, sink, self._connection.error_style)
        try:
            self._check(pending, postponed=postponed)
        except DaemonError as error:
            self._server.metrics.counters[f"refused.{error.code}"] += 1
            pending.fail(error)
            return
        self._pending[pending.key] = pending
        if self._connection.role is not Role.OWNER:
            self._count_bytes(pending)
            pending.waits_for_turn = self._is_short(pending)
        if self._may_start(pending):
            self._start(pending)
        else:
            self._waiting.append(pending)

    def _count_bytes(self, pending: PendingRequest) -> None:
        """Count the payload of a page.

        Connections without a token are not counted: their messages are short, and they must not use
        up the pages' room.
        """
        if self._connection.grant is not None:
            pending.page_bytes = _size(pending.request)
            self._short_bytes += _short_part(pending.page_bytes)
            self._server.page_memory.add(pending.page_bytes)

    def _is_short(self, pending: PendingRequest) -> bool:
        """Return whether a request has the usual deadline, so that others may wait for it."""
        channel: Channel | None = pending.channel
        if pending.channel.envelope:
            try:
                channel = self._server.channels.get(pending.read().params.channel)
            except DaemonError:
                channel = None
        return channel is not None and not channel.inline and channel.deadline is Deadline.REQUEST

    def _may_start(self, pending: PendingRequest) -> bool:
        if self._connection.outbox.congested:
            return False
        return not pending.waits_for_turn or self._running < RENDERER_RUNNING

    def _cancel(self, request: Request) -> None:
        try:
            number = msgspec.json.decode(bytes(request.params), type=dict[str, Any]).get("id")
        except msgspec.MsgspecError:
            return
        is_id = isinstance(number, str | int | float) and not isinstance(number, bool)
        pending = self._pending.get(number) if is_id else None
        if pending is None:
            return
        pending.stop(StopReason.CANCELED)
        if pending in self._waiting:
            self._waiting.remove(pending)
            pending.fail(pending.stop_error())
            self._forget(pending)

    def _refuse_unknown(self, request: Request, sink: Sink) -> None:
        cancels = request.method == CANCEL
        if isinstance(request.id, msgspec.UnsetType):
            if not cancels:
                self._server.metrics.counters["notifications.unknown"] += 1
            sink(None)
        elif cancels:
            sink(messages.reply(request.id, None))
        else:
            name = repr(request.method[:200])
            error = DaemonError(ErrorCode.IPC_CHANNEL_FORBIDDEN, _no_channel(name))
            self._connection.refuse(request.id, error, sink)

    def _check(self, pending: PendingRequest, *, postponed: bool) -> None:
        limit = self._connection.most_in_flight
        if len(self._pending) >= limit:
            raise DaemonError(ErrorCode.IPC_BACKPRESSURE, limit=limit, retryAfterMs=100)
        if self._server.page_memory.is_full:
            self._check_short_bytes(pending)
        if pending.request.id is not None and pending.request.id in self._pending:
            raise DaemonError(
                ErrorCode.INVALID_REQUEST, "A request with this id is still in flight; use another."
            )
        stopping = self._server.stopping.is_set() and not postponed
        if stopping and pending.channel.name not in ALLOWED_WHILE_STOPPING:
            raise DaemonError(ErrorCode.SHUTTING_DOWN)
        self._check_rights(pending.channel)

    def _check_short_bytes(self, pending: PendingRequest) -> None:
        """Let a page have few short requests in flight while pages have asked for too much."""
        size = _short_part(_size(pending.request))
        is_over = self._short_bytes + size > SHORT_MESSAGE
        if is_over and self._connection.role is not Role.OWNER:
            raise DaemonError(
                ErrorCode.IPC_BACKPRESSURE, limitBytes=SHORT_MESSAGE, retryAfterMs=100
            )

    def _check_rights(self, channel: Channel) -> None:
        if channel.open:
            return
        grant = self._connection.grant
        if grant is None or not self._connection.is_admitted:
            raise DaemonError(
                ErrorCode.UNAUTHENTICATED, "Send `initialize` with a valid token first."
            )
        if not grant.allows(channel):
            self._log_refusal(channel)
            raise DaemonError(
                channel.refusal,
                Wording("A {} connection may not call {}.", "{} 连接无权调用 {}。").format(
                    self._connection.role, channel.name
                ),
                role=self._connection.role,
                required=channel.role,
            )

    def _log_refusal(self, channel: Channel) -> None:
        """Log the first refusal of a channel on this connection, the tenth, the hundredth and so on."""
        self._refusals[channel.name] += 1
        times = self._refusals[channel.name]
        is_power_of_ten = str(times).strip("0") == "1"
        if not is_power_of_ten:
            return
        forbidden = channel.refusal is ErrorCode.FORBIDDEN
        log.warning(
            "channel_forbidden" if forbidden else channel.refusal.lower(),
            channel=channel.name,
            role=self._connection.role,
            peer=self._connection.id,
            times=times,
        )

    def start_waiting(self) -> None:
        """Start the requests that waited for the client to read, or for others of it to end."""
        waiting = self._waiting
        for _ in range(len(waiting)):
            if waiting is not self._waiting:
                return
            pending = waiting.popleft()
            if self._may_start(pending):
                self._start(pending)
            else:
                waiting.append(pending)

    def stop(self, reason: StopReason) -> None:
        """Stop everything in flight; waiting requests are answered at once."""
        waiting, self._waiting = self._waiting, deque()
        if reason is StopReason.GONE:
            self._session = None
        for pending in list(self._pending.values()):
            pending.stop(reason)
        for pending in waiting:
            pending.fail(pending.stop_error())
            self._forget(pending)

    def _start(self, pending: PendingRequest) -> None:
        self._server.metrics.start(pending.channel.name)
        if pending.channel.inline:
            self._run_inline(pending)
            return
        if pending.waits_for_turn:
            self._running += 1
        self._server.tasks.start_soon(self._run, pending)
        if not self._watching:
            self._watching = True
            self._server.tasks.start_soon(self._watch)

    async def _watch(self) -> None:
        """Answer the requests that are late, as long as any request is in flight."""
        try:
            while self._pending:
                await anyio.sleep(LATE_SECONDS)
                now = anyio.current_time()
                for pending in list(self._pending.values()):
                    pending.fail_if_late(now)
        finally:
            self._watching = False

    def _run_inline(self, pending: PendingRequest) -> None:
        start = self._server.clock.monotonic()
        error: DaemonError | None = None
        try:
            params = self._params(pending)
            pending.answer(pending.channel.handler(self._get_session(), params))
        except Exception as raised:  # noqa: BLE001 - the boundary
            error = as_daemon_error(raised, pending.channel.name, self._server.clock)
            pending.fail(error)
        self._finish(pending, start, error)

    async def _run(self, pending: PendingRequest) -> None:
        start = self._server.clock.monotonic()
        error: DaemonError | None = None
        try:
            params = self._params(pending)
            pending.answer(await self._call_within_deadline(pending, params))
        except Exception as raised:  # noqa: BLE001 - the boundary
            error = as_daemon_error(raised, pending.channel.name, self._server.clock)
            pending.fail(error)
        finally:
            if pending.waits_for_turn:
                self._running -= 1
            self._finish(pending, start, error)
            if self._waiting:
                self.start_waiting()

    def _params(self, pending: PendingRequest) -> Any:
        payload = pending.take()
        self._server.metrics.counters["payload.unknown_fields"] += payload.unknown
        return payload.params

    def _get_session(self) -> Any:
        """Return the session of the connection; the connection itself while channels load."""
        host = self._server.host
        if host.is_loading:
            return self._connection
        if not self._connection.is_connected:
            return host.session(self._connection)
        if self._session is None:
            self._session = host.session(self._connection)
        return self._session

    async def _call_within_deadline(self, pending: PendingRequest, params: Any) -> Any:
        token = pending.meta.progress_token
        if token is not None:
            _reporter.set(partial(self._send_progress, pending, token))
        seconds = self._seconds(pending.channel, pending.meta.timeout_ms)
        pending.fail_after(seconds)
        with pending.scope(seconds):
            # Not before: the timer keeps the variables as they were until its time has come.
            _current.set(pending)
            return await pending.channel.handler(self._get_session(), params)
        raise pending.stop_error()

    def _send_progress(self, pending: PendingRequest, token: str | int, value: Any) -> None:
        if not pending.answered:
            self._connection.notify(PROGRESS, {"token": token, "value": value}, key=str(token))

    def _seconds(self, channel: Channel, timeout_ms: int | None) -> float | None:
        settings = self._server.settings
        defaults: dict[Deadline, int | None] = {
            Deadline.REQUEST: settings.request_timeout_ms,
            Deadline.SKILL: settings.skill_timeout_ms,
            Deadline.NONE: None,
        }
        milliseconds = defaults[channel.deadline] if timeout_ms is None else timeout_ms
        return None if milliseconds is None else milliseconds / 1000

    def _finish(self, pending: PendingRequest, start: float, error: DaemonError | None) -> None:
        seconds = self._server.clock.monotonic() - start
        code = None if error is None else str(error.code)
        self._server.metrics.finish(pending.channel.name, seconds, code)
        self._forget(pending)

    def _forget(self, pending: PendingRequest) -> None:
        if self._pending.pop(pending.key, None) is not None and pending.page_bytes:
            self._short_bytes -= _short_part(pending.page_bytes)
            self._server.page_memory.remove(pending.page_bytes)
        self._connection.close_if_done()
        pending.release()

    async def invoke(self, name: str, payload: Raw) -> Any:
        """Run another channel with this connection's own rights, and count it as its own."""
        channel = self._server.channels.get(name)
        if channel is None or channel.envelope:
            raise DaemonError(ErrorCode.IPC_CHANNEL_FORBIDDEN, _no_channel(repr(name)))
        self._check_rights(channel)
        self._server.metrics.start(name)
        start, code = self._server.clock.monotonic(), str(ErrorCode.CANCELED)
        try:
            result = await self._invoke(channel, payload)
            code = None
        except Exception as raised:  # noqa: BLE001 - the boundary
            error = as_daemon_error(raised, name, self._server.clock)
            code = str(error.code)
            raise error from None
        finally:
            seconds = self._server.clock.monotonic() - start
            self._server.metrics.finish(name, seconds, code)
        return result

    async def _invoke(self, channel: Channel, raw: Raw) -> Any:
        payload = channel.payload.read(raw)
        self._server.metrics.counters["payload.unknown_fields"] += payload.unknown
        seconds = self._seconds(channel, payload.meta.timeout_ms)
        with anyio.CancelScope() as scope:
            if seconds is not None:
                scope.deadline = anyio.current_time() + seconds
                self._fail_outer_after(seconds)
            result = channel.handler(self._get_session(), payload.params)
            return result if channel.inline else await result
        raise DaemonError(ErrorCode.TIMEOUT)

    def _fail_outer_after(self, seconds: float) -> None:
        """Set when the `ipc:invoke` around this call is late."""
        if (outer := _current.get()) is not None:
            outer.fail_after(seconds)


class ChannelMetrics(Model):
    """What one channel did since the daemon started; latencies are of its last 1024 requests."""

    count: int
    """How many requests were answered."""
    errors: dict[str, int]
    """How many of them failed, by the code of the error."""
    in_flight: int
    """How many are being worked on now."""
    p50_ms: float
    """Half of the last 1024 were answered within so many milliseconds."""
    p95_ms: float
    """95 of 100 of the last 1024 were answered within so many milliseconds."""
    p99_ms: float
    """99 of 100 of the last 1024 were answered within so many milliseconds."""


class _ChannelRecord:
    def __init__(self) -> None:
        self.count = 0
        self.in_flight = 0
        self.errors: Counter[str] = Counter()
        # An array: thousands of floats would lie between all that comes and goes, and keep it.
        self.seconds = array("d")

    def finish(self, seconds: float) -> None:
        """Count a request that has ended."""
        if len(self.seconds) < LATENCIES:
            self.seconds.append(seconds)
        else:
            self.seconds[self.count % LATENCIES] = seconds
        self.count += 1
        self.in_flight -= 1


class Metrics:
    """Counters of one daemon."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self.replies = 0
        self._next_answer: anyio.Event | None = None
        self._channels: dict[str, _ChannelRecord] = {}

    def start(self, channel: str) -> None:
        """Count a request that begins."""
        self._of(channel).in_flight += 1

    def finish(self, channel: str, seconds: float, code: str | None) -> None:
        """Count a request that has ended; `code` is None when it succeeded."""
        record = self._of(channel)
        record.finish(seconds)
        self.replies += 1
        if code is not None:
            record.errors[code] += 1
        if self._next_answer is not None:
            self._next_answer.set()
            self._next_answer = None

    async def wait_for_reply(self, after: int) -> None:
        """Return once more than `after` requests have been answered; only one task may wait."""
        while self.replies <= after:
            self._next_answer = anyio.Event()
            await self._next_answer.wait()

    def channels(self) -> dict[str, ChannelMetrics]:
        """Summarise every channel that was called."""
        return {name: _summary(record) for name, record in sorted(self._channels.items())}

    def _of(self, channel: str) -> _ChannelRecord:
        record = self._channels.get(channel)
        if record is None:
            record = self._channels[channel] = _ChannelRecord()
        return record


def percentile(ordered: Sequence[float], share: float) -> float:
    """Pick the nearest-rank percentile of sorted values; 0 when there are none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _summary(record: _ChannelRecord) -> ChannelMetrics:
    ordered = sorted(record.seconds)
    p50, p95, p99 = (round(percentile(ordered, share) * 1000, 3) for share in (0.5, 0.95, 0.99))
    return ChannelMetrics(
        count=record.count,
        errors=dict(sorted(record.errors.items())),
        in_flight=record.in_flight,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
    )


_DISK_CODES = {ErrorCode.STORAGE_FULL, ErrorCode.IO_ERROR}
_DISK_ERRORS = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT),
    *(errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM),
}


def as_daemon_error(error: Exception, channel: str, clock: Clock) -> DaemonError:
    """Turn what a handler raised into the error that the client gets.

    Of an unexpected exception the client gets only a reference; the log has the rest under it.
    """
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in _DISK_ERRORS:
            return _log_disk_error(disk_error(cause, "a file"), channel)
        if isinstance(cause, DaemonError):
            return _without_frames(_log_disk_error(cause, channel))
        if isinstance(cause, msgspec.ValidationError):
            return invalid_payload(cause)
    reference = clock.new_id("err")
    log.error("internal_error", channel=channel, reference=reference, exc_info=error)
    return DaemonError(
        ErrorCode.INTERNAL,
        Wording(
            f"Something went wrong inside the daemon; main.log has it under {reference}.",
            f"守护进程内部出错；main.log 中的编号为 {reference}。",
        ),
        reference=reference,
    )


def _without_frames(error: DaemonError) -> DaemonError:
    """Cut an error off from where it was raised: its frames would keep a whole payload in memory."""
    error.__context__ = None
    return error.with_traceback(None)


def _log_disk_error(error: DaemonError, channel: str) -> DaemonError:
    """Log an error of the disk, and return it."""
    if error.code in _DISK_CODES and "reason" in error.details:
        log.warning("disk_error", channel=channel, code=error.code, **error.details)
    return error


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside a group of errors, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for inner in group.exceptions:
            yield from causes(inner)
    else:
        yield error
