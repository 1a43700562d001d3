"""Passages of the author's own documents, as a source of the Retrieved layer.

It waits for the index no longer than a few changed pages take, and warns while that is incomplete.
`explain` returns the same passages with the reasons for their scores.
"""

from bisect import bisect_left
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from creonowd.context.fragment import Caution, Extent, Fragment, Layer, Place, Rule, Span, caution
from creonowd.context.inspection import ScoreReasons, TermShare
from creonowd.context.plan import LONGEST_QUERY, QUERIES, Document, LastSentences, Need
from creonowd.context.plan import query as query_text
from creonowd.context.source import PendingResult, Source, SourceQuery, SourceResult
from creonowd.context.story import Story, StoryPlace
from creonowd.errors import DaemonError, ErrorCode, WarningCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.retrieval.allusions import Allusion, allusion_excerpt
from creonowd.retrieval.passages import MOST_TOKENS
from creonowd.retrieval.project_index import Indexes, ProjectIndex
from creonowd.retrieval.ranking import (
    NO_OWN_PASSAGES,
    CurrentDocument,
    Nearness,
    OwnPassages,
    PassageGroup,
    PassageMatch,
    Query,
    RankedPassage,
    SearchScope,
    StoredText,
    choose,
    make_query,
    own_passages,
    rank,
    source_ref,
)
from creonowd.sources.characters import Entities, ProjectEntities
from creonowd.text import lines_within
from creonowd.threads import BatchCache
from creonowd.tokens.tokenizer import about_tokens
from creonowd.workspace.projects import Project

if TYPE_CHECKING:
    from creonowd.retrieval.loaded_index import LoadedIndex

KEPT_BYTES = 36_000_000
KEPT_PATHS = 120_000
KEPT_RESULTS = 1024
MOST_PASSAGES = 64
MAX_EXPLAINED = 200
LEAST_SCORE = 0.1
MOST_FUTURE = 20

EXCERPT_TOKENS = 120
SCORE_STEPS = 10_000
# Passages ranked for each earlier query, and characters per token on average.
MOST_CHOSEN, CHARACTERS_A_TOKEN = 24, 1.5
# A passage that was chosen for the query before keeps its place while it still has this share of
# the best score.
HELD_SHARE = 0.6

# How many tokens before the end of a text the cut of a passage may depend on what follows.
CUT_TOKENS = 2.5 * MOST_TOKENS
CUT_REACH = 4000


class SearchRange(NamedTuple):
    """What is searched, by default everything, and how near each document is in the story."""

    scope: SearchScope | None = None
    nearness: Nearness | None = None


EVERYWHERE = SearchRange()


class ResultKey(Model, cache_hash=True):
    """All that the passages for one assembly depend on.

    The cursor counts only as far as the passages of its document can see it: `cursor` is how many
    of them begin or end before it, and `asked` where the stretches begin that a query is made of.
    As long as an author writes within a passage, or only moves there, the same is found.
    """

    revision: Hashable
    names: tuple[tuple[str, ...], ...]
    query: str
    wish: str
    limit: int
    room: int
    query_end: int
    query_ends: tuple[int, ...]
    last: LastSentences
    path: str
    front_matter: str
    text: str
    cursor: tuple[int, int]
    selects: bool
    asked: tuple[int, ...]
    order: tuple[str, ...]
    outside: tuple[str, ...]
    here: int | None
    sees_future: bool
    previous: Document | None
    previous_start: int


def _weigh(key: ResultKey, result: SourceResult) -> int:
    """Return about how many bytes it takes to keep a result with the text it was found for."""
    return 1000 + len(key.text) + 300 * len(result.fragments)


