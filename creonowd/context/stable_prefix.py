"""The stable prefix, which is the system prompt: Rules and Settings, rendered and hashed.

No dynamic quantity comes in here: no cursor, no selection, no input, no retrieved text. What the
document mentions comes in as a set of entities, and only when the rules are over their line. Then
entities leave by whether the document mentions them, not by where, so that typing does not change
what stays; then constraints of the graph, then degradable ones. Rule texts, terminology and plain
user constraints never leave.

Behind that, `PrefixMemory` compares a system prompt with that of the caller's previous call and
names the first source that changed: why a prompt cache misses.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType, field
from msgspec.structs import replace

from creonowd.context.budget import Allowances
from creonowd.context.candidates import (
    NO_NUMBER,
    UNIT_WORK,
    Decision,
    EncodedPart,
    LayerOutcome,
    ListNumber,
    RedactedFragments,
    Rendered,
    Unit,
    count_fragments,
    drop,
    drop_unread,
    encode_part,
    guard_lengths,
    join,
    keep,
    keep_part,
    make_units,
    of_layer,
    redact_fragments,
    render_head,
    render_layer,
    render_text,
    summarise_layer,
    visible_ref,
)
from creonowd.context.fragment import (
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    Omission,
    Rule,
)
from creonowd.context.language import title
from creonowd.context.names import Mentions
from creonowd.context.plan import minimum_step
from creonowd.context.text_tools import TextTools
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.text import file_stem
from creonowd.tokens.boundaries import paragraphs
from creonowd.tokens.tokenizer import PendingCounts

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


class EntityMentions(NamedTuple):
    """Which entities a document mentions, by `source_ref`, and how often, by fourfold."""

    mentioned: frozenset[str] = frozenset()
    often: tuple[tuple[str, int], ...] = ()


NOT_MENTIONED = EntityMentions()


def entity_mentions(
    entities: tuple[Fragment, ...], document: str, tools: TextTools
) -> EntityMentions:
    """Return which entities a document mentions, and how often; found once for a text."""
    mentions = tools.memory.mentions

    def find() -> EntityMentions:
        tools.spend(len(document) // 16)
        return EntityMentions(
            mentioned_entities(entities, document, mentions),
            mention_counts(entities, document, mentions),
        )

    return tools.memory.document_mentions.get((entities, document), find)


def mentioned_entities(
    entities: Sequence[Fragment], document: str, mentions: Mentions
) -> frozenset[str]:
    """Return which entities a document mentions, by `source_ref`."""
    found = mentions.find((name for entity in entities for name in entity.names), document)
    return frozenset(e.source_ref for e in entities if found.intersection(e.names))


def mention_counts(
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


MOST_CALLERS = 512

# A line with a word on it that is no heading.
_PROSE = re.compile(r"^(?![ \t]*#)[^\n]*\w", re.MULTILINE)


_OVER_LINE = (Rule.RULES_LINE, Rule.NOT_MENTIONED)


class PrefixDigest(Model):
    """A stable prefix: its hash, its sources in order with a digest of each, and their states.

    A state says where a source stands in time, for those that the place in the story decides.
    `over_line` are the sources that had to leave because the rules are over their line.
    Digests are Python's own hashes: they mean nothing outside this process and never leave it.
    """

    hash: str
    sources: tuple[tuple[str, int], ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    over_line: frozenset[str] = frozenset()


class PreparedSettings(Model):
    """The settings after redaction and counting, in reading order."""

    units: tuple[Unit, ...]

    @property
    def texts(self) -> list[str]:
        """No texts: these settings were counted before."""
        return []

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        return sum(unit.fragment.weight for unit in self.units)


class RedactedSettings(NamedTuple):
    """The settings before counting, and the key that they will be kept under."""

    key: object
    fragments: RedactedFragments

    @property
    def texts(self) -> list[str]:
        """The texts to count."""
        return self.fragments.texts


class SystemPromptInput(Model, cache_hash=True):
    """Everything that the system prompt depends on."""

    rules: tuple[Fragment, ...]
    """The fragments of Rules."""
    settings: tuple[Fragment, ...]
    """The fragments of Settings."""
    left_out: tuple[Omission, ...]
    """What sources of these layers had to leave out."""
    allowances: Allowances
    """The budget."""
    mentioned: frozenset[str] = frozenset()
    """The entities that the document mentions, where Rules are over their line."""
    often: tuple[tuple[str, int], ...] = ()
    """About how often it mentions each."""
    earlier: tuple[tuple[str, int], ...] = ()
    """How much the chapters before mention each."""
    states: tuple[tuple[str, str], ...] = ()
    """Where fragments stand in time, by `source_ref`."""

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        return sum(fragment.weight for fragment in (*self.rules, *self.settings))


class SystemPrompt(Model):
    """The system prompt, and the outcome of its two layers."""

    prompt: Rendered
    """The text and its tokens."""
    hash: str
    """Its SHA-256."""
    hasher: Any
    """Has read the prompt; a copy of it goes on to hash what follows."""
    up_to_rules: Rendered
    """The part of it that ends with Rules."""
    rules_hash: str
    """The SHA-256 of that part."""
    bytes: int
    """The size of the prompt in UTF-8."""
    rules_bytes: int
    """The size of the part up to Rules in UTF-8."""
    rules: LayerOutcome
    """The outcome of Rules."""
    settings: LayerOutcome
    """The outcome of Settings."""
    rules_over: bool
    """Whether Rules are over their line."""
    lost: tuple[str, ...]
    """Entities that the document mentions and that are left out all the same."""
    ranking: EntityRanking
    """The ranking of the entities in Rules."""
    digest: PrefixDigest
    """What is compared with the next call."""
    encoded: EncodedPart
    """What a reply repeats of it."""
    weight: int
    """About how many characters it takes to keep this and its input."""


def redact_settings(
    fragments: tuple[Fragment, ...], tools: TextTools
) -> PreparedSettings | RedactedSettings:
    """Redact the settings unless they are kept from before."""
    key = ("settings", tools.key, fragments)
    prepared: PreparedSettings | None = tools.memory.layers.peek(key)
    if prepared is not None:
        return prepared
    ordered = sorted(fragments, key=lambda f: (f.place, f.source_ref, f.text))
    return RedactedSettings(key, redact_fragments(ordered, tools))


def count_settings(
    settings: PreparedSettings | RedactedSettings, pending: PendingCounts, tools: TextTools
) -> PreparedSettings:
    """Make units of redacted settings with the counts of their texts, and keep them."""
    if isinstance(settings, PreparedSettings):
        return settings
    prepared = PreparedSettings(
        units=tuple(make_units(settings.fragments, pending.result(), tools))
    )
    tools.memory.layers.put(settings.key, prepared)
    return prepared


def system_prompt(
    given: SystemPromptInput, rules: PreparedRules, settings: PreparedSettings, tools: TextTools
) -> SystemPrompt:
    """Trim, render and hash Rules and Settings, or return the prompt that the same input had.

    `rules` and `settings` are those of the input.
    """
    key = ("stable", tools.key, given)
    return tools.memory.layers.get(key, lambda: _make_system_prompt(given, rules, settings, tools))


def _make_system_prompt(
    given: SystemPromptInput, rules: PreparedRules, settings: PreparedSettings, tools: TextTools
) -> SystemPrompt:
    tools.spend(UNIT_WORK * (len(rules.units) + len(settings.units)))
    ranking = rank_entities(
        rules.entities, given.mentioned, tools.memory.mentions, given.often, given.earlier
    )
    trimmed = trim_rules(rules.units, given.allowances.rules_line, ranking, tools)
    allowance, yielded = _settings_allowance(given.allowances, trimmed.decisions, tools)
    kept_settings = trim_settings(settings.units, allowance, tools, yielded=yielded)
    up_to_rules = join(
        [render_text(tools.frame.head, tools), render_layer(Layer.RULES, trimmed.decisions, tools)]
    )
    after_rules = [
        render_layer(Layer.SETTINGS, kept_settings, tools),
        render_text(tools.frame.closing, tools),
    ]
    prompt = join([up_to_rules, *after_rules])
    data, rules_data = prompt.text.encode(), up_to_rules.text.encode()
    hasher = sha256(data)
    unread = drop_unread(given.left_out, tools)
    rules_outcome = summarise_layer((*trimmed.decisions, *of_layer(Layer.RULES, unread)))
    settings_outcome = summarise_layer((*kept_settings, *of_layer(Layer.SETTINGS, unread)))
    encoded = encode_part(prompt.text, (*rules_outcome.evidence, *settings_outcome.evidence))
    return SystemPrompt(
        prompt=prompt,
        hash=hasher.hexdigest(),
        hasher=hasher,
        up_to_rules=up_to_rules,
        rules_hash=sha256(rules_data).hexdigest(),
        bytes=len(data),
        rules_bytes=len(rules_data),
        rules=rules_outcome,
        settings=settings_outcome,
        rules_over=trimmed.over_line,
        lost=tuple(
            next(iter(decision.fragment.names), file_stem(decision.evidence.source_ref))
            for decision in trimmed.decisions
            if decision.kind is FragmentKind.ENTITY
            and not decision.is_kept
            and decision.evidence.rule is Rule.RULES_LINE
        ),
        ranking=ranking,
        digest=prefix_digest(
            hasher.hexdigest(),
            [*trimmed.decisions, *kept_settings],
            _visible_states(given.states, tools),
        ),
        encoded=encoded,
        weight=given.weight + 2 * len(prompt.text) + encoded.weight,
    )


def _settings_allowance(
    allowances: Allowances, rules: Sequence[Decision], tools: TextTools
) -> tuple[int, int]:
    """Return what Settings may take; below zero, how much is missing before they may take any.

    Settings leave room for Immediate's minimum and one window step, unless that would take them
    below their own minimum. Also return how many tokens of that step are missing; a larger budget
    goes there first.
    """
    constraints = any(
        decision.kind is FragmentKind.CONSTRAINT and decision.is_kept for decision in rules
    )
    fixed = fixed_tokens(tools, constraints=constraints)
    promised = allowances.minimum(Layer.RETRIEVED) + allowances.minimum(Layer.IMMEDIATE)
    left = allowances.total - fixed - sum(decision.tokens for decision in rules) - promised
    step = minimum_step(allowances)
    reserved = max(0, min(step, left - allowances.minimum(Layer.SETTINGS)))
    return left - reserved, step - reserved


def fixed_tokens(tools: TextTools, *, constraints: bool) -> int:
    """Count the fixed template at its longest: every layer empty, the constraints' heading."""
    frame = tools.frame
    words = [frame.head, frame.closing, *(title(layer, empty=True) for layer in Layer)]
    return sum(map(tools.count, [*words, frame.constraints] if constraints else words))


