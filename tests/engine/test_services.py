"""Runs under way: who may stop one, and what becomes of one that is stopped."""

import anyio
import pytest

from creonowd.engine.services import SkillRuns
from creonowd.errors import DaemonError, ErrorCode


async def stopped(flights: SkillRuns, *, shielded: bool) -> None:
    """Be a run that is stopped, in the middle or where nothing interrupts it."""
    with flights.register("run", "me"), anyio.CancelScope(shield=shielded):
        assert flights.cancel("run", "me", any_run=False)
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("shielded", [False, True])
async def test_a_run_that_is_stopped_ends_as_cancelled(*, shielded: bool) -> None:
    """Also one whose record was just being written: the asker has the answer that it stops."""
    with pytest.raises(DaemonError) as caught:
        await stopped(SkillRuns(), shielded=shielded)

    assert caught.value.code is ErrorCode.CANCELED


async def test_nobody_stops_the_run_of_another() -> None:
    flights = SkillRuns()

    with flights.register("run", "me"):
        assert not flights.cancel("run", "somebody", any_run=False)
        assert not flights.cancel("another", "me", any_run=True)


async def test_an_id_is_taken_while_its_run_lasts() -> None:
    flights = SkillRuns()

    with flights.register("run", "me"), pytest.raises(DaemonError) as caught:
        flights.register("run", "me").__enter__()
    with flights.register("run", "me"):
        pass

    assert caught.value.code is ErrorCode.CONFLICT
