"""An export is whole or not there, and our own import takes it."""

import random
import threading
import zipfile
from pathlib import Path

import msgspec
import pytest

from creonowd.context_files.archives import (
    ArchiveProgress,
    ExportResult,
    export,
)
from creonowd.context_files.files import Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.threads import StoppedError, StopSignal
from tests.context_files.sample_archives import PREFIX, export_to, import_from
from tests.context_files.sample_files import content_of, new_file


@pytest.mark.requirement("CF-029", "CF-036")
def test_an_export_packs_the_files_and_the_manifest(packed: Path) -> None:
    with zipfile.ZipFile(packed) as zipped:
        names = zipped.namelist()
        manifest = msgspec.json.decode(zipped.read(f"{PREFIX}manifest.json"))

    assert f"{PREFIX}artifacts/tool/call_1.txt" in names
    assert all(name.startswith(PREFIX) for name in names)
    assert len(names) == 3
    assert [item["key"] for item in manifest["items"]] == ["call_1", None, "tools"]


def test_an_export_reports_files_and_size(conversation: ConversationFolder, tmp_path: Path) -> None:
    conversation.put(new_file(), b"abc")

    result = export_to(conversation, tmp_path / "chat.zip")

    assert result == ExportResult(1, (tmp_path / "chat.zip").stat().st_size)


def test_our_own_export_is_never_taken_for_a_bomb(
    conversation: ConversationFolder, elsewhere: Store, tmp_path: Path
) -> None:
    noise = random.Random(1).randbytes(20_000)
    contents = [bytes(3_000_000), b"plain", b"x" * 2_000_000, noise + bytes(3_000_000)]
    for content in contents:
        conversation.put(new_file(), content)
    export_to(conversation, tmp_path / "chat.zip")

    arrived = import_from(elsewhere, tmp_path / "chat.zip")

    assert [content_of(arrived.conversation, one.id) for one in arrived.records] == contents


def test_many_small_dense_files_of_ours_are_no_bomb(
    conversation: ConversationFolder, elsewhere: Store, tmp_path: Path
) -> None:
    contents = [bytes([number]) * 900_000 for number in range(30)]
    for content in contents:
        conversation.put(new_file(), content)
    export_to(conversation, tmp_path / "chat.zip")

    arrived = import_from(elsewhere, tmp_path / "chat.zip")

    assert [content_of(arrived.conversation, one.id) for one in arrived.records] == contents


def test_an_ordinary_big_file_is_deflated(conversation: ConversationFolder, tmp_path: Path) -> None:
    conversation.put(new_file(), b"".join(b"line %d\n" % number for number in range(300_000)))

    result = export_to(conversation, tmp_path / "chat.zip")

    assert result.bytes < 1_500_000


def test_a_stopped_export_leaves_no_file(conversation: ConversationFolder, tmp_path: Path) -> None:
    conversation.put(new_file(), b"x" * 3_000_000)
    stop = StopSignal()
    (tmp_path / "out").mkdir()

    with pytest.raises(StoppedError):
        export(conversation, tmp_path / "out" / "chat.zip", stop, lambda _: stop.set())

    assert list((tmp_path / "out").iterdir()) == []


def test_a_failed_export_keeps_the_archive_that_was_there(
    conversation: ConversationFolder, tmp_path: Path
) -> None:
    conversation.put(new_file(), b"x" * 3_000_000)
    stop = StopSignal()
    stop.set()
    (tmp_path / "chat.zip").write_bytes(b"old")

    with pytest.raises(StoppedError):
        export(conversation, tmp_path / "chat.zip", stop, lambda _: None)

    assert (tmp_path / "chat.zip").read_bytes() == b"old"


def test_progress_goes_up_to_the_end(conversation: ConversationFolder, tmp_path: Path) -> None:
    conversation.put(new_file(), b"x" * 2_500_000)
    conversation.put(new_file(), b"y")
    reports: list[ArchiveProgress] = []

    export(conversation, tmp_path / "chat.zip", StopSignal(), reports.append)

    assert [one.bytes for one in reports] == sorted(one.bytes for one in reports)
    assert reports[-1] == ArchiveProgress(2, 2, 2_500_001, 2_500_001)


def test_files_put_during_an_export_do_not_disturb_it(
    conversation: ConversationFolder, elsewhere: Store, tmp_path: Path
) -> None:
    for number in range(5):
        conversation.put(new_file(), b"%d" % number * 100_000)
    busy = threading.Thread(
        target=lambda: [conversation.put(new_file(), b"new") for _ in range(20)]
    )
    busy.start()

    export_to(conversation, tmp_path / "chat.zip")

    busy.join()
    assert len(import_from(elsewhere, tmp_path / "chat.zip").records) >= 5
