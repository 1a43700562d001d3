"""Stories: the page on a wide, a middling and a narrow window, in both themes and both languages."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer, prose

LOOKS = (
    ("1440", "light", "en-GB"),
    ("1024", "dark", "zh-CN"),
    ("390", "light", "zh-CN"),
    ("390", "dark", "en-GB"),
)
ENOUGH_FOR_TEXT = 4.5
ENOUGH_FOR_EDGES = 3.0

FAINT = """([text, edges]) => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], [x, y, z]) => [r * a + x * (1 - a), g * a + y * (1 - a), b * a + z * (1 - a)];
  const behind = (element) => {
    if (!element) return [255, 255, 255];
    const own = channels(getComputedStyle(element).backgroundColor);
    return own[3] === 0 ? behind(element.parentElement) : over(own, behind(element.parentElement));
  };
  const light = (rgb) => rgb.map((value) => value / 255)
    .map((value) => (value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4))
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (one, two) => {
    const [dark, bright] = [light(one), light(two)].sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const described = (element, measured) => `${measured.toFixed(2)} ${element.tagName}.${element.className} ${element.textContent.slice(0, 30)}`;
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(element);
    const field = element.matches("input, textarea, select, button:not(.quiet)");
    const written = field || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const measured = contrast(over(channels(style.color), behind(element)), behind(element));
    if (written && !element.closest("svg, option") && measured < text) faint.push(described(element, measured));
    const edge = contrast(channels(style.borderTopColor), behind(element.parentElement));
    if (field && element.type !== "range" && edge < edges) faint.push(`edge ${described(element, edge)}`);
  }
  return faint;
}"""

NAMELESS = """() => [...document.querySelectorAll("button, input, select, textarea, summary, [role], pre")]
  .filter((one) => !(one.labels?.length || one.getAttribute("aria-label") || one.getAttribute("aria-labelledby")
    || one.textContent.trim() || one.matches("[role=status], [role=alert], [role=search]")))
  .map((one) => one.outerHTML)"""

pytestmark = pytest.mark.xdist_group("another browser")


@pytest.mark.parametrize("look", LOOKS, ids="-".join)
def test_the_page_is_legible(
    browser: Browser, daemon: Harness, novel: Path, look: tuple[str, str, str]
) -> None:
    width, theme, locale = look
    with Viewer(browser, daemon, novel, width=int(width), theme=theme, locale=locale) as viewer:
        viewer.write(".creonow/rules/style.md", "token=ghp_0123456789abcdefghijABCDEFGHIJ012345\n")
        viewer.write(".creonow/settings/世界.md", prose(25_000))
        viewer.run()
        viewer.open_panel()
        expect(viewer.at("[data-prefix]")).to_have_attribute("data-prefix", "unchanged")
        viewer.write(".creonow/settings/世界.md", "短了。\n")
        expect(viewer.at("[data-prefix]")).to_have_attribute("data-prefix", "changed")
        for box in ("#what-if", "#constraints-box", "#budget-box", "#difference .change"):
            viewer.at(f"{box} > summary").first.click()
        viewer.at("#search").fill("水文站")
        expect(viewer.at("#layers mark").first).to_be_visible()

        faint = viewer.page.evaluate(FAINT, [ENOUGH_FOR_TEXT, ENOUGH_FOR_EDGES])
        wider = viewer.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        nameless = viewer.page.evaluate(NAMELESS)
        viewer.picture(f"look-{width}-{theme}-{locale[:2]}")

    assert faint == []
    assert wider == 0
    assert nameless == []


def test_the_measure_of_contrast_finds_what_is_too_faint(viewer: Viewer) -> None:
    viewer.page.evaluate("document.querySelector('h1').style.color = '#999999'")

    faint = viewer.page.evaluate(FAINT, [ENOUGH_FOR_TEXT, ENOUGH_FOR_EDGES])

    assert [one.split()[1] for one in faint] == ["H1."]


def test_theme_and_language_can_be_switched_and_are_remembered(viewer: Viewer) -> None:
    viewer.open_panel()
    viewer.at("#theme").click()
    viewer.at("#language").click()

    expect(viewer.at("html")).to_have_attribute("data-theme", "dark")
    expect(viewer.at("html")).to_have_attribute("lang", "en")
    expect(viewer.at("h1")).to_have_text("Context viewer")
    expect(viewer.layer("rules")).to_contain_text("within the Rules line")
    assert viewer.page.title() == "CreoNow · Context viewer"
    viewer.page.reload()
    viewer.expect_connection("connected")
    expect(viewer.at("html")).to_have_attribute("data-theme", "dark")
    expect(viewer.at("h1")).to_have_text("Context viewer")


def test_everything_can_be_done_with_the_keyboard(viewer: Viewer) -> None:
    viewer.at("#project").focus()
    reached = [walk(viewer) for _ in range(9)]

    wanted = [
        "language",
        "theme",
        "document",
        "cursor",
        "selection",
        "skill",
        "input",
        "run",
        "toggle",
    ]
    assert reached == wanted
    viewer.at("#toggle").focus()
    viewer.page.keyboard.press("Enter")
    expect(viewer.at("#contents")).to_be_visible()
    expect(viewer.at("#toggle")).to_have_attribute("aria-expanded", "true")
    viewer.page.keyboard.press("Tab")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert viewer.page.evaluate(outline) == "solid"
    viewer.at("#what-if > summary").press("Enter")
    viewer.at("#slider").press("ArrowRight")
    expect(viewer.at("#summary")).to_contain_text("/ 6001 tokens")
    first = viewer.layer("rules").locator("summary").first
    first.press("Enter")
    expect(viewer.layer("rules").locator("details").first).to_have_attribute("open", "")


def walk(viewer: Viewer) -> str:
    """Press Tab and return where that leads."""
    viewer.page.keyboard.press("Tab")
    return viewer.page.evaluate("document.activeElement.id")


def test_the_focus_stays_where_it_is_while_files_change(viewer: Viewer) -> None:
    viewer.open_panel()
    summary = viewer.layer("rules").locator("summary", has_text="老周")
    summary.focus()

    viewer.write(".creonow/rules/style.md", "# 写作风格\n\n- 不写梦境。\n")

    expect(viewer.layer("rules")).to_contain_text("不写梦境")
    expect(summary).to_be_focused()
