"""Lazy files go first and by use, eager ones only by age, and what is read stays."""

from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SteppingClock, SystemClock
from creonowd.context_files import retention
from creonowd.context_files.files import (
    ContextFiles,
    ConversationKey,
    FileRequest,
    NewFileInfo,
    Store,
)
from creonowd.context_files.folder import AbsentError, ConversationFolder
from creonowd.context_files.lazy_files import built_in_recipes
from creonowd.context_files.records import Kind
from creonowd.context_files.retention import (
    DAY_MS,
    CleaningReason,
    RetentionLimits,
    StoredFile,
    choose_files,
    stored_files,
)
from creonowd.errors import DaemonError
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.workspace.projects import Projects
from tests.context_files.sample_files import content_of, lazy_file, new_file

PLENTY = RetentionLimits(1 << 40, 7 * DAY_MS, 90 * DAY_MS)
NOW = 1_700_000_000_000
WHERE = ConversationKey("prj_one", "chat-1")


def chosen(
    conversation: ConversationFolder, limits: RetentionLimits, now_ms: int = NOW
) -> list[tuple[str, CleaningReason]]:
    picked = choose_files(stored_files([conversation]), limits, now_ms)
    return [(one.file.record.id, one.reason) for one in picked]


@pytest.fixture
def files(tmp_path: Path) -> ContextFiles:
    """Context files whose lazy ones may take up nothing."""
    clock = SystemClock()
    recipes = built_in_recipes(Projects(tmp_path, clock))
    settings = Settings(context_max_bytes=0)
    return ContextFiles(Store(tmp_path, clock), settings, recipes, Redactor())


@pytest.mark.requirement("CF-031", "CF-043")
def test_too_much_takes_lazy_files_least_recently_used_first(
    conversation: ConversationFolder,
) -> None:
    first = lazy_file(conversation, b"x" * 100)
    second = lazy_file(conversation, b"x" * 100)
    third = lazy_file(conversation, b"x" * 100)
    content_of(conversation, first)

    picked = chosen(conversation, PLENTY._replace(bytes=150))

    assert picked == [(second, CleaningReason.LAZY_LRU), (third, CleaningReason.LAZY_LRU)]


def test_eager_files_stay_however_much_there_is(conversation: ConversationFolder) -> None:
    conversation.put(new_file(), b"x" * 1000)

    assert chosen(conversation, PLENTY._replace(bytes=0)) == []


def test_every_file_goes_by_its_own_age(conversation: ConversationFolder) -> None:
    eager = conversation.put(new_file(), b"x").id
    lazy = lazy_file(conversation, b"x")

    week = chosen(conversation, PLENTY, NOW + 8 * DAY_MS)
    quarter = chosen(conversation, PLENTY, NOW + 91 * DAY_MS)

    assert week == [(lazy, CleaningReason.LAZY_AGE)]
    assert sorted(quarter) == sorted(
        [(eager, CleaningReason.EAGER_AGE), (lazy, CleaningReason.LAZY_AGE)]
    )


def test_reading_keeps_a_lazy_file_young(tmp_path: Path) -> None:
    clock = SteppingClock(step_ms=4 * DAY_MS)
    conversation = Store(tmp_path, clock).find_or_create("prj_one", "chat")
    lazy = lazy_file(conversation, b"x")
    made = stored_files([conversation])[0].last_used_ms
    content_of(conversation, lazy)

    used = stored_files([conversation])[0].last_used_ms

    assert used - made >= 4 * DAY_MS


def test_a_recipe_alone_takes_no_space(conversation: ConversationFolder) -> None:
    conversation.register(new_file(Kind.HISTORY, recipe={"type": "host"}))

    assert stored_files([conversation]) == []


@pytest.mark.requirement("CF-031")
def test_a_cleaned_lazy_file_is_absent_until_it_is_made_again(
    conversation: ConversationFolder,
) -> None:
    lazy = lazy_file(conversation, b"once")

    cleaned = conversation.clean(lazy)

    assert cleaned
    with pytest.raises(AbsentError) as absent:
        content_of(conversation, lazy)
    with conversation.write_lazy_file(absent.value.record) as file:
        file.write(b"twice")
    assert content_of(conversation, lazy) == b"twice"


def test_a_cleaned_eager_file_is_gone(conversation: ConversationFolder) -> None:
    eager = conversation.put(new_file(), b"x").id

    conversation.clean(eager)

    with pytest.raises(DaemonError, match="NOT_FOUND"):
        content_of(conversation, eager)


