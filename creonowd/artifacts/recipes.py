"""How a lazy file is made: the types of recipe that are known, and who follows each.

Knows types and their forms; makes nothing itself. Others add types of their own with `learn`.
"""

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, NamedTuple

import msgspec

from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.refs import Record
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.rpc.peer import Peer

LARGEST = 64 * 1024

Pull = Callable[[], Coroutine[Any, Any, bytes | None]]


class Making(NamedTuple):
    """A file that is wanted now, and who can be asked about it, the likeliest first."""

    conversation: Conversation
    record: Record
    hosts: list[Peer]
    timeout_ms: int


Maker = Callable[[Making, Any], Pull]


class Recipe(Model):
    """The fields of a recipe beside its `type`, and what it makes unless something else is said."""

    makes: ClassVar[str] = "text/plain"


class Recipes:
    """What can be made, by the recipe's type."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[type[Recipe], Maker]] = {}

    def learn(self, name: str, form: type[Recipe], maker: Maker) -> None:
        """Add a type of recipe, the form of its fields, and what makes it."""
        self._known[name] = (form, maker)

    def check(self, recipe: dict[str, Any]) -> str:
        """Refuse a recipe that nobody could follow; tell the type of what it makes."""
        form, _ = self._understood(recipe)
        if len(msgspec.json.encode(recipe)) > LARGEST:
            raise refused(f"recipe is larger than {LARGEST} bytes; put the file instead.")
        return form.makes

    def follow(self, making: Making) -> Pull:
        """Begin to make a file; the result gives it piece by piece, and None at its end."""
        form, maker = self._understood(making.record.recipe or {})
        return maker(making, form)

    def _understood(self, recipe: dict[str, Any]) -> tuple[Recipe, Maker]:
        name = recipe.get("type")
        known = self._known.get(name) if isinstance(name, str) else None
        if known is None:
            raise refused(f"recipe.type must be one of {', '.join(sorted(self._known))}.")
        try:
            return msgspec.convert(recipe, known[0]), known[1]
        except msgspec.ValidationError as error:
            raise refused(f"recipe does not fit its type: {error}.") from None


def refused(message: str) -> DaemonError:
    """Say what is wrong with a recipe."""
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="recipe")
