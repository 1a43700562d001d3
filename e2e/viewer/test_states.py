"""Stories: nothing to show, waiting, an error, a daemon that dies; the page says so and comes back."""

import json
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, WebSocketRoute, expect
from websockets.sync.client import ClientConnection, connect
from websockets.sync.server import ServerConnection, serve

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer


@pytest.fixture
def own_daemon(tmp_path: Path) -> Generator[Harness]:
    """A daemon that this story may kill."""
    with Harness(tmp_path / "另一个 home", CREONOW_WARM_UP="true") as started:
        yield started


def test_a_daemon_that_is_killed_and_restarted_gets_its_page_back(
    browser: Browser, own_daemon: Harness, novel: Path
) -> None:
    with Viewer(browser, own_daemon, novel) as viewer:
        viewer.page.get_by_test_id("ai-input").fill("这句话还在")
        viewer.put_caret(0)
        viewer.page.keyboard.type("草稿也还在。")
        expect(viewer.layer("immediate")).to_contain_text("草稿也还在")
        expect(viewer.at("#save-file")).to_have_count(0)
        viewer.at("#text-actions").get_by_role("button", name="怎样写入文件").click()
        expect(viewer.at("#toast")).to_contain_text("CREONOW_DOCUMENT_WRITES=true")

        own_daemon.kill()

        viewer.expect_connection("disconnected")
        expect(viewer.at("#notice")).to_contain_text("连接断开")
        expect(viewer.at("#notice")).to_contain_text("可能已经过时")
        expect(viewer.at("#notice").get_by_role("button", name="现在重试")).to_be_visible()
        expect(viewer.page.get_by_test_id("ai-run")).to_be_disabled()
        viewer.picture("disconnected")
        own_daemon.start()
        viewer.expect_connection("connected")
        expect(viewer.at("#state")).to_have_attribute("data-state", "ready")
        expect(viewer.page.get_by_test_id("ai-input")).to_have_value("这句话还在")
        expect(viewer.text).to_contain_text("草稿也还在")
        expect(viewer.layer("immediate")).to_contain_text("草稿也还在")
        viewer.write(".creonow/rules/style.md", "重启之后写的。\n")
        expect(viewer.layer("rules")).to_contain_text("重启之后写的")
        viewer.picture("reconnected")
        assert not own_daemon.call("viewer:open")["url"].startswith(viewer.origin)


def test_a_page_shows_its_token_to_no_stranger_that_took_the_port(
    browser: Browser, own_daemon: Harness, novel: Path
) -> None:
    heard: list[str] = []

    def listen(socket: ServerConnection) -> None:
        for message in socket:
            heard.append(str(message))
            asked = json.loads(message)
            proofs = {"proofs": ["00" * 32]}
            socket.send(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": proofs}))

    with Viewer(browser, own_daemon, novel) as viewer:
        token = viewer.page.evaluate("sessionStorage.getItem('token')")

        own_daemon.kill()

        with serve(listen, "127.0.0.1", int(viewer.origin.rpartition(":")[2])) as stranger:
            threading.Thread(target=stranger.serve_forever, daemon=True).start()
            viewer.expect_connection("refused")
            stranger.shutdown()

    assert [json.loads(one)["method"] for one in heard] == ["viewer:prove"]
    assert token not in "".join(heard)


def test_what_a_page_has_stored_opens_no_daemon_that_starts_after_a_crash(
    browser: Browser, own_daemon: Harness, novel: Path
) -> None:
    """Whoever takes the port serves a page of its own there, which reads what ours has stored."""
    with Viewer(browser, own_daemon, novel) as viewer:
        stored = viewer.page.evaluate("Object.values({...sessionStorage, ...localStorage})")
        viewer.page.goto("about:blank")

        own_daemon.kill()
        own_daemon.start()

        replies: list[dict[str, Any]] = []
        new = own_daemon.call("viewer:open")["url"].partition("/#")[0]
        for address in (viewer.origin, new):
            with connect(address.replace("http", "ws", 1) + "/rpc") as thief:
                replies += [_initialize(thief, token) for token in stored]
    assert stored
    codes = [reply["error"]["data"]["code"] for reply in replies]
    assert codes == ["UNAUTHENTICATED"] * 2 * len(stored)


def _initialize(socket: ClientConnection, token: str) -> dict[str, Any]:
    call = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"token": token}}
    socket.send(json.dumps(call))
    return json.loads(socket.recv())


