"""The spans of a prompt are the prompt, and the ranges of a document lie side by side and cover it."""

from typing import get_args

from hypothesis import given, reject
from hypothesis import strategies as st
from msgspec.structs import replace

from creonowd.context.assemble import compose
from creonowd.context.fragment import Extent, Fragment, FragmentKind, Layer, Rule
from creonowd.context.plan import Plan
from creonowd.context.prompt_coverage import (
    Coverage,
    CoverageState,
    DocumentText,
    PieceKind,
    SpanLayer,
    coverage,
    prompt_text,
)
from creonowd.context.result import break_points
from creonowd.context.story import Story, StoryDocument
from creonowd.errors import DaemonError
from creonowd.sources.synopsis import read_document
from creonowd.workspace.documents import to_utf16
from testing.sources import piece
from tests.context.worlds import World, assemble_world, profile_of, prose, text_tools, worlds


@given(worlds())
def test_the_spans_joined_are_the_prompt_and_each_is_what_it_says(world: World) -> None:
    try:
        assembly = assemble_world(world)
    except DaemonError:
        reject()
    points = break_points(assembly, "gpt-4o")
    kept = [one for one in assembly.decisions() if one.is_kept and one.rendered]

    shown = prompt_text(assembly, points, lambda _, places: {at: at for at in places})

    assert shown.text == assembly.system_prompt.prompt.text + assembly.user_content.text
    ends = [0, *(span.end for span in shown.spans)]
    assert [span.start for span in shown.spans] == ends[:-1]
    assert ends[-1] == len(shown.text)
    assert sum(span.tokens for span in shown.spans) == assembly.tokens
    named = [span for span in shown.spans if span.kind is not PieceKind.FRAME]
    assert [shown.text[span.start : span.end] for span in named] == [one.rendered for one in kept]
    assert [span.source_ref for span in named] == [one.evidence.source_ref for one in kept]
    sizes = [len(shown.text[: one.at].encode()) for one in shown.break_points]
    assert sizes == [point.bytes for point in points]


def test_positions_are_those_that_the_client_counts() -> None:
    rule = piece(Layer.RULES, "rules/style.md", "短句。😀😀")
    card = piece(Layer.RULES, "characters/a.md", "A", kind=FragmentKind.ENTITY, names=("A",))
    assembly = assemble_world(World(rules=(rule, card)))

    shown = prompt_text(assembly, [], to_utf16)

    units = shown.text.encode("utf-16-le")
    (span,) = (one for one in shown.spans if one.source_ref == "characters/a.md")
    assert units[2 * span.start : 2 * span.end].decode("utf-16-le").endswith("A\n")
    assert 2 * shown.spans[-1].end == len(units)


HERE = "chapters/07.md"
LONG = "他走路很慢，说话更慢。"


def story_of(texts: dict[str, str]) -> Story:
    return Story([read_document(path, text) for path, text in sorted(texts.items())])


def placed(world: World, others: dict[str, str]) -> Plan:
    story = story_of({HERE: world.text} | others)
    plan = world.plan()
    cursor = 0 if plan.document is None else plan.document.here.start
    return replace(plan, story=story, here=story.place_of(HERE, cursor))


def cover(world: World, others: dict[str, str], passages: tuple[Fragment, ...] = ()) -> Coverage:
    gathered = world.gathered()
    gathered.fragments[Layer.RETRIEVED] = (*world.retrieved, *passages)
    assembly = compose(placed(world, others), gathered, text_tools())
    texts = {
        path: DocumentText(text, 0, path) for path, text in {HERE: world.text, **others}.items()
    }
    return coverage(assembly, texts, [], lambda _, places: {at: at for at in places})


def passage(path: str, text: str, start: int, end: int, score: float = 0.5) -> Fragment:
    made = piece(Layer.RETRIEVED, f"{path}#{start}", text[start:end], score=score)
    return replace(made, source="retrieval", extent=Extent(path, start, end))


@st.composite
def passages_of(draw: st.DrawFn, path: str, text: str) -> tuple[Fragment, ...]:
    spans = draw(
        st.lists(st.tuples(st.integers(0, len(text)), st.integers(0, len(text))), max_size=4)
    )
    return tuple(passage(path, text, min(span), max(span)) for span in spans if len(set(span)) > 1)


@given(worlds(), prose, prose, st.data())
def test_the_ranges_of_a_document_lie_side_by_side_and_cover_it(
    world: World, before: str, after: str, data: st.DataObject
) -> None:
    others = {"chapters/03.md": before, "chapters/09.md": after}
    found = data.draw(passages_of("chapters/03.md", before))
    try:
        shown = cover(world, others, found)
    except DaemonError:
        reject()

    for document in shown.documents:
        ends = [0, *(one.end for one in document.ranges)]
        assert [one.start for one in document.ranges] == ends[:-1]
        assert ends[-1] == document.length
        assert all(one.start < one.end for one in document.ranges)


