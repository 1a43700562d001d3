"""Cut a text where a reader would: to a number of tokens from either end, or to a short line.

Tokens are counted block by block from the end that is kept, so that only the block in which the
limit falls is encoded more than once.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from creonowd.model import Model
from creonowd.tokens.boundaries import (
    additive_points,
    block_ends,
    grapheme_ceiling,
    grapheme_floor,
    paragraphs,
    sentences,
)
from creonowd.tokens.tokenizer import Tokenizer

FIRST_PROBE = 4096
SHORT_LINE = 200
GAP = 64
MARGIN = 32
PROBES = 6

_Rank = Callable[[str, int, int], Iterator[int]]


class Cut(Model):
    """Where a text is cut, and the exact tokens of what is kept with what was put around it."""

    at: int
    tokens: int


def keep_head(
    text: str,
    limit: int,
    tokenizer: Tokenizer,
    *,
    floor: int = 0,
    before: str = "",
    after: str = "",
    known: Sequence[tuple[int, int]] = (),
) -> Cut:
    """Find the longest head `text[:at]` for which `before + head + after` fits into `limit`.

    The cut is the largest fitting one at a paragraph that keeps more than `floor` code points,
    else the largest such at a sentence, else the largest at a grapheme, never inside one. If
    not even one grapheme fits, `at` is 0 and `tokens` may exceed the limit. "Largest" is exact
    where additive points are at most 64 code points apart, as in any prose; in a long run of emoji
    it is nearly so.

    `known` are additive points of `before + text` and the tokens up to each, in order: the walk
    begins at the last that fits, and counts what was counted there before.
    """
    walk = _Walk(before + text, limit, tokenizer, after, edge=len(before), forward=True)
    if known and not walk.begin_at(known):
        walk = _Walk(before + text, limit, tokenizer, after, edge=len(before), forward=True)
    found = _keep(walk, len(before) + floor)
    return Cut(at=found.at - len(before), tokens=found.tokens)


def keep_tail(
    text: str,
    limit: int,
    tokenizer: Tokenizer,
    *,
    floor: int = 0,
    before: str = "",
    after: str = "",
) -> Cut:
    """Find the longest tail `text[at:]` for which `before + tail + after` fits into `limit`.

    The rules are those of `keep_head`, from the other end; if nothing fits, `at` is the length of
    the text.
    """
    walk = _Walk(text + after, limit, tokenizer, before, edge=len(text), forward=False)
    return _keep(walk, len(text) - floor)


def exceeds(text: str, limit: int, tokenizer: Tokenizer) -> bool:
    """Return whether a text has more than `limit` tokens, encoding little more than that many."""
    walk = _Walk(text, limit, tokenizer, "", edge=0, forward=True)
    return len(text) > limit * tokenizer.longest or not walk.advance()


class _Walk:
    """One walk from the end that is kept to where the limit falls.

    `_steps` are the positions that fit and the tokens up to each; beyond `outer` nothing fits.
    """

    def __init__(
        self, text: str, limit: int, tokenizer: Tokenizer, far: str, *, edge: int, forward: bool
    ) -> None:
        self.text, self.limit, self.edge, self.forward = text, limit, edge, forward
        self._tokenizer, self._far = tokenizer, far
        self._steps = [(0 if forward else len(text), 0)]
        self.outer = len(text) if forward else 0
        self._is_near = False

    def begin_at(self, known: Sequence[tuple[int, int]]) -> bool:
        """Begin at the last known point that fits; False if the limit lies far from any point.

        Then the blocks decide how near to it the cut is looked for.
        """
        fitting = bisect_right(known, self.limit, key=lambda point: point[1])
        self._steps += known[:fitting]
        if fitting < len(known):
            self.outer = known[fitting][0]
        self._is_near = self._halve()
        return self._is_near

    def advance(self) -> bool:
        """Go to the last block end that fits; return whether that is the whole text."""
        if self._is_near:
            return self.outer == len(self.text) and self._step(self.outer)
        return all(map(self._step, block_ends(self.text, forward=self.forward)))

    def narrow(self) -> None:
        """Bring `outer` as near to the last position that fits as possible."""
        if not self._halve():
            self._probe_gap()

    def _halve(self) -> bool:
        """Find the last additive point that fits; return whether the next one is near to it."""
        inner = self._steps[-1][0]
        between = additive_points(self.text, min(inner, self.outer), max(inner, self.outer))
        ahead = between if self.forward else between[::-1]
        while ahead:
            middle = len(ahead) // 2
            ahead = ahead[middle + 1 :] if self._step(ahead[middle]) else ahead[:middle]
        return abs(self.outer - self._steps[-1][0]) <= GAP

    def tokens(self, position: int) -> int:
        """Count what is kept by a cut at a position, exactly."""
        sign = 1 if self.forward else -1
        before = bisect_left(self._steps, sign * position, key=lambda step: sign * step[0])
        start, tokens = self._steps[max(0, before - 1)]
        kept = self._between(start, position)
        return tokens + self._tokenizer.count(
            kept + self._far if self.forward else self._far + kept
        )

    def _step(self, position: int) -> bool:
        inner, tokens = self._steps[-1]
        if position == inner:
            return True
        count = self._count_up_to(self._between(inner, position), self.limit - tokens)
        if tokens + count > self.limit:
            self.outer = position
            return False
        self._steps.append((position, tokens + count))
        return True

    def _count_up_to(self, part: str, room: int) -> int:
        """Count a part, or stop early with some number over `room` once it is surely over."""
        if len(part) > room * self._tokenizer.longest:
            return room + 1
        size = FIRST_PROBE
        while size < len(part):
            probe = part[:size] if self.forward else part[-size:]
            count = self._tokenizer.count(probe)
            if count > room + room // 8 + 64:
                return count
            size *= 4
        return self._tokenizer.count(part)

    def _probe_gap(self) -> None:
        inner, tokens = self._steps[-1]
        sign = 1 if self.forward else -1

        def measure(width: int) -> int:
            return self._tokenizer.count(self._between(inner, inner + sign * width))

        gap = abs(self.outer - inner)
        margin = MARGIN if gap <= FIRST_PROBE else 0
        width = widest_fit(measure, self.limit - tokens, gap)
        self.outer = inner + sign * min(gap, width + margin)

    def _between(self, one: int, other: int) -> str:
        return self.text[min(one, other) : max(one, other)]


def widest_fit(measure: Callable[[int], int], room: int, width: int) -> int:
    """Find nearly the widest span that fits into `room`, in a handful of measurements.

    Doubles until it does not fit, then interpolates: without additive points, counts grow almost
    evenly.
    """
    fits, fits_count, over, over_count = (
        0,
        0,
        min(FIRST_PROBE, width),
        measure(min(FIRST_PROBE, width)),
    )
    while over_count <= room:
        if over == width:
            return width
        fits, fits_count, over = over, over_count, min(2 * over, width)
        over_count = measure(over)
    for _ in range(PROBES):
        guess = fits + (over - fits) * (room - fits_count) // (over_count - fits_count)
        if guess <= fits:
            break
        count = measure(guess)
        if count <= room:
            fits, fits_count = guess, count
        else:
            over, over_count = guess, count
    return fits


def _keep(walk: _Walk, floor: int) -> Cut:
    whole = len(walk.text) if walk.forward else 0
    if walk.advance() and (tokens := walk.tokens(whole)) <= walk.limit:
        return Cut(at=whole, tokens=tokens)
    walk.narrow()
    candidates = chain(
        _outermost_first(walk, paragraphs, floor),
        _outermost_first(walk, sentences, floor),
        _graphemes(walk),
    )
    for position in candidates:
        if (tokens := walk.tokens(position)) <= walk.limit:
            return Cut(at=position, tokens=tokens)
    return Cut(at=walk.edge, tokens=walk.tokens(walk.edge))


def _outermost_first(walk: _Walk, rank: _Rank, floor: int) -> Iterator[int]:
    if walk.forward:
        yield from reversed(list(rank(walk.text, floor, walk.outer)))
    elif walk.outer < floor:
        yield from (p for p in rank(walk.text, max(0, walk.outer - 1), floor) if p < floor)


def _graphemes(walk: _Walk) -> Iterator[int]:
    position = walk.outer
    while walk.forward and position > walk.edge:
        position = grapheme_floor(walk.text, position)
        yield max(position, walk.edge)
        position -= 1
    while not walk.forward and position < walk.edge:
        position = grapheme_ceiling(walk.text, position)
        yield min(position, walk.edge)
        position += 1


def clip(text: str, limit: int = SHORT_LINE) -> str:
    """Cut a text to a number of code points, at a grapheme, with an ellipsis."""
    if len(text) <= limit:
        return text
    return text[: grapheme_floor(text, max(0, limit - 1))] + "…"


def one_line(text: str, limit: int = SHORT_LINE) -> str:
    """Put a text on one line and cut it."""
    return clip(" ".join(text[: 4 * limit].split()), limit)
