"""One pass over a text: literal anchors by Aho–Corasick, a bounded match at each, a judge.

Knows how rules are run; knows none of them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from creonowd.redaction.boundary import begins
from creonowd.redaction.rules import Rule, compiled


class Finding(NamedTuple):
    """A stretch to replace; `rank` is the place of its rule among the rules, the best first."""

    start: int
    end: int
    rank: int


class Scanner(NamedTuple):
    """Rules made ready to run."""

    rules: tuple[Rule, ...]
    automaton: AhoCorasick
    ranks_by_anchor: tuple[tuple[int, ...], ...]
    unanchored: tuple[int, ...]


def make_scanner(rules: Sequence[Rule]) -> Scanner:
    """Gather every rule's anchors into one automaton."""
    ranks: dict[str, list[int]] = {}
    for rank, rule in enumerate(rules):
        for anchor in rule.anchors:
            ranks.setdefault(anchor, []).append(rank)
    return Scanner(
        tuple(rules),
        AhoCorasick(list(ranks), implementation=Implementation.DFA),
        tuple(map(tuple, ranks.values())),
        tuple(rank for rank, rule in enumerate(rules) if not rule.anchors),
    )


def scan(scanner: Scanner, text: str) -> list[Finding]:
    """Find what has to go; stretches overlapping each other become one, of the best rank."""
    return merge([*_anchored(scanner, text), *_unanchored(scanner, text)])


def _anchored(scanner: Scanner, text: str) -> Iterable[Finding]:
    done = [0] * len(scanner.rules)
    lowered = lower(text)
    for anchor, start, _ in scanner.automaton.find_matches_as_indexes(lowered, overlapping=True):
        for rank in scanner.ranks_by_anchor[anchor]:
            rule = scanner.rules[rank]
            if start < done[rank] or (rule.bounded and not begins(text, start)):
                continue
            match = compiled(rule.pattern).match(text, start)
            if match is None:
                continue
            spans = rule.judge(match)
            if spans or rule.swallows:
                done[rank] = max([match.end(), *(last for _, last in spans)])
            for first, last in spans:
                yield Finding(first, last, rank)


def _unanchored(scanner: Scanner, text: str) -> Iterable[Finding]:
    for rank in scanner.unanchored:
        rule = scanner.rules[rank]
        for match in compiled(rule.pattern).finditer(text):
            for first, last in rule.judge(match):
                yield Finding(first, last, rank)


def lower(text: str) -> str:
    """Lower the case without moving a character: `İ` is the only one that would grow."""
    return text.replace("İ", "I").lower()


def merge(findings: Sequence[Finding]) -> list[Finding]:
    """Join overlapping findings, in reading order."""
    merged: list[Finding] = []
    for start, end, rank in sorted(findings):
        if merged and start < merged[-1].end:
            last = merged.pop()
            merged.append(Finding(last.start, max(last.end, end), min(last.rank, rank)))
        else:
            merged.append(Finding(start, end, rank))
    return merged
