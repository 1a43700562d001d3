"""The same packing work for creonowd, its daemon and three peers, in one run.

Two hundred scored chunks, half English, half Chinese, and a manuscript that grows by a sentence in
each of thirty turns are fitted into 8k, 32k and 60k tokens. Everyone counts with `o200k_base` from
our packaged table, loaded before. Cold is the first turn of a fresh start, warm the median of the
others; the real count is made here, from the prompts. Reuse is measured twice: with the chunks, and
with a story longer than the budget that grows by a passage each turn. `--quick` takes one budget.
"""

import asyncio
import os
import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any, cast

import msgspec

from benchmarks.novel import make_plan
from benchmarks.programs.contest import Chunk, PackedPrompt, Work, measure
from creonowd.context.assemble import assemble
from creonowd.context.fragment import Action, Layer
from creonowd.context.result import AssembleResult, ModelTarget, answer
from creonowd.context.source import Source
from creonowd.context.stable_prefix import PrefixComparison
from creonowd.context.text_tools import Memory, TextTools
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.text import common_prefix
from creonowd.tokens.tables import (
    SEPARATOR,
    packaged_encoding,
    packaged_tables,
    published_table,
    verify,
)
from creonowd.tokens.tokenizer import BpeTokenizer
from scripts.environment import ROOT
from testing.corpus import chinese, english, origin
from testing.sources import InMemorySource, piece

PROGRAMS = Path(__file__).resolve().parent / "programs"
INSTALLED = ROOT / ".bench"
NODE_PEERS = ("@vscode/prompt-tsx", "@microsoft/tiktokenizer")
PYTHON_PEERS = ("tiktoken", "langchain-core", "llama-index-core")
TABLE_URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"

CHUNKS = 200
PASSAGES = 270
TURNS = 30
BUDGETS = [8000, 32_000, 60_000]
SYSTEM = "You continue a novel. Keep the author's voice, tense and names; add no facts.\n"
DOCUMENT = "manuscript.md"

_CHINESE_CHARS = (200, 370)
_ENGLISH_CHARS = (870, 1720)
_FIRST_PARAGRAPHS = 130
_SECONDS = 20

HEAD = (
    "budget",
    "who",
    "cold ms",
    "warm ms",
    "tokenised ÷ input",
    "reported − real",
    "fill",
    "bytes reused",
    "of a long story",
    "dropped and named",
)


class Result(Model):
    """The measurements of one contestant with one budget."""

    budget: int
    cold: float
    warm: float
    tokenised: float
    packed: list[PackedPrompt]
    stories: list[str]


def main(argv: list[str]) -> None:
    """Measure every contestant, then print one table."""
    work = _work()
    if "--quick" in argv:
        work = work._replace(budgets=work.budgets[:1])
    print(f"Texts: {origin()}; {_size(work)}.\n")
    _check_engine(work)
    everyone = list(_contestants(work))
    print(f"| {' | '.join(HEAD)} |\n|" + "---|" * len(HEAD))
    for number, budget in enumerate(work.budgets):
        for name, results in everyone:
            if results is None:
                print(f"| {budget} | {name} | could not be installed or run |" + " – |" * 7)
            else:
                print(_row(work, name, results[number]))


def _size(work: Work) -> str:
    count = packaged_encoding("o200k_base").encode_ordinary
    chunks = sum(len(count(chunk.text)) for chunk in work.chunks)
    ends = [len(count(text)) for text in (work.manuscripts[0], work.manuscripts[-1])]
    return f"{chunks} tokens in {len(work.chunks)} chunks, a manuscript of {ends[0]} to {ends[1]}"


def _check_engine(work: Work) -> None:
    """Stop if what is measured is not real: a count that is not exact, or text left uncounted."""
    engine = Engine(work, work.budgets[0])
    try:
        packed = engine.turn(work.manuscripts[0])
    finally:
        engine.close()
    assert packed.reported == _count(packed.prompt)
    assert engine.tokenised >= sum(len(chunk.text) for chunk in work.chunks)


def _contestants(work: Work) -> Iterator[tuple[str, list[Result] | None]]:
    yield "creonowd, the engine", _ours(work, Engine)
    yield "creonowd, the daemon", _ours(work, Daemon)
    yield from peers(work)


