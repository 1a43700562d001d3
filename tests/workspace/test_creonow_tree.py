import contextlib
import os
import shutil
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from creonowd.clock import SystemClock
from creonowd.context.fragment import Layer
from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import stored_files
from creonowd.threads import BatchCache, CachedValues, CacheOnly, NotCachedError, SharedReads
from creonowd.workspace.creonow_tree import (
    LIMIT_BYTES,
    CreonowFolder,
    Folder,
    FolderReader,
    ProjectRead,
    ReadPlace,
    Tree,
    is_outline,
    layers_of,
    make_tree,
)
from creonowd.workspace.projects import Project
from testing.privileges import without_privileges

LONG_AGO = (1_600_000_000, 1_600_000_000)
links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")

WHOLE = {
    ".creonow": None,
    ".creonow/rules": None,
    ".creonow/rules/style.md": b"# Style\n\n",
    ".creonow/rules/terminology.json": b'{\n  "terms": []\n}\n',
    ".creonow/rules/constraints.json": b'{\n  "version": 1,\n  "items": []\n}\n',
    ".creonow/settings": None,
    ".creonow/skills": None,
    ".creonow/characters": None,
    ".creonow/conversations": None,
    ".creonow/cache": None,
}

NAMES = st.sampled_from(
    ["a.md", "b", "..", ".", "settings", "rules", "link", "out", "世", "secret.md"]
)

_MAZES: list[Path] = []


@pytest.fixture
def tree() -> Tree:
    return Tree(SystemClock())


def put(project: Project, path: str, data: bytes = b"x") -> Path:
    place = project.root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


