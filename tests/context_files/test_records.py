"""Records have ids and names of their own, no name is unsafe anywhere, and statistics are of the bytes."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.clock import SteppingClock
from creonowd.context_files import records
from creonowd.context_files.records import BLOCK, Index, Origin, Record, file_stats, make_record
from creonowd.errors import DaemonError
from tests.context_files.sample_files import new_file

AT = 1_700_000_000_000
NONE_TAKEN: frozenset[str] = frozenset()


class UnluckyClock(SteppingClock):
    """A clock that gives out the ids of a list."""

    def __init__(self, ids: list[str]) -> None:
        super().__init__()
        self._ids: Iterator[str] = iter(ids)

    def new_id(self, prefix: str) -> str:
        """Give out the next id."""
        return f"{prefix}_{next(self._ids)}"


@pytest.mark.requirement("CF-007", "CF-008", "CF-009", "CF-010")
@pytest.mark.parametrize(
    ("origin", "label", "mime_type", "path"),
    [
        (Origin.TOOL, "call_1", "application/json", "artifacts/tool/call_1.json"),
        (Origin.TOOL, "call_1", "text/plain", "artifacts/tool/call_1.txt"),
        (Origin.TOOL, "call_1", "image/png", "artifacts/tool/call_1.bin"),
        (Origin.TERMINAL, "snippet-7", "text/plain", "artifacts/terminal/snippet-7.log"),
        (Origin.ARCHIVE, "1-20", "text/markdown", f"history/archive/{AT}-1-20.md"),
        (Origin.SUMMARY, "any", "text/markdown", f"history/summary/{AT}.md"),
        (Origin.CATALOG, "mcp", "application/json; charset=utf-8", "catalog/tools/mcp.json"),
    ],
)
def test_a_file_is_called_after_its_origin(
    origin: Origin, label: str, mime_type: str, path: str
) -> None:
    assert records.choose_path(origin, label, AT, mime_type, NONE_TAKEN) == path


@pytest.mark.requirement("CF-039")
@given(st.sampled_from(Origin), st.text(min_size=1, max_size=300), st.text(max_size=20))
def test_any_label_becomes_a_safe_path_of_its_folder(
    origin: Origin, label: str, mime_type: str
) -> None:
    path = records.choose_path(origin, label, AT, mime_type, NONE_TAKEN)

    folder, _, name = path.rpartition("/")
    assert records.is_path(path)
    assert records.origin_of(path) is origin
    assert folder == records.ORIGIN_FOLDERS[origin]
    assert ".." not in path
    assert not name.startswith((".", "-"))


def test_names_that_differ_only_in_case_do_not_meet() -> None:
    taken = {"artifacts/tool/call.txt"}

    assert (
        records.choose_path(Origin.TOOL, "CALL", AT, "text/plain", taken)
        == "artifacts/tool/CALL-2.txt"
    )


def test_keys_that_differ_in_what_no_name_can_hold_get_different_names() -> None:
    keys = [f"第{chr(0x4E00 + number)}次调用" for number in range(2000)]

    paths = {records.choose_path(Origin.TOOL, key, AT, "text/plain", NONE_TAKEN) for key in keys}

    assert len(paths) == len(keys)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "artifacts/tool/",
        "artifacts/tool/../../x",
        "/artifacts/tool/x",
        "artifacts/x",
        "artifacts/tool/a/b",
        "artifacts\\tool\\x",
        "artifacts/tool/.hidden",
        "artifacts/tool/x\n",
        "artifacts/tool/con.txt",
        "artifacts/tool/x.",
        "history/refs/x.json",
        "artifacts/tool/红.txt",
    ],
)
def test_no_other_path_is_one_of_a_context_file(path: str) -> None:
    assert not records.is_path(path)


@pytest.mark.parametrize("given_id", ["a", "A_b-9", "x" * 64, "conv", "con-1"])
def test_a_conversation_id_is_letters_digits_and_two_signs(given_id: str) -> None:
    records.check_conversation_id(given_id)


@pytest.mark.parametrize(
    "given_id",
    ["", " ", "x" * 65, "a/b", "..", ".", "a.b", "会话", "a\n", "a\0", "con", "NUL", "com1"],
)
def test_any_other_conversation_id_is_refused(given_id: str) -> None:
    with pytest.raises(DaemonError, match="INVALID_ARGUMENT") as caught:
        records.check_conversation_id(given_id)

    assert caught.value.details["field"] == "conversationId"


def test_an_id_that_is_taken_is_thrown_away() -> None:
    index = Index()
    clock = UnluckyClock(["a" * 20, "a" * 20, "a" * 20, "b" * 20])

    for _ in range(2):
        index.add(make_record(new_file(), index, "prj_one", clock))

    assert [record.id for record in index.all()] == [f"ctx_{'a' * 20}", f"ctx_{'b' * 20}"]


def test_records_of_one_moment_keep_their_order() -> None:
    index = Index()
    clock = SteppingClock(step_ms=0)
    minted: list[Record] = []

    for key in ("z", "a", "m"):
        minted.append(make_record(new_file(key=key), index, "prj_one", clock))
        index.add(minted[-1])

    assert index.all() == minted
    assert len({record.path for record in minted}) == 3


BYTE_PIECES = st.lists(st.sampled_from([b"", b"\n", b"a" * 7, "红\n".encode(), b"\xe7", b"x\r\ny"]))


@given(BYTE_PIECES)
def test_statistics_are_of_the_bytes_and_not_of_their_pieces(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    whole = file_stats([data])

    piecewise = file_stats(pieces)

    assert (piecewise.sha256, piecewise.utf8) == (whole.sha256, whole.utf8)
    assert piecewise.newlines == whole.newlines
    assert sum(whole.newlines) == data.count(b"\n")
    assert whole.byte_size == len(data)


@given(BYTE_PIECES)
def test_no_line_is_longer_than_the_statistics_claim(pieces: list[bytes]) -> None:
    longest = max(map(len, b"".join(pieces).split(b"\n")))

    assert longest <= file_stats(pieces).longest_line <= longest + BLOCK


def test_an_endless_line_is_measured_across_blocks() -> None:
    assert file_stats([b"\n", b"x" * BLOCK, b"x" * BLOCK, b"\n"]).longest_line == 2 * BLOCK
