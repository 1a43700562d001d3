"""Over the Rules line: entities leave first, then the graph's constraints, then degradable ones."""

from collections.abc import Sequence

import pytest
from msgspec import structs

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
from creonowd.context.rules_layer import (
    MAX_CONSTRAINTS,
    Narrowed,
    Ranking,
    in_reading_order,
    narrow,
    tokens_of,
)
from creonowd.context.units import prepare
from tests.context.worlds import instruments

USING = instruments()


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


def narrowed(fragments: Sequence[Fragment], line: int, ranking: Ranking | None = None) -> Narrowed:
    units = [prepare(fragment, USING) for fragment in in_reading_order(fragments)]
    return narrow(units, line, ranking or Ranking(), USING)


def whole(fragments: Sequence[Fragment]) -> int:
    return tokens_of([prepare(f, USING) for f in in_reading_order(fragments)], USING)


def gone(result: Narrowed) -> set[str]:
    return {v.evidence.source_ref for v in result.verdicts if not v.stays}


def rule_text() -> Fragment:
    return Fragment(layer=Layer.RULES, source="rules", source_ref="style.md", text="短句。" * 50)


@pytest.mark.requirement("CE-044")
def test_constraints_are_numbered_with_nothing_after_the_text() -> None:
    result = narrowed(
        [constraint(2), constraint(1), constraint(3, origin=ConstraintOrigin.KG)], 1000
    )

    assert [verdict.rendered for verdict in result.verdicts] == [
        "1. 约束之1：不得违背。\n",
        "2. 约束之2：不得违背。\n",
        "3. 约束之3：不得违背。\n",
    ]


def test_constraints_stand_together_whatever_places_hosts_give_them() -> None:
    hosted = constraint(9, origin=ConstraintOrigin.KG)
    strayed = structs.replace(hosted, place=Place(7, "host", 0))

    result = narrowed([entity("林远"), constraint(1), strayed, rule_text()], 1000)

    kinds = [verdict.kind for verdict in result.verdicts]
    assert kinds == [
        FragmentKind.TEXT,
        FragmentKind.CONSTRAINT,
        FragmentKind.CONSTRAINT,
        FragmentKind.ENTITY,
    ]


def test_within_the_line_all_stay() -> None:
    fragments = [rule_text(), constraint(1), entity("林远")]

    result = narrowed(fragments, whole(fragments))

    assert not result.over
    assert not gone(result)


def test_one_token_over_the_line_the_least_relevant_entity_leaves() -> None:
    fragments = [entity("林远"), entity("苏晴"), constraint(1, origin=ConstraintOrigin.KG)]
    ranking = Ranking(mentioned=frozenset({"苏晴"}))

    result = narrowed(fragments, whole(fragments) - 1, ranking)

    assert result.over
    assert gone(result) == {"林远"}
    assert {v.evidence.rule for v in result.verdicts if not v.stays} == {Rule.NOT_MENTIONED}


def test_entities_are_ranked_by_mention_priority_shared_terms_and_name() -> None:
    fragments = [entity("甲"), entity("乙", 200), entity("丙"), entity("丁"), entity("戊")]
    ranking = Ranking(mentioned=frozenset({"丁"}), shared={"丙": 1})
    order: list[str] = []

    for line in range(whole(fragments), 0, -1):
        left = gone(narrowed(fragments, line, ranking)) - set(order)
        order.extend(sorted(left))

    assert order == ["甲", "戊", "丙", "乙", "丁"]


@pytest.mark.requirement("CE-047")
def test_then_constraints_of_the_graph_leave_by_ascending_priority() -> None:
    graph = [constraint(n, origin=ConstraintOrigin.KG, priority=n) for n in (5, 3, 9)]
    fragments = [constraint(1), *graph]

    result = narrowed(fragments, whole(fragments) - 1)

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

    result = narrowed(fragments, 0)

    assert gone(result) == {"constraints#2", "constraints#3", "constraints#4", "林远"}
    assert [v.rendered for v in result.verdicts if v.stays][1] == "1. 约束之1：不得违背。\n"


def test_no_more_leave_than_must() -> None:
    fragments = [constraint(n, origin=ConstraintOrigin.KG, priority=n) for n in range(20)]
    line = whole(fragments) // 2

    result = narrowed(fragments, line)

    kept = sum(verdict.tokens for verdict in result.verdicts)
    last = max(v.evidence.before_tokens for v in result.verdicts if not v.stays)
    assert kept <= line < kept + last


def test_what_leaves_knows_how_much_was_missing() -> None:
    fragments = [entity("林远"), entity("苏晴")]
    line = whole(fragments) - 3

    result = narrowed(fragments, line)

    assert [v.fits_with for v in result.verdicts if not v.stays] == [3]
    again = narrowed(fragments, line + 3)
    assert not gone(again)


def test_constraints_past_the_limit_are_left_out_from_the_end() -> None:
    fragments = [constraint(n) for n in range(MAX_CONSTRAINTS + 2)]

    result = narrowed(fragments, 100_000)

    dropped = [v for v in result.verdicts if v.evidence.action is Action.DROPPED]
    assert [v.evidence.source_ref for v in dropped] == ["constraints#500", "constraints#501"]
    assert {v.evidence.rule for v in dropped} == {Rule.CONSTRAINT_LIMIT}
    assert not result.over


def test_a_constraint_dropped_for_its_size_takes_no_number() -> None:
    huge = structs.replace(
        constraint(1),
        text=f'["{"甲" * 20_001}"]',
        whole=True,
        hosted=True,
        origin=ConstraintOrigin.KG,
    )
    given = [constraint(0), huge, structs.replace(constraint(2), origin=ConstraintOrigin.KG)]

    result = narrowed(given, 10_000)

    assert [v.rendered.partition(".")[0] for v in result.verdicts if v.stays] == ["1", "2"]
    (dropped,) = (v.evidence for v in result.verdicts if not v.stays)
    assert (dropped.reason, dropped.rule) == (Reason.TOO_LARGE, Rule.SIZE_LIMIT)
    assert dropped.after_tokens == 0
    assert dropped.before_tokens > 10_000
    staying = sum(v.tokens for v in result.verdicts)
    assert whole(given) == staying
