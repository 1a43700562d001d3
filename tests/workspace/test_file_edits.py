from pathlib import Path

import pytest

from creonowd.clock import SteppingClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.file_edits import KEPT_BYTES, FileEdits, revision_of

NAME = "章/一.md"


@pytest.fixture
def edits() -> FileEdits:
    return FileEdits(SteppingClock())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / NAME
    path.parent.mkdir()
    path.write_bytes(b"one\r\n")
    return path


def test_a_change_is_undone_and_made_again_byte_for_byte(
    edits: FileEdits, tmp_path: Path, file: Path
) -> None:
    changed = edits.change_now(tmp_path, NAME, lambda data: data + b"two")
    undone = edits.undo_now(tmp_path, changed.undo)
    before = file.read_bytes()
    again = edits.undo_now(tmp_path, undone.undo)

    assert (changed.data, undone.data, again.data) == (b"one\r\ntwo", b"one\r\n", b"one\r\ntwo")
    assert before == b"one\r\n"
    assert file.read_bytes() == b"one\r\ntwo"


def test_a_change_that_changes_nothing_has_nothing_to_undo(
    edits: FileEdits, tmp_path: Path, file: Path
) -> None:
    before = file.stat()

    written = edits.change_now(tmp_path, NAME, lambda data: data)

    assert written.undo == ""
    assert file.stat().st_mtime_ns == before.st_mtime_ns


def test_a_new_file_is_removed_when_it_is_undone(edits: FileEdits, tmp_path: Path) -> None:
    created = edits.create_now(tmp_path, "新/卷/二.md", b"new")
    was_there = (tmp_path / "新/卷/二.md").read_bytes()

    undone = edits.undo_now(tmp_path, created.undo)

    assert was_there == b"new"
    assert (undone.exists, undone.data) == (False, b"")
    assert not (tmp_path / "新/卷/二.md").exists()


def test_a_file_that_exists_is_not_created_again(
    edits: FileEdits, tmp_path: Path, file: Path
) -> None:
    with pytest.raises(DaemonError) as caught:
        edits.create_now(tmp_path, NAME, b"new")

    assert caught.value.code is ErrorCode.CONFLICT
    assert file.read_bytes() == b"one\r\n"


def test_a_file_that_changes_meanwhile_stays_as_it_is(
    edits: FileEdits, tmp_path: Path, file: Path
) -> None:
    def change(data: bytes) -> bytes:
        file.write_bytes(b"by someone else")
        return data + b"two"

    with pytest.raises(DaemonError) as caught:
        edits.change_now(tmp_path, NAME, change)

    assert caught.value.code is ErrorCode.CONFLICT
    assert file.read_bytes() == b"by someone else"


@pytest.mark.parametrize("is_new", [False, True])
def test_what_changed_again_is_not_undone(
    edits: FileEdits, tmp_path: Path, file: Path, *, is_new: bool
) -> None:
    if is_new:
        file.unlink()
        written = edits.create_now(tmp_path, NAME, b"new")
    else:
        written = edits.change_now(tmp_path, NAME, lambda _: b"new")
    file.write_bytes(b"by someone else")

    with pytest.raises(DaemonError) as caught:
        edits.undo_now(tmp_path, written.undo)

    assert caught.value.code is ErrorCode.CONFLICT
    assert file.read_bytes() == b"by someone else"


@pytest.mark.usefixtures("file")
def test_a_change_of_another_project_cannot_be_undone(edits: FileEdits, tmp_path: Path) -> None:
    written = edits.change_now(tmp_path, NAME, lambda _: b"new")

    with pytest.raises(DaemonError) as caught:
        edits.undo_now(tmp_path / "other", written.undo)

    assert caught.value.code is ErrorCode.NOT_FOUND


@pytest.mark.usefixtures("file")
def test_old_changes_are_forgotten_when_much_is_kept(edits: FileEdits, tmp_path: Path) -> None:
    first = edits.change_now(tmp_path, NAME, lambda _: b"first")
    for number in range(4):
        edits.remember(tmp_path, f"{number}.md", None, bytes(KEPT_BYTES // 2 - 1000))

    with pytest.raises(DaemonError) as caught:
        edits.undo_now(tmp_path, first.undo)

    assert caught.value.code is ErrorCode.NOT_FOUND


def test_a_revision_differs_with_every_byte() -> None:
    assert len({revision_of(data) for data in (b"", b"a", b"a\n", b"a\r\n")}) == 4
