"""Characters and knowledge over the wire: who is injected, who is left out, and what stays put."""

import json
from typing import Any

import pytest

from testing.clients import Client
from testing.logs import LogLines
from testing.novels import Novel, warnings_beside_index

LINE = 900
SENTENCE = "他推开门，雨还在下，檐水滴在石阶上，她没有抬头。"
ABOUT = SENTENCE * 4
NOW = "now.md"

Result = dict[str, Any]


def put(novel: Novel, name: str, about: str = ABOUT, **front: Any) -> None:
    """Write a character; `front` is its front matter."""
    said = "".join(f"{key}: {json.dumps(value)}\n" for key, value in front.items())
    matter = f"---\n{said}---\n" if said else ""
    novel.put(f".creonow/characters/{name}.md", f"{matter}{about}\n")


def crowd(novel: Novel, *names: str, **front: Any) -> None:
    for name in names:
        put(novel, name, **front)


async def assembled(client: Client, novel: Novel, text: str, **more: Any) -> Result:
    """Assemble at the end of a chapter that says this."""
    novel.put(NOW, text)
    place = {"documentId": NOW, "cursorPosition": len(text), "skillId": "general"}
    return await client.call("context:assemble", novel.params | place | more)


def evidence(result: Result, layer: str = "rules") -> dict[str, tuple[str, str]]:
    """Return by name what became of each character."""
    prefix = ".creonow/characters/"
    return {
        entry["sourceRef"].removeprefix(prefix).partition(".")[0]: (entry["action"], entry["rule"])
        for entry in result["trimEvidence"]
        if entry["layer"] == layer and entry["sourceRef"].startswith(prefix)
    }


def kept(result: Result) -> set[str]:
    return {name for name, (action, _) in evidence(result).items() if action == "kept"}


@pytest.mark.requirement("CN-014")
async def test_within_the_line_everyone_is_injected(client: Client, novel: Novel) -> None:
    put(novel, "林远", "林远，冷静。", type="character", aliases=["老更夫"])
    novel.put(".creonow/characters/苏晴.json", '{"name": "苏晴", "attributes": {"年龄": 26}}')
    novel.put(".creonow/characters/群像/船家.md", "船家们都姓周。")
    novel.put(".creonow/characters/肖像.png", b"\x89PNG")

    result = await assembled(client, novel, "谁也没有提到。")

    assert all(
        said in result["systemPrompt"] for said in ("林远，冷静。", '"年龄":26', "船家们都姓周。")
    )
    assert "type:" not in result["systemPrompt"]
    assert kept(result) == {"林远", "苏晴", "群像/船家"}
    assert warnings_beside_index(result) == ["SKILL_UNKNOWN"]


@pytest.mark.requirement("CE-022", "CE-100")
async def test_over_the_line_those_that_the_document_mentions_stay(
    client: Client, novel: Novel, logged: LogLines
) -> None:
    put(novel, "林远", aliases=["老更夫"])
    put(novel, "苏晴")
    crowd(novel, *(f"路人{n:02}" for n in range(12)))

    result = await assembled(client, novel, "老更夫遇见了苏晴。")

    (line,) = [line for line in logged if line["event"] == "context_rules_overbudget"]
    actions = evidence(result)
    assert "CONTEXT_RULES_OVERBUDGET" in result["warnings"]
    assert {"林远", "苏晴"} <= kept(result)
    assert result["layers"]["rules"]["tokens"] <= LINE
    assert len(actions) == 14
    assert {sentence for sentence in actions.values() if sentence[0] != "kept"} == {
        ("dropped", "not_mentioned")
    }
    assert line["line"] == LINE
    assert line["dropped"] == 14 - len(kept(result))
    assert "林远" not in repr(line)


async def test_no_more_leave_than_must(client: Client, novel: Novel) -> None:
    crowd(novel, *(f"路人{n:02}" for n in range(12)))

    result = await assembled(client, novel, "谁也没有提到。")

    each = [e["beforeTokens"] for e in result["trimEvidence"] if e["action"] == "dropped"]
    assert result["layers"]["rules"]["tokens"] <= LINE
    assert result["layers"]["rules"]["tokens"] + min(each) > LINE
    assert kept(result) == {f"路人{n:02}" for n in range(len(kept(result)))}


