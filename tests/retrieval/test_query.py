"""What is searched with."""

from creonowd.retrieval.query import MOST_TERMS, make_query

STORY = "林远走进雪里的驿站，驿站的灯还亮着。他想起了那枚玉佩。"


def test_names_weigh_most_then_wishes_then_the_text():
    query = make_query("驿站亮着", "那枚玉佩", names=["林远"])

    assert query.weights["林远"] > query.weights["玉佩"] > query.weights["驿站"] > 0
    assert query.names == ("林远",)


def test_function_words_of_the_text_are_left_out():
    query = make_query("他在那里说了，and the boat")

    assert set(query.weights) == {"boat"}


def test_what_the_author_asks_for_is_taken_as_it_is():
    assert set(make_query("", "他在这里").weights) == {"他在", "在这", "这里"}


def test_what_is_repeated_weighs_more():
    weights = make_query(STORY).weights

    assert weights["驿站"] > weights["玉佩"]


def test_single_characters_serve_only_where_there_is_nothing_else():
    assert set(make_query("", "剑").weights) == {"剑"}
    assert set(make_query("", "拔剑").weights) == {"拔剑"}


def test_a_long_text_asks_with_its_last_words():
    text = "".join(f"{chr(0x4E00 + n)}{chr(0x5E00 + n)}。" for n in range(500))

    query = make_query(text, names=["林黛玉"])

    assert len(query.weights) == MOST_TERMS
    assert f"{chr(0x4E00 + 499)}{chr(0x5E00 + 499)}" in query.weights
    assert {"林黛", "黛玉"} <= set(query.weights)


def test_nothing_asks_for_nothing():
    assert make_query("", "").weights == {}


def test_the_order_of_names_does_not_matter():
    assert make_query(STORY, names=["林远", "阿青"]) == make_query(STORY, names=["阿青", "林远"])
