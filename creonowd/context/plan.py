"""The plan of one assembly: the request, what its skill asks for, and the budget.

It decides which sources are asked; nothing that a skill did not ask for is read.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple

from creonowd.context.budget import Allowances
from creonowd.context.fragment import Caution, Layer, Omission, Span
from creonowd.context.language import CHINESE, ManuscriptLanguage, PromptFrame
from creonowd.context.story import Story, StoryDocument, StoryPlace
from creonowd.errors import WarningCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.text import count_line_ends
from creonowd.tokens.boundaries import (
    CONTEXT,
    grapheme_ceiling,
    grapheme_floor,
    is_abbreviation,
    paragraphs,
    sentences,
)

MAX_SURROUNDING = 20_000
MAX_RECENT_SUMMARY = 10
MAX_SYNOPSIS = 1000
LONGEST_QUERY = 2000
# How far before the end of the query a sentence may stand that is searched for by itself.
SENTENCE_REACH = 2000
# The query moves `QUERY_STEPS` window steps at a time. Passages of the earlier query keep their
# place, for at most `QUERIES - 1` moves; then the order starts anew.
QUERY_STEPS, QUERIES = 4, 4
CHUNK_LIMIT = 200
MOST_SUMMARIES = 3
EVERYTHING = "all"
LONGEST_SENTENCE = 200
SETTLED_STEP = 256
# Five hundred authors, each with the sentences before and after where the query ends.
KEPT_CHARACTERS = 8_000_000
STEPS = 4
# What the story so far may take of the budget, or of the skill's target if that is less.
SYNOPSIS_PERCENT = 15
# The same in a long budget, which has whole chapters.
LONG_SYNOPSIS_PERCENT = 60
# Its chapters with a line each stand before those whose summary, or whose text, is given in full.
FAR_CHAPTERS, NEAR_CHAPTERS = 0, 1

PLACES = ("text", "selection", "instruction", "title")

_BLANK = re.compile(r"\n[^\S\n]*(?=\n)")
_NO_BLANK = re.compile(r"\S")
# All that decides whether a sentence has ended before: stops, brackets, blanks, and what follows.
_SENTENCE_TAIL = re.compile(r"[^\w\s]*\s*\S?")
_PLACE = re.compile(r"\{\{\s*([^{}\s]*)\s*\}\}")


class ContextRules(Model):
    """What a skill asks to see; everything is off unless asked for."""

    surrounding: int = 0
    """How many code points around the cursor; 0 for none of the document."""
    user_preferences: bool = False
    """Whether to include `.creonow/settings/memory.json`, and what hosts remember."""
    style_guide: bool = False
    """Whether to include `.creonow/rules/style.md`."""
    characters: bool = False
    """Whether to include the characters."""
    outline: bool = False
    """Whether to include the outline."""
    recent_summary: int = 0
    """How many of the author's last accepted runs on this document to include."""
    knowledge_graph: bool = False
    """Whether to ask hosts for their knowledge graph."""
    retrieval: bool | Literal["all"] = False
    """Whether to search for earlier passages: true is what lies before the cursor in the story,
    `all` is everything."""
    synopsis: bool | int = False
    """The story so far: of all chapters before the cursor (true), or of so many."""


class Need(StrEnum):
    """The key of `context_rules` that asks for a source; a source with `always` needs none.

    `evidence` is asked for by either of two: mentioned entities are characters to one skill and
    part of the graph to another.
    """

    ALWAYS = "always"
    """Every skill gets it."""
    SURROUNDING = "surrounding"
    """The text around the cursor."""
    USER_PREFERENCES = "user_preferences"
    """The rules of the memory."""
    STYLE_GUIDE = "style_guide"
    """Style guide and terms."""
    CHARACTERS = "characters"
    """Characters, and the texts of the settings."""
    OUTLINE = "outline"
    """Outlines, and threads of the plot."""
    RECENT_SUMMARY = "recent_summary"
    """What accepted runs wrote here."""
    KNOWLEDGE_GRAPH = "knowledge_graph"
    """What a knowledge graph offers."""
    RETRIEVAL = "retrieval"
    """Passages of other chapters."""
    SYNOPSIS = "synopsis"
    """The story so far."""
    EVIDENCE = "evidence"
    """Cards that come when they are mentioned; `characters` or `knowledge_graph` asks for them."""


