"""Count the tokens of texts: with an encoding of tiktoken, or in bytes if its table is unusable."""

import os
import re
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from enum import IntEnum
from functools import cache, partial
from importlib.resources.abc import Traversable
from itertools import accumulate, chain, pairwise, product
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from creonowd.errors import Wording
from creonowd.text import normal_form
from creonowd.threads import check_stopped
from creonowd.tokens.boundaries import is_plain, is_word_letter
from creonowd.tokens.models import PACKAGED, KnownTables
from creonowd.tokens.tables import (
    BOUND_BASE,
    BOUNDS,
    DEFAULT_ENCODING,
    ENCODINGS,
    FOLDER,
    SEPARATOR,
    EncodingDefinition,
    TableError,
    load_costs,
    load_encoding,
    load_table,
    packaged_encoding,
    packaged_tables,
    release_encoding,
)

if TYPE_CHECKING:
    import numpy as np
    import regex
    import tiktoken

    _NeighbourKinds = tuple["_NeighbourKind", "_NeighbourKind"]
    _CostTable = np.ndarray[tuple[int, ...], np.dtype[np.uint8]]

ENCODERS = 4
MOST_THREADS = 3
IDLE_S = 900.0
MOST_COMPOSED = 4
"""How many code points NFC makes one of, at most."""
MOST_BYTES = 4
"""How many bytes a code point has, and so how many tokens it is cut into, at most."""
CHARACTERS_PER_THREAD = 16_384
LONG_CALL = 65_536
"""How many code points are encoded in one call; it takes some 20 ms and cannot be stopped."""
UNSURE_TOKENS = 256
"""How many tokens before the end of a call may be others with more text behind them."""
TOKENS_AT_ONCE = 65_536
"""How many tokens are weighed together."""
_REACH = MOST_BYTES + 2
"""How many tokens away a neighbour may still decide what a token costs."""
_TAILS = tuple(range(2 * UNSURE_TOKENS, 2 * UNSURE_TOKENS + 16))
"""How many tokens before the end of a call the next one may begin."""

_RARE = re.compile(r"[\u2e80-\u2fff\u3400-\u4dbf\ua000-\ua95f\U00010000-\U0010ffff]")
_TOKENS_PER_ASCII = 0.27
_TOKENS_PER_WIDE = 1.1
_TOKENS_PER_RARE = 3.8


class PendingCounts:
    """The counts of texts that a `begin_count` was given; they are valid inside its block."""

    def __init__(self, finish: Callable[[], list[int]]) -> None:
        self._finish = finish

    def result(self) -> list[int]:
        """Wait for the counts, or make them now; may be called once."""
        return self._finish()


class Tokenizer(Protocol):
    """Counts the tokens of a text, from any thread.

    `longest` bounds the code points of one token. Counts must add up at `additive_points`; any
    tokenizer that splits a text into words first does that.
    """

    @property
    def id(self) -> str:
        """Name the encoding, such as `o200k_base`."""
        ...

    @property
    def version(self) -> str:
        """Name the exact table, so that two counts can be compared."""
        ...

    @property
    def exact(self) -> bool:
        """Return whether these are real tokens and not bytes."""
        ...

    @property
    def longest(self) -> int:
        """Return how many code points one token covers at most."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text; special tokens in it are plain text."""
        ...

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        """Begin to count many texts, none of them long; the counts are available in the block.

        `ahead`: the caller does other work before it asks for the counts.
        """
        ...


