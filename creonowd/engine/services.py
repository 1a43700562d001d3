"""The services of a daemon, and the session: the services for one connection.

`Engine` is what all assemblies share: their memory, and the queue in front of them. Of one document
only some run and wait at once; waiting is fair and can be cancelled, and what runs is never
disturbed. `ReadCache` is what was read of projects, for as long as Linux reports no change of it.
Use cases that ask a model do so through `MeteredProvider`.
"""

import os
from collections import deque
from collections.abc import AsyncGenerator, Hashable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import anyio
from anyio import CapacityLimiter
from msgspec import UNSET

from creonowd.clock import Clock
from creonowd.context.assemble import Concurrency
from creonowd.context.budget import Budget
from creonowd.context.numerals import chapter_of, name_key, whole_number
from creonowd.context.result import AssembleResult
from creonowd.context.source import Source
from creonowd.context.stable_prefix import PrefixMemory
from creonowd.context.text_tools import Memory
from creonowd.context_files.files import ContextFiles
from creonowd.engine.health import Troubles
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.memo import Memo
from creonowd.model import Params
from creonowd.providers.configured import Backends, SentPrefixes
from creonowd.providers.provider import Answer, Call, OnText, Provider, Purpose
from creonowd.redaction import Redactor
from creonowd.retrieval.document_list import IGNORE_FILES
from creonowd.retrieval.project_index import Indexes
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection, Peer
from creonowd.settings import Settings
from creonowd.skills.library import FOLDER as SKILLS
from creonowd.skills.library import Library, LibraryEntry
from creonowd.sources.chapter_summaries import ExtractStore
from creonowd.sources.hosts import Hosts
from creonowd.sources.project_files import ProjectSources
from creonowd.sources.synopsis import Chapters, ChapterSummaries
from creonowd.storage.safe_folder import problem_with_name
from creonowd.storage.unchanged_files import MOST_ROOTS, FolderRevisions, WatchedFolder
from creonowd.threads import (
    TASKS_PER_TURN,
    BatchCache,
    BatchedReads,
    CachedValues,
    CacheOnly,
    LoopTurns,
    SharedReads,
)
from creonowd.tokens import Tokenizers
from creonowd.workspace.budgets import FOLDER as BUDGETS
from creonowd.workspace.budgets import Budgets, Corrections
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import (
    OUTLINE_SUFFIXES,
    TREE,
    CreonowFolder,
    ProjectFile,
    Tree,
    is_document,
    is_relevant_folder,
    suffix_of,
)
from creonowd.workspace.documents import Documents
from creonowd.workspace.file_edits import FileEdits
from creonowd.workspace.projects import Project, Projects
from creonowd.workspace.runs import Runs
from creonowd.workspace.usage import UsageLedger, UsageRecord
from creonowd.workspace.watcher import Watcher

FILE_READERS = 8
COMPOSERS = 2
RECENT_KEYS = 512
KEPT_ANSWERS_BYTES = 32_000_000
RUNNING = 4
WAITING = 16
EXPECTED_WAIT_MS = 50


# What is remembered of names, whichever project they are from; of 20 000 names 6 MB.
_NAME_CACHES = (is_document, problem_with_name, name_key, chapter_of, whole_number)


class SourceProvider(Protocol):
    """Has sources for a project."""

    def of(self, project: Project) -> Sequence[Source]:
        """Return the sources of a project for one assembly."""
        ...


class Admission:
    """One queue per key; keys do not wait for each other."""

    def __init__(self, running: int = RUNNING, waiting: int = WAITING) -> None:
        self._running = running
        self._waiting = waiting
        self._queues: dict[Hashable, _KeyQueue] = {}

    @asynccontextmanager
    async def enter(self, key: Hashable) -> AsyncGenerator[None]:
        """Wait for a place and keep it for the block; CONTEXT_BACKPRESSURE if too many wait."""
        queue = self._queues.setdefault(key, _KeyQueue())
        await self._take_slot(queue)
        try:
            yield
        finally:
            queue.free_slot()
            if not queue.running:
                self._queues.pop(key, None)

    def load(self, key: Hashable) -> tuple[int, int]:
        """Return how many run and how many wait."""
        queue = self._queues.get(key)
        return (0, 0) if queue is None else (queue.running, len(queue.waiting))

    async def _take_slot(self, queue: "_KeyQueue") -> None:
        if queue.running < self._running:
            queue.running += 1
            return
        if len(queue.waiting) >= self._waiting:
            raise self._backpressure(queue)
        turn = anyio.Event()
        queue.waiting.append(turn)
        try:
            await turn.wait()
        except BaseException:
            if turn.is_set():
                queue.free_slot()
            else:
                queue.waiting.remove(turn)
            raise

    def _backpressure(self, queue: "_KeyQueue") -> DaemonError:
        turns = len(queue.waiting) // self._running + 1
        return DaemonError(
            ErrorCode.CONTEXT_BACKPRESSURE,
            retryAfterMs=turns * EXPECTED_WAIT_MS,
            running=queue.running,
            waiting=len(queue.waiting),
        )


