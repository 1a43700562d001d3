"""No call leaves a folder that is swapped for a link while the call runs, at whatever moment."""

import contextlib
import os
import sys
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event
from types import FrameType
from typing import Any

import anyio
import pytest

from creonowd.clock import SystemClock
from creonowd.context_files.archives import ExportResult
from creonowd.context_files.files import Store
from creonowd.context_files.records import Record
from creonowd.errors import DaemonError
from creonowd.redaction import Redactor
from creonowd.retrieval.document_list import documents_in
from creonowd.retrieval.passages import Database
from creonowd.retrieval.project_index import IndexScope, refresh
from creonowd.skills.library import Library, Scope
from creonowd.sources.chapter_summaries import ChapterSummary, SummaryOrigin, SummaryStore
from creonowd.sources.synopsis import read_story
from creonowd.storage import journal, stored_files
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.workspace.chats import Chats
from creonowd.workspace.constraints import Constraints, NewConstraint
from creonowd.workspace.creonow_tree import CreonowFolder, Tree, make_tree
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import take_snapshot
from testing.swaps import EVERY_SPAN, at_every_call
from tests.context_files.sample_archives import export_to
from tests.context_files.sample_files import new_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")

RULES = ".creonow/rules"


@pytest.fixture
def root(quick_path: Path) -> Path:
    for place, text in (("novel", "inside"), ("outside", "outside")):
        make_project(quick_path / place, text)
    return quick_path / "novel"


def make_project(root: Path, text: str) -> None:
    for folder in ("rules/deep", "conversations", "cache", "skills", "summaries"):
        (root / ".creonow" / folder).mkdir(parents=True)
    for name in ("a.md", "deep/b.md", f"deep/{text}.md"):
        (root / RULES / name).write_text(text, encoding="utf-8")
    (root / RULES / "link.md").symlink_to("deep/b.md")


@pytest.mark.parametrize(
    ("name", "swapped"),
    [
        ("a.md", ""),
        ("a.md", ".creonow"),
        ("a.md", RULES),
        ("link.md", RULES),
        ("deep/b.md", f"{RULES}/deep"),
    ],
)
def test_a_read_stays_inside(root: Path, swapped: str, name: str) -> None:
    def read() -> bytes:
        return LinkedFolder(root, RULES).snapshot(f"{RULES}/{name}", limit=100).data

    elsewhere = root.parent / "outside" / swapped
    results = list(at_every_call(root / swapped, elsewhere, read, EVERY_SPAN))

    assert b"inside" in results
    assert b"outside" not in results


@pytest.mark.parametrize("swapped", ["", RULES, f"{RULES}/deep"])
def test_a_list_and_a_read_of_all_stay_inside(root: Path, swapped: str) -> None:
    def read() -> set[bytes]:
        folder = Tree(SystemClock()).read_all_now(root, CreonowFolder.RULES)
        return {file.data for file in folder.files} | {file.path.encode() for file in folder.files}

    results = list(at_every_call(root / swapped, root.parent / "outside" / swapped, read))
    found = set[bytes]().union(*(each for each in results if isinstance(each, set)))

    assert b"inside" in found
    assert not [each for each in found if b"outside" in each]


@pytest.mark.parametrize("swapped", ["", RULES, f"{RULES}/deep"])
def test_a_snapshot_of_the_watcher_stays_inside(root: Path, swapped: str) -> None:
    def read() -> set[str]:
        states = take_snapshot(root)
        return {f"{folder}/{name}" for folder, state in states.items() for name in state.files}

    results = list(at_every_call(root / swapped, root.parent / "outside" / swapped, read))
    found = set[str]().union(*(each for each in results if isinstance(each, set)))

    assert f"{RULES}/deep/inside.md" in found
    assert not [each for each in found if "outside" in each]


@pytest.mark.parametrize("swapped", ["", "chapters"])
def test_a_search_for_documents_and_its_index_stay_inside(
    root: Path, quick_path: Path, swapped: str
) -> None:
    for place, text in ((root, "inside"), (root.parent / "outside", "outside")):
        (place / "chapters" / "deep").mkdir(parents=True)
        for name in (f"chapters/{text}.md", "chapters/deep/b.md"):
            (place / name).write_text(text, encoding="utf-8")
    number = count()

    def read() -> set[str]:
        database = Database(quick_path / f"{next(number)}.sqlite3")
        database.open()
        scope = IndexScope(root=root, now_ms=0, open_documents={}, finder=Redactor())
        try:
            refresh(database, scope, lambda _done, _all: None, Event())
            with database.read() as connection:
                rows = connection.execute("SELECT text FROM passages").fetchall()
        finally:
            database.remove()
        return {text for (text,) in rows} | documents_in(root).keys()

    outside = root.parent / "outside" / swapped
    results = list(at_every_call(root / swapped, outside, read, (2, None)))
    found = set[str]().union(*(each for each in results if isinstance(each, set)))

    assert {"inside", "chapters/inside.md"} <= found
    assert not [each for each in found if "outside" in each]


