"""The documents that a project has on disk: text files that are not hidden, linked or ignored.

Reads names and ignore files, never a document. Blocks its thread.
"""

import contextlib
import heapq
import os
import re
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import islice, product
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.context.fragment import Caution
from creonowd.errors import DaemonError, WarningCode, Wording
from creonowd.memo import Memo
from creonowd.storage.safe_folder import (
    OUT_OF_DESCRIPTORS,
    LinkedFolder,
    entry_status,
    mark_of,
    problem_with_name,
)
from creonowd.threads import until_stopped
from creonowd.workspace.creonow_tree import is_document, is_hidden_name, is_relevant_folder

LARGEST = 16 * 1024 * 1024
IGNORE_FILES = (".gitignore", ".ignore")

# A project has fewer; a folder that has more, such as a whole disk, is not read to its end.
MAX_DOCUMENTS = 20_000
MAX_FOLDERS = 20_000
MAX_ENTRIES = 200_000

# Of the ignore files of one project, together. 64 KiB of wildcards take up to 10 MB.
_MOST_IGNORE_BYTES = 64 * 1024
_ENTRIES_PER_LOOK = 256
# Patterns matched at once, by an automaton that takes no more memory than this.
_GROUP = 100
_AUTOMATON_BYTES = 4_000_000
_SPECIAL = re.compile(r"[*?\[\]\\]")

_LEFT_OUT = Wording(
    "The project's folder is too big; only the {} documents nearest to its top are used.",
    "项目文件夹过大，仅使用最靠近顶层的 {} 篇文档。",
)
_CUT = Wording(
    "Not every line of {} counts: a project's ignore files may have {} KiB together.",
    "{} 并非每一行都生效：一个项目的忽略文件合计最多 {} KiB。",
)
_WILDCARDS = {"**/": "(?:.*/)?", "/**": "/.*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_GLOB_PARTS = re.compile(r"\*\*/|/\*\*|\*\*|\*|\?|\[!?[^\]]+\]|\\.|.")


class FileMark(NamedTuple):
    """What tells one state of a file from another; a whole status takes three times the memory."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int


class Catalogue(NamedTuple):
    """The documents of a project by path, and whether all are there: a huge folder is cut short.

    `cut_ignore_files` are those of which only the beginning counts.
    """

    documents: dict[str, FileMark]
    is_complete: bool
    cut_ignore_files: tuple[str, ...] = ()

    def cautions(self) -> tuple[Caution, ...]:
        """Warn of what was left out."""
        found: list[Caution] = []
        if not self.is_complete:
            wording = _LEFT_OUT.format(count := len(self.documents))
            details = (("documents", count),)
            found.append(
                Caution(code=WarningCode.DOCUMENTS_LEFT_OUT, wording=wording, details=details)
            )
        if cut := self.cut_ignore_files:
            found.append(
                Caution(
                    code=WarningCode.IGNORE_FILE_CUT,
                    wording=_CUT.format(cut[0], _MOST_IGNORE_BYTES // 1024),
                    source_ref=cut[0],
                    details=(("files", len(cut)), ("limitBytes", _MOST_IGNORE_BYTES)),
                )
            )
        return tuple(found)


def documents_in(root: Path, is_stopped: Callable[[], bool] = lambda: False) -> dict[str, FileMark]:
    """Return a project's documents by project-relative path; what vanishes meanwhile is skipped."""
    return find_documents(root, is_stopped).documents


def find_documents(root: Path, is_stopped: Callable[[], bool] = lambda: False) -> Catalogue:
    """Return a project's documents, those near its root first, within bounds.

    The search ends early if `is_stopped`, and with the request that its thread works for.
    """
    walk = _DocumentWalk(root, is_stopped)
    documents = dict(islice(walk.documents(), MAX_DOCUMENTS))
    is_complete = walk.is_finished and not walk.is_bounded
    return Catalogue(documents, is_complete, tuple(walk.cut_ignore_files))


def is_excluded(root: Path, path: str) -> bool:
    """Return whether the path of an open document is hidden, foreign or ignored."""
    names = path.split("/")
    if any(map(is_hidden_name, names)):
        return True
    rules, files = IgnoreRules(), _IgnoreFiles(root)
    for depth, name in enumerate(names):
        if problem_with_name(name):
            return False
        rules = files.add(rules, "/".join(names[:depth]))
        is_folder = depth < len(names) - 1
        if rules.ignore("/".join(names[: depth + 1]), is_folder=is_folder):
            return True
    return False


