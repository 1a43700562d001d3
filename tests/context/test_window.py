"""The window on the document: what stays, what goes, and that typing does not move it."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.assemble import Assembly
from creonowd.context.candidates import TrimEvidence
from creonowd.context.fragment import Action, Layer, Rule, Span
from creonowd.context.language import CHINESE, heading
from creonowd.context.window import Manuscript, snap
from creonowd.redaction.split_points import split_points
from creonowd.tokens.boundaries import paragraphs, sentences
from testing.sources import piece
from tests.context.worlds import (
    REDACTOR,
    SECRET,
    SENTENCES,
    CountingTokenizer,
    World,
    assemble_world,
    profile_of,
    text_tools,
)
from tests.tokens.vocabulary import PIECES, tokenizer

NOVEL = "".join(
    f"第{n}段，林远推开门，雨还在下，檐水滴在石阶上。苏晴没有抬头，只问了一句：“你来了{n}次？”\n"
    for n in range(2000)
)
PARAGRAPHS = "".join(f"第{n:02}段。".ljust(19, "字") + "\n" for n in range(20))
ENGLISH = "".join(
    f"{n}. "
    + "The rain had not stopped, and nobody in the house would say why he came. " * (n % 9)
    + "\n\n"
    for n in range(90)
)
TEXTS = {
    "novel": NOVEL[:20_000],
    "English": ENGLISH,
    "one line": "雨还在下檐水滴在石阶上苏晴没有抬头" * 600,
    "no end": "LINYUAN OPENED THE DOOR AND " * 400,
    "emoji": "👩‍👩‍👧‍👦🇩🇪 " * 900,
    "rare": "𠮷𡈽𠀋𪚥" * 1500,
}
REF = "chapters/07.md"

USING = text_tools()
LINES = re.compile(r"\n### 以上摘自 ref:chapters/07\.md#L(\d+)-L(\d+)\n")
KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQ\n" * 9
    + "-----END PRIVATE KEY-----\n"
)


PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(
        "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun"[i:] for i in range(12)
    )
    + "\n-----END RSA PRIVATE KEY-----"
)
PGP = (
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: 我的钥匙。\nVersion: made by hand.\n\n"
    + "\n".join(
        "lQOYBGVkY3kBCADO9q0sXnqcV1wPkD7uT3rE5yHhJ2mZb8gQaLfRtUoWnMxKsCeI"[i:] for i in range(12)
    )
    + "\n-----END PGP PRIVATE KEY BLOCK-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
WRITTEN = (
    *SENTENCES,
    PEM,
    PGP,
    PGP.partition("\n\n")[0],
    f"token: {JWT}",
    "password = hunter2!Xy9",
    "密码：\nQm3kP9xW2z",
    "打开 /home/alice/novel/草稿.md 看看。",
    "C:\\Users\\alice\\novel\\draft.md",
    f'{{"apiKey": "{SECRET}"}}',
    "",
    "#",
    *PIECES,
)
manuscripts = st.tuples(
    st.lists(st.sampled_from(WRITTEN), max_size=60), st.sampled_from(("\n", "\r\n", "\n\n"))
).map(lambda drawn: drawn[1].join(drawn[0]))


def evidence(assembly: Assembly) -> TrimEvidence:
    (found,) = [
        v.evidence
        for v in assembly.layers[Layer.IMMEDIATE].decisions
        if v.evidence.rule in {Rule.WINDOW, Rule.SKILL_WINDOW}
    ]
    return found


def before(assembly: Assembly) -> str:
    return _between(assembly.user_content.text, heading(REF), ("### ", "## "))


def after(assembly: Assembly) -> str:
    return _between(assembly.user_content.text, CHINESE.heading_after(REF), ("### ", "## "))


def _between(text: str, start: str, ends: tuple[str, ...]) -> str:
    if start not in text:
        return ""
    rest = text.partition(start)[2]
    cut = min((i for e in ends if (i := rest.find(f"\n{e}")) >= 0), default=len(rest) - 1)
    return rest[:cut]


def at(cursor: int, **changes: object) -> World:
    world = World(text=NOVEL, cursor=cursor, profile=profile_of(3000, (0, 0, 0, 1000)))
    return replace(world, **changes)  # pyright: ignore[reportArgumentType]


def test_a_short_document_is_shown_whole() -> None:
    assembly = assemble_world(at(30, text=NOVEL[:400]))

    assert before(assembly) == NOVEL[:30]
    assert after(assembly) == NOVEL[30:400]
    assert evidence(assembly).action is Action.KEPT


@pytest.mark.requirement("CE-017")
def test_of_a_long_one_the_text_nearest_before_the_cursor_stays() -> None:
    assembly = assemble_world(at(50_000))

    assert NOVEL[:50_000].endswith(before(assembly))
    assert len(before(assembly)) > 1500
    assert evidence(assembly).action is Action.TRIMMED


def test_the_window_begins_on_the_grid_at_a_paragraph() -> None:
    half = 1500 // 4 // 2
    assembly = assemble_world(at(50_000))

    start = 50_000 - len(before(assembly))

    assert NOVEL[start - 1] == "\n"
    assert start - start // half * half < 60


def test_typing_does_not_move_the_start_of_the_window_but_in_steps() -> None:
    starts = {50_000 + n - len(before(assemble_world(at(50_000 + n)))) for n in range(0, 375, 15)}

    assert len(starts) <= 3


def test_a_minimum_that_needs_nearly_all_a_skill_asks_for_does_not_move_the_window() -> None:
    """2000 characters around the cursor have little more than the 2000 tokens that are promised."""
    text = "雨还在下，檐水滴在石阶上。" * 800
    around = 1000
    promised = USING.count(text[:around]) - 50
    profile = profile_of(3 * promised, (0, 0, 0, promised))

    def start(cursor: int) -> int:
        world = at(cursor, text=text, surrounding=around, profile=profile)
        return cursor - len(before(assemble_world(world, USING)))

    starts = {start(cursor) for cursor in range(5000, 5250, 10)}

    assert len(starts) <= 3


def test_what_is_left_goes_to_the_text_after_the_cursor() -> None:
    assembly = assemble_world(at(600))

    assert before(assembly) == NOVEL[:600]
    assert NOVEL[600:].startswith(after(assembly))
    assert after(assembly).endswith("\n")
    assert assembly.tokens > 2800


def test_what_lies_after_goes_before_anything_that_lies_before() -> None:
    roomy = assemble_world(at(1500))
    tight = assemble_world(at(1500, additional_input="再长一些的指令。" * 120))

    assert before(tight) == before(roomy)
    assert len(after(tight)) < len(after(roomy))


def test_without_room_for_a_step_the_cut_is_finer() -> None:
    assembly = assemble_world(at(50_000, additional_input="长指令。" * 680))

    shown = before(assembly)

    assert 0 < len(shown) < 375
    assert NOVEL[:50_000].endswith(shown)


@pytest.mark.requirement("SK-031")
@given(data=st.data(), around=st.integers(1, 3000))
def test_surrounding_bounds_each_side_and_wastes_less_than_a_step(
    data: st.DataObject, around: int
) -> None:
    text = TEXTS[data.draw(st.sampled_from(sorted(TEXTS)))]
    cursor = data.draw(st.integers(0, len(text)))
    world = at(cursor, text=text, surrounding=around, profile=profile_of(60_000))
    step = around // 4
    grapheme = 6 if "\u200d" in text else 0

    assembly = assemble_world(world, USING)

    document = world.plan().document
    assert document is not None
    shown = (
        (before(assembly), text[: document.cursor]),
        (after(assembly), text[document.cursor :]),
    )
    for side, there in shown:
        assert len(side) <= around
        if around >= 8:
            assert len(side) >= min(len(there.strip()), around - step - grapheme)


def test_the_document_is_a_candidate_of_its_true_size() -> None:
    """What a skill's window leaves out is in the evidence, and nobody calls it truncated."""
    chapter = NOVEL[:9000]
    whole = assemble_world(at(4000, text=chapter, profile=profile_of(60_000)), USING)
    assembly = assemble_world(at(4000, text=chapter, surrounding=400), USING)

    found = evidence(assembly)

    assert (found.action, found.rule) == (Action.TRIMMED, Rule.SKILL_WINDOW)
    assert found.before_chars == len(chapter)
    assert found.before_tokens == evidence(whole).before_tokens == evidence(whole).after_tokens
    assert found.after_chars == len(before(assembly)) + len(after(assembly)) <= 800
    assert not assembly.layers[Layer.IMMEDIATE].truncated
    assert not [d for d in assembly.decisions() if d.fits_with is not None]


