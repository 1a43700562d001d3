"""The constraints of every project, each in one file, which other programs may change as well.

A change is an edit of the file as a value, tried again if someone else saved meanwhile. Both
versions of `.creonow/rules/constraints.json` are read; the newer one is written, with the fields
that are unknown here.
"""

import codecs
import hashlib
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.clock import ID_ALPHABET, Clock, iso
from creonowd.context.language import CONSTRAINTS_FILE
from creonowd.context.story import LONGEST_REFERENCE
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.storage.stored_files import disk_errors, refuse_newer
from creonowd.text import has_too_many_values, join_lines, normal_form
from creonowd.workspace.creonow_tree import (
    DEFAULTS,
    TREE,
    CreonowFolder,
    Tree,
    TreeFile,
    folder_of,
    make_folder,
)
from creonowd.workspace.file_edits import FileEdits
from creonowd.workspace.projects import Project

PATH = CONSTRAINTS_FILE
VERSION = 2
TYPES = ("narrative", "character", "world", "style", "plot")
MAX_ITEMS = 500
MAX_TEXT = 10_000
MAX_PRIORITY = 1_000_000
DEFAULT_TYPE = "narrative"
DEFAULT_PRIORITY = 100

ConstraintSource = Literal["user", "kg"]
JsonObject = dict[str, Any]

_SPACE = re.compile(r"[ \t\r\n]*")
_BYTE = re.compile(r"\(byte (\d+)\)")
_scan = json.JSONDecoder().raw_decode


class Constraint(Model, gc=False):
    """A rule that no generated text may break."""

    id: str
    """Its id; it never changes."""
    text: str
    """The rule in the author's words, as it stands in the prompt."""
    type: str
    """What it is about: `narrative`, `character`, `world`, `style` or `plot`."""
    source: ConstraintSource
    """Whose it is: `user` for what the author wrote, `kg` for what the knowledge graph derived,
    which clients cannot change."""
    priority: int
    """Greater ones stand first, and stay longer when rules are over their budget."""
    degradable: bool
    """Whether it may be left out of a prompt that has too little room."""
    updated_at: str
    """When it was last changed, as ISO 8601 in UTC."""
    since: str | UnsetType = msgspec.field(name="from", default=UNSET)
    """The place of the story from which on it holds: a path, a chapter number or a heading.
    Absent: from the beginning."""
    until: str | UnsetType = UNSET
    """The place before which it holds; that place itself is excluded. Absent: to the end."""


class Item(Model, gc=False):
    """A constraint, and the further fields of its entry in the file."""

    constraint: Constraint
    rest: JsonObject


