"""Characters and other entities, as their files describe them. Pure; knows no disk.

A Markdown file says so in its front matter, a JSON file in its keys: `name`, `aliases`,
`priority`, and `inject`: when the entity enters a prompt. Whatever else it says (a type,
attributes, a description) is for the model to read.
"""

import json
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, cast

from creonowd.context.fragment import DEFAULT_PRIORITY
from creonowd.model import Model
from creonowd.sources.reading import is_json
from creonowd.storage import front_matter

MAX_PRIORITY = 1_000_000
LONGEST_HEADING = 20
NAME_KEYS = ("name", "姓名", "名字", "名称")
ALIAS_KEYS = ("aliases", "alias", "别名", "别称")

_HEADING = re.compile(r"^# +(.+?) *#* *\r?$", re.MULTILINE)
_SEPARATORS = re.compile(r"[,，、;；/]")


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
    """Read what a file says about its entity; None if what it says makes no sense.

    Where it does not say a name, it is called as the file is, and as its first heading says.
    """
    said = _said(path, text)
    if said is None:
        return None
    names = _names(said, path, text)
    priority = said.get("priority", DEFAULT_PRIORITY)
    inject = said.get("inject", Inject.ALWAYS)
    if names is None or inject not in list(Inject):
        return None
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
        return None
    return Entity(names=names, priority=priority, inject=Inject(inject))


def _said(path: str, text: str) -> Mapping[str, Any] | None:
    if is_json(path):
        value = json.loads(text)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    read = front_matter.read(text)
    if read is None:
        return {}
    return None if read.faults else read.values


def _names(said: Mapping[str, Any], path: str, text: str) -> tuple[str, ...] | None:
    own = _first(said, NAME_KEYS)
    others = _first(said, ALIAS_KEYS)
    given = _SEPARATORS.split(others) if isinstance(others, str) else (others or [])
    if own is None:
        given = [*_heading(path, text), *given] if _is_texts(given) else given
        own = PurePosixPath(path).stem
    if not isinstance(own, str) or not own.strip() or not _is_texts(given):
        return None
    return tuple(dict.fromkeys(name.strip() for name in (own, *given) if name.strip()))


def _first(said: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((said[key] for key in keys if key in said), None)


def _heading(path: str, text: str) -> list[str]:
    heading = None if is_json(path) else _HEADING.search(text)
    return [heading[1]] if heading and len(heading[1]) <= LONGEST_HEADING else []


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )
