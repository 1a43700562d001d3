"""Build the self-contained folder with PyInstaller: a program `creonowd` and all that it needs.

Modules stay unpacked and binaries are stripped: measured as quick to start as the virtual
environment, and smaller once packed again than PyInstaller's own archive.
"""

import argparse
import ast
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from creonowd import __version__
from creonowd.cli.client import ProgressLine
from creonowd.errors import Wording
from creonowd.storage.locks import hold
from scripts.environment import BIN, LOCK, ROOT, say
from scripts.shipping.manifest import write_manifest
from scripts.shipping.npm import lay_out_bridge, lay_out_platform_package

DIST = ROOT / "dist"
NPM = DIST / "npm"
PROGRAM = "creonowd.exe" if os.name == "nt" else "creonowd"
EXTRAS = tuple(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
)
ALWAYS = "ripgrep"
EPOCH = 1_577_836_800
STAMP = "inputs.sha256"
BUILD_SECONDS = 600

# tiktoken asks for requests only to download a table, and ours come with the package.
UNUSED_LIBRARIES = ("requests",)
UNUSED_MODULES = (
    *("curses", "ensurepip", "idlelib", "lib2to3", "pydoc", "readline", "tkinter", "unittest"),
    "creonowd.testing",
    *("numpy.f2py", "numpy.fft", "numpy.ma", "numpy.polynomial", "numpy.random", "numpy.testing"),
    *("numpy._core._multiarray_tests", "numpy._core._simd"),
)
# What is imported by a name that is made at run time, or found by looking into a package.
HIDDEN_MODULES = ("anyio._backends._asyncio", "tiktoken_ext.openai_public")
# anyio imports its parts when they are used if it can read its own source, which says where they
# are; else it imports all of them, which took a twentieth of a start.
LAZY_PACKAGES = ("anyio", "anyio.abc")
RUN_FIRST = Path(__file__).with_name("file_imports.py")
INSTALLATION_RECORDS = {"INSTALLER", "RECORD", "REQUESTED", "direct_url.json"}

BLAS = Path(__file__).with_name("blas.c")
OPENBLAS_PARTS = ("libscipy_openblas", "libgfortran", "libquadmath")

_PACKAGING = Wording("PyInstaller collects what the program needs", "PyInstaller 正在收集程序所需")


def main(arguments: list[str]) -> int:
    """Build what was asked for and print where it is."""
    parser = argparse.ArgumentParser(prog="scripts/package", description=__doc__)
    optional = [extra for extra in EXTRAS if extra != ALWAYS]
    parser.add_argument(
        "--with",
        dest="extras",
        action="append",
        choices=optional,
        default=[],
        help="also an optional part of the package; ripgrep is always in",
    )
    parser.add_argument(
        "--npm", action="store_true", help="also lay out the npm packages: of it, and of the bridge"
    )
    parser.add_argument("--archive", action="store_true", help="also pack it as .tar.xz")
    parser.add_argument("--force", action="store_true", help="build even if nothing changed")
    asked = parser.parse_args(arguments)
    folder = ensure_folder({ALWAYS, *asked.extras}, force=asked.force)
    print(folder.relative_to(ROOT))
    if asked.npm:
        for package in (lay_out_platform_package(folder, NPM), lay_out_bridge(NPM)):
            print(package.relative_to(ROOT))
    if asked.archive:
        print(pack(folder, DIST).relative_to(ROOT))
    return 0


def platform_name() -> str:
    """Return the name of this platform as Node has it: `linux-x64`, `win32-x64`, `darwin-arm64`."""
    machine = platform.machine().lower()
    architecture = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(machine, machine)
    return f"{sys.platform}-{architecture}"


def ensure_folder(extras: Collection[str] = (ALWAYS,), *, force: bool = False) -> Path:
    """Return the folder with these extras, built now unless it is up to date.

    Of two that ask at once one builds it, and the other waits for it.
    """
    place = DIST / "-".join([platform_name(), *sorted(set(extras) - {ALWAYS})])
    DIST.mkdir(exist_ok=True)
    with hold(place.with_name(f"{place.name}.lock"), timeout_s=BUILD_SECONDS):
        folder, stamp = place / "creonowd", place / STAMP
        inputs = inputs_digest(extras)
        if not force and stamp.is_file() and stamp.read_text(encoding="utf-8") == inputs:
            return folder
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        say("Building the folder that needs no Python …")
        build(folder, extras)
        stamp.write_text(inputs, encoding="utf-8")
    return folder


