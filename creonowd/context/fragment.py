"""What a source gives: fragments, each a text offered for the prompt, and warnings.

A warning is one value, of which a result's `warnings` and `notices` are both made. The language of
a client decides how it reads; it never reaches a prompt.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from creonowd.errors import WARNINGS, Language, WarningCode, Wording
from creonowd.model import Model

DEFAULT_PRIORITY = 100
KEPT_WARNINGS = 256
# The specification gives the texts of these warnings; a client that names no locale gets those.
SPELT_OUT = frozenset({WarningCode.KG_UNAVAILABLE})

Detail = str | int


class Layer(StrEnum):
    """The four layers, in the order of the prompt."""

    RULES = "rules"
    """Style guide, terms, constraints, characters: what every prompt begins with."""
    SETTINGS = "settings"
    """World and notes."""
    RETRIEVED = "retrieved"
    """The story so far, earlier passages, mentioned characters."""
    IMMEDIATE = "immediate"
    """The text around the cursor, and the task."""


STABLE = (Layer.RULES, Layer.SETTINGS)
DYNAMIC = (Layer.RETRIEVED, Layer.IMMEDIATE)


class FragmentKind(StrEnum):
    """What a fragment is, where that changes how it is rendered or ranked."""

    TEXT = "text"
    CONSTRAINT = "constraint"
    ENTITY = "entity"
    SYNOPSIS = "synopsis"
    THREAD = "thread"


class ConstraintOrigin(StrEnum):
    """Who made a constraint."""

    USER = "user"
    KG = "kg"


class Action(StrEnum):
    """What became of a candidate."""

    KEPT = "kept"
    """In the prompt, whole."""
    TRIMMED = "trimmed"
    """In the prompt, in part."""
    DROPPED = "dropped"
    """Not in the prompt."""


class Reason(StrEnum):
    """Why, in the words of the IDE. A kept candidate passed the check of the budget."""

    OVER_BUDGET = "over_budget"
    """The budget was checked: a kept one passed, another did not."""
    TOO_LARGE = "too_large"
    """The text alone is larger than one piece may be."""
    INVALID_FORMAT = "invalid_format"
    """The file makes no sense as what it should be."""
    READ_ERROR = "read_error"
    """The file or the source could not be read."""


class Rule(StrEnum):
    """Which step decided."""

    RULES_LINE = "rules_line"
    """Rules may fill their share of the budget and no more. Raise the share or the budget, give it
    a higher `priority`, or shorten others."""
    NOT_MENTIONED = "not_mentioned"
    """Rules are over their share, and the document does not mention this character. Mention it, or
    make room as for `rules_line`."""
    CONSTRAINT_LIMIT = "constraint_limit"
    """One prompt holds only so many constraints; those at the end of the list are left out. Merge
    some, or limit them to parts of the story with `from` and `until`."""
    SETTINGS_SHARE = "settings_share"
    """Settings had no more room. Raise the budget or the share, give the note a higher
    `confidence`, or shorten others."""
    THREAD_LIMIT = "thread_limit"
    """More threads are open here than one prompt shows; those that are due first are shown. Close
    threads that are resolved."""
    SYNOPSIS_SHARE = "synopsis_share"
    """The story so far may take a part of the budget only; chapters far from the cursor get a line
    each, then none."""
    SCORE = "score"
    """Retrieved text is taken by its score until the room ends. Raise the budget or the share of
    Retrieved, or pin the fact as a note."""
    TARGET = "target"
    """The skill aims at a smaller prompt (`target_tokens`), so retrieved text ends there. Raise
    the aim in SKILL.md."""
    PASSAGE_SHARE = "passage_share"
    """A long budget has whole chapters and little room for passages. Raise its total, or use a
    budget of the default kind."""
    CHUNK_LIMIT = "chunk_limit"
    """One prompt holds only so many retrieved pieces."""
    DUPLICATE = "duplicate"
    """Another piece says nearly the same."""
    WINDOW = "window"
    """The document does not fit; the text nearest to the cursor is shown. Raise the budget, or the
    share of Immediate."""
    SKILL_WINDOW = "skill_window"
    """All is shown that the skill's `surrounding` asks for. Raise it in SKILL.md to show more."""
    PINNED = "pinned"
    """Never left out: the selection, the instruction, the task."""
    SIZE_LIMIT = "size_limit"
    """The text alone is larger than one piece may be, and was cut or left out. Split the file."""
    UNREADABLE = "unreadable"
    """The file or source could not be used; a warning says why."""
    NOT_YET = "not_yet"
    """It holds only from a later place of the story on (`from`, or a progression)."""
    NO_LONGER = "no_longer"
    """It held only before an earlier place of the story (`until`), or a later progression replaced
    it."""
    FUTURE = "future"
    """It stands behind the cursor in the story, and this skill may not know it. `retrieval: all`
    allows it."""


