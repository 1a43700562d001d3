"""Stories: the keyboard alone does everything. No step of them touches a pointer or sets the focus."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from e2e.viewer.keyboard import faults, listen, reach, use
from e2e.viewer.page import Viewer

CHAPTER = "chapters/03-水文站.md"
PERSON = ".creonow/characters/老周.md"
EYE = f'#cast [data-key="eye:{PERSON}"]'
LONG_NOTE = "江水漫过第三级石阶。\n\n" * 900


@pytest.fixture
def listened(viewer: Viewer) -> Viewer:
    """The page with one rule in the way and a note that is too long, so that every control is there."""
    viewer.write(".creonow/settings/世界.md", LONG_NOTE)
    viewer.write(".creonow/characters/坏.md", "---\nname: 坏\naliases: [一, 二\n---\n人。\n")
    listen(viewer)
    expect(viewer.at("#tab-left-out")).to_contain_text("（")
    expect(viewer.at("#asides")).to_contain_text("坏.md")
    return viewer


def test_every_control_is_reached_by_tab_and_does_something_by_key(listened: Viewer) -> None:
    """In every state of the page, also where a control is there for a moment only."""
    found = [f"{state}: {one}" for state, one in checked(listened)]

    assert found == []


def checked(viewer: Viewer) -> Iterator[tuple[str, str]]:
    for state, within in every_state(viewer):
        yield from ((state, one) for one in faults(viewer, within))


def every_state(viewer: Viewer) -> Iterator[tuple[str, str]]:
    """Show one part of the page after the other; yield what it is, and where to look."""
    viewer.at("#sees summary").first.click()
    yield "sees", "body"
    for tab in ("left-out", "prompt"):
        viewer.tab(tab)
        expect(viewer.at(f"#{tab} button").first).to_be_visible()
        yield tab, f"#{tab}"
    yield from questions(viewer)
    yield from overlays(viewer)
    yield from runs(viewer)
    yield from too_large(viewer)
    viewer.put_caret(0)
    viewer.page.keyboard.type("草稿")
    expect(viewer.at("#save-file")).to_be_visible()
    viewer.at("#tab-since").click()
    viewer.at("#since summary").first.click()
    yield "since and a draft", "body"
    viewer.text.press("Control+f")
    expect(viewer.at(".cm-search")).to_be_visible()
    yield "find in the text", "#manuscript"
    viewer.page.keyboard.press("Escape")
    viewer.tab("sees")
    viewer.at("#sees summary").first.focus()
    viewer.write(".creonow/rules/style.md", "# 写作风格\n\n- 不写梦境。\n")
    expect(viewer.at("#changes")).to_be_visible()
    yield "changes that wait", "#tabs-box"


def questions(viewer: Viewer) -> Iterator[tuple[str, str]]:
    viewer.at("#question").fill("老")
    expect(viewer.at("#completions li").first).to_be_visible()
    yield "completion", "#ask"
    for about in ("世界", "坏", "桑给巴尔"):
        viewer.at("#question").fill(about)
        viewer.at("#question").press("Enter")
        expect(viewer.at("#answer")).to_have_attribute("data-about", about)
        yield f"answer on {about}", "#ask"
    viewer.at("#question").press("Escape")


def overlays(viewer: Viewer) -> Iterator[tuple[str, str]]:
    viewer.at("#cast .subject", has_text="老周").click()
    yield "card", "#card"
    viewer.at("#card").get_by_role("button", name="编辑").click()
    expect(viewer.at("#file-text")).to_be_visible()
    yield "edit a file", "#card"
    viewer.at("#card").get_by_role("button", name="不写了").click()
    for box in ("budget", "rules", "ai", "usage", "developer", "export"):
        viewer.drawer(box)
    listed = viewer.daemon.call("constraints:list", viewer.project)["constraints"]
    viewer.at('[data-key="{}"]'.format(listed[0]["id"])).fill("改了一半")
    viewer.at('[data-key="{}"]'.format(listed[1]["id"])).fill("也改了一半")
    viewer.daemon.call("constraints:delete", viewer.project | {"constraintId": listed[1]["id"]})
    change = {"constraintId": listed[0]["id"], "patch": {"text": "别人写的"}}
    viewer.daemon.call("constraints:update", viewer.project | change)
    expect(viewer.at("#rules-box")).to_contain_text("别处现在是：别人写的")
    expect(viewer.at("#rules-box")).to_contain_text("别处已删除")
    expect(viewer.at("#evidence")).to_be_visible()
    yield "drawer", "#drawer"
    viewer.close_drawer()
    viewer.at("[data-handle=total]").press("PageUp")
    expect(viewer.at("#keep-this")).to_be_visible()
    yield "what-if", "#bar"
    viewer.at("#back-to-real").click()
    expect(viewer.at("#keep-this")).to_have_count(0)


def runs(viewer: Viewer) -> Iterator[tuple[str, str]]:
    viewer.daemon.call(
        "constraints:create", viewer.project | {"constraint": {"text": "避免使用感叹号"}}
    )
    steps = [{"text": "快走！"}, {"fail": "AI_RATE_LIMITED"}, {"stall": True}]
    viewer.daemon.call("e2e:ai:script", {"steps": steps})
    viewer.run()
    expect(viewer.at("#run-bar .broken")).to_be_visible()
    yield "a run", ".text"
    viewer.page.get_by_test_id("ai-run").click()
    expect(viewer.at("#run-bar .bad")).to_be_visible()
    yield "a run that failed", "#run-bar"
    viewer.page.get_by_test_id("ai-run").click()
    expect(viewer.at("#cancel")).to_be_visible()
    yield "a run that goes on", "#composer"
    viewer.at("#cancel").click()
    viewer.at("#run-bar").get_by_role("button", name="关闭").click()


def too_large(viewer: Viewer) -> Iterator[tuple[str, str]]:
    viewer.page.get_by_test_id("ai-input").fill("雨下了一夜，檐水滴在石阶上。" * 700)
    expect(viewer.at("#raise-budget")).to_be_visible()
    yield "too large", "#panel"
    viewer.page.get_by_test_id("ai-input").fill("")
    expect(viewer.at("#state")).to_have_attribute("data-state", "ready")
    viewer.at("#skill").select_option("builtin:polish")
    expect(viewer.at("#select-paragraph")).to_be_visible()
    yield "a selection is needed", "#state"
    viewer.at("#skill").select_option("builtin:continue")
    expect(viewer.at("#state")).to_have_attribute("data-state", "ready")


def test_a_control_for_the_pointer_alone_is_found(listened: Viewer) -> None:
    """The measure itself: what only a pointer can use, what Tab passes by, what ignores its keys."""
    listened.page.evaluate(
        """() => {
          const make = (tag, id, attributes) => {
            const made = Object.assign(document.createElement(tag), { id, textContent: id });
            for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
            document.getElementById("bar").append(made);
            return made;
          };
          make("span", "only-clicked", {}).addEventListener("click", () => {});
          make("button", "passed-by", { tabindex: "-1" });
          make("span", "deaf", { tabindex: "0", role: "button" }).addEventListener("click", () => {});
        }"""
    )

    found = faults(listened, "#bar")

    assert [
        one for one in found if "only-clicked" in one or "passed-by" in one or "deaf" in one
    ] == [
        "only by pointer: SPAN only-clicked only-clicked",
        "only by pointer: BUTTON passed-by passed-by",
        "keys do nothing: SPAN deaf deaf",
    ]


@pytest.mark.parametrize("width", [1024, 390])
def test_every_control_of_a_smaller_window_is_reached(listened: Viewer, width: int) -> None:
    listened.page.set_viewport_size({"width": width, "height": 800})
    found = faults(listened)
    if width == 390:
        for pane in ("sees", "ask"):
            listened.at(f"#pane-{pane}").click()
            found += faults(listened)

    assert found == []


def test_the_keyboard_alone_does_everything(listened: Viewer) -> None:
    """Ask, pin, make room, move an edge, the eye, a card, walk, find, run, take, again, forget, undo."""
    ask_and_look(listened)
    pin_and_make_room(listened)
    move_the_edge(listened)
    people(listened)
    walk_and_find(listened)
    rules(listened)
    write_and_run(listened)
    look_differently(listened)


def ask_and_look(viewer: Viewer) -> None:
    """Ask about a person by completion and go to the quote; about a file with a fault, and fix it."""
    keys = viewer.page.keyboard
    answer = viewer.at("#answer")
    keys.press("Control+k")
    expect(viewer.at("#question")).to_be_focused()
    keys.type("老")
    expect(viewer.at("#completions li").first).to_be_visible()
    keys.press("ArrowDown")
    keys.press("Enter")
    expect(answer).to_have_attribute("data-verdict", "in")
    use(viewer, answer.get_by_role("button", name="去看"))
    expect(viewer.at("#prompt .span.quoted")).to_be_in_viewport()
    keys.press("Control+k")
    keys.type("坏")
    keys.press("Enter")
    expect(answer).to_have_attribute("data-verdict", "never_considered")
    use(viewer, answer.get_by_role("button", name="改文件第 3 行"))
    expect(viewer.at("#file-text")).to_be_focused()
    for key in ("End", "]"):
        keys.press(key)
    use(viewer, viewer.at("#card").get_by_role("button", name="保存"))
    expect(answer).to_have_attribute("data-verdict", "in")
    undo(viewer, "#tabs [aria-selected=true]")
    expect(answer).to_have_attribute("data-verdict", "never_considered")
    keys.press("Control+k")
    keys.press("Escape")
    expect(answer).to_be_hidden()


def undo(viewer: Viewer, selector: str) -> None:
    """Go where no text is typed, and take back what was done last."""
    reach(viewer, viewer.at(selector))
    viewer.page.keyboard.press("Control+z")


def pin_and_make_room(viewer: Viewer) -> None:
    """Each is shown before it is done, and undone."""
    keys = viewer.page.keyboard
    reach(viewer, viewer.at("#tabs [aria-selected=true]"))
    reach(viewer, viewer.at("#tab-left-out"), "ArrowLeft")
    world = viewer.at("#left-out .piece", has_text="世界")
    reach(viewer, world.get_by_role("button", name="钉住"))
    expect(viewer.at("#preview")).to_be_visible()
    keys.press("Enter")
    expect(world.get_by_role("button", name="取下")).to_be_focused()
    expect(world.locator(".badge", has_text="已钉住")).to_be_visible()
    keys.press("Control+z")
    expect(world.locator(".badge", has_text="已钉住")).to_have_count(0)
    reach(viewer, world.get_by_role("button", name="腾出空间"))
    expect(viewer.at("#preview")).to_contain_text("什么都不用让出")
    keys.press("Enter")
    expect(viewer.at("#toast")).to_contain_text("预算提到")
    expect(world).to_have_count(0)
    use(viewer, viewer.at("#toast").get_by_role("button", name="撤销"))
    expect(world).to_be_visible()


def move_the_edge(viewer: Viewer) -> None:
    """Every edge of the bar moves by the arrows; the last is kept, and undone."""
    keys = viewer.page.keyboard
    edges = viewer.at("#bar [role=slider]")
    expect(edges).to_have_count(3)
    for name in ("settings-retrieved", "retrieved-immediate", "total"):
        edge = viewer.at(f"[data-handle={name}]")
        for key in ("ArrowLeft", "ArrowRight"):
            before = len(asked(viewer))
            use(viewer, edge, key)
            viewer.wait_until(lambda before=before: len(asked(viewer)) > before)
            expect(viewer.at("#keep-this")).to_be_visible()
            expect(edge).to_be_focused()
    keys.press("PageUp")
    expect(viewer.at("#budget-total")).to_contain_text("6,500")
    use(viewer, viewer.at("#keep-this"))
    expect(viewer.at("#toast")).to_contain_text("预算已保存")
    undo(viewer, "[data-handle=total]")
    expect(viewer.at("#budget-total")).to_contain_text("6,000")


def asked(viewer: Viewer) -> list[str]:
    """Return what the page asked with another budget."""
    return [one for one in viewer.traffic if '"whatIf"' in one and "context:inspect" in one]


def people(viewer: Viewer) -> None:
    """Go to chapters, open a card from the map and from the text, set the eye and undo that."""
    keys = viewer.page.keyboard
    for chapter, title in (
        (viewer.at("#chapters .chapter").first, "第一章"),
        (viewer.at("#chapters .chapter").last, "第三章"),
    ):
        use(viewer, chapter)
        expect(viewer.at("#document-title")).to_have_text(re.compile(title))
    person = viewer.at("#cast .subject", has_text="老周")
    use(viewer, person)
    expect(viewer.at("#card")).to_contain_text("停航渡口的看守")
    keys.press("Escape")
    expect(person).to_be_focused()
    keys.press("Tab")
    expect(viewer.at(EYE)).to_be_focused()
    for mode in ("mentioned", "manual", "never", "always"):
        keys.press("Space")
        expect(viewer.at(EYE)).to_have_attribute("data-inject", mode)
        expect(viewer.at(EYE)).to_be_focused()
    keys.press("Control+z")
    expect(viewer.at(EYE)).to_have_attribute("data-inject", "never")
    for mode in ("manual", "mentioned", "always"):
        keys.press("Control+z")
        expect(viewer.at(EYE)).to_have_attribute("data-inject", mode)
    reach(viewer, viewer.text)
    keys.press("Control+f")
    keys.type("老周")
    keys.press("Enter")
    keys.press("Escape")
    expect(viewer.text).to_be_focused()
    keys.press("ArrowLeft")
    keys.press("Alt+Enter")
    expect(viewer.at("#card")).to_contain_text("停航渡口的看守")
    keys.press("Escape")
    expect(viewer.text).to_be_focused()


def walk_and_find(viewer: Viewer) -> None:
    """J and K walk, Enter opens, / finds, the arrows change the tab."""
    keys = viewer.page.keyboard
    reach(viewer, viewer.at("#tabs [aria-selected=true]"))
    reach(viewer, viewer.at("#tab-sees"), "ArrowLeft")
    pieces = viewer.at("#sees summary")
    for key in "jjjk":
        keys.press(key)
    expect(pieces.nth(1)).to_be_focused()
    assert viewer.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    keys.press("Enter")
    expect(viewer.at("#sees details[open]")).to_have_count(1)
    keys.press("/")
    expect(viewer.at("[data-find=sees]")).to_be_focused()
    keys.type("老周")
    expect(viewer.at("#sees mark").first).to_have_text("老周")
    for _ in "老周":
        keys.press("Backspace")
    expect(viewer.at("#sees mark")).to_have_count(0)
    reach(viewer, viewer.at("#tab-sees"), "Shift+Tab")
    for name in ("left-out", "prompt", "since", "sees"):
        keys.press("ArrowRight")
        expect(viewer.at(f"#tab-{name}")).to_be_focused()
        expect(viewer.at(f"#{name}")).to_be_visible()


def rules(viewer: Viewer) -> None:
    """Add, change and delete a rule in the drawer, and undo each."""
    keys = viewer.page.keyboard
    count = len(viewer.daemon.call("constraints:list", viewer.project)["constraints"])
    use(viewer, viewer.at("#drawer-toggle"))
    expect(viewer.at("#drawer-close")).to_be_focused()
    use(viewer, viewer.at("#rules-box > summary"))
    reach(viewer, viewer.at("#new-rule"))
    keys.type("键盘写的规则")
    keys.press("Enter")
    expect(viewer.layer("rules")).to_contain_text("键盘写的规则")
    mine = viewer.page.get_by_label(f"规则 {count + 1}", exact=True)
    reach(viewer, mine, "Shift+Tab")
    keys.press("Control+a")
    keys.type("键盘改的规则")
    keys.press("Enter")
    expect(viewer.layer("rules")).to_contain_text("键盘改的规则")
    use(viewer, viewer.page.get_by_role("button", name="删除: 键盘改的规则"))
    expect(viewer.layer("rules")).not_to_contain_text("键盘改的规则")
    keys.press("Escape")
    expect(viewer.at("#drawer")).to_be_hidden()
    expect(viewer.at("#drawer-toggle")).to_be_focused()
    for shown, gone in (("键盘改的规则", "键盘写的规则"), ("键盘写的规则", "键盘改的规则")):
        keys.press("Control+z")
        expect(viewer.layer("rules")).to_contain_text(shown)
        expect(viewer.layer("rules")).not_to_contain_text(gone)
    keys.press("Control+z")
    expect(viewer.layer("rules")).not_to_contain_text("键盘写的规则")


def write_and_run(viewer: Viewer) -> None:
    """Write, run, take and undo it, run again with the rules named, forget and undo that, save."""
    keys = viewer.page.keyboard
    chapter = viewer.root / CHAPTER
    output = viewer.page.get_by_test_id("ai-output")
    viewer.daemon.call(
        "constraints:create", viewer.project | {"constraint": {"text": "避免使用感叹号"}}
    )
    steps = [{"text": "快走！"}, {"text": "快走。"}]
    viewer.daemon.call("e2e:ai:script", {"steps": steps})
    use(viewer, viewer.at("#skip"))
    expect(viewer.text).to_be_focused()
    keys.press("Control+Home")
    keys.type("键盘写的。")
    expect(viewer.layer("immediate")).to_contain_text("键盘写的。")
    reach(viewer, viewer.page.get_by_test_id("ai-input"))
    keys.type("快些")
    keys.press("Control+Enter")
    expect(viewer.at(".broken")).to_contain_text("避免使用感叹号")
    use(viewer, viewer.at("#again"))
    expect(output).to_have_text("快走。")
    use(viewer, viewer.at("#forget"))
    expect(output).to_have_count(0)
    use(viewer, viewer.at("#toast").get_by_role("button", name="撤销"))
    expect(output).to_have_text("快走。")
    use(viewer, viewer.at("#take"))
    expect(viewer.text).to_contain_text("键盘写的。快走。")
    viewer.wait_until(lambda: "accepted" in statuses(viewer))
    expect(viewer.text).to_be_focused()
    keys.press("Control+z")
    expect(viewer.text).not_to_contain_text("快走。")
    viewer.wait_until(lambda: "accepted" not in statuses(viewer))
    keys.press("Control+y")
    expect(viewer.text).to_contain_text("键盘写的。快走。")
    viewer.wait_until(lambda: "accepted" in statuses(viewer))
    reach(viewer, viewer.at("#save-file"))
    keys.press("Enter")
    viewer.wait_until(lambda: "键盘写的。快走。" in chapter.read_text(encoding="utf-8"))
    expect(viewer.text).to_be_focused()


def statuses(viewer: Viewer) -> list[str]:
    runs = viewer.daemon.call("ai:run:list", viewer.project)["runs"]
    return [one["status"] for one in runs]


def look_differently(viewer: Viewer) -> None:
    """Another skill, another language, the dark theme, no panel."""
    keys = viewer.page.keyboard
    use(viewer, viewer.at("#skill"), "ArrowDown")
    expect(viewer.at("#skill")).not_to_have_value("builtin:continue")
    keys.press("ArrowUp")
    expect(viewer.at("#skill")).to_have_value("builtin:continue")
    for state in ("en", "zh-CN"):
        use(viewer, viewer.at("#language"))
        expect(viewer.at("html")).to_have_attribute("lang", state)
    use(viewer, viewer.at("#theme"))
    expect(viewer.at("html")).to_have_attribute("data-theme", "dark")
    for shown in (False, True):
        use(viewer, viewer.page.get_by_test_id("ai-context-toggle"))
        expect(viewer.at("#panel")).to_be_visible(visible=shown)


def test_the_tabs_of_a_phone_work_by_key(listened: Viewer) -> None:
    keys = listened.page.keyboard
    listened.page.set_viewport_size({"width": 390, "height": 800})
    reach(listened, listened.at("#pane-text"))

    for pane, shown in (("sees", "#headline"), ("ask", "#question"), ("text", ".cm-content")):
        keys.press("ArrowRight")
        expect(listened.at(f"#pane-{pane}")).to_be_focused()
        expect(listened.at(shown)).to_be_visible()
    keys.press("ArrowLeft")
    use(listened, listened.at("#question"), "a")
    keys.press("Backspace")
    keys.type("老周")
    keys.press("Enter")
    expect(listened.at("#answer")).to_have_attribute("data-verdict", "in")
    use(listened, listened.at("#answer").get_by_role("button", name="去看"))
    expect(listened.at("#pane-sees")).to_have_attribute("aria-selected", "true")
    expect(listened.at("#prompt .span.quoted")).to_be_in_viewport()