def peers(work: Work) -> Iterator[tuple[str, list[Result] | None]]:
    """Let every peer do the work; None for one that cannot be installed or run."""
    with tempfile.TemporaryDirectory() as folder:
        given, table = Path(folder) / "work.json", _unpack_table()
        given.write_bytes(msgspec.json.encode(list(work)))
        modules, python = _install_node_peers(), _install_python_peers()
        tsx = ["node", str(PROGRAMS / "pack_tsx.mjs"), str(modules), str(table)]
        yield "@vscode/prompt-tsx", modules and _peer(tsx, given)
        for name, module in (("LangChain", "pack_langchain"), ("LlamaIndex", "pack_llama")):
            command = [str(python), "-m", f"benchmarks.programs.{module}"]
            yield name, python and _peer(command, given)


def _ours(work: Work, make: "type[Engine | Daemon]") -> list[Result]:
    made: list[Engine | Daemon] = []

    def fresh(budget: int) -> Engine | Daemon:
        if made:
            made.pop().close()
        made.append(make(work, budget))
        return made[0]

    try:
        return msgspec.convert(measure(work, fresh), list[Result])
    finally:
        made.pop().close()


def _peer(command: list[str], given: Path) -> list[Result] | None:
    output = given.with_name("results.json")
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": str(INSTALLED / "tables")}
    output.unlink(missing_ok=True)
    subprocess.run([*command, str(given), str(output)], cwd=ROOT, env=environment, check=False)
    if not output.exists():
        return None
    return msgspec.json.decode(output.read_bytes(), type=list[Result])


def _row(work: Work, name: str, result: Result) -> str:
    real = [_count(packed.prompt) for packed in result.packed]
    fill = sum(real) / len(real) / result.budget
    over = sum(count > result.budget for count in real)
    tokenised = f"{result.tokenised:.3f}" if result.tokenised else "as the engine"
    cells = (
        f"{result.budget}",
        name,
        f"{result.cold:.1f}",
        f"{result.warm:.2f}",
        tokenised,
        _exactness(result.packed, real),
        f"{fill:.1%}" + (f", {over} turns over" if over else ""),
        f"{_reused_share([packed.prompt for packed in result.packed]):.1%}",
        f"{_reused_share(result.stories):.1%}",
        _evidence(work, result.packed[-1]),
    )
    return f"| {' | '.join(cells)} |"


def _count(text: str) -> int:
    return len(packaged_encoding("o200k_base").encode_ordinary(text))


def _exactness(packed: list[PackedPrompt], real: list[int]) -> str:
    pairs = zip(packed, real, strict=True)
    off = [each.reported - count for each, count in pairs if each.reported is not None]
    if not off:
        return "no count"
    return "0" if not any(off) else f"{min(off):+} to {max(off):+}"


def _reused_share(texts: list[str]) -> float:
    prompts = [text.encode() for text in texts]
    shared = sum(map(common_prefix, prompts, prompts[1:]))
    return shared / sum(map(len, prompts[1:]))


def _evidence(work: Work, packed: PackedPrompt) -> str:
    missing = {chunk.id for chunk in work.chunks if chunk.text.strip() not in packed.prompt}
    named = missing & set(packed.dropped or ())
    return f"{len(named)} of {len(missing)}"


def _work() -> Work:
    """Make the work: half of it English, half Chinese, with random scores that are always the same."""
    chance = random.Random(14)
    chunks = [
        Chunk(f"notes/{number:03}.md", text, chance.randint(1, 9999) / 1e4)
        for number, text in enumerate(_pieces(CHUNKS, chance))
    ]
    return Work(SYSTEM, chunks, _manuscripts(), BUDGETS, _pieces(PASSAGES, chance))


def _pieces(count: int, chance: random.Random) -> list[str]:
    """Take pieces that lie far apart from both novels in turn."""
    both = [(chinese(), _CHINESE_CHARS), (english(), _ENGLISH_CHARS)]
    made: list[str] = []
    for number in range(count):
        text, size = both[number % 2]
        start = len(text) * (number + 10) // (count + 20)
        made.append(text[start : start + chance.randint(*size)].strip() + "\n")
    return made


