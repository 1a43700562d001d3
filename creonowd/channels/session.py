"""What a handler may use: the stores everyone shares, and the client that asked."""

from dataclasses import dataclass
from pathlib import Path
from typing import cast

from creonowd.channels.engine import Engine
from creonowd.channels.troubles import Troubles
from creonowd.clock import Clock
from creonowd.context_files.files import ContextFiles
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.providers.configured import Configured, SentPrefixes
from creonowd.redaction import Redactor
from creonowd.retrieval.indexes import Indexes
from creonowd.rpc.connection import Connection
from creonowd.rpc.peer import Peer
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.skills.in_flight import InFlight
from creonowd.skills.library import Library
from creonowd.sources.hosts import Hosts
from creonowd.sources.project_files import ProjectSources
from creonowd.tokens import Tokenizers
from creonowd.workspace.budgets import Budgets
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Projects
from creonowd.workspace.runs import Runs
from creonowd.workspace.watcher import Watcher


@dataclass(frozen=True)
class Services:
    """What one daemon has, built once in `daemon`."""

    settings: Settings
    user_data: Path
    clock: Clock
    server: Server
    troubles: Troubles
    redactor: Redactor
    projects: Projects
    tree: Tree
    watcher: Watcher
    constraints: Constraints
    conversations: Chats
    tokenizers: Tokenizers
    budgets: Budgets
    documents: Documents
    skills: Library
    engine: Engine
    ai: Configured
    runs: Runs
    in_flight: InFlight
    prefix_reuse: SentPrefixes
    files: ContextFiles
    histories: Histories
    code_laws: CodeLaws
    last_turns: LastTurns
    hosts: Hosts
    indexes: Indexes
    sources: ProjectSources


@dataclass(frozen=True)
class Session(Services):
    """The services, and the connection that a request came in on."""

    peer: Peer

    @classmethod
    def of(cls, services: Services, peer: Peer) -> "Session":
        """Open a session on the shared services."""
        return cls(**vars(services), peer=peer)

    @property
    def connection(self) -> Connection:
        """The connection itself, for the few channels that change it."""
        return cast("Connection", self.peer)
