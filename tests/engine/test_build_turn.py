"""`context:build` and `context:codelaw:status` over the wire."""

import json
import os
import re
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from creonowd.engine.build_turn import BuildContext, build_context
from creonowd.engine.services import Session
from creonowd.errors import ErrorCode, same_wording
from creonowd.history.summary import LABELS
from creonowd.providers.fake import Fake, Script, ScriptedAnswer
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.tokens import ByteTokenizer, CountKind, Tokenizer, Tokenizers
from testing.clients import Client, in_memory
from testing.conversations import (
    SECRETS,
    assistant,
    broken_pairs,
    calls,
    realistic_round,
    result,
    user,
)
from testing.novels import Chat, make_chat

ORDER = [
    "system_prompt",
    "code_law",
    "tool_prompts",
    "summary",
    "recent_messages",
    "user_input",
    "todo_recap",
]
BY_MODEL = Settings(e2e=True, warm_up=False, history_summariser="model", history_budget_tokens=4000)
QUICK = msgspec.structs.replace(BY_MODEL, history_summary_timeout_ms=50)
TIGHT = Settings(
    e2e=True,
    warm_up=False,
    history_rounds=3,
    history_rounds_floor=1,
    history_summary_at=0.1,
    history_budget_tokens=9000,
    tool_grep_lines=2,
)
STEPS = [{"text": "outline", "status": "completed"}, {"text": "draft", "status": "in_progress"}]


@pytest.fixture
async def chat(client: Client, tmp_path: Path) -> Chat:
    return await make_chat(client, tmp_path / "book")


async def talk(chat: Chat, rounds: int, start: int = 0) -> None:
    for number in range(start, start + rounds):
        await chat.call("context:history:append", messages=realistic_round(number))


async def build(chat: Chat, **more: Any) -> Any:
    return await chat.call(
        "context:build", **{"input": "next", "systemPrompt": "You help.", **more}
    )


@pytest.mark.requirement("CB-023", "CB-024", "CB-016", "CB-044", "CB-032", "CB-033", "CB-049")
async def test_parts_come_in_the_fixed_order(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "book" / "code_law.md").write_text("# Repository Guidelines\n", encoding="utf-8")
    await talk(chat, 20)

    built = await build(chat, toolPrompts=["Use Read.", "Use Edit."], todo=STEPS)
    plain = await build(chat, todo=[])

    messages = built["messages"]
    assert built["assemblyOrder"] == ORDER
    assert [m["content"] for m in messages[:4]] == [
        "You help.",
        "# Repository Guidelines\n",
        "Use Read.",
        "Use Edit.",
    ]
    assert [m["role"] for m in messages[:5]] == ["system"] * 5
    assert messages[4]["content"].startswith("[History Summary]\n- Overall Goal: ")
    assert messages[-2] == {"role": "user", "content": "next"}
    assert messages[-1]["content"] == "[Todo] 1 of 2 done; now: draft."
    assert any(m["role"] == "tool" for m in messages)
    assert plain["assemblyOrder"] == [p for p in ORDER if p not in {"tool_prompts", "todo_recap"}]
    assert "Summary" not in messages[0]["content"]


async def test_the_count_is_exact_and_every_candidate_accounted_for(
    chat: Chat, client: Client
) -> None:
    await talk(chat, 14)

    built = await build(chat, todo=STEPS, budgetTokens=4000)

    texts = [m["content"] for m in built["messages"]]
    for message in built["messages"]:
        for call in message.get("toolCalls", []):
            texts += [
                call["name"],
                json.dumps(call["arguments"], separators=(",", ":"), ensure_ascii=False),
            ]
    counts = [(await client.call("tokens:count", {"text": text}))["tokens"] for text in texts]
    kept = [e for e in built["trimEvidence"] if e["action"] != "dropped"]
    assert built["tokenCount"] == sum(counts) <= 4000
    assert sum(e["afterTokens"] for e in built["trimEvidence"]) == built["tokenCount"]
    assert sum(part["tokens"] for part in built["parts"]) == built["tokenCount"]
    assert len(kept) == len(built["messages"])


