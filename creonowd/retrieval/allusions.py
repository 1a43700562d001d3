"""Find the earlier passage that a sentence alludes to.

Words that a sentence shares with one document and hardly any other point to that document. Words
that stand here and there by chance point nowhere, however rare they are, and words that the whole
scene is full of are no allusion.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from creonowd.memo import Memo
from creonowd.retrieval.query import make_query, telling_terms
from creonowd.tokens.boundaries import is_abbreviation, sentences
from creonowd.tokens.tokenizer import about_tokens

if TYPE_CHECKING:
    from creonowd.retrieval.bm25 import TermIndex

# A term in more passages is no one's own.
MOST_PASSAGES = 64
KEPT_TERMS = 20_000
KEPT_SENTENCES = 2048
MOST_COMPARED = 12


class Allusion(NamedTuple):
    """A passage by its row, and how clearly a sentence points to it; 1 is one word of its own."""

    row: int
    strength: float
    sentence: str = ""


NOTHING = Allusion(-1, 0.0)


class _Owners(NamedTuple):
    """How much a term belongs to each document, and the rows that have it with what each is worth."""

    documents: tuple[tuple[int, float], ...] = ()
    rows: tuple[int, ...] = ()
    rarity: float = 0.0


class Allusions:
    """What sentences allude to among the passages of an index.

    `documents` has the document of each row; `population` is how many there are.
    """

    def __init__(self, index: "TermIndex", documents: Sequence[int], population: int) -> None:
        self._index, self._documents = index, documents
        self._population = population
        self._owners: Memo[str, _Owners] = Memo(KEPT_TERMS)

    def find(self, asking: Sequence[str], scene: Iterable[str]) -> list[Allusion]:
        """Return for each sentence what it alludes to; NOTHING if it points nowhere.

        `scene` are the sentences around: what they speak of anyway counts less.
        """
        terms = [_terms(sentence) for sentence in asking]
        uses = Counter(term for sentence in set(scene) for term in _terms(sentence))
        own = {sentence for sentence in asking if sentence in set(scene)}
        owners = self._owners_of(sorted({term for each in terms for term in each}))
        return [
            self._allusion(
                (owners[term], 1 / max(1, uses[term] + (sentence not in own))) for term in each
            )._replace(sentence=sentence)
            for sentence, each in zip(asking, terms, strict=True)
        ]

    def lead(self, sentence: str) -> Allusion:
        """Return the best passage by all words of a sentence, and its lead on other documents.

        It finds what an author paraphrases. A lead of 1 is that of one word of its own.
        """
        from creonowd.retrieval.bm25 import search

        weights = make_query(sentence).weights
        if not weights:
            return NOTHING
        found = search(self._index, weights, MOST_COMPARED)
        rows: list[int] = found.rows.tolist()
        scores: list[float] = found.scores.tolist()
        pairs = list(zip(rows, scores, strict=True))
        if not pairs:
            return NOTHING
        row, best = pairs[0]
        document = self._documents[row]
        others = (score for other, score in pairs if self._documents[other] != document)
        unit = math.log(1 + self._index.population)
        return Allusion(row, round((best - next(others, 0.0)) / unit, 4), sentence)

    def _owners_of(self, terms: Iterable[str]) -> dict[str, _Owners]:
        found = {term: self._owners.peek(term) for term in terms}
        new = [term for term, known in found.items() if known is None]
        rows = self._index.rare_rows(new, MOST_PASSAGES) if new else {}
        for term in new:
            owners = self._owned(rows[term]) if term in rows else _Owners()
            self._owners.put(term, owners)
            found[term] = owners
        return {term: known or _Owners() for term, known in found.items()}

    def _owned(self, rows: Sequence[int]) -> _Owners:
        counts = Counter(self._documents[row] for row in rows)
        rarity = self._rarity(len(counts))
        return _Owners(
            documents=tuple(
                (document, rarity * (1 + math.log(count)) * count / len(rows))
                for document, count in counts.items()
            ),
            rows=tuple(rows),
            rarity=rarity,
        )

    def _allusion(self, terms: Iterable[tuple[_Owners, float]]) -> Allusion:
        """Add up by document what the terms are worth; the lead on the second one counts, too."""
        of_documents: dict[int, float] = defaultdict(float)
        of_rows: dict[int, float] = defaultdict(float)
        for owners, factor in terms:
            for document, worth in owners.documents:
                of_documents[document] += worth * factor
            for row in owners.rows:
                of_rows[row] += owners.rarity * factor
        if not of_documents:
            return NOTHING
        ranked = sorted((-round(worth, 6), document) for document, worth in of_documents.items())
        best, second = -ranked[0][0], -ranked[1][0] if len(ranked) > 1 else 0.0
        own = (row for row in of_rows if self._documents[row] == ranked[0][1])
        row = min(own, key=lambda row: (-round(of_rows[row], 6), row))
        return Allusion(row, round((2 * best - second) / (2 * self._rarity(1)), 4))

    def _rarity(self, documents: int) -> float:
        return math.log(1 + (self._population - documents + 0.5) / (documents + 0.5))


@lru_cache(maxsize=KEPT_SENTENCES)
def _terms(sentence: str) -> tuple[str, ...]:
    return tuple(sorted(telling_terms(sentence)))


def excerpt(text: str, sentence: str, most: float) -> tuple[int, int]:
    """Return where a passage says what a sentence alludes to, in at most so many tokens or so.

    Whole sentences around the one that shares most with it; a single one may be longer.
    """
    ends = [at for at in sentences(text, 0, len(text)) if not is_abbreviation(text, at)]
    bounds = sorted({0, *ends, len(text)})
    wanted = set(_terms(sentence))
    parts = [
        (
            start,
            end,
            len(wanted.intersection(_terms(text[start:end]))),
            about_tokens(text[start:end]),
        )
        for start, end in pairwise(bounds)
    ]
    best, chosen = (-1, 0), (0, len(text))
    for first in range(len(parts)):
        shared, tokens = 0, 0.0
        for last in range(first, len(parts)):
            shared, tokens = shared + parts[last][2], tokens + parts[last][3]
            if tokens > most and last > first:
                break
            if (shared, last - first) > best:
                best, chosen = (shared, last - first), (parts[first][0], parts[last][1])
    start, end = chosen
    blank = len(text[start:end]) - len(text[start:end].lstrip())
    return start + blank, start + max(blank + 1, len(text[start:end].rstrip()))
