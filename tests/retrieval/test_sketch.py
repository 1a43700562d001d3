"""How passages that say nearly the same are recognised."""

from creonowd.retrieval.index_writer import Alike, sketch
from creonowd.retrieval.query import terms_of

SNOW = "他站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。" * 2
RIVER = "船过了三道湾，水声忽然大起来，她把灯举高，照见岸上一排空空的马桩。" * 2


def fingerprint(text: str) -> bytes:
    return sketch(terms_of(text))


def test_the_same_text_is_recognised():
    alike = Alike()

    assert alike.find(fingerprint(SNOW)) is None
    assert alike.find(fingerprint(RIVER)) is None
    assert alike.find(fingerprint(SNOW)) == 0


def test_a_few_other_words_do_not_matter():
    alike = Alike()
    alike.find(fingerprint(RIVER))
    alike.find(fingerprint(SNOW))

    assert alike.find(fingerprint(SNOW.replace("两盏", "三盏") + "完。")) == 1


def test_common_words_make_no_likeness():
    alike = Alike()
    alike.find(fingerprint("宝玉道：这话很是。" + SNOW))

    assert alike.find(fingerprint("宝玉道：这话很是。" + RIVER)) is None


def test_tiny_and_empty_passages_have_fingerprints_too():
    alike = Alike()

    found = [alike.find(fingerprint(text)) for text in ("剑", "", "剑", "！", "刀")]

    assert found == [None, None, 0, None, None]
