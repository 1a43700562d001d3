"""Which files of a project matter to a prompt, and to which layer of it.

Pure: knows names only. A document is a text of the user outside `.creonow`.
"""

from pathlib import PurePosixPath
from typing import Literal

from creonowd.workspace.atomic import is_temporary
from creonowd.workspace.paths import TREE, problem_with_name

Layer = Literal["rules", "settings", "retrieved", "immediate"]

LAYERS: tuple[Layer, ...] = ("rules", "settings", "retrieved", "immediate")
DOCUMENT_SUFFIXES = frozenset({".md", ".markdown", ".txt"})

_OF_FOLDER: dict[str, tuple[Layer, ...]] = {
    "rules": ("rules",),
    "settings": ("settings",),
    # A character may be injected always, which is Rules, or when mentioned, which is Retrieved.
    "characters": ("rules", "retrieved"),
}
_FOREIGN = frozenset({"node_modules", "__pycache__", "__MACOSX", "$RECYCLE.BIN"})


def layers_of(paths: frozenset[str] | set[str]) -> tuple[Layer, ...]:
    """Tell which layers change when these project-relative paths do, in reading order."""
    touched = {layer for path in paths for layer in _touched(path)}
    return tuple(layer for layer in LAYERS if layer in touched)


def is_document(path: str) -> bool:
    """Tell whether a project-relative path names a text that the user writes."""
    pure = PurePosixPath(path)
    return pure.suffix.lower() in DOCUMENT_SUFFIXES and all(map(_is_open, pure.parts))


def matters(folder: str, name: str) -> bool:
    """Tell whether a file called `name` in a project-relative `folder` is worth watching."""
    path = f"{folder}/{name}" if folder else name
    if path.startswith(f"{TREE}/"):
        return not _is_leftover(name) and not problem_with_name(name)
    return is_document(path)


def enters(folder: str, name: str) -> bool:
    """Tell whether a folder called `name` in a project-relative `folder` may hold what matters."""
    if not folder:
        return name == TREE or _is_open(name)
    return (folder, name) != (TREE, "cache") and _is_open(name)


def _touched(path: str) -> tuple[Layer, ...]:
    first, _, rest = path.partition("/")
    if first == TREE:
        return _OF_FOLDER.get(rest.partition("/")[0], ())
    return ("retrieved", "immediate")


def _is_open(name: str) -> bool:
    return not name.startswith(".") and name not in _FOREIGN and not problem_with_name(name)


def _is_leftover(name: str) -> bool:
    """Recognise what editors and we ourselves put beside a file while saving it."""
    return is_temporary(name) or name.startswith((".", "#", "~$")) or name.endswith(("~", ".tmp"))
