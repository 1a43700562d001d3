"""Stories: the desk on a wide, a middling and a narrow window, in both themes and both languages."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from creonowd.cli.view import SAMPLES
from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer, prose

AXE = Path(__file__).parents[2] / "protocol" / "node_modules" / "axe-core" / "axe.min.js"
SERIOUS = {"serious", "critical"}
LOOKS = tuple((width, locale) for width in ("1440", "1024", "390") for locale in ("en-GB", "zh-CN"))
THEMES = ("light", "dark")
# Words for developers, which stand in their own box alone.
CODE = re.compile(r"\b[A-Z]{3,}_[A-Z_]+\b|\b[0-9a-f]{40,}\b|\bcon_\w{10,}")
# What a Chinese page may say in Latin letters.
LATIN = {
    "AI",
    "token",
    "English",
    "Ctrl",
    "K",
    "OpenAI",
    "creonow",
    "creonowd",
    "ai",
    "add",
    "style",
    "md",
}
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
    const field = element.matches("input, textarea, select, button:not(.link, .close, .eye, .chapter, .subject, [role=tab])");
    if (element.closest(".secret, .bar, .track, .key, [aria-hidden=true]")) continue;
    const written = field || [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const measured = contrast(over(channels(style.color), behind(element)), behind(element));
    if (written && !element.closest("svg, option") && measured < text) faint.push(described(element, measured));
    const edge = contrast(channels(style.borderTopColor), behind(element.parentElement));
    if (field && element.type !== "range" && edge < edges) faint.push(`edge ${described(element, edge)}`);
  }
  return faint;
}"""


@pytest.mark.parametrize("look", LOOKS, ids="-".join)
def test_the_desk_is_legible_and_fits(
    browser: Browser, daemon: Harness, novel: Path, look: tuple[str, str]
) -> None:
    """Every part of it, in both languages, at three widths, each in both themes."""
    width, locale = look
    with Viewer(browser, daemon, novel, width=int(width), locale=locale) as viewer:
        viewer.write(".creonow/rules/style.md", "token=ghp_0123456789abcdefghijABCDEFGHIJ012345\n")
        viewer.write(".creonow/settings/世界.md", prose(25_000))
        viewer.daemon.call("e2e:ai:script", {"steps": [{"text": "他走了！码头空着。"}]})
        viewer.run()
        found: list[str] = []
        for step in walk_through(viewer, narrow=width == "390"):
            found += [f"{step}: {one}" for one in (*axe(viewer), *codes(viewer))]
            for theme in THEMES:
                viewer.page.evaluate(
                    "(theme) => { document.documentElement.dataset.theme = theme; }", theme
                )
                found += [f"{step}, {theme}: {one}" for one in measures(viewer)]
                viewer.picture(f"look-{width}-{theme}-{locale[:2]}-{step}")

    assert found == []


def codes(viewer: Viewer) -> list[str]:
    """What is meant for developers and stands elsewhere than in their box."""
    visible = """() => {
      const box = document.getElementById("developer-box");
      const was = box.open;
      box.open = false;
      const text = document.body.innerText;
      box.open = was;
      return text;
    }"""
    return [f"a code: {one}" for one in CODE.findall(viewer.page.evaluate(visible))]


def walk_through(viewer: Viewer, *, narrow: bool, names: str = "") -> Iterator[str]:
    """Show every part of the desk, one after the other."""
    yield "text"
    if narrow:
        viewer.at("#pane-sees").click()
    viewer.at("#sees summary").first.click()
    yield "sees"
    for tab in ("left-out", "prompt", "since"):
        viewer.tab(tab)
        yield tab
    if narrow:
        viewer.at("#pane-ask").click()
    viewer.at("#question").fill("n" if names == "en" else "沈" if not names else "何")
    expect(viewer.at("#completions li").first).to_be_visible()
    yield "completion"
    viewer.at("#question").press("ArrowDown")
    viewer.at("#question").press("Enter")
    expect(viewer.at("#answer h3")).to_be_visible()
    yield "answer"
    for box in ("budget", "rules", "ai", "usage", "developer", "export"):
        viewer.drawer(box)
    expect(viewer.at("#ai-box code")).to_be_visible()
    yield "drawer"
    viewer.close_drawer()


def troubles(viewer: Viewer) -> list[str]:
    """What is too faint, too wide or has no name."""
    return [*measures(viewer), *axe(viewer)]


