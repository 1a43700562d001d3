"""`ai:*` — run a skill, cancel, accept or discard a run, read and change which model answers."""

from enum import StrEnum
from typing import Annotated, NamedTuple

import structlog
from msgspec import UNSET, Meta, UnsetType, field

from creonowd.context.budget import BudgetProfile, fit_to_model
from creonowd.context.notice import Notice, ShownWarnings, show
from creonowd.engine.assembly import ShortText
from creonowd.engine.services import Session
from creonowd.engine.skill_run import STREAM, RunId, StreamEvent, excerpt, run_skill
from creonowd.model import Model, Params, Result
from creonowd.providers.configured import Readiness, public_url
from creonowd.providers.local_server import ServerKind, ServerReport
from creonowd.providers.provider import Call, Purpose
from creonowd.rpc.channel import Channel, Deadline, Notification, Role
from creonowd.settings import Backend, BackendName
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.runs import AcceptedText, DocumentRun, RunStatus, RunSummary

MOST_LISTED = 500
PROBE_TOKENS = 256

log = structlog.stdlib.get_logger(__name__)


class CancelRun(Params):
    """The run to stop."""

    run_id: Annotated[str, Meta(min_length=1)]


class CancelledRun(Result):
    """Whether there was such a run to stop; its own call then answers CANCELED."""

    run_id: str
    canceled: bool


class GetConfig(Params):
    """Of which back end; without one, of that which answers now.

    With a project, its budget profile decides the model where the settings do not.
    """

    project_id: str | None = None
    backend: ShortText | None = None


class Judges(StrEnum):
    """Who would judge the next output.

    `model` is rules and a model. `rules` alone leave unchecked what is no ban. `nobody` if
    judging is off, if no run can be made, or if the output is only an echo of the prompt.
    """

    MODEL = "model"
    RULES = "rules"
    NOBODY = "nobody"


class BackendInfo(Model):
    """A back end that can be chosen by its name, without its key and its file."""

    name: str
    provider: str
    model: str
    base_url: str | UnsetType = UNSET
    key_variable: str | UnsetType = UNSET


class AiConfig(Result):
    """The back end that answers runs, without its key, and those that could.

    `backend` is its name: `default` is the one that the settings describe by `aiProvider` and its
    kin. `ready` says whether a run can be made now, `problem` what is missing if not. `keyOrigin`
    is `environment` or `file`. `judge` is the setting, `judgedBy` who can really judge.

    `contextWindowTokens` is the window that prompts are made for, `totalBudgetTokens` what the
    prompt gets of it and `outputReserveTokens` what the answer gets. `server` is what a local
    server said of its own window, as far as it was asked; `warnings` has CONTEXT_WINDOW_REDUCED
    if that is smaller than the budget's.
    """

    backend: str
    backends: list[BackendInfo]
    context_window_tokens: int
    total_budget_tokens: int
    output_reserve_tokens: int
    warnings: list[str]
    notices: list[Notice]
    provider: str
    model: str
    ready: bool
    judge: str
    judged_by: Judges
    prompt_cache: bool
    base_url: str | UnsetType = UNSET
    key_origin: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET
    server: "ServerInfo | UnsetType" = UNSET


class ServerInfo(Model):
    """What a local server says of a model.

    `windowTokens` is its window there; with `assumed` it is what the server usually gives, since
    the model is not loaded. `largestWindowTokens` is what the model could have. `kind` is the
    program: `ollama`, `lmstudio`, `llama.cpp` or `vllm`.
    """

    kind: ServerKind
    assumed: bool
    window_tokens: int | UnsetType = UNSET
    largest_window_tokens: int | UnsetType = UNSET
    thinks: bool | UnsetType = UNSET


class SetConfig(Params):
    """Which back ends to add, replace or (null) remove, and which one answers from now on.

    Keys do not go this way: a back end names the environment variable or the file that has its
    key. `use` is the name of a back end, or `default`. What is in use stays so for the runs that
    are under way.
    """

    backends: dict[BackendName, Backend | None] = field(default_factory=dict)
    use: ShortText | None = None


class ProbeConfig(Params):
    """Which back end to look at; with `ask` its model is asked for one word, which may cost."""

    project_id: str | None = None
    backend: ShortText | None = None
    model: ShortText | None = None
    ask: bool = False


class ProbeResult(Result):
    """What was found: the server's own word, if it is one that tells, and the answer, if asked.

    `contextWindowTokens` is the window that prompts are made for from now on. `answered` is there
    if the model was asked; it is false if it only thought.
    """

    backend: str
    provider: str
    model: str
    context_window_tokens: int
    total_budget_tokens: int
    output_reserve_tokens: int
    warnings: list[str]
    notices: list[Notice]
    server: ServerInfo | UnsetType = UNSET
    answered: bool | UnsetType = UNSET


