"""What an assembly costs in a real daemon, with the index built, and the specification's limits.

Two projects are made of one novel: one as large as the specification says, and a larger one. Requests
go over the socket; those that come at once are sent by a process that does nothing else. Processor
time is that of the daemon alone and is compared with one count of the prompt's tokens in the same
run, so that a busy machine changes the milliseconds and hardly the ratios. Beside each figure stands
that of `programs/least_assembly`, which gets the same requests and does only what cannot be avoided,
and how many times as much the daemon takes. `--quick` leaves out the corpus of ten times the size;
`--only seed` or `--only large` measures one project.
"""

# requirement: CE-056, CE-057, CE-058, CE-066, CE-083, CE-084, CE-085, CE-086, CE-087

import contextlib
import gc
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import psutil

from benchmarks.novel import (
    DOCUMENT,
    LARGE,
    REDACTOR,
    SPECIFIED,
    Size,
    make_plan,
    make_project,
    write,
)
from benchmarks.traffic import percentile, percentiles
from creonowd.context.assemble import compose
from creonowd.context.fragment import Fragment, Layer, Place
from creonowd.context.source import GatheredFragments
from creonowd.context.text_tools import Memory, TextTools
from creonowd.retrieval.project_index import FOLDER
from creonowd.text import common_prefix
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer
from testing.corpus import chinese, origin

ROUNDS = 9
ONE_BY_ONE = 200
STARTS = 5
APPENDED = 120
EDITED = 60
DOCUMENTS = 125
REQUESTS_EACH = 4
CONNECTIONS = 4
VOLUMES = 10
START_SECONDS = 30
BUDGET = 6000
CROWD = "benchmarks.programs.crowd"
LEAST = "benchmarks.programs.least_assembly"
REPLY = "reply.json"
LOAD_TABLE = (
    "from creonowd.tokens.tables import packaged_encoding as p; p('o200k_base').encode('a')"
)


def main(argv: list[str]) -> None:
    """Print one table for each project, and one for what has no project."""
    chosen = argv[argv.index("--only") + 1] if "--only" in argv else None
    text = chinese()
    print(f"Texts: {origin()}.\n")
    gc.freeze()
    with _bytecode():
        _measure(argv, chosen, text)


