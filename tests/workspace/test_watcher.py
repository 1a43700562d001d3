"""Watching with what editors really do when they save, and comparing snapshots of a folder."""

import os
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from watchfiles._rust_notify import WatchfilesRustInternalError

from creonowd.clock import SystemClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace import watcher as watcher_module
from creonowd.workspace.creonow_tree import make_tree
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import (
    MAX_FOLDERS,
    ProjectChange,
    Snapshot,
    Watcher,
    changed_paths,
    take_snapshot,
    unwatched_folders,
)

STYLE = ".creonow/rules/style.md"

FOLDERS = ["", "卷一", "卷一/上", ".creonow", ".creonow/rules", ".creonow/cache", ".git"]
NAMES = ["a.md", "B.txt", "cover.png", "style.md~", ".creonow-1-1.tmp", "c.json"]
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(FOLDERS), st.sampled_from(NAMES), st.binary()),
    st.tuples(st.just("delete"), st.sampled_from(FOLDERS), st.sampled_from(NAMES)),
    st.tuples(st.just("remove"), st.sampled_from(FOLDERS[1:])),
    st.tuples(st.just("move"), st.sampled_from(FOLDERS[1:]), st.sampled_from(FOLDERS[1:])),
)


class Listener:
    """A listener that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.changes: list[ProjectChange] = []
        self._arrival = anyio.Event()

    def __call__(self, change: ProjectChange) -> None:
        self.changes.append(change)
        self._arrival.set()

    @property
    def paths(self) -> set[str]:
        return {path for change in self.changes for path in change.paths}

    async def until(self, condition: Callable[[], bool]) -> None:
        with anyio.fail_after(60):
            while not condition():
                await self._arrival.wait()
                self._arrival = anyio.Event()

    async def names(self, *paths: str) -> None:
        await self.until(lambda: set(paths) <= self.paths)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "书"
    root.mkdir()
    make_tree(root)
    return Project(project_id="prj_test", name="书", root=root)


ONE_BY_ONE = pytest.param(
    True,
    id="one by one",
    marks=pytest.mark.skipif(
        os.name == "nt", reason="a handle on an inner folder keeps Windows from deleting it"
    ),
)


@pytest.fixture(params=[ONE_BY_ONE, pytest.param(False, id="recursive")])
async def watcher(request: pytest.FixtureRequest) -> AsyncGenerator[Watcher]:
    made = Watcher(SystemClock(), per_folder=request.param)
    async with made.run():
        yield made


@pytest.fixture
async def listener(watcher: Watcher, project: Project) -> Listener:
    kept = Listener()
    await watcher.subscribe(project, "test", kept, client=True)
    return kept


async def test_changes_are_found_where_the_system_gives_no_notices(
    watcher: Watcher, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Linux all programs of a user have 128 watchers together; later there may be one again."""
    listener = Listener()

    def refuse(*_given: object) -> None:
        raise WatchfilesRustInternalError("OS file watch limit reached")

    with monkeypatch.context() as crowded:
        crowded.setattr(watcher_module, "RustNotify", refuse)
        crowded.setattr(watcher_module, "PULSE_MS", 10)
        await watcher.subscribe(project, "test", listener)
        (project.root / "一.md").write_text("第一句。", encoding="utf-8")
        await listener.names("一.md")
    (project.root / STYLE).write_text("短句。", encoding="utf-8")

    await listener.names(STYLE)

    assert all(change.watching for change in listener.changes)


async def test_a_changed_file_is_named_with_its_layer(listener: Listener, project: Project) -> None:
    (project.root / STYLE).write_text("短句。", encoding="utf-8")

    await listener.names(STYLE)

    assert listener.paths == {STYLE}
    assert listener.changes[0].layers == ("rules",)
    assert listener.changes[0].project_id == "prj_test"
    assert listener.changes[0].watching


@pytest.mark.parametrize(
    ("path", "layers"),
    [
        (".creonow/rules/禁用词.txt", ("rules",)),
        (".creonow/settings/世界观.md", ("settings", "retrieved")),
        (".creonow/settings/memory.json", ("settings", "retrieved")),
        (".creonow/characters/林远.md", ("rules", "retrieved")),
        (".creonow/skills/continue/SKILL.md", ()),
        ("第一章.md", ("retrieved", "immediate")),
        ("卷一/第二章.txt", ("retrieved", "immediate")),
    ],
)
async def test_a_new_file_touches_the_layers_of_its_place(
    listener: Listener, project: Project, path: str, layers: tuple[str, ...]
) -> None:
    place = project.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("新", encoding="utf-8")

    await listener.names(path)

    assert listener.paths == {path}
    assert listener.changes[0].layers == layers