@pytest.mark.requirement("CB-028", "CB-039", "CB-020", "CB-025", "CB-026", "CB-017")
async def test_the_summary_sets_in_at_half_the_budget_and_the_log_keeps_all(chat: Chat) -> None:
    builds: list[Any] = []
    for number in range(30):
        await talk(chat, 1, number)
        builds.append(await build(chat))

    first = next(n for n, built in enumerate(builds) if "summary" in built)
    read = await chat.call("context:history:read")
    lines = next(m for m in builds[first]["messages"] if "[History Summary]" in m["content"])
    assert builds[0]["budgetTokens"] == 16_000
    grown = max(builds[n + 1]["tokenCount"] - builds[n]["tokenCount"] for n in range(first - 1))
    assert 8000 - grown <= builds[first - 1]["tokenCount"] < 8000
    assert builds[first]["recentRounds"] == 5
    assert builds[first]["summary"]["coversRounds"] == first + 1 - 5
    assert [line.split(":")[0] for line in lines["content"].split("\n")[1:-1]] == [
        f"- {label}" for label in LABELS.values()
    ]
    assert all(built["recentRounds"] >= 5 for built in builds[first:])
    assert read["totalRounds"] == 30


@pytest.mark.requirement("CB-030", "CB-031", "CB-042", "CB-029", "CB-046", "CB-019", "CB-040")
async def test_parts_yield_in_their_order_as_the_budget_shrinks(chat: Chat, client: Client) -> None:
    await talk(chat, 12)
    steps: list[list[str]] = []
    rounds: list[int] = []
    for budget in [*range(5200, 600, -100), *range(600, 100, -20)]:
        asked = {"input": "next", "systemPrompt": "You help.", "todo": STEPS}
        payload = {**chat.key, **asked, "budgetTokens": budget}
        answer = await client.call("context:build", payload)
        steps.append(answer["steps"])
        rounds.append(answer["recentRounds"])

    order = [
        "tool_snippets",
        "summary_lines",
        "recent_rounds",
        "todo_recap",
        "summary",
        "tool_refs",
        "floor_rounds",
    ]
    assert [] in steps
    assert order in steps
    assert rounds == sorted(rounds, reverse=True)
    assert {2, 3, 4} <= set(rounds)
    assert all(
        taken[-1:] == ["floor_rounds"]
        for taken, left in zip(steps, rounds, strict=True)
        if left < 2
    )
    for taken in steps:
        assert taken == [step for step in order if step in taken]
        assert not {"todo_recap", "summary"} & set(taken) or "recent_rounds" in taken


@pytest.mark.requirement("CB-027")
async def test_what_may_not_be_cut_is_refused_if_it_does_not_fit(
    chat: Chat, tmp_path: Path
) -> None:
    law = "\n".join(f"Rule {n}: write plainly." for n in range(200))
    (tmp_path / "book" / "code_law.md").write_text(law, encoding="utf-8")
    await talk(chat, 8)

    fits = await build(chat, budgetTokens=4000)
    error = await chat.failure("context:build", input="x", systemPrompt="y", budgetTokens=500)
    huge = await chat.failure("context:build", input="x", systemPrompt="y" * 3_000_000)

    assert fits["messages"][1]["content"] == law
    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert error.details["heaviest"] == "code_law"
    assert error.details["budgetTokens"] == 500
    assert huge.code == "CONTEXT_INPUT_TOO_LARGE"
    assert huge.details["heaviest"] == "system_prompt"


async def test_the_beginning_of_the_prompt_stays_from_turn_to_turn(chat: Chat) -> None:
    await talk(chat, 3)
    first = await build(chat)
    await talk(chat, 1, 3)
    second = await build(chat)
    third = await build(chat, systemPrompt="Another.")

    assert first["prefix"]["share"] == 0
    assert second["prefix"]["stablePrefixUnchanged"]
    assert second["prefix"]["share"] > 0.6
    assert second["prefix"]["stablePrefixHash"] == first["prefix"]["stablePrefixHash"]
    assert not third["prefix"]["stablePrefixUnchanged"]
    assert third["prefix"]["share"] < 0.1


