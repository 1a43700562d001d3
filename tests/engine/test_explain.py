"""`context:explain`: whether the model knows something, why not, and what would change that."""

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from anyio import fail_after

from creonowd.engine.services import Session
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.sources.passage_source import PassageSource
from creonowd.workspace.creonow_tree import CreonowFolder, Folder, Tree
from testing.clients import Client, in_memory
from testing.novels import SECRET, Novel

HERE = (
    "# 第三章\n\n门外有一只猫。\n"
    + "雨一直下，没有人说话。\n" * 60
    + "😀林远推开门，苏晴没有抬头。\n"
)
FILES = {
    "chapters/01.md": "# 第一章\n\n" + "林远在渡口遇见苏晴，铜钥匙丢了。\n\n" * 6,
    "chapters/02.md": f"# 第二章\n\n井边有人埋下一面镜子。密钥是 {SECRET} 。\n",
    "chapters/03.md": HERE + "\n后文：天亮之后，船来了。\n",
    "chapters/04.md": "# 第四章\n\n皇帝驾崩。\n",
    "drafts/旧稿.md": "飞艇停在屋顶。\n",
    ".gitignore": "drafts/\n",
    ".creonow/characters/林远.md": "林远，冷静。\n",
    ".creonow/characters/苏晴.md": "---\ninject: mentioned\naliases: [小晴]\n---\n苏晴，爱笑。\n",
    ".creonow/characters/周船家.md": "---\ninject: mentioned\n---\n周船家，话少。\n",
    ".creonow/characters/阿福.md": "---\ninject: manual\n---\n阿福，一条狗。\n",
    ".creonow/characters/老陈.md": "---\ninject: never\n---\n老陈，掌柜。\n",
    ".creonow/characters/坏.md": "---\nname: 坏人\npriority: 高\n---\n坏人。\n",
    ".creonow/characters/将来.md": "---\nfrom: 第四章\n---\n将来，新帝。\n",
    ".creonow/settings/渡口.md": "---\nconfidence: 0.9\n---\n渡口在城南。\n",
    ".creonow/settings/井.md": "---\nconfidence: 0.1\n---\n井水很冷。\n",
    ".creonow/settings/镜湖.md": "---\ninject: mentioned\n---\n湖面如镜。\n",
    ".creonow/settings/雨季.md": "---\ninject: mentioned\naliases: [雨]\n---\n从四月下到六月。\n",
    ".creonow/settings/历法.md": "---\ninject: manual\n---\n一年十三个月。\n",
    ".creonow/settings/结局.md": "---\ninject: never\n---\n谁也没有回来。\n",
    ".creonow/threads/钥匙.md": "铜钥匙在谁手里？\n",
}


@pytest.fixture
def daemon_settings() -> Settings:
    return Settings(e2e=True, debug=True, warm_up=False)


@pytest.fixture
async def story(client: Client, novel: Novel) -> Novel:
    for path, text in FILES.items():
        novel.put(path, text)
    wait = {"documentId": "chapters/03.md", "cursorPosition": 0, "wait": True}
    await client.call("context:retrieve", novel.params | wait)
    return novel


async def ask(client: Client, novel: Novel, about: str, **changes: Any) -> dict[str, Any]:
    place = {"documentId": "chapters/03.md", "cursorPosition": len(HERE), "debugMode": True}
    return await client.call(
        "context:explain",
        novel.params | place | {"about": about, "skillId": "builtin:continue"} | changes,
    )


CASES: tuple[tuple[str, str, str | None, str | None], ...] = (
    ("林远", "in", None, None),
    ("小晴", "in", None, None),
    ("周船家", "never_considered", "not_mentioned", "set_inject"),
    ("阿福", "never_considered", "set_to_manual", "set_inject"),
    ("老陈", "never_considered", "set_to_never", "set_inject"),
    ("坏", "never_considered", "broken_file", "fix_file"),
    ("将来", "never_considered", "not_yet", "fix_file"),
    ("渡口", "in", None, None),
    ("雨季", "in", None, None),
    ("镜湖", "never_considered", "not_mentioned", "set_inject"),
    ("历法", "never_considered", "set_to_manual", "set_inject"),
    ("结局", "never_considered", "set_to_never", "set_inject"),
    ("钥匙", "in", None, None),
    ("第四章", "never_considered", "future", "move_cursor"),
    ("皇帝驾崩", "never_considered", "future", "move_cursor"),
    ("飞艇", "never_considered", "ignored", "include_file"),
    ("火星", "not_in_project", None, "write_down"),
    ("chapters/04.md#L1-L3", "never_considered", "future", "move_cursor"),
    ("chapters/04.md#L1-L99", "not_in_project", None, "write_down"),
    ("第九章", "not_in_project", None, "write_down"),
    ("推开门", "in", None, None),
)


