"""What counts tokens: one encoding of tiktoken, or bytes when there is none.

Knows no model names; `models` chooses, `tokenizers` loads.
"""

import os
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib.resources.abc import Traversable
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from creonowd.tokens.cache import CountCache
from creonowd.tokens.tables import (
    DEFAULT_ENCODING,
    LONGEST_TOKEN,
    TableError,
    load_encoding,
    packaged_encoding,
    tokenizer_version,
)

if TYPE_CHECKING:
    import tiktoken

BETWEEN = "<|endoftext|>"
WORTH_A_THREAD = 16_384
MOST_THREADS = 3

Counts = Callable[[], list[int]]


@contextmanager
def count_in_background(
    texts: Sequence[str], encoding: "tiktoken.Encoding", *, ahead: bool = False
) -> Generator[Counts]:
    """Begin to count the tokens of each text; special tokens in them are plain text.

    The counts can be asked for once, inside the block. Who counts `ahead` has other work to do
    until then; everyone else lends a hand when they ask.
    """
    worth = sum(map(len, texts)) // WORTH_A_THREAD
    cores = os.cpu_count() or 1
    helpers = min(worth, max(1, cores - 1)) if ahead else min(worth, cores) - 1
    helpers = min(helpers, MOST_THREADS)
    if helpers < 1:
        yield lambda: _counts(texts, _call(texts, encoding)(), encoding)
        return
    shares = _shares(texts, helpers if ahead else helpers + 1)
    calls = [_call(share, encoding) for share in shares]
    with ThreadPoolExecutor(helpers) as pool:
        begun = [pool.submit(call) for call in (calls if ahead else calls[:-1])]

        def counts() -> list[int]:
            own = [call() for call in calls[len(begun) :]]
            tokens = [*(each.result() for each in begun), *own]
            counted = (_counts(*each, encoding) for each in zip(shares, tokens, strict=True))
            return list(chain.from_iterable(counted))

        yield counts


