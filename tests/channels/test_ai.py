"""A run from the request to the record, on the fake provider."""

from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.workspace.runs import Runs
from testing.clients import Client, in_memory
from testing.novels import Novel, make_novel, warnings_beside_index
from testing.providers import KEY

SECRETIVE = Settings(
    e2e=True,
    ai_provider="openai",
    ai_model="gpt-5",
    ai_base_url=f"https://user:{KEY}@example.com/v1?key={KEY}",
)
KEYLESS = Settings(e2e=True, ai_provider="openai")


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    return await make_novel(client, tmp_path / "小说")


async def test_the_fake_echoes_the_very_prompt_that_was_hashed(novel: Novel) -> None:
    run = await novel.run()

    assert sha256(run["output"].encode()).hexdigest() == run["diagnostics"]["promptHash"]
    assert run["provider"] == "fake"
    assert run["runId"].startswith("run_")
    assert run["usage"]["estimatedInputTokens"] == run["diagnostics"]["tokenCount"]


@pytest.mark.requirement("SK-027", "CE-053", "CN-040")
async def test_a_run_has_the_diagnostics_of_an_assembly(novel: Novel) -> None:
    assembled = await novel.assemble()
    run = await novel.run()

    diagnostics = run["diagnostics"]
    assert run["output"] == assembled["prompt"]
    for name in ("tokenCount", "layers", "budget", "trimEvidence", "stablePrefixHash"):
        assert diagnostics[name] == assembled[name]
    assert not {"prompt", "systemPrompt", "userContent"} & diagnostics.keys()
    assert "ref:一.md" in run["refs"]


async def test_deltas_join_up_and_end(novel: Novel) -> None:
    await novel.script({"text": "夜深了。他没有睡。", "piece": 2})

    run = await novel.run(stream=True, runId="mine-1")
    events = [e["params"] for e in novel.client.events if e["method"] == "ai:skill:stream"]

    assert run["runId"] == "mine-1"
    assert "".join(event["delta"] for event in events) == run["output"] == "夜深了。他没有睡。"
    assert [event["done"] for event in events] == [False] * (len(events) - 1) + [True]
    assert [event["seq"] for event in events] == sorted(event["seq"] for event in events)
    assert {event["runId"] for event in events} == {"mine-1"}


async def test_a_client_that_did_not_ask_gets_no_stream(novel: Novel) -> None:
    await novel.run()

    assert not [e for e in novel.client.events if e["method"] == "ai:skill:stream"]


async def test_a_slow_client_gets_joined_deltas_and_all_of_them(novel: Novel) -> None:
    await novel.script({"text": "很长的夜。" * 200, "piece": 5})
    assert novel.client.wire is not None
    connection = novel.client.wire.connection
    connection.congest()

    await novel.start("mine", stream=True)
    connection.outbox.congested = False
    connection.requests.start_waiting()
    connection.congest()
    run = (await novel.client.reply("mine"))["result"]
    connection.relieve()
    await novel.client.until(lambda: bool(novel.client.events))
    events = [e["params"] for e in novel.client.events if e["method"] == "ai:skill:stream"]

    assert len(events) == 1
    assert (events[0]["delta"], events[0]["done"]) == (run["output"], True)


@pytest.mark.requirement("SK-040")
async def test_a_cancelled_run_answers_canceled_and_ends_its_stream(novel: Novel) -> None:
    await novel.script({"text": "夜", "after": 1, "stall": True})
    await novel.start("mine", stream=True)
    event = await novel.client.event("ai:skill:stream")

    canceled = await novel.client.call("ai:skill:cancel", {"runId": "mine"})
    reply = await novel.client.reply("mine")
    end = await novel.client.event("ai:skill:stream")

    assert event["delta"] == "夜"
    assert canceled == {"runId": "mine", "canceled": True}
    assert reply["error"]["data"]["code"] == "CANCELED"
    assert end["done"] is True
    again = await novel.client.call("ai:skill:cancel", {"runId": "mine"})
    assert again["canceled"] is False


