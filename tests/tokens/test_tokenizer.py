"""Counts are exact, alone and in batches; without a sound table bytes are counted instead."""

import random
import subprocess
import sys
import threading
import tracemalloc
import unicodedata
import zlib
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from creonowd.threads import call_in_thread
from creonowd.tokens import Tokenizers
from creonowd.tokens.tables import SEPARATOR, packaged_encoding, packaged_tables, verify
from creonowd.tokens.tokenizer import (
    CHARACTERS_PER_THREAD,
    IDLE_S,
    count_in_background,
    has_endless_run,
)
from tests.tokens.vocabulary import ALL_TABLES, ENCODINGS, PIECES, texts, tokenizer

PROSE = "林远推开门，雨还在下；苏晴没有抬头。The rain had not stopped.\n"


HARD = "第12章　她說：「走！」\r\n👨\u200d👩\u200d👧 it's 3.14159\x01\x02 e\u0301\n"
REFERENCE = {"deepseek_v4": 31, "qwen3": 33, "qwen3_6": 38, "glm5_2": 27, "mistral_tekken": 42}
"""Counts of `HARD` by the tables and patterns as they were published."""


def test_counts_are_those_of_the_published_encoding() -> None:
    rows = (
        ("o200k_base", "hello world", 2),
        ("cl100k_base", "hello world", 2),
        ("o200k_base", "tiktoken is great!", 6),
        ("cl100k_base", "tiktoken is great!", 6),
        ("o200k_base", "お誕生日おめでとう", 8),
        ("cl100k_base", "お誕生日おめでとう", 9),
        ("o200k_base", "x" * 25_000, 3125),
        ("o200k_base", "", 0),
        *((name, HARD, tokens) for name, tokens in REFERENCE.items()),
    )

    wrong = [
        f"{encoding}: {text[:40]!r} has {got} tokens, not {expected}"
        for encoding, text, expected in rows
        if (got := tokenizer(encoding).count(text)) != expected
    ]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("encoding", ALL_TABLES)
def test_a_special_token_in_a_manuscript_is_plain_text(encoding: str) -> None:
    assert tokenizer(encoding).count("<|endoftext|>") > 1


@pytest.mark.parametrize("encoding", ALL_TABLES)
@pytest.mark.parametrize("run", [" ", "\u3000", "\x01", "a"])
def test_an_endless_run_is_counted_without_a_panic(encoding: str, run: str) -> None:
    text = "前" + run * 1_000_000 + "后" + run * 10 + "x"

    tokens = tokenizer(encoding).count(text)

    assert 0 < tokens <= len(text.encode())


@pytest.mark.parametrize("one", [" ", "\u3000", "\x01"])
def test_only_one_run_of_nine_hundred_thousand_is_endless(one: str) -> None:
    below, enough = one * 899_999, one * 900_000

    assert not has_endless_run(f"前{below}后{below}")
    assert has_endless_run(f"前{below}后{enough}")
    assert not has_endless_run("夜" * 1_000_000)


