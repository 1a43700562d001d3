"""One browser and one daemon for all stories of the viewer; a novel and a page for each."""

import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from creonowd.testing.browser import chromium
from creonowd.testing.harness import Harness
from e2e.viewer.page import Viewer

SAMPLE = Path(__file__).parents[1] / "sample"


@pytest.fixture(scope="package")
def browser() -> Generator[Browser]:
    """A Chromium that lives as long as the stories of this folder run."""
    with chromium() as started:
        yield started


@pytest.fixture(scope="package")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Generator[Harness]:
    """A daemon for the stories that leave it alive; its author lets the page save."""
    home = tmp_path_factory.mktemp("viewer") / "我的 文件 home"
    with Harness(home, CREONOW_WARM_UP="true", CREONOW_DOCUMENT_WRITES="true") as started:
        yield started


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    """A copy of the sample novel, in a folder with a space and Chinese characters."""
    return Path(shutil.copytree(SAMPLE, tmp_path / "小说 novel"))


@pytest.fixture
def viewer(browser: Browser, daemon: Harness, novel: Path) -> Generator[Viewer]:
    """The page on that novel, closed until `open_panel`."""
    with Viewer(browser, daemon, novel) as opened:
        yield opened