def test_when_files_can_no_longer_be_watched_the_page_says_so(viewer: Viewer) -> None:
    expect(viewer.at("#notice")).to_be_hidden()

    away = viewer.root.with_name("elsewhere")
    viewer.root.rename(away)

    expect(viewer.at("#notice[data-kind=unwatched]")).to_be_visible()
    away.rename(viewer.root)
    viewer.write("chapters/03-水文站.md", "# 第三章\n\n搬回来了。")
    viewer.at("#notice").get_by_role("button", name="再看一次").click()
    expect(viewer.text).to_contain_text("搬回来了。")
    expect(viewer.at("#notice")).to_be_hidden()
    viewer.write("chapters/03-水文站.md", "# 第三章\n\n又看得到改动了。")
    expect(viewer.text).to_contain_text("又看得到改动了。")


def test_a_daemon_that_was_ended_forgets_its_pages(
    browser: Browser, own_daemon: Harness, novel: Path
) -> None:
    with Viewer(browser, own_daemon, novel) as viewer:
        kept = own_daemon.user_data / "run" / "pages.json"
        assert viewer.origin.rpartition(":")[2] in kept.read_text(encoding="ascii")

        own_daemon.stop()

        viewer.expect_connection("disconnected")
        expect(viewer.at("#notice")).to_contain_text("creonowd view")
        assert not kept.exists()


def test_without_a_project_the_page_says_how_to_open_one(
    browser: Browser, own_daemon: Harness
) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    page = browser.new_context(locale="zh-CN", permissions=permissions).new_page()
    page.goto(own_daemon.call("viewer:open")["url"])

    state = page.locator("#text-empty")
    expect(state).to_contain_text("还没有项目")
    state.get_by_role("button", name="复制").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "creonowd view --project ."
    expect(page.get_by_test_id("ai-run")).to_be_disabled()
    page.context.close()


def test_without_chapters_and_notes_the_page_offers_to_begin(
    browser: Browser, daemon: Harness, tmp_path: Path
) -> None:
    root = tmp_path / "空 empty"
    root.mkdir()
    made = daemon.call("project:create", {"rootPath": str(root)})
    page = browser.new_context(locale="zh-CN").new_page()
    page.goto(daemon.call("viewer:open", {"projectId": made["projectId"]})["url"])
    expect(page.locator("#text-empty")).to_contain_text("还没有章节")

    page.locator("#make-tree").click()
    page.locator("#begin-chapter").click()

    page.locator(".cm-content").press_sequentially("第一句。")
    expect(page.get_by_test_id("ai-context-layer-immediate")).to_contain_text("第一句。")
    expect(page.get_by_test_id("ai-context-layer-settings")).to_contain_text("没有设定")
    expect(page.locator("#text-note")).to_contain_text("还没有这个文件")
    assert (root / ".creonow" / "rules").is_dir()
    assert not (root / "chapters").exists()
    page.get_by_role("button", name="放弃").click()
    expect(page.locator("#text-empty")).to_contain_text("还没有章节")
    page.locator("#begin-chapter").click()
    page.locator(".cm-content").press_sequentially("第一句。")
    page.get_by_role("button", name="存为 chapters/01.md").click()
    expect(page.locator("#toast")).to_contain_text("已写入文件")
    assert (root / "chapters/01.md").read_text(encoding="utf-8") == "第一句。"
    page.locator("#toast").get_by_role("button", name="撤销").click()
    expect(page.locator("#text-note")).to_contain_text("还没有这个文件")
    expect(page.locator(".cm-content")).to_contain_text("第一句。")
    assert not (root / "chapters/01.md").exists()
    page.context.close()