async def test_each_question_has_its_answer_and_what_to_do(client: Client, story: Novel) -> None:
    answers = {about: await ask(client, story, about) for about, *_ in CASES}

    for about, verdict, cause, remedy in CASES:
        answer = answers[about]
        assert (answer["verdict"], answer.get("cause")) == (verdict, cause), about
        assert [one["do"] for one in answer["remedies"]][:1] == ([remedy] if remedy else []), about
        assert answer["sentence"], about


async def test_the_text_of_an_ignored_file_is_not_quoted(client: Client, story: Novel) -> None:
    answer = await ask(client, story, "飞艇")

    assert (answer["cause"], answer["sourceRef"]) == ("ignored", "drafts/旧稿.md")
    assert "屋顶" not in str(answer)


async def test_each_remedy_does_what_it_says(client: Client, story: Novel) -> None:
    """Take every remedy of every answer by itself: the model knows it then."""
    blind = "---\nname: Blind\ncontext_rules:\n  surrounding: 40\n---\n\nGo on.\n"
    story.put(".creonow/skills/blind/SKILL.md", blind)
    skill = {"skillId": "project:blind"}
    asked: list[tuple[str, dict[str, Any]]] = [(about, {}) for about, *_ in CASES]
    asked += [(about, skill) for about in ("林远", "镜子", "一只猫", "渡口")]
    taken, idle = await take_remedies(client, story, asked)
    story.put(".creonow/characters/何婶.md", "开米铺，" + "话不多。" * 200)
    story.put(".creonow/rules/style.md", "克制。" * 400)
    story.put(".creonow/settings/井.md", "---\nconfidence: 0.1\n---\n" + "井水很冷。" * 1500)
    crowded, still_idle = await take_remedies(client, story, [("何婶", {}), ("井", {})])

    assert not [*idle, *still_idle], "\n".join((*idle, *still_idle))
    kinds = {"pin", "raise_budget", "set_inject", "mention", "change_skill", "widen_window"}
    assert taken | crowded == kinds | {"move_cursor"}


async def take_remedies(
    client: Client, story: Novel, asked: list[tuple[str, dict[str, Any]]]
) -> tuple[set[str], list[str]]:
    """Return which kinds of remedies were taken, and those that changed nothing."""
    taken: set[str] = set()
    idle: list[str] = []
    for about, where in asked:
        for remedy in (await ask(client, story, about, **where))["remedies"]:
            changes = await follow(client, story, remedy)
            if changes is None:
                continue
            taken.add(remedy["do"])
            now = await ask(client, story, about, **(where | changes))
            if now["verdict"] != "in":
                idle.append(f"{about} {remedy}: {now['sentence']}")
            if remedy["do"] == "set_inject":
                story.put(remedy["path"], FILES[remedy["path"]])
    return taken, idle


async def follow(client: Client, story: Novel, remedy: dict[str, Any]) -> dict[str, Any] | None:
    """Do what a remedy says; return what that changes in the question, None if a person must."""
    if remedy["do"] == "set_inject":
        target = {"path": remedy["path"], "inject": remedy["inject"]}
        await client.call("context:creonow:inject:set", story.params | target)
    budget = {"totalBudgetTokens": remedy.get("totalBudgetTokens")}
    place = {"documentId": remedy.get("documentId"), "cursorPosition": remedy.get("position")}
    changes: dict[str, dict[str, Any]] = {
        "pin": {"pinned": [remedy.get("sourceRef")]},
        "raise_budget": {"whatIf": {"profile": budget}},
        "set_inject": {},
        "mention": {"additionalInput": remedy.get("name")},
        "change_skill": {"skillId": None},
        "widen_window": {"skillId": None},
        "move_cursor": place,
    }
    return changes.get(remedy["do"])