@contextlib.contextmanager
def _bytecode() -> Generator[None]:
    """Let all programs keep their bytecode for the block, as those of an installed package do."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        yield


def _measure(argv: list[str], chosen: str | None, text: str) -> None:
    for name, size in (("seed", SPECIFIED), ("large", LARGE)):
        if chosen in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                volumes = "--quick" not in argv and size is SPECIFIED
                _measure_project(Path(folder), text, size, volumes=volumes)
    if chosen is None:
        _head("without a project")
        _measure_growth(text)


def _head(title: str) -> None:
    print(f"\n| {title} | measured | the least | ÷ | goal |\n|---|---|---|---|---|", flush=True)


def _row(what: str, measured: str, goal: str, least: str = "–", ratio: float | None = None) -> None:
    times = "–" if ratio is None else f"{ratio:.1f}"
    print(f"| {what} | {measured} | {least} | {times} | {goal} |", flush=True)


class Server:
    """A daemon, or the least one, in a process of its own, with one connection to it."""

    def __init__(self, command: list[str], path: Path) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        self.socket = path
        self._stream = self._connect()
        self._number = 0

    def _connect(self) -> socket.socket:
        end = time.monotonic() + START_SECONDS
        while True:
            stream = socket.socket(socket.AF_UNIX)
            try:
                stream.connect(str(self.socket))
            except OSError:
                stream.close()
                if time.monotonic() > end:
                    raise
                time.sleep(0.002)
            else:
                return stream

    def exchange(self, message: bytes) -> bytes:
        """Send one line and return the line that answers it."""
        self._stream.sendall(message)
        chunks = [self._stream.recv(1 << 20)]
        while not chunks[-1].endswith(b"\n"):
            chunks.append(self._stream.recv(1 << 20))
        return b"".join(chunks)

    def ask(self, method: str, **params: Any) -> Any:
        """Call a channel and return its result."""
        self._number += 1
        reply = msgspec.json.decode(self.exchange(request(self._number, method, params)))
        if "error" in reply:
            raise SystemExit(f"{method}: {reply['error']}")
        return reply["result"]

    @property
    def cpu(self) -> float:
        """The seconds of processor time that the daemon has used."""
        if sys.platform == "linux":
            return time.clock_gettime(~self.process.pid << 3 | 2)
        times = psutil.Process(self.process.pid).cpu_times()
        return times.user + times.system

    def megabytes(self) -> float:
        """Return how much memory the daemon has."""
        return psutil.Process(self.process.pid).memory_info().rss / 1e6

    def close(self) -> None:
        """End it and wait."""
        self._stream.close()
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(START_SECONDS)


@contextlib.contextmanager
def run_daemon(user_data: Path) -> Generator[Server]:
    """Run a daemon for the block."""
    command = [sys.executable, "-m", "creonowd", "serve", "--stdio", "--debug"]
    with _run_server(
        [*command, "--user-data", str(user_data)], user_data / "run/creonowd.sock"
    ) as one:
        yield one


@contextlib.contextmanager
def run_least(folder: Path, user_data: Path, root: Path) -> Generator[Server]:
    """Run the least program over the index of a daemon for the block."""
    index = next((user_data / FOLDER).glob("*.sqlite3"))
    path = folder / "least.sock"
    path.unlink(missing_ok=True)
    files = [str(one) for one in (path, index, root, folder / REPLY)]
    with _run_server([sys.executable, "-m", LEAST, *files], path) as one:
        yield one


@contextlib.contextmanager
def _run_server(command: list[str], path: Path) -> Generator[Server]:
    server = Server(command, path)
    try:
        yield server
    finally:
        server.close()


def request(number: int, method: str, params: dict[str, Any]) -> bytes:
    """Return a request as one line."""
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    return msgspec.json.encode(message) + b"\n"


class Subject(NamedTuple):
    """The project under measurement: its id, the payload for its 42nd chapter, and that chapter."""

    project: str
    payload: dict[str, Any]
    chapter: str


def _measure_project(folder: Path, text: str, size: Size, *, volumes: bool) -> None:
    root, user_data = folder / "小说", folder / "user data"
    chapter = make_project(root, text, size)[41]
    _head(
        f"120 chapters, {size.constraints} constraints, {size.characters} characters,"
        f" {size.settings} settings"
    )
    with run_daemon(user_data) as daemon:
        project = daemon.ask("project:create", rootPath=str(root))["projectId"]
        subject = Subject(project, _payload(project, len(chapter) * 3 // 4), chapter)
        _wait_for_index(daemon, project)
        first = request(1, "context:assemble", subject.payload)
        (folder / REPLY).write_bytes(daemon.exchange(first))
        with run_least(folder, user_data, root) as least:
            least.exchange(first)
            _many_at_once(daemon, least, subject, folder, large=size is LARGE)
            one = _alone(daemon, least, subject)
        _print_writing(daemon, subject)
        _row("memory of the daemon after all that", f"{daemon.megabytes():.0f} MB", "–")
    _cold(folder, user_data, subject, root)
    _starts(folder, user_data, subject, root)
    if volumes:
        _ten_volumes(folder, text, size, one)


def _payload(project: str, cursor: int, document: str = DOCUMENT) -> dict[str, Any]:
    return {
        "projectId": project,
        "skillId": "bench",
        "documentId": document,
        "cursorPosition": cursor,
    }


def _wait_for_index(daemon: Server, project: str) -> None:
    place = {"documentId": DOCUMENT, "cursorPosition": 0, "query": "雨", "limit": 1}
    for _ in range(2):
        daemon.ask(
            "context:retrieve",
            projectId=project,
            **place,
            wait=True,
            _meta={"timeoutMs": 600_000},
        )


class Crowd(NamedTuple):
    """How 500 at once were answered, and what one of them took of the processor, in seconds."""

    milliseconds: list[float]
    pings: list[float]
    client: float
    cpu: float
    replies: list[Any]


def _many_at_once(
    daemon: Server, least: Server, subject: Subject, folder: Path, *, large: bool
) -> None:
    documents = [f"chapters/{n + 1:03}.md" if n < 120 else f"new/{n}.md" for n in range(DOCUMENTS)]
    for name, shift in (("first time", 0), ("again", 0), ("9 characters on", 9)):
        lines = [
            request(
                turn * DOCUMENTS + number,
                "context:assemble",
                _payload(subject.project, 500 * turn + 100 + shift, document),
            )
            for turn in range(REQUESTS_EACH)
            for number, document in enumerate(documents)
        ]
        ours, floor = _crowd(daemon, lines, folder), _crowd(least, lines, folder)
        results = [reply["result"] for reply in ours.replies if "result" in reply]
        once = _count_seconds(results[len(results) // 2]["prompt"])
        _row(
            f"500 at once over 125 documents, {name}: p50 / p95 / p99",
            f"{percentiles(ours.milliseconds)} ms; {_outcome(results)}",
            "p95 < 1 s" if large else "p95 < 250, p99 < 500 ms",
            f"{percentiles(floor.milliseconds)} ms",
            percentile(ours.milliseconds, 0.95) / percentile(floor.milliseconds, 0.95),
        )
        _row(
            f"{name}: processor time per assembly; ÷ one count of its prompt",
            f"{1000 * ours.cpu:.2f} ms; {ours.cpu / once:.2f}",
            "≤ 0.5 counts",
            f"{1000 * floor.cpu:.2f} ms; {floor.cpu / once:.2f}",
            ours.cpu / floor.cpu,
        )
        _row(
            f"{name}: ping meanwhile, p50 / p99; processor time of the clients, per reply",
            f"{percentile(ours.pings, 0.5):.1f} / {percentile(ours.pings, 0.99):.1f} ms;"
            f" {1000 * ours.client:.2f} ms",
            "p99 ≤ 20 ms",
        )


def _crowd(server: Server, lines: list[bytes], folder: Path) -> Crowd:
    """Let another process send all requests at once."""
    replies = folder / "replies"
    job = {
        "socket": str(server.socket),
        "connections": CONNECTIONS,
        "lines": [line.decode().strip() for line in lines],
        "replies": str(replies),
    }
    cpu = server.cpu
    command = [sys.executable, "-m", CROWD]
    done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, check=True)
    spent = (server.cpu - cpu) / len(lines)
    figures = msgspec.json.decode(done.stdout)
    decoded = [msgspec.json.decode(line) for line in replies.read_bytes().splitlines()]
    client = figures["cpu"] / len(lines)
    return Crowd(figures["milliseconds"], figures["pings"], client, spent, decoded)


def _outcome(results: list[Any]) -> str:
    within = all(result["tokenCount"] <= BUDGET for result in results)
    layers = sum(all(part["chunks"] for part in result["layers"].values()) for result in results)
    short = sum("UNAVAILABLE" in str(result["warnings"]) for result in results)
    budget = "kept" if within else "BROKEN"
    return (
        f"{len(results)} answered, {layers} with all four layers, {short} without their document,"
        f" budget {budget}"
    )


class OneByOne(NamedTuple):
    """Assemblies one after the other: milliseconds of each, and the daemon's seconds for one."""

    milliseconds: list[float]
    cpu: float

    @property
    def p50(self) -> float:
        """The milliseconds of the middle one."""
        return statistics.median(self.milliseconds)


