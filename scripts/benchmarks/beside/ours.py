"""creonowd twice: the engine in this process, and a daemon that is asked over its socket."""

import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from creonowd.context.assemble import assemble
from creonowd.context.fragment import Action, Layer
from creonowd.context.plan import Source
from creonowd.context.result import AssembleResult, Compared, ModelTarget, answer
from creonowd.context.text_tools import Memory, TextTools
from creonowd.redaction import Redactor
from creonowd.sources.in_memory import InMemorySource, piece
from creonowd.tokens.cache import CountCache
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BETWEEN, BpeTokenizer
from scripts.benchmarks.beside.walk import Told, Work
from scripts.benchmarks.novel.desk import plan

DOCUMENT = "manuscript.md"
_SECONDS = 20


class _Counted:
    """The packaged encoding, and how many characters it was given."""

    name = "o200k_base"

    def __init__(self) -> None:
        self.characters = 0
        self._encoding = packaged_encoding(self.name)

    def encode_ordinary(self, text: str) -> list[int]:
        self.characters += len(text)
        return self._encoding.encode_ordinary(text)

    def encode(self, text: str, **how: Any) -> list[int]:
        self.characters += len(text.replace(BETWEEN, ""))
        return self._encoding.encode(text, **how)

    def encode_single_token(self, text: str) -> int:
        return self._encoding.encode_single_token(text)


class Engine:
    """The engine over sources in memory; a fresh one remembers nothing."""

    def __init__(self, work: Work, budget: int) -> None:
        self._counted = _Counted()
        tokenizer = BpeTokenizer(cast("Any", self._counted), CountCache())
        self._instruments = TextTools(tokenizer, Redactor(), Memory())
        chunks = [
            piece(Layer.RETRIEVED, chunk.id, chunk.text, score=chunk.score) for chunk in work.chunks
        ]
        self._sources = [
            InMemorySource(Layer.RULES, "system", [piece(Layer.RULES, "system", work.system)]),
            InMemorySource(Layer.RETRIEVED, "notes", chunks),
        ]
        self._budget = budget
        # Not a Runner: with each turn that would spell the whole result out for its signal handler.
        self._loop = asyncio.new_event_loop()

    @property
    def tokenised(self) -> int:
        """How many characters went through the tokenizer."""
        return self._counted.characters

    def turn(self, manuscript: str) -> Told:
        """Assemble as the daemon does."""
        result = self._assembled(manuscript, self._sources)
        dropped = [e.source_ref for e in result.trim_evidence if e.action is Action.DROPPED]
        return Told(result.prompt, result.token_count, dropped)

    def go_on(self, story: list[str]) -> str:
        """Assemble without any chunks."""
        return self._assembled("".join(story), self._sources[:1]).prompt

    def close(self) -> None:
        """End the loop."""
        self._loop.close()

    def _assembled(self, text: str, sources: Sequence[Source]) -> AssembleResult:
        wanted = plan(text, len(text), self._budget)
        made = self._loop.run_until_complete(assemble(wanted, sources, self._instruments))
        return answer(made, Compared(), ModelTarget(model="gpt-4o"))


class Daemon:
    """A daemon of its own, whose client offers the chunks as a host and syncs the manuscript."""

    tokenised = 0

    def __init__(self, work: Work, budget: int) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._root = Path(self._folder.name) / "novel"
        rules = self._root / ".creonow" / "rules"
        rules.mkdir(parents=True)
        (rules / "style.md").write_bytes(work.system.encode())
        chunks = [{"source": c.id, "content": c.text, "score": c.score} for c in work.chunks]
        self._chunks = msgspec.Raw(msgspec.json.encode({"chunks": chunks}))
        self._process, self._stream = _served(Path(self._folder.name) / "data")
        self._number = 0
        self._text = ""
        self._offers = True
        self._open(budget)

    def turn(self, manuscript: str) -> Told:
        """Sync what was written and assemble."""
        self._sync(manuscript)
        place = {"documentId": DOCUMENT, "cursorPosition": len(manuscript), "skillId": "bench"}
        got = self._ask("context:assemble", **place)
        dropped = [e["sourceRef"] for e in got["trimEvidence"] if e["action"] == "dropped"]
        return Told(got["prompt"], got["tokenCount"], dropped)

    def go_on(self, story: list[str]) -> str:
        """Offer nothing more and write on."""
        if self._offers:
            self._ask("context:source:unregister", name="notes")
            self._offers = False
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


def _served(data: Path) -> tuple["subprocess.Popen[bytes]", Any]:
    command = [sys.executable, "-m", "creonowd", "serve", "--stdio", "--user-data", str(data)]
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
