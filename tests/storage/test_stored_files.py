"""A file is replaced, created, swapped or appended to as a whole, whoever is killed or writes too."""

import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import LinkedFolder, SafeFolder, invalid_path
from creonowd.storage.stored_files import SHARED, disk_errors, replace_unchanged, swap
from testing.privileges import replaces_open_files


def test_replacing_a_file_leaves_only_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "设定.json"
    path.write_bytes(b"old")

    stored_files.replace(path, "新\r\n".encode())

    assert path.read_bytes() == "新\r\n".encode()
    assert [entry.name for entry in tmp_path.iterdir()] == ["设定.json"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_an_existing_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b"old")
    path.chmod(0o640)

    stored_files.replace(path, b"new")

    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits")
def test_a_new_file_is_private_by_default(tmp_path: Path) -> None:
    stored_files.replace(tmp_path / "secret", b"x")

    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_a_missing_folder_is_an_io_error_without_a_path(tmp_path: Path) -> None:
    with pytest.raises(DaemonError) as caught:
        stored_files.replace(tmp_path / "gone" / "a.json", b"x")

    assert caught.value.code is ErrorCode.IO_ERROR
    assert str(tmp_path) not in f"{caught.value} {caught.value.details}"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_storage_full_without_a_path(number: int, tmp_path: Path) -> None:
    with pytest.raises(DaemonError) as caught, disk_errors("a.json"):
        raise OSError(number, "No space left on device", str(tmp_path))

    assert caught.value.code is ErrorCode.STORAGE_FULL
    assert str(tmp_path) not in f"{caught.value} {caught.value.details}"


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="only Linux has a disk that is always full"
)
def test_appending_to_a_full_disk_is_storage_full() -> None:
    with pytest.raises(DaemonError) as caught:
        stored_files.append(Path("/dev/full"), b"line\n")

    assert caught.value.code is ErrorCode.STORAGE_FULL


def test_appending_adds_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"

    stored_files.append(path, b"one\n")
    stored_files.append(path, b"two\n")

    assert path.read_bytes() == b"one\ntwo\n"


def test_a_sweep_removes_leftovers_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / ".creonow-1-0.tmp").write_bytes(b"half")
    (tmp_path / "notes.tmp").write_bytes(b"mine")

    (tmp_path / ".creonow-1-1.tmp").write_bytes(b"under way")
    os.utime(tmp_path / ".creonow-1-0.tmp", (1000, 1000))

    (tmp_path / ".creonow-1-notes.tmp").write_bytes(b"mine too")
    os.utime(tmp_path / ".creonow-1-notes.tmp", (1000, 1000))

    SafeFolder(tmp_path, lambda: invalid_path("link")).sweep("", before_ms=2_000_000)

    assert {entry.name for entry in tmp_path.iterdir()} == {
        ".creonow-1-1.tmp",
        ".creonow-1-notes.tmp",
        "notes.tmp",
    }


def test_a_leftover_of_a_dead_process_does_not_stand_in_the_way(tmp_path: Path) -> None:
    temporary, descriptor = stored_files.create_temporary(tmp_path, 0o600)
    os.close(descriptor)
    number = int(temporary.stem.rpartition("-")[2])
    for following in range(number + 1, number + 4):
        temporary.with_name(f".creonow-{os.getpid()}-{following}.tmp").write_bytes(b"left")

    stored_files.replace(tmp_path / "a", b"x")

    assert (tmp_path / "a").read_bytes() == b"x"
    assert sum(path.read_bytes() == b"left" for path in tmp_path.iterdir()) == 3


@pytest.fixture
def path(quick_path: Path) -> Path:
    return quick_path / "constraints.json"


def test_a_file_that_holds_what_we_think_is_replaced(path: Path) -> None:
    path.write_bytes(b"old")

    assert replace_unchanged(path, b"new", b"old", mode=SHARED)

    assert path.read_bytes() == b"new"
    assert len(list(path.parent.iterdir())) == 1


def test_a_file_that_holds_something_else_is_left_alone(path: Path) -> None:
    path.write_bytes(b"theirs")

    assert not replace_unchanged(path, b"new", b"old", mode=SHARED)

    assert path.read_bytes() == b"theirs"
    assert len(list(path.parent.iterdir())) == 1


def test_a_file_that_should_not_be_there_is_left_alone(path: Path) -> None:
    path.write_bytes(b"theirs")

    assert not replace_unchanged(path, b"new", None, mode=SHARED)
    path.unlink()
    assert replace_unchanged(path, b"new", None, mode=SHARED)

    assert path.read_bytes() == b"new"


def test_a_file_that_is_gone_is_not_made_again(path: Path) -> None:
    assert not replace_unchanged(path, b"new", b"old", mode=SHARED)

    assert list(path.parent.iterdir()) == []


def save_by_rename(path: Path, data: bytes) -> None:
    path.with_name("save").write_bytes(data)
    path.with_name("save").replace(path)


