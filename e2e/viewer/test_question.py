"""The ten-second test: why did the AI forget it? On a novel of forty chapters, with known answers.

The chapters are those of *Pride and Prejudice* in `../shared/corpus` or, without it, made-up prose.
"""

import json
import re
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer
from testing.corpus import english_chapters

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
    ".creonow/settings/almanac.json": json.dumps({"title": "Almanac", "days": ["rain"] * 2600}),
    ".creonow/rules/constraints.json": '{"version": 1, "items": ["No one fights a duel."]}',
    "chapters/41.md": "# Chapter 41\n\nThe vermilion pavilion burns down.\n",
}
QUESTIONS = (
    ("Elizabeth Bennet", "in", "Go to it"),
    ("No one fights a duel", "in", "Go to it"),
    ("the very last sentence", "in", "Go to it"),
    ("Quorbin", "in", "Go to it"),
    ("Almanac", "left_out", "Make room"),
    ("Fitzwilliam Darcy", "never_considered", "always"),
    ("Charles Bingley", "never_considered", "always"),
    ("Broken Person", "never_considered", "Fix line 3 of the file"),
    ("vermilion pavilion", "never_considered", "Put the cursor there"),
    ("chapter 41", "never_considered", "Put the cursor there"),
    ("xylophone orchard", "never_considered", "Name “xylophone orchard” to the AI"),
    ("opening gambit of this chapter", "never_considered", "Read the whole chapter"),
    ("Zanzibar", "not_in_project", "Write it down"),
)


@pytest.fixture(scope="module")
def forty(
    browser: Browser, daemon: Harness, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Viewer]:
    """The page on forty chapters, the caret at the end of the last but one."""
    root = tmp_path_factory.mktemp("novel") / "forty"
    for path, text in FILES.items():
        write(root / path, text)
    for path, text in english_chapters(CHAPTERS).items():
        write(root / path, with_rare_words(path, text))
    with Viewer(browser, daemon, root, locale="en-GB") as viewer:
        viewer.at("#chapters .chapter", has_text="Chapter 40").click()
        expect(viewer.at("#document-title")).to_have_text("Chapter 40")
        viewer.text.press("Control+End")
        viewer.settle()
        yield viewer


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def with_rare_words(path: str, text: str) -> str:
    """Put a few words that stand nowhere else into some chapters."""
    heading, _, prose = text.partition("\n\n")
    if path == "chapters/07.md":
        prose = f"The xylophone orchard stood empty.\n\n{prose}"
    if path == HERE:
        prose = f"It was the opening gambit of this chapter.\n\n{prose}\nThis is the very last sentence."
    return f"{heading}\n\n{prose}"


def ask(forty: Viewer, about: str) -> Locator:
    forty.page.keyboard.press("Control+k")
    forty.at("#question").fill(about)
    forty.at("#question").press("Enter")
    answer = forty.at("#answer")
    expect(answer).to_have_attribute("data-about", about)
    return answer


@pytest.mark.parametrize(("about", "verdict", "does"), QUESTIONS, ids=[one[0] for one in QUESTIONS])
def test_the_answer_is_right_and_in_view(
    forty: Viewer, about: str, verdict: str, does: str
) -> None:
    answer = ask(forty, about)

    expect(answer).to_have_attribute("data-verdict", verdict)
    expect(answer.locator(".answer-sentence")).to_be_in_viewport(ratio=1)
    expect(answer.locator(".remedies")).to_contain_text(does)
    assert not re.search(r"[A-Z]{3,}_[A-Z_]+", answer.inner_text())


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_every_answer_is_in_view_at_every_width_in_both_languages(
    forty: Viewer, width: int
) -> None:
    forty.page.set_viewport_size({"width": width, "height": 800})
    try:
        expect(forty.at("#chapters .here")).to_be_in_viewport(ratio=1)
        for language, said in (("en", "is in the prompt"), ("zh-CN", "提示里有")):
            expect(forty.at("html")).to_have_attribute("lang", language)
            for about, verdict, _ in QUESTIONS:
                answer = ask(forty, about)
                expect(answer).to_have_attribute("data-verdict", verdict)
                expect(answer.locator(".answer-sentence")).to_be_in_viewport(ratio=1)
                expect(answer.locator(".remedies button").first).to_be_in_viewport(ratio=1)
            expect(ask(forty, "Elizabeth Bennet").locator(".answer-sentence")).to_contain_text(said)
            forty.at("#language").click()
    finally:
        forty.page.set_viewport_size({"width": 1440, "height": 900})
    expect(forty.at("html")).to_have_attribute("lang", "en")


