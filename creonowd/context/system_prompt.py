"""The stable side of a prompt: Rules and Settings, trimmed, rendered and hashed.

No dynamic quantity comes in here: no cursor, no selection, no input, no retrieved text. What the
document mentions comes in as a set of entities, and only when the rules are over their line.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from enum import StrEnum
from functools import cache
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec.structs import replace

from creonowd.context.evidence import (
    Decision,
    LayerOutcome,
    absent_decisions,
    drop,
    keep,
    summarise_layer,
    trim,
)
from creonowd.context.fragment import Fragment, FragmentKind, Layer, LeftOut, Rule
from creonowd.context.plan import Figures
from creonowd.context.render import Rendered, join, render_layer, render_text
from creonowd.context.rules_layer import in_reading_order, narrow, rank, tokens_of
from creonowd.context.template import CLOSING, CONSTRAINTS, HEAD, heading, title
from creonowd.context.text_tools import TextTools
from creonowd.context.units import (
    Unit,
    begin,
    candidates,
    finish,
    prepare_all,
    refuse_long,
    with_lines,
)
from creonowd.model import Model
from creonowd.tokens.boundaries import paragraphs


def share(units: Sequence[Unit], allowance: int, instruments: TextTools) -> tuple[Decision, ...]:
    """Judge the units of Settings; the verdicts stand in the order of the units."""
    verdicts: dict[int, Decision] = {}
    room = allowance
    for index in sorted(range(len(units)), key=lambda i: (-_confidence(units[i]), i)):
        unit = units[index]
        if 0 <= unit.tokens <= room:
            verdicts[index] = keep(unit, Rule.SETTINGS_SHARE)
        elif room >= 0:
            verdicts[index] = _cut_or_drop(unit, room, instruments)
        else:
            verdicts[index] = drop(unit, Rule.SETTINGS_SHARE, unit.tokens - room)
        room -= unit.tokens
    return tuple(verdicts[index] for index in range(len(units)))


def _confidence(unit: Unit) -> float:
    return 1.0 if unit.fragment.confidence is None else unit.fragment.confidence


def _cut_or_drop(unit: Unit, room: int, instruments: TextTools) -> Decision:
    missing = unit.tokens - room
    if unit.fragment.whole:
        return drop(unit, Rule.SETTINGS_SHARE, missing)
    ends = list(paragraphs(unit.text, 0, len(unit.text) - 1))
    fitting = bisect_left(ends, x=True, key=lambda end: _head(unit, end, instruments).tokens > room)
    if not fitting:
        return drop(unit, Rule.SETTINGS_SHARE, missing)
    return trim(_head(unit, ends[fitting - 1], instruments), Rule.SETTINGS_SHARE, missing)


def _head(unit: Unit, end: int, instruments: TextTools) -> Unit:
    text = unit.text[:end]
    rendered = f"{heading(with_lines(unit.ref, text))}{text}\n"
    return replace(unit, text=text, rendered=rendered, tokens=instruments.count(rendered))


KEPT = 256


class Change(StrEnum):
    """What happened to a source of the stable prefix."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    REORDERED = "reordered"


class PrefixChange(Model):
    """Why a prompt cache misses: the first source that differs from the previous call."""

    source_ref: str
    change: Change


class Imprint(Model):
    """A stable prefix: its hash, and its sources in order with a digest of each.

    The digests of one process mean nothing to another, and are never shown.
    """

    hash: str
    sources: tuple[tuple[str, int], ...] = ()


class PrefixKey(NamedTuple):
    """Whose previous call counts."""

    project_id: str
    skill_id: str
    provider: str
    model: str
    encoding: str


