"""From what was found to what is offered."""

from pathlib import Path

from creonowd.retrieval.database import sketch
from creonowd.retrieval.query import terms_of
from creonowd.retrieval.ranking import CurrentDocument, Duplicates, source_ref
from tests.retrieval.text_indexes import index_of, ranked

SNOW = "林远站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。"
BOAT = "船过了三道湾，水声忽然大起来，林远把灯举高，照见岸上一排空空的马桩。"


def test_the_best_one_scores_one_and_all_others_less(tmp_path: Path):
    database = index_of(tmp_path, a="林远，林远，林远。", b=SNOW)

    scores = [one.score for one in ranked(database, "林远")]

    assert scores[0] == 1.0
    assert 0 < scores[1] < 1


def test_near_duplicates_step_back_for_the_best(tmp_path: Path):
    copy = SNOW.replace("两盏", "三盏")
    database = index_of(tmp_path, draft=copy, chapter=SNOW, other=BOAT)

    found = {source_ref(one.found): one.duplicates for one in ranked(database, "林远")}

    assert found == {"chapter.md#L1-L1": ("draft.md#L1-L1",), "other.md#L1-L1": ()}


def test_a_copy_of_what_the_author_is_at_steps_back_for_it(tmp_path: Path):
    database = index_of(tmp_path, a_copy=SNOW, chapter=SNOW, other=BOAT)
    current = CurrentDocument(path="chapter.md", text=SNOW, query_start=0, query_end=len(SNOW))

    found = ranked(database, "林远 城门口", current=current)

    assert [one.found.path for one in found] == ["chapter.md", "other.md"]
    assert found[0].duplicates == ("a_copy.md#L1-L1",)


def test_what_the_query_was_made_of_does_not_set_the_measure(tmp_path: Path):
    database = index_of(tmp_path, chapter=SNOW, other=BOAT)
    current = CurrentDocument(path="chapter.md", text=SNOW, query_start=0, query_end=len(SNOW))

    found = ranked(database, SNOW, current=current)

    assert {one.found.path: one.score for one in found} == {"chapter.md": 1.0, "other.md": 1.0}


def test_passages_of_the_current_document_are_where_they_stand_now(tmp_path: Path):
    database = index_of(tmp_path, chapter=f"# 一\n{SNOW}\n# 二\n{BOAT}\n")
    now = f"# 零\n\n# 一\n改了。\n# 二\n{BOAT}\n"

    current = CurrentDocument(path="chapter.md", text=now)

    (found,) = ranked(database, "林远", current=current)

    assert source_ref(found.found) == "chapter.md#L5-L6"
    assert now[found.found.start : found.found.end] == found.found.text


def test_no_more_are_ranked_than_wanted(tmp_path: Path):
    database = index_of(tmp_path, **{f"d{n}": f"林远{chr(0x4E00 + n)}" for n in range(30)})

    assert len(ranked(database, "林远", limit=7)) == 7


SNOWFALL = "他站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。" * 2
RIVER = "船过了三道湾，水声忽然大起来，她把灯举高，照见岸上一排空空的马桩。" * 2


def fingerprint(text: str) -> bytes:
    return sketch(terms_of(text))


def test_the_same_text_is_recognised():
    duplicates = Duplicates()

    assert duplicates.find(fingerprint(SNOWFALL)) is None
    assert duplicates.find(fingerprint(RIVER)) is None
    assert duplicates.find(fingerprint(SNOWFALL)) == 0


def test_a_few_other_words_do_not_matter():
    duplicates = Duplicates()
    duplicates.find(fingerprint(RIVER))
    duplicates.find(fingerprint(SNOWFALL))

    assert duplicates.find(fingerprint(SNOWFALL.replace("两盏", "三盏") + "完。")) == 1


def test_common_words_make_no_likeness():
    duplicates = Duplicates()
    duplicates.find(fingerprint("宝玉道：这话很是。" + SNOWFALL))

    assert duplicates.find(fingerprint("宝玉道：这话很是。" + RIVER)) is None


def test_tiny_and_empty_passages_have_fingerprints_too():
    duplicates = Duplicates()

    found = [duplicates.find(fingerprint(text)) for text in ("剑", "", "剑", "！", "刀")]

    assert found == [None, None, 0, None, None]
