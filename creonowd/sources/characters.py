"""Characters and other entities: one per file of `characters/`. Pure; knows no disk.

Those that are always injected belong to Rules. The others wait until someone mentions them and
come as retrieved text, so that they can never churn the stable prefix.
"""

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import PurePosixPath
from typing import Any, cast

from creonowd.context.fragment import (
    DEFAULT_PRIORITY,
    Fragment,
    FragmentKind,
    Layer,
    LeftOut,
    Reason,
)
from creonowd.context.mentions import Mentions
from creonowd.context.plan import Ask, Document, Fetched, Need
from creonowd.errors import WarningCode, warning_text
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.sources.batched_reads import BatchedReads, FolderReader
from creonowd.sources.file_fragments import FileKind, as_fragment, is_json, leave_out, read_files
from creonowd.storage import front_matter
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.workspace.creonow_tree import Folder, TreeFile

MAX_PRIORITY = 1_000_000
LONGEST_HEADING = 20
NAME_KEYS = ("name", "姓名", "名字", "名称")
ALIAS_KEYS = ("aliases", "alias", "别名", "别称")

_HEADING = re.compile(r"^# +(.+?) *#* *\r?$", re.MULTILINE)
_SEPARATORS = re.compile(r"[,，、;；/]")


class Inject(StrEnum):
    """When an entity enters a prompt: in Rules, as a retrieved chunk, or not by itself."""

    ALWAYS = "always"
    MENTIONED = "mentioned"
    MANUAL = "manual"
    NEVER = "never"


class Entity(Model):
    """What a file says about its entity; the first of `names` is its own."""

    names: tuple[str, ...]
    priority: int = DEFAULT_PRIORITY
    inject: Inject = Inject.ALWAYS


def describe(path: str, text: str) -> Entity | None:
    """Read what a file says about its entity; None if what it says makes no sense.

    Where it does not say a name, it is called as the file is, and as its first heading says.
    """
    said = _said(path, text)
    if said is None:
        return None
    names = _names(said, path, text)
    priority = said.get("priority", DEFAULT_PRIORITY)
    inject = said.get("inject", Inject.ALWAYS)
    if names is None or inject not in list(Inject):
        return None
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
        return None
    return Entity(names=names, priority=priority, inject=Inject(inject))


def _said(path: str, text: str) -> Mapping[str, Any] | None:
    if is_json(path):
        value = json.loads(text)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    read = front_matter.read(text)
    if read is None:
        return {}
    return None if read.faults else read.values


def _names(said: Mapping[str, Any], path: str, text: str) -> tuple[str, ...] | None:
    own = _first(said, NAME_KEYS)
    others = _first(said, ALIAS_KEYS)
    given = _SEPARATORS.split(others) if isinstance(others, str) else (others or [])
    if own is None:
        given = [*_heading(path, text), *given] if _is_texts(given) else given
        own = PurePosixPath(path).stem
    if not isinstance(own, str) or not own.strip() or not _is_texts(given):
        return None
    return tuple(dict.fromkeys(name.strip() for name in (own, *given) if name.strip()))


def _first(said: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((said[key] for key in keys if key in said), None)


def _heading(path: str, text: str) -> list[str]:
    heading = None if is_json(path) else _HEADING.search(text)
    return [heading[1]] if heading and len(heading[1]) <= LONGEST_HEADING else []


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )


GROUP = 3
SCORE_WHEN_MENTIONED = 0.9

Names = tuple[str, ...]


def characters(folder: Folder) -> Fetched:
    """Read every character that is always part of the rules."""
    return read_files(_shelved(Layer.RULES), folder, lambda _: True, partial(_read, Inject.ALWAYS))


def waiting(folder: Folder, inject: Inject) -> tuple[Fragment, ...]:
    """Read the characters that are injected in another way, as retrieved text.

    Files that make no sense are left out here without a word: `characters` tells of them.
    """
    shelved = _shelved(Layer.RETRIEVED)
    return read_files(shelved, folder, lambda _: True, partial(_read, inject)).fragments


