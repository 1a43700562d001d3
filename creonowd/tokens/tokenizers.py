"""Every tokenizer in use: loaded once, in a thread, the first time anyone asks.

Knows how to fall back; does not decide what a caller warns about.
"""

from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from creonowd.tokens.cache import CountCache
from creonowd.tokens.models import DEFAULT_ENCODING
from creonowd.tokens.tables import TableError, load_encoding, packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer, ByteTokenizer, Tokenizer

if TYPE_CHECKING:
    import tiktoken

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
