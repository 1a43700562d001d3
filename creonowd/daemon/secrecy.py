"""What is secret for the user of this daemon: the home folder and the configured key.

Knows where they are found; what is done about them stands in `redaction`.
"""

import contextlib
from pathlib import Path

from creonowd.errors import DaemonError
from creonowd.redaction import Redactor
from creonowd.settings import Settings, api_key


def own_redactor(settings: Settings, user_data: Path) -> Redactor:
    """Make the redactor of every prompt, reply and log line."""
    return Redactor(_home(), _keys(settings, user_data))


def _home() -> Path | None:
    """Find the home folder; some service accounts have none."""
    with contextlib.suppress(RuntimeError):
        return Path.home()
    return None


def _keys(settings: Settings, user_data: Path) -> list[str]:
    """Find the key that no prompt, log or error may hold, whatever its form."""
    with contextlib.suppress(DaemonError):
        key = None if settings.ai_provider == "fake" else api_key(settings, user_data)
        return [] if key is None else [key.value]
    return []
