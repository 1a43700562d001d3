"""The two encodings, their rank tables, and which model uses which encoding.

The tables come with the package, in a form that is read four times as fast as the published one:
the tokens in the order of their ranks, as MessagePack, compressed. Each is verified by its SHA-256.
"""

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model

if TYPE_CHECKING:
    import tiktoken

LONGEST_TOKEN = 128
SUFFIX = ".tokens"

_TOKENS = msgspec.msgpack.Decoder(list[bytes])
_LOADING = Lock()


class TableError(Exception):
    """A rank table is missing, damaged or another than expected."""


class EncodingDefinition(Model):
    """What defines an encoding: its pattern, its special tokens and the hash of its table.

    `packed_sha256` is that of the table in the form in which it comes with the package.
    """

    sha256: str
    packed_sha256: str
    pattern: str
    special: dict[str, int]


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
        special={
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
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
        special={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}


def tokenizer_version(encoding: str) -> str:
    """Name the exact table of an encoding without loading it."""
    return ENCODINGS[encoding].sha256[:16]


def packaged_tables() -> Traversable:
    """Return the folder of the tables that ship with creonowd."""
    return files("creonowd.tokens") / "tables"


def packaged_encoding(name: str) -> "tiktoken.Encoding":
    """Build an encoding from the table that ships with creonowd, once per process."""
    with _LOADING:
        return _packaged(name)


@cache
def _packaged(name: str) -> "tiktoken.Encoding":
    return load_encoding(name, packaged_tables())


def load_encoding(name: str, tables: Traversable) -> "tiktoken.Encoding":
    """Build an encoding from its table; `TableError` says what is wrong with it.

    Takes a quarter of a second and 90 MB: call it from a thread, once.
    """
    definition = ENCODINGS.get(name)
    if definition is None:
        raise TableError(f"there is no encoding {name}")
    tokens = verify(name, tables)
    ranks = dict(zip(tokens, range(len(tokens)), strict=True))
    try:
        import tiktoken
    except ImportError as error:
        raise TableError("tiktoken cannot be imported") from error
    return tiktoken.Encoding(
        name, pat_str=definition.pattern, mergeable_ranks=ranks, special_tokens=definition.special
    )


def verify(name: str, tables: Traversable) -> list[bytes]:
    """Return the tokens of a known encoding by rank; `TableError` if the table is unusable."""
    try:
        packed = zlib.decompress((tables / f"{name}{SUFFIX}").read_bytes())
    except FileNotFoundError as error:
        raise TableError(f"the table of {name} is missing") from error
    except (OSError, zlib.error) as error:
        raise TableError(f"the table of {name} is damaged") from error
    if sha256(packed).hexdigest() != ENCODINGS[name].packed_sha256:
        raise TableError(f"the table of {name} is damaged")
    return _TOKENS.decode(packed)


def published_table(tokens: Iterable[bytes]) -> bytes:
    """Return a table as its publisher's file has it."""
    return b"".join(b"%b %d\n" % (b64encode(token), rank) for rank, token in enumerate(tokens))


def packed_table(published: bytes) -> bytes:
    """Return a published table in the form that comes with the package."""
    pairs = (line.split() for line in published.splitlines() if line)
    ranks = sorted((int(rank), b64decode(token)) for token, rank in pairs)
    return zlib.compress(msgspec.msgpack.encode([token for _, token in ranks]), 9)


DEFAULT_ENCODING = "o200k_base"

_PREFIXES = (
    ("gpt-4o", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-5", "o200k_base"),
    ("gpt-oss", "o200k_base"),
    ("chatgpt-4o", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),
    ("text-embedding-3", "cl100k_base"),
    ("text-embedding-ada-002", "cl100k_base"),
    ("davinci-002", "cl100k_base"),
    ("babbage-002", "cl100k_base"),
)


class EncodingMatch(NamedTuple):
    """An encoding, and whether it is really the one the model uses."""

    encoding: str
    exact: bool


def encoding_for(model: str | None, otherwise: str = DEFAULT_ENCODING) -> EncodingMatch:
    """Find the model's encoding; a model without a public table gets `otherwise`, inexactly.

    Without a model `otherwise` is exact.
    """
    if not model:
        return EncodingMatch(otherwise, exact=True)
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    found = next((encoding for prefix, encoding in _PREFIXES if _is_of_family(name, prefix)), None)
    return (
        EncodingMatch(otherwise, exact=False) if found is None else EncodingMatch(found, exact=True)
    )


def _is_of_family(name: str, prefix: str) -> bool:
    rest = name.removeprefix(prefix)
    return name == prefix or (rest != name and not rest[0].isalnum())


def check_tokenizer_version(encoding: str, version: str | None) -> None:
    """Raise CONTEXT_TOKENIZER_MISMATCH if a request was made for another tokenizer."""
    own = tokenizer_version(encoding)
    if version is not None and version != own:
        raise DaemonError(
            ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
            f"The daemon counts with {encoding} {own}; read the budget again.",
            tokenizerId=encoding,
            tokenizerVersion=own,
        )