class _KeyQueue:
    """How many run, and an event for each that waits, the oldest first."""

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[anyio.Event] = deque()

    def free_slot(self) -> None:
        """Hand a slot to whoever has waited longest, so that nobody can take it in between."""
        if self.waiting:
            self.waiting.popleft().set()
        else:
            self.running -= 1


class SeenOnce:
    """The keys that were used lately, to log a repeated finding only once."""

    def __init__(self) -> None:
        self._keys: Memo[str, bool] = Memo(RECENT_KEYS)

    def add(self, key: str) -> bool:
        """Add a key, and return whether it is new."""
        is_new = not self.has(key)
        self._keys.put(key, value=True)
        return is_new

    def has(self, key: str) -> bool:
        """Return whether a key was added lately."""
        return self._keys.peek(key) is not None


class SkillRead(NamedTuple):
    """A skill, if there is one of that id, and the project file; None if that makes no sense."""

    entry: LibraryEntry | None
    project_file: ProjectFile | None


def _concurrency() -> Concurrency:
    return Concurrency(CapacityLimiter(FILE_READERS), CapacityLimiter(COMPOSERS))


def _answers() -> Memo[Hashable, Any]:
    return Memo(KEPT_ANSWERS_BYTES, lambda _key, kept: kept.weight)


class ReadCache:
    """What batches read of the projects used last, and of user data, while nothing changes there."""

    def __init__(self, clock: Clock, user_data: Path) -> None:
        self._revisions = FolderRevisions(clock)
        user_folder = Path(os.path.realpath(user_data))
        self._shared = WatchedFolder(user_folder, _enters_user_data, _reads_user_data)
        self._kept: Memo[Path, _ProjectCache] = Memo(2 * MOST_ROOTS)

    def peek(self, root: Path) -> CacheOnly | None:
        """Return what was read if nothing has changed by now; uses no disk."""
        kept = self._kept.peek(root)
        if kept is None:
            return None
        now = tuple(map(self._revisions.peek, self._places(root)))
        return CacheOnly(kept.values) if now == kept.revisions else None

    def begin(self, root: Path) -> BatchCache:
        """Return the cache for a batch that begins now; blocks its thread."""
        revisions = tuple(map(self._revisions.read, self._places(root)))
        if None in revisions:
            self._kept.forget(root)
            return BatchCache()
        kept = self._kept.peek(root)
        if kept is None or kept.revisions != revisions:
            kept = _ProjectCache(revisions, CachedValues())
            self._kept.put(root, kept)
        return BatchCache(kept.values)

    def forget(self, root: Path) -> None:
        """Drop what was read of a project, and watch it no more."""
        self._kept.forget(root)
        self._revisions.forget(root)
        if not len(self._kept):
            self._revisions.forget(self._shared.root)

    def close(self) -> None:
        """Watch nothing any more."""
        self._revisions.close()

    def _places(self, root: Path) -> tuple[WatchedFolder, WatchedFolder]:
        return WatchedFolder(root, _enters, _reads), self._shared


class _ProjectCache(NamedTuple):
    revisions: tuple[int | None, ...]
    values: CachedValues


def _enters(folder: str, name: str) -> bool:
    """Return whether an assembly may read what is in the folder `name` of a project's `folder`."""
    if folder == TREE:
        return name in _FOLDERS_OF_TREE
    if folder == f"{TREE}/cache":
        return name == "summaries"
    if folder.startswith(f"{TREE}/"):
        return not name.startswith(".")
    return is_relevant_folder(folder, name)


def _reads(folder: str, name: str) -> bool:
    """Return whether an assembly may read the file `name` in a project's `folder`."""
    if folder.startswith(TREE) or name == TREE:
        return True
    return suffix_of(name) in OUTLINE_SUFFIXES or name.lower() in IGNORE_FILES


def _enters_user_data(folder: str, name: str) -> bool:
    return not name.startswith(".") if folder else name in _READ_FOR_ALL


