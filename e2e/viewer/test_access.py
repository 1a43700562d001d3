"""Stories: who may look, from where, and what the page may load."""

import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from creonowd.daemon import endpoint
from creonowd.testing.harness import Harness
from e2e.viewer.page import PICTURES, Viewer
from testing.clients import PATIENCE, environment

ROOT = Path(__file__).parents[2]
SAMPLE_SHOWS = {
    "en": ("Chapter Eight: On the Bank", "General sees", "Nora Penrose"),
    "zh": ("第八章 堤上", "「通用」看得到", "何婶"),
}
SAMPLE = [sys.executable, "-m", "creonowd", "view", "--sample"]


def test_an_address_works_once_and_leaves_no_token_behind(
    browser: Browser, daemon: Harness, viewer: Viewer
) -> None:
    address = daemon.call("viewer:open")["url"]
    first, second = (browser.new_context(locale="zh-CN").new_page() for _ in range(2))
    first.goto(address)
    expect(first.locator("#connection")).to_have_attribute("data-state", "connected")

    second.goto(address)

    expect(second.locator("#connection")).to_have_attribute("data-state", "refused")
    expect(second.locator("#text-empty")).to_contain_text("只能用一次")
    expect(second.locator("#text-empty")).to_contain_text("creonowd view")
    expect(second.locator("#panel")).to_be_hidden()
    PICTURES.mkdir(exist_ok=True)
    second.screenshot(path=PICTURES / "token-used.png")
    assert "token" not in first.url + second.url
    first.reload()
    expect(first.locator("#connection")).to_have_attribute("data-state", "connected")
    first.context.close()
    second.context.close()


@pytest.mark.parametrize("known", [False, True])
def test_a_link_from_elsewhere_does_not_replace_a_session(
    daemon: Harness, viewer: Viewer, *, known: bool
) -> None:
    """Not even one with a token of a page of the app, which the daemon knows."""
    shown = viewer.at("#project").input_value()
    page = daemon.call("session:grant", {"role": "renderer"})["token"]
    token = page if known else "from-elsewhere"

    viewer.page.goto("about:blank")
    viewer.page.goto(f"{viewer.origin}/#token={token}&project=prj_other")

    viewer.expect_connection("connected")
    expect(viewer.at("#project")).to_have_value(shown)
    expect(viewer.at("#tabs-box")).to_be_visible()
    assert viewer.page.evaluate("sessionStorage.getItem('token')") != token
    assert viewer.page.evaluate("sessionStorage.getItem('project')") != "prj_other"


def test_no_id_of_the_page_comes_from_data(viewer: Viewer) -> None:
    constraint = {"id": "budget-box", "text": "第一人称", "source": "user", "priority": 1}
    stored = {"version": 1, "items": [constraint], "constraints": [constraint]}
    viewer.drawer("rules")
    before = viewer.page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")
    viewer.write(".creonow/rules/constraints.json", json.dumps(stored, ensure_ascii=False))
    viewer.write(".creonow/settings/budget-box.md", "世界观")
    expect(viewer.layer("settings")).to_contain_text("世界观")

    after = viewer.page.evaluate("[...document.querySelectorAll('[id]')].map((one) => one.id)")

    assert len(after) == len(set(after))
    assert viewer.page.evaluate("document.getElementById('budget-box').tagName") == "DETAILS"
    assert not [one for one in after if ":" in one or one.startswith("con_")]
    assert set(before) <= set(after)


def test_a_renderer_may_not_inspect(browser: Browser, daemon: Harness, novel: Path) -> None:
    token = daemon.call("session:grant", {"role": "renderer"})["token"]
    with Viewer(browser, daemon, novel, token=token) as viewer:
        expect(viewer.at("#state")).to_have_attribute("data-state", "error")

        expect(viewer.at("#tabs-box")).to_be_hidden()
        expect(viewer.at("#state")).not_to_contain_text("CONTEXT_INSPECT_FORBIDDEN")
        viewer.picture("renderer-refused")
    assert daemon.log("context_inspect_forbidden")["role"] == "renderer"


def test_the_policy_lets_nothing_in_from_elsewhere(viewer: Viewer) -> None:
    answer = viewer.page.request.get(viewer.origin + "/")
    missing = viewer.page.request.get(viewer.origin + "/vendor/../../../etc/passwd")
    foreign = viewer.page.request.get(viewer.origin + "/", headers={"Host": "evil.example"})

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "script-src 'self' 'sha256-" in policy
    assert "*" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert missing.status == 404
    assert foreign.status == 403
    blocked = viewer.page.evaluate(
        """() => new Promise((done) => {
          document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective));
          const picture = document.createElement("img");
          picture.src = "https://example.org/spy.png";
          document.body.append(picture);
        })"""
    )
    assert blocked == "img-src"
    viewer.troubles.clear()


