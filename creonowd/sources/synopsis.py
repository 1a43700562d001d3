"""The story so far, and the chapters that it sums up: their order, headings and people.

Each chapter is as the editor has it, else as it is on disk; what has not changed is not read again.
Of the story so far near chapters have their whole summary, far ones a sentence each. A
chapter without a stored summary has an extract, which costs nothing and says what it is;
only what could fit into the prompt is made.
"""

import codecs
from collections import Counter
from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from anyio import to_thread

from creonowd.clock import Clock
from creonowd.context.dynamic_layers import FAR_SHARE
from creonowd.context.fragment import (
    TO_THE_END,
    Caution,
    Extent,
    Fragment,
    FragmentKind,
    Layer,
    Place,
    caution,
)
from creonowd.context.language import ManuscriptLanguage, count_words
from creonowd.context.plan import FAR_CHAPTERS, NEAR_CHAPTERS, Document, Need, Summary
from creonowd.context.source import NOTHING, PendingResult, Source, SourceQuery, SourceResult
from creonowd.context.story import (
    STORY_VERSION,
    DoubtKind,
    Story,
    StoryDocument,
    StoryDoubt,
    StoryFile,
    StoryHeading,
    arrange,
)
from creonowd.errors import DaemonError, WarningCode, Wording
from creonowd.memo import Memo
from creonowd.retrieval.document_list import LARGEST, documents_in, is_excluded
from creonowd.sources.chapter_summaries import (
    ChapterSummary,
    CharacterNames,
    Extract,
    ExtractStore,
    FoundSummary,
    Summaries,
    SummaryOrigin,
    SummaryStore,
    extract,
)
from creonowd.sources.characters import Entities, ProjectEntities
from creonowd.sources.document import find_headings
from creonowd.storage import front_matter, stored_files
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.storage.unchanged_files import RECENT_MS, change_times
from creonowd.text import decode_text, file_stem, join_lines, well_formed
from creonowd.threads import BatchCache, until_stopped
from creonowd.workspace.creonow_tree import (
    TREE,
    FolderReader,
    ProjectRead,
    ReadPlace,
    is_document,
)
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project

STORY_FILE = f"{TREE}/story.json"
LARGEST_STORY_FILE = 1024 * 1024
# Of all projects together; one takes a kilobyte, and no project has more than 20 000.
KEPT_LISTED_CHAPTERS = 40_000
KEPT_DOCUMENT_CHARACTERS = 4_000_000
KEPT_EXTRACT_CHARACTERS = 8_000_000
KEPT_CHAPTERS = 4096
MOST_NEAR = 4
# What the near chapters may take of the room; the rest is for the far ones.
NEAR_SHARE = 0.65
MOST_NAMED = 3
# The chapters whose mentions count for ranking people; this far away they count half as much.
PEOPLE_CHAPTERS, HALF_AS_NEAR = 24, 3

_SYNOPSIS = "synopsis"

_Mark = tuple[int, ...]

_STALE = Wording(
    "{} chapters changed after you edited their summaries ({}); edit them again or summarise anew.",
    "有 {} 章在你编辑摘要之后又有改动（{}）；请重新编辑或重新生成摘要。",
)


class _KeptChapter(NamedTuple):
    mark: _Mark
    chapter: StoryDocument


class _KeptProject(NamedTuple):
    """The chapters on disk, and the story that was made last with what it was made of."""

    chapters: dict[str, _KeptChapter]
    opened: tuple[tuple[str, StoryDocument], ...]
    file: StoryFile | StoryDoubt | None
    documents: dict[str, StoryDocument]
    story: Story


_DiskChapters = tuple[dict[str, _KeptChapter], StoryFile | StoryDoubt | None]


