"""Story: an author writes chapter after chapter, and the engine knows where in the story that is.

The daemon is shared by all but who kill it; each has a novel of its own.
"""

from collections.abc import Generator
from typing import Any, NamedTuple

import pytest

from creonowd.testing.harness import Harness


class StoryText(NamedTuple):
    """The same story in one language: how chapters are called, and what is hidden in them."""

    chapter: str
    body: str
    secret: str
    allusion: str
    ending: str
    card: str
    later: str
    thread: str
    summary: str


CHINESE = StoryText(
    chapter="第{}章.md",
    body="林远在渡口遇见第{0}位旧友，两人谈起往事，一直谈到天亮。\n\n" * 12,
    secret="守灯人临终说，铜钥匙埋在断龙桥下的第三块石板底下。",
    ending="苏晴死在了雪夜里，没有人知道她的真名。",
    allusion="他又想起守灯人的铜钥匙。",
    card="---\nname: 林远\n---\n# 林远\n\n少年，怕水。\n\n## 自第5章\n\n已经学会游水。\n",
    later="已经学会游水",
    thread="---\nplanted: 第2章\ndue: 第4章\n---\n铜钥匙的下落。\n",
    summary="林远辞别渡口，孤身北上。",
)
ENGLISH = StoryText(
    chapter="Chapter {}.md",
    body="Anna met friend number {0} at the mill, and they spoke of the past until dawn.\n\n" * 12,
    secret="Dying, the lamplighter said that the copper key lay under the third flagstone.",
    ending="Sarah died in the snow, and nobody ever knew her true name.",
    allusion="She thought again of the lamplighter's copper key.",
    card="---\nname: Anna\n---\n# Anna\n\nYoung, afraid of water.\n\n## From chapter 5\n\nShe can swim now.\n",
    later="She can swim now",
    thread="---\nplanted: Chapter 2\ndue: Chapter 4\n---\nWhere the copper key is.\n",
    summary="Anna left the mill and went north alone.",
)
BOTH_LANGUAGES = pytest.mark.parametrize("story", [CHINESE, ENGLISH], ids=["zh", "en"])


def files(story: StoryText) -> dict[str, str]:
    """Return nine chapters, the secret in the second and the end in the ninth."""
    made = {story.chapter.format(n): story.body.format(n) for n in range(1, 10)}
    made[story.chapter.format(2)] += f"{story.secret}\n"
    made[story.chapter.format(9)] += f"{story.ending}\n"
    made[".creonow/characters/hero.md"] = story.card
    made[".creonow/threads/key.md"] = story.thread
    return made


class Author:
    """Somebody at work in the novel of a daemon."""

    def __init__(self, daemon: Harness, story: StoryText) -> None:
        self.daemon, self.story = daemon, story
        made = daemon.make_project(
            f"小说 {len(daemon.call('project:list')['items'])}", files(story)
        )
        self.project = {"projectId": made["projectId"]}

    def call(self, channel: str, **payload: Any) -> Any:
        return self.daemon.call(channel, self.project | payload)

    def prompt(self, number: int, cursor: int = 0) -> dict[str, Any]:
        """Return the prompt of `continue` in a chapter."""
        place = {"documentId": self.story.chapter.format(number), "cursorPosition": cursor}
        self.call("context:retrieve", **place, query=self.story.secret, wait=True)
        return self.call("context:assemble", **place, skillId="builtin:continue")

    def write(self, number: int, text: str) -> dict[str, Any]:
        """Write a chapter in the editor, and return the prompt at its end."""
        document = self.story.chapter.format(number)
        self.call("context:document:sync", documentId=document, version=1, text=text)
        return self.prompt(number, len(text))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Harness]:
    """A daemon for the stories that leave it alive."""
    with Harness(tmp_path_factory.mktemp("故事 story")) as started:
        yield started


@BOTH_LANGUAGES
def test_an_author_begins_a_chapter_in_the_middle_of_the_story(
    shared: Harness, story: StoryText
) -> None:
    author = Author(shared, story)

    empty = author.write(6, "")
    author.call("context:document:close", documentId=story.chapter.format(6))
    begun = author.write(7, f"{story.body.format(7)}{story.allusion}")

    assert story.body.format(5).strip()[-20:] in empty["userContent"]
    assert f"{story.chapter.format(5)}#summary" in empty["userContent"]
    assert story.secret in begun["userContent"]
    for prompt in (empty["prompt"], begun["prompt"]):
        assert story.ending not in prompt
    assert story.later in begun["systemPrompt"]
    assert story.later not in author.prompt(4)["systemPrompt"]


@BOTH_LANGUAGES
def test_an_overdue_thread_is_reported_where_it_is_overdue(
    shared: Harness, story: StoryText
) -> None:
    author = Author(shared, story)

    states = [
        author.call("story:threads", documentId=story.chapter.format(n))["items"][0]["state"]
        for n in (1, 3, 4, 5)
    ]

    assert states == ["not_yet", "open", "due", "overdue"]


@BOTH_LANGUAGES
def test_a_kill_between_summaries_loses_none_that_was_acknowledged(
    daemon: Harness, story: StoryText
) -> None:
    author = Author(daemon, story)
    third = story.chapter.format(3)
    author.call("story:summary:set", documentId=third, text=story.summary)
    author.call("story:summarise", documents=[story.chapter.format(1)])

    daemon.kill()
    daemon.start()

    kept = author.call("story:summary:get", documentId=third)
    left = author.call("story:summarise", dryRun=True)["documents"]
    assert (kept["text"], kept["origin"], kept["stale"]) == (story.summary, "author", False)
    assert story.chapter.format(1) not in left
    assert len(left) == 7
    assert story.summary in author.prompt(4)["userContent"]
