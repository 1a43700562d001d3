"""Which conversation's file a request means, and how it may be seen. Knows no channel."""

from creonowd.channels.session import Session
from creonowd.context_files.files import ConversationKey, FileRequest, FileView
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Params
from creonowd.rpc.channel import Role


class InConversation(Params):
    """A conversation of a project; it belongs to the project that used it first."""

    project_id: str
    conversation_id: str


class LookAtContextFile(InConversation):
    """A file by its ref's id.

    Secrets are taken out of what is shown; `sensitive` takes out more than usual, and `raw`
    nothing, for owners only.
    """

    id: str
    sensitive: bool = False
    raw: bool = False


async def where_of(session: Session, params: InConversation) -> ConversationKey:
    """Tell which conversation is meant, once its project is known to exist."""
    await session.projects.find(params.project_id)
    return ConversationKey(params.project_id, params.conversation_id)


async def which_of(session: Session, params: LookAtContextFile) -> FileRequest:
    """Tell which file is meant and how it may be seen; FORBIDDEN for raw, unless to an owner."""
    if params.raw and session.peer.role is not Role.OWNER:
        raise DaemonError(
            ErrorCode.FORBIDDEN, "Only an owner may read raw; leave `raw` out.", field="raw"
        )
    view = FileView.SENSITIVE if params.sensitive else FileView.REDACTED
    where = await where_of(session, params)
    return FileRequest(where, params.id, FileView.RAW if params.raw else view, session.peer)