def test_what_is_seen_left_out_never_looked_at_and_to_come_has_its_own_state() -> None:
    text = LONG * 300
    near, far = (
        passage("chapters/03.md", text, 11, 66, 0.9),
        passage("chapters/03.md", text, 110, 3000),
    )
    world = World(text=LONG * 3, cursor=11, surrounding=11, profile=profile_of(total=700))

    shown = cover(world, {"chapters/03.md": text, "chapters/09.md": LONG}, (near, far))

    earlier, here, later = shown.documents
    assert [(one.start, one.end, one.state) for one in earlier.ranges] == [
        (0, 11, CoverageState.NEVER),
        (11, 66, CoverageState.SEEN),
        (66, 110, CoverageState.NEVER),
        (110, 3000, CoverageState.LEFT_OUT),
        (3000, 3300, CoverageState.NEVER),
    ]
    assert [(one.start, one.end, one.state) for one in here.ranges] == [
        (0, 22, CoverageState.SEEN),
        (22, 33, CoverageState.FUTURE),
    ]
    assert [one.state for one in later.ranges] == [CoverageState.FUTURE]
    assert [one.place for one in shown.documents] == ["before", "here", "after"]


def test_what_the_budget_cut_of_the_document_was_considered() -> None:
    text = f"{LONG}\n" * 400
    shown = cover(World(text=text, cursor=len(text), profile=profile_of(total=900)), {})

    (here,) = shown.documents

    states = [one.state for one in here.ranges]
    assert states == [CoverageState.LEFT_OUT, CoverageState.SEEN]
    words = shown.headline.words_before
    assert words.seen + words.not_seen == 400 * 9
    assert words.seen == sum(one.end - one.start for one in here.ranges[1:]) // 12 * 9


def test_what_the_window_of_the_skill_leaves_out_was_never_considered() -> None:
    text = f"{LONG}\n" * 400
    shown = cover(World(text=text, cursor=len(text), surrounding=120), {})

    (here,) = shown.documents

    assert [one.state for one in here.ranges] == [CoverageState.NEVER, CoverageState.SEEN]


def test_the_headline_names_chapters_of_which_nothing_is_seen() -> None:
    texts = {f"chapters/0{n}.md": LONG for n in range(1, 7)}
    seen = passage("chapters/03.md", LONG, 0, len(LONG))

    headline = cover(World(text="雨。", cursor=2), texts, (seen,)).headline

    assert [(one.first_number, one.last_number, one.count) for one in headline.unseen] == [
        (1, 2, 2),
        (4, 6, 3),
    ]
    assert (headline.passages, headline.passage_chapters) == (1, 1)


def test_a_passage_of_the_future_is_no_candidate() -> None:
    later = replace(passage("chapters/09.md", LONG, 0, 5), excluded=Rule.FUTURE)

    shown = cover(World(text="雨。", cursor=2), {"chapters/09.md": LONG}, (later,))

    assert [one.state for one in shown.documents[-1].ranges] == [CoverageState.FUTURE]


def test_lengths_and_ranges_are_those_that_the_client_counts() -> None:
    text = "😀" * 30 + "雨" * 30
    world = World(text="雨。", cursor=2)
    gathered = world.gathered()
    gathered.fragments[Layer.RETRIEVED] = (passage("chapters/03.md", text, 10, 40),)
    assembly = compose(placed(world, {"chapters/03.md": text}), gathered, text_tools())

    texts = {"chapters/03.md": DocumentText(text, 0, "chapters/03.md")}
    (document,) = coverage(assembly, texts, [], to_utf16).documents

    assert document.length == 90
    assert [(one.start, one.end) for one in document.ranges] == [(0, 20), (20, 70), (70, 90)]


def test_a_document_outside_of_the_story_has_no_place_in_time() -> None:
    world = World(text="雨。", cursor=2)
    outside = StoryDocument(path="notes.md", length=4)
    plan = replace(world.plan(), story=Story([], [outside]))
    assembly = compose(plan, world.gathered(), text_tools())

    texts = {"notes.md": DocumentText("notes", 0, "notes.md")}
    (document,) = coverage(
        assembly, texts, [], lambda _, places: {at: at for at in places}
    ).documents

    assert document.place == "outside"
    assert [one.state for one in document.ranges] == [CoverageState.NEVER]


def test_a_span_is_of_the_frame_or_of_a_layer() -> None:
    assert get_args(SpanLayer) == ("frame", *Layer)
