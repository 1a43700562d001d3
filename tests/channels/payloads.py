"""Payloads for any channel, drawn from the contract: mostly of the right shape, never quite right.

Knows JSON Schema as `protocol/openrpc.json` uses it; knows no channel.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

Schema = dict[str, Any]
Draws = st.SearchStrategy[Any]

ODD: Draws = st.sampled_from([None, True, -1, 0, 1.5, 1e308, 2**53, 2**64, "", "\ud800", [[]], {}])
PLACES = (
    "",
    " ",
    ".",
    "..",
    "../x",
    "a/../../b",
    "a\0b",
    "CON",
    "/",
    "project:x",
    "con_a",
    "run_1",
)
TEXTS = (
    "x" * 5000,
    "林远",
    "😀",
    "\u202e",
    "\ufeff",
    "a\nb\r\nc",
    "%s",
    "sk-" + "a" * 40,
    "gpt-4o",
)
NOTATIONS = ("[", "(a", "\\", "{{text}}", "---\nname: x\n---\n", "null", "{", "[]", "0" * 64)
WORDS = (*PLACES, *TEXTS, *NOTATIONS)
SIMPLE: dict[str, Draws] = {
    "string": st.one_of(st.sampled_from(WORDS), st.text(max_size=12)),
    "integer": st.sampled_from([7, 100, 65_536, 2**31, 2**53, -1]) | st.integers(0, 50),
    "number": st.floats(0, 1) | st.integers(-1, 50),
    "boolean": st.booleans(),
    "null": st.none(),
}
ANYTHING = st.recursive(ODD, lambda one: st.dictionaries(st.sampled_from(WORDS), one, max_size=3))


class Payloads:
    """Draws values for the schemas of one contract; `known` are values that mean something there.

    With `odd` values every field may also be of another type altogether.
    """

    def __init__(
        self,
        schemas: dict[str, Schema],
        known: Mapping[str, Sequence[Any]],
        odd: Draws | None = None,
    ) -> None:
        self._schemas = schemas
        self._known = known
        self._odd = odd
        self._drawn: dict[str, Draws] = {}

    def of(self, schema: Schema, name: str = "") -> Draws:
        """Draw a value for a schema: one that is known by this name, or one that fits, or an odd one."""
        known = self._known.get(name)
        usual = st.sampled_from(list(known)) if known else self._fitting(schema)
        return usual if self._odd is None else st.one_of(usual, usual, usual, usual, self._odd)

    def _fitting(self, schema: Schema) -> Draws:
        if "$ref" in schema:
            return self._named(schema["$ref"].rpartition("/")[2])
        if "anyOf" in schema:
            return st.one_of([self._fitting(one) for one in schema["anyOf"]])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        return self._plain(schema)

    def _named(self, name: str) -> Draws:
        if name not in self._drawn:
            self._drawn[name] = st.deferred(lambda: self._drawn[f"{name} itself"])
            self._drawn[f"{name} itself"] = self._fitting(self._schemas[name])
        return self._drawn[name]

    def _plain(self, schema: Schema) -> Draws:
        match schema.get("type"):
            case "array":
                return st.lists(self.of(schema.get("items", {})), max_size=4)
            case "object" if "properties" in schema:
                return self._object(schema)
            case kind:
                return SIMPLE.get(str(kind), ANYTHING)

    def _object(self, schema: Schema) -> Draws:
        fields = {name: self.of(one, name) for name, one in schema["properties"].items()}
        needed = set(schema.get("required", ()))
        return st.fixed_dictionaries(
            {name: one for name, one in fields.items() if name in needed},
            optional={name: one for name, one in fields.items() if name not in needed},
        )
