"""What comes out of anyone's archive is all there or nothing, however it was spoilt."""

import io
import os
import stat
import struct
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.clock import SystemClock, make_clock
from creonowd.context_files.archives import (
    MAX_DIRECTORY_BYTES,
    ImportRules,
    ImportTarget,
    export,
    import_archive,
    is_archive,
)
from creonowd.context_files.files import Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.records import Kind
from creonowd.errors import DaemonError, ErrorCode
from creonowd.threads import StoppedError, StopSignal
from testing.fuzz import damaged_inputs, scaled_examples
from testing.privileges import no_descriptors
from tests.context_files.sample_archives import PREFIX, RULES, export_to, import_from
from tests.context_files.sample_files import content_of, new_file

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


def rewritten(
    archive: Path,
    folder: Path,
    *,
    drop: set[str] | None = None,
    add: dict[str, bytes] | None = None,
    manifest: Callable[[Any], None] | None = None,
) -> Path:
    """Copy an archive with changes."""
    path = folder / "changed.zip"
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("manifest.json") and manifest is not None:
                listed = msgspec.json.decode(data)
                manifest(listed)
                data = msgspec.json.encode(listed)
            if info.filename not in (drop or set()):
                new.writestr(info.filename, data)
        for name, data in (add or {}).items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                new.writestr(name, data)
    return path


def assert_refused(store: Store, path: Path, reason: str, rules: ImportRules = RULES) -> None:
    with pytest.raises(DaemonError, match="INVALID_ARGUMENT") as caught:
        import_from(store, path, rules=rules)
    assert caught.value.details["reason"] == reason
    assert caught.value.details["field"] == "path"
    assert store.find("prj_one", "chat-1") is None
    assert not list(store.root.rglob("*"))


def rename_first(field: str, value: Any) -> Callable[[Any], None]:
    def change(manifest: Any) -> None:
        manifest["items"][0][field] = value

    return change


def archive() -> bytes:
    """Export a conversation of two files and a recipe."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), make_clock(deterministic=True))
        conversation = store.find_or_create("prj_one", "chat-1")
        conversation.put(new_file(key="call_1"), "红楼梦\n".encode() * 20)
        conversation.put(new_file(key="call_2"), bytes(range(256)))
        recipe = {"type": "json", "value": [1, {"a": None}]}
        conversation.register(new_file(Kind.CATALOG, key="tools", recipe=recipe))
        export(conversation, Path(folder) / "chat.zip", StopSignal(), lambda _: None)
        return (Path(folder) / "chat.zip").read_bytes()


def with_manifest(data: bytes) -> bytes:
    """Pack the same files beside another manifest, with checksums that are right."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as packed:
        for name, content in (MEMBERS | {MANIFEST: data}).items():
            packed.writestr(name, content)
    return made.getvalue()


PACKED = archive()
with zipfile.ZipFile(io.BytesIO(PACKED)) as unpacked:
    MEMBERS = {name: unpacked.read(name) for name in unpacked.namelist()}


@pytest.mark.requirement("CF-037", "CF-038")
def test_ids_times_and_bytes_survive_the_journey(
    conversation: ConversationFolder, packed: Path, elsewhere: Store
) -> None:
    arrived = import_from(elsewhere, packed)

    assert arrived.conversation.id == "chat-1"
    assert [r.ref for r in arrived.records] == [r.ref for r in conversation.records()]
    for record in conversation.records()[:2]:
        assert content_of(arrived.conversation, record.id) == content_of(conversation, record.id)
    again = Store(elsewhere.root.parent, SystemClock()).find("prj_one", "chat-1")
    assert again is not None
    assert [r.ref for r in again.records()] == [r.ref for r in conversation.records()]


def test_what_arrives_begins_to_age_here(packed: Path, elsewhere: Store) -> None:
    arrived = import_from(elsewhere, packed)

    assert all(r.stored_at > r.created_at for r in arrived.records)
    assert {r.project_id for r in arrived.records} == {"prj_one"}


def test_an_archive_can_go_into_a_new_conversation(store: Store, packed: Path) -> None:
    arrived = import_from(store, packed, "copy")

    assert arrived.conversation.id == "copy"
    assert len(arrived.records) == 3


def test_importing_twice_changes_nothing(store: Store, packed: Path) -> None:
    before = [record.ref for record in store.find_or_create("prj_one", "chat-1").records()]

    arrived = import_from(store, packed)

    assert [record.ref for record in arrived.records] == before
    assert [record.ref for record in arrived.conversation.records()] == before


