"""A channel: a name, a typed handler, who may call it and for how long.

The rest of the contract is here too: payloads, notifications and calls to the host.
"""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, NamedTuple, get_type_hints

import msgspec
from msgspec import UNSET, Raw, UnsetType
from msgspec import Meta as Bounds

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Empty, Model

META = "_meta"
_META_KEY = b'"_meta"'
COUNTED_BYTES = 64 * 1024
_NO_PARAMS = {b"", b"null"}
_PATH = re.compile(r" - at (?:`key` in )?`\$\.?([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]+)`")


class Meta(Model):
    """What a request may say about itself, in `params._meta`."""

    timeout_ms: Annotated[int, Bounds(ge=1, le=86_400_000)] | None = None
    """The deadline of this request, in milliseconds; TIMEOUT after that."""
    progress_token: str | int | None = None
    """Asks for `$/progress` notifications, which carry this token."""


class Payload(NamedTuple):
    """A decoded payload, its `_meta`, and how many unknown fields it had."""

    params: Any
    meta: Meta
    unknown: int


NO_META = Meta()
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_META = msgspec.json.Decoder(Meta)


def _decoder(struct: type[Any]) -> msgspec.json.Decoder[Any]:
    """Return a decoder that reads the numbers of untyped fields with Python's own `float`.

    msgspec takes ten microseconds for one like `1.7976931348623157e+308`, `float` takes half of
    one.
    """
    return msgspec.json.Decoder(struct, float_hook=float)


class PayloadReader:
    """Decodes the payloads of one channel."""

    def __init__(self, struct: type[Any]) -> None:
        self._decoder = _decoder(struct)
        self._fields = {field.encode_name for field in msgspec.structs.fields(struct)} | {META}

    def read(self, raw: Raw | bytes) -> Payload:
        """Decode a payload; INVALID_ARGUMENT names the field that does not fit."""
        with memoryview(raw) as view:
            start = bytes(view[:5])
        body = b"{}" if start in _NO_PARAMS else raw
        if start not in _NO_PARAMS and start[:1] != b"{":
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "`params` must be an object with named fields, not a list or a scalar.",
                field="params",
            )
        return self._decode(body)

    def _decode(self, body: Raw | bytes) -> Payload:
        try:
            meta, unknown = self._meta_and_unknown(body)
            return Payload(self._decoder.decode(body), meta, unknown)
        except msgspec.ValidationError as error:
            raise invalid_payload(error) from None
        except msgspec.DecodeError as error:
            raise DaemonError(ErrorCode.PARSE_ERROR, f"{error}.") from None
        except UnicodeDecodeError:
            raise DaemonError(ErrorCode.PARSE_ERROR, "The payload is not UTF-8.") from None
        except RecursionError:
            raise DaemonError(ErrorCode.PARSE_ERROR, "The payload is nested too deeply.") from None

    def _meta_and_unknown(self, body: Raw | bytes) -> tuple[Meta, int]:
        """Decode `_meta` and count unknown fields; those of a large payload are not counted."""
        whole = bytes(body)
        if len(whole) > COUNTED_BYTES and not may_have_meta(whole):
            return NO_META, 0
        members = _MEMBERS.decode(body)
        meta = _META.decode(members[META]) if META in members else NO_META
        return meta, len(members.keys() - self._fields)


def may_have_meta(body: bytes | bytearray) -> bool:
    """Return whether `_meta` may be in it.

    The test for one byte comes first because prose seldom has it; `rfind` is faster than `in`.
    """
    return b"_" in body and body.rfind(_META_KEY) >= 0


def invalid_payload(error: msgspec.ValidationError, within: str = "") -> DaemonError:
    """Return INVALID_ARGUMENT with the field that does not fit; `within` is the path to it."""
    text = str(error)
    at = _PATH.search(text)
    missing = _MISSING.search(text)
    steps = [within, at[1] if at else "", missing[1] if missing else ""]
    field = ".".join(filter(None, steps)).replace(".[", "[") or "params"
    message = f"`{field}` is missing." if missing else f"`{field}`: {_PATH.sub('', text)}."
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field=field)


Handler = Callable[[Any, Any], Any] | Callable[[Any, Any], Awaitable[Any]]

