"""Make the tables of Claude's upper bounds: what each token of o200k_base costs Claude at most.

Claude has no public table. PyPI's `ctok` (MIT, Python 3.12 or later) rebuilds its counts offline;
its authors found no under-count in 2.3 million texts. ctok writes a text as a stream of characters
and marks (where a word begins and ends, how it is capitalised) and counts the *fewest* pieces that
cover the stream. So cutting the stream anywhere and adding up the fewest pieces of each part can
only give more. We cut it where o200k_base cuts the text: a mark goes with the character that it is
about, so each token has a share of the stream, and its cost is the fewest pieces of that share.

What the share is depends on the neighbours: whether a word goes on, whether a space stands beside
it. For each token the shares of all such surroundings are made, by ctok itself, and the dearest
counts. Two things about the neighbours are distinguished when a text is counted, since they are
known then (`creonowd.tokens.tokenizer.BoundTokenizer`); so a token has four costs. A token that is part
of a character pays for the dearest character which begins like that.

The sum is no less than ctok's count of the same text, for any text. What it does not hold is the
frame of a message, which a provider adds.

    python3.12 -m venv /tmp/ctok && /tmp/ctok/bin/pip install ctok==1.3.0
    .venv/bin/python scripts/claude_costs.py --tokens |
        /tmp/ctok/bin/python scripts/claude_costs.py 3.0 > creonowd/tokens/tables/claude_v3.costs

and likewise 4.8 for `claude_v4_7.costs`. With `--count`, lines of JSON strings are counted instead.
"""

import json
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import product
from typing import Any, NamedTuple

WORD, SPACE, OTHER, UNKNOWN, PUNCTUATION = range(5)
"""How a token begins or ends; punctuation takes in a single space behind it."""

JOINED_LEFT, JOINED_RIGHT = ("q", "Q", "QQQQ"), ("q", "qQ", "QQQQ")
PLAIN_LEFT = ("\n", "q", "的", "1", "²", ",", "'", "？")
PLAIN_RIGHT = ("\n", "q", "的", "1", "²", ".", "'", "？")
SPACED_LEFT = ("q ", "的 ", "q  ")
SPACED_RIGHT = (" q", " 的", "  q", " 1", " '", " (")
MOST = 255


def main(arguments: list[str]) -> None:
    """Print the tokens, or write the costs, or count texts."""
    if arguments == ["--tokens"]:
        tables = import_module("creonowd.tokens.tables")
        for token in tables.verify("o200k_base", tables.packaged_tables()):
            print(b64encode(token).decode())
        return
    reference = Reference(arguments[0])
    if "--count" in arguments:
        for line in sys.stdin:
            print(reference.count(json.loads(line)), flush=True)
        return
    rows = [reference.row(b64decode(line)) for line in sys.stdin]
    sys.stdout.buffer.write(zlib.compress(b"".join(map(bytes, zip(*rows, strict=True))), 9))


class Row(NamedTuple):
    """The costs of a token, and its edges: how it begins times eight, and how it ends.

    `joined` on the left: a word goes on, or the punctuation before takes its space in, or no space is before it;
    on the right: a word goes on, or no space follows. `apart` is the opposite.
    """

    joined_joined: int
    joined_apart: int
    apart_joined: int
    apart_apart: int
    edges: int


