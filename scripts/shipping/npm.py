"""The npm package of one platform: the folder that needs no Python, as esbuild ships its binaries."""

import json
import shutil
from pathlib import Path

from creonowd import __version__
from scripts.environment import ROOT

SCOPE = "@creonow"


def lay_out_platform_package(folder: Path, place: Path) -> Path:
    """Lay out `@creonow/daemon-PLATFORM` below a place and return its folder."""
    platform = folder.parent.name
    system, architecture, *_ = platform.split("-")
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
    text = json.dumps(description, indent=2) + "\n"
    (package / "package.json").write_text(text, encoding="utf-8", newline="\n")
    return package


def _link(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)
