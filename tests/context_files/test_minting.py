"""A new record never takes an id, a name or a place in the order that another has."""

from collections.abc import Iterator

from creonowd.clock import SteppingClock
from creonowd.context_files.records import Index, Record, mint
from tests.context_files.files import new_file


class UnluckyClock(SteppingClock):
    """A clock whose dice fall as they are told to."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__()
        self._ids: Iterator[str] = iter(ids)

    def new_id(self, prefix: str) -> str:
        """Give out the next id."""
        return f"{prefix}_{next(self._ids)}"


def test_an_id_that_is_taken_is_thrown_away() -> None:
    index = Index()
    clock = UnluckyClock(["a" * 20, "a" * 20, "a" * 20, "b" * 20])

    for _ in range(2):
        index.add(mint(new_file(), index, "prj_one", clock))

    assert [record.id for record in index.all()] == [f"ctx_{'a' * 20}", f"ctx_{'b' * 20}"]


def test_records_of_one_moment_keep_their_order() -> None:
    index = Index()
    clock = SteppingClock(step_ms=0)
    minted: list[Record] = []

    for key in ("z", "a", "m"):
        minted.append(mint(new_file(key=key), index, "prj_one", clock))
        index.add(minted[-1])

    assert index.all() == minted
    assert len({record.path for record in minted}) == 3
