"""What clients may do to constraints, as pure functions from one file to the next.

Knows rules, not disks. Constraints of the knowledge graph are nobody's to change.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.workspace.constraint_file import (
    DEFAULT_PRIORITY,
    DEFAULT_TYPE,
    MAX_ITEMS,
    TYPES,
    Constraint,
    ConstraintFile,
    Item,
    check_values,
    invalid,
)

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
