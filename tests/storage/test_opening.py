"""Files read from a folder that is held open: a link swapped in at the last moment leads nowhere."""

import os
from pathlib import Path

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.safe_folder import opened_door, read_inside

FOLDER = ".creonow/settings"
INSIDE = f"{FOLDER}/people"
FILE = f"{INSIDE}/a.md"

links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "novel" / INSIDE).mkdir(parents=True)
    (tmp_path / "novel" / FILE).write_text("inside", encoding="utf-8")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.md").write_text("outside", encoding="utf-8")
    return tmp_path / "novel"


def read(root: Path) -> bytes:
    with opened_door(root, FOLDER, INSIDE) as door:
        return read_inside(root, FOLDER, FILE, limit=100, door=door).data


def test_a_plain_file_is_read_from_its_folder(root: Path) -> None:
    assert read(root) == b"inside"


@links
def test_a_file_swapped_for_a_link_that_leads_out_is_refused(root: Path) -> None:
    with opened_door(root, FOLDER, INSIDE) as door:
        (root / FILE).unlink()
        (root / FILE).symlink_to(root.parent / "outside" / "a.md")

        with pytest.raises(DaemonError) as caught:
            read_inside(root, FOLDER, FILE, limit=100, door=door)

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
def test_a_folder_swapped_while_it_is_held_open_does_not_matter(root: Path) -> None:
    with opened_door(root, FOLDER, INSIDE) as door:
        (root / INSIDE).rename(root / FOLDER / "gone")
        (root / INSIDE).symlink_to(root.parent / "outside", target_is_directory=True)

        opened = read_inside(root, FOLDER, FILE, limit=100, door=door)

    assert opened.data == b"inside"


@links
def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / FOLDER / "b.md").write_text("beside", encoding="utf-8")
    (root / FILE).unlink()
    (root / FILE).symlink_to("../b.md")

    assert read(root) == b"beside"


def test_a_file_that_vanished_is_not_found(root: Path) -> None:
    with opened_door(root, FOLDER, INSIDE) as door:
        (root / FILE).unlink()

        with pytest.raises(DaemonError) as caught:
            read_inside(root, FOLDER, FILE, limit=100, door=door)

    assert caught.value.code is ErrorCode.NOT_FOUND


def test_the_door_is_closed_again(root: Path) -> None:
    with opened_door(root, FOLDER, INSIDE) as door:
        pass

    if door.descriptor is not None:
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(door.descriptor)