async def test_what_is_called_so_comes_before_where_the_words_stand(
    client: Client, story: Novel
) -> None:
    """A card that is not read is the answer, though a chapter and the card itself have the words."""
    torn = "---\nname: 掌灯人\naliases: [一, 二\n---\n他死了。\n"
    story.put(".creonow/characters/坏.md", torn)
    story.put("chapters/02.md", "# 第二章\n\n旷野上，阿福找到了掌灯人。\n")
    wait = {"documentId": "chapters/03.md", "cursorPosition": 0, "wait": True}
    await client.call("context:retrieve", story.params | wait)

    person, broken = [await ask(client, story, about) for about in ("阿福", "掌灯人")]

    assert person["sourceRef"] == ".creonow/characters/阿福.md"
    assert person["cause"] == "set_to_manual"
    assert person["others"]
    assert broken["sourceRef"] == ".creonow/characters/坏.md"
    assert broken["cause"] == "broken_file"


async def test_what_is_shortened_may_be_made_whole(client: Client, story: Novel) -> None:
    story.put(".creonow/settings/井.md", "井水很冷。\n\n" * 800)
    well = await ask(client, story, "井")
    (room,) = well["remedies"]
    enough = {"profile": {"totalBudgetTokens": room["totalBudgetTokens"]}}

    whole = await ask(client, story, "井", whatIf=enough)

    assert (well["verdict"], well["trimmed"], room["do"]) == ("in", True, "raise_budget")
    assert (whole["verdict"], whole["trimmed"], whole["remedies"]) == ("in", False, [])


async def test_no_other_skill_is_offered_for_what_is_still_to_come(
    client: Client, story: Novel
) -> None:
    answer = await ask(client, story, "第四章", skillId=None)

    assert [one["do"] for one in answer["remedies"]] == ["move_cursor"]
    assert [one["name"] for one in answer["others"]] == ["将来"]


async def test_every_candidate_is_answered_by_its_evidence(client: Client, story: Novel) -> None:
    place = {"documentId": "chapters/03.md", "cursorPosition": len(HERE), "debugMode": True}
    inspected = await client.call("context:inspect", story.params | place)
    timing = {"not_yet", "no_longer", "future", "unreadable"}

    for piece in inspected["trimEvidence"]:
        answer = await ask(client, story, piece["sourceRef"], skillId=None)
        expected = "in"
        if piece["action"] == "dropped":
            expected = "never_considered" if piece["rule"] in timing else "left_out"
        if answer["kind"] != "chapter":
            assert answer["verdict"] == expected, piece
            assert answer["rule"] == piece["rule"], piece


async def test_what_it_quotes_stands_in_the_prompt_where_it_says(
    client: Client, story: Novel
) -> None:
    await client.call("initialize", {"positionEncoding": "utf-16"})
    cursor = len(HERE.encode("utf-16-le")) // 2
    place = {"documentId": "chapters/03.md", "cursorPosition": cursor, "debugMode": True}
    shown = await client.call("context:inspect", story.params | place | {"show": ["prompt"]})

    answer = await ask(client, story, "推开门", cursorPosition=cursor, skillId=None)

    units = shown["prompt"]["text"].encode("utf-16-le")
    for one in answer["places"]:
        assert units[2 * one["from"] : 2 * one["to"]].decode("utf-16-le") == "推开门"
    assert answer["quote"] in shown["prompt"]["text"]


async def test_words_in_what_is_left_out_are_quoted_with_their_sentence(
    client: Client, story: Novel
) -> None:
    long = "井水很冷。" * 40 + "何婶在井边埋了一只铜匣。" + "井水很冷。" * 1500
    story.put(".creonow/settings/井.md", f"---\nconfidence: 0.1\n---\n{long}")

    out = await ask(client, story, "铜匣", skillId=None)

    assert out["verdict"] == "left_out"
    assert "何婶在井边埋了一只铜匣。" in out["quote"]
    assert len(out["quote"]) <= 200
    assert (out["quote"][:5], out["quote"][-1]) == ("井水很冷。", "。")


async def test_a_sentence_that_is_wrapped_over_lines_is_quoted_whole(
    client: Client, story: Novel
) -> None:
    story.put(
        ".creonow/settings/ball.md",
        "# The ball\n\nNobody was told by Mr.\nDarcy that his\nbrass casket lay\nin the well.\nIt rained.\n",
    )

    answer = await ask(client, story, "brass casket", skillId=None)

    assert answer["quote"] == "Nobody was told by Mr. Darcy that his brass casket lay in the well."


