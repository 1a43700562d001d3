"""The channels of the protocol: one module per family, a typed payload and a thin handler each.

A family's tables are at the end of its module: CHANNELS and, where it has any, NOTIFICATIONS
(events that the daemon sends) and HOST_CALLS (calls that the daemon makes to the client).
"""

from creonowd.channels import (
    ai,
    app,
    budget,
    chats,
    connection,
    constraints,
    context,
    context_files,
    creonow,
    document,
    e2e,
    history,
    project,
    skill,
    sources,
    story,
    viewer,
)
from creonowd.rpc.channel import Channel, Contract, HostCall, Notification

FAMILIES = (
    app,
    connection,
    project,
    story,
    creonow,
    constraints,
    chats,
    budget,
    document,
    context,
    skill,
    ai,
    context_files,
    viewer,
    history,
    sources,
)

ALL_CHANNELS: tuple[Channel, ...] = tuple(
    channel for family in FAMILIES for channel in family.CHANNELS
)
E2E_CHANNELS: tuple[Channel, ...] = e2e.CHANNELS
ALL_NOTIFICATIONS: tuple[Notification, ...] = tuple(
    event for family in FAMILIES for event in getattr(family, "NOTIFICATIONS", ())
)
ALL_HOST_CALLS: tuple[HostCall, ...] = tuple(
    call for family in FAMILIES for call in getattr(family, "HOST_CALLS", ())
)

CONTRACT = Contract(connection.PROTOCOL_VERSION, ALL_CHANNELS, ALL_NOTIFICATIONS, ALL_HOST_CALLS)
