"""Ids say what they are and cannot be guessed, except where a harness wants to count them."""

import re

import pytest

from creonowd.clock import Clock, SteppingClock, SystemClock


@pytest.mark.parametrize("clock", [SystemClock(), SteppingClock()])
def test_ids_have_the_form_that_the_wire_promises(clock: Clock) -> None:
    minted = {clock.new_id("prj") for _ in range(100)}

    assert len(minted) == 100
    assert all(re.fullmatch(r"prj_[a-z0-9]{16,26}", name) for name in minted)


def test_ids_use_the_whole_alphabet_in_every_place() -> None:
    letters = set("abcdefghijklmnopqrstuvwxyz0123456789")
    minted = [SystemClock().new_id("run").removeprefix("run_") for _ in range(2000)]

    assert all(set(place) == letters for place in zip(*minted, strict=True))


def test_a_stepping_clock_repeats_itself() -> None:
    first, second = SteppingClock(), SteppingClock()

    assert [first.now_ms(), first.now_ms()] == [second.now_ms(), second.now_ms()]
    assert first.new_id("run") == second.new_id("run")
    assert first.token() != second.token()


def test_time_moves_forward() -> None:
    clock = SystemClock()

    assert clock.monotonic() <= clock.monotonic()
    assert clock.now_ms() > 1_600_000_000_000
