"""Three stories about a novel. `pip install creonowd pytest playwright`, then `pytest test_story.py`."""

import pytest
from playwright.sync_api import Page, expect

from creonowd.testing import Harness, StoryNovel

NOVEL = {
    "chapters/01.md": "# The quay\n\nAnna waited at the quay. The ferry was late.\n",
    ".creonow/characters/anna.md": "---\nname: Anna\n---\nAnna is afraid of water.\n",
    ".creonow/rules/style.md": "Short sentences.\n",
}

pytestmark = pytest.mark.novel(NOVEL)


def test_the_model_is_told_that_anna_is_afraid_of_water(novel: StoryNovel) -> None:
    made = novel.assemble(skillId="builtin:continue")

    assert "Anna is afraid of water." in made["prompt"]
    assert made["warnings"] == []


@pytest.mark.daemon(deterministic=True)
def test_an_answer_that_breaks_a_rule_is_found_and_a_failure_has_its_code(
    daemon: Harness, novel: StoryNovel
) -> None:
    novel.constrain("Anna never steps into the water.")
    daemon.script(
        {
            "steps": [
                {"text": "Anna stepped into the river."},
                {"fail": "AI_RATE_LIMITED", "retryAfterMs": 500},
            ],
            "verdicts": [
                {"violations": [{"constraint": 1, "quote": "stepped into the river"}]},
            ],
        }
    )

    run = novel.run()
    refused = daemon.failure("ai:skill:run", novel.payload())

    (violation,) = run["verdict"]["violations"]
    assert run["output"] == "Anna stepped into the river."
    assert violation["quote"] == "stepped into the river"
    assert (refused.code, refused.details["retryAfterMs"]) == ("AI_RATE_LIMITED", 500)


def test_the_page_shows_what_the_ai_wrote(daemon: Harness, page: Page) -> None:
    daemon.script({"steps": [{"text": "The ferry came at dusk.", "piece": 4, "delayMs": 5}]})

    page.get_by_test_id("ai-run").click()

    expect(page.get_by_test_id("ai-output")).to_contain_text("The ferry came at dusk.")
