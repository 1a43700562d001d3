"""`ai:*` — run a skill, cancel, accept or discard a run, choose which model answers, see what calls cost."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, NamedTuple

import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType, field, structs

from creonowd.context.budget import BudgetProfile, fit_to_model
from creonowd.context.fragment import Notice, ShownWarnings, show
from creonowd.engine.assembly import ASSEMBLY_ERRORS, ShortText
from creonowd.engine.services import Session
from creonowd.engine.skill_run import STREAM, RunId, StreamEvent, run_excerpt, run_skill
from creonowd.errors import ErrorCode
from creonowd.model import Model, Params, Result
from creonowd.providers.configured import Readiness, public_url
from creonowd.providers.local_server import ServerKind, ServerReport
from creonowd.providers.provider import AI_ERRORS, Call, Purpose
from creonowd.redaction import Redactor
from creonowd.rpc.channel import Channel, Deadline, Notification, Role
from creonowd.settings import Backend, BackendName
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.runs import AcceptedText, DocumentRun, RunStatus, RunSummary
from creonowd.workspace.usage import (
    UsageRecord,
    UsageSums,
    add_up,
    day_of,
    group,
    lost_by_source,
    read_prices,
)

MOST_LISTED = 500
PROBE_TOKENS = 256
MOST_LOST = 50
LATEST_MS = 253_402_300_799_999
LARGEST_UTC_OFFSET = 14 * 60

Milliseconds = Annotated[int, Meta(ge=0, le=LATEST_MS)]

log = structlog.stdlib.get_logger(__name__)


class CancelRun(Params):
    """The run to stop."""

    run_id: Annotated[str, Meta(min_length=1)]
    """The `runId` of the run."""


class CancelledRun(Result):
    """Whether there was such a run to stop; its own call then answers CANCELED."""

    run_id: str
    """The run that was asked about."""
    canceled: bool
    """Whether there was such a run to stop; its own call then answers CANCELED."""


class GetConfig(Params):
    """The back end to describe; without one, the one that answers now.

    With a project, its budget profile decides the model where the settings do not.
    """

    project_id: str | None = None
    """Whose budget decides the model where the settings do not."""
    backend: ShortText | None = None
    """The back end to describe; without it, the one that answers now."""


class Judges(StrEnum):
    """Who would judge the next output."""

    MODEL = "model"
    """Rules, and a model for what rules cannot check."""
    RULES = "rules"
    """Rules alone; what is no ban stays unchecked."""
    NOBODY = "nobody"
    """Judging is off, no run can be made, or the output is only an echo."""


class BackendInfo(Model):
    """A back end that can be chosen by its name, without its key and its file."""

    name: str
    """The name to choose it by."""
    provider: str
    """The format that it speaks: `fake`, `openai`, `anthropic` or `ollama`."""
    model: str
    """Its model."""
    base_url: str | UnsetType = UNSET
    """Its address; absent if it is the provider's own."""
    key_variable: str | UnsetType = UNSET
    """The environment variable that has its key; absent if a file has it."""


class AiConfig(Result):
    """The back end that answers runs, without its key, and those that could."""

    backend: str
    """Its name; `default` is the one that the settings `aiProvider`, `aiModel` and so on describe."""
    backends: list[BackendInfo]
    """All that can be chosen."""
    context_window_tokens: int
    """The window that prompts are made for."""
    total_budget_tokens: int
    """How much of the window the prompt gets."""
    output_reserve_tokens: int
    """How much of the window the answer gets."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""
    provider: str
    """The format that it speaks."""
    model: str
    """The model that would answer."""
    ready: bool
    """Whether a run can be made now."""
    judge: str
    """The setting: who shall judge outputs, `off`, `rules` or `model`."""
    judged_by: Judges
    """Who can really judge now."""
    prompt_cache: bool
    """Whether the provider is asked to cache prompts."""
    base_url: str | UnsetType = UNSET
    """Its address; absent if it is the provider's own."""
    key_origin: str | UnsetType = UNSET
    """Where its key comes from: `environment` or `file`; absent without a key."""
    problem: str | UnsetType = UNSET
    """What is missing if it is not `ready`, and what to do."""
    server: "ServerInfo | UnsetType" = UNSET
    """What a local server reported of its own window; absent if it was not asked."""


