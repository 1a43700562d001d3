"""The system prompt: rules over their line, settings over their share, and what changed it."""

from collections.abc import Sequence

import pytest
from msgspec import structs
from msgspec.structs import replace

from creonowd.context.candidates import Decision, Unit
from creonowd.context.fragment import (
    Action,
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    Place,
    Reason,
    Rule,
)
from creonowd.context.names import Mentions
from creonowd.context.stable_prefix import (
    MAX_CONSTRAINTS,
    Change,
    EntityRanking,
    PrefixComparison,
    PrefixDigest,
    PrefixKey,
    PrefixMemory,
    TrimmedRules,
    first_change,
    mentioned_entities,
    rank_entities,
    reading_order,
    trim_rules,
    trim_settings,
    untrimmed_tokens,
)
from testing.sources import piece
from tests.context.worlds import World, assemble_world, text_tools, unit_of

USING = text_tools()


def constraint(number: int, **ranks: object) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="constraints",
        source_ref=f"constraints#{number}",
        text=f"约束之{number}：不得违背。",
        kind=FragmentKind.CONSTRAINT,
        place=Place(2, "", number),
        **ranks,  # pyright: ignore[reportArgumentType]
    )


def entity(name: str, priority: int = 100) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="characters",
        source_ref=name,
        text=f"{name}，性格冷静，不会大声喊叫。",
        kind=FragmentKind.ENTITY,
        names=(name,),
        priority=priority,
        place=Place(3, name),
    )


def trimmed(
    fragments: Sequence[Fragment], line: int, ranking: EntityRanking | None = None
) -> TrimmedRules:
    units = [unit_of(fragment, USING) for fragment in reading_order(fragments)]
    return trim_rules(units, line, ranking or EntityRanking(), USING)


def whole(fragments: Sequence[Fragment]) -> int:
    return untrimmed_tokens([unit_of(f, USING) for f in reading_order(fragments)], USING)


def gone(result: TrimmedRules) -> set[str]:
    return {v.evidence.source_ref for v in result.decisions if not v.is_kept}


def rule_text() -> Fragment:
    return Fragment(layer=Layer.RULES, source="rules", source_ref="style.md", text="短句。" * 50)


@pytest.mark.requirement("CE-044")
def test_constraints_are_numbered_with_nothing_after_the_text() -> None:
    result = trimmed(
        [constraint(2), constraint(1), constraint(3, origin=ConstraintOrigin.KG)], 1000
    )

    assert [decision.rendered for decision in result.decisions] == [
        "1. 约束之1：不得违背。\n",
        "2. 约束之2：不得违背。\n",
        "3. 约束之3：不得违背。\n",
    ]


def test_constraints_stand_together_whatever_places_hosts_give_them() -> None:
    hosted = constraint(9, origin=ConstraintOrigin.KG)
    strayed = structs.replace(hosted, place=Place(7, "host", 0))

    result = trimmed([entity("林远"), constraint(1), strayed, rule_text()], 1000)

    kinds = [decision.kind for decision in result.decisions]
    assert kinds == [
        FragmentKind.TEXT,
        FragmentKind.CONSTRAINT,
        FragmentKind.CONSTRAINT,
        FragmentKind.ENTITY,
    ]


def test_within_the_line_all_stay() -> None:
    fragments = [rule_text(), constraint(1), entity("林远")]

    result = trimmed(fragments, whole(fragments))

    assert not result.over_line
    assert not gone(result)


def test_one_token_over_the_line_the_least_relevant_entity_leaves() -> None:
    fragments = [entity("林远"), entity("苏晴"), constraint(1, origin=ConstraintOrigin.KG)]
    ranking = EntityRanking(mentioned=frozenset({"苏晴"}))

    result = trimmed(fragments, whole(fragments) - 1, ranking)

    assert result.over_line
    assert gone(result) == {"林远"}
    assert {v.evidence.rule for v in result.decisions if not v.is_kept} == {Rule.NOT_MENTIONED}


def test_entities_are_ranked_by_mention_priority_shared_terms_and_name() -> None:
    fragments = [entity("甲"), entity("乙", 200), entity("丙"), entity("丁"), entity("戊")]
    ranking = EntityRanking(mentioned=frozenset({"丁"}), shared={"丙": 1})
    order: list[str] = []

    for line in range(whole(fragments), 0, -1):
        left = gone(trimmed(fragments, line, ranking)) - set(order)
        order.extend(sorted(left))

    assert order == ["甲", "戊", "丙", "乙", "丁"]