class Chapters:
    """Reads the stories of all projects."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents, self._clock = documents, clock
        self._kept: Memo[Path, _KeptProject] = Memo(
            2 * KEPT_LISTED_CHAPTERS, lambda _root, kept: 1 + len(kept.chapters)
        )
        self._texts: Memo[tuple[str, str], StoryDocument] = Memo(
            KEPT_DOCUMENT_CHARACTERS, lambda key, _chapter: 500 + len(key[1])
        )

    async def story(self, project: Project, current: Document | None = None) -> Story:
        """Return the documents of a project in order; `current` is as the caller has it."""
        texts = self.open_texts(project)
        if current is not None:
            texts[current.source_ref] = current.front_matter + current.text
        return await to_thread.run_sync(self.read_now, project, texts, abandon_on_cancel=True)

    def forget(self, root: Path) -> None:
        """Drop the chapters of a project that was removed."""
        self._kept.forget(root)

    def open_texts(self, project: Project) -> dict[str, str]:
        """Return the texts of the documents that are open in an editor, by path."""
        return _open_texts(self._documents, project)

    def read_now(
        self, project: Project, texts: Mapping[str, str], cache: BatchCache | None = None
    ) -> Story:
        """Return the documents of a project in order, some of them with these texts.

        Blocks its thread. The cache lets several who read at the same moment share the disk.
        """
        root, cache = project.root, cache or BatchCache()
        kept = self._kept.peek(root)
        chapters, file = self._read_once(root, cache)
        read = (
            (path, self._texts.get((path, text), partial(read_document, path, text)))
            for path, text in texts.items()
            if path in chapters or not self._is_excluded(root, path, cache)
        )
        # A document that is as it is on disk changes nothing: all who ask there share one story.
        opened = tuple([one for one in read if _on_disk(chapters, one[0]) != one[1]])
        # The very same chapters were read together with the very same story file.
        if kept is not None and kept.chapters is chapters and kept.opened == opened:
            return kept.story
        every = {path: one.chapter for path, one in chapters.items()} | dict(opened)
        story = _story(file, every) if kept is None else _story_after(kept, file, every)
        self._kept.put(root, _KeptProject(chapters, opened, file, every, story))
        return story

    def _is_excluded(self, root: Path, path: str, cache: BatchCache) -> bool:
        # The ignore files of a folder in which no document is found are not watched.
        return cache.once(
            ("excluded", path), partial(is_excluded, root, path), lambda _: is_document(path)
        )

    def listed_now(self, project: Project, cache: BatchCache) -> Container[str]:
        """Return the documents that are in a project on disk; blocks its thread."""
        return self._read_once(project.root, cache)[0]

    def _read_once(self, root: Path, cache: BatchCache) -> _DiskChapters:
        return cache.once("chapters", partial(self._read_disk, root), _is_whole)

    def _read_disk(self, root: Path) -> _DiskChapters:
        kept = self._kept.peek(root)
        before = {} if kept is None else kept.chapters
        return _chapters_on_disk(root, before, self._clock.file_time_ms()), _read_story_file(root)


def _on_disk(chapters: Mapping[str, _KeptChapter], path: str) -> StoryDocument | None:
    kept = chapters.get(path)
    return None if kept is None else kept.chapter


def _is_whole(read: _DiskChapters) -> bool:
    """Return whether the story file could be used, if there is one."""
    return not isinstance(read[1], StoryDoubt)


def _open_texts(documents: Documents, project: Project) -> dict[str, str]:
    opened = documents.open_documents(project.project_id)
    return {path: document.buffer.text for path, document in opened.items()}


def read_story(root: Path) -> Story:
    """Read the story of a project as it is on disk; blocks its thread."""
    chapters = _chapters_on_disk(root, {}, 0)
    return _story(_read_story_file(root), {path: one.chapter for path, one in chapters.items()})


def read_document(path: str, text: str) -> StoryDocument:
    """Return what the story has to know of a document."""
    parts = front_matter.split(text)
    order: Any = parts.values.get("order")
    if isinstance(order, bool) or not isinstance(order, (int, float, str, type(None))):
        order = repr(order)
    return StoryDocument(
        path=path,
        length=len(parts.body),
        digest=text_digest(parts.body),
        headings=tuple(
            StoryHeading(found.title, found.at if parts.body[: found.at].strip() else 0)
            for found in find_headings(parts.body)
        ),
        order=order,
    )


def text_digest(body: str) -> str:
    """Return the hash of a text below its front matter; how its lines end does not matter."""
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    return sha256(well_formed(text).encode()).hexdigest()


def _chapters_on_disk(
    root: Path, kept: Mapping[str, _KeptChapter], now_ms: int
) -> dict[str, _KeptChapter]:
    """Read the chapters that changed; one that was written just now is read again each time."""
    chapters: dict[str, _KeptChapter] = {}
    for path, file in until_stopped(documents_in(root).items()):
        mark = (*file, *changes) if (changes := change_times(root, (path,))) else file
        before = kept.get(path)
        young = now_ms - file.modified_ns // 1_000_000 <= RECENT_MS
        if before is not None and before.mark == mark and not young:
            chapters[path] = before
        else:
            chapters[path] = _KeptChapter(mark, _read_chapter(root, path))
    return chapters


def _read_chapter(root: Path, path: str) -> StoryDocument:
    try:
        text = decode_text(LinkedFolder(root).snapshot(path, limit=LARGEST).data).text
    except DaemonError:
        return StoryDocument(path=path)
    return read_document(path, text)


def _read_story_file(root: Path) -> StoryFile | StoryDoubt | None:
    """Read the story file; a doubt if it cannot be used."""
    folder = LinkedFolder(root, TREE)
    try:
        if folder.status(STORY_FILE) is None:
            return None
        data = folder.snapshot(STORY_FILE, limit=LARGEST_STORY_FILE).data
        return parse_story_file(data)
    except (DaemonError, stored_files.DamagedFileError):
        return StoryDoubt(kind=DoubtKind.INVALID_FILE, paths=(STORY_FILE,))


def parse_story_file(data: bytes) -> StoryFile:
    """Parse the story file; DamagedFileError or VERSION_TOO_NEW if it cannot be used."""
    body = data.removeprefix(codecs.BOM_UTF8)
    return stored_files.decode(body, StoryFile, version=STORY_VERSION, name=STORY_FILE)


def _story(file: StoryFile | StoryDoubt | None, chapters: Mapping[str, StoryDocument]) -> Story:
    if not isinstance(file, StoryDoubt):
        return arrange(chapters.values(), file)
    story = arrange(chapters.values())
    return Story(story.documents, story.outside, (file, *story.doubts))


def _story_after(
    kept: _KeptProject, file: StoryFile | StoryDoubt | None, chapters: Mapping[str, StoryDocument]
) -> Story:
    """Return the story after a change; while only texts change, the documents keep their order.

    To put 120 documents in order takes 2 ms, and an author's text changes with every letter.
    """
    before = kept.documents
    if file != kept.file or chapters.keys() != before.keys():
        return _story(file, chapters)
    changed = {path: one for path, one in chapters.items() if one != before[path]}
    if any(one.order != before[path].order for path, one in changed.items()):
        return _story(file, chapters)
    return kept.story.with_changed(changed) if changed else kept.story


class ChapterSummaries:
    """The stored summaries of all projects, and extracts where there is none."""

    def __init__(
        self, store: SummaryStore, documents: Documents, extracts: ExtractStore | None = None
    ) -> None:
        self.store = store
        self.extracts = extracts
        self.lock = Lock()
        self._documents = documents
        self._made: Memo[tuple[str, CharacterNames], Extract] = Memo(
            KEPT_EXTRACT_CHARACTERS, lambda _key, made: 500 + len(made.text)
        )
        self.names_in: Memo[tuple[str, tuple[str, ...]], Counter[str]] = Memo(KEPT_CHAPTERS)
        self.results: Memo[Hashable, SourceResult] = Memo(
            KEPT_EXTRACT_CHARACTERS, lambda _key, result: 2000 + result.weight
        )

    def open_texts(self, project: Project) -> dict[str, str]:
        """Return the texts of the documents that are open in an editor, by path."""
        return _open_texts(self._documents, project)

    def is_extracted(self, document: StoryDocument, names: CharacterNames) -> bool:
        """Return whether the extract of a chapter as it was listed is kept, be it empty."""
        return (document.digest, names) in self._made

    def extract(
        self,
        project: Project,
        document: StoryDocument,
        texts: Mapping[str, str],
        names: CharacterNames,
    ) -> ChapterSummary | None:
        """Make the extract of a chapter; None if it cannot be read or has no sentence to quote.

        Blocks its thread unless it is kept.
        """
        digest = document.digest
        made = self._made.peek((digest, names)) if digest else None
        if made is None and self.extracts is not None and digest:
            made = self.extracts.get(project.project_id, names, digest)
            if made is not None:
                self._made.put((digest, names), made)
        if made is None:
            body = chapter_text(project.root, document.path, texts)
            if body is None:
                return None
            digest = text_digest(body)
            # Many may ask for the same chapters at once, each in a thread of its own.
            with self.lock:
                made = self._made.get((digest, names), lambda: extract(body, names))
            if self.extracts is not None:
                self.extracts.add(project.project_id, names, digest, body, made)
        if not made.text.strip():
            return None
        return ChapterSummary(
            document=document.path,
            digest=digest,
            text=made.text,
            brief=made.brief,
            origin=SummaryOrigin.EXTRACT,
        )


def chapter_text(root: Path, path: str, texts: Mapping[str, str]) -> str | None:
    """Return the text of a chapter below its front matter; None if it cannot be read.

    `texts` are those of open documents. Blocks its thread.
    """
    text = texts.get(path)
    if text is None:
        try:
            text = decode_text(LinkedFolder(root).snapshot(path, limit=LARGEST).data).text
        except DaemonError:
            return None
    return front_matter.split(text).body


# At the beginning of the story there is nothing to sum up.
_NO_CHAPTERS = SourceResult(summaries=(Summary.FULL_TEXT,))


class _StoredSummaries(ProjectRead[Summaries]):
    """The summaries that are stored for a project, for one assembly."""

    name = _SYNOPSIS

    def __init__(self, place: ReadPlace, store: SummaryStore) -> None:
        super().__init__(place)
        self._store = store

    def read(self, folders: FolderReader) -> Summaries:
        """Read what is stored now."""
        return self._store.read_now(folders.root)


class SynopsisSource(Source):
    """The summaries of the chapters before the author's."""

    layer = Layer.RETRIEVED
    name = _SYNOPSIS
    need = Need.SYNOPSIS
    unavailable = caution(WarningCode.SYNOPSIS_UNAVAILABLE)

    def __init__(
        self, summaries: ChapterSummaries, place: ReadPlace, entities: ProjectEntities
    ) -> None:
        self._project, self._summaries, self._entities = place.project, summaries, entities
        self._stored = _StoredSummaries(place, summaries.store)

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return what happened before the author's chapter, as much as its share holds."""
        if ask.earlier is None:
            return NOTHING
        if not ask.earlier or ask.synopsis_room <= 0:
            return _NO_CHAPTERS
        stored, entities = self._stored.peek(), self._entities.peek()
        if stored is None or entities is None:
            return self._make(ask)
        return self._summaries.results.peek(_result_key(ask, stored, entities)) or self._make(ask)

    async def _make(self, ask: SourceQuery) -> SourceResult:
        stored = await self._stored.get()
        entities = await self._entities.get()
        texts = self._summaries.open_texts(self._project)
        result, is_current = await to_thread.run_sync(
            self._summarise, ask, stored, texts, entities.names, abandon_on_cancel=True
        )
        if is_current:
            self._summaries.results.put(_result_key(ask, stored, entities), result)
        return result

    def revision(self) -> Hashable | None:
        """Return the stored summaries and the entities, if they were read ahead."""
        stored, entities = self._stored.revision(), self._entities.revision()
        return None if stored is None or entities is None else (stored, entities)

    def read_ahead(self, cache: BatchCache) -> None:
        """Read the stored summaries and the entities now, together with others; blocks."""
        self._stored.read_ahead(cache)
        self._entities.read_ahead(cache)

    def _summarise(
        self, ask: SourceQuery, stored: Summaries, texts: Mapping[str, str], names: CharacterNames
    ) -> tuple[SourceResult, bool]:
        """Make the story so far; return also whether no chapter has changed since it was listed."""
        chapters = ask.earlier or ()
        changed: list[StoryDocument] = []
        found = self._find_summaries(chapters, stored, texts, names, changed)
        if ask.whole_chapters:
            whole = self._whole(chapters, texts, 2 * ask.synopsis_room, changed)
            fragments, stale = _whole_fragments(found, whole, ask.synopsis_room)
        else:
            fragments, stale = _fragments(found, ask.synopsis_room)
        result = SourceResult(
            fragments=tuple(fragments),
            warnings=(_stale(stale),) if stale else (),
            summaries=(Summary.FULL_TEXT,),
        )
        return result, not changed

    def _find_summaries(
        self,
        chapters: Sequence[StoryDocument],
        stored: Summaries,
        texts: Mapping[str, str],
        names: CharacterNames,
        changed: list[StoryDocument],
    ) -> Iterator[tuple[int, FoundSummary]]:
        """Yield the summaries of chapters, the nearest first.

        Those that are not as they were listed any more are added to `changed`.
        """
        for number in reversed(range(len(chapters))):
            document = chapters[number]
            found = stored.of(document)
            if found is None:
                made = self._summaries.extract(self._project, document, texts, names)
                found = None if made is None else FoundSummary(made)
                if not self._summaries.is_extracted(document, names):
                    changed.append(document)
            if found is not None:
                yield number, found

    def _whole(
        self,
        chapters: Sequence[StoryDocument],
        texts: Mapping[str, str],
        room: float,
        changed: list[StoryDocument],
    ) -> dict[int, Fragment]:
        """Return the nearest chapters with their whole text, by number, up to about some tokens.

        Stop at the first chapter that cannot be read. Positions count from the start of the whole
        story, so that they stay the same when more chapters are included.
        """
        starts = [0, *accumulate(chapter.length or 0 for chapter in chapters)]
        whole: dict[int, Fragment] = {}
        for number in reversed(range(len(chapters))):
            document = chapters[number]
            body = chapter_text(self._project.root, document.path, texts) if room > 0 else None
            if body is None:
                break
            if text_digest(body) != document.digest:
                changed.append(document)
            room -= _about_tokens(body)
            whole[number] = _chapter_fragment(document.path, body, starts[number])
        return whole


