"""One client: bytes in and out, rights, calls to it, and the end of the connection.

Features see it as a `Peer`. Replies are sent at once, events as fast as the client reads. A
transport sends the short messages of one turn of the event loop as one write.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Protocol, TypeVar

import anyio
import msgspec
from msgspec import Raw

from creonowd.errors import DaemonError, ErrorCode, Language
from creonowd.rpc import messages
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.messages import (
    LARGE,
    SHORT_MESSAGE,
    Batch,
    Event,
    Frame,
    Framing,
    Invalid,
    OversizedMessage,
    Request,
    Response,
    Splitter,
    Unreadable,
    add_framing,
    decode_large,
    encode,
    notification,
    recover_id,
)
from creonowd.rpc.requests import Requests, Sink, StopReason
from creonowd.text import MOST_VALUES, count_values, has_too_many_values

T = TypeVar("T")
P = ParamSpec("P")
Bytes = bytes | bytearray
Merge = Callable[[Any, Any], Any]
Later = Callable[[Callable[[], None]], object]

MESSAGES_PER_TURN = 64
BYTES_PER_TURN = 256 * 1024
PAUSE_FACTOR = 4
UNAUTHENTICATED_MESSAGE_BYTES = 64 * 1024
UNAUTHENTICATED_IN_FLIGHT = 8
UNAUTHENTICATED_UNREAD_BYTES = 32 * 1024
UNAUTHENTICATED_SECONDS = 1.5
MAX_WAITING_EVENTS = 256
HEAD_ROOM = 32
SHORT_BYTES = 16 * 1024
BATCH_BYTES = 64 * 1024
LAGGED = "$/lagged"


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
    def is_connected(self) -> bool:
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


if TYPE_CHECKING:
    from creonowd.rpc.server import Server


class Connection:
    """Both directions of one client; features use it as a `Peer`."""

    def __init__(self, server: "Server", wire: "Wire", name: str, grant: Grant | None) -> None:
        self.server = server
        self._wire = wire
        self.id = name
        self.grant = grant
        self.utf16 = False
        self.language = Language.DEFAULT
        self.client = ""
        self.is_connected = True
        self.ended = False
        self.authentication = anyio.Lock()
        self.outbox = Outbox(wire, server.clock.now_ms)
        self.requests = Requests(server, self)
        self._splitter = Splitter(self.largest_message)
        self._calls = Calls(self.outbox.send)
        self._on_close: list[Callable[[], None]] = []
        self._pumping = False
        self._part_bytes = 0
        self._opened_at = server.clock.monotonic()

    @property
    def role(self) -> Role:
        """What this connection may do."""
        return Role.RENDERER if self.grant is None else self.grant.role

    @property
    def error_style(self) -> messages.ErrorStyle:
        """How errors are shown to this client."""
        return messages.ErrorStyle(self.language, self.server.host.redactor)

    @property
    def may_inspect(self) -> bool:
        """Whether this connection may see the insides of an assembly without `--debug`."""
        return self.grant is not None and self.grant.inspects

    @property
    def is_admitted(self) -> bool:
        """Whether this connection has rights that were neither revoked nor have expired."""
        return self.grant is not None and self.grant.valid(self.server.clock.now_ms())

    @property
    def largest_message(self) -> int:
        """How many bytes a message may have; few before authentication."""
        limit = self.server.settings.max_message_bytes
        return limit if self.grant is not None else min(limit, UNAUTHENTICATED_MESSAGE_BYTES)

    @property
    def most_in_flight(self) -> int:
        """How many requests may be in flight; few before authentication."""
        limit = self.server.settings.max_in_flight
        return limit if self.grant is not None else min(limit, UNAUTHENTICATED_IN_FLIGHT)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight and nothing is left to send."""
        busy = self._pumping or self.requests.in_flight
        return not busy and not self._wire.unread_bytes()

    @property
    def age(self) -> float:
        """For how many seconds it has been open."""
        return self.server.clock.monotonic() - self._opened_at

    def admit(self, grant: Grant) -> None:
        """Give the connection the rights of its token."""
        self.grant = grant
        self._splitter.limit = self.largest_message

    def feed(self, data: bytes | memoryview) -> None:
        """Process bytes from the transport."""
        self._splitter.feed(data)
        if not self._pumping:
            self._pump()

    def get_buffer(self) -> memoryview | None:
        """Return the memory for a large message's next bytes, or None to use `feed`."""
        return self._splitter.get_buffer()

    def buffer_updated(self, size: int) -> None:
        """Process `size` bytes that the transport has put into that memory."""
        self._splitter.buffer_updated(size)
        if not self._pumping:
            self._pump()

    def note_part(self, size: int) -> None:
        """Count bytes of a message that a transport which marks their ends itself has read."""
        self._part_bytes += size
        if self._part_bytes > SHORT_MESSAGE:
            self.resume_or_pause()

    def feed_message(self, body: bytes) -> None:
        """Process one whole message from a transport that marks their ends itself."""
        self._part_bytes = 0
        self.outbox.framing = Framing.WHOLE
        oversized = OversizedMessage(size=len(body), head=body[:4096], tail=body[-512:])
        self._handle(oversized if len(body) > self.largest_message else Frame(body=body))
        if not self._pumping:
            self.resume_or_pause()

    def finish(self) -> None:
        """Handle the end of the input; what was asked is still answered."""
        if self.ended:
            return
        self.ended = True
        if not self._pumping:
            self._pump()
        if self.grant is None and (self._pumping or self.requests.in_flight):
            self.server.tasks.start_soon(self._abort_unauthenticated)

    async def _abort_unauthenticated(self) -> None:
        """End a connection whose client sends no more, if it has shown no right token in time."""
        await anyio.sleep(UNAUTHENTICATED_SECONDS)
        if self.grant is None and self.is_connected:
            self.abort()

    def disconnect(self) -> None:
        """Handle the loss of the client: stop its requests and forget it."""
        if not self.is_connected:
            return
        self.is_connected = False
        self.requests.stop(StopReason.GONE)
        self._calls.close()
        self.server.page_memory.forget(self)
        self.server.unread_replies.forget(self)
        for callback in self._on_close:
            callback()
        self._on_close.clear()
        self.server.forget(self)

    def congest(self) -> None:
        """Hold events and new requests back: the client does not read as fast as we write."""
        self.outbox.congest()

    def relieve(self) -> None:
        """Send events and start requests that waited for the client to read again."""
        self.outbox.relieve()
        self.requests.start_waiting()
        self.resume_or_pause()

    def close(self) -> None:
        """Flush and end the connection; unread input is dropped."""
        self._splitter.stop()
        self._wire.close()

    def abort(self) -> None:
        """End the connection at once; what either side has not read is dropped."""
        self._splitter.stop()
        self._wire.abort()

    def close_if_done(self) -> None:
        """End the connection once a client that sends no more has all its answers."""
        if self.ended and not self._pumping and not self.requests.in_flight:
            self._wire.close()

    def notify(self, name: str, fields: Any, *, key: str = "", merge: Merge | None = None) -> None:
        """Send an event, if the client still may have it; never blocks."""
        if self.is_connected and self.is_admitted:
            self.outbox.notify(name, fields, key, merge)
            if self.role is not Role.OWNER:
                self._bound_unread()

    async def call(self, name: str, params: Any, result: type[T], timeout_ms: int) -> T:
        """Call the client; DISCONNECTED if it has lost its rights."""
        if not self.is_admitted:
            raise DaemonError(ErrorCode.DISCONNECTED)
        return await self._calls.call(name, params, result, timeout_ms)

    async def invoke(self, name: str, payload: Raw) -> Any:
        """Run another channel with this connection's own rights."""
        return await self.requests.invoke(name, payload)

    def when_closed(self, callback: Callable[[], None]) -> None:
        """Run `callback` once when the connection ends; at once if it has."""
        if self.is_connected:
            self._on_close.append(callback)
        else:
            callback()

    def send(self, message: dict[str, Any] | None) -> None:
        """Send a reply, unless there is none or the client is gone.

        A client without rights that leaves more than a little unread is disconnected.
        """
        if message is None or not self.is_connected:
            return
        self.outbox.send(message)
        if self.role is not Role.OWNER:
            self._bound_unread()

    def unread_bytes(self) -> int:
        """Return how many bytes the client has not read yet."""
        return self._wire.unread_bytes()

    def _bound_unread(self) -> None:
        if self.grant is not None:
            self.server.unread_replies.note(self)
        elif self.unread_bytes() > UNAUTHENTICATED_UNREAD_BYTES:
            self.abort()

    def refuse(self, to: Any, error: DaemonError, sink: Sink) -> None:
        """Answer a message that did not become a request."""
        self.server.metrics.counters[f"refused.{error.code}"] += 1
        sink(messages.failure(to, error, self.error_style))

    def _pump(self) -> None:
        """Handle the messages that have arrived, a few in each turn of the event loop."""
        self._pumping = False
        size = 0
        events = self._splitter.finish() if self.ended else self._splitter.events()
        for handled, event in enumerate(events, start=1):
            if self._splitter.framing is not None:
                self.outbox.framing = self._splitter.framing
            self._handle(event)
            if self._pumping:
                return
            size += len(event.body) if isinstance(event, Frame) else 0
            if handled >= MESSAGES_PER_TURN or size >= BYTES_PER_TURN:
                self._pump_later()
                return
        if self.ended:
            self.close_if_done()
        else:
            self.resume_or_pause()

    def _pump_later(self) -> None:
        self._pumping = True
        self._wire.pause()
        self._wire.defer(self._pump)

    def resume_or_pause(self) -> None:
        """Read on, unless the client leaves too many answers unread or must wait for room."""
        unread = self.server.settings.max_outbound_bytes * PAUSE_FACTOR
        if self._pumping or self._must_wait_for_room() or self._wire.unread_bytes() >= unread:
            self._wire.pause()
        else:
            self._wire.resume()

    def _must_wait_for_room(self) -> bool:
        """Return whether this client has to wait, because pages have asked for too much."""
        begun = self._splitter.begun_bytes + self._part_bytes
        if begun > SHORT_MESSAGE and self.role is not Role.OWNER:
            return not self.server.page_memory.may_read_on(self)
        self.server.page_memory.stop_waiting(self)
        return False

    def abort_unfinished(self) -> None:
        """End the connection of a page that keeps others waiting for the rest of its message."""
        if not self._pumping:
            self.abort()

    def _handle(self, event: Event) -> None:
        if not self.is_connected:
            return
        if isinstance(event, Frame) and len(event.body) > BYTES_PER_TURN:
            self._pumping = True
            self._wire.pause()
            self.server.tasks.start_soon(self._receive_in_slices, event.body)
        elif isinstance(event, Frame):
            too_many = has_too_many_values(event.body)
            self._receive(self._decode(event.body, too_many=too_many))
            self.server.page_memory.finish_reading(self)
        elif isinstance(event, OversizedMessage):
            self._refuse_oversized(event)
        else:
            self._fail_stream(event)

    async def _receive_in_slices(self, body: bytes | bytearray) -> None:
        """Receive a large message in several turns of the event loop, then what came after it.

        Each turn handles a slice of one such message, whoever sent it.
        """
        too_many = False
        for count in count_values(body):
            await self.server.turns.take()
            too_many = count > MOST_VALUES
            if too_many or not self.is_connected:
                break
        await self.server.turns.take()
        message = self._decode(body, too_many=too_many)
        await self.server.turns.take()
        if self.is_connected:
            self._receive(message)
        self.server.page_memory.finish_reading(self)
        self._wire.defer(self._pump)

    def _decode(self, body: bytes | bytearray, *, too_many: bool) -> messages.IncomingMessage:
        if too_many:
            return messages.too_many_values(body)
        large = decode_large(body, self.server.channels) if len(body) > LARGE else None
        return large or messages.decode(body, self.server.settings.max_batch)

    def _refuse_oversized(self, event: OversizedMessage) -> None:
        limit = self.largest_message
        error = DaemonError(
            ErrorCode.IPC_PAYLOAD_TOO_LARGE,
            f"The message has {event.size} bytes; {limit} is the limit.",
            limitBytes=limit,
            sizeBytes=event.size,
        )
        self.refuse(recover_id(event.head, event.tail), error, self.send)

    def _fail_stream(self, event: Unreadable) -> None:
        error = DaemonError(ErrorCode.PARSE_ERROR, f"The stream cannot be read: {event.reason}.")
        self.refuse(None, error, self.send)
        self._wire.close()

    def _receive(self, message: messages.IncomingMessage) -> None:
        if isinstance(message, Batch):
            replies = _BatchReplies(len(message.items), self.send)
            for item in message.items:
                self._receive_one(item, replies.add)
        else:
            self._receive_one(message, self.send)
            if isinstance(message, Invalid) and self.grant is None:
                self.close()

    def _receive_one(self, message: Request | Response | Invalid, sink: Sink) -> None:
        if isinstance(message, Request):
            self.requests.receive(message, sink)
        elif isinstance(message, Invalid):
            self.refuse(message.id, message.error, sink)
        else:
            self._calls.resolve(message)
            sink(None)