async def test_words_are_quoted_from_the_text_before_a_summary_of_it(
    client: Client, story: Novel
) -> None:
    story.put("chapters/01.md", "# 一\n\n" + "沈砚把铜匣埋在井边。" * 30)
    here = "# 三\n\n她想起铜匣，手指在桌沿停了很久。"
    story.put("chapters/03.md", here)

    answer = await ask(client, story, "铜匣", skillId=None, cursorPosition=len(here))

    assert answer["verdict"] == "in"
    assert answer["sourceRef"] != "synopsis"
    assert "summary" not in answer["sourceRef"]


async def test_what_is_left_out_says_its_rank_and_what_is_missing(
    client: Client, story: Novel
) -> None:
    story.put(".creonow/settings/井.md", "---\nconfidence: 0.1\n---\n" + "井水很冷。" * 1500)

    out = await ask(client, story, "井", skillId=None)

    assert (out["verdict"], out["cause"]) == ("left_out", "over_budget")
    assert (out["rank"], out["among"], out["taken"]) == (3, 3, 2)
    assert [one["name"] for one in out["ahead"]] == ["钥匙", "渡口"]
    budget = 6000 + out["missingTokens"]
    assert {"do": "raise_budget", "totalBudgetTokens": budget} in out["remedies"]
    assert f" {out['missingTokens']:,} more tokens" in out["sentence"]
    richer = {"profile": {"totalBudgetTokens": budget}}
    assert (await ask(client, story, "井", skillId=None, whatIf=richer))["verdict"] == "in"


async def test_a_person_that_is_left_out_has_a_rank_among_people(
    client: Client, story: Novel
) -> None:
    story.put(".creonow/characters/何婶.md", "何婶，" + "开米铺。" * 200)
    story.put(".creonow/rules/style.md", "克制。" * 400)

    out = await ask(client, story, "何婶")

    assert (out["verdict"], out["cause"]) == ("left_out", "not_mentioned")
    assert (out["rank"], out["among"], out["taken"]) == (2, 2, 0)
    seen = await ask(client, story, "何婶", whatIf={"profile": {"totalBudgetTokens": 60_000}})
    assert seen["verdict"] == "in"


async def test_what_stands_only_in_the_request_is_still_looked_for(
    client: Client, story: Novel
) -> None:
    """To name something to the AI does not mean that the AI knows the passage about it."""
    story.put("chapters/02.md", "# 第二章\n\n" + "风很大。\n\n" * 30 + "钟楼上站着一个人。\n")
    only = await ask(client, story, "青铜罗盘", additionalInput="写一写青铜罗盘")

    named = await ask(client, story, "皇帝驾崩", additionalInput="皇帝驾崩")

    assert only["verdict"] == "in"
    assert (named["verdict"], named["cause"]) == ("never_considered", "future")


async def test_a_skill_that_does_not_read_something_is_named(client: Client, story: Novel) -> None:
    story.put(
        ".creonow/skills/blind/SKILL.md",
        "---\nname: Blind\ncontext_rules:\n  surrounding: 40\n---\n\nGo on.\n",
    )

    person = await ask(client, story, "林远", skillId="project:blind")
    passage = await ask(client, story, "镜子", skillId="project:blind")
    window = await ask(client, story, "第三章", skillId="project:blind")
    words = await ask(client, story, "一只猫", skillId="project:blind")

    assert person["cause"] == passage["cause"] == "skill_does_not_read"
    assert person["remedies"] == [{"do": "change_skill", "need": "characters"}]
    assert passage["remedies"] == [{"do": "change_skill", "need": "retrieval"}]
    assert "Blind" in person["sentence"]
    assert (window["verdict"], window["trimmed"]) == ("in", True)
    assert (words["verdict"], words["cause"]) == ("never_considered", "outside_window")
    assert words["remedies"][0] == {"do": "widen_window"}


