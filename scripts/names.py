"""Find names that the package uses twice: of modules, classes and type aliases, also private ones.

A reader who meets a name must know which one is meant; an underscore before it is no difference.
Only `channels` and `cli` name their modules after the ones that they give access to.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TWINS = {"channels", "cli"}

# Constants are in capitals and other values in lower case: what is left is an alias of a type.
_ALIAS = re.compile(r"_?[A-Z]\w*[a-z]\w*")


def duplicates(package: Path) -> list[str]:
    """Return a line for every module name, and every class or alias name, that occurs twice."""
    modules: dict[str, list[str]] = defaultdict(list)
    types: dict[str, list[str]] = defaultdict(list)
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package.parent).as_posix()
        if path.stem not in {"__init__", "__main__"} and path.parent.name not in TWINS:
            modules[path.stem].append(place)
        for name in _type_names(path):
            types[name.lstrip("_")].append(place)
    return [*_names_used_twice("module", modules), *_names_used_twice("type", types)]


def _type_names(path: Path) -> Iterator[str]:
    module = ast.parse(path.read_bytes())
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in _statements(module.body):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)]) if _ALIAS.fullmatch(name):
                yield name
            case _:
                pass


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, also those behind a condition."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from _statements([*node.body, *node.orelse])


def _names_used_twice(kind: str, places: Mapping[str, list[str]]) -> Iterator[str]:
    for name, found in sorted(places.items()):
        if len(found) > 1:
            yield f"{kind} {name}: {', '.join(found)}"


def main() -> int:
    """Print the names that occur twice; the exit status is 1 if there is any."""
    found = duplicates(ROOT / "creonowd")
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