class EarlierMentions(Source):
    """How much the chapters before the author's mention each character, near ones more.

    It gives no text: where the cards are over the Rules line it says who matters in the story.
    """

    layer = Layer.RULES
    name = "earlier mentions"
    need = Need.CHARACTERS
    unavailable = caution(WarningCode.SYNOPSIS_UNAVAILABLE)

    def __init__(
        self, project: Project, summaries: ChapterSummaries, entities: ProjectEntities
    ) -> None:
        self._project, self._summaries, self._entities = project, summaries, entities

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Count the names in the chapters before."""
        entities = self._entities.peek()
        if entities is None:
            return self._count_names(ask)
        chapters = _mention_chapters(ask, entities)
        if not chapters:
            return NOTHING
        known = self._summaries.results.peek(_mentions_key(chapters, entities))
        return known or self._count_names(ask)

    async def _count_names(self, ask: SourceQuery) -> SourceResult:
        entities = await self._entities.get()
        chapters = _mention_chapters(ask, entities)
        if not chapters:
            return NOTHING
        texts = self._summaries.open_texts(self._project)
        counted, is_current = await to_thread.run_sync(
            self._count, chapters, texts, entities, abandon_on_cancel=True
        )
        if is_current:
            self._summaries.results.put(_mentions_key(chapters, entities), counted)
        return counted

    def revision(self) -> Hashable | None:
        """Return the entities, if they were read ahead."""
        return self._entities.revision()

    def read_ahead(self, cache: BatchCache) -> None:
        """Read the entities now, together with others; blocks its thread."""
        self._entities.read_ahead(cache)

    def _count(
        self, chapters: Sequence[StoryDocument], texts: Mapping[str, str], entities: Entities
    ) -> tuple[SourceResult, bool]:
        """Count; return also whether no chapter has changed since it was listed."""
        sums: Counter[str] = Counter()
        is_current = True
        for distance, chapter in enumerate(reversed(chapters)):
            counts, is_same = self._count_in(chapter, texts, entities)
            is_current = is_current and is_same
            weight = 1000 * HALF_AS_NEAR // (HALF_AS_NEAR + distance)
            for name, count in counts.items():
                sums[name] += weight * count
        earlier = ((card, sum(sums[name] for name in set(names))) for card, names in entities.cards)
        return SourceResult(earlier=tuple(pair for pair in earlier if pair[1])), is_current

    def _count_in(
        self, chapter: StoryDocument, texts: Mapping[str, str], entities: Entities
    ) -> tuple[Counter[str], bool]:
        """Count the names in a chapter; return also whether it is still as it was listed."""
        kept, names = self._summaries.names_in, entities.every_name
        # Many may ask for the same chapters at once, each in a thread of its own.
        with self._summaries.lock:
            counts = kept.peek((chapter.digest, names)) if chapter.digest else None
            if counts is not None:
                return counts, True
            body = chapter_text(self._project.root, chapter.path, texts)
            if body is None:
                return Counter(), False
            digest = text_digest(body)
            counts = Counter(name for name, _, _ in self._entities.locate(names, body))
            kept.put((digest, names), counts)
        return counts, digest == chapter.digest


def _mention_chapters(ask: SourceQuery, entities: Entities) -> tuple[StoryDocument, ...]:
    """Return the chapters whose mentions rank people; none if the cards are short anyway."""
    if ask.here is None or 2 * entities.card_tokens < ask.rules_line:
        return ()
    end = ask.here.document
    return ask.story.documents[max(0, end - PEOPLE_CHAPTERS) : end]


def _mentions_key(chapters: Sequence[StoryDocument], entities: Entities) -> Hashable:
    return "mentions", tuple(chapters), entities


def _result_key(ask: SourceQuery, stored: Summaries, entities: Entities) -> Hashable:
    """Return all that the story so far depends on; what was written before has a digest each."""
    return ask.earlier or (), ask.synopsis_room, ask.whole_chapters, stored, entities


def _fragments(
    found: Iterator[tuple[int, FoundSummary]], room: int
) -> tuple[list[Fragment], list[str]]:
    """Return the summaries that fit, and the chapters whose summary is stale."""
    near: list[Fragment] = []
    lines: list[str] = []
    far_documents: list[str] = []
    stale: list[str] = []
    left, is_near = room * NEAR_SHARE, True
    total = 0.0
    for number, (summary, is_stale) in found:
        cost = _about_tokens(summary.text)
        is_near = is_near and len(near) < MOST_NEAR and cost <= left
        if is_near:
            near.append(_near_fragment(number, summary.document, summary.text))
            left -= cost
        else:
            cost = _about_tokens(summary.brief)
            far_documents.append(summary.document)
            lines.append(_line(summary.document, summary.brief))
        if is_stale:
            stale.append(summary.document)
        total += cost
        # Some more than fits, because this is no exact count.
        if total > 2 * room:
            break
    far = [_far_fragment(lines[::-1], far_documents[::-1])] if lines else []
    return [*far, *reversed(near)], stale


def _whole_fragments(
    found: Iterator[tuple[int, FoundSummary]], whole: Mapping[int, Fragment], room: int
) -> tuple[list[Fragment], list[str]]:
    """Return whole chapters and a line of each chapter, and those whose summary is stale.

    Every whole chapter has a line too, which stands for it if it does not fit. A line is the whole
    summary where all of them fit into their share, else its first sentence.
    """
    summaries: list[ChapterSummary] = []
    shown: list[Fragment] = []
    stale: list[str] = []
    total = 0.0
    for number, (summary, is_stale) in found:
        if number in whole:
            shown.append(whole[number])
        summaries.append(summary)
        if is_stale and number not in whole:
            stale.append(summary.document)
        total += _about_tokens(summary.brief)
        if total > room:
            break
    summaries.reverse()
    fits = sum(_about_tokens(one.text) for one in summaries) <= room * FAR_SHARE
    lines = [_line(one.document, one.text if fits else one.brief) for one in summaries]
    far = [_far_fragment(lines, [one.document for one in summaries])] if lines else []
    return [*far, *reversed(shown)], stale


def _chapter_fragment(path: str, text: str, start: int) -> Fragment:
    """Make the fragment of a chapter with its whole text."""
    return Fragment(
        layer=Layer.RETRIEVED,
        source=_SYNOPSIS,
        source_ref=path,
        text=text,
        kind=FragmentKind.SYNOPSIS,
        place=Place(NEAR_CHAPTERS, "", start),
        extent=Extent(path, 0, TO_THE_END),
    )


def _line(path: str, text: str) -> str:
    colon = ": " if count_words(text).majority is ManuscriptLanguage.ENGLISH else "："
    return f"- {join_lines(file_stem(path))}{colon}{join_lines(text)}"


def _near_fragment(number: int, path: str, text: str) -> Fragment:
    """Make the fragment of a chapter with its whole summary."""
    return Fragment(
        layer=Layer.RETRIEVED,
        source=_SYNOPSIS,
        source_ref=f"{path}#summary",
        text=text,
        kind=FragmentKind.SYNOPSIS,
        place=Place(NEAR_CHAPTERS, "", number),
        chapters=(path,),
    )


def _far_fragment(lines: Sequence[str], chapters: Sequence[str]) -> Fragment:
    """Make the fragment of the chapters that have one line each, the earliest first."""
    return Fragment(
        layer=Layer.RETRIEVED,
        source=_SYNOPSIS,
        source_ref=_SYNOPSIS,
        text="\n".join(lines),
        kind=FragmentKind.SYNOPSIS,
        place=Place(FAR_CHAPTERS),
        chapters=tuple(chapters),
    )


def _about_tokens(text: str) -> float:
    """Return about how many tokens a text has in any encoding, from its characters alone."""
    # To ask each character took a tenth of a first assembly.
    plain = len(text.encode("ascii", "ignore"))
    return plain / 4 + (len(text) - plain)


def _stale(documents: Sequence[str]) -> Caution:
    named = ", ".join(documents[:MOST_NAMED])
    return Caution(
        code=WarningCode.SUMMARY_STALE,
        wording=_STALE.format(len(documents), named),
        source_ref=documents[0],
        details=(("count", len(documents)),),
    )