def test_a_name_that_is_taken_makes_way(elsewhere: Store, packed: Path) -> None:
    target = elsewhere.find_or_create("prj_one", "other")
    mine = target.put(new_file(), b"mine")
    path = target.folder / mine.path
    path.rename(path.with_name("CALL_1.txt"))
    elsewhere = Store(elsewhere.root.parent, SystemClock())

    arrived = import_from(elsewhere, packed, "other")

    eager = [record for record in arrived.conversation.records() if not record.lazy]
    contents = {content_of(arrived.conversation, record.id) for record in eager}
    assert b"mine" in contents
    assert "红楼梦\n".encode() * 100 in contents


def test_a_contradiction_is_a_conflict_and_nothing_changes(elsewhere: Store, packed: Path) -> None:
    target = elsewhere.find_or_create("prj_one", "chat-1")
    target.put(new_file(key="call_1"), b"something else")

    with pytest.raises(DaemonError, match="CONFLICT"):
        import_from(elsewhere, packed)

    assert len(target.records()) == 1


def test_another_projects_conversation_is_not_written_into(store: Store, packed: Path) -> None:
    store.find_or_create("prj_two", "theirs")

    with pytest.raises(DaemonError, match="CONTEXT_SCOPE_VIOLATION"):
        import_from(store, packed, "theirs")


@pytest.mark.requirement("CF-038")
def test_without_a_manifest_the_folders_decide(
    packed: Path, elsewhere: Store, tmp_path: Path
) -> None:
    bare = rewritten(packed, tmp_path, drop={f"{PREFIX}manifest.json"})

    arrived = import_from(elsewhere, bare)

    assert sorted(record.kind for record in arrived.records) == [Kind.ARTIFACT, Kind.HISTORY]
    assert "call_1.txt" in {record.hint for record in arrived.records}


@pytest.mark.parametrize(
    "name",
    [
        "../evil.txt",
        "context/chat-1/../../evil.txt",
        "context/chat-1/artifacts/tool/../../../evil.txt",
        "/etc/evil",
        "C:/evil.txt",
        "context/chat-1/artifacts/tool/..\\..\\evil.txt",
        "context/chat-1/artifacts/tool/con.txt",
        "context/chat-1/artifacts/tool/sub/evil.txt",
        "context/chat-1/artifacts/refs/ctx_00000000000000000000.json",
        "context/chat-1/conversation.json",
        "context/chat-1/evil.txt",
        "context/chat.1/artifacts/tool/evil.txt",
        "evil.txt",
        "context//artifacts/tool/evil.txt",
        "context/chat-1/artifacts/tool/evil\n.txt",
    ],
)
def test_a_name_that_no_context_file_has_is_refused(
    packed: Path, elsewhere: Store, tmp_path: Path, name: str
) -> None:
    assert_refused(elsewhere, rewritten(packed, tmp_path, add={name: b"evil"}), "name")

    assert not list(tmp_path.rglob("evil*"))


@pytest.mark.parametrize(
    "name", ["artifacts/tool/call_1.txt", "artifacts/tool/CALL_1.txt", "manifest.json"]
)
def test_duplicate_names_are_refused(
    packed: Path, elsewhere: Store, tmp_path: Path, name: str
) -> None:
    changed = rewritten(packed, tmp_path, add={f"{PREFIX}{name}": b"evil"})

    assert_refused(elsewhere, changed, "duplicate")


def test_two_conversations_in_one_archive_are_refused(
    packed: Path, elsewhere: Store, tmp_path: Path
) -> None:
    changed = rewritten(packed, tmp_path, add={"context/chat-2/artifacts/tool/x.txt": b"x"})

    assert_refused(elsewhere, changed, "not_one_conversation")


@pytest.mark.parametrize("form", [stat.S_IFLNK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFDIR])
def test_links_and_devices_are_refused(elsewhere: Store, tmp_path: Path, form: int) -> None:
    path = tmp_path / "links.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        info = zipfile.ZipInfo(f"{PREFIX}artifacts/tool/link.txt")
        info.external_attr = (form | 0o777) << 16
        zipped.writestr(info, "/etc/passwd")

    assert_refused(elsewhere, path, "link")