async def test_cancelling_the_request_cancels_the_run(novel: Novel) -> None:
    await novel.script({"text": "夜", "after": 1, "stall": True})
    await novel.start("mine", stream=True)
    await novel.client.event("ai:skill:stream")

    await novel.client.post(
        {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "mine"}}
    )
    reply = await novel.client.reply("mine")

    assert reply["error"]["data"]["code"] == "CANCELED"
    assert (await novel.client.call("ai:skill:cancel", {"runId": "mine"}))["canceled"] is False


@pytest.mark.requirement("SK-040")
async def test_a_run_that_takes_too_long_answers_timeout(novel: Novel) -> None:
    await novel.script({"stall": True})

    error = await novel.client.failure(
        "ai:skill:run", novel.payload() | {"_meta": {"timeoutMs": 50}}
    )

    assert error.code == "TIMEOUT"


@pytest.mark.parametrize(
    "code", ["UPSTREAM_ERROR", "AI_AUTH_FAILED", "AI_RATE_LIMITED", "AI_NOT_CONFIGURED", "TIMEOUT"]
)
async def test_a_failure_of_the_provider_keeps_its_code(novel: Novel, code: str) -> None:
    await novel.script({"text": "夜", "after": 1, "fail": code, "retryAfterMs": 700})

    error = await novel.client.failure("ai:skill:run", novel.payload())

    assert error.code == code
    assert error.details["retryAfterMs"] == 700


async def test_a_run_id_that_is_under_way_is_a_conflict(novel: Novel) -> None:
    await novel.script({"text": "夜", "after": 1, "stall": True})
    await novel.start("mine", stream=True)
    await novel.client.event("ai:skill:stream")

    error = await novel.client.failure("ai:skill:run", novel.payload(runId="mine"))
    await novel.client.call("ai:skill:cancel", {"runId": "mine"})
    await novel.client.reply("mine")
    run = await novel.run(runId="mine")

    assert error.code == "CONFLICT"
    assert run["runId"] == "mine"


async def test_a_renderer_stops_only_its_own_runs(novel: Novel, server: Server) -> None:
    await novel.script({"text": "夜", "after": 1, "stall": True})
    await novel.start("mine", stream=True)
    await novel.client.event("ai:skill:stream")

    async with in_memory(server, role=Role.RENDERER) as renderer:
        by_renderer = await renderer.call("ai:skill:cancel", {"runId": "mine"})
    async with in_memory(server) as owner:
        by_owner = await owner.call("ai:skill:cancel", {"runId": "mine"})

    assert by_renderer["canceled"] is False
    assert by_owner["canceled"] is True
    assert (await novel.client.reply("mine"))["error"]["data"]["code"] == "CANCELED"


async def test_a_client_that_goes_away_stops_its_run(novel: Novel, server: Server) -> None:
    await novel.script({"text": "夜", "after": 1, "stall": True})
    async with in_memory(server) as other:
        await other.post(
            {
                "jsonrpc": "2.0",
                "id": "r",
                "method": "ai:skill:run",
                "params": novel.payload(runId="theirs", stream=True),
            }
        )
        await other.event("ai:skill:stream")

    with anyio.fail_after(60):
        while server.in_flight:
            await anyio.lowlevel.checkpoint()
    assert (await novel.client.call("ai:skill:cancel", {"runId": "theirs"}))["canceled"] is False


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"projectId": "prj_x"}, "NOT_FOUND"),
        ({"projectId": ""}, "INVALID_ARGUMENT"),
        ({"documentId": ""}, "INVALID_ARGUMENT"),
        ({"skillId": " "}, "INVALID_ARGUMENT"),
        ({"cursorPosition": -1}, "INVALID_ARGUMENT"),
        ({"runId": "no spaces"}, "INVALID_ARGUMENT"),
        ({"runId": ""}, "INVALID_ARGUMENT"),
        ({"onViolation": "punish"}, "INVALID_ARGUMENT"),
        ({"input": "字" * 200_000}, "CONTEXT_INPUT_TOO_LARGE"),
    ],
)
async def test_a_bad_request_costs_one_error(
    novel: Novel, payload: dict[str, Any], code: str
) -> None:
    error = await novel.client.failure("ai:skill:run", novel.payload(**payload))

    assert error.code == code


async def test_an_invalid_skill_is_not_run(novel: Novel) -> None:
    novel.put(".creonow/skills/bad/SKILL.md", "---\ncontext_rules: {surounding: 1}\n---\n")

    error = await novel.client.failure("ai:skill:run", novel.payload(skillId="project:bad"))

    assert error.code == "INVALID_ARGUMENT"
    assert error.details["key"] == "context_rules.surounding"


