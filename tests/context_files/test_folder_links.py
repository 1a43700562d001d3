"""A conversation whose folders became links: nothing behind them is read, written or removed."""

import os
from pathlib import Path

import pytest

from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.retention import stored_files
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError
from tests.context_files.sample_files import lazy_file, new_file

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")


@pytest.fixture
def outside(conversation: ConversationFolder, tmp_path: Path) -> Path:
    """A folder elsewhere that `artifacts/tool` and `history/archive` have become links to."""
    conversation.put(new_file(key="call_1"), b"eager")
    lazy_file(conversation, b"lazy")
    elsewhere = tmp_path / "outside"
    elsewhere.mkdir()
    for record in conversation.records():
        (elsewhere / Path(record.path).name).write_bytes(b"theirs")
        place = (conversation.folder / record.path).parent
        place.rename(tmp_path / f"moved-{place.name}")
        place.symlink_to(elsewhere)
    return elsewhere


@pytest.mark.requirement("CF-039")
def test_deleting_a_file_leaves_what_is_behind_a_link(
    conversation: ConversationFolder, outside: Path
) -> None:
    for record in conversation.records():
        conversation.remove(record.id)

    assert conversation.records() == []
    assert [entry.read_bytes() for entry in outside.iterdir()] == [b"theirs"] * 2


def test_cleaning_leaves_what_is_behind_a_link(
    conversation: ConversationFolder, outside: Path
) -> None:
    for record in conversation.records():
        conversation.clean(record.id)

    assert [entry.read_bytes() for entry in outside.iterdir()] == [b"theirs"] * 2


def test_deleting_the_conversation_leaves_what_is_behind_a_link(
    store: Store, conversation: ConversationFolder, outside: Path
) -> None:
    store.delete(conversation)

    assert [entry.read_bytes() for entry in outside.iterdir()] == [b"theirs"] * 2


def test_what_is_behind_a_link_takes_up_no_space(
    conversation: ConversationFolder, outside: Path
) -> None:
    assert len(list(outside.iterdir())) == 2

    assert stored_files([conversation]) == []


def test_records_outlive_a_folder_that_is_a_link_for_a_while(
    store: Store, conversation: ConversationFolder, outside: Path, tmp_path: Path
) -> None:
    ids = [record.id for record in conversation.records()]
    again = Store(tmp_path, store.clock).find("prj_one", "chat-1")
    assert again is not None

    assert [record.id for record in again.records()] == ids
    with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"), again.open_file(ids[0]):
        pass
    assert outside.is_dir()
