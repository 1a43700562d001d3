import anyio.lowlevel

from creonowd.judge.bans import ban_in
from creonowd.judge.judge import MOST, QUICK, Bans, broken
from creonowd.judge.terminology import Term
from creonowd.judge.verdict import Charge, Violation

TERM = Term("灵晶", "灵石")


def bans(*texts: str) -> Bans:
    charges = [Charge(id=f"con_{number}", text=text) for number, text in enumerate(texts)]
    return tuple((c, ban) for c in charges if (ban := ban_in(c.text)) is not None)


async def test_a_rule_broken_all_over_hides_no_other() -> None:
    text = "！灵晶" * MOST + "？"

    found = await broken(text, bans("不用感叹号", "不用问号"), (TERM, Term("魔石")))

    assert len(found) == MOST
    assert {violation.constraint for violation in found} == {"不用感叹号", "不用问号", TERM.says}


async def test_what_is_left_out_are_the_later_places_of_the_most_broken_rules() -> None:
    text = "？" + "。！" * (2 * MOST) + "？"

    found = await broken(text, bans("不用感叹号", "不用问号"), ())

    marks = [(v.start, v.quote) for v in found]
    assert marks[: MOST - 2] == [(2 * n + 2, "！") for n in range(MOST - 2)]
    assert marks[MOST - 2 :] == [(0, "？"), (len(text) - 1, "？")]


async def test_a_long_output_is_judged_like_a_short_one_beside_the_event_loop() -> None:
    turns, found = 0, list[Violation]()

    async def turning() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turning)
        found = await broken("静。" * QUICK + "好！灵晶", bans("不用感叹号"), (TERM,))
        tasks.cancel_scope.cancel()

    assert turns > 0
    assert [(v.start, v.quote) for v in found] == [
        (2 * QUICK + 1, "！"),
        (2 * QUICK + 2, "灵晶"),
    ]
