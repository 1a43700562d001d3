"""An archive that somebody spoilt, outside or in its manifest, is refused or is all there."""

import io
import tempfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.clock import make_clock
from creonowd.context_files.archive_export import export
from creonowd.context_files.archive_import import ImportRules, ImportTarget, import_archive
from creonowd.context_files.records import Kind
from creonowd.context_files.store import Store
from creonowd.errors import DaemonError
from creonowd.threads import StopSignal
from testing.fuzz import damaged_inputs, often
from tests.context_files.files import content_of, new_file

RULES = ImportRules(1024 * 1024, repr, str)
MANIFEST = "context/chat-1/manifest.json"
SIGNATURES = (
    b"PK\x01\x02",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"PK\x06\x06",
    b"PK\x06\x07",
    b"\0\0\0\0",
)
FIELDS = (b'"path": "../evil.txt"', b'"deleted": true', b'"kind": "history"', b'"survey": null,')


def archive() -> bytes:
    """Export a conversation of two files and a recipe."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), make_clock(deterministic=True))
        conversation = store.bound("prj_one", "chat-1")
        conversation.put(new_file(key="call_1"), "红楼梦\n".encode() * 20)
        conversation.put(new_file(key="call_2"), bytes(range(256)))
        recipe = {"type": "json", "value": [1, {"a": None}]}
        conversation.register(new_file(Kind.CATALOG, key="tools", recipe=recipe))
        export(conversation, Path(folder) / "chat.zip", StopSignal(), lambda _: None)
        return (Path(folder) / "chat.zip").read_bytes()


PACKED = archive()
with zipfile.ZipFile(io.BytesIO(PACKED)) as unpacked:
    MEMBERS = {name: unpacked.read(name) for name in unpacked.namelist()}


def with_manifest(data: bytes) -> bytes:
    """Pack the same files beside another manifest, with checksums that are right."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, content in (MEMBERS | {MANIFEST: data}).items():
            packed.writestr(name, content)
    return made.getvalue()


@pytest.mark.fuzz
@often(0.5)
@given(
    st.one_of(
        damaged_inputs([PACKED], SIGNATURES),
        damaged_inputs([MEMBERS[MANIFEST]], FIELDS, most=3).map(with_manifest),
    )
)
def test_a_spoilt_archive_is_refused_or_all_there(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "chat.zip").write_bytes(data)
        store = Store(root / "store", make_clock(deterministic=True))
        target = ImportTarget("prj_one", None)

        try:
            arrived = import_archive(
                store, target, root / "chat.zip", RULES, stop=StopSignal(), report=lambda _: None
            )
        except DaemonError:
            left = [path for path in store.root.rglob("*") if path.is_file()]
            assert left == []
        else:
            made = [record for record in arrived.records if record.survey is not None]
            contents = [content_of(arrived.conversation, record.id) for record in made]
            assert all(content in MEMBERS.values() for content in contents)
        assert {path.name for path in root.iterdir()} <= {"chat.zip", "store"}
