"""How many conversations stay in memory, and which of them leave first."""

from creonowd.context_files.store import Recent, Store
from tests.context_files.files import new_file


def test_hundreds_of_conversations_in_use_are_not_read_again(store: Store) -> None:
    """The objects themselves are watched: whoever reads a folder again makes another."""
    before = [id(store.bound("prj_one", f"chat-{n}")) for n in range(300)]

    after = [id(store.find("prj_one", f"chat-{n}")) for n in range(300)]

    assert after == before


def test_the_oldest_leaves_when_there_are_too_many(store: Store) -> None:
    recent = Recent(conversations=2)
    for name in ("chat-1", "chat-2", "chat-3"):
        recent.keep(store.bound("prj_one", name))

    assert len(recent) == 2


def test_a_big_one_makes_the_others_leave_but_stays_itself(store: Store) -> None:
    recent = Recent(records=3)
    big = store.bound("prj_one", "chat-2")
    for n in range(5):
        big.put(new_file(key=f"call_{n}"), b"x")
    recent.keep(store.bound("prj_one", "chat-1"))

    recent.keep(big)

    assert len(recent) == 1


def test_one_that_grew_is_counted_as_it_is_when_used_again(store: Store) -> None:
    recent = Recent(records=1)
    one, other = store.bound("prj_one", "chat-1"), store.bound("prj_one", "chat-2")
    recent.keep(one)
    recent.keep(other)
    for n in range(2):
        other.put(new_file(key=f"call_{n}"), b"x")

    recent.keep(other)

    assert len(recent) == 1


def test_a_forgotten_one_leaves_no_records_behind(store: Store) -> None:
    recent = Recent(records=2)
    gone = store.bound("prj_one", "chat-1")
    gone.put(new_file(), b"x")
    recent.keep(gone)
    recent.forget(gone)
    recent.forget(gone)

    for name in ("chat-2", "chat-3"):
        kept = store.bound("prj_one", name)
        kept.put(new_file(), b"x")
        recent.keep(kept)

    assert len(recent) == 2
