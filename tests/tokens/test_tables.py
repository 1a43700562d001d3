"""Each encoding has its table, and each table its licence."""

import zlib
from hashlib import sha256

import pytest

from creonowd.tokens.tables import (
    BOUNDS,
    ENCODINGS,
    packaged_tables,
    packed_table,
    published_table,
    verify,
)


def test_every_table_ships_with_its_licence() -> None:
    names = {entry.name for entry in packaged_tables().iterdir()}

    notice = (packaged_tables() / "NOTICE").read_text(encoding="utf-8")

    tables = {*(f"{name}.tokens" for name in ENCODINGS), *(f"{name}.costs" for name in BOUNDS)}
    assert names == {"NOTICE", "LICENSE-APACHE", *tables}
    assert "MIT License" in notice
    assert "Apache-2.0" in notice
    assert {one.licence for one in ENCODINGS.values()} == {"MIT", "Apache-2.0"}
    assert all(definition.sha256 in notice for definition in ENCODINGS.values())


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_table_is_the_published_one_in_another_form(name: str) -> None:
    published = published_table(verify(name, packaged_tables()), ENCODINGS[name].skipped)

    packed = (packaged_tables() / f"{name}.tokens").read_bytes()

    assert sha256(published).hexdigest() == ENCODINGS[name].sha256
    assert zlib.decompress(packed_table(published)) == zlib.decompress(packed)
