"""After a power cut no acknowledged first write is gone: each new folder is flushed into its parent."""

import os
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest

from creonowd.clock import SystemClock
from creonowd.context_files.files import Store
from creonowd.context_files.record_store import history_path
from creonowd.redaction import Redactor
from creonowd.storage import journal, stored_files
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints, NewConstraint
from creonowd.workspace.creonow_tree import Tree, make_tree
from creonowd.workspace.projects import Project, Projects
from tests.context_files.sample_files import new_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows flushes no folders")

Identity = tuple[int, int]


@pytest.fixture
def flushes(monkeypatch: pytest.MonkeyPatch) -> Counter[Identity]:
    """How often each folder was flushed to the disk."""
    counted: Counter[Identity] = Counter()
    flush = os.fsync

    def fsync(descriptor: int) -> None:
        status = os.fstat(descriptor)
        counted[status.st_dev, status.st_ino] += 1
        flush(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return counted


def identity(folder: Path) -> Identity:
    status = folder.stat()
    return status.st_dev, status.st_ino


def create_constraint(root: Path) -> None:
    clock = SystemClock()
    store = Constraints(Tree(clock), clock, Redactor())
    project = Project(project_id="prj_1", name="novel", root=root)
    anyio.run(partial(store.create, project, NewConstraint(text=clock.new_id("con"))))


def save_chat(root: Path) -> None:
    project = Project(project_id="prj_1", name="novel", root=root)
    chat = {"messages": [{"role": "user", "content": "hello"}]}
    anyio.run(Chats(SystemClock(), Redactor()).save, project, chat)


def append_history(root: Path) -> None:
    path = history_path(root / "data", "prj_1", "chat")
    journal.append(path, journal.size_of(path), b'{"n":1}')


def put_context_file(root: Path) -> None:
    conversation = Store(root / "data", SystemClock()).find_or_create("prj_1", "chat")
    conversation.put(new_file(), b"output")


def create_project_folder(root: Path) -> None:
    anyio.run(Projects(root / "data", SystemClock()).create_folder, "红楼梦")


@pytest.mark.parametrize(
    "write",
    [
        make_tree,
        create_constraint,
        save_chat,
        append_history,
        put_context_file,
        create_project_folder,
    ],
)
def test_a_first_write_flushes_each_new_folder_into_its_parent(
    tmp_path: Path, flushes: Counter[Identity], write: Callable[[Path], object]
) -> None:
    write(tmp_path)

    made = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert made
    assert [path for path in made if not flushes[identity(path.parent)]] == []


@pytest.mark.parametrize("write", [create_constraint, save_chat, append_history])
def test_a_second_write_flushes_no_folder_into_its_parent_again(
    tmp_path: Path, flushes: Counter[Identity], write: Callable[[Path], object]
) -> None:
    write(tmp_path)
    first = flushes[identity(tmp_path)]

    write(tmp_path)

    assert first
    assert flushes[identity(tmp_path)] == first


def test_a_folder_that_another_process_made_is_flushed_once(
    tmp_path: Path, flushes: Counter[Identity]
) -> None:
    """A kill may have come between its making and its flush."""
    (tmp_path / "data").mkdir()

    for _ in range(3):
        stored_files.make_folder(tmp_path / "data")

    assert flushes[identity(tmp_path)] == 1