async def test_an_unknown_skill_runs_with_everything_and_a_warning(novel: Novel) -> None:
    run = await novel.run(skillId="nobody:knows", input="写一首诗")

    assert any(warning.startswith("SKILL_UNKNOWN") for warning in run["warnings"])
    assert "写一首诗" in run["output"]


@pytest.mark.requirement("CE-046")
async def test_a_broken_constraint_is_annotated_with_its_place(novel: Novel) -> None:
    await novel.constrain("避免使用感叹号", "严格第一人称叙述")
    await novel.script({"text": "😀站住！"})

    run = await novel.run()

    verdict = run["verdict"]
    assert verdict["status"] == "violated"
    assert [(v["from"], v["to"], v["by"]) for v in verdict["violations"]] == [(3, 4, "rules")]
    assert verdict["violations"][0]["constraint"] == "避免使用感叹号"
    assert [one["constraint"] for one in verdict["unchecked"]] == ["严格第一人称叙述"]
    assert run["attempts"] == 1


async def test_positions_are_in_the_units_of_the_connection(novel: Novel) -> None:
    await novel.constrain("避免使用感叹号")
    await novel.client.call("initialize", {"positionEncoding": "utf-16"})
    await novel.script({"text": "😀站住！"})

    (violation,) = (await novel.run())["verdict"]["violations"]

    assert (violation["from"], violation["to"]) == (4, 5)


@pytest.mark.requirement("CE-046")
async def test_a_run_writes_once_more_with_the_violation_named(novel: Novel) -> None:
    await novel.constrain("避免使用感叹号")
    await novel.script({"text": "站住！"}, {})

    run = await novel.run(onViolation="regenerate", stream=True, input="更紧张")
    events = [e["params"] for e in novel.client.events if e["method"] == "ai:skill:stream"]

    assert run["attempts"] == 2
    assert run["earlier"]["output"] == "站住！"
    assert run["earlier"]["verdict"]["status"] == "violated"
    assert "更紧张" in run["output"]
    assert "上一稿违反了以下约束" in run["output"]
    assert run["diagnostics"]["stablePrefixUnchanged"] is True
    assert events[0]["attempt"] == 1
    assert "".join(e["delta"] for e in events if e["attempt"] == 2) == run["output"]


async def test_a_run_that_keeps_its_constraints_is_not_repeated(novel: Novel) -> None:
    await novel.constrain("避免使用感叹号")
    await novel.script({"text": "站住。"}, {"text": "不该写。"})

    run = await novel.run(onViolation="regenerate")

    assert (run["attempts"], run["output"], run["verdict"]["status"]) == (1, "站住。", "passed")


async def test_the_model_judges_what_rules_cannot(novel: Novel) -> None:
    await novel.constrain("严格第一人称叙述")
    verdict = '{"violations":[{"constraint":1,"quote":"他走了","confidence":0.8,"reason":"x"}]}'
    await novel.script({"text": "夜里他走了。"}, verdicts=(verdict,))

    run = await novel.run()

    (violation,) = run["verdict"]["violations"]
    assert (violation["from"], violation["to"], violation["confidence"]) == (2, 5, 0.8)
    assert violation["by"] == "model"


@pytest.mark.parametrize(("mode", "reason"), [("off", "judging is off"), ("rules", "no model")])
async def test_judging_can_be_limited_per_run(novel: Novel, mode: str, reason: str) -> None:
    await novel.constrain("严格第一人称叙述")
    await novel.script({"text": "他走了。"}, verdicts=('{"violations":[]}',))

    run = await novel.run(judge=mode)

    assert run["verdict"]["status"] == "unchecked"
    assert run["verdict"]["unchecked"][0]["reason"].startswith(reason)


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b'{"version":99,"items":[]}'])
async def test_constraints_that_nobody_could_read_are_not_passed(
    novel: Novel, damage: bytes
) -> None:
    await novel.constrain("避免使用感叹号")
    (novel.root / ".creonow/rules/constraints.json").write_bytes(damage)
    await novel.script({"text": "站住！"})

    run = await novel.run()

    assert run["verdict"]["status"] == "unchecked"
    assert [one["constraintId"] for one in run["verdict"]["unchecked"]] == [
        ".creonow/rules/constraints.json"
    ]


