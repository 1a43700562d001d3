"""`scripts/files_entered`: functions of the package are seen in the real process, and no others."""

from multiprocessing.connection import Listener
from pathlib import Path

import pytest

from scripts.checkouts import entries
from scripts.checkouts.daemon import Daemon

ROOT = Path(__file__).resolve().parents[2]


def test_a_request_enters_the_files_that_answer_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries, "QUIET_SECONDS", 0.3)
    with Listener() as listener:
        daemon = Daemon(ROOT, tmp_path / "data", trace=str(listener.address))
        with daemon, listener.accept() as marks:
            ping = entries.record_request(marks, lambda: daemon.call("app:ping"))
            missing = entries.record_request(marks, lambda: daemon.request("project:setCurrent"))

    pinged, failed = entries.Entries("app:ping", ping), entries.Entries("project", missing)
    assert 5 < len(pinged.files) < 30
    assert "ping" in {function for _, function in ping}
    assert "ping" not in {function for _, function in missing}
    assert all((ROOT / "creonowd" / file).is_file() for file in {*pinged.files, *failed.files})
    assert not [function for _, function in ping if function.startswith("<")]
