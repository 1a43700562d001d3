"""`ai:*` — run a skill, follow it, stop it; and who would answer."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from creonowd.engine.services import Session
from creonowd.engine.skill_run import RunSkill, SkillRun, StreamEvent, run
from creonowd.model import Params, Result
from creonowd.providers.configured import shown_url
from creonowd.rpc.channel import Channel, Deadline, Notification, Role


class CancelRun(Params):
    """Which run to stop."""

    run_id: Annotated[str, Meta(min_length=1)]


class CancelledRun(Result):
    """Whether there was such a run to stop; its own call then answers CANCELED."""

    run_id: str
    canceled: bool


class GetConfig(Params):
    """With a project, its budget profile decides the model where the settings do not."""

    project_id: str | None = None


class AiConfig(Result):
    """Who answers runs; never a key.

    `ready` says whether a run can be made now, `problem` what is missing if not. `keyOrigin` is
    `environment` or `file`.
    """

    provider: str
    model: str
    ready: bool
    judge: str
    prompt_cache: bool
    base_url: str | UnsetType = UNSET
    key_origin: str | UnsetType = UNSET
    problem: str | UnsetType = UNSET


async def run_skill(session: Session, params: RunSkill) -> SkillRun:
    """Assemble, ask the model, judge its output and remember what it came to."""
    run_id = session.clock.new_id("run") if params.run_id is None else params.run_id
    with session.in_flight.entered(run_id, session.peer.id):
        return await run(session, params, run_id)


def cancel_run(session: Session, params: CancelRun) -> CancelledRun:
    """Stop a run at once, the call to the provider included."""
    owner = session.peer.role is Role.OWNER
    canceled = session.in_flight.cancel(params.run_id, session.peer.id, any_run=owner)
    return CancelledRun(run_id=params.run_id, canceled=canceled)


async def get_config(session: Session, params: GetConfig) -> AiConfig:
    """Tell which provider and model answer, and whether they can."""
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    readiness = await session.ai.readiness()
    profile = await session.budgets.effective(params.project_id)
    settings = session.settings
    return AiConfig(
        provider=settings.ai_provider,
        model=session.ai.model(profile.model),
        ready=readiness.ready,
        judge=settings.ai_judge,
        prompt_cache=settings.ai_prompt_cache,
        base_url=shown_url(settings.ai_base_url) or UNSET,
        key_origin=readiness.key_origin or UNSET,
        problem=readiness.problem or UNSET,
    )


CHANNELS = (
    Channel("ai:skill:run", run_skill, deadline=Deadline.SKILL),
    Channel("ai:skill:cancel", cancel_run),
    Channel("ai:config:get", get_config),
)
NOTIFICATIONS = (Notification("ai:skill:stream", StreamEvent),)
