"""The summaries of a project's chapters, those that are stored and those made without a model.

Each is for one text of one document. Those that a model or the daemon made lie in
`.creonow/cache/summaries/`, named by the hash of the text that they summarise: they may be deleted
at any time, and a change of one chapter concerns no other. Those that the author wrote lie in
`.creonow/summaries/`, by document; only the author overwrites them.

An extract is a chapter's people, and sentences of its own that carry most. It depends on the
chapter and on the names of the project's characters alone: a change elsewhere changes nothing here.
It says that it is an extract. What was extracted is kept in user data, so that a restart reads it:
to make it anew for forty chapters took a quarter of a second.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from hashlib import sha256
from itertools import chain, islice, pairwise
from pathlib import Path
from threading import Lock
from typing import NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.clock import Clock
from creonowd.context.numerals import chapter_of
from creonowd.context.story import StoryDocument
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.retrieval.passages import DocumentSecretFinder
from creonowd.retrieval.ranking import UNSPACED, content_terms
from creonowd.sources.document import find_headings
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.storage.stored_files import disk_errors
from creonowd.text import file_stem, join_lines, late_pattern, well_formed
from creonowd.tokens.boundaries import grapheme_floor, is_abbreviation, sentences
from creonowd.workspace.creonow_tree import TREE, CreonowFolder, Folder, Tree, TreeFile, folder_of
from creonowd.workspace.projects import Project

VERSION = 1
EDITED = folder_of(CreonowFolder.EDITED_SUMMARIES)
MADE = folder_of(CreonowFolder.MADE_SUMMARIES)
LONGEST_SUMMARY = 8000
MOST_OUTDATED = 500
KEPT_PROJECTS = 16

FOLDER = "extracts"
# To be raised with every change of what is extracted: kept extracts are not made again.
EXTRACT_VERSION = 1
MOST_KEPT = 4096
SAVE_SECONDS = 60.0

LONGEST_TEXT = 400_000
LONGEST_TITLE = 80
MOST_NAMES = 8
SECTIONS = 3
FEWEST_USES = 2
# How long a sentence may be, in characters of each kind of script; a longer one is cut.
LEAST_SENTENCE, LONGEST_SENTENCE = (14, 40), (90, 260)
# A sentence of dialogue counts this much: often nobody can see who speaks.
SPEECH_SHARE = 0.45
ENDING = 0.1
# A sentence that names somebody counts this much: who "he" is, nobody can see.
NAME_SHARE = 1.3
# A word that follows `at` or `in` more often than that is a place.
PLACE_SHARE = 0.25

_HAN = late_pattern(rf"[{UNSPACED}]")
_BLANK = late_pattern(r"\n[^\S\n]*\n")
_MARKUP = late_pattern(r"^[#>*\s\u3000|`_~=-]+|[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", re.MULTILINE)
_FORMULA = late_pattern(
    r"下回分解|下回便知|下回书|后事如何|不知后事|未知后事|开卷第|话分两头|"
    r"to be continued|end of chapter|\bthe end\b",
    re.IGNORECASE,
)
_OPENERS, _CLOSERS = "“「『", "”」』"
_SPEECH_STARTS = (*_OPENERS, "‘", '"')
_SAID = late_pattern(
    r"(?<![\u4e00-\u9fff])([\u4e00-\u9fff]{2,3}?)"
    r"(?:[忙便又因也就都才冷微大苦含陪赔一急低沉轻]|点头|摇头|连忙|只得|听了){0,2}"
    r"(?:[笑哭叹问骂喝怒答][着了]?)?(?:说道|问道|答道|道|说|问|答|喊)[：:，,]?\s*[“「『]"
)
_NO_NAMES = frozenset(
    [
        "我们",
        "你们",
        "他们",
        "她们",
        "咱们",
        "众人",
        "大家",
        "自己",
        "有人",
        "那人",
        "这人",
        "一人",
        "一个",
        "两人",
        "二人",
        "三人",
        "说着",
        "于是",
        "因此",
        "因而",
        "接着",
        "只听",
        "只见",
        "听了",
        "心想",
        "听见",
        "忽听",
        "忽然",
        "然后",
        "不禁",
        "又说",
        "便说",
        "回头",
        "低声",
        "大声",
        "那里",
        "这里",
        "如此",
        "方才",
        "起来",
        "笑着",
        "转身",
        "抬头",
        "开口",
        "旁边",
        "不由",
        "终于",
        "如今",
        "今日",
        "一面",
        "却又",
        "连连",
        "一声",
        "半晌",
        "良久",
        "先生",
        "一听",
    ]
)
_NO_START, _NO_END = (
    frozenset("那这因便又忙却就也只方乃且各都再才可我你他她它一不"),
    frozenset("笑问说道听见忙着了又便都也"),
)
_CAPITALISED = late_pattern(
    r"(?<![.!?\"“”'‘—-]\s)(?<![\"“‘'])\b((?:(?:Mr|Mrs|Ms|Dr|Sir|Lady|Lord|Miss|Aunt|Uncle|Captain|Colonel)\.?\s)?"
    r"[A-Z][a-z]{2,}(?:\s(?:de\s)?[A-Z][a-z]{2,})?)"
)
_NO_PEOPLE = frozenset(
    [
        "The",
        "This",
        "That",
        "There",
        "Then",
        "They",
        "When",
        "What",
        "Where",
        "Which",
        "While",
        "Who",
        "Why",
        "How",
        "And",
        "But",
        "For",
        "Not",
        "You",
        "Your",
        "His",
        "Her",
        "Its",
        "She",
        "Our",
        "Their",
        "Monday",
        "Tuesday",
        "Wednesday",
        "Thursday",
        "Friday",
        "Saturday",
        "Sunday",
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
        "Chapter",
        "God",
        "English",
        "French",
        "Christmas",
        "Michaelmas",
        "Easter",
        "Yes",
        "Sir",
        "Lady",
        "Miss",
        "Oh",
        "Nay",
        "Well",
        "London",
        "Street",
    ]
)


_PLACES = frozenset(
    str.split(
        "Abbey Avenue Bridge Castle Church Court Farm Field Forest Garden Gardens Gate Grove Hall"
        " Harbour Hill House Inn Island Lake Lane Lodge Manor Mountain Park Parsonage Place River"
        " Road School Square Station Street Tower Town Valley Village Wood Woods Yard"
    )
)

log = structlog.stdlib.get_logger(__name__)


class SummaryOrigin(StrEnum):
    """Who wrote a summary: the author, a model, or nobody, if it is an extract of the chapter."""

    AUTHOR = "author"
    """The author wrote or edited it."""
    MODEL = "model"
    """A model wrote it."""
    EXTRACT = "extract"
    """Sentences of the chapter itself."""


class ChapterSummary(Model):
    """A summary of the text with the hash `digest`; `brief` is the same in one sentence.

    `document` is the path that the text had. `model` is empty unless one wrote it.
    """

    document: str
    digest: str
    text: str
    brief: str
    origin: SummaryOrigin
    model: str = ""
    at_ms: int = 0


class _SummaryFile(ChapterSummary):
    version: int = VERSION


class FoundSummary(NamedTuple):
    """The summary that counts for a document; stale if the chapter has changed since."""

    summary: ChapterSummary
    stale: bool = False


@dataclass(frozen=True, eq=False)
class Summaries:
    """The stored summaries of a project: the author's by document, the others by text.

    As long as no file changes, reading again returns the very same value.
    """

    edited: Mapping[str, ChapterSummary]
    made: Mapping[str, ChapterSummary]

    def of(self, document: StoryDocument) -> FoundSummary | None:
        """Return the summary that counts for a document as it is now; None if none is stored.

        The author's own counts as long as the chapter is the same, then what a model made of the
        new text. Where there is none, the author's words still say more than an extract.
        """
        edited, made = self.edited.get(document.path), self.made.get(document.digest)
        if edited is not None and edited.digest == document.digest:
            return FoundSummary(edited)
        if made is not None and (made.origin is SummaryOrigin.MODEL or edited is None):
            return FoundSummary(made)
        return None if edited is None else FoundSummary(edited, stale=True)


class SummaryStore:
    """Reads and writes the summaries of all projects."""

    def __init__(self, tree: Tree, clock: Clock) -> None:
        self._tree, self._clock = tree, clock
        self._lock = anyio.Lock()
        self._read: Memo[Path, tuple[Folder, Folder, Summaries]] = Memo(KEPT_PROJECTS)

    async def read(self, project: Project) -> Summaries:
        """Return what is stored now."""
        return await to_thread.run_sync(self.read_now, project.root, abandon_on_cancel=True)

    def read_now(self, root: Path) -> Summaries:
        """Return what is stored now; blocks its thread. Files that are not valid are left out."""
        edited = self._folder(root, CreonowFolder.EDITED_SUMMARIES)
        made = self._folder(root, CreonowFolder.MADE_SUMMARIES)
        kept = self._read.peek(root)
        if kept is not None and kept[0] is edited and kept[1] is made:
            return kept[2]
        summaries = Summaries(
            edited={one.document: one for one in _decode(edited, _is_edited)},
            made={one.digest: one for one in _decode(made, _is_made)},
        )
        self._read.put(root, (edited, made, summaries))
        return summaries

    def _folder(self, root: Path, scope: CreonowFolder) -> Folder:
        try:
            return self._tree.read_all_now(root, scope)
        except DaemonError as error:
            log.warning("summaries_unreadable", folder=folder_of(scope), code=error.code)
            return Folder()

    async def keep(self, project: Project, summary: ChapterSummary) -> None:
        """Store a summary that was made; what the author wrote is left alone."""
        path = f"{MADE}/{summary.digest}.json"
        async with self._lock:
            await to_thread.run_sync(_write, project.root, path, self._with_time(summary))

    async def edit(self, project: Project, summary: ChapterSummary) -> ChapterSummary:
        """Store the author's own summary of a document, over the one before."""
        stamped = self._with_time(summary)
        async with self._lock:
            await to_thread.run_sync(_write, project.root, _edited_path(summary.document), stamped)
        return stamped

    async def forget_edit(self, project: Project, document: str) -> bool:
        """Remove the author's summary of a document, and return whether there was one."""
        async with self._lock:
            return await to_thread.run_sync(_remove, project.root, _edited_path(document))

    async def clean(self, project: Project, digests: Iterable[str]) -> int:
        """Remove made summaries of texts that no chapter has any more, all but the newest ones.

        An author who goes back to an older text finds its summary again.
        """
        async with self._lock:
            return await to_thread.run_sync(self._clean, project.root, frozenset(digests))

    def _clean(self, root: Path, current: frozenset[str]) -> int:
        folder = self._folder(root, CreonowFolder.MADE_SUMMARIES)
        outdated = [file for file in folder.files if file_stem(file.path) not in current]
        newest_first = sorted(outdated, key=lambda file: (-file.updated_at_ms, file.path))
        with disk_errors(MADE):
            for file in newest_first[MOST_OUTDATED:]:
                LinkedFolder(root, MADE).remove(file.path)
        return len(newest_first[MOST_OUTDATED:])

    def _with_time(self, summary: ChapterSummary) -> ChapterSummary:
        return msgspec.structs.replace(summary, at_ms=self._clock.now_ms())


