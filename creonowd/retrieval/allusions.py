"""Find the earlier passage that a sentence alludes to.

Words that a sentence shares with one document and hardly any other point to that document. Words
that stand here and there by chance point nowhere, however rare they are, and words that the whole
scene is full of are no allusion.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from creonowd.retrieval.ranking import content_terms
from creonowd.text import common_prefix
from creonowd.tokens.boundaries import is_abbreviation, sentences
from creonowd.tokens.tokenizer import about_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from creonowd.retrieval.bm25 import AskedTerms, NumberedPostings, TermIndex

# A term that more passages have points to none of them.
MOST_PASSAGES = 64
KEPT_SENTENCES = 2048
KEPT_NUMBERS = 16_384
KEPT_ASKED = 16
# More than there are authors at once.
KEPT_SCENES = 1024
KEPT_LEADS = 512
KEPT_EXCERPTS = 4096
KEPT_PARTS = 128

# How clearly a sentence must allude to a passage, and how many such passages there are at most.
LEAST_STRENGTH = 1.2
MOST_HELD = 4
# An allusion keeps its place until another one is so many times as strong. As the author goes on,
# it loses this share of its strength over so many characters.
HOLD = 1.2
FADING, FADED_AFTER = 0.5, 3000

# Two sums that differ by more are different after rounding, too.
CLEARLY = 2e-6
# What rounding can add to a strength is less.
ABOUT = 0.001

# By how many passages of a document have a term: the factor on their share of its passages.
_OFTEN = (0.0, *(1 + math.log(n) for n in range(1, MOST_PASSAGES + 1)))


class Allusion(NamedTuple):
    """A passage by its row, and how clearly a sentence points to it; 1 is one word of its own."""

    row: int
    strength: float
    sentence: str = ""


NOTHING = Allusion(-1, 0.0)


class Allusions:
    """What sentences allude to among the passages of an index, as if it had only those in a scope.

    `documents` has the document of each row; `population` is how many there are.
    """

    def __init__(self, index: "TermIndex", documents: "DocumentRows", population: int) -> None:
        self._index, self._documents, self._population = index, documents, population
        self._rarities = [self._rarity(number) for number in range(MOST_PASSAGES + 1)]
        # What was found by all words of a sentence, which does not depend on the scene.
        self._leads: dict[str, Allusion] = {}

    def find(self, asking: Sequence[str], scene: Sequence[str]) -> list[tuple[Allusion, ...]]:
        """Return for each sentence what it clearly alludes to: a passage, at most two, or none.

        Words of its own point to one document, and all words of the sentence together to one that
        leads all others; where both are the same, the passage is meant more clearly. `scene` are
        the sentences around: what they speak of anyway counts less.
        """
        if not asking:
            return []
        leading = self.by_all_words(asking)
        needed = [LEAST_STRENGTH - one.strength for one in leading]
        rare = self._by_rare_words(asking, tuple(scene), needed)
        return [self._merge(*pair) for pair in zip(rare, leading, strict=True)]

    def _merge(self, rare: Allusion, leading: Allusion) -> tuple[Allusion, ...]:
        if rare is NOTHING and leading.strength < LEAST_STRENGTH:
            return ()
        if rare.strength > 0 and leading.strength > 0:
            owner = self._documents.of_rows
            if owner[rare.row] == owner[leading.row]:
                both = round(leading.strength + rare.strength, 4)
                leading, rare = leading._replace(strength=both), NOTHING
        return tuple([one for one in (leading, rare) if one.strength >= LEAST_STRENGTH])

    def by_rare_words(self, asking: Sequence[str], scene: Sequence[str]) -> list[Allusion]:
        """Return for each sentence the passage that shares words with it that others lack."""
        return self._by_rare_words(asking, tuple(scene), [0.0] * len(asking))

    def _by_rare_words(
        self, asking: Sequence[str], scene: tuple[str, ...], needed: Sequence[float]
    ) -> list[Allusion]:
        """Return the same; nothing for a sentence that does not reach the strength it needs.

        Hardly any does, and to find the very passage took a third of the time.
        """
        import numpy as np

        asked = _asked_terms(tuple(asking))
        is_new = np.array([sentence not in scene for sentence in asking], np.bool_)
        uses = _uses(scene, asked.terms)[asked.asked] + is_new[asked.asking]
        worth = _TermWeights(self._postings_of(asked), self._documents, asked, self._rarities)
        unit = 2 * self._rarity(1)
        strongest = worth.strongest(1 / np.maximum(1, uses), unit * (np.array(needed) - ABOUT))
        return [
            Allusion(row, round(lead / unit, 4), sentence) if lead else NOTHING
            for sentence, (row, lead) in zip(asking, strongest, strict=True)
        ]

    def by_all_words(self, asking: Sequence[str]) -> list[Allusion]:
        """Return for each sentence the best passage by all of its words.

        It finds what an author paraphrases. Its strength is the lead on all other documents; a
        lead of 1 is that of one word of its own.
        """
        if len(self._leads) > KEPT_LEADS:
            self._leads = {}
        leads = self._leads
        new = tuple(dict.fromkeys(sentence for sentence in asking if sentence not in leads))
        if new:
            leads.update(zip(new, self._find_leads(new), strict=True))
        return [leads[sentence] for sentence in asking]

    def _find_leads(self, asking: tuple[str, ...]) -> list[Allusion]:
        from creonowd.retrieval.bm25 import leading_rows

        unit = math.log(1 + self._index.population) or 1.0
        asked = _asked_terms(asking)
        found = leading_rows(self._index, self._postings_of(asked), asked, self._documents.firsts)
        return [
            NOTHING if one is None else Allusion(one.row, round(one.lead / unit, 4), sentence)
            for sentence, one in zip(asking, found, strict=True)
        ]

    def _postings_of(self, asked: "AskedTerms") -> "NumberedPostings":
        found = self._index.numbered(asked.terms)
        allowed = self._index.allowed
        return found if allowed is None else found.only(allowed[found.rows])

    def _rarity(self, documents: int) -> float:
        return math.log(1 + (self._population - documents + 0.5) / (documents + 0.5))


class DocumentRows(NamedTuple):
    """The document of each row of an index, ascending, and the first row of each document."""

    of_rows: "NDArray[np.int64]"
    firsts: "NDArray[np.int64]"

    @property
    def limit(self) -> int:
        """More than any document's number; one without passages has a number and no row."""
        return int(self.of_rows[-1]) + 1 if len(self.of_rows) else 1


