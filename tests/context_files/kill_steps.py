"""Do one step again and again, each time in a process that is killed one touch of the disk later.

`python -m tests.context_files.kill_steps FOLDER STEP` copies FOLDER/start to FOLDER/0, FOLDER/1, … and
prints how many touches the step needed to survive.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from creonowd.clock import SystemClock
from creonowd.context_files.archives import (
    ArchiveProgress,
    ImportRules,
    ImportTarget,
    import_archive,
)
from creonowd.context_files.files import Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.record_store import NewRounds
from creonowd.context_files.records import Kind
from creonowd.storage import journal
from creonowd.threads import StopSignal
from tests.context_files.sample_files import new_file

TOUCHES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.utime", "shutil.rmtree"}
CONTENT = b"whole content\n" * 1000
KNOWN_ROUNDS = journal.encode(b'{"known":1}')
ROUNDS = b'{"new":2}'
KILLED = 9
MOST = 300


def main(folder: Path, step: str) -> None:
    """Try with ever more touches until the step survives."""
    for touches in range(MOST):
        shutil.copytree(folder / "start", folder / str(touches))
        status = _tried(folder / str(touches), step, touches)
        if status == 0:
            sys.stdout.write(str(touches))
            return
        if status != KILLED:
            sys.exit(f"the step failed with {status} after {touches} touches")
    sys.exit("the step never ended")


def _tried(folder: Path, step: str, touches: int) -> int:
    if hasattr(os, "fork"):
        child = os.fork()
        if child == 0:
            attempt(folder, step, touches)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    command = [
        sys.executable,
        "-m",
        "tests.context_files.kill_steps",
        str(folder),
        step,
        str(touches),
    ]
    return subprocess.run(command, check=False).returncode


def attempt(folder: Path, step: str, touches: int) -> None:
    """Do the step in this process, and die on the way."""
    store = Store(folder, SystemClock())
    conversation = store.find_or_create("prj_one", "chat")
    left = touches

    def kill(event: str, _arguments: object) -> None:
        nonlocal left
        if event in TOUCHES:
            left -= 1
            if left < 0:
                os._exit(KILLED)

    sys.addaudithook(kill)
    do(step, store, conversation)
    os._exit(0)


def do(step: str, store: Store, conversation: ConversationFolder) -> None:
    """Do one step."""
    if step == "put":
        conversation.put(new_file(key="call_1"), CONTENT)
    elif step == "delete":
        conversation.remove(conversation.records()[0].id)
    elif step == "fill":
        record = conversation.newest(Kind.HISTORY, 1)[0]
        with conversation.write_lazy_file(record) as file:
            file.write(CONTENT)
    else:
        rules = ImportRules(1 << 30, repr, str, _new_rounds)
        target = ImportTarget("prj_one", "chat")
        archive = store.root.parent / "archive.zip"
        import_archive(store, target, archive, rules, stop=StopSignal(), report=_ignore)


def _new_rounds(data: bytes) -> NewRounds:
    return NewRounds(len(KNOWN_ROUNDS), journal.encode(data))


def _ignore(_progress: ArchiveProgress) -> None:
    pass


if __name__ == "__main__":
    if len(sys.argv) == 4:
        attempt(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
    else:
        main(Path(sys.argv[1]), sys.argv[2])
