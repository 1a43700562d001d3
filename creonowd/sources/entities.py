"""Characters and other entities, as their files describe them. Pure; knows no disk.

A Markdown file says so in its front matter, a JSON file in its keys: `name`, `aliases`,
`priority`, and `inject`: when the entity enters a prompt.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, cast

from creonowd.context.fragment import DEFAULT_PRIORITY
from creonowd.model import Model
from creonowd.sources.reading import is_json
from creonowd.workspace import front_matter

MAX_PRIORITY = 1_000_000


class Inject(StrEnum):
    """When an entity enters a prompt: in Rules, as a retrieved chunk, or not by itself."""

    ALWAYS = "always"
    MENTIONED = "mentioned"
    MANUAL = "manual"
    NEVER = "never"


class Entity(Model):
    """What a file says about its entity; the first of `names` is its own."""

    names: tuple[str, ...]
    priority: int = DEFAULT_PRIORITY
    inject: Inject = Inject.ALWAYS


def describe(path: str, text: str) -> Entity | None:
    """Read what a file says about its entity; None if what it says makes no sense."""
    said = _said(path, text)
    if said is None:
        return None
    name = said.get("name", PurePosixPath(path).stem)
    aliases = said.get("aliases", [])
    priority = said.get("priority", DEFAULT_PRIORITY)
    if not isinstance(name, str) or not name.strip() or not _is_texts(aliases):
        return None
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
        return None
    if said.get("inject", Inject.ALWAYS) not in set(Inject):
        return None
    names = dict.fromkeys(each.strip() for each in (name, *aliases) if each.strip())
    return Entity(
        names=tuple(names), priority=priority, inject=Inject(said.get("inject", Inject.ALWAYS))
    )


def _said(path: str, text: str) -> Mapping[str, Any] | None:
    if is_json(path):
        value = json.loads(text)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    read = front_matter.read(text)
    if read is None:
        return {}
    return None if read.faults else read.values


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )
