"""Passages as a source of the Retrieved layer."""

import gc
import weakref
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from creonowd.clock import SystemClock
from creonowd.context.fragment import Span, reading_key
from creonowd.context.plan import LastSentences, last_sentences, place, query_ends
from creonowd.context.plan import query as query_text
from creonowd.context.source import SourceQuery, SourceResult
from creonowd.context.story import Story, StoryDocument, StoryPlace
from creonowd.errors import DaemonError, ErrorCode
from creonowd.retrieval.project_index import Indexes
from creonowd.sources.characters import EntityCache, ProjectEntities
from creonowd.sources.passage_source import KEPT_BYTES, PassageSearch, PassageSource
from creonowd.threads import BatchCache, SharedReads
from creonowd.workspace.creonow_tree import ReadPlace, Tree
from testing.sources import result_at_once, result_of
from tests.retrieval.indexed_project import PATIENCE, IndexedProject

SNOW = "林远站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。"
WORDS = "雨门人影风夜花酒书路桥山水船马剑声泪梦月窗帘石阶檐钟茶琴"
BOAT = "船过了三道湾，水声忽然大起来，阿青把灯举高，照见岸上一排空空的马桩。"


@pytest.fixture
def indexed(tmp_path: Path) -> IndexedProject:
    return IndexedProject(tmp_path)


def ask(text: str = "", **more: Any) -> SourceQuery:
    document = place("now.md", text, len(text)).document if text else None
    return SourceQuery(
        project_id="prj_test",
        skill_id="general",
        limit=200,
        document_id="now.md",
        document=document,
        **more,
    )


async def fetch(indexed: IndexedProject, indexes: Indexes, asked: SourceQuery) -> SourceResult:
    with anyio.fail_after(PATIENCE):
        await indexes.of(indexed.project).complete(lambda _progress: None)
    return await result_of(source(indexed, indexes), asked)


def source(
    indexed: IndexedProject, indexes: Indexes, passages: PassageSearch | None = None
) -> PassageSource:
    entities = ProjectEntities(
        ReadPlace(Tree(SystemClock()), indexed.project, SharedReads()), EntityCache()
    )
    return PassageSource(passages or PassageSearch(indexes), indexed.project, entities)


def refs(fetched: SourceResult) -> list[str]:
    return [fragment.source_ref for fragment in fetched.fragments]


async def test_passages_about_the_text_before_the_cursor_are_found(indexed: IndexedProject):
    indexed.write("01.md", SNOW)
    indexed.write("02.md", BOAT)

    # Unwatched: a late word of these writes would begin another round.
    async with indexed.indexes(watching=False) as indexes:
        fetched = await fetch(indexed, indexes, ask("他又想起城门口的灯火。", query="城门口的灯火"))

    assert refs(fetched)[0] == "01.md#L1-L1"
    assert fetched.fragments[0].score == 1.0
    assert fetched.fragments[0].text == SNOW
    assert fetched.warnings == ()


async def test_what_was_found_for_the_step_before_keeps_its_place(indexed: IndexedProject):
    """The lamps are still spoken of, so their passage stays in front of the better one."""
    lamps, horses = "城门口的灯火，", "岸上空空的马桩，"
    indexed.write("01.md", BOAT + "马桩，马桩。")
    indexed.write("02.md", SNOW)
    text = f"{lamps * 6}\n\n{horses * 6}{lamps}"
    first = len(lamps) * 6
    both = {"query": text[first:], "query_end": len(text), "passage_room": 40}

    async with indexed.indexes(watching=False) as indexes:
        alone = await fetch(indexed, indexes, ask(text, **both, query_ends=(len(text),)))
        after = await fetch(indexed, indexes, ask(text, **both, query_ends=(first, len(text))))

    assert refs(alone) == ["01.md#L1-L1", "02.md#L1-L1"]
    by_place = sorted(alone.fragments, key=reading_key)
    assert [one.source_ref[:2] for one in by_place] == ["01", "02"]
    by_place = sorted(after.fragments, key=reading_key)
    assert [one.source_ref[:2] for one in by_place] == ["02", "01"]
    assert by_place[0].score == 1.0