class Summary(StrEnum):
    """What a skill may rely on: the story so far, and how the people on the page are related.

    The summaries of the chapters and the characters' cards give it, or a host does.
    """

    FULL_TEXT = "full_text"
    """The story so far."""
    RELATIONS = "relations"
    """How the people on the page are related."""


_NEED_DOCUMENT = (
    Need.SURROUNDING,
    Need.CHARACTERS,
    Need.OUTLINE,
    Need.KNOWLEDGE_GRAPH,
    Need.RETRIEVAL,
)


def wants(rules: ContextRules | None, need: Need) -> bool:
    """Return whether a skill asks for something; the general profile (None) asks for everything."""
    if rules is None or need is Need.ALWAYS:
        return True
    if need is Need.EVIDENCE:
        return rules.characters or rules.knowledge_graph
    return bool(getattr(rules, need.value))


def wants_document(rules: ContextRules | None) -> bool:
    """Return whether anything that a skill asks for depends on the document's text."""
    return any(wants(rules, need) for need in _NEED_DOCUMENT)


class Task(Model):
    """The instructions of a skill to the model, with places such as `{{text}}`."""

    template: str = ""

    @property
    def places(self) -> frozenset[str]:
        """The names of all places in the template, known or not."""
        return frozenset(_PLACE.findall(self.template))

    @property
    def shows_selection(self) -> bool:
        """Whether the task shows the selection, so that nothing else needs to."""
        return bool(self.places & {"text", "selection"})

    @property
    def shows_instruction(self) -> bool:
        """Whether the task shows the additional input, so that nothing else needs to."""
        return "instruction" in self.places

    def fill(self, values: Mapping[str, str], frame: PromptFrame = CHINESE) -> str:
        """Put values into the places, each text once.

        `{{text}}` and `{{selection}}` are the same text. Without a selection they refer to the
        text above; any other place without a value says that there is none.
        """
        filled: set[str] = set()

        def value_of(match: re.Match[str]) -> str:
            name = "selection" if match[1] == "text" else match[1]
            if name in filled and name != "title":
                return frame.before
            filled.add(name)
            return values.get(match[1]) or (
                frame.elsewhere if name == "selection" else frame.nothing
            )

        return _PLACE.sub(value_of, self.template)


class SkillNeeds(Model):
    """The part of a skill that decides an assembly; `rules` None is the general profile.

    `skill_id` is empty if there is no skill.
    """

    skill_id: str
    name: str = ""
    names: Wording = Wording("", "")
    rules: ContextRules | None = None
    task: Task = Task()
    target_tokens: int | None = None
    requires_selection: bool = False
    summaries: tuple[Summary, ...] = ()


class Document(Model, cache_hash=True):
    """A document and where its author is in it.

    `front_matter` stands above the text in its file and is no part of the prompt; positions are
    those in the text.
    """

    source_ref: str
    text: str
    cursor: int
    selection: Span | None = None
    front_matter: str = ""

    @property
    def here(self) -> Span:
        """The selection, else the cursor as an empty span."""
        return self.selection or Span(self.cursor, self.cursor)

    @property
    def first_line(self) -> int:
        """The line of the file on which the text begins."""
        return 1 + count_line_ends(self.front_matter)


class PlacedDocument(Model):
    """A document whose positions lie inside its text, and a warning if one had to be moved."""

    document: Document
    warnings: tuple[Caution, ...] = ()


def place(source_ref: str, text: str, cursor: int, selection: Span | None = None) -> PlacedDocument:
    """Place cursor and selection in a document; what lies beyond its end is clamped to it.

    Neither may lie inside a grapheme: the cursor moves before it, the selection includes it.
    """
    end = len(text)
    beyond = cursor > end or (selection is not None and selection.end > end)
    return PlacedDocument(
        document=Document(
            source_ref=source_ref,
            text=text,
            cursor=grapheme_floor(text, min(cursor, end)),
            selection=_clamp(selection, text),
        ),
        warnings=(
            (Caution(code=WarningCode.CONTEXT_CURSOR_CLAMPED, source_ref=source_ref),)
            if beyond
            else ()
        ),
    )


