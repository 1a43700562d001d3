from creonowd.judge.bans import ban_in, hits


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
    listed = ban_in("禁止使用“忽然”、“突然”等词")
    closed = ban_in("禁止使用“忽然”、“突然”")

    assert listed is not None
    assert closed is not None
    assert (listed.whole, closed.whole) == (False, True)


def test_a_banned_word_is_taken_literally() -> None:
    assert found('不用"a.b*"', "a.b* axb a.b*") == ["a.b*", "a.b*"]


def test_a_long_text_that_is_almost_a_ban_costs_little() -> None:
    assert ban_in("不使用" + "感叹号和" * 120 + "x") is None
