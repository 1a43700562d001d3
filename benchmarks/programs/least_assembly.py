"""Answer `context:assemble` with the least that an assembly can be, to compare the daemon with.

Decode the request; search the same postings with numpy for all that a prompt is made of: with the
text before the cursor, at the steps before it, without regard to the author's place, and with each
sentence that may allude to something; look near the cursor for the names whose cards a prompt then
has; cut the window around the cursor; redact and count what was never redacted and counted before;
join, hash, also up to the places in the window at which a reply says that it can be cut, and encode
a reply in which all that does not change is encoded already. What was asked before is not searched
again, and the same request has the same bytes. Nothing is checked, ranked, fitted, explained or
logged, and no file is looked at twice.

The arguments are the socket, the index, the project's folder and a reply of the daemon. The table
of the tokenizer is loaded at once; numpy, the index and the project's files with the first request.
"""

import re
import selectors
import socket
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from creonowd.context.candidates import TrimEvidence, encode_part
from creonowd.context.fragment import STABLE, Action, Layer, Reason, Rule
from creonowd.context.names import Mentions
from creonowd.context.plan import LONGEST_QUERY, last_sentences, query_ends
from creonowd.redaction import Redactor
from creonowd.retrieval.passages import Database, stored_texts
from creonowd.retrieval.ranking import SearchScope, make_query
from creonowd.tokens.boundaries import additive_parts
from creonowd.tokens.tables import packaged_encoding

RECEIVED_AT_ONCE = 1 << 20
SEARCHED, SHOWN = 64, 8
STEP = 750
BEFORE, AFTER = 3000, 1000
NAMES_STEP, NAMES_BEFORE, NAMES_AFTER = 2000, 4000, 1000
POINTS = 4
ENCODED = {"prompt", "systemPrompt", "userContent", "trimEvidence"}
CARD_NAME = re.compile("^name: (.+)$", re.MULTILINE)


