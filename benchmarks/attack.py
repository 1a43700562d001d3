"""What hostile clients, pages and strangers get out of a daemon: one row for each kind of attack.

`scripts/bench attack [KIND …]` runs every kind, or those whose name contains a word that is given.
Each has a daemon of its own. Another process pings it as an owner meanwhile, and its memory and
descriptors are sampled. An attempt is withstood if it was refused, answered within its bounds or
ended, as its kind demands. Everything stays on the loopback and ends by itself.

On a machine that others use too, an owner also waits for them. So the worst ping stands beside the
worst one of the seconds before the attack, and beside the processor time that the daemon itself
used while an owner waited, which is what it is answerable for.
"""

import contextlib
import gzip
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgspec
import psutil

from benchmarks.novel import make_project
from creonowd.cli.client import Client
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode
from testing.clients import daemon_command, environment
from testing.corpus import chinese
from testing.redaction_examples import SETS, read_forms

START_SECONDS = 120
SETTLE_SECONDS = 2.0
CONTROL_SECONDS = 4.0
SAMPLE_SECONDS = 0.02
PING_SECONDS = 0.01
ANSWER_SECONDS = 120.0
MEGABYTE = 1 << 20
LARGEST_MESSAGE = 10 * MEGABYTE

FLOOD_STRANGERS = 300
HALF_HANDSHAKES = 1500
USUAL_DESCRIPTORS = 1024
GUESSERS = 64
RIGHT_TOKENS = 50
NOTIFICATIONS = 300_000
UNREAD_REPLIES = 256
BATCHES = 5
DOCUMENTS = 60
SWAPPED_CALLS = 500
PLACE: dict[str, Any] = {
    "documentId": "chapters/001.md",
    "cursorPosition": 0,
    "skillId": "builtin:continue",
}
SKILL = "---\nname: s\n---\n"
LOOKS = 60
QUICK_SECONDS = 10.0
SECRET = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
BOMBS = 3
BOMB_BYTES = 200 * MEGABYTE


class Tally(NamedTuple):
    """How often something was tried, and how often that came to nothing."""

    attempts: int
    withstood: int


class Target:
    """A daemon under attack, and the ways in."""

    def __init__(self, folder: Path, process: psutil.Process) -> None:
        self.folder = folder
        self.user_data = folder / "user data"
        self.process = process
        found = endpoint.read(self.user_data)
        if found is None:
            raise FileNotFoundError(self.user_data)
        self._ways = {way.transport: way for way in found.endpoints}
        self.token = str(self._ways["tcp"].token)
        self.unix = self._ways["unix"].address
        self.root = folder / "novel"
        make_project(self.root, chinese())
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

    @contextlib.contextmanager
    def owner(self) -> Generator[Client]:
        """Connect as an owner."""
        with socket.socket(socket.AF_UNIX) as line:
            line.settimeout(ANSWER_SECONDS)
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
    """Read one reply; {} if the connection ends instead."""
    data = bytearray()
    with contextlib.suppress(OSError):
        while not data.endswith(b"\n"):
            piece = line.recv(MEGABYTE)
            if not piece:
                break
            data += piece
    return json.loads(data) if data else {}


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
    """Ask for refusals of 60 KB, which repeat the id of a request, and leave them unread."""
    refused = request("app:health", {}, "x" * 60_000) * 100
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