@pytest.mark.parametrize("skill", ["builtin:continue", "builtin:consistency"])
async def test_terms_that_nobody_could_read_are_not_passed(novel: Novel, skill: str) -> None:
    novel.put(".creonow/rules/terminology.json", '{"terms":[')
    await novel.script({"text": "他取出灵晶。"})

    run = await novel.run(skillId=skill)

    assert run["verdict"]["status"] == "unchecked"
    assert run["verdict"]["unchecked"][0]["constraintId"] == ".creonow/rules/terminology.json"


async def test_an_echo_is_not_judged(novel: Novel) -> None:
    """The prompt names what it forbids, so that its echo would break every ban."""
    await novel.constrain("不得使用“忽然”一词", "避免使用感叹号")

    run = await novel.run(input="快走！", onViolation="regenerate")

    verdict = run["verdict"]
    assert (verdict["status"], verdict["violations"], run["attempts"]) == ("unchecked", [], 1)
    assert {one["code"] for one in verdict["unchecked"]} == {"echo"}
    assert len(verdict["unchecked"]) == 2


@pytest.mark.parametrize(
    ("locale", "reason", "message"),
    [
        ("zh-CN", "没有可用于评判的模型", "叙述用了第三人称：对话之外有 3 处“他”“她”，没有“我”。"),
        (
            "en",
            "no model is configured to judge",
            "The narration is in the third person: 3 such pronouns outside dialogue, and no “I”.",
        ),
    ],
)
async def test_reasons_come_in_the_language_of_the_client(
    novel: Novel, locale: str, reason: str, message: str
) -> None:
    await novel.client.call("initialize", {"locale": locale})
    await novel.constrain("严格第一人称叙述", "林远性格冷静")
    await novel.script({"text": "他站住了。“我不走。”他说。她没有作声。"})

    verdict = (await novel.run())["verdict"]

    assert [(v["message"], v["confidence"]) for v in verdict["violations"]] == [(message, 0.8)]
    assert [(one["code"], one["reason"]) for one in verdict["unchecked"]] == [("no_model", reason)]


async def test_a_run_that_nobody_judged_has_not_passed(novel: Novel) -> None:
    run = await novel.run(judge="off")

    assert run["verdict"]["status"] == "unchecked"


@pytest.mark.parametrize("code", ["AI_RATE_LIMITED", "UPSTREAM_ERROR", "TIMEOUT"])
async def test_what_was_written_is_not_lost_if_writing_again_fails(novel: Novel, code: str) -> None:
    await novel.constrain("避免使用感叹号")
    await novel.script({"text": "站住！"}, {"text": "站", "after": 1, "fail": code})

    run = await novel.run(onViolation="regenerate", stream=True)

    assert (run["output"], run["attempts"]) == ("站住！", 1)
    assert run["verdict"]["status"] == "violated"
    assert f"AI_REWRITE_FAILED: {code}" in run["warnings"]


async def test_a_run_is_cancelled_while_it_writes_again(novel: Novel) -> None:
    await novel.constrain("避免使用感叹号")
    await novel.script({"text": "站住！"}, {"text": "站", "after": 1, "stall": True})
    await novel.start("mine", onViolation="regenerate", stream=True)
    await novel.client.event("ai:skill:stream", lambda event: event["attempt"] == 2)

    await novel.client.call("ai:skill:cancel", {"runId": "mine"})

    assert (await novel.client.reply("mine"))["error"]["data"]["code"] == "CANCELED"


@pytest.mark.parametrize("content", ['{"terms": 5}', '{"terms": [5]}', '{"banned": 5}', "[]"])
async def test_terms_of_a_wrong_shape_are_unchecked(novel: Novel, content: str) -> None:
    """The prompt leaves such a file out, so a verdict may not pass it over in silence."""
    novel.put(".creonow/rules/terminology.json", content)
    await novel.script({"text": "他取出灵晶。"})

    run = await novel.run()

    (unchecked,) = run["verdict"]["unchecked"]
    assert (unchecked["constraintId"], unchecked["code"]) == (
        ".creonow/rules/terminology.json",
        "unread",
    )
    assert run["verdict"]["status"] == "unchecked"
    assert any(one.startswith("RULES_UNAVAILABLE: ") for one in run["warnings"])


