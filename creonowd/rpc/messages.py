"""JSON-RPC 2.0 messages: cut out of a stream of bytes, decoded and encoded.

A message ends with its line, or where its `Content-Length` header says. A splitter never holds more
than one message and one chunk.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.rpc.channel import NO_META, Channel, Payload, may_have_meta
from creonowd.text import MOST_VALUES, well_formed, well_formed_json, well_formed_value

VERSION = "2.0"
LARGE = 64 * 1024
SHORT_MESSAGE = 128 * 1024
"""A message of a page up to this size is read at any time; a longer one waits for its turn."""

METHOD_SEARCH_BYTES = 1024
ID_SEARCH_BYTES = 16 * 1024
REDACTED_CHARACTERS = 4096
SHOWN_CHARACTERS = 1000
CACHED_CHARACTERS = 256
CACHED_TEXTS = 512
LONGEST_ID = 1024
HEADER_LIMIT = 8 * 1024
LONGEST_SKIP = 10**12
HEAD_BYTES = 4 * 1024
TAIL_BYTES = 512
BLANK = b" \t\r\n\xef\xbb\xbf"
NOT_A_LENGTH = "Content-Length must be a number of bytes"

_NO_BYTES = Raw(b"")
_ENCODER = msgspec.json.Encoder()
_REDACTOR = Redactor()
_METHOD = re.compile(rb'"method"\s*:\s*"([^"\\]++)"')
_HEADER_START = b"content-"
_END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
_USUAL_HEADER = re.compile(rb"Content-Length: ([0-9]{1,13})\r\n\r\n")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_ID_AT_END = re.compile(
    rb'"id"\s*:\s*(-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*")\s*'
    rb'(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}$'
)

Id = int | float | str | None


class Request(msgspec.Struct, frozen=True):
    """A call, or a notification (`id` unset) that gets no reply.

    `payload` is set when the params were decoded together with the rest; `size` is theirs then.
    """

    method: str
    params: Raw
    id: Id | UnsetType = UNSET
    payload: Payload | None = None
    size: int = 0


class Response(msgspec.Struct, frozen=True):
    """The client's reply to a call of ours."""

    id: Id
    result: Raw
    error: Raw | None


class Invalid(msgspec.Struct, frozen=True):
    """A message that is answered with an error."""

    id: Id
    error: DaemonError


class Batch(msgspec.Struct, frozen=True):
    """Several messages in one; answered in one."""

    items: list["Request | Response | Invalid"]


IncomingMessage = Request | Response | Invalid | Batch


class _RawMessage(msgspec.Struct):
    jsonrpc: str
    id: int | float | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = _NO_BYTES
    result: Raw = _NO_BYTES
    error: Raw = _NO_BYTES


_ENVELOPE = msgspec.json.Decoder(_RawMessage)
_NO_ITEM = Raw(b"")


def decode(body: bytes | bytearray, max_batch: int) -> IncomingMessage:
    """Decode one frame; whatever is wrong with it is returned as `Invalid`, never raised."""
    if len(body) <= LARGE and not _is_utf8(body):
        return _parse_error(body, "The message is not UTF-8.")
    return _decode_batch(body, max_batch) if body[:1] == b"[" else _decode_one(body)


def _is_utf8(body: bytes | bytearray) -> bool:
    """Check the encoding of a whole message; in a large one only what is decoded is checked."""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_one(body: bytes | bytearray) -> Request | Response | Invalid:
    try:
        return _classify(_ENVELOPE.decode(body))
    except msgspec.ValidationError as error:
        text = f"The message is not a JSON-RPC 2.0 request: {error}"
        return _invalid_request(recover_id(bytes(body)), text)
    except msgspec.DecodeError as error:
        whole = well_formed_json(bytes(body))
        return _parse_error(body, f"{error}.") if whole == body else _decode_one(whole)
    except UnicodeDecodeError:
        return _parse_error(body, "The message is not UTF-8.")
    except RecursionError:
        return _parse_error(body, "The message is nested too deeply.")


def _classify(envelope: _RawMessage) -> Request | Response | Invalid:
    number: Id = None if envelope.id is UNSET else envelope.id
    if isinstance(number, str) and len(number) > LONGEST_ID:
        return _id_too_long()
    if envelope.jsonrpc != VERSION:
        return _invalid_request(number, '`jsonrpc` must be "2.0".')
    if isinstance(envelope.method, str):
        return Request(envelope.method, envelope.params, envelope.id)
    if bytes(envelope.result) or bytes(envelope.error):
        error = envelope.error if bytes(envelope.error) not in {b"", b"null"} else None
        return Response(number, envelope.result, error)
    return _invalid_request(number, "A message needs a `method`, or a `result` or `error`.")


