"""One assembly for a client: find what it needs, assemble it, and log what came of it.

`context:assemble`, `context:inspect` and `ai:skill:run` all go through here, so that they cannot
differ.

An assembly is a pure function of its plan, of what its sources return and of the tools. So the same
plan with sources that have not changed has the answer that it had before. Sources that other
processes offer cannot say whether they have changed: an assembly that asks them is always made.
"""

from collections.abc import AsyncGenerator, Container, Generator, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, nullcontext, suppress
from functools import partial
from typing import Annotated, Any, NamedTuple

import anyio
import structlog
from anyio import to_thread
from msgspec import Meta, structs

from creonowd.context.assemble import Assembly, assemble, without_tokenizer
from creonowd.context.budget import (
    Budget,
    BudgetChange,
    BudgetProfile,
    allowances_of,
    apply_change,
    apply_correction,
    budget_of,
    fit_to_model,
)
from creonowd.context.fragment import Action, Caution, FragmentKind, Span, caution
from creonowd.context.language import (
    FRAMES,
    ManuscriptLanguage,
    WordCount,
    choose_language,
    count_words,
)
from creonowd.context.plan import (
    ContextRules,
    Document,
    Need,
    Plan,
    SkillNeeds,
    Task,
    missing_before,
    surrounding,
    wants,
    wants_document,
)
from creonowd.context.result import (
    AssembleResult,
    EncodedResult,
    ModelTarget,
    encode_result,
    redaction_evidence,
)
from creonowd.context.source import Source, wanted_sources
from creonowd.context.stable_prefix import PrefixComparison, PrefixDigest, PrefixKey
from creonowd.context.story import Story, StoryPlace
from creonowd.context.text_tools import TextTools
from creonowd.engine.services import SeenOnce, Session, SkillRead
from creonowd.errors import DaemonError, ErrorCode, WarningCode, Wording
from creonowd.logs import redaction_event
from creonowd.model import Model, Params
from creonowd.providers.configured import CallPreferences, Choice
from creonowd.providers.provider import Sampling
from creonowd.skills.library import LibraryEntry
from creonowd.skills.skill import MAX_OUTPUT_TOKENS, Skill, invalid_skill
from creonowd.sources.document import (
    LocatedDocument,
    Position,
    document_at,
    open_document,
    place_in,
)
from creonowd.sources.file_fragments import own_texts
from creonowd.sources.project_files import outline_for
from creonowd.sources.synopsis import read_document
from creonowd.text import file_stem
from creonowd.threads import BatchCache, NotCachedError
from creonowd.tokens.tokenizer import ByteTokenizer
from creonowd.workspace.creonow_tree import (
    JOINT_SHARE,
    PROJECT_FILE,
    FolderReader,
    ProjectFile,
    is_document,
)
from creonowd.workspace.documents import Buffer, DocumentId
from creonowd.workspace.projects import Project

LONGEST_NAME = 256
# A text of up to this many code points is handled on the event loop.
INLINE_CHARACTERS = 200_000
MOST_PINS = 50
# About how many bytes it takes to know that a document is not there.
MISSING_WEIGHT = 4000
NO_SAMPLING = Sampling()

# What an assembly may fail with.
ASSEMBLY_ERRORS = (
    ErrorCode.NOT_FOUND,
    ErrorCode.SKILL_SELECTION_REQUIRED,
    ErrorCode.CONTEXT_INPUT_TOO_LARGE,
    ErrorCode.CONTEXT_SCOPE_VIOLATION,
    ErrorCode.CONTEXT_BACKPRESSURE,
)

ShortText = Annotated[str, Meta(max_length=LONGEST_NAME)]
PositionInText = Annotated[int, Meta(ge=0)]
OutputTokens = Annotated[int, Meta(ge=1, le=MAX_OUTPUT_TOKENS)]

_REFUSALS = {
    ErrorCode.CONTEXT_BACKPRESSURE: "context_backpressure",
    ErrorCode.CONTEXT_INPUT_TOO_LARGE: "context_input_too_large",
    ErrorCode.CONTEXT_SCOPE_VIOLATION: "context_scope_violation",
}

