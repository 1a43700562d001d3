"""The person of a narration: what a constraint asks for, and what an output is clearly in."""

import pytest

from creonowd.judge.narration import Person, find_person, forbidden_person

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
def test_what_pronouns_cannot_tell_stays_open(text: str) -> None:
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
