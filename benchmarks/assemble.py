"""What an assembly costs in a real daemon, with the index built, and the specification's limits.

Two projects are made of one novel: one as large as the specification says, and a larger one. Requests
go over the socket; those that come at once are sent by a process that does nothing else. Processor
time is that of the daemon alone and is compared with one count of the prompt's tokens in the same
run, so that a busy machine changes the milliseconds and hardly the ratios. `--quick` leaves out the
corpus of ten times the size; `--only seed` or `--only large` measures one project.
"""

# requirement: CE-056, CE-057, CE-058, CE-066, CE-083, CE-084, CE-085, CE-086, CE-087

import contextlib
import gc
import json
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
from msgspec.structs import replace

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
from creonowd.context.evidence import TrimEvidence, encode_part
from creonowd.context.fragment import STABLE, Action, Fragment, Layer, Place, Reason, Rule
from creonowd.context.plan import LONGEST_QUERY
from creonowd.context.source import SourceResults
from creonowd.context.text_tools import Memory, TextTools
from creonowd.retrieval.bm25 import search
from creonowd.retrieval.database import Database
from creonowd.retrieval.loaded_index import IndexLoader
from creonowd.retrieval.project_index import FOLDER
from creonowd.retrieval.query import make_query
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
ENCODED = {"prompt", "systemPrompt", "userContent", "trimEvidence"}
LOAD_TABLE = (
    "from creonowd.tokens.tables import packaged_encoding as p; p('o200k_base').encode('a')"
)


def main(argv: list[str]) -> None:
    """Print one table for each project, and one for what has no project."""
    chosen = argv[argv.index("--only") + 1] if "--only" in argv else None
    text = chinese()
    print(f"Texts: {origin()}.\n")
    gc.freeze()
    for name, size in (("seed", SPECIFIED), ("large", LARGE)):
        if chosen in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                _measure_project(Path(folder), text, size, volumes="--quick" not in argv)
    if chosen is None:
        _head("without a project")
        _measure_growth(text)


def _head(title: str) -> None:
    print(f"\n| {title} | measured | goal |\n|---|---|---|", flush=True)


def _row(what: str, measured: str, goal: str) -> None:
    print(f"| {what} | {measured} | {goal} |", flush=True)


