"""Rule texts: style, terminology, and whatever else lies in `rules/`. Pure; knows no disk.

Files that still are as `ensure` made them say nothing and are no candidates.
"""

from creonowd.context.fragment import Fragment, Layer
from creonowd.context.plan import Fetched
from creonowd.errors import WarningCode
from creonowd.sources.reading import Shelved, as_fragment, read_files
from creonowd.storage.relative_paths import CreonowFolder, folder_of
from creonowd.text import canonical_json
from creonowd.workspace.creonow_tree import DEFAULTS, Folder, TreeFile

STYLE = f"{folder_of(CreonowFolder.RULES)}/style.md"
TERMINOLOGY = f"{folder_of(CreonowFolder.RULES)}/terminology.json"
CONSTRAINTS = f"{folder_of(CreonowFolder.RULES)}/constraints.json"

_GUIDE = (STYLE, TERMINOLOGY)
_EMPTY = {
    STYLE: DEFAULTS["rules/style.md"].decode().strip(),
    TERMINOLOGY: canonical_json(DEFAULTS["rules/terminology.json"].decode()),
}


def style_guide(folder: Folder) -> Fetched:
    """Read style and terminology."""
    return read_files(_shelved(0), folder, _GUIDE.__contains__, _rule)


def other_rules(folder: Folder) -> Fetched:
    """Read every other file of `rules/`; constraints have a source of their own."""
    known = {*_GUIDE, CONSTRAINTS}
    return read_files(_shelved(1), folder, lambda path: path not in known, _rule)


def _rule(shelved: Shelved, file: TreeFile, text: str) -> Fragment | None:
    if text.strip() == _EMPTY.get(file.path):
        return None
    return as_fragment(shelved, file, text)


def _shelved(group: int) -> Shelved:
    return Shelved(
        layer=Layer.RULES,
        source="rules",
        unavailable=WarningCode.RULES_UNAVAILABLE,
        group=group,
    )
