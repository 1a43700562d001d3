"""Settings over their share: the least confident leave first, the last one may be cut."""

import pytest

from creonowd.context.evidence import Decision
from creonowd.context.fragment import Action, Fragment, Layer, Place, Reason, Rule
from creonowd.context.system_prompt import trim_settings
from creonowd.context.units import Unit
from tests.context.worlds import text_tools, unit_of

USING = text_tools()
PARAGRAPHS = "".join(f"第{n}段：这个世界没有魔法，所有能力基于科技。\n" for n in range(10))


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
