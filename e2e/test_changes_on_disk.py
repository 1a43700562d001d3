"""Story: everything on the disk changes under a daemon, and each request sees what came before it.

One daemon skips looking at files of which Linux reports that they have not changed; the other looks
at every file. Whatever happens, both must answer the same.
"""

import json
import os
import random
import shutil
from collections.abc import Callable, Generator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from creonowd.testing.harness import Harness, write_files

ROUNDS = 400

SKILL = """---
id: check
name: check
context_rules: {surrounding: 4000, user_preferences: true, style_guide: true, characters: true,
  outline: true, knowledge_graph: true, retrieval: false, synopsis: true}
prompt: {system: "CALLED", user: ""}
---
"""
FILES = {
    "chapters/01.md": "第一章 雨夜。\n\n阿青走进客栈，雨声渐大。" * 20,
    "chapters/02.md": "第二章 天明。\n\n雨停了，阿青上路。" * 20,
    "chapters/03.md": "第三章\n\n山路很长。",
    "大纲.md": "# 第三章\n\n山中遇故人。",
    ".creonow/rules/style.md": "用第三人称。",
    ".creonow/rules/deep/more.md": "少用形容词。",
    ".creonow/rules/constraints.json": '{"version": 1, "items": []}',
    ".creonow/settings/world.md": "山中有客栈。",
    ".creonow/characters/阿青.md": "# 阿青\n\n剑客。",
    ".creonow/threads/letter.md": "---\nplanted: 01\n---\n一封信。",
    ".creonow/skills/check/SKILL.md": SKILL,
}


class Pair:
    """Two daemons on one folder, and the answers that they gave last."""

    def __init__(self, home: Path, quick: Harness, careful: Harness) -> None:
        self.root = home / "books" / "小说 novel"
        self.home = home
        self.daemons = (quick, careful)
        self.cursor = 0
        write_files(self.root, FILES)
        self.projects = [
            daemon.call("project:create", {"rootPath": str(self.root)})["projectId"]
            for daemon in self.daemons
        ]

    def ask(self, document: str = "chapters/03.md") -> Any:
        """Return what both daemons answer."""
        quick, careful = (
            self._answer(daemon, project, document)
            for daemon, project in zip(self.daemons, self.projects, strict=True)
        )
        assert quick == careful
        return quick

    def _answer(self, daemon: Harness, project: str, document: str) -> Any:
        payload = {
            "projectId": project,
            "documentId": document,
            "cursorPosition": self.cursor,
            "skillId": "check",
        }
        answer = daemon.invoke("context:assemble", payload)
        if not answer["ok"]:
            return answer["error"]["code"]
        data = answer["data"]
        return {
            name: data[name]
            for name in ("prompt", "tokenCount", "layers", "warnings", "promptHash")
        }


@pytest.fixture
def pair(tmp_path: Path) -> Generator[Pair]:
    with (
        Harness(tmp_path / "quick") as quick,
        Harness(tmp_path / "careful", CREONOW_QUICK_CHECKS="false") as careful,
    ):
        yield Pair(tmp_path, quick, careful)


