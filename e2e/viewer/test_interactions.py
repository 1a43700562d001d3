"""Stories: what is done in the desk is previewed, can be undone, and never moves what is being read."""

import re

import pytest
from playwright.sync_api import expect

from e2e.viewer.page import Viewer

CHAPTER = "chapters/03-水文站.md"


def test_an_edge_that_is_dragged_is_a_what_if_until_it_is_kept(viewer: Viewer) -> None:
    before = viewer.daemon.call("context:budget:get", viewer.project)
    handle = viewer.at("[data-handle=total]")
    box = handle.bounding_box()
    assert box is not None
    viewer.page.mouse.move(box["x"] + 7, box["y"] + 12)
    viewer.page.mouse.down()
    viewer.page.mouse.move(box["x"] - 90, box["y"] + 12, steps=4)

    viewer.page.mouse.up()

    expect(viewer.at(".what-if")).to_contain_text("什么都没写")
    expect(viewer.at("#budget-total")).not_to_contain_text("6,000")
    viewer.picture("what-if")
    assert viewer.daemon.call("context:budget:get", viewer.project) == before
    viewer.at("#back-to-real").click()
    expect(viewer.at("#budget-total")).to_contain_text("6,000")
    viewer.at("[data-handle=total]").press("PageUp")
    expect(viewer.at("#budget-total")).to_contain_text("6,500")
    viewer.at("#keep-this").click()
    expect(viewer.at("#toast")).to_contain_text("预算已保存")
    kept = viewer.daemon.call("context:budget:get", viewer.project)
    assert kept["totalBudgetTokens"] == 6500
    viewer.at("#tab-sees").focus()
    viewer.page.keyboard.press("Control+z")
    expect(viewer.at("#budget-total")).to_contain_text("6,000")


def test_a_tab_keeps_the_focus_while_what_it_counts_changes(viewer: Viewer) -> None:
    tab = viewer.at("#tab-since")
    before = tab.inner_text()
    tab.focus()

    viewer.daemon.call("constraints:create", viewer.project | {"constraint": {"text": "不写梦"}})

    expect(tab).not_to_have_text(before)
    expect(tab).to_be_focused()


def test_an_inner_edge_moves_room_from_one_part_to_its_neighbour(viewer: Viewer) -> None:
    viewer.at("[data-handle=retrieved-immediate]").press("PageDown")

    expect(viewer.at(".what-if")).to_be_visible()
    sent = [one for one in viewer.traffic if '"whatIf"' in one and "context:inspect" in one][-1]
    assert '"minimumTokens":2500' in sent.replace(" ", "")


def test_an_inner_edge_is_dragged(viewer: Viewer) -> None:
    handle = viewer.at("[data-handle=retrieved-immediate]")
    box = handle.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + 12
    viewer.page.mouse.move(x, y)
    viewer.page.mouse.down()
    viewer.page.mouse.move(x - 40, y, steps=4)
    expect(viewer.at(".drag-mark")).to_be_visible()

    viewer.page.mouse.up()

    expect(viewer.at(".what-if")).to_be_visible()
    sent = [one for one in viewer.traffic if '"whatIf"' in one and "context:inspect" in one][-1]
    (minimum,) = re.findall(r'"immediate":{[^}]*"minimumTokens":(\d+)', sent.replace(" ", ""))
    assert int(minimum) > 2000


def test_a_click_on_a_name_opens_its_card(viewer: Viewer) -> None:
    viewer.at(".name", has_text="老周").first.click()

    card = viewer.at("#card")
    expect(card).to_contain_text("模型知道")
    expect(card).to_contain_text("停航渡口的看守")
    viewer.picture("card")
    card.get_by_role("button", name="编辑").click()
    expect(viewer.at("#file-text")).to_have_value(re.compile("停航渡口的看守"))
    viewer.page.keyboard.press("Escape")
    expect(card).to_be_hidden()
    viewer.put_caret((viewer.root / CHAPTER).read_text(encoding="utf-8").index("老周") + 1)
    viewer.page.keyboard.press("Alt+Enter")
    expect(card).to_be_visible()


