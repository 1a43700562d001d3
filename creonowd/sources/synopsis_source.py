"""The story so far, as a source of the Retrieved layer.

Near chapters are told by their whole summary, far ones by a sentence each. A chapter without a
stored summary is told by an extract, which costs nothing and says what it is; only what could
fit into the prompt is made. A chapter whose text has not changed is not read again.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from anyio import to_thread

from creonowd.context.fragment import Fragment, Layer
from creonowd.context.notice import Caution, caution
from creonowd.context.plan import Need, Summary
from creonowd.context.source import SourceQuery, SourceResult
from creonowd.context.story import StoryDocument
from creonowd.context.synopsis import far_fragment, near_fragment
from creonowd.errors import DaemonError, WarningCode, Wording
from creonowd.memo import Memo
from creonowd.retrieval.catalogue import LARGEST
from creonowd.sources.chapters import digest_of
from creonowd.sources.characters import ProjectEntities
from creonowd.sources.extract import Extract, extract
from creonowd.sources.shared_reads import FolderReader, ProjectReads
from creonowd.storage import front_matter
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.text import decode_text, file_stem, join_lines
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project
from creonowd.workspace.summaries import (
    ChapterSummary,
    FoundSummary,
    Summaries,
    SummaryOrigin,
    SummaryStore,
)

MOST_NEAR = 4
# What the near chapters may take of the room; the rest is for the far ones.
NEAR_SHARE = 0.65
MOST_NAMED = 3
KEPT_CHARACTERS = 8_000_000

CharacterNames = tuple[tuple[str, ...], ...]

_STALE = Wording(
    "{} chapters changed after you edited their summaries ({}); edit them again or summarise anew.",
    "有 {} 章在你编辑摘要之后又有改动（{}）；请重新编辑或重新生成摘要。",
)


class ChapterSummaries:
    """The stored summaries of all projects, and extracts where there is none."""

    def __init__(self, store: SummaryStore, documents: Documents) -> None:
        self.store = store
        self._documents = documents
        self._made: Memo[tuple[str, CharacterNames], Extract] = Memo(
            KEPT_CHARACTERS, lambda _key, made: 500 + len(made.text)
        )

    def open_texts(self, project: Project) -> dict[str, str]:
        """Return the texts of the documents that are open in an editor."""
        documents = self._documents.open_documents(project.project_id)
        return {path: document.buffer.text for path, document in documents.items()}

    def extract(
        self,
        root: Path,
        document: StoryDocument,
        texts: Mapping[str, str],
        names: CharacterNames,
    ) -> ChapterSummary | None:
        """Make the extract of a chapter; None if it cannot be read or has nothing to tell.

        Blocks its thread unless it is kept.
        """
        digest = document.digest
        made = self._made.peek((digest, names)) if digest else None
        if made is None:
            body = chapter_text(root, document.path, texts)
            if body is None:
                return None
            made, digest = extract(body, names), digest_of(body)
            self._made.put((digest, names), made)
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


class SynopsisSource:
    """The summaries of the chapters before the author's."""

    layer = Layer.RETRIEVED
    name = "synopsis"
    need = Need.SYNOPSIS
    unavailable = caution(WarningCode.SYNOPSIS_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(
        self,
        project: Project,
        summaries: ChapterSummaries,
        reads: ProjectReads,
        entities: ProjectEntities,
    ) -> None:
        self._project, self._summaries = project, summaries
        self._reads, self._entities = reads, entities

    async def fetch(self, ask: SourceQuery) -> SourceResult:
        """Tell what happened before the author's chapter, as much as its share holds."""
        if ask.earlier is None:
            return SourceResult()
        if not ask.earlier or ask.synopsis_room <= 0:
            return SourceResult(summaries=(Summary.FULL_TEXT,))
        stored = await self._reads.get(self.name, self._read)
        names = (await self._entities.all()).names
        texts = self._summaries.open_texts(self._project)
        return await to_thread.run_sync(
            self._tell, ask, stored, texts, names, abandon_on_cancel=True
        )

    def _read(self, folders: FolderReader) -> Summaries:
        del folders
        return self._summaries.store.read_now(self._project.root)

    def _tell(
        self, ask: SourceQuery, stored: Summaries, texts: Mapping[str, str], names: CharacterNames
    ) -> SourceResult:
        chapters = ask.earlier or ()
        found = self._found(chapters, stored, texts, names)
        fragments, stale = _fragments(found, ask.synopsis_room)
        return SourceResult(
            fragments=tuple(fragments),
            warnings=(_stale(stale),) if stale else (),
            summaries=(Summary.FULL_TEXT,),
        )

    def _found(
        self,
        chapters: Sequence[StoryDocument],
        stored: Summaries,
        texts: Mapping[str, str],
        names: CharacterNames,
    ) -> Iterator[tuple[int, FoundSummary]]:
        """Yield the summaries of chapters, the nearest first."""
        for number in reversed(range(len(chapters))):
            document = chapters[number]
            found = stored.of(document)
            if found is None:
                made = self._summaries.extract(self._project.root, document, texts, names)
                found = None if made is None else FoundSummary(made)
            if found is not None:
                yield number, found


def _fragments(
    found: Iterator[tuple[int, FoundSummary]], room: int
) -> tuple[list[Fragment], list[str]]:
    """Return what is told of the chapters, and those whose summary is stale."""
    near: list[Fragment] = []
    lines: list[str] = []
    stale: list[str] = []
    left, is_near = room * NEAR_SHARE, True
    total = 0.0
    for number, (summary, is_stale) in found:
        cost = about_tokens(summary.text)
        is_near = is_near and len(near) < MOST_NEAR and cost <= left
        if is_near:
            near.append(near_fragment(number, summary.document, summary.text))
            left -= cost
        else:
            cost = about_tokens(summary.brief)
            lines.append(
                f"- {join_lines(file_stem(summary.document))}：{join_lines(summary.brief)}"
            )
        if is_stale:
            stale.append(summary.document)
        total += cost
        # Some more than fits, because this is no exact count.
        if total > 2 * room:
            break
    far = [far_fragment(lines[::-1])] if lines else []
    return [*far, *reversed(near)], stale


def about_tokens(text: str) -> float:
    """Return about how many tokens a text has in any encoding, from its characters alone."""
    plain = sum(character.isascii() for character in text)
    return plain / 4 + (len(text) - plain)


def _stale(documents: Sequence[str]) -> Caution:
    named = ", ".join(documents[:MOST_NAMED])
    return Caution(
        code=WarningCode.SUMMARY_STALE,
        said=_STALE.format(len(documents), named),
        source_ref=documents[0],
        details=(("count", len(documents)),),
    )