def test_names_of_projects_and_skills_hold_no_secret(viewer: Viewer) -> None:
    secret = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"
    skill = f"---\nname: {secret}\ndescription: 晚间 {secret}\nprompt:\n  system: 写。\n---\n"
    viewer.write(".creonow/skills/leaky/SKILL.md", skill)

    viewer.page.reload()

    viewer.expect_connection("connected")
    expect(viewer.at("#skill option", has_text="***REDACTED***")).to_be_attached()
    assert secret not in "".join(viewer.traffic) + viewer.page.content()


@contextlib.contextmanager
def started(command: list[str]) -> Generator[tuple[subprocess.Popen[bytes], str]]:
    """Start a command that prints an address and stays; end it, however the story ends."""
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().decode().strip()
        finally:
            process.terminate()


@pytest.fixture
def command(tmp_path: Path, novel: Path) -> list[str]:
    """`creonowd view` with user data of its own."""
    view = [sys.executable, "-m", "creonowd", "view", "--project", str(novel)]
    return [*view, "--user-data", str(tmp_path / "用户 data")]


def test_view_serves_the_page_until_it_is_ended(
    browser: Browser, command: list[str], tmp_path: Path
) -> None:
    with started(command) as (view, address):
        page = browser.new_context(locale="en-GB").new_page()
        page.goto(address)

        expect(page.locator("#project")).to_contain_text("小说 novel")
        expect(page.get_by_test_id("ai-run")).to_be_enabled()
        second = subprocess.run(
            command, env=environment(), capture_output=True, timeout=PATIENCE, check=False
        )
        assert second.returncode == 0
        assert second.stdout.decode().startswith(address.partition("#")[0])
        assert second.stdout.decode().strip() != address
        view.terminate()
        expect(page.locator("#connection")).to_have_attribute("data-state", "disconnected")
        page.context.close()
    deadline = time.monotonic() + PATIENCE
    while endpoint.read(tmp_path / "用户 data") is not None:
        assert time.monotonic() < deadline, "the daemon outlived the command that started it"
        time.sleep(0.02)


def test_view_of_a_folder_that_is_not_there_says_so(command: list[str], novel: Path) -> None:
    novel.rename(novel.with_name("elsewhere"))

    ran = subprocess.run(
        command, env=environment(), capture_output=True, timeout=PATIENCE, check=False
    )

    assert ran.returncode != 0
    assert b"Traceback" not in ran.stderr
    assert ran.stdout == b""


def test_run_shows_the_sample_novel(browser: Browser) -> None:
    with started([sys.executable, str(ROOT / "scripts" / "run")]) as (_, address):
        page = browser.new_context(locale="en-GB").new_page()
        page.goto(address)
        expect(page.get_by_test_id("ai-run")).to_be_enabled()

        expect(page.locator("#project")).to_contain_text("sample-")
        page.context.close()


def test_the_sample_shows_at_once_what_the_engine_does(browser: Browser, tmp_path: Path) -> None:
    with started([*SAMPLE, "zh", "--user-data", str(tmp_path)]) as (_, address):
        look_at_the_sample(browser, address, "zh")


def look_at_the_sample(browser: Browser, address: str, language: str) -> None:
    title, sees, left_out = SAMPLE_SHOWS[language]
    page = browser.new_context(locale=language).new_page()
    page.goto(address)
    expect(page.locator("#document-title")).to_have_text(title)
    expect(page.locator("#skill option[value='project:dusk']")).to_be_attached()

    page.locator("#skill").select_option("general")

    expect(page.locator("#headline")).to_contain_text(sees)
    expect(page.locator("#secrets")).to_contain_text("OpenAI")
    page.locator("#tab-left-out").click()
    left = page.get_by_test_id("ai-context-trim")
    expect(left.locator(".piece.rules", has_text=left_out)).to_be_visible()
    page.screenshot(path=PICTURES / f"sample-{language}.png")
    page.context.close()


def test_the_sample_is_copied_once_and_what_is_written_in_it_stays(
    browser: Browser, tmp_path: Path
) -> None:
    novel = tmp_path / "projects" / "sample-en"
    chapter = novel / "chapters" / "08-on-the-bank.md"
    for turn in range(2):
        with started([*SAMPLE, "en", "--user-data", str(tmp_path)]) as (view, address):
            if not turn:
                look_at_the_sample(browser, address, "en")
            chapter.write_bytes(chapter.read_bytes() + b"My own line.\n")
            view.terminate()
            view.wait(PATIENCE)

    assert chapter.read_text(encoding="utf-8").count("My own line.") == 2
    assert [one.name for one in novel.parent.iterdir()] == ["sample-en"]
