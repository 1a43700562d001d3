"""The conversations on the disk keep to their project and folder, and outlive all but their files."""

import os
from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SystemClock
from creonowd.context_files.files import RecentConversations, Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.records import Kind, is_ref_id
from creonowd.errors import DaemonError, ErrorCode
from tests.context_files.sample_files import content_of, lazy_file, new_file


def reopened(store: Store) -> ConversationFolder:
    """What the next daemon would see."""
    found = Store(store.root.parent, SystemClock()).find("prj_one", "chat-1")
    assert found is not None
    return found


@pytest.mark.requirement("CF-003", "CF-004", "CF-005")
def test_a_conversation_has_its_folders_in_user_data(store: Store, tmp_path: Path) -> None:
    store.find_or_create("prj_one", "chat-1").put(new_file(key="call_1"), b"x")

    folder = tmp_path / "context" / "chat-1"
    assert {"artifacts", "history", "catalog", "manifest.json"} <= {
        entry.name for entry in folder.iterdir()
    }
    assert (folder / "artifacts" / "tool" / "call_1.txt").read_bytes() == b"x"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes; user data is private there")
def test_nobody_else_may_look_into_it(conversation: ConversationFolder) -> None:
    record = conversation.put(new_file(), b"x")

    assert conversation.folder.stat().st_mode & 0o777 == 0o700
    assert (conversation.folder / record.path).stat().st_mode & 0o777 == 0o600


@pytest.mark.requirement("CF-013")
def test_an_id_is_stable_unguessable_and_no_path(tmp_path: Path) -> None:
    conversation = Store(tmp_path, SystemClock()).find_or_create("prj_one", "chat-1")
    records = [conversation.put(new_file(key=f"call_{n}"), b"x") for n in range(50)]

    ids = {record.id for record in records}

    assert len(ids) == 50
    assert all(is_ref_id(one) and "call" not in one for one in ids)
    assert {record.id for record in reopened(Store(tmp_path, SystemClock())).records()} == ids


def test_a_conversation_stays_with_its_first_project(store: Store) -> None:
    store.find_or_create("prj_one", "chat-1")

    with pytest.raises(DaemonError) as caught:
        store.find("prj_two", "chat-1")

    assert caught.value.code is ErrorCode.CONTEXT_SCOPE_VIOLATION
    with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"):
        Store(store.root.parent, SystemClock()).find_or_create("prj_two", "chat-1")


@pytest.mark.parametrize("lost", ["missing", "damaged"])
def test_a_lost_binding_is_known_from_the_files(
    store: Store, conversation: ConversationFolder, lost: str
) -> None:
    conversation.put(new_file(), b"x")
    binding = conversation.folder / "conversation.json"
    binding.unlink()
    if lost == "damaged":
        binding.write_bytes(b"{")
        (conversation.folder / "manifest.json").write_bytes(b"\xff")

    with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"):
        Store(store.root.parent, SystemClock()).find_or_create("prj_two", "chat-1")


def test_ids_that_differ_only_in_case_are_a_conflict(store: Store) -> None:
    store.find_or_create("prj_one", "Chat-1")

    with pytest.raises(DaemonError, match="CONFLICT"):
        store.find_or_create("prj_one", "chat-1")
    with pytest.raises(DaemonError, match="CONFLICT"):
        Store(store.root.parent, SystemClock()).find("prj_one", "CHAT-1")


def test_looking_for_a_conversation_makes_none(store: Store) -> None:
    assert store.find("prj_one", "chat-1") is None
    assert not store.root.exists()


@pytest.mark.requirement("CF-006", "CF-038")
@pytest.mark.parametrize("damage", [None, b"", b"{", b"\xff\xfe", b'{"version":1}', b"[]"])
def test_a_lost_or_damaged_manifest_is_rebuilt_with_the_same_ids(
    store: Store, conversation: ConversationFolder, damage: bytes | None
) -> None:
    eager = conversation.put(new_file(key="call_1"), "红".encode())
    lazy = lazy_file(conversation, b"made")
    recipe = conversation.register(new_file(Kind.CATALOG, recipe={"type": "json", "value": 1}))
    manifest = conversation.folder / "manifest.json"
    manifest.unlink()
    if damage is not None:
        manifest.write_bytes(damage)

    again = reopened(store)

    assert [record.id for record in again.records()] == [eager.id, lazy, recipe.id]
    assert content_of(again, eager.id) == "红".encode()
    assert content_of(again, lazy) == b"made"
    assert again.put(new_file(key="call_1"), "红".encode()).id == eager.id


