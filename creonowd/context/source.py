"""Sources: the protocol of one, which are asked and with what, and asking them all at once.

A source that fails, hangs or returns nonsense costs its own text and a warning, never the
assembly. A fragment of another project ends the request.
"""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple, Protocol

import anyio
from anyio import CapacityLimiter
from msgspec.structs import replace

from creonowd.context.fragment import STABLE, Caution, Fragment, FragmentKind, Layer, Omission
from creonowd.context.language import ManuscriptLanguage
from creonowd.context.plan import (
    CHUNK_LIMIT,
    LONGEST_QUERY,
    MOST_SUMMARIES,
    Document,
    LastSentences,
    Need,
    Plan,
    Summary,
    earlier_chapters,
    last_sentences,
    previous_start,
    query,
    query_ends,
    shows_document,
    synopsis_share,
    wants,
)
from creonowd.context.story import (
    Story,
    StoryDocument,
    StoryPlace,
    TimelyFragments,
    UntimelyFragment,
    at_place,
    limit_threads,
)
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.text import file_stem
from creonowd.threads import RoundCache

MAX_TOKEN_COUNT = 10_000_000
_FATAL = {ErrorCode.CONTEXT_SCOPE_VIOLATION, ErrorCode.CONTEXT_INPUT_TOO_LARGE}


# How much of the end of the chapter before an empty page asks with, in code points.
FIRST_WORDS = 480
LAST_ASKED = 3
# How many sets of stable answers are kept at most, with what was put together with each.
MOST_STABLE = 16


class SourceQuery(Model):
    """What a source is asked for.

    Sources of the stable layers get neither document nor query, and of the author's place only the
    chapter: nothing dynamic may leak into the stable prefix. `query` is the text to search with,
    from before the cursor; `wish` is what the author selected or asks for in words. `limit` bounds
    the fragments. A document of at most `shown` code points stands in the prompt as a whole.
    `earlier` are the chapters whose story so far is asked for, in order, None where there is no
    place in the story; it may take about `synopsis_room` tokens, and with `whole_chapters` the
    nearest are there with their whole text.

    `query_end` is where the query ends in the document, and `query_ends` where it ended before
    that: what was found then keeps its place while it is still good. Passages may take about
    `passage_room` tokens. `last` are the sentences before the cursor, each of which may allude to
    an earlier passage. What lies after `here` in the story is not wanted, unless the skill
    `sees_future`. Of the `previous` chapter the prompt shows what follows `previous_start`. Rules
    over the `rules_line` are narrowed.
    """

    project_id: str
    skill_id: str
    limit: int
    document_id: str | None = None
    document: Document | None = None
    query: str = ""
    wish: str = ""
    recent_summary: int = 0
    shown: int = 0
    language: ManuscriptLanguage = ManuscriptLanguage.CHINESE
    earlier: tuple[StoryDocument, ...] | None = None
    synopsis_room: int = 0
    whole_chapters: bool = False
    query_end: int = 0
    query_ends: tuple[int, ...] = ()
    passage_room: int = 0
    last: LastSentences = LastSentences()
    story: Story = Story()
    here: StoryPlace | None = None
    sees_future: bool = False
    previous: Document | None = None
    previous_start: int = 0
    rules_line: int = 0


class SourceResult(Model, cache_hash=True):
    """What a source returns: fragments of its layer, what it had to leave out, and warnings.

    `summaries` are those that skills ask for and its fragments give. `earlier` is how much the
    chapters before mention each entity, by `source_ref`. A source that finds nothing changed should
    return the very same value again: it is then recognised without looking at its fragments.
    """

    fragments: tuple[Fragment, ...] = ()
    left_out: tuple[Omission, ...] = ()
    warnings: tuple[Caution, ...] = ()
    summaries: tuple[Summary, ...] = ()
    earlier: tuple[tuple[str, int], ...] = ()

    @property
    def weight(self) -> int:
        """Return about how many characters keeping this takes."""
        return 500 * (1 + len(self.left_out)) + sum(each.weight for each in self.fragments)


