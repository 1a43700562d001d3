"""A source with its fragments in memory, for tests and scripts.

It can be made to fail, to hang or to return nonsense, as real ones do.
"""

from collections.abc import Sequence
from typing import Any, cast

import anyio

from creonowd.context.fragment import Caution, Fragment, Layer, Place, caution
from creonowd.context.plan import Need
from creonowd.context.source import PendingResult, Source, SourceQuery, SourceResult
from creonowd.errors import WarningCode

_UNAVAILABLE = caution(WarningCode.SOURCE_UNAVAILABLE)


class InMemorySource(Source):
    """Returns the fragments that it was made with, and records what it was asked."""

    def __init__(
        self,
        layer: Layer,
        name: str = "memory",
        fragments: Sequence[Fragment] = (),
        *,
        need: Need = Need.ALWAYS,
        unavailable: Caution = _UNAVAILABLE,
        timeout_ms: int | None = None,
    ) -> None:
        self.layer = layer
        self.name = name
        self.need = need
        self.unavailable = unavailable
        self.timeout_ms = timeout_ms
        self.answer: Any = SourceResult(fragments=tuple(fragments))
        self.failure: Exception | None = None
        self.hangs = False
        self.queries: list[SourceQuery] = []

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return the fragments, or fail or hang as set, once it is waited for."""
        return self._answer(ask)

    async def _answer(self, ask: SourceQuery) -> SourceResult:
        self.queries.append(ask)
        if self.hangs:
            await anyio.sleep_forever()
        if self.failure is not None:
            raise self.failure
        return cast("SourceResult", self.answer)


async def result_of(source: Source, ask: SourceQuery) -> SourceResult:
    """Return what a source returns, waiting for it if need be."""
    returned = source.fetch(ask)
    return returned if isinstance(returned, SourceResult) else await returned


def result_at_once(source: Source, ask: SourceQuery) -> SourceResult | None:
    """Return what a source returns from memory; None if it would have to be waited for."""
    returned = source.fetch(ask)
    if isinstance(returned, SourceResult):
        return returned
    returned.close()
    return None


def piece(layer: Layer, source_ref: str, text: str, **ranks: Any) -> Fragment:
    """Make a fragment that stands where its reference sorts."""
    given: dict[str, Any] = {"place": Place(0, source_ref, 0), **ranks}
    return Fragment(layer=layer, source=layer, source_ref=source_ref, text=text, **given)
