"""The encodings and their rank tables: those that ship with creonowd, and those that a user brings.

The tables come with the package, in a form that is read four times as fast as the published one:
the tokens in the order of their ranks, as MessagePack, compressed. Each is verified by its SHA-256.

A table of a user, for models whose table does not ship, is two files in `<userData>/tokenizers`:
`NAME.tiktoken.gz`, the ranks in tiktoken's text form, gzipped, and `NAME.json`, which describes it:

    {"pat_str": "…", "sha256": "…", "normalization": null, "modelNames": ["kimi-k2"]}

`pat_str` is the pattern that splits a text before merges, `sha256` that of the unpacked table.
`normalization` is `NFC` or null. `modelNames` are how the names of its models begin; `kimi_k3` and
`llama3` are known without. Other keys are for people. The folder is listed when the daemon starts.
"""

import re
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import pairwise, product
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from creonowd.errors import Wording, library_errors
from creonowd.model import Model

if TYPE_CHECKING:
    import tiktoken

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
    """Drop a packaged encoding; it is freed once nothing counts with it any more."""
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


FOLDER = "tokenizers"
LARGEST_DESCRIPTION = 1024 * 1024
LARGEST_PACKED = 32 * 1024 * 1024
LARGEST_TABLE = 64 * 1024 * 1024
MOST_TABLES = 32

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_PIECES = ("", "a", "Z", "字", " ", "\n", "  ", "1", "'s", "é", "😀", ".", "\t", "/", "。", "\x01")


class TableDescription(Model):
    """What `NAME.json` says of a table; a key that is not here is for people."""

    pattern: str = msgspec.field(name="pat_str")
    sha256: str
    normalization: str | None = None
    model_names: tuple[str, ...] = ()


class UserTable(Model):
    """A table that a user brought; `problem` says why it cannot be used."""

    name: str
    folder: Path
    definition: EncodingDefinition | None = None
    model_names: tuple[str, ...] = ()
    problem: Wording | None = None

    @property
    def version(self) -> str:
        """Name the exact table."""
        return "" if self.definition is None else self.definition.sha256[:16]


def list_tables(user_data: Path) -> dict[str, UserTable]:
    """Describe the tables of a user by name; one that cannot be used has a problem."""
    folder = user_data / FOLDER
    try:
        found = sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except OSError:
        return {}
    return {path.stem: _describe(path) for path in found[:MOST_TABLES]}


def _describe(path: Path) -> UserTable:
    name = path.stem
    table = UserTable(name=name, folder=path.parent)
    try:
        description = _description(path)
    except TableError as error:
        return UserTable(name=name, folder=path.parent, problem=error.wording)
    definition = EncodingDefinition(
        sha256=description.sha256,
        packed_sha256="",
        pattern=description.pattern,
        licence="",
        nfc=description.normalization == "NFC",
    )
    names = tuple(one.lower() for one in description.model_names if one.strip())
    return replace(table, definition=definition, model_names=names)


def _description(path: Path) -> TableDescription:
    if not _NAME.fullmatch(path.stem):
        raise TableError(_BAD_NAME.format(path.name))
    if path.stem in KNOWN:
        raise TableError(_OWN_NAME.format(path.stem))
    data = _content(path, LARGEST_DESCRIPTION)
    try:
        found = msgspec.json.decode(data, type=TableDescription)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise TableError(_NO_DESCRIPTION.format(path.name, error)) from None
    if not _HASH.fullmatch(found.sha256):
        raise TableError(_NO_HASH.format(path.name))
    if found.normalization not in {None, "NFC"}:
        raise TableError(_NORMALIZATION.format(path.name))
    return found


def load_table(table: UserTable) -> "tuple[tiktoken.Encoding, EncodingDefinition]":
    """Read a user's table, check it by its hash and build its encoding; else `TableError`.

    Counts of units must add up, as they do with the tables that ship. A table with which they do
    not is refused, because no prompt could be kept within a budget.
    """
    if table.definition is None:
        raise TableError(table.problem or _USER_TABLE_DAMAGED.format(table.name))
    name = f"{table.name}.tiktoken.gz"
    unpacked = _unpack_gzip(_content(table.folder / name, LARGEST_PACKED), name)
    if sha256(unpacked).hexdigest() != table.definition.sha256:
        raise TableError(_OTHER_HASH.format(name))
    ranks = _ranks(unpacked, name)
    with library_errors(lambda kind: TableError(_REFUSED.format(name, kind))):
        encoding = make_encoding(table.name, table.definition.pattern, ranks)
        problem = _problem(encoding)
    if problem is not None:
        raise TableError(problem)
    return encoding, replace(table.definition, longest=max(map(len, ranks)))


