import json
import threading
from typing import Any

import anyio.lowlevel
import pytest
from msgspec.structs import replace

from creonowd.context.fragment import Action, Fragment, FragmentKind, Layer
from creonowd.context.language import ManuscriptLanguage
from creonowd.context.source import Failure
from creonowd.context.text_tools import Memory
from creonowd.errors import DaemonError, ErrorCode
from creonowd.judge.judge import (
    BATCH,
    INLINE_CHARACTERS,
    MAX_VIOLATIONS,
    REASONS,
    SOURCE,
    Checker,
    Criteria,
    PromptConstraint,
    Status,
    UncheckedCode,
    Verdict,
    Violation,
    add_missing,
    criteria_of,
    in_client_units,
    judge,
    rewrite_instruction,
)
from creonowd.judge.rule_judge import Term
from creonowd.providers.fake import Fake, Script
from creonowd.providers.provider import Answer, Call, OnText, Provider, Purpose
from creonowd.redaction import PLACEHOLDER, Redacted, redact
from tests.context.worlds import World, assemble_world, text_tools

BAN = PromptConstraint(id="con_ban", text="避免使用感叹号")
NO_QUESTION = PromptConstraint(id="con_question", text="不用问号")
VIEW = PromptConstraint(id="con_view", text="严格第一人称叙述")
CALM = PromptConstraint(id="con_calm", text="林远性格冷静，不会大声喊叫")
TERM = Term("灵晶", "灵石")


def judging(*verdicts: Any) -> Fake:
    return Fake(Script(verdicts=tuple(json.dumps(verdict) for verdict in verdicts)))


def found(constraint: int, quote: str = "", confidence: float = 0.9) -> dict[str, Any]:
    violation = {"constraint": constraint, "quote": quote, "confidence": confidence, "reason": "r"}
    return {"violations": [violation], "unsure": []}


NOTHING: dict[str, Any] = {"violations": [], "unsure": []}


async def test_rules_find_what_they_can_with_its_place_and_no_doubt() -> None:
    verdict = await judge("好！", [BAN], [], None)

    (violation,) = verdict.violations
    assert verdict.status is Status.VIOLATED
    assert (violation.constraint_id, violation.by) == ("con_ban", Checker.RULES)
    assert (violation.start, violation.end, violation.confidence) == (1, 2, 1.0)


async def test_preferred_terms_are_checked_by_rules() -> None:
    verdict = await judge("他拿出灵晶", [], [Term("灵晶", "灵石")], None)

    (violation,) = verdict.violations
    assert violation.constraint == "用「灵石」，不用「灵晶」"
    assert violation.constraint_id == ".creonow/rules/terminology.json"
    assert (violation.start, violation.end) == (3, 5)


@pytest.mark.parametrize(
    ("chinese", "banned", "misused"),
    [
        (False, "“！” is banned.", "Terminology: use “灵石”, not “灵晶”."),
        (True, "“！”已被禁用。", "术语表：用「灵石」，不用「灵晶」。"),
    ],
)
async def test_what_rules_find_has_a_reason_in_the_clients_language(
    *, chinese: bool, banned: str, misused: str
) -> None:
    verdict = await judge(
        "他拿出灵晶！",
        [BAN],
        [TERM],
        None,
        manuscript=ManuscriptLanguage.ENGLISH,
        chinese=chinese,
    )

    assert [violation.message for violation in verdict.violations] == [banned, misused]
    assert verdict.violations[1].constraint == "use “灵石”, not “灵晶”"
    assert "use “灵石”, not “灵晶”" in rewrite_instruction(verdict)


async def test_a_rule_broken_all_over_hides_no_other() -> None:
    text = "！灵晶" * MAX_VIOLATIONS + "？"

    verdict = await judge(text, [BAN, NO_QUESTION], [TERM, Term("魔石")], None)

    assert len(verdict.violations) == MAX_VIOLATIONS
    broken = {violation.constraint for violation in verdict.violations}
    assert broken == {BAN.text, NO_QUESTION.text, TERM.rule.chinese}


