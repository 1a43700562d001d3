"""The ten-second test: why did the AI forget it? On a novel of forty chapters, with known answers.

The chapters are those of *Pride and Prejudice* in `../shared/corpus` or, without it, made-up prose.
"""

import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer
from testing.corpus import english

CHAPTERS = 40
HERE = "chapters/40.md"
DARCY = "---\nname: Fitzwilliam Darcy\naliases: [Darcy, Mr. Darcy]\n{}---\nMaster of Pemberley.\n"
NOTE = "# Quorbin\n\nThe Quorbin is a bridge of seven arches over the river.\n"
FILES = {
    ".creonow/characters/elizabeth.md": "---\nname: Elizabeth Bennet\n---\nSecond daughter.\n",
    ".creonow/characters/darcy.md": DARCY.format("inject: manual\n"),
    ".creonow/characters/bingley.md": "---\nname: Charles Bingley\ninject: never\n---\nHe rents.\n",
    ".creonow/characters/broken.md": "---\nname: Broken Person\naliases: [one, two\n---\nLost.\n",
    ".creonow/settings/Quorbin.md": NOTE,
    ".creonow/rules/constraints.json": '{"version": 1, "items": ["No one fights a duel."]}',
    "chapters/41.md": "# Chapter 41\n\nThe vermilion pavilion burns down.\n",
}
QUESTIONS = (
    ("Elizabeth Bennet", "in", "Go to it"),
    ("No one fights a duel", "in", "Go to it"),
    ("the very last sentence", "in", "Go to it"),
    ("Quorbin", "in", "Go to it"),
    ("Fitzwilliam Darcy", "never_considered", "always"),
    ("Charles Bingley", "never_considered", "always"),
    ("Broken Person", "never_considered", "Mend"),
    ("vermilion pavilion", "never_considered", "Put the cursor there"),
    ("chapter 41", "never_considered", "Put the cursor there"),
    ("xylophone orchard", "never_considered", ""),
    ("opening gambit of this chapter", "never_considered", "Read the whole chapter"),
    ("Zanzibar", "not_in_project", "Write it down"),
)

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def forty(
    browser: Browser, daemon: Harness, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Viewer]:
    """The page on forty chapters, the caret at the end of the last but one."""
    root = tmp_path_factory.mktemp("novel") / "forty"
    for path, text in FILES.items():
        write(root / path, text)
    prose = re.sub(r"\bChapter \d+", "", english())
    size = len(prose) // CHAPTERS
    for number in range(CHAPTERS):
        write(
            root / f"chapters/{number + 1:02}.md",
            chapter(number + 1, prose[number * size :][:9000]),
        )
    with Viewer(browser, daemon, root, locale="en-GB") as viewer:
        viewer.at("#chapters .chapter", has_text="Chapter 40").click()
        expect(viewer.at("#document-title")).to_have_text("Chapter 40")
        viewer.text.press("Control+End")
        yield viewer


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def chapter(number: int, prose: str) -> str:
    """Chapters with a few words that stand nowhere else."""
    rare = "The xylophone orchard stood empty.\n\n" if number == 7 else ""
    first = "It was the opening gambit of this chapter.\n\n" if number == CHAPTERS else ""
    last = "\n\nThis is the very last sentence." if number == CHAPTERS else "\n"
    return f"# Chapter {number}\n\n{first}{rare}{prose.strip()}{last}"


@pytest.mark.parametrize(("about", "verdict", "does"), QUESTIONS, ids=[one[0] for one in QUESTIONS])
def test_the_answer_is_right_and_in_view(
    forty: Viewer, about: str, verdict: str, does: str
) -> None:
    forty.page.keyboard.press("Control+k")
    forty.at("#question").fill(about)
    forty.at("#question").press("Enter")

    answer = forty.at("#answer")
    expect(answer).to_have_attribute("data-about", about)
    expect(answer).to_have_attribute("data-verdict", verdict)
    expect(answer.locator(".answer-sentence")).to_be_in_viewport(ratio=1)
    expect(answer.locator(".remedies")).to_contain_text(does)
    assert not re.search(r"[A-Z]{3,}_[A-Z_]+", answer.inner_text())