def test_each_part_of_the_headline_leads_to_what_it_speaks_of(forty: Viewer) -> None:
    headline = forty.at("#headline")

    expect(headline).to_contain_text(re.compile(r"^Continue sees your last [\d,]+ words"))
    expect(headline).to_contain_text(re.compile(r"the first [\d,]+ words of this chapter"))
    expect(headline).to_contain_text(re.compile(r"nor chapters? \d+"))
    expect(headline).to_be_in_viewport(ratio=1)
    layers = {"pe(ople|rson)": "rules", "rule": "rules", "note": "settings", "passage": "retrieved"}
    for part, layer in layers.items():
        headline.get_by_role("link", name=re.compile(rf"^[\d,]+ {part}")).click()
        expect(forty.at(f"#layer-{layer}")).to_be_focused()
    headline.get_by_role("link", name=re.compile(r"^the story of \d+ chapters?$")).click()
    expect(forty.at("#layer-retrieved")).to_be_focused()
    headline.get_by_role("link", name=re.compile("^your last")).click()
    seen = int(forty.where()["at"])
    headline.get_by_role("link", name=re.compile("^the first")).click()
    assert int(forty.where()["at"]) < seen
    headline.get_by_role("link", name=re.compile("^chapters? ")).click()
    expect(forty.at("#answer")).to_be_visible()
    forty.text.press("Control+End")
    forty.settle()


def test_a_passage_that_is_left_out_says_its_rank_and_room_can_be_made(forty: Viewer) -> None:
    forty.tab("left-out")
    piece = forty.at("#left-out .piece.retrieved.dropped").first
    piece.locator("summary").click()

    piece.get_by_role("button", name="Why?").click()

    answer = forty.at("#answer")
    expect(answer).to_have_attribute("data-verdict", "left_out")
    expect(answer).to_contain_text(re.compile(r"[Nn]umber \d+ of \d+"))
    expect(answer.locator(".ahead summary")).to_contain_text("What came before it: ")
    expect(answer.locator(".remedies button").first).to_be_visible()
    forty.picture("left-out-answer")


def test_room_is_made_for_what_is_left_out_and_that_is_undone(forty: Viewer) -> None:
    answer = ask(forty, "Almanac")
    sentence = answer.locator(".answer-sentence")
    expect(sentence).to_contain_text(re.compile(r"[\d,]+ more tokens"))
    (missing,) = re.findall(r"([\d,]+) more tokens", sentence.inner_text())
    figure = f"Make room: {missing} more, {6000 + int(missing.replace(',', '')):,} in all"
    expect(answer.locator(".remedies")).to_contain_text(figure)

    answer.get_by_role("button", name="Make room").click()

    expect(answer).to_have_attribute("data-verdict", "in")
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(answer).to_have_attribute("data-verdict", "left_out")


def test_a_broken_card_is_fixed_where_the_answer_names_it(forty: Viewer) -> None:
    answer = ask(forty, "Broken Person")

    answer.get_by_role("button", name="Fix line 3").click()
    field = forty.at("#file-text")
    chosen = "(one) => one.value.slice(one.selectionStart, one.selectionEnd)"
    assert field.evaluate(chosen) == "aliases: [one, two"
    forty.picture("fix")
    field.press("End")
    forty.page.keyboard.type("]")
    forty.at(".write-down").get_by_role("button", name="Save").click()

    expect(answer).to_have_attribute("data-verdict", "in")
    assert "[one, two]" in (forty.root / ".creonow/characters/broken.md").read_text("utf-8")
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(answer).to_have_attribute("data-verdict", "never_considered")


