"""Characters as part of Rules: one entity per file of `characters/`. Pure; knows no disk."""

from creonowd.context.fragment import Fragment, Kind, Layer, LeftOut, Reason
from creonowd.context.source import Fetched
from creonowd.errors import WarningCode
from creonowd.sources.entities import Inject, describe
from creonowd.sources.reading import Shelved, as_fragment, leave_out, read_files
from creonowd.workspace.tree import Folder, TreeFile

GROUP = 3


def characters(folder: Folder) -> Fetched:
    """Read every character that is always part of the rules."""
    shelved = Shelved(
        layer=Layer.RULES,
        source="characters",
        unavailable=WarningCode.CHARACTERS_UNAVAILABLE,
        group=GROUP,
    )
    return read_files(shelved, folder, lambda _: True, _character)


def _character(shelved: Shelved, file: TreeFile, text: str) -> Fragment | LeftOut | None:
    entity = describe(file.path, text)
    if entity is None:
        return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    if entity.inject is not Inject.ALWAYS:
        return None
    return as_fragment(
        shelved, file, text, kind=Kind.ENTITY, names=entity.names, priority=entity.priority
    )
