"""Fragments of files of the `.creonow` tree: text as it is, JSON in its canonical spelling.

The front matter of a text is for the daemon, not for the model: of it, only a name is shown.
"""

from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any

from creonowd.context.fragment import Fragment, Layer, Omission, Place, Reason
from creonowd.context.notice import Caution
from creonowd.context.source import SourceResult
from creonowd.errors import WarningCode, same_wording
from creonowd.model import Model
from creonowd.storage import front_matter
from creonowd.text import as_text, canonical_json, count_line_ends, join_lines
from creonowd.workspace.creonow_tree import Folder, Problem, TreeFile

NAME_KEYS = ("name", "姓名", "名字", "名称")
TITLE_KEYS = (*NAME_KEYS, "title", "标题")

# From a file's path and text: fields of its fragment, or None if it has nothing to say.
# ValueError means that what the file says makes no sense.
FragmentFields = Callable[[str, str], dict[str, Any] | None]


class FileKind(Model):
    """The layer and source that files belong to, and their group within the layer."""

    layer: Layer
    source: str
    unavailable: WarningCode
    group: int = 0


def read_files(
    kind: FileKind, folder: Folder, selects: Callable[[str], bool], fields: FragmentFields
) -> SourceResult:
    """Make a fragment of every selected file; one that cannot be used is left out with a warning."""
    fragments: list[Fragment] = []
    left_out: list[Omission] = []
    for file in folder.files:
        if not selects(file.path):
            continue
        try:
            fragment = _fragment(kind, file, fields)
        except ValueError:
            left_out.append(_left_out(kind, file.path, Reason.INVALID_FORMAT))
            continue
        if fragment is not None:
            fragments.append(fragment)
    left_out += [
        _left_out(kind, problem.path, _reason(problem))
        for problem in folder.problems
        if selects(problem.path)
    ]
    return SourceResult(
        fragments=tuple(fragments),
        left_out=tuple(left_out),
        warnings=tuple(
            Caution(
                code=kind.unavailable,
                said=same_wording(item.source_ref),
                source_ref=item.source_ref,
            )
            for item in left_out
        ),
    )


def is_json(path: str) -> bool:
    """Return whether a file is to be read as JSON."""
    name = path.rpartition("/")[2]
    return name[1:].lower().endswith(".json")


def is_share(value: object) -> bool:
    """Return whether a value of JSON or YAML is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= 1


def _fragment(kind: FileKind, file: TreeFile, fields: FragmentFields) -> Fragment | None:
    text = as_text(file.data)
    if text is None:
        raise ValueError(file.path)
    whole = is_json(file.path)
    if whole:
        text = canonical_json(text)
    given = fields(file.path, text) if text.strip() else None
    if given is None:
        return None
    parts = front_matter.split("" if whole else text)
    return Fragment(
        layer=kind.layer,
        source=kind.source,
        source_ref=file.path,
        text=text if whole else parts.body,
        title=_title(file.path, parts),
        first_line=1 + count_line_ends(parts.front_matter),
        whole=whole,
        place=Place(kind.group, file.path, 0),
        **given,
    )


def _title(path: str, parts: front_matter.TextParts) -> str:
    """Return the name that front matter gives a text, unless path or first line show it already."""
    named = next((parts.values[key] for key in TITLE_KEYS if key in parts.values), None)
    title = join_lines(named).strip() if isinstance(named, str) else ""
    shown = (PurePosixPath(path).stem, parts.body.lstrip().partition("\n")[0])
    return "" if any(title in text for text in shown) else title


def _left_out(kind: FileKind, path: str, reason: Reason) -> Omission:
    return Omission(layer=kind.layer, source=kind.source, source_ref=path, reason=reason)


def _reason(problem: Problem) -> Reason:
    too_large = problem.error.details.get("reason") == "too_large"
    return Reason.TOO_LARGE if too_large else Reason.READ_ERROR
