"""The pytest plugin: the fixtures `daemon`, `novel` and `page`.

pytest imports this wherever creonowd is installed, so it imports nothing of ours before a story
asks for a fixture. `page` is left to pytest-playwright where that is installed: there a story goes
to `novel.address()`.
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from creonowd.testing.harness import Harness, StoryNovel

MARKERS = (
    "daemon(deterministic=False, debug=False, **environ): how the fixture `daemon` is started",
    "novel(files): what is in the fixture `novel`, path → text; the cursor is at the end of the first",
)
PLAYWRIGHT_PLUGIN = "playwright"


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and `page` unless there is a fixture of that name already."""
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if not config.pluginmanager.has_plugin(PLAYWRIGHT_PLUGIN):
        config.pluginmanager.import_plugin("creonowd.testing.browser")


@pytest.fixture
def daemon(request: pytest.FixtureRequest, tmp_path: Path) -> "Generator[Harness]":
    """A daemon of the story's own; `@pytest.mark.daemon(...)` has options of `Harness`."""
    from creonowd.testing.harness import Harness

    with Harness(tmp_path / "故事 story", **_keywords(request, "daemon")) as started:
        yield started


@pytest.fixture
def novel(
    request: pytest.FixtureRequest, daemon: "Harness", tmp_path_factory: pytest.TempPathFactory
) -> "StoryNovel":
    """A novel that the daemon has indexed; `@pytest.mark.novel({path: text})` says what is in it."""
    marker = request.node.get_closest_marker("novel")
    files = marker.args[0] if marker is not None else None
    made = daemon.make_novel(files, root=tmp_path_factory.mktemp("小说 novel"))
    made.wait_for_index()
    return made


def _keywords(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    marker = request.node.get_closest_marker(name)
    return {} if marker is None else dict(marker.kwargs)
