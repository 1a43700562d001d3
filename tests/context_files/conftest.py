"""A store on a fresh disk, with a clock that counts."""

from pathlib import Path

import pytest

from creonowd.clock import SteppingClock, SystemClock
from creonowd.context_files.files import Store
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.records import Kind
from tests.context_files.sample_archives import export_to
from tests.context_files.sample_files import lazy_file, new_file


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The context files of nobody yet."""
    return Store(tmp_path, SteppingClock())


@pytest.fixture
def conversation(store: Store) -> ConversationFolder:
    """A conversation without files."""
    return store.find_or_create("prj_one", "chat-1")


@pytest.fixture
def packed(conversation: ConversationFolder, tmp_path: Path) -> Path:
    """An archive of two files and a recipe."""
    conversation.put(new_file(key="call_1"), "红楼梦\n".encode() * 100)
    lazy_file(conversation, b"made")
    conversation.register(new_file(Kind.CATALOG, key="tools", recipe={"type": "json", "value": 1}))
    export_to(conversation, tmp_path / "chat.zip")
    return tmp_path / "chat.zip"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Store:
    """The store of another machine."""
    return Store(tmp_path / "elsewhere", SystemClock())
