"""What the rules alone find: banned words and marks, terms to avoid, and the narration's person."""

import json
import re
import sys
from itertools import product
from typing import Any

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from creonowd.judge.judge import MAX_VIOLATIONS
from creonowd.judge.rule_judge import (
    BannedSpan,
    Person,
    Term,
    WordFinder,
    ban_in,
    find_person,
    forbidden_person,
    hits,
    misuses,
    read_terms,
    word_pattern,
)

# Every way to say it bans 忽然, in English "suddenly"; the text after it has the word once or more.
WAYS_TO_BAN = (
    "不使用“忽然”",
    "不用“忽然”",
    "不要用「忽然」",
    "不得使用“忽然”一词",
    "不得使用“忽然”一词。",
    "不出现“忽然”二字",
    '不能出现"忽然"这个词',
    "禁用词：忽然、猛然",
    "禁用词: 忽然，猛然",
    "禁用词语：忽然和猛然",
    "全书禁用词：忽然",
    "禁止使用的词：忽然、猛然",
    "违禁词表：“忽然”、“猛然”",
    "禁用“忽然”",
    "严禁使用『忽然』",
    "严禁出现“忽然”字样",
    "禁止“忽然”出现",
    "禁止出现“忽然”、“猛然”这两个词",
    "全文不出现“忽然”",
    "全文中不得出现“忽然”",
    "正文里绝不使用“忽然”",
    "请在全书中避免使用“忽然”",
    "小说中一律不许出现“忽然”",
    "任何情况下都不要使用“忽然”这个词",
    "千万别用“忽然”",
    "绝不能出现“忽然”",
    "切勿使用‘忽然’",
    "切忌使用“忽然”",
    "忌用“忽然”",
    "杜绝“忽然”",
    "不要再用“忽然”",
    "不应该出现“忽然”和“猛然”",
    "不允许使用以下词语：“忽然”、“猛然”",
    "不含“忽然”",
    "不得使用忽然一词",
    "不要出现忽然二字",
    "不要用忽然这个词",
    "“忽然”一词禁用",
    "“忽然”不得出现",
    "“忽然”、“猛然”均不得使用",
    "“忽然”是禁用词",
    "词语“忽然”不可使用",
    'Never use the word "suddenly"',
    "Never use the word suddenly.",
    "never ever use the word 'suddenly'",
    "Avoid the words suddenly and very",
    'Avoid the words "suddenly" and "very".',
    "Avoid the words suddenly, very, or just",
    'Do not write "suddenly"',
    'Don\'t use "suddenly" anywhere.',
    "Don’t use “suddenly”",
    'You must not use the word "suddenly"',
    'You should never use "suddenly"',
    "Do not use the following words: suddenly, very",
    'Refrain from using "suddenly"',
    'Steer clear of the word "suddenly"',
    "Banned words: suddenly, very, all of a sudden",
    "Forbidden phrases: suddenly; in the blink of an eye",
    "Words to avoid: suddenly, very",
    'The word "suddenly" is banned.',
    "The word suddenly is forbidden",
    'The words "suddenly" and "very" must not appear in the text.',
    '"Suddenly" may not be used',
    'No "suddenly"',
    "Without the word 'suddenly'",
)
NO_BANS = (
    "少用“忽然”",
    "慎用“忽然”",
    "尽量不用“忽然”",
    "尽量避免使用“忽然”",
    "可以不用“忽然”",
    "不得不用“忽然”",
    "不禁用“忽然”",
    "不必使用“忽然”",
    "不要忘记使用“忽然”",
    "不要重复使用“忽然”",
    "不要用“忽然”开头",
    "不要连续使用“忽然”",
    "对话中不得使用“忽然”",
    "除对话外不得使用“忽然”",
    "不得使用“忽然”，对话除外",
    "林远不说“忽然”",
    "不要让林远说“我爱你”",
    "一段里“忽然”不得出现两次",
    "多用“忽然”",
    "禁用词：现代词汇",
    "禁用词：网络用语、脏话",
    "禁用词：见附录。另外注意语气！",
    "不要用成语",
    "不要用忽然",
    "不要写超过二字",
    "不要使用同一词",
    "不要使用任何一词",
    "不要出现错误的字样",
    "不要出现忽然三字",
    "Do not write suddenly",
    "Do not write dialogue",
    "Never use the word twice",
    "Never use the words of others",
    'Use "suddenly" sparingly',
    'Do not use "suddenly" more than once',
    'Do not use "suddenly" in dialogue',
    'Do not start a sentence with "Suddenly"',
    'Do not forget to use "suddenly"',
    "Avoid the words people overuse",
    "Avoid the word",
    "Banned words: modern slang",
    'The word "suddenly" is allowed',
    'Lin never says "suddenly"',
)


