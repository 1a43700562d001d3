"""Passages of the author's own documents, as a source of the Retrieved layer.

Knows how to ask the index and what to say while it is incomplete; never waits for it longer
than a few changed pages take.
"""

from collections.abc import Container, Mapping, Sequence

from creonowd.context.fragment import Fragment, Layer, Place, Span
from creonowd.context.plan import Ask, Document, Fetched, Need
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.model import Model
from creonowd.retrieval.indexes import Indexes
from creonowd.retrieval.query import Query, make_query
from creonowd.retrieval.ranking import Current, Ranked, rank, source_ref
from creonowd.sources.characters import ProjectEntities
from creonowd.workspace.projects import Project

GRACE_SECONDS = 0.25
MOST_PASSAGES = 64
LEAST_SCORE = 0.1


class Passages:
    """Finds passages in any project."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes

    async def find(
        self, project: Project, query: Query, current: Current | None, limit: int
    ) -> "OfferedPassages":
        """Rank what the index holds now; IO_ERROR if none can be kept."""
        index = self._indexes.of(project)
        if index.problem is not None:
            raise DaemonError(ErrorCode.IO_ERROR, f"There is no index: {index.problem}.")
        caught_up = await index.catch_up(GRACE_SECONDS)
        found = await index.search(query.weights, 2 * limit + MOST_PASSAGES)
        complete = caught_up and not index.damaged
        return OfferedPassages(ranked=rank(found, current, limit), complete=complete)

    async def paths(self, project: Project) -> list[str]:
        """List the documents that can be found, in order."""
        return await self._indexes.of(project).paths()


class OfferedPassages(Model):
    """Passages, best first, and whether the index they come from holds everything there is."""

    ranked: list[Ranked]
    complete: bool


class PassageSource:
    """The passages of one project."""

    layer = Layer.RETRIEVED
    name = "retrieval"
    need = Need.RETRIEVAL
    unavailable = warning_text(WarningCode.RAG_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(self, passages: Passages, project: Project, cast: ProjectEntities) -> None:
        self._passages, self._project, self._cast = passages, project, cast

    async def fetch(self, ask: Ask) -> Fetched:
        """Find what the text before the cursor and the author's wish are about."""
        query = await asked(self._cast, ask.query, ask.wish)
        current = None if ask.document is None else around(ask.document, ask.query)
        limit = min(ask.limit, MOST_PASSAGES)
        offered = await self._passages.find(self._project, query, current, limit)
        path = None if current is None else current.path
        good = (one for one in offered.ranked if one.score >= LEAST_SCORE)
        return Fetched(
            fragments=tuple(_fragment(one, path) for one in good),
            warnings=() if offered.complete else (warning_text(WarningCode.RETRIEVAL_INDEXING),),
        )


async def asked(cast: ProjectEntities, text: str, wish: str) -> Query:
    """Make a query; whoever is named in it is looked for under all of their names."""
    everyone = (await cast.everyone()).names
    found = cast.find((name for names in everyone for name in names), f"{text}\n{wish}")
    named = [name for names in everyone if found.intersection(names) for name in names]
    return make_query(text, wish, named)


def around(document: Document, query: str) -> Current:
    """Say which part of a document a query was made of: from its text to where the author is."""
    start = document.here.start
    found = document.text.rfind(query, 0, start) if query else -1
    return Current(
        path=document.source_ref,
        text=document.text,
        asked_from=start if found < 0 else found,
        asked_to=document.here.end,
    )


def _fragment(ranked: Ranked, current: str | None) -> Fragment:
    found = ranked.found
    return Fragment(
        layer=Layer.RETRIEVED,
        source=PassageSource.name,
        source_ref=source_ref(found),
        text=found.text,
        place=Place(0, found.path, found.start),
        score=ranked.score,
        span=Span(found.start, found.end) if found.path == current else None,
    )


MOST = 200


class Search(Model):
    """What is searched for: the text before the author, or a wish; the window is left out."""

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

    `names` are those of the project's entities that the passage holds. `recency` tells how near
    its document stands to the current one in the order of the paths, 1 being the same document;
    it does not count towards the score.
    """

    terms: list[TermShare]
    names: list[str]
    recency: float


class Explained(Model):
    """The passages with their reasons, best first; the names that were asked for."""

    passages: list[tuple[Ranked, Why]]
    names: list[str]
    complete: bool


async def explain(
    passages: Passages, cast: ProjectEntities, project: Project, search: Search
) -> Explained:
    """Search, and say why each passage is where it is."""
    query = await asked(cast, search.text, search.wish)
    current = None if search.document is None else around(search.document, search.text)
    offered = await passages.find(project, query, current, MOST)
    shown = _shown(search)
    ranked = [one for one in offered.ranked if not _lies_in(one, search.document, shown)]
    near = nearness(await passages.paths(project), search.document)
    return Explained(
        passages=[(one, _why(one, query.names, cast, near)) for one in ranked[: search.limit]],
        names=list(query.names),
        complete=offered.complete,
    )


def nearness(paths: Sequence[str], document: Document | None) -> dict[str, float]:
    """Tell for every document how near it stands to the current one; nothing without one."""
    if document is None or document.source_ref not in paths:
        return {}
    here = paths.index(document.source_ref)
    return {path: round(1 / (1 + abs(at - here)), 4) for at, path in enumerate(paths)}


def without_terms(why: Why, shown: Container[str]) -> Why:
    """Leave out the terms that may not be shown."""
    terms = [share for share in why.terms if share.term in shown]
    return Why(terms=terms, names=why.names, recency=why.recency)


def _shown(search: Search) -> Span:
    if search.document is None:
        return Span(0, 0)
    here = search.document.here
    return Span(here.start - search.window, here.end + search.window)


def _lies_in(ranked: Ranked, document: Document | None, shown: Span) -> bool:
    found = ranked.found
    if document is None or found.path != document.source_ref:
        return False
    return max(found.start, shown.start) < min(found.end, shown.end)


def _why(
    ranked: Ranked, names: Sequence[str], cast: ProjectEntities, near: Mapping[str, float]
) -> Why:
    found = ranked.found
    shares = sorted(found.shares.items(), key=lambda pair: (-pair[1], pair[0]))
    return Why(
        terms=[TermShare(term=term, share=round(s / found.score, 4)) for term, s in shares],
        names=sorted(cast.find(names, found.text)),
        recency=near.get(found.path, 0.0),
    )
