"""What prompts know of the story: nothing of its future, its past when it is alluded to, its people.

Each novel is a project with made-up cards, and a real daemon with its index built is asked over the
wire. The same is asked of an earlier revision (`--before REVISION`, or `none`), which knew no order
of the chapters. Without ../shared/corpus only the modern novel is there.
"""

import random
import re
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.novel import to_json, write
from creonowd.text import common_prefix
from creonowd.tokens.tables import packaged_encoding
from scripts.checkouts.compare import checkout_of
from scripts.checkouts.daemon import Daemon
from scripts.environment import ROOT
from testing.story_questions import ALLUSION, StoryNovel, StoryQuestion, holds, novels

BEFORE = "af33be4"
PLACES = 24
NEW_CHAPTERS = 12
DISTANCES = (0, 350, 2000)
LIMIT = 20
TYPED = 120
LEAST_LINE = 12
OFTEN = 5
SECRET_UNTIL = "5"
SECRET = "主角在第五章之前不知道真相 / the hero must not know the truth before chapter 5"

Reply = dict[str, Any]
Row = tuple[str, str, str]


def main(argv: list[str]) -> None:
    """Print one table for each novel."""
    before = argv[argv.index("--before") + 1] if "--before" in argv else BEFORE
    with tempfile.TemporaryDirectory() as folder:
        if before == "none":
            _measure_all(Path(folder), None, before)
            return
        with checkout_of(before, Path(folder)) as checkout:
            _measure_all(Path(folder), checkout, before)


def _measure_all(folder: Path, other: Path | None, named: str) -> None:
    every = novels()
    if len(every) == 1:
        print("../shared/corpus is not there: only the modern novel is measured.\n")
    for number, novel in enumerate(every):
        ours = _measure(folder / f"{number} now", ROOT, novel, is_new=True)
        theirs: dict[str, Row] = {}
        if other is not None:
            rows = _measure(folder / f"{number} before", other, novel, is_new=False)
            theirs = {row[0]: row for row in rows}
        print(f"| {novel.name}, {len(novel.chapters)} chapters | {named} | now | goal |")
        print("|---|---|---|---|")
        for what, measured, goal in ours:
            before = theirs[what][1] if what in theirs else "–"
            print(f"| {what} | {before} | {measured} | {goal} |")
        print(flush=True)


def _measure(folder: Path, checkout: Path, novel: StoryNovel, *, is_new: bool) -> list[Row]:
    root = folder / "小说"
    for number, text in enumerate(novel.chapters, start=1):
        write(root / _path(number), text)
    for name, card in novel.cards.items():
        write(root / f".creonow/characters/{name}.md", card)
    item = {"id": "con_0000000000000001", "text": SECRET, "type": "plot", "source": "user"}
    item |= {"priority": 100, "degradable": False, "updatedAt": "2026-01-01T00:00:00Z"}
    limits = {"until": SECRET_UNTIL} if is_new else {}
    constraints = {"version": 2, "items": [item | limits]}
    write(root / ".creonow/rules/constraints.json", to_json(constraints))
    with Daemon(checkout, folder / "user data") as daemon:
        author = Author(daemon, root, novel)
        return [
            *_futures(author),
            *_allusions(author),
            *_answers(author),
            *_new_chapters(author),
            *_people(author),
            *_constraint(author),
            *_write_on(author),
            *(_summaries(author) if is_new else ()),
            *_people_ranked(author),
        ]


def _path(number: int) -> str:
    return f"chapters/{number:03}.md"


class Author:
    """Somebody who writes in a novel: opens chapters, and asks for prompts and passages."""

    def __init__(self, daemon: Daemon, root: Path, novel: StoryNovel) -> None:
        self.daemon, self.root, self.novel = daemon, root, novel
        project = daemon.call("project:create", {"rootPath": str(root)})["projectId"]
        self.project = {"projectId": project}
        self._version = 0
        for _ in range(2):
            self.retrieve(1, query="雨", wait=True, _meta={"timeoutMs": 600_000})

    def chapter(self, number: int) -> str:
        """Return the text of a chapter."""
        return self.novel.chapters[number - 1]

    def open(self, number: int, text: str) -> None:
        """Change a chapter in the editor."""
        self._version += 1
        place = {"documentId": _path(number), "version": self._version, "text": text}
        self.daemon.call("context:document:sync", self.project | place)

    def close(self, number: int) -> None:
        """Let a chapter be again as it is on disk."""
        place = {"documentId": _path(number)}
        self.daemon.call("context:document:close", self.project | place)

    def prompt(self, number: int, cursor: int) -> Reply:
        """Return the prompt of `continue` at a place, as soon as the index has caught up."""
        place = {"documentId": _path(number), "cursorPosition": cursor}
        place["skillId"] = "builtin:continue"
        while True:
            reply = self.daemon.call("context:assemble", self.project | place)
            if not any("RETRIEVAL_INDEXING" in warning for warning in reply["warnings"]):
                return reply

    def retrieve(self, number: int, **more: Any) -> list[Reply]:
        """Return passages, best first."""
        place = {"documentId": _path(number), "cursorPosition": 0, "limit": LIMIT}
        return self.daemon.call("context:retrieve", self.project | place | more)["passages"]


