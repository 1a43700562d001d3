"""A table that a user brings counts its models exactly, or says plainly why it cannot."""

import gzip
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from creonowd.tokens import CountKind, KnownTables, Tokenizers
from creonowd.tokens.tables import (
    FOLDER,
    LARGEST_TABLE,
    TableError,
    list_tables,
    load_table,
    packaged_tables,
    published_table,
    verify,
)
from creonowd.tokens.tokenizer import ByteTokenizer
from tests.tokens.user_table_files import BYTES, write_table


def problem_of(user_data: Path, name: str = "kimi_k3") -> str:
    """Return why a table cannot be used."""
    with pytest.raises(TableError) as caught:
        load_table(list_tables(user_data)[name])
    assert caught.value.wording.chinese
    return caught.value.wording.english


def test_a_known_model_counts_with_the_table_that_the_user_brought(tmp_path: Path) -> None:
    write_table(tmp_path)
    tokenizers = Tokenizers(known=KnownTables(list_tables(tmp_path)))

    match = tokenizers.known.encoding_for("moonshotai/Kimi-K3-preview")
    tokenizer = tokenizers.load(match.encoding)

    assert match == ("kimi_k3", CountKind.EXACT)
    assert (tokenizer.id, tokenizer.version) == ("kimi_k3", sha256(BYTES).hexdigest()[:16])
    assert tokenizer.count("林远") == 6


def test_a_table_names_the_models_it_is_for(tmp_path: Path) -> None:
    write_table(tmp_path, "wide", modelNames=["My-Model"])
    write_table(tmp_path, "narrow", modelNames=["my-model-2"])
    known = KnownTables(list_tables(tmp_path))

    found = [known.encoding_for(f"shop/{name}")[0] for name in ("My-Model-1", "my-model-2-pro")]

    assert found == ["wide", "narrow"]
    assert known.encoding_for("my-models").kind is CountKind.APPROXIMATE


def test_a_table_that_ships_gives_the_same_counts_when_a_user_brings_it(tmp_path: Path) -> None:
    tokens = verify("qwen3", packaged_tables())
    write_table(tmp_path, "mine", published_table(tokens), normalization="NFC")
    texts = ("她走了。e\u0301", "hello world\r\n", "👍🏽𠮷")

    mine = Tokenizers(known=KnownTables(list_tables(tmp_path))).load("mine")

    assert [*map(mine.count, texts)] == [*map(Tokenizers().load("qwen3").count, texts)]


@pytest.mark.parametrize(
    ("description", "table", "said"),
    [
        ({"sha256": "0" * 64}, BYTES, "SHA-256 differ"),
        ({"sha256": "short"}, BYTES, "64 hexadecimal digits"),
        ({"pat_str": 7}, BYTES, "no description"),
        ({"normalization": "NFKC"}, BYTES, "`normalization` is `NFC` or null"),
        ({"pat_str": "("}, BYTES, "were refused"),
        ({"pat_str": r"\p{L}+"}, BYTES, "leaves out a part"),
        ({"pat_str": r"\n#|[\s\S]"}, BYTES + b"CiM= 256\n", "do not add up"),
        ({}, BYTES[:-1] + b" 7\n", "no rank table"),
        ({}, b"!!! 0\n", "no rank table"),
        ({}, BYTES + BYTES, "no rank table"),
        ({}, BYTES[BYTES.index(b"\n") + 1 :], "each of the 256 bytes"),
        ({}, b"", "each of the 256 bytes"),
    ],
)
def test_a_bad_table_says_what_is_wrong_with_it(
    tmp_path: Path, description: dict[str, Any], table: bytes, said: str
) -> None:
    write_table(tmp_path, table=table, **description)

    assert said in problem_of(tmp_path)


def test_a_name_that_no_table_may_have_is_a_problem(tmp_path: Path) -> None:
    for name in ("o200k_base", "Kimi K3", "claude_v3"):
        write_table(tmp_path, name)

    assert "ships with creonowd" in problem_of(tmp_path, "o200k_base")
    assert "ships with creonowd" in problem_of(tmp_path, "claude_v3")
    assert "64 of a-z" in problem_of(tmp_path, "Kimi K3")


def test_missing_damaged_and_endless_files_are_problems(tmp_path: Path) -> None:
    write_table(tmp_path)
    packed = tmp_path / FOLDER / "kimi_k3.tiktoken.gz"
    whole = packed.read_bytes()

    packed.write_bytes(whole[:-9])
    torn = problem_of(tmp_path)
    packed.write_bytes(gzip.compress(bytes(LARGEST_TABLE + 1)))
    endless = problem_of(tmp_path)
    packed.unlink()
    missing = problem_of(tmp_path)
    packed.mkdir()

    assert "is damaged" in torn
    assert "more than" in endless
    assert "is missing" in missing
    assert "is no file" in problem_of(tmp_path)


def test_a_table_that_cannot_be_used_counts_in_bytes_and_says_why(tmp_path: Path) -> None:
    write_table(tmp_path, sha256="0" * 64)
    tokenizers = Tokenizers(known=KnownTables(list_tables(tmp_path)))

    tokenizer = tokenizers.load("kimi_k3")

    assert isinstance(tokenizer, ByteTokenizer)
    assert "SHA-256" in tokenizers.problems()["kimi_k3"].english


def test_a_description_that_makes_no_sense_is_reported_before_it_is_used(tmp_path: Path) -> None:
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "llama3.json").write_bytes(b"\xff{")

    problems = Tokenizers(known=KnownTables(list_tables(tmp_path))).problems()

    assert "no description" in problems["tokenizers/llama3"].english


def test_a_table_of_the_user_never_takes_the_place_of_one_that_ships(tmp_path: Path) -> None:
    write_table(tmp_path, "o200k_base", modelNames=["gpt-4o"])
    tokenizers = Tokenizers(known=KnownTables(list_tables(tmp_path)))

    match = tokenizers.known.encoding_for("gpt-4o")

    assert match == ("o200k_base", CountKind.EXACT)
    assert tokenizers.load(match.encoding).count("hello world") == 2
    assert "ships with" in tokenizers.problems()["tokenizers/o200k_base"].english


def test_without_the_folder_there_are_no_tables(tmp_path: Path) -> None:
    assert list_tables(tmp_path) == {}
