r"""How a rule is written, and how all rules are run over a text in one pass.

A rule has anchors to look for, a pattern to match there and a judge; Aho–Corasick finds the
anchors. The rules read the text without its disguises: invisible characters, wide letters, `\u`
escapes.
"""

import re
import string
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, overload

from creonowd.redaction.shape import is_random, is_shouted, is_stand_in, is_wordlike, is_words
from creonowd.text import well_formed
from creonowd.threads import check_stopped, until_stopped

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

PLACEHOLDER = "***REDACTED***"

MatchSpan = tuple[int, int]
"""Start and end of a part of a text."""

RankedSpan = tuple[int, int, int]


class RankedSpans(Sequence[RankedSpan]):
    """Spans in 12 bytes each: as tuples those of nothing but secrets took 16 times the text's size."""

    def __init__(self, spans: Iterable[RankedSpan] = ()) -> None:
        self._numbers = array("I")
        self.extend(spans)

    def __len__(self) -> int:
        return len(self._numbers) // 3

    @overload
    def __getitem__(self, index: int) -> RankedSpan: ...
    @overload
    def __getitem__(self, index: slice) -> "RankedSpans": ...
    def __getitem__(self, index: int | slice) -> "RankedSpan | RankedSpans":
        if isinstance(index, slice):
            return RankedSpans(map(self.__getitem__, range(*index.indices(len(self)))))
        at = 3 * range(len(self))[index]
        start, end, rank = self._numbers[at : at + 3]
        return start, end, rank

    def __iter__(self) -> Iterator[RankedSpan]:
        numbers = iter(self._numbers)
        return zip(numbers, numbers, numbers, strict=True)

    def append(self, span: RankedSpan) -> None:
        """Add a span."""
        self._numbers.extend(span)

    def extend(self, spans: Iterable[RankedSpan]) -> None:
        """Add spans."""
        for span in spans:
            self._numbers.extend(span)

    def pop(self) -> RankedSpan:
        """Take the last span away."""
        last = self[-1]
        del self._numbers[-3:]
        return last

    def in_order(self) -> "RankedSpans":
        """Return them in reading order."""
        if all(before <= after for before, after in pairwise(self)):
            return self
        return RankedSpans(sorted(self))


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

LONGEST_PERIOD = 512
FARTHEST_BEFORE = 600
"""How far before an anchor rules look."""
FEWEST_REPETITIONS = 8
MOST_STATES = 256
"""How many pieces of a text that repeats itself are looked at before the others are looked at too."""

LONGEST_NAME_END = 24
NEAR_VALUE = 24
"""How far behind its name a value stands that leaves no other one to be looked for."""
DIGITS_OF_A_KEY = 4
SHORTEST_WRAPPED = 12
SHORTEST_FIRST_LINE = 28
SHORTEST_LAST_LINE = 6
LONGEST_GAP_OF_LINES = 48
_BEFORE_WRAP = frozenset("\"'`)\\ \t\r\n")
_WRAPPED = re.compile(
    r"[\"'`)]{0,2}[ \t]{0,4}[\\+]?[ \t]{0,4}\r?\n[> \t]{0,40}(?:\+[ ]?)?[\"'(]{0,2}([A-Za-z0-9+/_=-]{12,}+)"
)
_LAST_WRAPPED = re.compile(
    r"[\"'`)]{0,2}[ \t]{0,4}[\\+]?[ \t]{0,4}\r?\n[ \t]{0,40}[\"'(]{0,2}"
    r"((?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{6,15}|(?=[^0-9\n]*[0-9])(?=[^a-z\n]*[a-z])(?=[^A-Z\n]*[A-Z])[A-Za-z0-9+/_-]{4,11}={0,2})[\"'`),;]{0,3}[ \t]{0,8}(?:[\r\n]|\Z)"
)
_ANSWERED = re.compile(
    r"[\w.-]{0,24}(?:[\"'`*)\]]{0,4}[ \t]{0,4}[:=：][ \t\"'`*]{0,8}|[?？][ \t]{0,4}\r?\n[^\n:：>]{1,24}[:：>][ ]?)\*\*\*REDACTED\*\*\*[\"'`,;]{0,3}[ \t]{0,8}(?:[\r\n]|\Z)"
)
"""A name that has its value on its line, and nothing more stands there."""
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