def test_a_bomb_by_ratio_is_refused(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(f"{PREFIX}artifacts/tool/zeros.txt", bytes(20_000_000))

    assert_refused(elsewhere, path, "bomb")


def test_many_small_bombs_are_one_bomb(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "bombs.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(20):
            archive.writestr(f"{PREFIX}artifacts/tool/{number}.txt", bytes(500_000))

    assert_refused(elsewhere, path, "bomb")


def test_a_bomb_by_size_is_refused(packed: Path, elsewhere: Store) -> None:
    assert_refused(elsewhere, packed, "too_large", RULES._replace(max_bytes=1000))


def test_an_entry_that_lies_about_its_size_is_refused(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "liar.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr(f"{PREFIX}artifacts/tool/zeros.txt", bytes(3_000_000))
    data = path.read_bytes()
    path.write_bytes(data.replace((3_000_000).to_bytes(4, "little"), (3000).to_bytes(4, "little")))

    with pytest.raises(DaemonError, match="INVALID_ARGUMENT"):
        import_from(elsewhere, path)

    assert not list(elsewhere.root.rglob("*"))


def test_entries_that_share_their_bytes_are_refused(packed: Path, elsewhere: Store) -> None:
    data = bytearray(packed.read_bytes())
    central = data.index(b"PK\x01\x02")
    data[central + 20 : central + 24] = (50_000_000).to_bytes(4, "little")
    packed.write_bytes(data)

    with pytest.raises(DaemonError, match="INVALID_ARGUMENT"):
        import_from(elsewhere, packed)


def test_a_wrong_hash_is_refused(packed: Path, elsewhere: Store, tmp_path: Path) -> None:
    name = f"{PREFIX}artifacts/tool/call_1.txt"
    changed = rewritten(packed, tmp_path, drop={name}, add={name: b"forged"})

    assert_refused(elsewhere, changed, "hash")


@pytest.mark.parametrize("name", [b"\0", b"context\0"])
def test_a_name_with_a_nul_is_refused(packed: Path, elsewhere: Store, name: bytes) -> None:
    data = packed.read_bytes()
    packed.write_bytes(data.replace(b"context/"[: len(name)], name))

    assert_refused(elsewhere, packed, "name")


def test_an_encrypted_archive_is_refused(packed: Path, elsewhere: Store) -> None:
    data = packed.read_bytes().replace(
        b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"
    )
    data = data.replace(b"PK\x01\x02\x2d\x03\x2d\x00\x00", b"PK\x01\x02\x2d\x03\x2d\x00\x01")
    packed.write_bytes(data)

    assert_refused(elsewhere, packed, "encrypted")


def test_another_compression_is_refused(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "lzma.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as zipped:
        zipped.writestr(f"{PREFIX}artifacts/tool/x.txt", b"x" * 1000)

    assert_refused(elsewhere, path, "compression")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../../evil"),
        ("id", ""),
        ("path", "../../evil"),
        ("path", "history/archive/x.md"),
        ("origin", "terminal"),
        ("kind", "catalog"),
        ("createdAt", -1),
        ("createdAt", 1 << 60),
        ("sequence", -5),
        ("key", "k" * 300),
        ("key", "tools"),
        ("mimeType", "x" * 300),
        ("retention", "lazy"),
        ("survey", None),
    ],
)
def test_a_manifest_that_no_daemon_wrote_is_refused(
    packed: Path, elsewhere: Store, tmp_path: Path, field: str, value: Any
) -> None:
    changed = rewritten(packed, tmp_path, manifest=rename_first(field, value))

    with pytest.raises(DaemonError, match="INVALID_ARGUMENT"):
        import_from(elsewhere, changed)

    assert elsewhere.find("prj_one", "chat-1") is None
    assert not list(elsewhere.root.rglob("*"))


def test_a_manifest_from_the_future_is_refused(
    packed: Path, elsewhere: Store, tmp_path: Path
) -> None:
    def change(manifest: Any) -> None:
        manifest["version"] = 2

    with pytest.raises(DaemonError, match="VERSION_TOO_NEW"):
        import_from(elsewhere, rewritten(packed, tmp_path, manifest=change))


def test_a_file_that_the_manifest_does_not_name_is_refused(
    packed: Path, elsewhere: Store, tmp_path: Path
) -> None:
    changed = rewritten(packed, tmp_path, add={f"{PREFIX}artifacts/tool/extra.txt": b"x"})

    assert_refused(elsewhere, changed, "manifest")


def test_a_recipe_that_nobody_could_follow_is_refused(packed: Path, elsewhere: Store) -> None:
    def check(_recipe: dict[str, Any]) -> None:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, "no such type", field="recipe")

    with pytest.raises(DaemonError):
        import_from(elsewhere, packed, rules=RULES._replace(check_recipe=check))

    assert elsewhere.find("prj_one", "chat-1") is None


def test_recipes_too_heavy_for_memory_are_refused_unread(
    packed: Path, elsewhere: Store, tmp_path: Path
) -> None:
    def swell(manifest: Any) -> None:
        manifest["items"][1]["recipe"]["value"] = [{}] * 30_000

    def swell_all(manifest: Any) -> None:
        heavy = manifest["items"].pop() | {"key": None}
        heavy["recipe"] = {"type": "json", "value": list(range(10_000))}
        for number in range(20):
            path = f"catalog/tools/{number}.json"
            manifest["items"].append(heavy | {"id": f"ctx_{number:020d}", "path": path})

    for change in (swell, swell_all):
        assert_refused(elsewhere, rewritten(packed, tmp_path, manifest=change), "manifest")


def test_an_endless_table_of_contents_is_refused_unread(elsewhere: Store, tmp_path: Path) -> None:
    path = tmp_path / "endless.zip"
    size = MAX_DIRECTORY_BYTES + 1
    with path.open("wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 1, 1, size, 0, 0))

    assert_refused(elsewhere, path, "too_many_files")


def test_hints_are_redacted_as_our_own_are(packed: Path, elsewhere: Store) -> None:
    arrived = import_from(elsewhere, packed, rules=RULES._replace(visible_text=str.upper))

    assert {record.hint for record in arrived.records} == {"A HINT"}


@pytest.mark.fuzz
@scaled_examples(0.6)
@given(st.integers(0, 10_000), st.integers(0, 255), st.integers(0, 3000))
def test_a_damaged_archive_is_refused_or_harmless(place: int, byte: int, cut: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        source = Store(root / "source", SystemClock()).find_or_create("prj_one", "chat-1")
        source.put(new_file(key="call_1"), bytes(range(256)) * 4)
        export_to(source, root / "chat.zip")
        data = bytearray((root / "chat.zip").read_bytes())
        data[place % len(data)] = byte
        (root / "chat.zip").write_bytes(data[: len(data) - cut % 50])
        target = Store(root / "target", SystemClock())

        try:
            arrived = import_from(target, root / "chat.zip")
            contents = [content_of(arrived.conversation, r.id) for r in arrived.records]
        except DaemonError:
            contents = []
            assert not list(target.root.rglob("*.txt"))

        assert contents in ([], [bytes(range(256)) * 4])


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_archive_is_refused(elsewhere: Store, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)

    with pytest.raises(DaemonError, match="INVALID_ARGUMENT"):
        import_from(elsewhere, tmp_path / "x.zip")


def test_a_missing_archive_is_not_found_and_a_folder_refused(
    elsewhere: Store, tmp_path: Path
) -> None:
    with pytest.raises(DaemonError, match="NOT_FOUND"):
        import_from(elsewhere, tmp_path / "missing.zip")
    with pytest.raises(DaemonError, match="INVALID_ARGUMENT"):
        import_from(elsewhere, tmp_path)


def test_a_stopped_import_brings_nothing(packed: Path, elsewhere: Store) -> None:
    stop = StopSignal()

    with pytest.raises(StoppedError):
        import_archive(
            elsewhere,
            ImportTarget("prj_one", None),
            packed,
            RULES,
            stop=stop,
            report=lambda _: stop.set(),
        )

    assert elsewhere.find("prj_one", "chat-1") is None
    assert not list(elsewhere.root.rglob("*"))


@pytest.mark.fuzz
@scaled_examples(0.5)
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

        try:
            arrived = import_from(
                store, root / "chat.zip", rules=RULES._replace(max_bytes=1024 * 1024)
            )
        except DaemonError:
            left = [path for path in store.root.rglob("*") if path.is_file()]
            assert left == []
        else:
            made = [record for record in arrived.records if record.stats is not None]
            contents = [content_of(arrived.conversation, record.id) for record in made]
            assert all(content in MEMBERS.values() for content in contents)
        assert {path.name for path in root.iterdir()} <= {"chat.zip", "store"}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on descriptors to set")
def test_what_cannot_be_opened_is_not_called_no_archive(packed: Path) -> None:
    limit = 1_000_000

    with no_descriptors(), pytest.raises(DaemonError) as refused:
        is_archive(packed, limit)

    assert (refused.value.code, refused.value.details["reason"]) == (ErrorCode.IO_ERROR, "EMFILE")
    assert is_archive(packed, limit)
