import pytest
from msgspec.structs import replace

from creonowd.context.fragment import Action, Fragment, FragmentKind, Layer
from creonowd.context.source import Failure
from creonowd.context.text_tools import Memory
from creonowd.judge.verdict import (
    SOURCE,
    Checker,
    Criteria,
    Status,
    UncheckedCode,
    Verdict,
    Violation,
    add_missing,
    criteria_of,
    in_client_units,
)
from tests.context.worlds import World, assemble_world, text_tools


def world(*constraints: str) -> World:
    return World(
        rules=tuple(
            Fragment(
                layer=Layer.RULES,
                source=SOURCE,
                source_ref=f".creonow/rules/constraints.json#con_{number}",
                text=text,
                kind=FragmentKind.CONSTRAINT,
            )
            for number, text in enumerate(constraints)
        )
    )


def test_the_criteria_are_the_constraints_of_the_prompt() -> None:
    using = text_tools(memory=Memory())

    first = criteria_of(assemble_world(world("不用感叹号", "少用成语"), using))
    changed = criteria_of(assemble_world(world("不用感叹号"), using))

    assert [(one.id, one.text) for one in first.constraints] == [
        ("con_0", "不用感叹号"),
        ("con_1", "少用成语"),
    ]
    assert [one.id for one in changed.constraints] == ["con_0"]


def test_constraints_that_came_too_late_are_unread_whatever_came_before() -> None:
    assembly = assemble_world(world("不用感叹号"), text_tools())
    failure = Failure(source=SOURCE, layer=Layer.RULES, kind="TIMEOUT")

    before = criteria_of(assembly)
    late = criteria_of(replace(assembly, failures=(failure,)))
    after = criteria_of(assembly)

    assert [criteria.unread for criteria in (before, late, after)] == [False, True, False]


def test_a_constraint_without_room_in_the_prompt_is_unchecked() -> None:
    assembly = assemble_world(world("不用感叹号"), text_tools())
    rules = assembly.layers[Layer.RULES]
    (decision,) = rules.decisions
    dropped = replace(decision, evidence=replace(decision.evidence, action=Action.DROPPED))
    layers = {**assembly.layers, Layer.RULES: replace(rules, decisions=(dropped,))}

    criteria = criteria_of(replace(assembly, layers=layers))
    verdict = add_missing(Verdict(status=Status.PASSED), criteria, (), chinese=False)

    assert (criteria.constraints, len(criteria.left_out)) == ((), 1)
    assert verdict.status is Status.UNCHECKED
    assert [(one.constraint_id, one.code) for one in verdict.unchecked] == [
        ("con_0", UncheckedCode.LEFT_OUT)
    ]


@pytest.mark.parametrize(
    ("chinese", "names"),
    [(True, ["创作约束", "术语表"]), (False, ["the constraints", "the terminology"])],
)
def test_files_that_cannot_be_read_are_named_in_the_language_of_the_client(
    *, chinese: bool, names: list[str]
) -> None:
    passed = Verdict(status=Status.PASSED)

    verdict = add_missing(passed, Criteria(unread=True), None, chinese=chinese)

    assert [one.constraint for one in verdict.unchecked] == names
    assert {one.code for one in verdict.unchecked} == {UncheckedCode.UNREAD}


@pytest.mark.parametrize(
    ("output", "units", "places"),
    [
        ("夜深了！", "utf-16", (3, 4)),
        ("🌙夜深！", "utf-16", (4, 5)),
        ("🌙夜深！", "utf-32", (3, 4)),
        ("so it!", "utf-16", (5, 6)),
    ],
)
def test_positions_are_in_the_units_of_the_client(
    output: str, units: str, places: tuple[int, int]
) -> None:
    start = max(output.find("！"), output.find("!"))
    violation = Violation(
        constraint_id="a",
        constraint="不用感叹号",
        by=Checker.RULES,
        confidence=1,
        start=start,
        end=start + 1,
    )
    verdict = Verdict(status=Status.VIOLATED, checked=1, violations=(violation,))

    (converted,) = in_client_units(verdict, output, utf16=units == "utf-16").violations

    assert (converted.start, converted.end) == places
