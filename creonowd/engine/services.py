"""The services of a daemon, and the session: the services for one connection."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from creonowd.clock import Clock
from creonowd.context_files.files import ContextFiles
from creonowd.engine.engine import Engine
from creonowd.engine.health import Troubles
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.model import Params
from creonowd.providers.configured import Backends, SentPrefixes
from creonowd.redaction import Redactor
from creonowd.retrieval.project_index import Indexes
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.skills.library import Library
from creonowd.sources.hosts import Hosts
from creonowd.sources.project_files import ProjectSources
from creonowd.sources.synopsis import Chapters, ChapterSummaries
from creonowd.tokens import Tokenizers
from creonowd.workspace.budgets import Budgets
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.corrections import Corrections
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.file_edits import FileEdits
from creonowd.workspace.projects import Projects
from creonowd.workspace.runs import Runs
from creonowd.workspace.usage import UsageLedger
from creonowd.workspace.watcher import Watcher

if TYPE_CHECKING:
    from creonowd.engine.skill_run import SkillRuns


class ViewerPages(Protocol):
    """The pages of the viewer, served in a daemon that has a process of its own."""

    async def address(self) -> str:
        """Return their address, serving them if they are not served yet."""
        ...

    async def save_tokens(self) -> None:
        """Store which pages may connect again after a crash."""
        ...


@dataclass(frozen=True)
class Services:
    """What one daemon has, built once in `daemon`."""

    settings: Settings
    user_data: Path
    clock: Clock
    troubles: Troubles
    redactor: Redactor
    projects: Projects
    tree: Tree
    watcher: Watcher
    constraints: Constraints
    chats: Chats
    tokenizers: Tokenizers
    budgets: Budgets
    corrections: Corrections
    documents: Documents
    edits: FileEdits
    skills: Library
    engine: Engine
    ai: Backends
    runs: Runs
    usage: UsageLedger
    in_flight: "SkillRuns"
    sent_prefixes: SentPrefixes
    files: ContextFiles
    histories: Histories
    code_laws: CodeLaws
    last_turns: LastTurns
    hosts: Hosts
    indexes: Indexes
    sources: ProjectSources
    chapters: Chapters
    summaries: ChapterSummaries
    viewer: ViewerPages


class Session:
    """The services and the connection of a request: what every handler gets first."""

    def __init__(self, services: Services, connection: Connection) -> None:
        self.connection = connection
        self.peer: Peer = connection
        self.server = connection.server
        self.settings = services.settings
        self.user_data = services.user_data
        self.clock = services.clock
        self.troubles = services.troubles
        self.redactor = services.redactor
        self.projects = services.projects
        self.tree = services.tree
        self.watcher = services.watcher
        self.constraints = services.constraints
        self.chats = services.chats
        self.tokenizers = services.tokenizers
        self.budgets = services.budgets
        self.corrections = services.corrections
        self.documents = services.documents
        self.edits = services.edits
        self.skills = services.skills
        self.engine = services.engine
        self.ai = services.ai
        self.runs = services.runs
        self.usage = services.usage
        self.in_flight = services.in_flight
        self.sent_prefixes = services.sent_prefixes
        self.files = services.files
        self.histories = services.histories
        self.code_laws = services.code_laws
        self.last_turns = services.last_turns
        self.hosts = services.hosts
        self.indexes = services.indexes
        self.sources = services.sources
        self.chapters = services.chapters
        self.summaries = services.summaries
        self.viewer = services.viewer


def may_inspect(session: Session) -> bool:
    """Return whether a connection may look into prompts: an owner that debugs, or has a page's token."""
    owner = session.peer.role is Role.OWNER
    return owner and (session.settings.debug or session.connection.inspects)


class InConversation(Params):
    """A conversation of a project; it belongs to the project that used it first."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation_id: str
    """The conversation's id, chosen by the client: 1 to 64 of A–Z, a–z, 0–9, `_` and `-`."""
