"""Lazy files go first and by use, eager ones only by age, and what is read stays."""

from pathlib import Path

import msgspec
import pytest

from creonowd.clock import SteppingClock
from creonowd.context_files.folder import AbsentError, ConversationFolder
from creonowd.context_files.records import Kind
from creonowd.context_files.retention import (
    DAY_MS,
    CleaningReason,
    RetentionLimits,
    StoredFile,
    choose,
    holdings,
)
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError
from tests.context_files.files import content_of, lazy_file, new_file

PLENTY = RetentionLimits(1 << 40, 7 * DAY_MS, 90 * DAY_MS)
NOW = 1_700_000_000_000


def chosen(
    conversation: ConversationFolder, limits: RetentionLimits, now_ms: int = NOW
) -> list[tuple[str, CleaningReason]]:
    picked = choose(holdings([conversation]), limits, now_ms)
    return [(held.record.id, reason) for held, reason in picked]


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
    conversation = Store(tmp_path, clock).bound("prj_one", "chat")
    lazy = lazy_file(conversation, b"x")
    made = holdings([conversation])[0].last_used_ms
    content_of(conversation, lazy)

    used = holdings([conversation])[0].last_used_ms

    assert used - made >= 4 * DAY_MS


def test_a_recipe_alone_takes_no_space(conversation: ConversationFolder) -> None:
    conversation.register(new_file(Kind.HISTORY, recipe={"type": "host"}))

    assert holdings([conversation]) == []


@pytest.mark.requirement("CF-031")
def test_a_cleaned_lazy_file_is_absent_until_it_is_made_again(
    conversation: ConversationFolder,
) -> None:
    lazy = lazy_file(conversation, b"once")

    cleaned = conversation.clean(lazy)

    assert cleaned
    with pytest.raises(AbsentError) as absent:
        content_of(conversation, lazy)
    with conversation.filling(absent.value.record) as file:
        file.write(b"twice")
    assert content_of(conversation, lazy) == b"twice"


def test_a_cleaned_eager_file_is_gone(conversation: ConversationFolder) -> None:
    eager = conversation.put(new_file(), b"x").id

    conversation.clean(eager)

    with pytest.raises(DaemonError, match="NOT_FOUND"):
        content_of(conversation, eager)


def test_nothing_is_cleaned_while_it_is_read(conversation: ConversationFolder) -> None:
    lazy = lazy_file(conversation, b"content")

    with conversation.opened(lazy) as (_, file):
        during = conversation.clean(lazy)
        content = file.read_at(0, 100)
    after = conversation.clean(lazy)

    assert (during, content, after) == (False, b"content", True)


def test_cleaning_what_is_not_there_does_nothing(conversation: ConversationFolder) -> None:
    assert not conversation.clean("ctx_00000000000000000000")


def test_an_imported_file_ages_from_its_arrival(conversation: ConversationFolder) -> None:
    record = msgspec.structs.replace(conversation.put(new_file(), b"x"), created_at=0)
    held = StoredFile(conversation, record, 1, NOW)

    picked = choose([held], PLENTY, record.stored_at + 90 * DAY_MS)

    assert picked == []
