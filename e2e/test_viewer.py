"""Stories: a writer looks into the viewer, in a real browser, on a real daemon."""

import json
import re
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from e2e.browsers import chromium
from e2e.harness import Harness

SAMPLE = Path(__file__).parent / "sample"
PICTURES = Path(__file__).parent / "artifacts"
SECRET = "sk-THIS_SHOULD_BE_REDACTED"
CHAPTER = "chapters/03-水文站.md"
SENTENCES = ("江水漫过第三级石阶，", "没有人记得那年的水位，", "灯塔的光一夜没有熄，")


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def daemon(tmp_path: Path) -> Generator[Harness]:
    shutil.copytree(SAMPLE, tmp_path / "小说 novel")
    with Harness(tmp_path, CREONOW_WARM_UP="true") as harness:
        yield harness


class Viewer:
    """The page, with its traffic written down."""

    def __init__(self, browser: Browser, daemon: Harness, root: Path) -> None:
        self.root = root
        self.project_id: str = daemon.call("project:create", {"rootPath": str(root)})["projectId"]
        daemon.call("context:creonow:ensure", {"projectId": self.project_id})
        self.heard: list[str] = []
        self.foreign: list[str] = []
        context = browser.new_context(viewport={"width": 1400, "height": 1000}, locale="zh-CN")
        self.page: Page = context.new_page()
        self.page.on("websocket", lambda socket: socket.on("framereceived", self._hear))
        self.page.on("request", lambda request: self._note(request.url))
        address = daemon.call("viewer:open", {"projectId": self.project_id})["url"]
        self.origin = address.split("/#")[0]
        self.page.goto(address)
        expect(self.page.locator("#connection")).to_have_attribute("data-state", "connected")
        expect(self.page.locator("#document")).not_to_have_value("")

    def open_panel(self) -> None:
        self.page.get_by_test_id("ai-context-toggle").click()
        expect(self.page.get_by_test_id("ai-context-panel")).to_be_visible()
        expect(self.page.locator("#contents")).to_be_visible(timeout=15_000)

    def layer(self, name: str) -> Locator:
        return self.page.get_by_test_id(f"ai-context-layer-{name}")

    def picture(self, name: str) -> None:
        PICTURES.mkdir(exist_ok=True)
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def _hear(self, payload: object) -> None:
        self.heard.append(payload if isinstance(payload, str) else str(payload))

    def _note(self, url: str) -> None:
        if not url.startswith(("http://127.0.0.1", "ws://127.0.0.1")):
            self.foreign.append(url)


@pytest.fixture
def viewer(browser: Browser, daemon: Harness, tmp_path: Path) -> Generator[Viewer]:
    opened = Viewer(browser, daemon, tmp_path / "小说 novel")
    yield opened
    opened.page.context.close()


def prose(length: int) -> str:
    text = "".join(f"{n}. {SENTENCES[n % 3]}{SENTENCES[(n * 7) % 3]}\n\n" for n in range(length))
    return text[:length]


@pytest.mark.requirement(
    "CN-061", "CN-062", "CN-063", "CN-064", "CN-065", "CN-066", "CN-067", "CN-068", "CN-069"
)
def test_the_whole_story_of_a_secret_and_a_long_file(viewer: Viewer, daemon: Harness) -> None:
    project = {"projectId": viewer.project_id}
    daemon.call("context:creonow:watch:start", project)
    style = viewer.root / ".creonow" / "rules" / "style.md"
    style.write_text(f"# Style\n\n克制。apiKey={SECRET}\n", encoding="utf-8")
    world = viewer.root / ".creonow" / "settings" / "世界观.md"
    world.write_text(prose(25_000), encoding="utf-8")
    viewer.page.get_by_test_id("ai-input").fill("写到灯亮为止")
    viewer.page.get_by_test_id("ai-run").click()
    expect(viewer.page.get_by_test_id("ai-output")).not_to_be_empty(timeout=20_000)
    viewer.open_panel()

    for name in ("rules", "settings", "retrieved", "immediate"):
        expect(viewer.layer(name)).to_be_visible()
    expect(viewer.layer("rules")).to_contain_text(".creonow/rules/style.md")
    expect(viewer.layer("rules")).to_contain_text("***REDACTED***")
    expect(viewer.layer("settings")).to_contain_text(".creonow/settings/世界观.md")
    row = viewer.page.get_by_test_id("ai-context-trim").locator("tr", has_text="世界观.md")
    expect(row).to_contain_text(re.compile("裁剪|舍弃"))
    viewer.picture("story")
    shown = viewer.page.content() + viewer.page.title() + "".join(viewer.heard)
    assert SECRET not in shown
    assert str(viewer.root) not in viewer.page.content() + viewer.page.title()
    assert viewer.foreign == []
    daemon.stop()
    logged = (daemon.user_data / "logs" / "main.log").read_text(encoding="utf-8")
    assert "context_watch_started" in logged
    assert "context_redaction_applied" in logged
    assert SECRET not in logged