def save_like_vim(path: Path, text: str) -> None:
    """Probe the folder, move the old file to a backup, write the new one, drop the backup."""
    (path.parent / "4913").touch()
    (path.parent / "4913").unlink()
    backup = path.with_name(path.name + "~")
    path.rename(backup)
    path.write_text(text, encoding="utf-8")
    backup.unlink()


def save_like_vscode(path: Path, text: str) -> None:
    """Truncate and write in place."""
    path.write_bytes(b"")
    path.write_text(text, encoding="utf-8")


def save_like_gedit(path: Path, text: str) -> None:
    """Write a hidden temporary file and rename it over the old one."""
    temporary = path.with_name(".goutputstream-ABC123")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def save_like_emacs(path: Path, text: str) -> None:
    """Keep an autosave and a lock beside the file, and a backup for good."""
    autosave = path.with_name(f"#{path.name}#")
    autosave.write_text(text, encoding="utf-8")
    shutil.copy2(path, path.with_name(path.name + "~"))
    path.write_text(text, encoding="utf-8")
    autosave.unlink()


def save_like_word(path: Path, text: str) -> None:
    """Write a new file, move the old one away, move the new one in, delete the old one."""
    new, old = path.with_name("~WRD0001.tmp"), path.with_name("~WRL0002.tmp")
    new.write_text(text, encoding="utf-8")
    path.rename(old)
    new.rename(path)
    old.unlink()


SAVES = [save_like_vim, save_like_vscode, save_like_gedit, save_like_emacs, save_like_word]


@pytest.mark.parametrize("save", SAVES, ids=lambda save: save.__name__)
async def test_every_way_to_save_names_the_file_and_only_the_file(
    listener: Listener, project: Project, save: Callable[[Path, str], None]
) -> None:
    chapter = project.root / "第一章.md"
    chapter.write_text("旧", encoding="utf-8")
    await listener.names("第一章.md")

    for text in ("一一", "二二"):
        listener.changes.clear()
        save(project.root / STYLE, text)
        save(chapter, text)
        await listener.names(STYLE, "第一章.md")

        assert listener.paths == {STYLE, "第一章.md"}


async def test_a_deleted_file_is_named(listener: Listener, project: Project) -> None:
    (project.root / STYLE).unlink()

    await listener.names(STYLE)

    assert listener.paths == {STYLE}


async def test_a_renamed_file_is_named_by_both_names(listener: Listener, project: Project) -> None:
    (project.root / STYLE).rename(project.root / ".creonow/rules/文风.md")

    await listener.names(STYLE, ".creonow/rules/文风.md")

    assert listener.paths == {STYLE, ".creonow/rules/文风.md"}


async def test_a_rename_of_case_only_is_named_by_both_names(
    listener: Listener, project: Project
) -> None:
    (project.root / STYLE).rename(project.root / ".creonow/rules/Style.md")

    await listener.names(STYLE, ".creonow/rules/Style.md")

    assert listener.paths == {STYLE, ".creonow/rules/Style.md"}


async def test_a_folder_deleted_and_made_again_is_still_watched(
    listener: Listener, project: Project
) -> None:
    shutil.rmtree(project.root / ".creonow")
    await listener.names(STYLE)
    listener.changes.clear()
    make_tree(project.root)
    await listener.names(STYLE)

    again = ".creonow/rules/又来.md"
    (project.root / again).write_text("又来", encoding="utf-8")

    await listener.names(again)


async def test_a_folder_replaced_in_one_go_is_still_watched(
    listener: Listener, project: Project
) -> None:
    shutil.rmtree(project.root / ".creonow/rules")
    (project.root / ".creonow/rules").mkdir()
    (project.root / STYLE).write_text("换", encoding="utf-8")
    await listener.names(STYLE)
    await listener.names(".creonow/rules/constraints.json")
    listener.changes.clear()

    (project.root / STYLE).write_text("再换", encoding="utf-8")
    await listener.names(STYLE)

    assert listener.paths == {STYLE}


async def test_files_deep_in_new_folders_are_named(listener: Listener, project: Project) -> None:
    deep = project.root / "卷一" / "上" / "甲"
    deep.mkdir(parents=True)
    (deep / "一.md").write_text("一", encoding="utf-8")
    await listener.names("卷一/上/甲/一.md")
    listener.changes.clear()

    (deep / "二.md").write_text("二", encoding="utf-8")
    await listener.names("卷一/上/甲/二.md")

    assert listener.paths == {"卷一/上/甲/二.md"}


