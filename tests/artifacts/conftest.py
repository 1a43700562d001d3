"""A store on a fresh disk, with a clock that counts."""

from pathlib import Path

import pytest

from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.store import Store
from creonowd.clock import SteppingClock


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The context files of nobody yet."""
    return Store(tmp_path, SteppingClock())


@pytest.fixture
def conversation(store: Store) -> Conversation:
    """A conversation without files."""
    return store.bound("prj_one", "chat-1")