@pytest.mark.requirement("CB-037")
async def test_the_unfinished_round_has_its_observations_in_full(chat: Chat) -> None:
    listing = "\n".join(f"file_{n}.md" for n in range(60))
    asked = [user("look"), calls(("c1", "LS", {"path": "."})), result("c1", listing)]
    await chat.call("context:history:append", messages=asked)

    during = await build(chat, input="look")
    await chat.call("context:history:append", messages=[assistant("Sixty files.")])
    after = await build(chat, input="thanks")

    assert [m["role"] for m in during["messages"]] == ["system", "user", "assistant", "tool"]
    assert during["messages"][-1]["content"] == listing
    assert during["assemblyOrder"] == ["system_prompt", "user_input", "recent_messages"]
    assert "file_59.md" not in json.dumps(after)
    assert "60 entries" in json.dumps(after)


async def test_a_call_without_a_result_gets_a_note_in_its_place(chat: Chat) -> None:
    asked = [user("look"), calls(("c1", "LS", {}), ("c2", "LS", {})), result("c2", "a")]
    await chat.call(
        "context:history:append", messages=[*asked, user("never mind"), assistant("Fine.")]
    )

    built = await build(chat)

    assert broken_pairs(built["messages"]) == []
    assert "[no result was recorded]" in json.dumps(built)


@pytest.mark.requirement("CB-035", "CB-051", "CB-053", "CB-054", "CB-055", "CB-034", "CB-052")
async def test_code_law_is_reported_read_again_when_it_changes_and_never_written(
    chat: Chat, client: Client, session: Session, tmp_path: Path
) -> None:
    project = {"projectId": chat.key["projectId"]}
    path = tmp_path / "book" / "code_law.md"

    missing = await client.call("context:codelaw:status", project)
    needed = await build(chat)
    written_by_us = path.exists()
    path.write_bytes(b"# One\r\n")
    one = await client.call("context:codelaw:status", project)
    built_one = await build(chat)
    path.write_bytes(b"# Two\r\n")
    built_two = await build(chat)
    path.write_bytes(b"\x00\x01\x02\xff")
    broken = await build(chat)

    assert missing["needsGenerating"]
    assert not missing["exists"]
    assert missing["prompt"].startswith("Generate a file named code_law.md that serves as")
    assert missing["prompt"].endswith("Architecture Overview, or Agent-Specific Instructions.")
    assert needed["codeLawNeeded"]
    assert not written_by_us
    assert one["exists"]
    assert one["mtimeMs"] > 0
    assert "prompt" not in one
    assert built_one["messages"][1]["content"] == "# One\n"
    assert built_two["messages"][1]["content"] == "# Two\n"
    assert broken["warnings"][0].startswith("CODE_LAW_UNAVAILABLE")


@pytest.mark.requirement("CB-034", "CB-052")
async def test_turns_read_an_unchanged_code_law_once(
    chat: Chat, session: Session, tmp_path: Path
) -> None:
    path = tmp_path / "book" / "code_law.md"
    path.write_bytes(b"# One\n")
    os.utime(path, (1_600_000_000, 1_600_000_000))

    built = [await build(chat) for _ in range(4)]

    assert {one["messages"][1]["content"] for one in built} == {"# One\n"}
    assert session.code_laws.reads == 1


class Failing(ByteTokenizer):
    """Fails as real ones do."""

    def count(self, text: str) -> int:
        raise ValueError(text)


class OnlyFailing(Tokenizers):
    """Has nothing better."""

    async def get(self, encoding: str = "o200k_base") -> Tokenizer:
        return Failing(same_wording(encoding))


async def test_a_tokenizer_that_fails_costs_exactness_and_not_the_turn(
    chat: Chat, session: Session
) -> None:
    await talk(chat, 3)
    session.tokenizers = OnlyFailing()
    params = BuildContext(
        project_id=chat.key["projectId"],
        conversation_id=chat.key["conversationId"],
        input="next",
        system_prompt="You help.",
    )

    built = await build_context(session, params)

    assert built.warnings[0].startswith("CONTEXT_BUDGET_FALLBACK")
    assert not built.tokenizer_exact
    assert built.token_count == sum(evidence.after_tokens for evidence in built.trim_evidence)


async def test_bad_budgets_and_empty_input_are_refused(chat: Chat) -> None:
    asked = {"input": "x", "systemPrompt": "y"}

    negative = await chat.failure("context:build", **asked, budgetTokens=-1)
    empty = await chat.failure("context:build", input="", systemPrompt="y")
    missing = await chat.failure("context:build", input="x")

    assert {negative.code, empty.code, missing.code} == {"INVALID_ARGUMENT"}
    assert empty.details["field"] == "input"


