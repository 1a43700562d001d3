"""The npm packages: the bridge, and for each platform the folder that needs no Python.

The bridge names the platforms' packages as optional dependencies, the way esbuild ships its
binaries: npm installs the one that fits and skips the others.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from creonowd import __version__
from scripts.environment import ROOT

SCOPE = "@creonow"
BRIDGE = ROOT / "protocol" / "electron"
PLATFORMS = ("darwin-arm64", "darwin-x64", "linux-arm64", "linux-x64", "win32-x64")


def lay_out_bridge(place: Path) -> Path:
    """Lay out `@creonow/electron` below a place and return its folder."""
    package = place / "electron"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    description = json.loads((BRIDGE / "package.json").read_text(encoding="utf-8"))
    for pattern in (*description["files"], "README.md", "LICENSE"):
        for path in BRIDGE.glob(pattern):
            shutil.copyfile(path, package / path.name)
    names = (f"{SCOPE}/daemon-{platform}" for platform in PLATFORMS)
    description["optionalDependencies"] = dict.fromkeys(names, description["version"])
    _write_description(package, description)
    return package


def lay_out_platform_package(folder: Path, place: Path) -> Path:
    """Lay out `@creonow/daemon-PLATFORM` below a place and return its folder.

    The name is the same whatever optional parts the folder has: it is the one the bridge looks for.
    """
    system, architecture, *_ = folder.parent.name.split("-")
    platform = f"{system}-{architecture}"
    package = place / f"daemon-{platform}"
    shutil.rmtree(package, ignore_errors=True)
    # A hard link costs nothing; what npm packs is a copy anyway.
    shutil.copytree(folder, package / "creonowd", copy_function=_link)
    shutil.copyfile(ROOT / "LICENSE", package / "LICENSE")
    name = f"{SCOPE}/daemon-{platform}"
    readme = (
        f"# {name}\n\nThe daemon creonowd for {platform}, with all that it needs; no Python.\n"
        "`@creonow/electron` finds it here. `creonowd/MANIFEST.json` lists what is in it.\n"
    )
    (package / "README.md").write_text(readme, encoding="utf-8", newline="\n")
    description = {
        "name": name,
        "version": __version__,
        "description": f"creonowd for {platform}, without Python.",
        "license": "MIT",
        "os": [system],
        "cpu": [architecture],
        "preferUnplugged": True,
        "files": ["creonowd"],
        "exports": {"./package.json": "./package.json", "./creonowd/*": "./creonowd/*"},
    }
    _write_description(package, description)
    return package


def _write_description(package: Path, description: dict[str, Any]) -> None:
    text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    (package / "package.json").write_text(text, encoding="utf-8", newline="\n")


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
