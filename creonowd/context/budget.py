"""The budget: how many tokens each layer may spend, and how a profile is changed."""

import math
from decimal import Decimal
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from msgspec import UNSET, UnsetType, structs

from creonowd.context.fragment import Caution, Layer, Notice, show
from creonowd.errors import DaemonError, ErrorCode, Language, WarningCode, Wording
from creonowd.model import Model, Params, Result
from creonowd.tokens.models import PACKAGED, CountKind, KnownTables
from creonowd.tokens.tables import DEFAULT_ENCODING

LARGEST_TOTAL = 64_000
# What a model that thinks may write by default: its reasoning counts as output.
THINKING_RESERVE = 8_000
KEPT_PROFILES = 64
INCONSISTENT = Wording(
    "must be the window less the system prompt and the output reserve",
    "须等于窗口减去系统提示与输出预留",
)

_ROUNDING = 1e-6

T = TypeVar("T")


class LayerBudget(Model):
    """A layer's share of the total and the tokens it is promised; zero and zero is off."""

    ratio: float
    """The layer's share of the total, from 0 to 1; the four add up to 1 at most."""
    minimum_tokens: int
    """How many tokens the layer is promised, if it has that much text. Ratio 0 and minimum 0 turn
    it off."""


class LayerBudgets(Model):
    """The four layers; their order in the prompt is fixed."""

    rules: LayerBudget = LayerBudget(ratio=0.15, minimum_tokens=500)
    """Style guide, terms, constraints, characters. Its share is a limit."""
    settings: LayerBudget = LayerBudget(ratio=0.10, minimum_tokens=200)
    """World and notes."""
    retrieved: LayerBudget = LayerBudget(ratio=0.25, minimum_tokens=0)
    """The story so far, earlier passages, mentioned characters."""
    immediate: LayerBudget = LayerBudget(ratio=0.50, minimum_tokens=2000)
    """The text around the cursor."""


class BudgetKind(StrEnum):
    """What a budget is for."""

    DEFAULT = "default"
    """The story so far is given in summaries."""
    LONG = "long"
    """For models with a large window and a prompt cache: the nearest chapters before the author's
    stand in the prompt as a whole."""


class BudgetProfile(Result):
    """How many tokens a prompt may have, and each of its layers."""

    version: int = 1
    """Grows by one with every update; send it with the next one."""
    kind: BudgetKind = BudgetKind.DEFAULT
    """`default`, or `long` for a large window: whole chapters instead of their summaries."""
    tokenizer_id: str = DEFAULT_ENCODING
    """The table that tokens are counted with, such as `o200k_base`."""
    tokenizer_version: str = PACKAGED.version(DEFAULT_ENCODING)
    """The version of that table; a request that names another fails with
    CONTEXT_TOKENIZER_MISMATCH."""
    tokenizer_exact: bool = True
    """Whether counts are the model's own; the same as `countKind` being `exact`."""
    count_kind: CountKind = CountKind.EXACT
    """Whether counts are the model's own, an upper bound or approximate."""
    model: str = "gpt-4o"
    """The model that prompts are counted for."""
    context_window_tokens: int = 8000
    """The model's window."""
    system_prompt_tokens: int = 500
    """What of the window is held back for the caller's own system prompt."""
    output_reserve_tokens: int = 1500
    """What of the window is held back for the answer."""
    total_budget_tokens: int = 6000
    """What is left for the prompt: the window less the two above, at most 64 000. If that bound
    cuts, CONTEXT_BUDGET_CLAMPED is here and in every assembly."""
    layers: LayerBudgets = LayerBudgets()
    """How the total is shared."""
    warnings: list[str] | UnsetType = UNSET
    """What is unusual about this budget, each as `CODE: sentence`; absent if nothing is."""
    notices: list[Notice] | UnsetType = UNSET
    """The same in parts."""


# Most of a long budget is the story so far, which changes with a chapter and is cached until then.
LONG_LAYERS = LayerBudgets(
    retrieved=LayerBudget(ratio=0.50, minimum_tokens=0),
    immediate=LayerBudget(ratio=0.25, minimum_tokens=2000),
)


