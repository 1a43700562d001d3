"""The writer's desk in a real Chromium: how soon it is seen, and how soon a key shows its effect.

A page is updated when what the model sees at the new place is painted: the bar, the sentence, the
list and the map, not only the letter in the text.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psutil

from creonowd.daemon import endpoint
from creonowd.testing.browser import chromium
from creonowd.testing.harness import Harness
from testing.corpus import english_chapters, origin

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

OPENED = 5
ALONE = 15
KEYS = 60
PAUSE_MS = 50
WITHIN_MS = 400
PATIENCE_S = 60
SAMPLE = Path(__file__).parents[1] / "creonowd" / "sample" / "en"
SAMPLE_PLACE = "chapters/08-on-the-bank.md"

FIRST_VIEW = """() => {
  const look = new MutationObserver(() => {
    if (!document.querySelector("#headline em")) return;
    look.disconnect();
    requestAnimationFrame(() => setTimeout(() => { window.firstView = performance.now(); }));
  });
  look.observe(document, { childList: true, subtree: true });
}"""

KEY_PROBE = """async () => {
  const { onSignal } = await import("/signals.js");
  const { inspection } = await import("/inspection.js");
  const typed = () => inspection.shown.result.layersDetail.immediate.content.split("~").length - 1;
  Object.assign(window, { keys: [], waits: [], updates: 0 });
  document.addEventListener("keydown", (event) => window.keys.push(event.timeStamp), true);
  onSignal("inspected", () => {
    const count = typed();
    requestAnimationFrame(() => setTimeout(() => {
      window.updates += 1;
      while (window.waits.length < Math.min(count, window.keys.length)) window.waits.push(performance.now() - window.keys[window.waits.length]);
    }));
  });
}"""


class TypingTimes(NamedTuple):
    """What typing on took: each key's wait, the updates, and the processor's time in both."""

    waits: list[float]
    updates: int
    page_ms: float
    daemon_ms: float


def main(_argv: Sequence[str]) -> None:
    """Measure three novels, a small one, a long one and one with very many pieces."""
    novels: dict[str, tuple[dict[str, str], str, dict[str, int]]] = {
        "the sample, 12 chapters": (_sample(), SAMPLE_PLACE, {}),
        "40 chapters": (english_chapters(), "chapters/40.md", {}),
        "500 rules, 200 notes": (_many(), "chapters/12.md", {"totalBudgetTokens": 60_000}),
    }
    before = psutil.getloadavg()[0]
    columns = {name: _measure(*novel) for name, novel in novels.items()}
    busy = f"{before:.1f} at the start and {psutil.getloadavg()[0]:.1f} at the end"
    print(f"Long text: {origin()}. Milliseconds by the clock unless it says otherwise.")
    print(f"Load of the machine, this bench included: {busy}.\n")
    print(f"| | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for row in next(iter(columns.values())):
        print(f"| {row} | {' | '.join(column[row] for column in columns.values())} |")


def _sample() -> dict[str, str]:
    files = (path for path in SAMPLE.rglob("*") if path.is_file())
    return {path.relative_to(SAMPLE).as_posix(): path.read_text(encoding="utf-8") for path in files}


def _many() -> dict[str, str]:
    rules = [f"Rule {n}: nobody speaks of the lamp number {n}." for n in range(500)]
    note = "The bridge number {n} has seven arches and a keeper who counts the boats.\n"
    notes = {f".creonow/settings/bridge-{n}.md": note.format(n=n) for n in range(200)}
    constraints = json.dumps({"version": 1, "items": rules})
    return english_chapters(12) | notes | {".creonow/rules/constraints.json": constraints}


def _measure(files: Mapping[str, str], document: str, budget: Mapping[str, int]) -> dict[str, str]:
    with (
        tempfile.TemporaryDirectory() as home,
        Harness(Path(home), CREONOW_WARM_UP="true") as daemon,
        chromium() as browser,
    ):
        for name in ("another", "novel"):
            project = daemon.make_project(name, files)
            page = _open_page(browser, daemon, project["projectId"], document, budget)
        first = page.evaluate("window.firstView")
        again = [_reload_seconds(page) for _ in range(OPENED)]
        page.locator(".cm-content").press("Control+End")
        page.wait_for_timeout(1000)
        page.evaluate(KEY_PROBE)
        alone = [_one_key(page) for _ in range(ALONE)]
        typing = _type_on(page, daemon)
    within = len([one for one in typing.waits if one < WITHIN_MS])
    return {
        "first view of a new project": f"{first:.0f}",
        f"first view again, median of {OPENED}": f"{statistics.median(again):.0f}",
        "one key, median · worst": f"{statistics.median(alone):.0f} · {max(alone):.0f}",
        "typing on, 20 keys a second, median · worst": (
            f"{statistics.median(typing.waits):.0f} · {max(typing.waits):.0f}"
        ),
        f"keys that show their effect within {WITHIN_MS} ms": f"{within} of {KEYS}",
        "updates of the page meanwhile": f"{typing.updates}",
        "processor per update, page · daemon": (
            f"{typing.page_ms / typing.updates:.0f} · {typing.daemon_ms / typing.updates:.0f}"
        ),
    }


def _open_page(
    browser: "Browser",
    daemon: Harness,
    project_id: str,
    document: str,
    budget: Mapping[str, int],
) -> "Page":
    """Open a project that the daemon has not read before."""
    project: dict[str, Any] = {"projectId": project_id}
    if budget:
        version = daemon.call("context:budget:get", project)["version"]
        profile = {"version": version, **budget}
        daemon.call("context:budget:update", project | {"profile": profile})
    page = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en").new_page()
    page.add_init_script(f"({FIRST_VIEW})()")
    page.goto(daemon.call("viewer:open", project | {"documentId": document})["url"])
    _wait(page, "window.firstView")
    page.wait_for_timeout(3000)
    return page


def _reload_seconds(page: "Page") -> float:
    page.reload()
    _wait(page, "window.firstView")
    page.wait_for_timeout(500)
    return page.evaluate("window.firstView")


def _wait(page: "Page", holds: str) -> None:
    """Wait for what the page knows; its policy allows no code that is made of a text."""
    deadline = time.monotonic() + PATIENCE_S
    while not page.evaluate(holds):
        assert time.monotonic() < deadline, holds
        page.wait_for_timeout(20)


def _one_key(page: "Page") -> float:
    """Press one key after a pause, and take it away again."""
    page.evaluate("Object.assign(window, { keys: [], waits: [] })")
    page.keyboard.press("~")
    _wait(page, "window.waits.length")
    waited = page.evaluate("window.waits[0]")
    page.keyboard.press("Backspace")
    page.wait_for_timeout(400)
    return waited


def _type_on(page: "Page", daemon: Harness) -> TypingTimes:
    found = endpoint.read(daemon.user_data)
    assert found is not None
    process = psutil.Process(found.pid)
    session: Any = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate("Object.assign(window, { keys: [], waits: [], updates: 0 })")
    before = _busy_ms(process), _task_ms(session)
    page.keyboard.type("~" * KEYS, delay=PAUSE_MS)
    _wait(page, f"window.waits.length >= {KEYS}")
    after = _busy_ms(process), _task_ms(session)
    waits: list[float] = page.evaluate("window.waits")
    updates: int = page.evaluate("window.updates")
    return TypingTimes(waits, updates, after[1] - before[1], after[0] - before[0])


def _busy_ms(process: psutil.Process) -> float:
    times = process.cpu_times()
    return 1000 * (times.user + times.system)


def _task_ms(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return 1000 * next(one["value"] for one in metrics if one["name"] == "TaskDuration")