class Disk:
    """Somebody who changes files; each change returns a text that the prompt must have, or not."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.pair, self.root = pair, pair.root
        self.chance = random.Random(seed)
        self.numbers = count(1000)
        # After these, changes are reported again at once.
        self.plain: list[Callable[[], str]] = [
            *(self.write, self.overwrite, self.append, self.replace, self.touch_old, self.truncate),
            *(self.make_folder, self.swap_folder, self.swap_project, self.move_above, self.many),
            *(
                self.constrain,
                self.skill,
                self.global_skill,
                self.budget,
                self.remove,
                self.outline,
            ),
            *(self.rename, self.hide, self.language, self.shuffle, self.through_old_name),
        ]
        # After these, every file is looked at for a while.
        self.all = [*self.plain, self.link, self.hard_link]

    def new(self) -> str:
        return f"新{next(self.numbers)}"

    def put(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text, encoding="utf-8")

    def any_file(self) -> str:
        return self.chance.choice(
            (".creonow/settings/world.md", ".creonow/rules/style.md", ".creonow/rules/deep/more.md",
             ".creonow/characters/阿青.md", "chapters/03.md")
        )  # fmt: skip

    def write(self) -> str:
        self.put(self.any_file(), text := self.new())
        return text

    def overwrite(self) -> str:
        """Change bytes in place: the size stays, and the time of the last change is put back."""
        place = self.root / self.any_file()
        self.put(place.relative_to(self.root).as_posix(), self.new())
        self.pair.ask()
        before = place.stat()
        with place.open("r+b") as file:
            file.write((text := self.new()).encode())
        os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
        return text

    def append(self) -> str:
        with (self.root / self.any_file()).open("a", encoding="utf-8") as file:
            file.write(text := self.new())
        return text

    def truncate(self) -> str:
        self.put(".creonow/settings/world.md", text := self.new())
        os.truncate(self.root / ".creonow/settings/world.md", len(text.encode()) - 1)
        return text[:-1]

    def replace(self) -> str:
        place = self.root / self.any_file()
        place.with_name("x.tmp").write_text(text := self.new(), encoding="utf-8")
        place.with_name("x.tmp").replace(place)
        return text

    def touch_old(self) -> str:
        place = self.root / self.any_file()
        place.write_text(text := self.new(), encoding="utf-8")
        os.utime(place, (1_000_000_000, 1_000_000_000))
        return text

    def make_folder(self) -> str:
        self.put(f".creonow/settings/{self.new()}/{self.new()}/note.md", text := self.new())
        return text

    def swap_folder(self) -> str:
        folder = self.root / ".creonow/characters"
        (other := folder.with_name("other")).mkdir()
        (other / "阿青.md").write_text(text := self.new(), encoding="utf-8")
        folder.rename(aside := self.pair.home / "aside")
        other.rename(folder)
        shutil.rmtree(aside)
        return text

    def swap_project(self) -> str:
        """Put another project in the place of this one, and ask in between."""
        aside = self.root.with_name("aside")
        self.root.rename(aside)
        assert "新" not in str(self.pair.ask())
        shutil.copytree(aside, self.root)
        shutil.rmtree(aside)
        return self.write()

    def move_above(self) -> str:
        """Move a folder above the project, and put a copy with another text there."""
        above, aside = self.root.parent, self.pair.home / "moved"
        above.rename(aside)
        shutil.copytree(aside, above)
        shutil.rmtree(aside)
        return self.write()

    def constrain(self) -> str:
        items = [{"id": "a", "text": (text := self.new())}]
        self.put(".creonow/rules/constraints.json", json.dumps({"version": 1, "items": items}))
        return text

    def skill(self) -> str:
        text = self.new()
        self.put(".creonow/skills/check/SKILL.md", SKILL.replace("CALLED", text))
        return text

    def global_skill(self) -> str:
        """Add skills to user data, the first of which hides the project's for a moment."""
        text = self.new()
        shutil.rmtree(self.root / ".creonow/skills")
        for daemon in self.pair.daemons:
            write_files(daemon.user_data, {"skills/check/SKILL.md": SKILL.replace("CALLED", text)})
        assert text in self.pair.ask()["prompt"]
        for daemon in self.pair.daemons:
            shutil.rmtree(daemon.user_data / "skills")
        return self.skill()

    def budget(self) -> str:
        for daemon in self.pair.daemons:
            daemon.call("context:budget:get", {})
            write_files(daemon.user_data, {"budgets/default.json": f"damaged {self.new()}"})
        assert "CONTEXT_BUDGET_FALLBACK" in str(self.pair.ask()["warnings"])
        for daemon in self.pair.daemons:
            shutil.rmtree(daemon.user_data / "budgets")
        self.pair.ask()
        return ""

    def remove(self) -> str:
        place = self.root / self.any_file()
        self.put(place.relative_to(self.root).as_posix(), text := self.new())
        self.pair.ask()
        place.unlink()
        assert text not in self.pair.ask()["prompt"]
        return self.write()

    def outline(self) -> str:
        self.put("大纲.md", f"# 第三章\n\n{(text := self.new())}")
        return text

    def rename(self) -> str:
        """Give the open chapter another name, and make a new one in its place."""
        chapter = self.root / "chapters/03.md"
        if chapter.exists():
            chapter.rename(self.root / f"chapters/9{self.new()}.md")
        assert "IMMEDIATE_UNAVAILABLE" in str(self.pair.ask()["warnings"])
        self.put("chapters/03.md", text := self.new())
        return text

    def hide(self) -> str:
        self.put("chapters/.gitignore", "03.md\n")
        assert "IMMEDIATE_UNAVAILABLE" in str(self.pair.ask()["warnings"])
        (self.root / "chapters/.gitignore").unlink()
        self.put("chapters/03.md", text := self.new())
        return text

    def language(self) -> str:
        self.put(".creonow/project.json", '{"version": 1, "language": "en"}')
        english = self.pair.ask()
        (self.root / ".creonow/project.json").unlink()
        assert self.pair.ask() != english
        return ""

    def shuffle(self) -> str:
        """Change the story before and its order, of which the prompt shows a part at most."""
        self.put("chapters/01.md", f"第一章\n\n{self.new()}走进客栈，雨声渐大。")
        self.put(".creonow/story.json", '{"version": 1, "order": ["chapters/02.md"]}')
        self.pair.ask()
        (self.root / ".creonow/story.json").unlink()
        return ""

    def many(self) -> str:
        """Make more changes than are looked at one by one."""
        for number in range(100):
            self.put(f".creonow/settings/many/{number}.md", "一")
        self.pair.ask()
        shutil.rmtree(self.root / ".creonow/settings/many")
        return self.write()

    def link(self) -> str:
        """Put a link in the place of a file, change what it leads to, and put the file back."""
        place = self.root / ".creonow/settings/world.md"
        place.unlink(missing_ok=True)
        self.put(".creonow/settings/world.draft", text := self.new())
        place.symlink_to("world.draft")
        assert text in self.pair.ask()["prompt"]
        self.put(".creonow/settings/world.draft", text := self.new())
        assert text in self.pair.ask()["prompt"]
        place.unlink()
        return self.write()

    def hard_link(self) -> str:
        """Give a file a second name outside, and write through that."""
        place, other = self.root / ".creonow/settings/hard.md", self.pair.home / "other.md"
        other.write_text(self.new(), encoding="utf-8")
        place.unlink(missing_ok=True)
        os.link(other, place)
        self.pair.ask()
        other.write_text(text := self.new(), encoding="utf-8")
        assert text in self.pair.ask()["prompt"]
        other.unlink()
        return text

    def through_old_name(self) -> str:
        """Move an open file into the project, and write through what was opened before."""
        outside = self.pair.home / "outside.md"
        with outside.open("w", encoding="utf-8") as file:
            outside.rename(self.root / ".creonow/settings/world.md")
            self.pair.ask()
            file.write(text := self.new())
            file.flush()
            assert text in self.pair.ask()["prompt"]
        return text


@pytest.mark.parametrize("kind", ["plain", "all"])
def test_each_change_is_in_the_answer_to_the_next_request(pair: Pair, kind: str) -> None:
    disk = Disk(pair, int(os.environ.get("SEED", "1")))
    changes: list[Callable[[], str]] = getattr(disk, kind)

    for _ in range(ROUNDS):
        pair.cursor = disk.chance.choice((0, 100_000))
        for _ in range(disk.chance.randint(0, 2)):
            pair.ask()
        change = disk.chance.choice(changes)
        text = change()
        assert text in pair.ask()["prompt"], change.__name__
