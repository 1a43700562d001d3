"""What lies after the cursor in the story never enters a prompt, and leaves no trace in it."""

import json
import random
import re
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creonowd.daemon.build import build
from creonowd.settings import Settings
from testing.clients import Client, in_memory
from testing.novels import Novel, make_novel

Result = dict[str, Any]

SNOW = "大雪压断了庙前的老松，守夜的和尚看见一只白狐从山门出去。"
OMEN = "白狐回来那一夜，老松下的和尚终于说出了守夜人的名字。"
_WORDS = (
    "天地人日月星风云雷电雨霜春夏秋冬东西南北金木水火土石田禾米麦牛羊马鸡犬鱼鸟虫花草树叶根果"
    "红黄蓝绿黑白青紫大小多少长短高低远近新旧冷热轻重快慢父母兄弟姐妹夫妻子女师友王臣兵民工农"
    "衣食住行书画琴棋诗酒茶饭门窗墙瓦桥路船车刀剑弓箭钟鼓旗灯眼耳口鼻手足头心血骨笑哭歌舞走跑"
)


def prose(seed: int, sentences: int) -> str:
    """Return made-up paragraphs, always the same for a seed."""
    chance = random.Random(seed)
    lines = ("".join(chance.choices(_WORDS, k=chance.randint(12, 30))) for _ in range(sentences))
    return "。\n\n".join(lines) + "。\n"


def chapters(future: int = 0) -> dict[str, str]:
    """Return twelve chapters, with the author in the sixth; `future` changes what comes after."""
    files = {f"{n:02}.md": f"# 第{n}章\n\n{prose(n, 60)}" for n in range(1, 6)}
    files["02.md"] += f"\n{SNOW}\n\n{prose(77, 10)}"
    files["06.md"] = f"# 第6章\n\n{prose(6, 260)}\n他想起庙前的老松，想起那只白狐。"
    for n in range(7, 13):
        files[f"{n:02}.md"] = f"# 第{n}章\n\n{prose(n + 100 * future, 60)}\n{OMEN * (1 + future)}\n"
    return files


async def make(client: Client, root: Path, files: dict[str, str]) -> Novel:
    novel = await make_novel(
        client, root, files, documentId="06.md", cursorPosition=len(files["06.md"])
    )
    await novel.client.call(
        "context:retrieve",
        novel.params | {"documentId": "06.md", "cursorPosition": 0, "query": "老松", "wait": True},
    )
    return novel


def passages(result: Result, action: str = "kept") -> list[str]:
    return [
        entry["sourceRef"].partition("#")[0]
        for entry in result["trimEvidence"]
        if entry["layer"] == "retrieved" and entry["action"] == action
    ]


@pytest.mark.parametrize("skill", ["builtin:continue", "builtin:expand", "general"])
async def test_passages_come_from_before_the_cursor_only(
    client: Client, tmp_path: Path, skill: str
) -> None:
    novel = await make(client, tmp_path / "雪", chapters())
    selected = {"from": len(chapters()["06.md"]) - 18, "to": len(chapters()["06.md"])}

    result = await novel.assemble(skillId=skill, selection=selected)

    assert SNOW in result["prompt"]
    assert OMEN not in result["prompt"]
    assert {path for path in passages(result) if path.endswith(".md")} <= {
        f"{n:02}.md" for n in range(1, 7)
    }


async def test_what_the_future_would_have_brought_is_evidence(
    client: Client, tmp_path: Path
) -> None:
    novel = await make(client, tmp_path / "雪", chapters())

    result = await novel.assemble()

    future = [entry for entry in result["trimEvidence"] if entry["rule"] == "future"]
    assert {entry["sourceRef"].partition("#")[0] for entry in future} <= {
        f"{n:02}.md" for n in range(7, 13)
    }
    assert future
    assert all(entry["action"] == "dropped" and entry["beforeTokens"] > 0 for entry in future)