log = structlog.stdlib.get_logger(__name__)


class Selection(Model, rename={"start": "from", "end": "to"}):
    """What is selected, in the connection's position encoding."""

    start: PositionInText
    """Where it begins, in the connection's position encoding."""
    end: PositionInText
    """Where it ends; not before `start`."""


class AssembleContext(Params):
    """Where the author is and what for."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The document: its path below the project's folder with `/` between the names, such as
    `chapters/07.md`."""
    cursor_position: PositionInText
    """Where the cursor stands in the document, in the connection's position encoding; past the end
    counts as the end, with a warning."""
    skill_id: ShortText | None = None
    """Decides which sources are read. Without one (absent or null) all are; an unknown one reads
    everything too, with a warning."""
    additional_input: str | None = None
    """The author's instruction; it stands in the task."""
    selection: Selection | None = None
    """What is selected in the document."""
    provider: ShortText | None = None
    """Who would get the prompt; without it, the back end's."""
    model: ShortText | None = None
    """The model that would get it: it decides how tokens are counted and how large the prompt may
    be. Without it the skill decides, else the settings, else the budget."""
    backend: ShortText | None = None
    """The name of the back end that would get it; without it, the one that answers now."""
    max_output_tokens: OutputTokens | None = None
    """The room for the answer; without it, the budget's."""
    tokenizer_version: ShortText | None = None
    """The version that the client expects; CONTEXT_TOKENIZER_MISMATCH if it is another."""
    pinned: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_PINS)] = ()
    """References of candidates (`sourceRef`) that are kept before others of their layer; what was
    kept so has the rule `pinned`. What is no candidate stays out."""


class WhatIf(Model):
    """Another budget or another text to assemble with, without changing anything."""

    profile: BudgetChange | None = None
    """A change to the budget; `version` is not needed."""
    text: str | None = None
    """A text to use instead of the document's own."""


class ClientAssembly(Model):
    """An assembly, its budget, the model it is for, and the key that its prefix is kept under.

    `repeated` are warnings that the project has had before; the assembly has them no more.
    """

    assembly: Assembly
    profile: BudgetProfile
    target: ModelTarget
    key: PrefixKey
    repeated: tuple[Caution, ...] = ()


class Preparation(NamedTuple):
    """What one assembly needs: its plan, its sources, its tools, and the model that gets the prompt."""

    plan: Plan
    sources: list[Source]
    tools: TextTools
    profile: BudgetProfile
    target: ModelTarget
    key: PrefixKey


class LoggedOutcome(NamedTuple):
    """What is logged of every assembly, and what of one in which something was redacted."""

    assembled: dict[str, Any]
    redacted: dict[str, Any]


class CachedResult(NamedTuple):
    """An answer, the digest of its stable prefix, what is logged of it, and its weight.

    `warned_before` are the keys of warnings that it lacks because its project had them before.
    """

    answer: EncodedResult
    digest: PrefixDigest
    outcome: LoggedOutcome
    warned_before: tuple[str, ...]
    weight: int


async def answer_client(session: Session, request: AssembleContext) -> AssembleResult:
    """Return the prompt for one AI call; what was made of the same before is not made again."""
    started, engine = session.clock.monotonic(), session.engine
    async with prepare(session, request, WhatIf()) as prepared:
        key = _result_key(prepared)
        kept = None if key is None else engine.answers.peek(key)
        if kept is None or not all(map(engine.seen_once.has, kept.warned_before)):
            kept = await _make_result(session, prepared, key, started)
        else:
            log_outcome(kept.outcome, session.clock.monotonic() - started)
    return kept.answer.result(engine.prefixes.follow(prepared.key, kept.digest))


