"""The fixture `page`, apart from the others: pytest gets it only where nobody else has one."""

from collections.abc import Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from creonowd.testing.harness import StoryNovel


@pytest.fixture(scope="module")
def creonow_browser() -> "Generator[Browser]":
    """A Chromium for the stories of a module."""
    from creonowd.testing.browser import NoBrowserError, chromium

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