def unless_stand_in(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the first group, unless it or a step of its path only marks the place of a secret."""
    return NOTHING if any(map(is_stand_in, re.split("[/?&=]", match[1]))) else (match.span(1),)


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
    is_mixed = re.search("[a-z][A-Z].*[a-z]|[A-Z]{2}[a-z]", body) is not None
    is_mixed = is_mixed or (len(body) > 9 and body.isalpha() and not is_wordlike(body))
    is_key = (digits >= 2 or is_mixed) and not is_words(body) and not is_stand_in(body)
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
    text = well_formed(text)
    disguises: list[str] = []
    if _has_hidden(text):
        text = _changed(text, lambda part: part.translate(_WIDE_TO_NARROW))
        disguises.append(_HIDDEN)
    if "\\u" in text:
        disguises.append(_ESCAPED)
    if '" +' in text or "' +" in text:
        disguises.append(_CONCATENATION)
    if not disguises:
        return NormalisedText(text, text)
    disguise = _any_of(tuple(disguises))
    if disguises == [_HIDDEN]:
        plain = _changed(text, lambda part: disguise.sub("", part))
    else:
        plain = disguise.sub(_reveal if "\\u" in text else "", text)
    return NormalisedText(text, text) if plain == text else NormalisedText(plain, text, disguise)


def _changed(text: str, change: Callable[[str], str]) -> str:
    """Change a text a slice at a time: all of it at once would hold up every other thread."""
    changed: list[str] = []
    for start in range(0, len(text), SLICE):
        check_stopped()
        changed.append(change(text[start : start + SLICE]))
    return "".join(changed)


def original_position(normalised: NormalisedText) -> Callable[[int], int]:
    """Make the function from a position in the normalised text to the original one."""
    # Lists of numbers would take nine times as much.
    ends, shifts = array("Q"), array("Q")
    removed = 0
    found = normalised.disguise.finditer(normalised.before) if normalised.disguise else ()
    for match in until_stopped(found):
        start, end = match.span()
        kept = len(_reveal(match))
        ends.append(start - removed + kept)
        removed += end - start - kept
        shifts.append(removed)
    return lambda at: at + (shifts[last - 1] if (last := bisect_right(ends, at)) else 0)


def _has_hidden(text: str) -> bool:
    # Slice by slice: copies of all of it would take twice the memory of a huge text.
    parts = (text[start : start + SLICE].encode() for start in range(0, len(text), SLICE))
    if text.isascii():
        return any(len(part.translate(None, _CONTROLS)) < len(part) for part in parts)
    return any(_TAGS_ENCODED in part for part in parts) or _SUSPECT.search(text) is not None


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
    names: bool


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
        AhoCorasick(list(by_anchor), implementation=Implementation.ContiguousNFA),
        max(map(len, by_anchor), default=0),
        tuple(map(tuple, by_anchor.values())),
        [()] * len(by_anchor),
        [all(rules[rank].names for rank in ranks) for ranks in by_anchor.values()],
        tuple(rank for rank, rule in enumerate(rules) if not rule.anchors),
        tuple((rank, rule.needs) for rank, rule in enumerate(rules) if rule.needs),
    )


def scan(scanner: Scanner, text: str, changed: Sequence[int] | None = None) -> RankedSpans:
    """Find all secrets; spans that overlap become one, of the best rank.

    `changed`: the only positions at which the text differs from one that was scanned before; far
    from them there is nothing new to find.
    """
    hits = _hits(scanner, text) if changed is None else _hits_near(scanner, text, changed)
    spans = _anchored_spans(scanner, text, hits)
    spans.extend(_unanchored_spans(scanner, text))
    if not spans:
        return spans
    spans = _merge(spans)
    return RankedSpans(_with_wrapped_lines(scanner, text, spans))


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


def _anchored_spans(scanner: Scanner, text: str, hits: Iterable[Hit]) -> RankedSpans:
    spans = RankedSpans()
    done = _done_before(scanner, text)
    escapes = may_have_escapes(text)
    always_inside = frozenset[str]() if escapes else LETTER_OR_DIGIT
    compiled = scanner.compiled
    answered, by = -1, 0
    repetition = _Repetition(text, done)
    for anchor, start, end in _worth_a_look(scanner, text, hits, repetition):
        may_repeat = anchor == repetition.leader or start > repetition.next_leader
        if may_repeat and repetition.begins(anchor, start, spans):
            spans.extend(repetition.copies(spans))
            continue
        before = text[start - 1] if start else " "
        for rank, bounded, match_at, judge, swallows, names in compiled[anchor] or _compile(
            scanner, anchor
        ):
            if (
                start < done[rank]
                or (start == answered and names and rank > by)
                or (
                    bounded
                    and before in MAY_BE_INSIDE
                    and (before in always_inside or is_inside_token(text, start, escapes=escapes))
                )
            ):
                continue
            match = match_at(text, start)
            if match is None:
                continue
            for first, last in judge(match):
                spans.append((first, last, rank))
                done[rank] = last
                if names and 0 <= first - end <= NEAR_VALUE and text[last : last + 1] != "\\":
                    answered, by = start, rank
            if swallows and done[rank] < match.end():
                done[rank] = match.end()
    return spans


class _Repetition:
    """Knows where a text only repeats itself, so that what is found in one piece is in the next ones.

    A text of nothing but labels costs a hundred times as much as counting its tokens otherwise.
    """

    def __init__(self, text: str, done: list[int]) -> None:
        self._done = done
        self._lacking = frozenset(rank for rank, place in enumerate(done) if place)
        self.end = 0
        """Up to where nothing new is to be found."""
        self._text = text
        self._period = 0
        self._start = 0
        self._first_span = 0
        self.leader = -1
        self.next_leader = -1
        """The anchor that is followed, and from where on another one may be."""
        self._last, self._apart, self._times = 0, 0, 0
        self._run: dict[tuple[MatchSpan, ...], MatchSpan] = {}

    def begins(self, anchor: int, start: int, spans: Sequence[RankedSpan]) -> bool:
        """Note a hit, and return whether all was the same before, the text and how far matches reach.

        Only one anchor is followed, as long as it comes at even distances.
        """
        if not self._is_even(anchor, start) or len(self._run) > MOST_STATES:
            return False
        first, first_span = self._run.setdefault(self._state(start), (start, len(spans)))
        if first == start:
            return False
        apart = start - first
        end = self._same_until(start, self._apart) - NEAR
        if end - start < 2 * apart:
            return False
        self._period, self._start, self._first_span = apart, start, first_span
        self.end = start + (end - start) // apart * apart
        return True

    def _is_even(self, anchor: int, start: int) -> bool:
        """Return whether the anchor that is followed has come at even distances for some time."""
        is_new = anchor != self.leader
        self.leader, self.next_leader = anchor, start + LONGEST_PERIOD
        apart, self._last = 0 if is_new else start - self._last, start
        if apart != self._apart or not apart:
            if self._apart and not is_new:
                self.leader, self.next_leader = -1, -1
            self._apart, self._times = apart, 0
            self._run = {}
        self._times += 1
        return self._times > FEWEST_REPETITIONS and start >= FARTHEST_BEFORE

    def copies(self, spans: RankedSpans) -> Iterator[RankedSpan]:
        """Yield what was found in the last piece once more for each piece up to the end."""
        found = tuple(spans[self._first_span :])
        for shift in range(self._period, self.end - self._start + self._period, self._period):
            for first, last, rank in found:
                yield first + shift, last + shift, rank

    def _state(self, start: int) -> tuple[MatchSpan, ...]:
        """Return how far the matches of which rules reach beyond a place."""
        lacking = self._lacking
        beyond = [
            (rank, place - start)
            for rank, place in enumerate(self._done)
            if place > start and rank not in lacking
        ]
        return tuple(beyond)

    def _same_until(self, start: int, period: int) -> int:
        """Find how far the text goes on as it does one period before; 0 if it did not before."""
        text, first = self._text, max(period, start - NEAR)
        if text[first:start] != text[first - period : start - period]:
            return 0
        step, end = NEAR, start
        while step:
            if (
                end + step <= len(text)
                and text[end : end + step] == text[end - period : end - period + step]
            ):
                end += step
                step *= 2
            else:
                step //= 2
        return end


def _worth_a_look(
    scanner: Scanner, text: str, hits: Iterable[Hit], repetition: _Repetition
) -> Iterator[Hit]:
    """Leave out names that are repeated at once, of which only the last has a value, and redacted ones."""
    named = scanner.named
    has_placeholder = PLACEHOLDER in text
    last_name, is_done = -1, False
    for hit in hits:
        anchor, start, end = hit
        if start < repetition.end:
            continue
        if named[anchor]:
            if start != last_name:
                last_name, is_done = start, _is_repeated(text, start, end)
                is_done = is_done or (has_placeholder and _ANSWERED.match(text, end) is not None)
            if is_done:
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
            rule.names,
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


def _unanchored_spans(scanner: Scanner, text: str) -> Iterator[RankedSpan]:
    for rank in scanner.unanchored:
        for match in compile_pattern(scanner.rules[rank].pattern).finditer(text):
            for start, end in scanner.rules[rank].judge(match):
                yield start, end, rank


def _with_wrapped_lines(scanner: Scanner, text: str, spans: RankedSpans) -> Iterator[RankedSpan]:
    """Add the lines in which a long key goes on, each as a span of its own.

    They end at the next span, so that no line is looked at twice.
    """
    limits = chain((start for start, _, _ in islice(spans, 1, None)), [len(text)])
    last = -LONGEST_GAP_OF_LINES
    for span, limit in zip(spans, limits, strict=True):
        yield span
        start, end, rank = span
        is_more = start - last < LONGEST_GAP_OF_LINES and text[last:start].isspace()
        last = end
        if limit - end < SHORTEST_LAST_LINE or text[end] not in _BEFORE_WRAP:
            continue
        if not scanner.rules[rank].wraps:
            continue
        first = end
        while (more := _WRAPPED.match(text, end, limit)) and _is_wrapped(more[1], text, more.end()):
            end = more.end(1)
            yield more.start(1), end, rank
        is_long = first - start >= SHORTEST_FIRST_LINE
        if (is_more or is_long or end > first) and (more := _LAST_WRAPPED.match(text, end, limit)):
            yield more.start(1), more.end(1), rank


def _is_wrapped(line: str, text: str, end: int) -> bool:
    return _LINE_END.match(text, end) is not None and is_random(line, 12)


def lower(text: str) -> str:
    """Lower the case without moving a character: `İ` is the only one that would grow."""
    return text.replace("İ", "I").lower()


def _merge(spans: RankedSpans) -> RankedSpans:
    """Join overlapping spans, in reading order."""
    merged = RankedSpans()
    covered = 0
    for span in spans.in_order():
        start, end, rank = span
        if start < covered:
            first, last, best = merged.pop()
            merged.append((first, max(last, end), min(best, rank)))
        else:
            merged.append(span)
        covered = max(covered, end)
    return merged
