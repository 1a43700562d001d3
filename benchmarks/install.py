"""What an installation costs: its start, its memory and its size on disk.

The wheel is built and installed into a temporary environment with its dependencies and nothing else.
Packages come from the index that pip is configured with.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import psutil

from scripts.environment import ROOT
from scripts.shipping.folder import PROGRAM, ensure_folder, pack

ROUNDS = 15
MIB = 1024 * 1024
BASE = "import anyio._backends._asyncio, msgspec, structlog"
SIZES = """
import importlib.metadata as m, json
def size(d):
    files = (f.locate() for f in d.files or ())
    return sum(p.stat().st_size for p in files if p.is_file())
print(json.dumps({d.name: size(d) for d in m.distributions()}))
"""
NOVEL = ROOT / "e2e" / "sample"
LARGEST = 5


class Line:
    """A client of a daemon on its standard streams."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._stdin = cast("BinaryIO", process.stdin)
        self._stdout = cast("BinaryIO", process.stdout)
        self._watched = psutil.Process(process.pid)

    def call(self, method: str, **params: Any) -> Any:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._stdin.write(json.dumps(request).encode() + b"\n")
        self._stdin.flush()
        while "result" not in (reply := json.loads(self._stdout.readline())):
            assert "error" not in reply, reply
        return reply["result"]

    def notify(self, method: str) -> None:
        self._stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")
        self._stdin.flush()

    def processor_seconds(self) -> float:
        times = self._watched.cpu_times()
        return times.user + times.system

    def megabytes(self) -> float:
        return self._watched.memory_info().rss / MIB


def main(_argv: list[str]) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        python, wheel = _install(place)
        print("| an installation | |\n|---|---|")
        _start(python, place)
        _memory([python, "-P", "-m", "creonowd"], place)
        _disk(python, wheel)
        _folder([python, "-P", "-m", "creonowd"], place)
        _agents(place)


def _install(place: Path) -> tuple[str, Path]:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
    python = str(place / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)]
    subprocess.run(pip, check=True, stderr=subprocess.DEVNULL)
    return python, wheel


def _start(python: str, place: Path) -> None:
    imports: list[float] = []
    replies: list[float] = []
    for _ in range(ROUNDS):
        imports.append(_time_imports(python, place))
        replies.append(_time_first_reply([python, "-P", "-m", "creonowd"], place)[0])
    base, first = statistics.median(imports), statistics.median(replies)
    what = "spawn to first reply ÷ importing anyio, msgspec and structlog (goal ≤ 1.5)"
    print(f"| {what} | {first / base:.2f} |")


def _time_imports(python: str, place: Path) -> float:
    started = time.perf_counter()
    subprocess.run([python, "-c", BASE], cwd=place, check=True)
    return time.perf_counter() - started


def _time_first_reply(program: list[str], place: Path) -> tuple[float, float]:
    """Return what a start takes by the clock and of the processor, which others do not disturb."""
    started = time.perf_counter()
    with _daemon(program, place) as line:
        line.call("app:ping")
        return time.perf_counter() - started, line.processor_seconds()


def _memory(program: list[str], place: Path) -> None:
    with _daemon(program, place) as line:
        line.call("app:health")
        idle = line.megabytes()
        line.call("tokens:count", text="第一章")
        loaded = line.megabytes()
        project = line.call("project:create", rootPath=str(NOVEL))["projectId"]
        document = "chapters/03-水文站.md"
        where = {"projectId": project, "documentId": document, "cursorPosition": 100}
        line.call("context:assemble", skillId="builtin:continue", **where)
        used = line.megabytes()
    print(f"| idle, no tokenizer (goal ≤ 45 MB) | {idle:.0f} MB |")
    print(f"| with o200k_base loaded | {loaded:.0f} MB |")
    print(f"| after an assembly of the sample | {used:.0f} MB |")