async def _make_result(
    session: Session, prepared: Preparation, key: Hashable | None, started: float
) -> CachedResult:
    plan, engine = prepared.plan, session.engine
    result = await assemble_prepared(session, prepared)
    assembly = result.assembly
    outcome = log_assembly(assembly, session.clock.monotonic() - started, engine.seen_once)
    answer = encode_result(assembly, result.target)
    text = 0 if plan.document is None else len(plan.document.text)
    made = CachedResult(
        answer=answer,
        digest=assembly.system_prompt.digest,
        outcome=outcome,
        warned_before=tuple(_warning_key(plan, warning) for warning in result.repeated),
        weight=answer.weight + text,
    )
    # A source that failed may work the next time; a warning that a project gets once is not repeated.
    is_lasting = not assembly.failures and not any(map(_is_once_per_project, assembly.warnings))
    if is_lasting and key is not None and key == _result_key(prepared):
        engine.answers.put(key, made)
    return made


def _result_key(prepared: Preparation) -> Hashable | None:
    """Return all that an answer depends on; None if that cannot be known."""
    plan, tools, target = prepared.plan, prepared.tools, prepared.target
    revisions: list[Hashable] = []
    for source in wanted_sources(plan, prepared.sources):
        if (revision := source.revision()) is None:
            return None
        revisions.append(revision)
    return (plan, target, tools.key, tools.tokenizer.exact, tuple(revisions))


async def assemble_for_client(
    session: Session,
    request: AssembleContext,
    what_if: WhatIf | None = None,
    choice: Choice | None = None,
) -> ClientAssembly:
    """Assemble what a client asks for, as soon as its document has a place free.

    `choice` is who gets the prompt, if that is decided already.
    """
    started = session.clock.monotonic()
    async with prepare(session, request, what_if or WhatIf(), choice) as prepared:
        result = await assemble_prepared(session, prepared)
    log_assembly(result.assembly, session.clock.monotonic() - started, session.engine.seen_once)
    return result


@asynccontextmanager
async def prepare(
    session: Session, request: AssembleContext, what_if: WhatIf, choice: Choice | None = None
) -> AsyncGenerator[Preparation]:
    """Find all that an assembly is made of, and keep its document's place for the block."""
    _check(request)
    await session.engine.turns.take()
    project = await session.projects.find(request.project_id)
    with log_refusals(project.project_id):
        async with session.engine.admission.enter((project.project_id, request.document_id)):
            yield await _prepare(session, project, request, what_if, choice)


async def assemble_prepared(session: Session, prepared: Preparation) -> ClientAssembly:
    """Assemble; leave out the warning of ambiguous names if this project had the same one before."""
    plan, sources, tools, profile, target, key = prepared
    assembly = await assemble(plan, sources, tools, session.engine.concurrency)
    seen = session.engine.seen_once
    repeated = tuple(
        each
        for each in assembly.warnings
        if _is_once_per_project(each) and not seen.add(_warning_key(plan, each))
    )
    warnings = tuple(each for each in assembly.warnings if each not in repeated)
    return ClientAssembly(
        assembly=structs.replace(assembly, warnings=warnings),
        profile=profile,
        target=target,
        key=key,
        repeated=repeated,
    )


def _is_once_per_project(warning: Caution) -> bool:
    """Return whether a project gets a warning only once."""
    return warning.code is WarningCode.CHARACTER_NAME_AMBIGUOUS


def _warning_key(plan: Plan, warning: Caution) -> str:
    """Return the key under which it is known that a project had a warning."""
    return f"{plan.project_id} {warning.text()}"


def compare_prefix(session: Session, result: ClientAssembly) -> PrefixComparison:
    """Compare the stable prefix with that of the previous call."""
    return session.engine.prefixes.compare(result.key, result.assembly.system_prompt.digest)


def remember_prefix(session: Session, result: ClientAssembly) -> PrefixComparison:
    """Compare the stable prefix with that of the previous call, and become that call."""
    return session.engine.prefixes.follow(result.key, result.assembly.system_prompt.digest)


def _check(request: AssembleContext) -> None:
    names = (("documentId", request.document_id), ("skillId", request.skill_id))
    for field, value in names:
        if value is not None and not value.strip():
            raise _invalid(field, _BLANK)
    if request.selection is not None and request.selection.start > request.selection.end:
        raise _invalid("selection", _BACKWARD)


_BLANK = Wording("{} must not be blank.", "{} 不能为空。")
_BACKWARD = Wording("{} must not end before it begins.", "{} 的终点不能在起点之前。")