class _TermWeights:
    """What terms are worth: how much each belongs to the documents and passages that have it."""

    def __init__(
        self,
        found: "NumberedPostings",
        documents: DocumentRows,
        asked: "AskedTerms",
        rarities: Sequence[float],
    ) -> None:
        import numpy as np

        from creonowd.retrieval.bm25 import IN_TEXT

        self._np, self._asked, count = np, asked, len(asked.terms)
        in_text = found.levels >= IN_TEXT
        rows, which = found.rows[in_text], found.which[in_text]
        counts = np.bincount(which, minlength=count)
        rare = counts[which] <= MOST_PASSAGES
        self._rows, which = rows[rare], which[rare]
        self._row_counts = np.where(counts <= MOST_PASSAGES, counts, 0)
        self._of_rows = documents.of_rows[self._rows]
        self._size = documents.limit
        pairs = which * self._size + self._of_rows
        pairs.sort()
        firsts = np.flatnonzero(_is_first(pairs))
        times = np.append(firsts[1:], len(pairs)) - firsts
        owned, self._owners = np.divmod(pairs[firsts], self._size)
        self._owner_counts = np.bincount(owned, minlength=count)
        self._rarity = np.array(rarities)[self._owner_counts]
        often = np.array(_OFTEN)[times]
        self._shares = self._rarity[owned] * often * times / self._row_counts[owned]

    def strongest(
        self, by: "NDArray[np.float64]", least: "NDArray[np.float64]"
    ) -> list[tuple[int, float]]:
        """Return for each sentence the passage it points to, and twice its lead on the second.

        `by` is what each term counts where it is asked for; `least` is below what a sentence
        needs, and one that has less gets nothing. Amounts are added up in their order, so that no
        sum depends on what else is asked.
        """
        np, size = self._np, self._size
        count, _, asking, each = self._asked
        places, which = _places_of(self._owner_counts, each)
        sums = np.bincount(
            asking[which] * size + self._owners[places],
            weights=self._shares[places] * by[which],
            minlength=count * size,
        ).reshape(count, size)
        best = sums.max(axis=1)
        second = np.partition(sums, size - 2, axis=1)[:, size - 2] if size > 1 else np.zeros(count)
        is_strong = (best > 0) & (2 * best - second >= least)
        found = [(-1, 0.0)] * count
        strong: list[int] = np.flatnonzero(is_strong).tolist()
        if not strong:
            return found
        ranked: dict[int, list[tuple[float, int]]] = {}
        documents = np.full(count, -1, np.int64)
        for number in strong:
            of_one = sums[number]
            owners = np.flatnonzero((of_one > 0) & (of_one >= second[number] - CLEARLY))
            pairs = zip(of_one[owners].tolist(), owners.tolist(), strict=True)
            ranked[number] = sorted((-round(amount, 6), owner) for amount, owner in pairs)
            documents[number] = ranked[number][0][1]
        of_strong = is_strong[asking]
        rows = self._best_rows(documents, asking[of_strong], each[of_strong], by[of_strong])
        for number, one in ranked.items():
            second_best = one[1][0] if len(one) > 1 else 0.0
            found[number] = (rows[number], -2 * one[0][0] + second_best)
        return found

    def _best_rows(
        self,
        best: "NDArray[np.int64]",
        asking: "NDArray[np.int64]",
        each: "NDArray[np.int64]",
        by: "NDArray[np.float64]",
    ) -> dict[int, int]:
        """Return for each sentence the row of its document that has most of its rare terms."""
        places, which = _places_of(self._row_counts, each)
        own = self._of_rows[places] == best[asking[which]]
        places, which = places[own], which[own]
        asked: list[int] = asking[which].tolist()
        rows: list[int] = self._rows[places].tolist()
        amounts: list[float] = (self._rarity[each[which]] * by[which]).tolist()
        sums: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for sentence, row, amount in zip(asked, rows, amounts, strict=True):
            of = sums[sentence]
            of[row] = of.get(row, 0.0) + amount
        return {
            sentence: min(of, key=lambda row, of=of: (-round(of[row], 6), row))
            for sentence, of in sums.items()
        }


