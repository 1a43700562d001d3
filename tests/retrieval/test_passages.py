"""Documents are cut into passages under their headings, without their secrets."""

import itertools
import random
import sqlite3
import threading
from pathlib import Path

import psutil
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.retrieval.passages import (
    MOST_TOKENS,
    DamagedIndexError,
    Database,
    Headings,
    Passage,
    cut,
    heading_of,
    indexed_documents,
    remove_document,
    set_mark,
    without_secrets,
)
from creonowd.tokens.tokenizer import Tokenizers
from tests.retrieval.text_indexes import find, index_of, is_whole, refs, write

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
PROSE = "　　他站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。\r\n"

REDACTOR = Redactor()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TOKEN = "ghp_" + "a1B2" * 9


def novel() -> str:
    """The Chinese novel of the shared corpus where it is there, else prose of our own."""
    path = CORPUS / "hongloumeng.txt"
    if path.is_file():
        return path.read_bytes().decode("utf-8-sig")
    return "".join(f"第{n}章 雪\r\n" + PROSE * (n % 40 + 1) for n in range(1, 80))


def test_a_passage_knows_its_lines_headings_and_offsets():
    text = "# 卷一\n\n## 雪\n\n下雪了。\n\n天亮了。\n"

    (passage,) = cut(text)

    assert passage.lines == "L1-L7"
    assert passage.heading == ("卷一", "雪")
    assert text[passage.start : passage.end] == passage.text == text.rstrip()


def test_a_heading_opens_a_passage():
    passages = list(cut("# 一\n甲\n# 二\n乙\n"))

    assert [(p.lines, p.heading) for p in passages] == [("L1-L2", ("一",)), ("L3-L4", ("二",))]


def test_lines_are_counted_as_editors_do():
    passages = list(cut("甲\r\n乙\r丙\n\n# 丁\r\n戊"))

    assert [passage.lines for passage in passages] == ["L1-L3", "L5-L6"]


def test_passages_are_about_four_hundred_tokens_at_most():
    tokenizer = Tokenizers().load()

    counts = [tokenizer.count(passage.text) for passage in cut(novel())]

    assert max(counts) <= MOST_TOKENS * 1.1
    assert sum(counts) / len(counts) > MOST_TOKENS / 3


@pytest.mark.parametrize("text", ["𠀀" * 5000, "㐀" * 5000, "a" * 9000, "好" * 9000, "😀" * 3000])
def test_a_wall_of_characters_is_cut_too(text: str):
    tokenizer = Tokenizers().load()

    passages = list(cut(text))

    assert "".join(passage.text for passage in passages) == text
    assert max(tokenizer.count(passage.text) for passage in passages) <= MOST_TOKENS * 1.1
    assert {passage.lines for passage in passages} == {"L1-L1"}


def test_a_long_paragraph_is_cut_between_sentences():
    sentence = "他站在城门口，望着雪里的灯火，一句话也没有说。"

    passages = list(cut(sentence * 100))

    assert len(passages) > 1
    assert all(passage.text.endswith("。") for passage in passages)


def test_hard_wrapped_paragraphs_stay_whole():
    paragraph = "It is a truth universally acknowledged,\nthat a single man must want a wife.\n\n"

    passages = list(cut(paragraph * 60))

    assert len(passages) > 1
    assert all(passage.text.startswith("It is") for passage in passages)
    assert all(passage.text.endswith("wife.") for passage in passages)


def test_an_edit_changes_only_the_passages_around_it():
    text = novel()
    middle = len(text) // 2
    edited = text[:middle] + "他忽然想起一件事。\r\n" + text[middle:]

    before = {passage.text for passage in cut(text)}
    after = {passage.text for passage in cut(edited)}

    assert len(after - before) <= 5
    assert len(before - after) <= 5


@given(st.text(st.sampled_from("甲𠀀aB。！ \t\r\n#\u0301👩‍👧第一章")))
def test_every_character_that_is_not_blank_is_in_one_passage(text: str):
    passages = list(cut(text))

    assert "".join("".join(p.text for p in passages).split()) == "".join(text.split())
    assert all(text[p.start : p.end] == p.text for p in passages)
    assert all(a.end <= b.start for a, b in itertools.pairwise(passages))


@pytest.mark.parametrize(
    ("line", "level", "title"),
    [
        ("# 第一卷", 1, "第一卷"),
        ("### 雪夜 ###", 3, "雪夜"),
        ("第1章 甄士隐梦幻识通灵", 2, "第1章 甄士隐梦幻识通灵"),
        ("　　第一百二十回", 2, "第一百二十回"),
        ("第二卷：归来", 1, "第二卷：归来"),
        ("第三节", 3, "第三节"),
        ("Chapter 12", 2, "Chapter 12"),
        ("CHAPTER IV. A Ball", 2, "CHAPTER IV. A Ball"),
        ("Part Two", 1, "Part Two"),
        ("Scene 3", 3, "Scene 3"),
    ],
)
def test_a_heading_is_recognised(line: str, level: int, title: str):
    assert heading_of(line) == (level, title)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "#hashtag",
        "第四回中既将薛家母子在荣府中寄居等事略已表明。",
        "第一章里他说过。",
        "Part of the reason was money.",
        "chapter and verse",
        "第三章 " + "很长" * 60,
    ],
)
def test_prose_is_no_heading(line: str):
    assert heading_of(line) is None


