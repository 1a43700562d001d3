"""Settings over their share, and what changed a stable prefix."""

import pytest
from msgspec.structs import replace

from creonowd.context.evidence import Decision
from creonowd.context.fragment import (
    Action,
    Fragment,
    FragmentKind,
    Layer,
    Place,
    Reason,
    Rule,
)
from creonowd.context.stable_prefix import (
    Change,
    PrefixComparison,
    PrefixDigest,
    PrefixKey,
    PrefixMemory,
    first_change,
    trim_settings,
)
from creonowd.context.units import Unit
from testing.sources import piece
from tests.context.worlds import World, assemble_world, text_tools, unit_of

USING = text_tools()
PARAGRAPHS = "".join(f"第{n}段：这个世界没有魔法，所有能力基于科技。\n" for n in range(10))

KEY = PrefixKey("prj", "skill", "openai", "gpt-4o", "o200k_base")

RULE = piece(Layer.RULES, "kg:林远", "林远不会大声喊叫", kind=FragmentKind.ENTITY)
LONG = piece(Layer.SETTINGS, "w.md", "他沿着河走。\n\n" * 4000)


def unit(
    name: str, confidence: float | None = None, text: str = PARAGRAPHS, *, whole: bool = False
) -> Unit:
    fragment = Fragment(
        layer=Layer.SETTINGS,
        source="settings",
        source_ref=name,
        text=text,
        confidence=confidence,
        place=Place(0, name),
        whole=whole,
    )
    return unit_of(fragment, USING)


def actions(decisions: tuple[Decision, ...]) -> dict[str, Action]:
    return {v.evidence.source_ref: v.evidence.action for v in decisions}


def test_all_stay_when_they_fit_exactly() -> None:
    units = [unit("a"), unit("b", 0.1)]

    decisions = trim_settings(units, sum(u.tokens for u in units), USING)

    assert set(actions(decisions).values()) == {Action.KEPT}
    assert {v.evidence.rule for v in decisions} == {Rule.SETTINGS_SHARE}


@pytest.mark.requirement("CE-015", "CE-003")
def test_the_least_confident_leaves_first_and_no_confidence_means_certain() -> None:
    units = [unit("a", 0.2), unit("b"), unit("c", 0.9)]

    decisions = trim_settings(units, sum(u.tokens for u in units[1:]), USING)

    assert actions(decisions) == {"a": Action.DROPPED, "b": Action.KEPT, "c": Action.KEPT}


def test_the_last_one_is_cut_at_a_paragraph() -> None:
    units = [unit("a"), unit("b", 0.5)]

    decisions = trim_settings(units, units[0].tokens + units[1].tokens // 2, USING)

    cut = decisions[1]
    assert cut.evidence.action is Action.TRIMMED
    assert cut.evidence.reason is Reason.OVER_BUDGET
    assert cut.text
    assert PARAGRAPHS.startswith(cut.text)
    assert cut.text.endswith("。\n")
    lines = cut.text.count("\n")
    assert cut.rendered.startswith(f"### ref:b#L1-L{lines}\n")
    assert cut.tokens == USING.count(cut.rendered) <= units[1].tokens // 2


def test_json_is_kept_or_dropped_whole() -> None:
    units = [unit("a"), unit("b.json", 0.5, whole=True)]

    decisions = trim_settings(units, units[0].tokens + units[1].tokens - 1, USING)

    assert actions(decisions)["b.json"] is Action.DROPPED


def test_a_text_whose_first_paragraph_is_too_long_leaves_whole() -> None:
    units = [unit("a", text="没有分段的长文，" * 100)]

    decisions = trim_settings(units, 100, USING)

    assert actions(decisions) == {"a": Action.DROPPED}


@pytest.mark.requirement("CE-015")
def test_nothing_less_confident_slips_past_what_left() -> None:
    units = [unit("big", 0.9, whole=True), unit("small", 0.1, text="短。")]

    decisions = trim_settings(units, units[0].tokens - 1, USING)

    assert set(actions(decisions).values()) == {Action.DROPPED}


def test_each_knows_how_much_more_budget_would_keep_it() -> None:
    units = [unit("a", 0.9), unit("b", 0.5, whole=True), unit("c", 0.1, whole=True)]
    allowance = units[0].tokens + 5

    decisions = trim_settings(units, allowance, USING)

    for index in (1, 2):
        more = decisions[index].fits_with
        assert more is not None
        assert trim_settings(units, allowance + more, USING)[index].evidence.action is Action.KEPT
        assert (
            trim_settings(units, allowance + more - 1, USING)[index].evidence.action
            is Action.DROPPED
        )


def digest(*sources: str) -> PrefixDigest:
    pairs = (source.partition("=") for source in sources)
    return PrefixDigest(hash="+".join(sources), sources=tuple((n, hash(v)) for n, _, v in pairs))


@pytest.mark.parametrize(
    ("before", "after", "ref", "change"),
    [
        (("a=1", "b=1"), ("a=1", "b=2"), "b", Change.CHANGED),
        (("a=1",), ("a=1", "b=1"), "b", Change.ADDED),
        (("b=1",), ("a=1", "b=1"), "a", Change.ADDED),
        (("a=1", "b=1"), ("a=1",), "b", Change.REMOVED),
        (("a=1", "b=1"), ("b=1",), "a", Change.REMOVED),
        (("a=1", "b=1"), ("b=1", "a=1"), "b", Change.REORDERED),
        (("a=1", "b=1"), ("a=1", "c=1"), "c", Change.ADDED),
    ],
)
def test_the_first_difference_is_named(
    before: tuple[str, ...], after: tuple[str, ...], ref: str, change: Change
) -> None:
    found = first_change(digest(*before), digest(*after))

    assert found is not None
    assert (found.source_ref, found.change) == (ref, change)


def test_equal_prefixes_have_no_difference() -> None:
    assert first_change(digest("a=1"), digest("a=1")) is None


def test_each_caller_has_its_own_previous_call() -> None:
    memory = PrefixMemory()

    memory.remember(KEY, digest("a=1"))

    assert memory.compare(KEY, digest("a=1")).unchanged
    assert memory.compare(KEY._replace(model="gpt-4"), digest("a=1")) == PrefixComparison()


def test_it_forgets_the_oldest_caller_first() -> None:
    memory = PrefixMemory(capacity=2)

    for model in ("a", "b", "c"):
        memory.remember(KEY._replace(model=model), digest())

    assert memory.compare(KEY._replace(model="c"), digest()).unchanged
    assert not memory.compare(KEY._replace(model="a"), digest()).unchanged


def what_stays_of(setting: Fragment) -> str:
    return assemble_world(World(settings=(setting,))).system_prompt.settings.decisions[0].text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (World(rules=(RULE,)), World(rules=(replace(RULE, kind=FragmentKind.CONSTRAINT),))),
        (World(rules=(RULE,)), World(settings=(replace(RULE, layer=Layer.SETTINGS),))),
        (
            World(settings=(LONG,)),
            World(settings=(replace(LONG, text=what_stays_of(LONG)),)),
        ),
    ],
)
def test_a_source_that_says_the_same_in_another_way_is_named(before: World, after: World) -> None:
    """Set as a constraint, in another layer, or no longer as a part: the bytes are others."""
    old, new = (assemble_world(world).system_prompt for world in (before, after))

    change = first_change(old.digest, new.digest)

    assert old.hash != new.hash
    assert change is not None
    assert change.change is Change.CHANGED
