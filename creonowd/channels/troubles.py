"""What is degraded and why, for `app:health` and `doctor`. Knows checks, not parts."""

from collections.abc import Callable

from creonowd.model import Model


class Trouble(Model):
    """Why a part does not work as it should, and how to mend it."""

    reason: str
    remedy: str


Check = Callable[[], Trouble | None]


class Troubles:
    """The parts that can say of themselves that they are degraded."""

    def __init__(self) -> None:
        self._checks: dict[str, Check] = {}

    def watch(self, part: str, check: Check) -> None:
        """Ask `check` whenever someone wants to know how `part` is."""
        self._checks[part] = check

    def current(self) -> dict[str, Trouble]:
        """Ask every part."""
        found = ((part, check()) for part, check in self._checks.items())
        return {part: trouble for part, trouble in found if trouble is not None}
