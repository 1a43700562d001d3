r"""How a rule is written, and how all rules are run over a text in one pass.

A rule has anchors to look for, a pattern to match there and a judge; Aho–Corasick finds the
anchors. The rules read the text without its disguises: invisible characters, wide letters, `\u`
escapes.
"""

import re
import string
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from creonowd.redaction.shape import is_random, is_shouted, is_stand_in, is_words
from creonowd.text import encode_well_formed, well_formed

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

PLACEHOLDER = "***REDACTED***"

MatchSpan = tuple[int, int]
"""Start and end of a part of a text."""

RankedSpan = tuple[int, int, int]
"""Start and end of a secret, and the rank of the rule that found it, the best first."""

Judge = Callable[["re.Match[str]"], Sequence[MatchSpan]]
"""Returns which spans of a match are secret."""

Hit = tuple[int, int, int]
"""The number of an anchor, and where it starts and ends."""

ALNUM = "[A-Za-z0-9]"
HEX = "[0-9a-f]"
UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"
WORD = "[A-Za-z0-9_-]"
END = r"(?![A-Za-z0-9]|\*\*\*REDACTED\*\*\*)"
NOTHING: tuple[MatchSpan, ...] = ()

LETTER_OR_DIGIT = frozenset(string.ascii_letters + string.digits)
MAY_BE_INSIDE = LETTER_OR_DIGIT | {"*"}
"""Characters after which a position may lie inside a token; after all others a token may begin."""

LONGEST_ESCAPE = 16

_ESCAPE_SIGN = re.compile(r"[\\%\x1b]")
_ESCAPE = re.compile(
    r"(?:\\(?:[nrtbfv]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})"
    r"|%[0-9a-fA-F]{2}"
    r"|(?:\x1b|\\(?:e|033|x1b|u001b))\[[0-9;]{0,8}m)\Z"
)

NEAR = 4500
SLICE = 64 * 1024
"""How far from a change a new match may begin: further than any match is long."""

LONGEST_NAME_END = 24
DIGITS_OF_A_KEY = 4
SHORTEST_WRAPPED = 12
_BEFORE_WRAP = frozenset("\"'`)\\ \t\r\n")
_WRAPPED = re.compile(
    r"[\"'`)]{0,2}[ \t]{0,4}[\\+]?[ \t]{0,4}\r?\n[ \t]{0,40}[\"'(]{0,2}([A-Za-z0-9+/_=-]{12,}+)"
)
_LINE_END = re.compile(r"[\"'`),;\\]{0,4}[ \t]{0,8}(?:[\r\n+]|\Z)")

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


class SecretSpan(NamedTuple):
    """Where in a text a secret is, and which pattern found it."""

    start: int
    end: int
    pattern_id: str


class RedactionRule(NamedTuple):
    """One thing to find.

    Anchors are lower case; the pattern is matched where one begins, or anywhere if there is none.
    What it repeats is bounded or cannot hold another anchor, so that time stays linear.
    `bounded`: the match begins at a token's boundary. `swallows`: anchors inside a match are
    skipped, whatever the judge took of it. `needs`: what must stand somewhere in the text.
    `wraps`: what is found may go on in the lines below it. `names`: the anchors are names of values, so
    that of the same one twice, as in `key: key: …`, only the second has a value.
    """

    pattern_id: str
    anchors: tuple[str, ...]
    pattern: str
    judge: Judge
    bounded: bool = True
    swallows: bool = True
    needs: str = ""
    wraps: bool = False
    names: bool = False


def token(pattern_id: str, prefix: str, body: str) -> RedactionRule:
    """Write the rule of a vendor's token: a literal prefix, then a body that is no word."""
    pattern = f"{re.escape(prefix)}({body}){END}"
    return RedactionRule(pattern_id, (prefix.lower(),), pattern, unless_words, wraps=True)


@cache
def compile_pattern(pattern: str) -> "re.Pattern[str]":
    """Compile a pattern when it is first needed; most never are."""
    return re.compile(pattern, re.ASCII)


