"""The skills that can be run: built in, this user's, and a project's own.

A file is read again when it has changed, so that an edit counts at the next call.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import anyio
import structlog
from anyio import to_thread
from msgspec.structs import replace

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.skills.skill import MAX_BYTES, ParsedSkill, Skill, invalid_skill, parse
from creonowd.storage.front_matter import Fault
from creonowd.storage.safe_folder import LinkedFolder, problem_with_name
from creonowd.storage.stored_files import PRIVATE, SHARED, disk_errors
from creonowd.storage.unchanged_files import FileCache
from creonowd.workspace.creonow_tree import TREE, make_folder
from creonowd.workspace.projects import Project

FOLDER = "skills"
FILE = "SKILL.md"
BUILTIN = Path(os.path.realpath(__file__)).parent
MAX_SLUG = 64
KEPT_BYTES = 8 * 1024 * 1024
LEAST_WEIGHT = 4 * 1024
# Of one scope, the first by path; 10 000 stopped every client for two seconds.
MOST_SKILLS = 256
MOST_SKILL_BYTES = 4 * 1024 * 1024

_NOT_A_WORD = re.compile(r"[^\w]+")
_TAKEN = Wording("The id {} is taken by {}.", "id {} 已被 {} 占用。")
_HAS_PLACEHOLDER = Wording(
    "`content` has ***REDACTED*** where the skill has a secret; change the file itself, or leave "
    "the secret out.",
    "`content` 中有 ***REDACTED***，代替了技能里的秘密；请直接修改文件，或去掉该秘密。",
)
_BAD_SCOPE = Wording(
    "Write to `global`, or to `project` with a projectId.",
    "请写入 global，或带 projectId 写入 project。",
)
_BAD_SLUG = Wording(
    f"`slug` must be one plain name of at most {MAX_SLUG} characters.",
    f"`slug` 须为一个普通名称，不超过 {MAX_SLUG} 个字符。",
)

log = structlog.stdlib.get_logger(__name__)


class Scope(StrEnum):
    """Whose skill it is; a later scope wins over an earlier one where ids are equal."""

    BUILTIN = "builtin"
    """Comes with the package."""
    GLOBAL = "global"
    """Of this user, for all projects."""
    PROJECT = "project"
    """Of one project, in its `.creonow/skills`."""


class LibraryEntry(Model):
    """A skill where it was found; `path` is relative to the root of its scope."""

    id: str
    scope: Scope
    slug: str
    path: str
    content: str
    skill: Skill
    faults: tuple[Fault, ...] = ()

    @property
    def name(self) -> str:
        """The name for people."""
        return self.skill.name or self.slug

    @property
    def names(self) -> Wording:
        """The name in both languages; twice the same if the file has only one."""
        return _with_default(self.skill.names, self.name)

    @property
    def descriptions(self) -> Wording:
        """The description in both languages; twice the same if the file has only one."""
        return _with_default(self.skill.descriptions, self.skill.description)


def _with_default(texts: Wording, own: str) -> Wording:
    return Wording(texts.english or own, texts.chinese or own)


class SkillFolder(NamedTuple):
    """The folder that holds the skills of one scope."""

    scope: Scope
    root: Path
    path: str


class Library:
    """Finds and writes skills; an unchanged file is read once."""

    def __init__(self, user_data: Path, clock: Clock, redactor: Redactor | None = None) -> None:
        self._user_data = Path(os.path.realpath(user_data))
        self._redactor = redactor or Redactor()
        self._cache = FileCache(clock)
        self._parsed: Memo[bytes, ParsedSkill] = Memo(KEPT_BYTES, _weigh)
        self._lock = anyio.Lock()

    async def entries(self, project: Project | None = None) -> list[LibraryEntry]:
        """List every skill once, invalid ones too, built-in ones first."""
        return await to_thread.run_sync(self._effective, project)

    async def find(self, skill_id: str, project: Project | None = None) -> LibraryEntry | None:
        """Find a skill by its id, else by its slug in any scope; None if there is none.

        The id may be as it is listed: a secret in it is hidden there.
        """
        return await to_thread.run_sync(self.find_now, skill_id, project)

    def find_now(self, skill_id: str, project: Project | None = None) -> LibraryEntry | None:
        """Find a skill as `find` does; blocks its thread."""
        entries = self._effective(project)
        listed_id = self._redactor.redact_name if PLACEHOLDER in skill_id else str
        by_id = (entry for entry in entries if listed_id(entry.id) == skill_id)
        by_slug = (entry for entry in reversed(entries) if entry.slug == skill_id)
        return next(by_id, None) or next(by_slug, None)

    async def write(
        self, scope: Scope, slug: str | None, content: str, project: Project | None
    ) -> LibraryEntry:
        """Write a skill and return its entry; INVALID_ARGUMENT if it is not valid."""
        folder = self._folder(scope, project)
        if folder is None or scope is Scope.BUILTIN:
            raise _invalid_field("scope", _BAD_SCOPE)
        if PLACEHOLDER in content:
            # The client read it with the placeholder; storing it would lose the secret behind that.
            raise _invalid_field("content", _HAS_PLACEHOLDER)
        async with self._lock:
            entry = await to_thread.run_sync(self._write, folder, slug, content)
        log.info("skill_written", skillId=entry.id, scope=scope)
        return entry

    def _folder(self, scope: Scope, project: Project | None) -> SkillFolder | None:
        if scope is Scope.BUILTIN:
            return SkillFolder(scope, BUILTIN, "builtin")
        if scope is Scope.GLOBAL:
            return SkillFolder(scope, self._user_data, FOLDER)
        return None if project is None else SkillFolder(scope, project.root, f"{TREE}/{FOLDER}")

    @cached_property
    def _builtin(self) -> list[LibraryEntry]:
        """The skills of the package, which do not change while it runs."""
        return self._entries_in(SkillFolder(Scope.BUILTIN, BUILTIN, "builtin"))

    def _entries_in(self, folder: SkillFolder) -> list[LibraryEntry]:
        place = LinkedFolder(folder.root, folder.path)
        try:
            found = place.walk(
                lambda name: name.endswith(".md"), most=MOST_SKILLS, most_bytes=MOST_SKILL_BYTES
            ).files
        except DaemonError:
            return []
        entries = (
            self._entry(folder, path, slug, status)
            for path, status in found
            if (slug := slug_of(path.removeprefix(f"{folder.path}/")))
        )
        return _with_unique_ids(entries)

    def _effective(self, project: Project | None) -> list[LibraryEntry]:
        own = (self._folder(scope, project) for scope in (Scope.GLOBAL, Scope.PROJECT))
        entries = [*self._builtin, *(e for f in own if f for e in self._entries_in(f))]
        winners = {entry.id: entry.path for entry in entries}
        return [entry for entry in entries if winners[entry.id] == entry.path]

    def _write(self, folder: SkillFolder, slug: str | None, content: str) -> LibraryEntry:
        data = content.encode("utf-8", "replace")
        skill, faults = parse(data)
        if faults:
            raise invalid_skill(faults)
        chosen = _plain_slug(_slug_for(skill) if slug is None else slug)
        entries = self._entries_in(folder)
        same = next((entry for entry in entries if entry.slug.lower() == chosen), None)
        own_id = skill.id or f"{folder.scope}:{chosen}"
        if other := next((e for e in entries if e.id == own_id and e is not same), None):
            raise _invalid_field("content", _TAKEN.format(own_id, other.path))
        path = f"{folder.path}/{chosen}/{FILE}" if same is None else same.path
        _write_file(
            folder.root, path, data, mode=PRIVATE if folder.scope is Scope.GLOBAL else SHARED
        )
        # Not read back: the folder may be gone or a link by now.
        return LibraryEntry(
            id=own_id,
            scope=folder.scope,
            slug=chosen if same is None else same.slug,
            path=path,
            content=data.decode("utf-8", "replace"),
            skill=skill,
            faults=(),
        )

    def _entry(
        self, folder: SkillFolder, path: str, slug: str, status: os.stat_result
    ) -> LibraryEntry:
        default_id = f"{folder.scope}:{slug}"
        try:
            opened = self._cache.fetch(
                LinkedFolder(folder.root, folder.path), path, limit=MAX_BYTES, status=status
            )
        except DaemonError as error:
            fault = Fault(key="", wording=error.wording)
            return LibraryEntry(
                id=default_id,
                scope=folder.scope,
                slug=slug,
                path=path,
                content="",
                skill=Skill(),
                faults=(fault,),
            )
        skill, faults = self._parsed.get(opened.data, lambda: parse(opened.data))
        return LibraryEntry(
            id=skill.id or default_id,
            scope=folder.scope,
            slug=slug,
            path=path,
            content=opened.data.decode("utf-8", "replace"),
            skill=skill,
            faults=faults,
        )


def slug_of(path: str) -> str:
    """Return the slug of the skill at a path below its scope's folder; empty if it is none.

    A skill is a folder with a SKILL.md, at any depth, or a single Markdown file at the top.
    Other files of a skill's folder are ignored.
    """
    folder, _, name = path.rpartition("/")
    if name == FILE:
        return folder
    return "" if folder else name.removesuffix(".md")


def _weigh(data: bytes, _: object) -> int:
    return 2 * len(data) + LEAST_WEIGHT


def _with_unique_ids(entries: Iterable[LibraryEntry]) -> list[LibraryEntry]:
    """Leave an id to the first skill that has it; another one is listed with a fault."""
    taken: dict[str, str] = {}
    listed: list[LibraryEntry] = []
    for entry in entries:
        if entry.id in taken:
            fault = Fault(key="id", wording=_TAKEN.format(entry.id, taken[entry.id]))
            own = f"{entry.scope}:{entry.slug}#{entry.path}"
            listed.append(replace(entry, id=own, faults=(*entry.faults, fault)))
        else:
            taken[entry.id] = entry.path
            listed.append(entry)
    return listed


def _write_file(root: Path, path: str, data: bytes, *, mode: int) -> None:
    """Make the missing folders of a path and write the file atomically."""
    folders = path.split("/")[:-1]
    for depth in range(len(folders)):
        make_folder(root, "/".join(folders[: depth + 1]))
    with disk_errors(path):
        LinkedFolder(root, path.partition("/")[0]).replace(path, data, mode=mode)


def _slug_for(skill: Skill) -> str:
    """Make a slug of a skill's id or name."""
    return _NOT_A_WORD.sub("-", skill.id.rpartition(":")[2] or skill.name).strip("-")


def _plain_slug(slug: str) -> str:
    """Return a slug in the one form that is the same on every disk, or refuse it."""
    plain = unicodedata.normalize("NFC", slug).lower()
    if len(plain) > MAX_SLUG or plain.startswith(".") or problem_with_name(plain):
        raise _invalid_field("slug", _BAD_SLUG)
    return plain


def _invalid_field(field: str, wording: Wording) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, wording, field=field)