NOTHING = SourceResult()


class Source(Protocol):
    """One place that text comes from, asked once per assembly.

    Every source has `fetch`. The other three save work: with `read_ahead` its files are read together
    with those of others, with `fetch_now` it is asked without a task, and with `revision` it is not
    asked again while its answer stays the same.
    """

    layer: Layer
    """The layer that its fragments belong to."""
    name: str
    """What it is called in warnings and logs."""
    need: Need
    """The key of a skill's `context_rules` that asks for it."""
    unavailable: Caution
    """The warning for a prompt without its text."""
    timeout_ms: int | None = None
    """Its own deadline; None is the engine's."""

    @abstractmethod
    async def fetch(self, ask: SourceQuery) -> SourceResult:
        """Return the fragments for one assembly; any exception means that there are none."""
        ...

    def read_ahead(self, cache: RoundCache) -> None:
        """Read what answers need, in the thread of a round and together with all others."""

    def fetch_now(self, ask: SourceQuery) -> SourceResult | None:
        """Return the same as `fetch` without waiting for anything; None if that has to wait."""
        return None

    def revision(self) -> Hashable | None:
        """Return all that answers depend on beside the query; None if that cannot be known.

        As long as it is equal, so is the answer to an equal query.
        """
        return None


def wanted_sources(plan: Plan, sources: Iterable[Source]) -> list[Source]:
    """Choose the sources of layers that are on and that the skill asks for."""
    return [
        source
        for source in sources
        if source.layer not in plan.allowances.off and wants(plan.skill.rules, source.need)
    ]


def query_for(plan: Plan, layer: Layer) -> SourceQuery:
    """Return the query for a source of a layer."""
    ask = SourceQuery(project_id=plan.project_id, skill_id=plan.skill.skill_id, limit=CHUNK_LIMIT)
    if layer not in STABLE:
        return _dynamic(plan, ask)
    chapter = None if plan.here is None else StoryPlace(plan.here.document)
    line = plan.allowances.rules_line
    return replace(ask, story=plan.story, here=chapter, rules_line=line)


def _dynamic(plan: Plan, ask: SourceQuery) -> SourceQuery:
    document = plan.document
    searched, end, ends, last = "", 0, (), LastSentences()
    if document is not None:
        ends = query_ends(document.text, document.here.start, plan.step)
        end = ends[-1]
        searched = query(document.text, end)
        last = last_sentences(document.text, end, document.here.end)
        if not searched.strip():
            searched = _first_words(plan)
            asked = last_sentences(searched, len(searched), len(searched)).firm
            last = LastSentences(asked, last.late or asked[-LAST_ASKED:])
    if plan.allowances.long:
        # Passages stand before the window; a new one would cost the cache all of that.
        last = LastSentences(last.firm)
    rules = plan.skill.rules
    return SourceQuery(
        project_id=ask.project_id,
        skill_id=ask.skill_id,
        limit=ask.limit,
        document_id=plan.document_id,
        document=document,
        query=searched,
        wish=_wish(plan),
        recent_summary=MOST_SUMMARIES if rules is None else rules.recent_summary,
        # The window begins at most one of its four steps later than it could.
        shown=3 * plan.step if shows_document(plan) else 0,
        language=plan.language,
        earlier=earlier_chapters(plan),
        synopsis_room=synopsis_share(plan),
        whole_chapters=plan.allowances.long,
        query_end=end,
        query_ends=ends,
        passage_room=plan.allowances.share(Layer.RETRIEVED),
        last=last,
        story=plan.story,
        here=plan.here,
        sees_future=plan.sees_future,
        previous=plan.previous,
        previous_start=previous_start(plan),
    )


def _first_words(plan: Plan) -> str:
    """Return what an empty page asks with: the end of the chapter before, outline and title."""
    before = "" if plan.previous is None else plan.previous.text[-FIRST_WORDS:]
    outline = plan.outline[:FIRST_WORDS]
    return "\n\n".join(filter(None, (before, outline, file_stem(plan.document_id))))