def test_the_eye_writes_the_file_and_can_be_undone(viewer: Viewer) -> None:
    path = viewer.root / ".creonow/characters/老周.md"
    before = path.read_bytes()
    eye = viewer.at('#cast [data-key="eye:.creonow/characters/老周.md"]')
    expect(eye).to_have_attribute("data-inject", "always")

    for mode in ("mentioned", "manual", "never"):
        eye.click()
        expect(eye).to_have_attribute("data-inject", mode)
    expect(viewer.at("#cast")).to_contain_text("老周 (未考虑)")
    assert b"inject: never" in path.read_bytes()
    for mode in ("manual", "mentioned", "always"):
        viewer.at("#tab-sees").focus()
        viewer.page.keyboard.press("Control+z")
        expect(eye).to_have_attribute("data-inject", mode)

    viewer.wait_until(lambda: path.read_bytes() == before)


def test_an_answer_is_taken_into_the_text_and_taken_back(viewer: Viewer) -> None:
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他没有动。"}]})
    viewer.text.press("Control+End")
    viewer.page.keyboard.press("Control+Enter")
    expect(viewer.page.get_by_test_id("ai-output")).to_have_text("他没有动。")
    expect(viewer.at("#take")).to_be_visible()
    viewer.wait_until(lambda: statuses(viewer) == ["pending"])

    viewer.at("#take").click()

    expect(viewer.text).to_contain_text("他没有动。")
    expect(viewer.page.get_by_test_id("ai-output")).to_have_count(0)
    viewer.wait_until(lambda: statuses(viewer) == ["accepted"])
    viewer.at("#toast").get_by_role("button", name="撤销").click()
    expect(viewer.text).not_to_contain_text("他没有动。")
    viewer.wait_until(lambda: statuses(viewer) == ["discarded"])


def test_a_taken_answer_is_taken_out_again_whatever_was_typed_since(viewer: Viewer) -> None:
    """Also from another chapter; what was typed around it stays, and prompts forget the answer."""
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他没有动。"}]})
    viewer.text.press("Control+End")
    viewer.page.keyboard.type("前。")
    viewer.run()
    viewer.at("#take").click()
    expect(viewer.text).to_contain_text("前。他没有动。")
    viewer.page.keyboard.type("后。")
    viewer.wait_until(lambda: statuses(viewer) == ["accepted"])
    viewer.at("#chapters .chapter").first.click()
    expect(viewer.at("#document-title")).to_have_text(re.compile("第一章"))

    viewer.at("#tab-sees").focus()
    viewer.page.keyboard.press("Control+z")

    expect(viewer.at("#document-title")).to_have_text(re.compile("第三章"))
    expect(viewer.text).to_contain_text("前。后。")
    viewer.wait_until(lambda: statuses(viewer) == ["discarded"])


def test_undo_in_the_text_makes_prompts_forget_a_taken_answer(viewer: Viewer) -> None:
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他没有动。"}]})
    viewer.text.press("Control+End")
    viewer.run()
    viewer.at("#take").click()
    viewer.wait_until(lambda: statuses(viewer) == ["accepted"])

    viewer.text.press("Control+z")

    expect(viewer.text).not_to_contain_text("他没有动。")
    viewer.wait_until(lambda: statuses(viewer) == ["discarded"])
    viewer.text.press("Control+y")
    expect(viewer.text).to_contain_text("他没有动。")
    viewer.wait_until(lambda: statuses(viewer) == ["accepted"])


def test_a_forgotten_answer_and_a_discarded_draft_come_back(viewer: Viewer) -> None:
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他没有动。"}]})
    output = viewer.page.get_by_test_id("ai-output")
    undo = viewer.at("#toast").get_by_role("button", name="撤销")
    viewer.text.press("Control+Home")
    viewer.page.keyboard.type("我的草稿。")
    viewer.run()
    viewer.at("#forget").click()
    expect(output).to_have_count(0)
    expect(viewer.at("#toast")).to_contain_text("已忘掉")
    undo.click()
    expect(output).to_have_text("他没有动。")
    viewer.at("#take").click()
    expect(viewer.text).to_contain_text("我的草稿。他没有动。")
    viewer.wait_until(lambda: statuses(viewer) == ["accepted"])

    viewer.at("#text-actions").get_by_role("button", name="放弃").click()

    expect(viewer.text).not_to_contain_text("我的草稿。")
    expect(viewer.at("#toast")).to_contain_text("草稿已放弃")
    undo.click()
    expect(viewer.text).to_contain_text("我的草稿。他没有动。")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")
    expect(viewer.layer("immediate")).to_contain_text("我的草稿。他没有动。")


