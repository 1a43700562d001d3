"""The Rules layer: its reading order, and what leaves when the rules are over their line.

Entities leave by whether the document mentions them, not by where, so that typing does not change
what stays; then constraints of the graph, then degradable ones. Rule texts, terminology and plain
user constraints never leave.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import field

from creonowd.context.evidence import (
    NO_NUMBER,
    Decision,
    ListNumber,
    drop,
    keep,
)
from creonowd.context.fragment import (
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Rule,
)
from creonowd.context.names import Mentions
from creonowd.context.text_tools import TextTools
from creonowd.context.units import (
    RedactedFragments,
    Unit,
    count_fragments,
    guard_lengths,
    redact_fragments,
)
from creonowd.model import Model

MAX_CONSTRAINTS = 500

_SECTIONS = (FragmentKind.TEXT, FragmentKind.CONSTRAINT, FragmentKind.ENTITY)

DropReason = tuple[Rule, int | None]


class PreparedRules(Model):
    """The rules after redaction and counting, in reading order.

    `tokens` is what they cost untrimmed, `before_tokens` before any was cut to size.
    """

    units: tuple[Unit, ...]
    entities: tuple[Fragment, ...]
    tokens: int
    before_tokens: int

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        return sum(unit.fragment.weight for unit in self.units)


class RedactedRules(NamedTuple):
    """The rules before counting, and the key that they will be kept under."""

    key: object
    fragments: RedactedFragments
    entities: tuple[Fragment, ...]


class EntityRanking(Model):
    """Which entities are mentioned, how often, and how many of those each one's own text names.

    `earlier` is how much the chapters before mention each. Entities are identified by `source_ref`.
    """

    mentioned: frozenset[str] = frozenset()
    often: dict[str, int] = field(default_factory=dict[str, int])
    earlier: dict[str, int] = field(default_factory=dict[str, int])
    shared: dict[str, int] = field(default_factory=dict[str, int])

    def key(self, entity: Fragment) -> tuple[object, ...]:
        """Sort entities, the most relevant first.

        Among those that the document names about as often, and for which the author says nothing,
        the chapters before know who matters, and typing does not change those.
        """
        name = entity.names[0] if entity.names else entity.source_ref
        mentioned = entity.source_ref in self.mentioned
        shared = self.shared.get(entity.source_ref, 0)
        often = self.often.get(entity.source_ref, 0)
        earlier = self.earlier.get(entity.source_ref, 0)
        named = (not mentioned, -often, -entity.priority)
        return (*named, -earlier, -shared, name, entity.source_ref, entity.text)


class TrimmedRules(Model):
    """The decision on every unit in reading order, and whether the rules were over the line."""

    decisions: tuple[Decision, ...]
    over_line: bool


def redact_rules(
    fragments: tuple[Fragment, ...], tools: TextTools
) -> PreparedRules | RedactedRules:
    """Redact the rules unless they are kept from before; refuse rules too long to be counted."""
    key = ("rules", tools.key, fragments)
    prepared: PreparedRules | None = tools.memory.layers.peek(key)
    if prepared is not None:
        return prepared
    guard_lengths(fragments, tools)
    ordered = reading_order(fragments)
    entities = tuple(fragment for fragment in ordered if fragment.kind is FragmentKind.ENTITY)
    return RedactedRules(key, redact_fragments(ordered, tools), entities)


def count_rules(rules: PreparedRules | RedactedRules, tools: TextTools) -> PreparedRules:
    """Count redacted rules and keep them."""
    if isinstance(rules, PreparedRules):
        return rules
    units = tuple(count_fragments(rules.fragments, tools))
    prepared = PreparedRules(
        units=units,
        entities=rules.entities,
        tokens=untrimmed_tokens(units, tools),
        before_tokens=sum(unit.before_tokens for unit in units),
    )
    tools.memory.layers.put(rules.key, prepared)
    return prepared


def trim_rules(
    units: Sequence[Unit], line: int, ranking: EntityRanking, tools: TextTools
) -> TrimmedRules:
    """Drop entities, then constraints of the graph, then degradable ones, until R ≤ line."""
    dropped: dict[int, DropReason] = dict.fromkeys(
        _excluded_constraints(units), (Rule.CONSTRAINT_LIMIT, None)
    )
    excess = untrimmed_tokens(units, tools) - line
    over_line = excess > 0
    last_number = len([unit for unit in units if _is_constraint(unit)]) - len(dropped)
    for index, rule in _drop_order(units, ranking):
        if index in dropped:
            continue
        if excess <= 0:
            break
        dropped[index] = (rule, excess)
        excess -= units[index].tokens
        if _is_constraint(units[index]):
            excess -= tools.count_number(last_number)
            last_number -= 1
    return TrimmedRules(decisions=tuple(_decisions(units, dropped, tools)), over_line=over_line)


def untrimmed_tokens(units: Sequence[Unit], tools: TextTools) -> int:
    """Count the rules as if all of them stay; constraints past the limit cannot."""
    constraints = [unit for unit in units if _is_constraint(unit) and unit.rendered]
    surplus = sum(unit.tokens for unit in constraints[MAX_CONSTRAINTS:])
    numbers = tools.count_numbers(min(len(constraints), MAX_CONSTRAINTS))
    return sum(unit.tokens for unit in units) - surplus + numbers


def reading_order(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Sort rules: texts, constraints, entities; constraints of the user before the graph's."""
    return sorted(fragments, key=_reading_key)