class ConstraintFile(Model):
    """The whole file: its bytes, its constraints and its further fields.

    `undo` takes back the change that made it; blank if none did.
    """

    data: bytes
    exists: bool
    items: tuple[Item, ...]
    rest: JsonObject
    undo: str = ""

    @property
    def revision(self) -> str:
        """The SHA-256 of the file's bytes; of those of the default file if there is none."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def constraints(self) -> list[Constraint]:
        """All constraints, in the order of the file."""
        return [item.constraint for item in self.items]


def parse(data: bytes, updated_at: str) -> ConstraintFile:
    """Parse a file; CONSTRAINT_VALIDATION_ERROR with line and column if it is broken.

    An entry without a time gets `updated_at`, one without an id gets an id derived from its
    text: parsing twice returns the same.
    """
    document = _decode(data)
    _check_version(document)
    entries: Any = document.get("items")
    if not isinstance(entries, list):
        raise _entry_problem(data, "`items` must be a list", 0)
    return ConstraintFile(
        data=data,
        exists=True,
        items=_items(data, cast("list[Any]", entries), updated_at),
        rest=document,
    )


def render(file: ConstraintFile) -> bytes:
    """Write the file in its newest version: two-space JSON with a final newline."""
    items = [_entry(item) for item in file.items]
    document = file.rest | {"version": VERSION, "items": items}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def _entry(item: Item) -> JsonObject:
    kept = {key: value for key, value in item.rest.items() if key not in {"from", "until"}}
    return kept | msgspec.to_builtins(item.constraint)


def invalid(message: str | Wording, **details: Any) -> DaemonError:
    """Report what is wrong with a constraint."""
    return DaemonError(ErrorCode.CONSTRAINT_VALIDATION_ERROR, message, **details)


def check_values(text: str, kind: str, priority: int) -> None:
    """Fail with CONSTRAINT_VALIDATION_ERROR if a value is out of its range."""
    if not text.strip():
        raise invalid("text must not be blank.", field="text")
    if len(text) > MAX_TEXT:
        raise invalid(f"text may have {MAX_TEXT} characters at most.", field="text", limit=MAX_TEXT)
    if kind not in TYPES:
        raise invalid(f"type must be one of {', '.join(TYPES)}.", field="type")
    if not 0 <= priority <= MAX_PRIORITY:
        raise invalid(f"priority must be between 0 and {MAX_PRIORITY}.", field="priority")


def stored_place(value: str | int | None) -> str | UnsetType:
    """Return a place of the story as text; a blank one is none."""
    text = "" if value is None else join_lines(str(value)).strip()
    return text or UNSET


def check_places(constraint: Constraint) -> None:
    """Fail with CONSTRAINT_VALIDATION_ERROR if the name of a place is too long to be one."""
    for field, place in (("from", constraint.since), ("until", constraint.until)):
        if place is not UNSET and len(place) > LONGEST_REFERENCE:
            raise invalid(
                f"{field} may have {LONGEST_REFERENCE} characters at most.",
                field=field,
                limit=LONGEST_REFERENCE,
            )


def _decode(data: bytes) -> JsonObject:
    body = data.removeprefix(codecs.BOM_UTF8)
    if has_too_many_values(body):
        raise _broken_at("it has too many values", 1, 1)
    try:
        document = msgspec.json.decode(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8")
        raise _broken_at("it is not UTF-8", *_line_and_column(before, len(before))) from None
    except msgspec.DecodeError as error:
        place = _place_of_error(body, str(error))
        raise _broken_at(str(error).partition(" (byte")[0], *place) from None
    except RecursionError:
        raise _broken_at("it is nested too deeply", 1, 1) from None
    if not isinstance(document, dict):
        raise _entry_problem(data, "the file must hold an object", 0)
    return cast("JsonObject", document)


def _check_version(document: JsonObject) -> None:
    version = document.get("version", 1)
    if type(version) is not int or version < 1:
        raise _broken_at("`version` must be 1 or 2", 1, 1)
    refuse_newer(PATH, version, VERSION, path=PATH)


def _items(data: bytes, entries: list[Any], updated_at: str) -> tuple[Item, ...]:
    taken: set[str] = set()
    seen: Counter[str] = Counter()
    items: list[Item] = []
    for number, entry in enumerate(entries):
        try:
            item = _item(entry, taken, seen, updated_at)
        except DaemonError as error:
            raise _entry_problem(data, f"items[{number}]: {error.message}", number) from None
        taken.add(item.constraint.id)
        items.append(item)
    return tuple(items)


class _StoredConstraint(Model):
    text: str
    id: str | None = None
    type: str = DEFAULT_TYPE
    source: ConstraintSource = "user"
    priority: int = DEFAULT_PRIORITY
    degradable: bool = False
    updated_at: str | None = None
    since: str | int | None = msgspec.field(name="from", default=None)
    until: str | int | None = None


def _item(entry: Any, taken: set[str], seen: Counter[str], updated_at: str) -> Item:
    raw: JsonObject = {"text": entry} if isinstance(entry, str) else entry
    try:
        read = msgspec.convert(raw, _StoredConstraint)
    except msgspec.ValidationError as error:
        raise invalid(f"{error}") from None
    check_values(read.text, read.type, read.priority)
    seen[read.text] += 1
    named = read.id if read.id and read.id not in taken else None
    constraint = Constraint(
        id=named or _derived_id(read.text, seen[read.text], taken),
        text=read.text,
        type=read.type,
        source=read.source,
        priority=read.priority,
        degradable=read.degradable,
        updated_at=read.updated_at or updated_at,
        since=stored_place(read.since),
        until=stored_place(read.until),
    )
    check_places(constraint)
    return Item(constraint=constraint, rest=raw)


def _derived_id(text: str, number: int, taken: set[str]) -> str:
    while True:
        digest = int.from_bytes(hashlib.sha256(f"{number}\0{text}".encode()).digest(), "big")
        letters = (ID_ALPHABET[digest // 36**place % 36] for place in range(20))
        if (derived := "con_" + "".join(letters)) not in taken:
            return derived
        number += 1


def _entry_problem(data: bytes, problem: str, number: int) -> DaemonError:
    """Report a problem of the entry with this number, with its place in the file."""
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    places = _elements_of(text, "items") if text.lstrip().startswith("{") else []
    offset = places[number] if number < len(places) else 0
    return _broken_at(problem, *_line_and_column(text, offset))


def _broken_at(problem: str, line: int, column: int) -> DaemonError:
    return invalid(
        Wording(
            f"{PATH} is broken at line {line}, column {column}: {problem.rstrip('.')}."
            " Fix it by hand.",
            f"{PATH} 第 {line} 行第 {column} 列有误，请手工修正。",
        ),
        path=PATH,
        line=line,
        column=column,
    )


def _line_and_column(text: str, offset: int) -> tuple[int, int]:
    """Convert an offset in code points to a line and a column, both counted from 1."""
    before = text[:offset]
    return before.count("\n") + 1, offset - before.rfind("\n")


def _place_of_error(data: bytes, message: str) -> tuple[int, int]:
    """Return the line and column of an error of msgspec; the end of `data` if it names none."""
    found = _BYTE.search(message)
    before = (data[: int(found.group(1))] if found else data).decode("utf-8", errors="replace")
    return _line_and_column(before, len(before))


def _elements_of(text: str, key: str) -> list[int]:
    """Return the offset of each element of the array at `key` in the text of a JSON object."""
    at = _past(text, 0)
    while text[at := _skip(text, at)] != "}":
        name, at = _scan(text, at)
        at = _skip(text, _past(text, at))
        if name == key and text[at] == "[":
            return list(_elements(text, at + 1))
        _, at = _scan(text, at)
        at = _past_comma(text, at)
    return []


def _elements(text: str, at: int) -> Iterator[int]:
    while text[at := _skip(text, at)] != "]":
        yield at
        _, at = _scan(text, at)
        at = _past_comma(text, at)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _past(text: str, at: int) -> int:
    """Return the place after white space and the one character behind it, such as a colon."""
    return _skip(text, at) + 1


def _past_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return at + 1 if text[at] == "," else at


RULES = folder_of(CreonowFolder.RULES)
CACHE = f"{TREE}/cache"
LOCK = "constraints.lock"
DEFAULT = DEFAULTS["rules/constraints.json"]

_WRITE_TRIES = 100
_READ_TRIES = 10
_READ_PAUSE_S = 0.02

Type = Annotated[str, Meta(extra_json_schema={"enum": list(TYPES)})]
FileEdit = Callable[[ConstraintFile], ConstraintFile]
RedactConstraint = Callable[[str], str]

log = structlog.get_logger(__name__)


class Traits(Model):
    """What a client may set of a constraint beside its text.

    It holds from `from` on and before `until`; null or a blank text takes such a limit away.
    """

    type: Type | UnsetType = UNSET
    """What it is about; `narrative` for a new one."""
    priority: int | UnsetType = UNSET
    """Greater ones stand first, and stay longer when rules are over their budget; 100 for a new
    one."""
    degradable: bool | UnsetType = UNSET
    """Whether it may be left out of a prompt that has too little room; false for a new one."""
    source: str | UnsetType = UNSET
    """Only `user` is possible; constraints of the knowledge graph are changed there."""
    since: str | UnsetType | None = msgspec.field(name="from", default=UNSET)
    """The place of the story from which on it holds: a path, a chapter number or a heading. Null
    or blank: from the beginning."""
    until: str | UnsetType | None = UNSET
    """The place before which it holds. Null or blank: to the end."""


class NewConstraint(Traits):
    """A new constraint; the defaults are type `narrative`, priority 100 and not degradable."""

    text: str
    """The rule as the model shall read it; not blank, and not the text of another one."""


class ConstraintPatch(Traits):
    """A change of a constraint; what is left out stays as it is."""

    text: str | UnsetType = UNSET
    """The new text; not blank."""


class Constraints:
    """Reads and changes the files; a change is on the disk before it is acknowledged."""

    def __init__(
        self, tree: Tree, clock: Clock, redactor: Redactor, edits: FileEdits | None = None
    ) -> None:
        self._edits = edits or FileEdits(clock)
        self._tree = tree
        self._clock = clock
        self._redactor = redactor
        self._locks: defaultdict[Path, anyio.Lock] = defaultdict(anyio.Lock)
        self._parsed: dict[Path, tuple[bytes, int, ConstraintFile]] = {}

    async def list(self, project: Project) -> ConstraintFile:
        """Read the file, or the defaults if there is none; nothing is written."""
        return await to_thread.run_sync(self.read_now, project.root)

    async def create(
        self, project: Project, values: NewConstraint, expected: str | None = None
    ) -> ConstraintFile:
        """Add a constraint; it is the last in the result."""
        new_id = self._clock.new_id("con")
        edit = partial(add_constraint, values=values, new_id=new_id, now=self._now())
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
            update_constraint,
            constraint_id=constraint_id,
            values=values,
            now=self._now(),
            redact=self._redact,
        )
        return await self._change(project, expected, edit)

    async def delete(
        self, project: Project, constraint_id: str, expected: str | None = None
    ) -> ConstraintFile:
        """Remove a constraint."""
        edit = partial(remove_constraint, constraint_id=constraint_id)
        return await self._change(project, expected, edit)

    async def replace(
        self, project: Project, texts: Sequence[str], expected: str | None = None
    ) -> ConstraintFile:
        """Make these texts the user's constraints."""
        edit = partial(
            replace_constraints,
            texts=texts,
            new_id=partial(self._clock.new_id, "con"),
            now=self._now(),
            redact=self._redact,
        )
        return await self._change(project, expected, edit)

    def read_now(self, root: Path) -> ConstraintFile:
        """Read the file; blocks its thread.

        If it is broken, an editor may be writing it: it is read again until it stays the same.
        """
        last: bytes | None = None
        for _ in range(_READ_TRIES):
            file = self._read_file(root)
            try:
                return self._parse(root, file)
            except DaemonError:
                if file is None or file.data == last:
                    raise
                last = file.data
                time.sleep(_READ_PAUSE_S)
        return self._parse(root, self._read_file(root))

    async def _change(
        self, project: Project, expected: str | None, edit: FileEdit
    ) -> ConstraintFile:
        async with self._locks[project.root]:
            try:
                changed = await to_thread.run_sync(self._change_file, project.root, expected, edit)
            except DaemonError as error:
                if error.code is ErrorCode.CONTEXT_SCOPE_VIOLATION:
                    log.warning("context_scope_violation", project_id=project.project_id)
                raise
        count, revision = len(changed.items), changed.revision
        log.info(
            "constraints_updated", project_id=project.project_id, count=count, revision=revision
        )
        return changed

    def _change_file(self, root: Path, expected: str | None, edit: FileEdit) -> ConstraintFile:
        # First without writing: an edit that fails must not even make a folder.
        self._edit(root, expected, edit)
        for folder in (TREE, RULES, CACHE):
            make_folder(root, folder)
        with LinkedFolder(root, CACHE).lock(f"{CACHE}/{LOCK}"):
            LinkedFolder(root, RULES).sweep(RULES, self._clock.now_ms() - stored_files.LEFTOVER_MS)
            for _ in range(_WRITE_TRIES):
                before, after = self._edit(root, expected, edit)
                if after is before:
                    return before
                data = render(after)
                if _write(root, before, data):
                    undo = self._edits.remember(root, PATH, before.data, data)
                    undo = undo if before.exists else ""
                    return msgspec.structs.replace(after, data=data, exists=True, undo=undo)
        raise _conflict("The constraints keep changing; try again.", "busy")

    def _edit(
        self, root: Path, expected: str | None, edit: FileEdit
    ) -> tuple[ConstraintFile, ConstraintFile]:
        file = self.read_now(root)
        if expected is not None and expected != file.revision:
            raise _conflict(
                "The constraints have changed since; list them again.",
                "stale_revision",
                revision=file.revision,
            )
        return file, edit(file)

    def _read_file(self, root: Path) -> TreeFile | None:
        try:
            return self._tree.read_now(root, CreonowFolder.RULES, PATH)
        except DaemonError as error:
            if error.code is ErrorCode.NOT_FOUND:
                return None
            raise

    def _parse(self, root: Path, file: TreeFile | None) -> ConstraintFile:
        if file is None:
            return ConstraintFile(data=DEFAULT, exists=False, items=(), rest={})
        cached = self._parsed.get(root)
        if cached and cached[0] is file.data and cached[1] == file.updated_at_ms:
            return cached[2]
        parsed = parse(file.data, iso(file.updated_at_ms))
        self._parsed[root] = (file.data, file.updated_at_ms, parsed)
        return parsed

    def _redact(self, text: str) -> str:
        return self._redactor.redact(text).text

    def _now(self) -> str:
        return iso(self._clock.now_ms())


