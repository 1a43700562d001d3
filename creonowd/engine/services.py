"""What a handler may use: the stores everyone shares, and the client that asked."""

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, cast

import anyio
from anyio import CapacityLimiter

from creonowd.clock import Clock
from creonowd.context.admission import Admission
from creonowd.context.assemble import Concurrency
from creonowd.context.plan import Source
from creonowd.context.prefix import PrefixMemory
from creonowd.context.text_tools import Memory
from creonowd.context_files.files import ContextFiles
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.model import Model, Params
from creonowd.providers.configured import ConfiguredProvider, SentPrefixes
from creonowd.redaction import Redactor
from creonowd.retrieval.indexes import Indexes
from creonowd.rpc.connection import Connection
from creonowd.rpc.peer import Peer
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.skills.library import Library
from creonowd.sources.hosts import Hosts
from creonowd.sources.project_files import ProjectSources
from creonowd.sources.shared_reads import SharedReads
from creonowd.tokens import Tokenizers
from creonowd.workspace.budgets import Budgets
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project, Projects
from creonowd.workspace.runs import Runs
from creonowd.workspace.watcher import Watcher

READING = 8
COMPOSING = 2


class SeenOnce:
    """What has been told of late, so that a long list is not told with every keystroke."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._told: OrderedDict[str, None] = OrderedDict()

    def are(self, what: str) -> bool:
        """Tell whether something has not been told yet, and count it as told."""
        fresh = what not in self._told
        self._told[what] = None
        self._told.move_to_end(what)
        while len(self._told) > self._capacity:
            self._told.popitem(last=False)
        return fresh


class InConversation(Params):
    """A conversation of a project; it belongs to the project that used it first."""

    project_id: str
    conversation_id: str


class SourceProvider(Protocol):
    """Whoever has sources for a project."""

    def of(self, project: Project) -> Sequence[Source]:
        """Give the sources of a project for one assembly."""
        ...


def _lanes() -> Concurrency:
    return Concurrency(CapacityLimiter(READING), CapacityLimiter(COMPOSING))


@dataclass(frozen=True)
class Engine:
    """The engine of one daemon; `providers` are asked in their order."""

    providers: list[SourceProvider]
    admission: Admission = field(default_factory=Admission)
    memory: Memory = field(default_factory=Memory)
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)
    lookups: SharedReads[Any] = field(default_factory=SharedReads[Any])
    news: SeenOnce = field(default_factory=SeenOnce)
    lanes: Concurrency = field(default_factory=_lanes)

    def sources_of(self, project: Project) -> list[Source]:
        """Give all sources of a project."""
        return [source for provider in self.providers for source in provider.of(project)]


class Trouble(Model):
    """Why a part does not work as it should, and how to mend it."""

    reason: str
    remedy: str


Check = Callable[[], Trouble | None]


class Troubles:
    """The parts that can say of themselves that they are degraded."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def watch(self, part: str, check: Check) -> None:
        """Ask `check` whenever someone wants to know how `part` is."""
        self._checks[part] = check

    def current(self) -> dict[str, Trouble]:
        """Ask every part."""
        found = ((part, check()) for part, check in self._checks.items())
        return {part: trouble for part, trouble in found if trouble is not None}


class _Flight(NamedTuple):
    owner: str
    scope: anyio.CancelScope


class InFlight:
    """Runs by their id, each with the connection that started it."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    @contextlib.contextmanager
    def entered(self, run_id: str, owner: str) -> Generator[None]:
        """Carry out a run in the block; stopped, it ends as CANCELED. CONFLICT if the id is in use."""
        if run_id in self._flights:
            raise DaemonError(
                ErrorCode.CONFLICT, "A run with this runId is under way; use another.", runId=run_id
            )
        with anyio.CancelScope() as scope:
            self._flights[run_id] = _Flight(owner, scope)
            try:
                yield
            finally:
                del self._flights[run_id]
        # Also if it was done just then: whoever was told that it is stopped must not hear its end.
        if scope.cancel_called:
            raise DaemonError(ErrorCode.CANCELED, "The run was cancelled.", runId=run_id)

    def cancel(self, run_id: str, asker: str, *, any_run: bool) -> bool:
        """Stop a run, upstream call and all; tell whether there was one that the asker may stop."""
        flight = self._flights.get(run_id)
        if flight is None or not (any_run or flight.owner == asker):
            return False
        flight.scope.cancel()
        return True


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
    ai: ConfiguredProvider
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