@pytest.mark.requirement("CE-047")
def test_then_constraints_of_the_graph_leave_by_ascending_priority() -> None:
    graph = [constraint(n, origin=ConstraintOrigin.KG, priority=n) for n in (5, 3, 9)]
    fragments = [constraint(1), *graph]

    result = trimmed(fragments, whole(fragments) - 1)

    assert gone(result) == {"constraints#3"}


@pytest.mark.requirement("CN-044", "CE-002")
def test_then_degradable_constraints_of_the_user_and_never_the_others() -> None:
    fragments = [
        rule_text(),
        constraint(1),
        constraint(2, degradable=True, priority=5),
        constraint(3, degradable=True, priority=4),
        constraint(4, origin=ConstraintOrigin.KG),
        entity("林远"),
    ]

    result = trimmed(fragments, 0)

    assert gone(result) == {"constraints#2", "constraints#3", "constraints#4", "林远"}
    assert [v.rendered for v in result.decisions if v.is_kept][1] == "1. 约束之1：不得违背。\n"


def test_no_more_leave_than_must() -> None:
    fragments = [constraint(n, origin=ConstraintOrigin.KG, priority=n) for n in range(20)]
    line = whole(fragments) // 2

    result = trimmed(fragments, line)

    kept = sum(decision.tokens for decision in result.decisions)
    last = max(v.evidence.before_tokens for v in result.decisions if not v.is_kept)
    assert kept <= line < kept + last


def test_what_leaves_knows_how_much_was_missing() -> None:
    fragments = [entity("林远"), entity("苏晴")]
    line = whole(fragments) - 3

    result = trimmed(fragments, line)

    assert [v.fits_with for v in result.decisions if not v.is_kept] == [3]
    again = trimmed(fragments, line + 3)
    assert not gone(again)


def test_constraints_past_the_limit_are_left_out_from_the_end() -> None:
    fragments = [constraint(n) for n in range(MAX_CONSTRAINTS + 2)]

    result = trimmed(fragments, 100_000)

    dropped = [v for v in result.decisions if v.evidence.action is Action.DROPPED]
    assert [v.evidence.source_ref for v in dropped] == ["constraints#500", "constraints#501"]
    assert {v.evidence.rule for v in dropped} == {Rule.CONSTRAINT_LIMIT}
    assert not result.over_line


def test_a_constraint_dropped_for_its_size_takes_no_number() -> None:
    huge = structs.replace(
        constraint(1),
        text=f'["{"甲" * 20_001}"]',
        whole=True,
        hosted=True,
        origin=ConstraintOrigin.KG,
    )
    given = [constraint(0), huge, structs.replace(constraint(2), origin=ConstraintOrigin.KG)]

    result = trimmed(given, 10_000)

    assert [v.rendered.partition(".")[0] for v in result.decisions if v.is_kept] == ["1", "2"]
    (dropped,) = (v.evidence for v in result.decisions if not v.is_kept)
    assert (dropped.reason, dropped.rule) == (Reason.TOO_LARGE, Rule.SIZE_LIMIT)
    assert dropped.after_tokens == 0
    assert dropped.before_tokens > 10_000
    staying = sum(v.tokens for v in result.decisions)
    assert whole(given) == staying


def character(name: str, text: str, *aliases: str) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="characters",
        source_ref=name,
        text=text,
        kind=FragmentKind.ENTITY,
        names=(name, *aliases),
    )


def test_an_entity_is_mentioned_by_any_of_its_names() -> None:
    entities = [character("林远", "侦探", "阿远"), character("苏晴", "医生")]

    assert mentioned_entities(entities, "阿远来了。", Mentions()) == {"林远"}


def test_shared_terms_are_mentioned_entities_named_in_the_text() -> None:
    entities = [
        character("林远", "侦探"),
        character("苏晴", "林远的姐姐"),
        character("老陈", "木匠"),
    ]

    ranking = rank_entities(entities, frozenset({"林远"}), Mentions())

    assert ranking.shared == {"林远": 0, "苏晴": 1, "老陈": 0}


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