def banned(constraint: str, text: str) -> list[str]:
    ban = ban_in(constraint)
    assert ban is not None
    return [hit.text for hit in hits(ban, text)]


def test_a_ban_finds_every_place_where_it_is_broken() -> None:
    rows = (
        ("避免使用感叹号和省略号", "好！！……走...吧。", ["！！", "……", "..."]),
        ("不使用感叹号。", "Hello!", ["!"]),
        ("全文不出现「忽然」", "他忽然笑了，忽然又哭。", ["忽然", "忽然"]),
        ("禁用：“的”、“地”", "慢慢地走", ["地"]),
        ("请勿使用破折号", "他——走了", ["——"]),
        ("别用emoji", "好😀。© ❤️", ["😀", "❤️"]),
        ("Do not use exclamation marks.", "Go!", ["!"]),
        ("Avoid \"just\" and 'very'", "Just a justice, very every", ["Just", "very"]),
        ("Never use em dashes or semicolons", "a—b; c", ["—", ";"]),
    )

    wrong = [
        f"{constraint!r} in {text!r}: {got}, not {expected}"
        for constraint, text, expected in rows
        if (got := banned(constraint, text)) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_a_ban_is_known_in_whatever_words_it_comes() -> None:
    text = "他忽然笑了。Suddenly he laughed."

    missed = [
        constraint
        for constraint in WAYS_TO_BAN
        if (ban := ban_in(constraint)) is None
        or not ban.whole
        or [hit.text for hit in hits(ban, text)] not in (["忽然"], ["Suddenly"])
    ]

    assert len(WAYS_TO_BAN) >= 40
    assert not missed, "\n".join(missed)


def test_a_sentence_that_only_looks_like_a_ban_is_none() -> None:
    wrong = [constraint for constraint in NO_BANS if ban_in(constraint) is not None]

    assert not wrong, "\n".join(wrong)


def test_every_word_of_a_list_is_banned() -> None:
    rows = (
        ("禁用词：忽然、猛然和顿时", "顿时，他猛然站起，忽然笑了。", ["顿时", "猛然", "忽然"]),
        ("Avoid the words just, very and quite", "Quite just, very.", ["Quite", "just", "very"]),
        ("Banned words: all of a sudden, very", "All of a sudden it was", ["All of a sudden"]),
        ("禁用词：和平、温和", "和平与温和", ["和平", "温和"]),
    )

    wrong = [(words, got) for words, text, want in rows if (got := banned(words, text)) != want]

    assert not wrong


def test_places_are_counted_in_code_points() -> None:
    ban = ban_in("不使用感叹号")
    assert ban is not None

    (hit,) = hits(ban, "😀𠮷好！")

    assert (hit.start, hit.end) == (3, 4)


def test_what_takes_guessing_is_no_ban() -> None:
    constraints = (
        "严格第一人称叙述",
        "不要使用现代词汇",
        "避免使用感叹号，除非是对话",
        "避免使用表情",
        "不要写《红楼梦》",
        "林远性格冷静，不会大声喊叫",
        "本世界没有魔法",
        "主角在第五章之前不知道真相",
        "Do not use modern words",
        "Avoid exclamation marks in narration",
        "感叹号",
        "",
        "避免使用感叹号" * 200,
    )

    guesses = [constraint for constraint in constraints if ban_in(constraint) is not None]

    assert not guesses, "\n".join(map(repr, guesses))


def test_a_list_that_goes_on_is_checked_but_not_settled() -> None:
    lists = (
        "禁止使用“忽然”、“突然”等词",
        "不要用“忽然”之类的词",
        "不要用像“忽然”这样的词",
        "不使用“忽然”及其近义词",
        "禁用词：忽然、突然等",
        'Avoid words like "suddenly"',
        "Do not use words such as 'suddenly' and 'very'",
        'Never use "suddenly", etc.',
    )

    settled = [words for words in lists if (ban := ban_in(words)) is None or ban.whole]

    assert not settled


def test_a_banned_word_is_taken_literally() -> None:
    assert banned('不用"a.b*"', "a.b* axb a.b*") == ["a.b*", "a.b*"]


def test_a_long_text_that_is_almost_a_ban_costs_little() -> None:
    for item in ("感叹号和", "emoji", "“忽然”或者", "忽然和", "忽然、", "the word ", "绝", "全文"):
        for verb in ("不使用", "禁用词：", "never use the words ", ""):
            almost = f"{verb}{item * 200}"[:490] + "？x"
            assert ban_in(almost) is None, almost


LETTERS = "别名1aA_Kkİiſßςσ🌙\u0307 "
GOES_ON_BEFORE = re.compile("[A-Za-z0-9_][A-Za-z0-9]")
GOES_ON_AFTER = re.compile("[A-Za-z0-9][A-Za-z0-9_]")
some_text = st.text(st.sampled_from(LETTERS), max_size=40)
some_words = st.lists(st.text(st.sampled_from("别名1aAkßς🌙_"), min_size=1, max_size=3), max_size=5)


def misused(term: Term, text: str) -> list[BannedSpan]:
    return [hit for _, hit in misuses((term,), text, MAX_VIOLATIONS)]


def read(content: Any) -> tuple[Term, ...] | None:
    return read_terms(json.dumps(content).encode())


def test_only_what_to_avoid_is_read() -> None:
    rows: tuple[tuple[Any, list[tuple[str, str]]], ...] = (
        (
            {"terms": [{"term": "灵石", "avoid": ["灵晶", "魔石"]}]},
            [("灵晶", "灵石"), ("魔石", "灵石")],
        ),
        ({"terms": [{"preferred": "灵石", "avoid": "灵晶"}]}, [("灵晶", "灵石")]),
        ({"terms": [{"term": "灵晶", "preferred": "灵石"}]}, [("灵晶", "灵石")]),
        ({"banned": ["忽然", " "]}, [("忽然", "")]),
        ({"terms": [{"term": "灵石", "definition": "x", "aliases": ["石头"]}]}, []),
        ({"terms": ["灵石", {"avoid": [5]}]}, []),
        ({"banned": "忽然"}, [("忽然", "")]),
    )

    wrong = [
        f"{content!r} was read as {terms}, not as {expected}"
        for content, expected in rows
        if (terms := read(content)) != tuple(Term(*term) for term in expected)
    ]

    assert not wrong, "\n".join(wrong)


def test_a_file_that_cannot_be_read_is_none_and_one_without_terms_is_empty() -> None:
    broken = (b"", b"{", b"\xff", b"[" * 100_000)

    assert [read_terms(data) for data in broken] == [None] * len(broken)
    assert read_terms(b"{}") == ()


@pytest.mark.parametrize(
    "content",
    [
        *([], "灵石", None, {"terms": 5}, {"terms": None}, {"terms": {"灵石": "灵晶"}}),
        *({"terms": [5]}, {"terms": [None]}, {"banned": 5}, {"banned": ["忽然", 5]}),
    ],
)
def test_what_a_prompt_leaves_out_for_its_shape_is_not_read_as_no_terms(content: Any) -> None:
    assert read(content) is None


def test_a_word_within_the_preferred_one_is_no_misuse() -> None:
    text = "林远看着林，林远远去"

    places = [(hit.start, hit.end) for hit in misused(Term("林", "林远"), text)]

    assert places == [(4, 5)]


def test_a_word_to_use_is_known_in_any_case_that_a_text_is_read_in() -> None:
    for text in ("İstanbul", "去İstanbul城，İ"):
        assert not misused(Term("istanbul", "İstanbul"), text), text


def test_a_word_in_latin_script_is_not_found_inside_another() -> None:
    assert [h.text for h in misused(Term("elf", "Aelf"), "Elf self elf's Aelf")] == ["Elf", "elf"]


def test_a_number_in_a_word_is_no_reason_to_look_inside_others() -> None:
    assert [h.start for h in misused(Term("R2"), "R2 R20 XR2 r2")] == [0, 11]
    assert [h.start for h in misused(Term("2号"), "2号 12号")] == [0]


def test_a_word_without_case_is_found_where_the_pattern_finds_it() -> None:
    words = ("2号", "别名1", "灵晶", "7", "1号1")
    texts = ("2号 12号", "别名1 别名12 x别名1", "灵晶灵晶", "7 77 a7 7a _7 7", "x1号1号1")
    wrong: list[str] = []
    for word, text in product(words, texts):
        expected = [match.span() for match in regex.finditer(word_pattern(word), text)]
        places = [(hit.start, hit.end) for hit in misused(Term(word), text)]
        if places != expected:
            wrong.append(f"{word} in {text!r}: {places}, not {expected}")

    assert not wrong, "\n".join(wrong)


def test_many_terms_are_found_in_one_pass_in_the_order_of_the_file() -> None:
    numbered = (Term(f"别名{n}", f"术语{n}") for n in range(300))
    terms = (*numbered, Term("Elf"), Term("İstanbul"))

    hits = misuses(terms, "别名7与别名12，elf，别名7。", MAX_VIOLATIONS)
    odd = misuses(terms, "İSTANBUL 的 ELF 与别名3", MAX_VIOLATIONS)

    assert [(term.avoid, hit.start) for term, hit in hits] == [
        ("别名7", 0),
        ("别名7", 13),
        ("别名12", 4),
        ("Elf", 9),
    ]
    assert [(term.avoid, hit.start) for term, hit in odd] == [
        ("别名3", 16),
        ("Elf", 11),
        ("İstanbul", 0),
    ]


def expected_places(words: list[str], text: str) -> set[tuple[int, int, int]]:
    """Look at every place outside of Latin words; right if the text is as long in lower case."""
    lower = text.lower()
    return {
        (number, start, start + len(word))
        for number, word in enumerate(words)
        for start in range(len(text))
        if lower[start : start + len(word)] == word.lower()
        and not GOES_ON_BEFORE.match(text[max(0, start - 1) : start + 1])
        and not GOES_ON_AFTER.match(text[start + len(word) - 1 : start + len(word) + 1])
    }


@given(some_words, some_text.filter(lambda text: len(text.lower()) == len(text)))
def test_words_are_found_wherever_they_stand(words: list[str], text: str) -> None:
    assert set(WordFinder(tuple(words)).places(text)) == expected_places(words, text)


def test_neither_case_nor_script_moves_a_place() -> None:
    rows: tuple[tuple[tuple[str, ...], str, list[tuple[int, int, int]]], ...] = (
        ((), "任何文字", []),
        (("灵晶", "晶"), "灵晶与晶", [(0, 0, 2), (1, 1, 2), (1, 3, 4)]),
        (("elf",), "🌙ELF", [(0, 1, 4)]),
        (("k",), "\N{KELVIN SIGN}", [(0, 0, 1)]),
        (("straße",), "STRASSE Straße", [(0, 8, 14)]),
        (("灵晶",), "İ灵晶", [(0, 1, 3)]),
        (("灵晶",), "\ud800灵晶", [(0, 1, 3)]),
    )

    wrong = [
        f"{words} in {text!r}: {got}, not {expected}"
        for words, text, expected in rows
        if (got := sorted(WordFinder(words).places(text))) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_bytes_are_enough_where_only_ascii_has_cases() -> None:
    """What the search in bytes rests on, for every character there is."""
    every = [chr(number) for number in range(0x80, sys.maxunicode + 1)]
    becoming = {char: char.lower() for char in every if char.lower() != char}

    to_ascii = {char for char, lower in becoming.items() if any(c.isascii() for c in lower)}
    caseless = {c for low in becoming.values() for c in low if c == c.lower() == c.upper()}

    assert to_ascii == {"\N{KELVIN SIGN}", "İ"}
    assert caseless == {"\u0307"}  # of İ, which has no lower case of its own length


THIRD = "林远推开门，屋里没有人。他站了一会儿，听见楼上的脚步声。他知道是谁，却没有动。"
FIRST = "我推开门，屋里没有人。我站了一会儿，听见他在楼上走动。我没有动。"


def test_to_ask_for_one_person_is_to_forbid_the_other() -> None:
    rows = {
        "严格第一人称叙述": Person.THIRD,
        "第一人称": Person.THIRD,
        "全文使用第一人称。": Person.THIRD,
        "必须以第一人称视角写作": Person.THIRD,
        "叙述始终用第一人称": Person.THIRD,
        "不要使用第三人称": Person.THIRD,
        "严格第三人称叙述": Person.FIRST,
        "第三人称限知视角": Person.FIRST,
        "用第三人称全知视角叙述": Person.FIRST,
        "禁止第一人称叙述": Person.FIRST,
        "Strict first-person narration": Person.THIRD,
        "Write in the first person.": Person.THIRD,
        "Narrate only in first person": Person.THIRD,
        "First person POV only": Person.THIRD,
        "Do not use the third person": Person.THIRD,
        "Third person limited": Person.FIRST,
        "Tell the story in third person throughout": Person.FIRST,
        "Never write in the first person": Person.FIRST,
        "第一人称与第三人称交替": None,
        "第一章用第一人称叙述": None,
        "林远喜欢第一人称的小说": None,
        "对话之外用第一人称": None,
        "第二人称叙述": None,
        "Switch to first person in chapter 3": None,
        "The first person to enter dies": None,
        "": None,
    }

    wrong = {text: got for text, want in rows.items() if (got := forbidden_person(text)) != want}

    assert not wrong


@pytest.mark.parametrize(
    ("text", "person"),
    [
        (THIRD, Person.THIRD),
        (FIRST, Person.FIRST),
        ("He opened the door. She looked up. He knew it.", Person.THIRD),
        ("I opened the door. My hands shook. I saw him.", Person.FIRST),
        (THIRD + "“我不走，我等我妈。”他说。", Person.THIRD),
        ("「我不走。」他说。「我等我妈。」她没有作声，他便笑了。", Person.THIRD),
        ('"I will stay. I told my mother." He sat. She nodded. He smiled.', Person.THIRD),
        ("He'd gone. 'I can't stay, I said I'd go.' She wept. He left.", Person.THIRD),
    ],
)
def test_a_clear_narration_is_recognised_outside_dialogue(text: str, person: Person) -> None:
    other = Person.FIRST if person is Person.THIRD else Person.THIRD

    found = find_person(text, person)

    assert found is not None
    assert 0.8 <= found.confidence < 1
    assert find_person(text, other) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "雨下了一夜。街上没有人。",
        "夜里他走了。",
        "“他走了，他不会回来，他说过。”",
        "其他人走了，他人不知，他乡的雨，吉他声停了。",
        "我看见他推开门。他站着，他笑了，他又走了。",
        "# I\n\n# II\n\n# III\n\nThe rain fell.",
        "The rain fell on the empty street.",
    ],
)
def test_what_pronouns_do_not_decide_stays_open(text: str) -> None:
    assert find_person(text, Person.THIRD) is None
    assert find_person(text, Person.FIRST) is None


def test_more_pronouns_make_it_surer_and_never_certain() -> None:
    sure = [found.confidence for n in (1, 2, 5) if (found := find_person(THIRD * n, Person.THIRD))]

    assert sure == sorted(set(sure))
    assert sure[-1] < 1


def test_the_place_is_the_first_sentence_in_that_person() -> None:
    found = find_person("😀雨停了。" + THIRD, Person.THIRD)

    assert found is not None
    assert ("😀雨停了。" + THIRD)[found.start : found.end] == "他站了一会儿，听见楼上的脚步声。"
