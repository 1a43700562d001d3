"""Find the earlier passage that a sentence alludes to.

Words that a sentence shares with one document and hardly any other point to that document. Words
that stand here and there by chance point nowhere, however rare they are, and words that the whole
scene is full of are no allusion.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from creonowd.memo import Memo
from creonowd.retrieval.query import content_terms
from creonowd.tokens.boundaries import is_abbreviation, sentences
from creonowd.tokens.tokenizer import about_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from creonowd.retrieval.bm25 import TermIndex

# A term that more passages have points to none of them.
MOST_PASSAGES = 64
KEPT_SENTENCES = 2048
KEPT_NUMBERS = 16_384
KEPT_SCENES = 256
KEPT_LEADS = 1024
KEPT_EXCERPTS = 1024
KEPT_PARTS = 128

# How clearly a sentence must allude to a passage, and how many such passages there are at most.
LEAST_STRENGTH = 1.2
MOST_HELD = 4
# One that came keeps its place until another is so much stronger. It fades as the author goes on,
# by this share over so many characters.
HOLD = 1.2
FADING, FADED_AFTER = 0.5, 3000

# Two sums that differ by more are different after rounding, too.
CLEARLY = 2e-6


class Allusion(NamedTuple):
    """A passage by its row, and how clearly a sentence points to it; 1 is one word of its own."""

    row: int
    strength: float
    sentence: str = ""


NOTHING = Allusion(-1, 0.0)


class Allusions:
    """What sentences allude to among the passages of an index.

    `documents` has the document of each row; `population` is how many there are. `kept` has what
    was found for the sentences of a scene, in any scope.
    """

    def __init__(
        self,
        index: "TermIndex",
        documents: "NDArray[np.int64]",
        population: int,
        kept: "Callable[[tuple[str, ...]], dict[str, Allusion]]",
    ) -> None:
        self._index, self._documents = index, documents
        self._population, self._kept = population, kept
        self._rarities = [self._rarity(number) for number in range(MOST_PASSAGES + 1)]
        self._leads: Memo[str, Allusion] = Memo(KEPT_LEADS)

    def find(self, asking: Sequence[str], scene: Sequence[str]) -> list[tuple[Allusion, ...]]:
        """Return for each sentence what it may allude to: a passage, at most two, or none.

        Words of its own point to one document, and all words of the sentence together to one that
        leads all others; where both are the same, the passage is meant more clearly. `scene` are
        the sentences around: what they speak of anyway counts less.
        """
        rare, leading = self.by_rare_words(asking, scene), self.by_all_words(asking)
        return [self._merge(*pair) for pair in zip(rare, leading, strict=True)]

    def _merge(self, rare: Allusion, leading: Allusion) -> tuple[Allusion, ...]:
        both = tuple(one for one in (leading, rare) if one.strength > 0)
        if len(both) == 2 and self._documents[rare.row] == self._documents[leading.row]:
            return (leading._replace(strength=round(leading.strength + rare.strength, 4)),)
        return both

    def by_rare_words(self, asking: Sequence[str], scene: Sequence[str]) -> list[Allusion]:
        """Return for each sentence the passage that shares words with it that others lack."""
        around = tuple(scene)
        kept = self._kept(around)
        new = [sentence for sentence in asking if sentence not in kept]
        if new:
            kept.update(zip(new, self._find(new, around), strict=True))
        return [kept[sentence] for sentence in asking]

    def _find(self, asking: Sequence[str], scene: tuple[str, ...]) -> list[Allusion]:
        import numpy as np

        arrays = [_numbers(sentence) for sentence in asking]
        lengths = [len(array) for array in arrays]
        terms, each = np.unique(np.concatenate(arrays), return_inverse=True)
        is_new = np.repeat([sentence not in scene for sentence in asking], lengths)
        by = 1 / np.maximum(1, _uses(scene, terms)[each] + is_new)
        worth = _TermWeights(self._index, self._documents, terms, self._rarities)
        unit = 2 * self._rarity(1)
        return [
            Allusion(row, round(lead / unit, 4), sentence)
            for sentence, (row, lead) in zip(
                asking, worth.strongest(lengths, each, by), strict=True
            )
        ]

    def by_all_words(self, asking: Sequence[str]) -> list[Allusion]:
        """Return for each sentence the best passage by all of its words.

        It finds what an author paraphrases. Its strength is the lead on all other documents; a
        lead of 1 is that of one word of its own.
        """
        known = {sentence: self._leads.peek(sentence) for sentence in asking}
        new = [sentence for sentence, one in known.items() if one is None]
        for one in self._find_new(new) if new else ():
            known[one.sentence] = one
            self._leads.put(one.sentence, one)
        return [known[sentence] or NOTHING for sentence in asking]

    def _find_new(self, asking: Sequence[str]) -> Iterator[Allusion]:
        from creonowd.retrieval.bm25 import leading_rows

        unit = math.log(1 + self._index.population) or 1.0
        found = leading_rows(self._index, [_terms(one) for one in asking], self._documents)
        for sentence, best in zip(asking, found, strict=True):
            row, lead = (-1, 0.0) if best is None else best
            yield Allusion(row, round(lead / unit, 4), sentence)

    def _rarity(self, documents: int) -> float:
        return math.log(1 + (self._population - documents + 0.5) / (documents + 0.5))


class _TermWeights:
    """What terms are worth: how much each belongs to the documents and passages that have it."""

    def __init__(
        self,
        index: "TermIndex",
        documents: "NDArray[np.int64]",
        terms: "NDArray[np.uint64]",
        rarities: Sequence[float],
    ) -> None:
        import numpy as np

        self._np = np
        self._rows, which = index.rare_rows(terms, MOST_PASSAGES)
        self._of_rows = documents[self._rows]
        self._row_counts = np.bincount(which, minlength=len(terms))
        self._size = int(documents[-1]) + 1 if len(documents) else 1
        pairs, counts = np.unique(which * self._size + self._of_rows, return_counts=True)
        owned, self._owners = np.divmod(pairs, self._size)
        self._owner_counts = np.bincount(owned, minlength=len(terms))
        self._rarity = np.array(rarities)[self._owner_counts]
        often = np.array([0.0, *(1 + math.log(n) for n in range(1, MOST_PASSAGES + 1))])
        shares = self._rarity[owned] * often[counts] * counts / self._row_counts[owned]
        self._shares = shares

    def strongest(
        self, lengths: Sequence[int], each: "NDArray[np.int64]", by: "NDArray[np.float64]"
    ) -> list[tuple[int, float]]:
        """Return for each sentence the passage it points to, and twice its lead on the second.

        `each` are the terms of all sentences, one sentence after the other, and `by` what each
        counts there. Amounts are added up in their order, so that no sum depends on what else is
        asked.
        """
        np, count = self._np, len(lengths)
        asking = np.repeat(np.arange(count), lengths)
        places, which = _stretches(self._owner_counts, each)
        size = self._size
        sums = np.bincount(
            asking[which] * size + self._owners[places],
            weights=self._shares[places] * by[which],
            minlength=count * size,
        ).reshape(count, size)
        second = np.partition(sums, size - 2, axis=1)[:, size - 2] if size > 1 else np.zeros(count)
        asked, owners = np.nonzero((sums > 0) & (sums >= second[:, None] - CLEARLY))
        ranked: list[list[tuple[float, int]]] = [[] for _ in lengths]
        numbers: list[int] = asked.tolist()
        of: list[int] = owners.tolist()
        amounts: list[float] = sums[asked, owners].tolist()
        for number, owner, amount in zip(numbers, of, amounts, strict=True):
            ranked[number].append((-round(amount, 6), owner))
        for one in ranked:
            one.sort()
        best = np.array([one[0][1] if one else -1 for one in ranked], np.int64)
        rows = self._best_rows(best, asking, each, by)
        return [
            (row, -2 * one[0][0] + (one[1][0] if len(one) > 1 else 0.0)) if one else (-1, 0.0)
            for row, one in zip(rows, ranked, strict=True)
        ]

    def _best_rows(
        self,
        best: "NDArray[np.int64]",
        asking: "NDArray[np.int64]",
        each: "NDArray[np.int64]",
        by: "NDArray[np.float64]",
    ) -> list[int]:
        """Return for each sentence the row of its document that has most of its rare terms."""
        places, which = _stretches(self._row_counts, each)
        own = self._of_rows[places] == best[asking[which]]
        places, which = places[own], which[own]
        asked: list[int] = asking[which].tolist()
        rows: list[int] = self._rows[places].tolist()
        amounts: list[float] = (self._rarity[each[which]] * by[which]).tolist()
        sums: list[dict[int, float]] = [{} for _ in best]
        for sentence, row, amount in zip(asked, rows, amounts, strict=True):
            sums[sentence][row] = sums[sentence].get(row, 0.0) + amount
        return [min(of, key=lambda row: (-round(of[row], 6), row), default=-1) for of in sums]


def _stretches(
    counts: "NDArray[np.int64]", each: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Return the places of each term, of which there are `counts` side by side, and whose it is."""
    import numpy as np

    lengths = counts[each]
    starts = (np.cumsum(counts) - counts)[each]
    ends = np.cumsum(lengths)
    which = np.repeat(np.arange(len(each)), lengths)
    return np.arange(len(which)) + np.repeat(starts - (ends - lengths), lengths), which