class BpeTokenizer:
    """Counts with one encoding of tiktoken, exactly."""

    exact = True

    def __init__(
        self, encoding: "tiktoken.Encoding", definition: EncodingDefinition | None = None
    ) -> None:
        definition = ENCODINGS[encoding.name] if definition is None else definition
        self.id = encoding.name
        self.version = definition.sha256[:16]
        self.longest = definition.longest * (MOST_COMPOSED if definition.nfc else 1)
        self._encoding = encoding
        self._nfc = definition.nfc

    def count(self, text: str) -> int:
        """Count the tokens of a text; special tokens in it are plain text."""
        return self.measure(text, lambda pieces: sum(map(len, pieces)))

    def measure(self, text: str, weigh: Callable[[Iterator[list[int]]], int]) -> int:
        """Add up what the tokens of a text weigh; endless runs in it weigh their bytes."""
        runs = _endless_runs(text)
        edges = [(0, 0), *runs, (len(text), len(text))]
        between = (text[end:start] for (_, end), (start, _) in pairwise(edges))
        tokens = sum(weigh(self._encode(self._read(part))) for part in between)
        return tokens + sum(_count_bytes(text[start:end]) for start, end in runs)

    def spell(self, tokens: Sequence[int]) -> bytes:
        """Return the bytes that tokens stand for."""
        return self._encoding.decode_bytes(tokens)

    def _encode(self, text: str) -> Iterator[list[int]]:
        """Encode a text in calls that are short, so that the work can be stopped between two of them.

        A call begins where a token of the call before began, and its first token must be the same.
        The joined tokens are those of the whole text if no merge joins any two neighbours. They come
        a piece at a time: all those of a text of 9 MB take 28 MB, as a list 170 MB.
        """
        start, size = 0, LONG_CALL
        while start + size < len(text):
            check_stopped()
            part = self._encoding.encode_ordinary(text[start : start + size])
            split = self._split_point(part, text, start + size, size)
            if split is None:
                size *= 2
                continue
            kept, start = split
            del part[kept:]
            yield part
            size = LONG_CALL
        check_stopped()
        yield self._encoding.encode_ordinary(text[start:])

    def _split_point(
        self, part: list[int], text: str, end: int, size: int
    ) -> tuple[int, int] | None:
        """Find where the next call can begin: how many tokens stay, and the position behind them.

        `part` are the tokens of the text before `end`.
        """
        for back in _TAILS:
            tail = part[-back:]
            spelled = self.spell(tail)
            if len(tail) < back or len(spelled) >= size or _is_continuation(spelled[0]):
                continue
            start = end - len(spelled.decode("utf-8", "replace"))
            ahead = self._encoding.encode_ordinary(text[start : end + LONG_CALL // 16])
            if ahead[: back - UNSURE_TOKENS] == tail[:-UNSURE_TOKENS]:
                return len(part) - back, start
        return None

    def _read(self, text: str) -> str:
        """Return a text as the model reads it."""
        return normal_form("NFC", text) if self._nfc else text

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        """Begin to count many texts, in several threads if there is enough to do."""
        return count_in_background([*map(self._read, texts)], self._encoding, ahead=ahead)


class BoundTokenizer:
    """Counts what a text has at most, for a model whose table is not public.

    Each token of `base` has a cost of one or more, which its neighbours decide: whether a word goes
    on there, whether a space stands there. At additive points that is always the same, so counts
    add up there, also if a character there is cut into several tokens.
    `scripts/claude_costs.py` makes the costs and says why they are enough.
    """

    exact = True

    def __init__(self, name: str, base: BpeTokenizer, costs: bytes) -> None:
        import numpy as np

        self.id = name
        self.version = PACKAGED.version(name)
        self.longest = base.longest * MOST_COMPOSED
        self.base = base
        *tables, edges = np.frombuffer(costs, np.uint8).reshape(len(_SIDES) + 1, -1)
        known: dict[_NeighbourKinds, _CostTable] = dict(zip(_SIDES, tables, strict=True))
        self._costs = np.stack(
            [_highest_costs(known, *sides) for sides in product(_NeighbourKind, _NeighbourKind)]
        )
        by_sides = self._costs.reshape(len(_NeighbourKind), len(_NeighbourKind), -1)
        self._feels_left = (by_sides != by_sides[:1]).any(axis=(0, 1))
        self._feels_right = (by_sides != by_sides[:, :1]).any(axis=(0, 1))
        self._begins, self._ends = edges >> 3, edges & 7
        self._lefts = np.array([[_left_side(*pair) for pair in product([e], _Edge)] for e in _Edge])
        self._rights = np.array([[_right(*pair) for pair in product([e], _Edge)] for e in _Edge])

    def count(self, text: str) -> int:
        """Return the most tokens that a text can have."""
        return self.base.measure(self._read(text), self._weigh)

    def _read(self, text: str) -> str:
        """Return a text as the model reads it: NFC, and a Thai vowel that NFC leaves in two."""
        return normal_form("NFC", text).replace("\u0e4d\u0e32", "\u0e33")

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        """Count each text when the counts are asked for."""
        del ahead
        return count_on_demand(self.count, texts)

    def _weigh(self, pieces: Iterator[list[int]]) -> int:
        """Add up costs, some thousand tokens at a time: numpy took 40 bytes for each token."""
        total = done = 0
        tokens = array("I")
        for piece in pieces:
            tokens.extend(piece)
            end = len(tokens) - _REACH
            if end - done >= TOKENS_AT_ONCE:
                total += self._sum_costs(tokens, done, end)
                del tokens[: (gone := max(0, end - _REACH))]
                done = end - gone
        return total + self._sum_costs(tokens, done, len(tokens))

    def _sum_costs(self, tokens: "array[int]", start: int, end: int) -> int:
        """Add up the costs of the tokens from `start` to `end`; the others are their neighbours."""
        import numpy as np

        ids = np.array(tokens, np.intp)
        begins, ends = self._begins[ids], self._ends[ids]
        # Only where it makes a difference to the neighbour: this is slow.
        asked = (begins[1:] == _Edge.UNKNOWN) & self._feels_right[ids[:-1]]
        for at in (np.flatnonzero(asked) + 1).tolist():
            check_stopped()
            begins[at] = _first_edge(self.base.spell(tokens[at : at + MOST_BYTES]))
        asked = (ends[:-1] == _Edge.UNKNOWN) & self._feels_left[ids[1:]]
        for at in np.flatnonzero(asked).tolist():
            check_stopped()
            ends[at] = _last_edge(self.base.spell(tokens[max(0, at + 1 - MOST_BYTES) : at + 1]))
        nothing = np.array([_Edge.NOTHING], np.uint8)[: len(ids)]
        lefts = self._lefts[begins, np.concatenate((nothing, ends[:-1]))]
        rights = self._rights[ends, np.concatenate((begins[1:], nothing))]
        costs = self._costs[len(_NeighbourKind) * lefts + rights, ids]
        return int(costs[start:end].sum(dtype=np.int64))


class _Edge(IntEnum):
    """How a token begins or ends; punctuation takes in a space behind it."""

    WORD = 0
    SPACE = 1
    OTHER = 2
    UNKNOWN = 3
    PUNCTUATION = 4
    NOTHING = 5


class _NeighbourKind(IntEnum):
    """Whether a token and its neighbour are joined; EITHER if that is not known.

    For a word: whether it goes on there. For a space at the beginning: whether the punctuation before takes it in.
    For all else: whether no space stands there.
    """

    JOINED = 0
    APART = 1
    EITHER = 2


_SIDES = (
    (_NeighbourKind.JOINED, _NeighbourKind.JOINED),
    (_NeighbourKind.JOINED, _NeighbourKind.APART),
    (_NeighbourKind.APART, _NeighbourKind.JOINED),
    (_NeighbourKind.APART, _NeighbourKind.APART),
)
"""The surroundings, left and right, in the order in which their costs are stored."""


def _first_edge(text: bytes) -> _Edge:
    """Return how the text begins, by its first character.

    UNKNOWN if it begins inside a character: such a token costs the same whatever is beside it.
    """
    if _is_continuation(text[0]):
        return _Edge.UNKNOWN
    size = next((at for at in range(1, len(text)) if not _is_continuation(text[at])), len(text))
    return _edge_of(text[:size])


def _last_edge(text: bytes) -> _Edge:
    """Return how the text ends, by its last character."""
    lead = next((at for at in reversed(range(len(text))) if not _is_continuation(text[at])), 0)
    return _edge_of(text[lead:])


def _is_continuation(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _edge_of(character: bytes) -> _Edge:
    """Return the edge of a character that some token has a part of; only plain ones are known.

    The others may be such as Claude drops or reads as a space.
    """
    spelled = character.decode(errors="ignore")
    if spelled == " ":
        return _Edge.SPACE
    if is_word_letter(spelled):
        return _Edge.WORD
    return _Edge.OTHER if is_plain(spelled) else _Edge.UNKNOWN


def _left_side(begin: _Edge, before: _Edge) -> _NeighbourKind:
    if begin is _Edge.WORD:
        return _word_side(before)
    if begin is _Edge.SPACE:
        taken_in = before in {_Edge.WORD, _Edge.PUNCTUATION, _Edge.NOTHING}
        return _NeighbourKind.JOINED if taken_in else _NeighbourKind.APART
    return _plain_side(begin, before)


def _right(end: _Edge, after: _Edge) -> _NeighbourKind:
    return _word_side(after) if end is _Edge.WORD else _plain_side(end, after)


def _word_side(neighbour: _Edge) -> _NeighbourKind:
    if neighbour is _Edge.UNKNOWN:
        return _NeighbourKind.EITHER
    return _NeighbourKind.JOINED if neighbour is _Edge.WORD else _NeighbourKind.APART


def _plain_side(own: _Edge, neighbour: _Edge) -> _NeighbourKind:
    unsure = own is _Edge.UNKNOWN or neighbour in {_Edge.SPACE, _Edge.UNKNOWN}
    return _NeighbourKind.APART if unsure else _NeighbourKind.JOINED


def _highest_costs(
    costs: "Mapping[_NeighbourKinds, _CostTable]", left: _NeighbourKind, right: _NeighbourKind
) -> "_CostTable":
    """Return the costs for two sides; for one that is not known the greater of both."""
    import numpy as np

    def choices(side: _NeighbourKind) -> tuple[_NeighbourKind, ...]:
        return (
            (_NeighbourKind.JOINED, _NeighbourKind.APART)
            if side is _NeighbourKind.EITHER
            else (side,)
        )

    return np.maximum.reduce([costs[pair] for pair in product(choices(left), choices(right))])


# tiktoken panics on a million spaces that do not end in a line end and, with DeepSeek's pattern, on
# a million controls (measured).
_ENDLESS = 900_000


def has_endless_run(text: str) -> bool:
    """Return whether a text has so many spaces or controls in a row that bytes are counted."""
    return bool(_endless_runs(text))


def _endless_runs(text: str) -> list[tuple[int, int]]:
    """Find the endless runs; each has one character at a multiple of its least length."""
    runs: list[tuple[int, int]] = []
    for at in range(_ENDLESS - 1, len(text), _ENDLESS):
        if runs and at < runs[-1][1]:
            continue
        for back, on in _run_patterns():
            if (after := on.match(text, at)) is not None:
                check_stopped()
                before = back.match(text, 0, at)
                start = at if before is None else before.start()
                if after.end() - start >= _ENDLESS:
                    runs.append((start, after.end()))
    return runs


@cache
def _run_patterns() -> "list[tuple[regex.Pattern[str], regex.Pattern[str]]]":
    """Compile, of spaces and of controls, the pattern of a run before a place and from it on."""
    import regex

    runs = (r"[^\S\r\n]++", r"[\p{C}--\s]++")
    return [(regex.compile(f"(?r){run}", regex.V1), regex.compile(run, regex.V1)) for run in runs]


class ByteTokenizer:
    """Counts UTF-8 bytes, which are never fewer than the tokens; used if a table is unusable."""

    id = "utf8_bytes"
    version = "1"
    exact = False
    longest = 1

    def __init__(self, reason: Wording | None = None) -> None:
        self.reason = reason

    def count(self, text: str) -> int:
        """Count the UTF-8 bytes of a text."""
        return _count_bytes(text)

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        """Count the UTF-8 bytes of each text."""
        del ahead
        return count_on_demand(self.count, texts)


@contextmanager
def count_on_demand(count: Callable[[str], int], texts: Sequence[str]) -> Generator[PendingCounts]:
    """Count many texts one after the other, when the counts are asked for."""
    yield PendingCounts(lambda: [count(text) for text in texts])


def _count_bytes(text: str) -> int:
    """Count UTF-8 bytes; a lone surrogate has as many as the U+FFFD that replaces it."""
    return len(text.encode("utf-8", "surrogatepass"))


class Tokenizers:
    """The tokenizers of one daemon, each loaded when it is first needed.

    With a clock, one that no model has used for `IDLE_S` is let go when another is asked for.

    `encoders` limits how many long texts are encoded at once: each takes thirty times its size.
    """

    def __init__(
        self,
        tables: Traversable | None = None,
        clock: Callable[[], float] | None = None,
        known: KnownTables = PACKAGED,
    ) -> None:
        self.known = known
        self._tables = tables
        self._clock = clock
        self._used: dict[str, float] = {}
        self._loaded: dict[str, Tokenizer] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self.encoders = anyio.CapacityLimiter(ENCODERS)

    async def get(self, encoding: str = DEFAULT_ENCODING) -> Tokenizer:
        """Return the tokenizer of an encoding, waiting for its table the first time.

        If the table is unusable this is a `ByteTokenizer`, whose `exact` is false; a caller that
        builds a result with it adds the warning CONTEXT_BUDGET_FALLBACK.
        """
        self._release_idle(encoding)
        if encoding in self._loaded:
            return self._loaded[encoding]
        async with self._locks.setdefault(encoding, anyio.Lock()):
            if encoding not in self._loaded:
                await anyio.to_thread.run_sync(self._load, encoding)
            return self._loaded[encoding]

    def _release_idle(self, encoding: str) -> None:
        """Let go of the tables that no model has used for a while; the one asked for stays."""
        if self._clock is None:
            return
        now = self._clock()
        self._used[encoding] = now
        if encoding in BOUNDS:
            self._used[BOUND_BASE] = now
        for name in [name for name, used in self._used.items() if now - used > IDLE_S]:
            del self._used[name]
            self._loaded.pop(name, None)
            release_encoding(name)

    async def warm(self, encoding: str = DEFAULT_ENCODING, after_s: float = 0.5) -> None:
        """Load an encoding before it is needed; start this in a task group.

        It waits a moment first: a daemon that answers one request and stops should not pay for it.
        """
        await anyio.sleep(after_s)
        await self.get(encoding)

    def load(self, encoding: str = DEFAULT_ENCODING) -> Tokenizer:
        """Return the tokenizer of an encoding, blocking while its table loads."""
        if encoding not in self._loaded:
            self._load(encoding)
        return self._loaded[encoding]

    def problems(self) -> dict[str, Wording]:
        """Return which encodings cannot be used, and why, for `app:health`."""
        described = {
            f"{FOLDER}/{name}": one.problem
            for name, one in self.known.listed.items()
            if one.problem
        }
        return described | {
            name: tokenizer.reason
            for name, tokenizer in self._loaded.items()
            if isinstance(tokenizer, ByteTokenizer) and tokenizer.reason
        }

    def _load(self, encoding: str) -> None:
        try:
            self._loaded[encoding] = self._make(encoding)
        except TableError as error:
            self._loaded[encoding] = ByteTokenizer(error.wording)

    def _make(self, encoding: str) -> Tokenizer:
        if encoding in BOUNDS:
            costs = load_costs(encoding, self._tables or packaged_tables())
            return BoundTokenizer(encoding, self._bpe(BOUND_BASE), costs)
        return self._bpe(encoding)

    def _bpe(self, encoding: str) -> BpeTokenizer:
        loaded = self._loaded.get(encoding)
        if isinstance(loaded, BpeTokenizer):
            return loaded
        brought = self.known.user.get(encoding)
        if brought is not None:
            return BpeTokenizer(*load_table(brought))
        if self._tables is None:
            return BpeTokenizer(packaged_encoding(encoding))
        return BpeTokenizer(load_encoding(encoding, self._tables))


@contextmanager
def count_in_background(
    texts: Sequence[str], encoding: "tiktoken.Encoding", *, ahead: bool = False
) -> Generator[PendingCounts]:
    """Begin to count the tokens of each text; special tokens in them are plain text.

    The counts can be asked for once, inside the block. `ahead`: the caller has other work to do
    until then; otherwise its thread takes a share when it asks.
    """
    worth = sum(map(len, texts)) // CHARACTERS_PER_THREAD
    cores = os.cpu_count() or 1
    helpers = min(worth, max(1, cores - 1)) if ahead else min(worth, cores) - 1
    helpers = min(helpers, MOST_THREADS)
    if helpers < 1:
        encode = _encode_call(texts, encoding)
        yield PendingCounts(lambda: _split_counts(texts, encode(), encoding))
        return
    shares = _shares(texts, helpers if ahead else helpers + 1)
    calls = [_encode_call(share, encoding) for share in shares]
    with ThreadPoolExecutor(helpers) as pool:
        futures = [pool.submit(call) for call in (calls if ahead else calls[:-1])]

        def join_shares() -> list[int]:
            own = [call() for call in calls[len(futures) :]]
            tokens = [*(future.result() for future in futures), *own]
            pairs = zip(shares, tokens, strict=True)
            return list(chain.from_iterable(_split_counts(*pair, encoding) for pair in pairs))

        yield PendingCounts(join_shares)


def _shares(texts: Sequence[str], number: int) -> list[Sequence[str]]:
    """Cut the list into so many about equal shares, none of them empty."""
    ends = list(accumulate(map(len, texts)))
    shares: list[list[str]] = [[] for _ in range(number)]
    for text, end in zip(texts, ends, strict=True):
        shares[max(0, end - 1) * number // ends[-1]].append(text)
    return [share for share in shares if share]


def _encode_call(texts: Sequence[str], encoding: "tiktoken.Encoding") -> Callable[[], list[int]]:
    """Prepare one call for all texts; those that hold the separator are counted separately."""
    joined = SEPARATOR.join(text for text in texts if SEPARATOR not in text)
    return partial(encoding.encode, joined, allowed_special={SEPARATOR}, disallowed_special=())


def _split_counts(
    texts: Sequence[str], tokens: Sequence[int], encoding: "tiktoken.Encoding"
) -> list[int]:
    lengths = _lengths(tokens, encoding.encode_single_token(SEPARATOR))
    return [
        len(encoding.encode_ordinary(text)) if SEPARATOR in text else next(lengths)
        for text in texts
    ]


def _lengths(tokens: Sequence[int], separator: int) -> Iterator[int]:
    """Yield how many tokens lie between each two separators; `index` is faster than a loop."""
    start = 0
    while True:
        try:
            end = tokens.index(separator, start)
        except ValueError:
            yield len(tokens) - start
            return
        yield end - start
        start = end + 1


def about_tokens(text: str) -> float:
    """Estimate the tokens of a text from its characters, rather too high than too low."""
    if text.isascii():
        return len(text) * _TOKENS_PER_ASCII
    rare = len(_RARE.findall(text))
    wide = (len(text.encode("utf-8", "surrogatepass")) - len(text) - 3 * rare) / 2
    plain = len(text) - wide - rare
    return plain * _TOKENS_PER_ASCII + wide * _TOKENS_PER_WIDE + rare * _TOKENS_PER_RARE
