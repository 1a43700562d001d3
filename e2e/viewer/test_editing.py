"""Stories: rules and the budget are edited in the page, also when someone else was first."""

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer

CHAPTER = {
    "documentId": "chapters/03-水文站.md",
    "cursorPosition": 0,
    "skillId": "builtin:continue",
}


def test_a_rule_added_in_the_page_is_in_the_next_prompt_and_a_deleted_one_comes_back(
    viewer: Viewer,
) -> None:
    viewer.drawer("rules")
    viewer.at("#new-rule").fill("全书不出现手机")
    viewer.at("#new-rule").press("Enter")

    expect(viewer.layer("rules")).to_contain_text("全书不出现手机")
    made = viewer.daemon.call("context:assemble", viewer.project | CHAPTER)
    assert "5. 全书不出现手机" in made["prompt"]
    expect(viewer.at("#rules-message")).to_have_text("已保存。")
    expect(viewer.at("#new-rule")).to_have_value("")
    viewer.picture("constraint")
    order = viewer.daemon.call("constraints:list", viewer.project)["constraints"]
    viewer.at("#rules-box .item").nth(2).get_by_role("button", name="删除").click()
    expect(viewer.layer("rules")).not_to_contain_text(order[2]["text"])
    viewer.at("#toast").get_by_role("button", name="撤销").click()
    expect(viewer.layer("rules")).to_contain_text(order[2]["text"])
    assert viewer.daemon.call("constraints:list", viewer.project)["constraints"] == order


def test_what_is_typed_survives_a_constraint_that_changed_elsewhere(viewer: Viewer) -> None:
    viewer.drawer("rules")
    listed = viewer.daemon.call("constraints:list", viewer.project)["constraints"]
    field = viewer.at('[data-key="{}"]'.format(listed[0]["id"]))
    field.fill("我写的")
    viewer.at("#new-rule").fill("还没加上的")
    elsewhere = {"constraintId": listed[0]["id"], "patch": {"text": "别人写的"}}

    viewer.daemon.call("constraints:update", viewer.project | elsewhere)

    expect(viewer.at("#rules-box")).to_contain_text("别处现在是：别人写的")
    expect(field).to_have_value("我写的")
    expect(viewer.at("#new-rule")).to_have_value("还没加上的")
    viewer.picture("constraint-conflict")
    field.press("Enter")
    expect(viewer.at("#rules-message")).to_have_text("已保存。")
    kept = viewer.daemon.call("constraints:list", viewer.project)["constraints"]
    assert kept[0]["text"] == "我写的"


def test_a_rule_from_elsewhere_moves_neither_focus_nor_caret_in_the_drawer(viewer: Viewer) -> None:
    """Type in the middle of a field and go to a button; both stay what they are while rules come."""
    viewer.drawer("rules")
    field = viewer.at("#new-rule")
    field.fill("还没加上的")
    for _ in range(3):
        field.press("ArrowLeft")
    viewer.daemon.call(
        "constraints:create", viewer.project | {"constraint": {"text": "别人的规则"}}
    )
    expect(viewer.layer("rules")).to_contain_text("别人的规则")

    viewer.page.keyboard.type("新")

    expect(field).to_have_value("还没新加上的")
    remove = viewer.at("#rules-box .item").first.get_by_role("button", name="删除")
    remove.focus()
    viewer.daemon.call("constraints:create", viewer.project | {"constraint": {"text": "又一条"}})
    expect(viewer.layer("rules")).to_contain_text("又一条")
    expect(remove).to_be_focused()
    viewer.page.keyboard.press("Enter")
    expect(viewer.at("#toast")).to_contain_text("已删除：")
    expect(remove).to_be_focused()