class PassageSearch:
    """Finds passages in any project."""

    def __init__(self, indexes: Indexes) -> None:
        self._indexes = indexes
        self.results: Memo[ResultKey, SourceResult] = Memo(KEPT_BYTES, _weigh)
        self.query_fragments: Memo[ResultKey, QueryFragments] = Memo(KEPT_BYTES, _weigh_query)
        self.search_fragments: Memo[SearchKey, FoundFragments] = Memo(KEPT_BYTES // 2, _weigh_found)
        self.queries: Memo[tuple[object, str, str], Query] = Memo(KEPT_RESULTS)
        self._unique_results: Memo[SourceResult, SourceResult] = Memo(KEPT_RESULTS)

    async def find(
        self,
        project: Project,
        query: Query,
        current: CurrentDocument | None,
        limit: int,
        within: SearchRange = EVERYWHERE,
    ) -> "SearchResult":
        """Rank the passages that the index has now; IO_ERROR if there can be no index."""
        index = self.index(project)
        caught_up = await index.catch_up(index.grace_seconds)
        found = QuerySearch(index, query, current, limit, within)
        while (ranked := found.rank()) is None:
            await found.read_texts()
        complete = caught_up and not index.damaged
        return SearchResult(
            ranked=ranked,
            complete=complete,
            index=found.loaded,
            left_out=index.left_out,
            scope=within.scope,
        )

    def index(self, project: Project) -> ProjectIndex:
        """Return the index of a project; IO_ERROR if there can be none."""
        index = self._indexes.of(project)
        if index.problem is not None:
            raise DaemonError(ErrorCode.IO_ERROR, f"There is no index: {index.problem}.")
        return index

    def same(self, result: SourceResult) -> SourceResult:
        """Return an equal result of before, else this one; caches compare by identity."""
        return self._unique_results.get(result, lambda: result)

    def paths(self, project: Project) -> list[str]:
        """List the documents that can be found, in order."""
        return self._indexes.of(project).paths()


class _SearchTexts:
    """The texts of the passages found: those in memory, and those read for this search."""

    def __init__(self, index: ProjectIndex) -> None:
        self._index = index
        self._texts: dict[int, StoredText | None] = {}
        self.missing: list[int] = []

    async def read_texts(self) -> None:
        """Read the texts for which `rank` had to stop."""
        self.add_texts(await self._index.texts(self.missing))

    def add_texts(self, read: Mapping[int, StoredText]) -> None:
        """Add texts that were read; a missing text that was not read is gone from the disk."""
        self._texts |= {number: read.get(number) for number in self.missing}

    def _is_missing(self, number: int) -> bool:
        return self._index.kept_text(number) is None and number not in self._texts

    def _get_texts(self, numbers: Iterable[int]) -> dict[int, StoredText] | None:
        """Return texts by number, without those that are gone meanwhile."""
        found: dict[int, StoredText] = {}
        self.missing = []
        for number in numbers:
            text = self._index.kept_text(number) or self._texts.get(number)
            if text is not None:
                found[number] = text
            elif number not in self._texts:
                self.missing.append(number)
        return None if self.missing else found


class QuerySearch(_SearchTexts):
    """What a search found; texts are needed only of what is chosen, and read when they are."""

    def __init__(
        self,
        index: ProjectIndex,
        query: Query,
        current: CurrentDocument | None,
        limit: int,
        within: SearchRange = EVERYWHERE,
    ) -> None:
        super().__init__(index)
        self._current, self._limit = current, limit
        self._scope = within.scope
        self.loaded, self._matches = index.search(query.weights, _most(limit), *within)
        self._own: OwnPassages | None = None
        self._groups: list[PassageGroup] | None = None

    @property
    def own_end(self) -> int | None:
        """Up to where passages of the author's own document count; None if there is no bound."""
        return None if self._scope is None else self._scope.own_end

    def rank(self) -> list[RankedPassage] | None:
        """Rank the best; None if that needs texts that are not in memory."""
        loaded, own = self.loaded, self.find_own()
        if loaded is None:
            return []
        if own is None:
            return None
        rows = loaded.rows
        groups = self._groups = self._groups or self._choose(loaded, own)
        texts = self._get_texts(rows[group.best.row].id for group in groups)
        if texts is None:
            return None
        return rank([one for one in groups if rows[one.best.row].id in texts], loaded, texts)

    def _choose(self, loaded: "LoadedIndex", own: OwnPassages) -> list[PassageGroup]:
        groups = choose(self._matches, loaded, self._limit, own)
        if (end := self.own_end) is None:
            return groups
        # What was indexed before an edit may have moved on since.
        return [g for g in groups if g.best.row not in own.moved or g.best.end <= end]

    def find_own(self) -> OwnPassages | None:
        """Find those of the author's own document; None if that needs texts that are not in memory."""
        loaded, current = self.loaded, self._current
        if loaded is None or current is None:
            return NO_OWN_PASSAGES
        if self._own is None:
            rows, own = loaded.rows, loaded.rows_in(current.path)
            matches = [match for match in self._matches if match[0] in own]
            own_texts = self._get_texts(rows[row].id for row, _ in matches)
            if own_texts is None:
                # Most of what will be chosen is among the best: one read serves for both.
                likely = [rows[row].id for row, _ in self._matches[: self._limit] if row not in own]
                self.missing += [number for number in likely if self._is_missing(number)]
                return None
            self._own = own_passages(matches, loaded, current, own_texts)
        return self._own


class AllusionSearch(_SearchTexts):
    """The passages of other documents that sentences allude to most clearly."""

    def __init__(self, index: ProjectIndex, ask: SourceQuery, *, ahead: bool = False) -> None:
        """Search what the author's place allows, and with `ahead` also what it keeps back."""
        super().__init__(index)
        self.loaded = index.loaded
        self._chosen_allusions: list[Allusion] = []
        before, after = ask.last
        if self.loaded is None or not (before or after):
            return
        scope = SearchScope(documents=_others(ask, self.loaded.paths, ahead=ahead))
        self._chosen_allusions = self.loaded.allusions_after(scope, before, after)

    @property
    def sentences(self) -> dict[int, str]:
        """The sentence that alludes to each passage, by row."""
        return {one.row: one.sentence for one in self._chosen_allusions}

    def rank(self) -> list[RankedPassage] | None:
        """Return the passages in the order in which they came; None if texts are not in memory.

        The clearest allusion has the best score.
        """
        loaded = self.loaded
        if loaded is None:
            return []
        texts = self._get_texts(loaded.rows[one.row].id for one in self._chosen_allusions)
        if texts is None:
            return None
        by_strength = sorted(self._chosen_allusions, key=lambda one: (-one.strength, one.row))
        ranked: list[RankedPassage] = []
        for one in self._chosen_allusions:
            passage = loaded.rows[one.row]
            if passage.id not in texts:
                continue
            excerpt = loaded.excerpts.get(
                (one.row, one.sentence), partial(_excerpt, loaded, one, texts[passage.id])
            )
            # They come before what the whole text is about.
            score = 1 - by_strength.index(one) / SCORE_STEPS
            ranked.append(replace(excerpt, found=replace(excerpt.found, score=score), score=score))
        return ranked


def _excerpt(loaded: "LoadedIndex", one: Allusion, stored: StoredText) -> RankedPassage:
    """Return what a passage says of that to which a sentence alludes."""
    passage, (text, heading) = loaded.rows[one.row], stored
    start, end = allusion_excerpt(text, one.sentence, EXCERPT_TOKENS)
    place = (passage.start + start, passage.start + end)
    lines = lines_within(passage.lines, text, start, end)
    group = PassageGroup(PassageMatch(one.row, 1.0, *place, lines), ())
    (excerpt,) = rank([group], loaded, {passage.id: StoredText(text[start:end], heading)})
    return excerpt


def _others(ask: SourceQuery, every: Sequence[str], *, ahead: bool) -> frozenset[str]:
    """Return the documents that sentences may allude to: earlier ones, but not where they stand.

    With `ahead` also those that the story keeps back at the author's place.
    """
    paths = tuple(every)
    if ask.here is not None and not ask.sees_future:
        story, here = ask.story, ask.here.document
        later = story.paths[here + 1 :] if ahead else ()
        paths = (*story.paths[:here], *story.paths_outside, *later)
    asking = [ask.document]
    if ask.document is not None and not ask.document.text[: ask.query_end].strip():
        asking.append(ask.previous)
    return _set_of(paths, tuple([one.source_ref for one in asking if one is not None]))


def _keeps_back(ask: SourceQuery) -> bool:
    """Return whether the story keeps documents back at the author's place."""
    if ask.here is None or ask.sees_future:
        return False
    return ask.here.document + 1 < len(ask.story.documents)


def _most(limit: int) -> int:
    """Return how many passages to search for, so that enough are left without duplicates."""
    return 2 * limit + MOST_PASSAGES


@dataclass(frozen=True)
class SearchResult:
    """Passages, best first, the index they come from, and whether that is complete."""

    ranked: list[RankedPassage]
    complete: bool
    index: "LoadedIndex | None"
    left_out: tuple[Caution, ...] = ()
    scope: SearchScope | None = None

    def shares(self, query: Query, limit: int) -> list[dict[str, float]]:
        """Return for each passage how much each term of the query adds to its score."""
        from creonowd.retrieval.bm25 import shares_of

        if self.index is None or not self.ranked:
            return []
        rows = [one.found.row for one in self.ranked]
        return shares_of(self.index.terms_in(self.scope), query.weights, _most(limit), rows)


class PassageSource(Source):
    """The passages of one project."""

    layer = Layer.RETRIEVED
    name = "retrieval"
    need = Need.RETRIEVAL
    unavailable = caution(WarningCode.RAG_UNAVAILABLE)

    def __init__(
        self, passages: PassageSearch, project: Project, entities: ProjectEntities
    ) -> None:
        self._passages, self._project, self._entities = passages, project, entities
        self._begun: tuple[ResultKey, AssemblySearch] | None = None

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Find what the text before the cursor and the author's wish are about.

        It is waited for only if the index or texts have to be.
        """
        entities, index = self._entities.peek(), self._passages.index(self._project)
        state = _state(index)
        if entities is None or state is None:
            return self._wait_and_find(ask)
        queries = self._queries(entities, ask)
        key = _result_key(state, index.loaded, queries, ask)
        if (kept := self._passages.results.peek(key)) is not None:
            return kept
        by_query = self._passages.query_fragments.peek(_without_sentences(key))
        before = SearchCache(key, self._passages.search_fragments, by_query)
        search = AssemblySearch(index, queries, ask, before)
        if (fragments := search.find_fragments()) is None:
            self._begun = (key, search)
            return self._wait_and_find(ask)
        result = self._passages.same(_result(fragments, index.left_out, complete=state.complete))
        self._keep(key, search, result)
        return result

    async def _wait_and_find(self, ask: SourceQuery) -> SourceResult:
        """Wait for the index and for texts, and find the passages."""
        queries = self._queries(await self._entities.get(), ask)
        index = self._passages.index(self._project)
        caught_up = await index.catch_up(index.grace_seconds)
        state = _state(index)
        key = None if state is None else _result_key(state, index.loaded, queries, ask)
        begun, self._begun = self._begun, None
        if begun is not None and begun[0] == key:
            search = begun[1]
        else:
            search = AssemblySearch(
                index, queries, ask, SearchCache(key, self._passages.search_fragments)
            )
        while (fragments := search.find_fragments()) is None:
            await search.read_texts()
        complete = caught_up and not index.damaged
        result = self._passages.same(_result(fragments, index.left_out, complete=complete))
        if key is not None and state == _state(index):
            self._keep(key, search, result)
        return result

    def _keep(self, key: ResultKey, search: "AssemblySearch", result: SourceResult) -> None:
        """Keep a result, and what the query alone found: sentences change more often."""
        self._passages.results.put(key, result)
        if search.by_query is not None:
            self._passages.query_fragments.put(_without_sentences(key), search.by_query)

    def _queries(self, entities: Entities, ask: SourceQuery) -> list[Query]:
        kept, names, wish = self._passages.queries, entities.names, ask.wish
        return [
            kept.get((names, words, wish), partial(_query, entities, self._entities, words, wish))
            for words in _words(ask)
        ]

    def revision(self) -> Hashable | None:
        """Return the entities and which index is searched, if neither has to be waited for."""
        try:
            index = self._passages.index(self._project)
        except DaemonError:
            return None
        entities, state = self._entities.revision(), _state(index)
        return None if entities is None or state is None else (entities, state)

    def read_ahead(self, cache: BatchCache) -> None:
        """Read the entities now, together with others; blocks its thread."""
        self._entities.read_ahead(cache)


class IndexRevision(NamedTuple):
    """Which index is searched, what it leaves out, and whether it is complete."""

    number: int | None
    left_out: tuple[Caution, ...]
    complete: bool


def _state(index: ProjectIndex) -> IndexRevision | None:
    """Return which index is searched now; None if it has to be waited for."""
    caught_up = index.caught_up(index.grace_seconds)
    if caught_up is None:
        return None
    number = None if index.loaded is None else index.loaded.number
    return IndexRevision(number, index.left_out, caught_up and not index.damaged)


def _result_key(
    state: IndexRevision,
    loaded: "LoadedIndex | None",
    queries: Sequence[Query],
    ask: SourceQuery,
) -> ResultKey:
    document, cursor, asked = ask.document, (0, 0), ()
    if document is not None:
        above = len(document.front_matter)
        start, end = document.here
        cursor = (start, end)
        if loaded is not None and loaded.has_text(document.source_ref, _whole_text(document)):
            ends = loaded.ends_in(document.source_ref)
            cursor = (bisect_left(ends, above + start), bisect_left(ends, above + end))
        begin = _asked_from(document, ask.query)
        # A stretch without any text overlaps no passage, wherever it is.
        asked = (begin,) if begin < end else ()
    return ResultKey(
        revision=state,
        names=tuple(query.names for query in queries),
        query=ask.query,
        wish=ask.wish,
        limit=ask.limit,
        room=ask.passage_room,
        query_end=ask.query_end,
        query_ends=ask.query_ends,
        last=ask.last,
        path="" if document is None else document.source_ref,
        front_matter="" if document is None else document.front_matter,
        text="" if document is None else document.text,
        cursor=cursor,
        selects=document is not None and document.selection is not None,
        asked=asked,
        order=ask.story.paths,
        outside=ask.story.paths_outside,
        here=None if ask.here is None else ask.here.document,
        sees_future=ask.sees_future,
        previous=ask.previous,
        previous_start=ask.previous_start,
    )


def _without_sentences(key: ResultKey) -> ResultKey:
    """Return all that the answer to the query alone depends on."""
    return replace(key, last=LastSentences())


class QueryFragments(NamedTuple):
    """What the query alone found: fragments with their rows, and those that lie in the future."""

    found: tuple[tuple[int, Fragment], ...]
    future: tuple[Fragment, ...]


def _weigh_query(key: ResultKey, by_query: QueryFragments) -> int:
    return 1000 + len(key.text) + 300 * (len(by_query.found) + len(by_query.future))


class SearchKey(NamedTuple):
    """All that the fragments of one search depend on, whatever the author has typed since.

    `place` has no text: `words` are those that were asked with, step by step, and `own` are the
    passages of the author's document as they stand now, with whether they lie behind the author.
    """

    place: ResultKey
    words: tuple[str, ...]
    own_end: int | None
    own: tuple[tuple[PassageMatch | None, bool], ...]
    asked: tuple[int, ...]


FoundFragments = tuple[tuple[int, Fragment], ...]


def _weigh_found(_key: SearchKey, found: FoundFragments) -> int:
    return 1000 + 300 * len(found)


class SearchCache(NamedTuple):
    """The key of the answer, the results of earlier searches, and the result of an equal query."""

    key: ResultKey | None
    found: Memo[SearchKey, FoundFragments]
    by_query: QueryFragments | None = None


class AssemblySearch:
    """What one assembly asks an index, and the fragments that answer it.

    The text before the cursor and the author's wish ask together; what the steps before chose
    stays in front. Then each sentence asks by itself, because an allusion must bring its passage;
    what sentences bring changes as the author types, and stands last. At last the same is asked
    without regard to the author's place, for the evidence of what the story keeps back.
    """

    def __init__(
        self,
        index: ProjectIndex,
        queries: Sequence[Query],
        ask: SourceQuery,
        before: SearchCache,
    ) -> None:
        self._ask, self._index, self._queries = ask, index, queries
        self._key, self._found_before, self.by_query = before
        self._first: QuerySearch | None = None
        self._unbound: QuerySearch | None = None
        if self.by_query is None:
            within, current = _within(ask, ask.query_end), _current_document(ask, ask.query)
            limit = min(ask.limit, MOST_PASSAGES)
            self._first = QuerySearch(index, queries[-1], current, limit, within)
            if within.scope is not None:
                anywhere = SearchRange(None, within.nearness)
                self._unbound = QuerySearch(index, queries[-1], current, limit, anywhere)
        self._allusions = AllusionSearch(index, ask)
        self._ahead = AllusionSearch(index, ask, ahead=True) if _keeps_back(ask) else None

    def find_fragments(self) -> list[Fragment] | None:
        """Return the fragments; None if that needs texts that are not in memory."""
        by_query = self.by_query = self.by_query or self._search_query()
        alluded = self._allusions.rank()
        ahead = [] if self._ahead is None else self._ahead.rank()
        if by_query is None or alluded is None or ahead is None:
            return None
        fragments = dict(by_query.found)
        for number, one in enumerate(alluded, start=QUERIES):
            fragment = _fragment(one, self._ask)
            fragments[one.found.row] = replace(fragment, is_allusion=True, arrival=number)
        kept_back = [fragment for _, fragment in self._make_future(ahead)]
        future = {one.source_ref: one for one in (*kept_back, *by_query.future)}
        shown = (*fragments.values(), *future.values())
        return [one for one in shown if not _is_shown(one, self._ask)]

    def _search_query(self) -> QueryFragments | None:
        """Return what the query alone found; None if that needs texts that are not in memory."""
        first = self._fragments(self._first, self._make_found)
        unbound = self._fragments(self._unbound, self._make_future)
        if first is None or unbound is None:
            return None
        return QueryFragments(first, tuple([fragment for _, fragment in unbound]))

    def _fragments(
        self,
        searched: QuerySearch | None,
        make: Callable[[Sequence[RankedPassage]], FoundFragments],
    ) -> FoundFragments | None:
        """Make fragments of what a search found, unless the same ones were made before."""
        if searched is None:
            return ()
        key = self._search_key(searched)
        if key is not None and (known := self._found_before.peek(key)) is not None:
            return known
        if (ranked := searched.rank()) is None:
            return None
        made = make(ranked)
        if key is not None:
            self._found_before.put(key, made)
        return made

    def _make_found(self, ranked: Sequence[RankedPassage]) -> FoundFragments:
        chosen = _chosen_before(self._index, self._queries, self._ask)
        good = (one for one in ranked if one.score >= LEAST_SCORE and not self._asks(one))
        return tuple([(one.found.row, self._placed_fragment(one, chosen)) for one in good])

    def _search_key(self, searched: QuerySearch) -> SearchKey | None:
        """Return what fragments depend on; None if that is not known, or needs texts first."""
        own, document = searched.find_own(), self._ask.document
        if self._key is None or own is None:
            return None
        end = 0 if document is None else len(document.front_matter) + document.here.end
        place = replace(
            self._key,
            query="",
            last=LastSentences(),
            text="",
            cursor=(0, 0),
            asked=(),
            previous=None,
            previous_start=0,
        )
        return SearchKey(
            place=place,
            words=tuple(_words(self._ask)),
            own_end=searched.own_end,
            own=tuple([(one, one is not None and one.start >= end) for one in own.moved.values()]),
            asked=own.asked,
        )

    def _placed_fragment(self, one: RankedPassage, chosen: Mapping[int, int]) -> Fragment:
        """Make a fragment; one that was chosen before and is still good stays in front."""
        fragment, row = _fragment(one, self._ask), one.found.row
        if row in chosen and one.score >= HELD_SHARE:
            return replace(fragment, score=1.0, arrival=chosen[row])
        return replace(fragment, arrival=QUERIES - 1)

    def _asks(self, one: RankedPassage) -> bool:
        """Return whether the query was made of this passage, which then is its own best match."""
        document = self._ask.document
        if document is None or one.found.path != document.source_ref:
            return False
        above = len(document.front_matter)
        start = above + _asked_from(document, self._ask.query)
        return max(start, one.found.start) < min(above + document.here.end, one.found.end)

    def _make_future(self, ranked: Iterable[RankedPassage]) -> FoundFragments:
        """Return what would have been chosen from after the author's place."""
        ask = self._ask
        future = (one for one in ranked if one.score >= LEAST_SCORE and _is_future(one, ask))
        return tuple(
            [
                (one.found.row, replace(_fragment(one, ask), excluded=Rule.FUTURE))
                for one in islice(future, MOST_FUTURE)
            ]
        )

    async def read_texts(self) -> None:
        """Read the texts for which `answer` had to stop, in one trip."""
        every = (self._first, self._unbound, self._allusions, self._ahead)
        searches = [searched for searched in every if searched is not None]
        missing = {number for searched in searches for number in searched.missing}
        read = await self._index.texts(sorted(missing))
        for searched in searches:
            searched.add_texts(read)


def _chosen_before(
    index: ProjectIndex, queries: Sequence[Query], ask: SourceQuery
) -> dict[int, int]:
    """Return the rows that were chosen for the steps before, and in which of them each came.

    Each step chooses what fits about into the room of passages, first what was chosen before and
    is still good. Passages of the author's own document move, and are not held.
    """
    chosen: dict[int, int] = {}
    for number, (query, end) in enumerate(zip(queries[:-1], ask.query_ends[:-1], strict=True)):
        within = _within(ask, end)
        scope = None if within.scope is None else replace(within.scope, own="", own_end=0)
        loaded, matches = index.search(query.weights, MOST_CHOSEN, scope, within.nearness)
        if loaded is None:
            break
        own = range(0) if ask.document is None else loaded.rows_in(ask.document.source_ref)
        others = [one for one in matches if one[0] not in own]
        groups = choose(others, loaded, MOST_CHOSEN)
        best = max((group.best.score for group in groups), default=1.0)
        scored = [(group.best.score / best, group.best) for group in groups]
        good = {one.row for share, one in scored if one.row in chosen and share >= HELD_SHARE}
        scored.sort(key=lambda pair: (pair[1].row not in good, -pair[0], pair[1].row))
        left, before, chosen = ask.passage_room * CHARACTERS_A_TOKEN, chosen, {}
        for _, one in scored:
            left -= one.end - one.start
            if left < 0:
                break
            chosen[one.row] = before.get(one.row, number)
    return chosen


def _words(ask: SourceQuery) -> list[str]:
    """Return the texts to search with, step by step."""
    document = ask.document
    earlier = () if document is None else ask.query_ends[:-1]
    return [*(query_text(document.text, end) for end in earlier if document), ask.query]


def _current_document(ask: SourceQuery, words: str) -> CurrentDocument | None:
    return None if ask.document is None else _current(ask.document, words)


def before_place(story: Story, document: Document, query_end: int) -> SearchRange:
    """Return what lies before the author's place, and how near; everything outside of the story."""
    here = story.place_of(document.source_ref, document.here.start)
    if here is None:
        return EVERYWHERE
    return SearchRange(past_of(story, here, document, query_end), _nearness(story, here))


def _within(ask: SourceQuery, end: int) -> SearchRange:
    """Return what an assembly may search: nothing from after the author's place."""
    if ask.here is None:
        return EVERYWHERE
    nearness = _nearness(ask.story, ask.here)
    if ask.sees_future or ask.document is None:
        return SearchRange(None, nearness)
    return SearchRange(past_of(ask.story, ask.here, ask.document, end), nearness)


def past_of(story: Story, here: StoryPlace, document: Document, query_end: int) -> SearchScope:
    """Return what lies before a place: earlier documents, and the document up to the query.

    How a passage is cut depends on what follows it, so the last ones before the end do not count.
    """
    last = document.text[max(0, query_end - CUT_REACH) : query_end]
    reach = CUT_TOKENS * len(last) / (about_tokens(last) or 1)
    return SearchScope(
        documents=_set_of((*story.paths[: here.document], *story.paths_outside)),
        own=document.source_ref,
        own_end=len(document.front_matter) + max(0, query_end - max(int(reach), LONGEST_QUERY)),
    )


_sets: Memo[tuple[tuple[str, ...], ...], frozenset[str]] = Memo(
    KEPT_PATHS, lambda _key, paths: 10 + len(paths)
)


def _set_of(paths: tuple[str, ...], without: tuple[str, ...] = ()) -> frozenset[str]:
    """Return the same set object for the same paths: comparing two sets of 1200 paths takes 40 µs."""
    return _sets.get((paths, without), lambda: frozenset(paths).difference(without))


def _nearness(story: Story, here: StoryPlace) -> Nearness:
    return Nearness(paths=story.paths[: here.document + 1])


def _is_future(one: RankedPassage, ask: SourceQuery) -> bool:
    document, found = ask.document, one.found
    if ask.story.is_future(found.path, ask.here):
        return True
    if document is None or found.path != document.source_ref:
        return False
    return found.start >= len(document.front_matter) + document.here.end


def _is_shown(fragment: Fragment, ask: SourceQuery) -> bool:
    """Return whether the prompt shows a passage as the end of the chapter before."""
    previous = ask.previous
    if previous is None or fragment.place.path != previous.source_ref:
        return False
    start = len(previous.front_matter) + ask.previous_start
    return fragment.place.offset + len(fragment.text) > start


def _result(
    fragments: Iterable[Fragment], left_out: tuple[Caution, ...], *, complete: bool
) -> SourceResult:
    indexing = () if complete else (caution(WarningCode.RETRIEVAL_INDEXING),)
    return SourceResult(
        fragments=tuple(fragments),
        warnings=(*indexing, *left_out),
    )


def _query(entities: Entities, finder: ProjectEntities, text: str, wish: str) -> Query:
    """Make a query; an entity that is named in it is searched for under all of its names."""
    found = finder.find(entities.every_name, f"{text}\n{wish}")
    if not found:
        return make_query(text, wish)
    mentioned = [n for names in entities.names if found.intersection(names) for n in names]
    return make_query(text, wish, mentioned)


def _current(document: Document, query: str) -> CurrentDocument:
    """Return the document with the stretch that a query was made of, up to the author's place."""
    above = len(document.front_matter)
    return CurrentDocument(
        path=document.source_ref,
        text=_whole_text(document),
        query_start=above + _asked_from(document, query),
        query_end=above + document.here.end,
    )


def _asked_from(document: Document, query: str) -> int:
    """Return where the stretch begins that a query was made of; at the cursor if it is gone."""
    start = document.here.start
    found = document.text.rfind(query, 0, start) if query else -1
    return start if found < 0 else found


def _whole_text(document: Document) -> str:
    return document.front_matter + document.text if document.front_matter else document.text


def _fragment(ranked: RankedPassage, ask: SourceQuery) -> Fragment:
    found, document = ranked.found, ask.document
    number = ask.story.number_of(found.path)
    span = None
    if document is not None and found.path == document.source_ref:
        above = len(document.front_matter)
        span = Span(found.start - above, found.end - above)
    return Fragment(
        layer=Layer.RETRIEVED,
        source=PassageSource.name,
        source_ref=source_ref(found),
        text=found.text,
        place=Place(0, found.path, found.start),
        score=ranked.score,
        span=span,
        story_number=0 if number is None else number + 1,
        extent=Extent(found.path, found.start, found.end),
    )


class ClientSearch(Model):
    """What to search for: the text before the cursor, or a wish; `window` is left out on each side."""

    document: Document | None
    text: str
    wish: str
    window: int
    limit: int
    within: SearchRange = EVERYWHERE


class ExplainedPassages(Model):
    """The passages with their reasons, best first, and the names in the query."""

    passages: list[tuple[RankedPassage, ScoreReasons]]
    names: list[str]
    complete: bool


async def explain(
    passages: PassageSearch, entities: ProjectEntities, project: Project, search: ClientSearch
) -> ExplainedPassages:
    """Search, and return each passage with the reasons for its score."""
    query = _query(await entities.get(), entities, search.text, search.wish)
    current = None if search.document is None else _current(search.document, search.text)
    found = await passages.find(project, query, current, MAX_EXPLAINED, search.within)
    shares = zip(found.ranked, found.shares(query, MAX_EXPLAINED), strict=True)
    shown = [pair for pair in shares if not _is_in_window(pair[0], search)]
    recency = {} if search.within.nearness is None else search.within.nearness.values
    return ExplainedPassages(
        passages=[
            (
                one,
                _score_reasons(one, terms, query.names, entities, recency.get(one.found.path, 0.0)),
            )
            for one, terms in shown[: search.limit]
        ],
        names=list(query.names),
        complete=found.complete,
    )


async def reasons(
    passages: PassageSearch, entities: ProjectEntities, project: Project, ask: SourceQuery
) -> dict[str, ScoreReasons]:
    """Return by reference why an assembly that asks so finds its passages."""
    every, index = await entities.get(), passages.index(project)
    query = _query(every, entities, ask.query, ask.wish)
    within, found = _within(ask, ask.query_end), dict[str, ScoreReasons]()
    recency = {} if within.nearness is None else within.nearness.values
    limit = min(ask.limit, MOST_PASSAGES)
    for scope in dict.fromkeys((None, within.scope)):
        where = within._replace(scope=scope)
        searched = QuerySearch(index, query, _current_document(ask, ask.query), limit, where)
        ranked = await _rank(searched)
        shares = _shares(searched.loaded, scope, query, ranked)
        for one, terms in zip(ranked, shares, strict=True):
            near = recency.get(one.found.path, 0.0)
            found[source_ref(one.found)] = _score_reasons(one, terms, query.names, entities, near)
    for ahead in (True, False):
        alluding = AllusionSearch(index, ask, ahead=ahead)
        for one in await _rank(alluding):
            sentence = alluding.sentences[one.found.row]
            (terms,) = _shares(alluding.loaded, None, make_query(sentence), [one])
            names = tuple(entities.find(every.every_name, sentence))
            why = _score_reasons(one, terms, names, entities, recency.get(one.found.path, 0.0))
            found[source_ref(one.found)] = replace(why, sentence=sentence)
    return found


async def _rank(searched: QuerySearch | AllusionSearch) -> list[RankedPassage]:
    while (ranked := searched.rank()) is None:
        await searched.read_texts()
    return ranked


def _shares(
    loaded: "LoadedIndex | None",
    scope: SearchScope | None,
    query: Query,
    ranked: Sequence[RankedPassage],
) -> list[dict[str, float]]:
    """Return for each passage how much each term of the query adds to its score."""
    from creonowd.retrieval.bm25 import shares_of

    if loaded is None or not ranked:
        return []
    rows = [one.found.row for one in ranked]
    return shares_of(loaded.terms_in(scope), query.weights, _most(len(rows)), rows)


def without_terms(why: ScoreReasons, visible: Container[str]) -> ScoreReasons:
    """Leave out the terms that are not among the visible ones."""
    terms = [share for share in why.terms if share.term in visible]
    return replace(why, terms=terms)


def _is_in_window(ranked: RankedPassage, search: ClientSearch) -> bool:
    found, document = ranked.found, search.document
    if document is None or found.path != document.source_ref:
        return False
    above, here = len(document.front_matter), document.here
    start, end = above + here.start - search.window, above + here.end + search.window
    return max(found.start, start) < min(found.end, end)


def _score_reasons(
    ranked: RankedPassage,
    terms: Mapping[str, float],
    names: Sequence[str],
    entities: ProjectEntities,
    recency: float,
) -> ScoreReasons:
    shares = sorted(terms.items(), key=lambda pair: (-pair[1], pair[0]))
    total = sum(terms.values()) or 1.0
    return ScoreReasons(
        terms=[TermShare(term=term, share=round(s / total, 4)) for term, s in shares],
        names=sorted(entities.find(names, ranked.found.text)),
        recency=recency,
    )