@cache
def _batch_decoder(max_batch: int) -> msgspec.json.Decoder[Any]:
    """Return a decoder that stops at the first item too many, before it has made any more."""
    fields = [(f"item{number}", Raw, _NO_ITEM) for number in range(max_batch)]
    form = msgspec.defstruct("Items", fields, array_like=True, forbid_unknown_fields=True)
    return msgspec.json.Decoder(form)


def _decode_batch(body: bytes | bytearray, max_batch: int) -> IncomingMessage:
    try:
        decoded = msgspec.structs.astuple(_batch_decoder(max_batch).decode(body))
    except msgspec.ValidationError:
        return _invalid_request(None, f"A batch may hold {max_batch} requests at most.")
    except msgspec.DecodeError as error:
        whole = well_formed_json(bytes(body))
        if whole != body:
            return _decode_batch(whole, max_batch)
        return _parse_error(body, f"{error}.")
    except RecursionError:
        return _parse_error(body, "The message is nested too deeply.")
    items = [bytes(item) for item in decoded if item is not _NO_ITEM]
    if not items:
        return _invalid_request(None, "A batch must hold at least one request.")
    return Batch([_decode_one(item) for item in items])


def _parse_error(body: bytes | bytearray, text: str) -> Invalid:
    return Invalid(recover_id(bytes(body)), DaemonError(ErrorCode.PARSE_ERROR, text))


def _invalid_request(number: Id, text: str) -> Invalid:
    return Invalid(number, DaemonError(ErrorCode.INVALID_REQUEST, text))


def _id_too_long() -> Invalid:
    """Refuse an id that would be kept, and repeated in the answer, however long it is."""
    return _invalid_request(None, f"An id may have {LONGEST_ID} characters at most.")


def too_many_values(body: bytes | bytearray) -> Invalid:
    """Refuse a message that is not decoded, for the number of its values."""
    text = f"The message has more than {MOST_VALUES} values; send a long one as a text."
    error = DaemonError(ErrorCode.IPC_PAYLOAD_TOO_LARGE, text, limitValues=MOST_VALUES)
    return Invalid(recover_id(bytes(body[:ID_SEARCH_BYTES]), bytes(body[-512:])), error)


def decode_large(
    body: bytes | bytearray, channels: Mapping[str, Channel]
) -> Request | Invalid | None:
    """Decode a request and its payload in one pass, if its first bytes name the channel.

    None for any other message; `decode` then handles it.
    """
    method = _METHOD.search(body, 0, METHOD_SEARCH_BYTES)
    channel = None if method is None else channels.get(method[1].decode("utf-8", "replace"))
    if channel is None or may_have_meta(body):
        return None
    try:
        message: Any = channel.message.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if message.jsonrpc != VERSION or message.method != channel.name:
        return None
    if isinstance(message.id, str) and len(message.id) > LONGEST_ID:
        return _id_too_long()
    payload = Payload(message.params, NO_META, 0)
    return Request(channel.name, Raw(), message.id, payload, len(body))


def recover_id(head: bytes, tail: bytes = b"") -> Id:
    """Find the id of a broken message among its own top-level keys; None when there is none."""
    found = _scan_for_id(head[:ID_SEARCH_BYTES])
    if found is None and (at_end := _ID_AT_END.search(tail or head[-512:].rstrip())):
        found = at_end.group(1)
    return None if found is None else _scalar(found)


def _scan_for_id(head: bytes) -> bytes | None:
    depth = 0
    previous: list[bytes] = [b"", b""]
    for match in _TOKEN.finditer(head):
        token = match.group()
        if depth == 1 and previous == [b'"id"', b":"]:
            return token
        if token in {b"{", b"["}:
            depth += 1
        elif token in {b"}", b"]"}:
            depth -= 1
        previous = [previous[1], token]
    return None


def _scalar(token: bytes) -> Id:
    try:
        value = json.loads(token)
    except (ValueError, UnicodeDecodeError):
        return None
    if isinstance(value, str):
        return well_formed(value) if len(value) <= LONGEST_ID else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def encode(message: Any, room: int = 0) -> bytearray:
    """Encode a message after `room` free bytes; a lone surrogate in it is sent as U+FFFD."""
    body = bytearray(room)
    try:
        _ENCODER.encode_into(message, body, room)
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(message, enc_hook=_decode_raw)
        _ENCODER.encode_into(well_formed_value(plain), body, room)
    return body