async def test_what_is_no_longer_spoken_of_loses_its_place(indexed: IndexedProject):
    indexed.write("01.md", BOAT + "马桩，马桩。")
    indexed.write("02.md", SNOW)
    text = f"{'城门口的灯火，' * 6}\n\n{'岸上空空的马桩，' * 6}灯火。"
    first = 42
    steps = {"query": text[first:], "query_end": len(text), "query_ends": (first, len(text))}

    async with indexed.indexes(watching=False) as indexes:
        fetched = await fetch(indexed, indexes, ask(text, **steps, passage_room=40))

    assert refs(fetched)[0] == "01.md#L1-L1"
    assert all((one.score or 0) < 0.6 for one in fetched.fragments[1:])


async def test_what_the_author_wishes_for_counts(indexed: IndexedProject):
    indexed.write("01.md", SNOW)
    indexed.write("02.md", BOAT)

    async with indexed.indexes() as indexes:
        fetched = await fetch(indexed, indexes, ask("雪停了。", wish="写写岸上的马桩"))

    assert refs(fetched) == ["02.md#L1-L1"]


async def test_whoever_is_named_is_found_under_every_name(indexed: IndexedProject):
    indexed.write("01.md", SNOW)
    indexed.write("02.md", BOAT)
    indexed.write(".creonow/characters/林远.md", "---\naliases: [老更夫]\n---\n更夫")
    indexed.write(".creonow/characters/阿青.md", "---\naliases: [青姑娘]\n---\n船家")

    async with indexed.indexes() as indexes:
        fetched = await fetch(indexed, indexes, ask("", wish="老更夫"))

    assert refs(fetched) == ["01.md#L1-L1"]


async def test_passages_of_the_current_document_say_where_they_stand(indexed: IndexedProject):
    text = f"# 一\n{SNOW}\n# 二\n{BOAT}\n"
    indexed.write("now.md", text)

    async with indexed.indexes() as indexes:
        fetched = await fetch(indexed, indexes, ask(text, wish="城门口"))

    (fragment,) = fetched.fragments
    assert fragment.span == Span(0, text.index("\n# 二"))


async def test_what_is_hardly_about_it_is_not_offered(indexed: IndexedProject):
    indexed.write("01.md", f"{SNOW}{SNOW}城门口，城门口，雪里的灯火，灯火。")
    indexed.write("02.md", "他说没有。" + BOAT * 5)

    async with indexed.indexes() as indexes:
        fetched = await fetch(indexed, indexes, ask("", wish=f"{SNOW}没有"))

    assert refs(fetched) == ["01.md#L1-L1"]


async def test_an_incomplete_index_gives_what_it_has_and_says_so(indexed: IndexedProject):
    for number in range(150):
        indexed.write(f"{number}.md", SNOW * 40)

    async with indexed.indexes() as indexes:
        fetched = await result_of(source(indexed, indexes), ask("", wish="城门口"))

    assert [warning.code for warning in fetched.warnings] == ["RETRIEVAL_INDEXING"]


async def test_a_new_chapter_is_waited_for_as_long_as_the_index_grants(indexed: IndexedProject):
    indexed.write("novel.md", "".join(f"第{n}回 {SNOW}\n" for n in range(20_000)))

    async with indexed.indexes(grace_seconds=0) as indexes:
        at_once = await result_of(source(indexed, indexes), ask("", wish="城门口"))
    async with indexed.indexes() as indexes:
        later = await result_of(source(indexed, indexes), ask("", wish="城门口"))

    assert [warning.code for warning in at_once.warnings] == ["RETRIEVAL_INDEXING"]
    assert later.warnings == ()
    assert refs(later)


async def test_an_index_that_cannot_be_kept_is_a_failure(indexed: IndexedProject):
    indexed.user_data.mkdir()
    (indexed.user_data / "retrieval").write_text("in the way", encoding="utf-8")

    async with indexed.indexes() as indexes:
        await indexes.of(indexed.project).step(after=0)
        with pytest.raises(DaemonError) as caught:
            await fetch(indexed, indexes, ask("", wish="城门口"))

    assert caught.value.code is ErrorCode.IO_ERROR


