"""The simulated caches keep to what the providers' documentation says, example by example."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testing.cache_rules import (
    AN_HOUR,
    BreakPointCache,
    CacheUse,
    MarkedCache,
    PrefixCache,
    PromptCache,
    Request,
    UnitCache,
    possible,
)


def request(*blocks: tuple[int, int], at: float = 0.0) -> Request:
    """Make a request of blocks, each so many times a token."""
    tokens: list[int] = []
    ends: list[int] = []
    for token, times in blocks:
        tokens += [token] * times
        ends.append(len(tokens))
    return Request(tuple(tokens), tuple(ends), at)


def test_a_unit_is_read_only_if_all_of_it_matches() -> None:
    """The two examples of DeepSeek's page: A + B then A + B + C; A + B, A + C, then A + D."""
    talk, questions = UnitCache(), UnitCache()

    talk.send(request((1, 100), (2, 50)))
    longer = talk.send(request((1, 100), (2, 50), (3, 70)))
    asked = [questions.send(request((1, 100), (last, 50))) for last in (2, 3, 4)]

    assert longer == CacheUse(150, 0, 70)
    assert [use.read for use in asked] == [0, 0, 100]


def test_a_mark_finds_what_was_written_up_to_twenty_blocks_before_it() -> None:
    near, far = MarkedCache(1024), MarkedCache(1024)
    first = request((1, 2000))
    more = [(n, 10) for n in range(2, 40)]

    near.send(first)
    far.send(first)

    assert near.send(request((1, 2000), *more[:20])).read == 2000
    assert far.send(request((1, 2000), *more[:30])).read == 0


def test_marked_blocks_live_five_minutes_or_an_hour_from_their_last_use() -> None:
    short, long = MarkedCache(1024), MarkedCache(1024, AN_HOUR)
    times = (0.0, 200.0, 400.0, 1000.0)

    read = [[c.send(request((1, 1500), at=at)).read for at in times] for c in (short, long)]

    assert read == [[0, 1500, 1500, 0], [0, 1500, 1500, 1500]]


def test_what_is_under_the_minimum_is_neither_read_nor_written() -> None:
    caches: list[PromptCache] = [
        MarkedCache(1024),
        BreakPointCache(),
        PrefixCache(1024, 128),
        PrefixCache(4096),
    ]
    short = request((1, 1000), (2, 20))

    used = [(cache.send(short), cache.send(short)) for cache in caches]

    assert all(again == CacheUse(0, 0, 1020) for _, again in used)


def test_a_break_point_matches_exactly_and_nothing_shorter_counts() -> None:
    cache = BreakPointCache()

    one_block = [cache.send(request((1, 3000), (n, 100))._replace(ends=(3100,))) for n in (2, 3)]
    marked = [cache.send(request((1, 3000), (n, 100))) for n in (4, 5)]

    assert [use.read for use in one_block] == [0, 0]
    assert marked[1] == CacheUse(3000, 100, 0)


def test_the_longest_prefix_counts_in_steps_of_128() -> None:
    cache = PrefixCache(1024, 128)

    cache.send(request((1, 1300), (2, 500)))

    assert cache.send(request((1, 1300), (3, 500))).read == 1024 + 2 * 128
    assert cache.send(request((1, 1300), (4, 500), at=1000.0)).read == 0


_blocks = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 900)), min_size=1, max_size=6)


@pytest.mark.parametrize("kind", ["marked", "points", "prefix", "unit"])
@given(st.lists(_blocks, min_size=1, max_size=8))
def test_no_cache_reads_more_than_is_possible(kind: str, sent: list[list[tuple[int, int]]]) -> None:
    cache: PromptCache = {
        "marked": MarkedCache(512),
        "points": BreakPointCache(512),
        "prefix": PrefixCache(512, 128),
        "unit": UnitCache(),
    }[kind]
    requests = [request(*blocks) for blocks in sent]

    used = [cache.send(each) for each in requests]

    total = sum(use.total for use in used)
    assert total == sum(len(each.tokens) for each in requests)
    assert sum(use.read for use in used) <= possible(requests) * total + 1e-6
    assert all(min(use) >= 0 for use in used)
