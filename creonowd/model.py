"""The base of every struct of the protocol and of stored files: frozen, camelCase in JSON."""

from typing import Any, dataclass_transform

import msgspec


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(msgspec.field,))
class ModelMeta(msgspec.StructMeta):
    """Give each subclass the options that msgspec does not inherit."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any
    ) -> Any:
        """Make the struct; a keyword of the class line overrides our default."""
        defaults: dict[str, Any] = {"kw_only": True, "frozen": True, "rename": "camel"}
        return super().__new__(mcls, name, bases, namespace, **(defaults | config))


class Model(msgspec.Struct, metaclass=ModelMeta):
    """A frozen value with camelCase names in JSON."""


class Params(Model):
    """The payload of a channel. Unknown fields are ignored and counted."""


class Result(Model, omit_defaults=False):
    """The result of a channel. Fields left at `UNSET` are not sent."""


class Empty(Params):
    """A payload without fields."""