# The codes that any channel can answer with: about the message, the connection or the disk.
ANY_CHANNEL = frozenset(
    {
        ErrorCode.PARSE_ERROR,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_ARGUMENT,
        ErrorCode.IPC_PAYLOAD_TOO_LARGE,
        ErrorCode.IPC_BACKPRESSURE,
        ErrorCode.UNAUTHENTICATED,
        ErrorCode.FORBIDDEN,
        ErrorCode.CANCELED,
        ErrorCode.TIMEOUT,
        ErrorCode.SHUTTING_DOWN,
        ErrorCode.IO_ERROR,
        ErrorCode.STORAGE_FULL,
        ErrorCode.VERSION_TOO_NEW,
        ErrorCode.INTERNAL,
    }
)


class Role(StrEnum):
    """What a connection may do. An owner may do all that a renderer may."""

    OWNER = "owner"
    """May do everything."""
    RENDERER = "renderer"
    """A page: may not name paths, inspect, or change what belongs to the machine."""


class Deadline(StrEnum):
    """How long the requests of a channel may take; `_meta.timeoutMs` of a request overrides it."""

    REQUEST = "request"
    SKILL = "skill"
    NONE = "none"


class Channel:
    """One row of the table of channels.

    A handler that is a plain function runs inline; a coroutine function gets a task. An `open`
    channel may be called without a token. One with `envelope` returns failures as a result
    `{ok: false, error}` and never fails as a call. `refusal` is the code for a connection that
    lacks the role. `errors` are the codes that it can answer with beside those of `ANY_CHANNEL`
    and, if its payload names a project, NOT_FOUND.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        role: Role = Role.RENDERER,
        deadline: Deadline = Deadline.REQUEST,
        open: bool = False,  # noqa: A002 - the word for a channel that needs no token
        envelope: bool = False,
        refusal: ErrorCode = ErrorCode.FORBIDDEN,
        errors: Iterable[ErrorCode] = (),
    ) -> None:
        self.name = name
        self.handler = handler
        self.role = role
        self.deadline = deadline
        self.open = open
        self.envelope = envelope
        self.refusal = refusal
        self._errors = errors

    @cached_property
    def inline(self) -> bool:
        """Whether the handler is a plain function."""
        return not inspect.iscoroutinefunction(self.handler)

    @cached_property
    def params(self) -> type[Any]:
        """The struct of the payload."""
        return self._hints.get("params", Empty)

    @cached_property
    def payload(self) -> PayloadReader:
        """The decoder of the payload."""
        return PayloadReader(self.params)

    @cached_property
    def message(self) -> msgspec.json.Decoder[Any]:
        """The decoder of a whole request with such a payload."""
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
            *(("jsonrpc", str), ("method", str), ("params", self.params)),
            ("id", int | float | str | UnsetType | None, UNSET),
        ]
        return _decoder(msgspec.defstruct("Message", fields))

    @cached_property
    def result(self) -> Any:
        """The type of the result."""
        return self._hints.get("return", None)

    @property
    def errors(self) -> frozenset[ErrorCode]:
        """The codes that it can answer with, without those of `ANY_CHANNEL`."""
        names_a_project = any(f.name == "project_id" for f in msgspec.structs.fields(self.params))
        own = {ErrorCode.NOT_FOUND} if names_a_project else set[ErrorCode]()
        return frozenset(own.union(self._errors, {self.refusal})) - ANY_CHANNEL

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler, include_extras=True)


class Notification:
    """An event that the daemon sends; `fields` is the struct of its own fields."""

    def __init__(self, name: str, fields: type[Any]) -> None:
        self.name = name
        self.fields = fields


class HostCall:
    """A request that the daemon sends to a client."""

    def __init__(self, name: str, params: type[Any], result: type[Any]) -> None:
        self.name = name
        self.params = params
        self.result = result


class Stamp(Model):
    """What every notification carries beside its own fields."""

    seq: int
    """Counts the notifications of this connection from 1; a gap means that some were dropped."""
    ts: int
    """The daemon's clock when it was sent, in milliseconds since 1970 (UTC)."""


class Progress(Model):
    """How far a long request is; `token` is the `_meta.progressToken` that it came with."""

    token: str | int
    """The `_meta.progressToken` that the request came with."""
    value: Any
    """How far it is; what it looks like depends on the channel, mostly `{done, of}` or the
    like."""


class Lagged(Model):
    """How many notifications were dropped because this client read too slowly."""

    count: int
    """How many notifications were dropped because this client read too slowly."""


NOTIFICATIONS = (Notification("$/lagged", Lagged), Notification("$/progress", Progress))


class Contract(NamedTuple):
    """One version of the protocol: channels, notifications and calls to the host."""

    version: int
    channels: Sequence[Channel]
    notifications: Sequence[Notification] = ()
    host_calls: Sequence[HostCall] = ()