def measures(viewer: Viewer) -> list[str]:
    """What is too faint or too wide."""
    page = viewer.page
    faint = page.evaluate(FAINT, [ENOUGH_FOR_TEXT, ENOUGH_FOR_EDGES])
    over = page.evaluate(
        "[document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]"
    )
    return [*faint, *([] if over == [0, 0] else [f"overflows by {over}"])]


def axe(viewer: Viewer) -> list[str]:
    """What axe-core finds that is serious."""
    page = viewer.page
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    violations = page.evaluate("async () => (await axe.run()).violations")
    return [
        f"{one['id']}: {[node['html'][:120] for node in one['nodes'][:3]]}"
        for one in violations
        if one["impact"] in SERIOUS
    ]


def test_the_measures_find_what_is_too_faint_and_what_has_no_name(viewer: Viewer) -> None:
    viewer.page.evaluate(
        """() => {
          document.querySelector("h1").style.color = "#999999";
          document.getElementById("drawer-toggle").textContent = "";
        }"""
    )

    found = "\n".join(troubles(viewer))

    assert " H1." in found
    assert "button-name" in found


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_speaks_one_language(browser: Browser, daemon: Harness, language: str) -> None:
    """On a novel of that language no word of the page itself is in the other."""
    sample = SAMPLES / language
    files = {
        path.relative_to(sample).as_posix(): path.read_text(encoding="utf-8")
        for path in sample.rglob("*")
        if path.is_file()
    }
    project = daemon.make_project(f"sample-{language}", files)
    locale = "zh-CN" if language == "zh" else "en-GB"
    with Viewer(browser, daemon, Path(project["rootPath"]), locale=locale) as viewer:
        said: set[str] = set()
        for _ in walk_through(viewer, narrow=False, names=language):
            said |= set(spoken(viewer, language))

    assert said <= (LATIN if language == "zh" else {"中文"})


def spoken(viewer: Viewer, language: str) -> list[str]:
    """Return the words of the other language that the page shows; what the author wrote is not its own."""
    visible = """() => {
      const theirs = ["#developer-box", "#prompt", "#project", "#skill", ".path", ".piece-name", ".piece-preview", ".piece-text",
        "#completions", "#answer", ".lines", "#rules-box", "#cast", "#chapters", "#run-bar", "#usage-box tbody"];
      const hidden = [...document.querySelectorAll(theirs.join())];
      const was = hidden.map((one) => one.style.display);
      hidden.forEach((one) => { one.style.display = "none"; });
      const text = document.body.innerText;
      hidden.forEach((one, at) => { one.style.display = was[at]; });
      return text;
    }"""
    pattern = r"[A-Za-z]+" if language == "zh" else r"[\u3400-\u9fff]+"
    return re.findall(pattern, viewer.page.evaluate(visible))


def test_theme_and_language_can_be_switched_and_are_remembered(viewer: Viewer) -> None:
    viewer.at("#theme").click()
    viewer.at("#language").click()

    expect(viewer.at("html")).to_have_attribute("data-theme", "dark")
    expect(viewer.at("html")).to_have_attribute("lang", "en")
    expect(viewer.at("h1")).to_have_text("The writer's desk")
    expect(viewer.at("#headline")).to_contain_text(
        re.compile(r"^Continue sees your last \d+ words")
    )
    expect(viewer.layer("rules")).to_contain_text("always included")
    assert viewer.page.title() == "CreoNow · The writer's desk"
    viewer.page.reload()
    viewer.expect_connection("connected")
    expect(viewer.at("html")).to_have_attribute("data-theme", "dark")
    expect(viewer.at("h1")).to_have_text("The writer's desk")


def test_numbers_have_their_plural_forms_and_separators(viewer: Viewer) -> None:
    said = viewer.page.evaluate(
        """async () => {
          const {listing, string, switchLanguage} = await import("/language.js");
          const say = () => [0, 1, 2, 1234].map((count) => [string("matches", count), string("people", count)]);
          const chinese = say();
          const list = [listing(["甲", "乙", "7 章"]), string("chapterRunsMore", "1、3")];
          switchLanguage();
          return [chinese, say(), list, listing(["a", "b", "c"])];
        }"""
    )

    assert said == [
        [[f"{count} 处", f"{count} 个人物"] for count in ("0", "1", "2", "1,234")],
        [
            ["0 matches", "0 people"],
            ["1 match", "1 person"],
            ["2 matches", "2 people"],
            ["1,234 matches", "1,234 people"],
        ],
        ["甲、乙和 7 章", "第 1、3 章等"],
        "a, b and c",
    ]