def batches_of_ones(target: Target) -> Tally:
    """Send ten megabytes of requests that are none."""
    batch = b"[" + b"1," * (LARGEST_MESSAGE // 2 - 2) + b"1]\n"
    return _refused(target, [batch] * BATCHES)


def lists_in_an_untyped_field(target: Target) -> Tally:
    """Send ten megabytes of empty lists where a value may have any form."""
    lists = b"[" + b"[]," * (LARGEST_MESSAGE // 3 - 200) + b"[]]"
    call = b'{"jsonrpc":"2.0","id":1,"method":"context:tool:compress","params":'
    payload = {"projectId": target.project_id, "tool": "x", "conversationId": "c"}
    fields = msgspec.json.encode(payload)[:-1] + b',"result":'
    return _refused(target, [call + fields + lists + b"}}\n"] * BATCHES)


def lone_surrogates(target: Target) -> Tally:
    """Send ten megabytes of halves of characters."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"tokens:count","params":{"texts":["'
    halves = rb"\ud800" * (LARGEST_MESSAGE // 6 - 40)
    return _refused(target, [call + halves + b'"]}}\n'] * BATCHES)


def _refused(target: Target, messages: list[bytes]) -> Tally:
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
    paths = [target.user_data, target.user_data / "logs", Path.home(), Path("/"), target.folder]
    payloads = [("project:create", {"rootPath": str(path)}) for path in paths]
    conversation = {"projectId": target.project_id, "conversationId": "c"}
    with target.renderer() as line:
        withstood = 0
        for method, payload in payloads:
            line.sendall(request(method, payload))
            withstood += error_code(read_reply(line)) == "FORBIDDEN"
        recipe = {"kind": "artifact", "hint": "h", "recipe": {"type": "file", "path": ".diary.md"}}
        line.sendall(request("context:files:register", conversation | recipe))
        ref = read_reply(line)["result"]["ref"]["id"]
        line.sendall(request("context.read", conversation | {"id": ref}))
        withstood += error_code(read_reply(line)) == "NOT_FOUND"
    return Tally(len(payloads) + 1, withstood)


def swaps_during(method: str, *, folder: str = "rules", **fields: Any) -> Attack:
    """Make an attack that swaps a folder of `.creonow` for a link while an owner calls a channel."""

    def attack(target: Target) -> Tally:
        inside = target.root / ".creonow" / folder
        outside, aside = target.folder / "outside", inside.with_name("aside")
        for place, text in ((inside, "inside"), (outside, "OUTSIDE")):
            place.mkdir(parents=True, exist_ok=True)
            (place / "swapped.md").write_text(text, encoding="utf-8")
        over = threading.Event()

        def swap() -> None:
            while not over.is_set():
                inside.rename(aside)
                with contextlib.suppress(FileExistsError):
                    inside.symlink_to(outside)
                    inside.unlink()
                if inside.is_dir():
                    shutil.rmtree(inside)
                aside.rename(inside)

        swapping = threading.Thread(target=swap, daemon=True)
        swapping.start()
        params = {"projectId": target.project_id, **fields}
        withstood = 0
        with target.owner() as owner:
            for _ in range(SWAPPED_CALLS):
                with contextlib.suppress(DaemonError):
                    withstood -= "OUTSIDE" in str(owner.request(method, params))
                withstood += 1
        over.set()
        swapping.join()
        written = [one.name for one in outside.iterdir() if one.name != "swapped.md"]
        return Tally(SWAPPED_CALLS, 0 if written else withstood)

    return attack


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


def huge_root(target: Target) -> Tally:
    """Make a folder of 6000 folders a project, begin to search it, and forget it at once."""
    root = target.folder / "huge"
    for number in range(6000):
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


def archive_of_small_bombs(target: Target) -> Tally:
    """Import an archive of 3 MB whose 3000 files are a megabyte of zeros each."""
    chat = {"projectId": target.project_id, "conversationId": "packed"}
    path = target.folder / "bombs.zip"
    with target.owner() as owner:
        owner.request(
            "context:files:put", {**chat, "kind": "artifact", "hint": "out", "content": "x"}
        )
        owner.request("context:files:export", {**chat, "path": str(path)})
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            for number in range(3000):
                archive.writestr(f"files/{number}", bytes(MEGABYTE))
        try:
            owner.request("context:files:import", {**chat, "path": str(path)})
        except DaemonError as error:
            return Tally(1, int(error.code is ErrorCode.INVALID_ARGUMENT))
    return Tally(1, 0)


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
    """One row of the table: a name, the attack, and what the provider's answer unpacks to."""

    name: str
    attack: Attack
    bomb: bytes = b""


KINDS = (
    Kind("strangers that never read", strangers_that_never_read),
    Kind("half WebSocket handshakes", half_handshakes),
    Kind("a right token among wrong ones", right_token_among_wrong_ones),
    Kind("forbidden notifications of a page", forbidden_notifications),
    Kind("replies of 1 MB that nobody reads", replies_that_nobody_reads),
    Kind("a batch of 10 MiB of `1`", batches_of_ones),
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
        swaps_during("skill:write", folder="skills", scope="project", slug="s", content=SKILL),
    ),
    Kind("pipes and `/dev/zero` in place of a file", pipes_and_devices),
    Kind("an ignore file of 8000 patterns over 2000 documents", huge_ignore_file),
    Kind("a project of 6000 folders, forgotten at once", huge_root),
    Kind("exports over what is no archive", export_over_foreign_files),
    Kind("an archive of 3000 small bombs", archive_of_small_bombs),
    Kind("secrets in names", secrets_in_names),
    Kind("held-out forms of secrets", held_out_forms),
    Kind("texts of nothing but labels, 1 MB each", texts_of_nothing_but_labels),
    Kind("a private key of 97 KB, read inside", middle_of_a_key),
)


def main(argv: list[str]) -> None:
    """Print a table with a row for each kind of attack."""
    chosen = [one for one in KINDS if not argv or any(word in one.name for word in argv)]
    print(
        "| attack | attempts | withstood | memory at most | kept after | descriptors kept | log "
        "| worst ping of an owner | without an attack | own work during a ping "
        "|\n|---|---|---|---|---|---|---|---|---|---|"
    )
    loads = [_load()]
    for kind in chosen:
        print(_row(kind), flush=True)
        loads.append(_load())
    print(
        f"\nLoad of the machine over a minute: {loads[0]:.1f} at the beginning, "
        f"{min(loads):.1f} to {max(loads):.1f} meanwhile, on {os.cpu_count()} cores."
    )


def _load() -> float:
    """Return how many processes of the whole machine have wanted a core in the last minute."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _row(kind: Kind) -> str:
    with (
        tempfile.TemporaryDirectory() as folder,
        _provider(kind.bomb) as settings,
        _daemon(Path(folder), settings) as target,
    ):
        if kind.bomb:
            kind.attack(target)  # loads the library of the provider, which stays
        with (control := _Watch(target)):
            time.sleep(CONTROL_SECONDS)
        with (watch := _Watch(target)):
            tally = kind.attack(target)
            time.sleep(SETTLE_SECONDS)
        log = sum(file.stat().st_size for file in (target.user_data / "logs").iterdir())
    return (
        f"| {kind.name} | {tally.attempts} | {tally.withstood} | +{watch.peak} MB "
        f"| +{watch.kept} MB | {watch.descriptors:+} | {log // 1024} KB | {watch.ping:.0f} ms "
        f"| {control.ping:.0f} ms | {watch.own_work:.0f} ms |"
    )


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


@contextlib.contextmanager
def _daemon(folder: Path, settings: dict[str, str]) -> Generator[Target]:
    user_data = folder / "user data"
    command = daemon_command(user_data, "--socket", "--tcp", "0", "--websocket", "0")
    with subprocess.Popen(command, env=environment(**settings)) as process:
        try:
            deadline = time.monotonic() + START_SECONDS
            while endpoint.read(user_data) is None:
                if time.monotonic() > deadline:
                    raise TimeoutError
                time.sleep(0.02)
            yield Target(folder, psutil.Process(process.pid))
        finally:
            process.terminate()


class _Watch:
    """What the daemon uses while the block runs, and how long its owner waits."""

    def __init__(self, target: Target) -> None:
        self._process = target.process
        call = (
            f"from {__name__} import print_worst_ping; "
            f"print_worst_ping({target.unix!r}, {target.process.pid})"
        )
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
        self.ping = self.own_work = 0.0

    def __enter__(self) -> Self:
        self._sampling.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._sampling.join()
        self.kept = self._grown()
        self.descriptors = self._process.num_fds() - self._descriptors
        with self._pinger as pinger:
            self.ping, self.own_work = map(float, pinger.communicate(b"over\n")[0].split())

    def _sample(self) -> None:
        while not self._over.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, self._grown())

    def _grown(self) -> int:
        return max(0, self._process.memory_info().rss - self._memory) // MEGABYTE


def print_worst_ping(address: str, pid: int) -> None:
    """Ping until something comes on stdin; print the milliseconds of the slowest answer.

    Beside it, the processor time that the daemon has used during one ping, at most.
    """
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.readline(), over.set()), daemon=True).start()
    worst = work = 0.0
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)
        with line.makefile("rwb") as stream:
            client = Client(stream, stream)  # pyright: ignore[reportArgumentType]
            client.request("app:ping")
            print("ready", flush=True)
            while not over.wait(PING_SECONDS):
                began, used = time.perf_counter(), _processor_seconds(pid)
                client.request("app:ping")
                worst = max(worst, time.perf_counter() - began)
                work = max(work, _processor_seconds(pid) - used)
    print(1000 * worst, 1000 * work)


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a process, all its threads together, to the microsecond."""
    if sys.platform == "linux":
        return time.clock_gettime((~pid << 3) | 2)
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system
