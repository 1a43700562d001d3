"""A folder is read and written without being left through a link, even one put there just now."""

import contextlib
import ntpath
import os
import posixpath
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import safe_folder
from creonowd.storage.safe_folder import LinkedFolder, SafeFolder, problem_with
from creonowd.workspace.creonow_tree import CreonowFolder, in_scope

FOLDER = ".creonow/settings"
INSIDE = f"{FOLDER}/people"
FILE = f"{INSIDE}/a.md"

links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")

GOOD = [
    ".creonow/settings/世界观.md",
    ".creonow/settings/第一卷：风起/（上）.md",
    ".creonow/settings/……序章.md",
    ".creonow/settings/9¾站台.md",
    ".creonow/settings/👨‍👩‍👧.md",
    ".creonow/settings/a b.c.d.json",
    ".creonow/settings/console.md",
    ".creonow/settings/𠮷𡈽.txt",
    ".creonow/settings",
]

BAD = [
    ".creonow/settings/.hidden.md",
    ".creonow/settings/.hidden/world.md",
    f".creonow/settings/{'长' * 256}.md",
    f".creonow/settings/{'𠮷' * 128}.md",
    "",
    "/",
    ".",
    "..",
    "/etc/passwd",
    "//server/share/x.md",
    "\\\\server\\share\\x.md",
    "\\\\?\\C:\\x.md",
    "C:/Users/x.md",
    "C:x.md",
    "c:\\x.md",
    "世界观.md",
    "settings/世界观.md",
    ".creonow/rules/style.md",
    ".creonow/settingsx/a.md",
    ".creonow/Settings/a.md",
    ".CREONOW/settings/a.md",
    "./.creonow/settings/a.md",
    "x/../.creonow/settings/a.md",
    ".creonow/settings/",
    ".creonow/settings//a.md",
    ".creonow/settings/./a.md",
    ".creonow/settings/..",
    ".creonow/settings/../rules/style.md",
    ".creonow/settings/../../a.md",
    ".creonow/settings/..\\..\\a.md",
    ".creonow\\settings\\a.md",
    ".creonow/settings/a.md\0",
    ".creonow/settings/\0",
    ".creonow/settings/a\n.md",
    ".creonow/settings/a\x7f.md",
    ".creonow/settings/a.md:stream",
    ".creonow/settings/a.md::$DATA",
    ".creonow/settings/a.md.",
    ".creonow/settings/a.md ",
    ".creonow/settings/dir./a.md",
    ".creonow/settings/dir /a.md",
    ".creonow/settings/... /a.md",
    ".creonow/settings/CON",
    ".creonow/settings/con.md",
    ".creonow/settings/NUL.txt.md",
    ".creonow/settings/aux/a.md",
    ".creonow/settings/Com1.json",
    ".creonow/settings/LPT¹.md",
    ".creonow/settings/CON .md",
    ".creonow/settings/ＮＵＬ.md",
    ".creonow/settings/CONIN$",
    ".creonow/settings/‥/rules/style.md",
    ".creonow/settings/．．/rules/style.md",
    ".creonow/settings/․․/rules/style.md",
    ".creonow/settings/..\u200c/rules/style.md",
    ".creonow/settings/\u200b/a.md",
    ".creonow/settings／a.md",
    ".creonow/settings/..／rules／style.md",
    ".creonow/settings/..∕rules∕style.md",
    ".creonow/settings/..⁄rules.md",
    ".creonow/settings/..＼rules.md",
    ".creonow/settings/a．",
    "．creonow/settings/a.md",
    ".creonow/ѕettings/a.md",
    ".creonow/settings/" + "长" * 2000,
]

