"""The constraints of every project, over one file each: the only truth, also when others write it.

Knows locks, revisions and the disk; what may be done stands in `constraint_edits`.
"""

import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.clock import Clock, iso
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.storage import atomic
from creonowd.storage.atomic import replace_unchanged
from creonowd.storage.locks import locked
from creonowd.storage.relative_paths import TREE, CreonowFolder, folder_of
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.workspace.constraint_file import (
    DEFAULT_PRIORITY,
    DEFAULT_TYPE,
    MAX_ITEMS,
    PATH,
    TYPES,
    Constraint,
    ConstraintFile,
    Item,
    check_values,
    invalid,
    parse,
    render,
)
from creonowd.workspace.creonow_tree import DEFAULTS, Tree, TreeFile, make_folder
from creonowd.workspace.projects import Project

Type = Annotated[str, Meta(extra_json_schema={"enum": list(TYPES)})]
Show = Callable[[str], str]


class Traits(Model):
    """What a client may say of a constraint beside its text."""

    type: Type | UnsetType = UNSET
    priority: int | UnsetType = UNSET
    degradable: bool | UnsetType = UNSET
    source: Annotated[str, Meta(description="only `user` is possible")] | UnsetType = UNSET


class NewConstraint(Traits):
    """A constraint to be; what is left out is `narrative`, 100 and false."""

    text: str


class ConstraintPatch(Traits):
    """What a constraint is to become; what is left out stays as it is."""

    text: str | UnsetType = UNSET


def created(file: ConstraintFile, values: NewConstraint, new_id: str, now: str) -> ConstraintFile:
    """Add a constraint at the end."""
    _refuse_foreign(values.source)
    item = _new(values, new_id, now)
    _refuse_duplicate(file, item.constraint)
    if len(file.items) >= MAX_ITEMS:
        raise _too_many()
    return _holding(file, (*file.items, item))


def updated(
    file: ConstraintFile, constraint_id: str, values: ConstraintPatch, now: str, show: Show
) -> ConstraintFile:
    """Change a constraint in its place; `show` tells how a client sees a text."""
    old = _own(file, constraint_id)
    _refuse_foreign(values.source)
    if values.text == show(old.constraint.text):
        values = msgspec.structs.replace(values, text=UNSET)
    new = _with(old.constraint, values, now)
    if new.text != old.constraint.text:
        _refuse_duplicate(file, new)
    unchanged = msgspec.structs.replace(new, updated_at=old.constraint.updated_at) == old.constraint
    if unchanged:
        return file
    item = Item(constraint=new, rest=old.rest)
    return _holding(file, tuple(item if each is old else each for each in file.items))


def deleted(file: ConstraintFile, constraint_id: str) -> ConstraintFile:
    """Take a constraint out."""
    old = _own(file, constraint_id)
    return _holding(file, tuple(each for each in file.items if each is not old))


def replaced(
    file: ConstraintFile, texts: Sequence[str], mint: Callable[[], str], now: str, show: Show
) -> ConstraintFile:
    """Make `texts` the user's constraints, in this order; a text that stays keeps its entry."""
    ours = [item for item in file.items if item.constraint.source == "user"]
    rest = [item for item in file.items if item.constraint.source != "user"]
    _refuse_repeats(texts, [item.constraint.text for item in ours], show)
    if len(texts) + len(rest) > MAX_ITEMS:
        raise _too_many()
    stripped = [text.strip() for text in texts]
    items = [
        item or _new(NewConstraint(text=text), mint(), now)
        for item, text in zip(_staying(ours, stripped, show), stripped, strict=True)
    ]
    return file if items == ours else _holding(file, (*items, *rest))


def _staying(ours: Sequence[Item], texts: Sequence[str], show: Show) -> list[Item | None]:
    """Find the entry of each text: the one that holds it, else one that a client sees as it."""
    found = _matched(ours, texts, lambda text: text)
    kept = {id(item) for item in found if item}
    missing = [text for text, item in zip(texts, found, strict=True) if item is None]
    seen = iter(_matched((item for item in ours if id(item) not in kept), missing, show))
    return [item or next(seen) for item in found]


def _matched(items: Iterable[Item], texts: Sequence[str], show: Show) -> list[Item | None]:
    by_text: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items if texts else ():
        by_text[show(item.constraint.text).strip()].append(item)
    return [by_text[text].pop(0) if by_text[text] else None for text in texts]


