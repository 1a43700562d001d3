"""The documents of a project as chapters: their order, their lengths, their headings.

Each is as the editor has it, else as it is on disk. What has not changed is not read again.
"""

import codecs
from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from anyio import to_thread

from creonowd.clock import Clock
from creonowd.context.plan import Document
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
from creonowd.errors import DaemonError
from creonowd.memo import Memo
from creonowd.retrieval.catalogue import LARGEST, documents_in, is_excluded
from creonowd.sources.document import find_headings
from creonowd.storage import front_matter, versioned_json
from creonowd.storage.file_cache import RECENT_MS
from creonowd.storage.safe_folder import LinkedFolder, mark_of
from creonowd.text import decode_text, well_formed
from creonowd.workspace.creonow_tree import TREE
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project

STORY_FILE = f"{TREE}/story.json"
LARGEST_STORY_FILE = 1024 * 1024
KEPT_PROJECTS = 32
KEPT_CHARACTERS = 4_000_000

_Mark = tuple[int, ...]


class _KeptChapter(NamedTuple):
    mark: _Mark
    chapter: StoryDocument


class _KeptProject(NamedTuple):
    """The chapters on disk, and the story that was made last with what it was made of."""

    chapters: dict[str, _KeptChapter]
    made_of: object = None
    story: Story | None = None


_DiskChapters = tuple[dict[str, _KeptChapter], StoryFile | StoryDoubt | None]
Once = Callable[[Hashable, Callable[[], _DiskChapters]], _DiskChapters]


def read_each(_key: Hashable, read: Callable[[], _DiskChapters]) -> _DiskChapters:
    """Read for oneself."""
    return read()


class Chapters:
    """Reads the stories of all projects."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents, self._clock = documents, clock
        self._kept: Memo[Path, _KeptProject] = Memo(KEPT_PROJECTS)
        self._texts: Memo[tuple[str, str], StoryDocument] = Memo(
            KEPT_CHARACTERS, lambda key, _chapter: 500 + len(key[1])
        )

    async def story(self, project: Project, current: Document | None = None) -> Story:
        """Return the documents of a project in order; `current` is as the caller has it."""
        texts = self.open_texts(project)
        if current is not None:
            texts[current.source_ref] = current.front_matter + current.text
        return await to_thread.run_sync(self.read_now, project, texts, abandon_on_cancel=True)

    def open_texts(self, project: Project) -> dict[str, str]:
        """Return the texts of the documents that are open, by path."""
        return {
            path: open_document.buffer.text
            for path, open_document in self._documents.open_documents(project.project_id).items()
        }

    def read_now(self, project: Project, texts: Mapping[str, str], once: Once = read_each) -> Story:
        """Return the documents of a project in order, some of them with these texts.

        Blocks its thread. `once` lets several who read at the same moment share the disk.
        """
        root = project.root
        kept = self._kept.peek(root)
        chapters, file = once("chapters", lambda: self._read_disk(root, kept))
        every = {path: one.chapter for path, one in chapters.items()}
        for path, text in texts.items():
            if path in every or not is_excluded(root, path):
                every[path] = self._texts.get((path, text), lambda p=path, t=text: describe(p, t))
        made_of = (file, tuple(every.values()))
        if kept is not None and kept.story is not None and kept.made_of == made_of:
            story = kept.story
        else:
            story = _story(file, every)
        self._kept.put(root, _KeptProject(chapters, made_of, story))
        return story

    def _read_disk(self, root: Path, kept: _KeptProject | None) -> _DiskChapters:
        before = {} if kept is None else kept.chapters
        return _chapters_on_disk(root, before, self._clock.now_ms()), _read_story_file(root)


def read_story(root: Path) -> Story:
    """Read the story of a project as it is on disk; blocks its thread."""
    chapters = _chapters_on_disk(root, {}, 0)
    return _story(_read_story_file(root), {path: one.chapter for path, one in chapters.items()})


def describe(path: str, text: str) -> StoryDocument:
    """Return what the story has to know of a document."""
    parts = front_matter.split(text)
    order: Any = parts.values.get("order")
    if isinstance(order, bool) or not isinstance(order, (int, float, str, type(None))):
        order = repr(order)
    return StoryDocument(
        path=path,
        length=len(parts.body),
        digest=digest_of(parts.body),
        headings=tuple(
            StoryHeading(found.title, found.at if parts.body[: found.at].strip() else 0)
            for found in find_headings(parts.body)
        ),
        order=order,
    )


def digest_of(body: str) -> str:
    """Return the hash of a text below its front matter; how its lines end does not matter."""
    text = body.replace("\r\n", "\n").replace("\r", "\n")
    return sha256(well_formed(text).encode()).hexdigest()


def _chapters_on_disk(
    root: Path, kept: Mapping[str, _KeptChapter], now_ms: int
) -> dict[str, _KeptChapter]:
    """Read the chapters that changed; one that was written just now is read again each time."""
    chapters: dict[str, _KeptChapter] = {}
    for path, status in documents_in(root).items():
        mark = mark_of(status)
        before = kept.get(path)
        young = now_ms - status.st_mtime_ns // 1_000_000 <= RECENT_MS
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
    return describe(path, text)


def _read_story_file(root: Path) -> StoryFile | StoryDoubt | None:
    """Read the story file; a doubt if it cannot be used."""
    folder = LinkedFolder(root, TREE)
    try:
        if folder.status(STORY_FILE) is None:
            return None
        data = folder.snapshot(STORY_FILE, limit=LARGEST_STORY_FILE).data
        return parse_story_file(data)
    except (DaemonError, versioned_json.DamagedFileError):
        return StoryDoubt(kind=DoubtKind.INVALID_FILE, paths=(STORY_FILE,))


def parse_story_file(data: bytes) -> StoryFile:
    """Parse the story file; DamagedFileError or VERSION_TOO_NEW if it cannot be used."""
    body = data.removeprefix(codecs.BOM_UTF8)
    return versioned_json.decode(body, StoryFile, version=STORY_VERSION, name=STORY_FILE)


def _story(file: StoryFile | StoryDoubt | None, chapters: Mapping[str, StoryDocument]) -> Story:
    if not isinstance(file, StoryDoubt):
        return arrange(chapters.values(), file)
    story = arrange(chapters.values())
    return Story(story.documents, story.outside, (file, *story.doubts))
