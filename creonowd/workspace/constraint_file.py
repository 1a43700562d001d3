"""`.creonow/rules/constraints.json` as a value: bytes in, constraints out, and back again.

Both versions of the file are read; the newer one is written. Unknown fields are kept.
"""

import codecs
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, cast

import msgspec
from msgspec import UNSET, UnsetType

from creonowd.context.language import CONSTRAINTS_FILE
from creonowd.context.timeline import LONGEST_REFERENCE
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.storage.versioned_json import refuse_newer
from creonowd.text import has_too_many_values, join_lines

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

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
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
        raise _broken(data, "`items` must be a list", 0)
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
        raise _broken(data, "the file must hold an object", 0)
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
            raise _broken(data, f"items[{number}]: {error.message}", number) from None
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
        letters = (_ALPHABET[digest // 36**place % 36] for place in range(20))
        if (derived := "con_" + "".join(letters)) not in taken:
            return derived
        number += 1


def _broken(data: bytes, problem: str, number: int) -> DaemonError:
    """Report a problem of the entry with this number, with its place in the file."""
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    places = _elements_of(text, "items") if text.lstrip().startswith("{") else []
    offset = places[number] if number < len(places) else 0
    return _broken_at(problem, *_line_and_column(text, offset))


def _broken_at(problem: str, line: int, column: int) -> DaemonError:
    return invalid(
        Wording(
            f"{PATH} is broken at line {line}, column {column}: {problem.rstrip('.')}."
            " Mend it by hand.",
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
    return _skip(text, at) + 1


def _past_comma(text: str, at: int) -> int:
    at = _skip(text, at)
    return at + 1 if text[at] == "," else at