# These steps leave out what does not hold at the cursor, whatever room there is.
TIMING = frozenset({Rule.NOT_YET, Rule.NO_LONGER, Rule.FUTURE})


class Place(NamedTuple):
    """Where a fragment stands within its layer: group of sources, path, offset."""

    group: int = 0
    path: str = ""
    offset: int = 0


class Span(NamedTuple):
    """A range of the current document, in code points."""

    start: int
    end: int


# The end of an extent that goes on to the end of its document.
TO_THE_END = 2**62


class Extent(NamedTuple):
    """A range of a document's file, in code points; its front matter counts."""

    path: str
    start: int
    end: int


class Stage(Model, cache_hash=True, gc=False):
    """A progression: what is added to a text from a place of the story on.

    `replaces` says that it takes the place of all that stood before. `title` is the heading that
    begins it, if one does.
    """

    since: str
    text: str
    title: str = ""
    replaces: bool = False


class Fragment(Model, cache_hash=True, gc=False):
    """A text that a source offers, and what places and ranks it."""

    layer: Layer
    """The layer that it belongs to."""
    source: str
    """The name of the source that has it."""
    source_ref: str
    """What it is: a file, a passage of a document, a constraint, a host's chunk."""
    text: str
    """What the source has: not yet redacted, JSON already in its canonical form."""
    kind: FragmentKind = FragmentKind.TEXT
    """What it is treated as."""
    whole: bool = False
    """Whether it is kept or dropped as a whole, never cut."""
    place: Place = Place()
    """Where it stands in its layer."""
    score: float | None = None
    """How well it answers the query, from 0 to 1."""
    confidence: float | None = None
    """How sure the source is of it, from 0 to 1; none means 1."""
    priority: int = DEFAULT_PRIORITY
    """Which comes first where scores and confidences are equal."""
    origin: ConstraintOrigin = ConstraintOrigin.USER
    """Who made a constraint."""
    degradable: bool = False
    """Whether a constraint may be left out for want of room."""
    names: tuple[str, ...] = ()
    """What an entity is called."""
    title: str = ""
    """A line that stands above the text."""
    first_line: int = 1
    """The line of its file where it begins."""
    hosted: bool = False
    """Whether a host sent it."""
    span: Span | None = None
    """Where a passage stands in the author's document."""
    project_id: str | None = None
    """The project that it names; another one than the request's ends the request."""
    token_count: int | None = None
    """What a host says that it has in tokens; checked, else ignored."""
    since: str = ""
    """The place of the story from which it holds."""
    until: str = ""
    """The place of the story up to which it holds."""
    due: str = ""
    """Where in the story a thread is to be resolved."""
    stages: tuple[Stage, ...] = ()
    """What is added to its text in the course of the story."""
    excluded: Rule | None = None
    """The step that left it out before."""
    is_allusion: bool = False
    """Whether it was found for a single sentence before the cursor; it stands behind the others."""
    arrival: int = 0
    """When a chunk was first found: what stood there before keeps its place in front."""
    story_number: int = 0
    """Its number in the order of the story; zero has no place in it."""
    extent: Extent | None = None
    """The part of a document that it repeats word by word."""
    chapters: tuple[str, ...] = ()
    """The documents that a summary has a line for."""
    pinned: bool = False
    """Whether the author pinned it: it is kept before others of its layer."""

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        return 500 + len(self.text) + sum(len(stage.text) for stage in self.stages)

    @property
    def is_synopsis(self) -> bool:
        """Whether it is a part of the story so far."""
        return self.kind is FragmentKind.SYNOPSIS

    @property
    def is_timed(self) -> bool:
        """Whether it depends on the place in the story."""
        return bool(self.since or self.until or self.stages or self.excluded)