def _clamp(selection: Span | None, text: str) -> Span | None:
    end = len(text)
    if selection is None or selection.start >= min(selection.end, end):
        return None
    start, end = selection.start, min(selection.end, end)
    return Span(grapheme_floor(text, start), grapheme_ceiling(text, end))


class Plan(Model):
    """Everything that decides one assembly, except what the sources return.

    `here` is the author's place in the story; None if the document is outside of it. `previous`
    is the chapter before, if the window reaches into it or the page is empty; then `outline` is
    what the outline says of this chapter.
    """

    project_id: str
    document_id: str
    skill: SkillNeeds
    allowances: Allowances
    document: Document | None = None
    additional_input: str = ""
    warnings: tuple[Caution, ...] = ()
    left_out: tuple[Omission, ...] = ()
    source_timeout_ms: int = 10_000
    story: Story = Story()
    here: StoryPlace | None = None
    language: ManuscriptLanguage = ManuscriptLanguage.CHINESE
    previous: Document | None = None
    outline: str = ""
    pinned: frozenset[str] = frozenset()

    @property
    def surrounding(self) -> int | None:
        """How many code points to show on each side of the cursor; None is as many as fit."""
        return surrounding(self.skill.rules, self.allowances)

    @property
    def step(self) -> int:
        """The step in which the window and the query move."""
        return step(self.allowances, self.surrounding)

    @property
    def sees_future(self) -> bool:
        """Whether passages from after the author's place are wanted, too."""
        rules = self.skill.rules
        return rules is not None and rules.retrieval == EVERYTHING


def surrounding(rules: ContextRules | None, allowances: Allowances) -> int | None:
    """Return how many code points a skill shows on each side of the cursor; None: as many as fit.

    In a long budget it is no less than the share of Immediate: whole chapters before the author's
    own, and a hole where that begins, would make no sense.
    """
    if rules is None:
        return None
    if allowances.long and rules.surrounding:
        return max(rules.surrounding, allowances.share(Layer.IMMEDIATE))
    return rules.surrounding