async def test_the_later_places_of_the_most_broken_rules_are_left_out() -> None:
    text = "？" + "。！" * (2 * MAX_VIOLATIONS) + "？"

    verdict = await judge(text, [BAN, NO_QUESTION], [], None)

    marks = [(v.start, v.quote) for v in verdict.violations]
    assert marks[: MAX_VIOLATIONS - 2] == [(2 * n + 2, "！") for n in range(MAX_VIOLATIONS - 2)]
    assert marks[MAX_VIOLATIONS - 2 :] == [(0, "？"), (len(text) - 1, "？")]


async def test_a_long_output_is_judged_like_a_short_one_beside_the_event_loop() -> None:
    turns, verdict = 0, Verdict(status=Status.UNCHECKED)

    async def turn() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)
        verdict = await judge("静。" * INLINE_CHARACTERS + "好！灵晶", [BAN], [TERM], None)
        tasks.cancel_scope.cancel()

    assert turns > 0
    assert [(v.start, v.quote) for v in verdict.violations] == [
        (2 * INLINE_CHARACTERS + 1, "！"),
        (2 * INLINE_CHARACTERS + 2, "灵晶"),
    ]


async def test_without_a_model_the_rest_is_unchecked_and_never_passed() -> None:
    verdict = await judge("好。", [BAN, VIEW], [], None)

    assert verdict.status is Status.UNCHECKED
    assert verdict.checked == 1
    assert [one.constraint_id for one in verdict.unchecked] == ["con_view"]


async def test_a_fake_without_verdicts_is_no_model() -> None:
    fake = Fake()

    verdict = await judge("好。", [VIEW], [], fake)

    assert verdict.status is Status.UNCHECKED
    assert not fake.calls


async def test_what_rules_settle_is_not_asked_of_the_model() -> None:
    fake = judging(NOTHING)

    verdict = await judge("好。", [BAN, VIEW], [], fake, "m")

    (call,) = fake.calls
    assert call.purpose is Purpose.JUDGE
    assert json.loads(call.user) == {"constraints": {"1": VIEW.text}, "text": "好。"}
    assert verdict.status is Status.PASSED
    assert verdict.checked == 2


async def test_a_secret_in_an_output_is_not_sent_to_the_judge() -> None:
    secret = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"
    fake = judging(found(1, "他念出了口令"))

    verdict = await judge(f"口令是 {secret} 。他念出了口令。", [VIEW], [], fake)

    (asked,) = fake.calls
    assert secret not in asked.user
    assert PLACEHOLDER in asked.user
    (violation,) = verdict.violations
    assert violation.start == len(f"口令是 {secret} 。")


async def test_a_models_finding_is_located_by_its_quotation() -> None:
    verdict = await judge("夜里😀他大喊一声。", [VIEW, CALM], [], judging(found(2, "他大喊一声")))

    (violation,) = verdict.violations
    assert (violation.constraint_id, violation.by) == ("con_calm", Checker.MODEL)
    assert (violation.start, violation.end, violation.confidence) == (3, 8, 0.9)


async def test_a_quotation_that_is_not_there_has_no_place() -> None:
    verdict = await judge("好。", [VIEW], [], judging(found(1, "不存在的话")))

    assert verdict.status is Status.VIOLATED
    assert not isinstance(verdict.violations[0].start, int)


async def test_what_a_model_is_not_sure_of_is_unchecked() -> None:
    verdict = await judge("好。", [VIEW, CALM], [], judging({"violations": [], "unsure": [2]}))

    assert verdict.status is Status.UNCHECKED
    assert verdict.checked == 1
    assert verdict.unchecked[0].reason == "the model was not sure"


@pytest.mark.parametrize(
    "answer",
    ["", "I think it is fine.", "{", '{"violations": 5}', json.dumps(found(9)), '{"unsure":[0]}'],
)
async def test_a_verdict_that_cannot_be_read_leaves_all_unchecked(answer: str) -> None:
    verdict = await judge("好。", [VIEW], [], Fake(Script(verdicts=(answer,))))

    assert verdict.status is Status.UNCHECKED
    assert verdict.unchecked[0].reason == "the model's verdict could not be read"


async def test_words_around_a_verdict_do_not_matter() -> None:
    answer = f"Here it is:\n```json\n{json.dumps(NOTHING)}\n```"

    verdict = await judge("好。", [VIEW], [], Fake(Script(verdicts=(answer,))))

    assert verdict.status is Status.PASSED