@lru_cache(maxsize=KEPT_SENTENCES)
def _terms(sentence: str) -> tuple[str, ...]:
    return tuple(sorted(content_terms(sentence)))


@lru_cache(maxsize=KEPT_NUMBERS)
def _numbers(sentence: str) -> "NDArray[np.uint64]":
    """Return the numbers of a sentence's rare terms, in the order of the terms."""
    import numpy as np

    from creonowd.retrieval.bm25 import term_number

    return np.array([term_number(term) for term in _terms(sentence)], np.uint64)


def _uses(scene: tuple[str, ...], terms: "NDArray[np.uint64]") -> "NDArray[np.int64]":
    """Return in how many sentences of a scene each of some terms occurs."""
    import numpy as np

    used, counts = _terms_in(scene)
    at = np.searchsorted(used, terms)
    at[at == len(used)] = 0
    return np.where(used[at] == terms, counts[at], 0) if len(used) else np.zeros_like(at)


@lru_cache(maxsize=KEPT_SCENES)
def _terms_in(scene: tuple[str, ...]) -> "tuple[NDArray[np.uint64], NDArray[np.int64]]":
    """Return the terms of a scene, ascending, and in how many of its sentences each occurs."""
    import numpy as np

    arrays = [np.empty(0, np.uint64), *(_numbers(sentence) for sentence in set(scene))]
    return np.unique(np.concatenate(arrays), return_counts=True)


