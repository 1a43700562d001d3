"""`context:budget:*` — read and change how many tokens each layer may spend."""

from creonowd.channels.session import Session
from creonowd.context.budget import BudgetChange, BudgetProfile
from creonowd.model import Params
from creonowd.rpc.channel import Channel


class GetBudget(Params):
    """Whose budget: a project's, or the default one if no project is named."""

    project_id: str | None = None


class UpdateBudget(BudgetChange):
    """A change to a project's budget, or to the default one if no project is named.

    The fields stand in `profile` or beside `projectId`. `version` is the version last seen;
    fields that are left out keep their values.
    """

    project_id: str | None = None
    profile: BudgetChange | None = None


async def get_budget(session: Session, params: GetBudget) -> BudgetProfile:
    """Tell the budget of a project; without one of its own it has the default."""
    await _known(session, params.project_id)
    return await session.budgets.get(params.project_id)


async def update_budget(session: Session, params: UpdateBudget) -> BudgetProfile:
    """Change the budget, or fail with CONTEXT_BUDGET_CONFLICT if someone else did first."""
    await _known(session, params.project_id)
    change = params if params.profile is None else params.profile
    return await session.budgets.update(change, params.project_id)


async def _known(session: Session, project_id: str | None) -> None:
    if project_id is not None:
        await session.projects.find(project_id)


CHANNELS = (
    Channel("context:budget:get", get_budget),
    Channel("context:budget:update", update_budget),
)
