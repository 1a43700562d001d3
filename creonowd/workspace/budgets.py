"""Budgets on disk, and what corrects them.

Profiles are in `<userData>/budgets/`, one file per project and one default. What real runs taught
about the counts of models, the provider's count divided by ours, is in
`<userData>/corrections.json`.
"""

import math
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.context.budget import (
    Budget,
    BudgetChange,
    BudgetProfile,
    CountCorrection,
    apply_change,
    budget_of,
    check_profile,
    with_current_tokenizer,
)
from creonowd.context.fragment import Caution
from creonowd.errors import DaemonError, ErrorCode, WarningCode, Wording
from creonowd.model import Model
from creonowd.storage import stored_files
from creonowd.storage.locks import hold
from creonowd.storage.stored_files import disk_errors
from creonowd.tokens.models import PACKAGED, CountKind, KnownTables, bare_name

FOLDER = "budgets"
DEFAULT = "default"
LOCK = "write.lock"
VERSION = 1

CORRECTIONS_FILE = "corrections.json"
CORRECTIONS_VERSION = 1
KEPT_RUNS = 8
MOST_MODELS = 64
FEWEST_TOKENS = 500
"""Nothing is learned from a shorter prompt: what the provider adds would weigh too much in it."""

_STEPS = 32
_LIMITS = {CountKind.BOUND: (1.0, 1.5), CountKind.APPROXIMATE: (0.75, 1.5)}
_RUNS_NEEDED = {CountKind.BOUND: 1, CountKind.APPROXIMATE: 3}
_PLAUSIBLE = (0.5, 3.0)
"""Below, the server cut the prompt; above, it counted more than the prompt."""

log = structlog.stdlib.get_logger(__name__)


class _StoredBudget(Model):
    version: int
    profile: BudgetProfile


class _CachedBudget(NamedTuple):
    """The profile of a file, and the signature that the file had when it was read."""

    signature: tuple[int, int, int] | None
    profile: BudgetProfile | None


class Budgets:
    """The budget profiles of this user.

    Every read compares the file's signature, so that another process's update is seen; every
    update holds a lock across processes while it compares versions and writes.
    """

    def __init__(self, user_data: Path, tables: KnownTables = PACKAGED) -> None:
        self._folder = user_data / FOLDER
        self._tables = tables
        self._lock = anyio.Lock()
        self._cached: dict[str, _CachedBudget] = {}
        self._set_aside: dict[str, str] = {}

    async def get(self, project_id: str | None = None) -> Budget:
        """Read the profile of a project, else the default one.

        If its file was damaged, the file has been kept aside and the budget carries the
        warning CONTEXT_BUDGET_FALLBACK until someone updates it.
        """
        return await to_thread.run_sync(self._get, project_id or DEFAULT)

    async def update(self, change: BudgetChange, project_id: str | None = None) -> Budget:
        """Change the profile, or fail with CONTEXT_BUDGET_CONFLICT if someone else did first."""
        async with self._lock:
            profile = await to_thread.run_sync(self._update, project_id or DEFAULT, change)
        log.info(
            "context_budget_updated",
            projectId=project_id,
            version=profile.version,
            totalBudgetTokens=profile.total_budget_tokens,
        )
        return budget_of(profile)

    async def effective(self, project_id: str | None = None) -> Budget:
        """Read the profile for an assembly, which a budget that cannot be read must not stop."""
        return await to_thread.run_sync(self.effective_now, project_id)

    def effective_now(self, project_id: str | None = None) -> Budget:
        """Do what `effective` does; blocks its thread."""
        try:
            return self._get(project_id or DEFAULT)
        except DaemonError as error:
            log.warning("context_budget_fallback", projectId=project_id, code=error.code)
            return _fallback(_UNREADABLE)

    def set_aside(self) -> dict[str, str]:
        """Return the new names of damaged files by budget, for `app:health`."""
        return dict(self._set_aside)

    def _get(self, name: str) -> Budget:
        try:
            return self._current(name)
        except stored_files.DamagedFileError:
            return self._repair(name)

    def _repair(self, name: str) -> Budget:
        try:
            with self._write_lock():
                return self._current(name, set_damaged_aside=True)
        except DaemonError as error:
            log.warning("context_budget_fallback", code=error.code)
            return _fallback(_DAMAGED)

    def _update(self, name: str, change: BudgetChange) -> BudgetProfile:
        with self._write_lock():
            self._cached.pop(name, None)
            current = self._current(name, set_damaged_aside=True).profile
            profile = apply_change(current, change, self._tables)
            data = msgspec.json.encode(_StoredBudget(version=VERSION, profile=profile))
            stored_files.replace(self._path(name), msgspec.json.format(data, indent=2) + b"\n")
        self._set_aside.pop(name, None)
        return profile

    @contextmanager
    def _write_lock(self) -> Generator[None]:
        with disk_errors(FOLDER):
            stored_files.make_folders(self._folder)
        with hold(self._folder / LOCK):
            yield

    def _current(self, name: str, *, set_damaged_aside: bool = False) -> Budget:
        own = self._read(name, set_damaged_aside=set_damaged_aside)
        if own is not None:
            return budget_of(own)
        default = name == DEFAULT
        inherited = (
            budget_of(BudgetProfile())
            if default
            else self._current(DEFAULT, set_damaged_aside=set_damaged_aside)
        )
        if name not in self._set_aside or _is_fallback(inherited):
            return inherited
        return _fallback(_KEPT_ASIDE.format(self._set_aside[name]), inherited.profile)

    def _read(self, name: str, *, set_damaged_aside: bool) -> BudgetProfile | None:
        path = self._path(name)
        signature = _signature(path)
        cached = self._cached.get(name)
        if cached is None or cached.signature != signature:
            cached = self._cached[name] = _CachedBudget(
                signature, self._load(name, path, set_damaged_aside=set_damaged_aside)
            )
        return cached.profile

    def _load(self, name: str, path: Path, *, set_damaged_aside: bool) -> BudgetProfile | None:
        try:
            return load(path, self._tables)
        except stored_files.DamagedFileError as damage:
            if not set_damaged_aside:
                raise
            self._set_aside[name] = stored_files.set_aside(path)
            log.warning("context_budget_set_aside", file=self._set_aside[name], damage=str(damage))
            return None

    def _path(self, name: str) -> Path:
        if not name.replace("_", "").isalnum() or not name.isascii():
            raise DaemonError(ErrorCode.NOT_FOUND, "There is no such project.")
        return self._folder / f"{name}.json"


