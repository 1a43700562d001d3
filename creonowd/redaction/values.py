"""Redact values of any shape: what the last processor of the logging chain does to every line.

Knows containers, structs and exceptions; what a secret is stands in the rules.
"""

import dataclasses
from collections.abc import Mapping, MutableMapping
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, cast

import msgspec

from creonowd.redaction.redactor import Redactor
from creonowd.redaction.stretches import PLACEHOLDER

DEEPEST = 16

_everyone = Redactor()
_HARMLESS = (bool, int, float, complex, type(None), date, time, timedelta, Decimal)


def redact_event(
    _logger: Any, _method: str, event: MutableMapping[str, Any] | str | bytes
) -> MutableMapping[str, Any] | str | bytes:
    """Redact a structlog event, before or after it is rendered."""
    return redact_value(event)


def redact_value(value: Any, redactor: Redactor = _everyone) -> Any:
    """Redact every string in a value, keys too, at any depth, and whatever a secret's name holds.

    What is no container, number or text becomes its redacted `repr`; so does what is nested
    deeper than anyone reads, or inside itself.
    """
    return _Walk(redactor).value(value, frozenset())


class _Walk:
    """One walk through one value; containers on the way down are known by identity."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def value(self, value: Any, above: frozenset[int]) -> Any:
        if isinstance(value, str):
            return self._redactor.redact(value).text
        if isinstance(value, _HARMLESS):
            return value
        if id(value) in above or len(above) >= DEEPEST:
            return PLACEHOLDER
        return self._container(value, above | {id(value)})

    def _container(self, value: Any, above: frozenset[int]) -> Any:
        match value:
            case bytes() | bytearray():
                return self._redactor.redact(bytes(value).decode(errors="replace")).text.encode()
            case Mapping():
                return {
                    self._key(key): self._field(key, item, above)
                    for key, item in cast("Mapping[Any, Any]", value).items()
                }
            case list() | tuple() | set() | frozenset():
                return [self.value(item, above) for item in cast("list[Any]", value)]
            case _:
                return self._object(value, above)

    def _object(self, value: Any, above: frozenset[int]) -> Any:
        if isinstance(value, Enum):
            return self.value(value.value, above)
        if isinstance(value, msgspec.Struct):
            return self.value(
                {name: getattr(value, name) for name in value.__struct_fields__}, above
            )
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return self.value({field.name: getattr(value, field.name) for field in fields}, above)
        text = (
            f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else repr(value)
        )
        return self._redactor.redact(text).text

    def _key(self, key: Any) -> Any:
        return key if isinstance(key, _HARMLESS) else self._redactor.redact(str(key)).text

    def _field(self, key: Any, item: Any, above: frozenset[int]) -> Any:
        from creonowd.redaction.names import is_secret_name

        if isinstance(key, str) and not isinstance(item, bool | None) and is_secret_name(key):
            return PLACEHOLDER
        return self.value(item, above)
