from creonowd.history.build_result import LastTurns
from creonowd.history.rounds import Message, Speaker

KEY = ("project", "conversation")
PROMPT = [
    Message(role=Speaker.SYSTEM, content="You help."),
    Message(role=Speaker.USER, content="Go on."),
]


def test_the_same_prompt_again_is_reused_whole() -> None:
    turns = LastTurns()

    first = turns.compare(KEY, PROMPT, 1, 3)
    again = turns.compare(KEY, PROMPT, 1, 3)

    assert (first.share, first.stable_prefix_unchanged) == (0, False)
    assert (again.share, again.stable_prefix_unchanged) == (1, True)
    assert again.common_bytes == again.prompt_bytes


def test_a_message_that_changes_is_reused_up_to_the_change() -> None:
    turns = LastTurns()
    turns.compare(KEY, PROMPT, 1, 3)

    changed = turns.compare(KEY, [PROMPT[0], Message(role=Speaker.USER, content="Go out.")], 1, 3)

    assert changed.stable_prefix_unchanged
    assert changed.common_bytes == len("system\nYou help.\n" + "user\nGo o")


def test_a_conversation_that_was_cleared_has_no_last_turn() -> None:
    turns = LastTurns()
    turns.compare(KEY, PROMPT, 1, 3)

    turns.forget(KEY)

    assert turns.compare(KEY, PROMPT, 1, 3).share == 0