def _decode(
    folder: Folder, fits: Callable[[TreeFile, ChapterSummary], bool]
) -> Iterator[ChapterSummary]:
    for file in folder.files:
        try:
            found = stored_files.decode(file.data, ChapterSummary, version=VERSION, name=file.path)
        except (stored_files.DamagedFileError, DaemonError):
            continue
        if len(found.text) <= LONGEST_SUMMARY and found.text.strip() and fits(file, found):
            yield found


def _is_edited(file: TreeFile, summary: ChapterSummary) -> bool:
    return summary.origin is SummaryOrigin.AUTHOR and file.path == _edited_path(summary.document)


def _is_made(file: TreeFile, summary: ChapterSummary) -> bool:
    return (
        summary.origin is not SummaryOrigin.AUTHOR and file.path == f"{MADE}/{summary.digest}.json"
    )


def _edited_path(document: str) -> str:
    return f"{EDITED}/{sha256(document.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def _write(root: Path, path: str, summary: ChapterSummary) -> None:
    folder = LinkedFolder(root, TREE)
    with disk_errors(path):
        _refuse_newer(folder, path)
        stored = _SummaryFile(**msgspec.structs.asdict(summary))
        data = msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"
        folder.write(path, data, mode=stored_files.SHARED)


def _refuse_newer(folder: LinkedFolder, path: str) -> None:
    """Fail with VERSION_TOO_NEW if a newer daemon wrote the file; a damaged one is replaced."""
    if folder.status(path) is None:
        return
    try:
        data = folder.snapshot(path, limit=LONGEST_SUMMARY * 16).data
        stored_files.decode(data, ChapterSummary, version=VERSION, name=path)
    except stored_files.DamagedFileError:
        return
    except DaemonError as error:
        if error.code is ErrorCode.VERSION_TOO_NEW:
            raise


