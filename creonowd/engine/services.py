"""The services of a daemon, and the session: the services for one connection."""

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import anyio
from anyio import CapacityLimiter

from creonowd.clock import Clock
from creonowd.context.admission import Admission
from creonowd.context.assemble import Concurrency
from creonowd.context.budget import Budget
from creonowd.context.source import Source
from creonowd.context.system_prompt import PrefixMemory
from creonowd.context.text_tools import Memory
from creonowd.context_files.files import ContextFiles
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.memo import Memo
from creonowd.model import Model, Params
from creonowd.providers.configured import ConfiguredProvider, SentPrefixes
from creonowd.redaction import Redactor
from creonowd.retrieval.project_index import Indexes
from creonowd.rpc.connection import Connection
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.skills.library import Library, LibraryEntry
from creonowd.sources.chapters import Chapters
from creonowd.sources.hosts import Hosts
from creonowd.sources.project_files import ProjectSources
from creonowd.sources.shared_reads import ReadRounds, SharedReads
from creonowd.sources.synopsis_source import ChapterSummaries
from creonowd.threads import LoopTurns
from creonowd.tokens import Tokenizers
from creonowd.workspace.budgets import Budgets
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import ProjectFile, Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project, Projects
from creonowd.workspace.runs import Runs
from creonowd.workspace.watcher import Watcher

FILE_READERS = 8
COMPOSERS = 2
RECENT_KEYS = 512


@dataclass(frozen=True)
class Services:
    """What one daemon has, built once in `daemon`."""

    settings: Settings
    user_data: Path
    clock: Clock
    troubles: "Troubles"
    redactor: Redactor
    projects: Projects
    tree: Tree
    watcher: Watcher
    constraints: Constraints
    chats: Chats
    tokenizers: Tokenizers
    budgets: Budgets
    documents: Documents
    skills: Library
    engine: "Engine"
    ai: ConfiguredProvider
    runs: Runs
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
        self.documents = services.documents
        self.skills = services.skills
        self.engine = services.engine
        self.ai = services.ai
        self.runs = services.runs
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

    @property
    def language(self) -> Language:
        """The language that the client gets messages in."""
        return self.connection.language


class InConversation(Params):
    """A conversation of a project; it belongs to the project that used it first."""

    project_id: str
    conversation_id: str


class SourceProvider(Protocol):
    """Has sources for a project."""

    def of(self, project: Project) -> Sequence[Source]:
        """Return the sources of a project for one assembly."""
        ...


class SeenOnce:
    """The keys that were used lately, to log a repeated finding only once."""

    def __init__(self) -> None:
        self._keys: Memo[str, bool] = Memo(RECENT_KEYS)

    def add(self, key: str) -> bool:
        """Add a key, and return whether it is new."""
        is_new = self._keys.peek(key) is None
        self._keys.put(key, value=True)
        return is_new


def _concurrency() -> Concurrency:
    return Concurrency(CapacityLimiter(FILE_READERS), CapacityLimiter(COMPOSERS))


class SkillRead(NamedTuple):
    """A skill, if there is one of that id, and the project file; None if that makes no sense."""

    entry: LibraryEntry | None
    project_file: ProjectFile | None


@dataclass(frozen=True)
class Engine:
    """What all assemblies of one daemon share; `source_providers` are read in this order."""

    source_providers: list[SourceProvider]
    admission: Admission = field(default_factory=Admission)
    memory: Memory = field(default_factory=Memory)
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)
    rounds: ReadRounds = field(default_factory=ReadRounds)
    turns: LoopTurns = field(default_factory=LoopTurns)
    budget_reads: SharedReads[Budget] = field(default_factory=SharedReads[Budget])
    skill_reads: SharedReads[SkillRead] = field(default_factory=SharedReads[SkillRead])
    seen_once: SeenOnce = field(default_factory=SeenOnce)
    concurrency: Concurrency = field(default_factory=_concurrency)

    def sources_of(self, project: Project) -> list[Source]:
        """Return all sources of a project."""
        return [source for provider in self.source_providers for source in provider.of(project)]


class Trouble(Model):
    """Why a part does not work as it should, and how to mend it."""

    reason: Wording
    remedy: Wording


class Troubles:
    """The checks of the parts that can be degraded."""

    def __init__(self, checks: Mapping[str, Callable[[], Trouble | None]]) -> None:
        self._checks = checks

    def current(self) -> dict[str, Trouble]:
        """Run every check, and return what is degraded by part."""
        found = ((part, check()) for part, check in self._checks.items())
        return {part: trouble for part, trouble in found if trouble is not None}


class _Run(NamedTuple):
    owner: str
    scope: anyio.CancelScope


class SkillRuns:
    """Skill runs by their id, each with the connection that started it."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    @contextlib.contextmanager
    def register(self, run_id: str, owner: str) -> Generator[None]:
        """Register a run for the block; cancelled, it fails with CANCELED.

        CONFLICT if the id is in use.
        """
        if run_id in self._runs:
            raise DaemonError(
                ErrorCode.CONFLICT, "A run with this runId is under way; use another.", runId=run_id
            )
        with anyio.CancelScope() as scope:
            self._runs[run_id] = _Run(owner, scope)
            try:
                yield
            finally:
                del self._runs[run_id]
        # Also if it finished meanwhile: after a successful cancel nobody must get a result.
        if scope.cancel_called:
            raise DaemonError(ErrorCode.CANCELED, "The run was cancelled.", runId=run_id)

    def cancel(self, run_id: str, asker: str, *, any_run: bool) -> bool:
        """Cancel a run and its upstream call; False if there is none that the asker may cancel."""
        run = self._runs.get(run_id)
        if run is None or not (any_run or run.owner == asker):
            return False
        run.scope.cancel()
        return True
