"""The constraints of every project, over one file each: the only truth, also when others write it.

Knows locks, revisions and the disk; what may be done stands in `constraint_edits`.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.clock import Clock, iso
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.workspace import atomic, constraint_edits
from creonowd.workspace.constraint_edits import ConstraintPatch, NewConstraint
from creonowd.workspace.constraint_file import PATH, ConstraintFile, parse, render
from creonowd.workspace.exchange import replace_unchanged
from creonowd.workspace.locks import locked
from creonowd.workspace.opening import lies_inside, real_folder
from creonowd.workspace.paths import TREE, Scope, folder_of, refused
from creonowd.workspace.registry import Project
from creonowd.workspace.tree import DEFAULTS, Tree, TreeFile, make_folder

RULES = folder_of(Scope.RULES)
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
        edit = partial(constraint_edits.created, values=values, new_id=new_id, now=self._now())
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
            constraint_edits.updated,
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
        edit = partial(constraint_edits.deleted, constraint_id=constraint_id)
        return await self._change(project, expected, edit)

    async def replace(
        self, project: Project, texts: Sequence[str], expected: str | None = None
    ) -> ConstraintFile:
        """Make these texts the user's constraints."""
        edit = partial(
            constraint_edits.replaced,
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
            return self._tree.read_now(root, Scope.RULES, PATH)
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
    with atomic.disk_errors(PATH):
        place = Path(os.path.realpath(root / PATH))
        if not lies_inside(place, real_folder(root, RULES)):
            raise refused("link", f"{PATH} is a link that leads elsewhere.")
    expected = before.data if before.exists else None
    return replace_unchanged(place, data, expected, mode=atomic.SHARED)


def _conflict(message: str, reason: str, **details: str) -> DaemonError:
    return DaemonError(ErrorCode.CONSTRAINT_CONFLICT, message, reason=reason, **details)