async def test_what_a_sentence_alludes_to_in_the_future_is_evidence(
    client: Client, tmp_path: Path
) -> None:
    """Only the last sentence speaks of it, so the query as a whole would not have found it."""
    files = chapters()
    files["11.md"] += f"\n烛奴把琉璃匣沉进了枯井，谁也没有看见。\n\n{prose(78, 20)}"
    files["06.md"] += "\n\n烛奴抱着琉璃匣，望着枯井。"
    novel = await make(client, tmp_path / "雪", files)

    result = await novel.assemble()

    before, _, _ = files["11.md"].partition("烛奴")
    line = before.count("\n") + 1
    future = [entry["sourceRef"] for entry in result["trimEvidence"] if entry["rule"] == "future"]
    spans = [re.findall(r"\d+", ref.removeprefix("11.md#")) for ref in future if "11.md" in ref]
    assert [span for span in spans if int(span[0]) <= line <= int(span[-1])]
    assert "沉进了枯井" not in result["prompt"]


async def test_a_skill_may_ask_for_all(client: Client, tmp_path: Path) -> None:
    novel = await make(client, tmp_path / "雪", chapters())
    text = chapters()["06.md"]

    result = await novel.assemble(
        skillId="builtin:consistency", selection={"from": len(text) - 18, "to": len(text)}
    )

    assert OMEN in result["prompt"]
    assert not [entry for entry in result["trimEvidence"] if entry["rule"] == "future"]


async def test_notes_outside_of_the_story_are_always_found(client: Client, tmp_path: Path) -> None:
    note = "白狐是守夜人所化，老松是它的坟。"
    novel = await make(client, tmp_path / "雪", chapters() | {"大纲.md": f"{note}\n"})

    result = await novel.assemble()

    assert note in result["prompt"]


@pytest.mark.parametrize(
    "skill", ["builtin:continue", "builtin:expand", "builtin:dialogue", "general"]
)
@pytest.mark.parametrize("cursor", [0, 700, 100_000])
async def test_no_change_after_the_cursor_changes_a_byte(
    client: Client, tmp_path: Path, skill: str, cursor: int
) -> None:
    """Statistics must not leak the future either: how rare a term is depends on the past alone."""
    prompts: list[str] = []
    for future in range(3):
        files = chapters(future)
        at = min(cursor, len(files["06.md"]))
        if future == 1:
            # Also within the document, behind what the window shows.
            files["06.md"] = files["06.md"][: at + 4500] + "\n\n" + prose(9, 40) * (at < 1000)
        if future == 2:
            del files["09.md"]
            files["13.md"] = OMEN * 50
        novel = await make(client, tmp_path / f"未来{future}", files)
        selected = {"from": at, "to": at + 10} if skill == "builtin:expand" else None
        extra = {} if selected is None else {"selection": selected}
        if skill == "builtin:expand" and at + 10 > len(files["06.md"]):
            extra = {"selection": {"from": at - 10, "to": at}}
        result = await novel.assemble(skillId=skill, cursorPosition=at, **extra)
        prompts.append(result["prompt"])

    assert prompts[2] == prompts[0]
    if skill != "general":
        assert prompts[1] == prompts[0]


async def test_an_allusion_in_the_last_sentence_brings_its_chapter(
    client: Client, tmp_path: Path
) -> None:
    novel = await make(client, tmp_path / "雪", chapters())

    result = await novel.assemble()

    assert SNOW in result["userContent"]


async def test_typing_on_moves_nothing_but_the_end(client: Client, tmp_path: Path) -> None:
    """What the last words bring stands last, so that a new sentence costs the cache little."""
    files = chapters()
    # The window has just moved on, and will not for some sentences.
    files["06.md"] = text = files["06.md"][(len(files["06.md"]) - 20) % 250 :]
    novel = await make(client, tmp_path / "雪", files)
    more = f"{text}他又想起渡口的船。"

    before = await novel.assemble()
    sync = {"documentId": "06.md", "version": 1, "text": more}
    await client.call("context:document:sync", novel.params | sync)
    after = await novel.assemble(cursorPosition=len(more))

    end = before["userContent"].rindex("他想起庙前的老松")
    assert before["stablePrefixHash"] == after["stablePrefixHash"]
    assert before["userContent"][:end] == after["userContent"][:end]