def _is_first(ordered: "NDArray[np.int64]") -> "NDArray[np.bool_]":
    """Return which of some ordered numbers differ from the one before them."""
    import numpy as np

    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _places_of(
    counts: "NDArray[np.int64]", each: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Return the postings of the terms `each`, and for each posting the index of its term there.

    The postings of all terms lie one after the other, `counts` of each.
    """
    import numpy as np

    lengths = counts[each]
    starts = (np.cumsum(counts) - counts)[each]
    ends = np.cumsum(lengths)
    which = np.repeat(np.arange(len(each)), lengths)
    return np.arange(len(which)) + np.repeat(starts - (ends - lengths), lengths), which


@lru_cache(maxsize=KEPT_SENTENCES)
def _terms(sentence: str) -> frozenset[str]:
    return frozenset(content_terms(sentence))


# The same sentences ask in two scopes and in two ways, one after the other.
@lru_cache(maxsize=KEPT_ASKED)
def _asked_terms(sentences: tuple[str, ...]) -> "AskedTerms":
    import numpy as np

    from creonowd.retrieval.bm25 import AskedTerms

    arrays = [_numbers(sentence) for sentence in sentences]
    terms, asked = np.unique(np.concatenate(arrays), return_inverse=True)
    asking = np.repeat(np.arange(len(arrays)), [len(array) for array in arrays])
    return AskedTerms(len(arrays), terms, asking, asked)


@lru_cache(maxsize=KEPT_NUMBERS)
def _numbers(sentence: str) -> "NDArray[np.uint64]":
    """Return the numbers of a sentence's terms, in the order of the terms."""
    from creonowd.retrieval.bm25 import numbers_of

    return numbers_of(sorted(content_terms(sentence)))


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


class CurrentAllusions:
    """The passages that the sentences of an author allude to most clearly, as they come.

    Of each document there is one. `all` are in the order in which they came; a passage that is
    there keeps its place until a clearly stronger one needs it.
    """

    def __init__(self, documents: Sequence[int]) -> None:
        self._documents = documents
        self._at = self._changed = 0
        self._held: list[_PlacedAllusion] = []

    def copy(self) -> "CurrentAllusions":
        """Return the same, to go on with elsewhere."""
        other = CurrentAllusions(self._documents)
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


class AlludingText:
    """What a text alludes to, and what it does after each sentence that its author adds to it.

    Of the added sentences, only those from the first new one on are searched for.
    """

    def __init__(
        self,
        documents: Sequence[int],
        allusions: Allusions,
        text: tuple[str, ...],
        added: tuple[str, ...] = (),
    ) -> None:
        # In one search: for a few sentences alone it takes half as long as for thirty.
        found = allusions.find((*text, *added), text)
        first = CurrentAllusions(documents)
        first.begin(text, found[: len(text)])
        self._text, self._added, self._after = text, (), [first]
        self._add(added, found[len(text) :])

    def after(self, added: tuple[str, ...], allusions: Callable[[], Allusions]) -> list[Allusion]:
        """Return what is alluded to when some sentences have been added."""
        same = common_prefix(added, self._added)
        if same < len(added):
            new = added[same:]
            del self._after[same + 1 :]
            self._added = added[:same]
            self._add(new, allusions().find(new, self._text))
        return self._after[len(added)].all

    def _add(self, sentences: tuple[str, ...], found: Sequence[Sequence[Allusion]]) -> None:
        for sentence, allusions in zip(sentences, found, strict=True):
            following = self._after[-1].copy()
            following.go_on([sentence], [allusions])
            self._after.append(following)
        self._added += sentences


@lru_cache(maxsize=KEPT_EXCERPTS)
def excerpt(text: str, sentence: str, most: float) -> tuple[int, int]:
    """Return where a passage says what a sentence alludes to, in at most so many tokens or so.

    Whole sentences around the one that shares most with it; a single one may be longer.
    """
    wanted = _terms(sentence)
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
        (start, end, _terms(text[start:end]), about_tokens(text[start:end]))
        for start, end in pairwise(bounds)
    ]
