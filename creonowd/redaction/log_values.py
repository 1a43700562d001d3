"""Redact values of any type, for the last processor of the logging chain."""

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
CACHED = 4096

_general = Redactor()
_Plain = bool | int | float | complex | date | time | timedelta | Decimal | None


def redact_event(_logger: Any, _method: str, event: Any) -> Any:
    """Redact a structlog event, before or after it is rendered."""
    return redact_value(event)


def event_redactor(redactor: Redactor) -> Callable[[Any, str, Any], Any]:
    """Make a `redact_event` for one user's home folder and keys."""
    return lambda _logger, _method, event: redact_value(event, redactor)


def redact_value(value: Any, redactor: Redactor = _general) -> Any:
    """Redact every string in a value, keys too, at any depth, and any value of a secret name.

    Structs become dicts, other objects their redacted text. What is nested deeper than anyone
    reads, or inside itself, becomes the placeholder.
    """
    return _redact(value, redactor, frozenset())


def _redact(value: Any, redactor: Redactor, above: frozenset[int]) -> Any:
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, str):
        return _redact_text(value, redactor)
    if isinstance(value, _Plain):
        return value
    if isinstance(value, bytes | bytearray):
        return redactor.redact(value.decode(errors="replace")).text.encode(errors="replace")
    if id(value) in above or len(above) >= DEEPEST:
        return PLACEHOLDER
    return _redact_parts(value, redactor, above | {id(value)})


def _redact_text(text: str, redactor: Redactor) -> str:
    """Redact a text; short ones are cached, as names of events and fields come with every line."""
    return _redact_short(redactor, text) if len(text) <= SHORT else redactor.redact(text).text


@lru_cache(maxsize=CACHED)
def _redact_short(redactor: Redactor, text: str) -> str:
    return redactor.redact(text).text


def _redact_parts(value: Any, redactor: Redactor, above: frozenset[int]) -> Any:
    fields = _fields(value)
    if fields is not None:
        return _redact_fields(fields, redactor, above)
    if isinstance(value, list | tuple | set | frozenset):
        items = _redact_items(cast("Iterable[Any]", value), redactor, above)
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, Enum):
        return _redact(value.value, redactor, above)
    return redactor.redact(_text(value)).text


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """Return the fields of a value that has names for them, by name."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    as_dict = getattr(cast("Any", value), "_asdict", None)
    return as_dict() if isinstance(value, tuple) and as_dict else None


def _redact_fields(
    fields: Mapping[Any, Any], redactor: Redactor, above: frozenset[int]
) -> dict[Any, Any]:
    is_pair = _is_secret_name(fields.get("name", fields.get("key")))
    return {
        _redact_key(key, redactor): _redact_item(
            key, item, redactor, above, hidden=is_pair and key == "value"
        )
        for key, item in fields.items()
    }


def _redact_items(items: Iterable[Any], redactor: Redactor, above: frozenset[int]) -> list[Any]:
    """Redact a sequence; a pair such as `("Authorization", "…")` is a name and its value."""
    listed = list(items)
    if len(listed) == 2 and _is_secret_name(listed[0]):
        return [listed[0], _redact_item(listed[0], listed[1], redactor, above)]
    return [_redact(item, redactor, above) for item in listed]


def _redact_item(
    name: Any, item: Any, redactor: Redactor, above: frozenset[int], *, hidden: bool = False
) -> Any:
    is_empty = item is None or isinstance(item, bool) or (isinstance(item, str) and not item)
    if not is_empty and (hidden or _is_secret_name(name)):
        return PLACEHOLDER
    return _redact(item, redactor, above)


def _redact_key(key: Any, redactor: Redactor) -> Any:
    if type(key) is str:
        return _redact_text(key, redactor)
    return key if isinstance(key, _Plain) else _redact_text(_text(key), redactor)


def _is_secret_name(name: Any) -> bool:
    if isinstance(name, bytes):
        return _is_secret_name_text(name.decode(errors="replace"))
    return isinstance(name, str) and _is_secret_name_text(name)


@lru_cache(maxsize=CACHED)
def _is_secret_name_text(name: str) -> bool:
    from creonowd.redaction.labels import is_secret_name

    return is_secret_name(name)


def _text(value: Any) -> str:
    if isinstance(value, BaseException):
        notes = cast("list[str]", getattr(value, "__notes__", []))
        return "\n".join([f"{type(value).__name__}: {value}", *notes])
    return str(value) if isinstance(value, str | PurePath | UUID) else repr(value)