def _one_by_one(daemon: Server, subject: Subject) -> OneByOne:
    """Assemble at many places of a chapter."""
    messages = [
        request(n, "context:assemble", {**subject.payload, "cursorPosition": cursor})
        for n, cursor in enumerate(
            100 + 97 * n % (len(subject.chapter) - 200) for n in range(ONE_BY_ONE)
        )
    ]
    for message in messages[:20]:
        daemon.exchange(message)
    cpu = daemon.cpu
    alone = _times([lambda m=message: daemon.exchange(m) for message in messages])
    return OneByOne(alone, (daemon.cpu - cpu) / len(messages))


def _alone(daemon: Server, least: Server, subject: Subject) -> OneByOne:
    """Print what single requests take."""
    one, floor = _one_by_one(daemon, subject), _one_by_one(least, subject)
    pings = [request(n, "app:ping", {}) for n in range(ONE_BY_ONE)]
    ping = statistics.median(_times([lambda m=message: daemon.exchange(m) for message in pings]))
    prompt = daemon.ask("context:assemble", **subject.payload)["prompt"]
    once = _count_seconds(prompt)
    _row(
        "one after the other over the socket, p50 / p95 / p99",
        f"{percentiles(one.milliseconds, 1)} ms",
        "< 120 / 250 / 500 ms",
        f"{percentiles(floor.milliseconds, 1)} ms",
        one.p50 / floor.p50,
    )
    _row("its p50 ÷ that of `app:ping`", f"{one.p50 / ping:.1f} ({ping:.3f} ms)", "halved")
    _row(
        "its processor time; ÷ one count of its prompt",
        f"{1000 * one.cpu:.2f} ms; {one.cpu / once:.2f} ({1000 * once:.2f} ms)",
        "≤ 0.5 counts",
        f"{1000 * floor.cpu:.2f} ms; {floor.cpu / once:.2f}",
        one.cpu / floor.cpu,
    )
    inspected = {**subject.payload, "debugMode": True}
    seen = _times([lambda: daemon.ask("context:inspect", **inspected) for _ in range(40)])
    _row("inspect, p95", f"{percentile(seen, 0.95):.1f} ms", "< 180 ms")
    data = prompt.encode()
    hashed = _times([lambda: sha256(data).hexdigest() for _ in range(40)])
    _row("hash, p95", f"{percentile(hashed, 0.95):.2f} ms", "< 20 ms")
    return one


