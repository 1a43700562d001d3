"""`context:budget:*` and `tokens:*` — read and change what each layer may have; count a text."""

from collections.abc import Callable

from msgspec import UNSET, UnsetType

from creonowd.context.budget import BudgetChange, BudgetProfile
from creonowd.context.fragment import Caution, Notice, show
from creonowd.context.result import BoundedCount
from creonowd.engine.assembly import ShortText
from creonowd.engine.services import Session
from creonowd.errors import ErrorCode, WarningCode, Wording
from creonowd.model import Empty, Params, Result
from creonowd.rpc.channel import Channel, Role
from creonowd.threads import call_in_thread, check_stopped, in_thread
from creonowd.tokens.boundaries import additive_points
from creonowd.tokens.models import CountKind
from creonowd.tokens.tokenizer import BoundTokenizer, Tokenizer, has_endless_run
from creonowd.workspace.budgets import LearnedCounts

SLICE = 256 * 1024
BOUNDARY_SEARCH = 4096


class GetBudget(Params):
    """Whose budget: a project's, or the default one if no project is named."""

    project_id: str | None = None
    """Whose budget; without it, the default one."""


class UpdateBudget(BudgetChange):
    """A change to a project's budget, or to the default one if no project is named.

    The fields stand in `profile` or beside `projectId`. `version` is the version last seen;
    fields that are left out keep their values.
    """

    project_id: str | None = None
    """Whose budget to change; without it, the default one."""
    profile: BudgetChange | None = None
    """The change; its fields may also stand beside `projectId`."""


class CountTokens(Params):
    """A text and the model that will read it; `tokenizerVersion`, if given, must be the daemon's."""

    text: str
    """The text to count."""
    model: ShortText | None = None
    """The model that will read it; without it, that of the default budget."""
    tokenizer_version: str | None = None
    """The version of the table that the client expects; CONTEXT_TOKENIZER_MISMATCH if it is
    another."""


class TokenCount(Result):
    """The count, and how it relates to the model's own.

    Where bytes were counted instead of tokens the count is `approximate`, and a warning says why.
    """

    tokens: int
    """How many tokens."""
    tokenizer_id: str
    """The table that tokens are counted with, such as `o200k_base`."""
    tokenizer_version: str
    """The version of that table; a request that names another fails with
    CONTEXT_TOKENIZER_MISMATCH."""
    tokenizer_exact: bool
    """Whether counts are the model's own; the same as `countKind` being `exact`."""
    count_kind: CountKind
    """Whether counts are the model's own, an upper bound or approximate."""
    count_tokens: BoundedCount | UnsetType = UNSET
    """Both figures, if `countKind` is `bound`: what was counted, and the most that it can be."""
    warnings: list[str] | UnsetType = UNSET
    """Why bytes were counted instead, each as `CODE: sentence`; absent if they were not."""
    notices: list[Notice] | UnsetType = UNSET
    """The same in parts."""


async def get_budget(session: Session, params: GetBudget) -> BudgetProfile:
    """Return the budget of a project; without one of its own it has the default."""
    await _check_project(session, params.project_id)
    return (await session.budgets.get(params.project_id)).in_language(session.connection.language)


async def update_budget(session: Session, params: UpdateBudget) -> BudgetProfile:
    """Change the budget, or fail with CONTEXT_BUDGET_CONFLICT if someone else did first."""
    await _check_project(session, params.project_id)
    change = params if params.profile is None else params.profile
    return (await session.budgets.update(change, params.project_id)).in_language(
        session.connection.language
    )


async def _check_project(session: Session, project_id: str | None) -> None:
    if project_id is not None:
        await session.projects.find(project_id)


async def count_tokens(session: Session, params: CountTokens) -> TokenCount:
    """Count the tokens of a text; the text of a special token is plain text."""
    match = session.tokenizers.known.encoding_for(params.model)
    session.tokenizers.known.check_version(match.encoding, params.tokenizer_version)
    tokenizer = await session.tokenizers.get(match.encoding)
    tokens, reason = await in_thread(
        lambda _: _count(tokenizer, params.text), session.tokenizers.encoders
    )
    both: BoundedCount | UnsetType = UNSET
    if isinstance(tokenizer, BoundTokenizer):
        counted = await call_in_thread(count_in_slices, tokenizer.base.count, params.text)
        both = BoundedCount(counted=counted, bound=tokens)
    code = WarningCode.CONTEXT_BUDGET_FALLBACK
    warnings, notices = show(
        [Caution(code=code, wording=reason)] if reason else (), session.connection.language
    )
    return TokenCount(
        tokens=tokens,
        tokenizer_id=tokenizer.id,
        tokenizer_version=tokenizer.version,
        tokenizer_exact=match.exact and not reason,
        count_kind=CountKind.APPROXIMATE if reason else match.kind,
        count_tokens=both,
        warnings=warnings or UNSET,
        notices=notices or UNSET,
    )


def _count(tokenizer: Tokenizer, text: str) -> tuple[int, Wording | None]:
    """Count a text; also return the reason if bytes were counted instead of tokens."""
    tokens = count_in_slices(tokenizer.count, text)
    if not tokenizer.exact:
        return tokens, _BYTES
    return tokens, _TOO_LONG if has_endless_run(text) else None


def count_in_slices(count: Callable[[str], int], text: str) -> int:
    """Count a long text slice by slice, cut where counts add up; stop if its request has ended.

    A stretch without such a place, such as a million times the same letter, is one slice; within it
    the tokenizer checks whether to stop.
    """
    tokens = start = 0
    size = SLICE
    while start + size < len(text):
        check_stopped()
        points = additive_points(text, start + size, start + size + BOUNDARY_SEARCH)
        if points:
            tokens += count(text[start : points[0]])
            start, size = points[0], SLICE
        else:
            size += BOUNDARY_SEARCH
    return tokens + count(text[start:])


_BYTES = Wording("the tokenizer is unusable, bytes were counted", "分词器不可用，改按字节计数")
_TOO_LONG = Wording(
    "white space or controls beyond what the tokenizer takes were counted in bytes",
    "空白或控制字符过长，超出分词器所能处理的部分按字节计数",
)


class LearnedCorrections(Result):
    """What real runs taught about each model, in the order of their names."""

    models: list[LearnedCounts]
    """One entry per model, in the order of their names."""


class ResetCorrections(Params):
    """The model to forget about; without one, all."""

    model: str | None = None
    """The model to forget about; without one, all."""


def list_corrections(session: Session, _params: Empty) -> LearnedCorrections:
    """Return by how much the counts of providers differed from ours, per model."""
    return LearnedCorrections(models=list(session.corrections.all()))


async def reset_corrections(session: Session, params: ResetCorrections) -> LearnedCorrections:
    """Forget what runs taught about a model, or all; return what is left."""
    await session.corrections.reset(params.model)
    return LearnedCorrections(models=list(session.corrections.all()))


CHANNELS = (
    Channel("context:budget:get", get_budget),
    Channel(
        "context:budget:update",
        update_budget,
        errors=(
            ErrorCode.CONTEXT_BUDGET_CONFLICT,
            ErrorCode.CONTEXT_BUDGET_INVALID_RATIO,
            ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM,
            ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
        ),
    ),
    Channel("tokens:count", count_tokens, errors=(ErrorCode.CONTEXT_TOKENIZER_MISMATCH,)),
    Channel("tokens:corrections:list", list_corrections),
    Channel("tokens:corrections:reset", reset_corrections, role=Role.OWNER),
)
