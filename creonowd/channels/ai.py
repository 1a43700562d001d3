"""`ai:*` — run a skill, follow it, stop it; and who would answer."""

from msgspec import UNSET, UnsetType

from creonowd.channels.session import Session
from creonowd.model import Params, Result
from creonowd.providers.configured import shown_url
from creonowd.rpc.channel import Channel


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


CHANNELS = (Channel("ai:config:get", get_config),)
