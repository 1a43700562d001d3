import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from creonowd.workspace.watcher import Snapshot, difference, take

FOLDERS = ["", "卷一", "卷一/上", ".creonow", ".creonow/rules", ".creonow/cache", ".git"]
NAMES = ["a.md", "B.txt", "cover.png", "style.md~", ".creonow-1-1.tmp", "c.json"]
STEPS = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(FOLDERS), st.sampled_from(NAMES), st.binary()),
    st.tuples(st.just("delete"), st.sampled_from(FOLDERS), st.sampled_from(NAMES)),
    st.tuples(st.just("remove"), st.sampled_from(FOLDERS[1:])),
    st.tuples(st.just("move"), st.sampled_from(FOLDERS[1:]), st.sampled_from(FOLDERS[1:])),
)


def changed_by(root: Path, step: tuple[object, ...]) -> set[str]:
    """Do one thing to the folder, and name what a system would notify of."""
    match step:
        case "write", str(folder), str(name), bytes(data):
            (root / folder).mkdir(parents=True, exist_ok=True)
            (root / folder / name).write_bytes(data)
            return {f"{folder}/{name}".lstrip("/"), *_up(folder)}
        case "delete", str(folder), str(name):
            (root / folder / name).unlink(missing_ok=True)
            return {f"{folder}/{name}".lstrip("/")}
        case "remove", str(folder):
            shutil.rmtree(root / folder, ignore_errors=True)
            return {folder}
        case "move", str(folder), str(other):
            if (root / folder).exists() and not (root / other).exists() and folder not in other:
                (root / other).parent.mkdir(parents=True, exist_ok=True)
                (root / folder).rename(root / other)
            return {folder, other, *_up(other)}
        case _:
            raise AssertionError(step)


def _up(folder: str) -> set[str]:
    names = folder.split("/")
    return {"/".join(names[:count]) for count in range(1, len(names) + 1)} - {""}


@hypothesis_settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(STEPS, max_size=12))
def test_looking_only_where_something_happened_sees_everything(
    quick_path: Path, steps: list[tuple[object, ...]]
) -> None:
    with tempfile.TemporaryDirectory(dir=quick_path) as place:
        root = Path(place)
        view = take(root)
        for step in steps:
            before = view
            named = changed_by(root, step)
            dirty = frozenset(named | {path.rpartition("/")[0] for path in named})
            view = take(root, view, dirty)

            assert view == take(root)
            assert difference(before, view) <= _files(before) | _files(view)
            assert not any(path.endswith(("~", ".tmp")) for path in _files(view))
            assert not any(path.startswith((".git", ".creonow/cache")) for path in _files(view))


def _files(view: Snapshot) -> set[str]:
    return {f"{folder}/{name}".lstrip("/") for folder, seen in view.items() for name in seen.files}


def test_what_did_not_change_is_no_difference(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"a")

    assert difference(take(tmp_path), take(tmp_path)) == set()


def test_a_folder_that_is_gone_is_an_empty_view(tmp_path: Path) -> None:
    assert take(tmp_path / "gone") == {}