def whole(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take everything that matched."""
    return (match.span(),)


def first_group(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the first group only."""
    return (match.span(1),)


def unless_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take everything, unless the first group is a stand-in or made of words."""
    body = match[1]
    return NOTHING if is_stand_in(body) or is_words(body) else (match.span(),)


def unless_a_name(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take everything, unless the first group is a stand-in or a name such as `chasing-dots`."""
    body = match[1]
    is_name = is_words(body) and not is_shouted(body)
    is_fake = is_stand_in(body) and sum(map(str.isdigit, body)) < DIGITS_OF_A_KEY
    return NOTHING if is_fake or is_name else (match.span(),)


def short_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a key that is shorter than the vendor's, as tests have them, unless it is a name."""
    body = match[1]
    digits = sum(map(str.isdigit, body))
    is_key = digits >= 2 and not is_words(body) and not is_stand_in(body)
    return (match.span(),) if is_key else NOTHING


def with_head(head: str, longest: int, *, sufficient: bool = False) -> Judge:
    """Take what matched together with the head before it, if there is one.

    `sufficient`: with this head, what follows may be made of words.
    """
    pattern = re.compile(f"{head}\\Z")

    def judge(match: "re.Match[str]") -> Sequence[MatchSpan]:
        end = match.start()
        found = pattern.search(match.string, max(0, end - longest), end)
        if found is None or not begins_token(match.string, found.start()):
            return NOTHING
        if is_words(match[0]) and not sufficient:
            return NOTHING
        return ((found.start(), match.end()),)

    return judge


def begins_token(text: str, start: int) -> bool:
    """Return whether a token may begin at `start`."""
    return not (start and is_inside_token(text, start))


def is_inside_token(text: str, start: int, *, escapes: bool = True) -> bool:
    """Return whether a token has begun before `start`; `escapes`: whether the text may have any."""
    before = text[start - 1]
    if before == "*":
        return text.endswith(PLACEHOLDER, 0, start)
    return before in LETTER_OR_DIGIT and not (escapes and follows_escape(text, start))


def may_have_escapes(text: str) -> bool:
    """Return whether a text has anything that an escape could begin with."""
    return _ESCAPE_SIGN.search(text) is not None


def follows_escape(text: str, start: int) -> bool:
    r"""Return whether the characters right before `start` are an escape such as `\n` or `%3D`."""
    first = start - LONGEST_ESCAPE if start > LONGEST_ESCAPE else 0
    if _ESCAPE_SIGN.search(text, first, start) is None:
        return False
    return _ESCAPE.search(text[first:start]) is not None


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
    automaton: "AhoCorasick"
    longest_anchor: int
    by_anchor: tuple[tuple[int, ...], ...]
    compiled: list[tuple[CompiledRule, ...]]
    named: list[bool]
    unanchored: tuple[int, ...]
    needs: tuple[tuple[int, str], ...]


def make_scanner(rules: Sequence[RedactionRule]) -> Scanner:
    """Put the anchors of all rules into one automaton."""
    from ahocorasick_rs import AhoCorasick, Implementation

    by_anchor: dict[str, list[int]] = {}
    for rank, rule in enumerate(rules):
        for anchor in rule.anchors:
            by_anchor.setdefault(anchor, []).append(rank)
    return Scanner(
        tuple(rules),
        tuple(rule.pattern_id for rule in rules),
        AhoCorasick(list(by_anchor), implementation=Implementation.DFA),
        max(map(len, by_anchor), default=0),
        tuple(map(tuple, by_anchor.values())),
        [()] * len(by_anchor),
        [all(rules[rank].names for rank in ranks) for ranks in by_anchor.values()],
        tuple(rank for rank, rule in enumerate(rules) if not rule.anchors),
        tuple((rank, rule.needs) for rank, rule in enumerate(rules) if rule.needs),
    )


def scan(scanner: Scanner, text: str, changed: Sequence[int] | None = None) -> list[RankedSpan]:
    """Find all secrets; spans that overlap become one, of the best rank.

    `changed`: the only positions at which the text differs from one that was scanned before; far
    from them there is nothing new to find.
    """
    hits = _hits(scanner, text) if changed is None else _hits_near(scanner, text, changed)
    spans = _merge([*_anchored_spans(scanner, text, hits), *_unanchored_spans(scanner, text)])
    return [*_with_wrapped_lines(scanner, text, spans)] if spans else spans


def anchor_spans(scanner: Scanner, text: str) -> list[MatchSpan]:
    """List every span at which some rule could match."""
    found = [(start, end) for _, start, end in _hits(scanner, text)]
    for rank in scanner.unanchored:
        found += (
            match.span() for match in compile_pattern(scanner.rules[rank].pattern).finditer(text)
        )
    return found


def _hits(scanner: Scanner, text: str) -> Iterable[Hit]:
    find = scanner.automaton.find_matches_as_indexes
    if len(text) <= SLICE:
        return find(lower(text), overlapping=True)
    return _hits_by_slice(scanner, text)


def _hits_by_slice(scanner: Scanner, text: str) -> Iterator[Hit]:
    """Yield the hits of a long text slice by slice.

    A text may be made of anchors: their list would take more memory than the text, all of it
    within one call that nobody can stop and during which no other thread runs.
    """
    from creonowd.threads import check_stopped

    find = scanner.automaton.find_matches_as_indexes
    for first in range(0, len(text), SLICE):
        check_stopped()
        piece = lower(text[first : first + SLICE + scanner.longest_anchor])
        for anchor, start, end in find(piece, overlapping=True):
            if start < SLICE:
                yield anchor, first + start, first + end


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


def _anchored_spans(scanner: Scanner, text: str, hits: Iterable[Hit]) -> list[RankedSpan]:
    spans: list[RankedSpan] = []
    done = _done_before(scanner, text)
    escapes = may_have_escapes(text)
    always_inside = frozenset[str]() if escapes else LETTER_OR_DIGIT
    compiled = scanner.compiled
    for anchor, start, _ in _without_repetition(scanner, text, hits):
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


def _without_repetition(scanner: Scanner, text: str, hits: Iterable[Hit]) -> Iterator[Hit]:
    """Leave out names that are repeated at once: only the last one has a value."""
    named = scanner.named
    last_name, is_repeated = -1, False
    for hit in hits:
        anchor, start, end = hit
        if named[anchor]:
            if start != last_name:
                last_name, is_repeated = start, _is_repeated(text, start, end)
            if is_repeated:
                continue
        yield hit


def _is_repeated(text: str, start: int, end: int) -> bool:
    """Return whether a name and the sign behind it are followed by the same again."""
    again = text.find(text[start:end], end, end + LONGEST_NAME_END)
    if again < 0:
        return False
    piece = text[start:again]
    return text.startswith(piece, again) and piece.rstrip(" :=：\r\n").isidentifier()


def _compile(scanner: Scanner, anchor: int) -> tuple[CompiledRule, ...]:
    ranked = [(rank, scanner.rules[rank]) for rank in scanner.by_anchor[anchor]]
    scanner.compiled[anchor] = tuple(
        CompiledRule(
            rank,
            rule.bounded,
            compile_pattern(rule.pattern).match,
            rule.judge,
            rule.swallows,
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


def _unanchored_spans(scanner: Scanner, text: str) -> list[RankedSpan]:
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