def _invalid(field: str, problem: Wording) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, problem.format(field), field=field)


async def _prepare(
    session: Session,
    project: Project,
    request: AssembleContext,
    what_if: WhatIf,
    choice: Choice | None,
) -> Preparation:
    sources = session.engine.sources_of(project)
    call = _AssemblyCall(session, project, request, what_if)
    disk = await _read_disk(call, sources)
    async with session.engine.concurrency.reading if disk is None else nullcontext():
        budget = await _budget(call, disk)
        if choice is None:
            choice = choose_model(session, request, await _skill_of(call, disk), what_if)
        model = choice.model or budget.profile.model
        limits = session.ai.limits(choice.backend, model)
        budget = fit_to_model(
            budget,
            window=limits.window,
            thinks=limits.thinks,
            output_tokens=choice.max_output_tokens,
            output_limit=limits.output_limit,
        )
        profile = budget.profile
        match = session.tokenizers.known.encoding_for(model, profile.tokenizer_id)
        session.tokenizers.known.check_version(match.encoding, request.tokenizer_version)
        tokenizer = await session.tokenizers.get(match.encoding)
        correction = session.corrections.of(model, match.kind)
        plan = await _plan(call, apply_correction(budget, correction), disk)
    if isinstance(tokenizer, ByteTokenizer):
        plan = without_tokenizer(plan)
    tools = TextTools(
        tokenizer,
        session.redactor,
        session.engine.memory,
        size_limit=session.settings.fragment_limit,
        frame=FRAMES[plan.language],
    )
    target = ModelTarget(
        provider=request.provider or choice.provider,
        model=model,
        kind=match.kind,
        correction=correction,
        language=session.connection.language,
    )
    key = PrefixKey(
        project.project_id, plan.skill.skill_id, target.provider, target.model, match.encoding
    )
    return Preparation(plan, sources, tools, profile, target, key)


def choose_model(
    session: Session,
    request: AssembleContext,
    skill: Skill | None,
    what_if: WhatIf | None = None,
    sampling: Sampling = NO_SAMPLING,
) -> Choice:
    """Decide which model gets the prompt: the request's, else the skill's, else the settings'.

    `sampling` is that of the request; what it leaves open is decided in the same order.
    """
    supposed = None if what_if is None or what_if.profile is None else what_if.profile.model
    asked = CallPreferences(
        backend=request.backend,
        model=request.model or supposed,
        sampling=sampling,
        max_output_tokens=request.max_output_tokens,
    )
    of_skill = CallPreferences()
    if skill is not None:
        of_skill = CallPreferences(
            model=skill.model or None,
            sampling=skill.sampling,
            max_output_tokens=skill.max_output_tokens,
        )
    return session.ai.choose(asked, of_skill)


async def _skill_of(call: "_AssemblyCall", disk: "DiskState | None") -> Skill | None:
    """Return the skill of a request, if there is a valid one of that id."""
    read = await _skill_read(call, disk)
    return None if read.entry is None or read.entry.faults else read.entry.skill


async def _skill_read(call: "_AssemblyCall", disk: "DiskState | None") -> SkillRead:
    session, project, request, _ = call
    if disk is not None:
        return disk.skill
    return await session.engine.skill_reads.read(
        (project.root, request.skill_id),
        partial(_read_skill, session, project, request.skill_id),
    )


class DiskState(NamedTuple):
    """What one trip to the disk found; the document and the one before only if they are needed.

    What the sources read is kept by them. `own_texts` are those in `.creonow` if the document
    does not show the language by itself.
    """

    budget: Budget
    skill: SkillRead
    located: LocatedDocument | None
    story: Story
    previous: Document | None
    outline: str = ""
    own_texts: Sequence[str] | None = None


class _AssemblyCall(NamedTuple):
    """A request with the session and the project it is for."""

    session: Session
    project: Project
    request: AssembleContext
    what_if: WhatIf


