"""The pytest plugin, as someone else's pytest meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from creonowd.testing import browser
from testing.clients import environment
from testing.novels import write_files

RIVAL = {
    "rival.py": "import pytest\n\n@pytest.fixture\ndef page():\n    return 'theirs'\n",
    "rival-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: rival\nVersion: 1\n",
    "rival-1.dist-info/entry_points.txt": "[pytest11]\nplaywright = rival\n",
}
NO_PLAYWRIGHT = {"without.py": "import sys\nsys.modules['playwright'] = None\n"}


def run_pytest(place: Path, story: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    write_files(place, {"test_theirs.py": story})
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    return subprocess.run(
        [*command, "--strict-markers", *arguments, "test_theirs.py"],
        cwd=place,
        env=environment(PYTHONPATH=str(place)),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def test_pytest_loads_nothing_of_ours_for_someone_who_only_has_it_installed() -> None:
    code = (
        "import json, sys, pytest; before = set(sys.modules);"
        "import creonowd.testing.plugin, creonowd.testing.browser;"
        "print(json.dumps(sorted(set(sys.modules) - before)))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, timeout=60, check=True
    )

    ours = ["creonowd", "creonowd.testing", "creonowd.testing.browser", "creonowd.testing.plugin"]
    assert json.loads(ran.stdout) == ours


def test_a_page_of_pytest_playwright_stays_its_own(tmp_path: Path) -> None:
    write_files(tmp_path, RIVAL)

    ran = run_pytest(tmp_path, "def test_page(page):\n    assert page == 'theirs'\n")

    assert "1 passed" in ran.stdout, ran.stdout


def test_without_playwright_a_page_says_what_to_install(tmp_path: Path) -> None:
    write_files(tmp_path, NO_PLAYWRIGHT)

    ran = run_pytest(tmp_path, "def test_page(page):\n    pass\n", "-p", "without")

    assert browser.NO_PLAYWRIGHT in ran.stdout, ran.stdout
    assert "Traceback" not in ran.stdout


def test_a_chromium_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CREONOW_CHROMIUM", "no-such-chromium")

    with pytest.raises(browser.NoBrowserError, match="names no-such-chromium"), browser.chromium():
        pass


def test_what_the_package_offers_can_be_imported_and_nothing_else() -> None:
    import creonowd.testing as offered

    assert all(getattr(offered, name).__name__ == name for name in offered.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Harnes'"):
        _ = offered.Harnes  # pyright: ignore[reportAttributeAccessIssue]
