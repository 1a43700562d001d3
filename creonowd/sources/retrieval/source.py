"""Passages of the author's own documents, as a source of the Retrieved layer.

Knows how to ask the index and what to say while it is incomplete; never waits for it longer
than a few changed pages take.
"""

from creonowd.context.fragment import Fragment, Layer, Place, Span
from creonowd.context.plan import Ask, Document, Fetched, Need
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.model import Model
from creonowd.sources.cast import Cast
from creonowd.sources.retrieval.indexes import Indexes
from creonowd.sources.retrieval.query import Query, make_query
from creonowd.sources.retrieval.ranking import Current, Ranked, rank, source_ref
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
    ) -> "Offered":
        """Rank what the index holds now; IO_ERROR if none can be kept."""
        index = self._indexes.of(project)
        if index.problem is not None:
            raise DaemonError(ErrorCode.IO_ERROR, f"There is no index: {index.problem}.")
        caught_up = await index.catch_up(GRACE_SECONDS)
        found = await index.search(query.weights, 2 * limit + MOST_PASSAGES)
        complete = caught_up and not index.damaged
        return Offered(ranked=rank(found, current, limit), complete=complete)

    async def paths(self, project: Project) -> list[str]:
        """List the documents that can be found, in order."""
        return await self._indexes.of(project).paths()


class Offered(Model):
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

    def __init__(self, passages: Passages, project: Project, cast: Cast) -> None:
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


async def asked(cast: Cast, text: str, wish: str) -> Query:
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
