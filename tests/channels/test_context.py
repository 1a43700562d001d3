"""`context:assemble` and `context:inspect` over the wire."""

import hashlib
import json
import unicodedata
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest

from creonowd.context.fragment import Layer, caution
from creonowd.context.source import Source
from creonowd.engine.services import Session
from creonowd.errors import WarningCode
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.tokens import Tokenizers
from creonowd.tokens.tables import BOUNDS, ENCODINGS, packaged_encoding
from creonowd.workspace.projects import Project
from testing.clients import Client, in_memory
from testing.corpus import chinese, english
from testing.logs import LogLines
from testing.novels import Novel, make_novel, warnings_beside_index
from testing.sources import InMemorySource, piece

SECRET = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"
CHAPTER = "第七章\n\n林远推开门，雨还在下。\n苏晴没有抬头。\n"
KG = caution(WarningCode.KG_UNAVAILABLE)


@pytest.fixture
def daemon_settings() -> Settings:
    return Settings(e2e=True, debug=True, source_timeout_ms=500)


@pytest.fixture
async def full_novel(client: Client, novel: Novel) -> Novel:
    """A project with something in every layer."""
    await client.call("context:creonow:ensure", novel.params)
    novel.put(".creonow/rules/style.md", "短句为主。\n")
    novel.put(".creonow/characters/林远.md", "林远，冷静。\n")
    novel.put(".creonow/settings/世界观.md", "近未来的海港。\n")
    novel.put("chapters/07.md", CHAPTER)
    return novel


class FixedSources:
    """Provides the sources that it was made with."""

    def __init__(self, *sources: Source) -> None:
        self.sources = sources

    def of(self, project: Project) -> Sequence[Source]:
        return self.sources


def asking(novel: Novel, **changes: Any) -> dict[str, Any]:
    return {
        "projectId": novel.project_id,
        "documentId": "chapters/07.md",
        "cursorPosition": len(CHAPTER),
        "skillId": "none",
        **changes,
    }


async def assemble(client: Client, novel: Novel, **changes: Any) -> dict[str, Any]:
    return await client.call("context:assemble", asking(novel, **changes))


async def inspected(client: Client, novel: Novel, **changes: Any) -> dict[str, Any]:
    return await client.call("context:inspect", asking(novel, debugMode=True, **changes))


@pytest.mark.requirement("CE-048", "CE-049", "CE-050", "CE-051", "CN-041", "CN-042", "CN-055")
async def test_the_result_has_all_that_was_promised(client: Client, full_novel: Novel) -> None:
    result = await assemble(client, full_novel, additionalInput="写紧张些。")

    assert set(result) == {
        "prompt",
        "systemPrompt",
        "userContent",
        "tokenCount",
        "fixedTokens",
        "stablePrefixHash",
        "promptHash",
        "stablePrefixUnchanged",
        "assemblyOrder",
        "layers",
        "warnings",
        "notices",
        "budget",
        "trimEvidence",
        "redactionEvidence",
        "cacheBreakPoints",
        "tokenizerId",
        "tokenizerVersion",
        "tokenizerExact",
        "countKind",
    }
    assert result["prompt"] == result["systemPrompt"] + result["userContent"]
    assert result["tokenCount"] == Tokenizers().load().count(result["prompt"])
    assert result["promptHash"] == hashlib.sha256(result["prompt"].encode()).hexdigest()
    assert result["assemblyOrder"] == ["rules", "settings", "retrieved", "immediate"]
    assert warnings_beside_index(result) == ["SKILL_UNKNOWN"]
    assert set(result["layers"]["rules"]) == {
        "tokens",
        "tokenCount",
        "truncated",
        "source",
        "chunks",
    }
    assert result["trimEvidence"][0] == {
        "layer": "rules",
        "sourceRef": ".creonow/rules/style.md",
        "action": "kept",
        "reason": "over_budget",
        "rule": "rules_line",
        "beforeChars": 6,
        "afterChars": 6,
        "beforeTokens": result["trimEvidence"][0]["afterTokens"],
        "afterTokens": result["trimEvidence"][0]["afterTokens"],
    }


