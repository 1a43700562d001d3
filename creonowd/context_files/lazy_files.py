"""Lazy files: a recipe instead of a content, followed when the file is first read.

The built-in recipes are `host` (the host is asked for the bytes), `json` (the recipe holds the
value) and `file` (a copy of a file of the project).
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
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Peer
from creonowd.settings import Settings
from creonowd.storage import safe_folder
from creonowd.storage.stored_files import disk_errors
from creonowd.threads import enter_in_thread
from creonowd.workspace.creonow_tree import is_document
from creonowd.workspace.documents import IsExcluded, is_hidden
from creonowd.workspace.projects import Projects

MAX_RECIPE_BYTES = 64 * 1024
MATERIALISE = "context:files:materialise"
FILE = "file"

NextChunk = Callable[[], Coroutine[Any, Any, bytes | None]]


class ProducerContext(NamedTuple):
    """The file to make, and the hosts that can be asked for it, the likeliest first."""

    conversation: ConversationFolder
    record: Record
    hosts: list[Peer]
    timeout_ms: int


class Recipe(Model):
    """The fields of a recipe beside its `type`, and the default type of what it makes."""

    mime_type: ClassVar[str] = "text/plain"

    def problem(self) -> str | None:
        """Return why nobody could follow the recipe though its fields have the right types."""
        return None


Producer = Callable[[ProducerContext, Any], NextChunk]


class Recipes:
    """The types of recipe, each with its fields and its producer."""

    def __init__(self) -> None:
        self._types: dict[str, tuple[type[Recipe], Producer]] = {}

    def add(self, name: str, fields: type[Recipe], producer: Producer) -> None:
        """Add a type of recipe."""
        self._types[name] = (fields, producer)

    def check(self, recipe: dict[str, Any]) -> str:
        """Return the MIME type of what a recipe makes; INVALID_ARGUMENT if nobody could follow it."""
        parsed, _ = self._parse(recipe)
        if len(msgspec.json.encode(recipe)) > MAX_RECIPE_BYTES:
            raise _invalid_recipe(
                f"recipe is larger than {MAX_RECIPE_BYTES} bytes; put the file instead."
            )
        return parsed.mime_type

    def start(self, context: ProducerContext) -> NextChunk:
        """Start to make a file; each call of the result returns a chunk, and None at the end."""
        parsed, producer = self._parse(context.record.recipe or {})
        return producer(context, parsed)

    def _parse(self, recipe: dict[str, Any]) -> tuple[Recipe, Producer]:
        name = recipe.get("type")
        found = self._types.get(name) if isinstance(name, str) else None
        if found is None:
            raise _invalid_recipe(f"recipe.type must be one of {', '.join(sorted(self._types))}.")
        fields, producer = found
        try:
            parsed = msgspec.convert(recipe, fields)
        except msgspec.ValidationError as error:
            raise _invalid_recipe(f"recipe does not fit its type: {error}.") from None
        if problem := parsed.problem():
            raise _invalid_recipe(problem)
        return parsed, producer


class Materialiser:
    """Makes lazy files, one at a time each, and knows which hosts registered them."""

    def __init__(self, recipes: Recipes, settings: Settings) -> None:
        self._recipes = recipes
        self._timeout_ms = settings.context_host_timeout_ms
        self._max_bytes = settings.context_max_bytes
        self._hosts: dict[str, list[Peer]] = {}
        self._locks: dict[tuple[str, str], anyio.Lock] = {}

    def add_host(self, conversation_id: str, host: Peer) -> None:
        """Note that a host registered files of a conversation; the latest is asked first."""
        hosts = self._hosts.setdefault(conversation_id, [])
        if host in hosts:
            hosts.remove(host)
        else:
            host.when_closed(lambda: self._remove_host(conversation_id, host))
        hosts.insert(0, host)

    async def make(
        self, conversation: ConversationFolder, record: Record, reader: Peer | None
    ) -> None:
        """Make a file unless it was made meanwhile; `reader` is the last host to be asked.

        Only hosts of the role that registered it are: what a page says is never an owner's file.
        """
        key = (conversation.id, record.id)
        lock = self._locks.setdefault(key, anyio.Lock())
        try:
            async with lock:
                if await to_thread.run_sync(conversation.size_and_last_use, record) is None:
                    await self._make(conversation, record, reader)
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._locks.pop(key, None)

    async def _make(
        self, conversation: ConversationFolder, record: Record, reader: Peer | None
    ) -> None:
        role = record.registered_by or Role.OWNER
        hosts = [host for host in self._hosts.get(conversation.id, []) if host.is_connected]
        if reader is not None and reader not in hosts:
            hosts.append(reader)
        hosts = [host for host in hosts if host.role is role]
        context = ProducerContext(conversation, record, hosts, self._timeout_ms)
        next_chunk = self._recipes.start(context)
        async with enter_in_thread(conversation.write_lazy_file(record)) as writer:
            while (chunk := await next_chunk()) is not None:
                if writer.size + len(chunk) > self._max_bytes:
                    raise DaemonError(
                        ErrorCode.IO_ERROR,
                        "The file would be larger than all context files of a project may be together.",
                        reason="too_large",
                        limitBytes=self._max_bytes,
                    )
                await to_thread.run_sync(writer.write, chunk)

    def _remove_host(self, conversation_id: str, host: Peer) -> None:
        hosts = self._hosts[conversation_id]
        hosts.remove(host)
        if not hosts:
            del self._hosts[conversation_id]


def check_reader(record: Record, reader: Peer | None) -> None:
    """Fail with NOT_FOUND if a page reads the copy of a file that is no document of the project."""
    if reader is not None and not is_readable(record, reader.role):
        raise _no_such_file()


def is_readable(record: Record, role: Role | None) -> bool:
    """Return whether clients of a role may read what a recipe makes: a page copies documents alone."""
    recipe = record.recipe or {}
    if role is not Role.RENDERER or recipe.get("type") != FILE:
        return True
    return isinstance(path := recipe.get("path"), str) and is_document(path)


class Materialise(Params):
    """Make a registered file: answer its bytes from `offset` on, as many as are convenient."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    conversation_id: str
    """The conversation that the file belongs to."""
    id: str
    """The id of its ref."""
    kind: Kind
    """What it holds."""
    hint: str
    """The hint that it was registered with."""
    recipe: dict[str, Any]
    """The recipe that it was registered with."""
    offset: int
    """How many bytes the daemon has already."""