def test_a_deeper_heading_stands_below_and_an_equal_one_instead():
    headings = Headings()

    for line in ("# 卷一", "## 第一章", "### 雪", "## 第二章"):
        headings.read(line)

    assert headings.path == ("卷一", "第二章")


def test_fenced_lines_are_no_headings():
    headings = Headings()

    for line in ("# 卷一", "```", "# not one", "~~~", "```"):
        headings.read(line)

    assert headings.path == ("卷一",)
    assert headings.read("## 第一章")


def key(lines: int, seed: int = 1) -> list[str]:
    rolls = random.Random(seed)
    return ["".join(rolls.choices(LETTERS, k=64)) for _ in range(lines)]


def armoured(kind: str, body: list[str]) -> str:
    return f"-----BEGIN {kind}-----\n" + "\n".join(body) + f"\n-----END {kind}-----\n"


def shown(text: str) -> list[Passage]:
    return list(without_secrets(text, cut(text), REDACTOR))


@pytest.mark.parametrize("kind", ["PGP PRIVATE KEY BLOCK", "RSA PRIVATE KEY", "PRIVATE KEY"])
@pytest.mark.parametrize("lines", [8, 60, 400])
def test_no_line_of_a_key_is_in_any_passage(kind: str, lines: int) -> None:
    body = key(lines)
    text = f"灯塔守夜人点灯。\n\n{armoured(kind, body)}\n灯塔守夜人睡了。\n"

    redacted = [REDACTOR.redact(passage.text).text for passage in shown(text)]

    assert not [line for line in body if any(line in text for text in redacted)]
    assert any("灯塔守夜人睡了。" in text for text in redacted)


def test_a_token_in_a_line_that_is_cut_is_in_neither_piece() -> None:
    """A line without a stop is cut where it is full, be that in the middle of a token."""
    for length in range(1380, 1500, 4):
        text = "雪" * 340 + "a" * (length - 1360) + f" token={TOKEN} " + "雨" * 400

        redacted = "".join(REDACTOR.redact(passage.text).text for passage in shown(text))

        assert not any(TOKEN[at : at + 12] in redacted for at in range(len(TOKEN) - 12))


def test_a_secret_that_lies_whole_in_a_passage_is_left_to_the_engine() -> None:
    """Redaction also reports what was taken out, and of which source."""
    (passage,) = shown(f"他把 {TOKEN} 写在纸上。")

    assert TOKEN in passage.text


def test_places_stay_those_of_the_document() -> None:
    text = f"甲。\n\n{armoured('PRIVATE KEY', key(60))}\n乙。\n"

    for before, after in zip(cut(text), shown(text), strict=True):
        assert (before.start, before.end, before.lines) == (after.start, after.end, after.lines)


def test_a_text_without_secrets_is_as_it_was() -> None:
    text = "灯塔守夜人点灯。\n\n" * 200

    assert shown(text) == list(cut(text))


@given(st.lists(st.sampled_from([TOKEN, "雨停了。", "\n", "\n\n", "a", " ", "密码：", "Xy9k3Qz8"])))
def test_what_the_document_hides_no_passage_shows(pieces: list[str]) -> None:
    text = "".join(pieces)
    hidden = {text[found.start : found.end] for found in REDACTOR.find(text)}

    redacted = [REDACTOR.redact(passage.text).text for passage in shown(text)]

    kept = REDACTOR.redact(text).text.replace(PLACEHOLDER, "\0")
    assert not [s for s in hidden if s not in kept and any(s in text for text in redacted)]


LINES = st.sampled_from(
    [
        "# 雪",
        "风雪夜归人。",
        "他在雪里站着，" * 30 + "。",
        "船到江心。",
        "",
        "Snow fell on the boat.",
    ]
)
TEXTS = st.lists(LINES, max_size=6).map("\n".join)
STEPS = st.lists(st.tuples(st.sampled_from("abc"), st.none() | TEXTS), max_size=12)
QUESTIONS = ("风雪", "船到江心", "snow", "雪")


def test_an_index_is_there_again_after_a_restart(tmp_path: Path):
    index_of(tmp_path, a="风雪").close()
    database = Database(tmp_path / "index.sqlite3")

    assert database.open()
    assert refs(database, "风雪") == ["a.md#L1-L1"]