def names_of(folder: Folder) -> tuple[Names, ...]:
    """Tell by which names each entity is known that may ever be injected."""
    known = (
        *characters(folder).fragments,
        *waiting(folder, Inject.MENTIONED),
        *waiting(folder, Inject.MANUAL),
    )
    return tuple(fragment.names for fragment in known)


def _shelved(layer: Layer) -> FileKind:
    return FileKind(
        layer=layer,
        source="characters",
        unavailable=WarningCode.CHARACTERS_UNAVAILABLE,
        group=GROUP if layer is Layer.RULES else 0,
    )


def _read(
    inject: Inject, shelved: FileKind, file: TreeFile, text: str
) -> Fragment | LeftOut | None:
    entity = describe(file.path, text)
    if entity is None:
        return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    if entity.inject is not inject:
        return None
    return as_fragment(
        shelved,
        file,
        text,
        kind=FragmentKind.ENTITY,
        names=entity.names,
        priority=entity.priority,
        score=SCORE_WHEN_MENTIONED if shelved.layer is Layer.RETRIEVED else None,
    )


KEPT_CHARACTERS = 8_000_000


class Entities(Model):
    """The names of every entity, and the entities that are injected when they are spoken of."""

    names: tuple[Names, ...]
    mentioned: tuple[Fragment, ...]
    manual: tuple[Fragment, ...]

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        waiting = sum(fragment.weight for fragment in (*self.mentioned, *self.manual))
        return waiting + 100 * len(self.names)


class EntityCache:
    """What was made of which character files, for all projects."""

    def __init__(self) -> None:
        self.mentions = Mentions()
        self._made: Memo[Folder, Entities] = Memo(
            KEPT_CHARACTERS, lambda _folder, entities: entities.weight
        )

    def entities(self, folder: Folder) -> Entities:
        """Read the entities of a folder."""
        return self._made.get(folder, lambda: _entities(folder))


class ProjectEntities:
    """The entities of one project, for one assembly."""

    def __init__(self, shelves: BatchedReads, known: EntityCache) -> None:
        self._shelves, self._known = shelves, known

    async def everyone(self) -> Entities:
        """Give all entities of the project."""
        return await self._shelves.make("cast", self._read)

    def find(self, names: Iterable[str], text: str) -> frozenset[str]:
        """Tell which of the names stand in a text."""
        return self._known.mentions.find(names, text)

    def _read(self, shelf: FolderReader) -> Entities:
        return self._known.entities(shelf.folder(CreonowFolder.CHARACTERS))


def _entities(folder: Folder) -> Entities:
    return Entities(
        names=names_of(folder),
        mentioned=waiting(folder, Inject.MENTIONED),
        manual=waiting(folder, Inject.MANUAL),
    )


# Beginning on a coarse grid, the stretch loses names in steps and not with every letter.
STEP = 2000
STEPS_BACK = 2
AHEAD = 1000


class MentionedSource:
    """The entities of one project that are spoken of."""

    layer = Layer.RETRIEVED
    name = "mentioned"
    need = Need.EVIDENCE
    unavailable = warning_text(WarningCode.CHARACTERS_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(self, cast: ProjectEntities) -> None:
        self._cast = cast

    async def fetch(self, ask: Ask) -> Fetched:
        """Give the entities that are named near the author, or by the author."""
        entities = await self._cast.everyone()
        near = f"{_near(ask.document)}\n{ask.wish}"
        found = [
            *self._named(entities.mentioned, near),
            *self._named(entities.manual, ask.wish),
        ]
        return Fetched(fragments=tuple(found))

    def _named(self, entities: tuple[Fragment, ...], text: str) -> list[Fragment]:
        found = self._cast.find((name for entity in entities for name in entity.names), text)
        return [entity for entity in entities if found.intersection(entity.names)]


def _near(document: Document | None) -> str:
    if document is None:
        return ""
    here = document.here
    start = max(0, (here.start // STEP - STEPS_BACK) * STEP)
    return document.text[start : here.end + AHEAD]
