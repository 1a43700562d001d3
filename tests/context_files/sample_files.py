"""Context files for tests: any bytes, opened or put as the store does it."""

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any

from creonowd.context_files import records
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.record_store import plain_folder
from creonowd.context_files.records import Kind, NewFile, Origin
from creonowd.storage.safe_folder import OpenFile


@contextlib.contextmanager
def file_of(folder: Path, data: bytes) -> Generator[OpenFile]:
    """Open a file that holds `data`."""
    (folder / "file").write_bytes(data)
    with plain_folder(folder).open_file("file") as file:
        yield file


def new_file(
    kind: Kind = Kind.ARTIFACT,
    *,
    key: str | None = None,
    origin: Origin | None = None,
    recipe: dict[str, Any] | None = None,
    mime_type: str = "text/plain",
) -> NewFile:
    """Say what is needed of a new file."""
    return NewFile(
        kind=kind,
        origin=origin or records.default_origin(kind),
        hint="a hint",
        mime_type=mime_type,
        key=key,
        recipe=recipe,
    )


def content_of(conversation: ConversationFolder, ref_id: str) -> bytes:
    """Read a whole file."""
    with conversation.open_file(ref_id) as (_, file):
        return file.read_at(0, file.size)


def lazy_file(conversation: ConversationFolder, content: bytes) -> str:
    """Register a recipe and make its file."""
    record = conversation.register(new_file(Kind.HISTORY, recipe={"type": "host"}))
    with conversation.write_lazy_file(record) as file:
        file.write(content)
    return record.id
