"""Many texts encoded in few calls, on several cores.

A call costs more than a short text does, and tiktoken lets other threads work only while it is
called. So texts are joined by a special token, which no merge reaches across, and the tokens
between two of those are the tokens of one text. Knows encodings; keeps nothing.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tiktoken

BETWEEN = "<|endoftext|>"
WORTH_A_THREAD = 16_384
MOST_THREADS = 4


def counts_of(texts: Sequence[str], encoding: "tiktoken.Encoding") -> list[int]:
    """Count the tokens of each text; special tokens in them are plain text."""
    shares = _shares(texts, min(MOST_THREADS, os.cpu_count() or 1))
    if len(shares) == 1:
        return _count(shares[0], encoding)
    with ThreadPoolExecutor(len(shares) - 1) as pool:
        others = [pool.submit(_count, share, encoding) for share in shares[1:]]
        first = _count(shares[0], encoding)
        return [*first, *(count for other in others for count in other.result())]


def _shares(texts: Sequence[str], most: int) -> list[Sequence[str]]:
    """Cut the list into about equal shares, each worth a thread of its own."""
    reach = list(accumulate(map(len, texts)))
    total = reach[-1] if reach else 0
    number = max(1, min(most, total // WORTH_A_THREAD))
    shares: list[list[str]] = [[] for _ in range(number)]
    for text, end in zip(texts, reach, strict=True):
        shares[min(number - 1, (end - 1) * number // total) if end else 0].append(text)
    return [share for share in shares if share] or [[]]


def _count(texts: Sequence[str], encoding: "tiktoken.Encoding") -> list[int]:
    if len(texts) < 2 or any(BETWEEN in text for text in texts):
        return [len(encoding.encode_ordinary(text)) for text in texts]
    tokens = encoding.encode(BETWEEN.join(texts), allowed_special={BETWEEN}, disallowed_special=())
    between = encoding.encode_single_token(BETWEEN)
    counts: list[int] = []
    start = 0
    for _ in texts[1:]:
        end = tokens.index(between, start)
        counts.append(end - start)
        start = end + 1
    return [*counts, len(tokens) - start]
