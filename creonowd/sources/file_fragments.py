"""Fragments of files of the `.creonow` tree: text as it is, JSON in its canonical spelling.

The front matter of a text is for the daemon, not for the model: of it, only a name is shown.
"""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

from creonowd.context.fragment import Caution, Fragment, Layer, Omission, Place, Reason
from creonowd.context.language import SAMPLE
from creonowd.context.source import SourceResult
from creonowd.context.story import PROGRESSION_KEYS, bounds, declared_stages, split_stages
from creonowd.errors import WarningCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import front_matter
from creonowd.text import as_text, canonical_json, count_line_ends, encode_canonical, join_lines
from creonowd.workspace.creonow_tree import (
    DEFAULTS,
    TREE,
    CreonowFolder,
    Folder,
    Problem,
    TreeFile,
)

KEPT_BYTES = 32_000_000
NAME_KEYS = ("name", "姓名", "名字", "名称")
TITLE_KEYS = (*NAME_KEYS, "title", "标题")

# From a file's path and text: fields of its fragment, or None if it has nothing to say.
# FileFaultError means that what the file says makes no sense.
FragmentFields = Callable[[str, str], dict[str, Any] | None]


class FileFaultError(ValueError):
    """What makes no sense in a file, and on which line; `near` is a text of that line."""

    def __init__(self, problem: Wording, line: int | None = None, near: str = "") -> None:
        super().__init__(problem.english)
        self.problem, self.line, self.near = problem, line, near

    def line_in(self, text: str) -> int | None:
        """Return the line, if it is known."""
        at = text.find(self.near) if self.near else -1
        return self.line if at < 0 else 1 + text.count("\n", 0, at)


NOT_TEXT = Wording("it is no text in UTF-8; save it as UTF-8", "不是 UTF-8 文本，请另存为 UTF-8")
NO_PLACE = Wording(
    "`from`, `until` or `progressions` names no place of the story",
    "from、until 或 progressions 没有指出故事中的位置",
)
NOT_JSON = Wording("it is no valid JSON", "不是合法的 JSON")


FRONT_MATTER = Wording("its front matter has a fault: {}", "文件头（front matter）有误：{}")
_TIMED = re.compile(
    r"\ufeff?---[^\S\n]*\n(?:(?!---)[^\n]*\S[^\n]*\n)*?(?:from|until|自|至|progressions|进展)\s*[:：]"
)


class FileKind(Model):
    """The layer and source that files belong to, and their group within the layer.

    Files of a `timed` kind may say where in the story they hold, and how they progress.
    """

    layer: Layer
    source: str
    unavailable: WarningCode
    group: int = 0
    timed: bool = False


def read_files(
    kind: FileKind, folder: Folder, selects: Callable[[str], bool], fields: FragmentFields
) -> SourceResult:
    """Make a fragment of every selected file; one that cannot be used is left out with a warning."""
    fragments: list[Fragment] = []
    left_out: list[Omission] = []
    warnings: list[Caution] = []
    for file in folder.files:
        if not selects(file.path):
            continue
        try:
            fragment = _fragment(kind, file, fields)
        except FileFaultError as fault:
            left_out.append(_left_out(kind, file.path, Reason.INVALID_FORMAT))
            line = fault.line_in(as_text(file.data) or "")
            warnings.append(file_caution(kind.unavailable, file.path, fault.problem, line))
            continue
        if fragment is not None:
            fragments.append(fragment)
    for problem in folder.problems:
        if selects(problem.path):
            left_out.append(_left_out(kind, problem.path, _reason(problem)))
            why = problem.error.wording
            warnings.append(file_caution(kind.unavailable, problem.path, why))
    return SourceResult(
        fragments=tuple(fragments), left_out=tuple(left_out), warnings=tuple(warnings)
    )


def own_texts(read: Callable[[CreonowFolder], Folder]) -> list[str]:
    """Return how the texts begin that the author wrote into `.creonow`; blocks its thread.

    JSON is left out: most of its words are keys. So are default files.
    """
    folders = map(read, CreonowFolder)
    return [text for one in folders for text in _beginnings.get(one, partial(_beginnings_in, one))]


# A folder in which nothing changed is the very same value: every crowd of requests asks again.
_beginnings: Memo[Folder, tuple[str, ...]] = Memo(KEPT_BYTES, lambda folder, _texts: folder.weight)


def _beginnings_in(folder: Folder) -> tuple[str, ...]:
    return tuple(
        front_matter.split(as_text(file.data) or "").body[:SAMPLE]
        for file in folder.files
        if not is_json_path(file.path)
        and file.data != DEFAULTS.get(file.path.removeprefix(f"{TREE}/"))
    )


def file_caution(
    code: WarningCode, path: str, problem: Wording, line: int | None = None
) -> Caution:
    """Warn of a file that is left out, and say why and where."""
    english, chinese = ("", "") if line is None else (f", line {line}", f" 第 {line} 行")
    return Caution(
        code=code,
        wording=Wording(
            f"{path}{english}: {problem.english}", f"{path}{chinese}：{problem.chinese}"
        ),
        source_ref=path,
        details=() if line is None else (("line", line),),
    )


def is_json_path(path: str) -> bool:
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
        raise FileFaultError(NOT_TEXT)
    whole = is_json_path(file.path)
    if whole:
        try:
            text = canonical_json(text)
        except ValueError as error:
            raise FileFaultError(NOT_JSON, getattr(error, "lineno", None)) from None
    given = fields(file.path, text) if text.strip() else None
    if given is None:
        return None
    parts = front_matter.split("" if whole else text)
    body = text if whole else parts.body
    if kind.timed:
        body, timing = _time_fields(text, parts, whole=whole)
        given |= timing
    return Fragment(
        layer=kind.layer,
        source=kind.source,
        source_ref=file.path,
        text=body,
        title=_title(file.path, parts),
        first_line=1 + count_line_ends(parts.front_matter),
        whole=whole,
        place=Place(kind.group, file.path, 0),
        **given,
    )


def _time_fields(
    text: str, parts: front_matter.TextParts, *, whole: bool
) -> tuple[str, dict[str, Any]]:
    """Return a text without its progressions, and the fields that say when it holds.

    Between two lines `---` may stand prose; but who means a place there and errs would give away
    the end of the story.
    """
    header = None if whole else front_matter.read(text)
    if header is not None and header.faults and _TIMED.match(text):
        first = header.faults[0]
        raise FileFaultError(FRONT_MATTER.format(first.wording), first.line)
    values = _object(text) if whole else parts.values
    try:
        span, stages = bounds(values), declared_stages(values, as_json=whole)
    except ValueError:
        raise FileFaultError(NO_PLACE) from None
    if whole:
        rest = {key: value for key, value in values.items() if key not in PROGRESSION_KEYS}
        body = encode_canonical(rest) if stages else text
    else:
        body, sections = split_stages(parts.body)
        stages = (*stages, *sections)
    return body, span._asdict() | {"stages": stages}


def _object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


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
