"""Context files for everyone else: put, register, list, read, tail, grep, delete.

Knows which thread does what; bytes, patterns, hosts and folders are others' work.
A project must exist before it is named here; who may see what raw is decided by the caller.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from anyio import CapacityLimiter, to_thread

from creonowd.artifacts import inline, looking, names, pages
from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.grep import Matches
from creonowd.artifacts.inline import Amount, Preview
from creonowd.artifacts.looking import Engine, Page, Seen, Tail, Wanted
from creonowd.artifacts.materialising import Workshop
from creonowd.artifacts.missing import AbsentError, unknown
from creonowd.artifacts.recipes import Recipes
from creonowd.artifacts.refs import LONGEST_HINT, ContextRef, Kind, NewFile, Origin, Record
from creonowd.artifacts.ripgrep import find_ripgrep
from creonowd.artifacts.store import Store
from creonowd.artifacts.veils import Veils
from creonowd.artifacts.views import View, Views
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.rpc.messages import without_surrogates
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.threads import StopSignal, in_thread

READ_LIMIT = 8192
TAIL_LINES = 200

_THREADS = 8
_TRIES = 3
_TEXT = "text/plain"
_BYTES = "application/octet-stream"

T = TypeVar("T")


class Where(NamedTuple):
    """A conversation of a project."""

    project_id: str
    conversation_id: str


class Which(NamedTuple):
    """A file of a conversation, how it is to be seen, and who could be asked to make it."""

    where: Where
    id: str
    view: View = View.REDACTED
    asker: Peer | None = None


class About(NamedTuple):
    """What is said of a new file; only kind and hint need to be."""

    kind: Kind
    hint: str
    origin: Origin | None = None
    mime_type: str | None = None
    key: str | None = None


class Put(NamedTuple):
    """The new ref, and a preview if the text is too long to stand in a conversation."""

    ref: ContextRef
    preview: Preview | None


class ContextFiles:
    """The context files of this user."""

    def __init__(
        self, store: Store, settings: Settings, recipes: Recipes, redactor: Redactor
    ) -> None:
        self.store = store
        self.settings = settings
        self.recipes = recipes
        self.views = Views(redactor, sensitive=settings.context_sensitive)
        self.inline_limits = Amount(settings.max_inline_chars, settings.max_inline_bytes)
        self._workshop = Workshop(recipes, settings)
        self._limiter = CapacityLimiter(_THREADS)
        # Lanes of their own: who looks never waits for a crowd that puts, each with its syncs.
        self._looking = CapacityLimiter(_THREADS)
        self._ripgrep = find_ripgrep(settings.ripgrep)
        self._veils = Veils()

    async def put(self, where: Where, content: str | bytes, about: About) -> Put:
        """Write a file now; the same key and content again give the same ref."""
        return await self.run(self._put, where, content, about)

    async def register(
        self, where: Where, recipe: dict[str, Any], about: About, host: Peer | None = None
    ) -> ContextRef:
        """Keep a recipe; the file is made when it is first looked at."""
        new = self._new_file(about, self.recipes.check(recipe), recipe)
        conversation = await self.run(self.store.bound, *where)
        record = await self.run(conversation.register, new)
        if host is not None:
            self._workshop.remember(conversation.id, host)
        return record.ref

    async def newest(self, where: Where, kind: Kind | None, limit: int) -> list[ContextRef]:
        """List the newest refs, oldest first."""
        conversation = await self.run(self.store.find, *where)
        records = [] if conversation is None else conversation.newest(kind, limit)
        return [record.ref for record in records]

    async def read(self, which: Which, offset: int = 0, limit: int = READ_LIMIT) -> Page:
        """Read a page by byte offset; pages that follow each other join up."""
        reader = self.views.reader(which.view, which.id)
        return await self._look(which, lambda seen: looking.see_page(seen, offset, limit, reader))

    async def read_bytes(self, which: Which, offset: int, limit: int) -> tuple[Page, bytes]:
        """Read a page byte for byte, secrets and all."""
        return await self._look(which, lambda seen: looking.see_bytes(seen, offset, limit))

    async def tail(self, which: Which, lines: int = TAIL_LINES) -> Tail:
        """Read the last lines."""
        reader = self.views.reader(which.view, which.id)
        return await self._look(which, lambda seen: looking.see_tail(seen, lines, reader))

    async def grep(self, which: Which, wanted: Wanted) -> Matches:
        """Find the lines that match."""
        reader = self.views.reader(which.view, which.id)
        seconds = self.settings.grep_timeout_ms / 1000
        engine = Engine(self._ripgrep, seconds, self.store.clock.monotonic, self._veils)
        return await self._look(
            which, lambda seen: looking.see_matches(seen, wanted, reader, engine)
        )

    async def delete(self, where: Where, ref_id: str | None = None) -> list[Record]:
        """Forget a file, or the whole conversation; tells what is gone."""
        conversation = await self.run(self.store.find, *where)
        if ref_id is not None and conversation is None:
            raise unknown()
        if conversation is None:
            return []
        if ref_id is not None:
            return [await self.run(conversation.remove, ref_id)]
        return await self.run(self.store.delete, conversation)

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do what blocks in one of the few threads that context files may use."""
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)

    async def _look(self, which: Which, work: Callable[[Seen], T]) -> T:
        """Open a file, have it made if it is not there, and look; ends when its caller goes."""
        conversation = await to_thread.run_sync(
            self.store.find, *which.where, limiter=self._looking
        )
        if conversation is None:
            raise unknown()

        def look(stop: StopSignal) -> T:
            with conversation.opened(which.id) as (record, file):
                return work(Seen(record, file, stop))

        for _ in range(_TRIES):
            try:
                return await in_thread(look, self._looking)
            except AbsentError as absent:
                await self._workshop.make(conversation, absent.record, which.asker)
        raise DaemonError(
            ErrorCode.CONFLICT, "The file was cleaned as soon as it was made; try again."
        )

    def _put(self, where: Where, content: str | bytes, about: About) -> Put:
        data = without_surrogates(content).encode() if isinstance(content, str) else content
        text = pages.whole_text(data)
        new = self._new_file(about, _BYTES if text is None else _TEXT)
        conversation = self.store.bound(*where)
        record = conversation.put(new, data)
        shown = pages.spoilt_text(data) if text is None else text
        return Put(record.ref, self._preview(conversation, record, shown))

    def _preview(
        self, conversation: Conversation, record: Record, text: str | None
    ) -> Preview | None:
        size = 0 if record.survey is None else record.survey.byte_size
        if text is None:
            too_big = size > self.inline_limits.bytes
            return inline.binary_preview(record.id, size) if too_big else None
        if inline.fits(text, self.inline_limits):
            return None
        reader = self.views.reader(View.REDACTED, record.id)
        with conversation.opened(record.id) as (_, file):
            return inline.preview(file, record.id, self.inline_limits, reader, len(text))

    def _new_file(
        self, about: About, mime_type: str, recipe: dict[str, Any] | None = None
    ) -> NewFile:
        origin = about.origin or names.default_origin(about.kind)
        if names.kind_of(origin) is not about.kind:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                f"The origin {origin} does not go with the kind {about.kind}.",
                field="origin",
            )
        return NewFile(
            kind=about.kind,
            origin=origin,
            hint=self.views.told(about.hint)[:LONGEST_HINT],
            mime_type=about.mime_type or mime_type,
            key=about.key,
            recipe=recipe,
        )