def test_where_the_budget_cuts_what_the_skill_asks_for_it_is_the_window() -> None:
    assembly = assemble_world(at(50_000, surrounding=20_000), USING)

    found = evidence(assembly)

    assert (found.action, found.rule) == (Action.TRIMMED, Rule.WINDOW)
    assert found.before_chars == len(NOVEL)
    assert assembly.layers[Layer.IMMEDIATE].truncated


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("surrounding", [None, 400])
def test_of_a_novel_in_one_file_the_far_ends_are_measured_but_not_counted(
    surrounding: int | None, end: str
) -> None:
    counter = CountingTokenizer(tokenizer("o200k_base"))
    text = (NOVEL * 10).replace("\n", end)

    assembly = assemble_world(at(500_000, text=text, surrounding=surrounding), text_tools(counter))

    found = evidence(assembly)
    assert found.before_chars == 10 * len(NOVEL)
    assert 2 * 3000 < found.before_tokens < 40_000
    assert counter.characters < len(text) // 5


def test_a_document_with_nothing_but_blanks_around_the_cursor_is_left_out_whole() -> None:
    text = f"林远。\n{' ' * 900}\n林远。"
    assembly = assemble_world(at(400, text=text, surrounding=20))

    found = evidence(assembly)

    assert (found.action, found.rule) == (Action.DROPPED, Rule.SKILL_WINDOW)
    assert (found.before_chars, found.after_chars, found.after_tokens) == (len(text), 0, 0)