def _remove(root: Path, path: str) -> bool:
    folder = LinkedFolder(root, EDITED)
    with disk_errors(path):
        found = folder.status(path) is not None
        folder.remove(path)
    return found


class Extract(NamedTuple):
    """A summary made of a chapter's own words, and the same in one sentence."""

    text: str
    brief: str


CharacterNames = tuple[tuple[str, ...], ...]


class _StoredExtracts(Model):
    """The extracts of one project by the digest of each chapter, made with these names."""

    version: int
    names: CharacterNames
    extracts: dict[str, Extract]


class ExtractStore:
    """Keeps the extracts of each project in a file of user data; whatever is lost is made again.

    A chapter in which there is a secret is not kept.
    """

    def __init__(self, user_data: Path, finder: DocumentSecretFinder) -> None:
        self._folder, self._finder = user_data / FOLDER, finder
        self._lock = Lock()
        self._known: dict[str, _StoredExtracts] = {}
        self._unsaved: set[str] = set()

    def get(self, project_id: str, names: CharacterNames, digest: str) -> Extract | None:
        """Return the extract of a chapter by its digest, if it is kept; blocks its thread."""
        with self._lock:
            return self._of(project_id, names).extracts.get(digest)

    def add(
        self, project_id: str, names: CharacterNames, digest: str, body: str, made: Extract
    ) -> None:
        """Keep the extract of a chapter with the next `save`; blocks its thread."""
        if self._finder.find(body) or well_formed("".join(made)) != "".join(made):
            return
        with self._lock:
            self._of(project_id, names).extracts[digest] = made
            self._unsaved.add(project_id)

    async def run(self) -> None:
        """Save what is new from time to time, and when cancelled."""
        try:
            while True:
                await anyio.sleep(SAVE_SECONDS)
                if self._unsaved:
                    await to_thread.run_sync(self.save)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(self.save)

    def save(self) -> None:
        """Write what is new; blocks its thread."""
        with self._lock:
            unsaved, self._unsaved = self._unsaved, set()
            files = {one: _encode(self._known[one]) for one in unsaved if one in self._known}
        with suppress(DaemonError, OSError):
            for project_id, data in files.items():
                stored_files.make_folders(self._folder)
                stored_files.replace(self._path(project_id), data)

    async def forget(self, project_id: str) -> None:
        """Delete what is kept of a project that was removed."""
        with self._lock:
            self._known.pop(project_id, None)
            self._unsaved.discard(project_id)
        await to_thread.run_sync(partial(self._path(project_id).unlink, missing_ok=True))

    def _of(self, project_id: str, names: CharacterNames) -> _StoredExtracts:
        known = self._known.get(project_id) or self._load(project_id)
        if known is None or known.version != EXTRACT_VERSION or known.names != names:
            known = _StoredExtracts(version=EXTRACT_VERSION, names=names, extracts={})
        self._known[project_id] = known
        return known

    def _load(self, project_id: str) -> _StoredExtracts | None:
        with suppress(DaemonError, OSError, stored_files.DamagedFileError):
            path = self._path(project_id)
            return stored_files.load(path, _StoredExtracts, version=EXTRACT_VERSION)
        return None

    def _path(self, project_id: str) -> Path:
        return self._folder / f"{project_id}.json"


