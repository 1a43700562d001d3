"""Indexes and limits are looked after while nobody asks."""

from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SteppingClock, SystemClock
from creonowd.context_files import retention
from creonowd.context_files.files import ContextFiles, ConversationKey, FileRequest, NewFileInfo
from creonowd.context_files.lazy_files import built_in
from creonowd.context_files.records import Kind
from creonowd.context_files.store import Store
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.workspace.projects import Projects

WHERE = ConversationKey("prj_one", "chat-1")


@pytest.fixture
def files(tmp_path: Path) -> ContextFiles:
    """Context files whose lazy ones may take up nothing."""
    clock = SystemClock()
    recipes = built_in(Projects(tmp_path, clock))
    settings = Settings(context_max_bytes=0)
    return ContextFiles(Store(tmp_path, clock), settings, recipes, Redactor())


async def test_a_big_manifest_catches_up(files: ContextFiles, tmp_path: Path) -> None:
    for number in range(70):
        await files.put(WHERE, str(number), NewFileInfo(Kind.ARTIFACT, "h"))
    assert files.store.behind()

    await retention.look_after(files, clean=False)

    manifest = msgspec.json.decode((tmp_path / "context/chat-1/manifest.json").read_bytes())
    assert len(manifest["items"]) == 70
    assert not files.store.behind()


async def test_lazy_files_over_the_limit_are_cleaned_without_being_asked(
    files: ContextFiles,
) -> None:
    conversation = files.store.bound(*WHERE)
    ref = await files.register(WHERE, {"type": "json", "value": 1}, NewFileInfo(Kind.CATALOG, "h"))
    record = conversation.find(ref.id)
    with conversation.filling(record) as file:
        file.write(b"made")

    await retention.look_after(files, clean=True)

    assert conversation.presence(record) is None
    assert conversation.find(ref.id).survey is None


async def test_a_disk_that_refuses_does_not_end_the_keeping(
    files: ContextFiles, tmp_path: Path
) -> None:
    for number in range(70):
        await files.put(WHERE, str(number), NewFileInfo(Kind.ARTIFACT, "h"))
    folder = tmp_path / "context" / "chat-1"
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").mkdir()

    await retention.look_after(files, clean=True)
    last = await files.put(WHERE, "still possible", NewFileInfo(Kind.ARTIFACT, "h"))

    assert (await files.newest(WHERE, None, 500))[-1] == last.ref
    assert files.store.behind()


async def test_stats_and_prune_of_a_project_cover_its_conversations(tmp_path: Path) -> None:
    clock = SteppingClock()
    recipes = built_in(Projects(tmp_path, clock))
    files = ContextFiles(Store(tmp_path, clock), Settings(), recipes, Redactor())
    for chat in ("a", "b"):
        await files.put(ConversationKey("prj_one", chat), "12345", NewFileInfo(Kind.ARTIFACT, "h"))
    await files.put(ConversationKey("prj_two", "c"), "x", NewFileInfo(Kind.ARTIFACT, "h"))

    counted = await retention.stats(files, "prj_one", None)
    pruned = await retention.prune(files, "prj_one", None, None)

    assert (counted.conversations, counted.eager.files, counted.eager.bytes) == (2, 2, 10)
    assert (pruned.cleaned, pruned.kept_files, pruned.in_use) == ([], 2, 0)


async def test_a_file_in_use_is_left_and_counted(tmp_path: Path) -> None:
    clock = SystemClock()
    files = ContextFiles(
        Store(tmp_path, clock), Settings(), built_in(Projects(tmp_path, clock)), Redactor()
    )
    ref = await files.register(WHERE, {"type": "json", "value": 1}, NewFileInfo(Kind.CATALOG, "h"))
    await files.read(FileRequest(WHERE, ref.id))

    with files.store.bound(*WHERE).opened(ref.id):
        during = await retention.prune(files, "prj_one", None, 0)
    after = await retention.prune(files, "prj_one", None, 0)

    assert (len(during.cleaned), during.in_use) == (0, 1)
    assert (len(after.cleaned), after.in_use) == (1, 0)
