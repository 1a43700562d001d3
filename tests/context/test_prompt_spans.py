"""The spans of a prompt: joined they are the prompt, and each names where it comes from."""

from hypothesis import given, reject

from creonowd.context.fragment import FragmentKind, Layer
from creonowd.context.prompt_spans import PieceKind, prompt_text
from creonowd.context.result import break_points
from creonowd.errors import DaemonError
from creonowd.workspace.documents import to_utf16
from testing.sources import piece
from tests.context.worlds import World, assemble_world, worlds


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