async def test_preferred_terms_are_judged(novel: Novel) -> None:
    novel.put(".creonow/rules/terminology.json", '{"terms":[{"term":"灵石","avoid":["灵晶"]}]}')
    await novel.script({"text": "他取出灵晶。"})

    run = await novel.run()

    (violation,) = run["verdict"]["violations"]
    assert violation["quote"] == "灵晶"
    assert violation["constraintId"] == ".creonow/rules/terminology.json"


@pytest.mark.requirement("SK-034")
async def test_the_next_run_knows_what_was_accepted_of_the_last_ones(novel: Novel) -> None:
    await novel.script({"text": "他终于睡着了。"}, {"text": "天亮了。"}, {"text": "又下雨了。"})
    for run_id in ("r1", "r2", "r3"):
        await novel.run(input=f"写{run_id}", runId=run_id)
    pending = await novel.run()
    for channel, run_id in (("accept", "r1"), ("discard", "r2")):
        await novel.client.call(f"ai:run:{channel}", novel.params | {"runId": run_id})

    run = await novel.run()
    elsewhere = await novel.run(documentId="二.md")

    assert "已采纳" not in pending["output"]
    assert (
        "### ref:runs/1\n技能：续写\n指令：写r1\n已采纳（7 字）：他终于睡着了。\n" in run["output"]
    )
    assert "天亮了" not in run["output"] + pending["output"]
    assert "又下雨了" not in run["output"] + pending["output"]
    assert "睡着了" not in elsewhere["output"]


async def test_what_was_undone_is_forgotten(novel: Novel) -> None:
    await novel.script({"text": "他终于睡着了。"})
    await novel.run(runId="r1")
    await novel.client.call("ai:run:accept", novel.params | {"runId": "r1"})
    accepted = await novel.assemble()

    await novel.client.call("ai:run:discard", novel.params | {"runId": "r1"})
    discarded = await novel.assemble()

    assert "睡着了" in accepted["prompt"]
    assert "睡着了" not in discarded["prompt"]


async def test_only_what_was_taken_over_is_remembered(novel: Novel) -> None:
    secret = "sk-THIS_SHOULD_BE_REDACTED_0123456789"
    await novel.script({"text": "他终于睡着了。天亮了。"})
    await novel.run(runId="r1")

    decided = await novel.client.call(
        "ai:run:accept", novel.params | {"runId": "r1", "text": f"天亮了。{secret}"}
    )

    prompt = (await novel.assemble())["prompt"]
    assert "已采纳（41 字）：天亮了。***REDACTED***\n" in prompt
    assert "睡着了" not in prompt
    assert decided["run"]["excerpt"] == "天亮了。***REDACTED***"
    assert decided["run"]["characters"] == 41


async def test_runs_are_listed_with_what_was_decided(novel: Novel) -> None:
    await novel.script({"text": "一。"}, {"text": "二。"})
    await novel.run(runId="r1", input="快")
    await novel.run(runId="r2", documentId="二.md")
    await novel.client.call("ai:run:discard", novel.params | {"runId": "r1"})

    async def listed(**filters: Any) -> list[tuple[str, str, str]]:
        found = await novel.client.call("ai:run:list", novel.params | filters)
        return [(run["runId"], run["documentId"], run["status"]) for run in found["runs"]]

    assert sorted(await listed()) == [("r1", "一.md", "discarded"), ("r2", "二.md", "pending")]
    assert await listed(documentId="二.md") == [("r2", "二.md", "pending")]
    assert await listed(status="discarded") == [("r1", "一.md", "discarded")]
    assert await listed(status="accepted") == await listed(documentId="三.md") == []
    assert len(await listed(limit=1)) == 1
    (run,) = (await novel.client.call("ai:run:list", novel.params | {"documentId": "一.md"}))[
        "runs"
    ]
    assert (run["skillName"], run["instruction"], run["excerpt"]) == ("续写", "快", "一。")
    assert run["decidedAtMs"] >= run["atMs"]


