"""The plan of one assembly: the request, what its skill asks for, and the budget.

It decides which sources are asked; nothing that a skill did not ask for is read.
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Protocol

from creonowd.context.budget import Figures
from creonowd.context.fragment import STABLE, Fragment, Layer, LeftOut, Span
from creonowd.errors import WarningCode
from creonowd.model import Model
from creonowd.tokens.boundaries import grapheme_ceiling, grapheme_floor, paragraphs

MAX_SURROUNDING = 20_000
MAX_RECENT_SUMMARY = 10
LONGEST_QUERY = 2000
CHUNK_LIMIT = 200
MOST_SUMMARIES = 3

PLACES = ("text", "selection", "instruction", "title")
ELSEWHERE = "（见上文 Immediate）"
BEFORE = "（见前）"
NOTHING = "（无）"

_PLACE = re.compile(r"\{\{\s*([^{}\s]*)\s*\}\}")


class ContextRules(Model):
    """A skill's declaration of the context it needs; everything is off unless asked for."""

    surrounding: int = 0
    user_preferences: bool = False
    style_guide: bool = False
    characters: bool = False
    outline: bool = False
    recent_summary: int = 0
    knowledge_graph: bool = False
    retrieval: bool = False


class Need(StrEnum):
    """The key of `context_rules` that asks for a source; a source with `always` needs none.

    `evidence` is asked for by either of two: mentioned entities are characters to one skill and
    part of the graph to another.
    """

    ALWAYS = "always"
    SURROUNDING = "surrounding"
    USER_PREFERENCES = "user_preferences"
    STYLE_GUIDE = "style_guide"
    CHARACTERS = "characters"
    OUTLINE = "outline"
    RECENT_SUMMARY = "recent_summary"
    KNOWLEDGE_GRAPH = "knowledge_graph"
    RETRIEVAL = "retrieval"
    EVIDENCE = "evidence"


class Summary(StrEnum):
    """What a skill may rely on and only a host can give, because it takes the whole novel."""

    FULL_TEXT = "full_text"
    RELATIONS = "relations"


_NEED_DOCUMENT = (
    Need.SURROUNDING,
    Need.CHARACTERS,
    Need.OUTLINE,
    Need.KNOWLEDGE_GRAPH,
    Need.RETRIEVAL,
)


def wants(rules: ContextRules | None, need: Need) -> bool:
    """Return whether a skill asks for something; the general profile (None) asks for everything."""
    if rules is None or need is Need.ALWAYS:
        return True
    if need is Need.EVIDENCE:
        return rules.characters or rules.knowledge_graph
    return bool(getattr(rules, need.value))


def wants_document(rules: ContextRules | None) -> bool:
    """Return whether anything that a skill asks for depends on the document's text."""
    return any(wants(rules, need) for need in _NEED_DOCUMENT)


class Task(Model):
    """The instructions of a skill to the model, with places such as `{{text}}`."""

    template: str = ""

    @property
    def places(self) -> frozenset[str]:
        """The names of all places in the template, known or not."""
        return frozenset(_PLACE.findall(self.template))

    @property
    def shows_selection(self) -> bool:
        """Whether the task shows the selection, so that nothing else needs to."""
        return bool(self.places & {"text", "selection"})

    @property
    def shows_instruction(self) -> bool:
        """Whether the task shows the additional input, so that nothing else needs to."""
        return "instruction" in self.places

    def fill(self, values: Mapping[str, str]) -> str:
        """Put values into the places, each text once.

        `{{text}}` and `{{selection}}` are the same text. Without a selection they refer to the
        text above; any other place without a value says that there is none.
        """
        filled: set[str] = set()

        def value_of(match: re.Match[str]) -> str:
            name = "selection" if match[1] == "text" else match[1]
            if name in filled and name != "title":
                return BEFORE
            filled.add(name)
            return values.get(match[1]) or (ELSEWHERE if name == "selection" else NOTHING)

        return _PLACE.sub(value_of, self.template)


class SkillNeeds(Model):
    """The part of a skill that decides an assembly; `rules` None is the general profile."""

    skill_id: str
    name: str = ""
    rules: ContextRules | None = None
    task: Task = Task()
    target_tokens: int | None = None