def _disk(python: str, wheel: Path) -> None:
    output = subprocess.run([python, "-c", SIZES], check=True, capture_output=True, text=True)
    sizes: dict[str, int] = json.loads(output.stdout)
    ours = {name: size for name, size in sizes.items() if name not in {"pip", "setuptools"}}
    print(f"| the wheel | {wheel.stat().st_size / MIB:.1f} MB |")
    print(f"| on disk, all {len(ours)} packages | {sum(ours.values()) / MIB:.1f} MB |")
    by_size = sorted(ours.items(), key=lambda item: -item[1])
    for name, size in by_size[:LARGEST]:
        print(f"| – {name} | {size / MIB:.1f} MB |")
    others = by_size[LARGEST:]
    print(f"| – the other {len(others)} | {sum(size for _, size in others) / MIB:.1f} MB |")


def _folder(installed: list[str], place: Path) -> None:
    """Print what the folder without Python costs beside the virtual environment."""
    folder = ensure_folder()
    frozen = [str(folder / PROGRAM)]
    programs = {"the virtual environment": installed, "the folder without Python": frozen}
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, program in programs.items():
            times[name].append(_time_first_reply(program, place))
    clock, processor = map(_middle, zip(*times["the virtual environment"], strict=True))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    packed = pack(folder, place).stat().st_size
    print("\n| | spawn to first reply, ratio | processor time, ratio | idle | on disk | packed |")
    print("|---|---|---|---|---|---|")
    for name, program in programs.items():
        with _daemon(program, place) as line:
            line.call("app:health")
            idle = line.megabytes()
        sizes = f"{size / MIB:.0f} MB | {packed / MIB:.1f} MB" if program == frozen else "– | –"
        waited, worked = map(_middle, zip(*times[name], strict=True))
        ratios = f"{waited / clock:.2f} | {worked / processor:.2f}"
        print(f"| {name} | {ratios} | {idle:.0f} MB | {sizes} |")


def _middle(times: Sequence[float]) -> float:
    """Return the mean of the middle half: the system counts processor time in hundredths of a second."""
    ordered = sorted(times)
    cut = len(ordered) // 4
    return statistics.fmean(ordered[cut : len(ordered) - cut])


def _agents(place: Path) -> None:
    """Print what the server for agents takes, beside a daemon that runs."""
    novel = place / "novel"
    novel.mkdir()
    (novel / "01.md").write_text("# 1\n\nRain.\n", encoding="utf-8")
    words = ["mcp", "--project", str(novel), "--user-data", str(place / "data")]
    program = [sys.executable, "-P", "-m", "creonowd"]
    hello: dict[str, Any] = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    }
    greeted: list[float] = []
    listed: list[float] = []
    called: list[float] = []
    used = 0.0
    with _daemon(program, place) as daemon:
        daemon.call("app:ping")
        for _ in range(3):
            started = time.perf_counter()
            pipe = subprocess.PIPE
            with subprocess.Popen(
                [*program, *words], stdin=pipe, stdout=pipe, cwd=place
            ) as process:
                line = Line(process)
                line.call("initialize", **hello)
                greeted.append(time.perf_counter() - started)
                line.notify("notifications/initialized")
                line.call("tools/list")
                listed.append(time.perf_counter() - started)
                line.call("tools/call", name="story_outline", arguments={})
                called.append(time.perf_counter() - started)
                used = line.megabytes()
                cast("BinaryIO", process.stdin).close()
    base = statistics.median(_time_imports(sys.executable, place) for _ in range(3))
    print(
        "\n| `creonowd mcp` beside a running daemon, ÷ importing anyio, msgspec and structlog | |"
    )
    print("|---|---|")
    for what, times in (
        ("spawn to the answer of initialize", greeted),
        ("to the list of tools", listed),
        ("to the first answer of a tool", called),
    ):
        print(f"| {what} | {statistics.median(times) / base:.1f} |")
    print(f"| memory after that | {used:.0f} MB |")


@contextmanager
def _daemon(program: list[str], place: Path) -> Generator[Line]:
    command = [*program, "serve", "--stdio", "--user-data", str(place / "data")]
    quiet = os.environ | {"CREONOW_WARM_UP": "false"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=place, env=quiet) as process:
        try:
            yield Line(process)
        finally:
            cast("BinaryIO", process.stdin).close()
