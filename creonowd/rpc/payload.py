"""A channel's payload: from raw JSON to its struct, or to the field that does not fit.

Knows types; knows no channel by name.
"""

import re
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta as Bounds
from msgspec import Raw

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model

META = "_meta"
_META_KEY = b'"_meta"'
SEARCHED = 64 * 1024
_ABSENT = {b"", b"null"}
_PATH = re.compile(r" - at `\$\.?([^`]*)`")
_MISSING = re.compile(r"missing required field `([^`]+)`")


class Meta(Model):
    """What a request may say about itself, in `params._meta`."""

    timeout_ms: Annotated[int, Bounds(ge=1, le=86_400_000)] | None = None
    progress_token: str | int | None = None


class Payload(NamedTuple):
    """A payload that fits, and what came with it."""

    params: Any
    meta: Meta
    unknown: int


NO_META = Meta()
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_META = msgspec.json.Decoder(Meta)


class PayloadReader:
    """Reads the payloads of one channel."""

    def __init__(self, struct: type[Any]) -> None:
        self._decoder = msgspec.json.Decoder(struct)
        self._known = {field.encode_name for field in msgspec.structs.fields(struct)} | {META}

    def read(self, raw: Raw | bytes) -> Payload:
        """Decode a payload; INVALID_ARGUMENT names the field that does not fit."""
        with memoryview(raw) as view:
            start = bytes(view[:5])
        body = b"{}" if start in _ABSENT else raw
        if start not in _ABSENT and start[:1] != b"{":
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "`params` must be an object with named fields, not a list or a scalar.",
                field="params",
            )
        return self._decode(body)

    def _decode(self, body: Raw | bytes) -> Payload:
        try:
            meta, unknown = self._around(body)
            return Payload(self._decoder.decode(body), meta, unknown)
        except msgspec.ValidationError as error:
            raise misfit(error) from None
        except msgspec.DecodeError as error:
            raise DaemonError(ErrorCode.PARSE_ERROR, f"{error}.") from None
        except UnicodeDecodeError:
            raise DaemonError(ErrorCode.PARSE_ERROR, "The payload is not UTF-8.") from None
        except RecursionError:
            raise DaemonError(ErrorCode.PARSE_ERROR, "The payload is nested too deeply.") from None

    def _around(self, body: Raw | bytes) -> tuple[Meta, int]:
        """Read `_meta` and count what is unknown; a large payload is not searched for the latter."""
        whole = bytes(body)
        if len(whole) > SEARCHED and not names_meta(whole):
            return NO_META, 0
        members = _MEMBERS.decode(body)
        meta = _META.decode(members[META]) if META in members else NO_META
        return meta, len(members.keys() - self._known)


def names_meta(body: bytes | bytearray) -> bool:
    """Whether `_meta` may be in it; prose seldom has the one byte, and `rfind` beats `in`."""
    return b"_" in body and body.rfind(_META_KEY) >= 0


def misfit(error: msgspec.ValidationError, within: str = "") -> DaemonError:
    """Say which field does not fit, and how; `within` is the field whose inside was looked at."""
    text = str(error)
    at = _PATH.search(text)
    missing = _MISSING.search(text)
    steps = [within, at[1] if at else "", missing[1] if missing else ""]
    field = ".".join(filter(None, steps)).replace(".[", "[") or "params"
    told = f"`{field}` is missing." if missing else f"`{field}`: {_PATH.sub('', text)}."
    return DaemonError(ErrorCode.INVALID_ARGUMENT, told, field=field)
