"""Made-up projects for Hypothesis: every kind of source, document and budget, small but nasty."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

from creonowd.context.assemble import Assembly, compose
from creonowd.context.budget import BudgetProfile, LayerBudget, LayerBudgets, allowances_of
from creonowd.context.candidates import Unit, count_fragments, redact_fragments
from creonowd.context.fragment import ConstraintOrigin, Fragment, FragmentKind, Layer, Place, Span
from creonowd.context.plan import ContextRules, Plan, SkillNeeds, Task, place
from creonowd.context.source import GatheredFragments
from creonowd.context.text_tools import Memory, TextTools
from creonowd.redaction import Redactor
from creonowd.tokens import Tokenizer
from creonowd.tokens.tokenizer import PendingCounts, count_on_demand
from testing.novels import NAMES, SECRET, SENTENCES
from tests.tokens.vocabulary import texts, tokenizer

SENTENCE = "林远推开门，雨还在下，檐水滴在石阶上，苏晴没有抬头。"
REDACTOR = Redactor()

lines = st.one_of(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map("".join), texts)
prose = st.lists(lines, max_size=30).map("\n".join)
paragraphs = st.lists(lines, min_size=1, max_size=6).map("\n".join)
rates = st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0))


@dataclass(frozen=True)
class World:
    """Everything that one assembly is made of."""

    rules: tuple[Fragment, ...] = ()
    settings: tuple[Fragment, ...] = ()
    retrieved: tuple[Fragment, ...] = ()
    notes: tuple[Fragment, ...] = ()
    text: str = ""
    cursor: int = 0
    selection: Span | None = None
    additional_input: str = ""
    surrounding: int | None = None
    task: str = ""
    profile: BudgetProfile = field(default_factory=BudgetProfile)
    factor: float = 1.0

    def plan(self) -> Plan:
        placed = place("chapters/07.md", self.text, self.cursor, self.selection)
        around = self.surrounding
        rules = None if around is None else ContextRules(surrounding=around, retrieval=True)
        return Plan(
            project_id="prj_test",
            document_id="chapters/07.md",
            skill=SkillNeeds(skill_id="test", rules=rules, task=Task(template=self.task)),
            allowances=allowances_of(self.profile, self.factor),
            document=placed.document,
            additional_input=self.additional_input,
            warnings=placed.warnings,
        )

    def with_hosted(self, chunks: tuple[Fragment, ...]) -> "World":
        """The same world with chunks of hosts in the layer that they are for."""
        return replace(
            self,
            settings=(*self.settings, *_in(Layer.SETTINGS, chunks)),
            retrieved=(*self.retrieved, *_in(Layer.RETRIEVED, chunks)),
            notes=(*self.notes, *_in(Layer.IMMEDIATE, chunks)),
        )

    def gathered(self) -> GatheredFragments:
        return GatheredFragments(
            fragments={
                Layer.RULES: self.rules,
                Layer.SETTINGS: self.settings,
                Layer.RETRIEVED: self.retrieved,
                Layer.IMMEDIATE: self.notes,
            }
        )


def text_tools(counter: Tokenizer | None = None, memory: Memory | None = None) -> TextTools:
    """Real text_tools with a fresh memory, unless one is given."""
    return TextTools(counter or tokenizer("o200k_base"), REDACTOR, memory or Memory())


def unit_of(fragment: Fragment, using: TextTools) -> Unit:
    """Redact and count one fragment."""
    return count_fragments(redact_fragments([fragment], using), using)[0]


class CountingTokenizer:
    """A tokenizer that adds up the characters it has to count."""

    def __init__(self, real: Tokenizer) -> None:
        self.id, self.version = real.id, real.version
        self.exact, self.longest = real.exact, real.longest
        self._real = real
        self.characters = 0

    def count(self, text: str) -> int:
        self.characters += len(text)
        return self._real.count(text)

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        del ahead
        return count_on_demand(self.count, texts)


def assemble_world(world: World, using: TextTools | None = None) -> Assembly:
    """Assemble a made-up world."""
    return compose(world.plan(), world.gathered(), using or text_tools())


def profile_of(
    total: int,
    minimums: tuple[int, int, int, int] = (0, 0, 0, 0),
    ratios: tuple[float, float, float, float] = (0.15, 0.10, 0.25, 0.50),
) -> BudgetProfile:
    """Make a profile without asking whether `update` would let it through."""
    rules, settings, retrieved, immediate = (
        LayerBudget(ratio=ratio, minimum_tokens=minimum)
        for ratio, minimum in zip(ratios, minimums, strict=True)
    )
    layers = LayerBudgets(rules=rules, settings=settings, retrieved=retrieved, immediate=immediate)
    return BudgetProfile(total_budget_tokens=total, layers=layers)


@st.composite
def rule_fragments(draw: st.DrawFn) -> tuple[Fragment, ...]:
    """Rule texts, constraints of both origins, and entities."""
    texts_ = draw(st.lists(paragraphs, max_size=2))
    constraints = draw(
        st.lists(
            st.tuples(
                st.sampled_from(SENTENCES),
                st.sampled_from(ConstraintOrigin),
                st.booleans(),
                st.integers(0, 200),
            ),
            max_size=8,
        )
    )
    entities = draw(st.lists(st.tuples(st.sampled_from(NAMES), paragraphs), max_size=4))
    return (
        *(_fragment(Layer.RULES, f"rules/{i}.md", text, i) for i, text in enumerate(texts_)),
        *(
            Fragment(
                layer=Layer.RULES,
                source="constraints",
                source_ref=f".creonow/rules/constraints.json#con_{i}",
                text=text,
                kind=FragmentKind.CONSTRAINT,
                origin=origin,
                degradable=degradable,
                priority=priority,
                place=Place(2, "", i),
            )
            for i, (text, origin, degradable, priority) in enumerate(constraints)
        ),
        *(
            Fragment(
                layer=Layer.RULES,
                source="characters",
                source_ref=f".creonow/characters/{i}.md",
                text=text,
                kind=FragmentKind.ENTITY,
                names=(name,),
                place=Place(3, f"{i}"),
            )
            for i, (name, text) in enumerate(entities)
        ),
    )


@st.composite
def setting_fragments(draw: st.DrawFn) -> tuple[Fragment, ...]:
    """Settings of all confidences; some may not be cut."""
    given = draw(st.lists(st.tuples(paragraphs, rates, st.booleans()), max_size=6))
    return tuple(
        _fragment(Layer.SETTINGS, f"settings/{i}.md", text, i, confidence=confidence, whole=whole)
        for i, (text, confidence, whole) in enumerate(given)
    )


@st.composite
def chunk_fragments(draw: st.DrawFn) -> tuple[Fragment, ...]:
    """Retrieved chunks of all scores and sizes."""
    given = draw(st.lists(st.tuples(paragraphs, rates), max_size=8))
    return tuple(
        _fragment(Layer.RETRIEVED, f"chapters/{i}.md", text, i, score=score)
        for i, (text, score) in enumerate(given)
    )


@st.composite
def note_fragments(draw: st.DrawFn) -> tuple[Fragment, ...]:
    """What the working memory of a host adds beside the document."""
    given = draw(st.lists(st.tuples(paragraphs, rates), max_size=3))
    return tuple(
        _fragment(Layer.IMMEDIATE, f"memory/{i}", text, i, score=score, hosted=True)
        for i, (text, score) in enumerate(given)
    )


@st.composite
def moments(draw: st.DrawFn, text: str) -> dict[str, Any]:
    """Where the author is and what else they say."""
    cursor = draw(st.integers(0, len(text) + 3))
    ends = sorted(draw(st.tuples(st.integers(0, len(text)), st.integers(0, len(text)))))
    selection = draw(st.sampled_from((None, Span(ends[0], min(ends[1], ends[0] + 40)))))
    return {
        "text": text,
        "cursor": cursor,
        "selection": selection,
        "additional_input": draw(st.sampled_from(("", "写得更紧张一些。", SECRET))),
    }


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any world; most of them do not fit their budget."""
    immediate = draw(st.integers(0, 300))
    return World(
        rules=draw(rule_fragments()),
        settings=draw(setting_fragments()),
        retrieved=draw(chunk_fragments()),
        notes=draw(note_fragments()),
        surrounding=draw(st.sampled_from((None, 0, 10, 200))),
        task=draw(st.sampled_from(("", "续写。", "润色：{{text}}", "{{instruction}} {{title}}"))),
        profile=profile_of(draw(st.integers(200, 3000)), (0, 0, 0, immediate)),
        **draw(moments(draw(prose))),
    )


def _in(layer: Layer, chunks: tuple[Fragment, ...]) -> tuple[Fragment, ...]:
    return tuple(chunk for chunk in chunks if chunk.layer is layer)


def _fragment(layer: Layer, path: str, text: str, index: int, **ranks: Any) -> Fragment:
    ref = path if layer is Layer.RETRIEVED else f".creonow/{path}"
    return Fragment(
        layer=layer,
        source=layer,
        source_ref=ref,
        text=text,
        place=Place(0, path, index),
        **ranks,
    )
