"""`story:*` — summaries of the chapters, and the threads that are still open."""

from typing import Annotated

from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.project import ProjectId
from creonowd.context.story import Story, StoryDocument
from creonowd.engine.services import Session
from creonowd.engine.summarise_chapter import not_in_story, real_names, summarise_story
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model, Params, Result
from creonowd.providers.provider import AI_ERRORS
from creonowd.rpc.channel import Channel, Deadline
from creonowd.sources.chapter_summaries import (
    LONGEST_SUMMARY,
    ChapterSummary,
    FoundSummary,
    SummaryOrigin,
    first_sentence,
)
from creonowd.sources.project_files import OPEN_STATES, ThreadState, plot_threads, thread_state
from creonowd.text import well_formed
from creonowd.workspace.creonow_tree import CreonowFolder
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.projects import Project


class SummaryOf(Params):
    """A chapter whose summary is asked for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The chapter's path below the project's folder."""


class SetSummary(Params):
    """The author's own summary of a chapter.

    It stays as it is until the author sets another. When the chapter changes it is marked stale.
    """

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The chapter's path below the project's folder."""
    text: Annotated[str, Meta(max_length=LONGEST_SUMMARY)] | None
    """The summary; null takes it back, and a made one counts again."""


class SummaryInfo(Model):
    """The summary that counts for a chapter now."""

    path: str
    """The chapter's path below the project's folder."""
    stored: bool
    """Whether it is kept on the disk; false of an extract that is made when it is needed."""
    stale: bool
    """Whether the chapter has changed since it was written."""
    origin: SummaryOrigin | UnsetType = UNSET
    """Who wrote it: the `author`, a `model`, or nobody, if it is an `extract` of the chapter's own
    sentences. Absent if the chapter has none."""
    brief: str | UnsetType = UNSET
    """The one sentence that stands for the chapter when it is far from the cursor."""
    model: str | UnsetType = UNSET
    """The model that wrote it; absent if none did."""
    updated_at_ms: int | UnsetType = UNSET
    """When it was written, in milliseconds since 1970 (UTC); absent if it is not stored."""


class SummaryContent(SummaryInfo):
    """A summary with its text; empty if the chapter has no sentence to quote."""

    text: str
    """The summary; empty if the chapter has no sentence to quote."""


class SummaryList(Result):
    """The chapters in the order of the story, each with the summary that counts for it."""

    items: list[SummaryInfo]
    """One entry per chapter."""


async def list_summaries(session: Session, params: ProjectId) -> SummaryList:
    """List the chapters and which summary each has; extracts are not made for it."""
    project = await session.projects.find(params.project_id)
    story = await session.chapters.story(project)
    stored = await session.summaries.store.read(project)
    return SummaryList(
        items=[_info(session, document, stored.of(document)) for document in story.documents]
    )


async def get_summary(session: Session, params: SummaryOf) -> SummaryContent:
    """Return the summary that counts for a chapter; an extract if none is stored."""
    project = await session.projects.find(params.project_id)
    document = await _find(session, project, params.document_id)
    return await _summary_content(session, project, document)


async def set_summary(session: Session, params: SetSummary) -> SummaryContent:
    """Replace the summary of a chapter by the author's own words, or take them back."""
    project = await session.projects.find(params.project_id)
    document = await _find(session, project, params.document_id)
    store = session.summaries.store
    if params.text is None:
        await store.forget_edit(project, document.path)
        return await _summary_content(session, project, document)
    text = well_formed(params.text).strip()
    if not text:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "text must not be blank; send null to take it back.",
            field="text",
        )
    summary = ChapterSummary(
        document=document.path,
        digest=document.digest,
        text=text,
        brief=first_sentence(text),
        origin=SummaryOrigin.AUTHOR,
    )
    await store.edit(project, summary)
    return await _summary_content(session, project, document)


async def _find(session: Session, project: Project, path: str) -> StoryDocument:
    story = await session.chapters.story(project)
    return story.documents[await _number(session, project, story, path)]