async def test_without_anything_to_search_with_nothing_is_found(indexed: IndexedProject):
    indexed.write("01.md", SNOW)

    async with indexed.indexes() as indexes:
        fetched = await fetch(indexed, indexes, ask())

    assert fetched.fragments == ()


async def test_the_same_question_is_answered_with_equal_fragments(indexed: IndexedProject):
    indexed.write("01.md", SNOW)

    async with indexed.indexes() as indexes:
        first = await fetch(indexed, indexes, ask("", wish="城门口"))
        again = await fetch(indexed, indexes, ask("", wish="城门口"))

    assert first == again


async def test_what_was_found_is_kept_within_a_bound_and_without_old_indexes(
    indexed: IndexedProject,
):
    indexed.write("01.md", SNOW)
    long = "雪停了。" * 250_000

    async with indexed.indexes() as indexes:
        await fetch(indexed, indexes, ask(wish="灯火"))
        passages = PassageSearch(indexes)
        for number in range(40):
            one = source(indexed, indexes, passages)
            one.read_ahead(BatchCache())
            asked = ask(f"{number}{long}", wish="灯火")
            while (first := result_at_once(one, asked)) is None:
                await fetch(indexed, indexes, ask(wish="灯火"))
            assert result_at_once(one, asked) is first
        loaded = weakref.ref(indexes.of(indexed.project).loaded)
        indexed.write("02.md", BOAT)
        indexes.of(indexed.project).files_changed()
        await fetch(indexed, indexes, ask(wish="马桩"))

    gc.collect()
    assert len(passages.results) * len(long) <= KEPT_BYTES
    assert loaded() is None


async def test_within_a_passage_the_cursor_moves_without_another_search(indexed: IndexedProject):
    indexed.write("01.md", SNOW)
    indexed.write("now.md", f"{BOAT}\n{SNOW}")
    text = f"{BOAT}\n{SNOW}"

    async with indexed.indexes() as indexes:
        await fetch(indexed, indexes, ask(wish="灯火"))
        passages = PassageSearch(indexes)

        def found(cursor: int) -> SourceResult | None:
            one = source(indexed, indexes, passages)
            one.read_ahead(BatchCache())
            document = place("now.md", text, cursor).document
            return result_at_once(one, replace(ask(wish="灯火"), document=document, query=BOAT))

        while found(len(BOAT) + 3) is None:
            await fetch(indexed, indexes, ask(wish="马桩"))
        searches = [len(passages.results)]
        for cursor in (len(BOAT) + 12, len(BOAT) - 3):
            found(cursor)
            searches.append(len(passages.results))

    assert searches == [1, 1, 2]


async def test_what_is_kept_is_what_a_new_search_finds_at_every_place(indexed: IndexedProject):
    """A cursor right at the beginning of a passage has it before it, one further on has not."""
    chance = Random(5)
    text = "\n".join(f"{''.join(chance.choices(WORDS, k=200))}灯火。" for _ in range(30))
    indexed.write("01.md", f"{SNOW}\n{BOAT}")
    indexed.write("now.md", text)
    story = Story(documents=[StoryDocument(path="01.md"), StoryDocument(path="now.md")])

    async with indexed.indexes() as indexes:
        await fetch(indexed, indexes, ask(wish="灯火"))
        loaded = indexes.of(indexed.project).loaded
        assert loaded is not None
        ends = [at for at in loaded.ends_in("now.md") if 0 < at < len(text)]
        kept = PassageSearch(indexes)

        async def found(cursor: int, passages: PassageSearch, *, selected: int) -> SourceResult:
            one = source(indexed, indexes, passages)
            one.read_ahead(BatchCache())
            span = Span(cursor, cursor + selected) if selected else None
            document = place("now.md", text, cursor, span).document
            here = StoryPlace(1, cursor)
            asked = replace(ask(wish="灯火"), document=document, story=story, here=here)
            return await result_of(one, asked)

        places = [
            (at + step, selected) for at in ends[:6] for step in (1, 0, -1) for selected in (0, 3)
        ]
        for cursor, selected in places:
            again = await found(cursor, kept, selected=selected)
            anew = await found(cursor, PassageSearch(indexes), selected=selected)
            assert again == anew, (cursor, selected)

    assert len(ends) > 6
    assert len(kept.results) < len(places)


