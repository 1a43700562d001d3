"""Tables are verified, loaded once, and fall back to bytes when they cannot be trusted."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from creonowd.tokens import Tokenizers
from creonowd.tokens.tables import ENCODINGS, packaged_tables
from tests.tokens.vocabulary import ENCODINGS as NAMES
from tests.tokens.vocabulary import tokenizer


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
    )

    wrong = [
        f"{encoding}: {text[:40]!r} has {got} tokens, not {expected}"
        for encoding, text, expected in rows
        if (got := tokenizer(encoding).count(text)) != expected
    ]

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("encoding", NAMES)
def test_a_special_token_in_a_manuscript_is_plain_text(encoding: str) -> None:
    assert tokenizer(encoding).count("<|endoftext|>") > 1


@pytest.mark.parametrize("encoding", NAMES)
def test_an_abyss_of_white_space_is_counted_without_a_panic(encoding: str) -> None:
    text = "前" + " " * 1_200_000 + "后" + "\u3000" * 1_000_000 + (" " * 800_000 + "x") * 2

    tokens = tokenizer(encoding).count(text)

    assert 0 < tokens <= len(text.encode())


@pytest.mark.parametrize("encoding", NAMES)
def test_a_lone_surrogate_counts_as_the_character_that_replaces_it(encoding: str) -> None:
    counter = tokenizer(encoding)

    assert counter.count("a\ud83d" * 200) == counter.count("a\ufffd" * 200)


def _missing(table: Path) -> None:
    table.unlink()


def _cut_short(table: Path) -> None:
    table.write_bytes(table.read_bytes()[:1000])


def _not_gzip(table: Path) -> None:
    table.write_bytes(b"not a table")


def _one_rank_changed(table: Path) -> None:
    table.write_bytes(
        gzip.compress(gzip.decompress(table.read_bytes()).replace(b" 7\n", b" 8\n", 1))
    )


@pytest.mark.parametrize("damage", [_missing, _cut_short, _not_gzip, _one_rank_changed])
async def test_a_table_that_cannot_be_trusted_is_replaced_by_bytes(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    table = tmp_path / "cl100k_base.tiktoken.gz"
    table.write_bytes((packaged_tables() / table.name).read_bytes())
    damage(table)
    tokenizers = Tokenizers(tmp_path)

    counter = await tokenizers.get("cl100k_base")

    assert counter.count("林远 ok") == 9
    assert not counter.exact
    assert tokenizers.problems()["cl100k_base"].startswith("the table of cl100k_base is ")
    assert str(tmp_path) not in str(tokenizers.problems())


async def test_an_encoding_nobody_knows_is_counted_in_bytes() -> None:
    tokenizers = Tokenizers()

    counter = await tokenizers.get("o300k_base")

    assert not counter.exact
    assert tokenizers.problems() == {"o300k_base": "there is no encoding o300k_base"}


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


async def test_a_count_is_measured_once_and_then_remembered() -> None:
    tokenizers = Tokenizers()
    counter = await tokenizers.get("cl100k_base")
    text = "他走了。" * 200

    first = counter.count(text)
    second = counter.count(text)

    assert first == second
    assert (tokenizers.cache.misses, tokenizers.cache.hits) == (1, 1)


def test_every_table_ships_with_its_licence() -> None:
    names = {entry.name for entry in packaged_tables().iterdir()}

    notice = (packaged_tables() / "NOTICE").read_text(encoding="utf-8")

    assert names == {"NOTICE", *(f"{name}.tiktoken.gz" for name in ENCODINGS)}
    assert "MIT License" in notice
    assert all(facts.sha256 in notice for facts in ENCODINGS.values())


def test_importing_the_package_does_not_import_tiktoken() -> None:
    check = "import sys, creonowd.tokens; sys.exit('tiktoken' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