def test_what_was_done_in_one_project_is_not_undone_in_another(viewer: Viewer) -> None:
    path = viewer.root / ".creonow/characters/老周.md"
    other = viewer.daemon.make_project("other", {"一.md": "第一句。"})
    viewer.page.reload()
    viewer.expect_connection("connected")
    viewer.at('#cast [data-key="eye:.creonow/characters/老周.md"]').click()
    expect(viewer.at("#toast")).to_contain_text("提到才带")
    written = path.read_bytes()

    viewer.at("#project").select_option(other["projectId"])
    expect(viewer.text).to_contain_text("第一句。")
    viewer.at("#tab-sees").focus()
    viewer.page.keyboard.press("Control+z")

    expect(viewer.at("#toast")).to_be_hidden()
    assert path.read_bytes() == written


def test_a_run_that_fails_says_why_and_can_be_tried_again(viewer: Viewer) -> None:
    steps = [{"fail": "AI_RATE_LIMITED"}, {"text": "他没有动。"}]
    viewer.daemon.call("e2e:ai:script", {"steps": steps})
    viewer.page.get_by_test_id("ai-run").click()
    bar = viewer.at("#run-bar")
    expect(bar.locator(".bad")).not_to_be_empty()
    expect(bar).not_to_contain_text("AI_RATE_LIMITED")
    expect(bar.get_by_role("button", name="连接 AI")).to_be_visible()

    bar.get_by_role("button", name="重来").click()

    expect(viewer.page.get_by_test_id("ai-output")).to_have_text("他没有动。")


def test_another_back_end_is_used_and_that_is_undone(viewer: Viewer) -> None:
    second = {"provider": "fake", "model": "second"}
    viewer.daemon.call("ai:config:set", {"backends": {"second": second}})
    before = viewer.daemon.call("ai:config:get", viewer.project)["backend"]
    box = viewer.drawer("ai")
    box.locator("li", has_text="second").get_by_role("button", name="用这个").click()
    used = lambda: viewer.daemon.call("ai:config:get", viewer.project)["backend"]  # noqa: E731
    viewer.wait_until(lambda: used() == "second")
    expect(box.locator("li", has_text="second")).to_contain_text("正在用")

    viewer.at("#toast").get_by_role("button", name="撤销").click()

    viewer.wait_until(lambda: used() == before)
    viewer.daemon.call("ai:config:set", {"backends": {"second": None}})


def test_what_would_happen_is_shown_before_it_does(viewer: Viewer) -> None:
    """Make room and the whole chapter, like a pin, are drawn below the bar while they are pointed at."""
    viewer.write(".creonow/settings/世界.md", "江水漫过第三级石阶。\n\n" * 900)
    viewer.write(CHAPTER, "开头的一段。\n\n" * 300 + "老周看见了。")
    viewer.wait_for_text("老周看见了")
    viewer.text.press("Control+End")
    viewer.settle()
    viewer.tab("left-out")
    before = viewer.at("#budget-total").inner_text()
    preview = viewer.at("#preview")

    for name, said in (("腾出空间", "什么都不用让出"), ("读整章", "6,000 个 token 中用了")):
        button = viewer.at("#left-out").get_by_role("button", name=name).first
        button.hover()
        expect(preview).to_contain_text(said)
        expect(viewer.at("#budget-total")).to_have_text(before)
        viewer.page.mouse.move(600, 400)
        expect(preview).to_have_count(0)


def statuses(viewer: Viewer) -> list[str]:
    runs = viewer.daemon.call("ai:run:list", viewer.project)["runs"]
    return [one["status"] for one in runs]


def test_again_names_the_broken_rules_and_forget_remembers_nothing(viewer: Viewer) -> None:
    payload = {**viewer.project, "constraint": {"text": "避免使用感叹号"}}
    viewer.daemon.call("constraints:create", payload)
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "快走！"}, {"text": "快走。"}]})
    viewer.run()
    expect(viewer.at(".broken")).to_contain_text("避免使用感叹号")

    viewer.at("#again").click()

    expect(viewer.page.get_by_test_id("ai-output")).to_have_text("快走。")
    sent = [one for one in viewer.traffic if "ai:skill:run" in one][-1]
    assert "避免使用感叹号" in sent
    viewer.at("#forget").click()
    expect(viewer.page.get_by_test_id("ai-output")).to_have_count(0)
    viewer.wait_until(lambda: set(statuses(viewer)) == {"discarded"})


