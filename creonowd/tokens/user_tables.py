"""Tables that a user brings, for models whose table does not ship with creonowd.

Each is two files in `<userData>/tokenizers`: `NAME.tiktoken.gz`, the ranks in tiktoken's text form,
gzipped, and `NAME.json`, which describes it:

    {"pat_str": "…", "sha256": "…", "normalization": null, "modelNames": ["kimi-k2"]}

`pat_str` is the pattern that splits a text before merges, `sha256` that of the unpacked table.
`normalization` is `NFC` or null. `modelNames` are how the names of its models begin; `kimi_k3` and
`llama3` are known without. Other keys are for people. The folder is listed when the daemon starts.
"""

import re
import zlib
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping
from hashlib import sha256
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from creonowd.errors import Wording, library_errors
from creonowd.model import Model
from creonowd.tokens.tables import KNOWN, EncodingDefinition, TableError, make_encoding

if TYPE_CHECKING:
    import tiktoken

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

    Counts of units must add up, as they do for the tables that ship; one for which they do not is
    refused, since no prompt could be kept within a budget by it.
    """
    if table.definition is None:
        raise TableError(table.problem or _DAMAGED.format(table.name))
    name = f"{table.name}.tiktoken.gz"
    unpacked = _unpack(_content(table.folder / name, LARGEST_PACKED), name)
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
            raise TableError(_MISSING.format(path.name))
        if path.stat().st_size > limit:
            raise TableError(_TOO_LARGE.format(path.name, limit))
        return path.read_bytes()
    except OSError as error:
        raise TableError(_UNREADABLE.format(path.name)) from error


def _unpack(packed: bytes, name: str) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacker.decompress(packed, LARGEST_TABLE)
    except zlib.error as error:
        raise TableError(_DAMAGED.format(name)) from error
    if unpacker.unconsumed_tail:
        raise TableError(_TOO_LARGE.format(name, LARGEST_TABLE))
    if not unpacker.eof:
        raise TableError(_DAMAGED.format(name))
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
_MISSING = Wording("{} is missing, or is no file", "{} 缺失或不是文件")
_TOO_LARGE = Wording("{} has more than {} bytes", "{} 超过 {} 字节")
_UNREADABLE = Wording("{} cannot be read", "{} 无法读取")
_DAMAGED = Wording("{} is damaged", "{} 已损坏")
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
