"""The rounds of a history elsewhere: as context files of kind `history`, and in an archive.

Rounds that a summary replaces, and the summary itself, are lazy context files that are made from
the history's log. In an archive rounds and written summaries travel as `rounds.json`.
"""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple

import msgspec
from anyio import to_thread
from msgspec import Meta
from msgspec.structs import replace

from creonowd.context_files.files import ContextFiles, ConversationKey, NewFileInfo
from creonowd.context_files.lazy_files import NextChunk, Producer, ProducerContext, Recipe, Recipes
from creonowd.context_files.record_store import ROUNDS, NewRounds
from creonowd.context_files.records import ContextRef, Kind, Origin, is_ref_id
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.histories import (
    Histories,
    History,
    StoredSummary,
    encode_messages,
    encode_summaries,
    redact_message,
    summary_of,
)
from creonowd.history.rounds import (
    LONGEST_ID,
    Message,
    Round,
    Speaker,
    call_texts,
    check_messages,
)
from creonowd.history.summary import redact_summary, render_summary
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.storage import stored_files

VERSION = 1
ROUNDS_RECIPE = "rounds"
SUMMARY_RECIPE = "summary"


class ArchiveRounds(Model):
    """What `rounds.json` in an archive holds: all messages, oldest first, and written summaries."""

    version: int = VERSION
    messages: tuple[Message, ...] = ()
    summaries: tuple[StoredSummary, ...] = ()


class FirstRoundsRecipe(Recipe):
    """The first rounds of the conversation in full, or the summary of them."""

    covers: Annotated[int, Meta(ge=1)]


def add_recipes(recipes: Recipes, histories: Histories) -> None:
    """Add the recipes by which rounds and summaries become context files."""
    recipes.add(ROUNDS_RECIPE, FirstRoundsRecipe, _producer(histories, _rounds_text))
    recipes.add(SUMMARY_RECIPE, FirstRoundsRecipe, _producer(histories, _summary_file))


async def register_rounds(files: ContextFiles, key: ConversationKey, covers: int) -> ContextRef:
    """Register the first rounds and the summary of them as context files, once; return the rounds'."""
    span = f"1-{covers}"
    info = NewFileInfo(
        kind=Kind.HISTORY,
        hint=f"rounds {span} of this conversation in full",
        origin=Origin.ARCHIVE,
        key=f"rounds-{span}",
    )
    ref = await files.register(key, {"type": ROUNDS_RECIPE, "covers": covers}, info)
    summary = info._replace(
        hint=f"summary of rounds {span}", origin=Origin.SUMMARY, key=f"summary-{span}"
    )
    await files.register(key, {"type": SUMMARY_RECIPE, "covers": covers}, summary)
    return ref


def _producer(histories: Histories, render: Callable[[History, int], str]) -> Producer:
    def produce(context: ProducerContext, recipe: Any) -> NextChunk:
        made = False

        async def next_chunk() -> bytes | None:
            nonlocal made
            if made:
                return None
            made = True
            key = ConversationKey(context.record.project_id, context.conversation.id)
            history = await histories.read(key)
            if len(history.rounds) < recipe.covers:
                raise DaemonError(
                    ErrorCode.NOT_FOUND, "The rounds of this file were erased from the history."
                )
            text = await to_thread.run_sync(render, history, recipe.covers)
            return text.encode("utf-8", "replace")

        return next_chunk

    return produce


def _summary_file(history: History, covers: int) -> str:
    return f"{render_summary(summary_of(history, covers))}\n"


def _rounds_text(history: History, covers: int) -> str:
    """Write rounds as Markdown, every message whole; results as the history keeps them."""
    return "\n".join(_round_text(one) for one in history.rounds[:covers])


def _round_text(one: Round) -> str:
    parts = [f"## Round {one.index + 1}\n"]
    for message in one.messages:
        name = f" {message.name}" if message.name else ""
        calls = call_texts(message)
        lines = [f"### {message.role}{name}\n", message.content]
        lines += [f"→ {calls[at]} {calls[at + 1]}" for at in range(0, len(calls), 2)]
        parts.append("\n".join(line for line in lines if line) + "\n")
    return "\n".join(parts)


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
    from creonowd.context_files import archives

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
    from creonowd.context_files import archives

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
    summaries = tuple(
        replace(stored, summary=redact_summary(stored.summary, redactor))
        for stored in history.summaries.values()
        if not history.damaged
    )
    return msgspec.json.encode(ArchiveRounds(messages=clean, summaries=summaries))


def rounds_to_add(history: History, redactor: Redactor, data: bytes) -> NewRounds | None:
    """Return what a history lacks of the rounds in an archive, of which nothing is trusted.

    CONFLICT if the history has other rounds than these.
    """
    arriving, summaries = _read_rounds(data, redactor)
    known = [message for one in history.rounds for message in one.messages]
    if known[: len(arriving)] == arriving:
        return None
    if arriving[: len(known)] != known:
        raise DaemonError(
            ErrorCode.CONFLICT,
            "The conversation has other rounds than the archive; import into a new one.",
            field="conversationId",
        )
    new = [stored for stored in summaries if stored.covers not in history.summaries]
    lines = encode_messages(arriving[len(known) :]) + encode_summaries(new)
    return NewRounds(history.size, lines)


def _read_rounds(data: bytes, redactor: Redactor) -> tuple[list[Message], list[StoredSummary]]:
    from creonowd.context_files.archives import invalid_archive

    try:
        read = stored_files.decode(data, ArchiveRounds, version=VERSION, name=ROUNDS)
        names = [name or "" for m in read.messages for name in (m.tool_call_id, m.name)]
        if max(map(len, names), default=0) > LONGEST_ID:
            raise invalid_archive("rounds", "A message has an id or a name that is too long.")
        messages = check_messages((), read.messages)
        if any(m.ref and not is_ref_id(m.ref) for m in messages):
            raise invalid_archive(
                "rounds", "A message names a context file by an id that is not valid."
            )
        count = sum(message.role is Speaker.USER for message in messages) + 1
        summaries = [
            replace(stored, summary=redact_summary(stored.summary, redactor))
            for stored in read.summaries
            if 0 < stored.covers <= count
        ]
        return [redact_message(message, redactor) for message in messages], summaries
    except (stored_files.DamagedFileError, RecursionError):
        raise invalid_archive("rounds", "The rounds cannot be understood.") from None
    except DaemonError as error:
        if error.code is not ErrorCode.INVALID_ARGUMENT or "reason" in error.details:
            raise
        raise invalid_archive(
            "rounds", "The rounds are not in the form in which a daemon keeps them."
        ) from None


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