class IgnoreLine(NamedTuple):
    """A line of an ignore file, counted from 1."""

    file: str
    line: int


def hiding_line(root: Path, path: str) -> IgnoreLine | None:
    """Return the line that hides a document, be it by a folder above it; None if none does."""
    names, files, reader = path.split("/"), list[tuple[str, _IgnoreFile]](), _IgnoreFiles(root)
    for depth in range(len(names)):
        folder, tested = "/".join(names[:depth]), "/".join(names[: depth + 1])
        files += [(folder, file) for file in reader.read(folder)]
        for above, file in reversed(files):
            below = tested.removeprefix(f"{above}/") if above else tested
            is_folder = depth < len(names) - 1
            decision = _pattern_set(file.text).decide(below, is_folder=is_folder)
            if decision:
                return IgnoreLine(file.path, _last_match(file.text, below, is_folder=is_folder))
            if decision is not None:
                break
    return None


def _last_match(text: str, path: str, *, is_folder: bool) -> int:
    lines = text.splitlines()

    def is_last(number: int) -> bool:
        rest = PatternSet("\n".join(lines[number:]))
        return rest.decide(path, is_folder=is_folder) is None

    return bisect_left(range(len(lines) + 1), x=True, key=is_last)


class _DocumentWalk:
    """A walk through a project's folders, the nearest first, that goes no further than it may."""

    def __init__(self, root: Path, is_stopped: Callable[[], bool]) -> None:
        self._is_stopped = is_stopped
        self._files = LinkedFolder(root)
        self._ignore_files = _IgnoreFiles(root)
        self.entries = 0
        self.is_finished = self.is_bounded = False

    @property
    def cut_ignore_files(self) -> list[str]:
        """The ignore files of which not every line counts."""
        return self._ignore_files.cut

    def documents(self) -> Iterator[tuple[str, FileMark]]:
        """Yield each document with its mark."""
        folders = deque([("", IgnoreRules())])
        while folders:
            folder, above = folders.popleft()
            rules = self._ignore_files.add(above, folder)
            found = self._scan(folder, rules)
            if self.entries > MAX_ENTRIES or self._is_stopped():
                return
            for path, mark in until_stopped(found):
                if self._is_stopped():
                    return
                if mark is not None:
                    yield path, mark
                elif len(folders) < MAX_FOLDERS:
                    folders.append((path, rules))
                else:
                    self.is_bounded = True
        self.is_finished = True

    def _scan(self, folder: str, rules: "IgnoreRules") -> list[tuple[str, FileMark | None]]:
        """Return the folders and the documents in a folder, sorted; a folder has no mark.

        Of more than can be used the first are kept, so that they take no more memory than those.
        """
        with _skip_unreadable(), self._files.scan(folder) as entries:
            relevant = self._relevant(folder, rules, islice(entries, MAX_ENTRIES))
            kept = heapq.nsmallest(MAX_DOCUMENTS + 1, relevant, key=itemgetter(0))
            if len(kept) > MAX_DOCUMENTS:
                self.is_bounded = True
                kept.pop()
            return list(_with_marks(kept))
        return []

    def _relevant(
        self, folder: str, rules: "IgnoreRules", entries: "Iterable[os.DirEntry[str]]"
    ) -> "Iterator[tuple[str, os.DirEntry[str]]]":
        """Yield the paths of folders and texts that are not ignored."""
        for number, entry in enumerate(entries):
            if number % _ENTRIES_PER_LOOK == 0 and self._is_stopped():
                return
            if entry.name.startswith(".") or entry.is_symlink():
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            with contextlib.suppress(OSError):
                is_folder = entry.is_dir(follow_symlinks=False)
                if is_folder:
                    is_relevant = is_relevant_folder(folder, entry.name)
                else:
                    is_relevant = is_document(path) and entry.is_file(follow_symlinks=False)
                if is_relevant:
                    self.entries += 1
                    if not rules.ignore(path, is_folder=is_folder):
                        yield path, entry