def _print_writing(daemon: Server, subject: Subject) -> None:
    """Type into the open document, and assemble after every few letters."""
    document = {"projectId": subject.project, "documentId": DOCUMENT}
    for skill, name in (("bench", "general profile"), ("continue", "skill `continue`")):
        for what, states in (("appending", _append), ("editing", _edit)):
            prompts: list[bytes] = []
            prefixes: list[str] = []
            cpu = spent = 0.0
            for version, (text, cursor) in enumerate(states(subject.chapter), start=1):
                daemon.ask("context:document:sync", **document, version=version, text=text)
                cpu = daemon.cpu
                result = daemon.ask(
                    "context:assemble",
                    **{**subject.payload, "skillId": skill, "cursorPosition": cursor},
                )
                spent += daemon.cpu - cpu
                prompts.append(result["prompt"].encode())
                prefixes.append(result["stablePrefixHash"])
            daemon.ask("context:document:close", **document)
            common = sum(common_prefix(one, other) for one, other in pairwise(prompts))
            stable = sum(one == other for one, other in pairwise(prefixes)) / (len(prefixes) - 1)
            share = common / sum(map(len, prompts[1:]))
            each, once = spent / len(prompts), _count_seconds(prompts[-1].decode())
            _row(
                f"writing, {name}: {what}",
                f"{share:.1%} of bytes, {stable:.0%} of calls stable;"
                f" {1000 * each:.2f} ms of processor time, {each / once:.2f} counts",
                "≥ 90 % of bytes, 100 % of calls" if what == "appending" else "100 % of calls",
            )


