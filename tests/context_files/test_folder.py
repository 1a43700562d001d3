"""Many writers and readers on one conversation, keys that make a put repeatable, and folders that are links."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.clock import SteppingClock, SystemClock
from creonowd.context_files.files import Store
from creonowd.context_files.folder import AbsentError, ConversationFolder
from creonowd.context_files.records import Kind
from creonowd.context_files.retention import stored_files
from creonowd.errors import DaemonError
from tests.context_files.sample_files import content_of, lazy_file, new_file

NEEDS_LINKS = pytest.mark.skipif(os.name == "nt", reason="links need a privilege on Windows")


@pytest.mark.requirement("CF-028")
def test_an_eager_file_is_there_as_soon_as_its_ref(conversation: ConversationFolder) -> None:
    record = conversation.put(new_file(), b"abc")

    assert (conversation.folder / record.path).read_bytes() == b"abc"
    assert record.ref.byte_size == 3


@pytest.mark.requirement("CF-030")
def test_a_lazy_ref_is_a_recipe_and_no_file(conversation: ConversationFolder) -> None:
    record = conversation.register(new_file(Kind.HISTORY, recipe={"type": "host", "n": 1}))

    assert not (conversation.folder / record.path).exists()
    with pytest.raises(AbsentError):
        content_of(conversation, record.id)


def test_the_same_key_and_content_give_the_same_ref(conversation: ConversationFolder) -> None:
    first = conversation.put(new_file(key="call_1"), b"abc")
    second = conversation.put(new_file(key="call_1"), b"abc")

    assert second == first
    assert len(conversation.records()) == 1


def test_putting_a_lost_file_again_brings_it_back(conversation: ConversationFolder) -> None:
    first = conversation.put(new_file(key="call_1"), b"abc")
    (conversation.folder / first.path).unlink()

    second = conversation.put(new_file(key="call_1"), b"abc")

    assert second == first
    assert content_of(conversation, first.id) == b"abc"


def test_a_key_of_a_recipe_is_not_one_of_a_put_file(conversation: ConversationFolder) -> None:
    conversation.register(new_file(Kind.HISTORY, key="call_1", recipe={"type": "host"}))

    with pytest.raises(DaemonError, match="CONFLICT"):
        conversation.put(new_file(Kind.HISTORY, key="call_1"), b"abc")


def test_the_same_key_for_other_content_is_a_conflict(conversation: ConversationFolder) -> None:
    first = conversation.put(new_file(key="call_1"), b"abc")

    with pytest.raises(DaemonError, match="CONFLICT") as caught:
        conversation.put(new_file(key="call_1"), b"other")

    assert caught.value.details["id"] == first.id
    assert content_of(conversation, first.id) == b"abc"


def test_the_same_key_and_recipe_give_the_same_ref(conversation: ConversationFolder) -> None:
    new = new_file(Kind.CATALOG, key="tools", recipe={"type": "json", "value": 1})
    first = conversation.register(new)

    assert conversation.register(new) == first
    with pytest.raises(DaemonError, match="CONFLICT"):
        conversation.register(new_file(Kind.CATALOG, key="tools", recipe={"type": "host"}))


def test_keys_that_make_the_same_name_make_two_files(conversation: ConversationFolder) -> None:
    keys = ["a/b", "a:b", "A_B", "a_b", "../x", "..\\x"]
    records = [conversation.put(new_file(key=key), key.encode()) for key in keys]

    assert [content_of(conversation, record.id) for record in records] == [k.encode() for k in keys]
    assert len({record.path.lower() for record in records}) == len(keys)


def test_a_failed_making_leaves_nothing(conversation: ConversationFolder) -> None:
    record = conversation.register(new_file(Kind.HISTORY, recipe={"type": "host"}))

    def fail() -> None:
        with conversation.write_lazy_file(record) as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    with pytest.raises(AbsentError):
        content_of(conversation, record.id)
    assert list((conversation.folder / "history" / "archive").iterdir()) == []


def test_a_full_disk_is_reported_and_leaves_nothing(conversation: ConversationFolder) -> None:
    record = conversation.register(new_file(Kind.HISTORY, recipe={"type": "host"}))

    def fill() -> None:
        with conversation.write_lazy_file(record) as file:
            file.write(b"half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(DaemonError, match="STORAGE_FULL"):
        fill()

    assert list((conversation.folder / "history" / "archive").iterdir()) == []


def test_a_file_deleted_while_it_is_made_stays_deleted(conversation: ConversationFolder) -> None:
    record = conversation.register(new_file(Kind.HISTORY, recipe={"type": "host"}))

    def fill_late() -> None:
        with conversation.write_lazy_file(record) as file:
            file.write(b"late")
            conversation.remove(record.id)

    with pytest.raises(DaemonError, match="NOT_FOUND"):
        fill_late()

    assert list((conversation.folder / "history" / "archive").iterdir()) == []


def test_deleting_under_a_reader_does_not_disturb_it(conversation: ConversationFolder) -> None:
    record = conversation.put(new_file(), b"content")

    with conversation.open_file(record.id) as (_, file):
        conversation.remove(record.id)
        content = file.read_at(0, 100)

    assert content == b"content"
    with pytest.raises(DaemonError, match="NOT_FOUND"):
        conversation.find(record.id)


@pytest.mark.requirement("CF-016")
@settings(max_examples=30)
@given(st.lists(st.sampled_from(Kind), max_size=12), st.integers(1, 6))
def test_the_newest_are_listed_oldest_first(kinds: list[Kind], limit: int) -> None:
    with TemporaryDirectory() as folder:
        conversation = Store(Path(folder), SteppingClock(step_ms=0)).find_or_create(
            "prj_one", "chat"
        )
        records = [conversation.put(new_file(kind), b"x") for kind in kinds]
        newest = conversation.newest(Kind.HISTORY, limit)
        everything = conversation.newest(None, 500)

    assert everything == records
    assert newest == [record for record in records if record.kind is Kind.HISTORY][-limit:]


def test_many_writers_with_one_key_make_one_file(tmp_path: Path) -> None:
    conversation = Store(tmp_path, SystemClock()).find_or_create("prj_one", "chat")

    def put(_: int) -> str:
        return conversation.put(new_file(key="call_1"), b"same").id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(put, range(32)))

    assert len(ids) == 1
    assert len(conversation.records()) == 1


def test_many_writers_and_readers_see_whole_files(tmp_path: Path) -> None:
    store = Store(tmp_path, SystemClock())

    def write(number: int) -> str:
        conversation = store.find_or_create("prj_one", "chat")
        return conversation.put(new_file(), b"%d " % number * 5000).id

    def read(_: int) -> None:
        conversation = store.find_or_create("prj_one", "chat")
        for record in conversation.records():
            content = content_of(conversation, record.id)
            assert len(set(content.split())) == 1
            assert record.stats is not None
            assert len(content) == record.stats.byte_size

    with ThreadPoolExecutor(8) as pool:
        written = [pool.submit(write, number) for number in range(40)]
        read_results = [pool.submit(read, number) for number in range(20)]
        ids = {one.result() for one in written}
        for one in read_results:
            one.result()

    again = Store(tmp_path, SystemClock()).find("prj_one", "chat")
    assert again is not None
    assert {record.id for record in again.records()} == ids


def test_cleaning_and_reading_race_without_harm(conversation: ConversationFolder) -> None:
    """A reader gets the whole file or learns that it is absent; never a part, never an error."""
    lazy = lazy_file(conversation, b"x" * 100_000)
    record = conversation.find(lazy)
    making = Lock()

    def clean(_: int) -> None:
        conversation.clean(lazy)

    def read(_: int) -> int:
        try:
            return len(content_of(conversation, lazy))
        except AbsentError:
            with making:  # as `Materialiser` does: one at a time, and only what is missing
                if conversation.size_and_last_use(record) is None:
                    with conversation.write_lazy_file(record) as file:
                        file.write(b"x" * 100_000)
            return 100_000

    with ThreadPoolExecutor(8) as pool:
        cleaning = [pool.submit(clean, n) for n in range(60)]
        lengths = {one.result() for one in [pool.submit(read, n) for n in range(120)]}
        for one in cleaning:
            one.result()

    assert lengths == {100_000}


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


@NEEDS_LINKS
@pytest.mark.requirement("CF-039")
def test_deleting_a_file_leaves_what_is_behind_a_link(
    conversation: ConversationFolder, outside: Path
) -> None:
    for record in conversation.records():
        conversation.remove(record.id)

    assert conversation.records() == []
    assert [entry.read_bytes() for entry in outside.iterdir()] == [b"theirs"] * 2


@NEEDS_LINKS
def test_cleaning_leaves_what_is_behind_a_link(
    conversation: ConversationFolder, outside: Path
) -> None:
    for record in conversation.records():
        conversation.clean(record.id)

    assert [entry.read_bytes() for entry in outside.iterdir()] == [b"theirs"] * 2


@NEEDS_LINKS
def test_deleting_the_conversation_leaves_what_is_behind_a_link(
    store: Store, conversation: ConversationFolder, outside: Path
) -> None:
    store.delete(conversation)

    assert [entry.read_bytes() for entry in outside.iterdir()] == [b"theirs"] * 2


@NEEDS_LINKS
def test_what_is_behind_a_link_takes_up_no_space(
    conversation: ConversationFolder, outside: Path
) -> None:
    assert len(list(outside.iterdir())) == 2

    assert stored_files([conversation]) == []


@NEEDS_LINKS
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
