"""JSON-RPC 2.0 messages: bytes to values and back. Knows no channel."""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import UNSET, Raw, UnsetType

from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import NO_META, Channel, Payload, names_meta

Id = int | float | str | None

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)
_SURROGATES = re.compile(
    rb"(?<!\\)(?P<backslashes>(?:\\\\)*+)"
    rb"(?:\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<lone>\\u[dD][89a-fA-F][0-9a-fA-F]{2}))"
)
_LONE = re.compile("[\ud800-\udfff]")
_ID_AT_END = re.compile(
    rb'"id"\s*:\s*(-?\d+(?:\.\d+)?|"(?:[^"\\]|\\.)*")\s*'
    rb'(?:,\s*"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*)*\}$'
)
SEARCHED_FOR_ID = 64 * 1024


def recover_id(head: bytes, tail: bytes = b"") -> Id:
    """Find the id of a broken message among its own top-level keys; None when there is none."""
    found = _scan_for_id(head[:SEARCHED_FOR_ID])
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
        depth += token in {b"{", b"["}
        depth -= token in {b"}", b"]"}
        previous = [previous[1], token]
    return None


def _scalar(token: bytes) -> Id:
    try:
        value = json.loads(token)
    except (ValueError, UnicodeDecodeError):
        return None
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mend_surrogates(body: bytes) -> bytes | None:
    r"""Replace every lone `\ud83d` by `\ufffd` and nothing else; None if there is none."""
    whole = _SURROGATES.sub(_without_lone, body)
    return None if whole == body else whole


def _without_lone(escape: re.Match[bytes]) -> bytes:
    return escape["backslashes"] + rb"\ufffd" if escape["lone"] else escape.group()


def mended(value: Any) -> Any:
    """Rebuild a decoded value with no lone surrogate in any key or string."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {mended(key): mended(member) for key, member in members.items()}
    if isinstance(value, list | tuple):
        return [mended(item) for item in cast("list[Any]", value)]
    return value


def without_surrogates(text: str) -> str:
    """Replace lone surrogates by U+FFFD, so that the text can be encoded."""
    return _LONE.sub("\ufffd", text)


VERSION = "2.0"
CHECKED_WHOLE = 64 * 1024
_EMPTY = Raw(b"")
_ENCODER = msgspec.json.Encoder()


class Request(msgspec.Struct, frozen=True):
    """A call that wants a reply, or a notification (`id` unset) that gets none.

    `payload` is there when the params were read together with the rest.
    """

    method: str
    params: Raw
    id: Id | UnsetType = UNSET
    payload: Payload | None = None


class Response(msgspec.Struct, frozen=True):
    """The client's answer to a call of ours."""

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


Message = Request | Response | Invalid | Batch


class _Envelope(msgspec.Struct):
    jsonrpc: str
    id: int | float | str | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: Raw = _EMPTY
    result: Raw = _EMPTY
    error: Raw = _EMPTY


_ENVELOPE = msgspec.json.Decoder(_Envelope)
_ITEMS = msgspec.json.Decoder(list[Raw])


def decode(body: bytes | bytearray, max_batch: int) -> Message:
    """Read one frame; whatever is wrong with it comes back as `Invalid`, never as an exception."""
    if len(body) <= CHECKED_WHOLE and not _is_utf8(body):
        return _parse_error(body, "The message is not UTF-8.")
    return _decode_batch(body, max_batch) if body[:1] == b"[" else _decode_one(body)


def _is_utf8(body: bytes | bytearray) -> bool:
    """Check the encoding of all of it; in a large message only what is read gets checked."""
    if body.isascii():
        return True
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_one(body: bytes | bytearray) -> Request | Response | Invalid:
    try:
        return _typed(_ENVELOPE.decode(body))
    except msgspec.ValidationError as error:
        return _invalid(body, f"The message is not a JSON-RPC 2.0 request: {error}")
    except msgspec.DecodeError as error:
        whole = mend_surrogates(bytes(body))
        return _parse_error(body, f"{error}.") if whole is None else _decode_one(whole)
    except UnicodeDecodeError:
        return _parse_error(body, "The message is not UTF-8.")
    except RecursionError:
        return _parse_error(body, "The message is nested too deeply.")


