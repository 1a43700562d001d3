"""JSON in its one canonical spelling: sorted keys, no spaces, no escapes that are not needed.

Equal values give equal bytes on any machine. Knows no file.
"""

import codecs
import json
import re
from collections.abc import Collection
from typing import Any, cast

import msgspec

HOST_NOISE = frozenset({"timestamp", "requestId", "nonce"})

_SURROGATE = re.compile("[\ud800-\udfff]")


def canonical_json(text: str, *, without: Collection[str] = ()) -> str:
    """Spell a JSON text canonically, leaving out some keys; ValueError if it is not JSON."""
    try:
        return spell(json.loads(text, parse_constant=_refuse), without=without)
    except RecursionError:
        raise ValueError("The JSON is nested too deeply.") from None


def spell(value: Any, *, without: Collection[str] = ()) -> str:
    """Spell a decoded JSON value canonically; ValueError if a number has no JSON spelling."""
    kept = _without(value, without) if without else value
    text = json.dumps(
        kept, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )
    return well_formed(text)


def well_formed(text: str) -> str:
    """Replace each lone surrogate by U+FFFD, so that the text has UTF-8 bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub("\ufffd", text)
    return text


def _without(value: Any, keys: Collection[str]) -> Any:
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value)
        return {key: _without(item, keys) for key, item in items.items() if key not in keys}
    if isinstance(value, list):
        members = cast("list[Any]", value)
        return [_without(item, keys) for item in members]
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON.")


def as_text(data: bytes) -> str | None:
    """Read UTF-8, with or without a byte-order mark; None if it is something else."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_json(text: str) -> bool:
    """Tell whether a text is one JSON value."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
