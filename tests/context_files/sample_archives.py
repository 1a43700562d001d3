"""Archives for tests: export and import without a client."""

from pathlib import Path

from creonowd.context_files.archives import (
    ExportResult,
    ImportResult,
    ImportRules,
    ImportTarget,
    export,
    import_archive,
)
from creonowd.context_files.files import Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.threads import StopSignal

RULES = ImportRules(64 * 1024 * 1024, repr, str)
PREFIX = "context/chat-1/"


def export_to(conversation: ConversationFolder, path: Path) -> ExportResult:
    """Pack a conversation."""
    return export(conversation, path, StopSignal(), lambda _: None)


def import_from(
    store: Store, path: Path, conversation_id: str | None = None, rules: ImportRules = RULES
) -> ImportResult:
    """Unpack an archive into a conversation of `prj_one`."""
    target = ImportTarget("prj_one", conversation_id)
    return import_archive(store, target, path, rules, stop=StopSignal(), report=lambda _: None)
