"""Sources: the protocol of one, which are asked and with what, and asking them all at once.

A source that fails, hangs or returns nonsense costs its own text and a warning, never the
assembly. A fragment of another project ends the request.
"""

from abc import abstractmethod
from collections.abc import Coroutine, Hashable, Iterable, Mapping, Sequence
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
from creonowd.threads import BatchCache

MAX_TOKEN_COUNT = 10_000_000
_FATAL = {ErrorCode.CONTEXT_SCOPE_VIOLATION, ErrorCode.CONTEXT_INPUT_TOO_LARGE}


# How much of the end of the chapter before an empty page asks with, in code points.
FIRST_WORDS = 480
LAST_ASKED = 3
# How many sets of results of the stable layers are kept at most.
MOST_STABLE = 16


class SourceQuery(Model):
    """What a source is asked for.

    Sources of the stable layers get neither document nor query, and of the author's place only the
    chapter: nothing dynamic may leak into the stable prefix.
    """

    project_id: str
    """The project that is assembled for."""
    skill_id: str
    """The skill that the prompt is for."""
    limit: int
    """How many fragments at most."""
    document_id: str | None = None
    """The author's document."""
    document: Document | None = None
    """Its text and the author's place in it, if it can be read."""
    query: str = ""
    """The text to search with, from before the cursor."""
    wish: str = ""
    """What the author selected or asks for in words."""
    recent_summary: int = 0
    """How many summaries of accepted runs the skill asks for."""
    shown: int = 0
    """A document of at most this many code points stands in the prompt as a whole."""
    language: ManuscriptLanguage = ManuscriptLanguage.CHINESE
    """The language of the prompt."""
    earlier: tuple[StoryDocument, ...] | None = None
    """The chapters whose story so far is asked for, in order; None without a place in the story."""
    synopsis_room: int = 0
    """About how many tokens the story so far may take."""
    whole_chapters: bool = False
    """Whether the nearest chapters of it are there with their whole text."""
    query_end: int = 0
    """Where the query ends in the document."""
    query_ends: tuple[int, ...] = ()
    """Where it ended before: what was found then keeps its place while it is still good."""
    passage_room: int = 0
    """About how many tokens passages may take."""
    last: LastSentences = LastSentences()
    """The sentences before the cursor, each of which may allude to an earlier passage."""
    story: Story = Story()
    """The documents in the order of the story."""
    here: StoryPlace | None = None
    """The author's place in the story; what lies after it is not wanted."""
    sees_future: bool = False
    """Whether the skill wants that all the same."""
    previous: Document | None = None
    """The chapter before the author's."""
    previous_start: int = 0
    """The prompt shows what follows this offset of it."""
    rules_line: int = 0
    """Rules with more tokens than this are narrowed."""


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

PendingResult = Coroutine[Any, Any, SourceResult]


class Source(Protocol):
    """One place that text comes from, asked once per assembly.

    Every source is asked through `fetch`. The other two save work: with `read_ahead` its files are
    read together with those of others, and with `revision` it is not asked again while its answer
    stays the same.
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
    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return the fragments for one assembly, or what to wait for where they are not in memory.

        Any exception means that there are none.
        """
        ...

    def read_ahead(self, cache: BatchCache) -> None:
        """Read what results need, in the thread of a batch and together with all others."""

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
            asked = last_sentences(searched, len(searched), len(searched)).before_query_end
            last = LastSentences(asked, last.after_query_end or asked[-LAST_ASKED:])
    if plan.allowances.long:
        # A new passage before the window would invalidate the cached window.
        last = LastSentences(last.before_query_end)
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


class ResultFacts(NamedTuple):
    """The projects that a result's fragments name, and whether any depends on the place."""

    projects: frozenset[str | None]
    is_timed: bool


class ResultCache:
    """Cache of what was computed from the results of sources.

    A result is looked up by identity, since a source in whose folder nothing changed returns the
    same object. Results of the stable layers are the first key, because many requests share them.
    """

    def __init__(self, characters: int = 8_000_000) -> None:
        self._characters = characters
        self._facts: Memo[int, tuple[SourceResult, ResultFacts]] = Memo(characters, _weigh_facts)
        self._joined: Memo[tuple[str | int, ...], _JoinedResults] = Memo(
            characters, lambda _key, joined: joined.weight
        )

    def facts(self, result: SourceResult, layer: Layer) -> ResultFacts | None:
        """Check all fragments of a result; None if it is malformed."""
        known = self._facts.peek(id(result)) if layer in STABLE else None
        if known is not None:
            return known[1]
        facts = _facts(result, layer)
        if facts is not None and layer in STABLE:
            self._facts.put(id(result), (result, facts))
        return facts

    def find(self, project_id: str, results: "ResultsByLayer") -> "GatheredFragments | None":
        """Return what these results of a project were joined to before; None if they never were."""
        joined = self._joined.peek((project_id, *map(id, results.stable)))
        known = None if joined is None else joined.dynamic.peek(tuple(map(id, results.dynamic)))
        return None if known is None else known[1]

    def keep(
        self, project_id: str, results: "ResultsByLayer", gathered: "GatheredFragments"
    ) -> None:
        """Keep what results of a project were joined to."""
        key = (project_id, *map(id, results.stable))
        joined = self._joined.get(key, lambda: _JoinedResults(results.stable, self._characters))
        joined.dynamic.put(tuple(map(id, results.dynamic)), (results.dynamic, gathered))


