"""What follows the built-in recipes: the host itself, a value in the recipe, a file of the project.

Knows whom to ask and what to read; writes no file.
"""

import os
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.artifacts import tree
from creonowd.artifacts.recipes import Maker, Making, Pull, Recipe, Recipes, refused
from creonowd.artifacts.refs import BLOCK, Kind
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Params, Result
from creonowd.storage import atomic, relative_paths
from creonowd.workspace.projects import Projects

MATERIALISE = "context:files:materialise"


class Materialise(Params):
    """Make a registered file: answer its bytes from `offset` on, as many as are convenient."""

    project_id: str
    conversation_id: str
    id: str
    kind: Kind
    hint: str
    recipe: dict[str, Any]
    offset: int


class Materialised(Result):
    """A piece of the file, as text or as base64; the daemon asks on until `done`."""

    content: str | UnsetType = UNSET
    base64: bytes | UnsetType = UNSET
    done: bool = True

    @property
    def data(self) -> bytes:
        """The bytes of this piece."""
        if isinstance(self.base64, bytes):
            return self.base64
        return b"" if self.content is UNSET else self.content.encode("utf-8", "replace")


class HostRecipe(Recipe):
    """The host makes it; whatever else the recipe holds is handed back to it."""


class JsonRecipe(Recipe):
    """The recipe holds the value itself, such as a catalogue of tools."""

    makes: ClassVar[str] = "application/json"
    value: Any


class FileRecipe(Recipe):
    """A copy of a file of the project, by its project-relative path."""

    path: Annotated[str, Meta(min_length=1, max_length=relative_paths.MAX_LENGTH)]


def built_in(projects: Projects) -> Recipes:
    """Make the recipes that every daemon knows."""
    recipes = Recipes()
    recipes.learn("host", HostRecipe, _ask_hosts)
    recipes.learn("json", JsonRecipe, _write_out)
    recipes.learn("file", FileRecipe, _copier(projects))
    return recipes


def _ask_hosts(making: Making, _form: HostRecipe) -> Pull:
    offset = 0
    done = False

    async def pull() -> bytes | None:
        nonlocal offset, done
        if done:
            return None
        piece = await _ask(making, offset)
        done = piece.done
        offset += len(piece.data)
        if not piece.data and not done:
            raise DaemonError(ErrorCode.HOST_ERROR, "The host made an empty piece and no end.")
        return piece.data

    return pull


async def _ask(making: Making, offset: int) -> Materialised:
    """Ask one host after the other, but never two about one file: their pieces might not fit."""
    record = making.record
    question = Materialise(
        project_id=record.project_id,
        conversation_id=making.conversation.id,
        id=record.id,
        kind=record.kind,
        hint=record.hint,
        recipe=record.recipe or {},
        offset=offset,
    )
    trouble = DaemonError(
        ErrorCode.HOST_ERROR, "No host is connected that could make this file; connect it again."
    )
    while making.hosts:
        try:
            return await making.hosts[0].call(
                MATERIALISE, question, Materialised, making.timeout_ms
            )
        except DaemonError as error:
            trouble = error
            if offset:
                break
            making.hosts.pop(0)
    raise trouble


def _write_out(_making: Making, form: JsonRecipe) -> Pull:
    encoded = msgspec.json.encode(form.value, order="sorted")
    pieces = [msgspec.json.format(encoded, indent=2) + b"\n"]

    async def pull() -> bytes | None:
        return pieces.pop() if pieces else None

    return pull


def _copier(projects: Projects) -> Maker:
    def copy(making: Making, form: FileRecipe) -> Pull:
        offset = 0
        first: os.stat_result | None = None

        async def pull() -> bytes | None:
            nonlocal offset, first
            project = await projects.find(making.record.project_id)
            status, data = await to_thread.run_sync(_piece, project.root, form.path, offset)
            first = first or status
            _refuse_another(first, status)
            # What a growing file gets meanwhile is left for the next copy.
            data = data[: max(0, first.st_size - offset)]
            offset += len(data)
            return data or None

        return pull

    return copy


def _piece(root: Path, path: str, offset: int) -> tuple[os.stat_result, bytes]:
    if problem := relative_paths.problem_with(path):
        raise refused(f"recipe.path is not a project-relative path ({problem}).")
    with atomic.disk_errors(path):
        try:
            with tree.opened(root, path) as file:
                return os.fstat(file.file.fileno()), file.read_at(offset, BLOCK)
        except FileNotFoundError:
            raise DaemonError(ErrorCode.NOT_FOUND, "The project has no such file.") from None


def _refuse_another(first: os.stat_result, now: os.stat_result) -> None:
    """Refuse to join pieces of a file and of the one that was saved in its place."""
    if (first.st_dev, first.st_ino) != (now.st_dev, now.st_ino):
        raise DaemonError(
            ErrorCode.CONFLICT, "The file was replaced while it was copied; try again."
        )