async def _read_disk(call: _AssemblyCall, sources: Sequence[Source]) -> DiskState | None:
    """Read all that an assembly needs in one trip, together with all that assemble meanwhile.

    None if that fails or takes too long: then everything is read by itself, so that what hangs
    costs only itself.
    """
    session, project, request, what_if = call
    synced = await session.documents.find_all_synced(session.peer, project.project_id)
    open_texts = session.chapters.open_texts(project)
    if what_if.text is not None:
        synced[request.document_id] = Buffer.of(what_if.text)
    read = partial(_read_project, call, sources, synced, open_texts)
    if all(len(text) <= INLINE_CHARACTERS for text in open_texts.values()) and all(
        map(_is_quick, synced.values())
    ):
        with suppress(NotCachedError, DaemonError, OSError):
            if (cached := session.engine.cached_reads(project)) is not None:
                return read(cached)
    seconds = JOINT_SHARE * session.settings.source_timeout_ms / 1000
    with suppress(DaemonError, OSError):
        return await session.engine.reads.read_alone(project.root, read, seconds)
    return None


def _read_project(
    call: _AssemblyCall,
    sources: Sequence[Source],
    synced: Mapping[str, Buffer],
    open_texts: dict[str, str],
    cache: BatchCache,
) -> DiskState:
    """Read what an assembly needs of a project; blocks its thread, unless all of it is cached."""
    session, project, request, what_if = call
    listed = session.chapters.listed_now(project, cache)
    buffer_of = partial(_read_document, call, synced, listed, cache)
    skill = _read_skill_now(call, cache)
    rules = None if skill.entry is None else skill.entry.skill.context_rules
    for source in sources:
        if wants(rules, source.need):
            source.read_ahead(cache)
    budget = cache.once(
        "budget",
        lambda: session.budgets.effective_now(project.project_id),
        lambda budget: not budget.warnings,
    )
    texts, located = open_texts, None
    if what_if.text is not None or request.selection is not None or wants_document(rules):
        buffer = buffer_of(request.document_id)
        located = document_at(buffer, _position(request), utf16=session.peer.utf16)
        if isinstance(buffer, Buffer):
            texts = open_texts | {request.document_id: buffer.text}
    story = session.chapters.read_now(project, texts, cache)
    before = _chapter_before(_with_changes(call, budget), rules, located, story)
    previous = None if before is None else buffer_of(before)
    return DiskState(
        budget=budget,
        skill=skill,
        located=located,
        story=story,
        previous=_document_at_start(previous, before, utf16=session.peer.utf16),
        outline=_outline(call, rules, located, cache),
        own_texts=_own_texts(call, skill.project_file, located, cache),
    )


def _read_document(
    call: _AssemblyCall,
    synced: Mapping[str, Buffer],
    listed: Container[str],
    cache: BatchCache,
    document_id: str,
) -> Buffer | DaemonError:
    """Return a document as the editor has it, else read it; blocks its thread."""
    return synced.get(document_id) or cache.once(
        ("document", document_id),
        lambda: call.session.documents.read_now(call.project, document_id, listed),
        # Another document may be reached through a link, or be one that is not watched.
        lambda buffer: (
            (document_id in listed and _is_quick(buffer))
            or (_is_missing(buffer) and is_document(document_id))
        ),
        lambda buffer: buffer.memory if isinstance(buffer, Buffer) else MISSING_WEIGHT,
    )


def _is_quick(buffer: Buffer | DaemonError) -> bool:
    """Return whether a document could be read, and is short enough for the event loop."""
    return isinstance(buffer, Buffer) and buffer.length <= INLINE_CHARACTERS


def _is_missing(buffer: Buffer | DaemonError) -> bool:
    return isinstance(buffer, DaemonError) and buffer.code is ErrorCode.NOT_FOUND


def _outline(
    call: _AssemblyCall,
    rules: ContextRules | None,
    located: LocatedDocument | None,
    cache: BatchCache,
) -> str:
    """Return what the outline says of a chapter that is not begun yet; blocks its thread."""
    document = None if located is None else located.document
    if document is None or document.text[: document.here.start].strip():
        return ""
    if not wants(rules, Need.OUTLINE) or not wants(rules, Need.RETRIEVAL):
        return ""
    tree, project, name = call.session.tree, call.project, file_stem(document.source_ref)
    return cache.once(("outline", name), lambda: outline_for(tree, project, name))