async def test_mention_counts_before_priority_and_priority_before_shared_terms(
    client: Client, novel: Novel
) -> None:
    put(novel, "甲", SENTENCE * 11, priority=-5)
    put(novel, "乙", SENTENCE * 11, priority=300)
    put(novel, "丙", f"甲的姐姐。{SENTENCE * 11}")
    put(novel, "丁", SENTENCE * 11)
    put(novel, "戊", SENTENCE * 11)

    result = await assembled(client, novel, "甲来了。")

    assert evidence(result) == {
        "甲": ("kept", "rules_line"),
        "乙": ("kept", "rules_line"),
        "丙": ("kept", "rules_line"),
        "丁": ("dropped", "not_mentioned"),
        "戊": ("dropped", "not_mentioned"),
    }


async def test_too_many_of_those_that_are_mentioned_leave_by_priority(
    client: Client, novel: Novel
) -> None:
    names = [f"人物{n:02}" for n in range(12)]
    for number, name in enumerate(names):
        put(novel, name, priority=number)

    result = await assembled(client, novel, "、".join(names))

    stay = len(kept(result))
    assert 0 < stay < 12
    assert kept(result) == set(names[-stay:])
    assert evidence(result)["人物00"] == ("dropped", "rules_line")


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("那天林远山来了。", {"林远山"}),
        ("那天林远山和林远来了。", {"林远山", "林远"}),
        ("Annabel and Joanna waited.", set[str]()),
        ("他叫Ann吗", {"Ann"}),
    ],
)
async def test_names_match_as_they_are_written(
    client: Client, novel: Novel, text: str, mentioned: set[str]
) -> None:
    crowd(novel, "林远", "林远山", "Ann", about=ABOUT * 3)
    put(novel, "杂役", SENTENCE * 30, priority=500)

    result = await assembled(client, novel, text)

    named = {n for n, (_, rule) in evidence(result).items() if rule != "not_mentioned"}
    assert named - {"杂役"} == mentioned


@pytest.mark.requirement("CE-028")
async def test_a_hundred_characters_and_five_hundred_constraints(
    client: Client, novel: Novel
) -> None:
    crowd(novel, *(f"角色{n:03}" for n in range(100)))
    items = [f"第{n}条不可违反。" for n in range(500)]
    await client.call(
        "constraints:set", novel.params | {"constraints": {"version": 1, "items": items}}
    )
    profile = await client.call("context:budget:get", novel.params)
    wide = profile | {"contextWindowTokens": 60_000}
    await client.call("context:budget:update", novel.params | {"profile": wide})

    result = await assembled(client, novel, "角色042遇见了角色077。")

    assert {"角色042", "角色077"} <= kept(result)
    assert len(evidence(result)) == 100
    assert "500. 第499条不可违反。\n" in result["systemPrompt"]


async def test_typing_keeps_the_prefix_as_long_as_no_new_name_appears(
    client: Client, novel: Novel
) -> None:
    """Over the line, where the prefix depends on the document's names and on nothing else."""
    crowd(novel, *(f"人物{n:02}" for n in range(20)))
    text = "人物07推开门。"
    first = await assembled(client, novel, text)

    typed = [await assembled(client, novel, text + SENTENCE[:n]) for n in range(1, 20, 3)]
    moved = await assembled(client, novel, f"{SENTENCE}{text}人物07又来了。", cursorPosition=3)
    named = await assembled(client, novel, f"{text}人物15也来了。")

    assert "CONTEXT_RULES_OVERBUDGET" in first["warnings"]
    assert {r["stablePrefixHash"] for r in (*typed, moved)} == {first["stablePrefixHash"]}
    assert all(result["stablePrefixUnchanged"] for result in (*typed, moved))
    assert named["stablePrefixUnchanged"] is False
    assert named["prefixChange"]["sourceRef"].startswith(".creonow/characters/人物")
    assert named["prefixChange"]["change"] in {"added", "removed"}
    assert named["prefixChange"]["cause"] == "rules_line"
    assert kept(named) - kept(first) == {"人物15"}


async def test_the_order_of_arrival_does_not_matter(client: Client, novel: Novel) -> None:
    names = [f"人物{n:02}" for n in range(20)]
    crowd(novel, *names)
    text = "人物07与人物03。"
    first = await assembled(client, novel, text)
    for name in names:
        (novel.root / f".creonow/characters/{name}.md").unlink()

    crowd(novel, *reversed(names))
    again = await assembled(client, novel, text)

    assert again["promptHash"] == first["promptHash"]


