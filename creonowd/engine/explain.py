"""Answer what an author asks: does the model know this, and if not, why not and what to do.

Names and references are looked up, other words are searched for: in the prompt first, then among
the candidates, then in all documents and files of the project, ignored ones included. Whatever was
a candidate is answered by the evidence on it. No answer confirms a secret.
"""

import contextlib
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import asdict, replace

from creonowd.context.candidates import Decision
from creonowd.context.dynamic_layers import INPUT_REF
from creonowd.context.explanation import (
    AT_LINE,
    CAUSE_SENTENCES,
    FAULT,
    IN_PROMPT,
    NOT_IN_PROJECT,
    NOT_NAMED,
    ONE_TOKEN_MISSING,
    PARTLY_IN_PROMPT,
    RANKED,
    RANKED_NONE_FIT,
    TOKENS_MISSING,
    TOO_LARGE,
    Cause,
    ExplainVerdict,
    Explanation,
    QuotedPlace,
    RankedAhead,
    Remedy,
    RemedyKind,
    SubjectAnswer,
    best_decision,
    rivals,
    verdict_on,
)
from creonowd.context.fragment import Action, FragmentKind, Layer, Rule
from creonowd.context.inspection import fits_with
from creonowd.context.numerals import whole_number
from creonowd.context.plan import Need, wants
from creonowd.context.prompt_coverage import (
    DocumentText,
    PieceKind,
    PromptText,
    chapter_number,
    chapter_title,
    kind_of,
    prompt_text,
)
from creonowd.engine.assembly import AssembleContext, ClientAssembly, WhatIf, assemble_for_client
from creonowd.engine.inspection_parts import (
    document_texts,
    piece_names,
    positions_of,
    visible_texts,
)
from creonowd.engine.services import Session, may_inspect
from creonowd.errors import DaemonError, ErrorCode, Language, WarningCode, Wording
from creonowd.model import Params, Result
from creonowd.redaction import Redactor
from creonowd.retrieval.document_list import MAX_ENTRIES, hiding_line
from creonowd.sources.characters import Inject
from creonowd.sources.project_files import STYLE
from creonowd.sources.subjects import Subject, SubjectKind, plain, subjects_of
from creonowd.storage import front_matter
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.text import decode_text, file_stem, join_lines
from creonowd.threads import call_in_thread, until_stopped
from creonowd.tokens.boundaries import is_abbreviation, sentences
from creonowd.workspace.creonow_tree import MEMORY, TERMINOLOGY_FILE, is_document, is_outline
from creonowd.workspace.projects import Project

LONGEST_QUESTION = 400
LONGEST_QUOTE = 200
MOST_OTHERS = 8
MOST_PLACES = 20
MOST_AHEAD = 5
MOST_IGNORED, LARGEST_IGNORED = 400, 1024 * 1024

_KINDS = {
    PieceKind.PERSON: SubjectKind.PERSON,
    PieceKind.RELATIONS: SubjectKind.PERSON,
    PieceKind.NOTE: SubjectKind.NOTE,
    PieceKind.OUTLINE: SubjectKind.NOTE,
    PieceKind.PREFERENCE: SubjectKind.NOTE,
    PieceKind.RULE: SubjectKind.RULE,
    PieceKind.CONSTRAINT: SubjectKind.RULE,
    PieceKind.THREAD: SubjectKind.THREAD,
    PieceKind.SUMMARY: SubjectKind.SUMMARY,
    PieceKind.CHAPTER: SubjectKind.CHAPTER,
    PieceKind.DOCUMENT: SubjectKind.CHAPTER,
    PieceKind.PREVIOUS: SubjectKind.CHAPTER,
}
_LAYERS = {
    SubjectKind.PERSON: Layer.RULES,
    SubjectKind.RULE: Layer.RULES,
    SubjectKind.NOTE: Layer.SETTINGS,
    SubjectKind.THREAD: Layer.SETTINGS,
}
_RULE_SENTENCES = {Rule.SIZE_LIMIT: TOO_LARGE, Rule.NOT_MENTIONED: NOT_NAMED}
_WORD_GAP = re.compile(r"\s+")
# A line that ends in the middle of a sentence goes on in the next one, unless it is a heading.
_LINE_BREAK = re.compile(
    r"""(?<=[。！？…」』”.!?"'）)：:；;|])[ \t]*\r?\n|\n[ \t]*\r?\n|\n(?=[ \t]*[#>*|\-\d])"""
    r"""|(?m:^[ \t]*#[^\n]*\n)"""
)
_NAME_LINE = re.compile(r"""^["']?name["']?\s*:\s*["']?(.{1,200}?)["']?\s*,?\s*$""", re.MULTILINE)
_LINES = re.compile(r"(.+)#L(\d{1,9})-L(\d{1,9})", re.DOTALL)
_HEADING = re.compile(r"\A\s*#+ [^\n]*\n")
_GENERAL = Wording("the general profile", "通用")
_NO_QUESTION = Wording("`about` must not be blank.", "about 不能为空。")


