"""Stories: where everything stands on the desk, and that its drawings say what the daemon says."""

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer

HERE = "chapters/10.md"
CLOSE = "林远在水文站等沈青禾，灯没有亮。"
# Chapters of very different lengths; the second is near to the text at the cursor and too long for a prompt.
LENGTHS = {1: 300, 2: 9000, 3: 600, 9: 1200, 10: 2400, 11: 900}
FILES = {
    ".creonow/characters/林远.md": "---\nname: 林远\n---\n守灯的人。\n",
    ".creonow/characters/何婶.md": "---\nname: 何婶\ninject: never\n---\n开米铺。\n",
    ".creonow/settings/水文站.md": "# 水文站\n\n在镇子下游。\n",
    ".creonow/settings/旧账.md": "---\nconfidence: 0.1\n---\n" + "账上没有名字。\n\n" * 900,
    ".creonow/threads/灯.md": "灯是谁点的？\n",
}

PAINTED = """() => [...document.querySelectorAll("#chapters .chapter")].map((one) => {
  const track = one.querySelector(".track");
  const [whole, room] = [track, one.querySelector(".bar-room")].map((box) => box.getBoundingClientRect());
  return {
    title: one.querySelector(".chapter-name").textContent,
    share: whole.width / room.width,
    parts: [...track.children].map((part) => ({
      state: part.className,
      from: parseFloat(part.style.left) / 100,
      to: (parseFloat(part.style.left) + parseFloat(part.style.width)) / 100,
      drawn: getComputedStyle(part).backgroundImage !== "none" ? getComputedStyle(part).backgroundImage : getComputedStyle(part).backgroundColor,
    })),
  };
})"""
COVERAGE = "async () => (await import('/inspection.js')).inspection.shown.result.coverage.documents"


