"""What hostile clients, pages and strangers get out of a daemon: one row for each kind of attack.

`scripts/bench attack [KIND …]` runs every kind, or those whose name contains a word that is given.
Each has a daemon of its own. Another process pings it as an owner meanwhile, and its memory and
descriptors are sampled. An attempt is withstood if it was refused, answered within its bounds or
ended, as its kind demands. Everything stays on the loopback and ends by itself.

What is "kept after" an attack of many small objects, such as a project of thousands of folders, is
memory that Python has freed and keeps for its next objects: it returns only blocks of a megabyte in
which nothing is alive any more. It levels off and is used again, as the rows "ten times" show, and a
bare Python that does the like stands below the table (`programs/least_kept.py`).

On a machine that others use too, an owner also waits for a core. So the worst ping stands beside
the worst one of an idle daemon at the same time, and beside the longest that was not spent waiting
for a core: from each ping is taken what the owner's own thread, or the thread of the daemon's event
loop, stood in the system's queue for one, whichever is more, and so never too much.
"""

import contextlib
import ctypes
import gzip
import hashlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import msgspec
import psutil

from benchmarks.novel import make_project
from creonowd.cli.client import Client
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.stored_files import is_temporary
from testing.clients import daemon_command, environment
from testing.corpus import chinese
from testing.redaction_examples import SETS, read_forms

START_SECONDS = 120
# After two seconds without a request the daemon gives back what is free.
SETTLE_SECONDS = 5.0
REPETITIONS = 10
HISTORIES = 150
BUSY_PAGES = 40
TEXT_PAGES = 8
TEXTS_OF_A_PAGE = 3
TEXT_CHARACTERS = 1_000_000
SAMPLE_SECONDS = 0.02
PING_SECONDS = 0.01
ANSWER_SECONDS = 120.0
MEGABYTE = 1 << 20
LARGEST_MESSAGE = 10 * MEGABYTE
LONG_TEXT_BYTES = 9 * MEGABYTE
NOVEL_CHARACTERS = 100_000
MOST_MEGABYTES = 50
LONGEST_PING_MS = 100

FLOOD_STRANGERS = 300
HALF_HANDSHAKES = 1500
PAGES = 1300
USUAL_DESCRIPTORS = 1024
GUESSERS = 64
RIGHT_TOKENS = 50
NOTIFICATIONS = 300_000
DISCOVERIES = 250
UNREAD_REPLIES = 256
BATCHES = 5
DOCUMENTS = 60
SWAP_SECONDS = 3.0
MOST_SWAPPED_CALLS = 500
PAUSE_SECONDS = 0.0003
EXCHANGE = 2
THIS_FOLDER = -100
PLACE: dict[str, Any] = {
    "documentId": "chapters/001.md",
    "cursorPosition": 0,
    "skillId": "builtin:continue",
}
SKILL = "---\nname: s\n---\n"
LOOKS = 60
QUICK_SECONDS = 10.0
FLAT_DOCUMENTS = 100_000
DEEP_FOLDERS = 500
TREE_FILES = 20_000
TREE_TEXTS = 30
TREE_TEXT_BYTES = 3_600_000
SECRET = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
BOMBS = 3
SMALL_BOMBS = 3000
BOMB_BYTES = 200 * MEGABYTE


class Tally(NamedTuple):
    """How often something was tried, how often that came to nothing, and how one knows."""

    attempts: int
    withstood: int
    proof: str = ""


class Target:
    """A daemon under attack, and the ways in."""

    def __init__(self, folder: Path, daemon: "RunningDaemon") -> None:
        self.folder = folder
        self.user_data, self.process, self._ways = daemon
        self.token = str(self._ways["tcp"].token)
        self.unix = self._ways["unix"].address
        self.root = folder / "novel"
        make_project(self.root, chinese()[:NOVEL_CHARACTERS])
        with self.owner() as owner:
            made = owner.request("project:create", {"rootPath": str(self.root)})
            self.project_id: str = made["projectId"]
            place = {"documentId": "chapters/001.md", "cursorPosition": 0, "query": "雨"}
            search: dict[str, Any] = {
                "projectId": self.project_id,
                **place,
                "limit": 1,
                "wait": True,
            }
            search["_meta"] = {"timeoutMs": 1000 * START_SECONDS}
            owner.request("context:retrieve", search)
            # What a first assembly loads stays, and is no part of an attack.
            owner.request("context:assemble", {"projectId": self.project_id, **PLACE})

    @contextlib.contextmanager
    def owner(self, seconds: float = ANSWER_SECONDS) -> Generator[Client]:
        """Connect as an owner who waits so long for an answer."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(seconds)
            line.connect(self.unix)
            with line.makefile("rwb") as stream:
                yield Client(stream, stream)  # pyright: ignore[reportArgumentType]

    @contextlib.contextmanager
    def renderer(self) -> Generator[socket.socket]:
        """Connect as a page does: over TCP, with a renderer's token."""
        with self.owner() as owner:
            token = owner.request("session:grant", {"role": "renderer"})["token"]
        with self.stranger() as line:
            line.sendall(request("initialize", {"token": token}))
            read_reply(line)
            yield line

    def stranger(self) -> socket.socket:
        """Connect over TCP, without a token."""
        host, _, port = self._ways["tcp"].address.rpartition(":")
        return socket.create_connection((host, int(port)), ANSWER_SECONDS)

    def visitor(self) -> socket.socket:
        """Connect to the port of the WebSocket and the pages."""
        address = self._ways["websocket"].address.removeprefix("ws://").partition("/")[0]
        host, _, port = address.rpartition(":")
        return socket.create_connection((host, int(port)), ANSWER_SECONDS)


Attack = Callable[[Target], Tally]


def request(method: str, params: Any, number: int | str | None = 1) -> bytes:
    """Spell a request; without a number, a notification."""
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    named = message if number is None else {**message, "id": number}
    return msgspec.json.encode(named) + b"\n"


def read_reply(line: socket.socket) -> dict[str, Any]:
    """Read one reply, or the last of a batch; {} if the connection ends instead."""
    data = bytearray()
    with contextlib.suppress(OSError):
        while not data.endswith(b"\n"):
            piece = line.recv(MEGABYTE)
            if not piece:
                break
            data += piece
    reply: Any = json.loads(data) if data else {}
    return cast("list[dict[str, Any]]", reply)[-1] if isinstance(reply, list) else reply