def _with_marks(
    entries: "list[tuple[str, os.DirEntry[str]]]",
) -> Iterator[tuple[str, FileMark | None]]:
    """Add what the disk says of each document; what has gone meanwhile is skipped.

    Empties the list: an entry that was asked keeps its whole status, of 20 000 files 14 MB.
    """
    entries.reverse()
    while entries:
        path, entry = entries.pop()
        with contextlib.suppress(OSError):
            is_folder = entry.is_dir(follow_symlinks=False)
            yield path, None if is_folder else FileMark(*mark_of(entry_status(entry)))


class _IgnoreFile(NamedTuple):
    path: str
    text: str


class _IgnoreFiles:
    """Reads the ignore files of a project, until they have as many bytes as may count.

    The same text in many folders counts once.
    """

    def __init__(self, root: Path) -> None:
        self._files = LinkedFolder(root)
        self._left = _MOST_IGNORE_BYTES
        self._sets: dict[str, PatternSet] = {}
        self.cut: list[str] = []

    def add(self, rules: "IgnoreRules", folder: str) -> "IgnoreRules":
        """Return the rules with a folder's own ignore files added."""
        for file in self.read(folder):
            if file.text not in self._sets:
                self._sets[file.text] = _pattern_set(file.text)
            rules = rules.inside(folder, self._sets[file.text])
        return rules

    def read(self, folder: str) -> list[_IgnoreFile]:
        """Read a folder's own ignore files, as far as they count."""
        found: list[_IgnoreFile] = []
        for name in IGNORE_FILES:
            path = f"{folder}/{name}" if folder else name
            with _skip_unreadable(), self._files.open_file(path) as file:
                data = file.read_at(0, _MOST_IGNORE_BYTES + 1)
                found.append(_IgnoreFile(path, self._count(path, data)))
        return found

    def _count(self, path: str, data: bytes) -> str:
        text = data.decode("utf-8-sig", "replace")
        if text in self._sets:
            return text
        if len(data) > self._left:
            # Half a pattern may hide everything: what is cut is cut at a line.
            data = data[: self._left].rpartition(b"\n")[0]
            text = data.decode("utf-8-sig", "replace")
            self.cut.append(path)
        self._left -= len(data)
        return text


@contextlib.contextmanager
def _skip_unreadable() -> Generator[None]:
    """Pass over what is gone or may not be read.

    OSError if no descriptor is left: then nothing could be read, and what is there is unknown.
    """
    try:
        yield
    except DaemonError:
        return
    except OSError as error:
        if error.errno in OUT_OF_DESCRIPTORS:
            raise


class IgnorePattern(NamedTuple):
    """One line of an ignore file, for paths relative to the folder it lies in."""

    expression: str
    folders_only: bool
    is_exception: bool
    by_name: bool


class IgnoreRules(NamedTuple):
    """The ignore files of a folder and those above it: where each lies, and its patterns."""

    levels: "tuple[tuple[str, PatternSet], ...]" = ()

    def inside(self, folder: str, patterns: "PatternSet") -> "IgnoreRules":
        """Return the rules with an ignore file added that lies in `folder`."""
        return IgnoreRules((*self.levels, (folder, patterns)))

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a project-relative path is ignored; the last pattern to match decides."""
        for folder, patterns in reversed(self.levels):
            below = path.removeprefix(f"{folder}/") if folder else path
            if (decision := patterns.decide(below, is_folder=is_folder)) is not None:
                return decision
        return False


class PatternSet:
    """The patterns of one ignore file, so kept that thousands cost little more than one.

    Plain names, plain paths and `*.ending` are looked up. The others are matched many at a time,
    the last ones first: 8000 of them over 2000 names take 0.1 to 0.6 s of the processor, one by one
    38 s.
    """

    def __init__(self, text: str) -> None:
        self._signs: list[bool] = []
        self._known: dict[tuple[str, str], int] = {}
        self._known_folders: dict[tuple[str, str], int] = {}
        others: list[tuple[int, IgnorePattern]] = []
        for line in text.splitlines():
            stripped = line.rstrip()
            if not stripped or stripped.startswith("#"):
                continue
            glob = stripped.removeprefix("!").removeprefix("\\")
            number, folders_only = len(self._signs), glob.endswith("/")
            self._signs.append(not stripped.startswith("!"))
            if (key := _literal(glob.rstrip("/"))) is not None:
                (self._known_folders if folders_only else self._known)[key] = number
            else:
                others.append((number, _pattern(glob, stripped)))
        self._groups = [
            _PatternGroup(others[start : start + _GROUP]) for start in range(0, len(others), _GROUP)
        ]

    def decide(self, path: str, *, is_folder: bool) -> bool | None:
        """Return whether a path below the file's folder is ignored; None if no pattern matches."""
        name = path.rpartition("/")[2]
        keys = (("name", name), ("path", path), ("ending", name.rpartition(".")[2]))
        tables = (self._known, self._known_folders) if is_folder else (self._known,)
        if "." not in name:
            keys = keys[:2]
        last = max((table.get(key, -1) for table in tables for key in keys), default=-1)
        for group in reversed(self._groups):
            if group.last < last:
                break
            if (found := group.last_match(path, name, is_folder=is_folder)) is not None:
                last = max(last, found)
                break
        return None if last < 0 else self._signs[last]