@pytest.mark.requirement("CE-003")
@given(
    data=st.data(),
    promised=st.integers(100, 2000),
    surrounding=st.sampled_from((None, 3000, 20_000)),
)
def test_immediate_has_its_minimum_whenever_there_is_that_much_text(
    data: st.DataObject, promised: int, surrounding: int | None
) -> None:
    """However large the settings are and however many chunks wait for room.

    Of what a skill asks for a step may be missing before the cursor, and behind it a paragraph or
    sentence that its limit cuts.
    """
    text = TEXTS[data.draw(st.sampled_from(sorted(TEXTS)))]
    cursor = data.draw(st.integers(0, len(text)))
    total = 2 * promised + 1000
    world = at(
        cursor,
        text=text,
        surrounding=surrounding,
        settings=(piece(Layer.SETTINGS, "设定.md", "设定一条，又一条。\n" * 2000),),
        retrieved=tuple(
            piece(Layer.RETRIEVED, f"{n}", f"前文{n}。" + "他走了。" * n, score=0.5)
            for n in range(1, 60)
        ),
        task="续写。",
        profile=profile_of(total, (0, 0, 0, promised), (0.15, 0.10, 0.25, 0.2)),
    )
    around = len(text) if surrounding is None else surrounding
    start = cursor - around
    start += around // 4 if surrounding is not None and start > 0 else 0
    end = min(len(text), cursor + around)
    if end < len(text):
        sentence = max(sentences(text, cursor, end), default=end)
        end = max(paragraphs(text, cursor, end), default=sentence)
    document = text[max(0, start) : end]

    assembly = assemble_world(world, USING)

    immediate = assembly.layers[Layer.IMMEDIATE]
    assert assembly.tokens <= total
    if USING.count(document) >= promised:
        assert immediate.tokens >= promised
        assert Layer.IMMEDIATE not in [warning.layer for warning in assembly.warnings]