def _encode(known: _StoredExtracts) -> bytes:
    """Return the bytes of the extracts that were made last."""
    newest = islice(known.extracts.items(), max(0, len(known.extracts) - MOST_KEPT), None)
    stored = _StoredExtracts(version=known.version, names=known.names, extracts=dict(newest))
    return msgspec.json.encode(stored)


class _Sentence(NamedTuple):
    text: str
    at: int
    spoken: bool


def extract(text: str, names: Iterable[Sequence[str]] = ()) -> Extract:
    """Summarise a chapter by its title, its people, and a few of its sentences in their order.

    `names` are what each character of the project is called, its own name first. Empty if there
    is nothing to choose from.
    """
    text = text[: grapheme_floor(text, LONGEST_TEXT)].replace("\r\n", "\n").replace("\r", "\n")
    title, body = _title(text)
    unspaced = 2 * len(_HAN.findall(body[:4000])) > len(body[:4000])
    listed = [one for one in _sentences(body, unspaced=unspaced) if not _FORMULA.search(one.text)]
    if not listed:
        return Extract(title, title)
    people = _people(body, names, unspaced=unspaced)
    scores = _scores(listed, people, unspaced=unspaced)
    chosen = _choose(listed, scores, unspaced=unspaced)
    best = max(chosen, key=lambda at: (scores[at], -at))
    shown = {at: _short(listed[at].text, unspaced=unspaced) for at in chosen}
    return _compose(
        title, people, _join_sentences(shown, unspaced=unspaced), shown[best], unspaced=unspaced
    )