class ExplainContext(AssembleContext):
    """Where the author is, as for `context:inspect`, and what the question is about."""

    about: Annotated[str, Meta(min_length=1, max_length=LONGEST_QUESTION)]
    """A name, a chapter, a path, a `sourceRef`, or any words."""
    debug_mode: bool = False
    """Must be true, else CONTEXT_INSPECT_FORBIDDEN."""
    what_if: WhatIf | None = None
    """Answer for what would be, and change nothing."""


class ListSubjects(Params):
    """The project whose names are asked for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""


class ListedSubject(Result):
    """Something that an author can ask about."""

    kind: SubjectKind
    """What it is."""
    name: str
    """What it is called."""
    source_ref: str
    """Where it stands: a path, for a constraint with its id."""
    aliases: list[str]
    """What else it is called."""
    inject: Inject | UnsetType = UNSET
    """When a card or a note comes into a prompt."""
    revision: str | UnsetType = UNSET
    """The SHA-256 of its file's bytes."""
    number: int | UnsetType = UNSET
    """The number of a chapter."""
    problem: str | UnsetType = UNSET
    """What is wrong with its file, if anything is."""
    line: int | UnsetType = UNSET
    """The line that is wrong."""


class SubjectList(Result):
    """All that an author can ask about by a name."""

    items: list[ListedSubject]
    """People first, then notes, rules, threads, and the chapters in the order of the story."""


async def list_subjects(session: Session, params: ListSubjects) -> SubjectList:
    """List people, notes, rules, threads and chapters by what they are called."""
    project = await session.projects.find(params.project_id)
    story = await session.chapters.story(project)
    found = await to_thread.run_sync(subjects_of, session.tree, session.constraints, project, story)
    chinese = session.connection.language is Language.CHINESE
    return await call_in_thread(_visible_subjects, session.redactor, found, chinese=chinese)


def _visible_subjects(
    redactor: Redactor, found: Sequence[Subject], *, chinese: bool
) -> SubjectList:
    """Hide the secrets in names; of 20 000 chapters that takes a second."""
    return SubjectList(
        items=[
            ListedSubject(
                kind=one.kind,
                name=names[0],
                aliases=names[1:],
                source_ref=redactor.redact_name(one.source_ref),
                inject=one.inject or UNSET,
                revision=one.revision or UNSET,
                number=UNSET if one.number is None else one.number,
                problem=(
                    UNSET
                    if one.problem is None
                    else redactor.redact(one.problem.text(chinese=chinese)).text
                ),
                line=UNSET if one.line is None else one.line,
            )
            for one in until_stopped(found)
            for names in [visible_texts(redactor, one.names)]
        ]
    )


async def explain_context(session: Session, params: ExplainContext) -> Explanation:
    """Say whether the model knows something, and if not, why not and what would change that."""
    if not (params.debug_mode and may_inspect(session)):
        raise DaemonError(ErrorCode.CONTEXT_INSPECT_FORBIDDEN)
    if not params.about.strip():
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, _NO_QUESTION, field="about")
    result = await assemble_for_client(session, params, params.what_if)
    project = await session.projects.find(params.project_id)
    texts = await document_texts(session, project, result.assembly)

    def answer() -> Explanation:
        inquiry = _Explainer(session, project, result, texts)
        found = inquiry.answers(params.about.strip())
        return Explanation(
            **asdict(found[0]),
            about=session.redactor.redact(params.about.strip()).text,
            others=found[1 : 1 + MOST_OTHERS],
        )

    return await to_thread.run_sync(answer)


