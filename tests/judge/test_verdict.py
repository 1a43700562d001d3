import pytest
from msgspec.structs import replace

from creonowd.context.fragment import Fragment, FragmentKind, Layer
from creonowd.context.gather import Failure
from creonowd.context.text_tools import Memory
from creonowd.judge.verdict import (
    SOURCE,
    Checker,
    Status,
    Verdict,
    Violation,
    constraints_in,
    placed,
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


def test_an_unchanged_prefix_is_read_once() -> None:
    using = text_tools(memory=Memory())

    first = constraints_in(assemble_world(world("不用感叹号", "少用成语"), using))
    again = constraints_in(assemble_world(world("不用感叹号", "少用成语"), using))
    changed = constraints_in(assemble_world(world("不用感叹号"), using))

    assert [(charge.id, charge.text) for charge in first.charges] == [
        ("con_0", "不用感叹号"),
        ("con_1", "少用成语"),
    ]
    assert again is first
    assert [charge.id for charge in changed.charges] == ["con_0"]


def test_constraints_that_came_too_late_are_unread_whatever_came_before() -> None:
    known = assemble_world(world("不用感叹号"), text_tools())
    failure = Failure(source=SOURCE, layer=Layer.RULES, kind="TIMEOUT")

    before = constraints_in(known)
    late = constraints_in(replace(known, failures=(failure,)))
    after = constraints_in(known)

    assert [told.unread for told in (before, late, after)] == [False, True, False]


@pytest.mark.parametrize(
    ("output", "units", "places"),
    [
        ("夜深了！", "utf-16", (3, 4)),
        ("🌙夜深！", "utf-16", (4, 5)),
        ("🌙夜深！", "utf-32", (3, 4)),
        ("so it!", "utf-16", (5, 6)),
    ],
)
def test_places_are_those_that_the_client_counts(
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

    (told,) = placed(verdict, output, utf16=units == "utf-16").violations

    assert (told.start, told.end) == places
