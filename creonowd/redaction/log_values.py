"""Redact values of any shape: what the last processor of the logging chain does to every line.

Knows containers, structs and exceptions; what a secret is stands in the rules.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

import msgspec

from creonowd.redaction.redactor import Redactor
from creonowd.redaction.rules import PLACEHOLDER

DEEPEST = 16
SHORT = 48
REMEMBERED = 4096

_everyone = Redactor()
_Plain = bool | int | float | complex | date | time | timedelta | Decimal | None


def redact_event(_logger: Any, _method: str, event: Any) -> Any:
    """Redact a structlog event, before or after it is rendered."""
    return redact_value(event)


def event_redactor(redactor: Redactor) -> Callable[[Any, str, Any], Any]:
    """Make a `redact_event` that knows one user's home folder and keys."""
    return lambda _logger, _method, event: redact_value(event, redactor)


def redact_value(value: Any, redactor: Redactor = _everyone) -> Any:
    """Redact every string in a value, keys too, at any depth, and whatever a secret's name holds.

    Structs become dicts, other objects their redacted text. What is nested deeper than anyone
    reads, or inside itself, becomes the placeholder.
    """
    return _redacted(value, redactor, frozenset())


def _redacted(value: Any, redactor: Redactor, above: frozenset[int]) -> Any:
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, str):
        return _clean(value, redactor)
    if isinstance(value, _Plain):
        return value
    if isinstance(value, bytes | bytearray):
        return redactor.redact(value.decode(errors="replace")).text.encode(errors="replace")
    if id(value) in above or len(above) >= DEEPEST:
        return PLACEHOLDER
    return _taken_apart(value, redactor, above | {id(value)})


def _clean(text: str, redactor: Redactor) -> str:
    """Redact a text; the names of events, levels and fields come again with every line."""
    return _short(redactor, text) if len(text) <= SHORT else redactor.redact(text).text


@lru_cache(maxsize=REMEMBERED)
def _short(redactor: Redactor, text: str) -> str:
    return redactor.redact(text).text


def _taken_apart(value: Any, redactor: Redactor, above: frozenset[int]) -> Any:
    fields = _fields(value)
    if fields is not None:
        return _mapping(fields, redactor, above)
    if isinstance(value, list | tuple | set | frozenset):
        items = _items(cast("Iterable[Any]", value), redactor, above)
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, Enum):
        return _redacted(value.value, redactor, above)
    return redactor.redact(_text(value)).text


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """Name the parts of whatever has names for them."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    as_dict = getattr(cast("Any", value), "_asdict", None)
    return as_dict() if isinstance(value, tuple) and as_dict else None


def _mapping(
    fields: Mapping[Any, Any], redactor: Redactor, above: frozenset[int]
) -> dict[Any, Any]:
    named = _is_secret_name(fields.get("name", fields.get("key")))
    return {
        _key(key, redactor): _held(key, item, redactor, above, hidden=named and key == "value")
        for key, item in fields.items()
    }


def _items(items: Iterable[Any], redactor: Redactor, above: frozenset[int]) -> list[Any]:
    """Redact a sequence; a pair such as `("Authorization", "…")` is a name and its value."""
    listed = list(items)
    if len(listed) == 2 and _is_secret_name(listed[0]):
        return [listed[0], _held(listed[0], listed[1], redactor, above)]
    return [_redacted(item, redactor, above) for item in listed]


def _held(
    name: Any, item: Any, redactor: Redactor, above: frozenset[int], *, hidden: bool = False
) -> Any:
    tells_nothing = item is None or isinstance(item, bool) or (isinstance(item, str) and not item)
    if not tells_nothing and (hidden or _is_secret_name(name)):
        return PLACEHOLDER
    return _redacted(item, redactor, above)


def _key(key: Any, redactor: Redactor) -> Any:
    if type(key) is str:
        return _clean(key, redactor)
    return key if isinstance(key, _Plain) else _clean(_text(key), redactor)


def _is_secret_name(name: Any) -> bool:
    if isinstance(name, bytes):
        return _announces(name.decode(errors="replace"))
    return isinstance(name, str) and _announces(name)


@lru_cache(maxsize=REMEMBERED)
def _announces(name: str) -> bool:
    from creonowd.redaction.labels import is_secret_name

    return is_secret_name(name)


def _text(value: Any) -> str:
    if isinstance(value, BaseException):
        notes = cast("list[str]", getattr(value, "__notes__", []))
        return "\n".join([f"{type(value).__name__}: {value}", *notes])
    return str(value) if isinstance(value, str | PurePath | UUID) else repr(value)