def _retrieved_layer(reply: Reply) -> str:
    return reply["userContent"].partition("## Retrieved\n")[2].partition("\n## Immediate\n")[0]


def _spread(last: int, count: int) -> list[int]:
    """Return so many numbers of chapters, spread evenly, none of them the first."""
    return sorted({2 + round(n * (last - 2) / (count - 1)) for n in range(count)})


def _futures(author: Author) -> list[Row]:
    """Look for lines of Retrieved that the novel has after the cursor and nowhere before it."""
    chapters = author.novel.chapters
    count_tokens = packaged_encoding("o200k_base").encode_ordinary
    prompts = spoiled = 0
    tokens = future = 0
    for number in _spread(len(chapters), PLACES):
        cursor = len(chapters[number - 1]) // 2
        text = _retrieved_layer(author.prompt(number, cursor))
        past = "".join(chapters[: number - 1]) + chapters[number - 1][:cursor]
        later = chapters[number - 1][cursor:] + "".join(chapters[number:])
        lines = [line for line in text.split("\n") if len(line.strip()) >= LEAST_LINE]
        known = [line for line in lines if line in later and line not in past]
        prompts, spoiled = prompts + 1, spoiled + bool(known)
        tokens += len(count_tokens(text))
        future += sum(len(count_tokens(line)) for line in known)
    share = f"{future} of {tokens} ({future / max(1, tokens):.0%})"
    return [
        ("prompts of `continue` with text of the future", f"{spoiled} of {prompts}", "0"),
        ("tokens of the future among those retrieved", share, "0"),
    ]


def _allusions(author: Author) -> list[Row]:
    """Write an allusion in the middle of a chapter, then some of the chapter's own text."""
    known = [one for one in author.novel.questions if one.kind == ALLUSION]
    sets = (
        ("allusions", known),
        ("further allusions", author.novel.further),
        ("held-out allusions", author.novel.held_out),
        ("unseen allusions", author.novel.unseen),
    )
    rows: list[Row] = []
    for name, asked in sets:
        for distance, goal in zip(DISTANCES, ("6/6", "6/6", "≥ 5/6"), strict=True):
            chapters = passages = 0
            for question in asked:
                found = _found_for(author, question, distance)
                chapters, passages = chapters + found[0], passages + found[1]
            what = f"{name} {distance} characters before the cursor: chapter in the prompt; passage"
            wanted = goal if asked is known else "–"
            rows.append((what, f"{chapters}/{len(asked)}; {passages}/{len(asked)}", wanted))
    return rows


def _found_for(author: Author, question: StoryQuestion, distance: int) -> tuple[bool, bool]:
    """Return whether chapter and passage of an answer are in the prompt for the written words."""
    own = author.chapter(question.at)
    half = len(own) // 2
    text = f"{own[:half]}\n\n{question.query}"
    text += "\n\n" + own[half : half + distance] if distance else ""
    author.open(question.at, text)
    reply = author.prompt(question.at, len(text))
    author.close(question.at)
    kept = [
        one["sourceRef"]
        for one in reply["trimEvidence"]
        if one["layer"] == "retrieved" and one["action"] != "dropped"
    ]
    passages = [ref for ref in kept if not ref.endswith("#summary")]
    chapter = any(ref.startswith(_path(question.chapter)) for ref in passages)
    return chapter, chapter and holds(_retrieved_layer(reply), question.quote)


def _answers(author: Author) -> list[Row]:
    """Ask all questions in words, and write each at its place."""
    ranks: list[float] = []
    written = 0
    for question in author.novel.questions:
        found = author.retrieve(question.at, query=question.query)
        right = [
            rank
            for rank, one in enumerate(found, start=1)
            if one["documentId"] == _path(question.chapter)
            and holds(one["content"], question.quote)
        ]
        ranks.append(right[0] if right else float("inf"))
        written += _found_for(author, question, 0)[1]
    asked = len(ranks)
    shares = " / ".join(
        (
            f"{sum(rank <= 5 for rank in ranks) / asked:.0%}",
            f"{sum(rank <= LIMIT for rank in ranks) / asked:.0%}",
            f"{sum(1 / rank for rank in ranks) / asked:.2f}",
        )
    )
    return [
        (f"the passage for {asked} questions: recall@5 / recall@20 / MRR", shares, "–"),
        (
            "the passage in the prompt, the question being the last sentence",
            f"{written} of {asked}",
            "–",
        ),
    ]


