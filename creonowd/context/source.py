"""The protocol of a source: which sources are asked, with what query, and what they return."""

from collections.abc import Iterable
from typing import Protocol

from creonowd.context.fragment import STABLE, Fragment, Layer, Omission
from creonowd.context.plan import (
    CHUNK_LIMIT,
    LONGEST_QUERY,
    MOST_SUMMARIES,
    Document,
    Need,
    Plan,
    query,
    wants,
)
from creonowd.model import Model


class SourceQuery(Model):
    """What a source is asked for.

    Sources of the stable layers get neither document nor query: nothing dynamic may leak into
    the stable prefix. `query` is the text to search with, from before the cursor; `wish` is what
    the author selected or asks for in words. `limit` bounds the fragments.
    """

    project_id: str
    skill_id: str
    limit: int
    document_id: str | None = None
    document: Document | None = None
    query: str = ""
    wish: str = ""
    recent_summary: int = 0


class SourceResult(Model, cache_hash=True):
    """What a source returns: fragments of its layer, what it had to leave out, and warnings.

    A source that finds nothing changed should return the very same value again: it is then
    recognised without looking at its fragments.
    """

    fragments: tuple[Fragment, ...] = ()
    left_out: tuple[Omission, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """Return about how many characters keeping this takes."""
        return 500 * (1 + len(self.left_out)) + sum(each.weight for each in self.fragments)


class Source(Protocol):
    """One place that text comes from, asked once per assembly."""

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
        """The key of a skill's `context_rules` that asks for it."""
        ...

    @property
    def unavailable(self) -> str:
        """The warning for a prompt without its text: `CODE` or `CODE: text`."""
        ...

    @property
    def timeout_ms(self) -> int | None:
        """Its own deadline; None is the engine's."""
        ...

    async def fetch(self, ask: SourceQuery) -> SourceResult:
        """Return the fragments for one assembly; any exception means that there are none."""
        ...


def wanted_sources(plan: Plan, sources: Iterable[Source]) -> list[Source]:
    """Choose the sources of layers that are on and that the skill asks for."""
    return [
        source
        for source in sources
        if source.layer not in plan.allowances.off and wants(plan.skill.rules, source.need)
    ]


def query_for(plan: Plan, layer: Layer) -> SourceQuery:
    """Say what a source of a layer is told."""
    ask = SourceQuery(project_id=plan.project_id, skill_id=plan.skill.skill_id, limit=CHUNK_LIMIT)
    return ask if layer in STABLE else _dynamic(plan, ask)


def _dynamic(plan: Plan, ask: SourceQuery) -> SourceQuery:
    document = plan.document
    searched = "" if document is None else query(document.text, document.here.start, plan.step)
    rules = plan.skill.rules
    return SourceQuery(
        project_id=ask.project_id,
        skill_id=ask.skill_id,
        limit=ask.limit,
        document_id=plan.document_id,
        document=document,
        query=searched,
        wish=_wish(plan),
        recent_summary=MOST_SUMMARIES if rules is None else rules.recent_summary,
    )


def _wish(plan: Plan) -> str:
    document = plan.document
    selected = document.selection if document else None
    text = document.text[selected.start : selected.end] if document and selected else ""
    return "\n".join(said for said in (text[:LONGEST_QUERY], plan.additional_input) if said)