def _write(root: Path, before: ConstraintFile, data: bytes) -> bool:
    expected = before.data if before.exists else None
    with disk_errors(PATH):
        return LinkedFolder(root, RULES).replace_unchanged(
            PATH, data, expected, mode=stored_files.SHARED
        )


def _conflict(message: str, reason: str, **details: str) -> DaemonError:
    return DaemonError(ErrorCode.CONSTRAINT_CONFLICT, message, reason=reason, **details)


def add_constraint(
    file: ConstraintFile, values: NewConstraint, new_id: str, now: str
) -> ConstraintFile:
    """Add a constraint at the end."""
    _check_source(values.source)
    item = _new(values, new_id, now)
    _refuse_duplicate(file, item.constraint)
    if len(file.items) >= MAX_ITEMS:
        raise _too_many()
    return _with_items(file, (*file.items, item))


def update_constraint(
    file: ConstraintFile,
    constraint_id: str,
    values: ConstraintPatch,
    now: str,
    redact: RedactConstraint,
) -> ConstraintFile:
    """Change a constraint in its place; a text that comes back redacted stays as it is."""
    old = _find_own(file, constraint_id)
    _check_source(values.source)
    if values.text == redact(old.constraint.text):
        values = msgspec.structs.replace(values, text=UNSET)
    new = _apply(old.constraint, values, now)
    if new.text != old.constraint.text:
        _refuse_duplicate(file, new)
    unchanged = msgspec.structs.replace(new, updated_at=old.constraint.updated_at) == old.constraint
    if unchanged:
        return file
    item = Item(constraint=new, rest=old.rest)
    return _with_items(file, tuple(item if each is old else each for each in file.items))