class _BatchReplies:
    """Collects the replies of a batch and sends them as one; nothing if there are none."""

    def __init__(self, expected: int, send: Callable[[Any], None]) -> None:
        self._missing = expected
        self._replies: list[dict[str, Any]] = []
        self._send = send

    def add(self, message: dict[str, Any] | None) -> None:
        self._missing -= 1
        if message is not None:
            self._replies.append(message)
        if not self._missing and self._replies:
            self._send(self._replies)


class Wire(Protocol):
    """The byte pipe of one connection, as a transport offers it."""

    def write(self, data: Bytes) -> None:
        """Send bytes; those that the client does not read yet are buffered."""
        ...

    def write_soon(self, data: Bytes) -> None:
        """Send bytes in order, at the end of this turn of the event loop at the latest."""
        ...

    def unread_bytes(self) -> int:
        """Return how many bytes the client has not read yet."""
        ...

    def pause(self) -> None:
        """Stop reading from the client."""
        ...

    def resume(self) -> None:
        """Read from the client again."""
        ...

    def defer(self, callback: Callable[[], None]) -> None:
        """Run `callback` in the next turn of the event loop."""
        ...

    def close(self) -> None:
        """Flush and end the connection."""
        ...

    def abort(self) -> None:
        """End the connection at once, and drop what the client has not read."""
        ...


