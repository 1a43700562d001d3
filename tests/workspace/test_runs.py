import errno
import os
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import anyio
import pytest
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.runs import (
    FOLDER,
    MAX_LINES,
    AcceptedText,
    RunRecord,
    Runs,
    RunStatus,
    RunSummary,
)


def run(number: int, place: int = 0) -> RunRecord:
    return RunRecord(
        run_id=f"run_{number}",
        skill_id="builtin:continue",
        at_ms=number,
        provider="fake",
        model="m",
        prompt_hash="a",
        stable_prefix_hash="b",
        token_count=10,
        input_tokens=11,
        summary=f"第{number}次",
        number=place,
    )


async def test_runs_are_kept_per_document_over_a_restart(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "章/一.md", run(1))
    await runs.record("prj_1", "章/一.md", run(2))
    await runs.record("prj_1", "章/二.md", run(3))

    restarted = Runs(tmp_path)

    assert await restarted.recent("prj_1", "章/一.md") == (run(1, 1), run(2, 2))
    assert await restarted.recent("prj_1", "章/二.md") == (run(3, 1),)
    assert await restarted.recent("prj_2", "章/一.md") == ()


async def test_only_the_last_runs_are_kept_and_accepted_ones_for_longer(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(100):
        await runs.record("prj_1", "a", run(number))
        if number < 30:
            await runs.decide("prj_1", f"run_{number}", RunStatus.ACCEPTED, number)

    for known in (runs, Runs(tmp_path)):
        kept = await known.recent("prj_1", "a")
        accepted = await known.accepted_runs("prj_1", "a")

        assert [record.at_ms for record in accepted] == list(range(20, 30))
        assert [record.at_ms for record in kept] == [*range(20, 30), *range(80, 100)]


async def test_a_run_is_pending_until_it_is_decided_on(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    await runs.record("prj_1", "b", run(2))

    before = await runs.accepted_runs("prj_1", "a")
    decided = await runs.decide("prj_1", "run_1", RunStatus.ACCEPTED, 7)

    assert before == ()
    assert decided == ("a", replace(run(1, 1), status=RunStatus.ACCEPTED, decided_at_ms=7))
    for known in (runs, Runs(tmp_path)):
        assert await known.accepted_runs("prj_1", "a") == (decided.run,)
        assert await known.accepted_runs("prj_1", "b") == ()


async def test_the_same_decision_again_writes_nothing(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    first = await runs.decide("prj_1", "run_1", RunStatus.ACCEPTED, 7)
    (path,) = tmp_path.rglob("*.jsonl")
    written = path.read_bytes()

    again = await runs.decide("prj_1", "run_1", RunStatus.ACCEPTED, 9)

    assert again == first
    assert path.read_bytes() == written


async def test_the_last_decision_counts(tmp_path: Path) -> None:
    """An author may undo what was accepted, and redo it."""
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    order = [RunStatus.ACCEPTED, RunStatus.DISCARDED, RunStatus.ACCEPTED, RunStatus.DISCARDED]

    for at_ms, status in enumerate(order):
        await runs.decide("prj_1", "run_1", status, at_ms)

        (kept,) = await Runs(tmp_path).recent("prj_1", "a")
        assert (kept.status, kept.decided_at_ms) == (status, at_ms)


async def test_what_was_really_accepted_replaces_the_output(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    summary = RunSummary(skill_name="续写", instruction="快", excerpt="全文", characters=2)
    await runs.record("prj_1", "a", replace(run(1), summary=summary))
    await runs.record("prj_1", "a", run(2))

    for run_id in ("run_1", "run_2"):
        await runs.decide("prj_1", run_id, RunStatus.ACCEPTED, 7, AcceptedText("半", 1))

    assert [record.summary for record in await Runs(tmp_path).accepted_runs("prj_1", "a")] == [
        replace(summary, excerpt="半", characters=1),
        RunSummary(excerpt="半", characters=1),
    ]


async def test_a_run_is_found_in_its_file_after_a_restart(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(5):
        await runs.record("prj_1", f"{number}.md", run(number))
    await runs.record("prj_2", "2.md", run(2))

    decided = await Runs(tmp_path).decide("prj_1", "run_2", RunStatus.ACCEPTED, 9)

    assert decided.document_id == "2.md"
    assert await Runs(tmp_path).accepted_runs("prj_2", "2.md") == ()


async def test_of_two_runs_with_one_id_the_latest_is_decided_on(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for at_ms, document in enumerate(("a", "b", "b")):
        await runs.record("prj_1", document, replace(run(at_ms), run_id="mine"))

    for known in (runs, Runs(tmp_path)):
        await known.decide("prj_1", "mine", RunStatus.ACCEPTED, 9)

    (accepted,) = await Runs(tmp_path).accepted_runs("prj_1", "b")
    assert accepted.at_ms == 2
    assert await Runs(tmp_path).accepted_runs("prj_1", "a") == ()


@pytest.mark.parametrize("run_id", ["run_2", "run", 'run_1"', "../x", ""])
async def test_an_unknown_run_is_not_found(tmp_path: Path, run_id: str) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))

    for project_id, wanted in (("prj_1", run_id), ("prj_2", "run_1")):
        with pytest.raises(DaemonError) as caught:
            await runs.decide(project_id, wanted, RunStatus.ACCEPTED, 1)

        assert caught.value.code is ErrorCode.NOT_FOUND
        assert caught.value.details == {"runId": wanted}


async def test_a_run_of_an_old_file_counts_as_not_accepted(tmp_path: Path) -> None:
    """Version 1 kept runs that nobody had decided on, with their summary as a text."""
    await Runs(tmp_path).record("prj_1", "a", run(1))
    (path,) = tmp_path.rglob("*.jsonl")
    old = path.read_bytes().replace(b'"version":2', b'"version":1')
    path.write_bytes(old.replace(b',"status":"pending","decidedAtMs":null', b""))

    assert await Runs(tmp_path).accepted_runs("prj_1", "a") == ()
    await Runs(tmp_path).decide("prj_1", "run_1", RunStatus.ACCEPTED, 7)

    assert path.read_bytes().startswith(b'{"version":2,')
    (accepted,) = await Runs(tmp_path).accepted_runs("prj_1", "a")
    assert accepted.summary == "第1次"


async def test_the_runs_of_a_project_are_listed_without_damaged_files(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number, document in enumerate(("a", "b", "c", "d")):
        await runs.record("prj_1", document, run(number))
    await runs.record("prj_2", "a", run(9))
    await runs.decide("prj_1", "run_0", RunStatus.DISCARDED, 7)
    damaged = [b"{half", b'{"version": 9}\n']
    for document, data in zip("bc", damaged, strict=True):
        await anyio.Path(tmp_path / path_of(document)).write_bytes(data)
    shutil.copy(tmp_path / path_of("a"), tmp_path / FOLDER / "prj_1" / "copy.jsonl")

    listed = await Runs(tmp_path).of_project("prj_1")

    assert {(found.document_id, found.run.status) for found in listed} == {
        ("a", RunStatus.DISCARDED),
        ("d", RunStatus.PENDING),
    }
    assert len(listed) == 2
    assert await Runs(tmp_path).of_project("prj_3") == []
    assert (tmp_path / path_of("b")).read_bytes() == b"{half"


def path_of(document: str) -> str:
    return f"{FOLDER}/prj_1/{sha256(document.encode()).hexdigest()[:32]}.jsonl"


async def test_a_decision_torn_by_a_kill_leaves_the_run_pending(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    (path,) = tmp_path.rglob("*.jsonl")
    before = path.read_bytes()
    await runs.decide("prj_1", "run_1", RunStatus.ACCEPTED, 7)
    whole = path.read_bytes()

    for length in range(len(before), len(whole) - 1, 9):
        path.write_bytes(whole[:length])
        (kept,) = await Runs(tmp_path).recent("prj_1", "a")
        assert kept.status is RunStatus.PENDING

        await Runs(tmp_path).decide("prj_1", "run_1", RunStatus.DISCARDED, 8)

        (kept,) = await Runs(tmp_path).recent("prj_1", "a")
        assert kept.status is RunStatus.DISCARDED


async def test_runs_and_decisions_at_once_are_all_kept(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(10):
        await runs.record("prj_1", "a", run(number))

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(runs.record, "prj_1", "a", run(10 + number))
            tasks.start_soon(runs.decide, "prj_1", f"run_{number}", RunStatus.ACCEPTED, 1)

    restarted = Runs(tmp_path)
    assert {one.at_ms for one in await restarted.accepted_runs("prj_1", "a")} == set(range(10))
    assert {one.at_ms for one in await restarted.recent("prj_1", "a")} == set(range(20))


async def test_runs_recorded_at_once_are_all_kept(tmp_path: Path) -> None:
    runs = Runs(tmp_path)

    async with anyio.create_task_group() as tasks:
        for number in range(8):
            tasks.start_soon(runs.record, "prj_1", "a", run(number))

    assert len(await Runs(tmp_path).recent("prj_1", "a")) == 8


async def test_nothing_is_read_again_while_it_is_remembered(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    first = await runs.recent("prj_1", "a")

    assert await runs.recent("prj_1", "a") is first


async def test_a_document_id_never_becomes_a_path(tmp_path: Path) -> None:
    runs = Runs(tmp_path)

    for document_id in ("../../x", "/etc/passwd", "a\0b", "x" * 5000):
        await runs.record("prj_1", document_id, run(1))

    assert {path.parent.name for path in tmp_path.rglob("*.jsonl")} == {"prj_1"}


async def test_a_damaged_file_is_kept_aside(tmp_path: Path) -> None:
    await Runs(tmp_path).record("prj_1", "a", run(1))
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_bytes(b"{half")

    assert await Runs(tmp_path).recent("prj_1", "a") == ()
    assert [p.name for p in tmp_path.rglob("*.jsonl")] == [f"{path.stem}.damaged-1.jsonl"]


async def test_a_newer_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    await Runs(tmp_path).record("prj_1", "a", run(1))
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_bytes(b'{"version": 9}\n')

    with pytest.raises(DaemonError) as caught:
        await Runs(tmp_path).record("prj_1", "a", run(2))

    assert caught.value.code is ErrorCode.VERSION_TOO_NEW
    assert path.read_bytes() == b'{"version": 9}\n'


async def test_a_record_torn_by_a_kill_costs_only_itself(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(3):
        await runs.record("prj_1", "a", run(number))
    (path,) = tmp_path.rglob("*.jsonl")
    whole = path.read_bytes()

    for length in range(len(whole) - 2, len(whole) - 40, -1):
        path.write_bytes(whole[:length])
        killed = Runs(tmp_path)
        await killed.record("prj_1", "a", run(9))

        kept = await Runs(tmp_path).recent("prj_1", "a")
        assert [record.at_ms for record in kept] == [0, 1, 9]


async def test_a_record_that_the_disk_took_half_of_spoils_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk takes a part of a line; once there is room again, nothing is glued to that."""
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    with monkeypatch.context() as full:
        full.setattr(os, "write", _takes_a_little(os.write))
        with pytest.raises(DaemonError) as caught:
            await runs.record("prj_1", "a", run(2))

    await runs.record("prj_1", "a", run(3))

    assert caught.value.code is ErrorCode.STORAGE_FULL
    kept = await Runs(tmp_path).recent("prj_1", "a")
    assert [record.at_ms for record in kept] == [1, 3]


async def test_runs_are_recorded_again_once_their_folder_is_gone(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    await runs.record("prj_1", "a", run(1))
    shutil.rmtree(tmp_path / FOLDER)
    with pytest.raises(DaemonError):
        await runs.record("prj_1", "a", run(2))

    await runs.record("prj_1", "a", run(3))

    assert [record.at_ms for record in await Runs(tmp_path).recent("prj_1", "a")] == [3]


def _takes_a_little(write: Callable[[int, memoryview], int]) -> Callable[[int, memoryview], int]:
    taken: list[int] = []

    def limited(descriptor: int, data: memoryview) -> int:
        if taken:
            raise OSError(errno.ENOSPC, "full")
        taken.append(write(descriptor, data[:20]))
        return taken[0]

    return limited


async def test_a_file_does_not_grow_without_end(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for number in range(200):
        await runs.record("prj_1", "a", run(number))

    (path,) = tmp_path.rglob("*.jsonl")
    assert path.read_bytes().count(b"\n") <= MAX_LINES + 1
    assert await Runs(tmp_path).recent("prj_1", "a") == tuple(
        run(n, n + 1) for n in range(180, 200)
    )