async def test_while_the_index_is_built_the_answer_is_to_wait(client: Client, novel: Novel) -> None:
    """Ask for the rare words of an early chapter before so many chapters can be known."""
    for path, text in FILES.items():
        novel.put(path, text)
    for number in range(300):
        novel.put(f"chapters/01-{number}.md", "# 渡口\n\n" + "江水漫过石阶。\n\n" * 100)
    novel.put("chapters/01-7.md", "# 渡口\n\n" + "江水漫过石阶。\n\n" * 100 + "琉璃塔倒了。\n")

    building = await ask(client, novel, "琉璃塔倒了")

    assert (building["verdict"], building["cause"]) == ("never_considered", "index_building")
    assert building["remedies"] == [{"do": "wait"}]


async def test_more_open_threads_than_a_prompt_takes_are_over_its_limit(
    client: Client, story: Novel
) -> None:
    for number in range(8):
        thread = f"---\ndue: 第{number + 1}章\n---\n谁吹灭了第{number}盏灯？\n"
        story.put(f".creonow/threads/灯{number}.md", thread)

    answer = await ask(client, story, "钥匙", skillId=None)

    assert (answer["verdict"], answer["cause"]) == ("left_out", "over_limit")
    assert answer["rule"] == "thread_limit"
    assert [one["do"] for one in answer["remedies"]] == ["pin"]
    pinned = {"pinned": [answer["remedies"][0]["sourceRef"]]}
    assert (await ask(client, story, "钥匙", skillId=None, **pinned))["verdict"] == "in"


async def test_data_that_cannot_be_cut_may_be_too_large(client: Client, story: Novel) -> None:
    story.put(".creonow/settings/历书.json", json.dumps({"days": ["雨"] * 20_000}))

    answer = await ask(client, story, "历书")

    assert (answer["verdict"], answer["cause"]) == ("left_out", "over_limit")
    assert answer["rule"] == "size_limit"
    assert answer["remedies"] == [{"do": "fix_file", "path": ".creonow/settings/历书.json"}]
    assert "too large" in answer["sentence"]


async def test_a_layer_without_room_is_off(client: Client, story: Novel) -> None:
    budget = await client.call("context:budget:get", story.params)
    layers = budget["layers"] | {"settings": {"ratio": 0, "minimumTokens": 0}}
    off = {"whatIf": {"profile": {"layers": layers}}}

    answer = await ask(client, story, "渡口", **off)

    assert (answer["verdict"], answer["cause"]) == ("never_considered", "layer_off")
    assert answer["remedies"] == [{"do": "raise_budget"}]
    layers["retrieved"] = layers["settings"]
    passage = await ask(client, story, "铜钥匙丢了", **off)
    assert (passage["verdict"], passage["cause"]) == ("never_considered", "layer_off")


@pytest.mark.parametrize("text", ["", "\n\n", "---\npriority: 3\n---\n"])
async def test_a_card_that_says_nothing_is_empty(client: Client, story: Novel, text: str) -> None:
    """Also while a host of the same layer fails, which has nothing to do with it."""
    story.put(".creonow/characters/空.md", text)
    source = {"layer": "rules", "name": "graph", "kind": "kg"}
    await client.call("context:source:register", story.params | source)

    answer = await ask(client, story, "空")

    assert (answer["verdict"], answer["cause"]) == ("never_considered", "empty")
    assert answer["remedies"] == [{"do": "fix_file", "path": ".creonow/characters/空.md"}]
    assert answer["sentence"].endswith("its file says nothing yet.")


