"""The viewer's page as a story holds it: what it shows, its traffic written down, its pictures."""

import re
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack
from urllib.parse import parse_qsl

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, WebSocket, expect

from creonowd.testing.harness import Harness

PICTURES = Path(__file__).parents[1] / "artifacts"
PATIENCE_MS = 30_000
SENTENCES = ("江水漫过第三级石阶，", "没有人记得那年的水位，", "灯塔的光一夜没有熄，")

expect.set_options(timeout=PATIENCE_MS)


class Look(TypedDict, total=False):
    """How wide the window is, and what its owner prefers."""

    width: int
    locale: str
    theme: str
    token: str


class Viewer:
    """One window on one project. Leaving it fails the story if the page erred or showed a path."""

    def __init__(self, browser: Browser, daemon: Harness, root: Path, **look: Unpack[Look]) -> None:
        self.root = root
        self.daemon = daemon
        made = daemon.call("project:create", {"rootPath": str(root)})
        self.project: dict[str, Any] = {"projectId": made["projectId"]}
        daemon.call("context:creonow:ensure", self.project)
        self.traffic: list[str] = []
        self.troubles: list[str] = []
        self.page = _page(browser, look)
        self.page.on("websocket", self._listen)
        self.page.on("request", lambda request: self._note(request.url))
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on("console", self._hear)
        address: str = daemon.call("viewer:open", self.project)["url"]
        self.origin, _, _ = address.partition("/#")
        if token := look.get("token"):
            address = f"{self.origin}/#token={token}&project={self.project['projectId']}"
        self.page.goto(address)
        self.expect_connection("connected")
        expect(self.page.get_by_test_id("ai-run")).to_be_enabled()
        expect(self.at("#state")).to_have_attribute("data-state", re.compile("ready|error"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        shown = "".join((*self.traffic, self.page.content(), self.page.title(), self.page.url))
        self.page.context.close()
        if error is None:
            assert self.troubles == [], self.troubles
            assert str(self.root) not in shown, "the project's path was shown"
            assert str(self.daemon.home) not in shown, "the user's path was shown"

    def open_panel(self) -> None:
        """Show what the model sees, unless it is shown already."""
        toggle = self.page.get_by_test_id("ai-context-toggle")
        if toggle.get_attribute("aria-expanded") != "true":
            toggle.click()
        expect(self.page.get_by_test_id("ai-context-panel")).to_be_visible()
        expect(self.at("#tabs-box")).to_be_visible()

    def tab(self, name: str) -> Locator:
        """Open one of the tabs: sees, left-out, prompt or since."""
        self.at(f"#tab-{name}").click()
        return self.at(f"#{name}")

    def drawer(self, box: str) -> Locator:
        """Open one box of the drawer: budget, rules, ai, usage, developer or export."""
        if self.at("#drawer").is_hidden():
            self.at("#drawer-toggle").click()
        opened = self.at(f"#{box}-box")
        if opened.get_attribute("open") is None:
            opened.locator("summary").first.click()
        return opened

    def close_drawer(self) -> None:
        """Close the drawer."""
        self.at("#drawer-close").click()

    @property
    def text(self) -> Locator:
        """The manuscript in its editor."""
        return self.at(".cm-content")

    def put_caret(self, at: int, *, anchor: int | None = None) -> None:
        """Put the caret, or a selection from `anchor`, where an author would click."""
        self.page.evaluate(
            """async ([anchor, at]) => {
              const manuscript = await import("/manuscript.js");
              manuscript.select(anchor, at);
              manuscript.focusText();
            }""",
            [at if anchor is None else anchor, at],
        )

    def wait_until(self, holds: Callable[[], object]) -> None:
        """Wait for what no element shows."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not holds():
            assert time.monotonic() < deadline
            self.page.wait_for_timeout(20)

    def wait_for_text(self, part: str) -> None:
        """Wait until the manuscript holds a text, be it in view or not."""
        reads = "async (part) => (await import('/manuscript.js')).currentText().includes(part)"
        self.wait_until(lambda: self.page.evaluate(reads, part))

    def settle(self) -> None:
        """Wait until the page shows what the model sees at the caret, with all that the index has."""
        reads = """async () => {
          const {inspection, isIndexing} = await import("/inspection.js");
          const {whereabouts} = await import("/place.js");
          const {request, result} = inspection.shown ?? {};
          if (inspection.busy || !request || isIndexing(result)) return false;
          const fields = ["documentId", "cursorPosition", "skillId", "selection", "pinned"];
          const [now, then] = [whereabouts(), request].map((one) => JSON.stringify(fields.map((name) => one[name])));
          return now === then;
        }"""
        self.wait_until(lambda: self.page.evaluate(reads))

    def where(self) -> dict[str, str]:
        """The place that the address names, once the browser would come back to it after a reload."""
        self.page.evaluate("async () => (await import('/place.js')).writeAddress()")
        browser: Any = self.page.context.new_cdp_session(self.page)

        def is_known() -> bool:
            history = browser.send("Page.getNavigationHistory")
            known = history["entries"][history["currentIndex"]]["url"]
            return bool(known == self.page.url)

        self.wait_until(is_known)
        browser.detach()
        return dict(parse_qsl(self.page.url.partition("#")[2]))

    def run(self) -> None:
        """Run the chosen skill and wait until it has ended."""
        output = self.page.get_by_test_id("ai-output")
        before = (output.get_attribute("data-run") if output.count() else "") or ""
        self.page.get_by_test_id("ai-run").click()
        expect(output).to_have_attribute("data-run", re.compile(f"^run_(?!{before[4:] or '-'})"))

    def layer(self, name: str) -> Locator:
        """One of the four layers."""
        return self.page.get_by_test_id(f"ai-context-layer-{name}")

    def at(self, selector: str, *, has_text: str | None = None) -> Locator:
        """Any other place of the page."""
        return self.page.locator(selector, has_text=has_text)

    def write(self, path: str, text: str) -> None:
        """Write a file of the project as an editor would."""
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="")

    def expect_connection(self, state: str) -> None:
        """Wait until the page says that this is how its connection is."""
        expect(self.page.locator("#connection")).to_have_attribute("data-state", state)

    def picture(self, name: str) -> None:
        """Keep what the whole page looks like now."""
        PICTURES.mkdir(exist_ok=True)
        self.page.evaluate("scrollTo(0, 0)")
        self.page.screenshot(path=PICTURES / f"{name}.png", full_page=True)

    def _listen(self, socket: WebSocket) -> None:
        for direction in ("framesent", "framereceived"):
            socket.on(direction, lambda frame: self.traffic.append(str(frame)))

    def _note(self, url: str) -> None:
        if not url.startswith((self.origin, "blob:" + self.origin)):
            self.troubles.append(f"asked elsewhere: {url}")

    def _hear(self, message: ConsoleMessage) -> None:
        broken = "net::ERR_" in message.text or "status of 426" in message.text
        if message.type in {"error", "warning"} and not broken:
            self.troubles.append(message.text)


def _page(browser: Browser, look: Look) -> Page:
    theme = "dark" if look.get("theme") == "dark" else "light"
    context = browser.new_context(
        viewport={"width": look.get("width", 1440), "height": 900},
        locale=look.get("locale", "zh-CN"),
        color_scheme=theme,
        permissions=["clipboard-read", "clipboard-write"],
    )
    return context.new_page()


def prose(length: int) -> str:
    """Make varied prose of so many characters."""
    lines = (f"{n}. {SENTENCES[n % 3]}{SENTENCES[n * 7 % 3]}\n\n" for n in range(length))
    return "".join(lines)[:length]
