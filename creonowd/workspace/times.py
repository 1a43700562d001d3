"""Times as stored files and clients spell them. Pure; never asks what time it is."""

from datetime import UTC, datetime


def iso(ms: int) -> str:
    """Spell milliseconds since the epoch as ISO 8601 in UTC: `2026-01-31T12:00:00.000Z`."""
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
