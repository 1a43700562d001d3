"""What the evidence on a candidate means to who asks about it."""

import pytest

from creonowd.context import candidates
from creonowd.context.candidates import Decision
from creonowd.context.explanation import Cause, ExplainVerdict, best_decision, rivals, verdict_on
from creonowd.context.fragment import Fragment, Layer, Place, Rule
from tests.context.worlds import World, assemble_world, profile_of, text_tools, unit_of

TEXT = "林远推开门，雨还在下。" * 20
SCORES = (0.9, 0.5, 0.7, 0.3)


def chunk(number: int, score: float, text: str = TEXT) -> Fragment:
    return Fragment(
        layer=Layer.RETRIEVED,
        source="passages",
        source_ref=f"chapters/{number}.md#L1-L2",
        text=f"{number}{text}",
        score=score,
        place=Place(0, str(number), number),
    )


CROWDED = World(
    retrieved=tuple(chunk(number, score) for number, score in enumerate(SCORES)),
    text="苏晴没有抬头。",
    profile=profile_of(700, ratios=(0.05, 0.05, 0.8, 0.1)),
)


def decision(rule: Rule | None) -> Decision:
    """Return a decision of this rule; without one, that of a kept candidate."""
    unit = unit_of(chunk(0, 0.5), text_tools())
    return candidates.keep(unit, Rule.SCORE) if rule is None else candidates.drop(unit, rule)


@pytest.mark.parametrize(
    ("rule", "verdict", "cause"),
    [
        (None, ExplainVerdict.IN, None),
        (Rule.SCORE, ExplainVerdict.LEFT_OUT, Cause.OVER_BUDGET),
        (Rule.TARGET, ExplainVerdict.LEFT_OUT, Cause.TARGET),
        (Rule.DUPLICATE, ExplainVerdict.LEFT_OUT, Cause.DUPLICATE),
        (Rule.CHUNK_LIMIT, ExplainVerdict.LEFT_OUT, Cause.OVER_LIMIT),
        (Rule.NOT_MENTIONED, ExplainVerdict.LEFT_OUT, Cause.NOT_MENTIONED),
        (Rule.FUTURE, ExplainVerdict.NEVER_CONSIDERED, Cause.FUTURE),
        (Rule.NOT_YET, ExplainVerdict.NEVER_CONSIDERED, Cause.NOT_YET),
        (Rule.NO_LONGER, ExplainVerdict.NEVER_CONSIDERED, Cause.NO_LONGER),
        (Rule.UNREADABLE, ExplainVerdict.NEVER_CONSIDERED, Cause.BROKEN_FILE),
    ],
)
def test_the_step_that_decided_is_the_cause(
    rule: Rule | None, verdict: ExplainVerdict, cause: Cause | None
) -> None:
    assert verdict_on(decision(rule)) == (verdict, cause)


def test_of_several_parts_a_kept_one_answers_else_one_that_was_considered() -> None:
    future, dropped, kept = decision(Rule.FUTURE), decision(Rule.SCORE), decision(None)

    assert best_decision([future, dropped, kept]) is kept
    assert best_decision([future, dropped]) is dropped
    assert best_decision([future]) is future
    assert best_decision([]) is None


def test_a_passage_is_ranked_among_all_passages_by_its_score() -> None:
    assembly = assemble_world(CROWDED)
    decisions = assembly.layers[Layer.RETRIEVED].decisions
    left_out = [one for one in decisions if not one.is_kept]

    ranked = rivals(assembly, left_out[0])

    assert 0 < len(left_out) < len(SCORES)
    assert [one.fragment.score for one in ranked] == sorted(SCORES, reverse=True)


def test_the_text_at_the_cursor_has_no_rivals() -> None:
    assembly = assemble_world(CROWDED)

    assert all(rivals(assembly, one) == [] for one in assembly.layers[Layer.IMMEDIATE].decisions)
