"""Files of the `.creonow` tree made into fragments: text as it is, JSON in its one spelling.

Pure: what lies in the folder comes in, fragments and what had to be left out go out. Knows no
disk and no layer's rules.
"""

from collections.abc import Callable
from typing import Any

from creonowd.context.fragment import Fragment, Layer, LeftOut, Place, Reason
from creonowd.context.plan import Fetched
from creonowd.errors import WarningCode
from creonowd.model import Model
from creonowd.text import as_text, canonical_json
from creonowd.workspace.creonow_tree import Folder, Problem, TreeFile

Make = Callable[["FileKind", TreeFile, str], Fragment | LeftOut | None]


class FileKind(Model):
    """Which layer and source a file's text belongs to, and where in the layer it stands."""

    layer: Layer
    source: str
    unavailable: WarningCode
    group: int = 0


def read_files(
    shelved: FileKind, folder: Folder, wanted: Callable[[str], bool], make: Make
) -> Fetched:
    """Make a fragment of every wanted file; a file that cannot be used is left out with a warning."""
    made = [_read(shelved, file, make) for file in folder.files if wanted(file.path)]
    failed = [_failed(shelved, problem) for problem in folder.problems if wanted(problem.path)]
    left_out = [*(item for item in made if isinstance(item, LeftOut)), *failed]
    return Fetched(
        fragments=tuple(item for item in made if isinstance(item, Fragment)),
        left_out=tuple(left_out),
        warnings=tuple(f"{shelved.unavailable}: {item.source_ref}" for item in left_out),
    )


def as_fragment(shelved: FileKind, file: TreeFile, text: str, **ranks: Any) -> Fragment:
    """Make a fragment of a file's text."""
    return Fragment(
        layer=shelved.layer,
        source=shelved.source,
        source_ref=file.path,
        text=text,
        whole=is_json(file.path),
        place=Place(shelved.group, file.path, 0),
        **ranks,
    )


def leave_out(shelved: FileKind, path: str, reason: Reason) -> LeftOut:
    """Leave a file out."""
    return LeftOut(layer=shelved.layer, source=shelved.source, source_ref=path, reason=reason)


def is_json(path: str) -> bool:
    """Tell whether a file is to be read as JSON."""
    name = path.rpartition("/")[2]
    return name[1:].lower().endswith(".json")


def _read(shelved: FileKind, file: TreeFile, make: Make) -> Fragment | LeftOut | None:
    text = as_text(file.data)
    if text is None:
        return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    if is_json(file.path):
        try:
            text = canonical_json(text)
        except ValueError:
            return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    return make(shelved, file, text) if text.strip() else None


def _failed(shelved: FileKind, problem: Problem) -> LeftOut:
    too_large = problem.error.details.get("reason") == "too_large"
    reason = Reason.TOO_LARGE if too_large else Reason.READ_ERROR
    return leave_out(shelved, problem.path, reason)