UNBROKEN = (
    "a" * 20_000,
    "夜" * 20_000,
    "ก" * 20_000,
    " " * 20_000 + "x",
    "\n" * 20_000,
    *("".join(random.Random(7).choices(letters, k=20_000)) for letters in (
        "etaoinshrdlu", "aBcD", "0123456789", "夜雨林远苏晴鬱龘", "👨\u200d👩👍🏽🇩🇪", "aB1 .,\n\t's中ก😀\u0301\r/",
    )),
)  # fmt: skip


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_text_without_a_break_is_counted_in_calls_that_add_up(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = [tokenizer(encoding).count(text) for text in UNBROKEN]
    monkeypatch.setattr("creonowd.tokens.tokenizer.LONG_CALL", 3_000)

    assert [tokenizer(encoding).count(text) for text in UNBROKEN] == whole


@pytest.mark.parametrize("table", ["claude_v3", "claude_v4_7"])
def test_the_costs_of_tokens_add_up_however_many_are_weighed_at_once(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a token costs depends on its neighbours, and on the bytes of a character cut in four."""
    pieces = (
        "it's ",
        "第一章 ",
        "鬱龘",
        "👨\u200d👩",
        " \n",
        "aB1.",
        "\u0301",
        "ก",
        "\x01",
        "é",
        "—",
        "𒀀",
    )
    texts = ["".join(random.Random(seed).choices(pieces, k=400)) for seed in range(20)]
    texts += ["", "a", "鬱" * 300, "\u0301\u0316" * 300]
    whole = [tokenizer(table).count(text) for text in texts]

    monkeypatch.setattr("creonowd.tokens.tokenizer.LONG_CALL", 600)
    for at_once in (1, 7, 100):
        monkeypatch.setattr("creonowd.tokens.tokenizer.TOKENS_AT_ONCE", at_once)
        assert [tokenizer(table).count(text) for text in texts] == whole, at_once


@pytest.mark.parametrize("table", ["o200k_base", "claude_v4_7"])
def test_a_count_takes_no_memory_for_each_token(table: str) -> None:
    """Of a text of 9 MB of marks, which are a token and a half each, it took 300 MB."""
    counter = tokenizer(table)
    text = "\u0301\u0316" * 500_000
    counter.count(text[:200_000])
    tracemalloc.start()
    try:
        tokens = counter.count(text)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert tokens > len(text)
    assert most < 10 * len(text)


@pytest.mark.anyio
async def test_the_count_of_a_letter_of_megabytes_ends_when_nobody_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counter = tokenizer("o200k_base")
    begun, encoded = threading.Event(), 0
    encode = tiktoken.Encoding.encode_ordinary

    def encode_one(encoding: tiktoken.Encoding, text: str) -> list[int]:
        nonlocal encoded
        encoded += len(text)
        begun.set()
        return encode(encoding, text)

    monkeypatch.setattr(tiktoken.Encoding, "encode_ordinary", encode_one)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: call_in_thread(counter.count, "a" * 9_000_000))
        await anyio.to_thread.run_sync(begun.wait)
        tasks.cancel_scope.cancel()

    assert 0 < encoded < 9_000_000 // 2


@pytest.mark.parametrize("encoding", ALL_TABLES)
def test_a_lone_surrogate_counts_as_the_character_that_replaces_it(encoding: str) -> None:
    counter = tokenizer(encoding)

    assert counter.count("a\ud83d" * 200) == counter.count("a\ufffd" * 200)


def counts_of(many: list[str], encoding: tiktoken.Encoding, *, ahead: bool = False) -> list[int]:
    with count_in_background(many, encoding, ahead=ahead) as counts:
        return counts.result()


@given(st.sampled_from(ALL_TABLES), st.lists(texts, max_size=12))
def test_every_text_counts_as_it_does_by_itself(name: str, given_texts: list[str]) -> None:
    counter = tokenizer(name)

    with counter.begin_count(given_texts) as counts:
        assert counts.result() == [counter.count(text) for text in given_texts]


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("name", ENCODINGS)
def test_every_text_counts_so_when_there_is_work_for_several_threads(
    name: str, *, ahead: bool
) -> None:
    """Of every length, so that shares are uneven and one text is more than a share."""
    encoding = packaged_encoding(name)
    many = [PROSE * (n % 7) + f"第{n}章" for n in range(2000)] + [PROSE * 2000, "", PROSE]
    assert sum(map(len, many)) > 4 * CHARACTERS_PER_THREAD

    counted = counts_of(many, encoding, ahead=ahead)

    assert counted == [len(encoding.encode_ordinary(text)) for text in many]


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_manuscript_that_holds_the_token_between_texts_is_plain_text(name: str) -> None:
    encoding = packaged_encoding(name)
    strange = ["a", f"她写下 {SEPARATOR} 。", SEPARATOR, "b"]

    assert counts_of(strange, encoding) == [len(encoding.encode_ordinary(t)) for t in strange]


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_unit_counts_the_same_alone_and_in_a_prompt(name: str) -> None:
    """Units begin with `#` and end in a newline."""
    counter, chance = tokenizer(name), random.Random(24)

    for _ in range(1500):
        units = ["#" + "".join(chance.choices(PIECES, k=chance.randrange(40))) for _ in range(3)]
        units = [f"{unit}\n" for unit in units]
        assert counter.count("".join(units)) == sum(map(counter.count, units)), units


@pytest.mark.parametrize("name", ENCODINGS)
def test_no_token_covers_more_code_points_than_the_longest(name: str) -> None:
    longest = max(len(token.decode(errors="replace")) for token in verify(name, packaged_tables()))

    assert longest <= tokenizer(name).longest


@pytest.mark.parametrize("name", ["qwen3", "qwen3_6"])
def test_qwen_counts_the_composed_form(name: str) -> None:
    counter = tokenizer(name)
    composed = "각 ガ é " * 20

    decomposed = unicodedata.normalize("NFD", composed)

    assert len(decomposed) > len(composed)
    assert counter.count(decomposed) == counter.count(composed)
    with counter.begin_count([decomposed]) as counts:
        assert counts.result() == [counter.count(composed)]


def test_no_texts_have_no_counts() -> None:
    assert counts_of([], packaged_encoding("o200k_base")) == []


def _missing(table: Path) -> None:
    table.unlink()


def _cut_short(table: Path) -> None:
    table.write_bytes(table.read_bytes()[:1000])


def _not_compressed(table: Path) -> None:
    table.write_bytes(b"not a table")


def _one_rank_changed(table: Path) -> None:
    tokens = zlib.decompress(table.read_bytes())
    table.write_bytes(zlib.compress(tokens.replace(b"\xc4\x01a", b"\xc4\x01b", 1)))


@pytest.mark.parametrize("damage", [_missing, _cut_short, _not_compressed, _one_rank_changed])
async def test_a_table_that_cannot_be_trusted_is_replaced_by_bytes(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    table = tmp_path / "cl100k_base.tokens"
    table.write_bytes((packaged_tables() / table.name).read_bytes())
    damage(table)
    tokenizers = Tokenizers(tmp_path)

    counter = await tokenizers.get("cl100k_base")

    assert counter.count("林远 ok") == 9
    assert not counter.exact
    assert tokenizers.problems()["cl100k_base"].english.startswith("the table of cl100k_base is ")
    assert str(tmp_path) not in str(tokenizers.problems())


async def test_an_encoding_nobody_knows_is_counted_in_bytes() -> None:
    tokenizers = Tokenizers()

    counter = await tokenizers.get("o300k_base")

    assert not counter.exact
    said = {name: one.english for name, one in tokenizers.problems().items()}
    assert said == {"o300k_base": "there is no encoding o300k_base"}


async def test_many_who_ask_at_once_share_one_tokenizer() -> None:
    tokenizers = Tokenizers()
    found: list[object] = []

    async def ask() -> None:
        found.append(await tokenizers.get("cl100k_base"))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            for _ in range(50):
                tasks.start_soon(ask)

    assert len({id(counter) for counter in found}) == 1
    assert tokenizers.problems() == {}


def test_importing_the_package_does_not_import_tiktoken() -> None:
    check = "import sys, creonowd.tokens; sys.exit('tiktoken' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


async def test_a_table_that_no_model_uses_is_let_go() -> None:
    now = [0.0]
    tokenizers = Tokenizers(clock=lambda: now[0])
    first = await tokenizers.get("cl100k_base")

    now[0] = IDLE_S
    await tokenizers.get("mistral_tekken")
    kept = await tokenizers.get("cl100k_base")
    now[0] = 3 * IDLE_S
    await tokenizers.get("mistral_tekken")
    again = await tokenizers.get("cl100k_base")

    assert kept is first
    assert again is not first
    assert again.count(PROSE) == first.count(PROSE)
