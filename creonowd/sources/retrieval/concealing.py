"""Passages without the secrets that only their document gives away.

A private key is longer than a passage, and what names a password may stand in the passage before
it. So secrets are looked for in the whole text; whatever a passage by itself would not be known
to hold is taken out of it here. The rest is the engine's business, which tells what it took out.
Knows no rule and no index.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Protocol

from msgspec.structs import replace

from creonowd.context.fragment import Span
from creonowd.redaction import PLACEHOLDER, Stretch
from creonowd.redaction.split_points import split_points
from creonowd.sources.retrieval.passages import Passage


class Finder(Protocol):
    """Finds secrets."""

    def find(self, text: str) -> Sequence[Stretch]:
        """List where secrets stand in a text, in order."""
        ...


def concealed(text: str, passages: Iterable[Passage], finder: Finder) -> Iterator[Passage]:
    """Give the passages of a text, each as far as it may be shown by itself."""
    secrets = list(_secrets(text, finder))
    starts, ends = [secret.start for secret in secrets], [secret.end for secret in secrets]
    for passage in passages:
        first = bisect_right(ends, passage.start)
        inside = secrets[first : bisect_left(starts, passage.end)]
        yield _without(passage, inside, finder) if inside else passage


def _secrets(text: str, finder: Finder) -> Iterator[Span]:
    """Find the secrets of a text part by part: no secret reaches over a seam."""
    seams = [edge.at for edge in split_points(text, 0, len(text)) if not edge.torn]
    for start, end in pairwise([0, *seams, len(text)]):
        for found in finder.find(text[start:end]):
            yield Span(start + found.start, start + found.end)


def _without(passage: Passage, secrets: Sequence[Span], finder: Finder) -> Passage:
    known = finder.find(passage.text)
    pieces: list[str] = []
    done = 0
    for secret in secrets:
        start, end = secret.start - passage.start, secret.end - passage.start
        if any(found.start <= start and end <= found.end for found in known):
            continue
        pieces += [passage.text[done : max(0, start)], PLACEHOLDER]
        done = end
    return replace(passage, text="".join([*pieces, passage.text[done:]]))