def test_a_constraint_deleted_elsewhere_can_be_added_again(viewer: Viewer) -> None:
    viewer.drawer("rules")
    listed = viewer.daemon.call("constraints:list", viewer.project)["constraints"]
    viewer.at('[data-key="{}"]'.format(listed[1]["id"])).fill("改了一半")

    viewer.daemon.call("constraints:delete", viewer.project | {"constraintId": listed[1]["id"]})

    expect(viewer.at("#rules-box")).to_contain_text("别处已删除")
    again = viewer.at("#rules-box .item", has_text="别处已删除")
    again.get_by_role("button", name="添加").click()
    expect(viewer.layer("rules")).to_contain_text("改了一半")


def test_a_stale_write_of_a_constraint_is_reported_and_nothing_is_lost(
    viewer: Viewer, daemon: Harness
) -> None:
    viewer.drawer("rules")
    viewer.at("#new-rule").fill("我的新约束")
    viewer.page.evaluate(
        """async (project) => {
          const text = "抢先一步";
          await window.creonow.invoke("context:creonow:watch:stop", project);
          await window.creonow.invoke("constraints:create", {...project, constraint: {text}});
        }""",
        viewer.project,
    )

    viewer.at("#new-rule").press("Enter")

    expect(viewer.at("#rules-message")).to_contain_text("别处刚刚修改过")
    expect(viewer.at("#new-rule")).to_have_value("我的新约束")
    viewer.at("#new-rule").press("Enter")
    expect(viewer.at("#rules-message")).to_have_text("已保存。")
    expect(viewer.layer("rules")).to_contain_text("我的新约束")


def test_a_constraint_of_the_knowledge_graph_is_shown_and_locked(viewer: Viewer) -> None:
    text = """{"version": 2, "items": [{"id": "con_aaaaaaaaaaaaaaaaaaaa", "text": "江上没有桥",
      "type": "world", "source": "kg", "priority": 50, "degradable": true, "updatedAt": "2026-01-01T00:00:00Z"}]}"""
    viewer.write(".creonow/rules/constraints.json", text)
    viewer.drawer("rules")

    expect(viewer.at('[data-key="con_aaaaaaaaaaaaaaaaaaaa"]')).to_be_disabled()
    expect(viewer.at("#rules-box")).to_contain_text("来自知识图谱")


def test_of_two_windows_that_change_the_budget_the_second_must_look_again(
    browser: Browser, viewer: Viewer, novel: Path
) -> None:
    with Viewer(browser, viewer.daemon, novel) as other:
        for window in (viewer, other):
            window.drawer("budget")
            expect(window.page.get_by_label("模型的窗口")).to_have_value("8000")
        other.page.get_by_label("模型的窗口").fill("12000")
        other.at("#save-budget").click()
        expect(other.at("#budget-message")).to_have_text("已保存。")
        expect(other.at("#budget-total")).to_contain_text("10,000 个 token 中")
        other.picture("budget-saved")
    mine = viewer.page.get_by_label("模型的窗口")

    mine.fill("9000")
    viewer.at("#save-budget").click()

    expect(viewer.at("#budget-message")).to_contain_text("别处刚刚修改过")
    expect(mine).to_have_value("9000")
    expect(viewer.at("#budget-box")).to_contain_text("别处现在是：12,000")
    viewer.picture("budget-conflict")
    viewer.at("#save-budget").click()
    expect(viewer.at("#budget-message")).to_have_text("已保存。")
    kept = viewer.daemon.call("context:budget:get", viewer.project)
    assert (kept["contextWindowTokens"], kept["version"]) == (9000, 3)


def test_a_budget_that_cannot_be_is_refused_beside_its_form(viewer: Viewer) -> None:
    viewer.drawer("budget")
    rules = viewer.page.get_by_role("group", name="规则与人物")
    rules.get_by_label("至少").fill("9000")

    viewer.at("#save-budget").click()

    expect(viewer.at("#budget-message")).to_have_class(re.compile("bad"))
    expect(viewer.at("#budget-message")).not_to_contain_text("CONTEXT_BUDGET")
    expect(rules.get_by_label("至少")).to_have_value("9000")
    assert viewer.daemon.call("context:budget:get", viewer.project)["version"] == 1