@pytest.mark.parametrize("channel", ["ai:run:accept", "ai:run:discard"])
async def test_deciding_on_an_unknown_run_is_a_clear_error(novel: Novel, channel: str) -> None:
    await novel.run(runId="r1")

    unknown = await novel.client.failure(channel, novel.params | {"runId": "r2"})
    malformed = await novel.client.failure(channel, novel.params | {"runId": "../r1"})
    elsewhere = await novel.client.failure(channel, {"projectId": "prj_none", "runId": "r1"})

    assert (unknown.code, unknown.details) == ("NOT_FOUND", {"runId": "r2"})
    assert (malformed.code, malformed.details["field"]) == ("INVALID_ARGUMENT", "runId")
    assert elsewhere.code == "NOT_FOUND"


async def test_a_page_decides_on_runs(novel: Novel, server: Server) -> None:
    await novel.run(runId="r1")

    async with in_memory(server, role=Role.RENDERER) as page:
        decided = await page.call("ai:run:accept", novel.params | {"runId": "r1"})
        again = await page.call("ai:run:accept", novel.params | {"runId": "r1"})
        listed = await page.call("ai:run:list", novel.params)

    assert decided["run"]["status"] == "accepted"
    assert again == decided
    assert listed["runs"] == [decided["run"]]


async def test_a_secret_reaches_neither_prompt_nor_record(novel: Novel, session: Any) -> None:
    secret = "sk-THIS_SHOULD_BE_REDACTED_0123456789"
    novel.put(".creonow/rules/style.md", f"apiKey={secret}\n短句。\n")

    run = await novel.run(input=f"用 {secret} 写")

    assert secret not in repr(run)
    assert "***REDACTED***" in run["output"]
    assert run["diagnostics"]["redactionEvidence"]
    stored = [
        path.read_text(encoding="utf-8") for path in session.user_data.rglob("runs/*/*.jsonl")
    ]
    assert stored
    assert not [text for text in stored if secret in text]


async def test_usage_is_set_beside_our_own_count(novel: Novel, session: Any) -> None:
    await novel.script({"text": "好。", "usage": {"inputTokens": 9000, "outputTokens": 3}})

    run = await novel.run()

    usage = run["usage"]
    assert usage["difference"] == 9000 - run["diagnostics"]["tokenCount"]
    (record,) = await session.runs.recent(novel.project_id, "一.md")
    assert (record.input_tokens, record.token_count) == (9000, usage["estimatedInputTokens"])


async def test_a_run_teaches_the_counts_of_its_model(novel: Novel) -> None:
    novel.put(".creonow/rules/style.md", "写得克制，少用形容词。\n" * 60)
    change = novel.params | {"version": 1, "model": "claude-sonnet-5"}
    await novel.client.call("context:budget:update", change)
    before = await novel.assemble()
    counted = {"inputTokens": round(1.2 * before["tokenCount"]), "outputTokens": 3}
    await novel.script({"text": "好。", "usage": counted})

    await novel.run()
    after = await novel.assemble()
    learned = await novel.client.call("tokens:corrections:list")
    left = await novel.client.call("tokens:corrections:reset", {"model": "claude-sonnet-5"})
    again = await novel.assemble()

    assert before["tokenCount"] > 500
    assert after["countCorrection"] == {"factor": 1.21875, "runs": 1}
    assert after["budget"]["maxInputTokens"] == 6000 * 32 // 39
    assert [one["model"] for one in learned["models"]] == ["claude-sonnet-5"]
    assert left == {"models": []}
    assert again["promptHash"] == before["promptHash"]
    assert "countCorrection" not in before | again


async def test_the_usage_of_an_earlier_attempt_is_reported_too(novel: Novel) -> None:
    """A run that writes twice is paid for twice."""
    await novel.constrain("避免使用感叹号")
    first = {"text": "站住！", "usage": {"inputTokens": 9000, "outputTokens": 3}}
    await novel.script(first, {"text": "站住。", "usage": {"inputTokens": 9100, "outputTokens": 4}})

    run = await novel.run(onViolation="regenerate")

    assert [u["inputTokens"] for u in (run["earlier"]["usage"], run["usage"])] == [9000, 9100]
    ours = [u["estimatedInputTokens"] for u in (run["earlier"]["usage"], run["usage"])]
    assert ours[0] < ours[1]


