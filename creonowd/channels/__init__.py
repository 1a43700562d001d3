"""What can be asked: one module per family, a typed request and a thin handler each."""

from creonowd.channels import app, e2e, ipc, project
from creonowd.channels.ipc import PROTOCOL_VERSION
from creonowd.rpc.channel import Channel, HostCall, Notification
from creonowd.rpc.discover import Contract

FAMILIES = (app, ipc, project)

ALL_CHANNELS: tuple[Channel, ...] = tuple(
    channel for family in FAMILIES for channel in family.CHANNELS
)
E2E_CHANNELS: tuple[Channel, ...] = e2e.CHANNELS
NOTIFICATIONS: tuple[Notification, ...] = ()
HOST_CALLS: tuple[HostCall, ...] = ()
CONTRACT = Contract(PROTOCOL_VERSION, ALL_CHANNELS, NOTIFICATIONS, HOST_CALLS)
