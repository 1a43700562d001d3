"""`context:creonow:conversations:*` — conversations with the AI, kept in the project."""

from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from creonowd.engine.services import Session
from creonowd.errors import ErrorCode, Language
from creonowd.logs import log_redaction
from creonowd.model import Model, Params, Result
from creonowd.redaction import PLACEHOLDER, RedactionEvidence
from creonowd.rpc.channel import Channel
from creonowd.threads import call_in_thread
from creonowd.workspace.chats import (
    FOLDER,
    ChatDocument,
    ConversationEntry,
    path_of,
    texts_of,
    with_texts,
)
from creonowd.workspace.creonow_tree import Problem
from creonowd.workspace.projects import Project

_MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"type": "string"},
        "content": {"type": "string"},
        "createdAt": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    },
    "required": ["role", "content"],
}
_CONVERSATION = {
    "properties": {
        "id": {"type": "string"},
        "documentId": {"type": "string"},
        "messages": {"type": "array", "items": _MESSAGE},
    },
    "required": ["messages"],
}
_ANALYSIS = {"properties": {"summary": {"type": "string"}}, "required": ["summary"]}

ConversationObject = Annotated[dict[str, Any], Meta(extra_json_schema=_CONVERSATION)]
AnalysisObject = Annotated[dict[str, Any], Meta(extra_json_schema=_ANALYSIS)]


class ListConversations(Params):
    """How many of the newest conversations to list, and of which document."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    """How many at most, the newest first."""
    document_id: str | None = None
    """Only those that belong to this document; without it, all."""


class ConversationProblem(Model):
    """A file among the conversations that cannot be read as one."""

    path: str
    """The file, below the project's folder."""
    code: ErrorCode
    """What is wrong with it."""
    message: str
    """The same as a sentence, in the connection's language."""


class ConversationList(Result):
    """Conversations, newest first; `errors` names the files that could not be read."""

    items: list[ConversationEntry]
    """The conversations, newest first."""
    errors: list[ConversationProblem] | UnsetType = UNSET
    """Files in the folder of conversations that cannot be read as one; absent if there are
    none."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class ReadConversation(Params):
    """A conversation by its id."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation_id: str
    """The id from the list."""


class ConversationRead(Result):
    """A conversation as it was saved, without its secrets."""

    conversation: ConversationObject
    """Everything that was saved, further fields included, without secrets."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class SaveConversation(Params):
    """A whole conversation; without an `id` it gets one. Other fields are kept."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation: ConversationObject
    """The whole conversation. Without `id` it is new; fields that the daemon does not know are
    kept."""


class SavedConversation(Result):
    """The conversation is stored; `index` is its entry in the list."""

    saved: bool
    """Always true: it is on the disk."""
    index: ConversationEntry
    """How the list shows it now; its `id` is the one to use from now on."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class UpdateAnalysis(Params):
    """The result of an analysis; its summary replaces the heuristic one."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation_id: str
    """The id from the list."""
    analysis: AnalysisObject
    """The analysis; its `summary` is shown in the list from now on, further fields are kept."""


class UpdatedAnalysis(Result):
    """The analysis is stored; `index` is the entry of the conversation in the list."""

    updated: bool
    """Always true: it is on the disk."""
    index: ConversationEntry
    """How the list shows the conversation now."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


async def list_conversations(session: Session, params: ListConversations) -> ConversationList:
    """List the newest conversations of a project or of one document."""
    project = await session.projects.find(params.project_id)
    listing = await session.chats.list(project)
    entries = [
        known.entry
        for known in listing.items
        if params.document_id is None or known.entry.document_id == params.document_id
    ]
    items, evidence = await _redact_summaries(session, project.project_id, entries[: params.limit])
    chinese = session.connection.language is Language.CHINESE
    errors = [_problem(problem, chinese=chinese) for problem in listing.problems]
    return ConversationList(items=items, errors=errors or UNSET, redaction_evidence=evidence)


async def read_conversation(session: Session, params: ReadConversation) -> ConversationRead:
    """Read a conversation, redacted."""
    project = await session.projects.find(params.project_id)
    chat_id = await _real_id(session, project, params.conversation_id)
    document = await session.chats.read(project, chat_id)
    kept = {key: document[key] for key in ("documentId",) if key in document}
    path = path_of(chat_id)
    texts = [(path, text) for text in texts_of(document)]
    clean, evidence = await call_in_thread(session.redactor.redact_texts, texts)
    log_redaction(project.project_id, evidence)
    conversation = cast("ChatDocument", with_texts(document, clean))
    conversation |= kept | {"id": session.redactor.hide_secrets(chat_id)}
    conversation.pop("version", None)
    return ConversationRead(conversation=conversation, redaction_evidence=evidence or UNSET)


async def save_conversation(session: Session, params: SaveConversation) -> SavedConversation:
    """Save a conversation; one with the same id is replaced and keeps its analysis."""
    project = await session.projects.find(params.project_id)
    entry = await session.chats.save(project, params.conversation)
    (index,), evidence = await _redact_summaries(session, project.project_id, [entry])
    return SavedConversation(saved=True, index=index, redaction_evidence=evidence)


async def update_analysis(session: Session, params: UpdateAnalysis) -> UpdatedAnalysis:
    """Store the analysis of a conversation."""
    project = await session.projects.find(params.project_id)
    chat_id = await _real_id(session, project, params.conversation_id)
    entry = await session.chats.analyse(project, chat_id, params.analysis)
    (index,), evidence = await _redact_summaries(session, project.project_id, [entry])
    return UpdatedAnalysis(updated=True, index=index, redaction_evidence=evidence)


async def _real_id(session: Session, project: Project, listed: str) -> str:
    """Return the id of a conversation that is listed without its secret, if it is the only one."""
    if PLACEHOLDER not in listed:
        return listed
    listing = await session.chats.list(project)
    ids = [one.entry.id for one in listing.items]
    found = [one for one in ids if session.redactor.hide_secrets(one) == listed]
    return found[0] if len(found) == 1 else listed


async def _redact_summaries(
    session: Session, project_id: str, entries: list[ConversationEntry]
) -> tuple[list[ConversationEntry], list[RedactionEvidence] | UnsetType]:
    texts = [(f"{FOLDER}/{entry.id}.json", entry.summary) for entry in entries]
    clean, evidence = await call_in_thread(session.redactor.redact_texts, texts)
    log_redaction(project_id, evidence)
    pairs = zip(entries, clean, strict=True)
    hide = session.redactor.hide_secrets
    redacted_entries = [
        msgspec.structs.replace(entry, id=hide(entry.id), summary=summary)
        for entry, summary in pairs
    ]
    return redacted_entries, evidence or UNSET


def _problem(problem: Problem, *, chinese: bool) -> ConversationProblem:
    return ConversationProblem(
        path=problem.path,
        code=problem.error.code,
        message=problem.error.wording.text(chinese=chinese),
    )


CHANNELS = (
    Channel("context:creonow:conversations:list", list_conversations),
    Channel("context:creonow:conversations:read", read_conversation),
    Channel("context:creonow:conversations:save", save_conversation, errors=(ErrorCode.CONFLICT,)),
    Channel(
        "context:creonow:conversations:analysis:update",
        update_analysis,
        errors=(ErrorCode.CONFLICT,),
    ),
)
