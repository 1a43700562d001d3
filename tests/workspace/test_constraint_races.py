"""Several processes, an editor and `kill -9`: nothing that was acknowledged is lost."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.stored_files import replace_unchanged, retry_on_windows
from creonowd.workspace.constraints import ConstraintFile, Constraints, NewConstraint
from creonowd.workspace.creonow_tree import make_tree
from creonowd.workspace.projects import Project
from testing.privileges import replaces_open_files
from tests.workspace.stores import a_store

ROOT = Path(__file__).parents[2]
PATH = ".creonow/rules/constraints.json"

WRITER = """
import asyncio, sys
from pathlib import Path
from creonowd import logs
from creonowd.clock import SystemClock
from creonowd.redaction import Redactor
from creonowd.workspace.constraints import NewConstraint
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.projects import Project
from creonowd.workspace.creonow_tree import Tree

async def main(root, name, count):
    clock = SystemClock()
    store = Constraints(Tree(clock), clock, Redactor())
    project = Project(project_id="p", name="p", root=Path(root))
    for number in range(int(count)):
        text = f"{name}-{number}"
        await store.create(project, NewConstraint(text=text))
        print(text, flush=True)

logs.quiet()
asyncio.run(main(*sys.argv[1:]))
"""


def on_disk(project: Project) -> dict[str, Any]:
    return json.loads((project.root / PATH).read_bytes())


def texts(file: ConstraintFile) -> list[str]:
    return [constraint.text for constraint in file.constraints]


async def test_many_clients_at_once_lose_nothing(project: Project) -> None:
    stores = [a_store() for _ in range(4)]

    async def add(number: int) -> None:
        await stores[number % 4].create(project, NewConstraint(text=f"约束 {number}"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(60):
                tasks.start_soon(add, number)

    assert sorted(texts(await stores[0].list(project))) == sorted(f"约束 {n}" for n in range(60))


async def test_of_many_with_one_revision_exactly_one_wins(project: Project) -> None:
    stores = [a_store() for _ in range(4)]
    revision = (await stores[0].list(project)).revision
    outcomes: list[ErrorCode | None] = []

    async def add(number: int) -> None:
        try:
            await stores[number % 4].create(project, NewConstraint(text=str(number)), revision)
            outcomes.append(None)
        except DaemonError as error:
            outcomes.append(error.code)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(add, number)

    assert outcomes.count(None) == 1
    assert outcomes.count(ErrorCode.CONSTRAINT_CONFLICT) == 19


def a_writer(project: Project, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, str(project.root), name, str(count)],
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


async def test_two_processes_lose_nothing(store: Constraints, project: Project) -> None:
    make_tree(project.root)
    writers = [a_writer(project, name, 20) for name in "AB"]
    acknowledged = {line.strip() for writer in writers for line in _output(writer)}

    assert len(acknowledged) == 40
    assert acknowledged == set(texts(await store.list(project)))


async def test_two_processes_and_a_hand_editor_lose_nothing(
    store: Constraints, project: Project
) -> None:
    """The editor saves by rename, each time adding a field to what it has just read."""
    if not replaces_open_files(project.root):
        pytest.skip("this system cannot look at a file and rename over it in one step")
    make_tree(project.root)
    writers = [a_writer(project, name, 40) for name in "AB"]
    saved = 0
    while any(writer.poll() is None for writer in writers):
        saved += _add_a_note(project, saved)
    acknowledged = {line.strip() for writer in writers for line in _output(writer)}

    kept = set(texts(await store.list(project)))
    document = on_disk(project)
    assert len(acknowledged) == 80
    assert acknowledged <= kept
    assert {f"note {number}" for number in range(saved)} <= set(document)
    assert saved > 5


def _add_a_note(project: Project, number: int) -> bool:
    """Save like a careful person: look at the file once more before renaming over it."""
    before = retry_on_windows((project.root / PATH).read_bytes)
    document = json.loads(before) | {f"note {number}": "手写"}
    data = json.dumps(document, ensure_ascii=False).encode()
    return replace_unchanged(project.root / PATH, data, before, mode=0o666)


def _output(writer: subprocess.Popen[str]) -> list[str]:
    output, _ = writer.communicate()
    return [line for line in output.splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills by the hundred need cheap processes")
def test_a_kill_at_any_moment_leaves_the_old_file_or_the_new_one(quick_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "tests.workspace.killed_writer",
        "constraints",
        str(quick_path),
    ]

    killed = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False
    )

    assert killed.returncode == 0, killed.stderr
    assert int(killed.stdout.split()[0]) == 300
    assert int(killed.stdout.split()[1]) >= 150
