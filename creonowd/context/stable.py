"""The stable side of a prompt: Rules and Settings, trimmed, rendered and hashed.

No dynamic quantity comes in here: no cursor, no selection, no input, no retrieved text. What the
document mentions comes in as a set of entities, and only when the rules are over their line.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import Any

from creonowd.context.figures import Figures
from creonowd.context.fragment import Fragment, Kind, Layer, LeftOut
from creonowd.context.guard import refuse_long
from creonowd.context.instruments import Instruments
from creonowd.context.judged import Judged, judged
from creonowd.context.prefix import Imprint, imprint
from creonowd.context.relevance import rank
from creonowd.context.render import Set, join, set_layer, set_words
from creonowd.context.rules_line import in_reading_order, narrow, tokens_of
from creonowd.context.settings_share import share
from creonowd.context.template import CLOSING, CONSTRAINTS, HEAD, title
from creonowd.context.units import Unit, begin, candidates, finish, prepare_all
from creonowd.context.verdict import Verdict, absent_verdicts
from creonowd.model import Model


class StableInput(Model, cache_hash=True):
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


class Stable(Model):
    """The stable side: its text and hash, where Rules end in it, and every verdict.

    `weight` is about how many characters remembering this takes, with what it was made of.
    """

    prompt: Set
    hash: str
    hasher: Any
    up_to_rules: Set
    rules_hash: str
    rules: Judged
    settings: Judged
    rules_over: bool
    imprint: Imprint
    weight: int


class Rules(Model):
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


class Settings(Model):
    """The settings made ready, in reading order."""

    units: tuple[Unit, ...]

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        return sum(unit.fragment.weight for unit in self.units)


ReadySettings = Callable[[], Settings]


def ready_rules(fragments: tuple[Fragment, ...], instruments: Instruments) -> Rules:
    """Make the rules ready, or recall them from when they were last.

    Rules that are too long to be counted are refused.
    """
    key = ("rules", instruments.key, fragments)
    return instruments.memory.layered.get(key, lambda: _ready_rules(fragments, instruments))


@contextmanager
def settings_ahead(
    fragments: tuple[Fragment, ...], instruments: Instruments
) -> Generator[ReadySettings]:
    """Count new settings while the caller makes ready what else there is."""
    layered, key = instruments.memory.layered, ("settings", instruments.key, fragments)
    if (known := layered.recall(key)) is not None:
        yield lambda: known
        return
    begun = begin(candidates(_in_order(fragments)), instruments)
    with instruments.begin_count(begun.texts, ahead=True) as counts:

        @cache
        def ready() -> Settings:
            settings = Settings(units=tuple(finish(begun, counts(), instruments)))
            layered.put(key, settings)
            return settings

        yield ready


def stable_side(given: StableInput, settings: ReadySettings, instruments: Instruments) -> Stable:
    """Trim, render and hash Rules and Settings, or recall them from when they were last.

    `settings` are those of the input, and are asked for only if they are needed.
    """
    key = ("stable", instruments.key, given)
    return instruments.memory.layered.get(key, lambda: _stable_side(given, settings, instruments))


def fixed_tokens(instruments: Instruments, *, constraints: bool) -> int:
    """Count the fixed template at its longest: every layer empty, the constraints' heading."""
    words = [HEAD, CLOSING, *(title(layer, empty=True) for layer in Layer)]
    return sum(map(instruments.count, [*words, CONSTRAINTS] if constraints else words))


def _ready_rules(fragments: Sequence[Fragment], instruments: Instruments) -> Rules:
    refuse_long(fragments, instruments)
    ordered = in_reading_order(fragments)
    units = tuple(prepare_all(candidates(ordered), instruments))
    return Rules(
        units=units,
        entities=tuple(fragment for fragment in ordered if fragment.kind is Kind.ENTITY),
        tokens=tokens_of(units, instruments),
        before_tokens=sum(unit.before_tokens for unit in units),
    )


def _in_order(settings: Sequence[Fragment]) -> list[Fragment]:
    return sorted(settings, key=lambda f: (f.place, f.source_ref, f.text))


def _stable_side(given: StableInput, ready: ReadySettings, instruments: Instruments) -> Stable:
    rules = ready_rules(given.rules, instruments)
    ranking = rank(rules.entities, given.mentioned, instruments.memory.mentions)
    narrowed = narrow(rules.units, given.figures.rules_line, ranking, instruments)
    allowance = _allowance(given.figures, narrowed.verdicts, instruments)
    settings = share(ready().units, allowance, instruments)
    up_to_rules = join(
        [set_words(HEAD, instruments), set_layer(Layer.RULES, narrowed.verdicts, instruments)]
    )
    after_rules = [
        set_layer(Layer.SETTINGS, settings, instruments),
        set_words(CLOSING, instruments),
    ]
    prompt = join([up_to_rules, *after_rules])
    hasher = sha256(prompt.text.encode())
    hashed = hasher.hexdigest()
    return Stable(
        prompt=prompt,
        hash=hashed,
        hasher=hasher,
        up_to_rules=up_to_rules,
        rules_hash=sha256(up_to_rules.text.encode()).hexdigest(),
        rules=judged((*narrowed.verdicts, *_absent(given, Layer.RULES, instruments))),
        settings=judged((*settings, *_absent(given, Layer.SETTINGS, instruments))),
        rules_over=narrowed.over,
        imprint=imprint(hashed, [*narrowed.verdicts, *settings]),
        weight=given.weight + 2 * len(prompt.text),
    )


def _absent(given: StableInput, layer: Layer, instruments: Instruments) -> list[Verdict]:
    absent = [item for item in given.left_out if item.layer is layer]
    return absent_verdicts(absent, instruments)


def _allowance(figures: Figures, rules: Sequence[Verdict], instruments: Instruments) -> int:
    """Tell what Settings may take; below zero, how much is missing before they may take any."""
    constrained = any(verdict.kind is Kind.CONSTRAINT and verdict.stays for verdict in rules)
    fixed = fixed_tokens(instruments, constraints=constrained)
    promised = figures.minimum(Layer.RETRIEVED) + figures.minimum(Layer.IMMEDIATE)
    return figures.total - fixed - sum(v.tokens for v in rules) - promised