def _own_texts(
    call: _AssemblyCall,
    file: ProjectFile | None,
    located: LocatedDocument | None,
    cache: BatchCache,
) -> Sequence[str] | None:
    """Return the texts in `.creonow` if the language depends on them; blocks its thread."""
    document = None if located is None else located.document
    if _clear_language(file, document) is not None:
        return None
    with suppress(DaemonError):
        folders = FolderReader(call.session.tree, call.project, cache)
        return cache.once(
            "own texts",
            lambda: own_texts(folders.folder),
            lambda _texts: not folders.has_problems,
        )
    return ()


def _position(request: AssembleContext) -> Position:
    selection = request.selection
    return Position(
        document_id=request.document_id,
        cursor=request.cursor_position,
        selection=None if selection is None else Span(selection.start, selection.end),
    )


def _chapter_before(
    budget: Budget, rules: ContextRules | None, located: LocatedDocument | None, story: Story
) -> str | None:
    """Return the chapter before if the window lacks text before the cursor."""
    document = None if located is None else located.document
    if document is None:
        return None
    allowances = allowances_of(budget.profile)
    if not missing_before(allowances, surrounding(rules, allowances), document.here.start):
        return None
    before = story.previous(document.source_ref)
    return None if before is None else before.path


def _document_at_start(
    buffer: Buffer | DaemonError | None, path: str | None, *, utf16: bool
) -> Document | None:
    """Return a document with the cursor at its start; None if it could not be read."""
    if path is None or not isinstance(buffer, Buffer):
        return None
    return place_in(buffer, Position(document_id=path, cursor=0), utf16=utf16).document


async def _budget(call: _AssemblyCall, disk: DiskState | None) -> Budget:
    session, project, _, _ = call
    if disk is None:
        budget = await session.engine.budget_reads.read(
            project.project_id, partial(session.budgets.effective, project.project_id)
        )
    else:
        budget = disk.budget
    return _with_changes(call, budget)


def _with_changes(call: _AssemblyCall, budget: Budget) -> Budget:
    """Return the budget with what the request changes."""
    profile = call.what_if.profile
    if profile is None:
        return budget
    change = structs.replace(profile, version=budget.profile.version)
    return budget_of(apply_change(budget.profile, change, call.session.tokenizers.known))


async def _plan(call: _AssemblyCall, budget: Budget, disk: DiskState | None) -> Plan:
    session, project, request, _ = call
    read = await _skill_read(call, disk)
    skill, skill_warnings = _skill(request.skill_id, read.entry)
    located = await _locate(call, skill, disk)
    if skill.requires_selection:
        _check_selection(request, located)
    story_warnings: tuple[Caution, ...] = ()
    if disk is not None:
        story = disk.story
    else:
        story, story_warnings = await _story(session, project, located.document)
    texts = None if disk is None else disk.own_texts
    language = await _language(session, project, read.project_file, located.document, texts)
    if read.entry is not None:
        skill = structs.replace(skill, task=_task(read.entry, language))
    if read.project_file is None:
        broken = caution(WarningCode.PROJECT_FILE_INVALID, PROJECT_FILE)
        skill_warnings = (*skill_warnings, broken)
    if disk is not None:
        previous = disk.previous
    else:
        before = _chapter_before(budget, skill.rules, located, story)
        previous = await _read_previous(session, project, before)
    return Plan(
        project_id=project.project_id,
        document_id=request.document_id,
        skill=skill,
        allowances=allowances_of(budget.profile, budget.factor),
        document=located.document,
        additional_input=request.additional_input or "",
        warnings=(*skill_warnings, *budget.warnings, *located.warnings, *story_warnings),
        left_out=located.left_out,
        source_timeout_ms=session.settings.source_timeout_ms,
        story=story,
        here=_here(story, request, located.document),
        language=language,
        previous=previous,
        outline="" if disk is None else disk.outline,
        pinned=frozenset(request.pinned),
    )