def test_surrounding_of_zero_shows_no_document() -> None:
    assembly = assemble_world(at(50_000, surrounding=0))

    assert not assembly.layers[Layer.IMMEDIATE].decisions


def test_a_selection_is_shown_once_and_the_document_around_it() -> None:
    selection = Span(50_000, 50_030)
    assembly = assemble_world(at(10, selection=selection))

    assert assembly.user_content.text.count(NOVEL[50_000:50_030]) == 1
    assert NOVEL[:50_000].endswith(before(assembly))


def test_a_selection_stands_where_the_task_wants_it() -> None:
    assembly = assemble_world(at(10, selection=Span(50_000, 50_030), task="润色：{{text}}"))

    assert f"## Task\n润色：{NOVEL[50_000:50_030]}\n" in assembly.user_content.text
    assert assembly.user_content.text.count(NOVEL[50_000:50_030]) == 1


def test_a_crlf_document_is_rendered_with_lf() -> None:
    text = NOVEL[:2000].replace("\n", "\r\n")
    assembly = assemble_world(at(1000, text=text))

    assert "\r" not in assembly.user_content.text
    assert before(assembly) == text[:1000].replace("\r\n", "\n")


def test_a_cursor_in_a_secret_shows_neither_half() -> None:
    secret = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"
    text = f"他把密钥写在纸上：{secret}，然后烧了。"
    assembly = assemble_world(at(text.index(secret) + 10, text=text))

    assert before(assembly) == "他把密钥写在纸上："
    assert after(assembly) == "***REDACTED***，然后烧了。"


@pytest.mark.requirement("SK-021")
@pytest.mark.parametrize("surrounding", [None, 7, 900])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("secret", ["", KEY])
def test_what_is_shown_says_which_lines_it_covers(
    surrounding: int | None, end: str, secret: str
) -> None:
    text = NOVEL
    for near in ("第1109段", "第1113段"):
        text = text.replace(near, secret + near)
    text = text.replace("\n", end)
    cursor = text.index("第1111段") + 20
    assembly = assemble_world(at(cursor, text=text, surrounding=surrounding))

    found = LINES.search(assembly.user_content.text)

    assert found is not None
    first, last = int(found[1]), int(found[2])
    raw = text.split("\n")
    shown = [line.rstrip("\r") for line in raw[first - 1 : last]]
    own = before(assembly).split("\n") + after(assembly).split("\n")
    assert own[0] in shown[0]
    assert own[-1] in shown[-1]
    assert first <= text.count("\n", 0, cursor) + 1 <= last


def test_a_document_that_is_shown_whole_needs_no_lines() -> None:
    assembly = assemble_world(at(30, text=NOVEL[:400]))

    assert not LINES.search(assembly.user_content.text)


def test_a_new_line_changes_nothing_before_itself() -> None:
    """The lines stand behind the text: in its heading they would cost the cache of all of it."""
    once = assemble_world(at(len(NOVEL))).user_content.text
    again = assemble_world(
        at(len(NOVEL) + 9, text=f"{NOVEL}他站住了，没回头。\n")
    ).user_content.text

    kept = LINES.split(once)[0]
    assert len(kept) > 1500
    assert again.startswith(kept)


def test_the_start_of_a_document_is_on_the_grid() -> None:
    assert snap(PARAGRAPHS, 0, 50, 400) == 0


