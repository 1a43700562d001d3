"""Find the earlier passage that a sentence alludes to.

Words that a sentence shares with one document and hardly any other point to that document. Words
that stand here and there by chance point nowhere, however rare they are, and words that the whole
scene is full of are no allusion.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
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
# One for each author who writes at the same time, and more.
KEPT_SURROUNDINGS = 1024
KEPT_LEADS = 512
KEPT_EXCERPTS = 4096
KEPT_PARTS = 128

# How clearly a sentence must allude to a passage, and how many such passages there are at most.
LEAST_STRENGTH = 1.2
MAX_ALLUSIONS = 4
# An allusion keeps its place until another one is this many times as strong. While the author
# writes this many characters, it loses this share of its strength.
REPLACEMENT_RATIO = 1.2
DECAY_SHARE, DECAY_CHARACTERS = 0.5, 3000

# Two sums that differ by more than this also differ after rounding.
ROUNDING_MARGIN = 2e-6
# Rounding adds less than this to a strength.
STRENGTH_MARGIN = 0.001

# By how many passages of a document have a term: the factor on their share of its passages.
_FREQUENCY_FACTORS = (0.0, *(1 + math.log(n) for n in range(1, MOST_PASSAGES + 1)))


class Allusion(NamedTuple):
    """A passage by its row, and how clearly a sentence points to it; 1 is one rare word."""

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
        self._rarities = _as_array([self._rarity(number) for number in range(MOST_PASSAGES + 1)])
        # What all words of a sentence found; the sentences around it change nothing there.
        self._leads: dict[str, Allusion] = {}

    def find(
        self, asked_sentences: Sequence[str], surrounding: Sequence[str]
    ) -> list[tuple[Allusion, ...]]:
        """Return for each sentence what it clearly alludes to: a passage, at most two, or none.

        Rare words point to one document, and all words of the sentence together to the best of all;
        if both are the same, their strengths add up. `surrounding` are the sentences around: words
        that they have too count less.
        """
        if not asked_sentences:
            return []
        leading = self.by_all_words(asked_sentences)
        needed = [LEAST_STRENGTH - one.strength for one in leading]
        rare = self._by_rare_words(asked_sentences, tuple(surrounding), needed)
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

    def by_rare_words(
        self, asked_sentences: Sequence[str], surrounding: Sequence[str]
    ) -> list[Allusion]:
        """Return for each sentence the passage with which alone it shares words."""
        return self._by_rare_words(
            asked_sentences, tuple(surrounding), [0.0] * len(asked_sentences)
        )

    def _by_rare_words(
        self, asked_sentences: Sequence[str], surrounding: tuple[str, ...], needed: Sequence[float]
    ) -> list[Allusion]:
        """Return the same; nothing for a sentence that does not reach the strength it needs.

        Hardly any reaches it, and finding the passages of all took a third of the time.
        """
        import numpy as np

        asked = _asked_terms(tuple(asked_sentences))
        is_new = np.array([sentence not in surrounding for sentence in asked_sentences], np.bool_)
        uses = _uses(surrounding, asked.terms)[asked.term_index] + is_new[asked.query_index]
        worth = _TermWeights(self._postings_of(asked), self._documents, asked, self._rarities)
        unit = 2 * self._rarity(1)
        strongest = worth.strongest(
            1 / np.maximum(1, uses), unit * (np.array(needed) - STRENGTH_MARGIN)
        )
        return [
            Allusion(row, round(lead / unit, 4), sentence) if lead else NOTHING
            for sentence, (row, lead) in zip(asked_sentences, strongest, strict=True)
        ]

    def by_all_words(self, asked_sentences: Sequence[str]) -> list[Allusion]:
        """Return for each sentence the best passage by all of its words.

        This finds paraphrases. The strength is the lead over all other documents; a word that only
        one document has gives a lead of 1.
        """
        if len(self._leads) > KEPT_LEADS:
            self._leads = {}
        leads = self._leads
        new = tuple(
            dict.fromkeys(sentence for sentence in asked_sentences if sentence not in leads)
        )
        if new:
            leads.update(zip(new, self._find_leads(new), strict=True))
        return [leads[sentence] for sentence in asked_sentences]

    def _find_leads(self, asked_sentences: tuple[str, ...]) -> list[Allusion]:
        from creonowd.retrieval.bm25 import leading_rows

        unit = math.log(1 + self._index.population) or 1.0
        asked = _asked_terms(asked_sentences)
        leading = leading_rows(self._index, self._postings_of(asked), asked, self._documents.firsts)
        return [
            NOTHING if one is None else Allusion(one.row, round(one.lead / unit, 4), sentence)
            for sentence, one in zip(asked_sentences, leading, strict=True)
        ]

    def _postings_of(self, asked: "AskedTerms") -> "NumberedPostings":
        postings = self._index.postings_by_number(asked.terms)
        allowed = self._index.allowed
        return postings if allowed is None else postings.only(allowed[postings.rows])

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
        rarities: "NDArray[np.float64]",
    ) -> None:
        import numpy as np

        from creonowd.retrieval.bm25 import IN_TEXT

        self._np, self._asked, count = np, asked, len(asked.terms)
        in_text = found.levels >= IN_TEXT
        rows, term_of_posting = found.rows[in_text], found.term_of_posting[in_text]
        counts = np.bincount(term_of_posting, minlength=count)
        rare = counts[term_of_posting] <= MOST_PASSAGES
        self._rows, term_of_posting = rows[rare], term_of_posting[rare]
        self._row_counts = np.where(counts <= MOST_PASSAGES, counts, 0)
        self._of_rows = documents.of_rows[self._rows]
        self._size = documents.limit
        pairs = term_of_posting * self._size + self._of_rows
        pairs.sort()
        (firsts,) = _is_first(pairs).nonzero()
        times = np.empty_like(firsts)
        times[:-1], times[-1:] = firsts[1:], len(pairs)
        times -= firsts
        term_of_pair, self._owners = np.divmod(pairs[firsts], self._size)
        self._owner_counts = np.bincount(term_of_pair, minlength=count)
        self._rarity = rarities[self._owner_counts]
        factors = _frequency_factors()[times]
        self._shares = self._rarity[term_of_pair] * factors * times / self._row_counts[term_of_pair]

    def strongest(
        self, use_weights: "NDArray[np.float64]", least: "NDArray[np.float64]"
    ) -> list[tuple[int, float]]:
        """Return for each sentence the passage it points to, and twice its lead on the second.

        `use_weights` is what each use of a term counts. A sentence below its `least` gets no
        passage. Amounts are added up in a fixed order, so that no sum depends on the other
        sentences.
        """
        np, size = self._np, self._size
        count, _, sentence_of_use, term_of_use = self._asked
        places, use_of_posting = _places_of(self._owner_counts, term_of_use)
        sums = np.bincount(
            sentence_of_use[use_of_posting] * size + self._owners[places],
            weights=self._shares[places] * use_weights[use_of_posting],
            minlength=count * size,
        ).reshape(count, size)
        best = sums.max(axis=1)
        found = [(-1, 0.0)] * count
        # No lead is greater than twice the best sum: mostly that alone is too little.
        if not ((best > 0) & (2 * best >= least)).any():
            return found
        second = np.partition(sums, size - 2, axis=1)[:, size - 2] if size > 1 else np.zeros(count)
        is_strong = (best > 0) & (2 * best - second >= least)
        strong: list[int] = is_strong.nonzero()[0].tolist()
        if not strong:
            return found
        ranked: dict[int, list[tuple[float, int]]] = {}
        documents = np.full(count, -1, np.int64)
        for number in strong:
            document_sums = sums[number]
            owners = np.flatnonzero(
                (document_sums > 0) & (document_sums >= second[number] - ROUNDING_MARGIN)
            )
            pairs = zip(document_sums[owners].tolist(), owners.tolist(), strict=True)
            ranked[number] = sorted((-round(amount, 6), owner) for amount, owner in pairs)
            documents[number] = ranked[number][0][1]
        is_strong_use = is_strong[sentence_of_use]
        rows = self._best_rows(
            documents,
            sentence_of_use[is_strong_use],
            term_of_use[is_strong_use],
            use_weights[is_strong_use],
        )
        for number, one in ranked.items():
            second_best = one[1][0] if len(one) > 1 else 0.0
            found[number] = (rows[number], -2 * one[0][0] + second_best)
        return found

    def _best_rows(
        self,
        best: "NDArray[np.int64]",
        sentence_of_use: "NDArray[np.int64]",
        term_of_use: "NDArray[np.int64]",
        use_weights: "NDArray[np.float64]",
    ) -> dict[int, int]:
        """Return for each sentence the row of its document that has most of its rare terms."""
        places, use_of_posting = _places_of(self._row_counts, term_of_use)
        is_in_best = self._of_rows[places] == best[sentence_of_use[use_of_posting]]
        places, use_of_posting = places[is_in_best], use_of_posting[is_in_best]
        sentences_of_postings: list[int] = sentence_of_use[use_of_posting].tolist()
        rows: list[int] = self._rows[places].tolist()
        amounts: list[float] = (
            self._rarity[term_of_use[use_of_posting]] * use_weights[use_of_posting]
        ).tolist()
        sums: defaultdict[int, dict[int, float]] = defaultdict(dict)
        for sentence, row, amount in zip(sentences_of_postings, rows, amounts, strict=True):
            row_sums = sums[sentence]
            row_sums[row] = row_sums.get(row, 0.0) + amount
        return {
            sentence: min(row_sums, key=lambda row, sums=row_sums: (-round(sums[row], 6), row))
            for sentence, row_sums in sums.items()
        }


def _as_array(values: Sequence[float]) -> "NDArray[np.float64]":
    import numpy as np

    return np.array(values)


@cache
def _frequency_factors() -> "NDArray[np.float64]":
    return _as_array(_FREQUENCY_FACTORS)


def _is_first(ordered: "NDArray[np.int64] | NDArray[np.uint64]") -> "NDArray[np.bool_]":
    """Return which of some ordered numbers differ from the one before them."""
    import numpy as np

    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return first


def _places_of(
    counts: "NDArray[np.int64]", term_of_use: "NDArray[np.int64]"
) -> "tuple[NDArray[np.int64], NDArray[np.int64]]":
    """Return the postings of the used terms, and for each posting the index of its use.

    The postings of all terms lie one after the other, `counts` of each.
    """
    import numpy as np

    lengths = counts[term_of_use]
    starts = (counts.cumsum() - counts)[term_of_use]
    before = lengths.cumsum() - lengths
    use_of_posting = np.arange(len(term_of_use)).repeat(lengths)
    return np.arange(len(use_of_posting)) + (starts - before).repeat(lengths), use_of_posting


@lru_cache(maxsize=KEPT_SENTENCES)
def _terms(sentence: str) -> frozenset[str]:
    return frozenset(content_terms(sentence))


# The same sentences ask in two scopes and in two ways, one after the other.
@lru_cache(maxsize=KEPT_ASKED)
def _asked_terms(sentences: tuple[str, ...]) -> "AskedTerms":
    import numpy as np

    from creonowd.retrieval.bm25 import AskedTerms

    arrays = [_numbers(sentence) for sentence in sentences]
    uses = np.concatenate(arrays)
    order = uses.argsort(kind="stable")
    ordered = uses[order]
    is_first = _is_first(ordered)
    term_index = np.empty_like(order)
    term_index[order] = is_first.cumsum() - 1
    query_index = np.arange(len(arrays)).repeat([len(array) for array in arrays])
    return AskedTerms(len(arrays), ordered[is_first], query_index, term_index)


@lru_cache(maxsize=KEPT_NUMBERS)
def _numbers(sentence: str) -> "NDArray[np.uint64]":
    """Return the numbers of a sentence's terms, in the order of the terms."""
    from creonowd.retrieval.bm25 import numbers_of

    return numbers_of(sorted(content_terms(sentence)))