async def test_whoever_waits_to_be_mentioned_never_enters_the_stable_layers(
    client: Client, novel: Novel
) -> None:
    put(novel, "林远", "林远的事。", inject="mentioned", aliases=["老更夫"])
    put(novel, "阿青", "阿青的事。", inject="manual")
    put(novel, "鬼", "鬼的事。", inject="never")
    put(novel, "主角", "主角的事。")
    silent = await assembled(client, novel, "雨还在下。")

    everyone = await assembled(client, novel, "老更夫、阿青和鬼都来了。")
    wished = await assembled(client, novel, "雨还在下。", additionalInput="写阿青，也写鬼")

    (chunk,) = [e for e in everyone["trimEvidence"] if "characters/林远" in e["sourceRef"]]
    assert (chunk["layer"], chunk["action"]) == ("retrieved", "kept")
    assert evidence(wished, "retrieved") == {"阿青": ("kept", "score")}
    for result in (silent, everyone, wished):
        assert result["stablePrefixHash"] == silent["stablePrefixHash"]
        assert evidence(result) == {"主角": ("kept", "rules_line")}
        assert "鬼的事" not in result["prompt"]


async def test_a_note_that_waits_to_be_mentioned_comes_as_a_card_does(
    client: Client, novel: Novel
) -> None:
    for name, said in {
        "渡口": "inject: mentioned\naliases: [码头]",
        "历法": "inject: manual\ntitle: 十三月历",
        "结局": "inject: never",
        "世界": "confidence: 0.9",
    }.items():
        novel.put(f".creonow/settings/{name}.md", f"---\n{said}\n---\n{name}的事。\n")
    novel.put(".creonow/settings/船.json", '{"inject": "mentioned", "about": "船的事。"}')
    novel.put(".creonow/settings/分隔.md", "---\n只是：正文\n---\n分隔的事。\n")
    silent = await assembled(client, novel, "雨还在下。")

    everything = await assembled(client, novel, "码头、十三月历、船和结局都在。")
    wished = await assembled(client, novel, "雨还在下。", additionalInput="用十三月历，写结局")

    def retrieved(result: Result) -> set[str]:
        return {
            entry["sourceRef"].rpartition("/")[2].partition(".")[0]
            for entry in result["trimEvidence"]
            if entry["layer"] == "retrieved" and "settings/" in entry["sourceRef"]
        }

    assert [retrieved(each) for each in (silent, everything, wished)] == [
        set(),
        {"渡口", "船"},
        {"历法"},
    ]
    assert "渡口的事。" in everything["userContent"]
    for result in (silent, everything, wished):
        assert result["stablePrefixHash"] == silent["stablePrefixHash"]
        assert "世界的事。" in result["prompt"]
        assert "分隔的事。" in result["prompt"]
        assert "结局的事" not in result["prompt"]


@pytest.mark.parametrize("said", ["inject: sometimes", "inject: mentioned\naliases: {a: 1}"])
async def test_a_note_that_makes_no_sense_is_left_out_with_its_line(
    client: Client, novel: Novel, said: str
) -> None:
    novel.put(".creonow/settings/渡口.md", f"---\n{said}\n---\n渡口的事。\n")

    result = await assembled(client, novel, "渡口。")

    (notice,) = [one for one in result["notices"] if one["code"] == "SETTINGS_UNAVAILABLE"]
    assert notice["details"]["line"] == said.count("\n") + 2
    assert "渡口的事" not in result["prompt"]


async def test_whoever_waits_stays_out_of_a_prefix_that_is_over_its_line(
    client: Client, novel: Novel
) -> None:
    crowd(novel, *(f"人物{n:02}" for n in range(20)))
    put(novel, "林远", "林远的事。", inject="mentioned")
    before = await assembled(client, novel, "人物07推开门。")

    after = await assembled(client, novel, "人物07推开门，林远也来了。")

    assert after["stablePrefixUnchanged"] is True
    assert "林远的事。" in after["userContent"]
    assert "林远的事。" not in before["prompt"]