def error_code(reply: dict[str, Any]) -> str:
    """Return the code of a reply that failed; empty if it did not."""
    return reply.get("error", {}).get("data", {}).get("code", "")


def push(line: socket.socket, data: bytes) -> None:
    """Send as much as the daemon takes; it may stop reading, or close."""
    line.settimeout(0.2)
    with contextlib.suppress(OSError):
        line.sendall(data)
    with contextlib.suppress(OSError):
        line.settimeout(ANSWER_SECONDS)


def strangers_that_never_read(target: Target) -> Tally:
    """Ask for refusals, which repeat the id of a request, and leave them unread."""
    refused = request("app:health", {}, "x" * 1000) * 6000
    with contextlib.ExitStack() as opened:
        for _ in range(FLOOD_STRANGERS):
            with contextlib.suppress(OSError):
                push(opened.enter_context(target.stranger()), refused)
        with target.owner() as owner:
            answered = owner.request("app:ping")["pong"]
    return Tally(FLOOD_STRANGERS, FLOOD_STRANGERS if answered else 0)


def half_handshakes(target: Target) -> Tally:
    """Begin to ask for a WebSocket, and say no more."""
    if sys.platform == "linux":
        target.process.rlimit(psutil.RLIMIT_NOFILE, (USUAL_DESCRIPTORS, USUAL_DESCRIPTORS))
    with contextlib.ExitStack() as opened:
        withstood = 0
        for _ in range(HALF_HANDSHAKES):
            with contextlib.suppress(OSError):
                opened.enter_context(target.visitor()).sendall(b"GET /rpc HTTP/1.1\r\nHost: x\r\n")
            with contextlib.suppress(OSError), target.owner() as owner:
                withstood += owner.request("app:ping")["pong"]
    return Tally(HALF_HANDSHAKES, withstood)


def pages_without_number(target: Target) -> Tally:
    """Connect again and again with the token of a page, and stay."""
    if sys.platform == "linux":
        target.process.rlimit(psutil.RLIMIT_NOFILE, (USUAL_DESCRIPTORS, USUAL_DESCRIPTORS))
    with target.owner() as owner:
        token = owner.request("session:grant", {"role": "renderer"})["token"]
    with contextlib.ExitStack() as opened:
        withstood = 0
        for _ in range(PAGES):
            line = opened.enter_context(target.stranger())
            line.settimeout(QUICK_SECONDS)
            line.sendall(request("initialize", {"token": token}))
            reply = read_reply(line)
            if "result" not in reply and error_code(reply) != "IPC_BACKPRESSURE":
                break
            withstood += 1
        answered = False
        with contextlib.suppress(OSError, DaemonError), target.owner(QUICK_SECONDS) as owner:
            answered = owner.request("app:ping")["pong"]
    written = sum(file.stat().st_size for file in (target.user_data / "logs").iterdir())
    return Tally(PAGES, withstood if answered and written < MEGABYTE else 0)


def right_token_among_wrong_ones(target: Target) -> Tally:
    """Guess tokens while somebody shows a right one."""
    over = threading.Event()

    def guess() -> None:
        while not over.is_set():
            with contextlib.suppress(OSError), target.stranger() as line:
                line.settimeout(0.05)
                line.sendall(request("initialize", {"token": "wrong"}))
                line.recv(4096)

    guessers = [threading.Thread(target=guess, daemon=True) for _ in range(GUESSERS)]
    for guesser in guessers:
        guesser.start()
    admitted = 0
    for _ in range(RIGHT_TOKENS):
        with contextlib.suppress(OSError), target.stranger() as line:
            line.sendall(request("initialize", {"token": target.token}))
            admitted += "result" in read_reply(line)
    over.set()
    for guesser in guessers:
        guesser.join()
    return Tally(RIGHT_TOKENS, admitted)


