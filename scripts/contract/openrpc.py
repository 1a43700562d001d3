"""The OpenRPC document of a contract, the same on every version of Python."""

import hashlib
import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import msgspec
import msgspec.inspect as mi

from creonowd.errors import CATALOGUE, WARNINGS, ErrorCode, WarningCode
from creonowd.rpc.channel import (
    ANY_CHANNEL,
    NOTIFICATIONS,
    Channel,
    Contract,
    HostCall,
    Notification,
    Stamp,
)
from scripts.contract.descriptions import field_descriptions, member_descriptions

OPENRPC = "1.3.2"
SCHEMAS = "#/components/schemas/"

Schema = dict[str, Any]


@dataclass(frozen=True)
class Components:
    """Every named type, sorted, and how each type is referred to."""

    schemas: dict[str, Schema]
    references: Sequence[tuple[Any, Schema]]

    def of(self, kind: Any) -> Schema:
        """Return the schema of a type; a reference if the type has a name."""
        return next(schema for one, schema in self.references if one is kind)

    def struct(self, kind: Any) -> Schema:
        """Return the definition of a named type, not the reference to it."""
        return self.schemas[self.of(kind)["$ref"].removeprefix(SCHEMAS)]


def components_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> Components:
    """Describe the types that the daemon receives and those that it sends.

    A client may leave out a field with a default; the daemon leaves out only what is unset. So
    such fields are required in types that the daemon only sends.
    """
    types = [*inputs, *outputs]
    raw, named = msgspec.json.schema_components(types, ref_template=SCHEMAS + "{name}")
    schemas = {name: _normalise(schema) for name, schema in sorted(named.items())}
    references = list(zip(types, map(_normalise, raw), strict=True))
    input_names = _reachable((schema for _, schema in references[: len(inputs)]), schemas)
    sent = set(_classes_in(mi.multi_type_info(outputs), set()))
    for kind in _classes_in(mi.multi_type_info(types), set()):
        name = kind.__name__ if kind.__name__ in schemas else _full_name(kind)
        if issubclass(kind, Enum):
            schemas[name] = _describe_members(schemas[name], kind)
            continue
        if kind in sent and name not in input_names:
            schemas[name] = _require_fields(schemas[name], kind)
        schemas[name] = _describe_fields(schemas[name], kind)
    return Components(schemas, references)