class _PlacedAllusion(NamedTuple):
    """An allusion, the document it is to, and where its sentence ends."""

    one: Allusion
    document: int
    at: int

    def strength(self, at: int) -> float:
        """How strong it still is for an author who has got so far."""
        age = min(1.0, (at - self.at) / FADED_AFTER)
        return round(self.one.strength * (1 - FADING * age), 4)


class HeldAllusions:
    """The passages that the sentences of an author allude to most clearly, as they come.

    Of each document there is one. `all` are in the order in which they came; a passage that is
    there keeps its place until a clearly stronger one needs it.
    """

    def __init__(self, documents: Sequence[int]) -> None:
        self._documents = documents
        self._at = self._changed = 0
        self._held: list[_PlacedAllusion] = []

    def copy(self) -> "HeldAllusions":
        """Return the same, to go on with elsewhere."""
        other = HeldAllusions(self._documents)
        other._at, other._changed, other._held = self._at, self._changed, [*self._held]
        return other

    @property
    def all(self) -> list[Allusion]:
        """All of them, each as strong as it was at the last change."""
        return [held.one._replace(strength=held.strength(self._changed)) for held in self._held]

    def begin(self, sentences: Iterable[str], found: Iterable[Sequence[Allusion]]) -> None:
        """Take the strongest of a text as a whole."""
        best: dict[int, _PlacedAllusion] = {}
        every: list[_PlacedAllusion] = []
        for sentence, allusions in zip(sentences, found, strict=True):
            self._at += len(sentence)
            every += [_PlacedAllusion(one, self._documents[one.row], self._at) for one in allusions]
        for held in every:
            known = best.get(held.document)
            if known is None or held.strength(self._at) > known.strength(self._at):
                best[held.document] = held
        strong = [held for held in best.values() if held.strength(self._at) >= LEAST_STRENGTH]
        strong.sort(key=lambda held: (-held.strength(self._at), held.at, held.one.row))
        self._held = sorted(strong[:MOST_HELD], key=lambda held: (held.at, held.one.row))
        self._changed = self._at

    def go_on(self, sentences: Iterable[str], found: Iterable[Sequence[Allusion]]) -> None:
        """Take what is strong enough, sentence by sentence."""
        for sentence, allusions in zip(sentences, found, strict=True):
            self._at += len(sentence)
            for one in allusions:
                if one.strength >= LEAST_STRENGTH:
                    self._take(_PlacedAllusion(one, self._documents[one.row], self._at))

    def _take(self, new: _PlacedAllusion) -> None:
        same = [held for held in self._held if held.document == new.document]
        rivals = same or (self._held if len(self._held) >= MOST_HELD else [])
        if rivals:
            weakest = min(rivals, key=lambda held: (held.strength(self._at), held.at, held.one.row))
            if new.one.strength <= HOLD * weakest.strength(self._at):
                return
            self._held.remove(weakest)
        self._held.append(new)
        self._changed = self._at


@lru_cache(maxsize=KEPT_EXCERPTS)
def excerpt(text: str, sentence: str, most: float) -> tuple[int, int]:
    """Return where a passage says what a sentence alludes to, in at most so many tokens or so.

    Whole sentences around the one that shares most with it; a single one may be longer.
    """
    wanted = frozenset(_terms(sentence))
    parts = _parts(text)
    best, chosen = (-1, 0), (0, len(text))
    for first in range(len(parts)):
        shared: frozenset[str] = frozenset()
        tokens = 0.0
        for last in range(first, len(parts)):
            shared, tokens = shared | (wanted & parts[last][2]), tokens + parts[last][3]
            if tokens > most and last > first:
                break
            if (len(shared), last - first) > best:
                best, chosen = (len(shared), last - first), (parts[first][0], parts[last][1])
    start, end = chosen
    blank = len(text[start:end]) - len(text[start:end].lstrip())
    return start + blank, start + max(blank + 1, len(text[start:end].rstrip()))


@lru_cache(maxsize=KEPT_PARTS)
def _parts(text: str) -> list[tuple[int, int, frozenset[str], float]]:
    """Return where the sentences of a passage begin and end, their terms and about their tokens."""
    ends = [at for at in sentences(text, 0, len(text)) if not is_abbreviation(text, at)]
    bounds = sorted({0, *ends, len(text)})
    return [
        (start, end, frozenset(_terms(text[start:end])), about_tokens(text[start:end]))
        for start, end in pairwise(bounds)
    ]
