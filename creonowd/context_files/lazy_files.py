"""What follows the built-in recipes: the host itself, a value in the recipe, a file of the project.

Knows whom to ask and what to read; writes no file.
"""

import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import anyio
import msgspec
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.record_store import plain_folder
from creonowd.context_files.records import BLOCK, Kind, Record
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model, Params, Result
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.storage import atomic, relative_paths
from creonowd.threads import entered
from creonowd.workspace.projects import Projects

LARGEST = 64 * 1024

Pull = Callable[[], Coroutine[Any, Any, bytes | None]]


class ProducerContext(NamedTuple):
    """A file that is wanted now, and who can be asked about it, the likeliest first."""

    conversation: ConversationFolder
    record: Record
    hosts: list[Peer]
    timeout_ms: int


Maker = Callable[[ProducerContext, Any], Pull]


class Recipe(Model):
    """The fields of a recipe beside its `type`, and what it makes unless something else is said."""

    makes: ClassVar[str] = "text/plain"


class Recipes:
    """What can be made, by the recipe's type."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[type[Recipe], Maker]] = {}

    def learn(self, name: str, form: type[Recipe], maker: Maker) -> None:
        """Add a type of recipe, the form of its fields, and what makes it."""
        self._known[name] = (form, maker)

    def check(self, recipe: dict[str, Any]) -> str:
        """Refuse a recipe that nobody could follow; tell the type of what it makes."""
        form, _ = self._understood(recipe)
        if len(msgspec.json.encode(recipe)) > LARGEST:
            raise invalid_recipe(f"recipe is larger than {LARGEST} bytes; put the file instead.")
        return form.makes

    def follow(self, making: ProducerContext) -> Pull:
        """Begin to make a file; the result gives it piece by piece, and None at its end."""
        form, maker = self._understood(making.record.recipe or {})
        return maker(making, form)

    def _understood(self, recipe: dict[str, Any]) -> tuple[Recipe, Maker]:
        name = recipe.get("type")
        known = self._known.get(name) if isinstance(name, str) else None
        if known is None:
            raise invalid_recipe(f"recipe.type must be one of {', '.join(sorted(self._known))}.")
        try:
            return msgspec.convert(recipe, known[0]), known[1]
        except msgspec.ValidationError as error:
            raise invalid_recipe(f"recipe does not fit its type: {error}.") from None


def invalid_recipe(message: str) -> DaemonError:
    """Say what is wrong with a recipe."""
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="recipe")


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


def _ask_hosts(making: ProducerContext, _form: HostRecipe) -> Pull:
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


async def _ask(making: ProducerContext, offset: int) -> Materialised:
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


def _write_out(_making: ProducerContext, form: JsonRecipe) -> Pull:
    encoded = msgspec.json.encode(form.value, order="sorted")
    pieces = [msgspec.json.format(encoded, indent=2) + b"\n"]

    async def pull() -> bytes | None:
        return pieces.pop() if pieces else None

    return pull


def _copier(projects: Projects) -> Maker:
    def copy(making: ProducerContext, form: FileRecipe) -> Pull:
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
        raise invalid_recipe(f"recipe.path is not a project-relative path ({problem}).")
    with atomic.disk_errors(path):
        try:
            with plain_folder(root).open_file(path) as file:
                return os.fstat(file.file.fileno()), file.read_at(offset, BLOCK)
        except FileNotFoundError:
            raise DaemonError(ErrorCode.NOT_FOUND, "The project has no such file.") from None


def _refuse_another(first: os.stat_result, now: os.stat_result) -> None:
    """Refuse to join pieces of a file and of the one that was saved in its place."""
    if (first.st_dev, first.st_ino) != (now.st_dev, now.st_ino):
        raise DaemonError(
            ErrorCode.CONFLICT, "The file was replaced while it was copied; try again."
        )


Key = tuple[str, str]


class Materialiser:
    """Makes lazy files, and remembers which hosts offered to."""

    def __init__(self, recipes: Recipes, settings: Settings) -> None:
        self._recipes = recipes
        self._timeout_ms = settings.context_host_timeout_ms
        self._most_bytes = settings.context_max_bytes
        self._hosts: dict[str, list[Peer]] = {}
        self._making: dict[Key, anyio.Lock] = {}

    def remember(self, conversation_id: str, host: Peer) -> None:
        """Note that a host registered files of a conversation; the latest is asked first."""
        hosts = self._hosts.setdefault(conversation_id, [])
        if host in hosts:
            hosts.remove(host)
        else:
            host.when_closed(lambda: self._forget(conversation_id, host))
        hosts.insert(0, host)

    async def make(
        self, conversation: ConversationFolder, record: Record, asker: Peer | None
    ) -> None:
        """Make a file unless someone has done so meanwhile."""
        key = (conversation.id, record.id)
        lock = self._making.setdefault(key, anyio.Lock())
        try:
            async with lock:
                if await to_thread.run_sync(conversation.presence, record) is None:
                    await self._make(conversation, record, asker)
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._making.pop(key, None)

    async def _make(
        self, conversation: ConversationFolder, record: Record, asker: Peer | None
    ) -> None:
        hosts = [host for host in self._hosts.get(conversation.id, []) if host.connected]
        if asker is not None and asker not in hosts:
            hosts.append(asker)
        pull = self._recipes.follow(ProducerContext(conversation, record, hosts, self._timeout_ms))
        async with entered(conversation.filling(record)) as file:
            while (piece := await pull()) is not None:
                self._refuse_too_large(file.size + len(piece))
                await to_thread.run_sync(file.write, piece)

    def _refuse_too_large(self, size: int) -> None:
        if size > self._most_bytes:
            raise DaemonError(
                ErrorCode.IO_ERROR,
                "The file would be larger than all context files may be.",
                reason="too_large",
                limitBytes=self._most_bytes,
            )

    def _forget(self, conversation_id: str, host: Peer) -> None:
        hosts = self._hosts[conversation_id]
        hosts.remove(host)
        if not hosts:
            del self._hosts[conversation_id]
