"""Stories: the page follows what happens, explains why in an author's words, and exports it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from creonowd.context.fragment import Action, Rule
from creonowd.errors import CATALOGUE, WARNINGS
from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer

SECRET = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"


def test_the_page_follows_files_that_change(viewer: Viewer) -> None:
    expect(viewer.layer("rules")).not_to_contain_text("不写梦境")

    viewer.write(".creonow/rules/style.md", "# 写作风格\n\n- 不写梦境。\n")

    expect(viewer.layer("rules")).to_contain_text("不写梦境")
    since = viewer.tab("since")
    expect(since).to_contain_text("自打开本页")
    change = since.locator(".change", has_text="文风")
    change.locator("summary").click()
    expect(change.locator("ins")).to_contain_text("不写梦境")
    expect(change.locator("del").first).to_contain_text("第一人称")
    viewer.picture("live")
    viewer.write("chapters/04-灯.md", "新的一章。灯亮了。")
    expect(viewer.at("#chapters .chapter", has_text="灯").last).to_have_class(re.compile("after"))
    viewer.write("chapters/03-水文站.md", "# 第三章\n\n只剩这一句。")
    expect(viewer.text).to_contain_text("只剩这一句")
    viewer.tab("sees")
    expect(viewer.layer("immediate")).to_contain_text("只剩这一句")


def test_three_continuations_reuse_the_start_and_a_change_is_explained(viewer: Viewer) -> None:
    cost = viewer.at("[data-prefix]")
    expect(cost).to_have_attribute("data-prefix", "first")
    expect(cost).to_have_text("还没有发送过。")

    for _ in range(3):
        viewer.run()
        expect(cost).to_have_attribute("data-prefix", "unchanged")
        expect(cost).to_have_text(re.compile(r"开头未变，但太短，不会复用（[\d,]+ / 1,?024）。"))
    viewer.write(".creonow/settings/青石镇.md", "改了。\n")

    expect(cost).to_have_attribute("data-prefix", "changed")
    expect(cost).to_contain_text(re.compile(r"「青石镇」有改动，AI 要重读 [\d,]+ 个 token"))
    viewer.picture("prefix-changed")


def test_what_came_from_the_cache_is_shown_after_a_run_and_added_up(viewer: Viewer) -> None:
    """Only the provider knows what its cache held; the page says it in both languages."""
    counts = {"inputTokens": 5000, "outputTokens": 9, "cacheReadTokens": 3700}
    step = {"text": "他没有动。", "usage": counts}
    viewer.daemon.call("e2e:ai:script", {"steps": [step]})

    viewer.run()

    expect(viewer.at("#run-bar")).to_contain_text("5,000 个 token 中有 3,700 个复用了")
    usage = viewer.drawer("usage")
    expect(usage.locator("tbody tr").last).to_contain_text("3,700")
    viewer.close_drawer()
    viewer.at("#language").click()
    expect(viewer.at("#run-bar")).to_contain_text("3,700 of 5,000 tokens were reused")
    viewer.at("#drawer-toggle").click()
    expect(usage).to_contain_text("1 call has no price.")


@pytest.mark.requirement("CE-102")
def test_a_broken_rule_is_marked_in_the_answer_at_the_caret(viewer: Viewer) -> None:
    """The page says that the fake wrote it, in its own language."""
    payload = {**viewer.project, "constraint": {"text": "避免使用感叹号"}}
    viewer.daemon.call("constraints:create", payload)
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "快走！"}]})

    viewer.run()

    answer = viewer.text.get_by_test_id("ai-output")
    expect(answer.locator("mark")).to_have_text("！")
    expect(answer.locator("mark")).to_have_attribute("title", "避免使用感叹号")
    bar = viewer.at("#run-bar")
    expect(bar.locator(".broken li", has_text="避免使用感叹号").locator("mark")).to_have_text("！")
    expect(bar.locator("details li", has_text="林远性格冷静")).to_be_attached()
    expect(bar).to_contain_text("内置的替身")
    viewer.picture("verdict")

    viewer.at("#language").click()

    expect(bar).to_contain_text("1 rule is broken · 4 could not be checked")
    expect(bar).to_contain_text("a stand-in answers in its place")
    bar.get_by_role("button", name="Connect an AI").click()
    expect(viewer.at("#ai-box")).to_contain_text("creonowd ai add")


def test_every_piece_has_its_size_and_its_reason(viewer: Viewer) -> None:
    change = {"version": 1, "totalBudgetTokens": 2800}
    viewer.daemon.call("context:budget:update", viewer.project | {"profile": change})
    viewer.write(".creonow/settings/世界.md", "江水漫过第三级石阶。\n\n" * 400)

    expect(viewer.at("#budget-total")).to_contain_text("2,800 个 token 中")
    viewer.tab("left-out")
    world = viewer.at("#left-out .piece", has_text="世界")
    expect(world).to_contain_text("截短")
    expect(world).to_contain_text("个 token 就放得下")
    viewer.settle()
    shown = inspected(viewer)
    held = shown["held"]["immediate"] + shown["held"]["retrieved"]
    assert held + shown["held"]["free"] == shown["totals"]["leftTokens"]
    if held:
        expect(viewer.at("#bar .legend")).to_contain_text(f"为正文预留 {held:,}")
    world.get_by_role("button", name="腾出空间").click()
    expect(viewer.at("#toast")).to_contain_text("预算提到")
    expect(viewer.at("#left-out")).not_to_contain_text("世界")
    viewer.at("#toast").get_by_role("button", name="撤销").click()
    expect(viewer.at("#budget-total")).to_contain_text("2,800 个 token 中")
    expect(world).to_contain_text("截短")
    viewer.tab("sees")
    for name, layer in shown["layersDetail"].items():
        expect(viewer.layer(name).locator("h3")).to_contain_text(f"{layer['tokens']:,} 个 token")
        pieces = [one for one in layer["fragments"] if one["action"] != "dropped"]
        boxes = viewer.layer(name).locator(".piece")
        expect(boxes).to_have_count(min(40, len(pieces)))
        for at, piece in enumerate(pieces[:3]):
            if piece["action"] == "kept":
                expect(boxes.nth(at)).to_contain_text(f"{piece['tokens']:,} 个 token")
            expect(boxes.nth(at).locator(".piece-why")).not_to_be_empty()


def inspected(viewer: Viewer) -> dict[str, Any]:
    """What the daemon last sent the page about a prompt."""
    replies = (json.loads(frame) for frame in viewer.traffic if '"layersDetail"' in frame)
    return [reply["result"]["data"] for reply in replies][-1]


def test_every_rule_and_every_code_has_words_in_both_languages(viewer: Viewer) -> None:
    asked = {
        "rules": [[str(rule), str(action)] for rule in Rule for action in Action],
        "codes": [str(code) for code in (*CATALOGUE, *WARNINGS)],
    }
    found = viewer.page.evaluate(
        """async ({rules, codes}) => {
          const {REASONS, STRINGS} = await import("/strings.js");
          const {meaning, switchLanguage} = await import("/language.js");
          const says = ([rule, action]) => REASONS[rule]?.[action]?.every(Boolean);
          const dumb = [];
          for (const _ of [1, 2]) {
            dumb.push(...codes.filter((code) => !meaning(code)));
            switchLanguage();
          }
          const whole = ([zh, en]) => zh && (typeof en === "string" ? en !== undefined : en.one && en.other);
          return {
            rules: rules.filter(says).map(([rule]) => rule),
            dumb,
            halves: Object.entries(STRINGS).filter(([, pair]) => pair.length !== 2 || !whole(pair)).map(([name]) => name),
          };
        }""",
        asked,
    )

    assert set(found["rules"]) == {str(rule) for rule in Rule}
    assert found["dumb"] == []
    assert found["halves"] == []


def test_find_walk_and_copy(viewer: Viewer) -> None:
    sees = viewer.at("#sees")
    sees.focus()
    viewer.page.keyboard.press("/")
    viewer.page.keyboard.type("沈青禾")

    expect(viewer.layer("rules").locator("mark").first).to_have_text("沈青禾")
    viewer.picture("search")
    viewer.at("[data-find=sees]").fill("nowhere to be found (.*")
    expect(viewer.layer("rules")).to_contain_text("没有相符的")
    viewer.at("[data-find=sees]").fill("")
    sees.focus()
    for key in "jjjk":
        viewer.page.keyboard.press(key)
    expect(sees.locator("summary").nth(1)).to_be_focused()
    card = viewer.layer("rules").locator(".piece", has_text="老周")
    card.locator("summary").click()
    card.get_by_role("button", name="复制").click()
    expect(card.get_by_role("button", name="已复制")).to_be_visible()
    assert "停航渡口的看守" in viewer.page.evaluate("navigator.clipboard.readText()")


def test_the_prompt_is_shown_as_it_is_sent(viewer: Viewer) -> None:
    viewer.write(".creonow/rules/style.md", f"克制。token={SECRET}\n")
    expect(viewer.layer("rules")).to_contain_text("***REDACTED***")
    prompt = viewer.tab("prompt")

    expect(prompt.locator(".secret").first).to_have_text("***REDACTED***")
    expect(prompt.locator(".cache-line").first).to_be_visible()
    place = {"documentId": "chapters/03-水文站.md", "cursorPosition": int(viewer.where()["at"])}
    asked = viewer.project | place | {"skillId": "builtin:continue"}
    made = viewer.daemon.call("context:assemble", asked)["prompt"]
    spans = prompt.locator(".span-text").all_text_contents()
    assert "".join(spans) == made
    prompt.get_by_role("button", name="复制全文").click()
    expect(prompt.get_by_role("button", name="已复制")).to_be_visible()
    assert viewer.page.evaluate("navigator.clipboard.readText()") == made
    viewer.at("[data-find=prompt]").fill("林远")
    expect(prompt.locator("mark.now")).to_be_in_viewport()
    expect(prompt.locator(".found")).to_contain_text(f"{made.count('林远')} 处")
    viewer.picture("prompt")


def test_the_export_is_one_redacted_file(viewer: Viewer, tmp_path: Path) -> None:
    viewer.page.get_by_test_id("ai-input").fill(f"钥匙是 {SECRET}")
    viewer.write(".creonow/rules/style.md", f"token={SECRET}\n")
    viewer.put_caret(0)
    viewer.page.keyboard.insert_text(f"草稿里也有 {SECRET} ")
    expect(viewer.layer("immediate")).to_contain_text("草稿里也有 ***REDACTED***")
    expect(viewer.layer("rules")).to_contain_text("***REDACTED***")
    viewer.drawer("export")

    plain = exported(viewer, "#export", tmp_path / "plain.json")
    text = exported(viewer, "#export-texts", tmp_path / "report.json")

    report = json.loads(text)
    assert "草稿里也有" in text
    assert "草稿里也有" not in plain
    texts = [fragment["content"] for fragment in fragments_in(report) if fragment["content"]]
    assert texts
    assert not [one for one in texts if one in plain]
    for fragment in fragments_in(json.loads(plain)):
        assert "content" not in fragment
        assert re.fullmatch("[0-9a-f]{64}", fragment["contentHash"])
    assert SECRET not in text + plain
    assert str(viewer.root) not in text + plain
    assert "***REDACTED***" in text
    assert report["request"]["inputLength"] == len(f"钥匙是 {SECRET}")
    assert report["health"]["version"]
    assert re.fullmatch("[0-9a-f]{64}", report["inspect"]["promptHash"])
    viewer.traffic[:] = [one for one in viewer.traffic if "ipc:invoke" not in one]
    assert SECRET not in "".join(viewer.traffic)


def exported(viewer: Viewer, button: str, path: Path) -> str:
    with viewer.page.expect_download() as download:
        viewer.at(button).click()
    download.value.save_as(path)
    assert download.value.suggested_filename == "creonow-context.json"
    return path.read_text(encoding="utf-8")


def fragments_in(report: dict[str, Any]) -> list[dict[str, Any]]:
    layers = report["inspect"]["layersDetail"].values()
    return [fragment for layer in layers for fragment in layer["fragments"]]


def test_five_hundred_rules_and_two_hundred_passages(viewer: Viewer, daemon: Harness) -> None:
    roomy = {"version": 1, "totalBudgetTokens": 60_000}
    daemon.call("context:budget:update", viewer.project | {"profile": roomy})
    items = [f"第{n}条约束" for n in range(500)]
    text = json.dumps({"version": 1, "items": items})
    chunks = [{"source": f"记忆{n}", "content": f"第{n}段往事。", "score": 0.9} for n in range(200)]
    daemon.handle("context:source:fetch", lambda _: {"chunks": chunks})
    source = {"layer": "retrieved", "name": "memory", "kind": "rag"}
    daemon.call("context:source:register", source | viewer.project)
    viewer.write(".creonow/rules/constraints.json", text)
    viewer.at("#skill").select_option("general")
    for name, count in (("rules", 500), ("retrieved", 200)):
        shown = viewer.layer(name).locator(".piece")
        more = viewer.layer(name).get_by_role("button", name="全部")

        expect(shown).to_have_count(40)
        expect(more).to_have_text(re.compile(rf"全部 {count // 100}\d\d 项"))

    assert viewer.page.evaluate("document.querySelectorAll('#panel *').length") < 4000
    viewer.picture("many")
    more.click()
    assert shown.count() >= 200
    since = viewer.tab("since")
    since.get_by_role("button", name="从现在起比").click()
    expect(since).to_contain_text("没有变化")
    chunks[150]["content"] = "这一段变了。"
    viewer.put_caret(238)
    expect(since.locator(".change", has_text="记忆150")).to_have_count(1)
    expect(since).not_to_contain_text("记忆151")
    box = viewer.drawer("rules")
    expect(box.locator(".item")).to_have_count(51)
    viewer.at("#find-rule").fill("第377条")
    expect(box.locator(".item")).to_have_count(2)
    unregistered = {"layer": "retrieved", "name": "memory"} | viewer.project
    daemon.call("context:source:unregister", unregistered)
