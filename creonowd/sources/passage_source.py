"""Passages of the author's own documents, as a source of the Retrieved layer.

It waits for the index no longer than a few changed pages take, and warns while that is incomplete.
`explain` returns the same passages with the reasons for their scores.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from creonowd.context.fragment import Fragment, Layer, Place, Span
from creonowd.context.notice import Caution, caution
from creonowd.context.plan import Document, Need
from creonowd.context.source import SourceQuery, SourceResult
from creonowd.errors import DaemonError, ErrorCode, WarningCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.retrieval.project_index import Indexes, ProjectIndex
from creonowd.retrieval.query import Query, make_query
from creonowd.retrieval.ranking import (
    CurrentDocument,
    RankedPassage,
    StoredText,
    choose,
    rank,
    source_ref,
)
from creonowd.sources.characters import Entities, ProjectEntities
from creonowd.sources.shared_reads import RoundCache
from creonowd.workspace.projects import Project

if TYPE_CHECKING:
    from creonowd.retrieval.loaded_index import LoadedIndex

GRACE_SECONDS = 0.25
KEPT_RESULTS = 1024
MOST_PASSAGES = 64
MOST = 200
LEAST_SCORE = 0.1


class Passages:
    """Finds passages in any project."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes
        self.made: Memo[object, SourceResult] = Memo(KEPT_RESULTS)

    async def find(
        self, project: Project, query: Query, current: CurrentDocument | None, limit: int
    ) -> "FoundPassages":
        """Rank the passages that the index has now; IO_ERROR if there can be no index."""
        index = self.index(project)
        caught_up = await index.catch_up(GRACE_SECONDS)
        found = SearchedPassages(index, query, current, limit)
        while (ranked := found.rank()) is None:
            await found.read_texts()
        complete = caught_up and not index.damaged
        return FoundPassages(
            ranked=ranked, complete=complete, index=found.loaded, left_out=index.left_out
        )

    def index(self, project: Project) -> ProjectIndex:
        """Return the index of a project; IO_ERROR if there can be none."""
        index = self._indexes.of(project)
        if index.problem is not None:
            raise DaemonError(ErrorCode.IO_ERROR, f"There is no index: {index.problem}.")
        return index

    def paths(self, project: Project) -> list[str]:
        """List the documents that can be found, in order."""
        return self._indexes.of(project).paths()


class SearchedPassages:
    """What a search found; texts are needed only of what is chosen, and read when they are."""

    def __init__(
        self, index: ProjectIndex, query: Query, current: CurrentDocument | None, limit: int
    ) -> None:
        self._index, self._current, self._limit = index, current, limit
        self.loaded, self._matches = index.search(query.weights, _most(limit))
        self._texts: dict[int, StoredText | None] = {}
        self._missing: list[int] = []

    def rank(self) -> list[RankedPassage] | None:
        """Rank the best; None if that needs texts that are not in memory."""
        loaded, current = self.loaded, self._current
        if loaded is None:
            return []
        rows = loaded.rows
        own = range(0) if current is None else loaded.rows_in(current.path)
        own_texts = self._get_texts(rows[row].id for row, _ in self._matches if row in own)
        if own_texts is None:
            return None
        groups = choose(self._matches, loaded, current, own_texts, self._limit)
        texts = self._get_texts(rows[group.best.row].id for group in groups)
        if texts is None:
            return None
        return rank([one for one in groups if rows[one.best.row].id in texts], loaded, texts)

    async def read_texts(self) -> None:
        """Read the texts for which `rank` had to stop."""
        read = await self._index.texts(self._missing)
        self._texts |= {number: read.get(number) for number in self._missing}

    def _get_texts(self, numbers: Iterable[int]) -> dict[int, StoredText] | None:
        """Return texts by number, without those that are gone meanwhile."""
        found: dict[int, StoredText] = {}
        self._missing = []
        for number in numbers:
            text = self._index.kept_text(number) or self._texts.get(number)
            if text is not None:
                found[number] = text
            elif number not in self._texts:
                self._missing.append(number)
        return None if self._missing else found


def _most(limit: int) -> int:
    """Return how many passages to search for, so that enough are left without duplicates."""
    return 2 * limit + MOST_PASSAGES


@dataclass(frozen=True)
class FoundPassages:
    """Passages, best first, the index they come from, and whether that is complete."""

    ranked: list[RankedPassage]
    complete: bool
    index: "LoadedIndex | None"
    left_out: tuple[Caution, ...] = ()

    def shares(self, query: Query, limit: int) -> list[dict[str, float]]:
        """Return for each passage how much each term of the query adds to its score."""
        from creonowd.retrieval.bm25 import shares_of

        if self.index is None or not self.ranked:
            return []
        rows = [one.found.row for one in self.ranked]
        return shares_of(self.index.terms, query.weights, _most(limit), rows)


