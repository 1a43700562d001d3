"""What an inspection shows beside the decisions: names, reasons, the prompt, coverage.

Each part is made only if a client asks for it, from the assembly that is inspected.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Literal

from anyio import to_thread
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from creonowd.context.assemble import Assembly
from creonowd.context.candidates import Decision
from creonowd.context.fragment import Extent, Layer
from creonowd.context.inspection import DocumentRange, InspectParts, NameMention, ScoreReasons
from creonowd.context.prompt_coverage import (
    Coverage,
    DocumentText,
    PieceKind,
    Positions,
    PromptText,
    chapter_title,
    coverage,
    kind_of,
    prompt_text,
)
from creonowd.context.result import break_points, redaction_evidence
from creonowd.context.source import query_for
from creonowd.engine.assembly import ClientAssembly
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, Language
from creonowd.redaction import Redactor
from creonowd.retrieval.ranking import search_terms
from creonowd.sources.characters import note_heading
from creonowd.sources.passage_source import reasons
from creonowd.storage import front_matter
from creonowd.text import file_stem
from creonowd.workspace.documents import Buffer, to_utf16
from creonowd.workspace.projects import Project

MOST_TERMS = 8


class ShownPart(StrEnum):
    """A part of an inspection that is made only on request."""

    PROMPT = "prompt"
    """The prompt with its spans."""
    WHY = "why"
    """The reasons of passages."""
    COVERAGE = "coverage"
    """What the model sees of each document, and the figures of a headline."""
    NAMES = "names"
    """The names in the document."""


async def inspection_parts(
    session: Session, result: ClientAssembly, wanted: Iterable[ShownPart]
) -> InspectParts | None:
    """Make the parts that are wanted; None if none is."""
    asked, assembly = frozenset(wanted), result.assembly
    if not asked:
        return None
    project = await session.projects.find(assembly.plan.project_id)
    positions = positions_of(session)
    covered: Coverage | UnsetType = UNSET
    places: dict[Extent, DocumentRange] = {}
    if ShownPart.COVERAGE in asked:
        texts = await document_texts(session, project, assembly)
        covered = coverage(
            assembly,
            texts,
            redaction_evidence(assembly),
            positions,
            chinese=session.connection.language is Language.CHINESE,
        )
        places = dict(_places(assembly, texts, positions))
    prompt: PromptText | UnsetType = UNSET
    if ShownPart.PROMPT in asked:
        prompt = prompt_text(assembly, break_points(assembly, result.target.model), positions)
    return InspectParts(
        piece_names=piece_names(session.redactor, assembly),
        why=await _passage_reasons(session, project, assembly) if ShownPart.WHY in asked else {},
        places=places,
        prompt=prompt,
        coverage=covered,
        names=await _names(session, project, assembly) if ShownPart.NAMES in asked else UNSET,
    )


def positions_of(session: Session) -> Positions:
    """Return how this client counts positions in a text."""
    return _utf16 if session.peer.utf16 else _code_points


def _utf16(text: str, positions: Iterable[int]) -> Mapping[int, int]:
    return _code_points(text, positions) if text.isascii() else to_utf16(text, positions)


def _code_points(text: str, positions: Iterable[int]) -> Mapping[int, int]:
    del text
    return {position: position for position in positions}


async def document_texts(
    session: Session, project: Project, assembly: Assembly
) -> dict[str, DocumentText]:
    """Return the documents of the story by path, each as the assembly could have seen it."""
    synced = await session.documents.find_all_synced(session.peer, project.project_id)
    return await to_thread.run_sync(_read_texts, session, project, assembly, synced)


def _read_texts(
    session: Session, project: Project, assembly: Assembly, synced: Mapping[str, Buffer]
) -> dict[str, DocumentText]:
    """Read the documents of the story that can be read; blocks its thread."""
    plan, texts = assembly.plan, dict[str, DocumentText]()
    listed = [one.path for one in (*plan.story.documents, *plan.story.outside)]
    for path in dict.fromkeys([*listed, plan.document_id]):
        if path == plan.document_id and plan.document is not None:
            text = plan.document.front_matter + plan.document.text
            front = len(plan.document.front_matter)
        else:
            buffer = synced.get(path) or session.documents.read_now(project, path)
            if isinstance(buffer, DaemonError):
                continue
            text = buffer.text
            front = len(front_matter.split(text).front_matter)
        texts[path] = DocumentText(text, front, session.redactor.redact_name(path))
    return texts


def _places(
    assembly: Assembly, texts: Mapping[str, DocumentText], positions: Positions
) -> Iterator[tuple[Extent, DocumentRange]]:
    """Return the parts of documents that candidates repeat, as the client counts them."""
    extents: dict[str, set[Extent]] = {}
    for decision in assembly.decisions():
        if (extent := decision.fragment.extent) is not None and extent.path in texts:
            extents.setdefault(extent.path, set()).add(extent)
    for path, every in extents.items():
        text, _, name = texts[path]
        ends = {extent: min(extent.end, len(text)) for extent in every}
        at = positions(text, {*(extent.start for extent in every), *ends.values()})
        for extent, end in ends.items():
            yield extent, DocumentRange(document_id=name, start=at[extent.start], end=at[end])


def piece_names(redactor: Redactor, assembly: Assembly) -> dict[str, str]:
    """Return by reference what an author calls each candidate."""
    story = assembly.plan.story
    titles = {one.path: chapter_title(one) for one in (*story.documents, *story.outside)}
    called = {
        decision.evidence.source_ref: name
        for decision in assembly.decisions()
        if (name := _name(decision, kind_of(decision, assembly.plan.document_id), titles))
    }
    return dict(zip(called, visible_texts(redactor, called.values()), strict=True))


def visible_texts(redactor: Redactor, texts: Iterable[str]) -> list[str]:
    """Return short texts without secrets."""
    listed = list(texts)
    clean = redactor.are_clean(listed)
    return [
        text if is_clean else redactor.redact(text).text
        for text, is_clean in zip(listed, clean, strict=True)
    ]


def _name(decision: Decision, kind: PieceKind, titles: Mapping[str, str]) -> str:
    fragment = decision.fragment
    if kind is PieceKind.CONSTRAINT:
        return decision.text
    if kind is PieceKind.PERSON and fragment.names:
        return fragment.names[0]
    if kind in {PieceKind.SELECTION, PieceKind.INPUT, PieceKind.TASK}:
        return ""
    path = fragment.source_ref.partition("#")[0]
    heading = note_heading(path, decision.text) if kind is PieceKind.NOTE else []
    return fragment.title or titles.get(path) or next(iter(heading), "") or file_stem(path)


async def _passage_reasons(
    session: Session, project: Project, assembly: Assembly
) -> dict[str, ScoreReasons]:
    """Return by reference why the passages were found, without secrets."""
    passages, entities = session.sources.passages, session.sources.entities(project)
    ask = query_for(assembly.plan, Layer.RETRIEVED)
    try:
        found = await reasons(passages, entities, project, ask)
    except DaemonError:
        return {}
    redactor = session.redactor
    asked = "\n".join((ask.query, ask.wish, *ask.last.before_query_end, *ask.last.after_query_end))
    names = {name for why in found.values() for name in why.names}
    visible = frozenset(search_terms(redactor.redact("\n".join((asked, *names))).text))
    return {
        redactor.redact_name(ref): replace(
            why,
            terms=[one for one in why.terms if one.term in visible][:MOST_TERMS],
            names=visible_texts(redactor, why.names),
            sentence=redactor.redact(why.sentence).text if why.sentence else UNSET,
        )
        for ref, why in found.items()
    }


async def _names(session: Session, project: Project, assembly: Assembly) -> list[NameMention]:
    """Return the names in the document, each with whether the model has the card that bears it."""
    document = assembly.plan.document
    if document is None:
        return []
    entities = session.sources.entities(project)
    cards = (await entities.get()).cards
    bearers = {name: ref for ref, names in reversed(cards) for name in names}
    is_kept: dict[str, bool] = {}
    for decision in assembly.decisions():
        ref = decision.fragment.source_ref
        is_kept[ref] = is_kept.get(ref, False) or decision.is_kept
    text = document.front_matter + document.text
    found = [one for one in entities.locate(bearers, text) if one[1] >= len(document.front_matter)]
    at = positions_of(session)(text, {place for one in found for place in one[1:]})
    refs = dict.fromkeys(bearers[name] for name, _, _ in found)
    shown = {ref: session.redactor.redact_name(ref) for ref in refs}
    called = dict(
        zip(bearers, visible_texts(session.redactor, bearers), strict=True) if found else ()
    )
    states: dict[bool | None, Literal["in", "left_out", "never"]] = {
        True: "in",
        False: "left_out",
        None: "never",
    }
    return [
        NameMention(
            start=at[start],
            end=at[end],
            name=called[name],
            source_ref=shown[bearers[name]],
            state=states[is_kept.get(bearers[name])],
        )
        for name, start, end in found
    ]
