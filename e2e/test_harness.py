"""Story: an E2E author writes a first test."""

from pathlib import Path

import pytest

from testing.clients import RpcError
from testing.harness import Harness, JoinedHarness


def test_a_story_makes_a_project_waits_for_an_event_and_reads_the_log(harness: Harness) -> None:
    project = harness.make_project(files={"卷一/第一章.md": "夜。\r\n"})
    where = {"projectId": project["projectId"]}
    harness.call("context:creonow:ensure", where)
    harness.call("context:creonow:watch:start", where)
    root = Path(project["rootPath"])

    (root / ".creonow" / "rules" / "style.md").write_text("少用形容词。", encoding="utf-8")
    changed = harness.event("context:creonow:changed", where=lambda event: bool(event["paths"]))
    line = harness.log("context_watch_started")

    assert changed["paths"] == [".creonow/rules/style.md"]
    assert line["level"] == "info"
    assert (root / "卷一" / "第一章.md").read_bytes() == "夜。\r\n".encode()


def test_two_harnesses_know_nothing_of_each_other(harness: Harness, tmp_path: Path) -> None:
    with Harness(tmp_path / "another") as other:
        harness.make_project()

        assert len(harness.call("project:list")["items"]) == 1
        assert other.call("project:list")["items"] == []


def test_on_request_ids_and_clock_are_the_same_in_every_run(tmp_path: Path) -> None:
    def run(home: Path) -> object:
        with Harness(home, deterministic=True) as harness:
            project = harness.make_project()
            harness.call("e2e:notify", {"method": "novel:changed", "count": 2})
            events = [harness.event("novel:changed") for _ in range(2)]
            return project["projectId"], events, harness.call("app:ping")["nowMs"]

    first, second = run(tmp_path / "one"), run(tmp_path / "two")

    assert first == second


def test_a_killed_daemon_is_started_again_on_the_same_user_data(harness: Harness) -> None:
    project = harness.make_project()

    harness.kill()
    with pytest.raises(ConnectionError):
        harness.call("app:ping")
    harness.start()

    assert harness.call("project:list")["items"] == [project]


def test_a_story_looks_into_the_daemon_of_an_app_and_leaves_it_running(
    harness: Harness, tmp_path: Path
) -> None:
    with JoinedHarness(tmp_path / "visitor", harness.user_data) as visitor:
        project = visitor.make_project()
        visitor.call("e2e:notify", {"method": "novel:changed"})

        assert visitor.event("novel:changed")["seq"] == 1
        assert visitor.log("daemon_started")["level"] == "info"

    assert harness.call("project:list")["items"] == [project]


def test_a_story_kills_the_daemon_of_an_app_and_joins_the_next_one(
    harness: Harness, tmp_path: Path
) -> None:
    with JoinedHarness(tmp_path / "visitor", harness.user_data) as visitor:
        visitor.kill()
        with pytest.raises(ConnectionError):
            visitor.call("app:ping")
        harness.start()
        visitor.start()

        assert visitor.call("app:ping")["pong"] is True


def test_envelopes_errors_and_calls_back(harness: Harness) -> None:
    harness.handle("host:echo", lambda params: {"heard": params})

    well = harness.invoke("e2e:echo", {"value": "墨"})
    ill = harness.invoke("no:such:channel")
    answer = harness.call("e2e:callback", {"method": "host:echo", "params": {"name": "林远"}})

    assert well == {"ok": True, "data": {"value": "墨"}}
    assert (ill["ok"], ill["error"]["code"]) == (False, "IPC_CHANNEL_FORBIDDEN")
    assert answer["value"] == {"heard": {"name": "林远"}}
    assert harness.failure("project:setCurrent", {"projectId": "prj_none"}).code == "NOT_FOUND"
    with pytest.raises(RpcError):
        harness.call("project:create", {})


def test_what_does_not_come_is_a_time_out_and_not_a_hang(harness: Harness) -> None:
    with pytest.raises(TimeoutError):
        harness.event("never:sent", seconds=0.05)
    with pytest.raises(TimeoutError, match="never_logged"):
        harness.log("never_logged", seconds=0.05)


def test_a_stopped_harness_leaves_no_daemon(harness: Harness) -> None:
    harness.stop()
    harness.stop()

    assert harness.logs("daemon_stopped")[0]["reason"] == "stdin closed"
