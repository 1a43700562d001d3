import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from creonowd.storage.atomic import SHARED, replace_unchanged, swap


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
    lost = [number for number in range(1, 120) if not came_through(path, number, save)]
    done.set()
    ours.join()

    assert lost == []


def came_through(path: Path, number: int, save: Callable[[Path, bytes], None]) -> bool:
    save(path, b"%d:" % number)
    deadline = time.monotonic() + 2
    while time.monotonic() < deadline:
        if path.read_bytes().startswith(b"%d:+" % number):
            return True
    return False
