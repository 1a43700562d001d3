"""The Rules line: what of the rules leaves when they are over it, and in which order.

Rule texts, terminology and plain user constraints never leave. Knows which entities are
mentioned, not where; so typing cannot churn what stays.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import field

from creonowd.context.evidence import PLAIN, Decision, Numbered, drop, keep
from creonowd.context.fragment import ConstraintOrigin, Fragment, FragmentKind, Rule
from creonowd.context.mentions import Mentions
from creonowd.context.text_tools import TextTools
from creonowd.context.units import Unit
from creonowd.model import Model


class Ranking(Model):
    """Which entities are mentioned, and how many of those each entity's own text names.

    Entities are told apart by `source_ref`.
    """

    mentioned: frozenset[str] = frozenset()
    shared: dict[str, int] = field(default_factory=dict[str, int])

    def key(self, entity: Fragment) -> tuple[object, ...]:
        """Sort entities, the most relevant first."""
        name = entity.names[0] if entity.names else entity.source_ref
        mentioned = entity.source_ref in self.mentioned
        shared = self.shared.get(entity.source_ref, 0)
        return (not mentioned, -entity.priority, -shared, name, entity.source_ref, entity.text)


def mentioned_entities(
    entities: Sequence[Fragment], document: str, mentions: Mentions
) -> frozenset[str]:
    """Find out which entities a document mentions."""
    found = mentions.find((name for entity in entities for name in entity.names), document)
    return frozenset(e.source_ref for e in entities if found.intersection(e.names))


def rank(entities: Sequence[Fragment], mentioned: frozenset[str], mentions: Mentions) -> Ranking:
    """Find out which entities belong with the mentioned ones."""
    near = [entity for entity in entities if entity.source_ref in mentioned]
    names = tuple(name for entity in near for name in entity.names)
    shared: dict[str, int] = {}
    for entity in entities:
        found = mentions.find(names, entity.text)
        others = (other for other in near if other.source_ref != entity.source_ref)
        shared[entity.source_ref] = sum(bool(found.intersection(o.names)) for o in others)
    return Ranking(mentioned=mentioned, shared=shared)


MAX_CONSTRAINTS = 500

_SECTIONS = (FragmentKind.TEXT, FragmentKind.CONSTRAINT, FragmentKind.ENTITY)

Item = tuple[int, Fragment]
Sentence = tuple[Rule, int | None]


class Narrowed(Model):
    """The verdict on every unit in reading order, and whether the rules were over the line."""

    verdicts: tuple[Decision, ...]
    over: bool


def in_reading_order(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Sort rules: texts, constraints, entities; constraints of the user before the graph's."""
    return sorted(fragments, key=_reading_key)


def tokens_of(units: Sequence[Unit], instruments: TextTools) -> int:
    """Count the rules as they stand if all of them stay; constraints past the limit cannot."""
    constraints = [unit for unit in units if _is_constraint(unit) and unit.rendered]
    surplus = sum(unit.tokens for unit in constraints[MAX_CONSTRAINTS:])
    numbers = instruments.count_numbers(min(len(constraints), MAX_CONSTRAINTS))
    return sum(unit.tokens for unit in units) - surplus + numbers


def narrow(units: Sequence[Unit], line: int, ranking: Ranking, instruments: TextTools) -> Narrowed:
    """Let entities leave, then constraints of the graph, then degradable ones, until R ≤ line."""
    leaving: dict[int, Sentence] = dict.fromkeys(_barred(units), (Rule.CONSTRAINT_LIMIT, None))
    excess = tokens_of(units, instruments) - line
    over = excess > 0
    numbers = sum(_is_constraint(unit) for unit in units) - len(leaving)
    for index, rule in _leaving_order(units, ranking):
        if index in leaving:
            continue
        if excess <= 0:
            break
        leaving[index] = (rule, excess)
        excess -= units[index].tokens
        if _is_constraint(units[index]):
            excess -= instruments.count_number(numbers)
            numbers -= 1
    return Narrowed(verdicts=tuple(_verdicts(units, leaving, instruments)), over=over)


def _verdicts(
    units: Sequence[Unit], leaving: Mapping[int, Sentence], instruments: TextTools
) -> Iterator[Decision]:
    candidate = number = 0
    for index, unit in enumerate(units):
        sentence = leaving.get(index)
        if not _is_constraint(unit):
            shown = PLAIN
        else:
            candidate += 1
            number += sentence is None
            now = candidate if sentence else number
            shown = Numbered(
                f"{now}", instruments.count_number(now), instruments.count_number(candidate)
            )
        yield (
            drop(unit, *sentence, shown=shown)
            if sentence
            else keep(unit, Rule.RULES_LINE, shown=shown)
        )


def _leaving_order(units: Sequence[Unit], ranking: Ranking) -> list[tuple[int, Rule]]:
    present = [(index, unit.fragment) for index, unit in enumerate(units)]
    entities = [item for item in present if item[1].kind is FragmentKind.ENTITY]
    graph = [item for item in present if _is_constraint_of(item[1], ConstraintOrigin.KG)]
    users = [item for item in present if _is_constraint_of(item[1], ConstraintOrigin.USER)]
    return [
        *_entities_leaving(entities, ranking),
        *_constraints_leaving(graph),
        *_constraints_leaving([item for item in users if item[1].degradable]),
    ]


def _entities_leaving(entities: list[Item], ranking: Ranking) -> Iterator[tuple[int, Rule]]:
    for index, entity in sorted(entities, key=lambda item: ranking.key(item[1]), reverse=True):
        mentioned = entity.source_ref in ranking.mentioned
        yield index, Rule.RULES_LINE if mentioned else Rule.NOT_MENTIONED


def _constraints_leaving(constraints: list[Item]) -> Iterator[tuple[int, Rule]]:
    for index, _ in sorted(constraints, key=lambda item: (item[1].priority, -item[0])):
        yield index, Rule.RULES_LINE


def _barred(units: Sequence[Unit]) -> list[int]:
    """List the constraints that cannot stay: those dropped for their size, and all past the limit."""
    constraints = [index for index, unit in enumerate(units) if _is_constraint(unit)]
    blank = [index for index in constraints if not units[index].rendered]
    return [*blank, *[index for index in constraints if units[index].rendered][MAX_CONSTRAINTS:]]


def _is_constraint(unit: Unit) -> bool:
    return unit.fragment.kind is FragmentKind.CONSTRAINT


def _is_constraint_of(fragment: Fragment, origin: ConstraintOrigin) -> bool:
    return fragment.kind is FragmentKind.CONSTRAINT and fragment.origin is origin


def _reading_key(fragment: Fragment) -> tuple[object, ...]:
    group, path, offset = fragment.place
    graph = _is_constraint_of(fragment, ConstraintOrigin.KG)
    by_priority = -fragment.priority if graph else 0
    section = _SECTIONS.index(fragment.kind)
    return (section, graph, by_priority, group, path, offset, fragment.source_ref, fragment.text)