async def test_the_nearer_of_two_equal_passages_comes_first(client: Client, tmp_path: Path) -> None:
    twin = "渡口的灯灭了三次，船家说那是河神点名。"
    files = chapters()
    files["01.md"] += f"\n{prose(501, 8)}\n{twin}\n"
    files["04.md"] += f"\n{prose(502, 8)}\n{twin}\n"
    novel = await make(client, tmp_path / "雪", files)

    place = {"documentId": "06.md", "cursorPosition": 0, "query": "渡口的灯灭了 河神点名"}
    result = await client.call("context:retrieve", novel.params | place)

    found = [one for one in result["passages"] if twin in one["content"]]
    assert [one["documentId"] for one in found][:1] == ["04.md"]
    assert found[0]["why"]["recency"] == pytest.approx(1 / 3, abs=0.001)


@pytest.mark.parametrize("future", [True, False])
async def test_a_query_searches_the_future_unless_asked_not_to(
    client: Client, tmp_path: Path, *, future: bool
) -> None:
    files = chapters()
    files["09.md"] += "\n铁塔在暮色里倒下了。\n"
    novel = await make(client, tmp_path / "雪", files)

    place = {"documentId": "06.md", "cursorPosition": 0, "query": "铁塔倒下", "future": future}
    result = await client.call("context:retrieve", novel.params | place)

    assert any("铁塔" in one["content"] for one in result["passages"]) is future


async def test_an_empty_page_begins_with_the_end_of_the_chapter_before(
    client: Client, tmp_path: Path
) -> None:
    files = chapters() | {"06.md": ""}
    files["05.md"] += "\n他在庙前的老松下又见到那只白狐。\n"
    novel = await make(client, tmp_path / "雪", files)

    result = await novel.assemble(cursorPosition=0)

    last = files["05.md"].strip().rpartition("\n")[2]
    immediate = [e for e in result["trimEvidence"] if e["layer"] == "immediate"]
    assert last in result["userContent"]
    assert immediate[0]["sourceRef"].startswith("05.md#L")
    assert (immediate[0]["action"], immediate[0]["rule"]) == ("kept", "window")
    assert SNOW in result["prompt"], "the empty page asks with the end of the chapter before"
    assert OMEN not in result["prompt"]


async def test_the_window_crosses_only_as_far_as_it_is_short(
    client: Client, tmp_path: Path
) -> None:
    files = chapters()
    novel = await make(client, tmp_path / "雪", files)

    early = await novel.assemble(cursorPosition=300)
    late = await novel.assemble(cursorPosition=len(files["06.md"]))

    def previous(result: Result) -> list[str]:
        layer = [e for e in result["trimEvidence"] if e["layer"] == "immediate"]
        return [e["sourceRef"] for e in layer if e["sourceRef"].startswith("05.md")]

    assert len(previous(early)) == 1
    assert previous(late) == []
    assert early["tokenCount"] <= 6000


async def test_the_first_chapter_has_nothing_before_it(client: Client, tmp_path: Path) -> None:
    novel = await make(client, tmp_path / "雪", chapters() | {"大纲.md": "梗概"})

    result = await novel.assemble(documentId="01.md", cursorPosition=0)

    layer = [e["sourceRef"] for e in result["trimEvidence"] if e["layer"] == "immediate"]
    assert not [ref for ref in layer if ref.startswith(("大纲", "02"))]


async def test_a_secret_at_the_border_stays_secret(client: Client, tmp_path: Path) -> None:
    secret = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
    files = chapters() | {"06.md": ""}
    files["05.md"] += f"\n密钥是 {secret} 。\n"
    novel = await make(client, tmp_path / "雪", files)

    result = await novel.assemble(cursorPosition=0)

    assert secret not in result["prompt"]
    assert "***REDACTED***" in result["userContent"]


