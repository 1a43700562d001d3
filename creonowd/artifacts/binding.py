"""Which project a conversation's folder belongs to. Knows one small file; knows no ref."""

import contextlib
from pathlib import Path

import msgspec

from creonowd.artifacts import ledger, names, tree
from creonowd.artifacts.refs import VERSION
from creonowd.errors import DaemonError
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json

FILE = "conversation.json"


class Binding(Model):
    """What `conversation.json` holds."""

    version: int = VERSION
    conversation_id: str
    project_id: str


def bind(folder: Path, project_id: str) -> None:
    """Make a folder the conversation of a project, for good."""
    for place in names.FOLDERS.values():
        tree.made_folder(folder, place)
    binding = Binding(conversation_id=folder.name, project_id=project_id)
    atomic.replace(folder / FILE, msgspec.json.encode(binding))


def project_of(folder: Path) -> str | None:
    """Tell whose conversation a folder is, from its records if need be; None if it is nobody's."""
    with contextlib.suppress(FileNotFoundError, versioned_json.DamagedFileError, UnicodeError):
        with tree.opened(folder, FILE) as file:
            data = file.read_at(0, file.size)
        return versioned_json.decode(data, Binding, version=VERSION, name=FILE).project_id
    manifest = ledger.read_manifest(folder)
    records = manifest.items if manifest is not None else ledger.load(folder, None)
    return next((record.project_id for record in records), None)


def unbind(folder: Path) -> None:
    """Remove what makes a folder a conversation, and the folder itself if nothing else is in it."""
    tree.remove(folder, FILE)
    refs = [f"{place}/{names.REFS}" for place in names.FOLDERS.values()]
    for path in (*refs, *names.PLACES.values(), *names.FOLDERS.values(), ""):
        with contextlib.suppress(OSError, DaemonError):
            tree.refuse_links(folder, path)
            (folder / path).rmdir()