@pytest.mark.requirement("CF-006")
def test_the_manifest_lists_path_origin_hash_size_time_and_expiry(
    conversation: ConversationFolder,
) -> None:
    record = conversation.put(new_file(key="call_1"), b"abc")

    manifest = msgspec.json.decode((conversation.folder / "manifest.json").read_bytes())

    (item,) = manifest["items"]
    assert manifest["version"] == 1
    assert manifest["conversationId"] == "chat-1"
    assert item["id"] == record.id
    assert item["path"] == "artifacts/tool/call_1.txt"
    assert item["origin"] == "tool"
    assert item["survey"]["sha256"].startswith("ba7816bf")
    assert item["survey"]["byteSize"] == 3
    assert item["createdAt"] == record.created_at
    assert item["retention"] == "eager"


def test_a_damaged_record_is_repaired_from_the_manifest(
    store: Store, conversation: ConversationFolder
) -> None:
    record = conversation.put(new_file(), b"x")
    kept = conversation.folder / "artifacts" / "refs" / f"{record.id}.json"
    kept.write_bytes(b"{")

    again = reopened(store)

    assert again.find(record.id) == record
    assert msgspec.json.decode(kept.read_bytes())["id"] == record.id


def test_a_manifest_from_the_future_is_refused_and_left_alone(
    store: Store, conversation: ConversationFolder
) -> None:
    conversation.put(new_file(), b"x")
    manifest = conversation.folder / "manifest.json"
    manifest.write_bytes(b'{"version": 2}')

    with pytest.raises(DaemonError, match="VERSION_TOO_NEW"):
        reopened(store)

    assert manifest.read_bytes() == b'{"version": 2}'


def test_a_file_that_someone_put_there_gets_an_id(
    store: Store, conversation: ConversationFolder
) -> None:
    place = conversation.folder / "artifacts" / "terminal"
    place.mkdir()
    (place / "session.log").write_bytes(b"line\n")

    (record,) = reopened(store).records()

    assert record.hint == "session.log"
    assert content_of(reopened(store), record.id) == b"line\n"
    assert reopened(store).records() == [record]


def test_an_eager_file_that_someone_took_away_is_not_found(
    store: Store, conversation: ConversationFolder
) -> None:
    record = conversation.put(new_file(), b"x")
    (conversation.folder / record.path).unlink()

    with pytest.raises(DaemonError, match="NOT_FOUND"):
        content_of(conversation, record.id)
    assert reopened(store).records() == []


def test_what_a_killed_writer_left_is_removed(
    store: Store, conversation: ConversationFolder
) -> None:
    conversation.put(new_file(), b"x")
    left = conversation.folder / "artifacts" / "tool" / ".creonow-1-2.tmp"
    left.write_bytes(b"half")

    reopened(store)

    assert not left.exists()