@pytest.mark.parametrize("content", [b"", b"no database", b"SQLite format 3\0" + bytes(5000)])
def test_a_file_that_is_no_index_is_replaced(tmp_path: Path, content: bytes):
    (tmp_path / "index.sqlite3").write_bytes(content)
    database = Database(tmp_path / "index.sqlite3")

    assert not database.open()
    write(database, "a", "风雪")
    assert refs(database, "风雪") == ["a.md#L1-L1"]


def test_a_damaged_file_is_not_kept_open(tmp_path: Path):
    """Windows removes no file that is open, so it could never be replaced."""
    path = tmp_path / "index.sqlite3"
    path.write_bytes(b"no database, and long enough to be looked into" * 100)

    with pytest.raises(DamagedIndexError) as caught, Database(path).read():
        pass

    assert caught.value.__cause__ is not None
    assert str(path) not in [file.path for file in psutil.Process().open_files()]


def test_another_version_is_replaced(tmp_path: Path):
    index_of(tmp_path, a="风雪").close()
    other = sqlite3.connect(tmp_path / "index.sqlite3")
    other.execute("PRAGMA user_version = 999")
    other.close()

    assert not Database(tmp_path / "index.sqlite3").open()


def test_pages_that_were_overwritten_are_noticed(tmp_path: Path):
    index_of(tmp_path, **{f"d{n}": f"第{n}回风雪" * 200 for n in range(20)}).close()
    path = tmp_path / "index.sqlite3"
    whole = path.read_bytes()
    path.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))

    assert not Database(path).open()


def test_damage_that_comes_later_is_reported(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")
    with database.write() as connection:
        connection.execute("DROP TABLE passages")

    with pytest.raises(DamagedIndexError):
        refs(database, "风雪")

    database.start_over()
    write(database, "a", "风雪")
    assert refs(database, "风雪") == ["a.md#L1-L1"]


def test_readers_see_the_last_finished_state_and_do_not_wait(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")
    found: list[str] = []

    with database.write() as connection:
        connection.execute("DELETE FROM passages")
        reader = threading.Thread(target=lambda: found.extend(refs(database, "风雪")))
        reader.start()
        reader.join(10)

        assert found == ["a.md#L1-L1"]


def test_what_fails_half_way_leaves_nothing(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")
    before = database.generation

    with pytest.raises(ZeroDivisionError):
        fail_half_way(database)

    assert refs(database, "风雪") == ["a.md#L1-L1"]
    assert database.generation == before


def fail_half_way(database: Database) -> None:
    with database.write() as connection:
        connection.execute("DELETE FROM documents")
        raise ZeroDivisionError


def test_a_document_that_is_put_again_replaces_itself(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")

    write(database, "a", "江船")

    assert refs(database, "风雪") == []
    assert refs(database, "江船") == ["a.md#L1-L1"]


def test_passages_that_only_moved_know_their_new_lines(tmp_path: Path):
    database = index_of(tmp_path, a="# 一\n风雪\n# 二\n江船\n")

    write(database, "a", "# 零\n\n新的\n# 一\n风雪\n# 二\n江船\n")

    assert refs(database, "江船") == ["a.md#L6-L7"]
    is_whole(database)


def test_a_passage_that_stands_twice_is_kept_twice(tmp_path: Path):
    database = index_of(tmp_path, a="# 一\n风雪\n# 一\n风雪\n")

    assert refs(database, "风雪") == ["a.md#L1-L2", "a.md#L3-L4"]


def test_what_is_removed_is_not_found(tmp_path: Path):
    database = index_of(tmp_path, a="风雪", b="风雪")

    with database.write() as connection:
        remove_document(connection, "a.md")
        remove_document(connection, "never there.md")

    assert refs(database, "风雪") == ["b.md#L1-L1"]
    is_whole(database)


def test_marks_are_noted_without_touching_the_text(tmp_path: Path):
    database = index_of(tmp_path, a="风雪")

    with database.write() as connection:
        set_mark(connection, "a.md", "newer")

    with database.read() as connection:
        assert indexed_documents(connection)["a.md"].mark == "newer"
    assert refs(database, "风雪") == ["a.md#L1-L1"]


@settings(max_examples=40)
@given(STEPS)
def test_any_history_gives_the_index_of_its_last_state(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str | None]]
):
    folder = tmp_path_factory.mktemp("history")
    database = index_of(folder)
    state: dict[str, str] = {}

    for name, text in steps:
        if text is None:
            state.pop(name, None)
            with database.write() as connection:
                remove_document(connection, f"{name}.md")
        else:
            state[name] = text
            write(database, name, text)

    fresh = Database(folder / "fresh.sqlite3")
    fresh.open()
    for name in sorted(state):
        write(fresh, name, state[name])
    is_whole(database)
    for question in QUESTIONS:
        assert find(database, question) == find(fresh, question)
    database.close()
    fresh.close()