class ResultsByLayer(NamedTuple):
    """The results with texts of the stable layers, and all others."""

    stable: tuple[object, ...]
    dynamic: tuple[object, ...]


class _JoinedResults:
    """Gathered fragments that share the same results of the stable layers.

    At most `MOST_STABLE` such sets are kept.
    """

    def __init__(self, stable: Sequence[object], characters: int) -> None:
        self.stable = stable
        self.dynamic: Memo[tuple[int, ...], tuple[Sequence[object], GatheredFragments]] = Memo(
            3 * characters, _weigh_dynamic
        )
        texts = sum(one.weight for one in stable if isinstance(one, SourceResult))
        self.weight = max(1000 + texts, characters // MOST_STABLE)


def _weigh_dynamic(_key: object, known: "tuple[Sequence[object], GatheredFragments]") -> int:
    """Return about how many characters it takes to keep results; half of them are kept elsewhere."""
    results = [one.fragments for one in known[0] if isinstance(one, SourceResult)]
    return 1000 + sum(100 + len(one.text) // 2 for fragments in results for one in fragments)


def _weigh_facts(_key: int, known: tuple[SourceResult, ResultFacts]) -> int:
    return known[0].weight


class Outcome(NamedTuple):
    """What came of asking a source: a result that was checked, or why there is none."""

    result: SourceResult | None = None
    facts: ResultFacts | None = None
    failure: str = ""
    fatal: DaemonError | None = None


class Failure(Model):
    """A source that returned nothing usable, and the kind of its failure; for the log."""

    source: str
    layer: Layer
    kind: str


class GatheredFragments(Model):
    """What all sources returned, in the order of the sources and not in that of their replies."""

    fragments: dict[Layer, tuple[Fragment, ...]]
    """Fragments by layer."""
    timeless: frozenset[Layer] = frozenset()
    """Layers in which no fragment depends on the author's place in the story."""
    computed: dict[Hashable, object] | None = None
    """What `compose` counted of these fragments, by the key of its tools, kept as long as they are;
    None if the same fragments may not come again."""
    untimely: tuple[UntimelyFragment, ...] = ()
    """Fragments that do not hold at the author's place."""
    states: tuple[tuple[str, str], ...] = ()
    """Where the fragments of the stable layers stand in time."""
    left_out: tuple[Omission, ...] = ()
    """What sources had to leave out."""
    warnings: tuple[Caution, ...] = ()
    """The warnings of the sources, and of those that failed."""
    failures: tuple[Failure, ...] = ()
    """The sources that failed."""
    summaries: frozenset[Summary] = frozenset()
    """The summaries that skills ask for and fragments give."""
    earlier: tuple[tuple[str, int], ...] = ()
    """How much earlier chapters mention each entity, by `source_ref`."""


async def gather(
    plan: Plan,
    sources: Sequence[Source],
    reading: CapacityLimiter | None = None,
    cache: ResultCache | None = None,
) -> GatheredFragments:
    """Ask all sources at once and wait for the slowest, at most until its deadline.

    `cache` keeps what was joined of the same results before. `reading` limits how many requests
    wait for sources without a deadline of their own: the time of a source runs while it works, not
    while it waits for its turn.
    """
    cache = cache or ResultCache(1)
    asks = {layer: query_for(plan, layer) for layer in {source.layer for source in sources}}
    returned = [_ask(source, asks[source.layer]) for source in sources]
    waiting = {
        index: PendingFetch(source, one)
        for index, (source, one) in enumerate(zip(sources, returned, strict=True))
        if isinstance(one, Coroutine)
    }
    if waiting:
        in_time = await _wait_for(waiting, plan.source_timeout_ms, reading)
        for index in waiting:
            returned[index] = in_time.get(index, TimeoutError())
    by_layer = _by_layer(sources, returned)
    if (joined := cache.find(plan.project_id, by_layer)) is not None:
        return joined
    outcomes = [
        _check_result(one, source.layer, None if index in waiting else cache)
        for index, (source, one) in enumerate(zip(sources, returned, strict=True))
    ]
    joined = _join_results(plan.project_id, sources, outcomes)
    # What other processes return is a new value each time.
    may_return = all(one.source.revision() is not None for one in waiting.values())
    if may_return and not joined.failures:
        joined = replace(joined, computed={})
        cache.keep(plan.project_id, by_layer, joined)
    return joined


def _ask(source: Source, ask: SourceQuery) -> object:
    """Return what a source returns, or its error."""
    try:
        return source.fetch(ask)
    except Exception as error:  # noqa: BLE001 - a source may fail in any way, the assembly in none
        return error


class PendingFetch(NamedTuple):
    """A source that has to be waited for, and its result to come."""

    source: Source
    result: PendingResult


async def _wait_for(
    waiting: Mapping[int, PendingFetch], timeout_ms: int, reading: CapacityLimiter | None
) -> dict[int, object]:
    """Return what sources return or raise before their deadline, by the key of each."""
    returned: dict[int, object] = {}

    async def ask_all(indexes: Sequence[int], timeout_ms: int) -> None:
        # One deadline for many: a scope for each source took 0.15 ms of an assembly's 2.4.
        with anyio.move_on_after(timeout_ms / 1000):
            async with anyio.create_task_group() as tasks:
                for index in indexes:
                    tasks.start_soon(_wait_for_one, waiting[index].result, returned, index)

    try:
        async with anyio.create_task_group() as group:
            for index, (source, _) in waiting.items():
                if source.timeout_ms is not None:
                    group.start_soon(ask_all, [index], source.timeout_ms)
            async with reading or nullcontext():
                others = [n for n, (source, _) in waiting.items() if source.timeout_ms is None]
                await ask_all(others, timeout_ms)
    finally:
        for pending in waiting.values():
            pending.result.close()  # one that was cancelled before its turn
    return returned


async def _wait_for_one(result: PendingResult, returned: dict[int, object], index: int) -> None:
    try:
        returned[index] = await result
    except Exception as error:  # noqa: BLE001 - a source may fail in any way, the assembly in none
        returned[index] = error


def _by_layer(sources: Sequence[Source], returned: Sequence[object]) -> ResultsByLayer:
    """Separate the texts of stable layers, which are the same everywhere, from other results."""
    stable: list[object] = []
    dynamic: list[object] = []
    for source, one in zip(sources, returned, strict=True):
        is_text = isinstance(one, SourceResult) and bool(one.fragments)
        target = stable if is_text and source.layer in STABLE else dynamic
        target.append(one)
    return ResultsByLayer(tuple(stable), tuple(dynamic))


def _check_result(returned: object, layer: Layer, cache: ResultCache | None) -> Outcome:
    """Check what a source returned or raised."""
    if isinstance(returned, TimeoutError):
        return Outcome(failure="timeout")
    if isinstance(returned, DaemonError):
        is_fatal = returned.code in _FATAL
        return Outcome(fatal=returned) if is_fatal else Outcome(failure=returned.code)
    if isinstance(returned, Exception):
        return Outcome(failure=type(returned).__name__)
    if not isinstance(returned, SourceResult):
        return Outcome(failure="malformed")
    facts = _facts(returned, layer) if cache is None else cache.facts(returned, layer)
    return Outcome(failure="malformed") if facts is None else Outcome(returned, facts)


def _facts(result: SourceResult, layer: Layer) -> ResultFacts | None:
    """Check all fragments of a result; None if it is malformed."""
    if not all(_is_sound(fragment, layer) for fragment in result.fragments):
        return None
    return ResultFacts(
        frozenset([fragment.project_id for fragment in result.fragments]),
        any(fragment.is_timed for fragment in result.fragments),
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


def _join_results(
    project_id: str, sources: Sequence[Source], outcomes: Sequence[Outcome]
) -> GatheredFragments:
    """Join the results; an error that ends the request is raised, in the order of sources."""
    fragments: dict[Layer, list[Fragment]] = {layer: [] for layer in Layer}
    left_out: list[Omission] = []
    summaries: set[Summary] = set()
    earlier: list[tuple[str, int]] = []
    warnings: list[Caution] = []
    failures: list[Failure] = []
    unavailable: list[Caution] = []
    timed: set[Layer] = set()
    for source, outcome in zip(sources, outcomes, strict=True):
        if outcome.fatal is not None:
            raise outcome.fatal
        result, facts = outcome.result, outcome.facts
        if result is None or facts is None:
            failures.append(Failure(source=source.name, layer=source.layer, kind=outcome.failure))
            unavailable.append(replace(source.unavailable, layer=source.layer))
            continue
        _refuse_foreign(project_id, source, facts.projects)
        if facts.is_timed:
            timed.add(source.layer)
        fragments[source.layer] += result.fragments
        left_out += result.left_out
        summaries.update(result.summaries)
        earlier += result.earlier
        warnings += [replace(warning, layer=source.layer) for warning in result.warnings]
    return GatheredFragments(
        fragments={layer: tuple(found) for layer, found in fragments.items()},
        timeless=frozenset(Layer) - timed,
        left_out=tuple(left_out),
        summaries=frozenset(summaries),
        earlier=tuple(earlier),
        warnings=(*warnings, *unavailable),
        failures=tuple(failures),
    )


def fragments_at_place(plan: Plan, gathered: GatheredFragments) -> GatheredFragments:
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
        computed=None,
    )


def depends_on_place(gathered: GatheredFragments) -> bool:
    """Return whether other fragments would hold at another place in the story."""
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
            f"The source {source.name} gave text of another project; fix that source.",
            source=source.name,
            layer=source.layer,
        )