def _typed(envelope: _Envelope) -> Request | Response | Invalid:
    known: Id = None if envelope.id is UNSET else envelope.id
    if envelope.jsonrpc != VERSION:
        return _refused(known, '`jsonrpc` must be "2.0".')
    if isinstance(envelope.method, str):
        return Request(envelope.method, envelope.params, envelope.id)
    if bytes(envelope.result) or bytes(envelope.error):
        error = envelope.error if bytes(envelope.error) not in {b"", b"null"} else None
        return Response(known, envelope.result, error)
    return _refused(known, "A message needs a `method`, or a `result` or `error`.")


def _decode_batch(body: bytes | bytearray, max_batch: int) -> Message:
    try:
        items = _ITEMS.decode(body)
    except msgspec.DecodeError as error:
        whole = mend_surrogates(bytes(body))
        if whole is not None:
            return _decode_batch(whole, max_batch)
        return _parse_error(body, f"{error}.")
    except RecursionError:
        return _parse_error(body, "The message is nested too deeply.")
    if not items:
        return _refused(None, "A batch must hold at least one request.")
    if len(items) > max_batch:
        return _refused(None, f"A batch may hold {max_batch} requests at most, not {len(items)}.")
    return Batch([_decode_one(bytes(item)) for item in items])


def _parse_error(body: bytes | bytearray, text: str) -> Invalid:
    return Invalid(recover_id(bytes(body)), DaemonError(ErrorCode.PARSE_ERROR, text))


def _invalid(body: bytes | bytearray, text: str) -> Invalid:
    return Invalid(recover_id(bytes(body)), DaemonError(ErrorCode.INVALID_REQUEST, text))


def _refused(known: Id, text: str) -> Invalid:
    return Invalid(known, DaemonError(ErrorCode.INVALID_REQUEST, text))


def encode(message: Any, room: int = 0) -> bytearray:
    """Write a message after `room` free bytes; a lone surrogate in it goes out as U+FFFD."""
    body = bytearray(room)
    try:
        _ENCODER.encode_into(message, body, room)
    except UnicodeEncodeError:
        _ENCODER.encode_into(mended(msgspec.to_builtins(message)), body, room)
    return body


def reply(to: Id, result: Any) -> dict[str, Any]:
    """Make the answer to a call."""
    return {"jsonrpc": VERSION, "id": to, "result": result}


def failure(to: Id, error: DaemonError, *, chinese: bool = False) -> dict[str, Any]:
    """Make the answer to a call that failed."""
    return {"jsonrpc": VERSION, "id": to, "error": error_object(error, chinese=chinese)}


def error_object(error: DaemonError, *, chinese: bool = False) -> dict[str, Any]:
    """Spell an error as it travels: number, message, and `data` with the code that clients test."""
    data: dict[str, Any] = {"code": error.code, "retryable": error.meaning.retryable}
    if error.details:
        data["details"] = error.details
    message = f"{error.meaning.chinese}（{error.message}）" if chinese else error.message
    return {"code": error.meaning.number, "message": message, "data": data}


def call(number: str, method: str, params: Any) -> dict[str, Any]:
    """Make a call to the client; `params` of None are left out."""
    message = {"jsonrpc": VERSION, "id": number, "method": method}
    return message if params is None else message | {"params": params}


def notification(method: str, params: Any) -> dict[str, Any]:
    """Make an event for the client."""
    return {"jsonrpc": VERSION, "method": method, "params": params}


def error_of(response: Response) -> DaemonError:
    """Turn the client's error into ours; whatever it holds, only its outline is repeated."""
    try:
        held = msgspec.json.decode(bytes(cast("Raw", response.error)), type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        held = {}
    number = held.get("code") if isinstance(held.get("code"), int) else None
    return DaemonError(ErrorCode.HOST_ERROR, "The client answered with an error.", hostCode=number)


LARGE = 64 * 1024
SEARCHED = 1024
_METHOD = re.compile(rb'"method"\s*:\s*"([^"\\]++)"')


def read_at_once(body: bytes | bytearray, channels: Mapping[str, Channel]) -> Request | None:
    """Read a request whose channel its first bytes name; None for all else."""
    named = _METHOD.search(body, 0, SEARCHED)
    channel = None if named is None else channels.get(named[1].decode("utf-8", "replace"))
    if channel is None or names_meta(body):
        return None
    try:
        read: Any = channel.message.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if read.jsonrpc != VERSION or read.method != channel.name:
        return None
    return Request(channel.name, msgspec.Raw(), read.id, Payload(read.params, NO_META, 0))