class PrefixMemory:
    """The last stable prefix of each caller, until the daemon ends."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._last: OrderedDict[PrefixKey, Imprint] = OrderedDict()

    def recall(self, key: PrefixKey) -> Imprint | None:
        """Give the stable prefix of the previous call."""
        return self._last.get(key)

    def remember(self, key: PrefixKey, imprint: Imprint) -> None:
        """Make this the previous call."""
        self._last[key] = imprint
        self._last.move_to_end(key)
        while len(self._last) > self._capacity:
            self._last.popitem(last=False)


def imprint(hashed: str, verdicts: Iterable[Decision]) -> Imprint:
    """Take down the sources of a stable prefix."""
    staying = (verdict for verdict in verdicts if verdict.stays)
    return Imprint(
        hash=hashed,
        sources=tuple(
            (v.evidence.source_ref, hash((v.evidence.layer, v.rendered))) for v in staying
        ),
    )


def first_change(before: Imprint, after: Imprint) -> PrefixChange | None:
    """Name the first source in which two stable prefixes differ."""
    old, new = before.sources, after.sources
    index = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if index is None:
        return _at_the_end(old, new)
    (gone, _), (come, _) = old[index], new[index]
    if gone == come:
        return PrefixChange(source_ref=come, change=Change.CHANGED)
    if come not in dict(old):
        return PrefixChange(source_ref=come, change=Change.ADDED)
    if gone not in dict(new):
        return PrefixChange(source_ref=gone, change=Change.REMOVED)
    return PrefixChange(source_ref=come, change=Change.REORDERED)


def _at_the_end(
    old: tuple[tuple[str, int], ...], new: tuple[tuple[str, int], ...]
) -> PrefixChange | None:
    if len(old) == len(new):
        return None
    if len(old) < len(new):
        return PrefixChange(source_ref=new[len(old)][0], change=Change.ADDED)
    return PrefixChange(source_ref=old[len(new)][0], change=Change.REMOVED)


class SystemPromptInput(Model, cache_hash=True):
    """All that the stable side is made of."""

    rules: tuple[Fragment, ...]
    settings: tuple[Fragment, ...]
    left_out: tuple[LeftOut, ...]
    figures: Figures
    mentioned: frozenset[str] = frozenset()

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        return sum(fragment.weight for fragment in (*self.rules, *self.settings))


class SystemPrompt(Model):
    """The stable side: its text and hash, where Rules end in it, and every verdict.

    `weight` is about how many characters remembering this takes, with what it was made of.
    """

    prompt: Rendered
    hash: str
    hasher: Any
    up_to_rules: Rendered
    rules_hash: str
    rules: LayerOutcome
    settings: LayerOutcome
    rules_over: bool
    imprint: Imprint
    weight: int


class PreparedRules(Model):
    """The rules made ready, in reading order.

    `tokens` is what they cost untrimmed, `before_tokens` before any was cut to size.
    """

    units: tuple[Unit, ...]
    entities: tuple[Fragment, ...]
    tokens: int
    before_tokens: int

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        return sum(unit.fragment.weight for unit in self.units)


class PreparedSettings(Model):
    """The settings made ready, in reading order."""

    units: tuple[Unit, ...]

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        return sum(unit.fragment.weight for unit in self.units)


ReadySettings = Callable[[], PreparedSettings]


def prepare_rules(fragments: tuple[Fragment, ...], instruments: TextTools) -> PreparedRules:
    """Make the rules ready, or recall them from when they were last.

    Rules that are too long to be counted are refused.
    """
    key = ("rules", instruments.key, fragments)
    return instruments.memory.layered.get(key, lambda: _ready_rules(fragments, instruments))


@contextmanager
def settings_ahead(
    fragments: tuple[Fragment, ...], instruments: TextTools
) -> Generator[ReadySettings]:
    """Count new settings while the caller makes ready what else there is."""
    layered, key = instruments.memory.layered, ("settings", instruments.key, fragments)
    if (known := layered.recall(key)) is not None:
        yield lambda: known
        return
    begun = begin(candidates(_in_order(fragments)), instruments)
    with instruments.begin_count(begun.texts, ahead=True) as counts:

        @cache
        def ready() -> PreparedSettings:
            settings = PreparedSettings(units=tuple(finish(begun, counts(), instruments)))
            layered.put(key, settings)
            return settings

        yield ready


def system_prompt(
    given: SystemPromptInput, settings: ReadySettings, instruments: TextTools
) -> SystemPrompt:
    """Trim, render and hash Rules and Settings, or recall them from when they were last.

    `settings` are those of the input, and are asked for only if they are needed.
    """
    key = ("stable", instruments.key, given)
    return instruments.memory.layered.get(key, lambda: _stable_side(given, settings, instruments))


def fixed_tokens(instruments: TextTools, *, constraints: bool) -> int:
    """Count the fixed template at its longest: every layer empty, the constraints' heading."""
    words = [HEAD, CLOSING, *(title(layer, empty=True) for layer in Layer)]
    return sum(map(instruments.count, [*words, CONSTRAINTS] if constraints else words))