@pytest.mark.requirement("CF-039", "CF-040")
@pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")
@pytest.mark.parametrize("planted", ["file", "folder", "conversation", "record", "manifest"])
def test_a_planted_link_is_not_followed(
    store: Store, conversation: ConversationFolder, tmp_path: Path, planted: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "call_1.txt").write_bytes(b"secret")
    record = conversation.put(new_file(key="call_1"), b"x")
    target = {
        "file": conversation.folder / record.path,
        "folder": conversation.folder / "artifacts" / "tool",
        "conversation": conversation.folder,
        "record": conversation.folder / "artifacts" / "refs" / f"{record.id}.json",
        "manifest": conversation.folder / "manifest.json",
    }[planted]
    target.rename(tmp_path / "moved")
    target.symlink_to(outside if planted in {"folder", "conversation"} else outside / "call_1.txt")

    if planted in {"file", "folder", "conversation"}:
        with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"):
            content_of(conversation, record.id)
    if planted in {"folder", "conversation"}:
        with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"):
            conversation.put(new_file(), b"y")
    if planted in {"record", "manifest"}:
        assert content_of(reopened(store), record.id) == b"x"
    assert (outside / "call_1.txt").read_bytes() == b"secret"
    assert [entry.name for entry in outside.iterdir()] == ["call_1.txt"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_a_planted_pipe_or_folder_holds_nobody(
    store: Store, conversation: ConversationFolder
) -> None:
    os.mkfifo(conversation.folder / "artifacts" / "refs.json")
    record = conversation.put(new_file(), b"x")
    os.mkfifo(conversation.folder / "artifacts" / "refs" / "ctx_00000000000000000009.json")
    (conversation.folder / "artifacts" / "refs" / "ctx_00000000000000000008.json").mkdir()
    os.mkfifo(conversation.folder / "artifacts" / "tool" / "pipe.log")
    assert [one.id for one in reopened(store).records()] == [record.id]
    path = conversation.folder / record.path
    path.unlink()
    os.mkfifo(path)

    with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"):
        content_of(conversation, record.id)


def test_a_record_that_names_another_path_is_no_record(
    store: Store, conversation: ConversationFolder
) -> None:
    record = conversation.put(new_file(), b"x")
    outside = msgspec.structs.replace(record, path="../../../etc/passwd")
    (conversation.folder / "manifest.json").unlink()
    kept = conversation.folder / "artifacts" / "refs" / f"{record.id}.json"
    kept.write_bytes(msgspec.json.encode(outside))

    again = reopened(store)

    assert all(one.path.startswith("artifacts/tool/") for one in again.records())
    with pytest.raises(DaemonError, match="NOT_FOUND"):
        content_of(again, record.id)


def test_a_deleted_conversation_leaves_nothing_and_its_id_is_free(
    store: Store, conversation: ConversationFolder
) -> None:
    conversation.put(new_file(), b"x")
    lazy_file(conversation, b"y")

    removed = store.delete(conversation)

    assert len(removed) == 2
    assert not conversation.folder.exists()
    assert store.find_or_create("prj_two", "chat-1").records() == []
    with pytest.raises(DaemonError, match="CONFLICT"):
        conversation.put(new_file(), b"late")


def test_cleaning_and_deleting_what_was_deleted_meanwhile_is_nothing_to_do(
    store: Store, conversation: ConversationFolder
) -> None:
    record = conversation.put(new_file(), b"x")
    store.delete(conversation)

    fresh = store.find_or_create("prj_two", "chat-1")

    assert not conversation.clean(record.id)
    assert store.delete(conversation) == []
    assert store.find("prj_two", "chat-1") is fresh
    with pytest.raises(DaemonError, match="NOT_FOUND"):
        conversation.remove(record.id)


def test_deleting_keeps_what_is_not_ours(store: Store, conversation: ConversationFolder) -> None:
    conversation.put(new_file(), b"x")
    other = conversation.folder / "history" / "rounds.jsonl"
    other.write_bytes(b"{}\n")

    store.delete(conversation)

    assert other.read_bytes() == b"{}\n"


def test_a_file_marked_deleted_goes_at_the_next_start(
    store: Store, conversation: ConversationFolder
) -> None:
    """Windows cannot remove a file that is being read; then only the mark is left."""
    record = conversation.put(new_file(), b"x")
    kept = conversation.folder / "artifacts" / "refs" / f"{record.id}.json"
    kept.write_bytes(msgspec.json.encode(msgspec.structs.replace(record, deleted=True)))

    again = reopened(store)

    assert again.records() == []
    assert not (conversation.folder / record.path).exists()
    assert not kept.exists()


def test_the_conversations_of_a_project_are_its_own(store: Store) -> None:
    store.find_or_create("prj_one", "a").put(new_file(), b"x")
    store.find_or_create("prj_two", "b").put(new_file(), b"x")
    store.find_or_create("prj_one", "c").put(new_file(), b"x")

    assert [one.id for one in store.of_project("prj_one")] == ["a", "c"]
    assert store.projects() == {"prj_one", "prj_two"}


def test_many_conversations_do_not_stay_in_memory(store: Store) -> None:
    for number in range(80):
        store.find_or_create("prj_one", f"chat-{number}").put(new_file(), b"x")

    records = [store.find_or_create("prj_one", f"chat-{n}").records() for n in range(80)]

    assert [len(one) for one in records] == [1] * 80


def test_hundreds_of_conversations_in_use_are_not_read_again(store: Store) -> None:
    """The objects themselves are watched: whoever reads a folder again makes another."""
    before = [id(store.find_or_create("prj_one", f"chat-{n}")) for n in range(300)]

    after = [id(store.find("prj_one", f"chat-{n}")) for n in range(300)]

    assert after == before


def test_the_oldest_leaves_when_there_are_too_many(store: Store) -> None:
    recent = RecentConversations(max_conversations=2)
    for name in ("chat-1", "chat-2", "chat-3"):
        recent.keep(store.find_or_create("prj_one", name))

    assert len(recent) == 2


def test_a_big_one_makes_the_others_leave_but_stays_itself(store: Store) -> None:
    recent = RecentConversations(max_records=3)
    big = store.find_or_create("prj_one", "chat-2")
    for n in range(5):
        big.put(new_file(key=f"call_{n}"), b"x")
    recent.keep(store.find_or_create("prj_one", "chat-1"))

    recent.keep(big)

    assert len(recent) == 1


def test_one_that_grew_is_counted_as_it_is_when_used_again(store: Store) -> None:
    recent = RecentConversations(max_records=1)
    one, other = (
        store.find_or_create("prj_one", "chat-1"),
        store.find_or_create("prj_one", "chat-2"),
    )
    recent.keep(one)
    recent.keep(other)
    for n in range(2):
        other.put(new_file(key=f"call_{n}"), b"x")

    recent.keep(other)

    assert len(recent) == 1


def test_a_forgotten_one_leaves_no_records_behind(store: Store) -> None:
    recent = RecentConversations(max_records=2)
    gone = store.find_or_create("prj_one", "chat-1")
    gone.put(new_file(), b"x")
    recent.keep(gone)
    recent.forget(gone)
    recent.forget(gone)

    for name in ("chat-2", "chat-3"):
        kept = store.find_or_create("prj_one", name)
        kept.put(new_file(), b"x")
        recent.keep(kept)

    assert len(recent) == 2