def inputs_digest(extras: Collection[str]) -> str:
    """Return a digest of everything that the folder is made from."""
    digest = hashlib.sha256(f"{sys.version} {platform_name()} {sorted(extras)}".encode())
    builders = (Path(__file__), Path(__file__).with_name("manifest.py"), RUN_FIRST, BLAS)
    sources = (path for path in (ROOT / "creonowd").rglob("*") if "__pycache__" not in path.parts)
    for path in sorted({LOCK, ROOT / "pyproject.toml", *builders, *sources}):
        if path.is_file():
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build(folder: Path, extras: Collection[str]) -> None:
    """Build the folder, whose name is `creonowd`, with its manifest."""
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        command = [sys.executable, "-m", "PyInstaller", *_options(extras), "--noconfirm"]
        command += ["--distpath", str(work / "dist"), "--workpath", str(work / "build")]
        command += ["--specpath", scratch, str(ROOT / "creonowd" / "__main__.py")]
        environ = os.environ | {"PYTHONHASHSEED": "0", "SOURCE_DATE_EPOCH": str(EPOCH)}
        with ProgressLine(_PACKAGING):
            ran = subprocess.run(
                command, cwd=work, env=environ, capture_output=True, encoding="utf-8", check=False
            )
        if ran.returncode:
            say(ran.stderr)
            raise SystemExit(f"PyInstaller failed with status {ran.returncode}.")
        _drop_links(work / "dist" / "creonowd")
        _drop_installation_records(work / "dist" / "creonowd")
        _strip(work / "dist" / "creonowd")
        origins = _origins(work / "build" / "creonowd" / "COLLECT-00.toc")
        if replaced := replace_blas(work / "dist" / "creonowd" / "_internal"):
            origins |= {replaced: BLAS}
        shutil.move(work / "dist" / "creonowd", folder)
        write_manifest(folder, platform_name(), sorted(extras), origins)


