"""Which of our folders may import which: helpers know no test, and tests know no benchmark."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {"benchmarks", "e2e", "scripts", "testing", "tests"}


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


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names
