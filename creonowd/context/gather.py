"""Ask every source at once, each with its deadline.

A source that fails, hangs or returns nonsense costs its own text and a warning, never the
assembly. A fragment of another project ends the request.
"""

from collections.abc import Sequence
from contextlib import nullcontext

import anyio
from anyio import CapacityLimiter

from creonowd.context.fragment import Fragment, Layer, Omission
from creonowd.context.plan import Plan
from creonowd.context.source import Source, SourceQuery, SourceResult, query_for
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model

MAX_TOKEN_COUNT = 10_000_000

_FATAL = {ErrorCode.CONTEXT_SCOPE_VIOLATION, ErrorCode.CONTEXT_INPUT_TOO_LARGE}

# The projects that an answer's fragments name; the same answer again is not checked again.
CheckedAnswers = Memo[tuple[SourceResult, Layer], frozenset[str | None]]
# What a source returned and the projects in it, the error that ends the request, or the kind of
# the failure.
SourceAnswer = tuple[SourceResult, frozenset[str | None]] | DaemonError | str


class Failure(Model):
    """A source that returned nothing usable, and the kind of its failure; for the log."""

    source: str
    layer: Layer
    kind: str


class SourceResults(Model):
    """What all sources returned, in the order of the sources and not of their answers."""

    fragments: dict[Layer, tuple[Fragment, ...]]
    left_out: tuple[Omission, ...] = ()
    warnings: tuple[tuple[Layer, str], ...] = ()
    failures: tuple[Failure, ...] = ()


async def gather(
    plan: Plan,
    sources: Sequence[Source],
    reading: CapacityLimiter | None = None,
    checked: CheckedAnswers | None = None,
) -> SourceResults:
    """Ask all sources at once and wait for the slowest, at most until its deadline.

    A source in whose folder nothing changed returns the very same value; `checked` keeps what was
    found in it.

    Those with a deadline of their own are asked now, the others when `reading` has a place: in
    a crowd the clock of a source runs while it works, not while it waits for its turn.
    """
    known = CheckedAnswers(1) if checked is None else checked
    asks = {layer: query_for(plan, layer) for layer in {source.layer for source in sources}}
    answers: list[SourceAnswer] = ["timeout"] * len(sources)

    async def ask(index: int) -> None:
        source = sources[index]
        answers[index] = await _answer(source, asks[source.layer], known)

    async def ask_all(indexes: Sequence[int], timeout_ms: int) -> None:
        # One deadline for many: a scope for each source took 0.15 ms of an assembly's 2.4.
        with anyio.move_on_after(timeout_ms / 1000):
            async with anyio.create_task_group() as tasks:
                for index in indexes:
                    tasks.start_soon(ask, index)

    async with anyio.create_task_group() as group:
        for index, source in enumerate(sources):
            if source.timeout_ms is not None:
                group.start_soon(ask_all, [index], source.timeout_ms)
        async with reading or nullcontext():
            others = [index for index, source in enumerate(sources) if source.timeout_ms is None]
            await ask_all(others, plan.source_timeout_ms)
    return _gathered(plan.project_id, list(zip(sources, answers, strict=True)))


async def _answer(source: Source, ask: SourceQuery, checked: CheckedAnswers) -> SourceAnswer:
    try:
        fetched = await source.fetch(ask)
    except TimeoutError:
        return "timeout"
    except DaemonError as error:
        return error if error.code in _FATAL else error.code
    except Exception as error:  # noqa: BLE001 - a source may fail in any way, the assembly in none
        return type(error).__name__
    projects = _projects(fetched, source.layer, checked)
    return "malformed" if projects is None else (fetched, projects)


def _projects(
    fetched: object, layer: Layer, checked: CheckedAnswers
) -> frozenset[str | None] | None:
    """Return the projects that the fragments name; None if the answer makes no sense."""
    if not isinstance(fetched, SourceResult):
        return None
    projects = checked.peek((fetched, layer))
    if projects is None and all(_is_sound(fragment, layer) for fragment in fetched.fragments):
        projects = frozenset(fragment.project_id for fragment in fetched.fragments)
        checked.put((fetched, layer), projects)
    return projects


def _is_sound(fragment: object, layer: Layer) -> bool:
    if not isinstance(fragment, Fragment) or fragment.layer is not layer:
        return False
    return (
        _is_text(fragment.text)
        and _is_text(fragment.source_ref)
        and (fragment.score is None or 0 <= fragment.score <= 1)
        and (fragment.confidence is None or 0 <= fragment.confidence <= 1)
        and (fragment.token_count is None or 0 <= fragment.token_count <= MAX_TOKEN_COUNT)
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _gathered(project_id: str, pairs: Sequence[tuple[Source, SourceAnswer]]) -> SourceResults:
    """Put the answers together; those that end the request are raised, in the order of sources."""
    fragments: dict[Layer, list[Fragment]] = {layer: [] for layer in Layer}
    left_out: list[Omission] = []
    warnings: list[tuple[Layer, str]] = []
    failures: list[Failure] = []
    unavailable: list[tuple[Layer, str]] = []
    for source, answer in pairs:
        if isinstance(answer, DaemonError):
            raise answer
        if isinstance(answer, str):
            failures.append(Failure(source=source.name, layer=source.layer, kind=answer))
            unavailable.append((source.layer, source.unavailable))
            continue
        fetched, projects = answer
        _refuse_foreign(project_id, source, projects)
        fragments[source.layer] += fetched.fragments
        left_out += fetched.left_out
        warnings += [(source.layer, warning) for warning in fetched.warnings]
    return SourceResults(
        fragments={layer: tuple(found) for layer, found in fragments.items()},
        left_out=tuple(left_out),
        warnings=(*warnings, *unavailable),
        failures=tuple(failures),
    )


def _refuse_foreign(project_id: str, source: Source, projects: frozenset[str | None]) -> None:
    if not projects <= {None, project_id}:
        raise DaemonError(
            ErrorCode.CONTEXT_SCOPE_VIOLATION,
            f"The source {source.name} gave text of another project; mend that source.",
            source=source.name,
            layer=source.layer,
        )
