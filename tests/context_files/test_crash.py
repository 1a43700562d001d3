"""A kill at any moment leaves all of a change or nothing of it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from creonowd.clock import SystemClock
from creonowd.context_files.archives import export
from creonowd.context_files.files import Store
from creonowd.context_files.folder import AbsentError, ConversationFolder
from creonowd.context_files.record_store import history_path
from creonowd.context_files.records import Kind
from creonowd.storage import journal
from creonowd.threads import StopSignal
from tests.context_files.kill_steps import CONTENT, KNOWN_ROUNDS, ROUNDS
from tests.context_files.sample_files import content_of, new_file

Check = Callable[[ConversationFolder, bool], None]


def start(tmp_path: Path) -> ConversationFolder:
    """The conversation that every attempt begins with."""
    (tmp_path / "start").mkdir()
    return Store(tmp_path / "start", SystemClock()).find_or_create("prj_one", "chat")


def killed_everywhere(tmp_path: Path, step: str, check: Check) -> None:
    """Kill the step at its first touch of the disk, its second, … and look what each kill left."""
    finished = subprocess.run(
        [sys.executable, "-m", "tests.context_files.kill_steps", str(tmp_path), step],
        capture_output=True,
        check=False,
        env=os.environ,
    )
    assert finished.returncode == 0, finished.stderr.decode()
    needed = int(finished.stdout)
    assert needed > 2
    for touches in range(needed + 1):
        conversation = Store(tmp_path / str(touches), SystemClock()).find("prj_one", "chat")
        assert conversation is not None
        check(conversation, touches == needed)


def test_a_killed_put_leaves_nothing_or_all(tmp_path: Path) -> None:
    start(tmp_path).put(new_file(), b"before")

    def check(conversation: ConversationFolder, done: bool) -> None:  # noqa: FBT001
        first, *rest = conversation.records()
        assert content_of(conversation, first.id) == b"before"
        assert len(rest) <= 1
        assert rest or not done
        for record in rest:
            assert content_of(conversation, record.id) == CONTENT
            assert record.key == "call_1"
        again = conversation.put(new_file(key="call_1"), CONTENT)
        assert [again.id] == [record.id for record in rest] or not rest

    killed_everywhere(tmp_path, "put", check)


def test_a_killed_delete_leaves_the_whole_file_or_none(tmp_path: Path) -> None:
    prepared = start(tmp_path)
    prepared.put(new_file(), CONTENT)
    prepared.put(new_file(), b"other")

    def check(conversation: ConversationFolder, done: bool) -> None:  # noqa: FBT001
        contents = [content_of(conversation, record.id) for record in conversation.records()]
        assert contents in ([CONTENT, b"other"], [b"other"])
        assert not done or contents == [b"other"]

    killed_everywhere(tmp_path, "delete", check)


def test_a_killed_making_leaves_the_whole_file_or_a_recipe(tmp_path: Path) -> None:
    start(tmp_path).register(new_file(Kind.HISTORY, recipe={"type": "host"}))

    def check(conversation: ConversationFolder, done: bool) -> None:  # noqa: FBT001
        (record,) = conversation.records()
        try:
            assert content_of(conversation, record.id) == CONTENT
        except AbsentError:
            assert not done

    killed_everywhere(tmp_path, "fill", check)


def test_a_killed_import_brings_everything_or_nothing(tmp_path: Path) -> None:
    packed = Store(tmp_path / "source", SystemClock()).find_or_create("prj_one", "chat")
    ids = [packed.put(new_file(key=f"call_{n}"), CONTENT).id for n in range(3)]
    start(tmp_path).put(new_file(), b"before")
    export(packed, tmp_path / "start" / "archive.zip", StopSignal(), lambda _: None, ROUNDS)
    history = history_path(tmp_path / "start", "prj_one", "chat")
    journal.append_lines(history, 0, KNOWN_ROUNDS)

    def check(conversation: ConversationFolder, done: bool) -> None:  # noqa: FBT001
        brought = [r.id for r in conversation.records() if r.hint == "a hint" and r.key]
        assert brought in ([], ids)
        assert brought or not done
        for ref_id in brought:
            assert content_of(conversation, ref_id) == CONTENT
        user_data = conversation.folder.parent.parent
        rounds = journal.replay(history_path(user_data, "prj_one", "chat"))
        assert rounds.entries == [b'{"known":1}', *([ROUNDS] if brought else [])]
        assert not rounds.torn
        assert not list(conversation.folder.parent.glob(".import/*"))

    killed_everywhere(tmp_path, "import", check)
