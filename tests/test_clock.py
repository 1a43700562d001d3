"""Ids say what they are and cannot be guessed, except where a harness wants to count them."""

import re

import pytest

from creonowd.clock import Clock, SteppingClock, SystemClock, iso


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


def test_looks_at_files_in_the_background_move_no_step() -> None:
    first, second = SteppingClock(), SteppingClock()
    looked = [first.file_time_ms() for _ in range(3)]

    assert min(looked) >= SystemClock().file_time_ms() - 60_000
    assert first.now_ms() == second.now_ms()


def test_time_moves_forward() -> None:
    clock = SystemClock()

    assert clock.monotonic() <= clock.monotonic()
    assert clock.now_ms() > 1_600_000_000_000


def test_a_time_is_written_the_same_on_every_system() -> None:
    """Windows' own conversion knows neither a time before 1970 nor the year 9999."""
    assert iso(-1) == "1969-12-31T23:59:59.999Z"
    assert iso(1_794_960_000_001) == "2026-11-18T00:00:00.001Z"
    assert iso(253_402_300_799_999) == "9999-12-31T23:59:59.999Z"