def remove_constraint(file: ConstraintFile, constraint_id: str) -> ConstraintFile:
    """Remove a constraint."""
    old = _find_own(file, constraint_id)
    return _with_items(file, tuple(each for each in file.items if each is not old))


def replace_constraints(
    file: ConstraintFile,
    texts: Sequence[str],
    new_id: Callable[[], str],
    now: str,
    redact: RedactConstraint,
) -> ConstraintFile:
    """Make `texts` the user's constraints, in this order; a text that stays keeps its entry."""
    ours = [item for item in file.items if item.constraint.source == "user"]
    rest = [item for item in file.items if item.constraint.source != "user"]
    if len(texts) + len(rest) > MAX_ITEMS:
        raise _too_many()
    stripped = [text.strip() for text in texts]
    for text in stripped:
        check_values(text, DEFAULT_TYPE, DEFAULT_PRIORITY)
    _refuse_repeats(stripped, [item.constraint.text for item in ours], redact)
    items = [
        item or _new(NewConstraint(text=text), new_id(), now)
        for item, text in zip(_existing_items(ours, stripped, redact), stripped, strict=True)
    ]
    return file if items == ours else _with_items(file, (*items, *rest))


def _existing_items(
    ours: Sequence[Item], texts: Sequence[str], redact: RedactConstraint
) -> list[Item | None]:
    """Find the entry of each text: one with the same text, else one whose redacted text it is."""
    found = _match(ours, texts, lambda text: text)
    taken = {id(item) for item in found if item}
    missing = [text for text, item in zip(texts, found, strict=True) if item is None]
    rest = (item for item in ours if id(item) not in taken)
    redacted = iter(_match(rest, missing, redact))
    return [item or next(redacted) for item in found]