class ServerInfo(Model):
    """What a local server reports of a model."""

    kind: ServerKind
    """The program that serves it."""
    assumed: bool
    """Whether `windowTokens` is only what the server usually gives, since the model is not
    loaded."""
    window_tokens: int | UnsetType = UNSET
    """The window that the model has there."""
    largest_window_tokens: int | UnsetType = UNSET
    """The window that it could have."""
    thinks: bool | UnsetType = UNSET
    """Whether it is a model that thinks before it writes; absent if the server does not report it."""


class SetConfig(Params):
    """Which back ends to change, and which one answers from now on.

    Keys do not go this way: a back end names the environment variable or the file that has its key.
    Runs that are under way keep theirs.
    """

    backends: dict[BackendName, Backend | None] = field(default_factory=dict)
    """Back ends to add or replace by name; null removes one."""
    use: ShortText | None = None
    """The name of the back end that answers from now on, or `default`."""


class ProbeConfig(Params):
    """Which back end to look at."""

    project_id: str | None = None
    """Whose budget decides the model where the settings do not."""
    backend: ShortText | None = None
    """The back end; without it, the one that answers now."""
    model: ShortText | None = None
    """The model to ask about; without it, the back end's."""
    ask: bool = False
    """Whether to ask the model for one word, which may cost."""


class ProbeResult(Result):
    """What was found."""

    backend: str
    """The name of the back end."""
    provider: str
    """The format that it speaks."""
    model: str
    """Its model."""
    context_window_tokens: int
    """The window that prompts are made for from now on."""
    total_budget_tokens: int
    """How much of the window the prompt gets."""
    output_reserve_tokens: int
    """How much of the window the answer gets."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""
    server: ServerInfo | UnsetType = UNSET
    """What a local server reports of itself; absent if it is none."""
    answered: bool | UnsetType = UNSET
    """Whether the model wrote anything; false if it only thought. Absent if it was not asked."""


class AcceptRun(Params):
    """The run whose output the author took over."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    run_id: RunId
    """The `runId` of the run."""
    text: Annotated[str, Meta(min_length=1)] | None = None
    """What was really taken over, if that is not the whole output: a part of it, or what the
    author made of it."""


class DiscardRun(Params):
    """The run whose output the author does not want."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    run_id: RunId
    """The `runId` of the run."""


class ListRuns(Params):
    """Whose runs to list: of one document, or of all; of one status, or of any."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId | None = None
    """Only runs on this document; without it, on all."""
    status: RunStatus | None = None
    """Only runs with this status; without it, any."""
    limit: Annotated[int, Meta(ge=1, le=MOST_LISTED)] = 50
    """How many at most, the latest first."""


class RunInfo(Model):
    """A run, and what the author decided on it."""

    run_id: str
    """Its id."""
    document_id: str
    """The document that it wrote for."""
    skill_id: str | None
    """The skill; null for a run without one."""
    status: RunStatus
    """`pending` until it is accepted or discarded; only accepted ones are remembered in
    prompts."""
    at_ms: int
    """When it ended, in milliseconds since 1970 (UTC)."""
    provider: str
    """Who answered."""
    model: str
    """The model that answered."""
    prompt_hash: str
    """SHA-256 of the prompt that was sent."""
    stable_prefix_hash: str
    """SHA-256 of its stable part."""
    token_count: int
    """How many tokens the prompt had, by our count."""
    verdict: str
    """What the judge found: `passed`, `violated` or `unchecked`."""
    skill_name: str
    """What the skill was called."""
    instruction: str
    """How the author's instruction began, without secrets."""
    excerpt: str
    """How the output begins and ends or, if another text was accepted, how that does."""
    characters: int
    """The length of that text in code points."""
    decided_at_ms: int | UnsetType = UNSET
    """When it was accepted or discarded, in milliseconds since 1970 (UTC); absent while
    pending."""


class DecidedRun(Result):
    """The run as it is now."""

    run: RunInfo
    """The run as it is now."""


class RunList(Result):
    """Runs, the latest first. Of each document the last 10 accepted and 20 others are kept."""

    runs: list[RunInfo]
    """The runs, the latest first. Of each document the last 10 accepted and 20 others are kept."""


def cancel_run(session: Session, params: CancelRun) -> CancelledRun:
    """Stop a run at once, the call to the provider included."""
    owner = session.peer.role is Role.OWNER
    canceled = session.in_flight.cancel(params.run_id, session.peer.id, any_run=owner)
    shown = session.redactor.hide_secrets(params.run_id)
    return CancelledRun(run_id=shown, canceled=canceled)