def _new(values: NewConstraint, new_id: str, now: str) -> Item:
    blank = Constraint(
        id=new_id,
        text="",
        type=DEFAULT_TYPE,
        source="user",
        priority=DEFAULT_PRIORITY,
        degradable=False,
        updated_at=now,
    )
    return Item(constraint=_with(blank, values, now), rest={})


def _with(constraint: Constraint, values: NewConstraint | ConstraintPatch, now: str) -> Constraint:
    changes = {
        name: value
        for name in ("text", "type", "priority", "degradable")
        if (value := getattr(values, name)) is not UNSET
    }
    if isinstance(text := changes.get("text"), str):
        changes["text"] = text.strip()
    new = msgspec.structs.replace(constraint, **changes, updated_at=now)
    check_values(new.text, new.type, new.priority)
    return new


def _holding(file: ConstraintFile, items: tuple[Item, ...]) -> ConstraintFile:
    return msgspec.structs.replace(file, items=items)


def _own(file: ConstraintFile, constraint_id: str) -> Item:
    for item in file.items:
        if item.constraint.id == constraint_id:
            if item.constraint.source != "user":
                raise _foreign()
            return item
    raise DaemonError(ErrorCode.CONSTRAINT_NOT_FOUND)


def _refuse_foreign(source: str | UnsetType) -> None:
    if source == "kg":
        raise _foreign()
    if source not in {"user", UNSET}:
        raise invalid("source must be user.", field="source")


def _foreign() -> DaemonError:
    return DaemonError(
        ErrorCode.CONTEXT_SCOPE_VIOLATION,
        "Constraints of the knowledge graph are changed there, not here.",
        source="kg",
    )


def _refuse_duplicate(file: ConstraintFile, new: Constraint) -> None:
    for item in file.items:
        known = item.constraint
        if known.id != new.id and _folded(known.text) == _folded(new.text):
            raise _duplicate(constraintId=known.id)


def _refuse_repeats(texts: Sequence[str], known: Sequence[str], show: Show) -> None:
    """Refuse repeated texts, unless the file has them repeated or a client sees them so."""
    counts = Counter(map(_folded, texts))
    if max(counts.values(), default=0) < 2:
        return
    allowed = Counter(map(_folded, known)) | Counter(_folded(show(text)) for text in known)
    if any(count > max(1, allowed[text]) for text, count in counts.items()):
        raise _duplicate()


def _duplicate(**details: str) -> DaemonError:
    return DaemonError(
        ErrorCode.CONSTRAINT_CONFLICT,
        "There is a constraint with this text already; change that one.",
        reason="duplicate",
        **details,
    )


def _too_many() -> DaemonError:
    return invalid(f"A project may have {MAX_ITEMS} constraints at most.", limit=MAX_ITEMS)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


RULES = folder_of(CreonowFolder.RULES)
CACHE = f"{TREE}/cache"
LOCK = "constraints.lock"
DEFAULT = DEFAULTS["rules/constraints.json"]
LEFTOVER_MS = 60_000

_TRIES = 100
_LOOKS = 10
_LOOK_S = 0.02

Edit = Callable[[ConstraintFile], ConstraintFile]

log = structlog.get_logger(__name__)


