"""A search with its reasons: which terms and names brought a passage up, and how near it stands.

The search is that of an assembly; only what is told about it is more. Knows no wire.
"""

from collections.abc import Container, Mapping, Sequence

from creonowd.context.fragment import Span
from creonowd.context.plan import Document
from creonowd.model import Model
from creonowd.sources.cast import Cast
from creonowd.sources.retrieval.ranking import Ranked
from creonowd.sources.retrieval.source import Passages, around, asked
from creonowd.workspace.projects import Project

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


async def explain(passages: Passages, cast: Cast, project: Project, search: Search) -> Explained:
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


def _why(ranked: Ranked, names: Sequence[str], cast: Cast, near: Mapping[str, float]) -> Why:
    found = ranked.found
    shares = sorted(found.shares.items(), key=lambda pair: (-pair[1], pair[0]))
    return Why(
        terms=[TermShare(term=term, share=round(s / found.score, 4)) for term, s in shares],
        names=sorted(cast.find(names, found.text)),
        recency=near.get(found.path, 0.0),
    )
