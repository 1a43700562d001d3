"""A copy of a project's file is of one file of the project, as it was when the copying began."""

from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.context_files.files import Store
from creonowd.context_files.lazy_files import NextChunk, ProducerContext, built_in_recipes
from creonowd.context_files.records import BLOCK, Kind
from creonowd.errors import DaemonError
from creonowd.workspace.projects import Projects
from tests.context_files.sample_files import new_file


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A file of the project, longer than one piece."""
    (tmp_path / "novel").mkdir()
    path = tmp_path / "novel" / "build.log"
    path.write_bytes(b"a" * (BLOCK + 1000))
    return path


@pytest.fixture
async def pull(store: Store, log: Path, tmp_path: Path) -> NextChunk:
    """The making of a copy that has yet to begin."""
    projects = Projects(tmp_path, SystemClock())
    project = await projects.create(str(log.parent))
    conversation = store.find_or_create(project.project_id, "copies")
    new = new_file(Kind.HISTORY, recipe={"type": "file", "path": "build.log"})
    record = conversation.register(new)
    return built_in_recipes(projects).start(ProducerContext(conversation, record, [], 1000))


async def test_a_file_replaced_during_the_copy_is_a_conflict(pull: NextChunk, log: Path) -> None:
    first = await pull()
    saved = log.with_name("saved")
    saved.write_bytes(b"b" * (BLOCK + 1000))
    saved.replace(log)

    with pytest.raises(DaemonError, match="CONFLICT"):
        await pull()

    assert first == b"a" * BLOCK


async def test_a_file_that_grows_is_copied_up_to_where_it_was(pull: NextChunk, log: Path) -> None:
    pieces = [await pull()]
    with log.open("ab") as file:
        file.write(b"b" * BLOCK)

    while pieces[-1] is not None:
        pieces.append(await pull())

    assert b"".join(filter(None, pieces)) == b"a" * (BLOCK + 1000)


async def test_a_stored_recipe_that_leaves_the_project_is_not_followed(
    store: Store, tmp_path: Path
) -> None:
    """An earlier daemon stored such recipes, and anyone may write into the folder."""
    recipes = built_in_recipes(Projects(tmp_path, SystemClock()))
    conversation = store.find_or_create("prj_one", "copies")
    record = conversation.register(
        new_file(Kind.HISTORY, recipe={"type": "file", "path": "../secret"})
    )

    with pytest.raises(DaemonError, match="INVALID_ARGUMENT"):
        recipes.start(ProducerContext(conversation, record, [], 1000))
