"""`context:tool:compress` — what a history keeps of a tool's result, and where all of it is."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.session import Session
from creonowd.context_files.files import ConversationKey
from creonowd.context_files.records import ContextRef
from creonowd.context_files.slices import fits
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.intake import Desk, ToolResult, record_result
from creonowd.history.observation import Form
from creonowd.history.rounds import LONGEST_ID
from creonowd.history.tool_result import limits_of
from creonowd.model import Params
from creonowd.model import Result as Reply
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel


class CompressToolResult(Params):
    """A tool's name, its arguments and its result, whatever its shape.

    With `conversationId` (and `projectId`) the full output becomes a context file;
    `toolCallId` makes that repeatable.
    """

    tool: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    result: Any
    args: Any = None
    project_id: str | None = None
    conversation_id: str | None = None
    tool_call_id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)] | None = None


class ToolResultCompressed(Reply):
    """`summary` is for the history, `observation` for the model of the current turn.

    Both are without secrets. An observation over the inline limits is left out: `preview` shows
    its head and tail, and `ref` is all of it.
    """

    tool: str
    form: Form
    summary: str
    observation: str | UnsetType = UNSET
    ref: ContextRef | UnsetType = UNSET
    preview: str | UnsetType = UNSET
    redaction_evidence: tuple[RedactionEvidence, ...]


async def compress_result(session: Session, params: CompressToolResult) -> ToolResultCompressed:
    """Compress a tool's result by the table of tools; the same result gives the same summary."""
    root, where = await _place(session, params)
    desk = desk_of(session, root)
    result = ToolResult(params.tool, params.result, params.args, params.tool_call_id)
    recorded = await record_result(desk, where, result)
    seen = recorded.observation
    return ToolResultCompressed(
        tool=params.tool,
        form=Form.TEXT if seen is None else seen.form,
        summary=recorded.text,
        observation=_observation(session, recorded.text if seen is None else seen.text),
        ref=recorded.ref or UNSET,
        preview=UNSET if recorded.preview is None else recorded.preview.text,
        redaction_evidence=() if seen is None else seen.evidence,
    )


def desk_of(session: Session, root: str) -> Desk:
    """Give recording what it works with."""
    return Desk(session.files, session.redactor, limits_of(session.settings), root)


async def _place(
    session: Session, params: CompressToolResult
) -> tuple[str, ConversationKey | None]:
    if params.project_id is None:
        if params.conversation_id is not None:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "A conversation belongs to a project; name it with projectId.",
                field="projectId",
            )
        return "", None
    project = await session.projects.find(params.project_id)
    if params.conversation_id is None:
        return str(project.root), None
    return str(project.root), ConversationKey(params.project_id, params.conversation_id)


def _observation(session: Session, text: str) -> str | UnsetType:
    return text if fits(text, session.files.inline_limits) else UNSET


CHANNELS = (Channel("context:tool:compress", compress_result),)