def forbidden_notifications(target: Target) -> Tally:
    """Notify, as a page, a channel that only owners may call."""
    one = request("viewer:open", {}, None)
    with target.renderer() as line:
        for _ in range(NOTIFICATIONS // 1000):
            line.sendall(one * 1000)
        line.sendall(request("app:ping", {}))
        answered = "result" in read_reply(line)
    written = sum(file.stat().st_size for file in (target.user_data / "logs").iterdir())
    return Tally(NOTIFICATIONS, NOTIFICATIONS if answered and written < MEGABYTE else 0)


def replies_that_nobody_reads(target: Target) -> Tally:
    """Ask for a megabyte each, and read none."""
    big = target.root / ".creonow" / "rules" / "big.md"
    big.write_text("雨下了一夜。\n" * (MEGABYTE // 20), encoding="utf-8")
    params = {"projectId": target.project_id, "path": ".creonow/rules/big.md"}
    with target.owner() as owner:
        owner.request("context:creonow:rules:read", params)
    asked = (request("context:creonow:rules:read", params, n) for n in range(UNREAD_REPLIES))
    with target.renderer() as line:
        push(line, b"".join(asked))
        time.sleep(SETTLE_SECONDS)
        with target.owner() as owner:
            answered = owner.request("app:ping")["pong"]
    return Tally(UNREAD_REPLIES, UNREAD_REPLIES if answered else 0)


def pages_that_never_read(target: Target) -> Tally:
    """Ask for a large reply again and again on many connections of a page, and read none."""
    asked = b"".join(request("rpc.discover", {}, number) for number in range(DISCOVERIES))
    with contextlib.ExitStack() as opened:
        lines = [opened.enter_context(target.renderer()) for _ in range(BUSY_PAGES)]
        for line in lines:
            push(line, asked)
        time.sleep(SETTLE_SECONDS)
        with target.owner() as owner:
            answered = owner.request("app:ping")["pong"]
    attempts = BUSY_PAGES * DISCOVERIES
    return Tally(attempts, attempts if answered else 0)


def repeated(attack: Attack) -> Attack:
    """Make an attack that happens again and again, and says what was kept after the first and last."""

    def attack_again(target: Target) -> Tally:
        before = target.process.memory_info().rss
        attempts = withstood = 0
        kept: list[int] = []
        for _ in range(REPETITIONS):
            tally = attack(target)
            attempts += tally.attempts
            withstood += tally.withstood
            time.sleep(SETTLE_SECONDS)
            kept.append((target.process.memory_info().rss - before) // MEGABYTE)
        proof = f"{kept[0]:+} MB kept after the first time, {kept[-1]:+} MB after the last"
        return Tally(attempts, withstood, proof)

    return attack_again


def long_histories(target: Target) -> Tally:
    """Append 600 KB to each of many conversations as a page."""
    written = 0
    with target.renderer() as line:
        for number in range(HISTORIES):
            message = {"role": "user", "content": "雨" * 200_000}
            chat = {"projectId": target.project_id, "conversationId": f"chat{number}"}
            line.sendall(request("context:history:append", {**chat, "messages": [message]}))
            written += "result" in read_reply(line)
    return Tally(HISTORIES, written)


def long_work_of_many_pages(target: Target) -> Tally:
    """Have a text of 3 MB compressed by each of many pages at once."""
    payload = {
        "projectId": target.project_id,
        "tool": "x",
        "result": "a line of a result\n" * 160_000,
    }
    with contextlib.ExitStack() as opened:
        lines = [opened.enter_context(target.renderer()) for _ in range(BUSY_PAGES)]
        for line in lines:
            line.sendall(request("context:tool:compress", payload))
        replies = [read_reply(line) for line in lines]
    return Tally(BUSY_PAGES, sum(error_code(reply) != "INTERNAL" for reply in replies))


def long_texts(method: str, payload: Callable[[str, str], dict[str, Any]]) -> Attack:
    """Make an attack of pages that send long texts to a channel, none waiting for an answer.

    `payload` makes the payload of a name and a text.
    """

    def attack(target: Target) -> Tally:
        with target.owner() as owner:
            file = {"kind": "artifact", "hint": "out", "content": "雨下了一夜。\n" * 1000}
            chat = {"projectId": target.project_id, "conversationId": "chat"}
            ref = owner.request("context:files:put", {**chat, **file})["ref"]["id"]
        withstood: list[bool] = []

        def send(page: int) -> None:
            with target.renderer() as line, contextlib.suppress(OSError):
                for number in range(TEXTS_OF_A_PAGE):
                    name = f"text-{page}-{number}"
                    text = name + "雨下了一夜。" * (TEXT_CHARACTERS // 6)
                    fields = {"projectId": target.project_id, "id": ref, **payload(name, text)}
                    line.sendall(request(method, fields, name))
                with line.makefile("rb") as replies:
                    answers = [json.loads(replies.readline()) for _ in range(TEXTS_OF_A_PAGE)]
                withstood.extend(error_code(answer) != "INTERNAL" for answer in answers)

        pages = [threading.Thread(target=send, args=(page,)) for page in range(TEXT_PAGES)]
        for page in pages:
            page.start()
        for page in pages:
            page.join()
        return Tally(TEXT_PAGES * TEXTS_OF_A_PAGE, sum(withstood))

    return attack


def _message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


# The channels of pages that take a text of any length, and where it stands in their payloads.
TEXT_CHANNELS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "context:tool:compress": lambda name, text: {"tool": name, "result": text},
    "tokens:count": lambda _, text: {"text": text},
    "context:files:put": lambda name, text: {
        "conversationId": name,
        "kind": "artifact",
        "hint": name,
        "content": text,
    },
    "context:history:append": lambda name, text: {
        "conversationId": name,
        "messages": [_message(text)],
    },
    "context:document:sync": lambda name, text: {
        "documentId": f"{name}.md",
        "version": 1,
        "text": text,
    },
    "context:assemble": lambda _, text: {**PLACE, "additionalInput": text},
    "context:build": lambda name, text: {
        "conversationId": name,
        "input": text,
        "systemPrompt": name,
    },
    "constraints:set": lambda _, text: {"constraints": [{"text": text}]},
    "constraints:create": lambda _, text: {"constraint": {"text": text}},
    "constraints:check": lambda _, text: {"documentId": PLACE["documentId"], "text": text},
    "skill:validate": lambda name, text: {
        "content": f"---\nname: {name}\ndescription: d\n---\n{text}"
    },
    "skill:write": lambda name, text: {
        "scope": "project",
        "slug": name,
        "content": f"---\nname: {name}\ndescription: d\n---\n{text}",
    },
    "context.grep": lambda _, text: {"conversationId": "chat", "pattern": text},
    "context:creonow:conversations:save": lambda name, text: {
        "conversation": {"id": name, "title": name, "messages": [_message(text)]}
    },
    "context:retrieve": lambda _, text: {"query": text},
    "story:summary:set": lambda _, text: {"documentId": PLACE["documentId"], "text": text},
    "session:unknown": lambda _, text: {"text": text},
}


def texts_of_any_kind(target: Target) -> Tally:
    """Have texts of nine megabytes counted and compressed, each of one thing again and again."""
    withstood = 0
    units = (
        "# a\n",
        '{"a":1}\n',
        "/home/a ",
        "a",
        "\u0301\u0316",
        "\ufdfa",
        "\U0001f468\u200d",
        "\u202e",
    )
    work: tuple[tuple[str, dict[str, Any]], ...] = (
        ("tokens:count", {}),
        ("tokens:count", {"model": "claude-sonnet-4-5"}),
        ("context:tool:compress", {}),
    )
    for unit in units:
        text = unit * (LONG_TEXT_BYTES // len(json.dumps(unit, ensure_ascii=False).encode()[1:-1]))
        for method, more in work:
            fields = {**TEXT_CHANNELS[method]("text", text), **more}
            with target.renderer() as line:
                line.sendall(request(method, {"projectId": target.project_id, **fields}))
                reply = read_reply(line)
            withstood += "result" in reply or error_code(reply) == "TIMEOUT"
    return Tally(len(work) * len(units), withstood)


def long_ids(target: Target) -> Tally:
    """Send requests whose ids are nine megabytes."""
    return _count_refused(target, [request("app:ping", {}, "x" * 9 * MEGABYTE)] * BATCHES)


def batches_of_many_values(target: Target) -> Tally:
    """Send ten megabytes of requests that are none, and of lists in one request of a batch."""
    ones = b"[" + b"1," * (LARGEST_MESSAGE // 2 - 2) + b"1]\n"
    lists = b"[" + _call_with_lists(target) + b"]\n"
    return _count_refused(target, [ones, lists] * BATCHES)


def lists_in_an_untyped_field(target: Target) -> Tally:
    """Send ten megabytes of empty lists where a value may have any form."""
    return _count_refused(target, [_call_with_lists(target) + b"\n"] * BATCHES)


def _call_with_lists(target: Target) -> bytes:
    lists = b"[" + b"[]," * (LARGEST_MESSAGE // 3 - 200) + b"[]]"
    call = b'{"jsonrpc":"2.0","id":1,"method":"context:tool:compress","params":'
    payload = {"projectId": target.project_id, "tool": "x", "conversationId": "c"}
    return call + msgspec.json.encode(payload)[:-1] + b',"result":' + lists + b"}}"


def lone_surrogates(target: Target) -> Tally:
    """Send ten megabytes of halves of characters."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"tokens:count","params":{"texts":["'
    halves = rb"\ud800" * (LARGEST_MESSAGE // 6 - 40)
    return _count_refused(target, [call + halves + b'"]}}\n'] * BATCHES)


def _count_refused(target: Target, messages: list[bytes]) -> Tally:
    """Send messages as a page, and count those that get an error for a reply."""
    withstood = 0
    for message in messages:
        with target.renderer() as line:
            line.sendall(message)
            withstood += error_code(read_reply(line)) not in {"", "INTERNAL"}
    return Tally(len(messages), withstood)


def open_documents(target: Target) -> Tally:
    """Open documents of nine megabytes as a page."""
    kept = 0
    with target.renderer() as line:
        for number in range(DOCUMENTS):
            text = {"documentId": f"{number}.md", "version": 1, "text": "x" * (9 * MEGABYTE)}
            line.sendall(request("context:document:sync", {"projectId": target.project_id, **text}))
            kept += "result" in read_reply(line)
    return Tally(DOCUMENTS, DOCUMENTS if kept * 9 <= 50 else DOCUMENTS - kept)


def bombs_of_a_provider(target: Target) -> Tally:
    """Run a skill; the provider answers with a little that unpacks to very much."""
    withstood = 0
    for _ in range(BOMBS):
        with target.owner() as owner:
            try:
                owner.request("ai:skill:run", {"projectId": target.project_id, **PLACE})
            except DaemonError as error:
                withstood += error.code is ErrorCode.UPSTREAM_ERROR
    return Tally(BOMBS, withstood)


def paths_of_a_page(target: Target) -> Tally:
    """Make folders projects as a page, and read what is hidden in a project that is one."""
    (target.root / ".diary.md").write_text("diary", encoding="utf-8")
    (target.root / "link.md").symlink_to(".diary.md")
    paths = [target.user_data, target.user_data / "logs", Path.home(), Path("/"), target.folder]
    payloads = [("project:create", {"rootPath": str(path)}) for path in paths]
    conversation = {"projectId": target.project_id, "conversationId": "c"}
    with target.renderer() as line:
        withstood = 0
        for method, payload in payloads:
            line.sendall(request(method, payload))
            withstood += error_code(read_reply(line)) == "FORBIDDEN"
        shown = {"projectId": target.project_id, **PLACE, "documentId": "link.md"}
        line.sendall(request("context:assemble", shown))
        withstood += "diary" not in read_reply(line)["result"]["prompt"]
        recipe = {"kind": "artifact", "hint": "h", "recipe": {"type": "file", "path": ".diary.md"}}
        line.sendall(request("context:files:register", conversation | recipe))
        ref = read_reply(line)["result"]["ref"]["id"]
        line.sendall(request("context.read", conversation | {"id": ref}))
        withstood += error_code(read_reply(line)) == "NOT_FOUND"
    return Tally(len(payloads) + 2, withstood)


def swaps_during(method: str, *, folder: str = ".creonow/rules", **fields: Any) -> Attack:
    """Make an attack that swaps a folder for a link while an owner calls a channel.

    Another process exchanges the two, so that there is always one or the other. That it can succeed
    is shown by a plain read of the same path, which must have been led out.
    """

    def attack(target: Target) -> Tally:
        inside, outside = target.root / folder, target.folder / "outside"
        for place, text in ((inside, "inside"), (outside, "OUTSIDE")):
            place.mkdir(parents=True, exist_ok=True)
            (place / "swapped.md").write_text(text, encoding="utf-8")
        params = {"projectId": target.project_id, **fields}
        attempts = withstood = led_out = 0
        with swap_folder(inside, outside) as read_plainly, target.owner() as owner:
            end = time.monotonic() + SWAP_SECONDS
            while attempts < MOST_SWAPPED_CALLS and time.monotonic() < end:
                attempts += 1
                led_out += read_plainly() == "OUTSIDE"
                try:
                    withstood += "OUTSIDE" not in str(owner.request(method, params))
                except DaemonError as error:
                    withstood += error.code is not ErrorCode.INTERNAL
        if not 0 < led_out < attempts:
            raise ValueError(f"{led_out} of {attempts} plain reads were led out")
        written = [one.name for one in outside.iterdir() if one.name != "swapped.md"]
        written += [one.name for one in inside.iterdir() if is_temporary(one.name)]
        proof = f"{led_out} of {attempts} plain reads of the path were led out meanwhile"
        return Tally(attempts, 0 if written else withstood, proof)

    return attack


def exports_into_a_swapped_folder(target: Target) -> Tally:
    """Export a conversation into a folder that is swapped for a link meanwhile."""
    chat = {"projectId": target.project_id, "conversationId": "chat"}
    with target.owner() as owner:
        file = {"kind": "artifact", "hint": "out", "content": "x"}
        owner.request("context:files:put", {**chat, **file})
    path = str(target.root / "exports" / "chat.zip")
    attack = swaps_during(
        "context:files:export", folder="exports", conversationId="chat", path=path
    )
    return attack(target)


@contextlib.contextmanager
def swap_folder(inside: Path, outside: Path) -> Generator[Callable[[], str]]:
    """Exchange a folder with a link in another process; yield a read that knows no danger."""
    link = inside.with_name("link")
    link.symlink_to(outside)
    call = f"from {__name__} import exchange; exchange({str(inside)!r}, {str(link)!r})"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", call], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield lambda: (inside / "swapped.md").read_text(encoding="utf-8")
        finally:
            process.communicate(b"over\n")
    if process.returncode:
        raise ValueError("the folder could not be swapped")


def exchange(inside: str, link: str) -> None:
    """Exchange two names in one step of the system, again and again until stdin has a line."""
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    system = ctypes.CDLL(None, use_errno=True)
    names = (os.fsencode(inside), THIS_FOLDER, os.fsencode(link))
    print("ready", flush=True)
    while not over.wait(PAUSE_SECONDS) or Path(inside).is_symlink():
        if system.renameat2(THIS_FOLDER, *names, EXCHANGE):
            raise OSError(ctypes.get_errno(), "renameat2")


def pipes_and_devices(target: Target) -> Tally:
    """Put a pipe, then a device without an end, where the list of conversations is read."""
    place = target.root / ".creonow" / "conversations" / "index.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    withstood = 0
    with target.owner() as owner:
        for number in range(LOOKS):
            place.unlink(missing_ok=True)
            if number % 2:
                os.mkfifo(place)
            else:
                place.symlink_to("/dev/zero")
            try:
                owner.request(
                    "context:creonow:conversations:list", {"projectId": target.project_id}
                )
                withstood += 1
            except DaemonError as error:
                withstood += error.code is not ErrorCode.INTERNAL
    return Tally(LOOKS, withstood)


def huge_ignore_file(target: Target) -> Tally:
    """List 2000 documents under an ignore file of 8000 patterns."""
    for number in range(2000):
        (target.root / f"note {number}.md").write_text("雨", encoding="utf-8")
    lines = (f"*x{number}y*z" for number in range(8000))
    (target.root / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
    with target.owner() as owner:
        began = time.monotonic()
        listed = owner.request("context:document:list", {"projectId": target.project_id})
        quick = time.monotonic() - began < QUICK_SECONDS
    return Tally(1, int(quick and len(listed["items"]) >= 2000))


def many_ignore_files(target: Target) -> Tally:
    """List documents in 300 folders, each with 64 KiB of patterns of its own."""
    for number in range(300):
        folder = target.root / f"folder {number}"
        folder.mkdir()
        (folder / "a.md").write_text("雨", encoding="utf-8")
        lines = (f"*x{number}q{line}y*z" for line in range(5000))
        (folder / ".gitignore").write_text("\n".join(lines), encoding="utf-8")
    with target.owner() as owner:
        began = time.monotonic()
        listed = owner.request("context:document:list", {"projectId": target.project_id})
        quick = time.monotonic() - began < QUICK_SECONDS
    said = [notice["code"] for notice in listed["notices"]]
    return Tally(1, int(quick and said == ["IGNORE_FILE_CUT"]))


def huge_root(target: Target) -> Tally:
    """Make a folder of 6000 folders a project, begin to search it, and forget it at once."""
    root = target.folder / "huge"
    for number in range(0 if root.exists() else 6000):
        (root / f"{number % 60}" / f"{number}").mkdir(parents=True)
        (root / f"{number % 60}" / f"{number}" / "a.md").write_text("雨", encoding="utf-8")
    with target.owner() as owner:
        project = owner.request("project:create", {"rootPath": str(root)})["projectId"]
        place = {"documentId": "0/0/a.md", "cursorPosition": 0, "query": "雨"}
        owner.request("context:retrieve", {"projectId": project, **place})
        began = time.monotonic()
        owner.request("project:delete", {"projectId": project})
        quick = time.monotonic() - began < QUICK_SECONDS
    return Tally(1, int(quick))


def huge_folder(target: Target) -> Tally:
    """Make one folder of 100 000 documents a project, ask for all its names, and forget it."""
    root = target.folder / "one folder"
    root.mkdir(exist_ok=True)
    for number in range(FLAT_DOCUMENTS):
        (root / f"{number}.md").touch()
    return _ask_for_all_names(target, root, ["DOCUMENTS_LEFT_OUT"])


def deep_folders(target: Target) -> Tally:
    """Make 500 folders, each in the one before, a project, ask for all its names, and forget it."""
    root = place = target.folder / "deep"
    for _ in range(DEEP_FOLDERS):
        place /= "d"
        place.mkdir(parents=True, exist_ok=True)
        (place / "a.md").touch()
    return _ask_for_all_names(target, root, [])


def huge_tree(target: Target) -> Tally:
    """Ask for a project whose `.creonow` has far more, and far larger, files than anybody reads."""
    root = target.folder / "huge tree"
    tree = root / ".creonow"
    for folder in ("rules", "characters", "skills", "settings"):
        (tree / folder).mkdir(parents=True, exist_ok=True)
    (root / "a.md").write_text("雨", encoding="utf-8")
    for number in range(TREE_FILES):
        (tree / "rules" / f"{number}.md").write_text("x", encoding="utf-8")
        card = f"---\nname: N{number}\n---\nx"
        (tree / "characters" / f"{number}.md").write_text(card, encoding="utf-8")
        (tree / "skills" / f"{number}.md").write_text(f"---\nname: s{number}\n---\nx")
    for number in range(TREE_TEXTS):
        text = "雨下了一夜。" * (TREE_TEXT_BYTES // 18)
        (tree / "settings" / f"{number}.md").write_text(text, encoding="utf-8")
    place = {"documentId": "a.md", "cursorPosition": 0, "skillId": "builtin:continue"}
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("context:assemble", place),
        ("context:creonow:rules:get", {}),
        ("context:creonow:settings:list", {}),
        ("context:subjects", {}),
        ("skill:list", {}),
        ("viewer:skills", {}),
    )
    withstood = 0
    with target.owner() as owner:
        project = {
            "projectId": owner.request("project:create", {"rootPath": str(root)})["projectId"]
        }
        for method, payload in calls:
            began = time.monotonic()
            try:
                owner.request(method, {**project, **payload})
                refused = False
            except DaemonError as error:
                refused = error.code is not ErrorCode.CONTEXT_INPUT_TOO_LARGE
            withstood += not refused and time.monotonic() - began < QUICK_SECONDS
        owner.request("project:delete", project)
    return Tally(len(calls), withstood)


def _ask_for_all_names(target: Target, root: Path, left_out: list[str]) -> Tally:
    with target.owner() as owner:
        project = owner.request("project:create", {"rootPath": str(root)})["projectId"]
        asked = {"projectId": project, "_meta": {"timeoutMs": 1000 * START_SECONDS}}
        listed = owner.request("context:document:list", asked)
        withstood = [notice["code"] for notice in listed["notices"]] == left_out
        for method in ("project:story", "context:subjects"):
            owner.request(method, asked)
        owner.request("project:delete", asked)
    return Tally(1, int(withstood))


def export_over_foreign_files(target: Target) -> Tally:
    """Export a conversation over files, folders and links that are no archives."""
    chat = {"projectId": target.project_id, "conversationId": "chat"}
    file = {"kind": "artifact", "hint": "out", "content": "x"}
    diary, folder, link = (target.folder / name for name in ("diary.md", "folder", "link"))
    diary.write_text("mine", encoding="utf-8")
    folder.mkdir()
    link.symlink_to(diary)
    withstood = 0
    with target.owner() as owner:
        owner.request("context:files:put", {**chat, **file})
        for place in (diary, folder, link):
            try:
                owner.request("context:files:export", {**chat, "path": str(place)})
            except DaemonError as error:
                withstood += error.code is ErrorCode.INVALID_ARGUMENT
    return Tally(3, withstood if diary.read_text(encoding="utf-8") == "mine" else 0)


def secrets_in_names(target: Target) -> Tally:
    """Name folders, documents and projects by secrets, and list them."""
    root = target.folder / SECRET
    (root / SECRET).mkdir(parents=True)
    (root / SECRET / f"{SECRET}.md").write_text("雨", encoding="utf-8")
    with target.owner() as owner:
        project = owner.request("project:create", {"rootPath": str(root), "name": SECRET})
        params = {"projectId": project["projectId"]}
        shown = (
            project["name"],
            owner.request("context:document:list", params),
            owner.request("project:story", params),
            owner.request("viewer:projects"),
        )
    return Tally(len(shown), sum(SECRET not in str(one) for one in shown))


def archives_of_small_bombs(target: Target) -> Tally:
    """Import archives of 3 MB whose 3000 files are a megabyte of zeros each.

    Names, and in one the manifest with all ids and hashes, are what a daemon would have written.
    """
    chat = {"projectId": target.project_id, "conversationId": "packed"}
    one, declared, undeclared = (target.folder / f"{name}.zip" for name in ("one", "all", "bare"))
    zeros = bytes(MEGABYTE)
    withstood = 0
    with target.owner() as owner:
        file = {"kind": "artifact", "hint": "out", "content": "x"}
        owner.request("context:files:put", {**chat, **file})
        owner.request("context:files:export", {**chat, "path": str(one)})
        with zipfile.ZipFile(one) as archive:
            manifest = json.loads(archive.read("context/packed/manifest.json"))
        record = manifest["items"].pop()
        survey = {**record["survey"], "byteSize": MEGABYTE, "longestLine": MEGABYTE}
        survey["sha256"] = hashlib.sha256(zeros).hexdigest()
        with (
            zipfile.ZipFile(declared, "w", zipfile.ZIP_DEFLATED) as all_declared,
            zipfile.ZipFile(undeclared, "w", zipfile.ZIP_DEFLATED) as none_declared,
        ):
            for number in range(SMALL_BOMBS):
                name = f"ctx_{number:020}"
                path = f"artifacts/tool/{name}.txt"
                item = {"id": name, "path": path, "sequence": number, "survey": survey}
                manifest["items"].append({**record, **item})
                for archive in (all_declared, none_declared):
                    archive.writestr(f"context/packed/{path}", zeros)
            all_declared.writestr("context/packed/manifest.json", json.dumps(manifest))
        bombs = {**chat, "conversationId": "bombs", "_meta": {"timeoutMs": 1000 * START_SECONDS}}
        for path in (declared, undeclared):
            try:
                owner.request("context:files:import", {**bombs, "path": str(path)})
            except DaemonError as error:
                withstood += error.code is ErrorCode.INVALID_ARGUMENT
    return Tally(2, withstood)


def held_out_forms(target: Target) -> Tally:
    """Read files in which secrets are written down in ways that no rule was written with."""
    forms = read_forms(SETS / "held_out_forms.txt")
    chat = {"projectId": target.project_id, "conversationId": "forms"}
    withstood = 0
    with target.owner() as owner:
        for form in forms:
            file = {"kind": "artifact", "hint": "note", "content": form.text}
            ref = owner.request("context:files:put", {**chat, **file})["ref"]["id"]
            shown = owner.request("context.read", {**chat, "id": ref})["content"]
            withstood += not any(secret in shown for secret in form.secrets)
    return Tally(len(forms), withstood)


def texts_of_nothing_but_labels(target: Target) -> Tally:
    """Have texts of a megabyte compressed in which every line names a secret, as a page."""
    units = ("a,password\n", "password,token,pwd,key\n", "key=", "password:\n", "密码,")
    withstood = 0
    for unit in units:
        text = unit * (MEGABYTE // len(unit))
        payload = {"projectId": target.project_id, "tool": "x", "result": text}
        with target.renderer() as line:
            line.sendall(request("context:tool:compress", payload))
            reply = read_reply(line)
            withstood += "result" in reply or error_code(reply) == "TIMEOUT"
    return Tally(len(units), withstood)


def middle_of_a_key(target: Target) -> Tally:
    """Read a private key of 97 KB page by page from inside, and its tail."""
    line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"
    block = "\n".join([line] * 1500)
    text = f"-----BEGIN PRIVATE KEY-----\n{block}\n-----END PRIVATE KEY-----\n"
    chat = {"projectId": target.project_id, "conversationId": "keys"}
    file = {"kind": "artifact", "hint": "key", "content": text}
    with target.owner() as owner:
        ref = owner.request("context:files:put", {**chat, **file})
        asked = {**chat, "id": ref["ref"]["id"]}
        pages = [
            owner.request("context.read", {**asked, "offset": offset, "limit": 4096})
            for offset in range(5000, 90_000, 5000)
        ]
        pages.append(owner.request("context.tail", asked))
    return Tally(len(pages), sum(line[:20] not in str(page) for page in pages))


class Kind(NamedTuple):
    """One row of the table: a name, the attack, what the provider's answer unpacks to, what must hold."""

    name: str
    attack: Attack
    bomb: bytes = b""
    share: float = 1.0


KINDS = (
    Kind("strangers that never read", strangers_that_never_read),
    Kind("half WebSocket handshakes", half_handshakes),
    Kind("1300 connections of a page", pages_without_number),
    Kind("a right token among wrong ones", right_token_among_wrong_ones),
    Kind("forbidden notifications of a page", forbidden_notifications),
    Kind("replies of 1 MB that nobody reads", replies_that_nobody_reads),
    Kind("the same, ten times", repeated(replies_that_nobody_reads)),
    Kind("40 pages that read no reply", pages_that_never_read),
    Kind("histories of 600 KB", long_histories),
    Kind("texts of 3 MB from 40 pages at once", long_work_of_many_pages),
    *(
        Kind(f"texts of 3 MB from 8 pages at once: `{method}`", long_texts(method, payload))
        for method, payload in TEXT_CHANNELS.items()
    ),
    Kind("texts of 9 MB: lines, paths, marks, ligatures, joined signs", texts_of_any_kind),
    Kind("ids of 9 MB", long_ids),
    Kind("batches of 10 MiB: of `1`, of lists in a request", batches_of_many_values),
    Kind("10 MiB of `[]`, lists in an untyped field", lists_in_an_untyped_field),
    Kind("10 MiB of lone surrogates", lone_surrogates),
    Kind("open documents of 9 MB", open_documents),
    Kind("a provider's 200 MB of zeros, compressed", bombs_of_a_provider, b"\0"),
    Kind("a provider's 200 MB of comments, compressed", bombs_of_a_provider, b":\n"),
    Kind("paths that a page names", paths_of_a_page),
    Kind(
        "a folder swapped for a link: `rules:read`",
        swaps_during("context:creonow:rules:read", path=".creonow/rules/swapped.md"),
    ),
    Kind("the same: `rules:get`", swaps_during("context:creonow:rules:get")),
    Kind("the same: `constraints:list`", swaps_during("constraints:list")),
    Kind(
        "the same: `constraints:create`",
        swaps_during("constraints:create", constraint={"text": "x"}),
    ),
    Kind("the same: `context:assemble`", swaps_during("context:assemble", **PLACE)),
    Kind(
        "the same: `skill:write`",
        swaps_during(
            "skill:write", folder=".creonow/skills", scope="project", slug="s", content=SKILL
        ),
    ),
    Kind(
        "the same, the folder of a document: `context:assemble`",
        swaps_during(
            "context:assemble", folder="swaps", **PLACE | {"documentId": "swaps/swapped.md"}
        ),
    ),
    Kind(
        "the same, the folder of all else: `context:document:list`",
        swaps_during("context:document:list", folder="chapters"),
    ),
    Kind("the same: `context:files:export`", exports_into_a_swapped_folder),
    Kind("pipes and `/dev/zero` in place of a file", pipes_and_devices),
    Kind("an ignore file of 8000 patterns over 2000 documents", huge_ignore_file),
    Kind("the same, ten times: 8000 patterns", repeated(huge_ignore_file)),
    Kind("an ignore file of 64 KiB in each of 300 folders", many_ignore_files),
    Kind("a project of 6000 folders, forgotten at once", huge_root),
    Kind("the same, ten times: 6000 folders", repeated(huge_root)),
    Kind("one folder of 100 000 documents, all names asked for", huge_folder),
    Kind("the same, ten times: 100 000 documents", repeated(huge_folder)),
    Kind("500 folders, each in the one before, all names asked for", deep_folders),
    Kind("60 000 files in `.creonow`, and 108 MB of notes", huge_tree),
    Kind("exports over what is no archive", export_over_foreign_files),
    Kind("archives of 3000 small bombs", archives_of_small_bombs),
    Kind("secrets in names", secrets_in_names),
    Kind("held-out forms of secrets", held_out_forms, share=0.95),
    Kind("texts of nothing but labels, 1 MB each", texts_of_nothing_but_labels),
    Kind("the same, ten times: texts of labels", repeated(texts_of_nothing_but_labels)),
    Kind("a private key of 97 KB, read inside", middle_of_a_key),
)


def main(argv: list[str]) -> None:
    """Print a table with a row for each kind of attack, and which of them are out of bounds."""
    chosen = [one for one in KINDS if not argv or any(word in one.name for word in argv)]
    if not chosen:
        raise SystemExit("No kind of attack has one of these words in its name.")
    print(
        "| attack | attempts | withstood | memory at most | kept after | descriptors kept | log "
        "| worst ping of an owner | of an idle daemon | not waiting for a core | work of the loop "
        "|\n|---|---|---|---|---|---|---|---|---|---|---|"
    )
    loads = [_load()]
    notes: list[str] = []
    with tempfile.TemporaryDirectory() as folder, _daemon(Path(folder), {}) as idle:
        for kind in chosen:
            notes += _print_row(kind, idle)
            loads.append(_load())
    print(
        f"\nLoad of the machine over a minute: {loads[0]:.1f} at the beginning, "
        f"{min(loads):.1f} to {max(loads):.1f} meanwhile, on {os.cpu_count()} cores.",
        f"Bounds: +{MOST_MEGABYTES} MB, an owner answered within {LONGEST_PING_MS} ms.",
        *_least_kept(),
        *notes or ["Every kind was withstood within them."],
        sep="\n",
    )


def _least_kept() -> list[str]:
    """Say what a bare Python keeps after as many small objects, if few of them stay."""
    if sys.platform != "linux":
        return []
    program = Path(__file__).parent / "programs" / "least_kept.py"
    shown: list[str] = []
    for rounds, survivors in ((1, 50), (10, 5)):
        command = [sys.executable, str(program), str(rounds), str(survivors)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        shown.append(
            f"A bare Python that {rounds} times makes 150 000 small objects and keeps {survivors} "
            f"of them: {ran.stdout.strip()}."
        )
    return shown


def _load() -> float:
    """Return how many processes of the whole machine have wanted a core in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _print_row(kind: Kind, idle: "RunningDaemon") -> list[str]:
    """Run an attack, print its row, and return what is to be said of it beside."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _provider(kind.bomb) as settings,
        _daemon(Path(folder), settings) as daemon,
    ):
        target = Target(Path(folder), daemon)
        if kind.bomb:
            kind.attack(target)  # loads the library of the provider, which stays
        with (watch := _Watch(daemon, idle)):
            tally = _run(kind.attack, target)
        log = sum(file.stat().st_size for file in (target.user_data / "logs").iterdir())
    pings = watch.pings
    print(
        f"| {kind.name} | {tally.attempts} | {tally.withstood} | +{watch.peak} MB "
        f"| +{watch.kept} MB | {watch.descriptors:+} | {log // 1024} KB | {pings.worst:.0f} ms "
        f"| {pings.idle:.0f} ms | {pings.not_queued:.0f} ms | {pings.work:.0f} ms |",
        flush=True,
    )
    troubles = {
        f"{tally.attempts - tally.withstood} not withstood": tally.withstood
        < kind.share * tally.attempts,
        f"+{watch.peak} MB": watch.peak > MOST_MEGABYTES,
        f"{watch.descriptors} descriptors kept": watch.descriptors > 0,
        f"{log // 1024} KB of log": log > MEGABYTE,
        f"{pings.not_queued:.0f} ms": pings.not_queued > LONGEST_PING_MS,
    }
    notes = [f"Out of bounds, {kind.name}: {what}." for what, is_so in troubles.items() if is_so]
    return [*notes, *([f"{kind.name}: {tally.proof}."] if tally.proof else [])]


def _run(attack: Attack, target: Target) -> Tally:
    """Run an attack; one that the daemon no longer answers was not withstood."""
    try:
        return attack(target)
    except (OSError, DaemonError, LookupError) as error:
        return Tally(1, 0, f"ended by {type(error).__name__}")


@contextlib.contextmanager
def _provider(bomb: bytes) -> Generator[dict[str, str]]:
    """Serve a bomb to whoever asks, and yield the settings of a daemon that asks there."""
    if not bomb:
        yield {}
        return
    body = gzip.compress(bomb * (BOMB_BYTES // len(bomb)), 9)
    head = (
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                line, _ = listener.accept()
                with line, contextlib.suppress(OSError):
                    line.recv(MEGABYTE)
                    line.sendall(head.encode() + body)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        yield {"CREONOW_AI_PROVIDER": "openai", "CREONOW_AI_BASE_URL": url}


class RunningDaemon(NamedTuple):
    """A daemon that listens."""

    user_data: Path
    process: psutil.Process
    ways: dict[str, endpoint.Endpoint]


@contextlib.contextmanager
def _daemon(folder: Path, settings: dict[str, str]) -> Generator[RunningDaemon]:
    user_data = folder / "user data"
    command = daemon_command(user_data, "--socket", "--tcp", "0", "--websocket", "0")
    with subprocess.Popen(command, env=environment(**settings)) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while (found := endpoint.read(user_data)) is None:
                if time.monotonic() > deadline:
                    raise TimeoutError
                time.sleep(0.02)
            ways = {way.transport: way for way in found.endpoints}
            yield RunningDaemon(user_data, psutil.Process(process.pid), ways)
        finally:
            process.terminate()


class Pings(NamedTuple):
    """Milliseconds: of the longest ping, and of the longest parts of any."""

    worst: float = 0.0
    not_queued: float = 0.0
    work: float = 0.0
    idle: float = 0.0


class _Watch:
    """What the daemon uses while the block runs, and how long its owner waits."""

    def __init__(self, daemon: RunningDaemon, idle: RunningDaemon) -> None:
        self._process = daemon.process
        asked = [(one.ways["unix"].address, one.process.pid) for one in (daemon, idle)]
        call = f"from {__name__} import print_worst_pings; print_worst_pings({asked!r})"
        self._pinger = subprocess.Popen(
            [sys.executable, "-c", call],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(),
        )
        assert self._pinger.stdout is not None
        self._pinger.stdout.readline()
        self._over = threading.Event()
        self._sampling = threading.Thread(target=self._sample, daemon=True)
        self._memory = self._process.memory_info().rss
        self._descriptors = self._process.num_fds()
        self.peak = self.kept = self.descriptors = 0
        self.pings = Pings()

    def __enter__(self) -> Self:
        self._sampling.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._sampling.join()
        with self._pinger as pinger:
            try:
                printed = pinger.communicate(b"over\n", ANSWER_SECONDS)[0]
            except subprocess.TimeoutExpired:  # a ping is not answered at all
                pinger.kill()
                printed = json.dumps([[1000 * ANSWER_SECONDS] * 3] * 2).encode()
        # Only when nobody asks does the daemon give back what is free.
        time.sleep(SETTLE_SECONDS)
        self.kept = self._grown()
        self.descriptors = self._process.num_fds() - self._descriptors
        (worst, not_queued, work), (idle, *_rest) = json.loads(printed)
        self.pings = Pings(worst, not_queued, work, idle)

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, self._grown())

    def _grown(self) -> int:
        return max(0, self._process.memory_info().rss - self._memory) // MEGABYTE


def print_worst_pings(asked: list[tuple[str, int]]) -> None:
    """Ping daemons, each in a thread, until stdin has a line; print the worst milliseconds of each.

    They are those of a whole ping, of one without the time in the queue for a core, and those that
    the daemon's event loop worked during one.
    """
    over = threading.Event()
    ready = threading.Barrier(len(asked) + 1)
    worst = [[0.0, 0.0, 0.0] for _ in asked]

    def ping(address: str, pid: int, kept: list[float]) -> None:
        own, loop = f"self/task/{threading.get_native_id()}", f"{pid}/task/{pid}"
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(address)
            with line.makefile("rwb") as stream:
                client = Client(stream, stream)  # pyright: ignore[reportArgumentType]
                client.request("app:ping")
                ready.wait()
                while not over.wait(PING_SECONDS):
                    mine, its, began = _schedule(own), _schedule(loop), time.perf_counter_ns()
                    client.request("app:ping")
                    whole = time.perf_counter_ns() - began
                    mine_after, its_after = _schedule(own), _schedule(loop)
                    queued = max(mine_after.queued - mine.queued, its_after.queued - its.queued)
                    parts = (whole, whole - queued, its_after.worked - its.worked)
                    kept[:] = (max(*pair) for pair in zip(kept, parts, strict=True))

    threads = [
        threading.Thread(target=ping, args=(*one, kept))
        for one, kept in zip(asked, worst, strict=True)
    ]
    for thread in threads:
        thread.start()
    ready.wait()
    print("ready", flush=True)
    sys.stdin.readline()
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps([[part / 1e6 for part in kept] for kept in worst]))


class _Schedule(NamedTuple):
    """Nanoseconds that a thread has worked, and stood in the queue for a core."""

    worked: int
    queued: int


def _schedule(thread: str) -> _Schedule:
    """Read them where the system counts them; else nothing."""
    with contextlib.suppress(OSError):
        worked, queued, _ = Path("/proc", thread, "schedstat").read_text().split()
        return _Schedule(int(worked), int(queued))
    return _Schedule(0, 0)
