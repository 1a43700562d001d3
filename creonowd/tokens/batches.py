"""Many texts encoded in few calls, beside whatever the caller does meanwhile.

A call costs more than a short text does, and tiktoken lets other threads work only while it is
called. So texts are joined by a special token, which no merge reaches across, and the tokens
between two of those are the tokens of one text. A thread does nothing but that one call: it would
wait for its turn at every other step. Knows encodings; keeps nothing.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

BETWEEN = "<|endoftext|>"
WORTH_A_THREAD = 16_384
MOST_THREADS = 3

Counts = Callable[[], list[int]]


@contextmanager
def counting(
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
