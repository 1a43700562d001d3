"""Story: an E2E author writes a first test."""

from pathlib import Path

import pytest

from creonowd.testing import Harness, JoinedHarness, StoryNovel, StoryVerdict
from testing.clients import RpcError


def test_a_story_makes_a_project_waits_for_an_event_and_reads_the_log(daemon: Harness) -> None:
    project = daemon.make_project(files={"卷一/第一章.md": "夜。\r\n"})
    where = {"projectId": project["projectId"]}
    daemon.call("context:creonow:ensure", where)
    daemon.call("context:creonow:watch:start", where)
    root = Path(project["rootPath"])

    (root / ".creonow" / "rules" / "style.md").write_text("少用形容词。", encoding="utf-8")
    changed = daemon.event("context:creonow:changed", where=lambda event: bool(event["paths"]))
    line = daemon.log("context_watch_started")

    assert changed["paths"] == [".creonow/rules/style.md"]
    assert line["level"] == "info"
    assert (root / "卷一" / "第一章.md").read_bytes() == "夜。\r\n".encode()


def test_two_harnesses_know_nothing_of_each_other(daemon: Harness, tmp_path: Path) -> None:
    with Harness(tmp_path / "another") as other:
        daemon.make_project()

        assert len(daemon.call("project:list")["items"]) == 1
        assert other.call("project:list")["items"] == []


def test_on_request_ids_and_clock_are_the_same_in_every_run(tmp_path: Path) -> None:
    def run(home: Path) -> object:
        with Harness(home, deterministic=True) as daemon:
            project = daemon.make_project()
            daemon.call("e2e:notify", {"method": "novel:changed", "count": 2})
            events = [daemon.event("novel:changed") for _ in range(2)]
            return project["projectId"], events, daemon.call("app:ping")["nowMs"]

    first, second = run(tmp_path / "one"), run(tmp_path / "two")

    assert first == second


def test_a_killed_daemon_is_started_again_on_the_same_user_data(daemon: Harness) -> None:
    project = daemon.make_project()

    daemon.kill()
    with pytest.raises(ConnectionError):
        daemon.call("app:ping")
    daemon.start()

    assert daemon.call("project:list")["items"] == [project]


def test_a_story_looks_into_the_daemon_of_an_app_and_leaves_it_running(
    daemon: Harness, tmp_path: Path
) -> None:
    with JoinedHarness(tmp_path / "visitor", daemon.user_data) as visitor:
        project = visitor.make_project()
        visitor.call("e2e:notify", {"method": "novel:changed"})

        assert visitor.event("novel:changed")["seq"] == 1
        assert visitor.log("daemon_started")["level"] == "info"

    assert daemon.call("project:list")["items"] == [project]


def test_a_story_kills_the_daemon_of_an_app_and_joins_the_next_one(
    daemon: Harness, tmp_path: Path
) -> None:
    with JoinedHarness(tmp_path / "visitor", daemon.user_data) as visitor:
        visitor.kill()
        with pytest.raises(ConnectionError):
            visitor.call("app:ping")
        daemon.start()
        visitor.start()

        assert visitor.call("app:ping")["pong"] is True


def test_envelopes_errors_and_calls_back(daemon: Harness) -> None:
    daemon.handle("host:echo", lambda params: {"heard": params})

    well = daemon.invoke("e2e:echo", {"value": "墨"})
    ill = daemon.invoke("no:such:channel")
    answer = daemon.call("e2e:callback", {"method": "host:echo", "params": {"name": "林远"}})

    assert well == {"ok": True, "data": {"value": "墨"}}
    assert (ill["ok"], ill["error"]["code"]) == (False, "IPC_CHANNEL_FORBIDDEN")
    assert answer["value"] == {"heard": {"name": "林远"}}
    assert daemon.failure("project:setCurrent", {"projectId": "prj_none"}).code == "NOT_FOUND"
    with pytest.raises(RpcError):
        daemon.call("project:create", {})


def test_what_does_not_come_is_a_time_out_and_not_a_hang(daemon: Harness) -> None:
    with pytest.raises(TimeoutError):
        daemon.event("never:sent", seconds=0.05)
    with pytest.raises(TimeoutError, match="never_logged"):
        daemon.log("never_logged", seconds=0.05)


def test_a_stopped_harness_leaves_no_daemon(daemon: Harness) -> None:
    daemon.stop()
    daemon.stop()

    assert daemon.logs("daemon_stopped")[0]["reason"] == "stdin closed"


def test_a_story_makes_the_ai_say_what_it_needs_also_nonsense_as_a_judge(
    daemon: Harness, novel: StoryNovel
) -> None:
    novel.constrain("林远从不下水。")
    broken: StoryVerdict = {"violations": [{"constraint": 1, "quote": "下了水"}]}
    daemon.script(
        {"steps": [{"text": "雨停了。"}, {"text": "林远下了水。"}], "verdicts": ["no JSON", broken]}
    )

    first, second = novel.run(), novel.run()

    assert (first["output"], second["output"]) == ("雨停了。", "林远下了水。")
    assert [one["code"] for one in first["verdict"]["unchecked"]] == ["model_unreadable"]
    assert [one["quote"] for one in second["verdict"]["violations"]] == ["下了水"]


@pytest.mark.novel({f"{number}.md": f"第{number}夜，雨落在渡口。\n" * 200 for number in range(60)})
def test_the_novel_of_a_story_is_indexed_before_its_first_assembly(novel: StoryNovel) -> None:
    assert novel.assemble()["warnings"] == []


def test_a_script_with_an_unknown_field_is_refused(daemon: Harness) -> None:
    with pytest.raises(RpcError) as caught:
        daemon.script({"steps": [{"txt": "雨停了。"}]})  # pyright: ignore[reportArgumentType]

    assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.daemon(debug=True)
def test_a_novel_begins_at_the_end_of_its_first_document(daemon: Harness, tmp_path: Path) -> None:
    files = {".creonow/rules/style.md": "短句。", "甲.md": "夜🖋️深了。", "乙.md": b"\xff\xfe"}

    novel = daemon.make_novel(files, root=tmp_path / "novel")

    assert novel.payload()["documentId"] == "甲.md"
    assert "夜🖋️深了。" in novel.assemble()["prompt"]
    assert novel.inspect()["warnings"] == []
    assert novel.address().startswith("http://127.0.0.1:")
