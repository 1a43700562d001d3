"""The services of one daemon, made from its settings, and the server around them."""

import contextlib
import os
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path

import structlog
from anyio import to_thread
from anyio.abc import TaskGroup

from creonowd.channels import ALL_CHANNELS, E2E_CHANNELS
from creonowd.clock import Clock, make_clock
from creonowd.context.text_tools import Memory
from creonowd.context_files.files import ContextFiles, Store
from creonowd.context_files.lazy_files import built_in_recipes
from creonowd.context_files.retention import maintain
from creonowd.engine.health import Troubles
from creonowd.engine.services import Admission, Engine, ReadCache, Services, Session, ViewerPages
from creonowd.engine.skill_run import SkillRuns
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.history.round_archive import add_recipes
from creonowd.providers.configured import Backends, SentPrefixes
from creonowd.retrieval.document_list import is_excluded
from creonowd.retrieval.project_index import Indexes, editor_documents
from creonowd.rpc.channel import Channel
from creonowd.rpc.connection import Connection
from creonowd.rpc.server import Server
from creonowd.settings import Settings, user_redactor
from creonowd.skills.library import Library
from creonowd.sources.chapter_summaries import ExtractStore, SummaryStore
from creonowd.sources.document import DocumentSources
from creonowd.sources.hosts import Hosts
from creonowd.sources.passage_source import PassageSearch
from creonowd.sources.project_files import ProjectSources
from creonowd.sources.synopsis import Chapters, ChapterSummaries
from creonowd.storage import stored_files
from creonowd.threads import BatchedReads
from creonowd.tokens import KnownTables, Tokenizers
from creonowd.tokens.tables import list_tables
from creonowd.workspace.budgets import Budgets, Corrections
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.file_edits import FileEdits
from creonowd.workspace.projects import Projects, sweep_user_data
from creonowd.workspace.runs import Runs
from creonowd.workspace.usage import UsageLedger
from creonowd.workspace.watcher import Watcher

# Read when this module is loaded, which a daemon does in a thread.
DOCUMENT = (Path(__file__).parents[1] / "openrpc.json").read_bytes()

log = structlog.get_logger(__name__)


@contextlib.asynccontextmanager
async def build(user_data: Path, settings: Settings, tasks: TaskGroup) -> AsyncGenerator[Server]:
    """Make a server with every channel and service, for tests and for embedding."""
    clock = make_clock(deterministic=settings.deterministic)
    async with build_services(user_data, settings, clock, tasks) as services:
        yield Server(channels(settings), settings, clock, tasks, ServicesHost(services))


def channels(settings: Settings) -> tuple[Channel, ...]:
    """Return every channel that these settings allow."""
    return ALL_CHANNELS + (E2E_CHANNELS if settings.e2e else ())


class ServicesHost:
    """A host with all services, in a process that is not its own: without a parent."""

    def __init__(self, services: Services) -> None:
        self.pid = os.getpid()
        self.is_loading = False
        self._services = services
        self.redactor = services.redactor
        self.document = DOCUMENT

    def session(self, connection: Connection) -> Session:
        """Return the services for a connection."""
        return Session(self._services, connection)

    def when_loaded(self, callback: Callable[[], None]) -> None:
        """Run `callback` at once."""
        callback()

    def watch_parent(self, pid: int) -> None:
        """Do nothing."""


class NoPages:
    """The viewer of a daemon without a process of its own, which serves none."""

    async def address(self) -> str:
        """Fail with UNSUPPORTED."""
        raise DaemonError(ErrorCode.UNSUPPORTED, "This daemon serves no pages.")

    async def save_tokens(self) -> None:
        """Do nothing."""


