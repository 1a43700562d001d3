"""The contract as an OpenRPC document, made from the types on the channels.

Knows tables and types; knows no handler, clock or machine, so the same code gives the same
bytes everywhere.
"""

import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from creonowd.errors import CATALOGUE, WARNINGS, ErrorCode, WarningCode
from creonowd.rpc.channel import Channel, HostCall, Notification
from creonowd.rpc.events import NOTIFICATIONS, Stamp
from creonowd.rpc.schemas import Components, Schema, components_of

OPENRPC = "1.3.2"


@dataclass(frozen=True)
class Contract:
    """What one version of the protocol promises: calls, events, and calls back."""

    version: int
    channels: Sequence[Channel]
    notifications: Sequence[Notification] = ()
    host_calls: Sequence[HostCall] = ()


def describe(contract: Contract) -> Schema:
    """Make the OpenRPC document that `rpc.discover` serves and `protocol/openrpc.json` holds.

    Who may call and for how long stands beside each method as `x-role` and `x-deadline`; what
    the daemon says by itself is in `x-notifications` and `x-hostCalls`.
    """
    channels = sorted(contract.channels, key=_name)
    events = sorted((*NOTIFICATIONS, *contract.notifications), key=_name)
    calls = sorted(contract.host_calls, key=_name)
    types = components_of(
        heard=[*(c.params for c in channels), *(c.result for c in calls)],
        said=[
            *(c.result for c in channels),
            *(e.fields for e in events),
            *(c.params for c in calls),
            *(Stamp, ErrorCode, WarningCode),
        ],
    )
    return {
        "openrpc": OPENRPC,
        "info": {"title": "creonowd", "version": str(contract.version)},
        "methods": [_method(channel, types) for channel in channels],
        "x-notifications": [_event(event, types) for event in events],
        "x-hostCalls": [_host_call(call, types) for call in calls],
        "x-warnings": {code.value: WARNINGS[code].english for code in sorted(WarningCode)},
        "components": {"errors": _errors(), "schemas": types.schemas},
    }


def contract_hash(document: Mapping[str, Any]) -> str:
    """Hash the canonical form of a document, so that equal contracts have equal hashes."""
    return hashlib.sha256(msgspec.json.encode(document, order="sorted")).hexdigest()


def _name(row: Channel | Notification | HostCall) -> str:
    return row.name


def _method(channel: Channel, types: Components) -> Schema:
    summary, _, rest = (inspect.getdoc(channel.handler) or "").partition("\n\n")
    payload = types.struct(channel.params)
    return {
        "name": channel.name,
        "summary": " ".join(summary.split()),
        **({"description": rest} if rest else {}),
        "paramStructure": "by-name",
        "params": list(_params(payload)),
        "result": {"name": "result", "schema": types.of(channel.result)},
        "x-payload": types.of(channel.params),
        "x-role": channel.role.value,
        "x-deadline": channel.deadline.value,
    }


def _params(payload: Schema) -> Iterable[Schema]:
    required = payload.get("required", [])
    for name, schema in payload.get("properties", {}).items():
        yield {"name": name, "required": name in required, "schema": schema}


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
