"""The services of one daemon, made from its settings."""

import contextlib
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

from anyio.abc import TaskGroup

from creonowd.channels import ALL_CHANNELS, CONTRACT, E2E_CHANNELS
from creonowd.clock import make_clock
from creonowd.context.admission import Admission
from creonowd.context.text_tools import Memory
from creonowd.context_files.files import ContextFiles
from creonowd.context_files.lazy_files import built_in_recipes
from creonowd.context_files.retention import maintain
from creonowd.context_files.store import Store
from creonowd.engine.services import (
    Engine,
    InFlight,
    Services,
    Session,
    SourceProvider,
    Trouble,
    Troubles,
)
from creonowd.history.build_result import LastTurns
from creonowd.history.code_law import CodeLaws
from creonowd.history.histories import Histories
from creonowd.providers.configured import ConfiguredProvider, SentPrefixes
from creonowd.retrieval.indexes import Indexes
from creonowd.retrieval.project_index import editor_documents
from creonowd.rpc.connection import Connection
from creonowd.rpc.openrpc import describe
from creonowd.rpc.server import Server
from creonowd.settings import Settings, user_redactor
from creonowd.skills.library import Library
from creonowd.sources.hosts import Hosts
from creonowd.sources.passage_source import Passages
from creonowd.sources.project_files import ProjectSources
from creonowd.sources.recent_runs import DocumentSources
from creonowd.tokens import Tokenizers
from creonowd.workspace.budgets import Budgets
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Projects
from creonowd.workspace.runs import Runs
from creonowd.workspace.watcher import Watcher


@contextlib.asynccontextmanager
async def build(user_data: Path, settings: Settings, tasks: TaskGroup) -> AsyncGenerator[Server]:
    """Make a server whose connections can use every service."""
    server = Server((), settings, make_clock(deterministic=settings.deterministic), tasks)
    async with furnish(server, user_data):
        yield server


@contextlib.asynccontextmanager
async def furnish(server: Server, user_data: Path) -> AsyncGenerator[None]:
    """Give a server every channel and service; what needs an end ends with the block."""
    settings, clock = server.settings, server.clock
    projects = Projects(user_data, clock)
    tokenizers = Tokenizers(Path(settings.tokenizer_tables) if settings.tokenizer_tables else None)
    budgets = Budgets(user_data)
    tree = Tree(clock)
    watcher = Watcher(clock)
    ai = ConfiguredProvider(settings, user_data)
    runs = Runs(user_data)
    redactor = user_redactor(settings, user_data)
    files = ContextFiles(Store(user_data, clock), settings, built_in_recipes(projects), redactor)
    troubles = _troubles(projects, budgets, tokenizers)
    documents = Documents(clock)
    hosts = Hosts(clock)
    indexes = Indexes(user_data, clock, watcher, partial(editor_documents, documents), redactor)
    troubles.watch("sources", lambda: _resting(hosts.resting()))
    troubles.watch("retrieval", lambda: _unindexed(indexes.problems()))
    constraints = Constraints(tree, clock, redactor)
    sources = ProjectSources(tree, constraints, Passages(indexes))
    services = Services(
        settings=settings,
        user_data=user_data,
        clock=clock,
        server=server,
        troubles=troubles,
        redactor=redactor,
        projects=projects,
        tree=tree,
        watcher=watcher,
        constraints=constraints,
        conversations=Chats(clock, redactor),
        tokenizers=tokenizers,
        budgets=budgets,
        documents=documents,
        skills=Library(user_data, clock),
        engine=_engine(settings, sources, DocumentSources(runs), hosts),
        sources=sources,
        ai=ai,
        runs=runs,
        in_flight=InFlight(),
        prefix_reuse=SentPrefixes(),
        files=files,
        histories=Histories(user_data),
        code_laws=CodeLaws(clock),
        last_turns=LastTurns(),
        hosts=hosts,
        indexes=indexes,
    )
    server.describe = lambda: describe(CONTRACT)
    server.open_session = lambda connection: _session(services, connection)
    if settings.warm_up:
        server.tasks.start_soon(tokenizers.warm)
    server.tasks.start_soon(maintain, files)
    async with watcher.running(), indexes.running(), contextlib.aclosing(ai):
        server.add(ALL_CHANNELS + (E2E_CHANNELS if settings.e2e else ()))
        yield


def _engine(settings: Settings, *providers: SourceProvider) -> Engine:
    return Engine(
        providers=list(providers),
        admission=Admission(settings.assemble_running, settings.assemble_waiting),
        memory=Memory(settings.assemble_memory),
    )


def _session(services: Services, connection: Connection) -> Session:
    return Session.of(services, connection)


def _troubles(projects: Projects, budgets: Budgets, tokenizers: Tokenizers) -> Troubles:
    troubles = Troubles()
    troubles.watch("projects", lambda: _set_aside("projects.json", projects.set_aside))
    troubles.watch("budgets", lambda: _budgets_set_aside(budgets.set_aside()))
    troubles.watch("tokenizer", lambda: _fallen_back(tokenizers.problems()))
    return troubles


def _set_aside(name: str, kept: str | None) -> Trouble | None:
    if kept is None:
        return None
    return Trouble(
        reason=f"{name} could not be read and was kept as {kept}",
        remedy="Look into the kept file; create your projects again if they are missing.",
    )


def _budgets_set_aside(kept: dict[str, str]) -> Trouble | None:
    if not kept:
        return None
    return Trouble(
        reason=f"stored budgets could not be read and were kept as {', '.join(kept.values())}",
        remedy="The default budget serves; set the budget again.",
    )


def _fallen_back(problems: dict[str, str]) -> Trouble | None:
    if not problems:
        return None
    return Trouble(
        reason=f"{'; '.join(problems.values())}; bytes are counted instead",
        remedy="Install creonowd again; until then prompts hold less than they could.",
    )


def _resting(sources: dict[str, str]) -> Trouble | None:
    if not sources:
        return None
    named = ", ".join(f"{name} ({reason})" for name, reason in sorted(sources.items()))
    return Trouble(
        reason=f"host sources failed repeatedly and are left alone for a while: {named}",
        remedy="Look into the host that offers them; they are tried again by themselves.",
    )


def _unindexed(problems: dict[str, str]) -> Trouble | None:
    if not problems:
        return None
    named = ", ".join(f"{project} ({error})" for project, error in sorted(problems.items()))
    return Trouble(
        reason=f"passages of these projects cannot be indexed: {named}",
        remedy="Check that user data can be written and has space; it is tried again with each use.",
    )
