"""The folder of a novel in a story, and the payloads that name it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

CHAPTER = "一.md"
TEXT = "林远推开门，屋里没有人。\n\n他站了一会儿，听见楼上的脚步声。\n"
CONTINUE = "builtin:continue"


class NovelFolder:
    """A project of the daemon, its folder, and the payloads that name it.

    `cursor` is where the author is and what runs: fields of `context:assemble`.
    """

    def __init__(self, root: Path, project_id: str, **cursor: Any) -> None:
        self.root = root
        self.project_id = project_id
        self.params = {"projectId": project_id}
        self._cursor = {
            "skillId": CONTINUE,
            "documentId": CHAPTER,
            "cursorPosition": len(TEXT),
        } | cursor

    def put(self, path: str, content: str | bytes) -> Path:
        """Write a file of the project."""
        write_files(self.root, {path: content})
        return self.root / path

    def payload(self, **changes: Any) -> dict[str, Any]:
        """Return the payload of an assembly or a run."""
        return {**self.params, **self._cursor, **changes}


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Make a folder with these files (path → content), as an editor would write them."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