async def play(session: Session, *steps: ScriptedAnswer) -> Fake:
    fake = await session.ai.open_provider(session.ai.chosen_name)
    assert isinstance(fake, Fake)
    fake.play(Script(steps=steps))
    return fake


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
async def test_a_model_fills_the_same_form_once(chat: Chat, session: Session) -> None:
    form = "\n".join(f"- {label}: told by a model" for label in LABELS.values())
    fake = await play(session, ScriptedAnswer(text=f"Sure!\n[History Summary]\n{form}\n"))
    await talk(chat, 9)

    first = await build(chat)
    second = await build(chat)

    assert first["summary"]["by"] == "model"
    assert first["messages"] == second["messages"]
    assert first["messages"][1]["content"].count("told by a model") == 6
    assert len(fake.calls) == 1


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
@pytest.mark.parametrize(
    "step", [ScriptedAnswer(text="no form"), ScriptedAnswer(text="", fail=ErrorCode.UPSTREAM_ERROR)]
)
async def test_an_extract_steps_in_if_the_model_fails(
    chat: Chat, session: Session, step: ScriptedAnswer
) -> None:
    await play(session, step)
    await talk(chat, 9)

    built = await build(chat)

    read = await chat.call("context:history:read")
    assert built["summary"]["by"] == "extractive"
    assert built["warnings"][0].startswith("SUMMARY_FALLBACK")
    assert built["messages"][1]["content"].startswith("[History Summary]\n- Overall Goal: Please")
    assert read["totalRounds"] == 9


@pytest.mark.parametrize("daemon_settings", [QUICK])
async def test_an_extract_steps_in_if_the_model_stalls_and_it_is_not_asked_again(
    chat: Chat, session: Session
) -> None:
    fake = await play(session, ScriptedAnswer(text="[History", after=0, stall=True))
    await talk(chat, 9)

    with anyio.fail_after(60):
        first = await build(chat)
        second = await build(chat)

    read = await chat.call("context:history:read")
    assert first["summary"]["by"] == "extractive"
    assert first["warnings"][0].startswith("SUMMARY_FALLBACK")
    assert second["messages"] == first["messages"]
    assert len(fake.calls) == 1
    assert read["totalRounds"] == 9


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
async def test_a_stalled_model_leaves_a_hurried_caller_time_to_be_answered(
    chat: Chat, session: Session
) -> None:
    await play(session, ScriptedAnswer(text="", stall=True))
    await talk(chat, 9)

    with anyio.fail_after(60):
        built = await build(chat, _meta={"timeoutMs": 3000})

    assert built["summary"]["by"] == "extractive"
    assert built["warnings"][0].startswith("SUMMARY_FALLBACK")


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
async def test_two_clients_that_build_at_once_get_one_summary(
    chat: Chat, server: Server, session: Session
) -> None:
    form = "\n".join(f"- {label}: told by a model" for label in LABELS.values())
    fake = await play(session, ScriptedAnswer(text=f"[History Summary]\n{form}\n"))
    await talk(chat, 9)
    built: list[Any] = []

    async def ask(one: Client) -> None:
        built.append(await build(Chat(one, chat.key["projectId"])))

    async with in_memory(server) as other:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, chat.client)
                tasks.start_soon(ask, other)

    assert built[0]["messages"] == built[1]["messages"]
    assert {one["summary"]["by"] for one in built} == {"model"}
    assert len(fake.calls) == 1


@pytest.mark.requirement("CB-048")
@pytest.mark.parametrize("daemon_settings", [TIGHT])
async def test_rounds_budget_trigger_and_lines_are_settings(chat: Chat) -> None:
    await talk(chat, 8)

    built = await build(chat)

    assert built["budgetTokens"] == 9000
    assert built["recentRounds"] < 5
    assert "… 7 more matches" in json.dumps(built, ensure_ascii=False)