def test_outlines_and_the_story_stay_inside_and_wait_for_no_pipe(root: Path) -> None:
    for place, text in ((root, "inside"), (root.parent / "outside", "outside")):
        (place / f"大纲{text}.md").write_text(text, encoding="utf-8")
        (place / f"{text}.md").write_text(f"# {text}\n{text}", encoding="utf-8")

    (root / "plan.md").write_text("---\nkind: outline\n---\ninside", encoding="utf-8")
    os.mkfifo(root.parent / "outside" / "plan.md")

    def read() -> set[str]:
        folder = Tree(SystemClock()).read_outlines_now(root)
        story = read_story(root)
        problems = {problem.path for problem in folder.problems}
        return (
            {file.path + file.data.decode() for file in folder.files}
            | problems
            | {f"{one.path} {one.headings}" for one in (*story.documents, *story.outside)}
        )

    results = list(at_every_call(root, root.parent / "outside", read))
    found = set[str]().union(*(each for each in results if isinstance(each, set)))

    assert [each for each in found if "inside" in each]
    assert not [each for each in found if "outside" in each]


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return every file below a folder with its bytes, and every folder."""
    found = sorted(folder.rglob("*"))
    return {f"{path}": path.read_bytes() if path.is_file() else None for path in found}


def create_constraint(root: Path) -> None:
    clock = SystemClock()
    store = Constraints(Tree(clock), clock, Redactor())
    project = Project(project_id="prj_1", name="novel", root=root)
    text = f"rule {clock.new_id('con')}"
    anyio.run(partial(store.create, project, NewConstraint(text=text)))


def save_chat(root: Path) -> None:
    store = Chats(SystemClock(), Redactor())
    project = Project(project_id="prj_1", name="novel", root=root)
    anyio.run(store.save, project, {"messages": [{"role": "user", "content": "hello"}]})


def write_skill(root: Path) -> None:
    library = Library(root.parent / "user data", SystemClock())
    project = Project(project_id="prj_1", name="novel", root=root)
    anyio.run(library.write, Scope.PROJECT, "s", "---\nname: s\n---\n", project)


def edit_summary(root: Path) -> None:
    clock = SystemClock()
    project = Project(project_id="prj_1", name="novel", root=root)
    summary = ChapterSummary(
        document="one.md",
        digest="0" * 64,
        text="It rains.",
        brief="Rain.",
        origin=SummaryOrigin.AUTHOR,
    )
    anyio.run(SummaryStore(Tree(clock), clock).edit, project, summary)


def forget(root: Path) -> None:
    """Remove what the writes before left."""
    for path in (root / ".creonow").rglob("*.json"):
        path.unlink()


@pytest.mark.parametrize(
    ("write", "swapped"),
    [
        (create_constraint, RULES),
        (create_constraint, ".creonow/cache"),
        (create_constraint, ""),
        (save_chat, ".creonow/conversations"),
        (save_chat, ".creonow/cache"),
        (make_tree, ".creonow"),
        (write_skill, ".creonow/skills"),
        (edit_summary, ".creonow/summaries"),
    ],
)
def test_a_write_stays_inside(root: Path, write: Callable[[Path], object], swapped: str) -> None:
    outside = root.parent / "outside"
    before = contents(outside)
    write(root)

    runs = at_every_call(
        root / swapped, outside / swapped, partial(write, root), (1, 4, None), partial(forget, root)
    )
    results = list(runs)

    failed = [each for each in results if isinstance(each, Exception)]
    assert contents(outside) == before
    assert [each for each in failed if not isinstance(each, DaemonError)] == []
    assert len(failed) < len(results)


def test_no_permissions_are_given_through_a_link_in_the_place_of_a_temporary_file(
    quick_path: Path,
) -> None:
    old, diary = quick_path / "a.md", quick_path / "diary.md"
    for path, mode in ((old, 0o666), (diary, 0o600)):
        path.write_bytes(b"mine")
        path.chmod(mode)

    def swap(_frame: FrameType, event: str, called: Any) -> None:
        if event == "c_return" and called is os.open:
            for temporary in quick_path.glob("*.tmp"):
                temporary.unlink()
                temporary.symlink_to(diary)

    sys.setprofile(swap)
    try:
        with contextlib.suppress(DaemonError):
            stored_files.replace(old, b"new")
    finally:
        sys.setprofile(None)

    assert diary.stat().st_mode & 0o777 == 0o600
    assert diary.read_bytes() == b"mine"


def test_a_journal_is_written_and_cut_in_its_own_folder(quick_path: Path) -> None:
    folder, outside = quick_path / "histories" / "prj_1", quick_path / "outside"
    path = folder / "chat.jsonl"
    for place in (folder, outside):
        place.mkdir(parents=True)
        (place / path.name).write_bytes(journal.encode(b'{"n":1}') * 3)
    before = contents(outside)

    def write() -> None:
        journal.append(path, journal.size_of(path) // 2, b'{"n":2}')

    results = list(at_every_call(folder, outside, write))

    assert contents(outside) == before
    assert any(not isinstance(each, Exception) for each in results)


@pytest.mark.parametrize("swapped", ["", "artifacts", "artifacts/tool", "artifacts/refs"])
def test_a_context_file_is_written_in_its_own_folder(quick_path: Path, swapped: str) -> None:
    conversation = Store(quick_path / "data", SystemClock()).find_or_create("prj_1", "chat")
    outside = quick_path / "outside"
    outside.mkdir()
    conversation.put(new_file(), b"first")

    def write() -> Record:
        return conversation.put(new_file(), b"output")

    results = list(at_every_call(conversation.folder / swapped, outside, write))

    assert contents(outside) == {}
    assert any(not isinstance(each, Exception) for each in results)


def test_an_archive_is_written_in_its_own_folder(quick_path: Path) -> None:
    conversation = Store(quick_path / "data", SystemClock()).find_or_create("prj_1", "chat")
    conversation.put(new_file(), b"output")
    folder, outside = quick_path / "exports", quick_path / "outside"
    folder.mkdir()
    outside.mkdir()

    def write() -> ExportResult:
        return export_to(conversation, folder / "chat.zip")

    results = list(at_every_call(folder, outside, write))

    failed = [each for each in results if isinstance(each, Exception)]
    assert contents(outside) == {}
    assert [path.name for path in folder.iterdir()] == ["chat.zip"]
    assert [each for each in failed if not isinstance(each, DaemonError)] == []
    assert len(failed) < len(results)