def _uses(surrounding: tuple[str, ...], terms: "NDArray[np.uint64]") -> "NDArray[np.int64]":
    """Return in how many of the surrounding sentences each of some terms occurs."""
    import numpy as np

    used, counts = _terms_in(surrounding)
    at = used.searchsorted(terms)
    at[at == len(used)] = 0
    return np.where(used[at] == terms, counts[at], 0) if len(used) else np.zeros_like(at)


@lru_cache(maxsize=KEPT_SURROUNDINGS)
def _terms_in(surrounding: tuple[str, ...]) -> "tuple[NDArray[np.uint64], NDArray[np.int64]]":
    """Return the terms of the surrounding sentences, ascending, and in how many each occurs."""
    import numpy as np

    arrays = [np.empty(0, np.uint64), *(_numbers(sentence) for sentence in set(surrounding))]
    return np.unique(np.concatenate(arrays), return_counts=True)


class _PlacedAllusion(NamedTuple):
    """An allusion, the document it is to, and where its sentence ends."""

    one: Allusion
    document: int
    at: int

    def strength(self, at: int) -> float:
        """How strong it still is for an author who has got so far."""
        age = min(1.0, (at - self.at) / DECAY_CHARACTERS)
        return round(self.one.strength * (1 - DECAY_SHARE * age), 4)


