"""An import that the disk refuses half-way is taken back, at once or by the next daemon."""

import os
from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SystemClock
from creonowd.context_files import record_store
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.record_store import Move, StagingPlan
from creonowd.context_files.records import Kind, Record
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError
from tests.context_files.files import new_file

TMP = "imp_1"


def plan_of(conversation: ConversationFolder, place: Path) -> StagingPlan:
    """Stage two files, of which the second goes into another folder than the first."""
    elsewhere = conversation.folder.parent.parent / "elsewhere"
    source = Store(elsewhere, SystemClock()).bound("prj_one", "chat-1")
    records = [source.put(new_file(kind), b"x") for kind in (Kind.ARTIFACT, Kind.HISTORY)]
    for number in range(len(records)):
        (place / str(number)).write_bytes(b"x")
    moves = tuple(Move(record=record, staged=n) for n, record in enumerate(records))
    return StagingPlan(conversation_id=conversation.id, project_id="prj_one", moves=moves)


def staged(conversation: ConversationFolder) -> Path:
    """Make the folder of an import that is under way."""
    place = conversation.folder.parent / record_store.FOLDER / TMP
    place.mkdir(parents=True)
    return place


def restarted(conversation: ConversationFolder) -> list[Record]:
    """List what the next daemon finds."""
    found = Store(conversation.folder.parent.parent, SystemClock()).find("prj_one", "chat-1")
    assert found is not None
    return found.records()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_what_the_disk_refuses_half_way_is_taken_back(
    conversation: ConversationFolder, tmp_path: Path
) -> None:
    root = conversation.folder.parent
    (conversation.folder / "history").rmdir()
    (conversation.folder / "history").symlink_to(tmp_path)

    with pytest.raises(DaemonError), record_store.stage(root, TMP) as place:
        record_store.apply_plan(root, place, plan_of(conversation, place))

    assert list((conversation.folder / "artifacts" / "refs").iterdir()) == []
    assert list((conversation.folder / "artifacts" / "tool").iterdir()) == []
    assert not (root / record_store.FOLDER).exists()
    assert restarted(conversation) == []


def test_what_was_being_taken_back_is_taken_back_by_the_next_daemon(
    conversation: ConversationFolder,
) -> None:
    place = staged(conversation)
    plan = plan_of(conversation, place)
    record_store.apply_plan(conversation.folder.parent, place, plan)
    (place / "undone.json").write_bytes(msgspec.json.encode(plan))

    assert restarted(conversation) == []
    assert not place.exists()


def test_a_plan_is_finished_by_the_next_daemon(conversation: ConversationFolder) -> None:
    place = staged(conversation)
    plan = plan_of(conversation, place)
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    assert [one.id for one in restarted(conversation)] == [move.record.id for move in plan.moves]
    assert not place.exists()


@pytest.mark.parametrize("field", ["conversationId", "path"])
def test_a_plan_that_leaves_the_tree_is_not_followed(
    conversation: ConversationFolder, tmp_path: Path, field: str
) -> None:
    place = staged(conversation)
    plan = msgspec.to_builtins(plan_of(conversation, place))
    if field == "path":
        plan["moves"][0]["record"]["path"] = "../../evil/x.txt"
    else:
        plan["conversationId"] = "../../evil"
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    assert restarted(conversation) == []
    assert not list(tmp_path.rglob("evil"))
    assert not place.exists()


def test_a_plan_from_the_future_waits_and_holds_nobody_up(conversation: ConversationFolder) -> None:
    place = staged(conversation)
    (place / "plan.json").write_bytes(b'{"version": 2}')

    assert restarted(conversation) == []
    assert (place / "plan.json").read_bytes() == b'{"version": 2}'