async def test_a_moved_folder_names_every_file_twice(listener: Listener, project: Project) -> None:
    (project.root / "old").mkdir()
    (project.root / "old/a.md").write_text("a", encoding="utf-8")
    await listener.names("old/a.md")
    listener.changes.clear()

    (project.root / "old").rename(project.root / "new")
    await listener.names("old/a.md", "new/a.md")

    assert listener.paths == {"old/a.md", "new/a.md"}


async def test_a_burst_of_a_thousand_files_loses_none(listener: Listener, project: Project) -> None:
    folder = project.root / ".creonow/settings/burst"
    expected = {f".creonow/settings/burst/{number}.md" for number in range(1000)}

    folder.mkdir()
    for number in range(1000):
        (folder / f"{number}.md").write_text(str(number), encoding="utf-8")
    await listener.names(*expected)

    assert listener.paths == expected
    assert len(listener.changes) < 100


async def test_what_is_not_relevant_is_not_reported(listener: Listener, project: Project) -> None:
    for path in (
        ".git/index.md",
        "node_modules/x/readme.md",
        ".creonow/cache/write.lock",
        ".creonow/rules/.style.md.swp",
        ".creonow/rules/.creonow-1-1.tmp",
        "cover.png",
        ".hidden.md",
    ):
        (project.root / path).parent.mkdir(parents=True, exist_ok=True)
        (project.root / path).write_text("x", encoding="utf-8")
    (project.root / STYLE).write_text("done", encoding="utf-8")
    await listener.names(STYLE)

    assert listener.paths == {STYLE}


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_out_of_the_project_is_not_followed(
    listener: Listener, project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / "link").symlink_to(outside, target_is_directory=True)
    (outside / "secret.md").write_text("x", encoding="utf-8")
    (project.root / STYLE).write_text("done", encoding="utf-8")
    await listener.names(STYLE)

    assert listener.paths == {STYLE}


async def test_two_listeners_hear_and_one_may_leave(
    watcher: Watcher, listener: Listener, project: Project
) -> None:
    other = Listener()
    await watcher.subscribe(project, "other", other, client=True)
    (project.root / STYLE).write_text("一", encoding="utf-8")
    await listener.names(STYLE)
    await other.names(STYLE)

    await watcher.unsubscribe(project.project_id, "other")
    (project.root / "一.md").write_text("一", encoding="utf-8")
    await listener.names("一.md")

    assert other.paths == {STYLE}
    assert watcher.is_watched(project.project_id)


async def test_subscribing_twice_is_subscribing_once(
    watcher: Watcher, listener: Listener, project: Project
) -> None:
    await watcher.subscribe(project, "test", listener, client=True)
    (project.root / STYLE).write_text("一", encoding="utf-8")
    await listener.names(STYLE)

    assert len(listener.changes) == 1
    await watcher.unsubscribe(project.project_id, "test")
    assert not watcher.is_watched(project.project_id)


async def test_stopping_leaves_nothing_running(watcher: Watcher, project: Project) -> None:
    handles = Path("/proc/self/fd")
    counted = sys.platform == "linux"  # Wine shows that folder too
    before = len(list(handles.iterdir())) if counted else 0

    for _ in range(5):
        await watcher.subscribe(project, "test", Listener(), client=True)
        assert watcher.is_watched(project.project_id)
        await watcher.unsubscribe(project.project_id, "test")
        assert not watcher.is_watched(project.project_id)

    with anyio.fail_after(60):
        while counted and len(list(handles.iterdir())) > before:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def test_a_listener_that_is_no_client_does_not_count_as_watching(
    watcher: Watcher, project: Project
) -> None:
    await watcher.subscribe(project, "index", Listener())

    assert not watcher.is_watched(project.project_id)


async def test_a_client_that_hangs_up_stops_the_watching(
    watcher: Watcher, listener: Listener, project: Project
) -> None:
    watcher.drop("test")

    assert not watcher.is_watched(project.project_id)
    again = Listener()
    await watcher.subscribe(project, "again", again, client=True)
    (project.root / STYLE).write_text("一", encoding="utf-8")
    await again.names(STYLE)
    assert listener.changes == []


async def test_a_project_that_vanishes_is_reported_and_can_be_watched_again(
    watcher: Watcher, listener: Listener, project: Project
) -> None:
    shutil.rmtree(project.root)
    await listener.until(lambda: any(not change.watching for change in listener.changes))

    assert not watcher.is_watched(project.project_id)
    make_again(project.root)
    again = Listener()
    await watcher.subscribe(project, "test", again, client=True)
    assert watcher.is_watched(project.project_id)
    (project.root / STYLE).write_text("一", encoding="utf-8")
    await again.names(STYLE)