async def test_a_judge_that_fails_leaves_the_rest_unchecked() -> None:
    verdict = await judge("好！", [BAN, VIEW], [], Failing())

    assert verdict.status is Status.VIOLATED
    assert verdict.unchecked[0].code is UncheckedCode.MODEL_FAILED
    assert verdict.unchecked[0].error is ErrorCode.AI_RATE_LIMITED


async def test_many_constraints_are_asked_in_batches() -> None:
    constraints = [PromptConstraint(id=str(n), text=f"约束{n}") for n in range(BATCH + 1)]
    fake = judging(NOTHING, found(1))

    verdict = await judge("好。", constraints, [], fake)

    assert len(fake.calls) == 2
    assert [violation.constraint_id for violation in verdict.violations] == [str(BATCH)]


async def test_a_models_finding_is_kept_however_often_a_rule_is_broken() -> None:
    verdict = await judge("好！" * 2 * MAX_VIOLATIONS, [BAN, VIEW], [], judging(found(1)))

    assert len(verdict.violations) == MAX_VIOLATIONS
    assert verdict.violations[-1].constraint_id == "con_view"


async def test_a_long_output_is_redacted_for_the_judge_beside_the_event_loop() -> None:
    threads: list[int] = []

    def clean(text: str) -> Redacted:
        threads.append(threading.get_ident())
        return redact(text)

    for text in ("静。", "静。" * INLINE_CHARACTERS):
        await judge(text, [VIEW], [], judging(NOTHING), clean=clean)

    assert [thread == threading.get_ident() for thread in threads] == [True, False]


async def test_a_list_that_goes_on_is_checked_by_both() -> None:
    constraint = PromptConstraint(id="c", text="禁止使用“忽然”等词")

    verdict = await judge("他忽然倏地站起", [constraint], [], judging(found(1, "倏地")))

    assert [(v.by, v.quote) for v in verdict.violations] == [
        (Checker.RULES, "忽然"),
        (Checker.MODEL, "倏地"),
    ]


async def test_violations_are_named_once_each_for_the_next_attempt() -> None:
    verdict = await judge("好！坏！", [BAN], [], None)

    assert (
        rewrite_instruction(verdict)
        == "上一稿违反了以下约束，请重写并遵守：\n- 避免使用感叹号（！）"
    )


async def test_without_a_model_a_narration_in_the_wrong_person_is_found() -> None:
    text = "林远推开门。他站了一会儿，他知道是谁，却没有动。"

    verdict = await judge(text, [VIEW, CALM], [], None, chinese=True)

    (violation,) = verdict.violations
    assert (violation.constraint_id, violation.by) == ("con_view", Checker.RULES)
    assert 0.5 < violation.confidence < 1
    assert violation.quote == "他站了一会儿，他知道是谁，却没有动。"
    assert (violation.start, violation.end) == (6, len(text))
    assert "第三人称" in violation.message
    assert [one.constraint_id for one in verdict.unchecked] == ["con_calm"]
    assert (verdict.status, verdict.checked) == (Status.VIOLATED, 1)


async def test_a_model_decides_about_the_narration_where_there_is_one() -> None:
    text = "他站了一会儿。他知道是谁。他没有动。"

    kept = await judge(text, [VIEW], [], judging(NOTHING))
    unsure = await judge(text, [VIEW], [], judging({"violations": [], "unsure": [1]}))

    assert kept.status is Status.PASSED
    assert [violation.by for violation in unsure.violations] == [Checker.RULES]


@pytest.mark.parametrize(("chinese", "reason"), [(True, "为何"), (False, "why")])
async def test_a_models_reason_comes_in_the_language_asked_for(
    *, chinese: bool, reason: str
) -> None:
    finding = {"constraint": 1, "reason": "为何", "reasonEnglish": "why"}

    verdict = await judge("好。", [CALM], [], judging({"violations": [finding]}), chinese=chinese)

    assert verdict.violations[0].message == reason


async def test_every_reason_has_both_languages() -> None:
    for code in UncheckedCode:
        english, chinese = REASONS[code]
        assert english.isascii()
        assert not chinese.isascii()


class Failing:
    """A provider that can judge and does not."""

    name = "fake"
    judges = True

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        raise DaemonError(ErrorCode.AI_RATE_LIMITED)

    async def close(self) -> None:
        """Nothing to let go of."""


def test_a_failing_judge_is_a_provider() -> None:
    provider: Provider = Failing()

    assert provider.judges


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