def _read_skill_now(call: _AssemblyCall, cache: BatchCache) -> SkillRead:
    session, project, skill_id = call.session, call.project, call.request.skill_id
    entry = None
    if skill_id is not None:
        # The id may be one in which a secret is hidden.
        entry = cache.once(
            ("skill", skill_id, session.redactor.revision),
            lambda: session.skills.find_now(skill_id, project),
            lambda entry: entry is None or not entry.faults,
        )
    read_file = session.tree.read_project_file_now
    file = cache.once(
        "project file",
        lambda: read_file(project.root),
        lambda file: file is not None,
    )
    return SkillRead(entry, file)


async def _read_previous(session: Session, project: Project, before: str | None) -> Document | None:
    """Read the chapter before by itself; None if it cannot be read in time."""
    if before is None:
        return None
    try:
        with anyio.fail_after(session.settings.source_timeout_ms / 1000):
            buffer = await session.documents.read(project, before, session.peer)
    except (TimeoutError, DaemonError):
        return None
    return _document_at_start(buffer, before, utf16=session.peer.utf16)


async def _read_skill(session: Session, project: Project, skill_id: str | None) -> SkillRead:
    def read() -> SkillRead:
        entry = None if skill_id is None else session.skills.find_now(skill_id, project)
        return SkillRead(entry, session.tree.read_project_file_now(project.root))

    return await to_thread.run_sync(read)


async def _language(
    session: Session,
    project: Project,
    file: ProjectFile | None,
    document: Document | None,
    texts: Sequence[str] | None,
) -> ManuscriptLanguage:
    """Return the language of the project file, else of the document, else of the project's texts.

    Those are read here only if the document is too short, or mixed, and nobody read them before.
    """
    if (clear := _clear_language(file, document)) is not None:
        return clear
    if texts is None:
        try:
            texts = await to_thread.run_sync(
                own_texts,
                partial(session.tree.read_all_now, project.root),
                abandon_on_cancel=True,
            )
        except DaemonError:
            texts = ()
    return choose_language(_words_of(document), texts)


def _clear_language(
    file: ProjectFile | None, document: Document | None
) -> ManuscriptLanguage | None:
    """Return the language of the project file, else of the document; None if neither shows one."""
    if file is not None and file.language is not None:
        return file.language
    return _words_of(document).clear


def _words_of(document: Document | None) -> WordCount:
    return WordCount() if document is None else count_words(document.text)


def _check_selection(request: AssembleContext, located: LocatedDocument) -> None:
    """Refuse to run a skill that works on the selection where nothing is selected.

    What is selected in a document that cannot be read is not known; that document has a warning.
    """
    document = located.document
    if document is None:
        is_selected = request.selection is not None
    else:
        chosen = document.selection
        is_selected = chosen is not None and not document.text[slice(*chosen)].isspace()
    if not is_selected:
        raise DaemonError(
            ErrorCode.SKILL_SELECTION_REQUIRED, field="selection", skillId=request.skill_id
        )


async def _story(
    session: Session, project: Project, document: Document | None
) -> tuple[Story, tuple[Caution, ...]]:
    """Read the story; if that fails or takes too long, it is the current document alone."""
    try:
        with anyio.fail_after(session.settings.source_timeout_ms / 1000):
            return await session.chapters.story(project, document), ()
    except (TimeoutError, OSError, DaemonError):
        alone = () if document is None else (read_document(document.source_ref, document.text),)
        return Story(alone), (caution(WarningCode.STORY_UNAVAILABLE),)


def _here(story: Story, request: AssembleContext, document: Document | None) -> StoryPlace | None:
    """Return the author's place; a document that the skill does not need is not opened for it."""
    offset = request.cursor_position if document is None else document.here.start
    return story.place_of(request.document_id, offset)


def _skill(
    skill_id: str | None, entry: LibraryEntry | None
) -> tuple[SkillNeeds, tuple[Caution, ...]]:
    """Return what a skill needs, and warn of one that nobody knows."""
    if skill_id is None:
        return SkillNeeds(skill_id=""), ()
    if entry is None:
        return SkillNeeds(skill_id=skill_id), (Caution(code=WarningCode.SKILL_UNKNOWN),)
    if entry.faults:
        raise invalid_skill(entry.faults, entry.id)
    return _skill_needs(entry), ()


