"""Characters and other entities: one per file of `characters/`. Pure; knows no disk.

Those that are always injected belong to Rules. The others wait until someone mentions them and
come as retrieved text, so that they can never churn the stable prefix.
"""

from functools import partial

from creonowd.context.fragment import Fragment, FragmentKind, Layer, LeftOut, Reason
from creonowd.context.plan import Fetched
from creonowd.errors import WarningCode
from creonowd.sources.entities import Inject, describe
from creonowd.sources.reading import Shelved, as_fragment, leave_out, read_files
from creonowd.workspace.creonow_tree import Folder, TreeFile

GROUP = 3
SCORE_WHEN_MENTIONED = 0.9

Names = tuple[str, ...]


def characters(folder: Folder) -> Fetched:
    """Read every character that is always part of the rules."""
    return read_files(_shelved(Layer.RULES), folder, lambda _: True, partial(_read, Inject.ALWAYS))


def waiting(folder: Folder, inject: Inject) -> tuple[Fragment, ...]:
    """Read the characters that are injected in another way, as retrieved text.

    Files that make no sense are left out here without a word: `characters` tells of them.
    """
    shelved = _shelved(Layer.RETRIEVED)
    return read_files(shelved, folder, lambda _: True, partial(_read, inject)).fragments


def names_of(folder: Folder) -> tuple[Names, ...]:
    """Tell by which names each entity is known that may ever be injected."""
    known = (
        *characters(folder).fragments,
        *waiting(folder, Inject.MENTIONED),
        *waiting(folder, Inject.MANUAL),
    )
    return tuple(fragment.names for fragment in known)


def _shelved(layer: Layer) -> Shelved:
    return Shelved(
        layer=layer,
        source="characters",
        unavailable=WarningCode.CHARACTERS_UNAVAILABLE,
        group=GROUP if layer is Layer.RULES else 0,
    )


def _read(inject: Inject, shelved: Shelved, file: TreeFile, text: str) -> Fragment | LeftOut | None:
    entity = describe(file.path, text)
    if entity is None:
        return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    if entity.inject is not inject:
        return None
    return as_fragment(
        shelved,
        file,
        text,
        kind=FragmentKind.ENTITY,
        names=entity.names,
        priority=entity.priority,
        score=SCORE_WHEN_MENTIONED if shelved.layer is Layer.RETRIEVED else None,
    )
