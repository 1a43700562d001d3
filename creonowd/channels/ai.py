"""`ai:*` — run a skill, cancel, accept or discard a run, read the provider's configuration."""

from enum import StrEnum
from typing import Annotated

import structlog
from msgspec import UNSET, Meta, UnsetType

from creonowd.engine.services import Session
from creonowd.engine.skill_run import STREAM, RunId, StreamEvent, excerpt, run_skill
from creonowd.model import Model, Params, Result
from creonowd.providers.configured import Readiness, public_url
from creonowd.rpc.channel import Channel, Deadline, Notification, Role
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.runs import AcceptedText, DocumentRun, RunStatus, RunSummary

MOST_LISTED = 500

log = structlog.stdlib.get_logger(__name__)


class CancelRun(Params):
    """The run to stop."""

    run_id: Annotated[str, Meta(min_length=1)]


class CancelledRun(Result):
    """Whether there was such a run to stop; its own call then answers CANCELED."""

    run_id: str
    canceled: bool


class GetConfig(Params):
    """With a project, its budget profile decides the model where the settings do not."""

    project_id: str | None = None


class Judges(StrEnum):
    """Who would judge the next output.

    `model` is rules and a model. `rules` alone leave unchecked what is no ban. `nobody` if
    judging is off, if no run can be made, or if the output is only an echo of the prompt.
    """

    MODEL = "model"
    RULES = "rules"
    NOBODY = "nobody"


class AiConfig(Result):
    """The provider that answers runs, without its key.

    `ready` says whether a run can be made now, `problem` what is missing if not. `keyOrigin` is
    `environment` or `file`. `judge` is the setting, `judgedBy` who can really judge.
    """

    provider: str
    model: str
    ready: bool
    judge: str
    judged_by: Judges
    prompt_cache: bool
    base_url: str | UnsetType = UNSET
    key_origin: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET


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
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    readiness = await session.ai.readiness()
    profile = (await session.budgets.effective(params.project_id)).profile
    settings = session.settings
    return AiConfig(
        provider=settings.ai_provider,
        model=session.ai.model(profile.model),
        ready=readiness.ready,
        judge=settings.ai_judge,
        judged_by=_judges(settings.ai_judge, readiness),
        prompt_cache=settings.ai_prompt_cache,
        base_url=public_url(settings.ai_base_url) or UNSET,
        key_origin=readiness.key_origin or UNSET,
        problem=readiness.problem or UNSET,
    )


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
)
NOTIFICATIONS = (Notification(STREAM, StreamEvent),)
