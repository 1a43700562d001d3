"""A real Chromium for stories, which sends nothing of its own over the network, and the fixture `page`.

It is a plugin of its own: pytest loads it only where no other one has a `page`. Nothing of ours is
imported before a browser starts.
"""

import contextlib
import shutil
from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from creonowd.testing.harness import StoryNovel

NAMES = ("chromium", "chromium-browser", "google-chrome")
VARIABLE = "CREONOW_CHROMIUM"
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NO_PLAYWRIGHT = "A story with a page needs Playwright: pip install playwright"
NO_CHROMIUM = (
    "A story with a page needs Chromium: playwright install chromium, "
    f"or put one on PATH, or name it in {VARIABLE}."
)


class NoBrowserError(RuntimeError):
    """There is no browser for the page of a story; the message says how to get one."""


@contextlib.contextmanager
def chromium() -> "Generator[Browser]":
    """Start the Chromium of this machine, or the one that Playwright has installed."""
    from creonowd.settings import process_environment

    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise NoBrowserError(NO_PLAYWRIGHT) from None
    named = process_environment().get(VARIABLE)
    found = map(shutil.which, [named] if named else NAMES)
    path = next((path for path in found if path is not None), None)
    if named and path is None:
        raise NoBrowserError(f"{VARIABLE} names {named}, which is no program.")
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=path, args=OPTIONS)
        except Error as error:
            raise NoBrowserError(f"{NO_CHROMIUM}\n{error.message}") from None
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def creonow_browser() -> "Generator[Browser]":
    """A Chromium for the stories of a module."""
    try:
        with chromium() as browser:
            yield browser
    except NoBrowserError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def page(creonow_browser: "Browser", novel: "StoryNovel") -> "Generator[Page]":
    """A page of Playwright that shows the viewer on the novel."""
    page = creonow_browser.new_page()
    page.goto(novel.address())
    yield page
    page.close()
