"""Make the tables of Claude's upper bounds: for each token of o200k_base what it costs at most.

Claude has no public table. PyPI's `ctok` (MIT, Python 3.12 or later) rebuilds its counts offline;
its authors found no under-count in 2.3 million texts. Each token of o200k_base gets the cost of its
text, the dearest of the ways in which it can stand in a text: as a word of its own, as the head or
the tail of one, and beside punctuation or not. To that come one token for each token with a line
end, which is what a joint of two units may cost, and one for each token that is only a part of a
character. A count is the sum over the tokens, so it adds up wherever those of o200k_base do.

    python3.12 -m venv /tmp/ctok && /tmp/ctok/bin/pip install ctok==1.3.0
    .venv/bin/python scripts/claude_costs.py --tokens |
        /tmp/ctok/bin/python scripts/claude_costs.py 3.0 > creonowd/tokens/tables/claude_v3.costs

and likewise 4.8 for `claude_v4_7.costs`. With `--count`, lines of JSON strings are counted instead.
"""

import json
import sys
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator
from importlib import import_module
from typing import Any

JOINT = 1
PART_OF_A_CHARACTER = 1


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
            print(reference.count(json.loads(line)))
        return
    costs = bytes(min(255, reference.bound(b64decode(line))) for line in sys.stdin)
    sys.stdout.buffer.write(zlib.compress(costs, 9))


class Reference:
    """The counts of one family of Claude, as ctok rebuilds them."""

    def __init__(self, version: str) -> None:
        private: dict[str, Any] = vars(import_module("ctok.main"))
        self._engine: Any = import_module("ctok.engine")
        self._normalize: Any = import_module("ctok.normalize")
        self._glyphs: Any = import_module("ctok.constants")
        self._model: Any = private["_model"](private["_family"](version))

    def count(self, text: str) -> int:
        """Count a text that another line follows, without the frame of a message."""
        return int(self._engine.tile(f"{text}\nx", self._model)[0]) - self._x

    @property
    def _x(self) -> int:
        return int(self._engine.tile("\nx", self._model)[0]) - self._cost("\n")

    def bound(self, token: bytes) -> int:
        """Return what a token costs at most."""
        try:
            text = token.decode()
        except UnicodeDecodeError:
            return len(token) + PART_OF_A_CHARACTER
        joint = JOINT if "\n" in text else 0
        marked = self._marked(text)
        word = text.strip()
        if word and all(map(_is_han, word)):
            return max(1, self._cost(marked)) + joint
        if text[:1] == " " and word.isascii() and word.isalpha():
            lone = len(word) == 1 and word not in "aI"
            return max(1, self._cost(marked)) + lone
        return max(1, *map(self._cost, self._ways(marked))) + joint

    def _marked(self, text: str) -> str:
        """Return the text with ctok's marks of words; a space before a word is part of its mark."""
        folded = self._normalize.nfc(f"x\n{text}\nx", fold_quotes=self._model.fold_quotes)
        marked = str(self._normalize.stream_norm(folded, self._model, raw_head_space=False))
        start, end = marked.index("\n") + 1, marked.rindex("\n")
        marked = marked[start:end] if start <= end else "\n"
        return marked[1:] if marked[:1] == " " and self._begins_word(marked[1:]) else marked

    def _ways(self, marked: str) -> Iterator[str]:
        """Yield how the token can stand in a text: its words complete, or going on."""
        end = self._glyphs.EOW_G
        tails = {marked}
        if marked.endswith(end):
            tails.add(marked[:-1])
        elif marked and not marked[-1].isspace():
            tails.add(marked + end)
        for way in tails:
            yield way
            bare = way.lstrip(self._glyphs.SHIFT_G + self._glyphs.CAPS_G)
            if self._begins_word(way):
                yield bare[1:]
            elif bare[:1].isalpha():
                yield self._glyphs.BOW_G + bare

    def _begins_word(self, marked: str) -> bool:
        bare = marked.lstrip(self._glyphs.SHIFT_G + self._glyphs.CAPS_G)
        return bare[:1] == self._glyphs.BOW_G

    def _cost(self, marked: str) -> int:
        def of_character(at: int) -> int:
            is_mark = marked[at] in self._glyphs.MARKER_GLYPHS
            return 1 if is_mark else self._engine.char_cost(self._model, marked[at])

        return int(self._engine.min_vocab_tile(marked, self._model.trie, of_character)[0])


def _is_han(character: str) -> bool:
    return "\u3001" <= character <= "\u9fff" or "\uff01" <= character <= "\uff60"


if __name__ == "__main__":
    main(sys.argv[1:])
