"""Short messages of one turn leave as one; nothing is lost, nothing overtakes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.transports.bundle import SHORT, Bundle

SIZES = st.lists(st.sampled_from([1, 200, SHORT, SHORT + 1, SHORT * 3]), max_size=12)


@given(sizes=SIZES, in_a_turn=st.booleans())
def test_what_is_added_is_sent_in_its_order(sizes: list[int], *, in_a_turn: bool) -> None:
    sent = bytearray()
    bundle = Bundle(sent.extend)
    messages = [bytes([number]) * size for number, size in enumerate(sizes)]

    def add_all() -> None:
        for message in messages:
            bundle.add(message)

    bundle.turn(add_all) if in_a_turn else add_all()

    assert bytes(sent) == b"".join(messages)


def test_short_messages_of_a_turn_leave_as_one() -> None:
    sent: list[bytes | bytearray] = []
    bundle = Bundle(sent.append)

    def add_three() -> None:
        for _ in range(3):
            bundle.add(b"x")
        assert not sent

    bundle.turn(add_three)
    bundle.add(b"y")

    assert sent == [b"xxx", b"y"]


def test_a_turn_that_fails_still_sends_what_it_said() -> None:
    sent: list[bytes | bytearray] = []
    bundle = Bundle(sent.append)

    def fail() -> None:
        bundle.add(b"x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bundle.turn(fail)
    bundle.add(b"y")

    assert sent == [b"x", b"y"]