@pytest.mark.skipif(os.name == "nt", reason="Windows moves no folder that has a watched one in it")
async def test_a_project_whose_parent_folder_is_moved_is_missed_without_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("creonowd.workspace.watcher.PULSE_MS", 50)
    root = tmp_path / "books" / "novel"
    root.mkdir(parents=True)
    make_tree(root)
    project = Project(project_id="prj_test", name="novel", root=root)
    listener = Listener()

    async with (watcher := Watcher(SystemClock())).run():
        await watcher.subscribe(project, "test", listener, client=True)
        (tmp_path / "books").rename(tmp_path / "elsewhere")
        await listener.until(lambda: any(not change.watching for change in listener.changes))

    assert not watcher.is_watched("prj_test")


def make_again(root: Path) -> None:
    root.mkdir()
    make_tree(root)


async def test_a_project_that_is_replaced_at_once_stays_watched(
    watcher: Watcher, listener: Listener, project: Project, tmp_path: Path
) -> None:
    fresh = tmp_path / "fresh"
    make_again(fresh)
    (fresh / "一.md").write_text("一", encoding="utf-8")
    project.root.rename(tmp_path / "away")
    fresh.rename(project.root)
    await listener.names("一.md")
    listener.changes.clear()

    (project.root / STYLE).write_text("一", encoding="utf-8")
    await listener.names(STYLE)

    assert watcher.is_watched(project.project_id)


async def test_a_project_without_a_folder_cannot_be_watched(
    watcher: Watcher, tmp_path: Path
) -> None:
    gone = Project(project_id="prj_gone", name="gone", root=tmp_path / "gone")

    with pytest.raises(DaemonError) as caught:
        await watcher.subscribe(gone, "test", Listener(), client=True)

    assert caught.value.code is ErrorCode.NOT_FOUND
    assert not watcher.is_watched("prj_gone")


async def test_a_forgotten_project_is_no_longer_watched(
    watcher: Watcher, listener: Listener, project: Project
) -> None:
    await watcher.forget(project.project_id)

    assert not watcher.is_watched(project.project_id)
    assert [change.watching for change in listener.changes] == [False]


async def test_the_end_of_the_daemon_ends_the_watching_at_once(project: Project) -> None:
    watcher = Watcher(SystemClock())

    with anyio.fail_after(60):
        async with watcher.run():
            await watcher.subscribe(project, "test", Listener(), client=True)

    assert not watcher.is_watched(project.project_id)


async def test_starting_and_stopping_at_once_ends_in_a_true_state(
    watcher: Watcher, project: Project
) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for number in range(10):
                tasks.start_soon(watcher.subscribe, project, str(number), Listener())
                tasks.start_soon(watcher.unsubscribe, project.project_id, str(number))
        for number in range(10):
            await watcher.unsubscribe(project.project_id, str(number))

    assert not watcher.is_watched(project.project_id)


async def test_someone_who_hangs_up_does_not_stop_what_another_is_starting(
    watcher: Watcher, project: Project
) -> None:
    listener = Listener()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(watcher.subscribe, project, "test", listener, client=True))
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
            watcher.drop("another")

    assert watcher.is_watched(project.project_id)
    (project.root / STYLE).write_text("一", encoding="utf-8")
    await listener.names(STYLE)


async def test_a_start_that_is_given_up_leaves_nothing_running(
    watcher: Watcher, project: Project
) -> None:
    with anyio.fail_after(60):
        for _ in range(5):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await watcher.subscribe(project, "test", Listener(), client=True)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watcher.subscribe, project, "late", Listener())
            await anyio.lowlevel.checkpoint()
            tasks.cancel_scope.cancel()
        again = Listener()
        await watcher.subscribe(project, "again", again, client=True)
        (project.root / STYLE).write_text("一", encoding="utf-8")
        await again.names(STYLE)
        await watcher.unsubscribe(project.project_id, "again")

    assert not watcher.is_watched(project.project_id)


def changed_by(root: Path, step: tuple[object, ...]) -> set[str]:
    """Do one thing to the folder, and name what a system would notify of."""
    match step:
        case "write", str(folder), str(name), bytes(data):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / name).write_bytes(data)
            return {f"{folder}/{name}".lstrip("/"), *_up(folder)}
        case "delete", str(folder), str(name):
            (root / folder / name).unlink(missing_ok=True)
            return {f"{folder}/{name}".lstrip("/")}
        case "remove", str(folder):
            shutil.rmtree(root / folder, ignore_errors=True)
            return {folder}
        case "move", str(folder), str(other):
            if (root / folder).exists() and not (root / other).exists() and folder not in other:
                (root / other).parent.mkdir(parents=True, exist_ok=True)
                (root / folder).rename(root / other)
            return {folder, other, *_up(other)}
        case _:
            raise AssertionError(step)


