"""Search a project's passages for a client, with the reasons of the ranking."""

from typing import Annotated

from msgspec import Meta

from creonowd.context.budget import allowances_of
from creonowd.context.fragment import Layer, Notice, caution, show
from creonowd.context.inspection import ScoreReasons
from creonowd.context.plan import query as text_before
from creonowd.context.plan import query_ends, step
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode, WarningCode
from creonowd.logs import log_redaction
from creonowd.model import Model, Params, Result
from creonowd.redaction import RedactionEvidence, Redactor
from creonowd.retrieval.project_index import IndexProgress, ProjectIndex
from creonowd.retrieval.ranking import RankedPassage, search_terms, source_ref
from creonowd.rpc.requests import report_progress
from creonowd.sources.document import LocatedDocument, Position, open_document
from creonowd.sources.passage_source import (
    MAX_EXPLAINED,
    ClientSearch,
    ExplainedPassages,
    SearchRange,
    before_place,
    explain,
    without_terms,
)
from creonowd.threads import call_in_thread
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.projects import Project

USUAL_LIMIT = 20


class RetrieveContext(Params):
    """Where the author is, or what to search for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId | None = None
    """The document: its path below the project's folder with `/` between the names, such as
    `chapters/07.md`. Without it a query searches everything, from no place."""
    cursor_position: Annotated[int, Meta(ge=0)] = 0
    """Where the cursor stands in the document, in the connection's position encoding."""
    query: Annotated[str, Meta(max_length=100_000)] | None = None
    """What to search for in all documents; without it the search is that of an assembly: with the
    text before the cursor, and only in what lies before it in the story."""
    future: bool = True
    """Whether a query also searches what lies after the cursor in the story; without a query that
    is never searched."""
    limit: Annotated[int, Meta(ge=1, le=MAX_EXPLAINED)] = USUAL_LIMIT
    """How many passages at most."""
    wait: bool = False
    """Whether to answer only when the index is complete; `$/progress` reports how far it is."""


class RetrievedPassage(Model):
    """A passage without its secrets."""

    source_ref: str
    """Its reference, as a prompt shows it."""
    document_id: str
    """The document that it is from."""
    offset: int
    """Where it begins in the document, in code points."""
    heading: list[str]
    """The headings above it, the topmost first."""
    content: str
    """Its text."""
    score: float
    """How well it fits, from 0 to 1."""
    why: ScoreReasons
    """What the score is made of."""
    duplicates: list[str]
    """References of passages with nearly the same text, which are left out."""


class IndexState(Model):
    """Whether the index holds everything; while it does not, how many documents of how many."""

    complete: bool
    """Whether the index holds everything."""
    done: int
    """How many documents it holds."""
    documents: int
    """How many there are."""


class RetrieveResult(Result):
    """Passages, the best first; what the window around the cursor shows is left out."""

    passages: list[RetrievedPassage]
    """The passages, the best first; what the window around the cursor shows is left out."""
    names: list[str]
    """The names of the project's entities that the query mentions."""
    index: IndexState
    """How far the index is."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""
    redaction_evidence: list[RedactionEvidence]
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


async def retrieve_context(session: Session, params: RetrieveContext) -> RetrieveResult:
    """Rank the passages of a project's documents for a place in one of them, or for a query."""
    project = await session.projects.find(params.project_id)
    index = session.indexes.of(project)
    located = await _locate(session, project, params)
    search = await _search(session, project, params, located)
    explained = await _explain(session, project, search, wait=params.wait)
    passages, evidence = await _passages(session, project, search, explained)
    indexing = () if explained.complete else (caution(WarningCode.RETRIEVAL_INDEXING),)
    named = (
        w.with_redacted_texts(lambda text: session.redactor.redact(text).text)
        for w in (*located.warnings, *index.left_out)
    )
    warnings, notices = show((*named, *indexing), session.connection.language)
    return RetrieveResult(
        passages=passages,
        names=explained.names,
        index=_state(index, complete=explained.complete),
        warnings=warnings,
        notices=notices,
        redaction_evidence=evidence,
    )


