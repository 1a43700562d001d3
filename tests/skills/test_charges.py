from msgspec.structs import replace

from creonowd.context.fragment import Fragment, Kind, Layer
from creonowd.context.gather import Failure
from creonowd.context.instruments import Memory
from creonowd.skills.charges import SOURCE, constraints_in
from tests.context.worlds import World, assembled, instruments


def world(*constraints: str) -> World:
    return World(
        rules=tuple(
            Fragment(
                layer=Layer.RULES,
                source=SOURCE,
                source_ref=f".creonow/rules/constraints.json#con_{number}",
                text=text,
                kind=Kind.CONSTRAINT,
            )
            for number, text in enumerate(constraints)
        )
    )


def test_an_unchanged_prefix_is_read_once() -> None:
    using = instruments(memory=Memory())

    first = constraints_in(assembled(world("不用感叹号", "少用成语"), using))
    again = constraints_in(assembled(world("不用感叹号", "少用成语"), using))
    changed = constraints_in(assembled(world("不用感叹号"), using))

    assert [(charge.id, charge.text) for charge in first.charges] == [
        ("con_0", "不用感叹号"),
        ("con_1", "少用成语"),
    ]
    assert again is first
    assert [charge.id for charge in changed.charges] == ["con_0"]


def test_constraints_that_came_too_late_are_unread_whatever_came_before() -> None:
    known = assembled(world("不用感叹号"), instruments())
    failure = Failure(source=SOURCE, layer=Layer.RULES, kind="TIMEOUT")

    before = constraints_in(known)
    late = constraints_in(replace(known, failures=(failure,)))
    after = constraints_in(known)

    assert [told.unread for told in (before, late, after)] == [False, True, False]