async def test_an_empty_page_asks_with_the_outline_of_its_chapter(
    client: Client, tmp_path: Path
) -> None:
    """Of the outline the part about this chapter asks, and no other."""
    outline = "# 大纲\n\n- 第5章：渡口的船沉了。\n- 第6章：守夜的和尚在老松下又见白狐。\n- 第7章：结局。\n"
    plain = chapters() | {"06.md": ""}
    without = await make(client, tmp_path / "无", plain)
    with_outline = await make(client, tmp_path / "有", plain | {"大纲.md": outline})

    before = await without.assemble(cursorPosition=0)
    after = await with_outline.assemble(cursorPosition=0)

    assert SNOW not in before["prompt"]
    assert SNOW in after["prompt"]
    assert OMEN not in after["prompt"]


FUTURE = st.lists(
    st.sampled_from(("白狐", "老松", "守夜人", "the grey fox", "her lantern", "渡口"))
)
PAST = {
    "zh": ("第{}章", "白狐从老松下走过，守夜人提着灯。", "守夜人", "他想起那只白狐，想起老松。"),
    "en": (
        "Chapter {}",
        "The grey fox passed beneath the pine.",
        "Ada",
        "Ada recalled the grey fox.",
    ),
}


def story(language: str, later: str) -> dict[str, str]:
    """Return a novel whose author is in chapter 4; all that comes after says what `later` says."""
    heading, sentence, name, last = PAST[language]
    titles = [heading.format(number) for number in range(1, 8)]
    own = f"# {titles[3]}\n\n" + f"{prose(4, 30) if language == 'zh' else sentence * 40}\n\n{last}"
    gap = "x" * 30
    until = {"text": f"{name} does not know it", "until": "5", "id": "con_0000000000000001"}
    since = {"text": f"{name}: {later or '-'}", "from": "6", "id": "con_0000000000000002"}
    shape = {"type": "plot", "source": "user", "priority": 100, "degradable": False}
    items = [one | shape | {"updatedAt": "2026-01-01T00:00:00Z"} for one in (until, since)]
    files = {
        f"{n + 1}.md": f"# {titles[n]}\n\n{sentence}\n\n## {gap}\n\n{sentence}\n" for n in range(3)
    }
    files |= {f"{n + 1}.md": f"# {titles[n]}\n\n{later}\n\n## {later}\n" for n in range(4, 7)}
    stage = f"## 自第6章\n{later}\n" if language == "zh" else f"## From chapter 6\n{later}\n"
    return files | {
        "4.md": own + f"\n\n{'。' * 9000}\n\n## {later}\n\n{later}\n",
        f".creonow/characters/{name}.md": f"---\nname: {name}\n---\nold\n\n{stage}",
        ".creonow/threads/a.md": f"---\nplanted: 1\ndue: 6\n---\n{sentence}\n",
        ".creonow/threads/b.md": f"---\nplanted: 6\n---\n{later}.\n",
        ".creonow/rules/constraints.json": json.dumps({"version": 2, "items": items}),
    }


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(language=st.sampled_from(sorted(PAST)), words=FUTURE.filter(bool), others=FUTURE)
def test_no_future_changes_a_byte_of_any_prompt(
    language: str, words: list[str], others: list[str]
) -> None:
    """Not by text, headings, progressions, constraints, threads or summaries of later chapters."""

    async def prompts(folder: Path, later: str) -> list[str]:
        found: list[Result] = []
        async with anyio.create_task_group() as tasks:
            tasks.cancel_scope.deadline = anyio.current_time() + 60
            async with (
                build(folder / "data", Settings(e2e=True), tasks) as server,
                in_memory(server) as client,
            ):
                files = story(language, later)
                cursor = files["4.md"].index("。" * 9000) - 2
                novel = await make_novel(client, folder / "novel", files)
                await client.call("story:summarise", novel.params)
                place = novel.params | {"documentId": "4.md", "cursorPosition": cursor}
                await client.call("context:retrieve", place | {"wait": True})
                found = [
                    (await novel.assemble(documentId="4.md", cursorPosition=cursor, skillId=one))
                    for one in ("builtin:continue", "builtin:dialogue")
                ]
            tasks.cancel_scope.cancel()
        return [one["prompt"] for one in found]

    found: list[list[str]] = []
    for later in (" ".join(words), " ".join(others)):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "data").mkdir()
            found.append(anyio.run(prompts, Path(folder), later))

    assert found[0] == found[1]