def mentioned_entities(
    entities: Sequence[Fragment], document: str, mentions: Mentions
) -> frozenset[str]:
    """Return which entities a document mentions, by `source_ref`."""
    found = mentions.find((name for entity in entities for name in entity.names), document)
    return frozenset(e.source_ref for e in entities if found.intersection(e.names))


def how_often(
    entities: Sequence[Fragment], document: str, mentions: Mentions
) -> tuple[tuple[str, int], ...]:
    """Return by `source_ref` how often a document mentions each entity it mentions, by fourfold.

    Once, four times, sixteen times …: typing a name once more changes that only rarely, and among
    those that are named about as often the author's `priority` decides.
    """
    counts = mentions.count((name for entity in entities for name in entity.names), document)
    sums = ((e.source_ref, sum(counts[name] for name in set(e.names))) for e in entities)
    return tuple(sorted((ref, (count.bit_length() + 1) // 2) for ref, count in sums if count))


def rank_entities(
    entities: Sequence[Fragment],
    mentioned: frozenset[str],
    mentions: Mentions,
    often: Iterable[tuple[str, int]] = (),
    earlier: Iterable[tuple[str, int]] = (),
) -> EntityRanking:
    """Count for each entity how many mentioned ones its own text names."""
    named = [entity for entity in entities if entity.source_ref in mentioned]
    names = tuple(name for entity in named for name in entity.names)
    shared: dict[str, int] = {}
    for entity in entities:
        found = mentions.find(names, entity.text)
        others = (other for other in named if other.source_ref != entity.source_ref)
        shared[entity.source_ref] = len([o for o in others if found.intersection(o.names)])
    return EntityRanking(
        mentioned=mentioned, often=dict(often), earlier=dict(earlier), shared=shared
    )


def _excluded_constraints(units: Sequence[Unit]) -> list[int]:
    """List the constraints that cannot stay: those over the size limit, and all past the 500th."""
    constraints = [index for index, unit in enumerate(units) if _is_constraint(unit)]
    blank = [index for index in constraints if not units[index].rendered]
    return [*blank, *[index for index in constraints if units[index].rendered][MAX_CONSTRAINTS:]]


def _drop_order(units: Sequence[Unit], ranking: EntityRanking) -> Iterator[tuple[int, Rule]]:
    """Return what may be dropped and by which rule, the least important first; never a pin."""
    fragments = [(at, unit.fragment) for at, unit in enumerate(units) if not unit.fragment.pinned]
    entities = [pair for pair in fragments if pair[1].kind is FragmentKind.ENTITY]
    for index, entity in sorted(entities, key=lambda pair: ranking.key(pair[1]), reverse=True):
        mentioned = entity.source_ref in ranking.mentioned
        yield index, Rule.RULES_LINE if mentioned else Rule.NOT_MENTIONED
    graph = [pair for pair in fragments if _is_constraint_of(pair[1], ConstraintOrigin.KG)]
    users = [pair for pair in fragments if _is_constraint_of(pair[1], ConstraintOrigin.USER)]
    for constraints in (graph, [pair for pair in users if pair[1].degradable]):
        for index, _ in sorted(constraints, key=lambda pair: (pair[1].priority, -pair[0])):
            yield index, Rule.RULES_LINE


def _decisions(
    units: Sequence[Unit], dropped: Mapping[int, DropReason], tools: TextTools
) -> Iterator[Decision]:
    """Decide on each unit; the constraints that stay are numbered without gaps."""
    before = after = 0
    for index, unit in enumerate(units):
        reason = dropped.get(index)
        number = NO_NUMBER
        if _is_constraint(unit):
            before += 1
            if reason is None:
                after += 1
            current = after if reason is None else before
            number = ListNumber(
                f"{current}", tools.count_number(current), tools.count_number(before)
            )
        if reason is None:
            rule = Rule.PINNED if unit.fragment.pinned else Rule.RULES_LINE
            yield keep(unit, rule, number)
        else:
            yield drop(unit, *reason, number)


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
