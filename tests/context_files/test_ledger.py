"""Records are the truth: an index that is behind brings nothing back and takes nothing away."""

import shutil
from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SteppingClock
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError
from tests.context_files.files import content_of, new_file


def restarted(conversation: ConversationFolder) -> ConversationFolder:
    """Open a conversation as the next daemon does."""
    user_data = conversation.folder.parent.parent
    found = Store(user_data, SteppingClock()).find("prj_one", conversation.id)
    assert found is not None
    return found


def behind(conversation: ConversationFolder, manifest: bytes) -> ConversationFolder:
    """Open a conversation whose index an earlier daemon left behind."""
    (conversation.folder / "manifest.json").write_bytes(manifest)
    return restarted(conversation)


def test_a_stale_index_does_not_bring_back_a_file_whose_name_is_used_again(
    conversation: ConversationFolder,
) -> None:
    for number in range(8):
        old = conversation.put(new_file(key=f"call_{number}"), b"old")
        listed = (conversation.folder / "manifest.json").read_bytes()
        conversation.remove(old.id)
        new = conversation.put(new_file(key=f"call_{number}"), b"new")

        once = behind(conversation, listed)
        twice = restarted(once)

        assert content_of(twice, new.id) == b"new"
        with pytest.raises(DaemonError, match="NOT_FOUND"):
            twice.find(old.id)


def test_of_two_records_of_one_name_the_newer_is_true(conversation: ConversationFolder) -> None:
    older = conversation.put(new_file(key="call_1"), b"x")
    newer = msgspec.structs.replace(older, id="ctx_" + "0" * 20, sequence=older.sequence + 1)
    refs = conversation.folder / "artifacts" / "refs"
    (refs / f"{newer.id}.json").write_bytes(msgspec.json.encode(newer))
    (conversation.folder / "manifest.json").unlink()

    again = restarted(conversation)

    assert [record.id for record in again.records()] == [newer.id]
    assert [entry.name for entry in refs.iterdir()] == [f"{newer.id}.json"]


def test_lost_records_are_known_from_the_index(conversation: ConversationFolder) -> None:
    record = conversation.put(new_file(key="call_1"), b"x")
    shutil.rmtree(conversation.folder / "artifacts" / "refs")

    again = restarted(conversation)

    assert again.find(record.id) == record
    assert content_of(again, record.id) == b"x"


def test_a_folder_in_a_files_place_takes_no_other_file_along(
    conversation: ConversationFolder,
) -> None:
    gone = conversation.put(new_file(key="call_1"), b"x")
    other = conversation.put(new_file(key="call_2"), b"y")
    place = conversation.folder / gone.path
    place.unlink()
    (place / "inner").mkdir(parents=True)

    again = restarted(conversation)
    again.remove(gone.id)

    assert content_of(again, other.id) == b"y"
    assert Path(place / "inner").is_dir()
