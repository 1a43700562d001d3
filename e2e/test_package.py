"""Story: someone installs the package, far from any clone, and uses it.

The packages that creonowd needs are lent by the environment that runs the tests, so that nothing
is fetched; creonowd itself comes from the wheel or the sdist alone.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import urllib.request
import venv
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testing.clients import environment

ROOT = Path(__file__).resolve().parents[1]
BIN = "Scripts" if os.name == "nt" else "bin"
PATIENCE = 120
PING = b'{"jsonrpc":"2.0","id":1,"method":"app:ping"}\n'
CHAPTER = "chapters/03-水文站.md"


class Installed:
    """A place with creonowd in it and the sample novel beside it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.environ = environment(CREONOW_USER_DATA_DIR=str(place / "user data"))
        self.environ.pop("PYTHONPATH", None)

    def program(self, name: str) -> str:
        return str(self.place / "venv" / BIN / name)

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return subprocess.run(
            [self.program("creonowd"), *arguments],
            cwd=self.place,
            env=self.environ,
            input=stdin,
            stdout=subprocess.PIPE,
            check=True,
            timeout=PATIENCE,
        ).stdout

    def run_story(self, place: Path, command: list[str]) -> str:
        """Run a story in a folder and return what it printed; it must pass."""
        environ = self.environ | {"CREONOW_DAEMON": self.program("creonowd")}
        ran = subprocess.run(
            command,
            cwd=place,
            env=environ,
            stdout=subprocess.PIPE,
            check=False,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    def answer(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheel and sdist, built as `python -m hatchling build` does, or those of a release."""
    if release := os.environ.get("CREONOW_BUILT"):
        return Path(release)
    place = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(place)],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    return place


@pytest.fixture(scope="module")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    (package,) = built.glob("creonowd-*.whl")
    here = Installed(tmp_path_factory.mktemp("elsewhere"))
    venv.create(here.place / "venv", with_pip=False)
    lend_packages(here.place / "venv")
    pip = [sys.executable, "-m", "pip", "--python", here.program("python"), "install"]
    subprocess.run(
        [*pip, "--quiet", "--no-index", "--no-deps", "--no-build-isolation", str(package)],
        cwd=here.place,
        env=here.environ,
        check=True,
        timeout=PATIENCE,
    )
    shutil.copytree(ROOT / "e2e" / "sample", here.place / "novel")
    return here


def lend_packages(place: Path) -> None:
    """Let an environment find our packages: all but creonowd, whose link leads to the clone."""
    paths = {"base": str(place), "platbase": str(place)}
    site = Path(sysconfig.get_path("purelib", "venv", vars=paths))
    lent = dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib"))
    (site / "lent.pth").write_text("\n".join(lent), encoding="utf-8")


@contextmanager
def viewing(installed: Installed) -> Generator[str]:
    """Run `creonowd view` and return where its page is."""
    command = [installed.program("creonowd"), "view", "--project", "novel"]
    process = subprocess.Popen(
        command, cwd=installed.place, env=installed.environ, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().decode().partition("#")[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


def test_it_installs_and_works_outside_the_clone(installed: Installed) -> None:
    code = "import creonowd, sys; sys.stdout.write(creonowd.__file__)"
    where = subprocess.run(
        [installed.program("python"), "-c", code],
        cwd=installed.place,
        env=installed.environ,
        stdout=subprocess.PIPE,
        check=True,
        encoding="utf-8",
        timeout=PATIENCE,
    ).stdout

    examined = installed.answer("doctor", "--json")
    pong = json.loads(installed.run("serve", "--stdio", stdin=PING))
    counted = installed.answer("call", "tokens:count", '{"text": "第一章"}')
    made = installed.answer(
        *("assemble", "--project", "novel", "--document", CHAPTER),
        *("--skill", "builtin:continue", "--json"),
    )

    assert Path(where).is_relative_to(installed.place)
    assert [one for one in examined["findings"] if one["state"] == "bad"] == []
    assert pong["result"]["pong"] is True
    assert (counted["tokens"], counted["tokenizerExact"]) == (2, True)
    assert CHAPTER in made["layers"]["immediate"]["source"]
    assert made["targetTokens"] == 3500
    assert made["warnings"] == []


def test_it_brings_the_viewer_along(installed: Installed) -> None:
    with viewing(installed) as address:
        with urllib.request.urlopen(address, timeout=PATIENCE) as page:
            body = page.read().decode()
        with urllib.request.urlopen(f"{address}main.js", timeout=PATIENCE) as script:
            kind = script.headers["Content-Type"]

    assert '<script type="module" src="/main.js">' in body
    assert kind.startswith("text/javascript")


def test_the_stories_of_the_documentation_pass_as_printed(installed: Installed) -> None:
    """In Python by the plugin of the wheel, in JavaScript by the npm package; neither sees the clone."""
    place = installed.place / "stories"
    shutil.copytree(ROOT / "docs" / "stories", place)
    in_python = installed.run_story(
        place, [installed.program("python"), "-m", "pytest", "-q", "-W", "error", "test_story.py"]
    )
    npm_package(place / "node_modules" / "@creonow" / "electron")
    (place / "story.test.mjs").write_text(printed_story(), encoding="utf-8")
    in_javascript = installed.run_story(place, ["node", "--test-reporter=tap", "story.test.mjs"])

    assert "3 passed" in in_python
    assert [line[:4] for line in in_javascript.splitlines() if line.startswith("ok")] == [
        "ok 1",
        "ok 2",
    ]


def test_the_sdist_makes_the_very_same_wheel(built: Path, tmp_path: Path) -> None:
    """So all that is shown of the wheel holds for who installs the sdist."""
    (wheel,) = built.glob("creonowd-*.whl")
    (sdist,) = built.glob("creonowd-*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()

    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")],
        cwd=source,
        env=environment(),
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )

    (again,) = (tmp_path / "dist").iterdir()
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npm_package(place: Path) -> None:
    """Unpack what `npm pack` makes of the bridge."""
    place.mkdir(parents=True)
    npm = shutil.which("npm")
    assert npm is not None
    command = [npm, "pack", "--silent", "--pack-destination", str(place)]
    source = ROOT / "protocol" / "electron"
    subprocess.run(command, cwd=source, capture_output=True, check=True, timeout=PATIENCE)
    (packed,) = place.glob("*.tgz")
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")
    for path in (place / "package").iterdir():
        path.rename(place / path.name)


def printed_story() -> str:
    """Return the story that the bridge's README prints."""
    text = (ROOT / "protocol" / "electron" / "README.md").read_text(encoding="utf-8")
    return text.partition("```js\n// story.test.mjs\n")[2].partition("```")[0]
