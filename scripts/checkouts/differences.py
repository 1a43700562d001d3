"""Compare two recordings item by item, after the named volatile fields are made equal."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from scripts.checkouts.record import Item

# Times of this very run.
VOLATILE = frozenset(
    {"createdAt", "updatedAt", "updatedAtMs", "mtimeMs", "requestedAt", "nowMs", "uptimeMs", "pid"}
)
# Hashes of what holds such a time. Like ids they are numbered by their first appearance, so that
# it still matters which is the same as which.
NUMBERED = frozenset({"revision"})
DESCRIPTIONS = frozenset({"description", "summary"})
# The members' descriptions, and the captured exchanges, which are a list; a field is a mapping.
MEMBERS, EXCHANGES = "x-enumDescriptions", "examples"
SHOWN = 60
FIRST = 3

_ID = re.compile(r"\b([a-z]+)_[0-9a-z]{20}\b")


@dataclass
class Section:
    """One row of the table."""

    name: str
    items: int = 0
    errors: int = 0
    differing: int = 0
    first: list[str] = field(default_factory=list[str])

    def add(self, label: str, reply: Any, difference: str | None) -> None:
        """Count an item, and keep what differs in the first few."""
        self.items += 1
        self.errors += isinstance(reply, dict) and "error" in reply
        if difference is not None:
            self.differing += 1
            if len(self.first) < FIRST:
                self.first.append(f"{label[:200]}\n      {difference}")


def compare(ours: list[Item], theirs: list[Item]) -> list[Section]:
    """Compare what was answered; an item that only one side has differs."""
    sections: dict[str, Section] = {}
    left, right = _normal(ours), _normal(theirs)
    for key in dict.fromkeys((*left, *right)):
        section = sections.setdefault(key[0], Section(key[0]))
        if key in left and key in right:
            section.add(key[1], left[key], _differs(left[key], right[key]))
        else:
            section.add(key[1], left.get(key), f"only asked {'here' if key in left else 'there'}")
    return list(sections.values())


def contract_change(ours: list[Item], theirs: list[Item]) -> str:
    """Return in one line how the contract differs."""
    here, there = (_contract(items) for items in (ours, theirs))
    if here == there:
        return "The contract is the same, byte for byte."
    if _without_descriptions(here) == _without_descriptions(there):
        return "The contract differs only by descriptions."
    return "The contract differs by more than descriptions."


def table(sections: list[Section]) -> str:
    """Write the table, and below it the first differences."""
    width = max(len(section.name) for section in sections)
    everything = Section(
        "all",
        sum(section.items for section in sections),
        sum(section.errors for section in sections),
        sum(section.differing for section in sections),
    )
    lines = [f"{'compared':{width}}  {'items':>6}  {'errors':>6}  {'differ':>6}"]
    lines += [
        f"{row.name:{width}}  {row.items:6}  {row.errors:6}  {row.differing:6}"
        for row in (*sections, everything)
    ]
    for section in sections:
        lines += [f"  {section.name}: {one}" for one in section.first]
    return "\n".join(lines)


def _contract(items: list[Item]) -> Any:
    return next(item.reply for item in items if item.section == "contract")


def _normal(items: list[Item]) -> dict[tuple[str, str], Any]:
    """Make replies comparable, by what was asked; the same question again has a number."""
    ids: dict[str, str] = {}
    normal: dict[tuple[str, str], Any] = {}
    for item in _split(items):
        label = _with_numbered_ids(item.label, ids)
        times = 1
        while (item.section, _numbered_label(label, times)) in normal:
            times += 1
        normal[item.section, _numbered_label(label, times)] = _normal_value(item.reply, ids)
    return normal


def _numbered_label(label: str, times: int) -> str:
    return label if times == 1 else f"{label} (time {times})"


def _split(items: list[Item]) -> Iterator[Item]:
    """Take the contract apart into methods, types and the rest, without descriptions."""
    for item in items:
        if item.section != "contract":
            yield item
            continue
        document = _without_descriptions(item.reply)
        for method in document.pop("methods"):
            yield Item("contract", f"method {method['name']}", method)
        for name, schema in document["components"].pop("schemas").items():
            yield Item("contract", f"type {name}", schema)
        yield Item("contract", "the rest", document)


def _without_descriptions(value: Any) -> Any:
    """Leave descriptions out; a field that happens to have that name is no text and stays."""
    if isinstance(value, dict):
        return {
            key: _without_descriptions(inner)
            for key, inner in cast("dict[str, Any]", value).items()
            if not _describes(key, inner)
        }
    if isinstance(value, list):
        return [_without_descriptions(inner) for inner in cast("list[Any]", value)]
    return value


def _describes(key: str, value: Any) -> bool:
    if key in DESCRIPTIONS:
        return isinstance(value, str)
    return key == MEMBERS or (key == EXCHANGES and isinstance(value, list))


def _normal_value(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            _with_numbered_ids(key, ids): _field(key, inner, ids) for key, inner in fields.items()
        }
    if isinstance(value, list):
        return [_normal_value(inner, ids) for inner in cast("list[Any]", value)]
    return _with_numbered_ids(value, ids) if isinstance(value, str) else value


def _field(key: str, value: Any, ids: dict[str, str]) -> Any:
    if key in VOLATILE and value is not None:
        return "<volatile>"
    if key in NUMBERED and isinstance(value, str):
        return ids.setdefault(value, f"{key} #{len(ids)}")
    return _normal_value(value, ids)


def _with_numbered_ids(text: str, ids: dict[str, str]) -> str:
    return _ID.sub(lambda found: ids.setdefault(found[0], f"{found[1]}_#{len(ids)}"), text)


def _differs(here: Any, there: Any) -> str | None:
    """Return where two replies first differ, or None; the order of fields counts as well.

    A hash comes last: what it was made from says more.
    """
    if json.dumps(here) == json.dumps(there):
        return None
    paths = _paths(here, there, "")
    return min(paths, key=lambda path: "Hash" in path, default="the order of fields differs")


def _paths(here: Any, there: Any, path: str) -> Iterator[str]:
    match here, there:
        case {}, {}:
            yield from _fields(here, there, path)
        case [*ours], [*others]:
            for index, (one, other) in enumerate(zip(ours, others, strict=False)):
                yield from _paths(one, other, f"{path}[{index}]")
            if len(ours) != len(others):
                yield f"{path} has {len(ours)} here, {len(others)} there"
        case str(), str() if here != there:
            yield _texts(here, there, path)
        case _ if json.dumps(here) != json.dumps(there):
            one, other = (json.dumps(value, ensure_ascii=False)[:SHOWN] for value in (here, there))
            yield f"{path}: {one} here, {other} there"
        case _:
            pass


def _fields(here: dict[str, Any], there: dict[str, Any], path: str) -> Iterator[str]:
    for key in dict.fromkeys((*here, *there)):
        if key in here and key in there:
            yield from _paths(here[key], there[key], f"{path}.{key}")
        else:
            yield f"{path}.{key} is only {'here' if key in here else 'there'}"


def _texts(here: str, there: str, path: str) -> str:
    pairs = enumerate(zip(here, there, strict=False))
    at = next((n for n, (a, b) in pairs if a != b), min(len(here), len(there)))
    one, other = (repr(text[max(0, at - 10) : at + SHOWN]) for text in (here, there))
    return f"{path} at character {at}: {one} here, {other} there"
