r"""Run the rules over a text in one pass: anchors by Aho–Corasick, a match at each, a judge.

The rules read the text without its disguises: invisible characters, wide letters, `\u` escapes.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from ahocorasick_rs import AhoCorasick, Implementation

from creonowd.redaction.rules import (
    LETTER_OR_DIGIT,
    MAY_BE_INSIDE,
    Judge,
    MatchSpan,
    RankedSpan,
    RedactionRule,
    compile_pattern,
    is_inside_token,
    may_have_escapes,
)
from creonowd.redaction.shape import is_random
from creonowd.text import encode_well_formed, well_formed

NEAR = 4500
"""How far from a change a new match may begin: further than any match is long."""

Hit = tuple[int, int, int]
"""The number of an anchor, and where it starts and ends."""
_INVISIBLE = (
    "\x00-\x08\x0e-\x1a\x1c-\x1f\x7f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb"
)
_TAGS = "\U000e0000-\U000e01ef"
_TAGS_ENCODED = b"\xf3\xa0"
_SUSPECT = re.compile(f"[{_INVISIBLE}０-９Ａ-Ｚａ-ｚ]")
_CONTROLS = bytes(code for code in range(128) if _SUSPECT.match(chr(code)))
_HIDDEN = f"[{_INVISIBLE}{_TAGS}]+"
_ALL_HIDDEN = re.compile(_HIDDEN)
_ESCAPED = r"\\(?<!\\\\)\\*+u[0-9a-fA-F]{4}"
_AFTER_DRIVE = re.compile(r"[A-Za-z]:\Z")
_CONCATENATION = "|".join(
    rf"{quote}(?<=[\w-]{quote})[ \t]{{0,4}}\+\s{{0,16}}{quote}(?=[\w-])" for quote in "\"'"
)
_WIDE_TO_NARROW = {
    **{0xFF10 + i: 0x30 + i for i in range(10)},
    **{0xFF21 + i: 0x41 + i for i in range(26)},
    **{0xFF41 + i: 0x61 + i for i in range(26)},
    ord("－"): "-",
    ord("＿"): "_",
    ord("．"): ".",
}


class NormalisedText(NamedTuple):
    """A text without disguises, the text before, and the pattern of what was replaced in it."""

    text: str
    before: str
    disguise: "re.Pattern[str] | None" = None


def normalise(text: str) -> NormalisedText:
    """Undo disguises; a text without any is returned as it is."""
    text, encoded = encode_well_formed(text)
    disguises: list[str] = []
    if _has_hidden(text, encoded):
        text = text.translate(_WIDE_TO_NARROW)
        disguises.append(_HIDDEN)
    if "\\u" in text:
        disguises.append(_ESCAPED)
    if '" +' in text or "' +" in text:
        disguises.append(_CONCATENATION)
    if not disguises:
        return NormalisedText(text, text)
    disguise = _any_of(tuple(disguises))
    plain = disguise.sub(_reveal if "\\u" in text else "", text)
    return NormalisedText(text, text) if plain == text else NormalisedText(plain, text, disguise)


def original_position(normalised: NormalisedText) -> Callable[[int], int]:
    """Make the function from a position in the normalised text to the original one."""
    ends: list[int] = []
    shifts: list[int] = []
    removed = 0
    for match in normalised.disguise.finditer(normalised.before) if normalised.disguise else ():
        start, end = match.span()
        kept = len(_reveal(match))
        ends.append(start - removed + kept)
        removed += end - start - kept
        shifts.append(removed)
    return lambda at: at + (shifts[last - 1] if (last := bisect_right(ends, at)) else 0)


def _has_hidden(text: str, encoded: bytes) -> bool:
    if text.isascii():
        return len(encoded.translate(None, _CONTROLS)) < len(encoded)
    return _TAGS_ENCODED in encoded or _SUSPECT.search(text) is not None


@cache
def _any_of(patterns: tuple[str, ...]) -> "re.Pattern[str]":
    return re.compile("|".join(patterns))


def _reveal(match: "re.Match[str]") -> str:
    r"""Return what a disguise stands for.

    The backslashes of `\\\u94a5` are a separator and an escape.
    """
    hidden, start = match[0], match.start()
    slashes = len(hidden) - len("u94a5")
    if hidden[0] != "\\":
        return ""
    if slashes <= 2 and _AFTER_DRIVE.search(match.string, max(0, start - 2), start):
        return hidden
    char = chr(int(hidden[-4:], 16))
    kept = hidden[: slashes - 2 + slashes % 2]
    if _ALL_HIDDEN.match(char):
        return kept
    return kept + well_formed(char).translate(_WIDE_TO_NARROW)


class CompiledRule(NamedTuple):
    """What the scan needs of a rule, its pattern compiled."""

    rank: int
    bounded: bool
    match_at: Callable[[str, int], "re.Match[str] | None"]
    judge: Judge
    swallows: bool


class Scanner(NamedTuple):
    """Rules prepared for a scan; those of an anchor are compiled when it is first met."""

    rules: tuple[RedactionRule, ...]
    names: tuple[str, ...]
    automaton: AhoCorasick
    by_anchor: tuple[tuple[int, ...], ...]
    compiled: list[tuple[CompiledRule, ...]]
    unanchored: tuple[int, ...]
    needs: tuple[tuple[int, str], ...]


def make_scanner(rules: Sequence[RedactionRule]) -> Scanner:
    """Put the anchors of all rules into one automaton."""
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


def scan(scanner: Scanner, text: str, changed: Sequence[int] | None = None) -> list[RankedSpan]:
    """Find all secrets; spans that overlap become one, of the best rank.

    `changed`: the only positions at which the text differs from one that was scanned before; far
    from them there is nothing new to find.
    """
    hits = _hits(scanner, text) if changed is None else _hits_near(scanner, text, changed)
    spans = _merge([*_anchored(scanner, text, hits), *_unanchored(scanner, text)])
    return [*_with_wrapped_lines(scanner, text, spans)] if spans else spans


def anchor_spans(scanner: Scanner, text: str) -> list[MatchSpan]:
    """List every span at which some rule could match."""
    found = [(start, end) for _, start, end in _hits(scanner, text)]
    for rank in scanner.unanchored:
        found += (
            match.span() for match in compile_pattern(scanner.rules[rank].pattern).finditer(text)
        )
    return found


def _hits(scanner: Scanner, text: str) -> list[Hit]:
    return scanner.automaton.find_matches_as_indexes(lower(text), overlapping=True)


def _hits_near(scanner: Scanner, text: str, positions: Sequence[int]) -> list[Hit]:
    return [
        (anchor, first + start, first + end)
        for first, last in _windows(positions)
        for anchor, start, end in _hits(scanner, text[first:last])
    ]


def _windows(positions: Sequence[int]) -> Iterator[MatchSpan]:
    """Join the windows around positions that are given in order."""
    first, last = 0, 0
    for position in positions:
        if position - NEAR > last:
            yield first, last
            first = position - NEAR
        last = position + NEAR
    yield first, last


def _anchored(scanner: Scanner, text: str, hits: Sequence[Hit]) -> list[RankedSpan]:
    spans: list[RankedSpan] = []
    done = _done_before(scanner, text)
    escapes = may_have_escapes(text)
    always_inside = frozenset[str]() if escapes else LETTER_OR_DIGIT
    compiled = scanner.compiled
    for anchor, start, _ in hits:
        before = text[start - 1] if start else " "
        for rank, bounded, match_at, judge, swallows in compiled[anchor] or _compile(
            scanner, anchor
        ):
            if start < done[rank] or (
                bounded
                and before in MAY_BE_INSIDE
                and (before in always_inside or is_inside_token(text, start, escapes=escapes))
            ):
                continue
            match = match_at(text, start)
            if match is None:
                continue
            for first, last in judge(match):
                spans.append((first, last, rank))
                done[rank] = last
            if swallows and done[rank] < match.end():
                done[rank] = match.end()
    return spans


def _compile(scanner: Scanner, anchor: int) -> tuple[CompiledRule, ...]:
    ranked = [(rank, scanner.rules[rank]) for rank in scanner.by_anchor[anchor]]
    scanner.compiled[anchor] = tuple(
        CompiledRule(
            rank, rule.bounded, compile_pattern(rule.pattern).match, rule.judge, rule.swallows
        )
        for rank, rule in ranked
    )
    return scanner.compiled[anchor]


def _done_before(scanner: Scanner, text: str) -> list[int]:
    """List up to where each rule need not look: to the end, if the text lacks what it needs."""
    done = [0] * len(scanner.names)
    for rank, needs in scanner.needs:
        if needs not in text:
            done[rank] = len(text)
    return done


def _unanchored(scanner: Scanner, text: str) -> list[RankedSpan]:
    return [
        (start, end, rank)
        for rank in scanner.unanchored
        for match in compile_pattern(scanner.rules[rank].pattern).finditer(text)
        for start, end in scanner.rules[rank].judge(match)
    ]


def _with_wrapped_lines(
    scanner: Scanner, text: str, spans: Sequence[RankedSpan]
) -> Iterator[RankedSpan]:
    """Add the lines in which a long key goes on, each as a span of its own.

    They end at the next span, so that no line is looked at twice.
    """
    limits = [start for start, _, _ in spans[1:]]
    for span, limit in zip(spans, [*limits, len(text)], strict=True):
        yield span
        _, end, rank = span
        if limit - end < SHORTEST_WRAPPED or text[end] not in _BEFORE_WRAP:
            continue
        if not scanner.rules[rank].wraps:
            continue
        while (more := _WRAPPED.match(text, end, limit)) and _is_wrapped(more[1], text, more.end()):
            end = more.end(1)
            yield more.start(1), end, rank


SHORTEST_WRAPPED = 12
_BEFORE_WRAP = frozenset("\"'`)\\ \t\r\n")
_WRAPPED = re.compile(
    r"[\"'`)]{0,2}[ \t]{0,4}[\\+]?[ \t]{0,4}\r?\n[ \t]{0,40}[\"'(]{0,2}([A-Za-z0-9+/_=-]{12,}+)"
)
_LINE_END = re.compile(r"[\"'`),;\\]{0,4}[ \t]{0,8}(?:[\r\n+]|\Z)")


def _is_wrapped(line: str, text: str, end: int) -> bool:
    return _LINE_END.match(text, end) is not None and is_random(line, 12)


def lower(text: str) -> str:
    """Lower the case without moving a character: `İ` is the only one that would grow."""
    return text.replace("İ", "I").lower()


def _merge(spans: Sequence[RankedSpan]) -> list[RankedSpan]:
    """Join overlapping spans, in reading order."""
    merged: list[RankedSpan] = []
    covered = 0
    for span in sorted(spans):
        start, end, rank = span
        if start < covered:
            first, last, best = merged[-1]
            merged[-1] = first, max(last, end), min(best, rank)
        else:
            merged.append(span)
        covered = max(covered, end)
    return merged