def save_in_place(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.mark.parametrize("save", [save_by_rename, save_in_place], ids=lambda save: save.__name__)
def test_no_save_is_ever_overtaken(path: Path, save: Callable[[Path, bytes], None]) -> None:
    """We keep adding to what an editor keeps saving; each of its saves must come through."""
    path.write_bytes(b"0:")
    if not swap(path, path):
        pytest.skip("this disk cannot swap files")
    done = threading.Event()

    def add() -> None:
        while not done.is_set():
            if seen := path.read_bytes():
                replace_unchanged(path, seen + b"+", seen, mode=SHARED)

    ours = threading.Thread(target=add)
    ours.start()
    lost = next((n for n in range(1, 120) if not came_through(path, n, save)), None)
    done.set()
    ours.join()

    assert lost is None


def came_through(path: Path, number: int, save: Callable[[Path, bytes], None]) -> bool:
    save(path, b"%d:" % number)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.read_bytes().startswith(b"%d:+" % number):
            return True
    return False


def replace_old(path: Path) -> None:
    assert not replace_unchanged(path, b"ours", b"old", mode=SHARED)


def move_over_old(path: Path) -> None:
    def check(place: Path) -> None:
        if place.read_bytes() != b"old":
            raise RefusedError

    path.with_name("ours").write_bytes(b"ours")
    with pytest.raises(RefusedError):
        stored_files.move_over(path.with_name("ours"), path, check)


def test_a_file_is_replaced_and_removed_while_we_read_it(path: Path) -> None:
    if not replaces_open_files(path.parent):
        pytest.skip("this system replaces no file that is open")
    path.write_bytes(b"old")

    with SafeFolder(path.parent, lambda: invalid_path("link")).open_file(path.name) as file:
        stored_files.replace(path, b"new")
        replaced = path.read_bytes()
        stored_files.remove(path)
        seen = file.read_at(0, 100)

    assert (replaced, seen, path.exists()) == (b"new", b"old", False)


class RefusedError(Exception):
    """What stands there may not be replaced."""


def refuse_foreign(path: Path) -> None:
    if path.read_bytes() != b"ours":
        raise RefusedError


def new_file(folder: Path) -> Path:
    (folder / "new").unlink(missing_ok=True)
    (folder / "new").write_bytes(b"new")
    return folder / "new"


def test_a_move_over_replaces_only_what_it_may(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    stored_files.move_over(new_file(tmp_path), path, refuse_foreign)
    first = path.read_bytes()
    path.write_bytes(b"ours")
    stored_files.move_over(new_file(tmp_path), path, refuse_foreign)
    second = path.read_bytes()
    path.write_bytes(b"foreign")

    with pytest.raises(RefusedError):
        stored_files.move_over(new_file(tmp_path), path, refuse_foreign)

    assert (first, second, path.read_bytes()) == (b"new", b"new", b"foreign")


@pytest.mark.skipif(sys.platform not in {"linux", "darwin"}, reason="others cannot swap names")
def test_what_takes_the_place_at_the_last_moment_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(b"ours")

    def check(place: Path) -> None:
        refuse_foreign(place)
        (tmp_path / "other").write_bytes(b"foreign")
        (tmp_path / "other").replace(path)

    with pytest.raises(RefusedError):
        stored_files.move_over(new_file(tmp_path), path, check)

    assert path.read_bytes() == b"foreign"


def test_what_goes_away_at_the_last_moment_is_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "archive"
    path.write_bytes(b"ours")

    stored_files.move_over(new_file(tmp_path), path, Path.unlink)

    assert path.read_bytes() == b"new"


def test_what_windows_refuses_for_a_moment_is_tried_again() -> None:
    """A virus scanner, a reader or a writer has the file open; a moment later it has not."""
    refusals = [PermissionError(errno.EACCES, "sharing violation")] * 3

    def open_file() -> int:
        if refusals:
            raise refusals.pop()
        return 7

    assert stored_files.retry_on_windows(open_file, windows=True) == 7


@pytest.mark.skipif(os.name != "nt", reason="other systems refuse nothing while a file is open")
@pytest.mark.parametrize(("change", "renames"), [(replace_old, 1), (move_over_old, 2)])
def test_a_save_while_windows_refuses_to_replace_is_kept(
    path: Path, change: Callable[[Path], None], renames: int
) -> None:
    """Somebody reads it, and saves between our look and the rename; later our next try might do."""
    path.write_bytes(b"old")
    reader = path.open("rb")
    steps = [reader.close, lambda: path.write_bytes(b"new"), *[lambda: None] * (renames - 1)]

    def take_a_step(event: str, _arguments: object) -> None:
        if event == "os.rename" and steps:
            steps.pop()()

    sys.addaudithook(take_a_step)
    change(path)
    steps.clear()
    reader.close()

    assert path.read_bytes() == b"new"


def remove_inside(path: Path) -> None:
    LinkedFolder(path.parent).remove(path.name)


@pytest.mark.parametrize("change", [stored_files.remove, remove_inside, stored_files.set_aside])
def test_a_file_is_removed_or_set_aside_while_somebody_reads_it(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    """Windows refuses both as long as the reader has it open."""
    path = tmp_path / "设定.json"
    path.write_bytes(b"old")
    reader = path.open("rb")
    closing = threading.Timer(0.05, reader.close)
    closing.start()

    change(path)

    assert not path.exists()
    closing.join()


def test_what_stays_refused_is_an_error_and_elsewhere_at_once() -> None:
    tried: list[bool] = []

    def refuse() -> None:
        tried.append(True)
        raise PermissionError(errno.EACCES, "denied")

    with pytest.raises(PermissionError):
        stored_files.retry_on_windows(refuse, windows=False)
    assert len(tried) == 1
    with pytest.raises(PermissionError):
        stored_files.retry_on_windows(refuse, windows=True)
    assert len(tried) > 2