def test_a_change_elsewhere_waits_while_something_is_read(viewer: Viewer) -> None:
    place = {"documentId": "chapters/03-水文站.md", "cursorPosition": 0}
    viewer.daemon.call("context:retrieve", viewer.project | place | {"query": "雨", "wait": True})
    viewer.page.reload()  # now that the index is there, nothing else changes
    sees = viewer.at("#sees")
    piece = viewer.layer("rules").locator(".piece", has_text="老周")
    piece.locator("summary").click()
    top = sees.evaluate("(one) => { one.scrollTop = 120; return one.scrollTop; }")

    viewer.write(".creonow/rules/style.md", "# 写作风格\n\n- 不写梦境。\n")

    changes = viewer.at("#changes")
    expect(changes).to_have_text("有 1 处变化，点此查看")
    expect(viewer.layer("rules")).not_to_contain_text("不写梦境")
    expect(piece.locator("summary")).to_be_focused()
    assert sees.evaluate("(one) => one.scrollTop") == top
    changes.click()
    expect(viewer.layer("rules")).to_contain_text("不写梦境")
    expect(changes).to_be_hidden()
    expect(piece.locator("details")).to_have_attribute("open", "")


@pytest.mark.parametrize("tab", ["sees", "left-out", "prompt"])
def test_what_is_read_stays_where_it_is_on_the_screen(viewer: Viewer, tab: str) -> None:
    """A secret is found elsewhere: the sentence above grows by a line, and the selection stays."""
    viewer.write(".creonow/settings/世界.md", "江水漫过第三级石阶。\n\n" * 900)
    for number in range(30):
        viewer.write(f".creonow/settings/小记{number:02}.md", f"第{number}件小事。\n\n" * 30)
    expect(viewer.at("#cast")).to_contain_text("小记29")
    expect(viewer.at("#tab-left-out")).to_contain_text("（")
    viewer.settle()
    box = viewer.tab(tab)
    piece = box.locator(".piece-name, .span-text").nth(8)
    piece.scroll_into_view_if_needed()
    piece.evaluate("(one) => getSelection().selectAllChildren(one)")
    place = "(one) => [one.getBoundingClientRect().top, String(getSelection())]"
    before = piece.evaluate(place)
    height = viewer.at("#asides").evaluate("(one) => one.offsetHeight")

    viewer.write(
        ".creonow/rules/style.md", "克制。token=ghp_0123456789abcdefghijABCDEFGHIJ012345\n"
    )

    expect(viewer.at("#secrets")).to_be_visible()
    expect(viewer.at("#changes")).to_be_visible()
    assert viewer.at("#asides").evaluate("(one) => one.offsetHeight") > height
    now = piece.evaluate(place)
    assert now[0] == pytest.approx(before[0], abs=1)
    assert now[1] == before[1] != ""


def test_every_piece_has_an_address(viewer: Viewer) -> None:
    piece = viewer.layer("rules").locator(".piece", has_text="老周")
    piece.locator("summary").click()
    link = piece.get_by_role("link", name="链接").get_attribute("href")
    viewer.tab("since")

    viewer.page.evaluate("(link) => { location.hash = link; }", link)

    expect(piece.locator("summary")).to_be_focused()
    expect(piece.locator("details")).to_have_attribute("open", "")
    viewer.page.reload()
    expect(piece.locator("details")).to_have_attribute("open", "")


def test_what_the_author_says_to_the_ai_is_there_after_a_reload(viewer: Viewer) -> None:
    field = viewer.page.get_by_test_id("ai-input")
    field.fill("让雨停下来。")
    expect(viewer.layer("immediate")).to_contain_text("让雨停下来。")

    viewer.page.reload()

    expect(field).to_have_value("让雨停下来。")
    expect(viewer.layer("immediate")).to_contain_text("让雨停下来。")
    assert "让雨" not in viewer.page.url


def test_the_panel_can_be_closed_and_opened(viewer: Viewer) -> None:
    toggle = viewer.page.get_by_test_id("ai-context-toggle")
    panel = viewer.page.get_by_test_id("ai-context-panel")
    expect(panel).to_be_visible()

    toggle.click()
    expect(panel).to_be_hidden()
    expect(toggle).to_have_attribute("aria-expanded", "false")
    toggle.click()

    expect(panel).to_be_visible()
    expect(viewer.layer("immediate")).to_be_visible()
