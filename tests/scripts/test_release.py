"""A release: one version everywhere, checksums that hold, and nothing published by mistake."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from scripts.shipping.release import CHECKSUMS, main, versions, write_checksums

ROOT = Path(__file__).resolve().parents[2]


def test_every_place_names_the_same_version() -> None:
    found = versions(ROOT)

    assert len(found) == 4
    assert len(set(found.values())) == 1


def test_a_place_that_was_forgotten_is_seen(tmp_path: Path) -> None:
    for name in versions(ROOT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    package = tmp_path / "protocol" / "electron" / "package.json"
    description = json.loads(package.read_text(encoding="utf-8")) | {"version": "9.9.9"}
    package.write_text(json.dumps(description), encoding="utf-8")

    found = versions(tmp_path)

    assert found["protocol/electron/package.json"] == "9.9.9"
    assert len(set(found.values())) == 2


def test_checksums_are_those_of_every_file_but_the_list(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_bytes(b"one")
    (tmp_path / "two.tgz").write_bytes(b"two")

    write_checksums(tmp_path)
    write_checksums(tmp_path)

    expected = [
        f"{hashlib.sha256(data).hexdigest()}  {name}"
        for name, data in (("one.whl", b"one"), ("two.tgz", b"two"))
    ]
    assert (tmp_path / CHECKSUMS).read_text(encoding="utf-8").splitlines() == expected


@pytest.mark.parametrize("arguments", [[], ["--publish"], ["--dry-run", "--publish"]])
def test_nothing_is_built_unless_it_is_a_dry_run(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(arguments)

    assert "Nothing is published" in capsys.readouterr().err
