"""`context_rules` of a skill: check the keys, types and limits, and write them in one canonical form."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from creonowd.context.plan import (
    EVERYTHING,
    MAX_RECENT_SUMMARY,
    MAX_SURROUNDING,
    MAX_SYNOPSIS,
    ContextRules,
)
from creonowd.errors import Wording
from creonowd.storage.front_matter import Fault

KEY = "context_rules"
METADATA_KEY = "creonow.context_rules"
LIMITS = {"surrounding": MAX_SURROUNDING, "recent_summary": MAX_RECENT_SUMMARY}
SYNOPSIS = "synopsis"
MOST_FAULTS = 100
KEYS = tuple(field.name for field in msgspec.structs.fields(ContextRules))

FLAG = Wording("true or false", "true 或 false")
FLAG_OR_ALL = Wording("true, false or `all`", "true、false 或 `all`")
WHOLE_NUMBER = Wording("a whole number", "整数")
FLAG_OR_COUNT = Wording("true, false or a whole number", "true、false 或整数")
TEXT = Wording("text", "文本")
MAPPING = Wording("a mapping", "“键: 值”的集合")

_LONGEST_NAME = 80
_KINDS = (
    (bool, FLAG),
    (int, WHOLE_NUMBER),
    (float, Wording("a number with a fraction", "小数")),
    (str, TEXT),
    (list, Wording("a list", "列表")),
    (dict, MAPPING),
)
_NOTHING = Wording("nothing", "空值")
_WANTED = Wording("`{}` must be {}, not {}.", "`{}` 须为 {}，不能是 {}。")
_JSON_TEXT = Wording("JSON in a string", "字符串中的 JSON")
_NOT_JSON = Wording("`{}` is not valid JSON: {}.", "`{}` 不是合法的 JSON：{}。")
_TOO_DEEP = Wording("`{}` is nested too deeply.", "`{}` 嵌套过深。")
_RANGE = Wording("`{}` must be from 0 to {}, not {}.", "`{}` 须在 0 到 {} 之间，不能是 {}。")
_UNKNOWN = Wording("`{}` is not known; {}", "`{}` 不认识；{}")
_SIMILAR = Wording("did you mean `{}`?", "是否想写 `{}`？")
_KNOWN = Wording("known are {}.", "可用的有 {}。")


class RulesCheck(NamedTuple):
    """The rules that a value declares, or its faults."""

    rules: ContextRules
    faults: tuple[Fault, ...] = ()


def check(value: Any, key: str = KEY) -> RulesCheck:
    """Check a decoded `context_rules`; whatever is left out is off."""
    if not isinstance(value, dict):
        return _invalid(key, wrong_kind(key, MAPPING, value))
    declared = cast("dict[str, Any]", value)
    faults = tuple(islice(_faults(declared, key), MOST_FAULTS))
    return RulesCheck(ContextRules() if faults else ContextRules(**declared), faults)


def check_json(text: Any, key: str) -> RulesCheck:
    """Check `context_rules` as the open standard carries it: JSON in a string."""
    if not isinstance(text, str):
        return _invalid(key, wrong_kind(key, _JSON_TEXT, text))
    try:
        return check(json.loads(text, object_pairs_hook=_without_repeated_keys), key)
    except ValueError as error:
        return _invalid(key, _NOT_JSON.format(key, error))
    except RecursionError:
        return _invalid(key, _TOO_DEEP.format(key))


def canonical_rules(rules: ContextRules) -> str:
    """Write rules as JSON in their one form: every key, in the order of the table, no white space."""
    return json.dumps({key: getattr(rules, key) for key in KEYS}, separators=(",", ":"))


def unknown_name(key: str, name: str, names: Iterable[str]) -> Fault:
    """Make the fault of an unknown name; it suggests the most similar name, or lists all."""
    choices = list(names)
    near = difflib.get_close_matches(name.lower().replace("-", "_"), choices, n=1, cutoff=0.5)
    advice = _SIMILAR.format(near[0]) if near else _KNOWN.format(", ".join(choices))
    return Fault(key=shorten(key), wording=_UNKNOWN.format(shorten(name), advice))


def wrong_kind(key: str, wanted: Wording, value: Any) -> Wording:
    """Return the message that a key must have one kind of value, and which kind it has."""
    found = next((name for kind, name in _KINDS if isinstance(value, kind)), _NOTHING)
    return _WANTED.format(key, wanted, found)


def shorten(name: str) -> str:
    """Cut a name from a file for a message."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _invalid(key: str, wording: Wording) -> RulesCheck:
    return RulesCheck(ContextRules(), (Fault(key=key, wording=wording),))


def _faults(declared: Mapping[str, Any], above: str) -> Iterator[Fault]:
    for name, value in declared.items():
        key = f"{above}.{name}"
        if name not in KEYS:
            yield unknown_name(key, name, KEYS)
        elif name == SYNOPSIS:
            if not isinstance(value, bool):
                yield from _count_faults(key, value, MAX_SYNOPSIS, FLAG_OR_COUNT)
        elif name in LIMITS:
            yield from _count_faults(key, value, LIMITS[name])
        elif name == "retrieval" and value == EVERYTHING:
            continue
        elif not isinstance(value, bool):
            wanted = FLAG_OR_ALL if name == "retrieval" else FLAG
            yield Fault(key=key, wording=wrong_kind(name, wanted, value))


def _count_faults(
    key: str, value: Any, limit: int, wanted: Wording = WHOLE_NUMBER
) -> Iterator[Fault]:
    name = key.rpartition(".")[2]
    if isinstance(value, bool) or not isinstance(value, int):
        yield Fault(key=key, wording=wrong_kind(name, wanted, value))
    elif not 0 <= value <= limit:
        yield Fault(key=key, wording=_RANGE.format(name, limit, value))


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"`{shorten(name)}` stands twice")
        fields[name] = value
    return fields