def usual_profile(kind: BudgetKind, current: BudgetProfile | None = None) -> BudgetProfile:
    """Return a profile with the total and the layers that are usual for a kind."""
    usual = BudgetProfile()
    profile = usual if current is None else current
    total = LARGEST_TOTAL if kind is BudgetKind.LONG else usual.total_budget_tokens
    return structs.replace(
        profile,
        kind=kind,
        context_window_tokens=total + profile.system_prompt_tokens + profile.output_reserve_tokens,
        total_budget_tokens=total,
        layers=LONG_LAYERS if kind is BudgetKind.LONG else usual.layers,
    )


def share(profile: BudgetProfile, layer: str) -> int:
    """Return how many tokens a layer's ratio stands for, but no fewer than its minimum."""
    budget: LayerBudget = getattr(profile.layers, layer)
    exact = Decimal(repr(budget.ratio)) * profile.total_budget_tokens
    return max(budget.minimum_tokens, math.floor(exact))


def is_off(profile: BudgetProfile, layer: str) -> bool:
    """Return whether a layer takes no part at all."""
    budget: LayerBudget = getattr(profile.layers, layer)
    return budget.ratio == 0 and budget.minimum_tokens == 0


_INDEX = {layer: index for index, layer in enumerate(Layer)}


class Allowances(Model, cache_hash=True):
    """What a profile allows: the total, each layer's minimum and share, the layers that are off.

    `rules_ratio` is how far the Rules line rises with the total. `long` says that chapters are
    given as a whole. `factor` is what the total of the profile was divided by, because the model
    counts otherwise than we do.
    """

    total: int
    minimums: tuple[int, ...] = (0, 0, 0, 0)
    shares: tuple[int, ...] = (0, 0, 0, 0)
    off: frozenset[Layer] = frozenset()
    rules_ratio: float = 0.0
    long: bool = False
    factor: float = 1.0

    def minimum(self, layer: Layer) -> int:
        """Return the tokens that a layer is promised."""
        return self.minimums[_INDEX[layer]]

    def share(self, layer: Layer) -> int:
        """Return the tokens that a layer's ratio stands for; a limit for Rules only."""
        return self.shares[_INDEX[layer]]

    @property
    def rules_line(self) -> int:
        """The Rules line L."""
        return self.share(Layer.RULES)

    def profile_total(self, total: int) -> int:
        """Return the least total of a profile that allows so many tokens by our count."""
        return math.ceil(total * Decimal(repr(self.factor)))

    def more_for_rules(self, tokens: int) -> int | None:
        """Return by how much the total must grow to raise the Rules line so far; None if never."""
        if not self.rules_ratio:
            return None
        line = (self.rules_line + tokens) / Decimal(repr(self.rules_ratio))
        return math.ceil(line) - self.total


@lru_cache(maxsize=KEPT_PROFILES)
def allowances_of(profile: BudgetProfile, factor: float = 1.0) -> Allowances:
    """Return what trimming needs of a profile; `factor` is that of `apply_correction`."""
    budgets = [getattr(profile.layers, layer) for layer in Layer]
    return Allowances(
        total=profile.total_budget_tokens,
        minimums=tuple(budget.minimum_tokens for budget in budgets),
        shares=tuple(share(profile, layer) for layer in Layer),
        off=frozenset(layer for layer in Layer if is_off(profile, layer)),
        rules_ratio=profile.layers.rules.ratio,
        long=profile.kind is BudgetKind.LONG,
        factor=factor,
    )


def with_current_tokenizer(profile: BudgetProfile, tables: KnownTables = PACKAGED) -> BudgetProfile:
    """Set a stored profile's tokenizer to that of its model in the tables of today."""
    usual = profile.tokenizer_id if profile.tokenizer_id in tables else DEFAULT_ENCODING
    match = tables.encoding_for(profile.model, usual)
    return structs.replace(
        profile,
        tokenizer_id=match.encoding,
        tokenizer_version=tables.version(match.encoding),
        tokenizer_exact=match.exact,
        count_kind=match.kind,
    )


class Budget(Model):
    """A profile and the warnings about it."""

    profile: BudgetProfile
    warnings: tuple[Caution, ...] = ()
    factor: float = 1.0
    """What the profile's total was divided by."""

    def in_language(self, language: Language) -> BudgetProfile:
        """Return the profile with its warnings, in a client's language."""
        warnings, notices = show(self.warnings, language)
        return structs.replace(self.profile, warnings=warnings or UNSET, notices=notices or UNSET)


def budget_of(profile: BudgetProfile, *fallback: Caution) -> Budget:
    """Add the warning that the window would allow a larger total, if it would."""
    room = _remainder(*_parts(profile))
    if room <= LARGEST_TOTAL:
        return Budget(profile=profile, warnings=fallback)
    clamped = Caution(
        code=WarningCode.CONTEXT_BUDGET_CLAMPED,
        wording=_CLAMPED.format(room, LARGEST_TOTAL),
        details=(("windowTokens", room), ("totalBudgetTokens", LARGEST_TOTAL)),
    )
    return Budget(profile=profile, warnings=(clamped, *fallback))


def fit_to_model(
    budget: Budget,
    *,
    window: int | None = None,
    thinks: bool = False,
    output_tokens: int | None = None,
    output_limit: int | None = None,
) -> Budget:
    """Fit a budget to the model that gets the prompt.

    A model that thinks gets a larger output reserve unless the profile or `output_tokens` says
    otherwise. A profile that says nothing of the window lets it grow for that; else the prompt
    gets smaller. What does not fit into the model's own window is taken from the total, and from
    each minimum alike, with the warning CONTEXT_WINDOW_REDUCED.
    """
    profile = budget.profile
    usual = usual_profile(profile.kind)
    reserve = output_tokens or profile.output_reserve_tokens
    if output_tokens is None and thinks and reserve == usual.output_reserve_tokens:
        reserve = THINKING_RESERVE
    if output_limit is not None:
        reserve = min(reserve, output_limit)
    needed = profile.context_window_tokens + max(0, reserve - profile.output_reserve_tokens)
    is_chosen = profile.context_window_tokens != usual.context_window_tokens
    limits = [one for one in (window, profile.context_window_tokens if is_chosen else None) if one]
    real = min([needed, *limits])
    if real == needed and reserve == profile.output_reserve_tokens:
        return budget
    system = profile.system_prompt_tokens
    if real < needed:
        reserve, system = min(reserve, real // 2), min(system, real // 8)
    total = max(1, min(profile.total_budget_tokens, real - system - reserve))
    fitted = structs.replace(
        profile,
        context_window_tokens=real,
        system_prompt_tokens=system,
        output_reserve_tokens=reserve,
        total_budget_tokens=total,
    )
    if total == profile.total_budget_tokens:
        return structs.replace(budget, profile=fitted)
    smaller = {
        layer: structs.replace(
            one, minimum_tokens=one.minimum_tokens * total // profile.total_budget_tokens
        )
        for layer in Layer
        for one in [getattr(profile.layers, layer)]
    }
    reduced = Caution(
        code=WarningCode.CONTEXT_WINDOW_REDUCED,
        wording=_REDUCED.format(real, reserve, total, profile.total_budget_tokens),
        details=(
            ("windowTokens", real),
            ("profileWindowTokens", profile.context_window_tokens),
            ("outputReserveTokens", reserve),
            ("totalBudgetTokens", total),
        ),
    )
    return Budget(
        profile=structs.replace(fitted, layers=LayerBudgets(**smaller)),
        warnings=(reduced, *budget.warnings),
    )


_REDUCED = Wording(
    "the model's window is {}, of which its answer gets {}; so the prompt has {} instead of {}."
    " Give the model a larger window, or ask for a shorter answer.",
    "模型窗口为 {}，其中回答占 {}，因此提示为 {}（原为 {}）。请调大模型的窗口，或缩短回答。",
)
_CLAMPED = Wording(
    "the window has room for {}, the total budget is the limit of {}.",
    "窗口可容 {}，总预算按上限 {} 计。",
)


class CountCorrection(Model):
    """What real runs taught about a model whose counts are no more than a bound or approximate."""

    factor: float
    """The budget was divided by this: the provider's count divided by ours, the greatest of the
    last `runs`, within limits."""
    runs: int
    """How many runs it rests on."""


def corrected_total(total: int, correction: CountCorrection | None) -> int:
    """Return how many tokens by our count a model takes for so many by its own."""
    return total if correction is None else max(1, math.floor(total / correction.factor))


def apply_correction(budget: Budget, correction: CountCorrection | None) -> Budget:
    """Return the budget in tokens by our count; the layers keep their minimums."""
    if correction is None:
        return budget
    profile = budget.profile
    minimums = sum(getattr(profile.layers, name).minimum_tokens for name in Layer)
    total = corrected_total(profile.total_budget_tokens, correction)
    total = min(max(total, minimums), LARGEST_TOTAL)
    corrected = structs.replace(profile, total_budget_tokens=total)
    return structs.replace(budget, profile=corrected, factor=correction.factor)


class LayerChange(Model):
    """What changes about a layer; what is left out stays."""

    ratio: float | None = None
    """The new share of the total, from 0 to 1."""
    minimum_tokens: int | float | None = None
    """The new minimum; a whole number."""


class LayerChanges(Model):
    """The layers that change."""

    rules: LayerChange = LayerChange()
    """What changes about Rules."""
    settings: LayerChange = LayerChange()
    """What changes about Settings."""
    retrieved: LayerChange = LayerChange()
    """What changes about Retrieved."""
    immediate: LayerChange = LayerChange()
    """What changes about Immediate."""


class BudgetChange(Params):
    """A new profile, or parts of one; what is left out stays."""

    version: int | None = None
    """The version that the client last saw; CONTEXT_BUDGET_CONFLICT if there is a newer one."""
    kind: BudgetKind | None = None
    """Another kind brings its usual total and layers, except where the change names others."""
    tokenizer_id: str | None = None
    """Must be that of the model, if named."""
    tokenizer_version: str | None = None
    """Must be the daemon's, if named."""
    model: str | None = None
    """The model that prompts are counted for."""
    context_window_tokens: int | None = None
    """The model's window."""
    system_prompt_tokens: int | None = None
    """What of the window is held back for the caller's own system prompt."""
    output_reserve_tokens: int | None = None
    """What of the window is held back for the answer."""
    total_budget_tokens: int | None = None
    """The total; on its own it moves the window. More than 64 000 are refused."""
    layers: LayerChanges = LayerChanges()
    """The layers that change."""


def apply_change(
    current: BudgetProfile, change: BudgetChange, tables: KnownTables = PACKAGED
) -> BudgetProfile:
    """Apply a change to the current profile, or fail with what is wrong with it.

    The order of the checks is part of the contract: version, tokenizer, ratios, minimums,
    then the total and whether the minimums fit into it.
    """
    _check_version(current, change)
    profile = _with_tokenizer(current, change, tables)
    if change.kind is not None and change.kind is not profile.kind:
        profile = usual_profile(change.kind, profile)
    ratios = _ratios(profile.layers, change.layers)
    minimums = _minimums(profile.layers, change.layers)
    layers = {n: LayerBudget(ratio=ratios[n], minimum_tokens=minimums[n]) for n in Layer}
    profile = structs.replace(
        _with_total(profile, change),
        layers=LayerBudgets(**layers),
        version=current.version + 1,
    )
    _check_total(profile)
    return profile


def check_profile(profile: BudgetProfile) -> None:
    """Fail unless a stored profile could have come from a client."""
    _ratios(profile.layers, LayerChanges())
    _minimums(profile.layers, LayerChanges())
    if _total(*_parts(profile)) != profile.total_budget_tokens:
        raise _invalid_total(INCONSISTENT)
    _check_total(profile)


def _check_version(current: BudgetProfile, change: BudgetChange) -> None:
    if change.version is None:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "`version` is missing: send the version of the budget that you saw.",
            field="version",
        )
    if change.version != current.version:
        raise DaemonError(
            ErrorCode.CONTEXT_BUDGET_CONFLICT,
            _NEWER.format(current.version),
            currentVersion=current.version,
            version=change.version,
        )


