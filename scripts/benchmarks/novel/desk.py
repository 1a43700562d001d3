"""The engine over a real project's files, without a wire: what one assembly costs, and what is said."""

from collections.abc import Sequence
from pathlib import Path

from creonowd.clock import SystemClock
from creonowd.context.assemble import Assembly, assemble
from creonowd.context.budget import BudgetProfile, LayerBudget, LayerBudgets
from creonowd.context.plan import ContextRules, Plan, SkillNeeds, figures_of, place
from creonowd.context.result import AssembleResult, Compared, ModelTarget, answer
from creonowd.context.text_tools import Memory, TextTools
from creonowd.redaction import Redactor
from creonowd.retrieval.indexes import Indexes
from creonowd.sources.passage_source import Passages
from creonowd.sources.project_files import ProjectSources
from creonowd.tokens.cache import CountCache
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import Watcher

REDACTOR = Redactor()
DOCUMENT = "chapters/042.md"


class Desk:
    """Everything that one daemon would have for one project; fresh ones remember nothing."""

    def __init__(self, root: Path) -> None:
        clock = SystemClock()
        tree = Tree(clock)
        self.project = Project(project_id="prj_bench", name="bench", root=root)
        constraints = Constraints(tree, clock, REDACTOR)
        unbuilt = Indexes(root / ".index", clock, Watcher(clock), lambda _project: {}, REDACTOR)
        self.sources = ProjectSources(tree, constraints, Passages(unbuilt))
        tokenizer = BpeTokenizer(packaged_encoding("o200k_base"), CountCache())
        self.instruments = TextTools(tokenizer, REDACTOR, Memory())

    async def assembled(self, plan: Plan) -> Assembly:
        """Assemble once."""
        return await assemble(plan, self.sources.of(self.project), self.instruments)

    async def answered(self, plan: Plan) -> AssembleResult:
        """Assemble once and tell it, as a channel does."""
        return answer(await self.assembled(plan), Compared(), ModelTarget(model="gpt-4o"))


def plan(
    text: str,
    cursor: int,
    total: int,
    surrounding: int | None = None,
    ratios: Sequence[float] = (0.15, 0.10, 0.25, 0.50),
) -> Plan:
    """Plan an assembly of a text at a cursor."""
    rules = None
    if surrounding is not None:
        rules = ContextRules(surrounding=surrounding, style_guide=True, characters=True)
    return Plan(
        project_id="prj_bench",
        document_id=DOCUMENT,
        skill=SkillNeeds(skill_id="bench", rules=rules),
        figures=figures_of(profile(total, ratios)),
        document=place(DOCUMENT, text, cursor).document,
        source_timeout_ms=60_000,
    )


def profile(total: int, ratios: Sequence[float]) -> BudgetProfile:
    """Make a budget with the default minimums."""
    layers = {
        name: LayerBudget(ratio=ratio, minimum_tokens=minimum)
        for name, ratio, minimum in zip(
            ("rules", "settings", "retrieved", "immediate"),
            ratios,
            (500, 200, 0, 2000),
            strict=True,
        )
    }
    return BudgetProfile(total_budget_tokens=total, layers=LayerBudgets(**layers))