@pytest.fixture
def long_novel(browser: Browser, daemon: Harness, tmp_path: Path) -> Generator[Viewer]:
    """The page on chapters of very different lengths, the caret in the last but one."""
    root = tmp_path / "长 novel"
    files = FILES | {
        f"chapters/{number:02}.md": f"# 第{number}章\n\n" + (CLOSE + "\n\n") * (length // 18)
        for number, length in LENGTHS.items()
        if number not in {1, 3}
    }
    files |= {
        f"chapters/{number:02}.md": f"# 第{number}章\n\n"
        + "雪落在马厩上。\n\n" * (LENGTHS[number] // 9)
        for number in (1, 3)
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8", newline="")
    made = daemon.call("project:create", {"rootPath": str(root)})
    place = {"projectId": made["projectId"], "documentId": HERE, "cursorPosition": 0}
    daemon.call("context:retrieve", place | {"query": "灯", "wait": True})
    with Viewer(browser, daemon, root) as viewer:
        viewer.at("#chapters .chapter", has_text="第10章").click()
        expect(viewer.at("#document-title")).to_have_text("第10章")
        viewer.settle()
        yield viewer


def test_the_map_draws_every_chapter_as_long_as_it_is_and_what_is_seen_of_it(
    long_novel: Viewer,
) -> None:
    documents: list[dict[str, Any]] = long_novel.page.evaluate(COVERAGE)
    painted: list[dict[str, Any]] = long_novel.page.evaluate(PAINTED)

    assert [one["title"] for one in painted] == [f"第{number}章" for number in LENGTHS]
    longest = max(one["length"] for one in documents)
    for bar, document in zip(painted, documents, strict=True):
        assert bar["share"] == pytest.approx(max(0.06, document["length"] / longest), abs=0.02)
        drawn = [(one["state"], one["from"], one["to"]) for one in bar["parts"]]
        expected = [
            (
                one["state"],
                *(pytest.approx(one[at] / document["length"], abs=1e-3) for at in ("from", "to")),
            )
            for one in document["ranges"]
        ]
        assert drawn == expected
    looks = {part["state"]: part["drawn"] for bar in painted for part in bar["parts"]}
    assert set(looks) >= {"seen", "left_out", "never", "future"}
    assert re.match("rgb", looks["seen"])
    assert looks["never"] == "rgba(0, 0, 0, 0)"
    assert looks["left_out"].startswith("repeating-linear-gradient(90deg")
    assert looks["future"].startswith("repeating-linear-gradient(45deg")
    assert {one["ranges"][0]["state"] for one in documents if one["place"] == "after"} == {"future"}


def test_people_places_and_threads_stand_below_the_map_each_with_a_mark(long_novel: Viewer) -> None:
    marks = {"林远": "seen", "何婶": "never", "水文站": "seen", "灯": "seen"}

    for name, state in marks.items():
        row = long_novel.at("#cast .subject").filter(
            has=long_novel.page.get_by_text(name, exact=True)
        )
        expect(row.locator(".mark")).to_have_class(f"mark {state}")
    groups = long_novel.at("#cast section")
    expect(groups.locator("h2")).to_have_text(["人物", "世界与设定", "伏笔"])


def test_three_columns_a_strip_or_three_tabs_and_never_a_scrolled_page(long_novel: Viewer) -> None:
    boxes = {width: laid_out(long_novel, width) for width in (1440, 1024, 390)}

    columns = boxes[1440]
    assert columns["map"]["right"] <= columns["text"]["left"]
    assert columns["text"]["right"] <= columns["panel"]["left"]
    assert columns["map"]["top"] == columns["text"]["top"] == columns["panel"]["top"]
    assert columns["text"]["width"] > columns["panel"]["width"] > columns["map"]["width"]
    strip = boxes[1024]
    assert strip["map"]["width"] == 1024
    assert strip["map"]["bottom"] <= strip["text"]["top"]
    assert strip["map"]["height"] < 130
    assert strip["text"]["right"] <= strip["panel"]["left"]
    assert boxes[390]["panel"]["width"] == 0
    tabs = long_novel.at("#panes [role=tab]")
    expect(tabs).to_have_text(["正文", "看到的", "提问"])
    for pane, shown, hidden in (
        ("sees", "#headline", "#manuscript"),
        ("ask", "#question", "#headline"),
        ("text", "#manuscript", "#question"),
    ):
        long_novel.at(f"#pane-{pane}").click()
        expect(long_novel.at(shown)).to_be_visible()
        expect(long_novel.at(hidden)).to_be_hidden()


def laid_out(viewer: Viewer, width: int) -> dict[str, dict[str, float]]:
    """Return where the three parts stand in a window of some width, which does not scroll."""
    viewer.page.set_viewport_size({"width": width, "height": 800})
    over = "[document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]"
    assert viewer.page.evaluate(over) == [0, 0]
    parts = {"map": "#map", "text": ".text", "panel": "#panel"}
    box = "(one) => one.getBoundingClientRect().toJSON()"
    return {name: viewer.at(selector).evaluate(box) for name, selector in parts.items()}


def test_the_manuscript_is_set_in_a_serif_of_some_38_em(long_novel: Viewer) -> None:
    measured = long_novel.text.evaluate(
        """(one) => {
          const style = getComputedStyle(one);
          return { family: style.fontFamily, ems: one.getBoundingClientRect().width / parseFloat(style.fontSize) };
        }"""
    )

    assert measured["family"].endswith(", serif")
    assert 34 <= measured["ems"] <= 38


def test_the_bar_is_the_whole_budget_and_its_parts_are_what_the_daemon_says(
    long_novel: Viewer,
) -> None:
    result = long_novel.page.evaluate(
        "async () => (await import('/inspection.js')).inspection.shown.result"
    )
    shares: dict[str, float] = long_novel.page.evaluate(
        """() => {
          const bar = document.querySelector("#bar .bar").getBoundingClientRect().width;
          const parts = [...document.querySelectorAll("#bar .bar > .part")];
          return Object.fromEntries(parts.map((one) => [one.dataset.part, one.getBoundingClientRect().width / bar]));
        }"""
    )

    total = result["totals"]["budgetTokens"]
    layers = {name: one["tokens"] for name, one in result["layersDetail"].items()}
    held = result["held"]["immediate"] + result["held"]["retrieved"]
    parts = {"fixed": result["totals"]["fixedTokens"], **layers, "held": held}
    parts |= {"free": result["held"]["free"]}
    expected = {name: tokens / total for name, tokens in parts.items() if tokens or name in layers}
    assert shares == pytest.approx(expected, abs=0.01)
    assert sum(shares.values()) == pytest.approx(1, abs=0.01)
    expect(long_novel.at("#tabs [role=tab]")).to_have_text(
        ["看到的", re.compile(r"^没带上的（\d+）$"), "提示原文", re.compile("^与上次比")]
    )