def _new_chapters(author: Author) -> list[Row]:
    """Empty a chapter: does its prompt have the end of the one before, and how much of the past?"""
    chapters = author.novel.chapters
    numbers = _spread(len(chapters), NEW_CHAPTERS)
    ended, tokens = 0, list[int]()
    for number in numbers:
        author.open(number, "")
        reply = author.prompt(number, 0)
        author.close(number)
        last = chapters[number - 2].strip().rpartition("\n")[2]
        ended += last in reply["userContent"]
        layers = ("retrieved", "immediate")
        tokens.append(sum(reply["layers"][layer]["tokens"] for layer in layers))
    fewest_and_most = f"{min(tokens)} – {max(tokens)}"
    return [
        (
            "new chapters that begin with the end of the one before",
            f"{ended} of {len(numbers)}",
            "all",
        ),
        ("tokens of the past in a new chapter's first prompt", fewest_and_most, "> 0"),
    ]


def _people(author: Author) -> list[Row]:
    """Count the protagonists that a chapter names at least a few times and the prompt has."""
    what = f"protagonists named {OFTEN} times or more, among {len(author.novel.cards)} cards: kept"
    return [(what, _kept_people(author), "100 %")] if author.novel.protagonists else []


def _people_ranked(author: Author) -> list[Row]:
    """Count them again when the author has said on their cards who they are."""
    for name in author.novel.protagonists:
        card = author.novel.cards[name].replace("---\n", "---\npriority: 200\n", 1)
        write(author.root / f".creonow/characters/{name}.md", card)
    what = "the same, their cards saying `priority: 200`"
    return [(what, _kept_people(author), "100 %")] if author.novel.protagonists else []


def _kept_people(author: Author) -> str:
    people = author.novel.protagonists
    named = kept = 0
    for number in _spread(len(author.novel.chapters), PLACES):
        text = author.chapter(number)
        cards = {
            Path(one["sourceRef"]).stem
            for one in author.prompt(number, len(text) // 2)["trimEvidence"]
            if "/characters/" in one["sourceRef"] and one["action"] == "kept"
        }
        for name, called in people.items():
            if sum(len(re.findall(re.escape(one), text)) for one in called) >= OFTEN:
                named, kept = named + 1, kept + (name in cards)
    return f"{kept} of {named} ({kept / max(1, named):.0%})"


def _constraint(author: Author) -> list[Row]:
    """Look for a constraint that ends with chapter 5, before and after that."""
    shown = [SECRET in author.prompt(number, 10)["systemPrompt"] for number in (3, 12)]
    return [
        (
            "a constraint `until: 5` in the prompt of chapter 3; of chapter 12",
            "; ".join("yes" if one else "no" for one in shown),
            "yes; no",
        )
    ]


def _write_on(author: Author) -> list[Row]:
    """Type on at the end of a chapter, and from the first letter of a new one."""
    number = min(42, len(author.novel.chapters) - 1)
    chapter = author.chapter(number)
    rows: list[Row] = []
    places = (("in the middle of a chapter", len(chapter) // 2), ("from an empty page on", 0))
    for what, start in places:
        ends = _ends(start, len(chapter))
        prompts: list[bytes] = []
        prefixes: set[str] = set()
        for end in ends:
            author.open(number, chapter[:end])
            reply = author.prompt(number, end)
            prompts.append(reply["prompt"].encode())
            prefixes.add(reply["stablePrefixHash"])
        author.close(number)
        share = _reused_share(prompts)
        goal = "no worse" if start else "–"
        rows.append(
            (
                f"bytes reused while writing {what}; stable prefixes",
                f"{share:.1%}; {len(prefixes)}",
                f"{goal}; 1",
            )
        )
    return rows


def _ends(start: int, length: int) -> list[int]:
    """Return where the text ends at each call."""
    chance = random.Random(3)
    ends = [start]
    for _ in range(TYPED):
        ends.append(ends[-1] + chance.randint(4, 24))
    return [end for end in ends if end <= length]


def _reused_share(prompts: Sequence[bytes]) -> float:
    same = sum(common_prefix(one, other) for one, other in pairwise(prompts))
    return same / sum(map(len, prompts[1:]))


def _summaries(author: Author) -> list[Row]:
    """Summarise all chapters, change one, and ask which are due."""
    made = author.daemon.call("story:summarise", author.project)
    number = len(author.novel.chapters) // 2
    author.open(number, author.chapter(number) + "\n他又添了一句。\n")
    due = author.daemon.call("story:summarise", author.project | {"dryRun": True})["documents"]
    author.close(number)
    share = _synopsis_share(author)
    return [
        (
            "summaries made; due after a change of one chapter",
            f"{len(made['documents'])}; {len(due)}",
            "all; 1",
        ),
        ("the story so far: most tokens ÷ its share of the skill's target", share, "≤ 1"),
    ]


def _synopsis_share(author: Author) -> str:
    tokens: list[int] = []
    for number in _spread(len(author.novel.chapters), NEW_CHAPTERS):
        evidence = author.prompt(number, 10)["trimEvidence"]
        tokens.append(
            sum(
                one["afterTokens"]
                for one in evidence
                if one["sourceRef"] == "synopsis" or one["sourceRef"].endswith("#summary")
            )
        )
    return f"{max(tokens) / (0.15 * 3500):.2f}"
