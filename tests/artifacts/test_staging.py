"""An import that the disk refuses half-way is taken back, at once or by the next daemon."""

import os
from pathlib import Path

import msgspec
import pytest

from creonowd.artifacts import staging
from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.refs import Kind, Record
from creonowd.artifacts.staging import Move, Plan
from creonowd.artifacts.store import Store
from creonowd.clock import SystemClock
from creonowd.errors import DaemonError
from tests.artifacts.files import new_file

TMP = "imp_1"


def plan_of(conversation: Conversation, place: Path) -> Plan:
    """Stage two files, of which the second goes into another folder than the first."""
    elsewhere = conversation.folder.parent.parent / "elsewhere"
    source = Store(elsewhere, SystemClock()).bound("prj_one", "chat-1")
    records = [source.put(new_file(kind), b"x") for kind in (Kind.ARTIFACT, Kind.HISTORY)]
    for number in range(len(records)):
        (place / str(number)).write_bytes(b"x")
    moves = tuple(Move(record=record, staged=n) for n, record in enumerate(records))
    return Plan(conversation_id=conversation.id, project_id="prj_one", moves=moves)


def staged(conversation: Conversation) -> Path:
    """Make the folder of an import that is under way."""
    place = conversation.folder.parent / staging.FOLDER / TMP
    place.mkdir(parents=True)
    return place


def restarted(conversation: Conversation) -> list[Record]:
    """List what the next daemon finds."""
    found = Store(conversation.folder.parent.parent, SystemClock()).find("prj_one", "chat-1")
    assert found is not None
    return found.records()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
def test_what_the_disk_refuses_half_way_is_taken_back(
    conversation: Conversation, tmp_path: Path
) -> None:
    root = conversation.folder.parent
    (conversation.folder / "history").rmdir()
    (conversation.folder / "history").symlink_to(tmp_path)

    with pytest.raises(DaemonError), staging.stage(root, TMP) as place:
        staging.carry_out(root, place, plan_of(conversation, place))

    assert list((conversation.folder / "artifacts" / "refs").iterdir()) == []
    assert list((conversation.folder / "artifacts" / "tool").iterdir()) == []
    assert not (root / staging.FOLDER).exists()
    assert restarted(conversation) == []


def test_what_was_being_taken_back_is_taken_back_by_the_next_daemon(
    conversation: Conversation,
) -> None:
    place = staged(conversation)
    plan = plan_of(conversation, place)
    staging.carry_out(conversation.folder.parent, place, plan)
    (place / "undone.json").write_bytes(msgspec.json.encode(plan))

    assert restarted(conversation) == []
    assert not place.exists()


def test_a_plan_is_finished_by_the_next_daemon(conversation: Conversation) -> None:
    place = staged(conversation)
    plan = plan_of(conversation, place)
    (place / "plan.json").write_bytes(msgspec.json.encode(plan))

    assert [one.id for one in restarted(conversation)] == [move.record.id for move in plan.moves]
    assert not place.exists()


@pytest.mark.parametrize("field", ["conversationId", "path"])
def test_a_plan_that_leaves_the_tree_is_not_followed(
    conversation: Conversation, tmp_path: Path, field: str
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


def test_a_plan_from_the_future_waits_and_holds_nobody_up(conversation: Conversation) -> None:
    place = staged(conversation)
    (place / "plan.json").write_bytes(b'{"version": 2}')

    assert restarted(conversation) == []
    assert (place / "plan.json").read_bytes() == b'{"version": 2}'
