"""`context_rules`: from what a file says to what the engine plans with, and back to one spelling.

Knows the keys, their types and limits; knows no file.
"""

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

_SHOWN = 80
_KINDS = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number with a fraction"),
    (str, "text"),
    (list, "a list"),
    (dict, "a mapping"),
)


class Checked(NamedTuple):
    """The rules that a value declares, or what is wrong with it."""

    rules: ContextRules
    faults: tuple[Fault, ...] = ()


def check(value: Any, key: str = KEY) -> Checked:
    """Check a decoded `context_rules`; whatever is left out is off."""
    if not isinstance(value, dict):
        return _refused(key, f"`{key}` must be a mapping, not {kind_of(value)}.")
    declared = cast("dict[str, Any]", value)
    faults = tuple(islice(_faults(declared, key), MOST_FAULTS))
    return Checked(ContextRules() if faults else ContextRules(**declared), faults)


def check_json(text: Any, key: str) -> Checked:
    """Check `context_rules` as the open standard carries it: JSON in a string."""
    if not isinstance(text, str):
        return _refused(key, f"`{key}` must be JSON in a string, not {kind_of(text)}.")
    try:
        return check(json.loads(text, object_pairs_hook=_once), key)
    except ValueError as error:
        return _refused(key, f"`{key}` is not valid JSON: {error}.")
    except RecursionError:
        return _refused(key, f"`{key}` is nested too deeply.")


def spell(rules: ContextRules) -> str:
    """Spell rules in their one form: every key, in the order of the table, no white space."""
    return json.dumps({key: getattr(rules, key) for key in KEYS}, separators=(",", ":"))


def unknown(key: str, name: str, known: Iterable[str]) -> Fault:
    """Refuse a key that nobody knows, and name the nearest that somebody does."""
    listed = list(known)
    near = difflib.get_close_matches(name.lower().replace("-", "_"), listed, n=1, cutoff=0.5)
    advice = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(listed)}."
    return Fault(key=shorten(key), message=f"`{shorten(name)}` is not known; {advice}")


def kind_of(value: Any) -> str:
    """Say in plain words what a decoded value is."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "nothing")


def shorten(name: str) -> str:
    """Keep a name from a file short enough for a message."""
    return name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"


def _refused(key: str, message: str) -> Checked:
    return Checked(ContextRules(), (Fault(key=key, message=message),))


def _faults(declared: Mapping[str, Any], above: str) -> Iterator[Fault]:
    for name, value in declared.items():
        key = f"{above}.{name}"
        if name not in KEYS:
            yield unknown(key, name, KEYS)
        elif name in LIMITS:
            yield from _not_a_count(key, value, LIMITS[name])
        elif not isinstance(value, bool):
            message = f"`{name}` must be true or false, not {kind_of(value)}."
            yield Fault(key=key, message=message)


def _not_a_count(key: str, value: Any, limit: int) -> Iterator[Fault]:
    name = key.rpartition(".")[2]
    if isinstance(value, bool) or not isinstance(value, int):
        message = f"`{name}` must be a whole number, not {kind_of(value)}."
        yield Fault(key=key, message=message)
    elif not 0 <= value <= limit:
        yield Fault(key=key, message=f"`{name}` must be from 0 to {limit}, not {value}.")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    once: dict[str, Any] = {}
    for name, value in pairs:
        if name in once:
            raise ValueError(f"`{shorten(name)}` stands twice")
        once[name] = value
    return once