async def get_config(session: Session, params: GetConfig) -> AiConfig:
    """Return which provider and model answer runs, and whether they can."""
    name = session.ai.chosen_name if params.backend is None else params.backend
    backend = session.ai.get(name)
    fitted = await _fit_budget(session, params.project_id, name, backend.model)
    readiness = await session.ai.readiness(name)
    mode = session.settings.ai_judge
    return AiConfig(
        backend=name,
        backends=[
            _backend_info(one, spec, session.redactor) for one, spec in session.ai.all().items()
        ],
        context_window_tokens=fitted.profile.context_window_tokens,
        total_budget_tokens=fitted.profile.total_budget_tokens,
        output_reserve_tokens=fitted.profile.output_reserve_tokens,
        warnings=fitted.shown.warnings,
        notices=fitted.shown.notices,
        provider=backend.provider,
        model=session.redactor.hide_secrets(fitted.model),
        ready=readiness.ready,
        judge=mode,
        judged_by=_judges(mode, readiness),
        prompt_cache=backend.prompt_cache,
        base_url=public_url(backend.base_url) or UNSET,
        key_origin=readiness.key_origin or UNSET,
        problem=readiness.problem or UNSET,
        server=fitted.server,
    )


class _ModelBudget(NamedTuple):
    """The budget as it is for one model."""

    model: str
    profile: BudgetProfile
    shown: ShownWarnings
    server: ServerInfo | UnsetType


