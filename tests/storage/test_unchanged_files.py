"""A revision holds as long as nothing changes, and no longer; where that is not known there is none."""

import mmap
import os
import shutil
import sys
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.storage import unchanged_files
from creonowd.storage.unchanged_files import (
    FULL_CHECK_SECONDS,
    MOST_ROOTS,
    RECENT_MS,
    RETRY_SECONDS,
    FolderRevisions,
    WatchedFolder,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has such a queue")


class HandClock(SystemClock):
    """A clock that is set by hand."""

    seconds = 100.0
    ahead_ms = 0

    def monotonic(self) -> float:
        return self.seconds

    def file_time_ms(self) -> int:
        return super().file_time_ms() + self.ahead_ms


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def revisions(clock: HandClock) -> Generator[FolderRevisions]:
    made = FolderRevisions(clock)
    yield made
    made.close()


@pytest.fixture
def root(quick_path: Path) -> Path:
    place = quick_path.resolve() / "above/novel"
    for name in ("a.md", "in/b.md", "in/deep/c.md", "hidden/d.md"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(name, encoding="utf-8")
    return place


def watched(root: Path) -> WatchedFolder:
    def enters(folder: str, name: str) -> bool:
        return name != "hidden"

    def reads(folder: str, name: str) -> bool:
        return name.endswith(".md")

    return WatchedFolder(root, enters, reads)


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def write_over(root: Path) -> None:
    with (root / "in/deep/c.md").open("r+b") as file:
        file.write(b"x")
        file.flush()


def write_and_put_the_time_back(root: Path) -> None:
    before = (root / "a.md").stat()
    write_over(root)
    os.utime(root / "in/deep/c.md", ns=(before.st_atime_ns, before.st_mtime_ns))


def swap(root: Path, folder: Path, *, by_link: bool = False) -> None:
    aside = root.parents[1] / "aside"
    folder.rename(aside)
    if by_link:
        folder.symlink_to(aside)
    else:
        shutil.copytree(aside, folder)


CHANGES: dict[str, Callable[[Path], object]] = {
    "written over": write_over,
    "written over, the time put back": write_and_put_the_time_back,
    "cut": lambda root: os.truncate(root / "a.md", 1),
    "touched": lambda root: os.utime(root / "a.md", (1, 1)),
    "made": lambda root: (root / "in/new.md").touch(),
    "removed": lambda root: (root / "in/b.md").unlink(),
    "renamed": lambda root: (root / "in/b.md").rename(root / "in/other.md"),
    "moved out": lambda root: (root / "in/b.md").rename(root.parent / "b.md"),
    "moved within": lambda root: (root / "in/b.md").rename(root / "b.md"),
    "hidden from this user": lambda root: (root / "in").chmod(0),
    "folder made": lambda root: (root / "in/new").mkdir(),
    "folder removed": lambda root: shutil.rmtree(root / "in/deep"),
    "folder replaced": lambda root: swap(root, root / "in"),
    "folder replaced by a link": lambda root: swap(root, root / "in", by_link=True),
    "root replaced": lambda root: swap(root, root),
    "root replaced by a link": lambda root: swap(root, root, by_link=True),
    "root gone": shutil.rmtree,
    "above replaced": lambda root: swap(root, root.parent),
    "above replaced by a link": lambda root: swap(root, root.parent, by_link=True),
    "above moved and put back": lambda root: root.parent.rename(root.parents[1] / "x").rename(
        root.parent
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_revision_outlives_a_change(
    revisions: FolderRevisions, root: Path, change: Callable[[Path], object]
) -> None:
    first = revisions.read(watched(root))
    assert first is not None
    assert revisions.peek(watched(root)) == first

    change(root)

    assert revisions.peek(watched(root)) is None
    assert revisions.read(watched(root)) != first


@pytest.mark.parametrize("name", ["a.md", "in/b.md"])
def test_a_file_that_stays_open_is_seen_at_each_write(
    revisions: FolderRevisions, root: Path, name: str
) -> None:
    seen: set[int | None] = set()

    with (root / name).open("ab", buffering=0) as file:
        for _ in range(200):
            seen.add(revisions.read(watched(root)))
            file.write(b"x")
            assert revisions.peek(watched(root)) is None

    assert len(seen) == 200
    assert None not in seen


def test_what_nobody_reads_changes_nothing(revisions: FolderRevisions, root: Path) -> None:
    first = revisions.read(watched(root))

    (root / "hidden/d.md").write_text("new", encoding="utf-8")
    (root / "in/x.tmp").write_text("new", encoding="utf-8")
    (root / "in/x.tmp").unlink()
    (root.parent / "beside.md").write_text("new", encoding="utf-8")
    (root.parent / "beside.md").chmod(0o600)
    (root / "a.md").read_text("utf-8")

    assert revisions.read(watched(root)) == first
    assert revisions.peek(watched(root)) == first


def test_files_in_a_folder_made_a_moment_ago_are_seen(
    revisions: FolderRevisions, root: Path
) -> None:
    revisions.read(watched(root))
    (root / "in/new/deep").mkdir(parents=True)
    (root / "in/new/deep/e.md").write_text("one", encoding="utf-8")
    first = revisions.read(watched(root))
    assert revisions.peek(watched(root)) == first

    (root / "in/new/deep/e.md").write_text("two", encoding="utf-8")

    assert revisions.peek(watched(root)) is None
    assert revisions.read(watched(root)) not in {None, first}


def test_a_folder_that_moved_within_is_known_by_its_new_path(
    revisions: FolderRevisions, root: Path
) -> None:
    revisions.read(watched(root))
    (root / "in").rename(root / "hidden/in")
    (root / "new").mkdir()
    (root / "hidden/in/deep").rename(root / "new/deep")
    first = revisions.read(watched(root))
    assert first is not None

    (root / "hidden/in/b.md").write_text("new", encoding="utf-8")
    assert revisions.read(watched(root)) == first
    (root / "new/deep/c.md").write_text("new", encoding="utf-8")
    assert revisions.read(watched(root)) not in {None, first}


def test_every_second_everything_is_looked_at_again(
    revisions: FolderRevisions, root: Path, clock: HandClock
) -> None:
    first = revisions.read(watched(root))

    clock.seconds += FULL_CHECK_SECONDS

    assert revisions.peek(watched(root)) is None
    second = revisions.read(watched(root))
    assert second not in {None, first}
    assert revisions.peek(watched(root)) == second


def test_where_every_file_is_found_as_before_the_revision_stays(
    revisions: FolderRevisions, root: Path, clock: HandClock
) -> None:
    clock.ahead_ms = RECENT_MS + 1
    first = revisions.read(watched(root))

    for _ in range(3):
        clock.seconds += FULL_CHECK_SECONDS
        assert revisions.peek(watched(root)) is None
        assert revisions.read(watched(root)) == first

    (root / "in/b.md").write_text("new", encoding="utf-8")
    clock.seconds += FULL_CHECK_SECONDS
    assert revisions.read(watched(root)) not in {None, first}


def test_a_revision_stays_only_if_no_file_was_young_at_the_check_before(
    revisions: FolderRevisions, root: Path, clock: HandClock
) -> None:
    young = revisions.read(watched(root))

    clock.ahead_ms = RECENT_MS + 1
    clock.seconds += FULL_CHECK_SECONDS
    second = revisions.read(watched(root))
    clock.seconds += FULL_CHECK_SECONDS

    assert second not in {None, young}
    assert revisions.read(watched(root)) == second


def test_what_is_written_through_memory_is_seen_at_the_next_check(
    revisions: FolderRevisions, root: Path, clock: HandClock
) -> None:
    clock.ahead_ms = RECENT_MS + 1
    with (root / "a.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        first = revisions.read(watched(root))
        memory[0] = ord("x")
        clock.ahead_ms += RECENT_MS
        clock.seconds += FULL_CHECK_SECONDS

        assert revisions.read(watched(root)) not in {None, first}


def test_what_is_written_through_memory_is_seen_when_it_is_unmapped(
    revisions: FolderRevisions, root: Path
) -> None:
    with (root / "a.md").open("r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        first = revisions.read(watched(root))
        memory[0] = ord("x")

    assert revisions.peek(watched(root)) is None
    assert revisions.read(watched(root)) not in {None, first}


def link_out(root: Path) -> None:
    os.link(root / "a.md", root.parent / "a.md")


def link_in(root: Path) -> None:
    (root.parent / "a.md").write_text("outside", encoding="utf-8")
    os.link(root.parent / "a.md", root / "in/other.md")


def many_folders(root: Path) -> None:
    for number in range(unchanged_files.MOST_FOLDERS):
        (root / f"{number}").mkdir()


UNFIT: dict[str, Callable[[Path], object]] = {
    "a file has a second name outside": link_out,
    "a file has a second name inside": link_in,
    "a link": lambda root: (root / "in/link.md").symlink_to("b.md"),
    "many folders": many_folders,
}


@pytest.mark.parametrize("make", UNFIT.values(), ids=UNFIT)
def test_where_changes_may_go_unreported_there_is_no_revision(
    revisions: FolderRevisions, root: Path, clock: HandClock, make: Callable[[Path], object]
) -> None:
    open_before = descriptors()
    make(root)

    assert revisions.read(watched(root)) is None
    clock.seconds += RETRY_SECONDS
    assert revisions.read(watched(root)) is None
    assert descriptors() == open_before


@pytest.mark.parametrize("make", [link_out, link_in])
def test_a_file_that_gets_a_second_name_has_no_revision_from_the_next_check_on(
    revisions: FolderRevisions, root: Path, clock: HandClock, make: Callable[[Path], object]
) -> None:
    assert revisions.read(watched(root)) is not None
    make(root)

    clock.seconds += FULL_CHECK_SECONDS

    assert revisions.read(watched(root)) is None


@pytest.mark.parametrize("kind", ["/proc", "/sys"])
def test_only_disks_that_report_every_change_have_revisions(
    revisions: FolderRevisions, kind: str
) -> None:
    assert revisions.read(watched(Path(kind) / "fs")) is None


def test_more_changes_than_the_queue_holds_are_one_change(
    revisions: FolderRevisions, root: Path
) -> None:
    first = revisions.read(watched(root))
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text("utf-8"))
    for _ in range(most // 2 + 10):
        (root / "in/x.tmp").touch()
        (root / "in/x.tmp").unlink()

    second = revisions.read(watched(root))

    assert second not in {None, first}
    assert revisions.peek(watched(root)) == second


def test_a_system_without_watches_left_has_no_revisions(
    root: Path, revisions: FolderRevisions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unchanged_files, "_INSIDE", 0)

    assert revisions.read(watched(root)) is None


def test_only_the_folders_used_last_are_watched(revisions: FolderRevisions, root: Path) -> None:
    open_before = descriptors()
    roots = [root / f"in/{number}" for number in range(3 * MOST_ROOTS)]
    for place in roots:
        place.mkdir()
    for place in roots:
        assert revisions.read(watched(place)) is not None

    assert revisions.peek(watched(roots[0])) is None
    assert revisions.peek(watched(roots[-1])) is not None
    assert descriptors() - open_before == 2 * MOST_ROOTS
    revisions.close()
    assert descriptors() == open_before


def test_folders_that_left_are_watched_no_more(revisions: FolderRevisions, root: Path) -> None:
    revisions.read(watched(root))
    before = watches()

    (root / "in").rename(root.parent / "in")
    revisions.read(watched(root))

    assert watches() == before - 2


def watches() -> int:
    """Count the watches of this process."""
    infos = (
        path.read_text("utf-8") for path in Path("/proc/self/fdinfo").iterdir() if path.exists()
    )
    return sum(info.count("inotify wd:") for info in infos)
