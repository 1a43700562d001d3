"""The encodings and their rank tables.

The tables come with the package, in a form that is read four times as fast as the published one:
the tokens in the order of their ranks, as MessagePack, compressed. Each is verified by its SHA-256.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from creonowd.errors import Wording
from creonowd.model import Model

if TYPE_CHECKING:
    import tiktoken

SUFFIX = ".tokens"
SEPARATOR = "<|endoftext|>"
"""The one special token: it stands between texts that are counted in one call."""

_TOKENS = msgspec.msgpack.Decoder(list[bytes])
_LOADING = Lock()
_PACKAGED: "dict[str, tiktoken.Encoding]" = {}


class TableError(Exception):
    """A rank table is missing, damaged or another than expected."""

    def __init__(self, wording: Wording) -> None:
        super().__init__(wording.english)
        self.wording = wording


class EncodingDefinition(Model):
    """What defines an encoding: its pattern and the hash of its table.

    `longest` is how many code points its longest token has. `packed_sha256` is that of the table in
    the form in which it comes with the package. `skipped` are ranks of the published table that no
    token has; for counting only the order matters. With `nfc` the model reads the NFC of a text. No
    special token is here: a manuscript may hold the text of one, so all of them count as plain
    text.
    """

    sha256: str
    packed_sha256: str
    pattern: str
    licence: str
    longest: int = 128
    skipped: tuple[int, ...] = ()
    nfc: bool = False


# What DeepSeek splits off before words. As intersections of classes the exclusions are as quick as
# the other patterns; with a look-ahead per character a million letters make tiktoken panic.
_HAN_KANA = r"一-龥\u3040-\u309f\u30a0-\u30ff"
_MARKS = r"!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~"
_LETTERS = rf"[\p{{L}}\p{{M}}&&[^{_HAN_KANA}]]"
_DEEPSEEK = (
    rf"\p{{N}}{{1,3}}|[{_HAN_KANA}]+|[{_MARKS}][A-Za-z]+"
    rf"|[^\r\n\p{{L}}\p{{P}}\p{{S}}\p{{N}}{_HAN_KANA}]?{_LETTERS}+"
    rf"| ?[\p{{P}}\p{{S}}&&[^{_HAN_KANA}]]+[\r\n]*"
    rf"|\s*[\r\n]+|\s+(?![^\s\p{{N}}{_HAN_KANA}])|\s+"
    rf"|[^\s\p{{L}}\p{{M}}\p{{N}}\p{{P}}\p{{S}}{_HAN_KANA}]+(?!{_LETTERS})"
)
_QWEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)

DEFAULT_ENCODING = "o200k_base"
ENCODINGS: dict[str, EncodingDefinition] = {
    "cl100k_base": EncodingDefinition(
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        packed_sha256="ed0816e2b705c3b6474af6314071f4fdeebd9b5862af1ff3d3f9136711a8a00c",
        pattern=(
            r"'(?i:[sdmt]|ll|ve|re)"
            r"|[^\r\n\p{L}\p{N}]?+\p{L}++"
            r"|\p{N}{1,3}+"
            r"| ?[^\s\p{L}\p{N}]++[\r\n]*+"
            r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
        ),
        licence="MIT",
    ),
    "o200k_base": EncodingDefinition(
        sha256="446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        packed_sha256="21be86ee43e53a592c4dc0621c2eca9af6bc4c29df3c9a2161e452e4ecccab5d",
        pattern=(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
            r"|\p{N}{1,3}"
            r"| ?[^\s\p{L}\p{N}]+[\r\n/]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        licence="MIT",
    ),
    "deepseek_v4": EncodingDefinition(
        sha256="ea361439831165203088c236a65f20163f58a68d735b51593dfe1068a23920b2",
        packed_sha256="96f49b704c00350fbd638d0fb51a3239e458d218750400474c0e22dd3ec81e72",
        pattern=_DEEPSEEK,
        licence="MIT",
        skipped=(0, 1, 2),
    ),
    "qwen3": EncodingDefinition(
        sha256="b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186",
        packed_sha256="63184a62deeacc342b0618b4d920072cbec4d3a2f70e9e44e46f1aee3ba94651",
        pattern=_QWEN,
        licence="Apache-2.0",
        nfc=True,
    ),
    "qwen3_6": EncodingDefinition(
        sha256="8dde380a6405e935f5de16a99eb61c824f3f814dd1ed298784c72babb7a03cdd",
        packed_sha256="f243adccf5dbfc4cdac4de84e06b7081f401630b8f87a3efe068e01086f5dd40",
        pattern=(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}"
            r"| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        licence="Apache-2.0",
        nfc=True,
    ),
    "glm5_2": EncodingDefinition(
        sha256="9287441456cde9a28ce6f6f2b7ee2233e5b9c5e2987a1a3085514cced96a8cf2",
        packed_sha256="7200e92cf82e78bf98a196fef450022891fe2172583ff2df2c7b091dd76aeefb",
        pattern=_QWEN.replace(r"|\p{N}|", r"|\p{N}{1,3}|"),
        licence="MIT",
        longest=512,
        # Tokens that no merge makes; with them in the table tiktoken would use them.
        skipped=(
            *(23977, 24935, 27171, 27395, 29825, 31207, 34951, 36363, 37314, 39153, 43466, 43470),
            *(44573, 46583, 49780, 50753, 58119, 58730, 61185, 66149, 67676, 68438, 78688, 81272),
            *(83868, 90291, 92654, 95997),
        ),
    ),
    "mistral_tekken": EncodingDefinition(
        sha256="64a081edb3cbb8639a4eea9a7135ab9a0467c50676c672b217ba655f4d50e127",
        packed_sha256="2f26697cd32356a4f7b3d958ed80982fcceced4da61756b4235e44323146f730",
        pattern=(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
            r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
            r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        ),
        licence="Apache-2.0",
    ),
}


BOUND_BASE = "o200k_base"
BOUNDS = {
    "claude_v3": "5429b1208e8d88c7636b97046f4eec192c12e7f97c08a61d6e454e2e1c46d6c8",
    "claude_v4_7": "e2e89b4a2c545c75986759ead617704652446758cfef33c2f33e0ce9b4c9f965",
}
"""The SHA-256 of the tables of upper bounds; `scripts/claude_costs.py` makes them and says how."""

KNOWN = frozenset({*ENCODINGS, *BOUNDS})


def packaged_tables() -> Traversable:
    """Return the folder of the tables that ship with creonowd."""
    return files("creonowd.tokens") / "tables"


def packaged_encoding(name: str) -> "tiktoken.Encoding":
    """Build an encoding from the table that ships with creonowd, once per process."""
    with _LOADING:
        if name not in _PACKAGED:
            _PACKAGED[name] = load_encoding(name, packaged_tables())
        return _PACKAGED[name]


def release_encoding(name: str) -> None:
    """Let a packaged encoding go; who still counts with it keeps it until then."""
    with _LOADING:
        _PACKAGED.pop(name, None)


def load_encoding(name: str, tables: Traversable) -> "tiktoken.Encoding":
    """Build an encoding from its table; `TableError` says what is wrong with it.

    Takes a quarter of a second and 90 MB: call it from a thread, once.
    """
    definition = ENCODINGS.get(name)
    if definition is None:
        raise TableError(Wording("there is no encoding {}", "没有编码 {}").format(name))
    tokens = verify(name, tables)
    ranks = dict(zip(tokens, range(len(tokens)), strict=True))
    return make_encoding(name, definition.pattern, ranks)


def make_encoding(name: str, pattern: str, ranks: Mapping[bytes, int]) -> "tiktoken.Encoding":
    """Build an encoding of a pattern and ranks; its one special token separates texts."""
    try:
        import tiktoken
    except ImportError as error:
        raise TableError(Wording("tiktoken cannot be imported", "无法导入 tiktoken")) from error
    return tiktoken.Encoding(
        name,
        pat_str=pattern,
        mergeable_ranks=dict(ranks),
        special_tokens={SEPARATOR: len(ranks)},
    )


def verify(name: str, tables: Traversable) -> list[bytes]:
    """Return the tokens of a known encoding by rank; `TableError` if the table is unusable."""
    packed = _unpack(tables / f"{name}{SUFFIX}", name)
    if sha256(packed).hexdigest() != ENCODINGS[name].packed_sha256:
        raise TableError(_DAMAGED.format(name))
    return _TOKENS.decode(packed)


def load_costs(name: str, tables: Traversable) -> bytes:
    """Return what the tokens of `BOUND_BASE` cost at most; `TableError` if that is unusable."""
    costs = _unpack(tables / f"{name}.costs", name)
    if sha256(costs).hexdigest() != BOUNDS[name]:
        raise TableError(_DAMAGED.format(name))
    return costs


def _unpack(table: Traversable, name: str) -> bytes:
    try:
        return zlib.decompress(table.read_bytes())
    except FileNotFoundError as error:
        raise TableError(_MISSING.format(name)) from error
    except (OSError, zlib.error) as error:
        raise TableError(_DAMAGED.format(name)) from error


_DAMAGED = Wording("the table of {} is damaged", "{} 的词表已损坏")
_MISSING = Wording("the table of {} is missing", "{} 的词表缺失")


def published_table(tokens: Sequence[bytes], skipped: Collection[int] = ()) -> bytes:
    """Return a table as its publisher's file has it."""
    ranks = (rank for rank in range(len(tokens) + len(skipped)) if rank not in skipped)
    pairs = zip(tokens, ranks, strict=True)
    return b"".join(b"%b %d\n" % (b64encode(token), rank) for token, rank in pairs)


def packed_table(published: bytes) -> bytes:
    """Return a published table in the form that comes with the package."""
    pairs = (line.split() for line in published.splitlines() if line)
    ranks = sorted((int(rank), b64decode(token)) for token, rank in pairs)
    return zlib.compress(msgspec.msgpack.encode([token for _, token in ranks]), 9)
