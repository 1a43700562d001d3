"""A project, its constraints, and a folder in memory where the system has one."""

import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

from creonowd.workspace.constraints import Constraints
from creonowd.workspace.registry import Project
from tests.workspace.stores import a_store

MEMORY = Path("/dev/shm")


@pytest.fixture
def quick_path() -> Generator[Path]:
    """Give a folder in memory: tests that write thousands of files wait for no disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "书"
    root.mkdir()
    return Project(project_id="prj_test", name="书", root=root)


@pytest.fixture
def store() -> Constraints:
    return a_store()