class Outbox:
    """The outgoing half of one connection."""

    def __init__(self, wire: Wire, now_ms: Callable[[], int]) -> None:
        self.framing = Framing.LINES
        self.congested = False
        self._wire = wire
        self._now_ms = now_ms
        self._sequence = 0
        self._waiting: dict[tuple[str, str], tuple[Any, bool]] = {}
        self._lagged = 0

    def send(self, message: Any) -> None:
        """Send a reply, a call or a batch of replies; these are never dropped."""
        self._wire.write(self._encode(message))

    def notify(self, name: str, fields: Any, key: str, merge: Merge | None) -> None:
        """Send an event; while the client lags, keep it and merge it with later ones."""
        if not self.congested and not self._waiting:
            self._send_event(name, fields)
            return
        earlier = self._waiting.get((name, key))
        if earlier is not None and merge is not None:
            self._waiting[name, key] = (merge(earlier[0], fields), True)
        elif earlier is None and (merge is not None or len(self._waiting) < MAX_WAITING_EVENTS):
            self._waiting[name, key] = (fields, merge is not None)
        else:
            self._lagged += 1
            if earlier is not None:
                self._waiting[name, key] = (fields, False)

    def congest(self) -> None:
        """Keep events back: the client has stopped reading."""
        self.congested = True

    def relieve(self) -> None:
        """Send the waiting events, and how many were dropped."""
        self.congested = False
        waiting, self._waiting = self._waiting, {}
        for (name, _), (fields, _) in waiting.items():
            self._send_event(name, fields)
        if self._lagged:
            lagged, self._lagged = self._lagged, 0
            self._send_event(LAGGED, {"count": lagged})

    def _send_event(self, name: str, fields: Any) -> None:
        self._sequence += 1
        stamp = {"seq": self._sequence, "ts": self._now_ms()}
        message = notification(name, msgspec.to_builtins(fields) | stamp)
        self._wire.write_soon(self._encode(message))

    def _encode(self, message: Any) -> bytearray:
        return add_framing(self.framing, encode(message, HEAD_ROOM), HEAD_ROOM)