def _wish(plan: Plan) -> str:
    document = plan.document
    selected = document.selection if document else None
    text = document.text[selected.start : selected.end] if document and selected else ""
    return "\n".join(filter(None, (text[:LONGEST_QUERY], plan.additional_input)))


class AnswerFacts(NamedTuple):
    """The projects that an answer's fragments name, and whether any depends on the place."""

    projects: frozenset[str | None]
    is_timed: bool


class KnownAnswers:
    """What was made of answers that sources have in memory: the same ones come again and again.

    An answer is recognised as the very same value, and kept as long as what was made of it. Those
    of the stable layers are the same for many that differ in the others.
    """

    def __init__(self, characters: int = 8_000_000) -> None:
        self._characters = characters
        self._facts: Memo[int, tuple[SourceResult, AnswerFacts]] = Memo(characters, _weigh_facts)
        self._joined: Memo[tuple[str | int, ...], _JoinedAnswers] = Memo(
            characters, lambda _key, joined: joined.weight
        )

    def facts(self, answer: SourceResult, layer: Layer) -> AnswerFacts | None:
        """Look at all fragments of an answer; None if it makes no sense."""
        known = self._facts.peek(id(answer)) if layer in STABLE else None
        if known is not None:
            return known[1]
        facts = _facts(answer, layer)
        if facts is not None and layer in STABLE:
            self._facts.put(id(answer), (answer, facts))
        return facts

    def results(self, project_id: str, answers: "AnswersByLayer") -> "SourceResults | None":
        """Return these answers of a project put together, if they were before."""
        joined = self._joined.peek((project_id, *map(id, answers.stable)))
        known = None if joined is None else joined.dynamic.peek(tuple(map(id, answers.dynamic)))
        return None if known is None else known[1]

    def keep(self, project_id: str, answers: "AnswersByLayer", results: "SourceResults") -> None:
        """Keep answers of a project that were put together."""
        key = (project_id, *map(id, answers.stable))
        joined = self._joined.get(key, lambda: _JoinedAnswers(answers.stable, self._characters))
        joined.dynamic.put(tuple(map(id, answers.dynamic)), (answers.dynamic, results))


class AnswersByLayer(NamedTuple):
    """The answers with texts of the stable layers, and all others."""

    stable: tuple[object, ...]
    dynamic: tuple[object, ...]


