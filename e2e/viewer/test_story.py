"""The story of seed 1 §7, step by step: a secret and a file that is too long."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer, prose

SECRET = "sk-THIS_SHOULD_BE_REDACTED"
INSTRUCTION = "写到灯亮为止"
CHAPTER = "chapters/03-水文站.md"


@pytest.mark.requirement("CN-018", "CN-046", "CN-050", "CN-056", "CN-057", "CN-058", "CN-059")
@pytest.mark.requirement("CN-060", "CN-061", "CN-062", "CN-063", "CN-064", "CN-065", "CN-066")
@pytest.mark.requirement("CN-067", "CN-068", "CN-069", "CN-070")
def test_a_secret_and_a_file_that_is_too_long(
    browser: Browser, novel: Path, tmp_path: Path
) -> None:
    with Harness(tmp_path / "用户 的 home", CREONOW_WARM_UP="true") as daemon:
        watch(daemon, novel)
        write_a_secret(daemon, novel)
        write_too_much(daemon, novel)
        with Viewer(browser, daemon, novel) as viewer:
            run_the_skill(viewer)
            look_at_the_layers(viewer)
            look_at_the_evidence(viewer)
            viewer.picture("story")
            shown = "".join((*viewer.traffic, viewer.page.content(), viewer.page.title()))
        daemon.log("context_watch_started")
        daemon.log("context_redaction_applied", where=lambda line: line["matches"] >= 1)
        user_data = daemon.user_data

    assert SECRET not in shown
    kept = [path for path in user_data.rglob("*") if path.is_file()]
    assert any(path.name == "main.log" for path in kept)
    assert not [path.name for path in kept if SECRET.encode() in path.read_bytes()]


def watch(daemon: Harness, novel: Path) -> None:
    """Steps 1 and 2: start, make a project, ensure its folder, watch it."""
    made = daemon.call("project:create", {"rootPath": str(novel)})
    project = {"projectId": made["projectId"]}
    assert daemon.call("context:creonow:ensure", project)["ensured"] is True
    assert daemon.call("context:creonow:watch:start", project) == {"watching": True}


def write_a_secret(daemon: Harness, novel: Path) -> None:
    """Step 3: a key in the rules."""
    text = f"# Style\n\n克制。apiKey={SECRET}\n"
    (novel / ".creonow/rules/style.md").write_text(text, encoding="utf-8")
    event = daemon.event("context:creonow:changed", where=lambda e: "rules" in e["layers"])
    assert ".creonow/rules/style.md" in event["paths"]


def write_too_much(daemon: Harness, novel: Path) -> None:
    """Step 4: 25 000 characters of settings."""
    world = prose(25_000)
    assert len(world) == 25_000
    (novel / ".creonow/settings/世界观.md").write_text(world, encoding="utf-8")
    event = daemon.event("context:creonow:changed", where=lambda e: "settings" in e["layers"])
    assert ".creonow/settings/世界观.md" in event["paths"]


def run_the_skill(viewer: Viewer) -> None:
    """Step 5: the built-in skill `continue`, on the fake provider."""
    expect(viewer.at("#skill")).to_have_value("builtin:continue")
    viewer.page.get_by_test_id("ai-input").fill(INSTRUCTION)
    viewer.run()
    expect(viewer.page.get_by_test_id("ai-output")).to_contain_text("apiKey=***REDACTED***")


def look_at_the_layers(viewer: Viewer) -> None:
    """Step 6: four layers, relative references, no secret, and the numbers of this very prompt."""
    viewer.open_panel()
    for name in ("rules", "settings", "retrieved", "immediate"):
        expect(viewer.layer(name)).to_be_visible()
    viewer.layer("rules").locator("summary", has_text="文风").click()
    expect(viewer.layer("rules")).to_contain_text(".creonow/rules/style.md")
    expect(viewer.layer("rules")).to_contain_text("apiKey=***REDACTED***")
    viewer.layer("settings").locator("summary", has_text="世界观").click()
    expect(viewer.layer("settings")).to_contain_text(".creonow/settings/世界观.md")
    expect(viewer.layer("immediate")).to_contain_text(INSTRUCTION)
    place = {"documentId": CHAPTER, "cursorPosition": int(viewer.where()["at"])}
    asked = {"skillId": "builtin:continue", "additionalInput": INSTRUCTION}
    made = viewer.daemon.call("context:assemble", viewer.project | place | asked)
    expect(viewer.at("#budget-total")).to_contain_text(
        f"6,000 个 token 中用了 {made['tokenCount']:,} 个"
    )
    viewer.drawer("developer")
    expect(viewer.at("#stable-prefix-hash")).to_have_text(made["stablePrefixHash"])
    expect(viewer.at("#prompt-hash")).to_have_text(made["promptHash"])


def look_at_the_evidence(viewer: Viewer) -> None:
    """Step 6: what was cut and what was redacted."""
    row = viewer.at("#evidence tr", has_text="世界观.md")
    expect(row).to_contain_text("trimmed · over_budget · settings_share")
    expect(row).to_contain_text(re.compile(r"25,000 → \d+"))
    redaction = viewer.at("#redaction tr", has_text=".creonow/rules/style.md")
    expect(redaction).to_contain_text("openai_api_key_sk")
    viewer.close_drawer()
    expect(viewer.at("#secrets")).to_contain_text("OpenAI 密钥（style.md）")
    viewer.tab("left-out")
    trim = viewer.page.get_by_test_id("ai-context-trim")
    expect(trim.locator(".piece", has_text="世界观")).to_contain_text("截短")