def _content(path: Path, limit: int) -> bytes:
    try:
        if not path.is_file():
            raise TableError(_USER_FILE_MISSING.format(path.name))
        if path.stat().st_size > limit:
            raise TableError(_TOO_LARGE.format(path.name, limit))
        return path.read_bytes()
    except OSError as error:
        raise TableError(_UNREADABLE.format(path.name)) from error


def _unpack_gzip(packed: bytes, name: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(packed, LARGEST_TABLE)
    except zlib.error as error:
        raise TableError(_USER_TABLE_DAMAGED.format(name)) from error
    if unpacker.unconsumed_tail:
        raise TableError(_TOO_LARGE.format(name, LARGEST_TABLE))
    if not unpacker.eof:
        raise TableError(_USER_TABLE_DAMAGED.format(name))
    return unpacked


def _ranks(table: bytes, name: str) -> Mapping[bytes, int]:
    """Read the ranks; only their order matters for a count, so gaps are closed."""
    try:
        pairs = (line.split() for line in table.splitlines() if line)
        ranked = sorted((int(rank), b64decode(token, validate=True)) for token, rank in pairs)
    except (ValueError, Base64Error) as error:
        raise TableError(_NO_RANKS.format(name)) from error
    tokens = [token for _, token in ranked]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    single = sum(len(token) == 1 for token in ranks)
    if len(ranks) != len(tokens) or len({rank for rank, _ in ranked}) != len(tokens):
        raise TableError(_NO_RANKS.format(name))
    if single != 256 or b"" in ranks:
        raise TableError(_NO_BYTES.format(name))
    return ranks


def _problem(encoding: "tiktoken.Encoding") -> Wording | None:
    """Return whether a table loses a part of a text, or its counts of units do not add up."""
    units = list(_units())
    for unit in units:
        if encoding.decode_bytes(encoding.encode_ordinary(unit)) != unit.encode():
            return _LOSES.format(encoding.name)
    counts = [len(encoding.encode_ordinary(unit)) for unit in units]
    for (one, other), tokens in zip(pairwise(units), pairwise(counts), strict=True):
        if len(encoding.encode_ordinary(one + other)) != sum(tokens):
            return _NOT_ADDITIVE.format(encoding.name)
    return None


def _units() -> Iterator[str]:
    for parts in product(_PIECES, _PIECES):
        yield f"#{''.join(parts)}\n"


_BAD_NAME = Wording(
    "{}: a table's name has up to 64 of a-z, 0-9, `_`, `-` and `.`",
    "{}：词表名须为至多 64 个 a-z、0-9、_、- 或 . 字符",
)
_OWN_NAME = Wording(
    "{} is the name of a table that ships with creonowd", "{} 是 creonowd 自带词表的名称"
)
_NO_DESCRIPTION = Wording("{} is no description of a table: {}", "{} 不是词表说明：{}")
_NO_HASH = Wording(
    "{}: `sha256` must be 64 hexadecimal digits in lower case", "{}：sha256 须为 64 位小写十六进制"
)
_NORMALIZATION = Wording(
    "{}: `normalization` is `NFC` or null; nothing else can be counted",
    "{}：normalization 只能为 NFC 或 null",
)
_USER_FILE_MISSING = Wording("{} is missing, or is no file", "{} 缺失或不是文件")
_TOO_LARGE = Wording("{} has more than {} bytes", "{} 超过 {} 字节")
_UNREADABLE = Wording("{} cannot be read", "{} 无法读取")
_USER_TABLE_DAMAGED = Wording("{} is damaged", "{} 已损坏")
_OTHER_HASH = Wording(
    "{} is not the table that its description names: their SHA-256 differ",
    "{} 与说明不符：SHA-256 不同",
)
_NO_RANKS = Wording(
    "{} is no rank table in tiktoken's text form, or has a token or a rank twice",
    "{} 不是 tiktoken 文本格式的词表，或有重复的词元或序号",
)
_NO_BYTES = Wording("{} does not have each of the 256 bytes as a token", "{} 缺少部分单字节词元")
_REFUSED = Wording("{} and its pattern were refused ({})", "{} 及其模式无法使用（{}）")
_LOSES = Wording("the pattern of {} leaves out a part of a text", "{} 的模式会漏掉部分文本")
_NOT_ADDITIVE = Wording(
    "the counts of {} do not add up over units, so no budget could be kept by it",
    "{} 的计数不可相加，无法据以控制预算",
)