class _Explainer:
    """Makes the answers from one assembly and what its project has."""

    def __init__(
        self,
        session: Session,
        project: Project,
        result: ClientAssembly,
        texts: Mapping[str, DocumentText],
    ) -> None:
        self._redactor, self._project, self._texts = session.redactor, project, texts
        self._positions = positions_of(session)
        self._chinese = session.connection.language is Language.CHINESE
        self._assembly, self._plan = result.assembly, result.assembly.plan
        self._prompt: PromptText = prompt_text(
            self._assembly, [], lambda _, places: {at: at for at in places}
        )
        self._called = piece_names(session.redactor, self._assembly)
        self._subjects = subjects_of(session.tree, session.constraints, project, self._plan.story)
        self._decisions = list(self._assembly.decisions())

    def answers(self, about: str) -> list[SubjectAnswer]:
        """Return what the question can mean, the likeliest first."""
        found = [*self._by_reference(about), *self._by_name(about)]
        if not found or found[0].verdict is not ExplainVerdict.IN:
            chapters = {one.source_ref for one in found if one.kind == SubjectKind.CHAPTER}
            found += (one for one in self._by_words(about) if _file_of(one) not in chapters)
        unique: dict[tuple[Any, ...], SubjectAnswer] = {}
        for one in found:
            unique.setdefault((one.kind, one.source_ref, one.start), one)
        return list(unique.values()) or [self._nowhere(about)]

    def _by_reference(self, about: str) -> Iterator[SubjectAnswer]:
        named = [one for one in self._decisions if one.evidence.source_ref == about]
        best = best_decision(named)
        if best is not None and "#" in about:
            yield self._decision_answer(best)
            return
        yield from (self._subject(one) for one in self._subjects if one.source_ref == about)
        yield from self._lines(about)

    def _lines(self, about: str) -> Iterator[SubjectAnswer]:
        """Answer for lines of a document that are no candidate by themselves, such as a pin's."""
        named = _LINES.fullmatch(about)
        path = next((p for p, one in self._texts.items() if named and one.name == named[1]), None)
        if named is None or path is None:
            return
        lines = self._texts[path].text.splitlines(keepends=True)
        first, last = int(named[2]) - 1, int(named[3])
        if first < last <= len(lines):
            start = sum(map(len, lines[:first]))
            text = "".join(lines[first:last])
            span = (start, start + len(text))
            around = best_decision(self._around(path, start, start + len(text.rstrip())))
            if around is not None:
                yield self._decision_answer(around, SubjectKind.PASSAGE, self._title(path))
            else:
                yield self._document_answer(path, self._title(path), SubjectKind.PASSAGE, span)

    def _around(self, path: str, start: int, end: int) -> list[Decision]:
        """Return the candidates that hold a part of a document."""
        extents = ((one, one.fragment.extent) for one in self._decisions)
        return [
            one
            for one, extent in extents
            if extent is not None
            and extent.path == path
            and extent.start <= start
            and end <= extent.end
        ]

    def _by_name(self, about: str) -> Iterator[SubjectAnswer]:
        name = plain(about)
        called = [one for one in self._subjects if one.is_called(name) or _has_name_line(one, name)]
        yield from map(self._subject, called)
        if called:
            return
        place = self._plan.story.find(about)
        if place.known and place.place.document < len(self._plan.story.documents):
            document = self._plan.story.documents[place.place.document]
            counted = whole_number(about)
            number = chapter_number(document, place.place.document)
            if counted is None or counted.value == number:
                yield self._chapter(document.path)

    def _by_words(self, about: str) -> Iterator[SubjectAnswer]:
        if self._redactor.find(about):
            return
        pattern = re.compile(r"\s+".join(map(re.escape, about.split())), re.IGNORECASE)
        places = list(self._in_prompt(pattern))
        shown = [one for one in places if one[0] != INPUT_REF]
        if shown:
            yield self._quote_answer(about, shown)
            return
        found = list(self._outside_prompt(about, pattern))
        yield from found
        if places and not found:
            yield self._quote_answer(about, places)

    def _outside_prompt(self, about: str, pattern: re.Pattern[str]) -> Iterator[SubjectAnswer]:
        """Return where in the project words stand that the prompt has not, or only as an input."""
        held = [one for one in self._decisions if not one.is_kept and pattern.search(one.text)]
        best = best_decision(held)
        if best is not None and (match := pattern.search(best.text)) is not None:
            quote = _excerpt(best.text, *match.span())
            yield self._decision_answer(best, words=about, quote=quote)
        yield from self._in_documents(about, pattern, {id(one) for one in held})
        yield from self._in_files(pattern)
        if best is None:
            yield from self._in_ignored_files(about, pattern)

    def _in_prompt(self, pattern: re.Pattern[str]) -> Iterator[tuple[str, int, int]]:
        """Return where words stand in the prompt, frame aside, with what they stand in.

        Summaries come last: a list of who occurs in a chapter says less than any other text.
        """
        text = self._prompt.text
        for span in sorted(self._prompt.spans, key=lambda one: one.kind is PieceKind.SUMMARY):
            if span.kind is PieceKind.FRAME or not isinstance(span.source_ref, str):
                continue
            for match in pattern.finditer(text, span.start, span.end):
                yield span.source_ref, match.start(), match.end()

    def _quote_answer(self, about: str, shown: Sequence[tuple[str, int, int]]) -> SubjectAnswer:
        ref, start, end = shown[0]
        return SubjectAnswer(
            verdict=ExplainVerdict.IN,
            kind=SubjectKind.WORDS,
            name=self._visible(about),
            sentence=self._say(IN_PROMPT, _quoted_name(self._visible(about))),
            remedies=[],
            source_ref=ref,
            quote=_excerpt(self._prompt.text, start, end),
            places=self._places((one[1], one[2]) for one in shown[:MOST_PLACES]),
        )

    def _places(self, spans: Iterable[tuple[int, int]]) -> list[QuotedPlace]:
        listed = list(spans)
        at = self._positions(self._prompt.text, {place for span in listed for place in span})
        return [QuotedPlace(start=at[start], end=at[end]) for start, end in listed]

    def _decision_answer(
        self,
        decision: Decision,
        kind: SubjectKind | None = None,
        name: str = "",
        words: str = "",
        quote: str = "",
    ) -> SubjectAnswer:
        """Answer by the evidence on a candidate; without a quote it is quoted from its beginning."""
        evidence, ref = decision.evidence, decision.evidence.source_ref
        piece = kind_of(decision, self._plan.document_id)
        kind = kind or _KINDS.get(piece, SubjectKind.PASSAGE)
        name = name or self._called.get(ref) or ref
        verdict, cause = verdict_on(decision)
        fields: dict[str, Any] = {
            "verdict": verdict,
            "kind": kind,
            "name": self._visible(name),
            "source_ref": ref,
            "rule": evidence.rule,
            "layer": evidence.layer,
            "quote": quote or _first_words(decision.text) or UNSET,
            **self._extent(decision),
        }
        shown = _quoted_name(self._visible(words)) if words else fields["name"]
        if cause is None:
            spans = (s for s in self._prompt.spans if s.source_ref == ref)
            is_cut = evidence.action is Action.TRIMMED
            return SubjectAnswer(
                **fields,
                sentence=self._say(PARTLY_IN_PROMPT if is_cut else IN_PROMPT, shown),
                remedies=self._whole_remedies(decision) if is_cut else [],
                trimmed=is_cut,
                places=self._places((s.start, s.end) for s in spans),
            )
        missing = fits_with(self._assembly, decision)
        ranked = rivals(self._assembly, decision) if verdict is ExplainVerdict.LEFT_OUT else []
        taken = [one for one in ranked if one.is_kept]
        rank = ranked.index(decision) + 1 if ranked else None
        subject = next(
            (s for s in self._subjects if s.source_ref == decision.fragment.source_ref), None
        )
        fault = subject.problem if cause is Cause.BROKEN_FILE and subject is not None else None
        line = subject.line if fault is not None and subject is not None else None
        sentence = self._sentence(cause, shown, line)
        if rank is not None and cause is Cause.OVER_BUDGET:
            ranked_wording = RANKED if taken else RANKED_NONE_FIT
            sentence = self._say(ranked_wording, shown, rank, len(ranked), len(taken))
        elif evidence.rule in _RULE_SENTENCES:
            sentence = self._say(_RULE_SENTENCES[evidence.rule], shown)
        if missing is not None:
            sentence += self._say(ONE_TOKEN_MISSING if missing == 1 else TOKENS_MISSING, missing)
        return SubjectAnswer(
            **fields,
            sentence=sentence,
            cause=cause,
            remedies=self._remedies(
                cause, ref, kind, missing=missing, subject=subject, decision=decision
            ),
            rank=UNSET if rank is None else rank,
            among=len(ranked) or UNSET,
            taken=len(taken) if ranked else UNSET,
            missing_tokens=UNSET if missing is None else missing,
            ahead=[self._ahead(one) for one in taken[:MOST_AHEAD]] or UNSET,
            line=UNSET if line is None else line,
            problem=UNSET if fault is None else self._problem(fault),
        )

    def _whole_remedies(self, decision: Decision) -> list[Remedy]:
        """Return what would bring in all of a piece that is shortened."""
        if decision.evidence.rule is Rule.SKILL_WINDOW:
            return [Remedy(do=RemedyKind.WIDEN_WINDOW)]
        missing = fits_with(self._assembly, decision)
        return [] if missing is None else [self._more_room(missing)]

    def _more_room(self, missing: int | None) -> Remedy:
        allowances = self._plan.allowances
        total = allowances.profile_total(allowances.total)
        return Remedy(
            do=RemedyKind.RAISE_BUDGET,
            total_budget_tokens=UNSET if missing is None else total + missing,
        )

    def _ahead(self, decision: Decision) -> RankedAhead:
        ref, score = decision.evidence.source_ref, decision.score
        return RankedAhead(
            source_ref=ref,
            name=self._called.get(ref, ref),
            tokens=decision.tokens,
            score=UNSET if score is None else score,
        )

    def _extent(self, decision: Decision) -> dict[str, Any]:
        extent = decision.fragment.extent
        text = None if extent is None else self._texts.get(extent.path)
        if extent is None or text is None:
            return {}
        return self._place(extent.path, extent.start, min(extent.end, len(text.text)))

    def _place(self, path: str, start: int, end: int) -> dict[str, Any]:
        text = self._texts[path]
        at = self._positions(text.text, {start, end})
        return {"document_id": text.name, "start": at[start], "end": at[end]}

    def _subject(self, subject: Subject) -> SubjectAnswer:
        if subject.kind is SubjectKind.CHAPTER:
            return self._chapter(subject.source_ref)
        ref = subject.source_ref
        about = [
            one
            for one in self._decisions
            if one.fragment.source_ref == ref
            or (one.fragment.source_ref.startswith(f"{ref}#") and "#" not in ref)
        ]
        own = [one for one in about if one.fragment.source_ref == ref]
        best = best_decision(own) or best_decision(about)
        if best is not None:
            return self._decision_answer(best, subject.kind, subject.names[0])
        return self._no_candidate_answer(subject)

    def _no_candidate_answer(self, subject: Subject) -> SubjectAnswer:
        cause, need = self._cause(subject)
        name = self._visible(subject.names[0])
        ref = self._redactor.redact_name(subject.source_ref)
        return SubjectAnswer(
            verdict=ExplainVerdict.NEVER_CONSIDERED,
            kind=subject.kind,
            name=name,
            sentence=self._sentence(cause, name, subject.line),
            remedies=self._remedies(cause, ref, subject.kind, subject=subject, need=need),
            source_ref=ref,
            cause=cause,
            line=UNSET if subject.line is None else subject.line,
            problem=UNSET if subject.problem is None else self._problem(subject.problem),
        )

    def _cause(self, subject: Subject) -> tuple[Cause, Need]:
        """Return why something of `.creonow` was no candidate, and the need that asks for it."""
        need, inject = _need_of(subject), subject.inject
        layer = _LAYERS.get(subject.kind, Layer.RETRIEVED)
        if inject in {Inject.MENTIONED, Inject.MANUAL}:
            layer = Layer.RETRIEVED
        rules, allowances = self._plan.skill.rules, self._plan.allowances
        causes = (
            (Cause.BROKEN_FILE, subject.problem is not None),
            (Cause.SET_TO_NEVER, inject is Inject.NEVER),
            (Cause.LAYER_OFF, layer in allowances.off),
            (Cause.SKILL_DOES_NOT_READ, not wants(rules, need)),
            (Cause.SET_TO_MANUAL, inject is Inject.MANUAL),
            (Cause.NOT_MENTIONED, inject is Inject.MENTIONED),
            (Cause.EMPTY, not front_matter.split(subject.text).body.strip()),
            (Cause.SOURCE_FAILED, any(one.layer is layer for one in self._assembly.failures)),
        )
        return next((cause for cause, holds in causes if holds), Cause.EMPTY), need

    def _chapter(self, path: str) -> SubjectAnswer:
        """Answer for a whole document: by its text, its summary or a passage of it."""
        name = self._title(path)
        parts = [one for one in self._decisions if _is_about(one, path)]
        considered = [one for one in parts if one.evidence.rule is not Rule.FUTURE]
        best = best_decision(considered)
        if best is not None:
            answer = self._decision_answer(best, SubjectKind.CHAPTER, name)
            whole = answer.verdict is ExplainVerdict.IN and self._is_whole(path, considered)
            if answer.verdict is ExplainVerdict.IN and not whole:
                sentence = self._say(PARTLY_IN_PROMPT, self._visible(name))
                return replace(answer, trimmed=True, sentence=sentence)
            return answer
        text = self._texts.get(path)
        if text is None:
            return self._unread(path, name)
        return self._document_answer(path, name, SubjectKind.CHAPTER, (0, len(text.text)))

    def _is_whole(self, path: str, decisions: Iterable[Decision]) -> bool:
        text = self._texts.get(path)
        shown = [one.fragment.extent for one in decisions if one.is_kept]
        if text is None:
            return False
        return any(
            extent is not None
            and extent.start <= text.front_matter
            and not text.text[extent.end :].strip()
            for extent in shown
        )

    def _unread(self, path: str, name: str) -> SubjectAnswer:
        ref = self._redactor.redact_name(path)
        return SubjectAnswer(
            verdict=ExplainVerdict.NEVER_CONSIDERED,
            kind=SubjectKind.CHAPTER,
            name=self._visible(name),
            sentence=self._sentence(Cause.BROKEN_FILE, self._visible(name), None),
            remedies=[Remedy(do=RemedyKind.FIX_FILE, path=ref)],
            source_ref=ref,
            cause=Cause.BROKEN_FILE,
        )

    def _document_answer(
        self, path: str, name: str, kind: SubjectKind, span: tuple[int, int], words: str = ""
    ) -> SubjectAnswer:
        """Answer for a part of a document that is no part of any candidate."""
        cause, need = self._document_cause(path, span[0])
        text = self._texts[path]
        shown = _quoted_name(self._visible(words)) if words else self._visible(name)
        place = self._place(path, *span)
        quote: str | UnsetType = UNSET
        if words:
            quote = self._redactor.redact(_excerpt(text.text, *span)).text
        ref = f"{text.name}#{_paragraph(text.text, *span)}" if words else text.name
        remedies = self._remedies(cause, ref, kind, need=need, words=words or name)
        if cause is Cause.FUTURE:
            moved = Remedy(do=RemedyKind.MOVE_CURSOR, document_id=text.name, position=place["end"])
            remedies = [moved]
        return SubjectAnswer(
            verdict=ExplainVerdict.NEVER_CONSIDERED,
            kind=kind,
            name=self._visible(name),
            sentence=self._sentence(cause, shown, None),
            remedies=remedies,
            source_ref=ref,
            cause=cause,
            quote=quote,
            **place,
        )

    def _document_cause(self, path: str, position: int) -> tuple[Cause, Need]:
        plan, document = self._plan, self._plan.document
        rules = plan.skill.rules
        is_here = path == plan.document_id and document is not None
        is_future = plan.story.is_future(path, plan.here)
        if document is not None and is_here:
            cursor = len(document.front_matter) + document.here.end
            is_future = plan.here is not None and position >= cursor
        need = Need.SURROUNDING if is_here else Need.RETRIEVAL
        layer = Layer.IMMEDIATE if is_here else Layer.RETRIEVED
        codes = {one.code for one in self._assembly.warnings}
        causes = (
            (Cause.FUTURE, is_future and not plan.sees_future),
            (Cause.LAYER_OFF, layer in plan.allowances.off),
            (Cause.SKILL_DOES_NOT_READ, not wants(rules, need)),
            (Cause.OUTSIDE_WINDOW, is_here),
            (Cause.INDEX_BUILDING, WarningCode.RETRIEVAL_INDEXING in codes),
            (Cause.SOURCE_FAILED, any(f.source == "retrieval" for f in self._assembly.failures)),
        )
        return next((cause for cause, holds in causes if holds), Cause.NO_SHARED_WORDS), need

    def _in_documents(
        self, about: str, pattern: re.Pattern[str], held: set[int]
    ) -> Iterator[SubjectAnswer]:
        """Return one answer for each document that has the words where no candidate has them."""
        extents = [one.fragment.extent for one in self._decisions if id(one) in held]
        for path in self._nearest_first():
            text = self._texts[path]
            matches = [match.span() for match in pattern.finditer(text.text, text.front_matter)]
            covered = [e for e in extents if e is not None and e.path == path]
            matches = [
                span
                for span in matches
                if not any(e.start <= span[0] and span[1] <= e.end for e in covered)
            ]
            if matches and (span := self._first_visible(text.text, matches)) is not None:
                yield self._document_answer(path, self._title(path), SubjectKind.WORDS, span, about)

    def _first_visible(self, text: str, spans: Sequence[tuple[int, int]]) -> tuple[int, int] | None:
        """Return the first of some places that is no part of a secret."""
        secrets = self._redactor.find(text)
        return next(
            (
                (start, end)
                for start, end in spans
                if not any(one.start < end and start < one.end for one in secrets)
            ),
            None,
        )

    def _nearest_first(self) -> list[str]:
        """Return the documents: the author's own, those before it from the nearest on, the rest."""
        story, here = self._plan.story, self._plan.here
        before = story.paths if here is None else story.paths[: here.document + 1]
        after = () if here is None else story.paths[here.document + 1 :]
        listed = [self._plan.document_id, *reversed(before), *after, *story.paths_outside]
        return [path for path in dict.fromkeys(listed) if path in self._texts]

    def _in_files(self, pattern: re.Pattern[str]) -> Iterator[SubjectAnswer]:
        for subject in self._subjects:
            spans = [match.span() for match in pattern.finditer(subject.text)]
            if not spans or self._first_visible(subject.text, spans) is None:
                continue
            answer = self._subject(subject)
            if answer.verdict is not ExplainVerdict.IN:
                yield answer

    def _in_ignored_files(self, about: str, pattern: re.Pattern[str]) -> Iterator[SubjectAnswer]:
        """Return which file that is left out has the words; none of its text is quoted."""
        for path in _ignored_files(self._project.root, self._texts):
            try:
                data = LinkedFolder(self._project.root).snapshot(path, limit=LARGEST_IGNORED).data
                text = decode_text(data).text
            except DaemonError:
                continue
            spans = [match.span() for match in pattern.finditer(text)]
            if not spans or self._first_visible(text, spans) is None:
                continue
            ref = self._redactor.redact_name(path)
            remedy = Remedy(do=RemedyKind.INCLUDE_FILE, path=ref)
            if (hidden := hiding_line(self._project.root, path)) is not None:
                file = self._redactor.redact_name(hidden.file)
                remedy = replace(remedy, ignore_file=file, line=hidden.line)
            yield SubjectAnswer(
                verdict=ExplainVerdict.NEVER_CONSIDERED,
                kind=SubjectKind.WORDS,
                name=self._visible(about),
                sentence=self._sentence(Cause.IGNORED, _quoted_name(self._visible(about)), None),
                remedies=[remedy],
                source_ref=ref,
                cause=Cause.IGNORED,
            )
            return

    def _nowhere(self, about: str) -> SubjectAnswer:
        name = self._visible(about)
        return SubjectAnswer(
            verdict=ExplainVerdict.NOT_IN_PROJECT,
            kind=SubjectKind.WORDS,
            name=name,
            sentence=self._say(NOT_IN_PROJECT, _quoted_name(name)),
            remedies=[Remedy(do=RemedyKind.WRITE_DOWN, name=name)],
        )

    def _title(self, path: str) -> str:
        story = self._plan.story
        found = next((d for d in (*story.documents, *story.outside) if d.path == path), None)
        return file_stem(path) if found is None else chapter_title(found)

    def _visible(self, text: str) -> str:
        return visible_texts(self._redactor, [text])[0]

    def _problem(self, problem: Wording) -> str:
        return self._redactor.redact(problem.text(chinese=self._chinese)).text

    def _say(self, wording: Wording, *values: object) -> str:
        return wording.format(*values).text(chinese=self._chinese)

    def _sentence(self, cause: Cause, name: str, line: int | None) -> str:
        if cause is Cause.BROKEN_FILE:
            where = Wording("", "") if line is None else AT_LINE.format(line)
            return self._say(FAULT, name, where)
        asked = self._plan.skill
        skill: object = asked.names if asked.name else asked.skill_id or _GENERAL
        return self._say(CAUSE_SENTENCES[cause], name, skill)

    def _remedies(
        self,
        cause: Cause,
        ref: str,
        kind: SubjectKind,
        *,
        missing: int | None = None,
        subject: Subject | None = None,
        need: Need | None = None,
        words: str = "",
        decision: Decision | None = None,
    ) -> list[Remedy]:
        """Return what would change an answer, the best first."""
        path = ref.partition("#")[0]
        named = words if subject is None else subject.names[0]
        name = self._visible(named) if named else UNSET
        pin = Remedy(do=RemedyKind.PIN, source_ref=ref)
        more = self._more_room(missing)
        mention = Remedy(do=RemedyKind.MENTION, name=name)
        always = Remedy(do=RemedyKind.SET_INJECT, path=path, inject=Inject.ALWAYS.value)
        skill = Remedy(do=RemedyKind.CHANGE_SKILL, need=UNSET if need is None else need)
        line = UNSET if subject is None or subject.line is None else subject.line
        fix = Remedy(do=RemedyKind.FIX_FILE, path=path, line=line)
        fixed = {SubjectKind.RULE, SubjectKind.SUMMARY}
        pins = [pin] if kind not in fixed and decision and self._fits_pinned(decision) else []
        room = [more] if missing is not None else []
        by_cause: dict[Cause, list[Remedy]] = {
            Cause.OVER_BUDGET: [*pins, *room] or ([fix] if subject else [more]),
            Cause.TARGET: [*pins, Remedy(do=RemedyKind.CHANGE_SKILL)],
            Cause.OVER_LIMIT: pins or [fix],
            Cause.DUPLICATE: [],
            Cause.NOT_MENTIONED: [*pins, *room] if decision else [always, mention],
            Cause.SKILL_DOES_NOT_READ: [skill],
            Cause.OUTSIDE_WINDOW: [Remedy(do=RemedyKind.WIDEN_WINDOW)],
            Cause.NO_SHARED_WORDS: [mention],
            Cause.SET_TO_MANUAL: [always, mention],
            Cause.SET_TO_NEVER: [always],
            Cause.NOT_YET: [fix],
            Cause.NO_LONGER: [fix],
            Cause.BROKEN_FILE: [fix],
            Cause.INDEX_BUILDING: [Remedy(do=RemedyKind.WAIT)],
            Cause.LAYER_OFF: [Remedy(do=RemedyKind.RAISE_BUDGET)],
            Cause.EMPTY: [fix],
            Cause.SOURCE_FAILED: [Remedy(do=RemedyKind.WAIT)],
        }
        return by_cause.get(cause, [])

    def _fits_pinned(self, decision: Decision) -> bool:
        """Return whether a candidate, or a part of it, comes into the prompt if it is pinned."""
        fragment, missing = decision.fragment, self._assembly.fits_with(decision)
        if decision.evidence.rule is Rule.SIZE_LIMIT:
            return False
        if decision.evidence.layer is not Layer.SETTINGS or missing is None:
            return True
        ranked = rivals(self._assembly, decision)
        ahead = ranked[: ranked.index(decision)]
        is_cut = not fragment.whole and len(fragment.text.split("\n\n")) > 1
        return is_cut or missing <= sum(one.evidence.before_tokens for one in ahead)


