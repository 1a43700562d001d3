"""Stories: the page follows what happens, explains why, and shows what would be."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from creonowd.context.fragment import Action, Rule
from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer

SECRET = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"

pytestmark = pytest.mark.xdist_group("browser")


def test_the_page_follows_files_that_change(viewer: Viewer) -> None:
    viewer.open_panel()
    expect(viewer.layer("rules")).not_to_contain_text("不写梦境")

    viewer.write(".creonow/rules/style.md", "# 写作风格\n\n- 不写梦境。\n")

    expect(viewer.layer("rules")).to_contain_text("不写梦境")
    change = viewer.at("#difference .change", has_text=".creonow/rules/style.md")
    change.locator("summary").click()
    expect(change.locator("ins")).to_contain_text("不写梦境")
    expect(change.locator("del").first).to_contain_text("第一人称")
    viewer.picture("live")
    viewer.write("chapters/04-灯.md", "新的一章。灯亮了。")
    expect(viewer.at("#documents option[value='chapters/04-灯.md']")).to_be_attached()
    viewer.write("chapters/03-水文站.md", "# 第三章\n\n只剩这一句。")
    expect(viewer.layer("immediate")).to_contain_text("只剩这一句")


def test_three_continuations_keep_the_prefix_and_a_change_is_explained(
    viewer: Viewer,
) -> None:
    viewer.open_panel()
    sign = viewer.at("[data-prefix]")
    expect(sign).to_have_attribute("data-prefix", "first")

    for _ in range(3):
        viewer.run()
        expect(sign).to_have_attribute("data-prefix", "unchanged")
    viewer.picture("prefix-unchanged")
    viewer.write(".creonow/settings/青石镇.md", "改了。\n")

    expect(sign).to_have_attribute("data-prefix", "changed")
    expect(viewer.at("#summary")).to_contain_text("原因：改动 .creonow/settings/青石镇.md")
    viewer.picture("prefix-changed")
    viewer.at("#summary button").click()
    expect(viewer.layer("settings").locator("details[open] summary")).to_be_focused()


def test_what_came_from_the_cache_is_said_after_a_run_and_added_up(viewer: Viewer) -> None:
    """Only the provider knows what its cache held; the page says it in both languages."""
    counts = {"inputTokens": 5000, "outputTokens": 9, "cacheReadTokens": 3700}
    step = {"text": "他没有动。", "usage": counts}
    viewer.daemon.call("e2e:ai:script", {"steps": [step]})
    viewer.open_panel()
    expect(viewer.at("#verdict")).not_to_contain_text("缓存")

    viewer.run()

    expect(viewer.at("#verdict")).to_contain_text("读自缓存：5000 个 token 中的 3700 个")
    viewer.at("#usage-box > summary").click()
    expect(viewer.at("#usage tbody tr").last).to_contain_text("3700")
    viewer.at("#language").click()
    expect(viewer.at("#verdict")).to_contain_text("read from cache: 3700 of 5000 tokens")
    expect(viewer.at("#usage")).to_contain_text("1 calls have no price")


@pytest.mark.requirement("CE-102")
def test_a_broken_constraint_is_annotated_beside_the_output(viewer: Viewer) -> None:
    """The page says that the fake wrote it, in its own language."""
    payload = {**viewer.project, "constraint": {"text": "避免使用感叹号"}}
    viewer.daemon.call("constraints:create", payload)
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "快走！"}]})

    viewer.run()

    verdict = viewer.at("#verdict")
    expect(verdict.locator("li", has_text="避免使用感叹号").locator("mark")).to_have_text("！")
    expect(verdict.locator("details li", has_text="林远性格冷静")).to_be_attached()
    expect(verdict).to_contain_text("内置的假服务")
    viewer.picture("verdict")

    viewer.at("#language").click()

    expect(verdict).to_contain_text(re.compile(r"\d constraint violations · 4 unchecked"))
    expect(verdict).to_contain_text("the built-in fake gives back the prompt")


def test_every_layer_has_its_bar_and_every_fragment_its_reason(viewer: Viewer) -> None:
    change = {"version": 1, "totalBudgetTokens": 2800}
    viewer.daemon.call("context:budget:update", viewer.project | {"profile": change})
    viewer.write(".creonow/settings/世界.md", "江水漫过第三级石阶。\n\n" * 400)

    viewer.open_panel()

    rules = viewer.at("[data-meter=rules]")
    expect(rules).to_contain_text(re.compile(r"\d+ / 500 · 剩余 \d+ · 最低 500"))
    expect(rules.get_by_role("meter")).to_have_attribute("aria-valuemax", "2800")
    expect(viewer.at("[data-meter=total]")).to_contain_text(re.compile(r"\d+ / 2800 · 剩余 \d+"))
    shown = inspected(viewer)
    for name, layer in shown["layersDetail"].items():
        used = layer["tokens"]
        expect(viewer.at(f"[data-meter={name}]")).to_contain_text(
            f"{used} / {layer['budgetTokens']}"
        )
        for fragment in layer["fragments"]:
            box = viewer.layer(name).locator("summary", has_text=fragment["sourceRef"]).first
            expect(box).to_contain_text(fragment["rule"])
            if "fitsWith" in fragment:
                expect(box).to_contain_text(f"再多 {fragment['fitsWith']} tokens 就放得下")
            if "confidence" in fragment:
                expect(box).to_contain_text(f"置信度 {fragment['confidence']:g}")
    short = viewer.layer("settings").locator("summary", has_text="再多")
    assert short.count() >= 1


def inspected(viewer: Viewer) -> dict[str, Any]:
    """What the daemon last sent the page about an assembly."""
    replies = (json.loads(frame) for frame in viewer.traffic if '"layersDetail"' in frame)
    return [reply["result"]["data"] for reply in replies][-1]


def test_every_rule_and_every_code_has_words_in_both_languages(viewer: Viewer) -> None:
    asked = [[str(rule), str(action)] for rule in Rule for action in Action]
    labels = viewer.page.evaluate(
        """async (asked) => {
          const strings = await import("/strings.js");
          const known = () => asked.filter(([rule, action]) => strings.reason(rule, action) !== rule).map(([rule]) => rule);
          const first = known();
          strings.switchLanguage();
          const second = known();
          strings.switchLanguage();
          return [first, second, strings.codeText("CONTEXT_RULES_OVERBUDGET")];
        }""",
        asked,
    )

    assert set(labels[0]) == set(labels[1]) == {str(rule) for rule in Rule}
    assert labels[2] == "CONTEXT_RULES_OVERBUDGET · 规则层超出预算线，已略去相关度最低的实体。"


def test_what_if_goes_the_same_way_and_touches_nothing(viewer: Viewer) -> None:
    viewer.open_panel()
    viewer.run()
    before = everything(viewer.root)
    budget = viewer.daemon.call("context:budget:get", viewer.project)
    expect(viewer.at("[data-prefix]")).to_have_attribute("data-prefix", "unchanged")
    viewer.at("#what-if > summary").click()

    viewer.at("#scratch").fill("一段只存在于草稿框里的文字。")
    viewer.at("#slider").fill("3000")

    expect(viewer.at("#summary")).to_contain_text("/ 3000 tokens")
    expect(viewer.layer("immediate")).to_contain_text("只存在于草稿框里")
    expect(viewer.at("#state")).to_contain_text("假设的结果")
    expect(viewer.at("#difference")).to_contain_text("chapters/03-水文站.md")
    viewer.picture("what-if")
    assert everything(viewer.root) == before
    assert viewer.daemon.call("context:budget:get", viewer.project) == budget
    viewer.at("#scratch").fill("")
    expect(viewer.layer("immediate")).not_to_contain_text("只存在于草稿框里")
    supposed = viewer.at("#prompt-hash").inner_text()
    viewer.at("#what-if-reset").click()
    expect(viewer.at("[data-prefix]")).to_have_attribute("data-prefix", "unchanged")
    expect(viewer.at("#summary")).to_contain_text("/ 6000 tokens")
    change = {"version": budget["version"], "totalBudgetTokens": 3000}
    viewer.daemon.call("context:budget:update", viewer.project | {"profile": change})
    viewer.page.get_by_test_id("ai-context-toggle").click()
    viewer.page.get_by_test_id("ai-context-toggle").click()
    expect(viewer.at("#prompt-hash")).to_have_text(supposed)
    expect(viewer.at("#slider-value")).to_have_text("3000")


def test_the_slider_goes_no_further_than_a_budget_can(viewer: Viewer) -> None:
    viewer.open_panel()
    viewer.at("#what-if > summary").click()

    for key, total in (("Home", "2700"), ("End", "64000")):
        viewer.at("#slider").press(key)
        expect(viewer.at("#summary")).to_contain_text(f"/ {total} tokens")
        expect(viewer.at("#slider-value")).to_have_text(total)

    expect(viewer.at("#state")).to_have_attribute("data-state", "whatIf")


def everything(root: Path) -> dict[str, bytes]:
    """Every file of a project with its bytes."""
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_search_jump_and_copy(viewer: Viewer) -> None:
    viewer.open_panel()
    viewer.at("#search").fill("沈青禾")

    expect(viewer.layer("rules").locator("mark").first).to_have_text("沈青禾")
    expect(viewer.at("#found")).to_have_text(re.compile(r"^[1-9]\d* 个片段$"))
    viewer.picture("search")
    viewer.at("#search").fill("nowhere to be found (.*")
    expect(viewer.layer("rules")).to_contain_text("没有符合搜索的片段")
    viewer.at("#search").fill("")
    viewer.at("#jumps").fill("规则 · .creonow/characters/老周.md")
    opened = viewer.layer("rules").locator("details[open]", has_text="老周")
    expect(opened.locator("summary")).to_be_focused()
    opened.get_by_role("button", name="复制").click()
    expect(opened.get_by_role("button", name="已复制")).to_be_visible()
    copied = viewer.page.evaluate("navigator.clipboard.readText()")
    assert "停航渡口的看守" in copied
    viewer.write(".creonow/settings/青石镇.md", "改了。\n")
    expect(viewer.at("#difference")).to_contain_text("青石镇.md")
    expect(opened).to_be_visible()


def test_the_export_is_one_redacted_file(viewer: Viewer, tmp_path: Path) -> None:
    viewer.page.get_by_test_id("ai-input").fill(f"钥匙是 {SECRET}")
    viewer.write(".creonow/rules/style.md", f"token={SECRET}\n")
    viewer.open_panel()
    viewer.at("#what-if > summary").click()
    viewer.at("#scratch").fill(f"草稿里也有 {SECRET}")
    expect(viewer.at("#state")).to_contain_text("假设的结果")
    expect(viewer.layer("immediate")).to_contain_text("草稿里也有 ***REDACTED***")

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
    assert "prompt" not in report["inspect"]
    assert report["request"]["inputLength"] == len(f"钥匙是 {SECRET}")
    assert report["health"]["version"]
    assert re.fullmatch("[0-9a-f]{64}", report["inspect"]["promptHash"])


def exported(viewer: Viewer, button: str, path: Path) -> str:
    with viewer.page.expect_download() as download:
        viewer.at(button).click()
    download.value.save_as(path)
    assert download.value.suggested_filename == "creonow-context.json"
    return path.read_text(encoding="utf-8")


def fragments_in(report: dict[str, Any]) -> list[dict[str, Any]]:
    layers = report["inspect"]["layersDetail"].values()
    return [fragment for layer in layers for fragment in layer["fragments"]]


def test_five_hundred_constraints_and_two_hundred_chunks(viewer: Viewer, daemon: Harness) -> None:
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
    viewer.open_panel()
    for name, count in (("rules", 500), ("retrieved", 200)):
        shown = viewer.layer(name).locator(".fragment")
        more = viewer.layer(name).get_by_role("button", name="全部显示")

        expect(shown).to_have_count(40)
        expect(more).to_have_text(re.compile(rf"全部显示 \({count // 100}\d\d\)"))

    assert viewer.page.evaluate("document.querySelectorAll('#contents *').length") < 8000
    viewer.picture("many")
    expect(viewer.at("#places option")).to_have_count(len(fragments(viewer)))
    more.click()
    assert shown.count() >= 200
    chunks[150]["content"] = "这一段变了。"
    viewer.at("#cursor").fill("238")
    expect(viewer.at("#difference .change", has_text="记忆150")).to_have_count(1)
    expect(viewer.at("#difference")).not_to_contain_text("记忆151")
    trim = viewer.page.get_by_test_id("ai-context-trim")
    expect(trim.locator("tbody tr")).to_have_count(60)
    trim.get_by_role("button", name="全部显示").click()
    assert trim.locator("tbody tr").count() >= 700
    daemon.call(
        "context:source:unregister", {"layer": "retrieved", "name": "memory"} | viewer.project
    )


def fragments(viewer: Viewer) -> list[Any]:
    """Every fragment of the last assembly."""
    layers = inspected(viewer)["layersDetail"].values()
    return [fragment for layer in layers for fragment in layer["fragments"]]