class PassageSource:
    """The passages of one project."""

    layer = Layer.RETRIEVED
    name = "retrieval"
    need = Need.RETRIEVAL
    unavailable = caution(WarningCode.RAG_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(self, passages: Passages, project: Project, entities: ProjectEntities) -> None:
        self._passages, self._project, self._entities = passages, project, entities

    async def fetch(self, ask: SourceQuery) -> SourceResult:
        """Find what the text before the cursor and the author's wish are about."""
        query = _query(await self._entities.all(), self._entities, ask.query, ask.wish)
        current = None if ask.document is None else _current(ask.document, ask.query)
        limit = min(ask.limit, MOST_PASSAGES)
        found = await self._passages.find(self._project, query, current, limit)
        return _result(found.ranked, ask.document, found.left_out, complete=found.complete)

    def fetch_now(self, ask: SourceQuery) -> SourceResult | None:
        """Return the same if that takes no waiting: neither for the index nor for texts."""
        entities = self._entities.kept()
        if entities is None:
            return None
        index = self._passages.index(self._project)
        caught_up = index.caught_up(GRACE_SECONDS)
        if caught_up is None:
            return None
        query = _query(entities, self._entities, ask.query, ask.wish)
        complete, document = caught_up and not index.damaged, ask.document
        key = (index.loaded, index.left_out, complete, query.names, ask)
        if (kept := self._passages.made.peek(key)) is not None:
            return kept
        current = None if document is None else _current(document, ask.query)
        ranked = SearchedPassages(index, query, current, min(ask.limit, MOST_PASSAGES)).rank()
        if ranked is None:
            return None
        result = _result(ranked, document, index.left_out, complete=complete)
        self._passages.made.put(key, result)
        return result

    def read_ahead(self, cache: RoundCache) -> None:
        """Read the entities now, together with others; blocks its thread."""
        self._entities.read_ahead(cache)


def _result(
    ranked: Iterable[RankedPassage],
    document: Document | None,
    left_out: tuple[Caution, ...],
    *,
    complete: bool,
) -> SourceResult:
    indexing = () if complete else (caution(WarningCode.RETRIEVAL_INDEXING),)
    best = (one for one in ranked if one.score >= LEAST_SCORE)
    return SourceResult(
        fragments=tuple(_fragment(one, document) for one in best),
        warnings=(*indexing, *left_out),
    )


def _query(entities: Entities, finder: ProjectEntities, text: str, wish: str) -> Query:
    """Make a query; an entity that is named in it is searched for under all of its names."""
    found = finder.find(entities.every_name, f"{text}\n{wish}")
    if not found:
        return make_query(text, wish)
    mentioned = [n for names in entities.names if found.intersection(names) for n in names]
    return make_query(text, wish, mentioned)


def _current(document: Document, query: str) -> CurrentDocument:
    """Return the document with the stretch that a query was made of, up to the author's place."""
    above, (start, end) = len(document.front_matter), document.here
    found = document.text.rfind(query, 0, start) if query else -1
    return CurrentDocument(
        path=document.source_ref,
        text=document.front_matter + document.text,
        query_start=above + (start if found < 0 else found),
        query_end=above + end,
    )


def _fragment(ranked: RankedPassage, document: Document | None) -> Fragment:
    found = ranked.found
    span = None
    if document is not None and found.path == document.source_ref:
        above = len(document.front_matter)
        span = Span(found.start - above, found.end - above)
    return Fragment(
        layer=Layer.RETRIEVED,
        source=PassageSource.name,
        source_ref=source_ref(found),
        text=found.text,
        place=Place(0, found.path, found.start),
        score=ranked.score,
        span=span,
    )


class Search(Model):
    """What to search for: the text before the cursor, or a wish; `window` is left out on each side."""

    document: Document | None
    text: str
    wish: str
    window: int
    limit: int


class TermShare(Model):
    """A term that passage and query have in common, and its share of the score."""

    term: str
    share: float


class Why(Model):
    """What a score is made of.

    `names` are those of the project's entities that occur in the passage. `recency` is how near
    its document stands to the current one in the order of the paths, 1 being the same document;
    it does not count towards the score.
    """

    terms: list[TermShare]
    names: list[str]
    recency: float


class RankedPassages(Model):
    """The passages with their reasons, best first, and the names in the query."""

    passages: list[tuple[RankedPassage, Why]]
    names: list[str]
    complete: bool


async def explain(
    passages: Passages, entities: ProjectEntities, project: Project, search: Search
) -> RankedPassages:
    """Search, and return each passage with the reasons for its score."""
    query = _query(await entities.all(), entities, search.text, search.wish)
    current = None if search.document is None else _current(search.document, search.text)
    found = await passages.find(project, query, current, MOST)
    shares = zip(found.ranked, found.shares(query, MOST), strict=True)
    shown = [pair for pair in shares if not _is_in_window(pair[0], search)]
    recency = _recency(passages.paths(project), search.document)
    return RankedPassages(
        passages=[
            (one, _why(one, terms, query.names, entities, recency.get(one.found.path, 0.0)))
            for one, terms in shown[: search.limit]
        ],
        names=list(query.names),
        complete=found.complete,
    )


def without_terms(why: Why, visible: Container[str]) -> Why:
    """Leave out the terms that are not among the visible ones."""
    terms = [share for share in why.terms if share.term in visible]
    return Why(terms=terms, names=why.names, recency=why.recency)


def _recency(paths: Sequence[str], document: Document | None) -> dict[str, float]:
    """Return for every document how near it stands to the current one; nothing without one."""
    if document is None or document.source_ref not in paths:
        return {}
    here = paths.index(document.source_ref)
    return {path: round(1 / (1 + abs(at - here)), 4) for at, path in enumerate(paths)}


def _is_in_window(ranked: RankedPassage, search: Search) -> bool:
    found, document = ranked.found, search.document
    if document is None or found.path != document.source_ref:
        return False
    above, here = len(document.front_matter), document.here
    start, end = above + here.start - search.window, above + here.end + search.window
    return max(found.start, start) < min(found.end, end)


def _why(
    ranked: RankedPassage,
    terms: Mapping[str, float],
    names: Sequence[str],
    entities: ProjectEntities,
    recency: float,
) -> Why:
    found = ranked.found
    shares = sorted(terms.items(), key=lambda pair: (-pair[1], pair[0]))
    return Why(
        terms=[TermShare(term=term, share=round(s / found.score, 4)) for term, s in shares],
        names=sorted(entities.find(names, found.text)),
        recency=recency,
    )