def _join_sentences(shown: Mapping[int, str], *, unspaced: bool) -> str:
    """Put sentences together, with dots where some are left out between them."""
    joints = ("", "……") if unspaced else (" ", " … ")
    prose = ""
    for earlier, later in pairwise([*shown, max(shown) + 1]):
        cut = later - earlier > 1 and not shown[earlier].endswith("…")
        prose += shown[earlier] + joints[cut]
    return prose.rstrip()


def first_sentence(text: str) -> str:
    """Return the first sentence of a summary, shortened if it is very long."""
    line = next((line for line in text.splitlines() if line.strip()), "").strip()
    unspaced = _HAN.search(line[:40]) is not None
    end = next(
        (at for at in sentences(line, 0, len(line)) if not is_abbreviation(line, at)),
        len(line),
    )
    return _short(line[:end].strip(), unspaced=unspaced)


def _compose(
    title: str, people: Sequence[str], prose: str, best: str, *, unspaced: bool
) -> Extract:
    mark, names_mark, comma = (
        ("（摘录）", "人物：", "、") if unspaced else ("(Extract) ", "People: ", ", ")
    )
    stop = "。" if unspaced else ". "
    lines = [f"{mark}{title}{stop if title else ''}".rstrip()]
    if people:
        lines.append(f"{names_mark}{comma.join(people)}{stop}".rstrip())
    return Extract("\n".join([*lines, prose]), f"{title}{stop}{best}" if title else best)


def _title(text: str) -> tuple[str, str]:
    """Return what the title says beside its number, and the text below it."""
    body = text.lstrip("\n \u3000\ufeff")
    first, _, rest = body.partition("\n")
    found = find_headings(body)
    heads = bool(found) and not body[: found[0].at].strip()
    line = found[0].title if heads else first.strip(" #\t\u3000")
    if not heads and (chapter_of(line) is None or len(line) > LONGEST_TITLE):
        return "", body
    counted = chapter_of(line)
    title = line if counted is None else line[counted.end :]
    return join_lines(title).strip(" \t\u3000.:：、-–—·")[:LONGEST_TITLE], rest


def _sentences(text: str, *, unspaced: bool) -> Iterator[_Sentence]:
    paragraphs = text.split("\n") if unspaced else _BLANK.split(text)
    shortest = LEAST_SENTENCE[0] // 2 if unspaced else LEAST_SENTENCE[1] // 3
    at = 0
    for paragraph in paragraphs:
        line = (
            _MARKUP.sub("", paragraph) if unspaced else " ".join(_MARKUP.sub("", paragraph).split())
        )
        start, depth = 0, 0
        for end in [*sentences(line, 0, len(line)), len(line)]:
            piece = line[start:end]
            if end < len(line) and is_abbreviation(piece, len(piece)):
                continue
            stripped = piece.strip(" \t\u3000")
            inside = depth > 0
            depth = max(0, depth + _quotation_depth(piece))
            if not unspaced and piece.count('"') % 2:
                depth = 0 if depth else 1
            # What a person says goes with the words that name the speaker.
            if unspaced and depth and end < len(line) and end - start < LONGEST_SENTENCE[0]:
                continue
            if len(stripped) >= shortest and any(c.isalnum() for c in stripped):
                yield _Sentence(stripped, at, inside or stripped.startswith(_SPEECH_STARTS))
                at += 1
            start = end


def _quotation_depth(piece: str) -> int:
    return sum(map(piece.count, _OPENERS)) - sum(map(piece.count, _CLOSERS))


def _people(text: str, names: Iterable[Sequence[str]], *, unspaced: bool) -> list[str]:
    """Return who occurs most: characters of the project, and names that the text gives away."""
    counts: Counter[str] = Counter()
    known: dict[str, str] = {}
    characters = frozenset(text)
    for spellings in names:
        own = spellings[0]
        known.update(dict.fromkeys(spellings, own))
        # To look for the characters of a name is quicker than to count it: many a chapter lacks one.
        possible = [name for name in spellings if characters.issuperset(name)]
        if count := max(map(text.count, possible), default=0):
            counts[own] = count
    found = _SAID.findall(text) if unspaced else _CAPITALISED.findall(text)
    for name, count in sorted(Counter(" ".join(each.split()) for each in found).items()):
        banned = _is_no_name(name) if unspaced else _is_no_person(name, text)
        if count < FEWEST_USES or banned:
            continue
        whole = {own for one, own in known.items() if name in one}
        if len(whole) <= 1:
            called = next(iter(whole), name)
            counts[called] = max(counts[called], text.count(name))
    ranked = sorted(counts, key=lambda name: (-counts[name], name))
    kept: list[str] = []
    for name in ranked:
        last = name.split()[-1]
        if not any(name in one or one in name or last in one.split() for one in kept):
            kept.append(name)
    return kept[:MOST_NAMES]


