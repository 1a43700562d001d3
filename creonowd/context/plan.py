"""What one assembly is about: the request, the skill's demands and the budget, as one value.

Decides which sources are asked; nothing that a skill did not ask for is read. Knows no source.
"""

from collections.abc import Iterable

from creonowd.context.document import Document
from creonowd.context.figures import Figures, step
from creonowd.context.fragment import STABLE, Layer, LeftOut
from creonowd.context.grid import LONGEST_QUERY, query
from creonowd.context.needs import ContextRules, Need, wants
from creonowd.context.source import Ask, Source
from creonowd.context.task import Task
from creonowd.model import Model

CHUNK_LIMIT = 200
MOST_SUMMARIES = 3


class Skill(Model):
    """What the engine needs to know of a skill; `rules` None is the general profile."""

    skill_id: str
    name: str = ""
    rules: ContextRules | None = None
    task: Task = Task()
    target_tokens: int | None = None


class Plan(Model):
    """Everything that decides one assembly, sources aside."""

    project_id: str
    document_id: str
    skill: Skill
    figures: Figures
    document: Document | None = None
    additional_input: str = ""
    warnings: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    source_timeout_ms: int = 10_000

    @property
    def surrounding(self) -> int | None:
        """How many code points on each side; None is as many as fit."""
        return None if self.skill.rules is None else self.skill.rules.surrounding

    @property
    def step(self) -> int:
        """The step in which the window and the query move."""
        return step(self.figures, self.surrounding)


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


def shows_document(plan: Plan) -> bool:
    """Tell whether the text around the cursor is wanted."""
    wanted = wants(plan.skill.rules, Need.SURROUNDING)
    return wanted and Layer.IMMEDIATE not in plan.figures.off


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
