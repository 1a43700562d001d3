"""Stories: the manuscript in the desk has a real caret, and what is typed shows its effect at once."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Dialog, WebSocketRoute, expect

from e2e.viewer.page import Viewer

CHAPTER = "chapters/03-水文站.md"
# How far something is scrolled once it is drawn.
SCROLLED = "(one) => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(one.scrollTop))))"


def test_caret_and_selection_are_the_place_of_the_prompt(viewer: Viewer) -> None:
    text = (viewer.root / CHAPTER).read_text(encoding="utf-8")
    viewer.put_caret(text.index("父亲"))
    viewer.page.keyboard.press("Shift+ArrowRight")
    viewer.page.keyboard.press("Shift+ArrowRight")

    place = text.index("父亲")
    selection = f'"selection":{{"from":{place},"to":{place + 2}}}'
    viewer.wait_until(lambda: any(selection in one for one in viewer.traffic))
    assert [int(viewer.where()[key]) for key in ("from", "at")] == [place, place + 2]


def test_what_is_typed_is_a_draft_and_can_be_discarded(viewer: Viewer) -> None:
    before = (viewer.root / CHAPTER).read_bytes()
    viewer.put_caret(0)

    viewer.page.keyboard.type("只存在于草稿里的一句。")

    expect(viewer.layer("immediate")).to_contain_text("只存在于草稿里")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")
    viewer.picture("draft")
    assert (viewer.root / CHAPTER).read_bytes() == before
    viewer.page.keyboard.press("Control+z")
    expect(viewer.text).not_to_contain_text("只存在于草稿里")
    viewer.page.keyboard.press("Control+y")
    expect(viewer.text).to_contain_text("只存在于草稿里")
    viewer.at("#text-actions").get_by_role("button", name="放弃").click()
    expect(viewer.text).not_to_contain_text("只存在于草稿里")
    expect(viewer.layer("immediate")).not_to_contain_text("只存在于草稿里")
    expect(viewer.at("#text-note")).to_be_empty()


def test_typing_shows_its_effect_while_one_types_on(viewer: Viewer) -> None:
    """The page is updated between the first key and the last; `scripts/bench viewer` says how soon."""
    viewer.put_caret(0)
    viewer.page.evaluate(
        """async () => {
          const {onSignal} = await import("/signals.js");
          const {inspection} = await import("/inspection.js");
          window.seen = [];
          onSignal("inspected", () => window.seen.push(inspection.shown.result.layersDetail.immediate.content.split("x").length - 1));
        }"""
    )

    viewer.page.keyboard.type("x" * 60, delay=50)

    viewer.wait_until(lambda: viewer.page.evaluate("window.seen.at(-1) === 60"))
    assert len([one for one in viewer.page.evaluate("window.seen") if 0 < one < 60]) > 1


def test_a_draft_is_saved_to_the_real_file_and_taken_back(viewer: Viewer) -> None:
    """Line ends stay, and so does a secret that the page never saw."""
    secret = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"
    path = viewer.root / "chapters/04-灯.md"
    text = f"# 第四章\r\n\r\n灯下写着 {secret} 。\r\n\r\n第二段。\r\n"
    viewer.write("chapters/04-灯.md", text)
    viewer.at("#chapters .chapter", has_text="第四章").click()
    expect(viewer.at("#document-title")).to_have_text("第四章")
    viewer.text.press("Control+End")
    viewer.page.keyboard.type("灯灭了。")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")
    assert path.read_bytes() == text.encode()

    viewer.at("#save-file").click()

    expect(viewer.at("#toast")).to_contain_text("已写入文件")
    assert path.read_bytes() == f"{text}灯灭了。".encode()
    expect(viewer.at("#text-note")).to_contain_text("1 处机密已涂黑")
    expect(viewer.layer("immediate")).to_contain_text("灯灭了。")
    viewer.at("#toast").get_by_role("button", name="撤销").click()
    viewer.wait_until(lambda: path.read_bytes() == text.encode())
    expect(viewer.text).not_to_contain_text("灯灭了。")
    assert secret not in "".join(viewer.traffic)


def test_what_is_typed_while_the_file_is_written_is_not_lost(viewer: Viewer) -> None:
    path = viewer.root / CHAPTER
    before = path.read_text(encoding="utf-8")
    viewer.put_caret(0)
    viewer.page.keyboard.type("先写的。")
    expect(viewer.at("#save-file")).to_be_visible()

    viewer.at("#save-file").evaluate("(one) => one.click()")
    viewer.page.keyboard.type("后写的。")

    expect(viewer.at("#toast")).to_contain_text("已写入文件")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")
    expect(viewer.layer("immediate")).to_contain_text("先写的。后写的。")
    viewer.write(
        CHAPTER, path.read_text(encoding="utf-8")
    )  # the notice of the same text comes late
    viewer.write(".creonow/rules/style.md", "短句。\n")
    expect(viewer.layer("rules")).to_contain_text("短句。")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")
    viewer.at("#save-file").click()
    viewer.wait_until(lambda: path.read_text(encoding="utf-8") == f"先写的。后写的。{before}")
    expect(viewer.at("#text-note")).to_be_empty()


def test_chinese_is_composed_without_a_half_word_in_the_prompt(viewer: Viewer) -> None:
    viewer.put_caret(0)
    keyboard: Any = viewer.page.context.new_cdp_session(viewer.page)
    for shown in ("shui", "水"):
        keyboard.send(
            "Input.imeSetComposition", {"text": shown, "selectionStart": 1, "selectionEnd": 1}
        )
    expect(viewer.text).to_contain_text("水# 第三章")

    keyboard.send("Input.insertText", {"text": "水漫"})

    expect(viewer.text).to_contain_text("水漫# 第三章")
    expect(viewer.layer("immediate")).to_contain_text("水漫# 第三章")
    text = viewer.text.inner_text()
    assert "shui" not in text
    assert text.count("水漫# 第三章") == 1
    viewer.page.keyboard.press("Control+z")
    expect(viewer.text).not_to_contain_text("水漫")


def test_a_file_with_carriage_returns_keeps_its_places(viewer: Viewer) -> None:
    text = "# 第四章\r\n\r\n第一段。\r\n\r\n第二段，到此为止。\r\n"
    viewer.write("chapters/04-灯.md", text)
    viewer.at("#chapters .chapter", has_text="第四章").click()
    expect(viewer.at("#document-title")).to_have_text("第四章")

    viewer.text.press("Control+End")
    viewer.page.keyboard.type("新的")

    expect(viewer.layer("immediate")).to_contain_text("到此为止。\n新的")
    assert int(viewer.where()["at"]) == len(text) + 2
    viewer.put_caret(text.index("第二段"))
    viewer.page.keyboard.type("插")
    expect(viewer.layer("immediate")).to_contain_text("插第二段")


def test_a_change_of_the_file_moves_neither_caret_nor_scroll(viewer: Viewer) -> None:
    lines = "".join(f"第{n}句，水位没有变。\n\n" for n in range(200))
    viewer.write(CHAPTER, lines)
    viewer.wait_for_text("第199句")
    viewer.put_caret(lines.index("第100句"), anchor=lines.index("第99句"))
    viewer.settle()
    scroller = viewer.at(".cm-scroller")
    top = scroller.evaluate(SCROLLED)

    viewer.write(CHAPTER, lines + "最后又添了一句。")

    viewer.wait_for_text("又添了一句")
    viewer.settle()
    assert scroller.evaluate(SCROLLED) == top
    where = viewer.where()
    assert [int(where["from"]), int(where["at"])] == [lines.index("第99句"), lines.index("第100句")]


def test_a_draft_survives_a_change_of_the_file_and_says_so(viewer: Viewer) -> None:
    viewer.put_caret(0)
    viewer.page.keyboard.type("我的草稿。")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")

    viewer.write(CHAPTER, "别人写的。")

    expect(viewer.at("#text-note")).to_contain_text("文件在别处改过")
    expect(viewer.text).to_contain_text("我的草稿。")
    viewer.at("#text-actions").get_by_role("button", name="放弃").click()
    expect(viewer.text).to_have_text("别人写的。")


def test_a_draft_waits_while_another_chapter_is_read(viewer: Viewer) -> None:
    """Also where it was put away and its file has changed; a click on its own bar leaves it alone."""
    path = viewer.root / CHAPTER
    before = path.read_text(encoding="utf-8")
    viewer.put_caret(0)
    viewer.page.keyboard.type("我的草稿。")
    expect(viewer.at("#save-file")).to_be_visible()

    viewer.at("#chapters .chapter").last.locator(".track").click()
    expect(viewer.text).to_contain_text("我的草稿。")
    viewer.at("#chapters .chapter").first.click()
    expect(viewer.at("#document-title")).to_have_text(re.compile("第一章"))
    expect(viewer.at("#toast")).to_contain_text("草稿还在")
    expect(viewer.text).not_to_contain_text("我的草稿。")
    viewer.at("#chapters .chapter").last.click()

    expect(viewer.text).to_contain_text("我的草稿。")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")
    viewer.text.press("Control+Home")
    viewer.page.keyboard.type("又一句。")
    expect(viewer.layer("immediate")).to_contain_text("又一句。我的草稿。")
    viewer.at("#save-file").click()
    viewer.wait_until(lambda: path.read_text(encoding="utf-8") == f"又一句。我的草稿。{before}")


def test_a_draft_that_waits_is_shown_although_its_file_has_changed(viewer: Viewer) -> None:
    viewer.put_caret(0)
    viewer.page.keyboard.type("我的草稿。")
    expect(viewer.at("#save-file")).to_be_visible()
    viewer.at("#chapters .chapter").first.click()
    expect(viewer.at("#document-title")).to_have_text(re.compile("第一章"))
    viewer.write(CHAPTER, "别人写的。\r\n")

    viewer.at("#chapters .chapter").last.click()

    expect(viewer.text).to_contain_text("我的草稿。")
    expect(viewer.at("#text-note")).to_contain_text("文件在别处改过")
    expect(viewer.layer("immediate")).to_contain_text("我的草稿。")
    viewer.at("#text-actions").get_by_role("button", name="放弃").click()
    expect(viewer.text).to_have_text("别人写的。")


def test_a_draft_is_saved_over_a_file_that_has_changed_and_that_is_undone(viewer: Viewer) -> None:
    path = viewer.root / CHAPTER
    before = path.read_text(encoding="utf-8")
    viewer.put_caret(0)
    viewer.page.keyboard.type("我的草稿。")
    expect(viewer.at("#save-file")).to_be_visible()
    viewer.write(CHAPTER, "别人写的。")
    expect(viewer.at("#text-note")).to_contain_text("文件在别处改过")

    viewer.at("#text-actions").get_by_role("button", name="用我的覆盖文件").click()

    expect(viewer.at("#toast")).to_contain_text("已写入文件")
    assert path.read_text(encoding="utf-8") == f"我的草稿。{before}"
    expect(viewer.at("#text-note")).to_be_empty()
    viewer.at("#toast").get_by_role("button", name="撤销").click()
    viewer.wait_until(lambda: path.read_text(encoding="utf-8") == "别人写的。")


def test_names_are_underlined_and_what_is_not_seen_is_dimmed(viewer: Viewer) -> None:
    viewer.write(".creonow/characters/沈青禾.md", "---\nname: 沈青禾\ninject: never\n---\n医生。\n")
    viewer.write(CHAPTER, "开头的一段。\n\n" * 600 + "老周看见沈青禾。")
    viewer.wait_for_text("老周看见沈青禾")
    viewer.text.press("Control+End")

    expect(viewer.at(".name.in", has_text="老周")).to_be_visible()
    expect(viewer.at(".name:not(.in)", has_text="沈青禾")).to_be_visible()
    viewer.settle()
    middle = viewer.page.evaluate(
        """async (path) => {
          const {documents} = (await import("/inspection.js")).inspection.shown.result.coverage;
          const {ranges, length} = documents.find((one) => one.documentId === path);
          const {from, to} = ranges.find((one) => one.state !== "seen");
          return (from + to) / 2 / length;
        }""",
        CHAPTER,
    )
    scroll = (
        "(one, middle) => { one.scrollTop = middle * one.scrollHeight - one.clientHeight / 2; }"
    )
    viewer.at(".cm-scroller").evaluate(scroll, middle)
    expect(viewer.at(".unseen-text").first).to_be_visible()
    faint = viewer.at(".unseen-text").first.evaluate("(one) => getComputedStyle(one).color")
    assert faint != viewer.text.evaluate("(one) => getComputedStyle(one).color")


def test_a_secret_in_the_manuscript_is_masked_and_stays_in_its_file(viewer: Viewer) -> None:
    secret = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"
    viewer.write(CHAPTER, f"他写下 {secret} 就走了。")
    expect(viewer.text).to_contain_text("█" * len(secret))

    viewer.text.press("Control+End")
    viewer.page.keyboard.type("门没关。")

    expect(viewer.layer("immediate")).to_contain_text("他写下 ***REDACTED*** 就走了。门没关。")
    assert secret not in "".join(viewer.traffic)


def test_a_skill_that_needs_a_selection_offers_one(viewer: Viewer) -> None:
    viewer.at("#skill").select_option("builtin:polish")

    expect(viewer.at("#state")).to_contain_text("请在正文里选一段")
    viewer.at("#select-paragraph").click()

    expect(viewer.at("#headline")).to_contain_text("「润色」看得到")
    assert int(viewer.where()["from"]) < int(viewer.where()["at"])


def test_a_reload_asks_before_a_draft_is_lost(viewer: Viewer) -> None:
    asked: list[str] = []

    def leave(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.accept()

    viewer.page.on("dialog", leave)
    viewer.page.reload()
    expect(viewer.at("#state")).to_have_attribute("data-state", "ready")
    assert asked == []
    viewer.put_caret(0)
    viewer.page.keyboard.type("还没写入文件。")
    expect(viewer.at("#text-note")).to_contain_text("草稿：")

    viewer.page.reload()

    expect(viewer.at("#state")).to_have_attribute("data-state", "ready")
    assert asked == ["beforeunload"]
    expect(viewer.text).not_to_contain_text("还没写入文件。")


def test_a_reload_comes_back_to_the_same_place(viewer: Viewer) -> None:
    viewer.at("#chapters .chapter").first.click()
    expect(viewer.at("#document-title")).to_have_text(re.compile("第一章"))
    viewer.put_caret(12)
    viewer.at("#skill").select_option("general")
    viewer.tab("prompt")
    before = viewer.where()

    viewer.page.reload()

    expect(viewer.at("#document-title")).to_have_text(re.compile("第一章"))
    expect(viewer.at("#tab-prompt")).to_have_attribute("aria-selected", "true")
    expect(viewer.at("#prompt .span").first).to_be_visible()
    expect(viewer.at("#skill")).to_have_value("general")
    assert viewer.where() == before


def test_a_reload_comes_back_to_what_was_in_view(viewer: Viewer) -> None:
    """Far from the caret, deep in the list, with a question asked; on a phone in the same pane."""
    lines = "".join(f"第{n}句，水位没有变。\n\n" for n in range(300))
    viewer.write(CHAPTER, lines)
    viewer.wait_for_text("第299句")
    viewer.text.press("Control+End")
    viewer.settle()
    viewer.at("#question").fill("老周")
    viewer.at("#question").press("Enter")
    expect(viewer.at("#answer")).to_have_attribute("data-verdict", "in")
    scrolled = {".cm-scroller": 900, "#sees": 150}
    for selector, top in scrolled.items():
        viewer.at(selector).evaluate("(one, top) => { one.scrollTop = top; }", top)
    seen = viewer.page.evaluate("async () => (await import('/manuscript.js')).topOfText()")
    viewer.wait_until(lambda: viewer.page.evaluate("history.state.listTop") == scrolled["#sees"])
    viewer.wait_until(lambda: viewer.page.evaluate("history.state.top") == seen)

    viewer.page.reload()

    expect(viewer.at("#answer")).to_have_attribute("data-verdict", "in")
    top = "async () => (await import('/manuscript.js')).topOfText()"
    viewer.wait_until(lambda: viewer.page.evaluate(top) == seen)
    expect(viewer.at("#question")).to_have_value("老周")
    assert viewer.at("#sees").evaluate("(one) => one.scrollTop") == scrolled["#sees"]
    viewer.page.set_viewport_size({"width": 390, "height": 800})
    for pane in ("ask", "sees", "text"):
        viewer.at(f"#pane-{pane}").click()
        viewer.where()
        viewer.page.reload()
        expect(viewer.at("#state")).to_have_attribute("data-state", "ready")
        expect(viewer.at(f"#pane-{pane}")).to_have_attribute("aria-selected", "true")


@pytest.mark.parametrize(
    "lost_at", ["viewer:projects", "context:document:list", "context:document:read"]
)
def test_a_connection_lost_after_a_reload_does_not_lose_the_place(
    viewer: Viewer, lost_at: str
) -> None:
    """The first connection ends while the page is still asking for what its address names."""
    text = (viewer.root / CHAPTER).read_text(encoding="utf-8")
    viewer.at("#chapters .chapter", has_text="水文站").click()
    viewer.put_caret(text.index("父亲"))
    viewer.tab("prompt")
    viewer.page.set_viewport_size({"width": 390, "height": 800})
    viewer.at("#pane-sees").click()
    before = viewer.where()
    lost: list[str] = []

    def through(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def ask(message: str | bytes) -> None:
            if not lost and f'"{lost_at}"' in str(message):
                lost.append(lost_at)
                route.close()
            else:
                server.send(message)

        route.on_message(ask)

    viewer.page.route_web_socket("**/rpc", through)
    viewer.page.reload()

    expect(viewer.at("#pane-sees")).to_have_attribute("aria-selected", "true")
    expect(viewer.at("#tab-prompt")).to_have_attribute("aria-selected", "true")
    viewer.wait_for_text("父亲")
    expect(viewer.text).not_to_have_attribute("aria-readonly", "true")
    assert lost == [lost_at]
    assert viewer.where() == before


def test_an_answer_that_comes_late_does_not_take_the_author_back(viewer: Viewer) -> None:
    """A question of before a reload is asked again; who goes to another pane meanwhile stays there."""
    viewer.at("#question").fill("老周")
    viewer.at("#question").press("Enter")
    expect(viewer.at("#answer")).to_have_attribute("data-verdict", "in")
    viewer.page.set_viewport_size({"width": 390, "height": 800})
    viewer.at("#pane-ask").click()
    viewer.where()
    held: list[Callable[[], None]] = []

    def through(route: WebSocketRoute) -> None:
        server = route.connect_to_server()

        def answer(message: str | bytes) -> None:
            if '"verdict"' in str(message):
                held.append(lambda: route.send(message))
            else:
                route.send(message)

        server.on_message(answer)

    viewer.page.route_web_socket("**/rpc", through)
    viewer.page.reload()
    viewer.wait_until(lambda: held)

    viewer.at("#pane-sees").click()
    for send in held:
        send()

    expect(viewer.at("#answer")).to_have_attribute("data-verdict", "in")
    viewer.at("#answer").evaluate(SCROLLED)
    expect(viewer.at("#pane-sees")).to_have_attribute("aria-selected", "true")
    assert viewer.where()["pane"] == "sees"
