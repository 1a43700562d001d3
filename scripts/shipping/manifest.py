"""What is in the folder: every file with its hash, and whose it is, with version and licence."""

import hashlib
import itertools
import json
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path, PurePosixPath

import msgspec

from creonowd import __version__
from creonowd.model import Model
from scripts.environment import ROOT

MANIFEST = "MANIFEST.json"
LICENCES = "licences"
PYTHON_NAME = "CPython"
BOOTLOADER = "pyinstaller"
OURS = "creonowd"
TABLES = "tokenizer-tables"
TABLES_PLACE = PurePosixPath("creonowd/tokens/tables")
VENDORED_PLACE = PurePosixPath("creonowd/viewer/static/vendor")
UNKNOWN = "unknown"
SEE_TEXT = "see its text"
_TEXTS = ("LICEN", "COPYING", "NOTICE", "AUTHORS")


class PackedFile(Model):
    """One file of the folder."""

    path: str
    bytes: int
    sha256: str
    component: str


class Component(Model):
    """Something that has an author, a version and a licence; its texts are in `licences/`.

    A library of the system that no Debian package claims is there under its own name: what its
    version and licence are has to be found out by whoever ships it.
    """

    name: str
    version: str
    licence: str
    texts: list[str]


class Manifest(Model):
    """All that the folder holds but this list itself."""

    version: str
    platform: str
    extras: list[str]
    components: list[Component]
    files: list[PackedFile]


def write_manifest(
    folder: Path, platform: str, extras: list[str], origins: Mapping[str, Path]
) -> None:
    """Add the licences and write the list of everything in the folder."""
    paths = [path for path in sorted(_files(folder)) if path.parts[0] != LICENCES]
    foreign = {origin for origin in origins.values() if _is_of_system(origin)}
    packages = _system_packages(foreign)
    owners: dict[PurePosixPath, str] = {}
    for path in paths:
        origin = origins.get(_inside(path))
        owners[path] = packages.get(origin or Path()) or _owner(path, origin)
    components = [_component(name, folder) for name in sorted(set(owners.values()), key=str.lower)]
    for component in components:
        owners |= {PurePosixPath(text): component.name for text in component.texts}
    manifest = Manifest(
        version=__version__,
        platform=platform,
        extras=extras,
        components=components,
        files=[_packed_file(folder, path, owners[path]) for path in sorted(owners)],
    )
    data = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    (folder / MANIFEST).write_bytes(data + b"\n")


def _files(folder: Path) -> Iterable[PurePosixPath]:
    for path in folder.rglob("*"):
        if not path.is_dir():
            yield PurePosixPath(path.relative_to(folder).as_posix())


def _inside(path: PurePosixPath) -> str:
    """Return the path as PyInstaller's table of contents has it."""
    return str(PurePosixPath(*path.parts[1:])) if len(path.parts) > 1 else str(path)


def _packed_file(folder: Path, path: PurePosixPath, component: str) -> PackedFile:
    size = (folder / path).stat().st_size
    digest = _digest(folder / path)
    return PackedFile(path=str(path), bytes=size, sha256=digest, component=component)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _owner(path: PurePosixPath, origin: Path | None) -> str:
    """Return the component that a file belongs to."""
    inside = PurePosixPath(_inside(path))
    if len(path.parts) == 1:
        return BOOTLOADER
    if inside.parent == TABLES_PLACE:
        return TABLES
    if inside.parent == VENDORED_PLACE and inside.stem in _vendored_scripts():
        return _vendored_scripts()[inside.stem]["package"]
    is_built_here = origin is not None and origin.parent == Path(__file__).parent
    if is_built_here or inside.parts[0] == OURS or inside.parts[0].startswith(f"{OURS}-"):
        return OURS
    site = Path(sysconfig.get_path("purelib"))
    candidates = [site / inside, site / inside.with_suffix(".py")]
    for candidate in [*([origin] if origin else []), *candidates]:
        if name := _owners_of_files().get(candidate.resolve()):
            return name
    return origin.name if origin and _is_of_system(origin) else PYTHON_NAME


@cache
def _vendored_scripts() -> dict[str, dict[str, str]]:
    """Return what the viewer's page brings along of others, by the stems of its files."""
    listed = json.loads((ROOT / VENDORED_PLACE / "manifest.json").read_text(encoding="utf-8"))
    return {PurePosixPath(one["file"]).stem: one for one in listed["packages"]}


def _is_of_system(origin: Path) -> bool:
    """Return whether a file came from neither this Python nor its packages."""
    ours = (sys.prefix, sys.base_prefix, tempfile.gettempdir())
    return origin.suffix != ".pyc" and not any(map(origin.is_relative_to, ours))


