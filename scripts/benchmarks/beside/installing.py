"""The peers' own environments under `.bench`, and the table they count with. Nothing here is ours."""

import gzip
import os
import shutil
import subprocess
import sys
from hashlib import sha1
from pathlib import Path

from creonowd.tokens.tables import packaged_tables

ROOT = Path(__file__).resolve().parents[3]
BENCH = ROOT / ".bench"
NODE = ("@vscode/prompt-tsx", "@microsoft/tiktokenizer")
PYTHON = ("tiktoken", "langchain-core", "llama-index-core")
URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


def tables() -> Path:
    """Unpack our table where tiktoken looks before it would download one."""
    folder = BENCH / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    # tiktoken names the files of its cache by the SHA-1 of their address.
    name = sha1(URL.encode(), usedforsecurity=False).hexdigest()
    packed = (packaged_tables() / "o200k_base.tiktoken.gz").read_bytes()
    (folder / name).write_bytes(gzip.decompress(packed))
    return folder / name


def node_modules() -> Path | None:
    """Install the peers that need Node, or say that there are none."""
    folder, npm = BENCH / "peers-node", shutil.which("npm")
    if npm is None:
        return None
    if all((folder / "node_modules" / name).is_dir() for name in NODE):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    return folder if _ran([npm, "install", "--no-audit", "--no-fund", *NODE], folder) else None


def python() -> Path | None:
    """Install the peers that need Python into an environment of theirs, or say that there is none."""
    folder = BENCH / "peers-python"
    program = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not program.exists() and not _ran([sys.executable, "-m", "venv", str(folder)], BENCH):
        return None
    found = [str(program), "-c", "import langchain_core, llama_index.core, tiktoken"]
    if _ran(found, BENCH) or _ran([str(program), "-m", "pip", "install", "-q", *PYTHON], BENCH):
        return program
    return None


def _ran(command: list[str], folder: Path) -> bool:
    quiet = subprocess.DEVNULL
    return not subprocess.run(
        command, cwd=folder, check=False, stdout=quiet, stderr=quiet
    ).returncode