class CurrentAllusions:
    """The passages that the sentences of an author allude to most clearly, as they come.

    There is at most one passage of each document. `all` are in the order in which they came; a
    passage keeps its place until a clearly stronger one takes it.
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

    def start(self, sentences: Iterable[str], found: Iterable[Sequence[Allusion]]) -> None:
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
        self._held = sorted(strong[:MAX_ALLUSIONS], key=lambda held: (held.at, held.one.row))
        self._changed = self._at

    def add_sentences(self, sentences: Iterable[str], found: Iterable[Sequence[Allusion]]) -> None:
        """Take what is strong enough, sentence by sentence."""
        for sentence, allusions in zip(sentences, found, strict=True):
            self._at += len(sentence)
            for one in allusions:
                if one.strength >= LEAST_STRENGTH:
                    self._take(_PlacedAllusion(one, self._documents[one.row], self._at))

    def _take(self, new: _PlacedAllusion) -> None:
        same = [held for held in self._held if held.document == new.document]
        rivals = same or (self._held if len(self._held) >= MAX_ALLUSIONS else [])
        if rivals:
            weakest = min(rivals, key=lambda held: (held.strength(self._at), held.at, held.one.row))
            if new.one.strength <= REPLACEMENT_RATIO * weakest.strength(self._at):
                return
            self._held.remove(weakest)
        self._held.append(new)
        self._changed = self._at


class AlludingText:
    """What a text alludes to, now and after each sentence that its author adds.

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
        first.start(text, found[: len(text)])
        self._text, self._added, self._after = text, (), [first]
        self._add(added, found[len(text) :])

    def allusions_after(
        self, added: tuple[str, ...], allusions: Callable[[], Allusions]
    ) -> list[Allusion]:
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
            following.add_sentences([sentence], [allusions])
            self._after.append(following)
        self._added += sentences


@lru_cache(maxsize=KEPT_EXCERPTS)
def allusion_excerpt(text: str, sentence: str, most: float) -> tuple[int, int]:
    """Return where a passage says what a sentence alludes to, in about `most` tokens.

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