async def test_an_output_is_not_lost_if_it_cannot_be_recorded(novel: Novel, session: Any) -> None:
    (session.user_data / "runs").write_text("in the way", encoding="utf-8")
    await novel.script({"text": "好。"})

    run = await novel.run()

    assert run["output"] == "好。"
    assert any(warning.startswith("RUNS_UNAVAILABLE") for warning in run["warnings"])


async def test_a_run_is_on_the_disk_before_it_is_answered(novel: Novel, session: Any) -> None:
    run = await novel.run()

    (kept,) = await Runs(session.user_data).recent(novel.project_id, "一.md")

    assert kept.run_id == run["runId"]
    assert kept.verdict == run["verdict"]["status"]


async def test_a_run_can_be_cancelled_at_every_step(novel: Novel, session: Any) -> None:
    """Whenever it comes, there is one reply, and what is on the disk is what is remembered."""
    done = 0
    for steps in range(0, 800, 20):
        await novel.start(f"r{steps}", stream=True)
        for _ in range(steps):
            await anyio.lowlevel.checkpoint()
        await novel.client.call("ai:skill:cancel", {"runId": f"r{steps}"})
        reply = await novel.client.reply(f"r{steps}")
        done += "result" in reply
        assert "result" in reply or reply["error"]["data"]["code"] == "CANCELED"

    await novel.run(runId="last")
    remembered = await session.runs.recent(novel.project_id, "一.md")
    ended = [e["params"] for e in novel.client.events if e["params"].get("done")]

    assert remembered == await Runs(session.user_data).recent(novel.project_id, "一.md")
    assert remembered[-1].run_id == "last"
    assert done + 1 <= remembered[-1].number <= 41
    assert len(ended) == 40


async def test_runs_at_once_on_one_document_do_not_mix(novel: Novel) -> None:
    names = [f"r{number}" for number in range(6)]
    for name in names:
        await novel.start(name, input=f"写{name}。", stream=True)

    outputs = {name: (await novel.client.reply(name))["result"]["output"] for name in names}

    for name in names:
        streamed = "".join(
            event["params"]["delta"]
            for event in novel.client.events
            if event["params"].get("runId") == name
        )
        assert streamed == outputs[name]
        assert f"写{name}。" in streamed