def test_chapters_that_appear_are_opened(browser: Browser, daemon: Harness, tmp_path: Path) -> None:
    root = tmp_path / "空 later"
    root.mkdir()
    made = daemon.call("project:create", {"rootPath": str(root)})
    page = browser.new_context(locale="zh-CN").new_page()
    page.goto(daemon.call("viewer:open", {"projectId": made["projectId"]})["url"])
    expect(page.locator("#text-empty")).to_be_visible()

    (root / "一.md").write_text("第一句。", encoding="utf-8")

    expect(page.locator(".cm-content")).to_contain_text("第一句。")
    expect(page.get_by_test_id("ai-run")).to_be_enabled()
    page.context.close()


def test_an_instruction_that_is_too_long_is_reported_in_words_that_go_away(viewer: Viewer) -> None:
    viewer.page.get_by_test_id("ai-input").fill("太长了。" * 140_000)

    expect(viewer.at("#state")).to_have_attribute("data-state", "error")
    expect(viewer.at("#panel")).not_to_contain_text("CONTEXT_INPUT_TOO_LARGE")
    expect(viewer.at("#budget-total")).to_contain_text("超过 64,000 个 token")
    expect(viewer.at(".heaviest li").first).to_have_text("给 AI 的话560,000 字符")
    expect(viewer.at("#bar .limit")).to_be_visible()
    viewer.page.get_by_test_id("ai-input").fill("短")
    expect(viewer.at("#state")).to_have_attribute("data-state", "ready")


def test_too_much_for_the_budget_is_measured_and_one_button_makes_room(viewer: Viewer) -> None:
    viewer.page.get_by_test_id("ai-input").fill("雨下了一夜，檐水滴在石阶上。" * 700)

    expect(viewer.at("#raise-budget")).to_be_visible()
    expect(viewer.at("#budget-total")).not_to_contain_text("NaN")
    expect(viewer.at(".heaviest li").first).to_contain_text("给 AI 的话")
    expect(viewer.at("#bar .limit")).to_be_visible()
    for editor in ("#editors #budget-box", "#editors #rules-box"):
        expect(viewer.at(editor)).to_have_attribute("open", "")
    expect(viewer.at("#editors #new-rule")).to_be_editable()
    viewer.picture("too-large")
    viewer.at("#raise-budget").click()
    expect(viewer.at("#state")).to_have_attribute("data-state", "ready")
    expect(viewer.at("#editors")).to_be_hidden()
    expect(viewer.drawer("rules").locator("#new-rule")).to_be_editable()


def test_while_the_first_prompt_is_made_the_page_says_so(
    browser: Browser, daemon: Harness, novel: Path
) -> None:
    held: list[str] = []
    routes: list[WebSocketRoute] = []

    def through(route: WebSocketRoute) -> None:
        server = route.connect_to_server()
        routes.append(route)
        server.on_message(
            lambda m: held.append(str(m)) if '"layersDetail"' in str(m) else route.send(m)
        )

    made = daemon.call("project:create", {"rootPath": str(novel)})
    page = browser.new_context(locale="zh-CN").new_page()
    page.route_web_socket("**/rpc", through)
    page.goto(daemon.call("viewer:open", {"projectId": made["projectId"]})["url"])

    expect(page.locator("#state")).to_have_text("正在读……")
    expect(page.get_by_test_id("ai-context-panel")).to_have_attribute("aria-busy", "true")
    while not held:
        page.wait_for_timeout(20)
    routes[0].send(held[0])
    expect(page.get_by_test_id("ai-context-layer-rules")).to_be_visible()
    assert json.loads(held[0])["result"]["ok"] is True
    page.context.close()