def _describe_fields(schema: Schema, struct: type[msgspec.Struct]) -> Schema:
    """Add what the docstring below each field says; refuse a field that has none."""
    texts = field_descriptions(struct)
    fields = {field.encode_name for field in msgspec.structs.fields(struct)}
    if bare := sorted(fields - texts.keys()):
        raise ValueError(f"{struct.__name__} has no docstring below {', '.join(bare)}")
    properties = {
        name: {**node, "description": texts[name]} if name in texts else node
        for name, node in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _describe_members(schema: Schema, kind: type[Enum]) -> Schema:
    """Add what the docstring below each member says; refuse a member that has none."""
    texts = member_descriptions(kind)
    if bare := sorted(str(value) for value in schema["enum"] if value not in texts):
        raise ValueError(f"{kind.__name__} has no docstring below {', '.join(bare)}")
    return {**schema, "x-enumDescriptions": {value: texts[value] for value in schema["enum"]}}


def _require_fields(schema: Schema, struct: type[msgspec.Struct]) -> Schema:
    omits = struct.__struct_config__.omit_defaults
    optional = {
        field.encode_name
        for field in msgspec.structs.fields(struct)
        if field.default is msgspec.UNSET or (omits and not field.required)
    }
    properties = cast("dict[str, Schema]", schema["properties"])
    bare = {n: {k: v for k, v in node.items() if k != "default"} for n, node in properties.items()}
    return {**schema, "properties": bare, "required": [n for n in bare if n not in optional]}


def _full_name(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"


def _classes_in(node: Any, seen: set[type]) -> Iterator[type[msgspec.Struct] | type[Enum]]:
    """Find every struct and enumeration inside msgspec's description of some types."""
    if isinstance(node, mi.StructType | mi.EnumType):
        if node.cls in seen:
            return
        seen.add(node.cls)
        yield node.cls
    if isinstance(node, mi.Type | mi.Field):
        node = msgspec.structs.astuple(node)
    if isinstance(node, list | tuple):
        for part in cast("Sequence[Any]", node):
            yield from _classes_in(part, seen)


def _reachable(roots: Iterator[Schema], schemas: Mapping[str, Schema]) -> set[str]:
    found: set[str] = set()
    waiting = [name for root in roots for name in named_in(root)]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting.extend(named_in(schemas[name]))
    return found


def named_in(schema: Any) -> Iterator[str]:
    """Find the named types that a schema refers to."""
    if isinstance(schema, dict):
        node = cast("Schema", schema)
        if isinstance(reference := node.get("$ref"), str):
            yield reference.removeprefix(SCHEMAS)
        for value in node.values():
            yield from named_in(value)
    elif isinstance(schema, list):
        for item in cast("list[Any]", schema):
            yield from named_in(item)


def _normalise(schema: Any) -> Any:
    """Remove what differs between versions of Python: docstring indentation, order of unions."""
    if isinstance(schema, list):
        return [_normalise(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = {key: _normalise(value) for key, value in cast("Schema", schema).items()}
    if isinstance(description := node.get("description"), str):
        node["description"] = inspect.cleandoc(description)
    if "anyOf" in node:
        node["anyOf"] = sorted(node["anyOf"], key=_order)
    return node


def _order(schema: Schema) -> tuple[bool, bytes]:
    """Sort the members of a union, with null last."""
    return schema.get("type") == "null", msgspec.json.encode(schema, order="sorted")


def describe(contract: Contract, exchanges: Mapping[str, Any] | None = None) -> Schema:
    """Make the OpenRPC document: `protocol/openrpc.json`, and what `rpc.discover` serves.

    `x-role` and `x-deadline` of a method are who may call it and for how long; `errors` of a method
    are its own, `x-anyError` are those that any may give. `x-notifications` and `x-hostCalls` list
    what the daemon sends unasked. `exchanges` are captured payloads and results, by channel.
    """
    captured = exchanges or {}
    channels = sorted(contract.channels, key=_name)
    events = sorted((*NOTIFICATIONS, *contract.notifications), key=_name)
    calls = sorted(contract.host_calls, key=_name)
    types = components_of(
        inputs=[*(c.params for c in channels), *(c.result for c in calls)],
        outputs=[
            *(c.result for c in channels),
            *(e.fields for e in events),
            *(c.params for c in calls),
            *(Stamp, ErrorCode, WarningCode),
        ],
    )
    return {
        "openrpc": OPENRPC,
        "info": {"title": "creonowd", "version": str(contract.version)},
        "methods": [_method(one, types, captured.get(one.name)) for one in channels],
        "x-anyError": [_error_ref(code) for code in sorted(ANY_CHANNEL)],
        "x-notifications": [_event(event, types) for event in events],
        "x-hostCalls": [_host_call(call, types) for call in calls],
        "x-warnings": {code.value: WARNINGS[code].english for code in sorted(WarningCode)},
        "components": {"errors": _errors(), "schemas": types.schemas},
    }


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the bytes of a document that are served and hashed: equal contracts have equal ones.

    Fields stay in the order of the source, which is the order to read them in.
    """
    return msgspec.json.encode(document)


def contract_hash(document: Mapping[str, Any]) -> str:
    """Hash the canonical form of a document, as the daemon hashes the one that it serves."""
    return hashlib.sha256(canonical(document)).hexdigest()


def _name(row: Channel | Notification | HostCall) -> str:
    return row.name


def _method(channel: Channel, types: Components, exchange: Any) -> Schema:
    summary, _, rest = (inspect.getdoc(channel.handler) or "").partition("\n\n")
    payload = types.struct(channel.params)
    return {
        "name": channel.name,
        "summary": " ".join(summary.split()),
        **({"description": rest} if rest else {}),
        "paramStructure": "by-name",
        "params": list(_params(payload)),
        "result": {"name": "result", "schema": types.of(channel.result)},
        "errors": [_error_ref(code) for code in sorted(channel.errors)],
        **({"examples": [_example(exchange)]} if exchange else {}),
        "x-payload": types.of(channel.params),
        "x-role": channel.role.value,
        "x-deadline": channel.deadline.value,
    }


def _error_ref(code: ErrorCode) -> Schema:
    return {"$ref": f"#/components/errors/{code.value}"}


def _example(exchange: Any) -> Schema:
    """Spell an exchange as OpenRPC pairs them; long texts and lists of it are cut."""
    return {
        "name": "captured",
        "params": [{"name": name, "value": held} for name, held in exchange["payload"].items()],
        "result": {"name": "result", "value": exchange["result"]},
    }


def _params(payload: Schema) -> Iterable[Schema]:
    required = payload.get("required", [])
    for name, schema in payload.get("properties", {}).items():
        described = {"description": schema["description"]} if "description" in schema else {}
        yield {"name": name, **described, "required": name in required, "schema": schema}


def _event(event: Notification, types: Components) -> Schema:
    return {
        "name": event.name,
        "params": {"allOf": [types.of(event.fields), types.of(Stamp)]},
    }


def _host_call(call: HostCall, types: Components) -> Schema:
    return {"name": call.name, "params": types.of(call.params), "result": types.of(call.result)}


def _errors() -> Schema:
    return {
        code.value: {
            "code": CATALOGUE[code].number,
            "message": CATALOGUE[code].english,
            "data": {"code": code.value, "retryable": CATALOGUE[code].retryable},
        }
        for code in sorted(ErrorCode)
    }