def _is_no_person(name: str, text: str) -> bool:
    """Return whether a capitalised word names no person: it mostly follows `at`, `in`, `near` and the like."""
    words = name.split()
    if words[0] in _NO_PEOPLE or (len(words) > 1 and words[-1] in _PLACES):
        return True
    spelled = re.escape(name).replace("\\ ", r"\s+")
    uses = len(re.findall(rf"\b{spelled}\b", text))
    places = len(re.findall(rf"\b(?:at|in|into|near|from|towards|through|the)\s+{spelled}\b", text))
    return places > PLACE_SHARE * uses


def _is_no_name(name: str) -> bool:
    return name in _NO_NAMES or name[0] in _NO_START or name[-1] in _NO_END


def _scores(listed: Sequence[_Sentence], people: Sequence[str], *, unspaced: bool) -> list[float]:
    """Weigh each sentence by the terms that come back in the chapter, for its length."""
    terms = [content_terms(one.text) for one in listed]
    uses = Counter(chain.from_iterable(terms))
    weights = {term: math.log(1 + count) for term, count in uses.items() if count >= FEWEST_USES}
    wanted = (LONGEST_SENTENCE[0] if unspaced else LONGEST_SENTENCE[1]) / 2
    scores: list[float] = []
    for one, own in zip(listed, terms, strict=True):
        length = len(one.text)
        weight = sum(weights[term] for term in sorted(own & weights.keys()))
        score = weight / math.sqrt(max(length, wanted))
        score *= min(1.0, wanted / length) if length > 2 * wanted else 1.0
        score *= SPEECH_SHARE if one.spoken or _is_broken_off(one.text) else 1.0
        score *= NAME_SHARE if any(name in one.text for name in people) else 1.0
        scores.append(score)
    return scores


def _is_broken_off(sentence: str) -> bool:
    """Return whether a sentence announces what somebody says, and that follows elsewhere."""
    if sentence.endswith((":", "：", ",", "，")) or sentence.count('"') % 2:
        return True
    return _quotation_depth(sentence) > 0


def _choose(listed: Sequence[_Sentence], scores: Sequence[float], *, unspaced: bool) -> list[int]:
    """Choose the first sentence, the best of each section, and the last, in order."""
    least = LEAST_SENTENCE[0] if unspaced else LEAST_SENTENCE[1]
    long_enough = [
        at for at, one in enumerate(listed) if len(one.text) >= least and not one.text[0].islower()
    ]
    candidates = long_enough or list(range(len(listed)))
    narrated = [
        at for at in candidates if not listed[at].spoken and not _is_broken_off(listed[at].text)
    ]
    # Of the last words a few may be somebody's speech, which says less than what happens before.
    ending = [at for at in narrated if at >= len(listed) * (1 - ENDING)]
    chosen = {(narrated or candidates)[0], (ending or candidates)[-1]}
    size = max(1, -(-len(listed) // SECTIONS))
    for section in range(0, len(listed), size):
        inside = [at for at in candidates if section <= at < section + size and at not in chosen]
        if inside:
            chosen.add(max(inside, key=lambda at: (scores[at], -at)))
    return sorted(chosen)


def _short(sentence: str, *, unspaced: bool) -> str:
    """Cut a sentence that is too long, at a comma if there is one."""
    most = LONGEST_SENTENCE[0] if unspaced else LONGEST_SENTENCE[1]
    if len(sentence) <= most:
        return sentence
    head = sentence[: grapheme_floor(sentence, most)]
    cut = max(head.rfind(mark) for mark in ("，", "；", "：", ", ", "; ", ": "))
    if cut < most // 2:
        cut = head.rfind(" ") if not unspaced and head.rfind(" ") > 0 else len(head)
    return head[:cut].rstrip() + ("……" if unspaced else " …")
