"""Which folder a conversation gets, and which file in it a record, by the form its origin asks for.

Knows folders and names; never looks at a disk.
"""

import re
from collections.abc import Container
from hashlib import sha256

from creonowd.artifacts.refs import Kind, Origin
from creonowd.errors import DaemonError, ErrorCode

FOLDERS = {Kind.ARTIFACT: "artifacts", Kind.HISTORY: "history", Kind.CATALOG: "catalog"}
PLACES = {
    Origin.TOOL: "artifacts/tool",
    Origin.TERMINAL: "artifacts/terminal",
    Origin.ARCHIVE: "history/archive",
    Origin.SUMMARY: "history/summary",
    Origin.CATALOG: "catalog/tools",
}
REFS = "refs"

_KIND_OF = {
    Origin.TOOL: Kind.ARTIFACT,
    Origin.TERMINAL: Kind.ARTIFACT,
    Origin.ARCHIVE: Kind.HISTORY,
    Origin.SUMMARY: Kind.HISTORY,
    Origin.CATALOG: Kind.CATALOG,
}
_DEFAULT = {
    Kind.ARTIFACT: Origin.TOOL,
    Kind.HISTORY: Origin.ARCHIVE,
    Kind.CATALOG: Origin.CATALOG,
}
_PATH = re.compile(
    f"(?:{'|'.join(PLACES.values())})/" + r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}", re.ASCII
)
_CONVERSATION = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+", re.ASCII)
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)", re.IGNORECASE)
_LONGEST_STEM = 80
_DIGEST = 12


def is_conversation_id(text: str) -> bool:
    """Tell whether a text can be the name of a conversation's folder on every system."""
    return _CONVERSATION.fullmatch(text) is not None and _DEVICE.match(text) is None


def check_conversation_id(conversation_id: str) -> None:
    """Refuse what cannot be a conversation's id."""
    if not is_conversation_id(conversation_id):
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "conversationId must be 1 to 64 of A-Z, a-z, 0-9, _ and -, and no device's name.",
            field="conversationId",
        )


def kind_of(origin: Origin) -> Kind:
    """Tell which kind an origin belongs to."""
    return _KIND_OF[origin]


def default_origin(kind: Kind) -> Origin:
    """Tell where a file of a kind comes from unless something else is said."""
    return _DEFAULT[kind]


def ref_path(kind: Kind, ref_id: str) -> str:
    """Tell where the record of a ref is kept."""
    return f"{FOLDERS[kind]}/{REFS}/{ref_id}.json"


def is_path(path: str) -> bool:
    """Tell whether a path is one that a context file may have inside its conversation."""
    return (
        _PATH.fullmatch(path) is not None
        and not path.endswith(".")
        and _DEVICE.match(path.rpartition("/")[2]) is None
    )


def origin_of(path: str) -> Origin:
    """Tell which origin's folder a file path lies in."""
    return next(origin for origin, place in PLACES.items() if path.startswith(f"{place}/"))


def choose(
    origin: Origin, label: str, created_at: int, mime_type: str, taken: Container[str]
) -> str:
    """Name a new file after its `label`, a key or an id, beside the lower-case paths in `taken`."""
    stem = _stem(origin, label, created_at)
    ending = _ending(origin, mime_type)
    path = f"{PLACES[origin]}/{stem}{ending}"
    number = 2
    while path.lower() in taken or not is_path(path):
        path = f"{PLACES[origin]}/{stem}-{number}{ending}"
        number += 1
    return path


def _stem(origin: Origin, label: str, created_at: int) -> str:
    name = _UNSAFE.sub("_", label)[:_LONGEST_STEM].lstrip("-") or "file"
    name = f"_{name}" if _DEVICE.match(name) else name
    if name != label:
        # Keys that differ only in what a name cannot hold, such as Chinese ones, stay apart.
        name = f"{name}-{sha256(label.encode('utf-8', 'replace')).hexdigest()[:_DIGEST]}"
    if origin is Origin.ARCHIVE:
        return f"{created_at}-{name}"
    return str(created_at) if origin is Origin.SUMMARY else name


def _ending(origin: Origin, mime_type: str) -> str:
    if origin in {Origin.ARCHIVE, Origin.SUMMARY}:
        return ".md"
    if origin is Origin.TERMINAL:
        return ".log"
    bare = mime_type.partition(";")[0].strip().lower()
    if bare == "application/json" or bare.endswith("+json"):
        return ".json"
    return ".txt" if bare.startswith("text/") else ".bin"