def trim_settings(
    units: Sequence[Unit], allowance: int, tools: TextTools, *, yielded: int = 0
) -> tuple[Decision, ...]:
    """Keep the most confident units that fit, cutting the first that does not; in given order.

    `yielded` is how much of a larger budget would go to Immediate first.
    """
    decisions: dict[int, Decision] = {}
    room = allowance
    for index in sorted(
        range(len(units)), key=lambda i: (not units[i].fragment.pinned, -_confidence(units[i]), i)
    ):
        unit = units[index]
        if 0 <= unit.tokens <= room:
            rule = Rule.PINNED if unit.fragment.pinned else Rule.SETTINGS_SHARE
            decisions[index] = keep(unit, rule)
        elif room >= 0:
            decisions[index] = _cut_or_drop(unit, room, unit.tokens - room + yielded, tools)
        else:
            decisions[index] = drop(unit, Rule.SETTINGS_SHARE, unit.tokens - room + yielded)
        room -= unit.tokens
    return tuple(decisions[index] for index in range(len(units)))


def _confidence(unit: Unit) -> float:
    return 1.0 if unit.fragment.confidence is None else unit.fragment.confidence


def _cut_or_drop(unit: Unit, room: int, missing: int, tools: TextTools) -> Decision:
    """Keep the paragraphs of a unit that fit, if it may be cut and they say anything."""
    if unit.fragment.whole:
        return drop(unit, Rule.SETTINGS_SHARE, missing)
    ends = list(paragraphs(unit.text, 0, len(unit.text) - 1))
    fitting = bisect_left(ends, x=True, key=lambda end: _head(unit, end, tools).tokens > room)
    if not fitting or not _PROSE.search(unit.text, 0, ends[fitting - 1]):
        return drop(unit, Rule.SETTINGS_SHARE, missing)
    return keep_part(_head(unit, ends[fitting - 1], tools), Rule.SETTINGS_SHARE, missing)