@pytest.mark.requirement(
    "CN-002", "CN-003", "CN-005", "CN-017", "CE-001", "CE-002", "CE-003", "CE-005"
)
async def test_every_source_stands_in_its_layer(client: Client, full_novel: Novel) -> None:
    full_novel.put(".creonow/rules/terminology.json", '{"terms": [{"term": "渡口"}]}')
    full_novel.put(".creonow/rules/禁用词.txt", "不用「突然」。\n")
    full_novel.put(".creonow/settings/纪年.json", '{"元年": 1998}')
    full_novel.put(".creonow/settings/地理/港口.txt", "三面环山。\n")
    full_novel.put(".creonow/settings/地图.png", "no text")
    constraint = {"text": "严格第一人称叙述"}
    await client.call("constraints:create", {**full_novel.params, "constraint": constraint})

    result = await assemble(client, full_novel, additionalInput="写紧张些。")

    layers = {name: layer["source"] for name, layer in result["layers"].items()}
    assert layers["rules"] == [
        ".creonow/rules/style.md",
        ".creonow/rules/terminology.json",
        ".creonow/rules/禁用词.txt",
        ".creonow/rules/constraints.json",
        ".creonow/characters/林远.md",
    ]
    assert layers["settings"] == [
        ".creonow/settings/世界观.md",
        ".creonow/settings/地理/港口.txt",
        ".creonow/settings/纪年.json",
    ]
    assert layers["immediate"] == ["chapters/07.md", "additionalInput"]
    for text in (
        "短句为主。",
        "渡口",
        "不用「突然」。",
        "1. 严格第一人称叙述",
        "三面环山。",
        "1998",
    ):
        assert text in result["systemPrompt"]
    assert str(full_novel.root) not in json.dumps(result, ensure_ascii=False)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"cursorPosition": -1}, "cursorPosition"),
        ({"cursorPosition": 1.5}, "cursorPosition"),
        ({"cursorPosition": "3"}, "cursorPosition"),
        ({"documentId": " "}, "documentId"),
        ({"skillId": ""}, "skillId"),
        ({"selection": {"from": 3, "to": 1}}, "selection"),
        ({"selection": {"from": -3, "to": 1}}, "selection"),
        ({"additionalInput": 7}, "additionalInput"),
    ],
)
async def test_a_payload_that_does_not_fit_names_the_field(
    client: Client, full_novel: Novel, changes: dict[str, Any], field: str
) -> None:
    error = await client.failure("context:assemble", asking(full_novel, **changes))

    assert (error.number, error.code) == (-32602, "INVALID_ARGUMENT")
    assert field in str(error.details) + str(error)


async def test_an_unknown_project_is_not_found_and_a_blank_one_invalid(
    client: Client, full_novel: Novel
) -> None:
    unknown = await client.failure("context:assemble", asking(full_novel, projectId="prj_unknown"))
    blank = await client.failure("context:assemble", asking(full_novel, projectId=""))

    assert (unknown.code, blank.code) == ("NOT_FOUND", "INVALID_ARGUMENT")


async def test_a_document_that_is_nowhere_degrades(client: Client, full_novel: Novel) -> None:
    result = await assemble(client, full_novel, documentId="chapters/99.md")

    assert (
        "IMMEDIATE_UNAVAILABLE: chapters/99.md: the document is neither open nor on disk."
        in (result["warnings"])
    )
    assert "## Immediate\n(none)\n" in result["prompt"]
    assert "短句为主。" in result["prompt"]


