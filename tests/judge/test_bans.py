from creonowd.judge.bans import ban_in, hits

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


def found(constraint: str, text: str) -> list[str]:
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
        if (got := found(constraint, text)) != expected
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

    wrong = [(words, got) for words, text, want in rows if (got := found(words, text)) != want]

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
    assert found('不用"a.b*"', "a.b* axb a.b*") == ["a.b*", "a.b*"]


def test_a_long_text_that_is_almost_a_ban_costs_little() -> None:
    for item in ("感叹号和", "emoji", "“忽然”或者", "忽然和", "忽然、", "the word ", "绝", "全文"):
        for verb in ("不使用", "禁用词：", "never use the words ", ""):
            almost = f"{verb}{item * 200}"[:490] + "？x"
            assert ban_in(almost) is None, almost
