"""Which test or benchmark names which row, found by reading the sources.

Knows how a row is named in Python, in JavaScript and in a benchmark; knows no row.
"""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from creonowd.model import Model

COMMENT = re.compile(r"^(?://|#)\s*requirement:\s*(.+)$")
JAVASCRIPT = ("*.test.mjs", "*.test.cjs", "*.test.js", "*.test.ts")
IDLE = {"skip", "xfail"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Mention(Model):
    """One test, or one benchmark, that says it shows a row."""

    id: str
    path: str
    test: str
    bench: bool = False


def find_mentions(root: Path) -> tuple[list[Mention], list[str]]:
    """Find every row that is named, and every mark that stands where nothing runs."""
    mentions: list[Mention] = []
    problems: list[str] = []
    for path in _files(root, ("tests", "e2e"), ("*.py",)):
        found, strays = _in_python(path, path.relative_to(root).as_posix())
        mentions.extend(found)
        problems.extend(strays)
    for path in _files(root, ("protocol", "e2e", "tests"), JAVASCRIPT):
        mentions.extend(_in_comments(_lines(path), path.relative_to(root).as_posix()))
    for path in _files(root, ("benchmarks",), ("*.py",)):
        name = path.relative_to(root).as_posix()
        mentions.extend(_in_comments(_python_comments(path), name, bench=True))
    return mentions, problems


def _files(root: Path, places: Iterable[str], patterns: Iterable[str]) -> list[Path]:
    found = (p for place in places for pattern in patterns for p in (root / place).rglob(pattern))
    return sorted(path for path in found if "node_modules" not in path.parts)


def _in_python(path: Path, name: str) -> tuple[list[Mention], list[str]]:
    tree = ast.parse(path.read_bytes(), filename=name)
    strays = {mark.lineno for mark in _calls(tree)}
    mentions: list[Mention] = []
    for test in _running(tree) if path.name.startswith("test_") else ():
        for mark in (call for decorator in test.decorator_list for call in _calls(decorator)):
            rows = _literals(mark)
            mentions.extend(Mention(id=row, path=name, test=test.name) for row in rows)
            strays -= {mark.lineno} if rows else set()
    return mentions, [f"{name}:{line}: this mark shows nothing" for line in sorted(strays)]


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """Find `pytest.mark.requirement(…)`, also inside a `pytest.param`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _mark_name(node) == "requirement":
            yield node


def _running(tree: ast.Module) -> Iterator[Function]:
    """Yield the tests that pytest runs and expects to pass."""
    functions = (node for node in tree.body if isinstance(node, Function))
    for test in (node for node in functions if node.name.startswith("test")):
        if IDLE.isdisjoint(_mark_name(decorator) for decorator in test.decorator_list):
            yield test


def _mark_name(node: ast.expr) -> str | None:
    """Return NAME of `pytest.mark.NAME` and `pytest.mark.NAME(…)`."""
    match node:
        case ast.Attribute(value=ast.Attribute(attr="mark"), attr=name):
            return name
        case ast.Call(func=ast.Attribute() as func):
            return _mark_name(func)
        case _:
            return None


def _literals(mark: ast.Call) -> list[str]:
    values = [arg.value for arg in mark.args if isinstance(arg, ast.Constant)]
    rows = [value for value in values if isinstance(value, str)]
    return rows if len(rows) == len(mark.args) else []


def _in_comments(lines: Iterable[str], name: str, *, bench: bool = False) -> Iterator[Mention]:
    for line in lines:
        if found := COMMENT.match(line.strip()):
            rows = re.split(r"[,\s]+", found[1].strip())
            yield from (Mention(id=row, path=name, test=name, bench=bench) for row in rows)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _python_comments(path: Path) -> Iterator[str]:
    with path.open("rb") as source:
        tokens = tokenize.tokenize(source.readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)