async def _fit_budget(
    session: Session, project_id: str | None, backend: str, model: str
) -> _ModelBudget:
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
    return _ModelBudget(
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


def _backend_info(name: str, backend: Backend, redactor: Redactor) -> BackendInfo:
    return BackendInfo(
        name=name,
        provider=backend.provider,
        model=redactor.hide_secrets(backend.model),
        base_url=public_url(backend.base_url) or UNSET,
        key_variable=backend.key_variable or UNSET,
    )


async def set_config(session: Session, params: SetConfig) -> AiConfig:
    """Add, replace or remove back ends and choose one, at once and for the next start."""
    await session.ai.change(params.backends, params.use)
    log.info("ai_config_changed", backends=sorted(params.backends), used=session.ai.chosen_name)
    return await get_config(session, GetConfig())


async def probe_config(session: Session, params: ProbeConfig) -> ProbeResult:
    """Ask a server for its real window and, if wished, its model for an answer."""
    name = session.ai.chosen_name if params.backend is None else params.backend
    backend = session.ai.get(name)
    before = await _fit_budget(session, params.project_id, name, params.model or backend.model)
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
    fitted = await _fit_budget(session, params.project_id, name, before.model)
    return ProbeResult(
        backend=name,
        provider=backend.provider,
        model=session.redactor.hide_secrets(fitted.model),
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
        passage = AcceptedText(session.redactor.redact(run_excerpt(text)).text, len(text))
    decided = await session.runs.decide(
        project.project_id, params.run_id, status, session.clock.now_ms(), passage
    )
    log.info("ai_run_decided", run_id=params.run_id, status=status)
    return DecidedRun(run=_run_info(session, decided))


def _run_info(session: Session, found: DocumentRun) -> RunInfo:
    run, summary = found.run, found.run.summary
    brief = summary if isinstance(summary, RunSummary) else RunSummary(excerpt=summary)
    return RunInfo(
        run_id=session.redactor.hide_secrets(run.run_id),
        document_id=session.redactor.redact_name(found.document_id),
        skill_id=run.skill_id or None,
        status=run.status,
        at_ms=run.at_ms,
        provider=run.provider,
        model=session.redactor.hide_secrets(run.model),
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


class UsageKey(StrEnum):
    """What calls are added up by."""

    DAY = "day"
    """By day."""
    PROJECT = "project"
    """By project."""
    SKILL = "skill"
    """By skill."""
    MODEL = "model"
    """By model."""
    PURPOSE = "purpose"
    """By what the call was for: `write` for skill runs, `judge` for verdicts, `summarise` for summaries."""


class GetUsage(Params):
    """Which calls, and what to add them up by."""

    group_by: UsageKey = UsageKey.DAY
    """What the groups of the reply are."""
    since: Milliseconds = field(name="from", default=0)
    """The first millisecond that counts, since 1970 (UTC); without it, all that is kept."""
    until: Milliseconds = field(name="to", default=LATEST_MS)
    """The first millisecond that does not count any more; without it, up to now."""
    project_id: str | None = None
    """Only calls of this project; without it, of all."""
    utc_offset_minutes: Annotated[int, Meta(ge=-LARGEST_UTC_OFFSET, le=LARGEST_UTC_OFFSET)] = 0
    """Where days begin: so many minutes east of UTC."""


class UsageGroup(UsageSums):
    """The sums of one day, project, skill, model or purpose; `key` is empty where there is none."""

    key: str
    """The day (`2026-01-31`), the project's, skill's or model's id, or the purpose; empty where
    there is none."""


class LostToChange(Model):
    """What the changes of one source cost: each of them changed the stable prefix."""

    source_ref: str
    """The file or source that changed."""
    calls: int
    """How many calls had a changed prefix because of it."""
    tokens: int
    """How many tokens of prefixes could not be read from the cache."""
    cost: float
    """What that cost, in `currency`."""


class UsageReport(Result):
    """What calls used and cost. `lostTo` names the sources whose changes cost most, the most expensive first.

    Prices hold for `pricesAsOf`; `<userData>/prices.json` replaces them.
    """

    group_by: UsageKey
    """What the groups are."""
    groups: list[UsageGroup]
    """The sums of each group, in the order of the keys; days from old to new."""
    total: UsageSums
    """The sums of all groups."""
    lost_to: list[LostToChange]
    """The sources whose changes cost most, the most expensive first."""
    currency: str
    """The currency of every sum of money, such as `USD`."""
    prices_as_of: str
    """The day for which the price list holds; `<userData>/prices.json` replaces it."""
    since: int | UnsetType = field(name="from", default=UNSET)
    """When the first of the calls was, in milliseconds since 1970 (UTC); absent if there was none."""
    until: int | UnsetType = field(name="to", default=UNSET)
    """When the last of the calls was, in milliseconds since 1970 (UTC); absent if there was none."""


async def get_usage(session: Session, params: GetUsage) -> UsageReport:
    """Add up what calls to models used, and what they cost by the price list."""
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    prices = await to_thread.run_sync(read_prices, session.user_data)
    found = await session.usage.calls_between(params.since, params.until)
    records = [r for r in found if params.project_id in {None, r.project_id}]
    keys: dict[UsageKey, Callable[[UsageRecord], str]] = {
        UsageKey.DAY: lambda record: day_of(record.at_ms, params.utc_offset_minutes),
        UsageKey.PROJECT: lambda record: record.project_id,
        UsageKey.SKILL: lambda record: record.skill_id,
        UsageKey.MODEL: lambda record: record.model,
        UsageKey.PURPOSE: lambda record: record.purpose,
    }
    groups = group(records, keys[params.group_by], prices)
    return UsageReport(
        group_by=params.group_by,
        groups=[
            UsageGroup(key=session.redactor.hide_secrets(key), **structs.asdict(sums))
            for key, sums in groups
        ],
        total=add_up(records, prices),
        lost_to=[
            LostToChange(source_ref=ref, calls=s.calls, tokens=s.lost_tokens, cost=s.lost)
            for ref, s in lost_by_source(records, prices)[:MOST_LOST]
        ],
        currency=prices.currency,
        prices_as_of=prices.as_of,
        since=records[0].at_ms if records else UNSET,
        until=records[-1].at_ms if records else UNSET,
    )


CHANNELS = (
    Channel(
        "ai:skill:run",
        run_skill,
        deadline=Deadline.SKILL,
        errors=(*ASSEMBLY_ERRORS, *AI_ERRORS, ErrorCode.CONFLICT),
    ),
    Channel("ai:skill:cancel", cancel_run),
    Channel("ai:run:accept", accept_run),
    Channel("ai:run:discard", discard_run),
    Channel("ai:run:list", list_runs),
    Channel("ai:config:get", get_config, errors=(ErrorCode.NOT_FOUND,)),
    Channel(
        "ai:config:set",
        set_config,
        role=Role.OWNER,
        errors=(ErrorCode.NOT_FOUND, ErrorCode.CONFLICT),
    ),
    Channel(
        "ai:config:probe", probe_config, role=Role.OWNER, deadline=Deadline.SKILL, errors=AI_ERRORS
    ),
    Channel("ai:usage", get_usage),
)
NOTIFICATIONS = (Notification(STREAM, StreamEvent),)
