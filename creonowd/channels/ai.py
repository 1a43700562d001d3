"""`ai:*` — run a skill, cancel a run, read the provider's configuration."""

from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from creonowd.engine.services import Session
from creonowd.engine.skill_run import STREAM, StreamEvent, run_skill
from creonowd.model import Params, Result
from creonowd.providers.configured import Readiness, public_url
from creonowd.rpc.channel import Channel, Deadline, Notification, Role


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
    profile = await session.budgets.effective(params.project_id)
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


CHANNELS = (
    Channel("ai:skill:run", run_skill, deadline=Deadline.SKILL),
    Channel("ai:skill:cancel", cancel_run),
    Channel("ai:config:get", get_config),
)
NOTIFICATIONS = (Notification(STREAM, StreamEvent),)