def _decode_raw(value: object) -> Any:
    """Decode a value that a handler returned as encoded JSON."""
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    raise TypeError(type(value).__name__)


def reply(to: Id, result: Any) -> dict[str, Any]:
    """Return the reply to a call."""
    return {"jsonrpc": VERSION, "id": to, "result": result}


class ErrorStyle(NamedTuple):
    """How errors are shown to a client: the language, and what redacts the secrets of this user."""

    language: Language = Language.DEFAULT
    redactor: Redactor = _REDACTOR


_USUAL_STYLE = ErrorStyle()


def failure(to: Id, error: DaemonError, style: ErrorStyle = _USUAL_STYLE) -> dict[str, Any]:
    """Return the reply to a call that failed."""
    return {"jsonrpc": VERSION, "id": to, "error": error_object(error, style)}


def error_object(error: DaemonError, style: ErrorStyle = _USUAL_STYLE) -> dict[str, Any]:
    """Return the error object of a reply; its `data` has the code that clients test."""
    data: dict[str, Any] = {"code": error.code, "retryable": error.meaning.retryable}
    if error.details:
        data["details"] = _for_client(error.details, style)
    return {
        "code": error.meaning.number,
        "message": _for_client(error.wording, style),
        "data": data,
    }


def _for_client(value: Any, style: ErrorStyle) -> Any:
    """Choose the language of an error's text or details, and hide secrets that a client sent in them."""
    if isinstance(value, Wording):
        return _hide_secrets(value.text(chinese=style.language is Language.CHINESE), style)
    if isinstance(value, str):
        return _hide_secrets(value, style) if type(value) is str else value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {_for_client(key, style): _for_client(item, style) for key, item in fields}
    if isinstance(value, list | tuple):
        return [_for_client(item, style) for item in cast("Sequence[Any]", value)]
    return value


def _hide_secrets(text: str, style: ErrorStyle) -> str:
    """Hide secrets; a text that repeats megabytes from a client is cut to its beginning."""
    if len(text) <= CACHED_CHARACTERS:
        return _hide_in_short_text(text, style.redactor, style.redactor.revision)
    if len(text) <= REDACTED_CHARACTERS:
        return style.redactor.hide_secrets(text)
    return style.redactor.hide_secrets(text[:REDACTED_CHARACTERS])[:SHOWN_CHARACTERS] + "…"


@lru_cache(maxsize=CACHED_TEXTS)
def _hide_in_short_text(text: str, redactor: Redactor, _revision: int) -> str:
    """Hide secrets; most errors say the same, and to read it again took two thirds of a refusal."""
    return redactor.hide_secrets(text)


def call(number: str, method: str, params: Any) -> dict[str, Any]:
    """Return a call to the client, without `params` if they are None."""
    message = {"jsonrpc": VERSION, "id": number, "method": method}
    return message if params is None else message | {"params": params}


def notification(method: str, params: Any) -> dict[str, Any]:
    """Return an event for the client."""
    return {"jsonrpc": VERSION, "method": method, "params": params}