class Document(Model):
    """A document and where its author is in it."""

    source_ref: str
    text: str
    cursor: int
    selection: Span | None = None

    @property
    def here(self) -> Span:
        """The selection, else the cursor as an empty span."""
        return self.selection or Span(self.cursor, self.cursor)


class PlacedDocument(Model):
    """A document whose positions lie inside its text, and a warning if one had to be moved."""

    document: Document
    warnings: tuple[str, ...] = ()


def place(source_ref: str, text: str, cursor: int, selection: Span | None = None) -> PlacedDocument:
    """Place cursor and selection in a document; what lies beyond its end is clamped to it.

    Neither may lie inside a grapheme: the cursor moves before it, the selection includes it.
    """
    end = len(text)
    beyond = cursor > end or (selection is not None and selection.end > end)
    return PlacedDocument(
        document=Document(
            source_ref=source_ref,
            text=text,
            cursor=grapheme_floor(text, min(cursor, end)),
            selection=_clamp(selection, text),
        ),
        warnings=(WarningCode.CONTEXT_CURSOR_CLAMPED,) if beyond else (),
    )


def _clamp(selection: Span | None, text: str) -> Span | None:
    end = len(text)
    if selection is None or selection.start >= min(selection.end, end):
        return None
    start, end = selection.start, min(selection.end, end)
    return Span(grapheme_floor(text, start), grapheme_ceiling(text, end))


class Plan(Model):
    """Everything that decides one assembly, except what the sources return."""

    project_id: str
    document_id: str
    skill: SkillNeeds
    figures: Figures
    document: Document | None = None
    additional_input: str = ""
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    source_timeout_ms: int = 10_000

    @property
    def surrounding(self) -> int | None:
        """How many code points to show on each side of the cursor; None is as many as fit."""
        return None if self.skill.rules is None else self.skill.rules.surrounding

    @property
    def step(self) -> int:
        """The step in which the window and the query move."""
        return step(self.figures, self.surrounding)


def shows_document(plan: Plan) -> bool:
    """Return whether the text around the cursor is wanted."""
    wanted = wants(plan.skill.rules, Need.SURROUNDING)
    return wanted and Layer.IMMEDIATE not in plan.figures.off


def step(figures: Figures, surrounding: int | None) -> int:
    """Return the step G in which window and query move; it depends on skill and profile alone."""
    width = figures.share(Layer.IMMEDIATE) if surrounding is None else surrounding
    return max(1, width // 4)


def query(text: str, cursor: int, step: int) -> str:
    """Return the text to search with: what lies before the last multiple of the step.

    Within the first step of a document, its whole paragraphs so far.
    """
    end = cursor // step * step
    if end == 0:
        end = max(paragraphs(text, 0, cursor), default=0)
    return text[max(0, end - LONGEST_QUERY) : end]


class Ask(Model):
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


class Fetched(Model, cache_hash=True):
    """What a source returns: fragments of its layer, what it had to leave out, and warnings.

    A source that finds nothing changed should return the very same value again: it is then
    recognised without looking at its fragments.
    """

    fragments: tuple[Fragment, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
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

    async def fetch(self, ask: Ask) -> Fetched:
        """Return the fragments for one assembly; any exception means that there are none."""
        ...


def asked(plan: Plan, sources: Iterable[Source]) -> list[Source]:
    """Choose the sources of layers that are on and that the skill asks for."""
    return [
        source
        for source in sources
        if source.layer not in plan.figures.off and wants(plan.skill.rules, source.need)
    ]


def ask_for(plan: Plan, layer: Layer) -> Ask:
    """Say what a source of a layer is told."""
    ask = Ask(project_id=plan.project_id, skill_id=plan.skill.skill_id, limit=CHUNK_LIMIT)
    return ask if layer in STABLE else _dynamic(plan, ask)


def _dynamic(plan: Plan, ask: Ask) -> Ask:
    document = plan.document
    searched = "" if document is None else query(document.text, document.here.start, plan.step)
    rules = plan.skill.rules
    return Ask(
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
