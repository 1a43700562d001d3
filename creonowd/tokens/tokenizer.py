"""What counts tokens: one encoding of tiktoken, or bytes when there is none.

Knows no model names; `models` chooses, `tokenizers` loads.
"""

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from creonowd.tokens.batches import Counts, counting
from creonowd.tokens.cache import CountCache
from creonowd.tokens.tables import LONGEST_TOKEN, tokenizer_version

if TYPE_CHECKING:
    import tiktoken

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
        return counting(texts, self._encoding, ahead=ahead)

    def _measure(self, text: str) -> int:
        if holds_abyss(text):
            return self._measure_around_abysses(text)
        return len(self._encoding.encode_ordinary(text))

    def _measure_around_abysses(self, text: str) -> int:
        spans = [match.span() for match in _ABYSS.finditer(text)]
        edges = [(0, 0), *spans, (len(text), len(text))]
        between = [text[end:start] for (_, end), (start, _) in pairwise(edges)]
        kept = sum(len(self._encoding.encode_ordinary(part)) for part in between)
        return kept + sum(byte_count(text[start:end]) for start, end in spans)


def holds_abyss(text: str) -> bool:
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