class LeastAssembly:
    """Answers requests; what cannot change between two of them is kept."""

    def __init__(self, index: Path, project: Path, reply: Path) -> None:
        self._index, self._project, self._reply = index, project, reply
        self._count = packaged_encoding("o200k_base").encode_ordinary
        self._answers: dict[bytes, bytes] = {}
        self._counts: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._found: dict[object, list[int]] = {}
        self._redactor = Redactor()
        self._passages: dict[int, str] = {}
        self._mentions, self._cards = Mentions(), dict[str, str]()
        self._is_loaded = False

    def answer(self, line: bytes) -> bytes:
        """Return the reply to a request."""
        message = msgspec.json.decode(line)
        if message["method"] != "context:assemble":
            reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"], "result": None}
            return msgspec.json.encode(reply) + b"\n"
        key = line.partition(b"params")[2]
        result = self._answers.get(key)
        if result is None:
            if not self._is_loaded:
                self._load()
            result = self._answers[key] = self._assemble(message["params"])
        return b'{"jsonrpc":"2.0","id":%d,"result":%b}\n' % (message["id"], result)

    def _load(self) -> None:
        from creonowd.retrieval.bm25 import search
        from creonowd.retrieval.loaded_index import IndexLoader

        self._search, self._is_loaded = search, True
        self._database = Database(self._index)
        with self._database.read() as connection:
            self._loaded = IndexLoader().load(connection)
        paths = sorted((self._project / ".creonow").rglob("*.*"))
        texts = [path.read_text("utf-8") for path in paths]
        self._redactor.are_clean(texts)
        for text in texts:
            self._tokens(text)
            if (name := CARD_NAME.search(text)) is not None:
                self._cards[name[1]] = text
        result = msgspec.json.decode(self._reply.read_bytes())["result"]
        stable = [piece for piece in result["trimEvidence"] if piece["layer"] in STABLE]
        self._system = encode_part(result["systemPrompt"], [])
        self._system_hash = sha256(result["systemPrompt"].encode())
        self._stable_evidence = msgspec.json.encode(stable)[1:-1]
        self._rest = {key: value for key, value in result.items() if key not in ENCODED}

    def _assemble(self, params: dict[str, Any]) -> bytes:
        text, cursor = self._text(params["documentId"]), params["cursorPosition"]
        ends = query_ends(text, cursor, STEP)
        end = cursor // STEP * STEP
        found = self._search_all(params["documentId"], text, ends, cursor)
        passages = self._passage_texts(found[:SHOWN])
        before = text[max(0, end - BEFORE) : cursor]
        window = f"{before}\n{text[cursor : cursor + AFTER]}\n"
        retrieved = [*passages, *self._named_cards(text, cursor)]
        user = "".join([*retrieved, window])
        tokens = sum(map(self._tokens, [*retrieved, window]))
        evidence = [
            TrimEvidence(
                layer=Layer.RETRIEVED,
                source_ref=f"{self._loaded.path(row)}#{self._loaded.rows[row].lines}",
                action=Action.DROPPED,
                reason=Reason.OVER_BUDGET,
                rule=Rule.SCORE,
                before_chars=row,
                after_chars=0,
                before_tokens=row,
                after_tokens=0,
            )
            for row in found
        ]
        hasher = self._system_hash.copy()
        points = self._hash(hasher, user, len(user) - len(window) + len(before))
        new, system = encode_part(user, evidence), self._system.text
        pieces = (self._stable_evidence, new.evidence)
        changed = {
            "tokenCount": tokens,
            "promptHash": hasher.hexdigest(),
            "cacheBreakPoints": points,
            "prompt": msgspec.Raw(b'"%b%b"' % (system, new.text)),
            "systemPrompt": msgspec.Raw(b'"%b"' % system),
            "userContent": msgspec.Raw(b'"%b"' % new.text),
            "trimEvidence": msgspec.Raw(b"[%b]" % b",".join(filter(None, pieces))),
        }
        return msgspec.json.encode(self._rest | changed)

    def _named_cards(self, text: str, cursor: int) -> list[str]:
        """Return the cards of those who are named near the cursor."""
        start = max(0, cursor // NAMES_STEP * NAMES_STEP - NAMES_BEFORE)
        found = self._mentions.find(self._cards, text[start : cursor + NAMES_AFTER])
        return [self._cards[name] for name in sorted(found)]

    def _hash(self, hasher: Any, user: str, cursor: int) -> list[dict[str, Any]]:
        """Hash a text, and return the hashes at the last paragraphs before the cursor."""
        ends, end = list[int](), cursor
        while len(ends) < POINTS and (end := user.rfind("\n", 0, end)) > 0:
            ends.append(end)
        points: list[dict[str, Any]] = []
        start = size = 0
        for end in reversed(ends):
            data = user[start:end].encode()
            hasher.update(data)
            start, size = end, size + len(data)
            points.append({"after": "window", "hash": hasher.hexdigest(), "bytes": size})
        hasher.update(user[start:].encode())
        return points

    def _search_all(
        self, document: str, text: str, ends: tuple[int, ...], cursor: int
    ) -> list[int]:
        """Search with the text before the cursor, and with its sentences, before and after it."""
        loaded = self._loaded
        before = frozenset(path for path in loaded.paths if path < document)
        others = frozenset(loaded.paths) - {document}
        for end in ends[:-1]:
            self._search_with(text, end, before)
        self._search_with(text, ends[-1], None)
        firm, late = last_sentences(text, ends[-1], cursor)
        for scope in (before, others) if firm or late else ():
            loaded.allusions_after(SearchScope(documents=scope), firm, late)
        return self._search_with(text, ends[-1], before)

    def _search_with(self, text: str, end: int, documents: frozenset[str] | None) -> list[int]:
        words = text[max(0, end - LONGEST_QUERY) : end]
        found = self._found.get((words, documents))
        if found is None:
            weights = make_query(words).weights
            scope = None if documents is None else SearchScope(documents=documents)
            terms = self._loaded.terms_in(scope)
            found = self._found[words, documents] = []
            if weights:
                found += self._search(terms, weights, SEARCHED).rows.tolist()
        return found

    def _text(self, document: str) -> str:
        if document not in self._texts:
            path = self._project / document
            text = path.read_text("utf-8") if path.exists() else ""
            self._texts[document] = self._redactor.redact(text).text
        return self._texts[document]

    def _passage_texts(self, rows: list[int]) -> list[str]:
        numbers = [self._loaded.rows[row].id for row in rows]
        missing = [number for number in numbers if number not in self._passages]
        if missing:
            with self._database.read() as connection:
                read = stored_texts(connection, missing)
            self._redactor.are_clean([stored.text for stored in read.values()])
            self._passages |= {number: stored.text for number, stored in read.items()}
        return [self._passages[number] for number in numbers]

    def _tokens(self, text: str) -> int:
        """Count the tokens of a text: of its parts only those that are new."""
        known = self._counts.get(text)
        if known is None:
            known = sum(map(self._part_tokens, additive_parts(text)))
            self._counts[text] = known
        return known

    def _part_tokens(self, part: str) -> int:
        known = self._counts.get(part)
        if known is None:
            known = self._counts[part] = len(self._count(part))
        return known


class Stream:
    """One connection: what came of a line that is not whole yet, and what was not sent."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.socket = connection
        self.received = b""
        self.unsent = memoryview(b"")

    def lines(self) -> list[bytes] | None:
        """Return the whole lines that have come; None at the end."""
        try:
            chunk = self.socket.recv(RECEIVED_AT_ONCE)
        except ConnectionResetError:
            return None
        *lines, self.received = (self.received + chunk).split(b"\n")
        return lines if chunk else None

    def send(self, data: bytes) -> None:
        """Send, and keep what the other side does not take yet."""
        self.unsent = memoryview(bytes(self.unsent) + data)
        self.flush()

    def flush(self) -> None:
        """Send as much as the other side takes."""
        while self.unsent:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            except BlockingIOError:
                return


def main(argv: list[str]) -> None:
    """Serve until standard input ends; the socket is there when the tokenizer's table is loaded."""
    path, *files = map(Path, argv)
    least = LeastAssembly(*files)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(sys.stdin, selectors.EVENT_READ)
        while _serve(selector, listener, least):
            pass


def _serve(selector: selectors.BaseSelector, listener: socket.socket, least: LeastAssembly) -> bool:
    """Answer what has come; return False when standard input has ended."""
    for key, _ in selector.select():
        if key.fileobj is sys.stdin:
            return False
        if key.fileobj is listener:
            stream = Stream(listener.accept()[0])
            selector.register(stream.socket, selectors.EVENT_READ, stream)
            continue
        stream: Stream = key.data
        lines = stream.lines()
        if lines is None:
            selector.unregister(stream.socket)
            continue
        for line in lines:
            stream.send(least.answer(line))
        while stream.unsent:
            stream.flush()
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