async def test_what_could_not_be_read_may_be_asked_about_again(
    client: Client, story: Novel, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the disk fail once, and the search for one question."""
    disk: list[CreonowFolder] = [CreonowFolder.CHARACTERS]

    def read(root: Path, scope: CreonowFolder) -> Folder:
        if scope in disk:
            disk.remove(scope)
            raise OSError(errno.EIO, "the disk does not answer")
        return Tree.read_all_now(session.tree, root, scope)

    def search(*_given: Any) -> None:
        raise TimeoutError

    rules = "context_rules:\n  surrounding: 200\n  retrieval: true\n  characters: true\n"
    story.put(".creonow/skills/seek/SKILL.md", f"---\nname: Seek\n{rules}---\n\nGo on.\n")
    seek = {"skillId": "project:seek"}
    monkeypatch.setattr(session.tree, "read_all_now", read)
    person = await ask(client, story, "林远", **seek)
    with monkeypatch.context() as broken:
        broken.setattr(PassageSource, "_queries", search)
        passage = await ask(client, story, "铜钥匙丢了", **seek)

    for answer in (person, passage):
        assert (answer["verdict"], answer["cause"]) == ("never_considered", "source_failed")
        assert answer["remedies"] == [{"do": "wait"}]
        assert (await ask(client, story, answer["about"], **seek))["verdict"] == "in"


async def test_words_that_nothing_leads_to_can_be_named(client: Client, story: Novel) -> None:
    for number in range(40):
        story.put(f"chapters/01-{number}.md", "# 渡口\n\n" + "林远推开门，苏晴没有抬头。\n\n" * 40)
    story.put("chapters/00.md", "# 序\n\nxylophone orchard\n")
    wait = {"documentId": "chapters/03.md", "cursorPosition": 0, "wait": True}
    answer: dict[str, Any] = {"cause": "index_building"}
    with fail_after(60):
        while answer["cause"] == "index_building":  # a late event of the watcher begins it again
            await client.call("context:retrieve", story.params | wait)
            answer = await ask(client, story, "xylophone orchard")

    assert (answer["verdict"], answer["cause"]) == ("never_considered", "no_shared_words")
    assert [one["do"] for one in answer["remedies"]] == ["mention"]


async def test_answers_come_in_the_language_of_the_client(client: Client, story: Novel) -> None:
    english = (await ask(client, story, "老陈"))["sentence"]
    await client.call("initialize", {"locale": "zh-CN"})
    chinese = (await ask(client, story, "老陈"))["sentence"]

    assert english == "老陈 was never considered: it is set to never."
    assert chinese == "从未考虑老陈：它设为从不带上。"


@pytest.mark.parametrize("length", [len(SECRET), 12])
async def test_no_question_confirms_a_secret(client: Client, story: Novel, length: int) -> None:
    answer = await ask(client, story, SECRET[:length])

    assert answer["verdict"] == "not_in_project"
    assert SECRET not in str(answer)


async def test_who_may_not_inspect_may_not_ask(
    client: Client, server: Server, story: Novel
) -> None:
    place = {"documentId": "chapters/03.md", "cursorPosition": 0, "about": "林远"}
    asked = await client.failure("context:explain", story.params | place)
    async with in_memory(server, role=Role.RENDERER) as page:
        refused = await page.failure("context:explain", story.params | place | {"debugMode": True})
    blank = await client.failure(
        "context:explain", story.params | place | {"debugMode": True, "about": "  "}
    )

    assert asked.code == refused.code == "CONTEXT_INSPECT_FORBIDDEN"
    assert blank.code == "INVALID_ARGUMENT"


async def test_subjects_are_listed_by_all_their_names_with_their_faults(
    client: Client, story: Novel
) -> None:
    await story.constrain("不写感叹号")

    items = (await client.call("context:subjects", story.params))["items"]

    by_ref = {one["sourceRef"]: one for one in items}
    person = by_ref[".creonow/characters/苏晴.md"]
    assert (person["kind"], person["name"], person["aliases"]) == ("person", "苏晴", ["小晴"])
    assert person["inject"] == "mentioned"
    assert len(person["revision"]) == 64
    broken = by_ref[".creonow/characters/坏.md"]
    assert broken["line"] == 3
    assert "priority" in broken["problem"]
    assert by_ref["chapters/03.md"]["number"] == 3
    assert by_ref["chapters/03.md"]["name"] == "第三章"
    assert [one["name"] for one in items if one["kind"] == "rule"] == ["不写感叹号"]


async def test_a_pinned_candidate_comes_first_and_says_so(client: Client, story: Novel) -> None:
    story.put(".creonow/settings/井.md", "---\nconfidence: 0.1\n---\n" + "井水很冷。" * 500)
    story.put(".creonow/settings/塔.md", "---\nconfidence: 0.8\n---\n" + "塔上有灯。" * 500)
    well, pinned = ".creonow/settings/井.md", {"pinned": [".creonow/settings/井.md"]}

    before = await ask(client, story, well, skillId=None)
    after = await ask(client, story, well, skillId=None, **pinned)
    tower = await ask(client, story, "塔", skillId=None, **pinned)

    assert before["verdict"] == "left_out"
    assert {"do": "pin", "sourceRef": well} in before["remedies"]
    assert (after["verdict"], after["rule"]) == ("in", "pinned")
    assert tower["verdict"] == "left_out"
