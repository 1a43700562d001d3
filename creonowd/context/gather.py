"""Asking every source at once, each with its deadline.

A source that fails, hangs or talks nonsense costs its own text and a warning, never the
assembly. A fragment of another project ends the request. Knows no source.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from itertools import chain

import anyio
from anyio import CapacityLimiter

from creonowd.context.fragment import Fragment, Layer, LeftOut
from creonowd.context.plan import Accompanied, Ask, Fetched, Party, Plan, Source, ask_for
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model

ABSURD_TOKENS = 10_000_000
CHECKED_CHARACTERS = 8_000_000

_FATAL = {ErrorCode.CONTEXT_SCOPE_VIOLATION, ErrorCode.CONTEXT_INPUT_TOO_LARGE}

Answer = Fetched | DaemonError | str


class Failure(Model):
    """A source that gave nothing, and what kind of failure that was; for the log."""

    source: str
    layer: Layer
    kind: str


class Gathered(Model):
    """What all sources gave, in the order of the sources and not of their answers."""

    fragments: dict[Layer, tuple[Fragment, ...]]
    left_out: tuple[LeftOut, ...] = ()
    warnings: tuple[tuple[Layer, str], ...] = ()
    failures: tuple[Failure, ...] = ()


async def gather(
    plan: Plan, sources: Sequence[Source], reading: CapacityLimiter | None = None
) -> Gathered:
    """Ask all sources at once and wait for the slowest, at most until its deadline.

    Those with a deadline of their own are asked now, the others when `reading` has a place: in
    a crowd the clock of a source runs while it works, not while its turn is awaited.
    """
    asking = _Asking(plan, sources)
    async with anyio.create_task_group() as group:
        for index, source in enumerate(sources):
            if source.timeout_ms is not None:
                group.start_soon(asking.ask, index)
        async with reading or nullcontext():
            await asking.ask_ours()
    pairs = list(zip(sources, asking.answers, strict=True))
    _refuse_foreign(plan.project_id, pairs)
    return _joined(pairs)


class _Asking:
    """The questions of one assembly, and their answers as they come."""

    def __init__(self, plan: Plan, sources: Sequence[Source]) -> None:
        self._plan, self._sources = plan, sources
        self.answers: list[Answer] = ["unasked"] * len(sources)

    async def ask(self, index: int) -> None:
        """Ask one source."""
        source = self._sources[index]
        ask = ask_for(self._plan, source.layer)
        self.answers[index] = await _ask(source, ask, self._plan.source_timeout_ms)

    async def ask_ours(self) -> None:
        """Ask all that have no deadline of their own; those of a party together."""
        parties = list(_parties(self._sources).items())
        async with anyio.create_task_group() as group:
            for index, source in enumerate(self._sources):
                if source.timeout_ms is None and not isinstance(source, Accompanied):
                    group.start_soon(self.ask, index)
            for party, members in parties[1:]:
                group.start_soon(self._ask_party, party, members)
            # The usual one without a task of its own: that costs as much as its way does.
            for party, members in parties[:1]:
                await self._ask_party(party, members)

    async def _ask_party(self, party: Party, members: Sequence[int]) -> None:
        with anyio.move_on_after(self._plan.source_timeout_ms / 1000):
            await party.go([self._sources[index].name for index in members])
        for index in members:
            source = self._sources[index]
            self.answers[index] = _answer(party.told(source.name) or TimeoutError(), source.layer)


async def _ask(source: Source, ask: Ask, timeout_ms: int) -> Answer:
    """Give a source's answer, the kind of its failure, or what must end the request."""
    deadline = timeout_ms if source.timeout_ms is None else source.timeout_ms
    try:
        with anyio.fail_after(deadline / 1000):
            return _answer(await source.fetch(ask), source.layer)
    except Exception as error:  # noqa: BLE001 - a source may fail in any way, the assembly in none
        return _answer(error, source.layer)


def _parties(sources: Sequence[Source]) -> dict[Party, list[int]]:
    parties: dict[Party, list[int]] = {}
    for index, source in enumerate(sources):
        if isinstance(source, Accompanied):
            parties.setdefault(source.party, []).append(index)
    return parties


def _answer(outcome: object, layer: Layer) -> Answer:
    """Make an answer of what a source gave or failed with."""
    if isinstance(outcome, TimeoutError):
        return "timeout"
    if isinstance(outcome, DaemonError):
        return outcome if outcome.code in _FATAL else outcome.code
    if isinstance(outcome, Exception):
        return type(outcome).__name__
    if isinstance(outcome, Fetched) and _projects(outcome, layer) is not None:
        return outcome
    return "malformed"


_checked: Memo[tuple[Fetched, Layer], frozenset[str | None]] = Memo(
    CHECKED_CHARACTERS, lambda key, _projects: key[0].weight
)


def _projects(fetched: Fetched, layer: Layer) -> frozenset[str | None] | None:
    """Tell which projects an answer names; None if it makes no sense."""
    known = _checked.recall((fetched, layer))
    if known is None and all(_is_sound(fragment, layer) for fragment in fetched.fragments):
        known = frozenset(fragment.project_id for fragment in fetched.fragments)
        _checked.put((fetched, layer), known)
    return known


def _is_sound(fragment: object, layer: Layer) -> bool:
    if not isinstance(fragment, Fragment) or fragment.layer is not layer:
        return False
    return (
        _is_text(fragment.text)
        and _is_text(fragment.source_ref)
        and (fragment.score is None or 0 <= fragment.score <= 1)
        and (fragment.confidence is None or 0 <= fragment.confidence <= 1)
        and (fragment.token_count is None or 0 <= fragment.token_count <= ABSURD_TOKENS)
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _refuse_foreign(project_id: str, pairs: Iterable[tuple[Source, Answer]]) -> None:
    for source, answer in pairs:
        if isinstance(answer, DaemonError):
            raise answer
        named = _projects(answer, source.layer) if isinstance(answer, Fetched) else None
        if named and not named <= {None, project_id}:
            raise DaemonError(
                ErrorCode.CONTEXT_SCOPE_VIOLATION,
                f"The source {source.name} gave text of another project; mend that source.",
                source=source.name,
                layer=source.layer,
            )


def _joined(pairs: Sequence[tuple[Source, Answer]]) -> Gathered:
    given = [(source, answer) for source, answer in pairs if isinstance(answer, Fetched)]
    failed = [(source, answer) for source, answer in pairs if isinstance(answer, str)]
    said = [(source.layer, warning) for source, answer in given for warning in answer.warnings]
    return Gathered(
        fragments={layer: _of(layer, given) for layer in Layer},
        left_out=tuple(chain.from_iterable(answer.left_out for _, answer in given)),
        warnings=tuple(said + [(source.layer, source.unavailable) for source, _ in failed]),
        failures=tuple(
            Failure(source=source.name, layer=source.layer, kind=kind) for source, kind in failed
        ),
    )


def _of(layer: Layer, given: Iterable[tuple[Source, Fetched]]) -> tuple[Fragment, ...]:
    return tuple(
        chain.from_iterable(answer.fragments for source, answer in given if source.layer is layer)
    )