class Daemon:
    """A daemon in a process of its own, with one connection to it."""

    def __init__(self, user_data: Path) -> None:
        command = [sys.executable, "-m", "creonowd", "serve", "--stdio", "--debug"]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--user-data", str(user_data)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        self.socket = user_data / "run" / "creonowd.sock"
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
def running(user_data: Path) -> Generator[Daemon]:
    """Run a daemon for the block."""
    daemon = Daemon(user_data)
    try:
        yield daemon
    finally:
        daemon.close()


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
    with running(user_data) as daemon:
        project = daemon.ask("project:create", rootPath=str(root))["projectId"]
        subject = Subject(project, _payload(project, len(chapter) * 3 // 4), chapter)
        _wait_for_index(daemon, project)
        _many_at_once(daemon, subject, folder)
        one = _alone(daemon, subject)
        _floor(daemon, user_data, subject)
        _writing(daemon, subject)
        _row("memory of the daemon after all that", f"{daemon.megabytes():.0f} MB", "–")
    _cold(user_data, subject, root)
    _starts(user_data, subject)
    if volumes:
        _ten_volumes(folder, text, size, one)


def _payload(project: str, cursor: int, document: str = DOCUMENT) -> dict[str, Any]:
    return {
        "projectId": project,
        "skillId": "bench",
        "documentId": document,
        "cursorPosition": cursor,
    }


def _wait_for_index(daemon: Daemon, project: str) -> None:
    place = {"documentId": DOCUMENT, "cursorPosition": 0, "query": "雨", "limit": 1}
    for _ in range(2):
        daemon.ask(
            "context:retrieve",
            projectId=project,
            **place,
            wait=True,
            _meta={"timeoutMs": 600_000},
        )


def _many_at_once(daemon: Daemon, subject: Subject, folder: Path) -> None:
    daemon.ask("context:assemble", **subject.payload)
    documents = [f"chapters/{n + 1:03}.md" if n < 120 else f"new/{n}.md" for n in range(DOCUMENTS)]
    for name, shift in (("first time", 0), ("again", 0), ("again, 9 characters on", 9)):
        lines = [
            request(
                turn * DOCUMENTS + number,
                "context:assemble",
                _payload(subject.project, 500 * turn + 100 + shift, document),
            )
            for turn in range(REQUESTS_EACH)
            for number, document in enumerate(documents)
        ]
        cpu = daemon.cpu
        crowd, replies = _crowd(daemon, lines, folder)
        spent = (daemon.cpu - cpu) / len(lines)
        results = [reply["result"] for reply in replies if "result" in reply]
        once = _count_seconds(results[len(results) // 2]["prompt"])
        _row(
            f"500 at once over 125 documents, {name}: p50 / p95 / p99",
            f"{percentiles(crowd['milliseconds'])} ms; {_kept(results)}",
            "< 120 / 250 / 500 ms",
        )
        _row(
            "its processor time per assembly; ÷ one count of its prompt",
            f"{1000 * spent:.2f} ms; {spent / once:.2f}",
            "≤ 0.5 counts",
        )
        _row(
            "ping meanwhile, p50 / p99; processor time of the clients, per reply",
            f"{percentile(crowd['pings'], 0.5):.1f} / {percentile(crowd['pings'], 0.99):.1f} ms;"
            f" {1000 * crowd['cpu'] / len(lines):.2f} ms",
            "p99 ≤ 20 ms",
        )


def _crowd(daemon: Daemon, lines: list[bytes], folder: Path) -> tuple[dict[str, Any], list[Any]]:
    """Let another process send all requests at once; return its figures and the replies."""
    replies = folder / "replies"
    job = {
        "socket": str(daemon.socket),
        "connections": CONNECTIONS,
        "lines": [line.decode().strip() for line in lines],
        "replies": str(replies),
    }
    command = [sys.executable, "-m", CROWD]
    done = subprocess.run(command, input=json.dumps(job).encode(), capture_output=True, check=True)
    decoded = [msgspec.json.decode(line) for line in replies.read_bytes().splitlines()]
    return msgspec.json.decode(done.stdout), decoded


def _kept(results: list[Any]) -> str:
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


def _one_by_one(daemon: Daemon, subject: Subject) -> OneByOne:
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


def _alone(daemon: Daemon, subject: Subject) -> OneByOne:
    """Print what single requests take."""
    one = _one_by_one(daemon, subject)
    pings = [request(n, "app:ping", {}) for n in range(ONE_BY_ONE)]
    ping = statistics.median(_times([lambda m=message: daemon.exchange(m) for message in pings]))
    prompt = daemon.ask("context:assemble", **subject.payload)["prompt"]
    once = _count_seconds(prompt)
    _row(
        "one after the other over the socket, p50 / p95 / p99",
        f"{percentiles(one.milliseconds, 1)} ms",
        "< 120 / 250 / 500 ms",
    )
    _row("its p50 ÷ that of `app:ping`", f"{one.p50 / ping:.1f} ({ping:.3f} ms)", "halved")
    _row(
        "its processor time; ÷ one count of its prompt",
        f"{1000 * one.cpu:.2f} ms; {one.cpu / once:.2f} ({1000 * once:.2f} ms)",
        "≤ 0.5 counts",
    )
    inspected = {**subject.payload, "debugMode": True}
    seen = _times([lambda: daemon.ask("context:inspect", **inspected) for _ in range(40)])
    _row("inspect, p95", f"{percentile(seen, 0.95):.1f} ms", "< 180 ms")
    data = prompt.encode()
    hashed = _times([lambda: sha256(data).hexdigest() for _ in range(40)])
    _row("hash, p95", f"{percentile(hashed, 0.95):.2f} ms", "< 20 ms")
    return one


def _floor(daemon: Daemon, user_data: Path, subject: Subject) -> None:
    """Print what one assembly takes that does nothing but what cannot be avoided.

    Decode the request, score the terms of the query once, make evidence for what was found, hash
    the user content and encode the reply, of which the stable side is encoded already. Nothing is
    read, checked, redacted, counted, fitted or logged.
    """
    result = daemon.ask("context:assemble", **subject.payload)
    database = Database(next((user_data / FOLDER).glob("*.sqlite3")))
    with database.read() as connection:
        loaded = IndexLoader().load(connection)
    database.close()
    message = request(1, "context:assemble", subject.payload)
    cursor = subject.payload["cursorPosition"]
    weights = make_query(subject.chapter[max(0, cursor - LONGEST_QUERY) : cursor]).weights
    stable = [piece for piece in result["trimEvidence"] if piece["layer"] in STABLE]
    system = encode_part(result["systemPrompt"], [])
    rest = {key: value for key, value in result.items() if key not in ENCODED}
    stable_evidence = msgspec.json.encode(stable)[1:-1]
    example = TrimEvidence(
        layer=Layer.RETRIEVED,
        source_ref=f"{DOCUMENT}#L1-L20",
        action=Action.DROPPED,
        reason=Reason.OVER_BUDGET,
        rule=Rule.SCORE,
        before_chars=400,
        after_chars=0,
        before_tokens=400,
        after_tokens=0,
    )

    def least() -> bytes:
        msgspec.json.decode(message)
        found = search(loaded.terms, weights, 192).rows[:64].tolist()
        evidence = [replace(example, before_chars=row) for row in found]
        sha256(result["userContent"].encode()).hexdigest()
        new = encode_part(result["userContent"], evidence)
        texts = {
            "prompt": msgspec.Raw(b'"%b%b"' % (system.text, new.text)),
            "systemPrompt": msgspec.Raw(b'"%b"' % system.text),
            "userContent": msgspec.Raw(b'"%b"' % new.text),
            "trimEvidence": msgspec.Raw(b"[%b,%b]" % (stable_evidence, new.evidence)),
        }
        return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": rest | texts})

    for _ in range(ROUNDS):
        least()
    began = time.thread_time()
    for _ in range(ONE_BY_ONE):
        least()
    spent = (time.thread_time() - began) / ONE_BY_ONE
    once = _count_seconds(result["prompt"])
    _row(
        "the least that an assembly can be; ÷ one count of its prompt",
        f"{1000 * spent:.2f} ms; {spent / once:.2f}; 500 of them take {500_000 * spent:.0f} ms",
        "–",
    )


def _writing(daemon: Daemon, subject: Subject) -> None:
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


def _cold(user_data: Path, subject: Subject, root: Path) -> None:
    """Measure the first assembly of a daemon whose tokenizer is loaded and whose index is on disk."""
    texts = "\n".join([subject.chapter, *_candidates(root)])
    tables = packaged_encoding("o200k_base")
    walls: list[float] = []
    cpus: list[float] = []
    for _ in range(STARTS):
        with running(user_data) as daemon:
            daemon.ask("tokens:count", text="雨")
            once, cpu = _count_seconds(texts), daemon.cpu
            started = time.perf_counter()
            daemon.ask("context:assemble", **subject.payload)
            walls.append((time.perf_counter() - started) / once)
            cpus.append((daemon.cpu - cpu) / once)
    tokens = len(tables.encode_ordinary(texts))
    _row(
        f"cold, index on disk ÷ one count of its {tokens} tokens: by the clock; processor time",
        f"{statistics.median(walls):.2f}; {statistics.median(cpus):.2f}",
        "≤ 2",
    )


def _candidates(root: Path) -> list[str]:
    """Return the texts of rules, characters and settings."""
    items = msgspec.json.decode((root / ".creonow/rules/constraints.json").read_bytes())["items"]
    files = sorted((root / ".creonow").glob("*/*.md"))
    return [*(item["text"] for item in items), *(path.read_text("utf-8") for path in files)]


def _starts(user_data: Path, subject: Subject) -> None:
    """Measure from the spawn to the first prompt, beside a program that only loads the table."""
    bare: list[float] = []
    first: list[float] = []
    command = [sys.executable, "-c", LOAD_TABLE]
    for _ in range(STARTS):
        started = time.perf_counter()
        subprocess.run(command, check=True)
        bare.append(time.perf_counter() - started)
        with running(user_data) as daemon:
            daemon.ask("context:assemble", **subject.payload)
            first.append(time.perf_counter() - daemon.started)
    spawn, load = statistics.median(first), statistics.median(bare)
    _row(
        "spawn → first prompt ÷ a program that only loads the tokenizer's table",
        f"{spawn / load:.2f} ({1000 * spawn:.0f} ÷ {1000 * load:.0f} ms)",
        "≤ 1.3",
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
    with running(user_data) as daemon:
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
        SourceResults(fragments=given),
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
