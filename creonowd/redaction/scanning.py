"""One pass over a text: literal anchors by Aho–Corasick, a bounded match at each, a judge.

Knows how rules are run; knows none of them.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from creonowd.redaction.boundary import MAY_BE_INSIDE, inside, may_escape
from creonowd.redaction.rules import Rule, Span, compiled

NEARBY = 64

Finding = tuple[int, int, int]
"""Start and end of a stretch to replace, and the rank of the rule that found it, the best first."""


class Scanner(NamedTuple):
    """Rules made ready to run."""

    names: tuple[str, ...]
    automaton: AhoCorasick
    by_anchor: tuple[tuple[tuple[int, Rule], ...], ...]
    unanchored: tuple[tuple[int, Rule], ...]


def make_scanner(rules: Sequence[Rule]) -> Scanner:
    """Gather every rule's anchors into one automaton."""
    by_anchor: dict[str, list[tuple[int, Rule]]] = {}
    for rank, rule in enumerate(rules):
        for anchor in rule.anchors:
            by_anchor.setdefault(anchor, []).append((rank, rule))
    return Scanner(
        tuple(rule.pattern_id for rule in rules),
        AhoCorasick(list(by_anchor), implementation=Implementation.DFA),
        tuple(map(tuple, by_anchor.values())),
        tuple((rank, rule) for rank, rule in enumerate(rules) if not rule.anchors),
    )


def scan(scanner: Scanner, text: str) -> list[Finding]:
    """Find what has to go; stretches overlapping each other become one, of the best rank."""
    return merge([*_anchored(scanner, text), *_unanchored(scanner, text)])


def suspicions(scanner: Scanner, text: str) -> list[Span]:
    """List every place where some rule could begin, judged by none."""
    hits = scanner.automaton.find_matches_as_indexes(lower(text), overlapping=True)
    found = [(start, end) for _, start, end in hits]
    for _, rule in scanner.unanchored:
        found += (match.span() for match in compiled(rule.pattern).finditer(text))
    return found


def _anchored(scanner: Scanner, text: str) -> list[Finding]:
    findings: list[Finding] = []
    done = [0] * len(scanner.names)
    verdicts: dict[tuple[int, int, str], Sequence[Span]] = {}
    hits = scanner.automaton.find_matches_as_indexes(lower(text), overlapping=True)
    escapes = may_escape(text)
    for anchor, start, _ in hits:
        for rank, rule in scanner.by_anchor[anchor]:
            if start < done[rank] or (
                rule.bounded
                and start
                and text[start - 1] in MAY_BE_INSIDE
                and inside(text, start, escapes=escapes)
            ):
                continue
            match = compiled(rule.pattern).match(text, start)
            if match is None:
                continue
            spans = _judged(rank, rule, match, verdicts)
            if spans:
                end, last = match.end(), spans[-1][1]
                findings += [(*span, rank) for span in spans]
                done[rank] = max(end, last)
            elif rule.swallows:
                done[rank] = match.end()
    return findings


def _judged(
    rank: int,
    rule: Rule,
    match: "re.Match[str]",
    verdicts: dict[tuple[int, int, str], Sequence[Span]],
) -> Sequence[Span]:
    """Judge what looks the same only once, or a text of repetitions would take its time."""
    start, end = match.span()
    ahead, back = rule.looks_ahead, rule.looks_back
    nearby = end + NEARBY if ahead else end
    before = start - back if start > back else 0
    seen = (rank, start - before, match.string[before : nearby + ahead])
    verdict = verdicts.get(seen)
    if verdict is not None:
        if len(verdict) == 1:
            first, last = verdict[0]
            return ((first + start, last + start),)
        return [(first + start, last + start) for first, last in verdict]
    spans = rule.judge(match)
    if not spans or spans[-1][1] <= nearby:
        verdicts[seen] = [(first - start, last - start) for first, last in spans]
    return spans


def _unanchored(scanner: Scanner, text: str) -> list[Finding]:
    return [
        (start, end, rank)
        for rank, rule in scanner.unanchored
        for match in compiled(rule.pattern).finditer(text)
        for start, end in rule.judge(match)
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
            first, last, best = merged.pop()
            merged.append((first, max(last, end), min(best, rank)))
        else:
            merged.append(finding)
        reached = max(reached, end)
    return merged
