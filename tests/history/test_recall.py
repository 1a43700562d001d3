"""Facts of long sessions are still there: in the next turn, or by one search."""

from pathlib import Path

import pytest

from testing.clients import daemon
from testing.session_recall import build, play, recall
from testing.sessions import SETS, LongSession, long_sessions

DEVELOPMENT = long_sessions("development")


@pytest.mark.parametrize("session", DEVELOPMENT, ids=lambda session: session.name)
@pytest.mark.usefixtures("anyio_backend")
async def test_facts_of_a_long_session_stay_and_corrected_ones_leave(
    session: LongSession, tmp_path: Path
) -> None:
    async with daemon(tmp_path / "data") as client:
        chat = await play(client, tmp_path, session)

        built = await build(chat, 16_000)
        score = await recall(chat, session, built)
        small = await recall(chat, session, await build(chat, 4_000))

    assert built.covers > len(session.rounds) // 2
    assert score.in_context >= 0.9 * score.facts
    assert small.in_context >= 0.6 * small.facts
    assert score.lost_facts == small.lost_facts == 0
    assert score.contradictions == small.contradictions == 0
    assert score.secrets == small.secrets == 0


def test_the_sessions_are_long_of_both_kinds_and_languages() -> None:
    sessions = [session for name in SETS for session in long_sessions(name)]

    kinds = {(session.kind, session.language) for session in sessions}
    assert len(sessions) >= 8
    assert kinds == {(k, lang) for k in ("coding", "novel") for lang in ("en", "zh")}
    assert all(30 <= len(session.rounds) <= 200 for session in sessions)
    assert all(len(session.facts) >= 15 for session in sessions)
    assert long_sessions("development") == DEVELOPMENT