async def _explain(
    session: Session, project: Project, search: ClientSearch, *, wait: bool
) -> ExplainedPassages:
    """Search now, or as soon as nothing is missing: files may change while others are indexed.

    Progress never goes back, though some documents are indexed once more.
    """
    index, entities = session.indexes.of(project), session.sources.entities(project)
    furthest = IndexProgress()

    def report(progress: IndexProgress) -> None:
        nonlocal furthest
        furthest = IndexProgress(
            done=max(furthest.done, progress.done),
            documents=max(furthest.documents, progress.documents),
        )
        report_progress({"done": furthest.done, "documents": furthest.documents})

    while True:
        if wait:
            await index.complete(report)
        explained = await explain(session.sources.passages, entities, project, search)
        if explained.complete or not wait:
            return explained


async def _locate(session: Session, project: Project, params: RetrieveContext) -> LocatedDocument:
    if params.document_id is None and params.query is not None:
        return LocatedDocument(document=None)
    if params.document_id is None or not params.document_id.strip():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "documentId must not be blank.", field="documentId"
        )
    position = Position(document_id=params.document_id, cursor=params.cursor_position)
    timeout_ms = session.settings.source_timeout_ms
    return await open_document(session.documents, project, position, session.peer, timeout_ms)


async def _search(
    session: Session, project: Project, params: RetrieveContext, located: LocatedDocument
) -> ClientSearch:
    figures = allowances_of((await session.budgets.effective(project.project_id)).profile)
    document = located.document
    before, within = "", SearchRange()
    if document is not None:
        cursor, grid = document.here.start, step(figures, None)
        story = await session.chapters.story(project, document)
        end = query_ends(document.text, cursor, grid)[-1]
        within = before_place(story, document, end)
        if params.query is None:
            before = text_before(document.text, end)
        elif params.future:
            within = within._replace(scope=None)
    return ClientSearch(
        document=document,
        text=before,
        wish=params.query or "",
        window=figures.share(Layer.IMMEDIATE),
        limit=params.limit,
        within=within,
    )


async def _passages(
    session: Session, project: Project, search: ClientSearch, explained: ExplainedPassages
) -> tuple[list[RetrievedPassage], list[RedactionEvidence]]:
    """Redact all that is returned: texts, headings, and the terms of the query."""
    texts = [(source_ref(one.found), one.found.text) for one, _ in explained.passages]
    headings = [("", "\n".join(one.found.heading)) for one, _ in explained.passages]
    query = ("", "\n".join((search.text, search.wish, *explained.names)))
    pairs = [*texts, *headings, query]
    clean, evidence = await call_in_thread(session.redactor.redact_texts, pairs)
    log_redaction(project.project_id, evidence)
    visible = frozenset(search_terms(clean[-1]))
    parts = zip(explained.passages, clean, clean[len(texts) :], strict=False)
    passages = [
        _passage(session.redactor, one, without_terms(why, visible), text, heading)
        for (one, why), text, heading in parts
    ]
    return passages, [piece for piece in evidence if piece.source_ref]


def _passage(
    redactor: Redactor, ranked: RankedPassage, why: ScoreReasons, content: str, heading: str
) -> RetrievedPassage:
    found = ranked.found
    return RetrievedPassage(
        source_ref=redactor.redact_name(source_ref(found)),
        document_id=redactor.redact_name(found.path),
        offset=found.start,
        heading=heading.split("\n") if heading else [],
        content=content,
        score=ranked.score,
        why=why,
        duplicates=[redactor.redact_name(one) for one in ranked.duplicates],
    )


def _state(index: ProjectIndex, *, complete: bool) -> IndexState:
    progress = index.progress
    return IndexState(complete=complete, done=progress.done, documents=progress.documents)