async def test_what_is_kept_while_an_author_types_is_what_a_new_search_finds(
    indexed: IndexedProject,
):
    """Letters move the passages of the document; a line taken away, and copies of it, are gone."""
    chance = Random(7)
    lines = [f"{''.join(chance.choices(WORDS, k=150))}灯火。" for _ in range(20)]
    text = "\n".join(lines)
    indexed.write("01.md", f"{SNOW}\n{lines[3]}\n{BOAT}")
    indexed.write("now.md", text)
    indexed.write("zz.md", f"{lines[15]}\n{SNOW}灯火，灯火。")
    names = ("01.md", "now.md", "zz.md")
    story = Story(documents=[StoryDocument(path=name) for name in names])

    async with indexed.indexes(watching=False) as indexes:
        await fetch(indexed, indexes, ask(wish="灯火"))
        kept = PassageSearch(indexes)

        async def found(text: str, cursor: int, passages: PassageSearch) -> SourceResult:
            one = source(indexed, indexes, passages)
            one.read_ahead(BatchCache())
            ends = query_ends(text, cursor, 400)
            asked = replace(
                ask(wish="灯火"),
                document=place("now.md", text, cursor).document,
                query=query_text(text, ends[-1]),
                query_end=ends[-1],
                query_ends=ends,
                last=last_sentences(text, ends[-1], cursor),
                passage_room=400,
                story=story,
                here=StoryPlace(1, cursor),
            )
            return await result_of(one, asked)

        cursor, kept_back = len(text) // 2, 0
        for turn in range(60):
            if turn % 7 == 3:
                start = chance.randrange(len(text) - 200)
                text = text[:start] + text[start + 160 :]
                cursor = min(cursor, len(text))
            elif turn % 7 == 5:
                cursor = chance.randrange(len(text))
            typed = "".join(chance.choices(WORDS, k=chance.randint(1, 9)))
            text, cursor = text[:cursor] + typed + text[cursor:], cursor + len(typed)
            again = await found(text, cursor, kept)
            assert again == await found(text, cursor, PassageSearch(indexes)), (turn, cursor)
            kept_back += any(one.excluded is not None for one in again.fragments)

    assert kept_back > 20
    assert len(kept.search_fragments) < 100


async def test_a_document_that_was_edited_is_searched_at_each_place(indexed: IndexedProject):
    """What is indexed has moved in it, so nobody knows which passages the cursor has passed."""
    indexed.write("01.md", SNOW)
    indexed.write("now.md", BOAT)

    async with indexed.indexes() as indexes:
        await fetch(indexed, indexes, ask(wish="灯火"))
        passages = PassageSearch(indexes)

        def found(cursor: int) -> SourceResult | None:
            one = source(indexed, indexes, passages)
            one.read_ahead(BatchCache())
            document = place("now.md", f"{SNOW}\n{BOAT}", cursor).document
            return result_at_once(one, replace(ask(wish="灯火"), document=document))

        while found(5) is None:
            await fetch(indexed, indexes, ask(wish="马桩"))
        found(6)

    assert len(passages.results) == 2


async def test_another_sentence_asks_without_the_query_being_searched_again(
    indexed: IndexedProject,
):
    """What the query found is kept for itself; sentences are finished more often than it moves."""
    indexed.write("01.md", SNOW)
    indexed.write("now.md", BOAT)

    async with indexed.indexes() as indexes:
        await fetch(indexed, indexes, ask(wish="灯火"))
        kept, fresh = PassageSearch(indexes), PassageSearch(indexes)

        def found(passages: PassageSearch, *late: str) -> SourceResult | None:
            one = source(indexed, indexes, passages)
            one.read_ahead(BatchCache())
            document = place("now.md", BOAT, 5).document
            last = LastSentences(after_query_end=late)
            return result_at_once(one, replace(ask(wish="灯火"), document=document, last=last))

        while found(kept) is None:
            await fetch(indexed, indexes, ask(wish="马桩"))
        later = found(kept, SNOW)

        assert len(kept.query_fragments) == 1
        assert len(kept.results) == 2
        assert later == found(fresh, SNOW)