def everything(root: Path) -> dict[str, bytes | None]:
    return {
        path.relative_to(root).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


async def test_ensure_makes_the_whole_tree_and_nothing_else(tree: Tree, project: Project) -> None:
    await tree.ensure(project)

    assert everything(project.root) == WHOLE
    assert await tree.exists(project)


async def test_ensure_changes_nothing_that_exists(tree: Tree, project: Project) -> None:
    put(project, ".creonow/rules/style.md", b"mine")
    put(project, ".creonow/rules/constraints.json", b"broken {")
    put(project, ".creonow/skills/a/SKILL.md", b"skill")

    await tree.ensure(project)
    await tree.ensure(project)

    assert everything(project.root) == WHOLE | {
        ".creonow/rules/style.md": b"mine",
        ".creonow/rules/constraints.json": b"broken {",
        ".creonow/skills/a": None,
        ".creonow/skills/a/SKILL.md": b"skill",
    }


@pytest.mark.parametrize("missing", [path for path in WHOLE if path != ".creonow"])
async def test_ensure_heals_a_half_made_tree(tree: Tree, project: Project, missing: str) -> None:
    await tree.ensure(project)
    place = project.root / missing
    shutil.rmtree(place) if place.is_dir() else place.unlink()

    await tree.ensure(project)

    assert everything(project.root) == WHOLE


@pytest.mark.parametrize("path", [".creonow", ".creonow/rules", ".creonow/cache"])
async def test_ensure_refuses_a_file_where_a_folder_must_be(
    tree: Tree, project: Project, path: str
) -> None:
    put(project, path, b"in the way")

    with pytest.raises(DaemonError) as caught:
        await tree.ensure(project)

    assert caught.value.code is ErrorCode.IO_ERROR
    assert caught.value.details == {"path": path, "reason": "in_the_way"}
    assert (project.root / path).read_bytes() == b"in the way"


async def test_ensure_refuses_a_folder_where_a_file_must_be(tree: Tree, project: Project) -> None:
    (project.root / ".creonow/rules/style.md").mkdir(parents=True)

    with pytest.raises(DaemonError) as caught:
        await tree.ensure(project)

    assert caught.value.details["path"] == ".creonow/rules/style.md"


@links
@pytest.mark.parametrize("path", [".creonow", ".creonow/rules"])
async def test_ensure_refuses_a_link_and_writes_nothing_behind_it(
    tree: Tree, project: Project, tmp_path: Path, path: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / path).parent.mkdir(exist_ok=True)
    (project.root / path).symlink_to(outside, target_is_directory=True)

    with pytest.raises(DaemonError) as caught:
        await tree.ensure(project)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert list(outside.iterdir()) == []


async def test_ensure_of_a_project_whose_folder_is_gone_is_not_found(
    tree: Tree, project: Project
) -> None:
    project.root.rmdir()

    with pytest.raises(DaemonError) as caught:
        await tree.ensure(project)

    assert caught.value.code is ErrorCode.NOT_FOUND
    assert not project.root.exists()


async def test_many_ensures_at_once_make_one_tree(tree: Tree, project: Project) -> None:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(tree.ensure, project)

    assert everything(project.root) == WHOLE


@pytest.mark.requirement("CN-012", "CN-014")
async def test_a_list_is_recursive_sorted_and_relative(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/b.md", b"bb")
    put(project, ".creonow/settings/世界观/地理.TXT", b"12345")
    put(project, ".creonow/settings/a.json", b"{}")
    put(project, ".creonow/rules/style.md")

    listed = await tree.list(project, CreonowFolder.SETTINGS)

    assert [(item.path, item.size_bytes) for item in listed] == [
        (".creonow/settings/a.json", 2),
        (".creonow/settings/b.md", 2),
        (".creonow/settings/世界观/地理.TXT", 5),
    ]
    assert all(item.updated_at_ms > 1_600_000_000_000 for item in listed)


async def test_a_list_holds_only_what_the_scope_is_for(tree: Tree, project: Project) -> None:
    # On Windows the console has that name in every folder.
    reserved = [] if os.name == "nt" else ["con.md"]
    for name in (
        ".hidden.md",
        "a.md~",
        "#a.md#",
        "map.png",
        ".creonow-1-2.tmp",
        *reserved,
        "b.txt",
    ):
        put(project, f".creonow/characters/{name}")
    put(project, ".creonow/characters/.git/x.md")
    put(project, ".creonow/characters/林远.md")
    put(project, ".creonow/characters/林远.json")

    listed = await tree.list(project, CreonowFolder.CHARACTERS)

    assert [item.path for item in listed] == [
        ".creonow/characters/林远.json",
        ".creonow/characters/林远.md",
    ]


async def test_without_a_tree_there_is_nothing_to_list(tree: Tree, project: Project) -> None:
    for scope in CreonowFolder:
        assert await tree.list(project, scope) == []
        assert (await tree.read_all(project, scope)).files == ()
    assert not await tree.exists(project)


async def test_a_file_is_read_as_it_is(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/世界观.md", "天\r\n地\n".encode())

    file = await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/世界观.md")

    assert file.data == "天\r\n地\n".encode()
    assert file.size_bytes == 9
    assert file.path == ".creonow/settings/世界观.md"


async def refusal(tree: Tree, project: Project, path: str) -> DaemonError:
    with pytest.raises(DaemonError) as caught:
        await tree.read(project, CreonowFolder.SETTINGS, path)
    assert str(project.root) not in f"{caught.value} {caught.value.details}"
    return caught.value


async def test_a_missing_file_is_not_found(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/a.md")

    for path in (".creonow/settings/b.md", ".creonow/settings/a.md/b.md"):
        assert (await refusal(tree, project, path)).code is ErrorCode.NOT_FOUND


async def test_a_name_too_long_for_the_disk_is_refused(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/a.md")

    error = await refusal(tree, project, f".creonow/settings/{'长' * 300}.md")

    assert error.code is ErrorCode.INVALID_ARGUMENT


async def test_a_folder_is_unsupported(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/世界/a.md")

    for path in (".creonow/settings/世界", ".creonow/settings"):
        assert (await refusal(tree, project, path)).code is ErrorCode.UNSUPPORTED


async def test_a_file_of_exactly_the_limit_is_read_and_one_more_byte_is_not(
    tree: Tree, project: Project
) -> None:
    put(project, ".creonow/settings/fits.md", b"x" * LIMIT_BYTES)
    put(project, ".creonow/settings/big.md", b"x" * (LIMIT_BYTES + 1))

    fits = await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/fits.md")
    error = await refusal(tree, project, ".creonow/settings/big.md")

    assert fits.size_bytes == LIMIT_BYTES == 4 * 1024 * 1024
    assert error.code is ErrorCode.IO_ERROR
    assert error.details["limitBytes"] == LIMIT_BYTES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="only POSIX has named pipes")
async def test_a_named_pipe_holds_nobody_up(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/a.md")
    os.mkfifo(project.root / ".creonow/settings/pipe.md")

    with anyio.fail_after(60):
        error = await refusal(tree, project, ".creonow/settings/pipe.md")
        folder = await tree.read_all(project, CreonowFolder.SETTINGS)

    assert error.code is ErrorCode.UNSUPPORTED
    assert [file.path for file in folder.files] == [".creonow/settings/a.md"]


@links
async def test_a_link_that_stays_in_its_folder_is_followed(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/real/a.md", b"inside")
    (project.root / ".creonow/settings/link.md").symlink_to("real/a.md")

    file = await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/link.md")
    listed = await tree.list(project, CreonowFolder.SETTINGS)

    assert file.data == b"inside"
    assert [item.path for item in listed] == [
        ".creonow/settings/link.md",
        ".creonow/settings/real/a.md",
    ]


@links
async def test_what_is_hidden_in_a_folder_is_read_by_no_name(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/.draft.md", b"hidden")
    (project.root / ".creonow/settings/link.md").symlink_to(".draft.md")

    listed = await tree.list(project, CreonowFolder.SETTINGS)
    both = await tree.read_all(project, CreonowFolder.SETTINGS)

    assert (listed, both.files) == ([], ())
    for name in (".draft.md", "link.md"):
        error = await refusal(tree, project, f".creonow/settings/{name}")
        assert error.code is ErrorCode.INVALID_ARGUMENT


@links
@pytest.mark.parametrize("target", ["outside", "project", "rules", "absolute"])
@pytest.mark.parametrize("kind", ["file", "folder", "scope", "tree"])
async def test_a_link_that_leaves_the_tree_is_refused_wherever_it_stands(
    tree: Tree, project: Project, tmp_path: Path, kind: str, target: str
) -> None:
    places = {
        "outside": tmp_path / "outside",
        "project": project.root / "chapters",
        "rules": project.root / ".rules",
        "absolute": tmp_path / "elsewhere",
    }
    place = places[target]
    for inner in ("settings/deep", "deep"):
        (place / inner).mkdir(parents=True)
        (place / inner / "a.md").write_bytes(b"secret")
    (place / "a.md").write_bytes(b"secret")
    link, goal, path = {
        "file": (".creonow/settings/a.md", place / "a.md", ".creonow/settings/a.md"),
        "folder": (".creonow/settings/deep", place / "deep", ".creonow/settings/deep/a.md"),
        "scope": (".creonow/settings", place, ".creonow/settings/a.md"),
        "tree": (".creonow", place, ".creonow/settings/deep/a.md"),
    }[kind]
    (project.root / link).parent.mkdir(parents=True, exist_ok=True)
    relative = os.path.relpath(goal, (project.root / link).parent)
    (project.root / link).symlink_to(goal if target == "absolute" else relative)

    error = await refusal(tree, project, path)

    assert error.code is ErrorCode.INVALID_ARGUMENT
    if kind in {"file", "folder"}:
        assert await tree.list(project, CreonowFolder.SETTINGS) == []
        assert (
            await tree.read_all(project, CreonowFolder.SETTINGS)
            == type(await tree.read_all(project, CreonowFolder.SETTINGS))()
        )
    else:
        with pytest.raises(DaemonError):
            await tree.list(project, CreonowFolder.SETTINGS)


@links
async def test_a_link_in_a_circle_is_refused(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/a.md")
    (project.root / ".creonow/settings/loop.md").symlink_to("loop.md")

    assert (
        await refusal(tree, project, ".creonow/settings/loop.md")
    ).code is ErrorCode.INVALID_ARGUMENT


@links
async def test_a_folder_swapped_for_a_link_after_reading_is_refused(
    tree: Tree, project: Project, tmp_path: Path
) -> None:
    """The file is the very same, so only its place differs."""
    file = put(project, ".creonow/settings/a.md", b"mine")
    os.utime(file, LONG_AGO)
    await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/a.md")

    (project.root / ".creonow/settings").rename(tmp_path / "moved")
    (project.root / ".creonow/settings").symlink_to(tmp_path / "moved")

    error = await refusal(tree, project, ".creonow/settings/a.md")
    assert error.code is ErrorCode.INVALID_ARGUMENT


@contextlib.contextmanager
def running_beside(work: Callable[[], None], done: threading.Event) -> Generator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@links
async def test_a_link_swapped_in_while_reading_never_shows_what_is_outside(
    tree: Tree, project: Project, tmp_path: Path
) -> None:
    put(project, ".creonow/settings/d/a.md", b"inside")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.md").write_bytes(b"outside")
    folder, aside = project.root / ".creonow/settings/d", tmp_path / "aside"
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            folder.rename(aside)
            folder.symlink_to(outside)
            folder.unlink()
            aside.rename(folder)

    seen: set[bytes | ErrorCode] = set()
    reads = 0
    with running_beside(swap, done), anyio.fail_after(60):
        while reads < 1500 or b"inside" not in seen:
            reads += 1
            try:
                file = await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/d/a.md")
                seen.add(file.data)
            except DaemonError as error:
                seen.add(error.code)

    assert b"outside" not in seen
    file = await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/d/a.md")
    assert file.data == b"inside"


@links
@hypothesis_settings(max_examples=200)
@given(parts=st.lists(NAMES, min_size=1, max_size=5))
def test_no_path_ever_shows_a_file_outside_its_scope(
    tmp_path_factory: pytest.TempPathFactory, parts: list[str]
) -> None:
    root = _maze(tmp_path_factory)
    project = Project(project_id="p", name="p", root=root)

    async def read(path: str) -> bytes | ErrorCode:
        try:
            return (await Tree(SystemClock()).read(project, CreonowFolder.SETTINGS, path)).data
        except DaemonError as error:
            return error.code

    for path in (
        "/".join(parts),
        ".creonow/" + "/".join(parts),
        ".creonow/settings/" + "/".join(parts),
    ):
        assert anyio.run(read, path) in {
            b"inside",
            ErrorCode.INVALID_ARGUMENT,
            ErrorCode.NOT_FOUND,
            ErrorCode.UNSUPPORTED,
        }


def _maze(factory: pytest.TempPathFactory) -> Path:
    """A project full of links, in which every file outside the settings says so."""
    if not _MAZES:
        root = factory.mktemp("maze") / "project"
        settings = root / ".creonow/settings"
        for folder in (settings, settings / "b", settings / "世", root / ".creonow/rules"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "a.md").write_bytes(b"outside" if folder.name == "rules" else b"inside")
        (root / "secret.md").write_bytes(b"outside")
        (root.parent / "secret.md").write_bytes(b"outside")
        (settings / "link").symlink_to("b")
        (settings / "out").symlink_to("../..")
        (settings / "rules").symlink_to("../rules")
        (settings / "b/link").symlink_to("../世/a.md")
        (settings / "b/out").symlink_to(root.parent)
        (settings / "secret.md").symlink_to("../../secret.md")
        _MAZES.append(root)
    return _MAZES[0]


async def test_read_all_gives_files_and_problems(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/a.md", b"a")
    put(project, ".creonow/settings/big.md", b"x" * (LIMIT_BYTES + 1))
    put(project, ".creonow/settings/z/b.md", b"b")

    folder = await tree.read_all(project, CreonowFolder.SETTINGS)

    assert [file.data for file in folder.files] == [b"a", b"b"]
    assert [problem.path for problem in folder.problems] == [".creonow/settings/big.md"]
    assert folder.problems[0].error.details["reason"] == "too_large"


async def test_what_has_not_changed_is_not_read_again(tree: Tree, project: Project) -> None:
    for number in range(10):
        os.utime(put(project, f".creonow/settings/{number}.md"), LONG_AGO)

    cold = await tree.read_all(project, CreonowFolder.SETTINGS)
    reads = tree.reads
    warm = await tree.read_all(project, CreonowFolder.SETTINGS)

    assert reads == 10
    assert tree.reads == reads
    assert all(a.data is b.data for a, b in zip(cold.files, warm.files, strict=True))


async def test_a_folder_in_which_nothing_changed_is_the_very_same(
    tree: Tree, project: Project
) -> None:
    for number in range(3):
        os.utime(put(project, f".creonow/settings/{number}.md"), LONG_AGO)
    before = await tree.read_all(project, CreonowFolder.SETTINGS)

    assert await tree.read_all(project, CreonowFolder.SETTINGS) is before
    (project.root / ".creonow/settings/1.md").unlink()
    assert len((await tree.read_all(project, CreonowFolder.SETTINGS)).files) == 2


async def test_a_folder_with_a_problem_is_looked_at_again(tree: Tree, project: Project) -> None:
    file = put(project, ".creonow/settings/a.md", b"x" * (LIMIT_BYTES + 1))
    os.utime(file, LONG_AGO)
    assert (await tree.read_all(project, CreonowFolder.SETTINGS)).problems

    file.write_bytes(b"x")

    assert (await tree.read_all(project, CreonowFolder.SETTINGS)).files[0].data == b"x"


@pytest.mark.parametrize("age", ["settled", "young"])
async def test_a_change_is_seen_even_if_size_and_time_stay(
    tree: Tree, project: Project, age: str
) -> None:
    file = put(project, ".creonow/settings/a.md", b"old")
    if age == "settled":
        os.utime(file, LONG_AGO)
    before = file.stat()
    await tree.read_all(project, CreonowFolder.SETTINGS)

    file.write_bytes(b"new")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    folder = await tree.read_all(project, CreonowFolder.SETTINGS)

    assert folder.files[0].data == b"new"


async def test_hundreds_of_quick_rewrites_are_all_seen(tree: Tree, project: Project) -> None:
    """Without a watcher, and faster than the disk's clock ticks."""
    file = put(project, ".creonow/settings/a.md", b"0000")

    for number in range(300):
        text = f"{number:04}".encode()
        file.write_bytes(text)
        assert (await tree.read_all(project, CreonowFolder.SETTINGS)).files[0].data == text


async def test_a_file_replaced_by_an_older_one_is_seen(tree: Tree, project: Project) -> None:
    file = put(project, ".creonow/settings/a.md", b"old")
    os.utime(file, LONG_AGO)
    await tree.read_all(project, CreonowFolder.SETTINGS)
    other = put(project, ".creonow/settings/other", b"new")
    os.utime(other, LONG_AGO)

    other.replace(file)

    assert (await tree.read_all(project, CreonowFolder.SETTINGS)).files[0].data == b"new"


async def test_a_file_replaced_again_and_again_is_always_whole(
    tree: Tree, project: Project, tmp_path: Path
) -> None:
    file = put(project, ".creonow/settings/a.md", b"a" * 10_000)
    done = threading.Event()

    def rewrite() -> None:
        while not done.is_set():
            for letter in (b"a", b"b"):
                stored_files.replace(file, letter * 10_000)

    with running_beside(rewrite, done):
        for _ in range(300):
            read = await tree.read(project, CreonowFolder.SETTINGS, ".creonow/settings/a.md")
            assert len(set(read.data)) == 1
            assert len(read.data) == 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
async def test_a_name_that_is_not_unicode_is_passed_over(tree: Tree, project: Project) -> None:
    put(project, ".creonow/settings/a.md")
    Path(os.fsdecode(os.fsencode(project.root / ".creonow/settings") + b"/\xff.md")).touch()

    listed = await tree.list(project, CreonowFolder.SETTINGS)

    assert [item.path for item in listed] == [".creonow/settings/a.md"]


@pytest.mark.skipif(os.name == "nt", reason="rights are not modes on Windows")
@pytest.mark.parametrize("locked", [".creonow", ".creonow/settings"])
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_a_folder_that_may_not_be_read_is_no_empty_folder(
    tree: Tree, locked: str, mode: int
) -> None:
    with without_privileges() as root:
        make_tree(root)
        (root / ".creonow/settings/海港.md").write_bytes(b"x")
        tree.read_all_now(root, CreonowFolder.SETTINGS)
        (root / locked).chmod(mode)
        with pytest.raises(DaemonError) as caught:
            tree.read_all_now(root, CreonowFolder.SETTINGS)
        (root / locked).chmod(0o700)
        again = tree.read_all_now(root, CreonowFolder.SETTINGS)

    assert caught.value.code is ErrorCode.IO_ERROR
    assert [file.data for file in again.files] == [b"x"]


@pytest.mark.skipif(os.name == "nt", reason="rights are not modes on Windows")
@pytest.mark.parametrize("mode", [0o000, 0o400])
def test_a_folder_inside_that_may_not_be_read_is_a_problem(tree: Tree, mode: int) -> None:
    with without_privileges() as root:
        make_tree(root)
        closed = root / ".creonow/settings/密"
        closed.mkdir()
        (closed / "海港.md").write_bytes(b"x")
        (root / ".creonow/settings/a.md").write_bytes(b"a")
        closed.chmod(mode)
        without = tree.read_all_now(root, CreonowFolder.SETTINGS)
        closed.chmod(0o700)
        again = tree.read_all_now(root, CreonowFolder.SETTINGS)

    assert [file.data for file in without.files] == [b"a"]
    (problem,) = without.problems
    assert (problem.path, problem.error.code) == (".creonow/settings/密", ErrorCode.IO_ERROR)
    assert [file.data for file in again.files] == [b"a", b"x"]
    assert again.problems == ()


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("大纲.md", "", True),
        ("提纲.txt", "", True),
        ("Outline.MD", "", True),
        ("outline.v2.json", "", True),
        (".creonow/settings/大纲.md", "", True),
        (".creonow/settings/OUTLINE.txt", "", True),
        ("计划.md", "---\nkind: outline\n---\n一、雨夜\n", True),
        ("计划.md", "\ufeff---\r\nkind: Outline\r\n---\r\n一、雨夜\r\n", True),
        (".creonow/settings/深/计划.md", "---\nkind: outline\n---\n", True),
        ("计划.md", "---\nkind: 1\n---\n", False),
        ("计划.md", "---\nkind: [outline]\n---\n", False),
        ("计划.md", "---\nkind: character\n---\n", False),
        ("计划.md", "kind: outline\n", False),
        ("计划.md", "---\nkind: &a outline\n---\n", False),
        ("章/大纲.md", "---\nkind: outline\n---\n", False),
        (".creonow/settings/深/大纲.md", "", False),
        (".creonow/characters/大纲.md", "", False),
        ("大纲二.md", "", False),
        ("outlines.md", "", False),
    ],
)
def test_what_an_outline_is(path: str, text: str, *, found: bool) -> None:
    assert is_outline(path, text) is found


def outlines_in(tree: Tree, project: Project) -> list[str]:
    return [file.path for file in tree.read_outlines_now(project.root).files]


async def test_outlines_at_the_top_are_read(tree: Tree, project: Project) -> None:
    for name in ("大纲.md", "OUTLINE.txt", "一.md", ".outline.md", "提纲.pdf"):
        (project.root / name).write_bytes("一、雨夜\n".encode())
    (project.root / "计划.md").write_bytes(b"---\nkind: outline\n---\nrain\n")
    (project.root / "outline.md").mkdir()

    first = tree.read_outlines_now(project.root)

    assert [file.path for file in first.files] == ["OUTLINE.txt", "大纲.md", "计划.md"]
    assert first.files[1].data == "一、雨夜\n".encode()
    assert tree.read_outlines_now(project.root / "gone") == Folder()


@pytest.mark.parametrize(
    ("files", "characters", "read"), [(1100, 1, 1024), (4, 2 * 1024 * 1024, 2)]
)
async def test_of_a_huge_folder_of_the_tree_the_first_files_are_read_and_the_author_is_told(
    tree: Tree, project: Project, files: int, characters: int, read: int
) -> None:
    """Fifty thousand rules, or thirty of 4 MB, took up to 830 MB."""
    folder = project.root / ".creonow" / "rules"
    folder.mkdir(parents=True)
    for number in range(files):
        (folder / f"{number:04}.md").write_bytes(b"x" * characters)

    found = await tree.read_all(project, CreonowFolder.RULES)
    listed = await tree.list(project, CreonowFolder.RULES)

    paths = [f".creonow/rules/{number:04}.md" for number in range(read)]
    assert [file.path for file in found.files] == [one.path for one in listed] == paths
    (problem,) = found.problems
    assert problem.path == ".creonow/rules"
    assert str(read) in str(problem.error)
    (folder / f"{files - 1:04}.md").unlink()
    for number in range(read, files - 1):
        (folder / f"{number:04}.md").unlink()
    assert (await tree.read_all(project, CreonowFolder.RULES)).problems == ()


def test_of_very_many_files_at_the_top_the_first_are_asked_for_an_outline(
    tree: Tree, project: Project
) -> None:
    """One that is called so is found among any number."""
    for number in range(2500):
        (project.root / f"{number:04}.md").touch()
    head = "---\nkind: outline\n---\n"
    for name in ("0007.md", "2499.md", "outline.md"):
        (project.root / name).write_text(head, encoding="utf-8")

    assert outlines_in(tree, project) == ["0007.md", "outline.md"]


async def test_an_outline_is_seen_to_come_and_go(tree: Tree, project: Project) -> None:
    file = project.root / "计划.md"
    for kind, found in (("outline", ["计划.md"]), ("chapter", []), ("outline", ["计划.md"])):
        file.write_text(f"---\nkind: {kind}\n---\n", encoding="utf-8")
        assert outlines_in(tree, project) == found
    file.unlink()

    assert outlines_in(tree, project) == []


async def test_an_outline_that_is_a_link_is_skipped(tree: Tree, project: Project) -> None:
    secret = project.root.parent / "secret.md"
    secret.write_text("secret", encoding="utf-8")
    (project.root / "大纲.md").symlink_to(secret)

    assert outlines_in(tree, project) == []


def test_a_change_of_an_outline_at_the_top_changes_the_settings() -> None:
    assert layers_of({"大纲.md"}) == (Layer.SETTINGS, Layer.RETRIEVED, Layer.IMMEDIATE)
    assert layers_of({"章/大纲.md"}) == (Layer.RETRIEVED, Layer.IMMEDIATE)


def test_what_killed_writers_left_in_a_tree_is_swept_at_its_first_use(tmp_path: Path) -> None:
    make_tree(tmp_path)
    name = ".creonow-12-3.tmp"
    places = ("", "rules", "conversations", "cache", "skills/mine")
    ours = [tmp_path / ".creonow" / place / name for place in places]
    foreign = [tmp_path / name, tmp_path / ".creonow" / "rules" / ".creonow-notes.tmp"]
    for path in (*ours, *foreign):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
        os.utime(path, (1_600_000_000, 1_600_000_000))
    under_way = tmp_path / ".creonow" / "rules" / ".creonow-12-4.tmp"
    under_way.write_bytes(b"half")

    Tree(SystemClock()).read_all_now(tmp_path, CreonowFolder.RULES)

    assert not [path for path in ours if path.exists()]
    assert all(path.exists() for path in (*foreign, under_way))


@pytest.fixture
def place(tmp_path: Path) -> ReadPlace:
    make_tree(tmp_path)
    (tmp_path / ".creonow/settings/海港.md").write_text("潮湿。", encoding="utf-8")
    project = Project(project_id="prj", name="x", root=tmp_path)
    return ReadPlace(Tree(SystemClock()), project, SharedReads())


class Reading(ProjectRead[object]):
    """A read that does what a function does, and counts how often."""

    def __init__(self, place: ReadPlace, read: Callable[[FolderReader], object]) -> None:
        super().__init__(place)
        self.name = "reading"
        self.times = 0
        self._does = read

    def read(self, folders: FolderReader) -> object:
        self.times += 1
        return self._does(folders)


def texts(folders: FolderReader) -> list[str]:
    return [file.data.decode() for file in folders.folder(CreonowFolder.SETTINGS).files]


def test_a_folder_is_read_once_in_a_round(place: ReadPlace) -> None:
    cache = BatchCache()
    first = Reading(place, texts)
    first.read_ahead(cache)
    (place.project.root / ".creonow/settings/海港.md").write_text("干燥。", encoding="utf-8")

    same_round, next_round = Reading(place, texts), Reading(place, texts)
    same_round.read_ahead(cache)
    next_round.read_ahead(BatchCache())

    assert [one.peek() for one in (first, same_round)] == [["潮湿。"]] * 2
    assert next_round.peek() == ["干燥。"]


async def test_what_was_read_ahead_is_not_read_again(place: ReadPlace) -> None:
    one = Reading(place, texts)
    one.read_ahead(BatchCache())

    with anyio.fail_after(60):
        got = [await one.get() for _ in range(3)]

    assert got == [["潮湿。"]] * 3
    assert one.times == 1
    assert one.revision() is one.peek()


async def test_without_a_round_it_is_read_in_a_thread(place: ReadPlace) -> None:
    one = Reading(place, lambda _: threading.get_ident())

    with anyio.fail_after(60):
        thread = await one.get()

    assert thread != threading.get_ident()


@pytest.mark.parametrize("fault", [ValueError("strange"), RecursionError(), KeyError("k")])
@pytest.mark.parametrize("ahead", [True, False])
async def test_who_asks_gets_what_a_read_raises(
    place: ReadPlace, fault: Exception, *, ahead: bool
) -> None:
    def fail(_: FolderReader) -> object:
        raise fault

    one = Reading(place, fail)
    if ahead:
        one.read_ahead(BatchCache())

    with anyio.fail_after(60), pytest.raises(type(fault)):
        await one.get()

    assert one.revision() is None
    assert one.times == 1


async def test_a_read_that_hangs_costs_the_others_nothing(place: ReadPlace) -> None:
    got: list[object] = []
    free = threading.Event()
    hanging, good = Reading(place, lambda _: free.wait(60)), Reading(place, texts)
    hanging.name = "hanging"

    async def ask() -> None:
        got.append(await good.get())

    try:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as doomed:
                doomed.start_soon(hanging.get)
                await anyio.wait_all_tasks_blocked()
                async with anyio.create_task_group() as group:
                    group.start_soon(ask)
                doomed.cancel_scope.cancel()
    finally:
        free.set()

    assert got == [["潮湿。"]]


def test_what_no_round_has_kept_waits_for_a_round(place: ReadPlace) -> None:
    kept, one = CachedValues(), Reading(place, texts)

    with pytest.raises(NotCachedError):
        one.read_ahead(CacheOnly(kept))
    one.read_ahead(BatchCache(kept))
    other = Reading(place, texts)
    other.read_ahead(CacheOnly(kept))

    assert other.peek() is one.peek()
    assert other.times == 0


def test_what_was_read_of_a_folder_with_problems_is_not_kept(place: ReadPlace) -> None:
    large = place.project.root / ".creonow/settings/巨著.md"
    large.write_bytes(bytes(LIMIT_BYTES + 1))
    kept = CachedValues()

    Reading(place, texts).read_ahead(BatchCache(kept))

    with pytest.raises(NotCachedError):
        Reading(place, texts).read_ahead(CacheOnly(kept))
