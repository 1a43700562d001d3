"""What the engine asks of a place that text comes from. Knows no such place."""

from collections.abc import Sequence
from typing import Protocol

from creonowd.context.document import Document
from creonowd.context.fragment import Fragment, Layer, LeftOut
from creonowd.context.needs import Need
from creonowd.model import Model


class Ask(Model):
    """What a source is told.

    Sources of the stable layers get neither document nor query: nothing dynamic may leak into
    the stable prefix. `query` is the text to search with, from before the cursor; `wish` is what
    the author selected or asks for in so many words. `limit` bounds the fragments.
    """

    project_id: str
    skill_id: str
    limit: int
    document_id: str | None = None
    document: Document | None = None
    query: str = ""
    wish: str = ""
    recent_summary: int = 0


class Fetched(Model, cache_hash=True):
    """What a source has to say: fragments, what it had to leave out, and warnings.

    A source that finds nothing changed should return the very same value again: equal
    fragments are then recognised without being looked at.
    """

    fragments: tuple[Fragment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        return 500 * (1 + len(self.left_out)) + sum(each.weight for each in self.fragments)


class Source(Protocol):
    """One place that text comes from.

    `unavailable` is the warning that stands for its text when it fails; `timeout_ms` overrules
    the engine's deadline.
    """

    @property
    def layer(self) -> Layer:
        """The layer that its fragments belong to."""
        ...

    @property
    def name(self) -> str:
        """What it is called in warnings and logs."""
        ...

    @property
    def need(self) -> Need:
        """Which of a skill's `context_rules` asks for it."""
        ...

    @property
    def unavailable(self) -> str:
        """The warning for a prompt without it: `CODE` or `CODE: text`."""
        ...

    @property
    def timeout_ms(self) -> int | None:
        """How long it may take, if not as long as any other."""
        ...

    async def fetch(self, ask: Ask) -> Fetched:
        """Give the fragments for one assembly; any exception means that there are none."""
        ...


class Party(Protocol):
    """Goes for the text of several sources at once: a task for each would cost more than the way."""

    async def go(self, names: Sequence[str]) -> None:
        """Fetch what these sources have to say, until cancelled; one that hangs holds up no other."""
        ...

    def told(self, name: str) -> object:
        """Give what a source said or failed with; None if it is not back."""
        ...


class Accompanied:
    """A source whose text a party goes for."""

    party: Party