def test_the_page_follows_a_file_that_changes(viewer: Viewer) -> None:
    viewer.open_panel()
    expect(viewer.layer("rules")).not_to_contain_text("不写梦境")

    style = viewer.root / ".creonow" / "rules" / "style.md"
    style.write_text("# Style\n\n不写梦境。\n", encoding="utf-8")

    expect(viewer.layer("rules")).to_contain_text("不写梦境", timeout=15_000)
    expect(viewer.page.locator("#difference")).to_contain_text(".creonow/rules/style.md")
    viewer.picture("live")


def test_three_continuations_hit_the_cache_and_a_change_tells_why_it_missed(viewer: Viewer) -> None:
    viewer.open_panel()
    sign = viewer.page.locator("[data-cache]")
    for _ in range(3):
        viewer.page.get_by_test_id("ai-run").click()
        expect(viewer.page.get_by_test_id("ai-run")).to_be_disabled()
        expect(viewer.page.get_by_test_id("ai-run")).to_be_enabled(timeout=20_000)
    expect(sign).to_have_attribute("data-cache", "hit", timeout=15_000)
    viewer.picture("cache-hit")

    (viewer.root / ".creonow" / "settings" / "青石镇.md").write_text("改了。\n", encoding="utf-8")

    expect(sign).to_have_attribute("data-cache", "miss", timeout=15_000)
    expect(viewer.page.locator("#summary")).to_contain_text(".creonow/settings/青石镇.md")
    viewer.picture("cache-miss")


def test_of_two_windows_that_change_the_budget_the_second_must_look_again(
    viewer: Viewer, daemon: Harness
) -> None:
    viewer.open_panel()
    viewer.page.locator("#budget-box > summary").click()
    window = viewer.page.get_by_label("上下文窗口")
    expect(window).to_have_value("8000")
    seen = daemon.call("context:budget:get", {"projectId": viewer.project_id})
    change = {"version": seen["version"], "contextWindowTokens": 12_000}
    daemon.call("context:budget:update", {"projectId": viewer.project_id, "profile": change})

    window.fill("9000")
    viewer.page.locator("#save-budget").click()

    expect(viewer.page.locator("#notice")).to_contain_text("别处刚刚修改过")
    expect(window).to_have_value("12000")
    viewer.picture("budget-conflict")
    window.fill("9000")
    viewer.page.locator("#save-budget").click()
    expect(viewer.page.locator("#notice")).to_contain_text("已保存")
    kept = daemon.call("context:budget:get", {"projectId": viewer.project_id})
    assert kept["contextWindowTokens"] == 9000


def test_a_constraint_added_in_the_page_is_in_the_next_prompt(
    viewer: Viewer, daemon: Harness
) -> None:
    viewer.open_panel()
    viewer.page.locator("#constraints-box > summary").click()
    viewer.page.locator("#new-constraint").fill("全书不出现手机")
    viewer.page.locator("#new-constraint").press("Enter")

    expect(viewer.layer("rules")).to_contain_text("全书不出现手机", timeout=15_000)
    made = daemon.call(
        "context:assemble",
        {
            "projectId": viewer.project_id,
            "documentId": CHAPTER,
            "cursorPosition": 0,
            "skillId": "builtin:continue",
        },
    )
    assert "5. 全书不出现手机" in made["prompt"]
    viewer.picture("constraint")


def test_what_if_touches_nothing(viewer: Viewer, daemon: Harness) -> None:
    viewer.open_panel()
    before = daemon.call("context:budget:get", {"projectId": viewer.project_id})
    viewer.page.locator("#what-if > summary").click()
    viewer.page.locator("#scratch").fill("一段只存在于草稿框里的文字。")
    viewer.page.locator("#slider").fill("3000")

    expect(viewer.page.locator("#summary")).to_contain_text("／3000", timeout=15_000)
    expect(viewer.layer("immediate")).to_contain_text("只存在于草稿框里")
    expect(viewer.page.locator("#summary")).to_contain_text("假设的结果")
    viewer.picture("what-if")
    assert daemon.call("context:budget:get", {"projectId": viewer.project_id}) == before
    viewer.page.locator("#what-if-reset").click()
    expect(viewer.page.locator("#summary")).to_contain_text("／6000", timeout=15_000)


def test_the_page_says_when_the_daemon_is_gone(viewer: Viewer, daemon: Harness) -> None:
    viewer.open_panel()

    daemon.kill()

    expect(viewer.page.locator("#connection")).to_have_attribute("data-state", "disconnected")
    expect(viewer.page.locator("#state")).to_contain_text("creonowd view")
    viewer.picture("disconnected")
    daemon.start()
    address = daemon.call("viewer:open", {"projectId": viewer.project_id})["url"]
    viewer.page.goto(address)
    expect(viewer.page.locator("#connection")).to_have_attribute("data-state", "connected")


