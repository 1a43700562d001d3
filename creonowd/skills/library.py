"""Every skill that can be run: built in, this user's, and a project's own.

Nothing is remembered but what the disk says has not changed, so an edit counts at the next call.
Knows folders and precedence; what a skill says is read elsewhere.
"""

import os
import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import anyio
import structlog
from anyio import to_thread
from msgspec.structs import replace

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.skills.skill import MAX_BYTES, Skill, parse, refuse
from creonowd.storage import atomic
from creonowd.storage.atomic import PRIVATE, SHARED
from creonowd.storage.file_cache import FileCache
from creonowd.storage.front_matter import Fault
from creonowd.storage.relative_paths import TREE, problem_with_name
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.workspace.creonow_tree import make_folder
from creonowd.workspace.projects import Project

MAX_SLUG = 64

_NOT_A_WORD = re.compile(r"[^\w]+")


def put(root: Path, path: str, data: bytes, *, mode: int) -> None:
    """Make the folders of a path that are missing and write the file, all at once."""
    folders = path.split("/")[:-1]
    for depth in range(len(folders)):
        make_folder(root, "/".join(folders[: depth + 1]))
    atomic.replace(root / path, data, mode=mode)


def slug_for(skill: Skill) -> str:
    """Make a slug of what a skill calls itself."""
    return _NOT_A_WORD.sub("-", skill.id.rpartition(":")[2] or skill.name).strip("-")


def plain_slug(slug: str) -> str:
    """Spell a slug in one way on every disk, or refuse it."""
    plain = unicodedata.normalize("NFC", slug).lower()
    if len(plain) > MAX_SLUG or plain.startswith(".") or problem_with_name(plain):
        raise invalid_skill(
            "slug", f"`slug` must be one plain name of at most {MAX_SLUG} characters."
        )
    return plain


def invalid_skill(field: str, message: str) -> DaemonError:
    """Say that a field of the request cannot be used."""
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field=field)


FILE = "SKILL.md"
BUILTIN = Path(__file__).parent

log = structlog.stdlib.get_logger(__name__)


class Scope(StrEnum):
    """Whose skill it is; a later scope wins over an earlier one where ids are equal."""

    BUILTIN = "builtin"
    GLOBAL = "global"
    PROJECT = "project"


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
        """What people call it."""
        return self.skill.name or self.slug


class SkillFolder(NamedTuple):
    """The folder that holds the skills of one scope."""

    scope: Scope
    root: Path
    folder: str