class _JoinedAnswers:
    """What was put together of the same stable answers with others.

    More than a few sets of stable answers are not kept at all.
    """

    def __init__(self, stable: Sequence[object], characters: int) -> None:
        self.stable = stable
        self.dynamic: Memo[tuple[int, ...], tuple[Sequence[object], SourceResults]] = Memo(
            3 * characters, _weigh_dynamic
        )
        texts = sum(one.weight for one in stable if isinstance(one, SourceResult))
        self.weight = max(1000 + texts, characters // MOST_STABLE)


def _weigh_dynamic(_key: object, known: "tuple[Sequence[object], SourceResults]") -> int:
    """Return about how many characters it takes to keep answers; half of them are kept elsewhere."""
    answers = [one.fragments for one in known[0] if isinstance(one, SourceResult)]
    return 1000 + sum(100 + len(one.text) // 2 for fragments in answers for one in fragments)


def _weigh_facts(_key: int, known: tuple[SourceResult, AnswerFacts]) -> int:
    return known[0].weight


# What a source returned and what was found in it, the error that ends the request, or the kind of
# the failure.
SourceAnswer = tuple[SourceResult, AnswerFacts] | DaemonError | str


class Failure(Model):
    """A source that returned nothing usable, and the kind of its failure; for the log."""

    source: str
    layer: Layer
    kind: str


class SourceResults(Model):
    """What all sources returned, in the order of the sources and not of their answers.

    `untimely` does not hold at the author's place, and `states` say where the pieces of the
    stable layers stand in time. `timeless` layers have no piece that depends on the place. If the
    same answers are this very value again, `made` keeps what was made of it, for as long as it.
    """

    fragments: dict[Layer, tuple[Fragment, ...]]
    timeless: frozenset[Layer] = frozenset()
    made: dict[Any, Any] | None = None
    untimely: tuple[UntimelyFragment, ...] = ()
    states: tuple[tuple[str, str], ...] = ()
    left_out: tuple[Omission, ...] = ()
    warnings: tuple[Caution, ...] = ()
    failures: tuple[Failure, ...] = ()
    summaries: frozenset[Summary] = frozenset()
    earlier: tuple[tuple[str, int], ...] = ()


async def gather(
    plan: Plan,
    sources: Sequence[Source],
    reading: CapacityLimiter | None = None,
    known: KnownAnswers | None = None,
) -> SourceResults:
    """Ask all sources at once and wait for the slowest, at most until its deadline.

    A source in whose folder nothing changed returns the very same value; `known` keeps what was
    made of it.

    Those with a deadline of their own are asked now, the others when `reading` has a place: in
    a crowd the clock of a source runs while it works, not while it waits for its turn.
    """
    known = known or KnownAnswers(1)
    asks = {layer: query_for(plan, layer) for layer in {source.layer for source in sources}}
    fetched = [_fetch_now(source, asks[source.layer]) for source in sources]
    by_layer = _by_layer(sources, fetched)
    if (joined := known.results(plan.project_id, by_layer)) is not None:
        return joined
    answers = [
        None if one is None else _check_answer(one, source, known)
        for source, one in zip(sources, fetched, strict=True)
    ]
    waiting = [index for index, answer in enumerate(answers) if answer is None]

    async def ask(index: int) -> None:
        source = sources[index]
        fetched[index] = await _fetch(source, asks[source.layer])
        answers[index] = _check_answer(fetched[index], source)

    async def ask_all(indexes: Sequence[int], timeout_ms: int) -> None:
        # One deadline for many: a scope for each source took 0.15 ms of an assembly's 2.4.
        with anyio.move_on_after(timeout_ms / 1000):
            async with anyio.create_task_group() as tasks:
                for index in indexes:
                    tasks.start_soon(ask, index)

    if waiting:
        async with anyio.create_task_group() as group:
            for index in waiting:
                own = sources[index].timeout_ms
                if own is not None:
                    group.start_soon(ask_all, [index], own)
            async with reading or nullcontext():
                others = [index for index in waiting if sources[index].timeout_ms is None]
                await ask_all(others, plan.source_timeout_ms)
        by_layer = _by_layer(sources, fetched)
        if (joined := known.results(plan.project_id, by_layer)) is not None:
            return joined
    pairs = zip(sources, answers, strict=True)
    joined = _join_answers(
        plan.project_id, [(source, answer or "timeout") for source, answer in pairs]
    )
    # What other processes return is a new value each time.
    may_return = all(sources[index].revision() is not None for index in waiting)
    if may_return and not joined.failures:
        joined = replace(joined, made={})
        known.keep(plan.project_id, by_layer, joined)
    return joined


def _by_layer(sources: Sequence[Source], fetched: Sequence[object]) -> AnswersByLayer:
    """Separate the texts of stable layers, which are the same everywhere, from other answers."""
    stable: list[object] = []
    dynamic: list[object] = []
    for source, one in zip(sources, fetched, strict=True):
        is_text = isinstance(one, SourceResult) and bool(one.fragments)
        (stable if is_text and source.layer in STABLE else dynamic).append(one)
    return AnswersByLayer(tuple(stable), tuple(dynamic))


def _fetch_now(source: Source, ask: SourceQuery) -> object | None:
    """Return the answer of a source that has it in memory; None if it has to be waited for."""
    try:
        return source.fetch_now(ask)
    except Exception as error:  # noqa: BLE001 - a source may fail in any way, the assembly in none
        return error


async def _fetch(source: Source, ask: SourceQuery) -> object:
    """Return what a source answers, or why it does not."""
    try:
        return await source.fetch(ask)
    except Exception as error:  # noqa: BLE001 - a source may fail in any way, the assembly in none
        return error


def _failure(error: Exception) -> DaemonError | str:
    """Return the error that ends the request, or the kind of the failure."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, DaemonError):
        return error if error.code in _FATAL else error.code
    return type(error).__name__


def _check_answer(
    fetched: object, source: Source, known: KnownAnswers | None = None
) -> SourceAnswer:
    if isinstance(fetched, Exception):
        return _failure(fetched)
    if not isinstance(fetched, SourceResult):
        return "malformed"
    layer = source.layer
    facts = _facts(fetched, layer) if known is None else known.facts(fetched, layer)
    return "malformed" if facts is None else (fetched, facts)


def _facts(fetched: SourceResult, layer: Layer) -> AnswerFacts | None:
    """Look at all fragments of an answer; None if it makes no sense."""
    if not all(_is_sound(fragment, layer) for fragment in fetched.fragments):
        return None
    return AnswerFacts(
        frozenset([fragment.project_id for fragment in fetched.fragments]),
        any(fragment.is_timed for fragment in fetched.fragments),
    )


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


def _join_answers(project_id: str, pairs: Sequence[tuple[Source, SourceAnswer]]) -> SourceResults:
    """Put the answers together; those that end the request are raised, in the order of sources."""
    fragments: dict[Layer, list[Fragment]] = {layer: [] for layer in Layer}
    left_out: list[Omission] = []
    summaries: set[Summary] = set()
    earlier: list[tuple[str, int]] = []
    warnings: list[Caution] = []
    failures: list[Failure] = []
    unavailable: list[Caution] = []
    timed: set[Layer] = set()
    for source, answer in pairs:
        if isinstance(answer, DaemonError):
            raise answer
        if isinstance(answer, str):
            failures.append(Failure(source=source.name, layer=source.layer, kind=answer))
            unavailable.append(replace(source.unavailable, layer=source.layer))
            continue
        fetched, facts = answer
        _refuse_foreign(project_id, source, facts.projects)
        if facts.is_timed:
            timed.add(source.layer)
        fragments[source.layer] += fetched.fragments
        left_out += fetched.left_out
        summaries.update(fetched.summaries)
        earlier += fetched.earlier
        warnings += [replace(warning, layer=source.layer) for warning in fetched.warnings]
    return SourceResults(
        fragments={layer: tuple(found) for layer, found in fragments.items()},
        timeless=frozenset(Layer) - timed,
        left_out=tuple(left_out),
        summaries=frozenset(summaries),
        earlier=tuple(earlier),
        warnings=(*warnings, *unavailable),
        failures=tuple(failures),
    )


def in_time(plan: Plan, gathered: SourceResults) -> SourceResults:
    """Leave out what does not hold at the author's place in the story."""
    timely = {
        layer: (
            TimelyFragments(fragments)
            if layer in gathered.timeless
            else at_place(fragments, plan.story, plan.here)
        )
        for layer, fragments in gathered.fragments.items()
    }
    timely[Layer.SETTINGS] = limit_threads(timely[Layer.SETTINGS], plan.story)
    return replace(
        gathered,
        fragments={layer: each.fragments for layer, each in timely.items()},
        untimely=tuple([one for each in timely.values() for one in each.untimely]),
        states=tuple([state for layer in STABLE for state in timely[layer].states]),
        warnings=(
            *gathered.warnings,
            *(warning for each in timely.values() for warning in each.warnings),
        ),
        made=None,
    )


def depends_on_place(gathered: SourceResults) -> bool:
    """Return whether what holds of some answers changes with the author's place in the story."""
    settings = gathered.fragments[Layer.SETTINGS]
    return any(one.kind is FragmentKind.THREAD for one in settings) or any(
        one.since or one.until or one.stages
        for layer, fragments in gathered.fragments.items()
        if layer not in gathered.timeless
        for one in fragments
    )


def _refuse_foreign(project_id: str, source: Source, projects: frozenset[str | None]) -> None:
    if not projects <= {None, project_id}:
        raise DaemonError(
            ErrorCode.CONTEXT_SCOPE_VIOLATION,
            f"The source {source.name} gave text of another project; mend that source.",
            source=source.name,
            layer=source.layer,
        )
