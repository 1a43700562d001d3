"""What real runs taught about the counts of models: the provider's count divided by ours.

Kept in `<userData>/corrections.json`. Where a count is a bound or approximate, the budget is divided
by the greatest ratio of a model's last runs. That is rounded up to a thirty-second, so that one run
after the other does not move the budget, and bounded: a bound is never lowered, since a text that
is dearer than those before may come.
"""

import math
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.context.budget import CountCorrection
from creonowd.errors import DaemonError
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json
from creonowd.tokens.models import CountKind, bare_name

FILE = "corrections.json"
VERSION = 1
KEPT_RUNS = 8
MOST_MODELS = 64
FEWEST_TOKENS = 500
"""A shorter prompt says little: the frame that the provider adds would weigh too much."""

_STEPS = 32
_LIMITS = {CountKind.BOUND: (1.0, 1.5), CountKind.APPROXIMATE: (0.75, 1.5)}
_RUNS_NEEDED = {CountKind.BOUND: 1, CountKind.APPROXIMATE: 3}
_PLAUSIBLE = (0.5, 3.0)
"""Below, the server cut the prompt; above, it counted something else as well."""

log = structlog.stdlib.get_logger(__name__)


class LearnedCounts(Model):
    """The provider's count divided by ours in a model's last runs, the oldest first."""

    model: str
    """The model."""
    ratios: tuple[float, ...]
    """The provider's count divided by ours in its last runs, the oldest first."""


class _StoredCorrections(Model):
    version: int
    models: tuple[LearnedCounts, ...] = ()


class Corrections:
    """The corrections of this user, by the name of the model; those used last are kept."""

    def __init__(self, user_data: Path) -> None:
        self._path = user_data / FILE
        self._lock = anyio.Lock()
        self._models = {one.model: one for one in _load_or_begin(self._path)}

    def of(self, model: str, kind: CountKind) -> CountCorrection | None:
        """Return the correction of a model's counts; None if there is nothing to correct."""
        learned = self._models.get(bare_name(model))
        if learned is None or kind is CountKind.EXACT:
            return None
        lowest, highest = _LIMITS[kind]
        if len(learned.ratios) < _RUNS_NEEDED[kind]:
            return None
        rounded = math.ceil(max(learned.ratios) * _STEPS) / _STEPS
        factor = min(highest, max(lowest, rounded))
        return None if factor == 1 else CountCorrection(factor=factor, runs=len(learned.ratios))

    def all(self) -> tuple[LearnedCounts, ...]:
        """Return what was learned of each model, in the order of their names."""
        return tuple(self._models[name] for name in sorted(self._models))

    async def learn(self, model: str, kind: CountKind, ours: int, theirs: int) -> None:
        """Learn from one run; what cannot be stored is learned until the daemon stops."""
        if kind is CountKind.EXACT or ours < FEWEST_TOKENS:
            return
        ratio = theirs / ours
        if not _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1]:
            return
        name = bare_name(model)
        async with self._lock:
            before = self._models.pop(name, LearnedCounts(model=name, ratios=()))
            ratios = (*before.ratios, round(ratio, 4))[-KEPT_RUNS:]
            self._models[name] = LearnedCounts(model=name, ratios=ratios)
            while len(self._models) > MOST_MODELS:
                del self._models[next(iter(self._models))]
            try:
                await to_thread.run_sync(self._write)
            except DaemonError as error:
                log.warning("corrections_not_stored", code=error.code)

    async def reset(self, model: str | None = None) -> None:
        """Forget what was learned of a model, or of all."""
        async with self._lock:
            kept = dict(self._models)
            if model is None:
                self._models.clear()
            else:
                self._models.pop(bare_name(model), None)
            try:
                await to_thread.run_sync(self._write)
            except DaemonError:
                self._models = kept
                raise

    def _write(self) -> None:
        _refuse_newer(self._path)
        stored = _StoredCorrections(version=VERSION, models=tuple(self._models.values()))
        atomic.replace(self._path, msgspec.json.encode(stored) + b"\n")


def load(path: Path) -> tuple[LearnedCounts, ...]:
    """Read what was learned; DamagedFileError if the file is broken."""
    stored = versioned_json.load(path, _StoredCorrections, version=VERSION)
    return () if stored is None else stored.models[-MOST_MODELS:]


def _load_or_begin(path: Path) -> tuple[LearnedCounts, ...]:
    """Read what was learned; a file that is damaged is kept aside, a newer one is left alone."""
    try:
        return load(path)
    except versioned_json.DamagedFileError as damage:
        log.warning("corrections_set_aside", file=versioned_json.set_aside(path), why=str(damage))
    except DaemonError as error:
        log.warning("corrections_not_read", code=error.code)
    return ()


def _refuse_newer(path: Path) -> None:
    """Fail with VERSION_TOO_NEW rather than replace the file of a newer daemon."""
    with suppress(versioned_json.DamagedFileError):
        load(path)