STEPS = st.sampled_from(
    ["..", ".", "", "a", "世界", "‥", "．．", "..\u200b", "C:", "con", "a.", "a ", "\\", "／", "~"]
)
NAMES = st.one_of(STEPS, st.text(min_size=0, max_size=8))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "novel" / INSIDE).mkdir(parents=True)
    (tmp_path / "novel" / FILE).write_text("inside", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("outside", encoding="utf-8")
    return tmp_path / "novel"


@pytest.fixture(params=[True, False], autouse=True)
def by_descriptor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways into a folder, the second of which is that of Windows."""
    if not request.param:
        monkeypatch.setattr(safe_folder, "BY_DESCRIPTOR", value=False)
        monkeypatch.setattr(safe_folder, "_NO_FOLLOW", 0)
    return safe_folder.BY_DESCRIPTOR


def read(root: Path) -> bytes:
    with LinkedFolder(root, FOLDER).hold(INSIDE) as folder:
        return folder.snapshot(FILE, limit=100).data


def test_a_plain_file_is_read_from_its_folder(root: Path) -> None:
    assert read(root) == b"inside"


@links
def test_a_file_swapped_for_a_link_that_leads_out_is_refused(root: Path) -> None:
    with LinkedFolder(root, FOLDER).hold(INSIDE) as folder:
        (root / FILE).unlink()
        (root / FILE).symlink_to(root.parent / "outside" / "a.md")

        with pytest.raises(DaemonError) as caught:
            folder.snapshot(FILE, limit=100)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details["reason"] == "link"


@links
def test_a_folder_swapped_for_a_link_that_leads_out_is_refused(root: Path) -> None:
    (root / INSIDE).rename(root / FOLDER / "gone")
    (root / INSIDE).symlink_to(root.parent / "outside", target_is_directory=True)

    with pytest.raises(DaemonError) as caught:
        read(root)

    assert caught.value.details["reason"] == "link"


@links
def test_a_folder_swapped_while_it_is_held_is_still_the_one_that_is_read(
    root: Path, *, by_descriptor: bool
) -> None:
    with LinkedFolder(root, FOLDER).hold(INSIDE) as folder:
        (root / INSIDE).rename(root / FOLDER / "gone")
        (root / INSIDE).symlink_to(root.parent / "outside", target_is_directory=True)

        if by_descriptor:
            assert folder.snapshot(FILE, limit=100).data == b"inside"
        else:
            with pytest.raises(DaemonError, match="leads out"):
                folder.snapshot(FILE, limit=100)


@links
def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / FOLDER / "b.md").write_text("beside", encoding="utf-8")
    (root / FILE).unlink()
    (root / FILE).symlink_to("../b.md")

    assert read(root) == b"beside"


def test_a_file_that_vanished_is_not_found(root: Path) -> None:
    with LinkedFolder(root, FOLDER).hold(INSIDE) as folder:
        (root / FILE).unlink()

        with pytest.raises(DaemonError) as caught:
            folder.snapshot(FILE, limit=100)

    assert caught.value.code is ErrorCode.NOT_FOUND


class LinkRefusedError(DaemonError):
    """What the tests' folders answer a link with."""

    def __init__(self) -> None:
        super().__init__(ErrorCode.CONTEXT_SCOPE_VIOLATION)


@pytest.fixture
def folder(tmp_path: Path) -> SafeFolder:
    """A folder with the file `a/b/file`."""
    made = SafeFolder(tmp_path / "safe", LinkRefusedError)
    made.write("a/b/file", b"ours")
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder elsewhere with a file of the same name."""
    place = tmp_path / "elsewhere"
    (place / "b").mkdir(parents=True)
    (place / "b" / "file").write_bytes(b"theirs")
    (place / "file").write_bytes(b"theirs")
    return place


def test_what_was_written_is_read_and_listed(folder: SafeFolder) -> None:
    folder.write("a/b/file", b"anew")
    folder.write("a/b/another", b"")

    assert folder.read("a/b/file") == b"anew"
    assert [name for name, _ in folder.entries("a/b")] == ["another", "file"]
    assert [name for name, _ in folder.entries("a/b", lambda name: "f" in name)] == ["file"]


def test_folders_are_private_to_their_user(folder: SafeFolder) -> None:
    made = folder.make_folder("c/d")

    assert made == folder.root / "c" / "d"
    if os.name != "nt":
        for place in (made, made.parent, folder.root):
            assert place.stat().st_mode & 0o777 == 0o700


def test_what_is_not_there_is_missing(folder: SafeFolder) -> None:
    for path in ("none", "a/none", "none/file", "a/b/file/below"):
        assert folder.is_missing(path)
        assert folder.status(path) is None
        folder.remove(path)
        folder.remove_folder(path)
    with pytest.raises(FileNotFoundError), folder.open_file("a/none"):
        pass
    assert folder.entries("none") == []


def test_a_folder_is_no_file(folder: SafeFolder) -> None:
    assert not folder.is_missing("a/b")
    assert folder.status("a/b") is None
    with pytest.raises(IsADirectoryError), folder.open_file("a/b"):
        pass


def test_a_folder_is_removed_when_it_is_empty(folder: SafeFolder) -> None:
    folder.remove_folder("a/b")
    assert not folder.is_missing("a/b/file")

    folder.remove("a/b/file")
    for path in ("a/b", "a", ""):
        folder.remove_folder(path)

    assert not folder.root.exists()


@links
@pytest.mark.parametrize("step", ["", "a", "a/b", "a/b/file"])
def test_no_step_of_a_path_may_be_a_link(folder: SafeFolder, outside: Path, step: str) -> None:
    place = folder.root / step
    place.rename(outside.parent / "moved")
    target = {"": outside.parent, "a": outside, "a/b": outside, "a/b/file": outside / "file"}[step]
    place.symlink_to(target)

    with pytest.raises(LinkRefusedError), folder.open_file("a/b/file"):
        pass
    assert folder.status("a/b/file") is None
    assert not folder.is_missing("a/b/file")
    if step != "a/b/file":
        assert folder.entries("a/b") == []
        with pytest.raises(LinkRefusedError):
            folder.write("a/b/file", b"ours")
        folder.remove("a/b/file")
        folder.remove_folder("a/b")
    assert (outside / "file").read_bytes() == (outside / "b" / "file").read_bytes() == b"theirs"


@links
def test_removing_takes_the_link_and_not_its_target(folder: SafeFolder, outside: Path) -> None:
    (folder.root / "link").symlink_to(outside / "file")

    assert "link" not in [name for name, _ in folder.entries()]
    folder.remove("link")

    assert folder.is_missing("link")
    assert (outside / "file").read_bytes() == b"theirs"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_named_pipe_blocks_nobody(folder: SafeFolder, root: Path) -> None:
    os.mkfifo(folder.root / "pipe")
    os.mkfifo(root / FOLDER / "pipe.md")

    with pytest.raises(LinkRefusedError), folder.open_file("pipe"):
        pass
    with pytest.raises(DaemonError, match="UNSUPPORTED"):
        LinkedFolder(root, FOLDER).snapshot(f"{FOLDER}/pipe.md", limit=100)


@links
def test_a_walk_finds_files_and_links_to_files_that_are_inside(root: Path) -> None:
    (root / FOLDER / "inside.md").symlink_to("people/a.md")
    (root / FOLDER / "outside.md").symlink_to(root.parent / "outside" / "a.md")
    (root / FOLDER / "folder").symlink_to(root.parent / "outside")
    (root / FOLDER / ".hidden.md").write_bytes(b"")
    (root / FOLDER / "other.txt").write_bytes(b"")

    contents = LinkedFolder(root, FOLDER).walk(lambda name: name.endswith(".md"))

    assert [path for path, _ in contents.files] == [f"{FOLDER}/inside.md", FILE]
    assert contents.unreadable == []


def test_a_walk_for_a_few_files_of_a_huge_folder_takes_little_memory(root: Path) -> None:
    for number in range(4000):
        (root / FOLDER / f"{number:04}.txt").touch()
    folder = LinkedFolder(root, FOLDER)

    tracemalloc.start()
    try:
        contents = folder.walk(lambda name: name.endswith(".txt"), most=2)
        _, most_at_once = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert [path for path, _ in contents.files] == [f"{FOLDER}/0000.txt", f"{FOLDER}/0001.txt"]
    assert contents.is_cut
    assert most_at_once < 2_000_000


def test_a_walk_ends_after_as_many_files_as_it_may_look_at(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_folder, "MOST_ENTRIES", 8)
    for inner in "abcd":
        (root / FOLDER / inner).mkdir()
        for number in range(4):
            (root / FOLDER / inner / f"{number}.txt").touch()
    asked: list[str] = []

    contents = LinkedFolder(root, FOLDER).walk(
        lambda name: name.endswith(".txt") and asked.append(name) is None, most=1
    )

    assert len(asked) == 8
    assert len(contents.files) == 1
    assert contents.is_cut


@links
def test_a_folder_that_is_a_link_is_refused(root: Path) -> None:
    (root / FOLDER).rename(root / "moved")
    (root / FOLDER).symlink_to(root / "moved")
    folder = LinkedFolder(root, FOLDER)

    for use in (
        lambda: folder.walk(bool),
        lambda: folder.snapshot(FILE, limit=100),
        lambda: folder.replace(FILE, b"new"),
        lambda: folder.add_folder(FOLDER),
    ):
        with pytest.raises(DaemonError, match="make it a plain folder"):
            use()


@links
def test_a_file_is_written_where_its_link_leads_if_that_is_inside(root: Path) -> None:
    (root / FOLDER / "inside.md").symlink_to("people/a.md")
    (root / FOLDER / "outside.md").symlink_to(root.parent / "outside" / "a.md")
    folder = LinkedFolder(root, FOLDER)

    folder.replace(f"{FOLDER}/inside.md", b"new")
    with pytest.raises(DaemonError, match="leads out"):
        folder.replace(f"{FOLDER}/outside.md", b"new")

    assert (root / FOLDER / "inside.md").is_symlink()
    assert (root / FILE).read_bytes() == b"new"
    assert (root.parent / "outside" / "a.md").read_bytes() == b"outside"


@links
def test_a_root_that_became_a_link_is_refused(root: Path) -> None:
    root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "moved")
    folder = LinkedFolder(root, FOLDER)

    for use in (
        lambda: folder.walk(bool),
        lambda: folder.snapshot(FILE, limit=100),
        lambda: folder.replace(FILE, b"new"),
        lambda: folder.add_folder(f"{FOLDER}/more"),
    ):
        with pytest.raises(DaemonError, match="has become a link"):
            use()
    assert (root / FILE).read_bytes() == b"inside"


@pytest.mark.parametrize("path", ["outside.md", f"{FOLDER}/../outside.md", "../outside/a.md"])
def test_a_path_that_leads_elsewhere_is_refused(
    root: Path, folder: SafeFolder, outside: Path, path: str
) -> None:
    for place in (root, root / ".creonow"):
        (place / "outside.md").write_bytes(b"outside")
    linked = LinkedFolder(root, FOLDER)

    with pytest.raises(DaemonError, match="leads out"):
        linked.snapshot(path, limit=100)
    assert linked.status(path) is None
    with pytest.raises(LinkRefusedError), folder.open_file(f"../{outside.name}/file"):
        pass


def free_descriptors() -> list[int]:
    """Return the numbers that the next files to be opened would get."""
    taken = [os.dup(0) for _ in range(5)]
    for descriptor in taken:
        os.close(descriptor)
    return taken


def test_no_descriptor_is_left_open(root: Path, folder: SafeFolder) -> None:
    before = free_descriptors()

    for _ in range(20):
        read(root)
        LinkedFolder(root, FOLDER).walk(bool)
        folder.read("a/b/file")
        folder.entries("a/b")
        for path in ("a/b", "a/none", "../safe"):
            with contextlib.suppress(OSError, DaemonError):
                folder.read(path)

    assert free_descriptors() == before


@pytest.mark.parametrize("path", GOOD)
def test_a_plain_path_in_its_scope_is_allowed(path: str) -> None:
    assert in_scope(path, CreonowFolder.SETTINGS) == path


@pytest.mark.parametrize("path", BAD)
def test_anything_else_is_refused_without_repeating_it(path: str) -> None:
    with pytest.raises(DaemonError) as caught:
        in_scope(path, CreonowFolder.SETTINGS)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details["field"] == "path"
    assert len(path) < 5 or path not in f"{caught.value} {caught.value.details}"


@given(st.lists(NAMES, min_size=1, max_size=6), st.sampled_from(["/", "\\", "／", "//"]))
@example(["..", "..", "x"], "\\")
def test_no_allowed_path_leaves_the_tree_on_any_system(names: list[str], separator: str) -> None:
    path = ".creonow/settings/" + separator.join(names)

    if problem_with(path) is None:
        for flavour in (posixpath, ntpath):
            base = flavour.normpath("/project/.creonow/settings")
            joined = flavour.normpath(flavour.join("/project", path))
            assert flavour.commonpath([base, joined]) == base
            assert not flavour.isabs(path)
            assert flavour.splitdrive(path)[0] == ""
        assert "\0" not in path


@given(st.text(max_size=40))
def test_whatever_is_allowed_begins_with_its_scope(path: str) -> None:
    with contextlib.suppress(DaemonError):
        assert in_scope(path, CreonowFolder.RULES).split("/")[:2] == [".creonow", "rules"]