async def _number(session: Session, project: Project, story: Story, path: str) -> int:
    (real,) = await real_names(session, project, [path])
    number = story.number_of(real)
    if number is None:
        raise not_in_story()
    return number


async def _summary_content(
    session: Session, project: Project, document: StoryDocument
) -> SummaryContent:
    summaries = session.summaries
    found = (await summaries.store.read(project)).of(document)
    info = _info(session, document, found)
    if found is None:
        names = (await session.sources.entities(project).get()).names
        texts = summaries.open_texts(project)
        made = await to_thread.run_sync(summaries.extract, project, document, texts, names)
        if made is None:
            return SummaryContent(path=info.path, stored=False, stale=False, text="")
        found = FoundSummary(made)
    redact = session.redactor.redact
    return SummaryContent(
        path=info.path,
        stored=info.stored,
        stale=info.stale,
        origin=found.summary.origin,
        brief=redact(found.summary.brief).text,
        model=info.model,
        updated_at_ms=info.updated_at_ms,
        text=redact(found.summary.text).text,
    )


def _info(session: Session, document: StoryDocument, found: FoundSummary | None) -> SummaryInfo:
    redact = session.redactor.redact
    path = redact(document.path).text
    if found is None:
        return SummaryInfo(path=path, stored=False, stale=False)
    summary = found.summary
    return SummaryInfo(
        path=path,
        stored=True,
        stale=found.stale,
        origin=summary.origin,
        brief=redact(summary.brief).text,
        model=summary.model or UNSET,
        updated_at_ms=summary.at_ms,
    )


class ThreadsAt(Params):
    """Where to look from: a document of the story, else the end of what is written."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId | None = None
    """The document to look from; without it, the end of what is written."""


class ThreadInfo(Model):
    """A thread of `.creonow/threads/` and its state at the place."""

    path: str
    """Its file, below the project's folder."""
    state: ThreadState
    """How it stands at the place."""
    planted: str | UnsetType = UNSET
    """Where it begins, as the author wrote it; absent if nowhere."""
    due: str | UnsetType = UNSET
    """Where it is to be resolved, as the author wrote it; absent if nowhere."""
    names: list[str] | UnsetType = UNSET
    """The characters that it is about; absent if it names none."""


class ThreadList(Result):
    """All threads, how many are `open` (those that are due or overdue included) and overdue.

    `unreadable` names the files that are not valid; an assembly warns why.
    """

    items: list[ThreadInfo]
    """Every thread."""
    open: int
    """How many are planted and not resolved, those that are due or overdue included."""
    overdue: int
    """How many should have been resolved before the place."""
    unreadable: list[str]
    """Files that are not valid; an assembly warns why."""


async def list_threads(session: Session, params: ThreadsAt) -> ThreadList:
    """List the threads and which are open, due or overdue at a place."""
    project = await session.projects.find(params.project_id)
    story = await session.chapters.story(project)
    number = len(story.documents) - 1
    if params.document_id is not None:
        number = await _number(session, project, story, params.document_id)
    read = plot_threads(await session.tree.read_all(project, CreonowFolder.THREADS))
    states = [(one, thread_state(one, story, number)) for one in read.fragments]
    redact = session.redactor.redact
    return ThreadList(
        items=[
            ThreadInfo(
                path=redact(one.source_ref).text,
                state=state,
                planted=redact(one.since).text or UNSET,
                due=redact(one.due).text or UNSET,
                names=[redact(name).text for name in one.names] or UNSET,
            )
            for one, state in states
        ],
        open=sum(state in OPEN_STATES for _, state in states),
        overdue=sum(state is ThreadState.OVERDUE for _, state in states),
        unreadable=[redact(item.source_ref).text for item in read.left_out],
    )


CHANNELS = (
    Channel("story:summarise", summarise_story, deadline=Deadline.NONE, errors=AI_ERRORS),
    Channel("story:summary:list", list_summaries),
    Channel("story:summary:get", get_summary),
    Channel("story:summary:set", set_summary),
    Channel("story:threads", list_threads),
)