def _with_tokenizer(
    current: BudgetProfile, change: BudgetChange, tables: KnownTables
) -> BudgetProfile:
    model = current.model if change.model is None else change.model
    match = tables.encoding_for(model, otherwise=current.tokenizer_id)
    expected = (match.encoding, tables.version(match.encoding))
    named = (
        _value_or(change.tokenizer_id, expected[0]),
        _value_or(change.tokenizer_version, expected[1]),
    )
    if named != expected:
        raise DaemonError(
            ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
            _OTHER_TOKENIZER.format(*expected),
            tokenizerId=expected[0],
            tokenizerVersion=expected[1],
        )
    return structs.replace(
        current,
        model=model,
        tokenizer_id=expected[0],
        tokenizer_version=expected[1],
        tokenizer_exact=match.exact,
        count_kind=match.kind,
    )


def _ratios(current: LayerBudgets, changes: LayerChanges) -> dict[Layer, float]:
    requested = {name: getattr(changes, name).ratio for name in Layer}
    ratios = {name: _value_or(requested[name], getattr(current, name).ratio) for name in Layer}
    for name, ratio in ratios.items():
        if not 0 <= ratio <= 1:
            raise _invalid_ratio(_RATIO.format(name), layer=name)
    if not 0 < sum(ratios.values()) <= 1 + _ROUNDING:
        raise _invalid_ratio(_RATIOS)
    return ratios