def _reads_user_data(folder: str, name: str) -> bool:
    return bool(folder) or name in _READ_FOR_ALL


# What an assembly reads of a project's tree and of user data.
_FOLDERS_OF_TREE = {scope.partition("/")[0] for scope in CreonowFolder} | {"skills"}
_READ_FOR_ALL = {BUDGETS, SKILLS}


@dataclass(frozen=True)
class Engine:
    """What all assemblies of one daemon share; `source_providers` are read in this order."""

    source_providers: list[SourceProvider]
    admission: Admission = field(default_factory=Admission)
    memory: Memory = field(default_factory=Memory)
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)
    reads: BatchedReads = field(default_factory=BatchedReads)
    read_cache: ReadCache | None = None
    turns: LoopTurns = field(default_factory=lambda: LoopTurns(TASKS_PER_TURN))
    budget_reads: SharedReads[Budget] = field(default_factory=SharedReads[Budget])
    skill_reads: SharedReads[SkillRead] = field(default_factory=SharedReads[SkillRead])
    seen_once: SeenOnce = field(default_factory=SeenOnce)
    answers: Memo[Hashable, Any] = field(default_factory=_answers)
    concurrency: Concurrency = field(default_factory=_concurrency)

    def cached_reads(self, project: Project) -> CacheOnly | None:
        """Return what was read of a project before, if nothing has changed there by now."""
        return None if self.read_cache is None else self.read_cache.peek(project.root)

    def sources_of(self, project: Project) -> list[Source]:
        """Return all sources of a project."""
        return [source for provider in self.source_providers for source in provider.of(project)]


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
    extracts: ExtractStore
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
        self.extracts = services.extracts
        self.viewer = services.viewer


def forget_names() -> None:
    """Drop what is remembered of names, since some were of a project that was removed."""
    for cache in _NAME_CACHES:
        cache.cache_clear()


def may_inspect(session: Session) -> bool:
    """Return whether a connection may look into prompts: an owner that debugs, or has a page's token."""
    owner = session.peer.role is Role.OWNER
    return owner and (session.settings.debug or session.connection.may_inspect)


class InConversation(Params):
    """A conversation of a project; it belongs to the project that used it first."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation_id: str
    """The conversation's id, chosen by the client: 1 to 64 of A–Z, a–z, 0–9, `_` and `-`."""


class MeteredProvider:
    """A provider whose calls are recorded as those of a project, and of a skill if there is one.

    `prompt` is the assembly of calls that write, and says whether their prefix had changed. A call
    without counts is not recorded: one that failed or was cancelled, or that asked no model.
    """

    def __init__(
        self,
        provider: Provider,
        session: Session,
        project_id: str,
        skill_id: str = "",
        prompt: AssembleResult | None = None,
    ) -> None:
        self._provider = provider
        self._session = session
        self._project_id = project_id
        self._skill_id = skill_id
        self._prompt = prompt

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return self._provider.name

    @property
    def judges(self) -> bool:
        """Whether it can be asked for a verdict."""
        return self._provider.judges

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Ask the model, and record what that took."""
        answer = await self._provider.answer(call, on_text)
        if not answer.stands_in:
            await self._session.usage.record(self._record(call, answer))
        return answer

    async def close(self) -> None:
        """Close nothing: the provider is not ours."""

    def _record(self, call: Call, answer: Answer) -> UsageRecord:
        usage = answer.usage
        changed_by, lost = "", 0
        if call.purpose is Purpose.WRITE and usage is not None:
            changed_by, lost = self._prefix_loss(usage.cache_read_tokens)
        return UsageRecord(
            at_ms=self._session.clock.now_ms(),
            project_id=self._project_id,
            skill_id=self._skill_id,
            provider=self.name,
            model=call.model,
            purpose=call.purpose,
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=0 if usage is None else usage.output_tokens,
            cache_read_tokens=0 if usage is None else usage.cache_read_tokens,
            cache_write_tokens=0 if usage is None else usage.cache_write_tokens,
            changed_by=changed_by,
            lost_tokens=lost,
        )

    def _prefix_loss(self, read: int) -> tuple[str, int]:
        """Return what changed the prefix, and how many of its tokens the cache could have had."""
        prompt = self._prompt
        if prompt is None or prompt.prefix_change is UNSET:
            return "", 0
        cacheable = [
            p.tokens
            for p in prompt.cache_break_points
            if p.hash == prompt.stable_prefix_hash and p.reaches_minimum
        ]
        return prompt.prefix_change.source_ref, max(0, max(cacheable, default=0) - read)