def _has_name_line(subject: Subject, name: str) -> bool:
    """Return whether a file whose front matter is faulty has a `name:` line with this name."""
    if subject.problem is None:
        return False
    return any(plain(found) == name for found in _NAME_LINE.findall(subject.text))


def _need_of(subject: Subject) -> Need:
    """Return the key of `context_rules` that asks for something of `.creonow`."""
    ref = subject.source_ref
    if subject.kind is SubjectKind.PERSON or subject.inject in {Inject.MENTIONED, Inject.MANUAL}:
        retrieved = subject.inject in {Inject.MENTIONED, Inject.MANUAL}
        return Need.EVIDENCE if retrieved else Need.CHARACTERS
    if subject.kind is SubjectKind.THREAD or is_outline(ref, subject.text):
        return Need.OUTLINE
    if ref == MEMORY:
        return Need.USER_PREFERENCES
    if ref in {STYLE, TERMINOLOGY_FILE}:
        return Need.STYLE_GUIDE
    return Need.CHARACTERS if subject.kind is SubjectKind.NOTE else Need.ALWAYS


def _file_of(answer: SubjectAnswer) -> str | None:
    return answer.source_ref.partition("#")[0] if isinstance(answer.source_ref, str) else None


def _is_about(decision: Decision, path: str) -> bool:
    fragment = decision.fragment
    if fragment.kind is FragmentKind.SYNOPSIS:
        return fragment.source_ref in {path, f"{path}#summary"}
    return fragment.extent is not None and fragment.extent.path == path


