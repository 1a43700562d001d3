"""A project, its constraints."""

from pathlib import Path

import pytest

from creonowd.workspace.constraints import Constraints
from creonowd.workspace.projects import Project
from tests.workspace.stores import a_store


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "书"
    root.mkdir()
    return Project(project_id="prj_test", name="书", root=root)


@pytest.fixture
def store() -> Constraints:
    return a_store()