def test_a_multiple_moves_on_to_the_next_paragraph() -> None:
    assert snap(PARAGRAPHS, 50, 50, 400) == 60
    assert snap(PARAGRAPHS, 60, 50, 400) == 60


def test_what_lies_behind_the_cursor_does_not_move_it() -> None:
    assert snap(PARAGRAPHS, 50, 50, 60) == 50
    assert snap(PARAGRAPHS, 50, 50, 61) == 60


def test_without_a_paragraph_within_a_step_a_sentence_will_do() -> None:
    text = "他走了。她没有回头。雨还在下。" * 20

    assert snap(text, 50, 20, 400) == 55


def test_without_either_it_is_the_multiple_itself_but_never_inside_a_grapheme() -> None:
    assert snap("字" * 200, 50, 20, 400) == 50
    assert snap("e\u0301" * 100, 51, 20, 400) == 52


@given(text=manuscripts, data=st.data())
def test_segments_redact_as_the_whole_does(text: str, data: st.DataObject) -> None:
    opened = data.draw(st.integers(0, len(text)))

    read = Manuscript(text, opened, text_tools()).read_span(0, len(text))

    assert read == REDACTOR.redact(text.replace("\r\n", "\n")).text


@given(text=manuscripts, cursors=st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_a_cursor_that_moves_sees_what_a_new_one_does(text: str, cursors: list[float]) -> None:
    """What is kept of a document does not show: not in the window, nor in what was taken out."""
    kept = text_tools()

    for share in cursors:
        world = World(text=text, cursor=int(share * len(text)), surrounding=None)
        assembly, anew = assemble_world(world, kept), assemble_world(world, text_tools())
        assert assembly.layers == anew.layers
        assert assembly.break_points == anew.break_points
        assert assembly.prompt_hash == anew.prompt_hash


@given(text=manuscripts, data=st.data())
def test_no_span_of_a_document_shows_half_a_secret(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    read = Manuscript(text, start, text_tools()).read_span(start, end)

    whole = REDACTOR.redact(text.replace("\r\n", "\n")).text
    assert read in whole
    assert "hunter2" not in read
    assert SECRET[3:12] not in read


@given(text=manuscripts, data=st.data())
def test_edges_do_not_depend_on_where_one_looks(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    found = split_points(text, start, end)

    assert found == [edge for edge in split_points(text, 0, len(text)) if start < edge.at < end]


def test_a_document_without_sentences_is_split_on_a_grid() -> None:
    text = "他走了，她没有回头，雨还在下，" * 4000 + SECRET + "，于是他又回来了，" * 4000

    found = split_points(text, 0, len(text))
    read = Manuscript(text, 60_010, text_tools()).read_span(0, len(text))

    assert len(found) > 5
    assert all(edge.may_cut_secret for edge in found)
    assert read == REDACTOR.redact(text).text


@pytest.mark.parametrize("ends", ["。", "!", "see x."])
def test_a_private_key_stays_out_whatever_its_comments_end_in(ends: str) -> None:
    """Lines of a key that end as sentences do are no place to take a document apart."""
    body = PGP.partition("\n\n")[2]
    head = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"
    comments = "".join(f"Comment: {c}{ends}\n" for c in "abcdefghijklmnopqrstuvwxyz甲乙丙丁")
    text = f"他走了。\n{head}{comments}\n{body}\n她来了。"

    read = Manuscript(text, len(text) - 2, text_tools()).read_span(0, len(text))

    assert read == "他走了。\n***REDACTED***\n她来了。"


def test_a_very_long_private_key_stays_out() -> None:
    body = f"{PGP.splitlines()[4]}\n" * 500
    head, end = PGP.partition("\n\n")[0], PGP.splitlines()[-1]
    text = f"他走了。\n{head}\n\n{body}{end}\n她来了。"

    read = Manuscript(text, len(text) // 2, text_tools()).read_span(0, len(text))

    assert read == "他走了。\n***REDACTED***\n她来了。"