class Omission(Model, cache_hash=True):
    """A candidate that could not be read or understood."""

    layer: Layer
    source: str
    source_ref: str
    reason: Reason
    place: Place = Place()


def rank_key(fragment: Fragment) -> tuple[object, ...]:
    """Sort chunks, the best first."""
    return (-(fragment.score or 0.0), *reading_key(fragment))


def reading_key(fragment: Fragment) -> tuple[object, ...]:
    """Sort chunks as they came, those that came together in the order of the story."""
    _, path, offset = fragment.place
    number = fragment.story_number
    return (fragment.arrival, number, path, offset, fragment.source_ref, fragment.text)


class Notice(Model):
    """A warning in parts: test `code`, show `message`."""

    code: WarningCode
    """The code, for programs."""
    message: str
    """What it means, in the connection's language."""
    layer: Layer | UnsetType = UNSET
    """The layer of the prompt that it concerns; absent if it concerns none."""
    source_ref: str | UnsetType = UNSET
    """The file, document or host that it is about; absent if it is about none."""
    details: dict[str, Detail] | UnsetType = UNSET
    """Figures and names by themselves, such as how many tokens a layer got."""


class Caution(Model, cache_hash=True):
    """What a result warns of.

    `wording` stands behind the code in `warnings`; without it the code stands alone there, and the
    notice has the catalogue's text.
    """

    code: WarningCode
    wording: Wording | None = None
    layer: Layer | None = None
    source_ref: str = ""
    details: tuple[tuple[str, Detail], ...] = ()

    def text(self, language: Language = Language.DEFAULT) -> str:
        """Return `CODE` or `CODE: text`."""
        return str(self.code) if self.wording is None else f"{self.code}: {self._message(language)}"

    def notice(self, language: Language = Language.DEFAULT) -> Notice:
        """Return the parts."""
        return Notice(
            code=self.code,
            message=self._message(language),
            layer=self.layer or UNSET,
            source_ref=self.source_ref or UNSET,
            details=dict(self.details) or UNSET,
        )

    def with_redacted_texts(self, redact: Callable[[str], str]) -> "Caution":
        """Return the same with every text redacted, except for the catalogue's own."""
        details = ((k, redact(v) if isinstance(v, str) else v) for k, v in self.details)
        return replace(
            self,
            wording=self.wording
            and (self.wording if _is_general(self) else Wording(*map(redact, self.wording))),
            source_ref=self.source_ref and redact(self.source_ref),
            details=tuple(details),
        )

    def _message(self, language: Language) -> str:
        chinese = language is Language.CHINESE
        if language is Language.DEFAULT and self.code in SPELT_OUT:
            chinese = True
        return (self.wording or WARNINGS[self.code]).text(chinese=chinese)


class ShownWarnings(NamedTuple):
    """The warnings of a result, in both of their forms."""

    warnings: list[str]
    notices: list[Notice]


def show(cautions: Iterable[Caution], language: Language = Language.DEFAULT) -> ShownWarnings:
    """Return warnings for a client, in its language."""
    texts, notices = _shown(tuple(cautions), language)
    return ShownWarnings([*texts], [*notices])


# Each assembly of a project has the same few.
@lru_cache(maxsize=KEPT_WARNINGS)
def _shown(
    cautions: tuple[Caution, ...], language: Language
) -> tuple[tuple[str, ...], tuple[Notice, ...]]:
    texts = tuple([one.text(language) for one in cautions])
    return texts, tuple([one.notice(language) for one in cautions])


@cache
def _general(code: WarningCode) -> Caution:
    return Caution(code=code, wording=WARNINGS[code])


def caution(code: WarningCode, source_ref: str = "") -> Caution:
    """Warn with the text of the catalogue."""
    if not source_ref:
        return _general(code)
    return Caution(code=code, wording=WARNINGS[code], source_ref=source_ref)


def _is_general(given: Caution) -> bool:
    return given.wording == WARNINGS[given.code]
