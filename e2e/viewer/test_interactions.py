"""Stories: what is done in the desk is previewed, can be undone, and never moves what is being read."""

import re

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