def _drop(_data: Bytes) -> None:
    """Send nothing: the client is gone."""


class WriteBatch:
    """Collect short messages during `turn` and send them as one; a long one is sent at once.

    `later` schedules a flush for messages that are added outside of `turn`.
    """

    def __init__(self, send: Callable[[Bytes], None], later: Later) -> None:
        self._send = send
        self._later = later
        self._messages: list[Bytes] = []
        self._size = 0
        self._in_turn = False

    def add(self, data: Bytes) -> None:
        """Send bytes: at once, or with the others of this turn if they are few."""
        if len(data) > BATCH_BYTES:
            self.flush()
        self._append(data)
        if not self._in_turn or len(data) > SHORT_BYTES:
            self.flush()

    def add_soon(self, data: Bytes) -> None:
        """Send bytes at the end of the turn at the latest."""
        if not self._in_turn and not self._messages:
            self._later(self.flush)
        self._append(data)
        if self._size > BATCH_BYTES:
            self.flush()

    def turn(self, work: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run `work`, then send the short messages that it added."""
        self._in_turn = True
        try:
            work(*args, **kwargs)
        finally:
            self._in_turn = False
            self.flush()

    def close(self) -> None:
        """Send nothing any more."""
        self._messages = []
        self._send = _drop

    def flush(self) -> None:
        """Send the collected messages."""
        messages = self._messages
        if messages:
            self._messages = []
            self._size = 0
            self._send(messages[0] if len(messages) == 1 else b"".join(messages))

    def _append(self, data: Bytes) -> None:
        self._messages.append(data)
        self._size += len(data)