async def test_what_a_graph_knows_is_narrowed_with_the_files(client: Client, novel: Novel) -> None:
    crowd(novel, *(f"路人{n:02}" for n in range(8)))
    known = [{"source": f"kg:图谱{n:02}", "content": ABOUT} for n in range(8)]
    client.handlers["context:source:fetch"] = lambda _params: {"chunks": known}
    offer = {"layer": "rules", "name": "图谱", "kind": "kg"}
    await client.call("context:source:register", offer)

    result = await assembled(client, novel, "图谱05认得路人02。")

    stay = {
        entry["sourceRef"]
        for entry in result["trimEvidence"]
        if entry["layer"] == "rules" and entry["action"] == "kept"
    }
    assert {"kg:图谱05", ".creonow/characters/路人02.md"} <= stay
    assert len(stay) < 16
    assert result["layers"]["rules"]["tokens"] <= LINE


@pytest.mark.parametrize("said", ["inject: sometimes", "priority: high", "aliases: {a: 1}"])
async def test_a_character_that_makes_no_sense_costs_itself(
    client: Client, novel: Novel, said: str
) -> None:
    put(novel, "苏晴", "苏晴的事。")
    novel.put(".creonow/characters/林远.md", f"---\n{said}\n---\n林远的事。")

    result = await assembled(client, novel, "林远来了。")

    (entry,) = [e for e in result["trimEvidence"] if "characters/林远" in e["sourceRef"]]
    assert (entry["action"], entry["reason"]) == ("dropped", "invalid_format")
    assert "林远的事。" not in result["prompt"]
    assert "苏晴的事。" in result["systemPrompt"]


async def test_a_given_name_mentions_its_bearer(client: Client, novel: Novel) -> None:
    put(novel, "林黛玉")
    crowd(novel, *(f"路人{n:02}" for n in range(12)))

    result = await assembled(client, novel, "黛玉倚着门，黛玉不语。")

    assert evidence(result)["林黛玉"] == ("kept", "rules_line")


async def test_an_ambiguous_part_counts_for_nobody_and_is_reported_once(
    client: Client, novel: Novel
) -> None:
    crowd(novel, "贾宝玉", "甄宝玉", *(f"路人{n:02}" for n in range(12)))

    first = await assembled(client, novel, "宝玉来了。")
    again = await assembled(client, novel, "宝玉又来了。")

    ambiguous = [n for n in first["notices"] if n["code"] == "CHARACTER_NAME_AMBIGUOUS"]
    assert [n["details"]["names"] for n in ambiguous] == ["宝玉"]
    assert not [n for n in again["notices"] if n["code"] == "CHARACTER_NAME_AMBIGUOUS"]
    dropped = [rule for action, rule in evidence(first).values() if action == "dropped"]
    assert dropped
    assert set(dropped) == {"not_mentioned"}


async def test_the_chapters_before_know_who_matters(client: Client, novel: Novel) -> None:
    """Those that a chapter names about as often, and an empty page, leave it to the story."""
    names = [f"王人{n:02}" for n in range(14)]
    crowd(novel, *names)
    novel.put("1.md", "王人13又来了。" * 20)
    novel.put("2.md", "王人12又来了。" * 9)
    novel.put("4.md", "王人11又来了。" * 90)
    place = {"documentId": "3.md", "cursorPosition": 0, "skillId": "builtin:continue"}

    novel.put("3.md", "")
    empty = await client.call("context:assemble", novel.params | place)
    novel.put("3.md", "。".join(names))
    named = await client.call("context:assemble", novel.params | place)

    assert kept(empty) == kept(named)
    assert kept(named) >= {"王人13", "王人12"}
    assert kept(named) == {"王人13", "王人12", *sorted(names)[: len(kept(named)) - 2]}


async def test_who_is_mentioned_most_stays_and_who_is_lost_is_named(
    client: Client, novel: Novel
) -> None:
    crowd(novel, *(f"王人{n:02}" for n in range(14)))
    text = "王人13" * 9 + "。" + "。".join(f"王人{n:02}" for n in range(14))

    result = await assembled(client, novel, text)

    (notice,) = [n for n in result["notices"] if n["code"] == "CONTEXT_RULES_OVERBUDGET"]
    lost = notice["details"]["characters"].split("、")
    assert "王人13" in kept(result)
    assert set(lost) == {name for name, (action, _) in evidence(result).items() if action != "kept"}
    assert all(name in notice["message"] for name in lost)
