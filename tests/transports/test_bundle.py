"""Short messages of one turn leave as one; nothing is lost, nothing overtakes."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.transports.write_batch import HELD, SHORT, WriteBatch

SIZES = st.sampled_from([1, 200, SHORT, SHORT + 1, SHORT * 3, HELD + 1])
MESSAGES = st.lists(st.tuples(SIZES, st.booleans()), max_size=12)


class Loop:
    """Keeps what is sent, and what is to be done when the turn ends."""

    def __init__(self) -> None:
        self.sent: list[bytes | bytearray] = []
        self.later: list[Callable[[], None]] = []
        self.bundle = WriteBatch(self.sent.append, self.later.append)

    def end_turn(self) -> None:
        while self.later:
            self.later.pop(0)()


@given(messages=MESSAGES, in_a_turn=st.booleans())
def test_what_is_added_is_sent_in_its_order(
    messages: list[tuple[int, bool]], *, in_a_turn: bool
) -> None:
    loop = Loop()
    contents = [(bytes([n]) * size, soon) for n, (size, soon) in enumerate(messages)]

    def add_all() -> None:
        for content, soon in contents:
            (loop.bundle.add_soon if soon else loop.bundle.add)(content)

    loop.bundle.turn(add_all) if in_a_turn else add_all()
    loop.end_turn()

    assert b"".join(loop.sent) == b"".join(content for content, _ in contents)


def test_short_messages_of_a_turn_leave_as_one() -> None:
    loop = Loop()

    def add_three() -> None:
        for _ in range(3):
            loop.bundle.add(b"x")
        assert not loop.sent

    loop.bundle.turn(add_three)
    loop.bundle.add(b"y")

    assert loop.sent == [b"xxx", b"y"]


def test_a_turn_that_fails_still_sends_what_it_said() -> None:
    loop = Loop()

    def fail() -> None:
        loop.bundle.add(b"x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        loop.bundle.turn(fail)
    loop.bundle.add(b"y")

    assert loop.sent == [b"x", b"y"]


def test_what_need_not_leave_at_once_leaves_with_what_must() -> None:
    loop = Loop()

    loop.bundle.add_soon(b"a")
    loop.bundle.add_soon(b"b")
    assert not loop.sent
    loop.bundle.add(b"c")
    loop.bundle.add_soon(b"d")
    loop.end_turn()

    assert loop.sent == [b"abc", b"d"]


def test_no_turn_holds_back_more_than_a_little() -> None:
    loop = Loop()

    for _ in range(20):
        loop.bundle.add_soon(bytes(SHORT))

    assert sum(map(len, loop.sent)) >= 20 * SHORT - HELD