def _quoted_name(name: str) -> str:
    return f"“{name}”"


def _first_words(text: str) -> str:
    """Return how a text begins below its heading."""
    line = join_lines(_HEADING.sub("", text).strip() or text.strip())
    return line if len(line) <= LONGEST_QUOTE else f"{line[: LONGEST_QUOTE - 1]}…"


def _excerpt(text: str, start: int, end: int) -> str:
    """Return the line around a place, however it is wrapped; of a long one whole sentences, else words."""
    first = max(
        (stop for _, stop in _breaks(text, max(0, start - LONGEST_QUOTE), start)), default=0
    )
    last = next((at for at, _ in _breaks(text, end, len(text))), len(text))
    earliest = start - LONGEST_QUOTE // 2
    if first < earliest:
        words = (match.end() for match in _WORD_GAP.finditer(text, earliest, start))
        first = next(_sentence_ends(text, earliest, start), next(words, earliest))
    latest = max(end, first + LONGEST_QUOTE)
    if latest < last:
        gaps = (match.start() for match in _WORD_GAP.finditer(text, end, latest))
        last = max(_sentence_ends(text, end, latest), default=max(gaps, default=latest))
    return join_lines(text[first:last]).strip()


def _breaks(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Return where lines end that do not go on in the next one."""
    for match in _LINE_BREAK.finditer(text, start, end):
        if not is_abbreviation(text, match.start()):
            yield match.span()


def _sentence_ends(text: str, start: int, end: int) -> Iterator[int]:
    return (at for at in sentences(text, start, end) if not is_abbreviation(text, at))


def _paragraph(text: str, start: int, end: int) -> str:
    """Return the lines of the paragraph around a place, as references name them."""
    first = max(text.rfind("\n\n", 0, start), text.rfind("\n\r\n", 0, start)) + 1
    breaks = [at for at in (text.find("\n\n", end), text.find("\n\r\n", end)) if at >= 0]
    last = min(breaks, default=len(text.rstrip()))
    skipped = len(text[first:start]) - len(text[first:start].lstrip())
    before = 1 + text.count("\n", 0, first + skipped)
    return f"L{before}-L{before + text.count(chr(10), first + skipped, last)}"


def _ignored_files(root: Path, known: Iterable[str]) -> Iterator[str]:
    """Return text files of a project that are no documents of it, the nearest to its top first.

    No more entries are looked at than those of a project whose documents are listed.
    """
    tree, listed = LinkedFolder(root), set(known)
    seen, left = 0, MAX_ENTRIES
    folders = deque([""])
    while folders and left > 0:
        above = folders.popleft()
        left -= 1
        files, below = list[str](), list[str]()
        with contextlib.suppress(OSError, DaemonError), tree.scan(above) as entries:
            for entry in until_stopped(islice(entries, left)):
                left -= 1
                path = f"{above}/{entry.name}" if above else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if not entry.name.startswith("."):
                        below.append(path)
                elif is_document(path) and path not in listed and not entry.is_symlink():
                    files.append(path)
        folders += sorted(below)
        for path in sorted(files)[: MOST_IGNORED - seen]:
            seen += 1
            yield path
        if seen == MOST_IGNORED:
            return