class _PatternGroup:
    """A few patterns with wildcards; whether any of them matches is one question."""

    def __init__(self, patterns: list[tuple[int, IgnorePattern]]) -> None:
        self._patterns = patterns
        self._matchers: list[Callable[[str], object] | None] | None = None
        self.last = patterns[-1][0]
        compiled: dict[tuple[str, ...], Callable[[str], object]] = {}
        self._any: dict[tuple[bool, bool], Callable[[str], object]] = {}
        for by_name, is_folder in product((True, False), repeat=2):
            every = tuple(
                pattern.expression
                for _, pattern in patterns
                if pattern.by_name is by_name and (is_folder or not pattern.folders_only)
            )
            matcher = compiled.get(every) or _any_of(every)
            compiled[every] = self._any[by_name, is_folder] = matcher

    def last_match(self, path: str, name: str, *, is_folder: bool) -> int | None:
        """Return the number of the last pattern that matches."""
        questions = ((True, name), (False, path))
        if not any(self._any[by_name, is_folder](text) for by_name, text in questions):
            return None
        if self._matchers is None:
            self._matchers = [_compile(pattern.expression) for _, pattern in self._patterns]
        pairs = zip(reversed(self._patterns), reversed(self._matchers), strict=True)
        for (number, pattern), matches in pairs:
            text = name if pattern.by_name else path
            if (is_folder or not pattern.folders_only) and matches and matches(text):
                return number
        return None


# A file of more than 16 KiB, such as nobody writes by hand, is compiled for each walk: 0.05 s.
_pattern_sets = Memo[str, PatternSet](32 * 1024, lambda text, _set: 1 + len(text))


def _pattern_set(text: str) -> PatternSet:
    return _pattern_sets.get(text, lambda: PatternSet(text))


def _literal(glob: str) -> tuple[str, str] | None:
    """Return what a pattern can be looked up by; None if it has to be matched."""
    if glob.startswith("*.") and not _SPECIAL.search(glob[2:]) and not {".", "/"} & set(glob[2:]):
        return "ending", glob[2:]
    if not glob or _SPECIAL.search(glob):
        return None
    return ("path", glob.removeprefix("/")) if "/" in glob else ("name", glob)


def _pattern(glob: str, line: str) -> IgnorePattern:
    plain = glob.rstrip("/")
    return IgnorePattern(
        _expression(plain), glob.endswith("/"), line.startswith("!"), by_name="/" not in plain
    )


def _any_of(every: Sequence[str]) -> Callable[[str], object]:
    if not every:
        return lambda _text: None
    if (whole := _compile("|".join(f"(?:{one})" for one in every))) is not None:
        return whole
    single = [found for one in every if (found := _compile(one)) is not None]
    return lambda text: any(matches(text) for matches in single)


def _compile(expression: str) -> Callable[[str], object] | None:
    import re2

    engine: Any = re2
    options: Any = engine.Options()
    options.log_errors = False
    options.max_mem = _AUTOMATON_BYTES
    try:
        return engine.compile(expression, options).fullmatch
    except engine.error:
        return None
    finally:
        engine.purge()  # it would keep the last 128 patterns for good


def _expression(glob: str) -> str:
    return "".join(map(_part_expression, _GLOB_PARTS.findall(glob.removeprefix("/"))))


def _part_expression(part: str) -> str:
    if part in _WILDCARDS:
        return _WILDCARDS[part]
    if part.startswith("[") and len(part) > 1:
        return part.replace("[!", "[^").replace("\\", "\\\\")
    return re.escape(part[-1])
