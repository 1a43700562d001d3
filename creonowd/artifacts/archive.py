"""What may be in an archive: `context/<conversationId>/` with a manifest and its files, nothing else.

Knows names and sizes as a zip declares them; unpacks nothing and trusts nothing.
"""

import stat
from collections.abc import Sequence
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipInfo

from creonowd.artifacts import names
from creonowd.artifacts.ledger import MANIFEST
from creonowd.errors import DaemonError, ErrorCode

PREFIX = "context"
MOST_FILES = 100_000
HIGHEST_RATIO = 100
LARGEST_DIRECTORY = 32 * 1024 * 1024

_RATIO_MATTERS_FROM = 1024 * 1024
_ENCRYPTED = 0x1


class Layout(NamedTuple):
    """Where everything is in an archive; `files` by their path in the conversation's folder."""

    conversation_id: str
    manifest: ZipInfo | None
    files: dict[str, ZipInfo]


def entry_name(conversation_id: str, path: str) -> str:
    """Tell how a file of a conversation is called in an archive."""
    return f"{PREFIX}/{conversation_id}/{path}"


def is_too_dense(size: int, compressed: int) -> bool:
    """Tell whether so many bytes from so few are what a bomb would be."""
    return size > _RATIO_MATTERS_FROM and size > HIGHEST_RATIO * compressed


def lay_out(infos: Sequence[ZipInfo], archive_bytes: int, most_bytes: int) -> Layout:
    """Check every entry before a byte is unpacked, and find the manifest and the files."""
    _refuse_bombs(infos, archive_bytes, most_bytes)
    ids: set[str] = set()
    paths: set[str] = set()
    files: dict[str, ZipInfo] = {}
    for info in infos:
        conversation_id, path = _located(info)
        ids.add(conversation_id)
        if info.is_dir():
            continue
        if path.lower() in paths:
            raise refused("duplicate", "Two entries have one name, or differ only in case.")
        paths.add(path.lower())
        files[path] = info
    if len(ids) != 1:
        raise refused("not_one_conversation", "The archive must hold exactly one conversation.")
    return Layout(ids.pop(), files.pop(MANIFEST, None), files)


def refused(reason: str, message: str) -> DaemonError:
    """Say why an archive is not taken in."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"{message} Nothing was imported; export the conversation again.",
        field="path",
        reason=reason,
    )


def _refuse_bombs(infos: Sequence[ZipInfo], archive_bytes: int, most_bytes: int) -> None:
    if len(infos) > MOST_FILES:
        raise refused("too_many_files", f"The archive holds more than {MOST_FILES} entries.")
    unpacked = sum(info.file_size for info in infos)
    if unpacked > most_bytes:
        raise refused("too_large", f"The archive unpacks to more than {most_bytes} bytes.")
    # Entries that share their bytes claim together more than the file has.
    overlapping = sum(info.compress_size for info in infos) > archive_bytes
    if overlapping or any(is_too_dense(info.file_size, info.compress_size) for info in infos):
        raise refused("bomb", "The archive unpacks to far more than it can honestly hold.")


def _located(info: ZipInfo) -> tuple[str, str]:
    """Split an entry's name into conversation and path; every other form of name is refused."""
    _refuse_special(info)
    prefix, _, rest = info.orig_filename.partition("/")
    conversation_id, _, path = rest.partition("/")
    if info.is_dir():
        known = path.rstrip("/") in {"", *names.FOLDERS.values(), *names.PLACES.values()}
    else:
        known = path == MANIFEST or names.is_path(path)
    if prefix != PREFIX or not names.is_conversation_id(conversation_id) or not known:
        raise refused("name", "An entry has a name that no context file has.")
    return conversation_id, path


def _refuse_special(info: ZipInfo) -> None:
    plain = stat.S_IFDIR if info.is_dir() else stat.S_IFREG
    if stat.S_IFMT(info.external_attr >> 16) not in {0, plain}:
        raise refused("link", "An entry is a link or no plain file.")
    if info.flag_bits & _ENCRYPTED:
        raise refused("encrypted", "An entry is encrypted.")
    if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
        raise refused("compression", "An entry is packed by a method that is not supported.")
