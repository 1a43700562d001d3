"""What the contract says of a field or of a member: the docstring below it in the source.

The daemon itself reads no source; it serves the document that is generated from this.
"""

import ast
import inspect
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

Members = Mapping[str, str]


def field_descriptions(struct: type[msgspec.Struct]) -> dict[str, str]:
    """Return what stands below each field of a struct, inherited ones too, by its name in JSON."""
    found: dict[str, str] = {}
    for kind in reversed(struct.__mro__):
        if kind is not msgspec.Struct and isinstance(kind, msgspec.StructMeta):
            found |= _of_class(kind)
    names = {field.name: field.encode_name for field in msgspec.structs.fields(struct)}
    return {names[name]: text for name, text in found.items() if name in names}


def member_descriptions(kind: type[Enum]) -> dict[Any, str]:
    """Return what stands below each member of an enumeration, by its value."""
    found = _of_class(kind)
    return {member.value: found[member.name] for member in kind if member.name in found}


def _of_class(kind: type) -> Members:
    source = inspect.getsourcefile(kind)
    return _classes_of(source).get(kind.__qualname__, {}) if source else {}


@cache
def _classes_of(path: str) -> Mapping[str, Members]:
    return dict(_classes_in(ast.parse(Path(path).read_bytes()), ()))


def _classes_in(node: ast.AST, within: Sequence[str]) -> Iterator[tuple[str, Members]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            name = (*within, child.name)
            yield ".".join(name), dict(_descriptions_in(child.body))
            yield from _classes_in(child, name)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _classes_in(child, (*within, child.name, "<locals>"))
        else:
            yield from _classes_in(child, within)


def _descriptions_in(body: Sequence[ast.stmt]) -> Iterator[tuple[str, str]]:
    """Find assignments with a text on its own behind them."""
    for statement, after in pairwise(body):
        name = _assigned_name(statement)
        if name and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            text = after.value.value
            if isinstance(text, str):
                yield name, "\n\n".join(" ".join(part.split()) for part in text.split("\n\n"))


def _assigned_name(statement: ast.stmt) -> str | None:
    if isinstance(statement, ast.AnnAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    return target.id if isinstance(target, ast.Name) else None