def pack(folder: Path, place: Path) -> Path:
    """Pack the folder as .tar.xz, the same bytes for the same content."""
    name = f"creonowd-{__version__}-{folder.parent.name}.tar.xz"

    def neutral(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = EPOCH
        entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
        return entry

    with tarfile.open(place / name, "w:xz") as archive:
        archive.add(folder, "creonowd", recursive=False, filter=neutral)
        for path in sorted(folder.rglob("*")):
            inside = f"creonowd/{path.relative_to(folder).as_posix()}"
            archive.add(path, inside, recursive=False, filter=neutral)
    return place / name


def _options(extras: Collection[str]) -> Iterator[str]:
    required = closure(requirements("creonowd", extras))
    # Providers are loaded by name; what agents need is imported, and a part of it cannot even be.
    by_name = set(extras) - {"mcp"}
    chosen = closure(requirements("creonowd", by_name, only_extras=True))
    yield from ("--onedir", "--debug", "noarchive", "--name", "creonowd", "--log-level", "ERROR")
    yield from ("--collect-submodules", "creonowd", "--collect-data", "creonowd")
    yield from ("--runtime-hook", str(RUN_FIRST))
    for module in HIDDEN_MODULES:
        yield from ("--hidden-import", module)
    for package in LAZY_PACKAGES:
        place = Path(*package.split("."))
        source = distribution(place.parts[0]).locate_file(place / "__init__.py")
        yield from ("--add-data", f"{source}{os.pathsep}{place}")
    for name in ("creonowd", *requirements("creonowd", extras)):
        yield from ("--copy-metadata", name)
    for name in chosen:
        for module in _modules(distribution(name)):
            yield from ("--collect-submodules", module)
    others = (one for one in distributions() if _normal(one.name) not in {*required, "creonowd"})
    needed = {module for name in required for module in _modules(distribution(name))}
    unwanted = {module for one in others for module in _modules(one)} - needed
    for module in sorted({*unwanted, *UNUSED_MODULES}):
        yield from ("--exclude-module", module)
    ripgrep = shutil.which("rg", path=str(BIN))
    if ALWAYS in extras and ripgrep:
        # Where `sysconfig` says that programs of this Python are, which is where it is looked for.
        yield from (
            "--add-binary",
            f"{ripgrep}{os.pathsep}{'Scripts' if os.name == 'nt' else 'bin'}",
        )


def requirements(
    name: str, extras: Collection[str] = (), *, only_extras: bool = False
) -> list[str]:
    """Return what a distribution requires here, by normal names."""
    found: list[str] = []
    for line in distribution(name).requires or ():
        requirement, _, marker = line.partition(";")
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        if (extra and extra[1] not in extras) or (only_extras and not extra):
            continue
        wanted = _normal(re.split(r"[^\w.-]", requirement.strip(), maxsplit=1)[0])
        if wanted in _names_of_installed() and wanted not in UNUSED_LIBRARIES:
            found.append(wanted)
            if more := re.match(r"[\w.-]+\s*\[([^\]]+)\]", requirement.strip()):
                chosen = [part.strip() for part in more[1].split(",")]
                found += requirements(wanted, chosen, only_extras=True)
    return found


def closure(names: Iterable[str]) -> set[str]:
    """Return these distributions and everything that they require."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += requirements(name)
    return found


@cache
def _names_of_installed() -> frozenset[str]:
    return frozenset(_normal(one.name) for one in distributions())


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _modules(one: Distribution) -> set[str]:
    """Return the top-level modules and packages of a distribution."""
    tops = {path.parts[0] for path in one.files or () if path.suffix in {".py", ".so", ".pyd"}}
    names = {top.partition(".")[0] for top in tops}
    return {name for name in names if name.isidentifier() and name not in {"bin", "Scripts"}}


def _drop_links(folder: Path) -> None:
    """Remove links to libraries that their users find by themselves: npm packs no link."""
    for path in folder.rglob("*"):
        if path.is_symlink() and path.readlink().parts[0].endswith(".libs"):
            path.unlink()


def _drop_installation_records(folder: Path) -> None:
    """Remove what says how and from where packages were installed: it names the place of the clone."""
    for path in folder.glob("_internal/*.dist-info/*"):
        if path.name in INSTALLATION_RECORDS:
            path.unlink()


def _strip(folder: Path) -> None:
    """Remove the symbols that only a debugger reads, where there is a program that does.

    Libraries that a wheel brings in NAME.libs were rewritten when it was made, and so were their
    users; `strip` breaks those.
    """
    strip = shutil.which("strip")
    if strip is None or sys.platform != "linux":
        return
    rewritten = {path.name.removesuffix(".libs") for path in folder.glob("_internal/*.libs")}
    for path in folder.glob("_internal/**/*.so*"):
        owner = path.relative_to(folder).parts[1]
        if owner.removesuffix(".libs") not in rewritten:
            subprocess.run([strip, "--strip-unneeded", str(path)], check=True)


def replace_blas(libraries: Path) -> str | None:
    """Replace OpenBLAS below a folder by a small library of plain loops; return the file it became.

    None, and nothing changes, where there is no C compiler, or where numpy needs what they lack.
    """
    compiler, names = shutil.which("cc"), shutil.which("nm")
    found = [*libraries.glob("numpy.libs/libscipy_openblas64_*.so")]
    if sys.platform != "linux" or compiler is None or names is None or len(found) != 1:
        return None
    new = found[0].with_name("blas.new")
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "-s", "-o", new, BLAS], check=True)
    users = [*libraries.glob("numpy/**/*.so")]
    wanted = set(re.findall(r" U (scipy_\w+)", _output(names, "-D", *users)))
    if lacking := wanted - set(re.findall(r" T (scipy_\w+)", _output(names, "-D", new))):
        say(f"OpenBLAS stays: {BLAS.name} lacks {', '.join(sorted(lacking))}.")
        new.unlink()
        return None
    for path in found[0].parent.iterdir():
        if path.name.startswith(OPENBLAS_PARTS):
            path.unlink()
    return new.rename(found[0]).relative_to(libraries).as_posix()


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout


def _origins(contents: Path) -> dict[str, Path]:
    """Read from PyInstaller's table of contents where each file came from."""
    entries: list[tuple[str, str, str]] = ast.literal_eval(contents.read_text(encoding="utf-8"))[0]
    return {target.replace("\\", "/"): Path(source) for target, source, _ in entries}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