class Library:
    """Finds and writes skills; a file that stays the same is read and understood once."""

    def __init__(self, user_data: Path, clock: Clock) -> None:
        self._user_data = user_data
        self._cache = FileCache(clock)
        self._writing = anyio.Lock()

    async def listed(self, project: Project | None = None) -> list[LibraryEntry]:
        """List every skill once, invalid ones too, built-in ones first."""
        return await to_thread.run_sync(self._effective, project)

    async def find(self, skill_id: str, project: Project | None = None) -> LibraryEntry | None:
        """Find a skill by its id, else by a slug that needs no scope; None if nobody has it."""
        entries = await self.listed(project)
        by_id = (entry for entry in entries if entry.id == skill_id)
        by_slug = (entry for entry in reversed(entries) if entry.slug == skill_id)
        return next(by_id, None) or next(by_slug, None)

    async def write(
        self, scope: Scope, slug: str | None, content: str, project: Project | None
    ) -> LibraryEntry:
        """Write a skill and give it as it is now listed; INVALID_ARGUMENT if it is not valid."""
        shelf = self._shelf(scope, project)
        if shelf is None or scope is Scope.BUILTIN:
            raise invalid_skill("scope", "Write to `global`, or to `project` with a projectId.")
        async with self._writing:
            entry = await to_thread.run_sync(self._write, shelf, slug, content)
        log.info("skill_written", skillId=entry.id, scope=scope)
        return entry

    def _shelf(self, scope: Scope, project: Project | None) -> SkillFolder | None:
        if scope is Scope.BUILTIN:
            return SkillFolder(scope, BUILTIN, "builtin")
        if scope is Scope.GLOBAL:
            return SkillFolder(scope, self._user_data, "skills")
        return None if project is None else SkillFolder(scope, project.root, f"{TREE}/skills")

    def _on_shelf(self, shelf: SkillFolder) -> list[LibraryEntry]:
        folder = LinkedFolder(shelf.root, shelf.folder)
        try:
            found = folder.walk(lambda name: name.endswith(".md")).files
        except DaemonError:
            return []
        entries = (
            self._entry(shelf, path, slug, status)
            for path, status in found
            if (slug := slug_of(path.removeprefix(f"{shelf.folder}/")))
        )
        return _told_apart(entries)

    def _effective(self, project: Project | None) -> list[LibraryEntry]:
        shelves = (self._shelf(scope, project) for scope in Scope)
        entries = [entry for shelf in shelves if shelf for entry in self._on_shelf(shelf)]
        winners = {entry.id: entry.path for entry in entries}
        return [entry for entry in entries if winners[entry.id] == entry.path]

    def _write(self, shelf: SkillFolder, slug: str | None, content: str) -> LibraryEntry:
        data = content.encode("utf-8", "replace")
        skill, faults = parse(data)
        if faults:
            raise refuse(faults, "The skill is not valid")
        chosen = plain_slug(slug_for(skill) if slug is None else slug)
        there = self._on_shelf(shelf)
        same = next((entry for entry in there if entry.slug.lower() == chosen), None)
        own_id = skill.id or f"{shelf.scope}:{chosen}"
        if other := next((e for e in there if e.id == own_id and e is not same), None):
            raise invalid_skill("content", f"The id {own_id} is taken by {other.path}.")
        path = f"{shelf.folder}/{chosen}/{FILE}" if same is None else same.path
        put(shelf.root, path, data, mode=PRIVATE if shelf.scope is Scope.GLOBAL else SHARED)
        return next(entry for entry in self._on_shelf(shelf) if entry.path == path)

    def _entry(
        self, shelf: SkillFolder, path: str, slug: str, status: os.stat_result
    ) -> LibraryEntry:
        implied = f"{shelf.scope}:{slug}"
        try:
            opened = self._cache.fetch(
                LinkedFolder(shelf.root, shelf.folder), path, limit=MAX_BYTES, status=status
            )
        except DaemonError as error:
            fault = Fault(key="", message=error.message)
            return LibraryEntry(
                id=implied,
                scope=shelf.scope,
                slug=slug,
                path=path,
                content="",
                skill=Skill(),
                faults=(fault,),
            )
        skill, faults = parse(opened.data)
        return LibraryEntry(
            id=skill.id or implied,
            scope=shelf.scope,
            slug=slug,
            path=path,
            content=opened.data.decode("utf-8", "replace"),
            skill=skill,
            faults=faults,
        )


def slug_of(path: str) -> str:
    """Name the skill at a path below its scope's folder; empty if the file is none.

    A skill is a folder with a SKILL.md, at any depth, or a single Markdown file at the top.
    Other files of a skill's folder are its own business.
    """
    folder, _, name = path.rpartition("/")
    if name == FILE:
        return folder
    return "" if folder else name.removesuffix(".md")


def _told_apart(entries: Iterable[LibraryEntry]) -> list[LibraryEntry]:
    """Let the first of two skills with one id have it; the other stays listed with the reason."""
    taken: dict[str, str] = {}
    listed: list[LibraryEntry] = []
    for entry in entries:
        if entry.id in taken:
            message = f"The id {entry.id} is taken by {taken[entry.id]}."
            fault = Fault(key="id", message=message)
            own = f"{entry.scope}:{entry.slug}#{entry.path}"
            listed.append(replace(entry, id=own, faults=(*entry.faults, fault)))
        else:
            taken[entry.id] = entry.path
            listed.append(entry)
    return listed