def test_nothing_is_cleaned_while_it_is_read(conversation: ConversationFolder) -> None:
    lazy = lazy_file(conversation, b"content")

    with conversation.open_file(lazy) as (_, file):
        during = conversation.clean(lazy)
        content = file.read_at(0, 100)
    after = conversation.clean(lazy)

    assert (during, content, after) == (False, b"content", True)


def test_cleaning_what_is_not_there_does_nothing(conversation: ConversationFolder) -> None:
    assert not conversation.clean("ctx_00000000000000000000")


def test_an_imported_file_ages_from_its_arrival(conversation: ConversationFolder) -> None:
    record = msgspec.structs.replace(conversation.put(new_file(), b"x"), created_at=0)
    file = StoredFile(conversation, record, 1, NOW)

    picked = choose_files([file], PLENTY, record.stored_at + 90 * DAY_MS)

    assert picked == []


async def test_a_big_manifest_catches_up(files: ContextFiles, tmp_path: Path) -> None:
    for number in range(70):
        await files.put(WHERE, str(number), NewFileInfo(Kind.ARTIFACT, "h"))
    assert files.store.with_stale_manifest()

    await retention.maintain_once(files, clean=False)

    manifest = msgspec.json.decode((tmp_path / "context/chat-1/manifest.json").read_bytes())
    assert len(manifest["items"]) == 70
    assert not files.store.with_stale_manifest()


async def test_lazy_files_over_the_limit_are_cleaned_without_being_asked(
    files: ContextFiles,
) -> None:
    conversation = files.store.find_or_create(*WHERE)
    ref = await files.register(WHERE, {"type": "json", "value": 1}, NewFileInfo(Kind.CATALOG, "h"))
    record = conversation.find(ref.id)
    with conversation.write_lazy_file(record) as file:
        file.write(b"made")

    await retention.maintain_once(files, clean=True)

    assert conversation.size_and_last_use(record) is None
    assert conversation.find(ref.id).stats is None


async def test_a_disk_that_refuses_does_not_end_the_keeping(
    files: ContextFiles, tmp_path: Path
) -> None:
    for number in range(70):
        await files.put(WHERE, str(number), NewFileInfo(Kind.ARTIFACT, "h"))
    folder = tmp_path / "context" / "chat-1"
    (folder / "manifest.json").unlink()
    (folder / "manifest.json").mkdir()

    await retention.maintain_once(files, clean=True)
    last = await files.put(WHERE, "still possible", NewFileInfo(Kind.ARTIFACT, "h"))

    assert (await files.newest(WHERE, None, 500))[-1] == last.ref
    assert files.store.with_stale_manifest()


async def test_stats_and_prune_of_a_project_cover_its_conversations(tmp_path: Path) -> None:
    clock = SteppingClock()
    recipes = built_in_recipes(Projects(tmp_path, clock))
    files = ContextFiles(Store(tmp_path, clock), Settings(), recipes, Redactor())
    for chat in ("a", "b"):
        await files.put(ConversationKey("prj_one", chat), "12345", NewFileInfo(Kind.ARTIFACT, "h"))
    await files.put(ConversationKey("prj_two", "c"), "x", NewFileInfo(Kind.ARTIFACT, "h"))

    counted = await retention.usage(files, "prj_one", None)
    pruned = await retention.prune(files, "prj_one", None, None)

    assert (counted.conversations, counted.eager.files, counted.eager.bytes) == (2, 2, 10)
    assert (pruned.cleaned, pruned.kept_files, pruned.in_use) == ([], 2, 0)


async def test_a_file_in_use_is_left_and_counted(tmp_path: Path) -> None:
    clock = SystemClock()
    files = ContextFiles(
        Store(tmp_path, clock), Settings(), built_in_recipes(Projects(tmp_path, clock)), Redactor()
    )
    ref = await files.register(WHERE, {"type": "json", "value": 1}, NewFileInfo(Kind.CATALOG, "h"))
    await files.read(FileRequest(WHERE, ref.id))

    with files.store.find_or_create(*WHERE).open_file(ref.id):
        during = await retention.prune(files, "prj_one", None, 0)
    after = await retention.prune(files, "prj_one", None, 0)

    assert (len(during.cleaned), during.kept_files, during.in_use) == (0, 1, 1)
    assert (len(after.cleaned), after.kept_files, after.in_use) == (1, 0, 0)
    assert (during.kept_bytes, after.kept_bytes) == (2, 0)