@pytest.mark.parametrize("daemon_settings", [Settings(e2e=True, ai_provider="openai")])
async def test_without_a_provider_a_run_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, novel: Novel
) -> None:
    for name in ("OPENAI_API_KEY", "CREONOW_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)

    error = await novel.client.failure("ai:skill:run", novel.payload())

    assert error.code == "AI_NOT_CONFIGURED"
    assert "OPENAI_API_KEY" in str(error)


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes before `client` in a test, so that the daemon starts with the key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "CREONOW_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def test_the_fake_answers_by_default(client: Client) -> None:
    assert await client.call("ai:config:get") == {
        "backend": "default",
        "backends": [{"name": "default", "provider": "fake", "model": ""}],
        "contextWindowTokens": 8000,
        "totalBudgetTokens": 6000,
        "outputReserveTokens": 1500,
        "warnings": [],
        "notices": [],
        "provider": "fake",
        "model": "gpt-4o",
        "ready": True,
        "judge": "model",
        "judgedBy": "nobody",
        "promptCache": True,
    }


async def test_the_configuration_says_who_can_judge(novel: Novel) -> None:
    async def judged_by() -> str:
        return (await novel.client.call("ai:config:get"))["judgedBy"]

    echo = await judged_by()
    await novel.script({"text": "好。"})
    scripted = await judged_by()
    await novel.script({"text": "好。"}, verdicts=('{"violations":[]}',))

    assert (echo, scripted, await judged_by()) == ("nobody", "rules", "model")


@pytest.mark.parametrize("daemon_settings", [KEYLESS])
async def test_without_a_key_nobody_judges(no_key: None, client: Client) -> None:
    assert (await client.call("ai:config:get"))["judgedBy"] == "nobody"


@pytest.mark.parametrize("daemon_settings", [SECRETIVE])
async def test_the_configuration_has_no_secret(key: None, client: Client) -> None:
    config = await client.call("ai:config:get")

    assert config["baseUrl"] == "https://example.com/v1"
    assert (config["model"], config["keyOrigin"]) == ("gpt-5", "environment")
    assert KEY not in repr(config)


@pytest.mark.parametrize("daemon_settings", [KEYLESS])
async def test_the_configuration_says_what_is_missing(
    no_key: None, client: Client, tmp_path: Path
) -> None:
    config = await client.call("ai:config:get")

    assert config["ready"] is False
    assert "OPENAI_API_KEY" in config["problem"]
    assert str(tmp_path) not in config["problem"]


async def test_an_unknown_project_is_not_found(client: Client) -> None:
    assert (await client.failure("ai:config:get", {"projectId": "prj_x"})).code == "NOT_FOUND"


@pytest.mark.parametrize("daemon_settings", [SECRETIVE])
async def test_only_the_fake_follows_a_script(key: None, client: Client) -> None:
    assert (await client.failure("e2e:ai:script")).code == "UNSUPPORTED"


@pytest.mark.parametrize("absent", [{}, {"skillId": None}], ids=["absent", "null"])
async def test_without_a_skill_everything_is_read_and_nothing_is_warned_of(
    novel: Novel, absent: dict[str, Any]
) -> None:
    payload = {key: value for key, value in novel.payload().items() if key != "skillId"} | absent
    indexed = novel.params | {"documentId": "一.md", "cursorPosition": 0, "wait": True}
    await novel.client.call("context:retrieve", indexed)
    unknown = await novel.assemble(skillId="nobody:knows")

    result = await novel.client.call("context:assemble", payload)
    run = await novel.client.call("ai:skill:run", payload | {"input": "写下去。"})
    blank = await novel.client.failure("context:assemble", payload | {"skillId": " "})

    assert warnings_beside_index(unknown) == ["SKILL_UNKNOWN"]
    assert warnings_beside_index(result) == []
    assert result["prompt"] == unknown["prompt"]
    assert run["skillId"] is None
    assert warnings_beside_index(run) == []
    assert "写下去。" in run["output"]
    assert (blank.code, blank.details["field"]) == ("INVALID_ARGUMENT", "skillId")


async def test_an_accepted_run_without_a_skill_is_remembered(novel: Novel) -> None:
    await novel.script({"text": "他终于睡着了。"})
    await novel.run(skillId=None, runId="r1", input="写困意")
    accepted = await novel.client.call("ai:run:accept", novel.params | {"runId": "r1"})

    prompt = (await novel.assemble())["prompt"]

    assert accepted["run"]["skillId"] is None
    assert "### ref:runs/1\n指令：写困意\n已采纳（7 字）：他终于睡着了。\n" in prompt


NOT_SELECTED: list[dict[str, Any]] = [
    {},
    {"selection": None},
    {"selection": {"from": 3, "to": 3}},
    {"selection": {"from": 12, "to": 14}},
    {"selection": {"from": 10_000, "to": 10_009}},
    {"documentId": "none.md"},
]


@pytest.mark.parametrize("slug", ["polish", "condense", "expand"])
@pytest.mark.parametrize("asked", NOT_SELECTED)
async def test_a_skill_that_rewrites_a_selection_is_refused_without_one(
    novel: Novel, slug: str, asked: dict[str, Any]
) -> None:
    payload = novel.payload(skillId=f"builtin:{slug}", **asked)

    for channel in ("context:assemble", "ai:skill:run"):
        error = await novel.client.failure(channel, payload)

        assert error.code == "SKILL_SELECTION_REQUIRED"
        assert error.details == {"field": "selection", "skillId": f"builtin:{slug}"}
        assert "select" in str(error)


async def test_the_refusal_comes_in_the_clients_language(server: Server, novel: Novel) -> None:
    async with in_memory(server) as chinese:
        info = {"clientInfo": {"name": "t", "version": "1"}, "locale": "zh-CN"}
        await chinese.call("initialize", info)
        error = await chinese.failure("context:assemble", novel.payload(skillId="builtin:polish"))

    assert "此技能需要选中的文字" in str(error)


async def test_a_selection_in_a_document_that_cannot_be_read_is_no_refusal(novel: Novel) -> None:
    selected = {"from": 0, "to": 5}

    result = await novel.assemble(
        skillId="builtin:polish", documentId="none.md", selection=selected
    )

    assert any(warning.startswith("IMMEDIATE_UNAVAILABLE") for warning in result["warnings"])