def _shares(texts: Sequence[str], number: int) -> list[Sequence[str]]:
    """Cut the list into so many about equal shares, none of them empty."""
    reach = list(accumulate(map(len, texts)))
    shares: list[list[str]] = [[] for _ in range(number)]
    for text, end in zip(texts, reach, strict=True):
        shares[max(0, end - 1) * number // reach[-1]].append(text)
    return [share for share in shares if share]


def _call(texts: Sequence[str], encoding: "tiktoken.Encoding") -> Callable[[], list[int]]:
    """Prepare the one call; texts that hold the special token are left to be counted apart."""
    joined = BETWEEN.join(text for text in texts if BETWEEN not in text)
    return partial(encoding.encode, joined, allowed_special={BETWEEN}, disallowed_special=())


def _counts(
    texts: Sequence[str], tokens: Sequence[int], encoding: "tiktoken.Encoding"
) -> list[int]:
    lengths = _lengths(tokens, encoding.encode_single_token(BETWEEN))
    return [
        len(encoding.encode_ordinary(text)) if BETWEEN in text else next(lengths) for text in texts
    ]


def _lengths(tokens: Sequence[int], between: int) -> Iterator[int]:
    """Walk how many tokens stand between each two; `index` looks at them faster than a loop."""
    start = 0
    while True:
        try:
            end = tokens.index(between, start)
        except ValueError:
            yield len(tokens) - start
            return
        yield end - start
        start = end + 1


# Measured: tiktoken panics on a million spaces that do not end in a line end.
_ABYSS = re.compile(r"(?<![^\S\r\n])[^\S\r\n]{900000,}")
_ABYSS_LENGTH = 900_000


class Tokenizer(Protocol):
    """Counts the tokens of a text, from any thread.

    `longest` bounds the code points of one token. Counts must add up where `joints` says so;
    every counter that looks at no more than words does.
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
        """Tell whether these are real tokens and not a stand-in."""
        ...

    @property
    def longest(self) -> int:
        """Tell how many code points one token covers at most."""
        ...

    def count(self, text: str) -> int:
        """Count the tokens of a text; special tokens in it are plain text."""
        ...

    def counting(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[Counts]:
        """Begin to count many texts, none of them long; their counts are asked for inside.

        Who counts `ahead` does something else before asking.
        """
        ...


class BpeTokenizer:
    """Exact counts of one tiktoken encoding, remembered by content."""

    exact = True
    longest = LONGEST_TOKEN

    def __init__(self, encoding: "tiktoken.Encoding", cache: CountCache) -> None:
        self.id = encoding.name
        self.version = tokenizer_version(encoding.name)
        self._encoding = encoding
        self._cache = cache

    def count(self, text: str) -> int:
        """Count the tokens of a text; special tokens in it are plain text."""
        return self._cache.count(self.id, text, self._measure)

    def counting(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[Counts]:
        """Begin to count many texts, none of them long; nothing is remembered."""
        return count_in_background(texts, self._encoding, ahead=ahead)

    def _measure(self, text: str) -> int:
        if has_endless_run(text):
            return self._measure_around_abysses(text)
        return len(self._encoding.encode_ordinary(text))

    def _measure_around_abysses(self, text: str) -> int:
        spans = [match.span() for match in _ABYSS.finditer(text)]
        edges = [(0, 0), *spans, (len(text), len(text))]
        between = [text[end:start] for (_, end), (start, _) in pairwise(edges)]
        kept = sum(len(self._encoding.encode_ordinary(part)) for part in between)
        return kept + sum(byte_count(text[start:end]) for start, end in spans)


def has_endless_run(text: str) -> bool:
    """Tell whether so much white space stands in a row that it is counted in bytes."""
    return len(text) >= _ABYSS_LENGTH and _ABYSS.search(text) is not None


class ByteTokenizer:
    """The stand-in when a table is missing or damaged: UTF-8 bytes, which never under-count."""

    id = "utf8_bytes"
    version = "1"
    exact = False
    longest = 1

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def count(self, text: str) -> int:
        """Count the UTF-8 bytes of a text."""
        return byte_count(text)

    def counting(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[Counts]:
        """Count the UTF-8 bytes of each text."""
        del ahead
        return one_by_one(self.count, texts)


@contextmanager
def one_by_one(count: Callable[[str], int], texts: Sequence[str]) -> Generator[Counts]:
    """Count many texts with what counts one, when they are asked for."""
    yield lambda: [count(text) for text in texts]


def byte_count(text: str) -> int:
    """Count UTF-8 bytes; a lone surrogate counts as the U+FFFD it becomes."""
    return len(text.encode("utf-8", "surrogatepass"))


ENCODERS = 4


class Tokenizers:
    """The tokenizers of one daemon and their shared cache of counts.

    `encoders` limits how many long texts are encoded at once: each takes thirty times its size.
    """

    def __init__(self, tables: Traversable | None = None, cache: CountCache | None = None) -> None:
        self._tables = tables
        self.cache = CountCache() if cache is None else cache
        self._loaded: dict[str, Tokenizer] = {}
        self._locks: dict[str, anyio.Lock] = {}
        self.encoders = anyio.CapacityLimiter(ENCODERS)

    async def get(self, encoding: str = DEFAULT_ENCODING) -> Tokenizer:
        """Give the tokenizer of an encoding, waiting for its table the first time.

        If the table is unusable this is a `ByteTokenizer`, whose `exact` is false; whoever
        builds a result from it adds the warning CONTEXT_BUDGET_FALLBACK.
        """
        if encoding in self._loaded:
            return self._loaded[encoding]
        async with self._locks.setdefault(encoding, anyio.Lock()):
            if encoding not in self._loaded:
                await anyio.to_thread.run_sync(self._load, encoding)
        return self._loaded[encoding]

    async def warm(self, encoding: str = DEFAULT_ENCODING, after_s: float = 0.5) -> None:
        """Load an encoding before anyone needs it; start this in a task group.

        It waits a moment first: a daemon that is asked one question should not pay for it.
        """
        await anyio.sleep(after_s)
        await self.get(encoding)

    def load(self, encoding: str = DEFAULT_ENCODING) -> Tokenizer:
        """Give the tokenizer of an encoding, blocking while its table loads."""
        if encoding not in self._loaded:
            self._load(encoding)
        return self._loaded[encoding]

    def problems(self) -> dict[str, str]:
        """Tell which encodings fell back to bytes, and why, for `app:health`."""
        fallen = {n: t for n, t in self._loaded.items() if isinstance(t, ByteTokenizer)}
        return {name: tokenizer.reason for name, tokenizer in fallen.items()}

    def _load(self, encoding: str) -> None:
        try:
            self._loaded[encoding] = BpeTokenizer(self._encoding(encoding), self.cache)
        except TableError as error:
            self._loaded[encoding] = ByteTokenizer(str(error))

    def _encoding(self, name: str) -> "tiktoken.Encoding":
        return (
            packaged_encoding(name) if self._tables is None else load_encoding(name, self._tables)
        )