def _match(
    items: Iterable[Item], texts: Sequence[str], redact: RedactConstraint
) -> list[Item | None]:
    by_text: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items if texts else ():
        by_text[redact(item.constraint.text).strip()].append(item)
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
    return Item(constraint=_apply(blank, values, now), rest={})


def _apply(constraint: Constraint, values: NewConstraint | ConstraintPatch, now: str) -> Constraint:
    changes = {
        name: value
        for name in ("text", "type", "priority", "degradable")
        if (value := getattr(values, name)) is not UNSET
    }
    if isinstance(text := changes.get("text"), str):
        changes["text"] = text.strip()
    for name in ("since", "until"):
        if (value := getattr(values, name)) is not UNSET:
            changes[name] = stored_place(value)
    new = msgspec.structs.replace(constraint, **changes, updated_at=now)
    check_values(new.text, new.type, new.priority)
    check_places(new)
    return new


def _with_items(file: ConstraintFile, items: tuple[Item, ...]) -> ConstraintFile:
    return msgspec.structs.replace(file, items=items)


def _find_own(file: ConstraintFile, constraint_id: str) -> Item:
    for item in file.items:
        if item.constraint.id == constraint_id:
            if item.constraint.source != "user":
                raise _kg_constraint_error()
            return item
    raise DaemonError(ErrorCode.CONSTRAINT_NOT_FOUND)


def _check_source(source: str | UnsetType) -> None:
    if source == "kg":
        raise _kg_constraint_error()
    if source not in {"user", UNSET}:
        raise invalid("source must be user.", field="source")


def _kg_constraint_error() -> DaemonError:
    return DaemonError(
        ErrorCode.CONTEXT_SCOPE_VIOLATION,
        "Constraints of the knowledge graph are changed there, not here.",
        source="kg",
    )


def _refuse_duplicate(file: ConstraintFile, new: Constraint) -> None:
    for item in file.items:
        other = item.constraint
        if other.id != new.id and _normalise(other.text) == _normalise(new.text):
            raise _duplicate(constraintId=other.id)


def _refuse_repeats(texts: Sequence[str], current: Sequence[str], redact: RedactConstraint) -> None:
    """Refuse repeated texts, unless the file repeats them or they are the same when redacted."""
    counts = Counter(map(_normalise, texts))
    if max(counts.values(), default=0) < 2:
        return
    allowed = Counter(map(_normalise, current)) | Counter(
        _normalise(redact(text)) for text in current
    )
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


def _normalise(text: str) -> str:
    return " ".join(normal_form("NFC", text).split())
