"""The base of every value that crosses the wire or reaches a disk.

Knows how structs are spelled (camelCase, keyword-only, frozen); knows no field of any.
"""

from typing import Any, dataclass_transform

import msgspec


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class ModelMeta(msgspec.StructMeta):
    """Give each subclass the configuration that msgspec does not inherit."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> Any:
        """Make the struct; a keyword in the class line wins over the house default."""
        house: dict[str, Any] = {"kw_only": True, "frozen": True, "rename": "camel"}
        return super().__new__(mcls, name, bases, namespace, **(house | config))


class Model(msgspec.Struct, metaclass=ModelMeta):
    """A frozen value with camelCase names on the wire."""


class Params(Model):
    """The payload of a channel. Unknown fields are ignored and counted."""


class Result(Model, omit_defaults=False):
    """What a channel answers. Fields left at `UNSET` do not appear on the wire."""


class Empty(Params):
    """A payload without fields."""
