"""Records are the truth, and an import is all there or not at all, whatever a daemon left."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SteppingClock, SystemClock
from creonowd.context_files import record_store
from creonowd.context_files.files import Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.record_store import ImportPlan, Move, history_path
from creonowd.context_files.records import Kind
from creonowd.errors import DaemonError
from creonowd.storage import journal
from tests.context_files.sample_files import content_of, new_file

TMP = "imp_1"


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


def plan_of(conversation: ConversationFolder, place: Path) -> ImportPlan:
    """Stage two files, of which the second goes into another folder than the first."""
    elsewhere = conversation.folder.parent.parent / "elsewhere"
    source = Store(elsewhere, SystemClock()).find_or_create("prj_one", "chat-1")
    records = [source.put(new_file(kind), b"x") for kind in (Kind.ARTIFACT, Kind.HISTORY)]
    for number in range(len(records)):
        (place / str(number)).write_bytes(b"x")
    moves = tuple(Move(record=record, staged=n) for n, record in enumerate(records))
    return ImportPlan(conversation_id=conversation.id, project_id="prj_one", moves=moves)


def unfinished_import(conversation: ConversationFolder) -> Path:
    """Make the folder of an import that is under way."""
    place = conversation.folder.parent / record_store.IMPORTS / TMP
    place.mkdir(parents=True)
    return place


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

        for again in (once, twice):
            assert content_of(again, new.id) == b"new"
            with pytest.raises(DaemonError, match="NOT_FOUND"):
                again.find(old.id)


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


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_what_the_disk_refuses_half_way_is_taken_back(
    conversation: ConversationFolder, tmp_path: Path
) -> None:
    root = conversation.folder.parent
    (conversation.folder / "history").rmdir()
    (conversation.folder / "history").symlink_to(tmp_path)

    with pytest.raises(DaemonError), record_store.staging_folder(root, TMP) as place:
        record_store.apply_plan(root, place, plan_of(conversation, place))

    assert list((conversation.folder / "artifacts" / "refs").iterdir()) == []
    assert list((conversation.folder / "artifacts" / "tool").iterdir()) == []
    assert not (root / record_store.IMPORTS).exists()
    assert restarted(conversation).records() == []


def test_what_was_being_taken_back_is_taken_back_by_the_next_daemon(
    conversation: ConversationFolder,
) -> None:
    place = unfinished_import(conversation)
    plan = plan_of(conversation, place)
    record_store.apply_plan(conversation.folder.parent, place, plan)
    (place / "undone.json").write_bytes(msgspec.json.encode(plan))

    assert restarted(conversation).records() == []
    assert not place.exists()


def test_a_plan_is_finished_by_the_next_daemon(conversation: ConversationFolder) -> None:
    place = unfinished_import(conversation)
    plan = plan_of(conversation, place)
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    assert [one.id for one in restarted(conversation).records()] == [
        move.record.id for move in plan.moves
    ]
    assert not place.exists()


@pytest.mark.parametrize("field", ["conversationId", "path"])
def test_a_plan_that_leaves_the_tree_is_not_followed(
    conversation: ConversationFolder, tmp_path: Path, field: str
) -> None:
    place = unfinished_import(conversation)
    plan = msgspec.to_builtins(plan_of(conversation, place))
    if field == "path":
        plan["moves"][0]["record"]["path"] = "../../evil/x.txt"
    else:
        plan["conversationId"] = "../../evil"
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    assert restarted(conversation).records() == []
    assert not list(tmp_path.rglob("evil"))
    assert not place.exists()


def test_a_plan_from_the_future_waits_and_holds_nobody_up(conversation: ConversationFolder) -> None:
    place = unfinished_import(conversation)
    (place / "plan.json").write_bytes(b'{"version": 2}')

    assert restarted(conversation).records() == []
    assert (place / "plan.json").read_bytes() == b'{"version": 2}'


def test_rounds_of_an_unfinished_import_are_added_by_the_next_daemon(
    conversation: ConversationFolder, tmp_path: Path
) -> None:
    place = unfinished_import(conversation)
    plan = msgspec.structs.replace(plan_of(conversation, place), rounds_at=0)
    (place / "rounds.jsonl").write_bytes(journal.encode(b"1") + journal.encode(b"2"))
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    again = restarted(conversation)

    history = history_path(tmp_path, plan.project_id, plan.conversation_id)
    assert len(again.records()) == len(plan.moves)
    assert journal.replay(history).entries == [b"1", b"2"]


@pytest.mark.parametrize("name", ["plan.json", "undone.json"])
def test_rounds_that_were_written_meanwhile_are_not_cut_off(
    conversation: ConversationFolder, tmp_path: Path, name: str
) -> None:
    place = unfinished_import(conversation)
    plan = msgspec.structs.replace(plan_of(conversation, place), rounds_at=0)
    (place / "rounds.jsonl").write_bytes(journal.encode(b"1"))
    (place / name).write_bytes(msgspec.json.encode(plan))
    history = history_path(tmp_path, plan.project_id, plan.conversation_id)
    journal.append(history, 0, b'"mine"')

    restarted(conversation)

    assert journal.replay(history).entries == [b'"mine"']


def test_rounds_are_taken_back_with_the_files(
    conversation: ConversationFolder, tmp_path: Path
) -> None:
    place = unfinished_import(conversation)
    plan = plan_of(conversation, place)
    history = history_path(tmp_path, plan.project_id, plan.conversation_id)
    size = journal.append(history, 0, b'"mine"')
    rounds = record_store.NewRounds(size, journal.encode(b"1"))
    root = conversation.folder.parent
    record_store.apply_plan(root, place, plan, rounds)
    planned = msgspec.structs.replace(plan, rounds_at=size)
    (place / "undone.json").write_bytes(msgspec.json.encode(planned))

    assert restarted(conversation).records() == []
    assert journal.replay(history).entries == [b'"mine"']


def test_rounds_of_a_plan_do_not_leave_the_histories(
    conversation: ConversationFolder, tmp_path: Path
) -> None:
    place = unfinished_import(conversation)
    plan = msgspec.structs.replace(
        plan_of(conversation, place), rounds_at=0, project_id="../../evil"
    )
    (place / "rounds.jsonl").write_bytes(journal.encode(b"1"))
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    assert restarted(conversation).records() == []
    assert not list(tmp_path.rglob("chat*.jsonl"))
