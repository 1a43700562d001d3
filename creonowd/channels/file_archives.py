"""`context:files:export` and `import` — a conversation's context files as an archive, for owners."""

from creonowd.channels.conversation_files import InConversation, where_of
from creonowd.channels.file_keeping import OfProject
from creonowd.channels.session import Session
from creonowd.context_files import archives
from creonowd.context_files.records import ContextRef
from creonowd.model import Result
from creonowd.rpc.channel import Channel, Deadline, Role


class ExportContextFiles(InConversation):
    """The absolute path of the archive to write."""

    path: str


class ContextFilesExported(Result):
    """The archive, how many files it holds and how big it is."""

    path: str
    files: int
    bytes: int


class ImportContextFiles(OfProject):
    """The absolute path of an archive; without `conversationId` it goes where it came from."""

    path: str


class ContextFilesImported(Result):
    """Where the files went, and their refs."""

    conversation_id: str
    items: list[ContextRef]


async def export_files(session: Session, params: ExportContextFiles) -> ContextFilesExported:
    """Pack a conversation's context files into an archive."""
    where = await where_of(session, params)
    done = await archives.export_conversation(session.files, where, params.path)
    return ContextFilesExported(path=params.path, files=done.files, bytes=done.bytes)


async def import_files(session: Session, params: ImportContextFiles) -> ContextFilesImported:
    """Take an archive in, all of it or nothing; ids and times are kept."""
    await session.projects.find(params.project_id)
    done = await archives.import_conversation(
        session.files, params.project_id, params.conversation_id, params.path
    )
    return ContextFilesImported(
        conversation_id=done.conversation.id, items=[record.ref for record in done.records]
    )


CHANNELS = (
    Channel("context:files:export", export_files, role=Role.OWNER, deadline=Deadline.NONE),
    Channel("context:files:import", import_files, role=Role.OWNER, deadline=Deadline.NONE),
)
