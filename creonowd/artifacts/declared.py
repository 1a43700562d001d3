"""What an archive's manifest says of its files: a stranger's word, read sparingly and checked.

Knows which records a daemon could have written; unpacks nothing. Recipes stay bytes until they
have been weighed: a few bytes of JSON can become a thousand times as much in memory.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from creonowd.artifacts import recipes
from creonowd.artifacts.archive import MOST_FILES, refused
from creonowd.artifacts.ledger import MANIFEST, is_sound
from creonowd.artifacts.refs import (
    LONGEST_HINT,
    LONGEST_KEY,
    VERSION,
    Kind,
    Origin,
    Record,
    Retention,
)
from creonowd.model import Model
from creonowd.storage import versioned_json

LARGEST_MANIFEST = 64 * 1024 * 1024
MOST_RECIPE_BYTES = 8 * 1024 * 1024

_LATEST_MS = 1 << 53
_LONGEST_TYPE = 200
_NO_RECIPE = Raw(b"null")


class Rules(NamedTuple):
    """What an import may bring: so many bytes, recipes that pass, hints as they may be told."""

    most_bytes: int
    check_recipe: Callable[[dict[str, Any]], object]
    told: Callable[[str], str]


class Declared(NamedTuple):
    """A record as its archive tells it, and the hash that its file must have."""

    record: Record
    sha256: str | None


class _Hash(Model):
    sha256: str


class _Item(Model):
    id: str
    kind: Kind
    origin: Origin
    retention: Retention
    path: str
    hint: str
    mime_type: str
    created_at: int
    sequence: int
    key: str | None = None
    recipe: Raw = _NO_RECIPE
    survey: _Hash | None = None


class _Manifest(Model):
    items: tuple[_Item, ...] = ()


def declared(data: bytes, packed: Collection[str], rules: Rules) -> list[Declared]:
    """Understand a manifest beside the paths that are packed, or refuse the archive."""
    try:
        items = versioned_json.decode(data, _Manifest, version=VERSION, name=MANIFEST).items
    except versioned_json.DamagedFileError:
        raise refused("manifest", "The manifest cannot be understood.") from None
    _refuse_heavy(items)
    told = [_declared(item, rules) for item in items]
    _refuse_contradictions([one.record for one in told], packed)
    return told


def _refuse_heavy(items: Sequence[_Item]) -> None:
    weights = [len(memoryview(item.recipe)) for item in items]
    if len(items) > MOST_FILES or sum(weights) > MOST_RECIPE_BYTES:
        raise refused("manifest", "The manifest is larger than any that a daemon would write.")
    if max(weights, default=0) > recipes.LARGEST:
        raise refused("manifest", f"A recipe is larger than {recipes.LARGEST} bytes.")


def _declared(item: _Item, rules: Rules) -> Declared:
    record = Record(
        id=item.id,
        kind=item.kind,
        origin=item.origin,
        retention=item.retention,
        path=item.path,
        hint=rules.told(item.hint)[:LONGEST_HINT],
        mime_type=item.mime_type,
        created_at=item.created_at,
        stored_at=0,
        sequence=item.sequence,
        project_id="",
        key=item.key,
        recipe=_recipe(item, rules),
    )
    key_fits = record.key is None or len(record.key) <= LONGEST_KEY
    fits = 0 <= record.created_at <= _LATEST_MS and len(record.mime_type) <= _LONGEST_TYPE
    if not (is_sound(record) and fits and key_fits and 0 <= record.sequence <= _LATEST_MS):
        raise refused("manifest", "The manifest describes a file that no daemon would make.")
    return Declared(record, None if item.survey is None else item.survey.sha256)


def _recipe(item: _Item, rules: Rules) -> dict[str, Any] | None:
    try:
        recipe = msgspec.json.decode(item.recipe, type=dict[str, Any] | None)
    except msgspec.DecodeError:
        raise refused("manifest", "A recipe cannot be understood.") from None
    if recipe is not None:
        rules.check_recipe(recipe)
    return recipe


def _refuse_contradictions(listed: Sequence[Record], packed: Collection[str]) -> None:
    ids = {record.id for record in listed}
    paths = {record.path.lower() for record in listed}
    keys = [record.key for record in listed if record.key is not None]
    eager = {record.path for record in listed if not record.lazy}
    if len(ids) != len(listed) or len(paths) != len(listed) or len(set(keys)) != len(keys):
        raise refused("manifest", "The manifest names an id, a path or a key twice.")
    if set(packed) - {record.path for record in listed}:
        raise refused("manifest", "The archive holds a file that its manifest does not name.")
    if eager - set(packed):
        raise refused("manifest", "The manifest names a file that the archive does not hold.")
