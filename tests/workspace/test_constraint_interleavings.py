"""Any interleaving of two daemons and a hand editor agrees with a simple list."""

import hashlib
import json
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from creonowd.clock import SteppingClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.workspace.constraints import (
    ConstraintFile,
    ConstraintPatch,
    Constraints,
    NewConstraint,
)
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.projects import Project

PATH = ".creonow/rules/constraints.json"
SECRET = "sk-abcdefghij0123456789ABCDEFGHIJ"

TEXTS = st.sampled_from(["甲", "乙", "丙", "first person", " 甲 ", "", f"key {SECRET}"])
TYPES = st.sampled_from(["plot", "world", "poem"])
WHO = st.integers(0, 1)
WHICH = st.integers(0, 5)
REVISION = st.sampled_from(["none", "current", "stale"])
OPERATIONS = st.one_of(
    st.tuples(st.just("create"), WHO, REVISION, TEXTS, TYPES),
    st.tuples(st.just("update"), WHO, REVISION, WHICH, TEXTS),
    st.tuples(st.just("delete"), WHO, REVISION, WHICH),
    st.tuples(st.just("set"), WHO, REVISION, st.lists(TEXTS, max_size=4)),
    st.tuples(st.just("hand"), TEXTS),
)


def by_hand(project: Project, document: Any) -> None:
    (project.root / PATH).parent.mkdir(parents=True, exist_ok=True)
    (project.root / PATH).write_bytes(json.dumps(document).encode())


def on_disk(project: Project) -> dict[str, Any]:
    return json.loads((project.root / PATH).read_bytes())


class Model:
    """What the constraints should be: pairs of id and text, and the kg entry that never moves."""

    def __init__(self) -> None:
        self.items: list[tuple[str, str]] = []

    def texts(self) -> list[str]:
        return [text for _, text in self.items]

    def expect(self, operation: tuple[Any, ...]) -> ErrorCode | None:
        """Return what the store must answer, before anything is changed."""
        name, _, revision, *rest = operation
        if revision == "stale":
            return ErrorCode.CONSTRAINT_CONFLICT
        if name == "create":
            kind = ErrorCode.CONSTRAINT_VALIDATION_ERROR if rest[1] == "poem" else None
            return kind or self._text(rest[0].strip(), self.texts())
        if name == "set":
            return self._all([text.strip() for text in rest[0]])
        return self._on_one(rest[0], rest[1].strip() if name == "update" else None)

    def _on_one(self, which: int, text: str | None) -> ErrorCode | None:
        if which >= len(self.items):
            return ErrorCode.CONSTRAINT_NOT_FOUND
        others = [*self.texts()[:which], *self.texts()[which + 1 :]]
        return None if text is None else self._text(text, others)

    def _text(self, text: str, others: list[str]) -> ErrorCode | None:
        if not text:
            return ErrorCode.CONSTRAINT_VALIDATION_ERROR
        return ErrorCode.CONSTRAINT_CONFLICT if text in [*others, "kg"] else None

    def _all(self, texts: list[str]) -> ErrorCode | None:
        if "" in texts:
            return ErrorCode.CONSTRAINT_VALIDATION_ERROR
        return ErrorCode.CONSTRAINT_CONFLICT if len(set(texts)) < len(texts) else None


@hypothesis_settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(operations=st.lists(OPERATIONS, max_size=12))
@example(operations=[("set", 0, "none", ["甲", "甲", ""])])
def test_any_interleaving_of_two_daemons_and_an_editor_agrees_with_a_simple_list(
    quick_path: Path, operations: list[tuple[Any, ...]]
) -> None:
    with tempfile.TemporaryDirectory(dir=quick_path) as root:
        anyio.run(_play, Path(root), operations)


async def _play(root: Path, operations: list[tuple[Any, ...]]) -> None:
    project = Project(project_id="p", name="p", root=root)
    by_hand(project, {"version": 2, "my": "field", "items": [{"text": "kg", "source": "kg"}]})
    clock = SteppingClock()
    stores = [Constraints(Tree(clock), clock, Redactor()) for _ in range(2)]
    model = Model()
    for operation in operations:
        if operation[0] == "hand":
            await _edit_by_hand(project, model, operation[1].strip())
        else:
            await _apply(stores[int(operation[1])], project, model, operation)
        for store in stores:
            file = await store.list(project)
            ours = [c for c in file.constraints if c.source == "user"]
            assert [constraint.text for constraint in ours] == model.texts()
            assert {i for i, _ in model.items if i} <= {constraint.id for constraint in ours}
            assert len(file.constraints) == len(ours) + 1
            assert file.revision == hashlib.sha256((root / PATH).read_bytes()).hexdigest()
            model.items = [(constraint.id, constraint.text) for constraint in ours]
        assert on_disk(project)["my"] == "field"


async def _edit_by_hand(project: Project, model: Model, text: str) -> None:
    if text and text not in model.texts():
        document = on_disk(project)
        document["items"].append(text)
        by_hand(project, document)
        model.items.append(("", text))


async def _apply(
    store: Constraints, project: Project, model: Model, operation: tuple[Any, ...]
) -> None:
    name, _, revision, *rest = operation
    expected = {"none": None, "current": (await store.list(project)).revision, "stale": "0"}[
        revision
    ]
    which = (
        model.items[rest[0]][0]
        if rest and isinstance(rest[0], int) and rest[0] < len(model.items)
        else "con_unknown"
    )
    calls: dict[str, Callable[[], Awaitable[ConstraintFile]]] = {
        "create": lambda: store.create(
            project, NewConstraint(text=rest[0], type=rest[1]), expected
        ),
        "update": lambda: store.update(project, which, ConstraintPatch(text=rest[1]), expected),
        "delete": lambda: store.delete(project, which, expected),
        "set": lambda: store.replace(project, rest[0], expected),
    }
    wanted = model.expect(operation)
    try:
        await calls[name]()
        answer = None
    except DaemonError as error:
        answer = error.code
    assert answer is wanted
    if answer is None:
        _follow(model, name, rest)


def _follow(model: Model, name: str, rest: list[Any]) -> None:
    if name == "create":
        model.items.append(("", rest[0].strip()))
    elif name == "update":
        model.items[rest[0]] = (model.items[rest[0]][0], rest[1].strip())
    elif name == "delete":
        del model.items[rest[0]]
    else:
        known = {text: constraint_id for constraint_id, text in model.items}
        model.items = [(known.get(text.strip(), ""), text.strip()) for text in rest[0]]