class Constraints:
    """Reads and changes the files; every change is on the disk before it is acknowledged."""

    def __init__(self, tree: Tree, clock: Clock, redactor: Redactor) -> None:
        self._tree = tree
        self._clock = clock
        self._redactor = redactor
        self._turns: defaultdict[Path, anyio.Lock] = defaultdict(anyio.Lock)
        self._parsed: dict[Path, tuple[bytes, int, ConstraintFile]] = {}

    async def list(self, project: Project) -> ConstraintFile:
        """Read the file, or the defaults if there is none; nothing is written."""
        return await to_thread.run_sync(self.read_now, project.root)

    async def create(
        self, project: Project, values: NewConstraint, expected: str | None = None
    ) -> ConstraintFile:
        """Add a constraint; it is the last in the result."""
        new_id = self._clock.new_id("con")
        edit = partial(created, values=values, new_id=new_id, now=self._now())
        return await self._change(project, expected, edit)

    async def update(
        self,
        project: Project,
        constraint_id: str,
        values: ConstraintPatch,
        expected: str | None = None,
    ) -> ConstraintFile:
        """Change a constraint."""
        edit = partial(
            updated,
            constraint_id=constraint_id,
            values=values,
            now=self._now(),
            show=self._shown,
        )
        return await self._change(project, expected, edit)

    async def delete(
        self, project: Project, constraint_id: str, expected: str | None = None
    ) -> ConstraintFile:
        """Take a constraint out."""
        edit = partial(deleted, constraint_id=constraint_id)
        return await self._change(project, expected, edit)

    async def replace(
        self, project: Project, texts: Sequence[str], expected: str | None = None
    ) -> ConstraintFile:
        """Make these texts the user's constraints."""
        edit = partial(
            replaced,
            texts=texts,
            mint=partial(self._clock.new_id, "con"),
            now=self._now(),
            show=self._shown,
        )
        return await self._change(project, expected, edit)

    async def _change(self, project: Project, expected: str | None, edit: Edit) -> ConstraintFile:
        async with self._turns[project.root]:
            try:
                changed = await to_thread.run_sync(self._changed, project.root, expected, edit)
            except DaemonError as error:
                if error.code is ErrorCode.CONTEXT_SCOPE_VIOLATION:
                    log.warning("context_scope_violation", project_id=project.project_id)
                raise
        count, revision = len(changed.items), changed.revision
        log.info(
            "constraints_updated", project_id=project.project_id, count=count, revision=revision
        )
        return changed

    def _changed(self, root: Path, expected: str | None, edit: Edit) -> ConstraintFile:
        # Once in vain: what cannot be done shall not even make a folder.
        self._edited(root, expected, edit)
        for folder in (TREE, RULES, CACHE):
            make_folder(root, folder)
        with locked(root / CACHE / LOCK):
            atomic.sweep(root / RULES, self._clock.now_ms() - LEFTOVER_MS)
            for _ in range(_TRIES):
                before, after = self._edited(root, expected, edit)
                if after is before:
                    return before
                data = render(after)
                if _written(root, before, data):
                    return msgspec.structs.replace(after, data=data, exists=True)
        raise _conflict("The constraints keep changing; try again.", "busy")

    def _edited(
        self, root: Path, expected: str | None, edit: Edit
    ) -> tuple[ConstraintFile, ConstraintFile]:
        file = self.read_now(root)
        if expected is not None and expected != file.revision:
            raise _conflict(
                "The constraints have changed since; list them again.",
                "stale_revision",
                revision=file.revision,
            )
        return file, edit(file)

    def read_now(self, root: Path) -> ConstraintFile:
        """Read the file; for those who are in a thread already.

        One that an editor is just writing in place gets time to be whole.
        """
        looked: bytes | None = None
        for _ in range(_LOOKS):
            file = self._file(root)
            try:
                return self._understood(root, file)
            except DaemonError:
                if file is None or file.data == looked:
                    raise
                looked = file.data
                time.sleep(_LOOK_S)
        return self._understood(root, self._file(root))

    def _file(self, root: Path) -> TreeFile | None:
        try:
            return self._tree.read_now(root, CreonowFolder.RULES, PATH)
        except DaemonError as error:
            if error.code is ErrorCode.NOT_FOUND:
                return None
            raise

    def _understood(self, root: Path, file: TreeFile | None) -> ConstraintFile:
        if file is None:
            return ConstraintFile(data=DEFAULT, exists=False, items=(), rest={})
        known = self._parsed.get(root)
        if known and known[0] is file.data and known[1] == file.updated_at_ms:
            return known[2]
        parsed = parse(file.data, iso(file.updated_at_ms))
        self._parsed[root] = (file.data, file.updated_at_ms, parsed)
        return parsed

    def _shown(self, text: str) -> str:
        return self._redactor.redact(text).text

    def _now(self) -> str:
        return iso(self._clock.now_ms())


def _written(root: Path, before: ConstraintFile, data: bytes) -> bool:
    place = LinkedFolder(root, RULES).target(PATH)
    expected = before.data if before.exists else None
    return replace_unchanged(place, data, expected, mode=atomic.SHARED)


def _conflict(message: str, reason: str, **details: str) -> DaemonError:
    return DaemonError(ErrorCode.CONSTRAINT_CONFLICT, message, reason=reason, **details)