def load(path: Path, tables: KnownTables = PACKAGED) -> BudgetProfile | None:
    """Read a profile; None if there is none, DamagedFileError if it is broken or not valid."""
    stored = stored_files.load(path, _StoredBudget, version=VERSION)
    if stored is None:
        return None
    try:
        profile = with_current_tokenizer(stored.profile, tables)
        check_profile(profile)
    except DaemonError as error:
        raise stored_files.DamagedFileError(f"{path.name}: {error.message}") from None
    return profile


def _signature(path: Path) -> tuple[int, int, int] | None:
    with disk_errors(path.name):
        try:
            found = path.stat()
        except FileNotFoundError:
            return None
    return (found.st_ino, found.st_mtime_ns, found.st_size)


def _is_fallback(budget: Budget) -> bool:
    return any(w.code is WarningCode.CONTEXT_BUDGET_FALLBACK for w in budget.warnings)


def _fallback(reason: Wording, profile: BudgetProfile | None = None) -> Budget:
    warning = Caution(code=WarningCode.CONTEXT_BUDGET_FALLBACK, wording=reason)
    return budget_of(BudgetProfile() if profile is None else profile, warning)


_UNREADABLE = Wording("the stored budget cannot be read", "已存的预算无法读取")
_DAMAGED = Wording("the stored budget is damaged", "已存的预算已损坏")
_KEPT_ASIDE = Wording(
    "the stored budget was damaged and is kept as {}", "已存的预算已损坏，另存为 {}"
)


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
    """The corrections of this user, by the name of the model; those used last are kept.

    Where a count is a bound or approximate, the budget is divided by the greatest ratio of a
    model's last runs. That is rounded up to a thirty-second, so that one run after the other does
    not move the budget, and bounded: a bound is never lowered, since a later text
    may cost more than those before.
    """

    def __init__(self, user_data: Path) -> None:
        self._path = user_data / CORRECTIONS_FILE
        self._lock = anyio.Lock()
        self._models = {one.model: one for one in _load_usable_corrections(self._path)}

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
        """Learn from one run; if that cannot be stored, it is known until the daemon stops."""
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
        _refuse_newer_corrections(self._path)
        stored = _StoredCorrections(
            version=CORRECTIONS_VERSION, models=tuple(self._models.values())
        )
        stored_files.replace(self._path, msgspec.json.encode(stored) + b"\n")


def load_corrections(path: Path) -> tuple[LearnedCounts, ...]:
    """Read what was learned; DamagedFileError if the file is broken."""
    stored = stored_files.load(path, _StoredCorrections, version=CORRECTIONS_VERSION)
    return () if stored is None else stored.models[-MOST_MODELS:]


def _load_usable_corrections(path: Path) -> tuple[LearnedCounts, ...]:
    """Read what was learned; nothing if the file is damaged, which sets it aside, or newer."""
    try:
        return load_corrections(path)
    except stored_files.DamagedFileError as damage:
        log.warning("corrections_set_aside", file=stored_files.set_aside(path), damage=str(damage))
    except DaemonError as error:
        log.warning("corrections_not_read", code=error.code)
    return ()


def _refuse_newer_corrections(path: Path) -> None:
    """Fail with VERSION_TOO_NEW rather than replace the file of a newer daemon."""
    with suppress(stored_files.DamagedFileError):
        load_corrections(path)