def _skill_needs(entry: LibraryEntry) -> SkillNeeds:
    return SkillNeeds(
        skill_id=entry.id,
        name=entry.name,
        names=entry.names,
        rules=entry.skill.context_rules,
        target_tokens=entry.skill.target_tokens,
        requires_selection=entry.skill.requires_selection,
        summaries=entry.skill.summaries,
    )


def _task(entry: LibraryEntry, language: ManuscriptLanguage) -> Task:
    prompt = entry.skill.prompt_in(language)
    parts = (part.strip("\n") for part in (prompt.system, prompt.user) if part.strip())
    return Task(template="\n".join(parts))


async def _locate(
    call: _AssemblyCall, skill: SkillNeeds, disk: DiskState | None
) -> LocatedDocument:
    """Open the document, if anything that the skill asks for depends on it."""
    session, project, request, what_if = call
    if disk is not None:
        return disk.located or LocatedDocument()
    position = _position(request)
    if what_if.text is not None:
        return place_in(Buffer.of(what_if.text), position, utf16=session.peer.utf16)
    if request.selection is None and not wants_document(skill.rules):
        return LocatedDocument()
    timeout_ms = session.settings.source_timeout_ms
    return await open_document(session.documents, project, position, session.peer, timeout_ms)


@contextmanager
def log_refusals(project_id: str) -> Generator[None]:
    """Log why an assembly was refused, and raise the refusal again."""
    try:
        yield
    except DaemonError as error:
        if error.code in _REFUSALS:
            log.warning(_REFUSALS[error.code], project_id=project_id, code=error.code)
        raise


def log_assembly(assembly: Assembly, seconds: float, seen_once: SeenOnce) -> LoggedOutcome:
    """Log the outcome of an assembly, and return it.

    That rules are over their line is logged only once per system prompt.
    """
    outcome = outcome_of(assembly)
    log_outcome(outcome, seconds)
    for failure in assembly.failures:
        log.warning(
            "context_source_failed",
            project_id=assembly.plan.project_id,
            source=failure.source,
            layer=failure.layer,
            kind=failure.kind,
        )
    _log_rules(assembly, seen_once)
    return outcome


def outcome_of(assembly: Assembly) -> LoggedOutcome:
    """Return what is logged of an assembly."""
    project_id, evidence = assembly.plan.project_id, redaction_evidence(assembly)
    assembled = {
        "project_id": project_id,
        "tokens": assembly.tokens,
        "budget": assembly.plan.allowances.total,
        "stable_prefix_hash": assembly.system_prompt.hash,
        "prompt_hash": assembly.prompt_hash,
        "warnings": [warning.code for warning in assembly.warnings],
        **{action.value: assembly.count(action) for action in Action},
    }
    return LoggedOutcome(assembled, redaction_event(project_id, evidence) if evidence else {})


def log_outcome(outcome: LoggedOutcome, seconds: float) -> None:
    """Log what came of an assembly that took so long."""
    log.info("context_assembled", **outcome.assembled, elapsed_ms=round(1000 * seconds, 1))
    if outcome.redacted:
        log.info("context_redaction_applied", **outcome.redacted)


def _log_rules(assembly: Assembly, seen_once: SeenOnce) -> None:
    if not assembly.system_prompt.rules_over:
        return
    if not seen_once.add(f"{assembly.plan.project_id} {assembly.system_prompt.hash}"):
        return
    rules = assembly.system_prompt.rules
    log.warning(
        "context_rules_overbudget",
        code=WarningCode.CONTEXT_RULES_OVERBUDGET,
        project_id=assembly.plan.project_id,
        line=assembly.plan.allowances.rules_line,
        before_tokens=rules.before_tokens,
        dropped=rules.actions.get(Action.DROPPED, 0),
    )
    dropped = [
        decision.evidence.source_ref.rpartition("#")[2]
        for decision in rules.decisions
        if decision.kind is FragmentKind.CONSTRAINT and not decision.is_kept
    ]
    if dropped:
        log.warning(
            "context_rules_constraint_trimmed",
            project_id=assembly.plan.project_id,
            constraints=dropped,
        )