def missing_before(allowances: Allowances, surrounding: int | None, cursor: int) -> int:
    """Return how many code points the chapter before adds to a window that begins with its own.

    The cursor counts in whole steps, so that the chapter before is cut elsewhere only with them.
    """
    width = allowances.share(Layer.IMMEDIATE) if surrounding is None else surrounding
    grid = step(allowances, surrounding)
    return max(0, width - -(-cursor // grid) * grid)


def previous_start(plan: Plan) -> int:
    """Return from where on the chapter before is shown: a paragraph, else a sentence."""
    if plan.previous is None or plan.document is None:
        return 0
    text = plan.previous.text
    cursor = plan.document.here.start
    missing = missing_before(plan.allowances, plan.surrounding, cursor)
    mark = len(text) - missing
    if mark <= 0 or missing == 0:
        return max(0, mark)
    for boundaries in (paragraphs, sentences):
        found = next(boundaries(text, mark - 1, mark + missing // 2), None)
        if found is not None:
            return found
    return grapheme_ceiling(text, mark)


def synopsis_share(plan: Plan) -> int:
    """Return how many tokens the story so far may take at most."""
    total, target = plan.allowances.total, plan.skill.target_tokens
    if plan.allowances.long:
        return total * LONG_SYNOPSIS_PERCENT // 100
    return (total if target is None else min(total, target)) * SYNOPSIS_PERCENT // 100


def earlier_chapters(plan: Plan) -> tuple[StoryDocument, ...] | None:
    """Return the chapters to sum up, all before the author's; None outside of the story."""
    rules = plan.skill.rules
    if plan.here is None or not wants(rules, Need.SYNOPSIS):
        return None
    before = plan.story.documents[: plan.here.document]
    wanted = True if rules is None else rules.synopsis
    return before if wanted is True else before[-wanted:]


def shows_document(plan: Plan) -> bool:
    """Return whether the text around the cursor is wanted."""
    wanted = wants(plan.skill.rules, Need.SURROUNDING)
    return wanted and Layer.IMMEDIATE not in plan.allowances.off


def step(allowances: Allowances, surrounding: int | None) -> int:
    """Return the step G in which window and query move; it depends on skill and profile alone."""
    width = allowances.share(Layer.IMMEDIATE) if surrounding is None else surrounding
    return max(1, width // STEPS)


def minimum_step(allowances: Allowances) -> int:
    """Return what to reserve beside Immediate's minimum so that a window on a grid reaches it.

    It depends on the minimum alone, so that all other tokens of a larger budget are free.
    """
    return allowances.minimum(Layer.IMMEDIATE) // STEPS


def query(text: str, end: int) -> str:
    """Return the text to search with, given where it ends."""
    return text[max(0, end - LONGEST_QUERY) : end]


def query_ends(text: str, cursor: int, step: int) -> tuple[int, ...]:
    """Return where the text to search with ends, last of all, and where it ended just before.

    Passages of the document end before that, too. It moves in steps that are coarser than those
    of the window; at the beginning of a document they are smaller, and within the first of them
    it ends with the last whole paragraph.
    """
    grid = max(step, min(QUERY_STEPS * step, LONGEST_QUERY))
    number = cursor // grid
    if number:
        return tuple(grid * n for n in range(number - (number - 1) % QUERIES, number + 1))
    first = next((part for part in (grid // 2, grid // 4) if 0 < part <= cursor), 0)
    return (first or max(paragraphs(text, 0, cursor), default=0),)


class LastSentences(NamedTuple):
    """Whole sentences before the cursor that are searched for one by one.

    Those that end before the query does, and later ones.
    """

    before_query_end: tuple[str, ...] = ()
    after_query_end: tuple[str, ...] = ()


class WholeSentences(NamedTuple):
    """The sentences of a stretch of text, each once, and where the last of them ends."""

    sentences: tuple[str, ...]
    end: int


_whole_sentences: Memo[tuple[str, int, int, int], WholeSentences] = Memo(
    KEPT_CHARACTERS, lambda key, _found: 1000 + 2 * len(key[0])
)


def last_sentences(text: str, end: int, cursor: int) -> LastSentences:
    """Return the sentences that end before the query's end, and those between it and the cursor.

    An unfinished sentence is not searched for: its query would change with every letter.
    """
    start = max(0, end - SENTENCE_REACH)
    first = max(0, start - CONTEXT)
    # What ends up to `end` depends on nothing behind the next visible character.
    seen = _NO_BLANK.search(text, end, cursor)
    first_part = _kept_sentences(
        text[first : cursor if seen is None else seen.end()],
        start - first,
        end - first,
        start - first,
    )
    # A sentence, and what decides where it ends, begin no earlier than this before it.
    first, before_end = max(0, end - CONTEXT - LONGEST_SENTENCE), first + first_part.end
    text, end, cursor = text[first:cursor], end - first, cursor - first
    begin = max(0, before_end - first)
    # The same up to a place that moves in steps: to look for all after each letter took 15 µs a page.
    settled = end + (cursor - end) // SETTLED_STEP * SETTLED_STEP
    stop = _SENTENCE_TAIL.match(text, settled)
    stretch = text if stop is None else text[: stop.end()]
    second_part = _kept_sentences(stretch, end, settled, begin)
    rest = _sentences_in(text, settled, cursor, second_part.end)
    added = dict.fromkeys((*second_part.sentences, *rest.sentences))
    # A set: to compare a hundred sentences with each of sixty took 80 µs.
    known = frozenset(first_part.sentences)
    new = tuple([sentence for sentence in added if sentence not in known])
    return LastSentences(first_part.sentences, new)


def _kept_sentences(text: str, start: int, end: int, begin: int) -> WholeSentences:
    return _whole_sentences.get(
        (text, start, end, begin), lambda: _sentences_in(text, start, end, begin)
    )


def _sentences_in(text: str, start: int, end: int, begin: int) -> WholeSentences:
    """Return the sentences that end in `(start, end]`; the first begins at `begin`."""
    found: dict[str, None] = {}
    stops = (at for at in sentences(text, start, end) if not is_abbreviation(text, at))
    blanks = (match.start() for match in _BLANK.finditer(text, start) if match.start() <= end)
    for stop in sorted({*stops, *blanks}):
        sentence = text[max(begin, stop - LONGEST_SENTENCE) : stop].strip()
        begin = stop
        if sentence:
            found[sentence] = None
    return WholeSentences(tuple(found), begin)