def _ready_rules(fragments: Sequence[Fragment], instruments: TextTools) -> PreparedRules:
    refuse_long(fragments, instruments)
    ordered = in_reading_order(fragments)
    units = tuple(prepare_all(candidates(ordered), instruments))
    return PreparedRules(
        units=units,
        entities=tuple(fragment for fragment in ordered if fragment.kind is FragmentKind.ENTITY),
        tokens=tokens_of(units, instruments),
        before_tokens=sum(unit.before_tokens for unit in units),
    )


def _in_order(settings: Sequence[Fragment]) -> list[Fragment]:
    return sorted(settings, key=lambda f: (f.place, f.source_ref, f.text))


def _stable_side(
    given: SystemPromptInput, ready: ReadySettings, instruments: TextTools
) -> SystemPrompt:
    rules = prepare_rules(given.rules, instruments)
    ranking = rank(rules.entities, given.mentioned, instruments.memory.mentions)
    narrowed = narrow(rules.units, given.figures.rules_line, ranking, instruments)
    allowance = _allowance(given.figures, narrowed.verdicts, instruments)
    settings = share(ready().units, allowance, instruments)
    up_to_rules = join(
        [render_text(HEAD, instruments), render_layer(Layer.RULES, narrowed.verdicts, instruments)]
    )
    after_rules = [
        render_layer(Layer.SETTINGS, settings, instruments),
        render_text(CLOSING, instruments),
    ]
    prompt = join([up_to_rules, *after_rules])
    hasher = sha256(prompt.text.encode())
    hashed = hasher.hexdigest()
    return SystemPrompt(
        prompt=prompt,
        hash=hashed,
        hasher=hasher,
        up_to_rules=up_to_rules,
        rules_hash=sha256(up_to_rules.text.encode()).hexdigest(),
        rules=summarise_layer((*narrowed.verdicts, *_absent(given, Layer.RULES, instruments))),
        settings=summarise_layer((*settings, *_absent(given, Layer.SETTINGS, instruments))),
        rules_over=narrowed.over,
        imprint=imprint(hashed, [*narrowed.verdicts, *settings]),
        weight=given.weight + 2 * len(prompt.text),
    )


def _absent(given: SystemPromptInput, layer: Layer, instruments: TextTools) -> list[Decision]:
    absent = [item for item in given.left_out if item.layer is layer]
    return absent_decisions(absent, instruments)


def _allowance(figures: Figures, rules: Sequence[Decision], instruments: TextTools) -> int:
    """Tell what Settings may take; below zero, how much is missing before they may take any."""
    constrained = any(
        verdict.kind is FragmentKind.CONSTRAINT and verdict.stays for verdict in rules
    )
    fixed = fixed_tokens(instruments, constraints=constrained)
    promised = figures.minimum(Layer.RETRIEVED) + figures.minimum(Layer.IMMEDIATE)
    return figures.total - fixed - sum(v.tokens for v in rules) - promised
