"""Stories: what is done in the desk is previewed, can be undone, and never moves what is being read."""

import re

import pytest
from playwright.sync_api import expect

from e2e.viewer.page import Viewer

CHAPTER = "chapters/03-水文站.md"

pytestmark = pytest.mark.xdist_group("another browser")


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


def test_an_inner_edge_moves_room_from_one_part_to_its_neighbour(viewer: Viewer) -> None:
    viewer.at("[data-handle=retrieved-immediate]").press("PageDown")

    expect(viewer.at(".what-if")).to_be_visible()
    sent = [one for one in viewer.traffic if '"whatIf"' in one and "context:inspect" in one][-1]
    assert '"minimumTokens":2500' in sent.replace(" ", "")


def test_the_eye_writes_the_file_and_that_is_undone(viewer: Viewer) -> None:
    path = ".creonow/settings/青石镇.md"
    before = (viewer.root / path).read_bytes()
    eye = viewer.at(f'#map [data-key="eye:{path}"]')

    eye.click()

    expect(eye).to_have_attribute("data-inject", "mentioned")
    assert "inject: mentioned" in (viewer.root / path).read_text(encoding="utf-8")
    eye.click()
    expect(eye).to_have_attribute("data-inject", "manual")
    for inject in ("mentioned", "always"):
        viewer.at("#tab-sees").focus()
        viewer.page.keyboard.press("Control+z")
        expect(eye).to_have_attribute("data-inject", inject)
    assert (viewer.root / path).read_bytes() == before


def test_a_click_on_a_name_opens_its_card(viewer: Viewer) -> None:
    viewer.at(".name", has_text="老周").first.click()

    card = viewer.at("#card")
    expect(card).to_contain_text("模型知道")
    expect(card).to_contain_text("停航渡口的看守")
    viewer.picture("card")
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
    for _ in range(3):
        viewer.at("#tab-sees").focus()
        viewer.page.keyboard.press("Control+z")
        viewer.page.wait_for_timeout(300)

    expect(eye).to_have_attribute("data-inject", "always")
    viewer.wait_until(lambda: path.read_bytes() == before)


def test_an_answer_is_taken_into_the_text_and_taken_back(viewer: Viewer) -> None:
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他没有动。"}]})
    viewer.text.press("Control+End")
    viewer.page.keyboard.press("Control+Enter")
    expect(viewer.page.get_by_test_id("ai-output")).to_have_text("他没有动。")
    runs = viewer.daemon.call("ai:run:list", viewer.project)["runs"]
    assert [one["status"] for one in runs] == ["pending"]

    viewer.at("#take").click()

    expect(viewer.text).to_contain_text("他没有动。")
    expect(viewer.page.get_by_test_id("ai-output")).to_have_count(0)
    runs = viewer.daemon.call("ai:run:list", viewer.project)["runs"]
    assert [one["status"] for one in runs] == ["accepted"]
    viewer.at("#toast").get_by_role("button", name="撤销").click()
    expect(viewer.text).not_to_contain_text("他没有动。")
    viewer.wait_until(
        lambda: (
            viewer.daemon.call("ai:run:list", viewer.project)["runs"][0]["status"] == "discarded"
        )
    )


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
    viewer.wait_until(
        lambda: (
            {one["status"] for one in viewer.daemon.call("ai:run:list", viewer.project)["runs"]}
            == {"discarded"}
        )
    )


def test_a_change_elsewhere_waits_while_something_is_read(viewer: Viewer) -> None:
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


def test_the_keyboard_alone_does_it(viewer: Viewer) -> None:
    """Ask, read, walk, change the budget, write and run without a mouse."""
    keys = viewer.page.keyboard
    keys.press("Control+k")
    expect(viewer.at("#question")).to_be_focused()
    keys.type("老周")
    keys.press("Enter")
    expect(viewer.at("#answer")).to_have_attribute("data-verdict", "in")
    keys.press("Escape")
    expect(viewer.at("#answer")).to_be_hidden()
    keys.press("Tab")
    expect(viewer.at("#tab-sees")).to_be_focused()
    keys.press("ArrowRight")
    expect(viewer.at("#left-out")).to_be_visible()
    keys.press("ArrowLeft")
    keys.press("Tab")
    keys.press("j")
    keys.press("Enter")
    expect(viewer.at("#sees details[open]")).to_have_count(1)
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert viewer.page.evaluate(outline) == "solid"
    viewer.at("#skip").focus()
    keys.press("Enter")
    expect(viewer.text).to_be_focused()
    keys.press("Control+Home")
    keys.type("键盘写的。")
    expect(viewer.layer("immediate")).to_contain_text("键盘写的。")
    keys.press("Control+Enter")
    expect(viewer.page.get_by_test_id("ai-output")).to_have_attribute(
        "data-run", re.compile("run_")
    )


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
