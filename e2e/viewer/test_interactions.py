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


CONTROLS = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((one) => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }))
  .map((one) => `${one.tagName} ${one.id || one.dataset.key || one.getAttribute("aria-label") || one.textContent}`)"""
FOCUSED = """() => {
  const one = document.activeElement;
  return `${one.tagName} ${one.id || one.dataset.key || one.getAttribute("aria-label") || one.textContent}`;
}"""


@pytest.mark.parametrize("tab", ["sees", "left-out", "prompt", "since"])
def test_tab_comes_to_every_control(viewer: Viewer, tab: str) -> None:
    viewer.write(".creonow/settings/世界.md", "江水漫过第三级石阶。\n\n" * 900)
    expect(viewer.at("#tab-left-out")).to_contain_text("（")
    viewer.at(f"#tab-{tab}").click()
    if tab == "prompt":
        expect(viewer.at("#prompt .span").first).to_be_visible()
    viewer.page.evaluate("document.activeElement.blur()")
    controls = viewer.page.evaluate(CONTROLS)

    stops: list[str] = []
    for _ in range(2 * len(controls)):
        viewer.page.keyboard.press("Tab")
        stops.append(viewer.page.evaluate(FOCUSED))

    assert len(controls) > 30
    assert set(controls) <= set(stops)


def test_the_keyboard_alone_does_everything(viewer: Viewer) -> None:
    """Where Tab comes to, Enter, space and the arrows do all that a pointer does."""
    page, keys = viewer.page, viewer.page.keyboard
    chapter = viewer.root / CHAPTER

    ask_and_walk(viewer)

    viewer.at("#chapters .chapter").first.press("Enter")
    expect(viewer.at("#document-title")).to_have_text(re.compile("第一章"))
    viewer.at("#chapters .chapter").last.press("Enter")
    expect(viewer.at("#document-title")).to_have_text(re.compile("第三章"))
    viewer.at("#cast .subject", has_text="老周").press("Enter")
    keys.press("Tab")
    expect(viewer.at("#card")).to_be_visible()
    keys.press("Escape")
    expect(viewer.at("#cast .subject", has_text="老周")).to_be_focused()
    eye = viewer.at('#cast [data-key="eye:.creonow/characters/老周.md"]')
    eye.press("Space")
    expect(eye).to_have_attribute("data-inject", "mentioned")
    keys.press("Control+z")
    expect(eye).to_have_attribute("data-inject", "always")
    viewer.at("[data-handle=total]").press("PageUp")
    viewer.at("#keep-this").press("Enter")
    expect(viewer.at("#toast")).to_contain_text("预算已保存")

    viewer.at("#drawer-toggle").press("Enter")
    expect(viewer.at("#drawer-close")).to_be_focused()
    viewer.at("#rules-box summary").press("Enter")
    viewer.at("#new-rule").press_sequentially("键盘写的规则")
    keys.press("Enter")
    expect(viewer.layer("rules")).to_contain_text("键盘写的规则")
    remove = viewer.at("#rules-box .item").filter(has=page.get_by_label("规则 5"))
    remove.get_by_role("button", name="删除").press("Enter")
    expect(viewer.layer("rules")).not_to_contain_text("键盘写的规则")
    keys.press("Escape")
    expect(viewer.at("#drawer")).to_be_hidden()
    keys.press("Control+z")
    expect(viewer.layer("rules")).to_contain_text("键盘写的规则")

    viewer.at("#skip").press("Enter")
    expect(viewer.text).to_be_focused()
    keys.press("Control+Home")
    keys.type("键盘写的。")
    expect(viewer.layer("immediate")).to_contain_text("键盘写的。")
    viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他没有动。"}]})
    page.get_by_test_id("ai-input").press_sequentially("快些")
    keys.press("Control+Enter")
    viewer.at("#take").press("Enter")
    expect(viewer.text).to_contain_text("他没有动。")
    viewer.at("#save-file").press("Enter")
    viewer.wait_until(lambda: "他没有动。" in chapter.read_text(encoding="utf-8"))
    expect(viewer.text).to_be_focused()
    keys.press("Control+f")
    expect(viewer.at(".cm-search")).to_be_visible()
    keys.press("Escape")
    for control, state in (("#language", "en"), ("#language", "zh-CN")):
        viewer.at(control).press("Enter")
        expect(viewer.at("html")).to_have_attribute("lang", state)
    viewer.at("#theme").press("Enter")
    expect(viewer.at("html")).to_have_attribute("data-theme", "dark")


def test_an_inner_edge_moves_by_arrow_keys(viewer: Viewer) -> None:
    """Move it twice with an arrow key; the focus stays on it, and what it gives adds up."""
    edge = viewer.at("[data-handle=retrieved-immediate]")
    expect(edge).to_have_role("slider")
    for minimum in (2050, 2100):
        edge.press("ArrowLeft")
        viewer.wait_until(lambda minimum=minimum: f'"minimumTokens":{minimum}' in asked(viewer))
        expect(viewer.at("#keep-this")).to_be_visible()
        expect(edge).to_be_focused()
    viewer.at("#back-to-real").press("Enter")
    expect(viewer.at("#keep-this")).to_have_count(0)


def asked(viewer: Viewer) -> str:
    """Return what the page asked last with another budget."""
    sent = [one for one in viewer.traffic if '"whatIf"' in one and "context:inspect" in one]
    return sent[-1].replace(" ", "") if sent else ""


def test_a_file_is_mended_by_key(viewer: Viewer) -> None:
    """Break a card, go to the notice of it, mend its line, save, and undo that."""
    keys = viewer.page.keyboard
    viewer.write(".creonow/characters/坏.md", "---\nname: 坏\naliases: [一, 二\n---\n人。\n")
    viewer.at("#asides").get_by_role("link", name="改文件第 3 行").press("Enter")
    expect(viewer.at("#file-text")).to_be_focused()
    for key in ("End", "]"):
        keys.press(key)
    keys.press("Tab")
    keys.press("Enter")
    mended = viewer.root / ".creonow/characters/坏.md"
    viewer.wait_until(lambda: "[一, 二]" in mended.read_text(encoding="utf-8"))
    expect(viewer.at("#card")).to_be_hidden()
    viewer.at("#tab-sees").focus()
    keys.press("Control+z")
    viewer.wait_until(lambda: "[一, 二]" not in mended.read_text(encoding="utf-8"))


def ask_and_walk(viewer: Viewer) -> None:
    """Ask, choose from the completions, go to it; walk, open, find."""
    keys = viewer.page.keyboard
    keys.press("Control+k")
    expect(viewer.at("#question")).to_be_focused()
    keys.type("老")
    keys.press("ArrowDown")
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
    keys.press("/")
    expect(viewer.at("[data-find=sees]")).to_be_focused()


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
