"""Each model has its encoding, each encoding its table, and each table its licence."""

import zlib
from hashlib import sha256

import pytest

from creonowd.tokens import encoding_for
from creonowd.tokens.tables import (
    ENCODINGS,
    packaged_tables,
    packed_table,
    published_table,
    verify,
)


def test_a_model_counts_with_its_encoding() -> None:
    rows = (
        (None, ("o200k_base", True)),
        ("", ("o200k_base", True)),
        ("gpt-4o", ("o200k_base", True)),
        ("gpt-4o-mini-2024-07-18", ("o200k_base", True)),
        ("openai/GPT-4.1-mini", ("o200k_base", True)),
        ("gpt-5", ("o200k_base", True)),
        ("gpt-5.1-codex", ("o200k_base", True)),
        ("o3-mini", ("o200k_base", True)),
        ("ft:gpt-4o:acme:novel", ("o200k_base", True)),
        ("gpt-4", ("cl100k_base", True)),
        ("gpt-4-turbo", ("cl100k_base", True)),
        ("gpt-3.5-turbo", ("cl100k_base", True)),
        ("text-embedding-3-small", ("cl100k_base", True)),
        ("o1000", ("o200k_base", False)),
        ("claude-sonnet-4-5", ("o200k_base", False)),
        ("deepseek-chat", ("o200k_base", False)),
        ("qwen3-max", ("o200k_base", False)),
        ("fake", ("o200k_base", False)),
    )

    wrong = [
        f"{model!r} counts with {got}, not {expected}"
        for model, expected in rows
        if (got := encoding_for(model)) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_a_model_without_a_table_counts_with_the_encoding_of_the_profile() -> None:
    assert encoding_for("claude-opus-4", otherwise="cl100k_base") == ("cl100k_base", False)


def test_every_table_ships_with_its_licence() -> None:
    names = {entry.name for entry in packaged_tables().iterdir()}

    notice = (packaged_tables() / "NOTICE").read_text(encoding="utf-8")

    assert names == {"NOTICE", *(f"{name}.tokens" for name in ENCODINGS)}
    assert "MIT License" in notice
    assert all(definition.sha256 in notice for definition in ENCODINGS.values())


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_table_is_the_published_one_in_another_form(name: str) -> None:
    published = published_table(verify(name, packaged_tables()))

    packed = (packaged_tables() / f"{name}.tokens").read_bytes()

    assert sha256(published).hexdigest() == ENCODINGS[name].sha256
    assert zlib.decompress(packed_table(published)) == zlib.decompress(packed)