class Reference:
    """The counts of one family of Claude, as ctok rebuilds them."""

    def __init__(self, version: str) -> None:
        private: dict[str, Any] = vars(import_module("ctok.main"))
        self._engine: Any = import_module("ctok.engine")
        self._normalize: Any = import_module("ctok.normalize")
        self._glyphs: Any = import_module("ctok.constants")
        self._model: Any = private["_model"](private["_family"](version))
        self._of_share: dict[str, int] = {}
        self._of_prefix: dict[bytes, int] = {}

    def count(self, text: str) -> int:
        """Count a text that stands between other lines, without the frame of a message."""
        around = "q\n\nq"
        whole = self._engine.tile(f"q\n{text}\nq", self._model)[0]
        return int(whole) - int(self._engine.tile(around, self._model)[0])

    def row(self, token: bytes) -> Row:
        """Return the costs and the edges of a token."""
        try:
            text = token.decode()
        except UnicodeDecodeError:
            cost = min(MOST, max(1, self._cost_of_bytes(token)))
            return Row(cost, cost, cost, cost, UNKNOWN * 8 + UNKNOWN)
        begin, end = self._edge(text[0], begins=True), self._edge(text[-1], begins=False)
        left = _contexts(begin, (JOINED_LEFT, ("\n", "q'")), ("q", ","), PLAIN_LEFT, SPACED_LEFT)
        right = _contexts(end, (JOINED_RIGHT, ("\n",)), PLAIN_RIGHT, PLAIN_RIGHT, SPACED_RIGHT)
        dearest = [self._dearest(text, *sides) for sides in product(left, right)]
        return Row._make((*dearest, begin * 8 + end))

    def _edge(self, character: str, *, begins: bool) -> int:
        read = self._read(character)
        if len(read) != 1:
            return UNKNOWN
        kind = self._normalize.classify(read)
        if kind == self._glyphs.WORDY:
            return WORD
        if read == " ":
            return SPACE
        if begins:
            return OTHER
        punctuation = kind == self._glyphs.PUNCT or self._normalize._hard_eow(read)
        return PUNCTUATION if punctuation else OTHER

    def _read(self, text: str) -> str:
        return str(self._normalize.nfc(text, fold_quotes=self._model.fold_quotes))

    def _dearest(self, text: str, left: Iterable[str], right: Iterable[str]) -> int:
        shares = {self._share(*sides, text) for sides in product(left, right)}
        return min(MOST, max(1, *map(self._cost, shares)))

    def _share(self, left: str, right: str, text: str) -> str:
        """Return the part of the stream that a token stands for, with the marks that are its own."""
        before, after = f"q\n{left}", f"{right}\nq"
        read = self._read(before + text + after)
        stream = str(self._normalize.stream_norm(read, self._model, raw_head_space=False))
        start = self._behind(stream, before)
        end = len(stream) - self._behind(stream[::-1], after[::-1], backward=True)
        return stream[start:end]

    def _behind(self, stream: str, known: str, *, backward: bool = False) -> int:
        """Return where the stream of the known text ends, with the marks of its last character."""
        marks, own = self._glyphs.MARKER_GLYPHS, self._glyphs.EOW_G
        at = 0
        for character in self._read(known):
            if character == " " and stream[at] != " ":
                continue  # Punctuation took it in.
            while stream[at] in marks:
                at += 1
            if stream[at].lower() != character.lower():
                raise AssertionError((stream, known))
            at += 1
            while stream[at : at + 1] and stream[at] in marks and (stream[at] == own) != backward:
                at += 1
        return at

    def _cost(self, share: str) -> int:
        """Return the fewest pieces that cover a share."""
        if share not in self._of_share:

            def of_character(at: int) -> int:
                is_mark = share[at] in self._glyphs.MARKER_GLYPHS
                return 1 if is_mark else int(self._engine.char_cost(self._model, share[at]))

            found = self._engine.min_vocab_tile(share, self._model.trie, of_character)
            self._of_share[share] = int(found[0])
        return self._of_share[share]

    def _cost_of_bytes(self, token: bytes) -> int:
        """Return what a token costs that begins or ends inside a character.

        A continuation pays one. A beginning pays for the dearest character less that one.
        """
        rest = token.lstrip(bytes(range(0x80, 0xC0)))
        cost = 1 if len(rest) < len(token) else 0
        while rest:
            size = _size(rest[0])
            if len(rest) < size:
                return cost + max(1, self._dearest_beginning(rest) - 1)
            cost += self._dearest_character(rest[:size].decode(errors="replace"))
            rest = rest[size:]
        return cost

    def _dearest_beginning(self, start: bytes) -> int:
        if start not in self._of_prefix:
            costs = map(self._dearest_character, _completions(start))
            self._of_prefix[start] = max(costs, default=1)
        return self._of_prefix[start]

    def _dearest_character(self, character: str) -> int:
        """Return what a character costs by itself with every mark that it can have."""
        read = self._read(character)
        cost = 0
        for one in {*read, *read.lower()}:
            kind, code = self._normalize.classify(one), ord(one)
            marks = 3 if kind == self._glyphs.WORDY else 0 if code >= 0x10000 else 2
            if kind == self._glyphs.HARD and self._normalize._hard_kind(one) == "letter":
                marks = 0
            cost = max(cost, marks + int(self._engine.char_cost(self._model, one)))
        return cost * max(1, len(read))


Contexts = tuple[Iterable[str], Iterable[str]]


def _contexts(
    edge: int,
    word: Contexts,
    punctuation: Iterable[str],
    plain: Iterable[str],
    spaced: Iterable[str],
) -> Contexts:
    """Return what can stand beside an edge: joined, and apart; the latter is the safe choice."""
    if edge == WORD:
        return word
    if edge == SPACE:
        return punctuation, (*punctuation, *plain, *spaced)
    everything = (*plain, *spaced)
    return (everything, everything) if edge == UNKNOWN else (plain, everything)


def _size(lead: int) -> int:
    return 4 if lead >= 0xF0 else 3 if lead >= 0xE0 else 2 if lead >= 0xC0 else 1


def _completions(start: bytes) -> Iterator[str]:
    """Yield the characters whose bytes begin like that."""
    size = _size(start[0])
    missing = 6 * (size - len(start))
    head = int.from_bytes(start, "big") << 8 * (size - len(start))
    for rest in range(1 << missing):
        tail = sum((0x80 | rest >> 6 * place & 0x3F) << 8 * place for place in range(missing // 6))
        try:
            yield (head | tail).to_bytes(size, "big").decode()
        except UnicodeDecodeError:
            continue


if __name__ == "__main__":
    main(sys.argv[1:])
