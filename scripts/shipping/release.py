"""A release, up to the moment of publishing: wheel, sdist, npm tarballs, the folder, checksums."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from scripts.environment import PYTHON, ROOT, fail, say
from scripts.shipping.folder import DIST, ensure_folder, pack
from scripts.shipping.npm import lay_out_bridge, lay_out_platform_package

RELEASE = DIST / "release"
CHECKSUMS = "SHA256SUMS"
WALKS = ("e2e/test_package.py", "e2e/test_frozen.py")


def main(arguments: list[str]) -> int:
    """Build, try and list a release; the exit status is 1 if anything is wrong."""
    if arguments != ["--dry-run"]:
        fail("Nothing is published from here.", "Usage: scripts/release --dry-run")
    found = versions(ROOT)
    if len(set(found.values())) > 1:
        listed = "\n".join(f"  {place}: {version}" for place, version in found.items())
        fail(f"The versions differ:\n{listed}", "Make them one, then try again.")
    build(RELEASE)
    say("Trying what was built …")
    environ = os.environ | {"CREONOW_BUILT": str(RELEASE)}
    walk = [str(PYTHON), "-m", "pytest", "-q", *WALKS]
    if subprocess.run(walk, cwd=ROOT, env=environ, check=False).returncode:
        fail("A walk failed.", "Nothing of this may be released.")
    write_checksums(RELEASE)
    print((RELEASE / CHECKSUMS).read_text(encoding="utf-8"), end="")
    return 0


def versions(root: Path) -> dict[str, str]:
    """Return the version that each place of a checkout names."""

    def text(path: str) -> str:
        return (root / path).read_text(encoding="utf-8")

    (ours,) = re.findall(r'^__version__ = "(.+)"$', text("creonowd/__init__.py"), re.MULTILINE)
    newest = re.findall(r"^## (\S+)", text("CHANGELOG.md"), re.MULTILINE)[0]
    lock = json.loads(text("protocol/package-lock.json"))
    return {
        "creonowd/__init__.py": ours,
        "CHANGELOG.md": newest,
        "protocol/electron/package.json": json.loads(text("protocol/electron/package.json"))[
            "version"
        ],
        "protocol/package-lock.json": lock["packages"]["electron"]["version"],
    }


def build(place: Path) -> None:
    """Build everything into an empty folder."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    folder = ensure_folder()
    pack(folder, place)
    hatch = [str(PYTHON), "-m", "hatchling", "build", "-d", str(place)]
    npm = shutil.which("npm")
    if npm is None:
        fail("npm is not installed.", "Install Node 20 or newer.")
    packages = [lay_out_platform_package(folder, DIST / "npm"), lay_out_bridge(DIST / "npm")]
    npm_pack = [npm, "pack", "--silent", "--pack-destination", str(place), *map(str, packages)]
    for command in (hatch, npm_pack):
        if subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=False).returncode:
            fail(f"{command[-1]} could not be built.", "See above.")


def write_checksums(place: Path) -> None:
    """Write the SHA-256 of every file in a folder, as `sha256sum --check` reads it."""
    lines: list[str] = []
    for path in sorted(place.iterdir()):
        if path.name != CHECKSUMS:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            lines.append(f"{digest}  {path.name}\n")
    (place / CHECKSUMS).write_text("".join(lines), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