def error_of(response: Response) -> DaemonError:
    """Turn the client's error into ours; only its number is repeated."""
    try:
        fields = msgspec.json.decode(bytes(cast("Raw", response.error)), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        fields = {}
    number = fields.get("code") if isinstance(fields.get("code"), int) else None
    return DaemonError(ErrorCode.HOST_ERROR, "The client answered with an error.", hostCode=number)


class Framing(Enum):
    """How a connection marks the ends of its messages."""

    LINES = "lines"
    HEADERS = "headers"
    WHOLE = "whole"


class Frame(Model):
    """The bytes of one message."""

    body: bytes | bytearray


class OversizedMessage(Model):
    """A message that was skipped; its two ends are kept to find its id in them."""

    size: int
    head: bytes
    tail: bytes


class Unreadable(Model):
    """Bytes after which no message boundary can be trusted any more."""

    reason: str


Event = Frame | OversizedMessage | Unreadable


def add_framing(framing: Framing, body: bytearray, room: int = 0) -> bytearray:
    """Add the framing to an outgoing message, in place; its first `room` bytes are free for that."""
    head = b"Content-Length: %d\r\n\r\n" % (len(body) - room) if framing is Framing.HEADERS else b""
    if len(head) > room:
        body[:room] = head
    else:
        body[room - len(head) : room] = head
        del body[: room - len(head)]
    if framing is Framing.LINES:
        body += b"\n"
    return body


class PartialMessage:
    """A message of known length of which a part has arrived; every byte is copied once."""

    def __init__(self, begun: bytearray, start: int, length: int) -> None:
        self.body = bytearray(length)
        self.size = len(begun) - start
        with memoryview(begun) as view:
            self.body[: self.size] = view[start:]

    @property
    def is_complete(self) -> bool:
        """Whether all of it is there."""
        return self.size == len(self.body)

    def room(self) -> memoryview | None:
        """Return the memory of the missing bytes."""
        return None if self.is_complete else memoryview(self.body)[self.size :]

    def take(self, data: bytes | memoryview) -> int:
        """Copy the bytes that belong to the message, and return their number."""
        used = min(len(self.body) - self.size, len(data))
        with memoryview(data) as view:
            self.body[self.size : self.size + used] = view[:used]
        self.size += used
        return used


class SkippedMessage:
    """A message too large to keep: only its size and its two ends are."""

    def __init__(self, remaining: int | None = None) -> None:
        self._remaining = remaining
        self._size = 0
        self._head = b""
        self._tail = b""
        self.done = remaining == 0

    @classmethod
    def of(cls, start: bytes | bytearray) -> "SkippedMessage":
        """Begin with the first bytes of a message that has no stated length."""
        skip = cls()
        skip._keep(start)
        return skip

    def take(self, buffer: bytearray) -> int:
        """Count the bytes that belong to the message, and return their number."""
        if self._remaining is None:
            end = buffer.find(b"\n")
            self.done = end >= 0
            ours = end if self.done else len(buffer)
            used = ours + 1 if self.done else ours
        else:
            used = ours = min(self._remaining, len(buffer))
            self._remaining -= used
            self.done = self._remaining == 0
        self._keep(buffer if ours == len(buffer) else buffer[:ours])
        return used

    def event(self) -> OversizedMessage:
        """Return the event for the skipped message, with its whole size."""
        size = self._size + (self._remaining or 0)
        return OversizedMessage(size=size, head=self._head, tail=self._tail.strip(BLANK))

    def _keep(self, data: bytes | bytearray) -> None:
        self._size += len(data)
        self._head += bytes(data[: max(0, HEAD_BYTES - len(self._head))])
        self._tail = (self._tail + bytes(data[-TAIL_BYTES:]))[-TAIL_BYTES:]


class Splitter:
    """Cut a stream of bytes into messages, in the framing of its first bytes."""

    def __init__(self, limit: int) -> None:
        self.framing: Framing | None = None
        self.limit = limit
        self._buffer = bytearray()
        self._scanned = 0
        self._skipped: SkippedMessage | None = None
        self._partial: PartialMessage | None = None
        self._stopped = False

    def feed(self, data: bytes | memoryview) -> None:
        """Add bytes that have arrived; `events` then yields the messages."""
        if self._stopped:
            return
        used = 0 if self._partial is None else self._partial.take(data)
        if used < len(data):
            self._buffer += data[used:] if used else data

    @property
    def begun_bytes(self) -> int:
        """How much memory the message takes that has begun, as far as one knows."""
        return len(self._buffer) if self._partial is None else len(self._partial.body)

    def get_buffer(self) -> memoryview | None:
        """Return the memory for the rest of a large message, or None to use `feed`."""
        return None if self._partial is None else self._partial.room()

    def buffer_updated(self, size: int) -> None:
        """Count `size` bytes that were put into that memory."""
        if self._partial is not None:
            self._partial.size += size

    def events(self) -> Iterator[Event]:
        """Yield every complete message; the caller may stop early and call it again."""
        while not self._stopped:
            event = self._next()
            if event is None:
                return
            yield event

    def finish(self) -> Iterator[Event]:
        """Yield what the end of the stream completes: a last line, or that a message was cut."""
        yield from self.events()
        rest = bytes(self._buffer).strip(BLANK)
        cut = self._partial is not None or self.framing is Framing.HEADERS
        if self._skipped is not None:
            skip, self._skipped = self._skipped, None
            yield skip.event()
        elif (rest or self._partial is not None) and not self._stopped:
            self._buffer.clear()
            self._partial = None
            yield (
                Unreadable(reason="the stream ended inside a message") if cut else Frame(body=rest)
            )

    def _next(self) -> Event | None:
        if self._skipped is not None:
            return self._skip(self._skipped)
        if self._partial is not None:
            return self._next_partial(self._partial)
        if self.framing is None:
            self._detect()
        if self.framing is Framing.HEADERS:
            return self._next_with_headers()
        return self._next_line() if self.framing is Framing.LINES else None

    def _detect(self) -> None:
        start = bytes(self._buffer[: HEADER_LIMIT * 2]).lstrip(BLANK)
        if not start:
            self._buffer.clear()
            return
        start = start[: len(_HEADER_START)].lower()
        if start == _HEADER_START:
            self.framing = Framing.HEADERS
        elif not _HEADER_START.startswith(start):
            self.framing = Framing.LINES

    def _next_line(self) -> Event | None:
        while (end := self._buffer.find(b"\n", self._scanned)) >= 0:
            line = self._take(0, end, end + 1)
            self._scanned = 0
            if end > self.limit:
                return SkippedMessage.of(line).event()
            if body := _strip(line):
                return Frame(body=body)
        self._scanned = len(self._buffer)
        if self._scanned > self.limit:
            self._skipped = SkippedMessage.of(self._buffer)
            self._buffer = bytearray()
            self._scanned = 0
        return None

    def _next_with_headers(self) -> Event | None:
        usual = _USUAL_HEADER.match(self._buffer)
        if usual is not None:
            return self._next_body(usual.end(), int(usual[1]))
        self._buffer = self._buffer.lstrip(BLANK)
        found = _END_OF_HEADERS.search(self._buffer, 0, HEADER_LIMIT + 4)
        if found is None:
            too_long = len(self._buffer) > HEADER_LIMIT
            return self._fail("the headers are too long") if too_long else None
        length = content_length(bytes(self._buffer[: found.start()]))
        return (
            self._fail(length) if isinstance(length, str) else self._next_body(found.end(), length)
        )

    def _next_body(self, start: int, length: int) -> Event | None:
        if length > LONGEST_SKIP:
            return self._fail(NOT_A_LENGTH)
        if length > self.limit:
            del self._buffer[:start]
            self._skipped = SkippedMessage(remaining=length)
            return self._skip(self._skipped)
        if len(self._buffer) < start + length:
            self._partial = PartialMessage(self._buffer, start, length)
            self._buffer = bytearray()
            return None
        return Frame(body=self._take(start, start + length, start + length))

    def _next_partial(self, partial: PartialMessage) -> Event | None:
        if not partial.is_complete:
            return None
        self._partial = None
        return Frame(body=partial.body)

    def _take(self, start: int, end: int, after: int) -> bytes | bytearray:
        """Cut a message out of the buffer; a large one keeps the buffer, and the rest is copied."""
        if end - start < LARGE:
            with memoryview(self._buffer) as view:
                body = bytes(view[start:end])
            del self._buffer[:after]
            return body
        whole, self._buffer = self._buffer, self._buffer[after:]
        del whole[end:]
        del whole[:start]
        return whole

    def _skip(self, skip: SkippedMessage) -> Event | None:
        used = skip.take(self._buffer)
        del self._buffer[:used]
        if not skip.done:
            return None
        self._skipped = None
        return skip.event()

    def stop(self) -> None:
        """Ignore all further bytes, and drop those that were not read yet."""
        self._stopped = True
        self._buffer.clear()

    def _fail(self, reason: str) -> Unreadable:
        self.stop()
        return Unreadable(reason=reason)


def _strip(line: bytes | bytearray) -> bytes | bytearray:
    clean = line and line[0] not in BLANK and line[-1] not in BLANK
    return line if clean else line.strip(BLANK)


def content_length(headers: bytes) -> int | str:
    """Return the one `Content-Length`, or the reason why the headers are not valid."""
    lengths: set[bytes] = set()
    for line in headers.splitlines():
        name, colon, value = line.partition(b":")
        if not colon or not re.fullmatch(rb"[A-Za-z0-9-]+", name):
            return "a header line is not `Name: value`"
        if name.lower() == b"content-length":
            lengths.add(value.strip())
    if len(lengths) != 1:
        return "there must be exactly one Content-Length"
    (text,) = lengths
    return int(text) if re.fullmatch(rb"[0-9]{1,13}", text) else NOT_A_LENGTH
