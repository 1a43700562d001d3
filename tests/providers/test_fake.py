from pathlib import Path

import anyio
import pytest
from msgspec import structs

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.fake import Assistant, Fake, Script, ScriptedAnswer, read_script
from creonowd.providers.provider import Purpose
from tests.providers.calls import CALL, PATIENCE, ignore


async def test_without_a_script_the_prompt_comes_back() -> None:
    pieces: list[str] = []

    answer = await Fake().answer(CALL, pieces.append)

    assert answer.text == CALL.system + CALL.user == "".join(pieces)


async def test_the_script_is_followed_call_by_call_and_then_it_echoes() -> None:
    fake = Fake(Script(steps=(ScriptedAnswer(text="一"), ScriptedAnswer(text="二"))))

    texts = [(await fake.answer(CALL, ignore)).text for _ in range(3)]

    assert texts == ["一", "二", CALL.system + CALL.user]
    assert list(fake.calls) == [CALL] * 3


async def test_an_assistant_answers_an_author_and_nobody_else() -> None:
    """A summary or a probe that took its words for a model's would be wrong."""
    fake = Fake(assistant=Assistant())
    for_summary = structs.replace(CALL, purpose=Purpose.SUMMARISE)

    written = await fake.answer(CALL, ignore)
    summary = await fake.answer(for_summary, ignore)

    assert "creonowd ai add" in written.text
    assert (written.echo, written.stands_in) == (False, True)
    assert (summary.echo, summary.text) == (True, CALL.system + CALL.user)
    assert (fake.judges, fake.echoes, fake.stands_in) == (False, False, True)


async def test_a_script_comes_before_the_assistant() -> None:
    fake = Fake(Script(steps=(ScriptedAnswer(text="一"),)), Assistant())

    before = fake.stands_in
    answer = await fake.answer(CALL, ignore)

    assert (before, answer.text, answer.stands_in) == (False, "一", False)
    assert fake.stands_in


async def test_it_judges_once_for_each_verdict_of_its_script() -> None:
    fake = Fake(Script(verdicts=("{}",)))
    judging = type(CALL)(
        model="m", system="s", user="u", max_output_tokens=1, purpose=Purpose.JUDGE
    )

    before = fake.judges
    verdict = await fake.answer(judging, ignore)

    assert (before, verdict.text, fake.judges) == (True, "{}", False)


async def test_delays_do_not_change_the_answer() -> None:
    fake = Fake(Script(steps=(ScriptedAnswer(text="林远推门", piece=1, delay_ms=1),)))
    pieces: list[str] = []

    with anyio.fail_after(PATIENCE):
        await fake.answer(CALL, pieces.append)

    assert pieces == ["林", "远", "推", "门"]


async def test_an_empty_answer_may_still_fail() -> None:
    fake = Fake(Script(steps=(ScriptedAnswer(text="", fail=ErrorCode.TIMEOUT),)))

    with pytest.raises(DaemonError) as caught:
        await fake.answer(CALL, ignore)

    assert caught.value.code is ErrorCode.TIMEOUT


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"steps":[{"text":"好","retryAfterMs":5}]}', encoding="utf-8")

    assert read_script(path).steps[0].text == "好"


@pytest.mark.parametrize("content", ["{", '{"stepz": []}', '{"steps":[{"after":-1}]}', None])
def test_a_script_that_cannot_be_used_says_why(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "script.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")

    with pytest.raises(DaemonError) as caught:
        read_script(path)

    assert caught.value.code is ErrorCode.AI_NOT_CONFIGURED
    assert str(tmp_path) not in caught.value.message
