"""What is remembered is bounded by its size: an author who saves all day costs no more memory."""

import tracemalloc
from collections.abc import Awaitable, Callable, Generator

import pytest
from msgspec import structs

from creonowd.context.fragment import Layer
from creonowd.context.source import PendingResult, ResultCache, SourceQuery, SourceResult, gather
from creonowd.context.text_tools import NotInMemoryError
from testing.sources import InMemorySource, piece
from tests.context.worlds import World, assemble_world, text_tools

VERSIONS = 60
LENGTH = 1_000_000
MOST_BYTES = 30_000_000

Version = Callable[[int], Awaitable[None]]


@pytest.fixture
def traced() -> Generator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def text(version: int) -> str:
    return f"{version}.\n\n".ljust(LENGTH, "x")


async def kept_of(version: Version) -> int:
    """Return how many bytes are still held when many versions have come and gone."""
    await version(-1)
    before, _ = tracemalloc.get_traced_memory()
    for number in range(VERSIONS):
        await version(number)
    return tracemalloc.get_traced_memory()[0] - before


@pytest.mark.usefixtures("traced")
async def test_answers_that_were_checked_are_let_go() -> None:
    async def gathered(version: int) -> None:
        given = [piece(Layer.RETRIEVED, "rag:1", text(version))]
        await gather(World().plan(), [InMemorySource(Layer.RETRIEVED, "rag", given)])

    assert await kept_of(gathered) < MOST_BYTES


class KeptSource(InMemorySource):
    """A source that has its answer in memory."""

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return a new value each time, as if its files had changed."""
        del ask
        return structs.replace(self.answer)


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("layer", [Layer.RULES, Layer.RETRIEVED])
async def test_answers_that_do_not_come_again_are_let_go(layer: Layer) -> None:
    known = ResultCache(100_000)

    async def gathered(version: int) -> None:
        given = [piece(layer, "rag:1", text(version))]
        await gather(World().plan(), [KeptSource(layer, "rag", given)], cache=known)

    assert await kept_of(gathered) < MOST_BYTES


@pytest.mark.usefixtures("traced")
async def test_settings_of_which_little_stays_are_let_go_whole() -> None:
    using = text_tools()

    async def composed(version: int) -> None:
        assemble_world(World(settings=(piece(Layer.SETTINGS, "w.md", text(version)),)), using)

    assert await kept_of(composed) < MOST_BYTES


def test_so_much_new_text_is_worked_on_and_no_more() -> None:
    using = text_tools()
    new = "雨还在下。" * 20

    with pytest.raises(NotInMemoryError):
        using.within(len(new) - 1).count(new)
    with pytest.raises(NotInMemoryError):
        using.within(len(new) - 1).redact(new)
    counted = using.within(len(new)).count(new)

    assert counted == using.tokenizer.inner.count(new)
    assert using.within(0).count(new) == counted
