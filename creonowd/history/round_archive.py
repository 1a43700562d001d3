"""Export and import of a conversation with its rounds, which travel as `rounds.json`."""

import contextlib
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import msgspec
from anyio import to_thread

from creonowd.context_files import archives
from creonowd.context_files.files import ContextFiles, ConversationKey
from creonowd.context_files.record_store import ROUNDS, NewRounds
from creonowd.context_files.records import ContextRef
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.histories import Histories, History, encode_messages
from creonowd.history.intake import redact_message
from creonowd.history.rounds import LONGEST_ID, Message, Speaker, check_messages
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.storage import versioned_json

VERSION = 1


class ArchiveRounds(Model):
    """What `rounds.json` in an archive holds: the messages of all rounds, oldest first."""

    version: int = VERSION
    messages: tuple[Message, ...] = ()


class ConversationExport(NamedTuple):
    """How many files and rounds an archive holds, and how big it is."""

    files: int
    bytes: int
    rounds: int


class ConversationImport(NamedTuple):
    """The files that an archive brought, and how many rounds the conversation has now."""

    refs: list[ContextRef]
    total_rounds: int


async def export_conversation(
    files: ContextFiles,
    histories: Histories,
    redactor: Redactor,
    key: ConversationKey,
    path: str,
) -> ConversationExport:
    """Pack the files and rounds of a conversation into an archive at an absolute path."""
    await files.run(files.store.find, *key)
    # The rounds first: a file that they name was put before them, so it is packed as well.
    history = await histories.read(key)
    data = await to_thread.run_sync(encode_rounds, history, redactor)
    result = await archives.export_conversation(files, key, path, data)
    return ConversationExport(result.files, result.bytes, len(history.rounds))


async def import_conversation(
    files: ContextFiles,
    histories: Histories,
    redactor: Redactor,
    key: ConversationKey,
    path: str,
) -> ConversationImport:
    """Import the files and rounds of an archive, all of them or nothing."""
    await files.run(files.store.find, *key)
    async with histories.lock(key):
        before = await histories.current(key)
        new_rounds = partial(rounds_to_add, before, redactor)
        try:
            result = await archives.import_conversation(files, key, path, new_rounds)
        finally:
            histories.forget(key)
        after = await histories.current(key)
    return ConversationImport([record.ref for record in result.records], len(after.rounds))


def encode_rounds(history: History, redactor: Redactor) -> bytes | None:
    """Return the rounds of a history for an archive, redacted by today's rules; None if it has none."""
    messages = [message for one in history.rounds for message in one.messages]
    if history.damaged:
        messages = _without_orphans(messages)
    if not messages:
        return None
    clean = tuple(redact_message(message, redactor) for message in messages)
    return msgspec.json.encode(ArchiveRounds(messages=clean))


def rounds_to_add(history: History, redactor: Redactor, data: bytes) -> NewRounds | None:
    """Return what a history lacks of the rounds in an archive, of which nothing is trusted.

    CONFLICT if the history has other rounds than these.
    """
    arriving = _read_rounds(data, redactor)
    known = [message for one in history.rounds for message in one.messages]
    if known[: len(arriving)] == arriving:
        return None
    if arriving[: len(known)] != known:
        raise DaemonError(
            ErrorCode.CONFLICT,
            "The conversation has other rounds than the archive; import into a new one.",
            field="conversationId",
        )
    return NewRounds(history.size, encode_messages(arriving[len(known) :]))


def _read_rounds(data: bytes, redactor: Redactor) -> list[Message]:
    from creonowd.context_files.archive_import import invalid_archive

    try:
        read = versioned_json.decode(data, ArchiveRounds, version=VERSION, name=ROUNDS)
        names = [name or "" for m in read.messages for name in (m.tool_call_id, m.name)]
        if max(map(len, names), default=0) > LONGEST_ID:
            raise invalid_archive("rounds", "A message has an id or a name that is too long.")
        messages = check_messages((), read.messages)
        return [redact_message(message, redactor) for message in messages]
    except (versioned_json.DamagedFileError, RecursionError):
        raise invalid_archive("rounds", "The rounds cannot be understood.") from None
    except DaemonError as error:
        if error.code is not ErrorCode.INVALID_ARGUMENT or "reason" in error.details:
            raise
        raise invalid_archive("rounds", "The rounds are none that a daemon would keep.") from None


def _without_orphans(messages: Sequence[Message]) -> list[Message]:
    """Drop results whose call stood in a damaged line; no import would take them."""
    kept: list[Message] = []
    last_round: list[Message] = []
    for message in messages:
        if message.role is Speaker.USER:
            last_round = []
        with contextlib.suppress(DaemonError):
            last_round += check_messages(last_round, [message])
            kept.append(last_round[-1])
    return kept
