"""`<userData>/run/pages.json`: the port of the viewer, and the digests of tokens not yet shown.

Only a daemon that was killed leaves it behind. Knows files; holds no token and opens no port.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from creonowd.daemon import endpoint
from creonowd.model import Model
from creonowd.storage import atomic

FILE = "pages.json"
VERSION = 1


class Ticket(NamedTuple):
    """The digest of a one-time token, and how long it is good."""

    digest: Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
    expires_at_ms: int


class TicketFile(Model):
    """What `pages.json` holds."""

    version: int
    port: Annotated[int, Meta(ge=1, le=65535)]
    tickets: tuple[Ticket, ...]


def write(user_data: Path, port: int, held: Sequence[Ticket]) -> None:
    """Put the tickets down; only the user may read them."""
    file = TicketFile(version=VERSION, port=port, tickets=tuple(held))
    path = endpoint.folder(user_data) / FILE
    atomic.replace(path, msgspec.json.encode(file) + b"\n", mode=0o600)


def read(user_data: Path) -> TicketFile | None:
    """Read what a killed daemon left; None if there is nothing that makes sense."""
    try:
        file = msgspec.json.decode((user_data / endpoint.RUN / FILE).read_bytes(), type=TicketFile)
    except (OSError, msgspec.MsgspecError):
        return None
    return file if file.version == VERSION else None


def remove(user_data: Path) -> None:
    """Forget all tickets: this daemon ends because it was told to."""
    (user_data / endpoint.RUN / FILE).unlink(missing_ok=True)