async def test_a_document_that_is_no_text_degrades_and_is_accounted_for(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put("chapters/07.md", b"\x00\x01\x02PNG\xff\xfe")

    result = await assemble(client, full_novel)

    evidence = {e["sourceRef"]: (e["action"], e["reason"]) for e in result["trimEvidence"]}
    assert evidence["chapters/07.md"] == ("dropped", "invalid_format")
    assert "短句为主。" in result["systemPrompt"]


async def test_a_cursor_past_the_end_is_clamped_with_a_warning(
    client: Client, full_novel: Novel
) -> None:
    result = await assemble(client, full_novel, cursorPosition=10_000)

    assert "CONTEXT_CURSOR_CLAMPED" in result["warnings"]
    assert CHAPTER in result["prompt"]


async def test_the_unsaved_buffer_wins_over_the_file(client: Client, full_novel: Novel) -> None:
    await client.call(
        "context:document:sync",
        {
            "projectId": full_novel.project_id,
            "documentId": "chapters/07.md",
            "version": 1,
            "text": "新稿。",
        },
    )

    result = await assemble(client, full_novel, cursorPosition=3)

    assert "新稿。" in result["prompt"]
    assert "雨还在下" not in result["prompt"]


async def test_positions_of_a_utf16_client_are_its_own(server: Server, full_novel: Novel) -> None:
    full_novel.put("chapters/07.md", "😀前😀后")
    async with in_memory(server) as client:
        await client.call("initialize", {"positionEncoding": "utf-16"})
        result = await assemble(client, full_novel, cursorPosition=5)
        selected = await assemble(
            client, full_novel, cursorPosition=0, selection={"from": 2, "to": 3}
        )

    assert "### ref:chapters/07.md\n😀前😀\n" in result["userContent"]
    assert "光标之后\n后\n" in result["userContent"]
    assert "### 选区\n前\n" in selected["userContent"]


async def test_secrets_are_out_and_evidence_says_so(
    client: Client, full_novel: Novel, logged: LogLines
) -> None:
    full_novel.put(".creonow/rules/style.md", f"apiKey={SECRET}\n")
    full_novel.put("chapters/07.md", f"他写下 {SECRET} 。")

    result = await assemble(
        client, full_novel, additionalInput=f"用 {SECRET} 登录", cursorPosition=4
    )
    details = await inspected(client, full_novel, additionalInput=SECRET)

    assert SECRET not in json.dumps([result, details])
    assert "***REDACTED***" in result["prompt"]
    refs = {found["sourceRef"] for found in result["redactionEvidence"]}
    assert refs == {".creonow/rules/style.md", "chapters/07.md", "additionalInput"}
    assert "context_redaction_applied" in [line["event"] for line in logged]
    assert SECRET not in str(logged)


@pytest.mark.requirement("CN-052", "CE-091")
async def test_logs_hold_counts_and_hashes_and_no_text(
    client: Client, full_novel: Novel, logged: LogLines
) -> None:
    result = await assemble(client, full_novel, additionalInput="写紧张些。")

    (line,) = [line for line in logged if line["event"] == "context_assembled"]
    assert line["tokens"] == result["tokenCount"]
    assert line["prompt_hash"] == result["promptHash"]
    assert line["kept"] == len(result["trimEvidence"])
    for text in ("短句", "海港", "林远", "写紧张些", "第七章", "世界观"):
        assert text not in str(logged)


@pytest.mark.requirement("CE-032", "CN-021", "CN-037", "CN-038")
async def test_the_prefix_is_compared_with_the_previous_call(
    client: Client, full_novel: Novel
) -> None:
    first = await assemble(client, full_novel)
    second = await assemble(client, full_novel, cursorPosition=3, additionalInput="别的")
    full_novel.put(".creonow/settings/世界观.md", "远古的海港。\n")
    third = await assemble(client, full_novel)
    fourth = await assemble(client, full_novel)

    assert (first["stablePrefixUnchanged"], "prefixChange" in first) == (False, False)
    assert (second["stablePrefixUnchanged"], "prefixChange" in second) == (True, False)
    assert third["stablePrefixUnchanged"] is False
    assert third["prefixChange"] == {
        "sourceRef": ".creonow/settings/世界观.md",
        "change": "changed",
    }
    assert third["stablePrefixHash"] != first["stablePrefixHash"]
    assert fourth["stablePrefixUnchanged"] is True


@pytest.mark.requirement("CN-021")
async def test_a_constraint_that_changes_the_prefix_is_named(
    client: Client, full_novel: Novel
) -> None:
    created = {**full_novel.params, "constraint": {"text": "本世界没有魔法"}}
    before = await assemble(client, full_novel)

    constraint = await client.call("constraints:create", created)
    added = await assemble(client, full_novel)
    patch = {"constraintId": constraint["constraint"]["id"], "patch": {"text": "本世界没有鬼神"}}
    await client.call("constraints:update", {**full_novel.params, **patch})
    changed = await assemble(client, full_novel)

    ref = f".creonow/rules/constraints.json#{constraint['constraint']['id']}"
    assert len({one["stablePrefixHash"] for one in (before, added, changed)}) == 3
    assert added["prefixChange"] == {"sourceRef": ref, "change": "added"}
    assert changed["prefixChange"] == {"sourceRef": ref, "change": "changed"}


async def test_each_skill_provider_and_model_has_its_own_previous_call(
    client: Client, full_novel: Novel
) -> None:
    await assemble(client, full_novel)

    others = [
        await assemble(client, full_novel, **change)
        for change in ({"skillId": "other"}, {"provider": "anthropic"}, {"model": "gpt-4"})
    ]

    assert not any(other["stablePrefixUnchanged"] for other in others)
    assert (await assemble(client, full_novel))["stablePrefixUnchanged"]


async def test_inspect_reads_but_does_not_move_the_previous_call(
    client: Client, full_novel: Novel
) -> None:
    await inspected(client, full_novel)
    first = await assemble(client, full_novel)
    seen = await inspected(client, full_novel)
    full_novel.put(".creonow/rules/style.md", "长句。")
    changed = await inspected(client, full_novel)
    after = await assemble(client, full_novel)

    assert first["stablePrefixUnchanged"] is False
    assert seen["stablePrefixUnchanged"] is True
    assert changed["prefixChange"]["sourceRef"] == ".creonow/rules/style.md"
    assert after["stablePrefixUnchanged"] is False


@pytest.mark.requirement("CE-052", "CN-032")
async def test_inspect_shows_every_candidate_and_never_a_prompt(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put(
        ".creonow/settings/大.md", "---\nconfidence: 0.1\n---\n" + "设定，一条又一条。\n" * 900
    )
    result = await assemble(client, full_novel)

    details = await inspected(client, full_novel)

    assert not {"prompt", "systemPrompt", "userContent"} & set(details)
    for key in ("trimEvidence", "stablePrefixHash", "promptHash", "budget", "warnings"):
        assert details[key] == result[key]
    settings = details["layersDetail"]["settings"]
    assert settings["tokens"] == result["layers"]["settings"]["tokens"]
    by_ref = {fragment["sourceRef"]: fragment for fragment in settings["fragments"]}
    assert by_ref[".creonow/settings/世界观.md"]["content"] == "近未来的海港。\n"
    trimmed = by_ref[".creonow/settings/大.md"]
    assert (trimmed["action"], trimmed["rule"]) == ("trimmed", "settings_share")
    assert trimmed["confidence"] == 0.1
    assert trimmed["fitsWith"] > 0
    totals = details["totals"]
    assert totals["candidates"] == totals["kept"] + totals["trimmed"] + totals["dropped"]
    assert totals["tokenCount"] + totals["leftTokens"] == totals["budgetTokens"] == 6000
    assert details["inspectMeta"]["debugMode"] is True
    assert details["inspectMeta"]["whatIf"] is False


async def test_with_as_many_tokens_more_as_it_says_a_fragment_fits(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put(
        ".creonow/settings/大.md", "---\nconfidence: 0.1\n---\n" + "设定，一条又一条。\n" * 900
    )
    details = await inspected(client, full_novel)
    missing = next(
        f["fitsWith"]
        for f in details["layersDetail"]["settings"]["fragments"]
        if f["sourceRef"] == ".creonow/settings/大.md"
    )

    more = await inspected(
        client, full_novel, whatIf={"profile": {"totalBudgetTokens": 6000 + missing}}
    )

    assert {f["action"] for f in more["layersDetail"]["settings"]["fragments"]} == {"kept"}


async def test_what_if_touches_nothing(client: Client, full_novel: Novel) -> None:
    before = await assemble(client, full_novel)
    budget = await client.call("context:budget:get", full_novel.params)

    guess = await inspected(
        client,
        full_novel,
        whatIf={"profile": {"totalBudgetTokens": 3000}, "text": "假如这样写。"},
        cursorPosition=6,
    )

    assert guess["totals"]["budgetTokens"] == 3000
    assert guess["layersDetail"]["immediate"]["fragments"][0]["content"] == "假如这样写。"
    assert guess["stablePrefixUnchanged"] is False
    assert "prefixChange" not in guess
    assert guess["inspectMeta"]["whatIf"] is True
    after = await assemble(client, full_novel)
    assert after["promptHash"] == before["promptHash"]
    assert after["stablePrefixUnchanged"] is True
    assert await client.call("context:budget:get", full_novel.params) == budget


async def test_what_if_checks_the_budget_as_update_would(client: Client, full_novel: Novel) -> None:
    wrong = asking(
        full_novel, debugMode=True, whatIf={"profile": {"layers": {"rules": {"ratio": 3}}}}
    )

    error = await client.failure("context:inspect", wrong)

    assert error.code == "CONTEXT_BUDGET_INVALID_RATIO"


@pytest.mark.requirement("CE-078", "CE-092")
async def test_inspect_needs_debug_mode_in_the_payload(
    client: Client, full_novel: Novel, logged: LogLines
) -> None:
    error = await client.failure("context:inspect", asking(full_novel))

    assert error.code == "CONTEXT_INSPECT_FORBIDDEN"
    assert "context_inspect_forbidden" in [line["event"] for line in logged]


@pytest.mark.requirement("CE-078", "CE-092")
async def test_a_renderer_may_not_inspect(
    server: Server, full_novel: Novel, logged: LogLines
) -> None:
    async with in_memory(server, role=Role.RENDERER) as renderer:
        error = await renderer.failure("context:inspect", asking(full_novel, debugMode=True))
        result = await assemble(renderer, full_novel)

    assert error.code == "CONTEXT_INSPECT_FORBIDDEN"
    assert "context_inspect_forbidden" in [line["event"] for line in logged]
    assert result["tokenCount"] > 0


@pytest.mark.requirement("CE-078", "CE-092")
@pytest.mark.parametrize("daemon_settings", [Settings(e2e=True)])
async def test_an_owner_may_not_inspect_a_daemon_without_debug(
    client: Client, full_novel: Novel, logged: LogLines
) -> None:
    error = await client.failure("context:inspect", asking(full_novel, debugMode=True))

    assert error.code == "CONTEXT_INSPECT_FORBIDDEN"
    assert "--debug" in str(error)
    assert "context_inspect_forbidden" in [line["event"] for line in logged]


@pytest.mark.parametrize("daemon_settings", [Settings(e2e=True)])
async def test_an_owner_may_let_a_connection_inspect_without_debug(
    client: Client, server: Server, full_novel: Novel
) -> None:
    """As the page of the viewer does; nothing but the channels of its token is open to it."""
    asked = {"role": "owner", "channels": ["context:inspect"], "inspects": True}
    token = (await client.call("session:grant", asked))["token"]
    async with in_memory(server, role=None) as visitor:
        await visitor.call("initialize", {"token": token})

        inspected = await visitor.call("context:inspect", asking(full_novel, debugMode=True))
        refused = await visitor.failure("context:budget:get", {})

    assert inspected["totals"]["tokenCount"] > 0
    assert refused.code == "FORBIDDEN"


async def test_what_the_skill_did_not_ask_for_is_not_read(
    client: Client, full_novel: Novel
) -> None:
    skill = "---\nname: 对话\ncontext_rules:\n  style_guide: true\nprompt:\n  user: 写对话。\n---\n"
    full_novel.put(".creonow/skills/talk/SKILL.md", skill)

    result = await assemble(client, full_novel, skillId="project:talk")

    assert result["layers"]["rules"]["source"] == [".creonow/rules/style.md"]
    assert result["layers"]["settings"]["source"] == []
    assert result["layers"]["immediate"]["source"] == ["skill:project:talk"]
    assert result["userContent"].endswith("## Task\n写对话。\n")
    assert result["warnings"] == []


async def test_the_sources_of_a_skill_decide_the_prefix_and_its_task_does_not(
    client: Client, full_novel: Novel
) -> None:
    for name in ("one", "two"):
        text = f"---\nname: {name}\ncontext_rules:\n  characters: true\nprompt:\n  user: 做{name}。\n---\n"
        full_novel.put(f".creonow/skills/{name}/SKILL.md", text)

    one = await assemble(client, full_novel, skillId="project:one")
    two = await assemble(client, full_novel, skillId="project:two")

    assert one["systemPrompt"] == two["systemPrompt"]
    assert one["userContent"] != two["userContent"]


async def test_an_invalid_skill_is_refused_with_its_fault(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put(
        ".creonow/skills/bad/SKILL.md", "---\nname: x\ncontext_rules:\n  surounding: 5\n---\n"
    )

    error = await client.failure("context:assemble", asking(full_novel, skillId="project:bad"))

    assert error.code == "INVALID_ARGUMENT"
    assert "surounding" in str(error)


async def test_another_tokenizer_version_is_a_mismatch(client: Client, full_novel: Novel) -> None:
    error = await client.failure("context:assemble", asking(full_novel, tokenizerVersion="0"))

    assert error.code == "CONTEXT_TOKENIZER_MISMATCH"


async def test_a_model_without_a_public_table_is_counted_inexactly(
    client: Client, full_novel: Novel
) -> None:
    exact = await assemble(client, full_novel, model="gpt-4")
    guessed = await assemble(client, full_novel, model="gemini-2.5-pro")

    assert (exact["tokenizerId"], exact["tokenizerExact"]) == ("cl100k_base", True)
    assert (guessed["tokenizerId"], guessed["tokenizerExact"]) == ("o200k_base", False)
    assert (exact["countKind"], guessed["countKind"]) == ("exact", "approximate")


async def test_a_prompt_for_claude_keeps_to_an_upper_bound(
    client: Client, full_novel: Novel
) -> None:
    plain = await assemble(client, full_novel, model="gpt-4o")

    bound = await assemble(client, full_novel, model="claude-sonnet-5")

    assert (bound["tokenizerId"], bound["countKind"]) == ("claude_v4_7", "bound")
    assert bound["tokenizerExact"] is False
    assert bound["countTokens"]["bound"] == bound["tokenCount"]
    assert bound["countTokens"]["counted"] < bound["tokenCount"]
    assert bound["tokenCount"] <= bound["budget"]["maxInputTokens"]
    assert "countTokens" not in plain


FAMILIES = (
    ("gpt-4o", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("deepseek-v4-pro", "deepseek_v4"),
    ("qwen3-max", "qwen3"),
    ("qwen3.6-27b", "qwen3_6"),
    ("glm-5.2", "glm5_2"),
    ("open-mistral-nemo", "mistral_tekken"),
    ("claude-sonnet-4-5", "claude_v3"),
    ("claude-sonnet-5", "claude_v4_7"),
)


@pytest.mark.parametrize(("model", "encoding"), FAMILIES)
async def test_no_prompt_exceeds_its_budget_by_the_count_of_its_model(
    client: Client, tmp_path: Path, model: str, encoding: str
) -> None:
    """The whole prompt is counted anew, by the published table where there is one."""
    chance = Random(model)
    pieces = (
        chinese()[:30_000],
        english()[:30_000],
        "👨\u200d👩 e\u0301 𠮷 ３ words 3 of 于 him\n" * 40,
    )
    text = "\n".join(piece[start : start + 4000] for piece in pieces for start in (0, 9000))
    files = {"一.md": text, ".creonow/rules/style.md": pieces[1][:2500]}
    novel = await make_novel(client, tmp_path / "novel", files, skillId=None)
    count = _reference(encoding)

    for version in range(1, 7):
        total = chance.randrange(2700, 12_000)
        change = {"version": version, "totalBudgetTokens": total}
        await client.call("context:budget:update", novel.params | change)
        result = await novel.assemble(model=model, cursorPosition=chance.randrange(len(text)))

        assert result["tokenizerId"] == encoding
        assert result["tokenCount"] == count(result["prompt"]) <= total


def _reference(encoding: str) -> Callable[[str], int]:
    if encoding in BOUNDS:
        return Tokenizers().load(encoding).count
    table = packaged_encoding(encoding)
    form = "NFC" if ENCODINGS[encoding].nfc else None

    def count(prompt: str) -> int:
        return len(table.encode_ordinary(unicodedata.normalize(form, prompt) if form else prompt))

    return count


async def test_a_source_that_hangs_costs_its_part_only(
    client: Client, session: Session, full_novel: Novel, logged: LogLines
) -> None:
    source = InMemorySource(Layer.RULES, "kg", unavailable=KG, timeout_ms=20)
    source.hangs = True
    session.engine.source_providers.append(FixedSources(source))

    result = await assemble(client, full_novel)

    assert KG.text() == "KG_UNAVAILABLE: 知识图谱数据未注入"
    assert KG.text() in result["warnings"]
    assert result["layers"]["rules"]["warnings"] == [KG.text()]
    assert "短句为主。" in result["systemPrompt"]
    assert [line["kind"] for line in logged if line["event"] == "context_source_failed"] == [
        "timeout"
    ]


async def test_a_chapter_selected_for_polish_is_too_large_and_named(
    client: Client, full_novel: Novel
) -> None:
    text = "林远推开门，雨还在下，檐水滴在石阶上。\n" * 500
    full_novel.put("chapters/07.md", text)
    chosen = {"skillId": "builtin:polish", "selection": {"from": 0, "to": len(text)}}

    error = await client.failure("context:assemble", asking(full_novel, **chosen))

    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert error.details["heaviest"] == "selection"
    assert error.details["tokens"]["selection"] == Tokenizers().load().count(text)
    assert error.details["sources"][0]["sourceRef"] == "selection"
    assert (error.details["budgetTokens"], error.details["tokens"]["input"]) == (6000, 0)


@pytest.mark.parametrize("field", ["additionalInput", "selection"])
async def test_a_very_long_input_is_refused_before_anybody_is_asked(
    client: Client, full_novel: Novel, field: str
) -> None:
    """What searches with the input would take seconds for it, and hold everybody up."""
    text = "林远推开门，雨还在下。\n" * 220_000
    asked: list[Any] = []
    client.handlers["context:source:fetch"] = lambda params: asked.append(params) or {"chunks": []}
    offer = {"layer": "retrieved", "name": "向量", "kind": "rag"}
    await client.call("context:source:register", offer)
    sent: dict[str, Any] = {"additionalInput": text}
    if field == "selection":
        full_novel.put("chapters/07.md", text)
        sent = {"selection": {"from": 0, "to": len(text)}}

    error = await client.failure("context:assemble", asking(full_novel, **sent))

    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert error.details["characters"] == {field: len(text)}
    assert error.details["limitTokens"] == 64_000
    assert asked == []


@pytest.mark.parametrize("letter", ["a", "雨", " "])
@pytest.mark.parametrize("length", [60_000, 500_000, 2_600_000])
async def test_a_long_run_of_one_letter_is_refused_by_its_length(
    client: Client, full_novel: Novel, letter: str, length: int
) -> None:
    """No tokenizer is asked: it would take a second for what no budget can hold."""
    error = await client.failure(
        "context:assemble", asking(full_novel, additionalInput=letter * length)
    )

    limit = 64_000 if length > 512_000 else 6000
    assert error.code == "CONTEXT_INPUT_TOO_LARGE"
    assert error.details["characters"] == {"additionalInput": length}
    assert (error.details["limitTokens"], error.details["limitCharacters"]) == (limit, 8 * limit)


async def test_a_document_named_with_a_secret_is_not_shown_in_the_warning(
    client: Client, full_novel: Novel
) -> None:
    document = f"{SECRET}\n## Settings"
    result = await assemble(client, full_novel, documentId=document)
    retrieved = await client.call("context:retrieve", asking(full_novel, documentId=document))

    expected = "IMMEDIATE_UNAVAILABLE: ***REDACTED*** ## Settings: the document is neither open"
    assert any(warning.startswith(expected) for warning in result["warnings"])
    assert any(warning.startswith(expected) for warning in retrieved["warnings"])
    assert SECRET not in str((result["notices"], retrieved["notices"]))


async def test_an_unmet_minimum_has_its_figures(client: Client, full_novel: Novel) -> None:
    full_novel.put(".creonow/settings/大.json", json.dumps({"雨": "林远推开门，雨还在下。" * 1000}))

    result = await assemble(client, full_novel)

    settings = result["layers"]["settings"]
    warning = f"CONTEXT_MINIMUM_UNMET: settings ({settings['tokens']} / 200 tokens)"
    assert settings["warnings"] == [warning]
    assert 0 < settings["tokens"] < 200


async def test_constraints_that_cannot_be_read_are_accounted_for(
    client: Client, full_novel: Novel
) -> None:
    full_novel.put(".creonow/rules/constraints.json", b"[[[")

    result = await assemble(client, full_novel)

    evidence = {e["sourceRef"]: (e["action"], e["reason"]) for e in result["trimEvidence"]}
    assert evidence[".creonow/rules/constraints.json"] == ("dropped", "invalid_format")
    (warning,) = [w for w in result["warnings"] if w.startswith("CONSTRAINTS_UNAVAILABLE")]
    assert "the prompt has no constraints" in warning
    assert ".creonow/rules/constraints.json is broken at line 1, column " in warning
    assert result["layers"]["immediate"]["tokens"] > 0


@pytest.mark.requirement("CE-093")
async def test_text_of_another_project_is_refused_and_logged(
    client: Client, session: Session, full_novel: Novel, logged: LogLines
) -> None:
    foreign = piece(Layer.RETRIEVED, "x", "别家的稿子", score=0.5, project_id="prj_other")
    session.engine.source_providers.append(
        FixedSources(InMemorySource(Layer.RETRIEVED, "rag", [foreign]))
    )

    error = await client.failure("context:assemble", asking(full_novel))

    assert error.code == "CONTEXT_SCOPE_VIOLATION"
    assert "context_scope_violation" in [line["event"] for line in logged]
    assert "别家" not in str(logged) + str(error) + str(error.details)


async def test_projects_do_not_see_each_other(
    client: Client, full_novel: Novel, tmp_path: Path
) -> None:
    other = tmp_path / "另一本"
    other.mkdir()
    project = await client.call("project:create", {"rootPath": str(other)})

    result = await assemble(client, full_novel, projectId=project["projectId"])

    for text in ("短句", "海港", "林远", "第七章"):
        assert text not in result["prompt"]


class GatedSource(InMemorySource):
    """A source that answers once its gate is open."""

    def __init__(self) -> None:
        super().__init__(Layer.RETRIEVED, "gate", timeout_ms=60_000)
        self.gate = anyio.Event()

    async def fetch(self, ask: Any) -> Any:
        self.queries.append(ask)
        await self.gate.wait()
        return self.answer


@pytest.fixture
async def gate(session: Session) -> AsyncGenerator[GatedSource]:
    source = GatedSource()
    session.engine.source_providers.append(FixedSources(source))
    yield source
    source.gate.set()


async def post(client: Client, novel: Novel, number: int, **changes: Any) -> None:
    request = {"jsonrpc": "2.0", "id": f"a{number}", "method": "context:assemble"}
    await client.post({**request, "params": asking(novel, **changes)})


async def settled(session: Session, novel: Novel, load: tuple[int, int]) -> None:
    key = (novel.project_id, "chapters/07.md")
    with anyio.fail_after(60):
        while session.engine.admission.load(key) != load:
            await anyio.lowlevel.checkpoint()


@pytest.mark.requirement("CE-073", "CE-096", "CE-099")
async def test_the_twenty_first_of_a_document_is_refused_and_the_others_are_answered(
    client: Client, session: Session, full_novel: Novel, gate: GatedSource, logged: LogLines
) -> None:
    for number in range(20):
        await post(client, full_novel, number, cursorPosition=number)
    await settled(session, full_novel, (4, 16))

    refusal = await client.failure("context:assemble", asking(full_novel))
    gate.gate.set()
    replies = [await client.reply(f"a{number}") for number in range(20)]

    assert refusal.code == "CONTEXT_BACKPRESSURE"
    assert refusal.data["retryable"] is True
    assert refusal.details["retryAfterMs"] > 0
    assert all("result" in reply for reply in replies)
    assert "context_backpressure" in [line["event"] for line in logged]


async def test_another_document_is_not_held_up(
    client: Client, session: Session, full_novel: Novel, gate: GatedSource
) -> None:
    for number in range(20):
        await post(client, full_novel, number)
    await settled(session, full_novel, (4, 16))

    await post(client, full_novel, 99, documentId="chapters/08.md")

    with anyio.fail_after(60):
        while len(gate.queries) < 5:
            await anyio.lowlevel.checkpoint()
    gate.gate.set()
    assert "result" in await client.reply("a99")


async def test_a_waiting_request_can_be_cancelled(
    client: Client, session: Session, full_novel: Novel, gate: GatedSource
) -> None:
    for number in range(5):
        await post(client, full_novel, number)
    await settled(session, full_novel, (4, 1))

    await client.post({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "a4"}})
    cancelled = await client.reply("a4")
    await settled(session, full_novel, (4, 0))
    gate.gate.set()

    assert cancelled["error"]["data"]["code"] == "CANCELED"
    for number in range(4):
        assert "result" in await client.reply(f"a{number}")


@pytest.mark.requirement("CE-068")
async def test_a_damaged_budget_falls_back_and_says_so(
    client: Client, session: Session, full_novel: Novel
) -> None:
    folder = session.user_data / "budgets"
    folder.mkdir(exist_ok=True)
    (folder / f"{full_novel.project_id}.json").write_text("{", encoding="utf-8")

    result = await assemble(client, full_novel)

    assert any(w.startswith("CONTEXT_BUDGET_FALLBACK") for w in result["warnings"])
    assert result["budget"]["maxInputTokens"] == 6000


@pytest.mark.parametrize(
    ("locale", "problem"),
    [
        ("en-GB", "chapters/99.md: the document is neither open nor on disk."),
        ("zh-CN", "chapters/99.md：文档未打开且不在磁盘上。"),
        (None, "chapters/99.md: the document is neither open nor on disk."),
    ],
)
async def test_warnings_and_notices_come_in_the_language_of_the_client(
    client: Client, full_novel: Novel, locale: str | None, problem: str
) -> None:
    await client.call("initialize", {"locale": locale})

    made = await assemble(client, full_novel, documentId="chapters/99.md")
    seen = await inspected(client, full_novel, documentId="chapters/99.md")
    found = await client.call(
        "context:retrieve", asking(full_novel, documentId="chapters/99.md", wait=True)
    )

    for result in (made, seen, found):
        notice = next(n for n in result["notices"] if n["code"] == "IMMEDIATE_UNAVAILABLE")
        assert notice["message"] == problem
        assert notice["sourceRef"] == "chapters/99.md"
        assert f"IMMEDIATE_UNAVAILABLE: {problem}" in result["warnings"]
        assert [n["code"] for n in result["notices"]] == [
            warning.partition(":")[0] for warning in result["warnings"]
        ]


@pytest.mark.parametrize(
    ("locale", "message"),
    [
        ("en", "There is no such project; create it or list the projects."),
        ("zh", "没有这个项目；请新建项目，或列出已有的项目。"),
    ],
)
async def test_an_error_comes_in_one_language(
    client: Client, full_novel: Novel, locale: str, message: str
) -> None:
    await client.call("initialize", {"locale": locale})

    error = await client.failure("context:assemble", asking(full_novel, projectId="prj_none"))

    assert (error.code, str(error)) == ("NOT_FOUND", message)


async def test_no_prompt_depends_on_the_language_of_messages(
    client: Client, full_novel: Novel
) -> None:
    prompts: list[str] = []
    for locale in (None, "en", "zh"):
        await client.call("initialize", {"locale": locale})
        prompts.append((await assemble(client, full_novel))["prompt"])

    assert len(set(prompts)) == 1
