"""What the protocol itself says to a client, whatever the features. Knows shapes only."""

from typing import Any

from creonowd.model import Model
from creonowd.rpc.channel import Notification


class Stamp(Model):
    """What every notification carries beside its own fields.

    `seq` counts the notifications of this connection from 1; `ts` is the daemon's clock in
    milliseconds.
    """

    seq: int
    ts: int


class Progress(Model):
    """How far a long request is; `token` is the `_meta.progressToken` that it came with."""

    token: str | int
    value: Any


class Lagged(Model):
    """How many notifications were dropped because this client read too slowly."""

    count: int


NOTIFICATIONS = (Notification("$/lagged", Lagged), Notification("$/progress", Progress))