def test_what_nothing_leads_to_is_named_to_the_ai(forty: Viewer) -> None:
    answer = ask(forty, "xylophone orchard")

    answer.get_by_role("button", name="Name “xylophone orchard”").click()

    expect(forty.page.get_by_test_id("ai-input")).to_have_value("xylophone orchard")
    expect(answer).to_have_attribute("data-verdict", re.compile("^(in|left_out)$"))
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(answer).to_have_attribute("data-verdict", "never_considered")
    expect(forty.page.get_by_test_id("ai-input")).to_have_value("")


def test_a_pin_is_previewed_and_brings_a_passage_in(forty: Viewer) -> None:
    forty.tab("left-out")
    forty.at("#left-out").evaluate("(one) => { one.scrollTop = 0; }")
    piece = forty.at("#left-out .piece.retrieved.dropped").first
    pin = piece.get_by_role("button", name="Pin")

    pin.hover()

    expect(forty.at("#preview")).to_contain_text(
        re.compile(r"Would come in: a passage of Chapter \d+\.")
    )
    forty.picture("pin-preview")
    pin.click()
    expect(forty.at("#toast")).to_contain_text("Pinned")
    forty.tab("sees")
    expect(forty.at("#sees .piece", has_text="pinned").first).to_be_attached()
    assert re.fullmatch(r"chapters/\d+\.md#L\d+-L\d+", forty.where()["pin"])
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(forty.at("#sees .badge", has_text="pinned")).to_have_count(0)


def test_a_passage_is_pinned_and_unpinned_by_key(forty: Viewer) -> None:
    forty.settle()
    forty.tab("left-out")
    piece = forty.at("#left-out .piece.retrieved.dropped").first
    piece.locator("summary").focus()
    pin = piece.get_by_role("button", name="Pin")
    while not pin.evaluate("(one) => one === document.activeElement"):
        forty.page.keyboard.press("Tab")
        assert piece.evaluate("(one) => one.contains(document.activeElement)")
    expect(forty.at("#preview")).to_be_visible()

    forty.page.keyboard.press("Enter")

    expect(forty.at("#toast")).to_contain_text("Pinned")
    forty.at("#tab-left-out").press("ArrowLeft")
    expect(forty.at("#sees .badge", has_text="pinned").first).to_be_attached()
    forty.page.keyboard.press("Control+z")
    expect(forty.at("#sees .badge", has_text="pinned")).to_have_count(0)


def test_the_line_that_hides_a_file_is_changed_where_the_answer_names_it(forty: Viewer) -> None:
    write(forty.root / ".gitignore", "# mine\ndrafts/\n")
    write(forty.root / "drafts/old.md", "The zeppelin landed on the roof.\n")
    answer = ask(forty, "zeppelin")
    expect(answer.locator(".answer-sentence")).to_contain_text("files that are ignored")

    answer.get_by_role("button", name="change line 2 of .gitignore").click()
    field = forty.at("#file-text")
    expect(field).to_be_focused()
    forty.page.keyboard.press("Delete")
    forty.page.keyboard.press("Tab")
    forty.page.keyboard.press("Enter")

    expect(answer.locator(".answer-sentence")).not_to_contain_text("files that are ignored")
    assert "drafts" not in (forty.root / ".gitignore").read_text(encoding="utf-8")
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(answer.locator(".answer-sentence")).to_contain_text("files that are ignored")


def test_the_quote_is_found_in_the_prompt(forty: Viewer) -> None:
    ask(forty, "No one fights a duel")

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
    ask(forty, "Ottoline").get_by_role("button", name="Write it down").click()

    forty.at("#write-text").fill("A cousin from Bath.")
    forty.at(".write-down").get_by_role("button", name="Save").click()

    expect(forty.at("#answer")).to_have_attribute("data-verdict", "in")
    expect(forty.at("#cast")).to_contain_text("Ottoline")
    written = (forty.root / ".creonow/characters/Ottoline.md").read_text(encoding="utf-8")
    assert "A cousin from Bath." in written
    forty.at("#toast").get_by_role("button", name="Undo").click()
    expect(forty.at("#answer")).to_have_attribute("data-verdict", "not_in_project")
    expect(forty.at("#cast")).not_to_contain_text("Ottoline")