def test_an_address_works_once(viewer: Viewer, browser: Browser, daemon: Harness) -> None:
    address = daemon.call("viewer:open", {})["url"]
    first, second = browser.new_context().new_page(), browser.new_context().new_page()
    first.goto(address)
    expect(first.locator("#connection")).to_have_attribute("data-state", "connected")
    second.goto(address)

    expect(second.locator("#notice")).not_to_be_empty()
    assert "token" not in first.url
    first.reload()
    expect(first.locator("#connection")).to_have_attribute("data-state", "connected")
    first.context.close()
    second.context.close()


def test_a_renderer_may_not_inspect(viewer: Viewer, daemon: Harness) -> None:
    token = daemon.call("session:grant", {"role": "renderer"})["token"]
    script = """([address, token, projectId]) => new Promise((done) => {
      const socket = new WebSocket(address);
      const send = (id, method, params) =>
        socket.send(JSON.stringify({jsonrpc: "2.0", id, method, params}));
      socket.onopen = () => send(1, "initialize", {token});
      socket.onmessage = (event) => {
        const reply = JSON.parse(event.data);
        if (reply.id === 2) done(reply.error.data.code);
        else send(2, "context:inspect", {projectId, documentId: "x", cursorPosition: 0,
                                         skillId: "general", debugMode: true});
      };
    })"""
    address = viewer.origin.replace("http://", "ws://") + "/rpc"

    refused = viewer.page.evaluate(script, [address, token, viewer.project_id])

    assert refused == "CONTEXT_INSPECT_FORBIDDEN"


def test_both_themes_and_both_languages(viewer: Viewer) -> None:
    viewer.open_panel()
    viewer.picture("light")
    viewer.page.locator("#theme").click()
    expect(viewer.page.locator("html")).to_have_attribute("data-theme", "dark")
    viewer.picture("dark")

    viewer.page.locator("#language").click()

    expect(viewer.page.locator("h1")).to_have_text("Context viewer")
    expect(viewer.page.locator("html")).to_have_attribute("lang", "en")


def test_search_jump_copy_and_export(viewer: Viewer, tmp_path: Path) -> None:
    viewer.open_panel()
    viewer.page.locator("#search").fill("沈青禾")

    expect(viewer.layer("rules").locator("mark").first).to_have_text("沈青禾")
    assert int(viewer.page.locator("#found").inner_text()) >= 1
    viewer.page.locator("#search").fill("")
    viewer.page.locator("#jumps button").first.click()
    expect(viewer.page.locator("details.fragment[open]")).to_have_count(1)
    with viewer.page.expect_download() as download:
        viewer.page.locator("#export").click()
    download.value.save_as(tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    assert "prompt" not in report["inspect"]
    assert re.fullmatch("[0-9a-f]{64}", report["inspect"]["promptHash"])
    assert str(viewer.root) not in json.dumps(report, ensure_ascii=False)


def test_five_hundred_constraints_are_capped_with_a_way_to_see_all(
    viewer: Viewer, daemon: Harness
) -> None:
    roomy = {"version": 1, "contextWindowTokens": 60_000}
    daemon.call("context:budget:update", {"projectId": viewer.project_id, "profile": roomy})
    items = [f"第{n}条约束，关于{SENTENCES[n % 3]}" for n in range(500)]
    path = viewer.root / ".creonow" / "rules" / "constraints.json"
    path.write_text(json.dumps({"version": 1, "items": items}), encoding="utf-8")
    viewer.page.locator("#input").fill("看")
    viewer.open_panel()

    expect(viewer.layer("rules").locator(".fragment")).to_have_count(40, timeout=15_000)
    viewer.layer("rules").get_by_role("button", name="全部显示").click()
    assert viewer.layer("rules").locator(".fragment").count() >= 500


def test_the_policy_lets_nothing_in_from_elsewhere(viewer: Viewer) -> None:
    answer = viewer.page.request.get(viewer.origin + "/")
    missing = viewer.page.request.get(viewer.origin + "/../../etc/passwd")

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert missing.status == 404


def test_everything_can_be_reached_by_keyboard_and_has_a_name(viewer: Viewer) -> None:
    viewer.open_panel()

    nameless = viewer.page.evaluate(
        """() => [...document.querySelectorAll("button, input, select, textarea, summary")]
          .filter((one) => !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim()))
          .map((one) => one.outerHTML)"""
    )

    assert nameless == []
    viewer.page.locator("#project").focus()
    for _ in range(6):
        viewer.page.keyboard.press("Tab")
    assert viewer.page.evaluate("document.activeElement.tagName") != "BODY"
