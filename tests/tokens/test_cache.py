"""The cache of counts is bounded, keyed by content and safe to use from many threads."""

from concurrent.futures import ThreadPoolExecutor

from creonowd.tokens.cache import ENTRY_BYTES, CountCache


def test_the_cache_never_outgrows_its_bound() -> None:
    cache = CountCache(max_bytes=10 * ENTRY_BYTES)

    for number in range(100):
        cache.count("o200k_base", f"{number:0300}", len)

    assert len(cache) == 10


def test_what_was_asked_for_last_is_kept_longest() -> None:
    cache = CountCache(max_bytes=2 * ENTRY_BYTES)
    first, second, third = ("a" * 300, "b" * 300, "c" * 300)

    for text in (first, second, first, third, first):
        cache.count("o200k_base", text, len)

    assert (cache.hits, cache.misses) == (2, 3)


def test_two_encodings_do_not_share_a_count() -> None:
    cache = CountCache()

    one = cache.count("cl100k_base", "x" * 300, lambda _: 1)
    other = cache.count("o200k_base", "x" * 300, lambda _: 2)

    assert (one, other) == (1, 2)


def test_threads_agree_on_every_count() -> None:
    cache = CountCache(max_bytes=20 * ENTRY_BYTES)
    texts = [chr(97 + number % 26) * (300 + number % 40) for number in range(4000)]

    def count(text: str) -> int:
        return cache.count("o200k_base", text, len)

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(count, texts))

    assert counts == [len(text) for text in texts]
    assert len(cache) <= 20
