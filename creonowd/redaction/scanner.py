"""One pass over a text: literal anchors by Aho–Corasick, a bounded match at each, a judge.

Knows how rules are run; knows none of them.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from creonowd.redaction.rules import (
    LETTER_OR_DIGIT,
    MAY_BE_INSIDE,
    Finding,
    Judge,
    RedactionRule,
    Span,
    compiled,
    inside,
    may_escape,
)

NEAR = 4500
"""How far a change in a text may matter: further than the longest match that can hold one."""

Hit = tuple[int, int, int]
"""The number of an anchor, and where it starts and ends."""


class CompiledRules(NamedTuple):
    """What the scan asks of a rule, once its pattern is compiled."""

    rank: int
    bounded: bool
    match_at: Callable[[str, int], "re.Match[str] | None"]
    judge: Judge
    swallows: bool


class Scanner(NamedTuple):
    """Rules made ready to run; those of an anchor when it is met for the first time."""

    rules: tuple[RedactionRule, ...]
    names: tuple[str, ...]
    automaton: AhoCorasick
    by_anchor: tuple[tuple[int, ...], ...]
    ready: list[tuple[CompiledRules, ...]]
    unanchored: tuple[int, ...]
    needy: tuple[tuple[int, str], ...]


def make_scanner(rules: Sequence[RedactionRule]) -> Scanner:
    """Gather every rule's anchors into one automaton."""
    by_anchor: dict[str, list[int]] = {}
    for rank, rule in enumerate(rules):
        for anchor in rule.anchors:
            by_anchor.setdefault(anchor, []).append(rank)
    return Scanner(
        tuple(rules),
        tuple(rule.pattern_id for rule in rules),
        AhoCorasick(list(by_anchor), implementation=Implementation.DFA),
        tuple(map(tuple, by_anchor.values())),
        [()] * len(by_anchor),
        tuple(rank for rank, rule in enumerate(rules) if not rule.anchors),
        tuple((rank, rule.needs) for rank, rule in enumerate(rules) if rule.needs),
    )


def _prepare(scanner: Scanner, anchor: int) -> tuple[CompiledRules, ...]:
    ranked = [(rank, scanner.rules[rank]) for rank in scanner.by_anchor[anchor]]
    scanner.ready[anchor] = tuple(
        CompiledRules(rank, rule.bounded, compiled(rule.pattern).match, rule.judge, rule.swallows)
        for rank, rule in ranked
    )
    return scanner.ready[anchor]


def scan(scanner: Scanner, text: str, changed: Sequence[int] | None = None) -> list[Finding]:
    """Find what has to go; stretches overlapping each other become one, of the best rank.

    `changed`: the only places where the text differs from one that was scanned before and had
    its findings replaced; far from them there is nothing new.
    """
    hits = _hits(scanner, text) if changed is None else _hits_near(scanner, text, changed)
    return merge([*_anchored(scanner, text, hits), *_unanchored(scanner, text)])


def suspicions(scanner: Scanner, text: str) -> list[Span]:
    """List every place where some rule could begin, judged by none."""
    found = [(start, end) for _, start, end in _hits(scanner, text)]
    for rank in scanner.unanchored:
        found += (match.span() for match in compiled(scanner.rules[rank].pattern).finditer(text))
    return found


def _hits(scanner: Scanner, text: str) -> list[Hit]:
    return scanner.automaton.find_matches_as_indexes(lower(text), overlapping=True)


def _hits_near(scanner: Scanner, text: str, places: Sequence[int]) -> list[Hit]:
    return [
        (anchor, first + start, first + end)
        for first, last in _windows(places)
        for anchor, start, end in _hits(scanner, text[first:last])
    ]


def _windows(places: Sequence[int]) -> Iterator[Span]:
    """Join what lies near to each of the places, given in order."""
    first, last = 0, 0
    for place in places:
        if place - NEAR > last:
            yield first, last
            first = place - NEAR
        last = place + NEAR
    yield first, last


def _anchored(scanner: Scanner, text: str, hits: Sequence[Hit]) -> list[Finding]:
    findings: list[Finding] = []
    done = _begun(scanner, text)
    escapes = may_escape(text)
    within = frozenset[str]() if escapes else LETTER_OR_DIGIT
    ready = scanner.ready
    for anchor, start, _ in hits:
        before = text[start - 1] if start else " "
        for rank, bounded, match_at, judge, swallows in ready[anchor] or _prepare(scanner, anchor):
            if start < done[rank] or (
                bounded
                and before in MAY_BE_INSIDE
                and (before in within or inside(text, start, escapes=escapes))
            ):
                continue
            match = match_at(text, start)
            if match is None:
                continue
            for first, last in judge(match):
                findings.append((first, last, rank))
                done[rank] = last
            if swallows and done[rank] < match.end():
                done[rank] = match.end()
    return findings


def _begun(scanner: Scanner, text: str) -> list[int]:
    """Tell up to where each rule is done: to the end, if the text lacks what it needs."""
    done = [0] * len(scanner.names)
    for rank, needs in scanner.needy:
        if needs not in text:
            done[rank] = len(text)
    return done


def _unanchored(scanner: Scanner, text: str) -> list[Finding]:
    return [
        (start, end, rank)
        for rank in scanner.unanchored
        for match in compiled(scanner.rules[rank].pattern).finditer(text)
        for start, end in scanner.rules[rank].judge(match)
    ]


def lower(text: str) -> str:
    """Lower the case without moving a character: `İ` is the only one that would grow."""
    return text.replace("İ", "I").lower()


def merge(findings: Sequence[Finding]) -> list[Finding]:
    """Join overlapping findings, in reading order."""
    merged: list[Finding] = []
    reached = 0
    for finding in sorted(findings):
        start, end, rank = finding
        if start < reached:
            first, last, best = merged[-1]
            merged[-1] = first, max(last, end), min(best, rank)
        else:
            merged.append(finding)
        reached = max(reached, end)
    return merged
