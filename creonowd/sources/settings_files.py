"""Settings texts, the outline among them, each with the confidence it claims. Pure; no disk.

`memory.json` is read as preferences and not as a text.
"""

import json
from typing import Any, cast

from creonowd.context.fragment import Fragment, Layer, LeftOut, Reason
from creonowd.context.plan import Fetched
from creonowd.errors import WarningCode
from creonowd.sources.reading import Shelved, as_fragment, is_json, leave_out, read_files
from creonowd.storage import front_matter
from creonowd.storage.relative_paths import CreonowFolder, folder_of
from creonowd.workspace.creonow_tree import Folder, TreeFile

FOLDER = folder_of(CreonowFolder.SETTINGS)
MEMORY = f"{FOLDER}/memory.json"

_OUTLINE = f"{FOLDER}/outline"


def settings_texts(folder: Folder) -> Fetched:
    """Read every settings text but the outline."""
    shelved = _shelved("settings", WarningCode.SETTINGS_UNAVAILABLE)
    return read_files(shelved, folder, lambda p: p != MEMORY and not is_outline(p), _setting)


def outline(folder: Folder) -> Fetched:
    """Read `settings/outline.*`."""
    shelved = _shelved("outline", WarningCode.OUTLINE_UNAVAILABLE)
    return read_files(shelved, folder, is_outline, _setting)


def is_outline(path: str) -> bool:
    """Tell whether a settings file holds the outline."""
    if not path.lower().startswith(_OUTLINE):
        return False
    name = path.rpartition("/")[2]
    return path == f"{FOLDER}/{name}" and name.rsplit(".", 1)[0].lower() == "outline"


def _setting(shelved: Shelved, file: TreeFile, text: str) -> Fragment | LeftOut:
    claimed = _claimed(file.path, text)
    if claimed is None:
        return as_fragment(shelved, file, text)
    if isinstance(claimed, bool) or not isinstance(claimed, (int, float)) or not 0 <= claimed <= 1:
        return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    return as_fragment(shelved, file, text, confidence=float(claimed))


def _claimed(path: str, text: str) -> Any:
    if is_json(path):
        value = json.loads(text)
        return cast("dict[str, Any]", value).get("confidence") if isinstance(value, dict) else None
    read = front_matter.read(text)
    return None if read is None else read.values.get("confidence")


def _shelved(source: str, unavailable: WarningCode) -> Shelved:
    return Shelved(layer=Layer.SETTINGS, source=source, unavailable=unavailable)