def _minimums(current: LayerBudgets, changes: LayerChanges) -> dict[Layer, int]:
    requested = {name: getattr(changes, name).minimum_tokens for name in Layer}
    minimums = {
        name: _value_or(requested[name], getattr(current, name).minimum_tokens) for name in Layer
    }
    for name, minimum in minimums.items():
        if minimum < 0 or minimum != int(minimum):
            raise DaemonError(
                ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM,
                _MINIMUM.format(name),
                layer=name,
            )
    return {name: int(minimum) for name, minimum in minimums.items()}


def _with_total(current: BudgetProfile, change: BudgetChange) -> BudgetProfile:
    system = _value_or(change.system_prompt_tokens, current.system_prompt_tokens)
    reserve = _value_or(change.output_reserve_tokens, current.output_reserve_tokens)
    window = _value_or(change.context_window_tokens, current.context_window_tokens)
    total = _value_or(change.total_budget_tokens, current.total_budget_tokens)
    same_parts = (window, system, reserve) == _parts(current)
    consistent = (_remainder(window, system, reserve), _total(window, system, reserve))
    if total != current.total_budget_tokens and same_parts:
        _check_bounds(total)
        window = total + system + reserve
    elif total not in {current.total_budget_tokens, *consistent}:
        raise _invalid_total(INCONSISTENT)
    return structs.replace(
        current,
        context_window_tokens=window,
        system_prompt_tokens=system,
        output_reserve_tokens=reserve,
        total_budget_tokens=_total(window, system, reserve),
    )


def _check_total(profile: BudgetProfile) -> None:
    if min(_parts(profile)) < 0:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "The window, the system prompt and the output reserve must not be negative.",
            field="contextWindowTokens",
        )
    total = profile.total_budget_tokens
    _check_bounds(total)
    minimums = sum(getattr(profile.layers, name).minimum_tokens for name in Layer)
    if minimums > total:
        raise DaemonError(
            ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM,
            _MINIMUMS.format(minimums, total),
            minimumTokens=minimums,
            totalBudgetTokens=total,
        )


def _check_bounds(total: int) -> None:
    if not 1 <= total <= LARGEST_TOTAL:
        raise _invalid_total(_BOUNDS.format(LARGEST_TOTAL, total))


def _parts(profile: BudgetProfile) -> tuple[int, int, int]:
    return (
        profile.context_window_tokens,
        profile.system_prompt_tokens,
        profile.output_reserve_tokens,
    )


def _remainder(window: int, system: int, reserve: int) -> int:
    return window - system - reserve


def _total(window: int, system: int, reserve: int) -> int:
    return min(_remainder(window, system, reserve), LARGEST_TOTAL)


def _value_or(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def _invalid_ratio(wording: Wording, **details: str) -> DaemonError:
    return DaemonError(ErrorCode.CONTEXT_BUDGET_INVALID_RATIO, wording, **details)


def _invalid_total(problem: Wording) -> DaemonError:
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT, _TOTAL.format(problem), field="totalBudgetTokens"
    )


_NEWER = Wording(
    "The budget has version {} by now; read it again and repeat the change.",
    "预算已是版本 {}；请重新读取后再修改。",
)
_OTHER_TOKENIZER = Wording(
    "The budget counts with {} ({}); leave the tokenizer out, or name a model that uses another.",
    "预算以 {}（{}）计数；请去掉分词器，或指定使用其他分词器的模型。",
)
_RATIO = Wording("The ratio of {} must lie between 0 and 1.", "{} 的比例须在 0 与 1 之间。")
_RATIOS = Wording(
    "The ratios must add up to more than 0 and at most 1.", "各比例之和须大于 0 且不超过 1。"
)
_MINIMUM = Wording(
    "The minimum of {} must be a whole number of tokens, 0 or more.",
    "{} 的最小保障须为不小于 0 的整数。",
)
_MINIMUMS = Wording(
    "The minimums add up to {} and do not fit into {}.",
    "各层最小保障合计 {}，超过总预算 {}。",
)
_BOUNDS = Wording("must lie between 1 and {}; it would be {}", "须在 1 与 {} 之间，现为 {}")
_TOTAL = Wording("totalBudgetTokens {}.", "totalBudgetTokens {}。")
