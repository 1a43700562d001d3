"""A store on a fresh disk, with a clock that counts."""

from pathlib import Path

import pytest

from creonowd.clock import SteppingClock
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The context files of nobody yet."""
    return Store(tmp_path, SteppingClock())


@pytest.fixture
def conversation(store: Store) -> ConversationFolder:
    """A conversation without files."""
    return store.bound("prj_one", "chat-1")
