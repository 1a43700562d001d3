"""Set up what a fresh machine lacks: the virtual environment, Node packages, Chromium.

Each step leaves a stamp that names what it was made from, so that a second call costs nothing.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

if sys.version_info < (3, 11):  # noqa: UP036 - a fresh machine may well have an older one
    raise SystemExit(
        f"Python 3.11 or newer is needed, this is {sys.version.split()[0]}.\n"
        "Install it and call it by its name, such as: python3.11 scripts/run"
    )

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
STAMPS = ROOT / ".stamps"
LOCK = ROOT / "scripts" / "requirements.lock"
RUN_LOCK = LOCK.with_name("requirements-run.lock")
AI_LOCK = LOCK.with_name("requirements-ai.lock")
NODE_ROOT = ROOT / "protocol"

# What an installation was made from.
DEVELOPING = (LOCK, ROOT / "pyproject.toml")
RUNNING = (RUN_LOCK, ROOT / "pyproject.toml")
PROVIDERS = (AI_LOCK,)

PIP_INSTALL = ["install", "--quiet", "--disable-pip-version-check"]
OUTER_PIP = (22, 3)  # the first that has `--python`


def ensure_python() -> None:
    """Make the virtual environment of the lock file, with creonowd installed in place."""
    if PYTHON.exists() and _fresh("python", DEVELOPING):
        return
    if not PYTHON.exists() or not _has_pip():
        say("Making the virtual environment …")
        _make_venv(with_pip=True)
    pip = [str(PYTHON), "-P", "-m", "pip"]
    say("Installing the packages for running and testing …")
    _install(pip, LOCK)
    _install_in_place(pip)
    _stamp("python", DEVELOPING)


def ensure_running(*, ai: bool = False) -> None:
    """Make the virtual environment with what running needs, and with the SDKs of AI providers.

    It is the one that `ensure_python` completes; one that is complete is left alone.
    """
    if PYTHON.exists() and _fresh("python", DEVELOPING):
        return
    installed = PYTHON.exists() and _fresh("run", RUNNING)
    if installed and (not ai or _fresh("ai", PROVIDERS)):
        return
    pip = _outer_pip()
    if not PYTHON.exists() or (pip is None and not _has_pip()):
        say("[1/3] Making the virtual environment in .venv …")
        _make_venv(with_pip=pip is None)
    pip = pip or [str(PYTHON), "-P", "-m", "pip"]
    if not installed:
        say("[2/3] Installing the packages that running needs …")
        _install(pip, RUN_LOCK, "--no-deps", "--no-compile")
        say("[3/3] Installing creonowd in place …")
        _install_in_place(pip)
        _stamp("run", RUNNING)
    if ai:
        say("Installing the libraries of AI providers …")
        _install(pip, AI_LOCK, "--no-deps", "--no-compile")
        _stamp("ai", PROVIDERS)


def _make_venv(*, with_pip: bool) -> None:
    more = [] if with_pip else ["--without-pip"]
    venv = [sys.executable, "-P", "-m", "venv", *more, str(VENV)]
    if subprocess.run(venv, check=False).returncode:
        shutil.rmtree(VENV, ignore_errors=True)  # half an environment would pass for a whole one
        fail("python3 -m venv failed.", "On Debian: apt-get install python3-venv")


def _has_pip() -> bool:
    return (BIN / ("pip.exe" if os.name == "nt" else "pip")).exists()


def _outer_pip() -> list[str] | None:
    """Return the pip of this Python, if it can install elsewhere: making a new one takes 4.5 s."""
    asked = subprocess.run(
        [sys.executable, "-P", "-m", "pip", "--version"],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    number = re.match(r"pip (\d+)\.(\d+)", asked.stdout)
    if asked.returncode or number is None or (int(number[1]), int(number[2])) < OUTER_PIP:
        return None
    return [sys.executable, "-P", "-m", "pip", "--python", str(PYTHON)]


def _install(pip: list[str], lock: Path, *options: str) -> None:
    _must(
        [*pip, *PIP_INSTALL, *options, "--require-hashes", "-r", str(lock)],
        f"The packages of scripts/{lock.name} could not be installed.",
        "Check that pip can reach your package index, then try again.",
    )


def _install_in_place(pip: list[str]) -> None:
    _must(
        [*pip, *PIP_INSTALL, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)],
        "creonowd could not be installed in place.",
        "Delete .venv and try again.",
    )


def ensure_node() -> None:
    """Install the Node packages that the contract's tests and generator use."""
    names = ("package.json", "package-lock.json", "electron/package.json")
    inputs = tuple(NODE_ROOT / name for name in names)
    if not inputs[0].exists() or (_fresh("node", inputs) and (NODE_ROOT / "node_modules").exists()):
        return
    npm = shutil.which("npm")
    if npm is None:
        fail(
            "npm is not installed.",
            "Install Node 20 or newer; on Debian: apt-get install nodejs npm",
        )
    say("Installing the Node packages …")
    _must(
        [npm, "ci", "--silent", "--no-audit", "--no-fund"],
        "npm ci failed in protocol/.",
        "Check that npm can reach your registry, then try again.",
        cwd=NODE_ROOT,
    )
    _stamp("node", inputs)


def ensure_chromium() -> Path:
    """Find Chromium, or install Debian's when we are root; say how to get it otherwise."""
    found = chromium()
    if found is None:
        install_debian("Chromium", ("chromium", "fonts-noto-cjk"))
        found = chromium()
    if found is None:
        fail(
            "Chromium is not installed, and the browser tests need it.",
            "On Debian: apt-get install chromium; else put it on PATH or name it in CREONOW_CHROMIUM.",
        )
    return found


def install_debian(what: str, packages: tuple[str, ...]) -> None:
    """Install packages of Debian when we are root there; the caller looks whether that helped."""
    if not (shutil.which("apt-get") and hasattr(os, "geteuid") and os.geteuid() == 0):
        return
    say(f"Installing {what} …")
    install = ["install", "-y", "--no-install-recommends", *packages]
    for words in (["update"], install):
        subprocess.run(
            ["apt-get", "-qq", *words],
            env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
            check=False,
            stdout=subprocess.DEVNULL,
        )


def chromium() -> Path | None:
    """Return where Chromium is, or None."""
    named = os.environ.get("CREONOW_CHROMIUM")
    candidates = [named] if named else ["chromium", "chromium-browser", "google-chrome"]
    paths = (shutil.which(candidate) for candidate in candidates if candidate)
    return next((Path(path) for path in paths if path), None)


def say(text: str) -> None:
    """Print what is going on, for the person at the terminal."""
    print(text, file=sys.stderr, flush=True)


def fail(what: str, remedy: str) -> NoReturn:
    """Stop, saying what is missing and how to get it."""
    say(f"{what}\n{remedy}")
    raise SystemExit(1)


def _must(command: list[str], what: str, remedy: str, cwd: Path = ROOT) -> None:
    if subprocess.run(command, cwd=cwd, check=False).returncode:
        fail(what, remedy)


def _digest(inputs: tuple[Path, ...]) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in inputs:
        digest.update(path.read_bytes() if path.exists() else b"")
    return digest.hexdigest()


def _fresh(name: str, inputs: tuple[Path, ...]) -> bool:
    stamp = STAMPS / name
    return stamp.exists() and stamp.read_text(encoding="utf-8") == _digest(inputs)


def _stamp(name: str, inputs: tuple[Path, ...]) -> None:
    STAMPS.mkdir(exist_ok=True)
    (STAMPS / name).write_text(_digest(inputs), encoding="utf-8")