def _append(text: str) -> list[tuple[str, int]]:
    """Type a chapter at its end; the text and the cursor at each call."""
    chance = random.Random(3)
    ends = [len(text) // 2]
    for _ in range(APPENDED):
        ends.append(ends[-1] + chance.randint(4, 24))
    return [(text[:end], end) for end in ends if end <= len(text)]


def _edit(text: str) -> list[tuple[str, int]]:
    """Insert words in the middle of a chapter; the text and the cursor at each call."""
    cursor = len(text) // 2
    chance = random.Random(4)
    states = [(text, cursor)]
    for _ in range(EDITED):
        typed = "她又想起那夜的雨。"[: chance.randint(2, 9)]
        text = text[:cursor] + typed + text[cursor:]
        cursor += len(typed)
        states.append((text, cursor))
    return states


def _cold(folder: Path, user_data: Path, subject: Subject, root: Path) -> None:
    """Measure the first assembly of a daemon whose tokenizer is loaded and whose index is on disk."""
    texts = "\n".join([subject.chapter, *_candidates(root)])
    tables = packaged_encoding("o200k_base")
    message = request(1, "context:assemble", subject.payload)
    ours: list[tuple[float, float]] = []
    floors: list[tuple[float, float]] = []
    for _ in range(STARTS):
        with run_daemon(user_data) as daemon:
            daemon.ask("tokens:count", text="雨")
            ours.append(_first(daemon, message, texts))
        with run_least(folder, user_data, root) as least:
            floors.append(_first(least, message, texts))
    tokens = len(tables.encode_ordinary(texts))
    wall, cpu = (statistics.median(column) for column in zip(*ours, strict=True))
    least_wall, least_cpu = (statistics.median(column) for column in zip(*floors, strict=True))
    _row(
        f"cold, index on disk ÷ one count of its {tokens} tokens: by the clock; processor time",
        f"{wall:.1f}; {cpu:.1f}",
        "≤ 2",
        f"{least_wall:.1f}; {least_cpu:.1f}",
        cpu / least_cpu,
    )


def _first(server: Server, message: bytes, texts: str) -> tuple[float, float]:
    """Return how many counts of some texts one exchange takes, by the clock and of the processor."""
    once, cpu, started = _count_seconds(texts), server.cpu, time.perf_counter()
    server.exchange(message)
    return (time.perf_counter() - started) / once, (server.cpu - cpu) / once


def _candidates(root: Path) -> list[str]:
    """Return the texts of rules, characters and settings."""
    items = msgspec.json.decode((root / ".creonow/rules/constraints.json").read_bytes())["items"]
    files = sorted((root / ".creonow").glob("*/*.md"))
    return [*(item["text"] for item in items), *(path.read_text("utf-8") for path in files)]


def _starts(folder: Path, user_data: Path, subject: Subject, root: Path) -> None:
    """Measure from the spawn to the first prompt, beside a program that only loads the table."""
    bare: list[float] = []
    first: list[float] = []
    floor: list[float] = []
    command = [sys.executable, "-c", LOAD_TABLE]
    message = request(1, "context:assemble", subject.payload)
    for _ in range(STARTS):
        started = time.perf_counter()
        subprocess.run(command, check=True)
        bare.append(time.perf_counter() - started)
        with run_daemon(user_data) as daemon:
            daemon.exchange(message)
            first.append(time.perf_counter() - daemon.started)
        with run_least(folder, user_data, root) as least:
            least.exchange(message)
            floor.append(time.perf_counter() - least.started)
    spawn, load, lowest = (statistics.median(times) for times in (first, bare, floor))
    _row(
        "spawn → first prompt ÷ a program that only loads the tokenizer's table",
        f"{spawn / load:.2f} ({1000 * spawn:.0f} ÷ {1000 * load:.0f} ms)",
        "≤ 1.3",
        f"{lowest / load:.2f} ({1000 * lowest:.0f} ms)",
        spawn / lowest,
    )


def _ten_volumes(folder: Path, text: str, size: Size, one: OneByOne) -> None:
    """Measure the same assemblies in a project of ten times as many chapters."""
    root, user_data = folder / "十卷", folder / "more user data"
    chapter = make_project(root, text, size)[41]
    for volume in range(1, VOLUMES):
        for path in sorted((root / "chapters").glob("*.md")):
            if path.name[0] in "01":
                words = path.read_text("utf-8").split("，")
                random.Random(volume).shuffle(words)
                write(root / f"chapters/卷{volume}-{path.name}", "，".join(words))
    with run_daemon(user_data) as daemon:
        project = daemon.ask("project:create", rootPath=str(root))["projectId"]
        _wait_for_index(daemon, project)
        subject = Subject(project, _payload(project, len(chapter) * 3 // 4), chapter)
        more = _one_by_one(daemon, subject)
        _row(
            "ten times the corpus ÷ one volume: processor time; by the clock",
            f"{more.cpu / one.cpu:.2f}; {more.p50 / one.p50:.2f}",
            "≤ 1.5",
        )
        _row("memory of the daemon with it", f"{daemon.megabytes():.0f} MB", "–")


def _measure_growth(text: str) -> None:
    small, large = _median(lambda: _compose(text, 1000)), _median(lambda: _compose(text, 10_000))
    _row("10 000 chunks ÷ 1000 chunks", f"{large / small:.1f}", "≤ 11")
    few = _median(lambda: _compose(text, 20, Layer.SETTINGS))
    many = _median(lambda: _compose(text, 200, Layer.SETTINGS))
    _row("200 settings ÷ 20 settings", f"{many / few:.1f}", "≤ 11")
    spent = _times([lambda: _compose(text, 64) for _ in range(40)])
    _row(
        "budget calculation anew, p50 / p95 / p99",
        f"{percentiles(spent, 1)} ms",
        "< 30 / 80 / 150 ms",
    )


def _compose(text: str, count: int, layer: Layer = Layer.RETRIEVED) -> None:
    fragments = tuple(
        Fragment(
            layer=layer,
            source="bench",
            source_ref=f"{n}.md",
            text=text[n * 80 : n * 80 + 80],
            score=n % 97 / 97,
            place=Place(0, f"{n}"),
        )
        for n in range(count)
    )
    given = {each: fragments if each is layer else () for each in Layer}
    tokenizer = BpeTokenizer(packaged_encoding("o200k_base"))
    compose(
        make_plan(text[:8000], 4000, 32_000),
        GatheredFragments(fragments=given),
        TextTools(tokenizer, REDACTOR, Memory()),
    )


def _count_seconds(text: str) -> float:
    """Return how much processor time tiktoken takes to count a text."""
    tables = packaged_encoding("o200k_base")
    times: list[float] = []
    for _ in range(2 * ROUNDS):
        began = time.thread_time()
        tables.encode_ordinary(text)
        times.append(time.thread_time() - began)
    return statistics.median(times)


def _median(work: Callable[[], object]) -> float:
    return statistics.median(_times([work] * ROUNDS)) / 1000


def _times(calls: list[Callable[[], object]]) -> list[float]:
    """Return the milliseconds of each call."""
    times: list[float] = []
    for call in calls:
        started = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - started))
    return times
