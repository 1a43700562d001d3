"""The keyboard as the only way into the page: what can be pointed at, what Tab comes to, what a key does there.

Whatever listens to a pointer is found by listening to who listens. So a new control that only a
pointer can use makes a story fail without being named anywhere.
"""

import re

from playwright.sync_api import Locator, expect

from e2e.viewer.page import Viewer

# Far more than any state of the page has.
MOST_STOPS = 600

LISTEN = """(() => {
  const pointer = new Set(["click", "dblclick", "mousedown", "mouseup", "pointerdown", "pointerup", "touchstart"]);
  const add = EventTarget.prototype.addEventListener;
  window.pointedAt = new Set();
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (pointer.has(type) && this instanceof Element) window.pointedAt.add(this);
    return add.call(this, type, ...rest);
  };
})();"""

PREPARE = """(within) => {
  const native = "a[href], button, input, select, textarea, summary";
  const editor = document.getElementById("manuscript").shadowRoot;
  const seen = (one) => one.isConnected && one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
  const holder = document.querySelector(within);
  const isWithin = (one) => holder.contains(one) || holder.contains(one.getRootNode().host ?? null);
  const all = [document, editor].flatMap((root) => [...root.querySelectorAll("*")]).filter((one) => isWithin(one) && seen(one) && !one.disabled);
  const isTab = (one) => one.getAttribute("role") === "tab" && one.parentElement.querySelectorAll("[role=tab][tabindex='0']").length === 1;
  const isOption = (one) => one.getAttribute("role") === "option" && document.querySelector(`[role=combobox][aria-controls="${one.parentElement.id}"]`);
  const label = (one) => `${one.tagName} ${one.id || one.dataset.key || one.getAttribute("aria-label") || one.className} ${one.textContent.slice(0, 40)}`.trim();
  const stops = all.filter((one) => one.tabIndex >= 0 && (!one.isContentEditable || one.getAttribute("contenteditable") === "true"));
  const pointed = all.filter((one) => window.pointedAt.has(one) || (one.matches(native) && one.tabIndex < 0));
  const mouseOnly = pointed.filter((one) => !stops.includes(one) && !isTab(one) && !isOption(one)).map(label);
  const focused = () => {
    let one = document.activeElement;
    while (one?.shadowRoot?.activeElement) one = one.shadowRoot.activeElement;
    return one;
  };
  const hold = (event) => {
    window.keys.did.add(window.keys.focused());
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  window.keys?.release();
  for (const type of ["click", "beforeinput"]) addEventListener(type, hold, true);
  const release = () => { for (const type of ["click", "beforeinput"]) removeEventListener(type, hold, true); };
  window.keys = { stops, seen, label, focused, release, came: new Set(), did: new Set() };
  return { count: stops.length, mouseOnly };
}"""

# What to press where the focus is: nothing where it is known, or where the browser itself does all.
ARRIVE = """() => {
  const one = window.keys.focused();
  const isNew = window.keys.stops.includes(one) && !window.keys.came.has(one);
  window.keys.came.add(one);
  const left = window.keys.stops.filter((stop) => window.keys.seen(stop) && !window.keys.came.has(stop)).length;
  const isField = one.matches("input:not([type=checkbox]), textarea, [contenteditable=true]");
  const key = !isNew ? "" : one.matches("[type=checkbox]") ? "Space" : isField ? (one.type === "number" ? "1" : "x")
    : one.matches("button, a[href], summary") ? "Enter" : "";
  return { left, key };
}"""

OUTCOME = """() => {
  const { stops, seen, label, came, did, release } = window.keys;
  release();
  const here = stops.filter(seen);
  const scrolls = (one) => ["tabpanel", "region", "group", "slider"].includes(one.getAttribute("role")) || one.matches("select, pre, .piece-text");
  return {
    missed: here.filter((one) => !came.has(one)).map(label),
    idle: here.filter((one) => came.has(one) && !did.has(one) && !scrolls(one) && !one.readOnly).map(label),
  };
}"""

IS_FOCUSED = "(one) => one === (one.getRootNode().activeElement)"


def listen(viewer: Viewer) -> None:
    """Load the page again, and from its first line on note who listens to a pointer."""
    viewer.page.add_init_script(LISTEN)
    viewer.page.reload()
    viewer.expect_connection("connected")
    expect(viewer.at("#state")).to_have_attribute("data-state", re.compile("ready|error"))


def faults(viewer: Viewer, within: str = "body") -> list[str]:
    """Return the controls that only a pointer can use, that Tab does not reach, or where keys do nothing.

    What a key would do is noted and held back, so the page stays as it is.
    """
    page = viewer.page
    page.keyboard.up("Shift")
    prepared = page.evaluate(PREPARE, within)
    assert prepared["count"], within
    for _ in range(MOST_STOPS):
        arrived = page.evaluate(ARRIVE)
        if arrived["key"]:
            page.keyboard.press(arrived["key"])
        if not arrived["left"]:
            break
        page.keyboard.press("Tab")
    found = page.evaluate(OUTCOME)
    return [
        *(f"only by pointer: {one}" for one in prepared["mouseOnly"]),
        *(f"not reached: {one}" for one in found["missed"]),
        *(f"keys do nothing: {one}" for one in found["idle"]),
    ]


def reach(viewer: Viewer, target: Locator, key: str = "Tab") -> None:
    """Press Tab, or another key, until the focus is where an author wants it."""
    for _ in range(MOST_STOPS):
        if target.count() and target.evaluate(IS_FOCUSED):
            return
        viewer.page.keyboard.press(key)
    raise AssertionError(f"{key} never came to {target}")


def use(viewer: Viewer, target: Locator, key: str = "Enter") -> None:
    """Go to a control by Tab and press a key there."""
    reach(viewer, target)
    viewer.page.keyboard.press(key)