def test_the_headline_says_what_is_not_seen(forty: Viewer) -> None:
    headline = forty.at("#headline")

    expect(headline).to_contain_text(re.compile(r"^Continue sees your last [\d,]+ words"))
    expect(headline).to_contain_text(re.compile(r"the first [\d,]+ words of this chapter"))
    expect(headline).to_contain_text(re.compile(r"nor chapters? \d+"))
    expect(headline).to_be_in_viewport(ratio=1)
    headline.get_by_role("link", name="people").or_(
        headline.get_by_role("link", name="person")
    ).click()
    expect(forty.at("#layer-rules")).to_be_focused()
    headline.get_by_role("link", name=re.compile("chapters? ")).last.click()
    expect(forty.at("#answer")).to_be_visible()


def test_a_passage_that_is_left_out_says_its_rank_and_room_can_be_made(forty: Viewer) -> None:
    forty.tab("left-out")
    piece = forty.at("#left-out .piece.retrieved.dropped").first
    piece.locator("summary").click()

    piece.get_by_role("button", name="Why?").click()

    answer = forty.at("#answer")
    expect(answer).to_have_attribute("data-verdict", "left_out")
    expect(answer).to_contain_text(re.compile(r"Number \d+ of \d+\."))
    expect(answer.locator(".remedies button").first).to_be_visible()
    forty.picture("left-out-answer")


def test_a_pin_is_previewed_and_brings_a_passage_in(forty: Viewer) -> None:
    forty.tab("left-out")
    forty.at("#left-out").evaluate("(one) => { one.scrollTop = 0; }")
    piece = forty.at("#left-out .piece.retrieved.dropped").first
    pin = piece.get_by_role("button", name="Pin")

    pin.hover()

    expect(forty.at("#ghost")).to_be_visible()
    forty.picture("pin-preview")
    pin.click()
    expect(forty.at("#toast")).to_contain_text("Pinned")
    forty.tab("sees")
    expect(forty.at("#sees .piece", has_text="pinned").first).to_be_attached()
    assert re.fullmatch(r"chapters/\d+\.md#L\d+-L\d+", forty.where()["pin"])
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(forty.at("#sees .badge", has_text="pinned")).to_have_count(0)


def test_the_quote_is_found_in_the_prompt(forty: Viewer) -> None:
    forty.page.keyboard.press("Control+k")
    forty.at("#question").fill("No one fights a duel")
    forty.at("#question").press("Enter")
    expect(forty.at("#answer")).to_have_attribute("data-about", "No one fights a duel")

    forty.at("#answer").get_by_role("button", name="Go to it").click()

    quoted = forty.at("#prompt .span.quoted")
    expect(quoted).to_contain_text("No one fights a duel.")
    expect(quoted).to_be_in_viewport()


def test_completion_offers_what_has_a_name(forty: Viewer) -> None:
    forty.page.keyboard.press("Control+k")
    forty.at("#question").press_sequentially("darc")

    options = forty.at("#completions li")
    expect(options).to_have_count(1)
    expect(options).to_contain_text("Fitzwilliam Darcy")
    forty.page.keyboard.press("ArrowDown")
    expect(options).to_have_attribute("aria-selected", "true")
    forty.page.keyboard.press("Enter")
    expect(forty.at("#answer")).to_have_attribute("data-verdict", "never_considered")
    forty.picture("never-considered")
    forty.page.keyboard.press("Escape")
    expect(forty.at("#answer")).to_be_hidden()


def test_what_is_not_in_the_project_is_written_down(forty: Viewer) -> None:
    forty.page.keyboard.press("Control+k")
    forty.at("#question").fill("Ottoline")
    forty.at("#question").press("Enter")
    forty.at("#answer").get_by_role("button", name="Write it down").click()

    forty.at("#write-text").fill("A cousin from Bath.")
    forty.at(".write-down").get_by_role("button", name="Save").click()

    expect(forty.at("#answer")).to_have_attribute("data-verdict", "in")
    expect(forty.at("#cast")).to_contain_text("Ottoline")
    written = (forty.root / ".creonow/characters/Ottoline.md").read_text(encoding="utf-8")
    assert "A cousin from Bath." in written