def paste(size: int) -> str:
    """Prose that is over the inline limits, with a fact in its middle."""
    lines = [f"第{n}段。夜色很深，林远推开门，风从门外灌了进来。" for n in range(size // 24)]
    lines[len(lines) // 2] = "渡口的钥匙藏在第三块石板下。"
    return "\n".join(lines)


async def test_two_pastes_of_thirty_thousand_characters_still_build(
    chat: Chat,
) -> None:
    for number in range(2):
        said = [user(f"{number}：{paste(30_000)}"), assistant(f"收到。{paste(9_000)}")]
        await chat.call("context:history:append", messages=said)

    built = await chat.call("context:build", input="继续", systemPrompt="You help.")

    recent = [m["content"] for m in built["messages"] if m["role"] in {"user", "assistant"}][:-1]
    refs = [re.findall(r"ctx_[a-z0-9]{20}", text) for text in recent]
    page = await chat.call("context.grep", id=refs[0][0], pattern="第三块石板")
    assert built["tokenCount"] <= built["budgetTokens"]
    assert len(recent) == 4
    assert all(
        len(text) < 2_000 and len(found) == 1 for text, found in zip(recent, refs, strict=True)
    )
    assert page["totalMatches"] == 1


async def test_results_over_the_inline_limit_are_whole_in_their_own_turn_only(
    chat: Chat,
) -> None:
    text = "\n".join(f"第{n}行：夜色很深，林远推开门，风灌了进来。" for n in range(400))
    asked = [user("look"), calls(("c1", "Read", {"file_path": "a.md"})), result("c1", text)]
    await chat.call("context:history:append", messages=asked)

    during = await build(chat, input="look")
    broken_off = await build(chat, input="never mind")
    await chat.call("context:history:append", messages=[assistant("Four hundred lines.")])
    after = await build(chat, input="thanks")

    shown = next(m["content"] for m in after["messages"] if m["role"] == "tool")
    ref = re.findall(r"Full output: (ctx_[a-z0-9]{20})$", shown)[0]
    found = await chat.call("context.grep", id=ref, pattern="第200行")
    assert "第399行" in during["messages"][-1]["content"]
    assert len(during["messages"][-1]["content"]) > 4_000
    assert len(shown) <= 4_000
    assert "characters left out" in shown
    assert "第0行" in shown
    assert "第399行" in shown
    assert found["totalMatches"] == 1
    assert shown in [m["content"] for m in broken_off["messages"]]


async def test_an_input_that_alone_does_not_fit_is_shown_by_head_and_tail(
    chat: Chat,
) -> None:
    huge = paste(400_000)

    built = await chat.call("context:build", input=huge, systemPrompt="You help.")
    await chat.call("context:history:append", messages=[user(huge)])
    again = await chat.call("context:build", input="", systemPrompt="You help.")
    files = await chat.call("context.list", kind="history")

    shown = built["messages"][-1]["content"]
    evidence = next(e for e in built["trimEvidence"] if e["part"] == "user_input")
    assert shown.startswith("第0段。")
    assert len(files["items"]) == 1
    assert files["items"][0]["id"] in shown
    assert again["messages"][-1]["content"] == shown
    assert (evidence["action"], evidence["rule"]) == ("trimmed", "input_preview")
    assert evidence["beforeChars"] == len(huge)


async def test_a_system_prompt_that_does_not_fit_is_still_refused(
    chat: Chat,
) -> None:

    error = await chat.failure("context:build", input="hi", systemPrompt=paste(400_000))

    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert error.details["heaviest"] == "system_prompt"


async def test_rounds_that_were_summarised_are_context_files(
    chat: Chat,
) -> None:
    await talk(chat, 30)

    built = await build(chat)
    again = await build(chat)
    files = (await chat.call("context.list", kind="history"))["items"]

    summary = next(m["content"] for m in built["messages"] if "[History Summary]" in m["content"])
    covers = built["summary"]["coversRounds"]
    ref = re.findall(r"ctx_[a-z0-9]{20}", summary.splitlines()[-1])[0]
    archive = await chat.call("context.grep", id=ref, pattern="^## Round ")
    by_hint = {item["hint"]: item["id"] for item in files}
    kept = await chat.call("context.read", id=by_hint[f"summary of rounds 1-{covers}"])
    secret = await chat.call("context.grep", id=ref, pattern=SECRETS[0])
    assert again["messages"] == built["messages"]
    assert summary.splitlines()[-1].startswith(f"Rounds 1 to {covers} in full: context file ctx_")
    assert archive["totalMatches"] == covers
    assert by_hint[f"rounds 1-{covers} of this conversation in full"] == ref
    assert summary.startswith(kept["content"].rstrip())
    assert secret["totalMatches"] == 0


async def test_archives_of_erased_rounds_say_so(chat: Chat) -> None:
    await talk(chat, 30)
    await build(chat)
    files = (await chat.call("context.list", kind="history"))["items"]

    await chat.call("context:history:clear")
    error = await chat.failure("context.read", id=files[0]["id"])

    assert error.code == "NOT_FOUND"
    assert "erased" in str(error)


async def test_archives_and_summaries_read_the_same_after_an_import(
    chat: Chat, tmp_path: Path
) -> None:
    await talk(chat, 30)
    await chat.call("context:history:append", messages=[user(paste(30_000)), assistant("好。")])
    before = await build(chat)
    files = (await chat.call("context.list", kind="history"))["items"]
    texts = [(await chat.call("context.read", id=item["id"]))["content"] for item in files]

    await chat.call("context:files:export", path=str(tmp_path / "chat.zip"))
    await chat.call("context:files:delete")
    await chat.call("context:history:clear")
    await chat.call("context:files:import", path=str(tmp_path / "chat.zip"))

    after = await build(chat)
    read = [(await chat.call("context.read", id=item["id"]))["content"] for item in files]
    assert after["messages"] == before["messages"]
    assert read == texts


def form(**fields: str) -> str:
    """A filled form as a model would return it."""
    lines = [f"- {label}: {fields.get(name, 'none')}" for name, label in LABELS.items()]
    return "\n".join(["[History Summary]", *lines, ""])


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
async def test_the_model_reads_the_rounds_themselves_in_several_passes(
    chat: Chat, session: Session
) -> None:
    passes = [ScriptedAnswer(text=form(knowledge=f"after pass {n}")) for n in range(1, 9)]
    fake = await play(session, *passes)
    for number in range(30):
        said = [user(f"{number}: {paste(5_000)}"), assistant(f"注意{number}：{paste(5_000)}")]
        await chat.call("context:history:append", messages=said)

    built = await build(chat, budgetTokens=30_000)

    asked = [call.user for call in fake.calls]
    last = next(m["content"] for m in built["messages"] if "[History Summary]" in m["content"])
    assert len(asked) >= 2
    assert all(len(text) <= 41_000 for text in asked)
    assert "注意0：第0段。" in asked[0]
    assert "characters left out; the whole is context file ctx_" in asked[0]
    assert "after pass 1" in asked[1]
    assert f"after pass {len(asked)}" in last


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
async def test_a_later_summary_goes_on_from_the_one_before(chat: Chat, session: Session) -> None:
    passes = [ScriptedAnswer(text=form(knowledge=f"minutes {n}")) for n in range(1, 9)]
    fake = await play(session, *passes)
    await talk(chat, 9)
    await build(chat)
    await talk(chat, 12, 9)

    await build(chat)

    asked = [call.user for call in fake.calls]
    assert "Round 1." in asked[0]
    assert "minutes 1" in asked[1]
    assert "Round 1." not in asked[1]


@pytest.mark.parametrize("daemon_settings", [BY_MODEL])
async def test_a_summary_with_files_that_never_occurred_is_not_believed(
    chat: Chat, session: Session
) -> None:
    await play(session, ScriptedAnswer(text=form(files="src/chapter_1.py, src/invented.py")))
    await talk(chat, 9)

    built = await build(chat)

    assert built["summary"]["by"] == "extractive"
    assert "invented.py" not in json.dumps(built["messages"])


async def test_a_turn_for_claude_has_both_counts_and_keeps_to_the_bound(
    chat: Chat, session: Session
) -> None:
    await session.corrections.learn("claude-sonnet-5", CountKind.BOUND, ours=1000, theirs=1250)
    await talk(chat, 1)

    built = await build(chat, model="claude-sonnet-5", budgetTokens=4000)
    exact = await build(chat, model="gpt-4o", budgetTokens=4000)

    assert (built["tokenizerId"], built["countKind"]) == ("claude_v4_7", "bound")
    assert built["countTokens"]["bound"] == built["tokenCount"] <= built["budgetTokens"] == 3200
    assert built["countTokens"]["counted"] == exact["tokenCount"]
    assert built["countCorrection"] == {"factor": 1.25, "runs": 1}
    assert exact["budgetTokens"] == 4000
    assert not {"countTokens", "countCorrection"} & exact.keys()