@cache
def _owners_of_files() -> dict[Path, str]:
    """Return whose each installed file is."""
    owners: dict[Path, str] = {}
    for one in distributions():
        name = one.name  # reads the metadata anew each time
        owners |= {Path(str(one.locate_file(file))).resolve(): name for file in one.files or ()}
    return owners


def _system_packages(libraries: Iterable[Path]) -> dict[Path, str]:
    """Return the Debian packages that libraries of the system belong to."""
    spellings: dict[str, Path] = {}
    for library in libraries:
        real = library.resolve()
        merged = Path("/", *real.parts[2:]) if real.parts[:2] == ("/", "usr") else real
        spellings |= {str(place): library for place in (library, real, merged)}
    if not spellings or shutil.which("dpkg-query") is None:
        return {}
    # One that it does not know makes it fail, and it still prints the others.
    asked = ["dpkg-query", "--search", *spellings]
    lines = subprocess.run(asked, capture_output=True, encoding="utf-8", check=False).stdout
    named = [
        line.partition(": ") for line in lines.splitlines() if not line.startswith("diversion")
    ]
    return {
        spellings[path]: packages.partition(",")[0].partition(":")[0]
        for packages, _, path in named
        if path in spellings
    }


def _component(name: str, folder: Path) -> Component:
    if name == OURS:
        return _make_component(folder, name, __version__, "MIT", [ROOT / "LICENSE"])
    if name == TABLES:
        texts = [ROOT / TABLES_PLACE / "NOTICE", ROOT / TABLES_PLACE / "LICENSE-APACHE"]
        return _make_component(folder, name, SEE_TEXT, "MIT AND Apache-2.0", texts)
    for stem, script in _vendored_scripts().items():
        if name == script["package"]:
            text = ROOT / VENDORED_PLACE / f"{stem}.LICENSE"
            return _make_component(folder, name, script["version"], script["licence"], [text])
    if name == PYTHON_NAME:
        texts = _python_licences()
        return _make_component(folder, name, sys.version.split()[0], "PSF-2.0", texts)
    if name in {one.name for one in distributions()}:
        one = distribution(name)
        return _make_component(folder, name, one.version, _licence(one), _licence_texts(one))
    return _system_component(name, folder)


def _system_component(name: str, folder: Path) -> Component:
    """Describe a Debian package, or a library of another system, of which nothing is known."""
    text = Path("/usr/share/doc", name, "copyright")
    if not text.is_file():
        return _make_component(folder, name, UNKNOWN, UNKNOWN, [])
    version = _run("dpkg-query", "--show", "--showformat=${Version}\n", name).splitlines()[0]
    return _make_component(folder, name, version, SEE_TEXT, [text])


def _make_component(
    folder: Path, name: str, version: str, licence: str, sources: Iterable[Path]
) -> Component:
    """Copy the licence texts and return the component."""
    texts: list[str] = []
    for source in filter(Path.is_file, sources):
        below = itertools.dropwhile(lambda part: not part.endswith(".dist-info"), source.parts)
        name_of_text = "/".join([*below][1:]).removeprefix("licenses/") or source.name
        text = f"{LICENCES}/{name}/{name_of_text}"
        (folder / text).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / text)
        texts.append(text)
    return Component(name=name, version=version, licence=licence, texts=texts)


def _python_licences() -> list[Path]:
    """Return the licence of this Python: the file of an installation, or Debian's."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    usual = [stdlib / "LICENSE.txt", Path(sys.base_prefix, "LICENSE.txt")]
    debian = Path("/usr/share/doc", f"libpython{sysconfig.get_python_version()}-minimal/copyright")
    return [next((path for path in usual if path.is_file()), debian)]


def _licence(one: Distribution) -> str:
    """Return the licence that a distribution names in its metadata, in any of three ways."""
    fields = one.metadata.get_all
    named: list[str] = [*(fields("License-Expression") or []), *(fields("License") or [])]
    classifiers: list[str] = fields("Classifier") or []
    classified = [line.rpartition(" :: ")[2] for line in classifiers if line.startswith("License")]
    first = named[0].strip().partition("\n")[0] if named else ""
    return first or ", ".join(classified) or SEE_TEXT


def _licence_texts(one: Distribution) -> list[Path]:
    paths = [Path(str(one.locate_file(file))) for file in one.files or ()]
    return [
        path
        for path in paths
        if path.name.upper().startswith(_TEXTS)
        and any(part.endswith(".dist-info") for part in path.parts)
    ]


def _run(*command: str) -> str:
    """Return what a program prints, nothing if it fails."""
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    return ran.stdout.strip() if ran.returncode == 0 else ""