def _up(folder: str) -> set[str]:
    names = folder.split("/")
    return {"/".join(names[:count]) for count in range(1, len(names) + 1)} - {""}


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=12))
def test_looking_only_where_something_happened_sees_everything(
    quick_path: Path, steps: list[tuple[object, ...]]
) -> None:
    with tempfile.TemporaryDirectory(dir=quick_path) as place:
        root = Path(place)
        view = take_snapshot(root)
        for step in steps:
            before = view
            named = changed_by(root, step)
            dirty = frozenset(named | {path.rpartition("/")[0] for path in named})
            view = take_snapshot(root, view, dirty)

            assert view == take_snapshot(root)
            assert changed_paths(before, view) <= _files(before) | _files(view)
            assert not any(path.endswith(("~", ".tmp")) for path in _files(view))
            assert not any(path.startswith((".git", ".creonow/cache")) for path in _files(view))


def _files(view: Snapshot) -> set[str]:
    return {f"{folder}/{name}".lstrip("/") for folder, seen in view.items() for name in seen.files}


def test_what_did_not_change_is_no_difference(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"a")

    assert changed_paths(take_snapshot(tmp_path), take_snapshot(tmp_path)) == set()


def test_a_folder_that_is_gone_is_an_empty_view(tmp_path: Path) -> None:
    assert take_snapshot(tmp_path / "gone") == {}


def test_of_a_folder_with_very_many_files_only_the_first_are_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("c.md", "a.md", "b.md", "d.md"):
        (tmp_path / name).touch()
    monkeypatch.setattr(watcher_module, "MAX_FILES", 2)

    snapshot = take_snapshot(tmp_path)

    assert list(snapshot[""].files) == ["a.md", "b.md"]
    assert unwatched_folders(snapshot) == 1


def test_of_a_folder_of_the_tree_no_more_is_remembered_than_anybody_looks_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "MAX_TREE_FILES", 2)
    folder = tmp_path / ".creonow" / "rules"
    folder.mkdir(parents=True)
    for name in ("a.md", "b.md", "c.md"):
        (folder / name).touch()
        (tmp_path / name).touch()

    snapshot = take_snapshot(tmp_path)

    assert list(snapshot[".creonow/rules"].files) == ["a.md", "b.md"]
    assert list(snapshot[""].files) == ["a.md", "b.md", "c.md"]
    assert unwatched_folders(snapshot) == 1


def test_a_second_look_at_everything_keeps_what_did_not_change(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "1.md").touch()
    before = take_snapshot(tmp_path)
    (tmp_path / "b" / "2.md").touch()

    after = take_snapshot(tmp_path, before, None)

    assert after["a"] is before["a"]
    assert set(after["b"].files) == {"1.md", "2.md"}


def test_no_more_folders_are_followed_than_the_system_can_spare(quick_path: Path) -> None:
    for number in range(MAX_FOLDERS + 50):
        (quick_path / f"{number}").mkdir()

    snapshot = take_snapshot(quick_path)
    again = take_snapshot(quick_path, snapshot, frozenset({"", "7"}))

    assert len(snapshot) == len(again) == MAX_FOLDERS
    assert unwatched_folders(snapshot) == 51


def test_folders_that_just_fit_are_all_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "MAX_FOLDERS", 3)
    (tmp_path / "a" / "b").mkdir(parents=True)

    snapshot = take_snapshot(tmp_path)

    assert set(snapshot) == {"", "a", "a/b"}
    assert unwatched_folders(snapshot) == 0


async def test_a_project_with_too_many_folders_is_named(
    watcher: Watcher, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "MAX_FOLDERS", 3)
    listener = Listener()

    await watcher.subscribe(project, "a", listener)
    (project.root / "near.md").write_text("雪", encoding="utf-8")
    await listener.names("near.md")

    assert watcher.projects_over_limit() == [project.project_id]


@pytest.mark.parametrize("spread", ["{}/a.md", "{}.md"], ids=["many folders", "many files"])
def test_a_look_at_a_huge_project_ends_where_it_is_stopped(quick_path: Path, spread: str) -> None:
    """A project is forgotten at once, however long it takes to look through."""
    for number in range(2000):
        path = quick_path / spread.format(number)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    looks = count()

    snapshot = take_snapshot(quick_path, is_stopped=lambda: next(looks) >= 3)

    assert len(snapshot) <= 2
    assert sum(len(state.files) for state in snapshot.values()) <= 2
    assert next(looks) < 10
