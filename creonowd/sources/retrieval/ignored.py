"""Which files of a project are none of its documents: what `.gitignore` and `.ignore` name.

Understands the patterns that writers use: names, folders, `*`, `?`, `[…]`, `**` and `!`. A line
that makes no sense names nothing, and none can take longer than its length and the name's.
Knows strings only.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

FILES = (".gitignore", ".ignore")

_WILD = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_PARTS = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?|\[!?[^\]]+\]|\\.|.")


class Pattern(NamedTuple):
    """One line of an ignore file, for paths relative to the folder it lies in."""

    fits: Callable[[str], object]
    folders_only: bool
    keeps: bool


class Rules(NamedTuple):
    """The ignore files that hold for a folder: where each lies, and its patterns, outermost first."""

    levels: tuple[tuple[str, tuple[Pattern, ...]], ...] = ()

    def inside(self, folder: str, text: str) -> "Rules":
        """Add the rules of an ignore file that lies in `folder`."""
        return Rules((*self.levels, (folder, _patterns(text))))

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Tell whether a project-relative path is left out; the last pattern that fits decides."""
        ignored = False
        for folder, patterns in self.levels:
            below = path.removeprefix(f"{folder}/") if folder else path
            for pattern in patterns:
                if (is_folder or not pattern.folders_only) and pattern.fits(below):
                    ignored = not pattern.keeps
        return ignored


@lru_cache(maxsize=256)
def _patterns(text: str) -> tuple[Pattern, ...]:
    return tuple(_parsed(text.splitlines()))


def _parsed(lines: Iterable[str]) -> Iterable[Pattern]:
    for line in lines:
        said = line.rstrip()
        if not said or said.startswith("#"):
            continue
        keeps = said.startswith("!")
        glob = said.removeprefix("!").removeprefix("\\")
        folders_only = glob.endswith("/")
        fits = _compiled(_expression(glob.rstrip("/")))
        if fits is not None:
            yield Pattern(fits, folders_only, keeps)


def _compiled(expression: str) -> Callable[[str], object] | None:
    import re2

    engine: Any = re2
    options: Any = engine.Options()
    options.log_errors = False
    try:
        return engine.compile(expression, options).fullmatch
    except engine.error:
        return None


def _expression(glob: str) -> str:
    anchored = "/" in glob
    spelled = "".join(map(_spelled, _PARTS.findall(glob.removeprefix("/"))))
    return spelled if anchored else f"(?:.*/)?{spelled}"


def _spelled(part: str) -> str:
    if part in _WILD:
        return _WILD[part]
    if part.startswith("[") and len(part) > 1:
        return part.replace("[!", "[^").replace("\\", "\\\\")
    return re.escape(part[-1])