def _head(unit: Unit, end: int, tools: TextTools) -> Unit:
    text = unit.text[:end]
    rendered = render_head(unit.fragment, unit.ref, text, tools)
    return replace(unit, text=text, rendered=rendered, tokens=tools.count(rendered))


class Change(StrEnum):
    """What happened to a source of the stable prefix."""

    ADDED = "added"
    """It was not there before."""
    REMOVED = "removed"
    """It is there no more."""
    CHANGED = "changed"
    """Its text is another one."""
    REORDERED = "reordered"
    """The same sources stand in another order."""


class PrefixCause(StrEnum):
    """What the place in the story has to do with a change of the stable prefix."""

    NOT_YET = "not_yet"
    """It does not hold here, because it begins later, and did at the previous place."""
    NO_LONGER = "no_longer"
    """It does not hold here any more, and did at the previous place."""
    IN_SPAN = "in_span"
    """It holds here and did not at the previous place."""
    PROGRESSION = "progression"
    """Another of its progressions has begun, or not yet begun."""
    RULES_LINE = "rules_line"
    """The rules are over their line, and the document or the chapters before it name others now."""


class PrefixChange(Model):
    """Why a prompt cache misses: the first source that differs from the previous call."""

    source_ref: str
    """The file or source."""
    change: Change
    """What happened to it."""
    cause: PrefixCause | UnsetType = UNSET
    """What the author's place in the story has to do with it; absent if it was an edit."""