@contextlib.asynccontextmanager
async def build_services(
    user_data: Path,
    settings: Settings,
    clock: Clock,
    tasks: TaskGroup,
    viewer: ViewerPages | None = None,
) -> AsyncGenerator[Services]:
    """Make every service; those that need an end are closed with the block."""
    projects = Projects(user_data, clock)
    tables = Path(settings.tokenizer_tables) if settings.tokenizer_tables else None
    known = KnownTables(await to_thread.run_sync(list_tables, user_data))
    tokenizers = Tokenizers(tables, clock.monotonic, known)
    budgets = Budgets(user_data, known)
    tree = Tree(clock)
    watcher = Watcher(clock)
    redactor = user_redactor(settings, user_data)
    ai = Backends(settings, user_data, clock.monotonic, redactor.also_hide)
    runs = Runs(user_data)
    histories = Histories(user_data)
    recipes = built_in_recipes(projects, is_excluded)
    add_recipes(recipes, histories)
    files = ContextFiles(Store(user_data, clock), settings, recipes, redactor)
    documents = Documents(clock, redactor, is_excluded=is_excluded)
    hosts = Hosts(clock)
    indexes = Indexes(
        user_data,
        clock,
        watcher,
        partial(editor_documents, documents),
        redactor,
        grace_seconds=settings.index_grace_seconds,
    )
    edits = FileEdits(clock)
    constraints = Constraints(tree, clock, redactor, edits)
    extracts = ExtractStore(user_data, redactor)
    summaries = ChapterSummaries(SummaryStore(tree, clock), documents, extracts)
    sources = ProjectSources(tree, constraints, PassageSearch(indexes), summaries)
    read_cache = ReadCache(clock, user_data) if settings.quick_checks else None
    services = Services(
        settings=settings,
        user_data=user_data,
        clock=clock,
        troubles=Troubles(
            projects=projects,
            budgets=budgets,
            tokenizers=tokenizers,
            hosts=hosts,
            indexes=indexes,
            watcher=watcher,
            redactor=redactor,
        ),
        redactor=redactor,
        projects=projects,
        tree=tree,
        watcher=watcher,
        constraints=constraints,
        chats=Chats(clock, redactor),
        tokenizers=tokenizers,
        budgets=budgets,
        corrections=await to_thread.run_sync(Corrections, user_data),
        documents=documents,
        edits=edits,
        skills=Library(user_data, clock, redactor),
        engine=Engine(
            source_providers=[sources, DocumentSources(runs), hosts],
            admission=Admission(settings.assemble_running, settings.assemble_waiting),
            memory=Memory(settings.assemble_memory),
            reads=BatchedReads(None if read_cache is None else read_cache.begin),
            read_cache=read_cache,
        ),
        sources=sources,
        chapters=Chapters(documents, clock),
        summaries=summaries,
        extracts=extracts,
        ai=ai,
        runs=runs,
        usage=UsageLedger(user_data),
        in_flight=SkillRuns(),
        sent_prefixes=SentPrefixes(),
        files=files,
        histories=histories,
        code_laws=CodeLaws(clock),
        last_turns=LastTurns(),
        hosts=hosts,
        indexes=indexes,
        viewer=viewer or NoPages(),
    )
    if settings.warm_up:
        tasks.start_soon(tokenizers.warm)
    tasks.start_soon(maintain, files)
    tasks.start_soon(extracts.run)
    await _sweep(files, user_data, clock.now_ms())
    async with watcher.run(), indexes.run(), contextlib.aclosing(ai):
        try:
            yield services
        finally:
            if read_cache is not None:
                read_cache.close()


async def _sweep(files: ContextFiles, user_data: Path, now_ms: int) -> None:
    """Remove or finish what a killed daemon left; flush the names of user data and its folders."""
    try:
        for place in (user_data, *user_data.parents[:2]):
            await files.run(stored_files.make_folder, place)
        await files.run(sweep_user_data, user_data, now_ms)
        await files.run(files.store.recover)
    except (DaemonError, OSError) as error:
        log.warning("user_data_sweep_failed", reason=type(error).__name__)
