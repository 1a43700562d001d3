"""`context_rules` of a skill: check the keys, types and limits, and write them in one canonical form."""

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from creonowd.context.plan import MAX_RECENT_SUMMARY, MAX_SURROUNDING, ContextRules
from creonowd.storage.front_matter import Fault

KEY = "context_rules"
METADATA_KEY = "creonow.context_rules"
LIMITS = {"surrounding": MAX_SURROUNDING, "recent_summary": MAX_RECENT_SUMMARY}
MOST_FAULTS = 100
KEYS = tuple(field.name for field in msgspec.structs.fields(ContextRules))

_LONGEST_NAME = 80
_KINDS = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number with a fraction"),
    (str, "text"),
    (list, "a list"),
    (dict, "a mapping"),
)


class RulesCheck(NamedTuple):
    """The rules that a value declares, or its faults."""

    rules: ContextRules
    faults: tuple[Fault, ...] = ()


def check(value: Any, key: str = KEY) -> RulesCheck:
    """Check a decoded `context_rules`; whatever is left out is off."""
    if not isinstance(value, dict):
        return _invalid(key, f"`{key}` must be a mapping, not {kind_of(value)}.")
    declared = cast("dict[str, Any]", value)
    faults = tuple(islice(_faults(declared, key), MOST_FAULTS))
    return RulesCheck(ContextRules() if faults else ContextRules(**declared), faults)


def check_json(text: Any, key: str) -> RulesCheck:
    """Check `context_rules` as the open standard carries it: JSON in a string."""
    if not isinstance(text, str):
        return _invalid(key, f"`{key}` must be JSON in a string, not {kind_of(text)}.")
    try:
        return check(json.loads(text, object_pairs_hook=_without_twins), key)
    except ValueError as error:
        return _invalid(key, f"`{key}` is not valid JSON: {error}.")
    except RecursionError:
        return _invalid(key, f"`{key}` is nested too deeply.")


def canonical_rules(rules: ContextRules) -> str:
    """Write rules as JSON in their one form: every key, in the order of the table, no white space."""
    return json.dumps({key: getattr(rules, key) for key in KEYS}, separators=(",", ":"))


def unknown_name(key: str, name: str, names: Iterable[str]) -> Fault:
    """Make the fault of an unknown name; it suggests the most similar name, or lists all."""
    choices = list(names)
    near = difflib.get_close_matches(name.lower().replace("-", "_"), choices, n=1, cutoff=0.5)
    advice = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(choices)}."
    return Fault(key=shorten(key), message=f"`{shorten(name)}` is not known; {advice}")


def kind_of(value: Any) -> str:
    """Return in plain words what a decoded value is."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nothing")


def shorten(name: str) -> str:
    """Cut a name from a file for a message."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _invalid(key: str, message: str) -> RulesCheck:
    return RulesCheck(ContextRules(), (Fault(key=key, message=message),))


def _faults(declared: Mapping[str, Any], above: str) -> Iterator[Fault]:
    for name, value in declared.items():
        key = f"{above}.{name}"
        if name not in KEYS:
            yield unknown_name(key, name, KEYS)
        elif name in LIMITS:
            yield from _count_faults(key, value, LIMITS[name])
        elif not isinstance(value, bool):
            message = f"`{name}` must be true or false, not {kind_of(value)}."
            yield Fault(key=key, message=message)


def _count_faults(key: str, value: Any, limit: int) -> Iterator[Fault]:
    name = key.rpartition(".")[2]
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"`{name}` must be a whole number, not {kind_of(value)}."
        yield Fault(key=key, message=message)
    elif not 0 <= value <= limit:
        yield Fault(key=key, message=f"`{name}` must be from 0 to {limit}, not {value}.")


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"`{shorten(name)}` stands twice")
        fields[name] = value
    return fields
