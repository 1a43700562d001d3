"""Which of our folders may import which, and what the core may use beside its imports.

Helpers know no test, and tests know no benchmark. That `context` and `rpc` import nothing that
reaches a disk, a network or a clock is a contract in `pyproject.toml`.
"""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"benchmarks", "e2e", "scripts", "testing", "tests"}
CORE = ("context", "rpc")
# Python has these without an import.
NEEDS_NO_IMPORT = {"__import__", "breakpoint", "input", "open", "print"}
# What anyio offers beside these opens files, sockets and processes.
OF_ANYIO = {
    *("CancelScope", "CapacityLimiter", "Event", "Lock", "TaskGroup", "abc", "create_task_group"),
    *(
        "current_time",
        "fail_after",
        "from_thread",
        "lowlevel",
        "move_on_after",
        "sleep",
        "to_thread",
    ),
}


@pytest.mark.parametrize(
    ("folder", "allowed"),
    [
        ("creonowd", set[str]()),
        ("testing", {"testing"}),
        ("tests", {"scripts", "testing", "tests"}),
        ("e2e", {"e2e", "testing"}),
        ("benchmarks", {"benchmarks", "scripts", "testing"}),
    ],
)
def test_a_folder_imports_only_what_it_may(folder: str, allowed: set[str]) -> None:
    imported = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (ROOT / folder).rglob("*.py")
        for name in _imports(path)
    }

    assert imported
    assert {(path, name) for path, name in imported if name in FOLDERS - allowed} == set()


@pytest.mark.parametrize("package", CORE)
def test_the_core_reaches_no_disk_without_an_import(package: str) -> None:
    used = {
        (path.name, name)
        for path in (ROOT / "creonowd" / package).rglob("*.py")
        for name in _builtins_and_parts_of_anyio(ast.parse(path.read_bytes()))
    }

    assert used
    assert {(path, name) for path, name in used if name not in OF_ANYIO} == set()


def _builtins_and_parts_of_anyio(module: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Name(id=name)) if name in NEEDS_NO_IMPORT:
                names.add(name)
            case ast.Attribute(value=ast.Name(id="anyio"), attr=name):
                names.add(name)
            case ast.ImportFrom(module=str(source), names=found) if source.startswith("anyio"):
                names |= {alias.name for alias in found}
            case _:
                pass
    return names


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