def _manuscripts() -> list[str]:
    """Return the manuscript of each turn; each adds a sentence, in Chinese and English in turn."""
    both = zip(_sentences(chinese(), "。"), _sentences(english(), "."), strict=False)
    paragraphs = [paragraph for pair in both for paragraph in pair][: _FIRST_PARAGRAPHS + TURNS]
    return ["".join(paragraphs[: _FIRST_PARAGRAPHS + turn + 1]) for turn in range(TURNS)]


def _sentences(text: str, end: str) -> list[str]:
    middle = text[len(text) // 2 : len(text) // 2 + 60_000]
    flat = re.sub(r"\s+", "" if end == "。" else " ", middle)
    return [
        f"{sentence.strip()}{end}\n" for sentence in flat.split(end)[1:-1] if len(sentence) > 20
    ]


class _CountingEncoding:
    """The packaged encoding, and how many characters it has encoded."""

    name = "o200k_base"

    def __init__(self) -> None:
        self.characters = 0
        self._encoding = packaged_encoding(self.name)

    def encode_ordinary(self, text: str) -> list[int]:
        self.characters += len(text)
        return self._encoding.encode_ordinary(text)

    def encode(self, text: str, **how: Any) -> list[int]:
        self.characters += len(text.replace(SEPARATOR, ""))
        return self._encoding.encode(text, **how)

    def encode_single_token(self, text: str) -> int:
        return self._encoding.encode_single_token(text)


class Engine:
    """The engine over sources in memory; a new one has nothing cached."""

    def __init__(self, work: Work, budget: int) -> None:
        self._counted = _CountingEncoding()
        tokenizer = BpeTokenizer(cast("Any", self._counted))
        self._tools = TextTools(tokenizer, Redactor(), Memory())
        chunks = [
            piece(Layer.RETRIEVED, chunk.id, chunk.text, score=chunk.score) for chunk in work.chunks
        ]
        self._sources = [
            InMemorySource(Layer.RULES, "system", [piece(Layer.RULES, "system", work.system)]),
            InMemorySource(Layer.RETRIEVED, "notes", chunks),
        ]
        self._budget = budget
        # Not a Runner: its signal handler makes a repr of the whole result with each turn.
        self._loop = asyncio.new_event_loop()

    @property
    def tokenised(self) -> int:
        """How many characters were tokenised."""
        return self._counted.characters

    def turn(self, manuscript: str) -> PackedPrompt:
        """Assemble as the daemon does."""
        result = self._assemble(manuscript, self._sources)
        dropped = [e.source_ref for e in result.trim_evidence if e.action is Action.DROPPED]
        return PackedPrompt(result.prompt, result.token_count, dropped)

    def continue_story(self, story: list[str]) -> str:
        """Assemble without any chunks."""
        return self._assemble("".join(story), self._sources[:1]).prompt

    def close(self) -> None:
        """Close the event loop."""
        self._loop.close()

    def _assemble(self, text: str, sources: Sequence[Source]) -> AssembleResult:
        wanted = make_plan(text, len(text), self._budget)
        made = self._loop.run_until_complete(assemble(wanted, sources, self._tools))
        return answer(made, PrefixComparison(), ModelTarget(model="gpt-4o"))


class Daemon:
    """A daemon in its own process; its client is the host of the chunks and syncs the manuscript."""

    tokenised = 0

    def __init__(self, work: Work, budget: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name) / "novel"
        rules = self._root / ".creonow" / "rules"
        rules.mkdir(parents=True)
        (rules / "style.md").write_bytes(work.system.encode())
        chunks = [{"source": c.id, "content": c.text, "score": c.score} for c in work.chunks]
        self._chunks = msgspec.Raw(msgspec.json.encode({"chunks": chunks}))
        self._process, self._stream = _start_daemon(Path(self._folder.name) / "data")
        self._number = 0
        self._text = ""
        self._registered = True
        self._open(budget)

    def turn(self, manuscript: str) -> PackedPrompt:
        """Sync the manuscript and assemble."""
        self._sync(manuscript)
        place = {"documentId": DOCUMENT, "cursorPosition": len(manuscript), "skillId": "bench"}
        got = self._ask("context:assemble", **place)
        dropped = [e["sourceRef"] for e in got["trimEvidence"] if e["action"] == "dropped"]
        return PackedPrompt(got["prompt"], got["tokenCount"], dropped)

    def continue_story(self, story: list[str]) -> str:
        """Unregister the chunks and sync the story."""
        if self._registered:
            self._ask("context:source:unregister", name="notes")
            self._registered = False
        return self.turn("".join(story)).prompt

    def close(self) -> None:
        """End the daemon."""
        self._stream.close()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_SECONDS)
        self._folder.cleanup()

    def _open(self, budget: int) -> None:
        self._project: dict[str, Any] = {}
        made = self._ask("project:create", rootPath=str(self._root))
        self._project = {"projectId": made["projectId"]}
        profile = self._ask("context:budget:get")
        self._ask("context:budget:update", profile={**profile, "totalBudgetTokens": budget})
        source = {"layer": "retrieved", "name": "notes", "kind": "rag", "timeoutMs": 10_000}
        self._ask("context:source:register", **source)
        self._ask("tokens:count", text="the tables are loaded when this is answered")

    def _sync(self, manuscript: str) -> None:
        known = {"documentId": DOCUMENT, "version": self._number + 1}
        if not self._text or not manuscript.startswith(self._text):
            self._ask("context:document:sync", **known, text=manuscript)
        else:
            end = len(self._text)
            edits = [{"from": end, "to": end, "text": manuscript[end:]}]
            base = self._version
            self._ask("context:document:sync", **known, baseVersion=base, edits=edits)
        self._text, self._version = manuscript, known["version"]

    def _ask(self, channel: str, **payload: Any) -> Any:
        self._number += 1
        params = {**self._project, **payload}
        self._send({"id": self._number, "method": channel, "params": params})
        while line := self._stream.readline():
            message = msgspec.json.decode(line)
            if message.get("method") == "context:source:fetch":
                self._send({"id": message["id"], "result": self._chunks})
            elif message.get("id") == self._number:
                return message["result"]
        raise ConnectionError

    def _send(self, message: dict[str, Any]) -> None:
        self._stream.write(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")
        self._stream.flush()


def _start_daemon(data: Path) -> tuple["subprocess.Popen[bytes]", Any]:
    command = [sys.executable, "-P", "-m", "creonowd", "serve", "--stdio", "--user-data", str(data)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            line.connect(str(data / "run" / "creonowd.sock"))
            return process, line.makefile("rwb")
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def _unpack_table() -> Path:
    """Unpack our table where tiktoken looks before it downloads one."""
    folder = INSTALLED / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    # tiktoken names the files of its cache by the SHA-1 of their address.
    name = sha1(TABLE_URL.encode(), usedforsecurity=False).hexdigest()
    tokens = verify("o200k_base", packaged_tables())
    (folder / name).write_bytes(published_table(tokens))
    return folder / name


def _install_node_peers() -> Path | None:
    """Install the peers that need Node; None if that fails."""
    folder, npm = INSTALLED / "peers-node", shutil.which("npm")
    if npm is None:
        return None
    if all((folder / "node_modules" / name).is_dir() for name in NODE_PEERS):
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
    return (
        folder if _run([npm, "install", "--no-audit", "--no-fund", *NODE_PEERS], folder) else None
    )


def _install_python_peers() -> Path | None:
    """Install the peers that need Python into an environment of their own; None if that fails."""
    folder = INSTALLED / "peers-python"
    program = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not program.exists() and not _run([sys.executable, "-m", "venv", str(folder)], INSTALLED):
        return None
    found = [str(program), "-c", "import langchain_core, llama_index.core, tiktoken"]
    if _run(found, INSTALLED) or _run(
        [str(program), "-m", "pip", "install", "-q", *PYTHON_PEERS], INSTALLED
    ):
        return program
    return None


def _run(command: list[str], folder: Path) -> bool:
    quiet = subprocess.DEVNULL
    return not subprocess.run(
        command, cwd=folder, check=False, stdout=quiet, stderr=quiet
    ).returncode