class Materialised(Result):
    """A piece of the file, as text or as base64; the daemon asks on until `done`."""

    content: str | UnsetType = UNSET
    """The next piece as text; either this or `base64`."""
    base64: bytes | UnsetType = UNSET
    """The next piece in base64; either this or `content`."""
    done: bool = True
    """Whether that was all; if not, the daemon asks again from behind it."""

    @property
    def data(self) -> bytes:
        """The bytes of this piece."""
        if isinstance(self.base64, bytes):
            return self.base64
        return b"" if self.content is UNSET else self.content.encode("utf-8", "replace")


class HostRecipe(Recipe):
    """The host makes the file; whatever else the recipe holds is handed back to it."""


class JsonRecipe(Recipe):
    """The recipe holds the value itself, such as a catalogue of tools."""

    mime_type: ClassVar[str] = "application/json"
    value: Any


class FileRecipe(Recipe):
    """A copy of a file of the project, by its project-relative path."""

    path: Annotated[str, Meta(min_length=1, max_length=safe_folder.MAX_LENGTH)]

    def problem(self) -> str | None:
        """Return what makes the path one that does not stay in the project."""
        problem = safe_folder.problem_with(self.path)
        return problem and f"recipe.path is not a project-relative path ({problem})."


def built_in_recipes(projects: Projects, is_excluded: IsExcluded = is_hidden) -> Recipes:
    """Return the recipes that every daemon knows; a file that is excluded is not copied."""
    recipes = Recipes()
    recipes.add("host", HostRecipe, _from_hosts)
    recipes.add("json", JsonRecipe, _from_value)
    recipes.add(FILE, FileRecipe, _copier(projects, is_excluded))
    return recipes


def _from_hosts(context: ProducerContext, _recipe: HostRecipe) -> NextChunk:
    offset = 0
    done = False

    async def next_chunk() -> bytes | None:
        nonlocal offset, done
        if done:
            return None
        piece = await _call_hosts(context, offset)
        done = piece.done
        offset += len(piece.data)
        if not piece.data and not done:
            raise DaemonError(
                ErrorCode.HOST_ERROR, "The host sent an empty piece without `done: true`."
            )
        return piece.data

    return next_chunk


async def _call_hosts(context: ProducerContext, offset: int) -> Materialised:
    """Ask one host after the other until one answers; no file is made of pieces of two hosts."""
    record = context.record
    params = Materialise(
        project_id=record.project_id,
        conversation_id=context.conversation.id,
        id=record.id,
        kind=record.kind,
        hint=record.hint,
        recipe=record.recipe or {},
        offset=offset,
    )
    failure = DaemonError(
        ErrorCode.HOST_ERROR, "No host is connected that could make this file; connect it again."
    )
    while context.hosts:
        try:
            return await context.hosts[0].call(
                MATERIALISE, params, Materialised, context.timeout_ms
            )
        except DaemonError as error:
            failure = error
            if offset:
                break
            context.hosts.pop(0)
    raise failure


def _from_value(_context: ProducerContext, recipe: JsonRecipe) -> NextChunk:
    encoded = msgspec.json.encode(recipe.value, order="sorted")
    chunks = [msgspec.json.format(encoded, indent=2) + b"\n"]

    async def next_chunk() -> bytes | None:
        return chunks.pop() if chunks else None

    return next_chunk


def _copier(projects: Projects, is_excluded: IsExcluded) -> Producer:
    def copy(context: ProducerContext, recipe: FileRecipe) -> NextChunk:
        offset = 0
        first: os.stat_result | None = None

        async def next_chunk() -> bytes | None:
            nonlocal offset, first
            project = await projects.find(context.record.project_id)
            if not is_readable(context.record, context.record.registered_by):
                raise _no_such_file()
            if await to_thread.run_sync(is_excluded, project.root, recipe.path):
                raise _no_such_file()
            status, data = await to_thread.run_sync(_read_chunk, project.root, recipe.path, offset)
            if b"\0" in data:
                raise _no_such_file()
            first = first or status
            if (first.st_dev, first.st_ino) != (status.st_dev, status.st_ino):
                raise DaemonError(
                    ErrorCode.CONFLICT, "The file was replaced while it was copied; try again."
                )
            # What a growing file gets meanwhile is left for the next copy.
            data = data[: max(0, first.st_size - offset)]
            offset += len(data)
            return data or None

        return next_chunk

    return copy


def _read_chunk(root: Path, path: str, offset: int) -> tuple[os.stat_result, bytes]:
    with disk_errors(path):
        try:
            with plain_folder(root).open_file(path) as file:
                return os.fstat(file.file.fileno()), file.read_at(offset, BLOCK)
        except FileNotFoundError:
            raise _no_such_file() from None


def _no_such_file() -> DaemonError:
    return DaemonError(
        ErrorCode.NOT_FOUND, "The project has no such file, or it is hidden or ignored."
    )


def _invalid_recipe(message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="recipe")