class PrefixComparison(Model):
    """How the stable prefix compares with that of the previous call, if there was one."""

    unchanged: bool = False
    change: PrefixChange | UnsetType = UNSET


class PrefixKey(NamedTuple):
    """The caller whose previous call counts."""

    project_id: str
    skill_id: str
    provider: str
    model: str
    encoding: str


class PrefixMemory:
    """The last stable prefix of each caller, until the daemon ends."""

    def __init__(self, capacity: int = MOST_CALLERS) -> None:
        self._last: Memo[PrefixKey, PrefixDigest] = Memo(capacity)

    def compare(self, key: PrefixKey, digest: PrefixDigest) -> PrefixComparison:
        """Compare a stable prefix with that of the caller's previous call."""
        before = self._last.peek(key)
        if before is None:
            return PrefixComparison()
        if before.hash == digest.hash:
            return PrefixComparison(unchanged=True)
        return PrefixComparison(change=first_change(before, digest) or UNSET)

    def remember(self, key: PrefixKey, digest: PrefixDigest) -> None:
        """Make this the caller's previous call."""
        self._last.put(key, digest)

    def follow(self, key: PrefixKey, digest: PrefixDigest) -> PrefixComparison:
        """Compare a stable prefix with the caller's previous one, and keep it for the next comparison."""
        comparison = self.compare(key, digest)
        self.remember(key, digest)
        return comparison


def _visible_states(
    states: Iterable[tuple[str, str]], tools: TextTools
) -> tuple[tuple[str, str], ...]:
    return tuple((visible_ref(ref, tools), state) for ref, state in states)


def prefix_digest(
    prefix_hash: str, decisions: Sequence[Decision], states: tuple[tuple[str, str], ...] = ()
) -> PrefixDigest:
    """Return the digest of a stable prefix, given the decisions on its units in order."""
    return PrefixDigest(
        hash=prefix_hash,
        sources=tuple(
            (decision.evidence.source_ref, hash((decision.evidence.layer, decision.rendered)))
            for decision in decisions
            if decision.is_kept
        ),
        states=states,
        over_line=frozenset(
            decision.evidence.source_ref
            for decision in decisions
            if decision.evidence.rule in _OVER_LINE and not decision.is_kept
        ),
    )


def first_change(before: PrefixDigest, after: PrefixDigest) -> PrefixChange | None:
    """Return the first source in which two stable prefixes differ."""
    old, new = before.sources, after.sources
    shared = min(len(old), len(new))
    index = next((i for i in range(shared) if old[i] != new[i]), shared)
    if index == len(old) == len(new):
        return None
    if index == len(old):
        change, ref = Change.ADDED, new[index][0]
    elif index == len(new):
        change, ref = Change.REMOVED, old[index][0]
    elif old[index][0] == new[index][0]:
        change, ref = Change.CHANGED, new[index][0]
    elif new[index][0] not in dict(old):
        change, ref = Change.ADDED, new[index][0]
    elif old[index][0] not in dict(new):
        change, ref = Change.REMOVED, old[index][0]
    else:
        change, ref = Change.REORDERED, new[index][0]
    if ref in before.over_line ^ after.over_line:
        return PrefixChange(source_ref=ref, change=change, cause=PrefixCause.RULES_LINE)
    cause = _cause(dict(before.states).get(ref), dict(after.states).get(ref))
    return PrefixChange(source_ref=ref, change=change, cause=cause)


def _cause(before: str | None, after: str | None) -> PrefixCause | UnsetType:
    """Return what two different states of a source mean."""
    if before is None or after is None or before == after:
        return UNSET
    if after in list(PrefixCause):
        return PrefixCause(after)
    return PrefixCause.IN_SPAN if before in list(PrefixCause) else PrefixCause.PROGRESSION