class AcceptRun(Params):
    """The run whose output the author took over.

    `text` is what was really taken over, if that is not the whole output: a part of it, or what
    the author made of it.
    """

    project_id: str
    run_id: RunId
    text: Annotated[str, Meta(min_length=1)] | None = None


class DiscardRun(Params):
    """The run whose output the author does not want."""

    project_id: str
    run_id: RunId


class ListRuns(Params):
    """Whose runs to list: of one document, or of all; of one status, or of any."""

    project_id: str
    document_id: DocumentId | None = None
    status: RunStatus | None = None
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 50


class RunInfo(Model):
    """A run, and what the author decided on it.

    A run is `pending` until it is accepted or discarded; only accepted ones are remembered in
    prompts (`recent_summary`). `decidedAtMs` is when that was. `excerpt` is how the output begins
    and ends or, if another text was accepted, how that does; `characters` is its length in code
    points. `skillId` is null for a run without a skill.
    """

    run_id: str
    document_id: str
    skill_id: str | None
    status: RunStatus
    at_ms: int
    provider: str
    model: str
    prompt_hash: str
    stable_prefix_hash: str
    token_count: int
    verdict: str
    skill_name: str
    instruction: str
    excerpt: str
    characters: int
    decided_at_ms: int | UnsetType = UNSET


class DecidedRun(Result):
    """The run as it is now."""

    run: RunInfo


class RunList(Result):
    """Runs, the latest first. Of each document the last 10 accepted and 20 others are kept."""

    runs: list[RunInfo]


def cancel_run(session: Session, params: CancelRun) -> CancelledRun:
    """Stop a run at once, the call to the provider included."""
    owner = session.peer.role is Role.OWNER
    canceled = session.in_flight.cancel(params.run_id, session.peer.id, any_run=owner)
    return CancelledRun(run_id=params.run_id, canceled=canceled)


async def get_config(session: Session, params: GetConfig) -> AiConfig:
    """Return which provider and model answer runs, and whether they can."""
    name = session.ai.chosen if params.backend is None else params.backend
    backend = session.ai.get(name)
    fitted = await _fitted(session, params.project_id, name, backend.model)
    readiness = await session.ai.readiness(name)
    mode = session.settings.ai_judge
    return AiConfig(
        backend=name,
        backends=[_backend_info(one, spec) for one, spec in session.ai.all().items()],
        context_window_tokens=fitted.profile.context_window_tokens,
        total_budget_tokens=fitted.profile.total_budget_tokens,
        output_reserve_tokens=fitted.profile.output_reserve_tokens,
        warnings=fitted.shown.warnings,
        notices=fitted.shown.notices,
        provider=backend.provider,
        model=fitted.model,
        ready=readiness.ready,
        judge=mode,
        judged_by=_judges(mode, readiness),
        prompt_cache=backend.prompt_cache,
        base_url=public_url(backend.base_url) or UNSET,
        key_origin=readiness.key_origin or UNSET,
        problem=readiness.problem or UNSET,
        server=fitted.server,
    )


class _Fitted(NamedTuple):
    """The budget as it is for one model."""

    model: str
    profile: BudgetProfile
    shown: ShownWarnings
    server: ServerInfo | UnsetType


async def _fitted(session: Session, project_id: str | None, backend: str, model: str) -> _Fitted:
    if project_id is not None:
        await session.projects.find(project_id)
    stored = await session.budgets.effective(project_id)
    model = model or stored.profile.model
    limits = session.ai.limits(backend, model)
    budget = fit_to_model(
        stored,
        window=limits.window,
        thinks=limits.thinks,
        output_tokens=session.ai.get(backend).max_output_tokens,
        output_limit=limits.output_limit,
    )
    server = UNSET if limits.server is None else _server_info(limits.server)
    return _Fitted(
        model, budget.profile, show(budget.warnings, session.connection.language), server
    )


def _server_info(report: ServerReport) -> ServerInfo:
    return ServerInfo(
        kind=report.kind,
        assumed=report.assumed,
        window_tokens=report.window or UNSET,
        largest_window_tokens=report.largest or UNSET,
        thinks=UNSET if report.thinks is None else report.thinks,
    )


def _backend_info(name: str, backend: Backend) -> BackendInfo:
    return BackendInfo(
        name=name,
        provider=backend.provider,
        model=backend.model,
        base_url=public_url(backend.base_url) or UNSET,
        key_variable=backend.key_variable or UNSET,
    )


async def set_config(session: Session, params: SetConfig) -> AiConfig:
    """Add, replace or remove back ends and choose one, at once and for the next start."""
    await session.ai.change(params.backends, params.use)
    log.info("ai_config_changed", backends=sorted(params.backends), used=session.ai.chosen)
    return await get_config(session, GetConfig())


async def probe_config(session: Session, params: ProbeConfig) -> ProbeResult:
    """Ask a server for its real window and, if wished, its model for an answer."""
    name = session.ai.chosen if params.backend is None else params.backend
    backend = session.ai.get(name)
    before = await _fitted(session, params.project_id, name, params.model or backend.model)
    answered: bool | UnsetType = UNSET
    async with session.ai.borrow(name) as provider:
        await session.ai.ask_server(name, before.model)
        if params.ask:
            call = Call(
                model=before.model,
                system=_PROBE.system,
                user=_PROBE.user,
                max_output_tokens=PROBE_TOKENS,
                purpose=Purpose.PROBE,
            )
            answer = await provider.answer(call, lambda _: None)
            answered = bool(answer.text.strip())
            await session.ai.ask_server(name, before.model)
    fitted = await _fitted(session, params.project_id, name, before.model)
    return ProbeResult(
        backend=name,
        provider=backend.provider,
        model=fitted.model,
        context_window_tokens=fitted.profile.context_window_tokens,
        total_budget_tokens=fitted.profile.total_budget_tokens,
        output_reserve_tokens=fitted.profile.output_reserve_tokens,
        warnings=fitted.shown.warnings,
        notices=fitted.shown.notices,
        server=fitted.server,
        answered=answered,
    )


class _Probe(NamedTuple):
    system: str
    user: str


_PROBE = _Probe("Answer with one word.", "Are you there?")


def _judges(mode: str, readiness: Readiness) -> Judges:
    if mode == "off" or readiness.echoes or not readiness.ready:
        return Judges.NOBODY
    return Judges.MODEL if mode == "model" and readiness.judges else Judges.RULES


async def accept_run(session: Session, params: AcceptRun) -> DecidedRun:
    """Accept a run, so that later prompts remember it; to accept it again changes nothing.

    A discarded run can still be accepted.
    """
    return await _decide(session, params, RunStatus.ACCEPTED, params.text)


async def discard_run(session: Session, params: DiscardRun) -> DecidedRun:
    """Discard a run, so that no prompt remembers it; to discard it again changes nothing.

    An accepted run can still be discarded: the author may undo.
    """
    return await _decide(session, params, RunStatus.DISCARDED)


async def list_runs(session: Session, params: ListRuns) -> RunList:
    """List the runs that can be accepted or discarded, the latest first."""
    project = await session.projects.find(params.project_id)
    if params.document_id is None:
        found = await session.runs.of_project(project.project_id)
    else:
        runs = await session.runs.recent(project.project_id, params.document_id)
        found = [DocumentRun(params.document_id, run) for run in runs]
    wanted = [each for each in found if params.status in {None, each.run.status}]
    wanted.sort(key=lambda each: (each.run.at_ms, each.document_id, each.run.number), reverse=True)
    return RunList(runs=[_run_info(session, one) for one in wanted[: params.limit]])


async def _decide(
    session: Session,
    params: AcceptRun | DiscardRun,
    status: RunStatus,
    text: str | None = None,
) -> DecidedRun:
    project = await session.projects.find(params.project_id)
    passage = None
    if text is not None:
        passage = AcceptedText(session.redactor.redact(excerpt(text)).text, len(text))
    decided = await session.runs.decide(
        project.project_id, params.run_id, status, session.clock.now_ms(), passage
    )
    log.info("ai_run_decided", run_id=params.run_id, status=status)
    return DecidedRun(run=_run_info(session, decided))


def _run_info(session: Session, found: DocumentRun) -> RunInfo:
    run, summary = found.run, found.run.summary
    brief = summary if isinstance(summary, RunSummary) else RunSummary(excerpt=summary)
    return RunInfo(
        run_id=run.run_id,
        document_id=session.redactor.redact_name(found.document_id),
        skill_id=run.skill_id or None,
        status=run.status,
        at_ms=run.at_ms,
        provider=run.provider,
        model=run.model,
        prompt_hash=run.prompt_hash,
        stable_prefix_hash=run.stable_prefix_hash,
        token_count=run.token_count,
        verdict=run.verdict,
        skill_name=brief.skill_name,
        instruction=brief.instruction,
        excerpt=brief.excerpt,
        characters=brief.characters,
        decided_at_ms=UNSET if run.decided_at_ms is None else run.decided_at_ms,
    )


CHANNELS = (
    Channel("ai:skill:run", run_skill, deadline=Deadline.SKILL),
    Channel("ai:skill:cancel", cancel_run),
    Channel("ai:run:accept", accept_run),
    Channel("ai:run:discard", discard_run),
    Channel("ai:run:list", list_runs),
    Channel("ai:config:get", get_config),
    Channel("ai:config:set", set_config, role=Role.OWNER),
    Channel("ai:config:probe", probe_config, role=Role.OWNER, deadline=Deadline.SKILL),
)
NOTIFICATIONS = (Notification(STREAM, StreamEvent),)
