"""Long sessions with an assistant, and the facts that a summary of them may not lose.

A session is a text in `session_texts`: the rounds that carry facts are written by hand, and between
them stand rounds of everyday work, made up here, always the same. The development sessions are for
tuning; the held-out ones are for judging only.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from testing.conversations import assistant, calls, result, user

FOLDER = Path(__file__).parent / "session_texts"
SETS = ("development", "held_out")
_LABEL = re.compile(r"(TITLE|KIND|LANGUAGE|FILL|USER|AI|CALL|RESULT|PASTE|FACT|NOT|SECRET): ?")


class Fact(NamedTuple):
    """What must be found again: its pattern, and the word that one would search for.

    `wrong` is the statement that this one has corrected, if it has.
    """

    word: str
    pattern: str
    wrong: str = ""


@dataclass
class LongSession:
    """A session's rounds, each a list of messages as a client appends them."""

    name: str
    kind: str = ""
    language: str = ""
    rounds: list[list[dict[str, Any]]] = field(default_factory=list[list[dict[str, Any]]])
    facts: list[Fact] = field(default_factory=list[Fact])
    secrets: list[str] = field(default_factory=list[str])


def long_sessions(chosen: str) -> list[LongSession]:
    """Read all sessions of one set."""
    files = sorted((FOLDER / chosen).glob("*.txt"))
    return [_Reader(file.stem).read(file.read_text(encoding="utf-8")) for file in files]


class _Reader:
    def __init__(self, name: str) -> None:
        self.session = LongSession(name)
        self.chance = Random(name)
        self.call_id = ""

    def read(self, text: str) -> LongSession:
        label, lines = "", list[str]()
        for line in [*text.splitlines(), "TITLE: "]:
            if found := _LABEL.match(line):
                if label:
                    self._take(label, "\n".join(lines))
                label, lines = found[1], [line[found.end() :]]
            else:
                lines.append(line)
        return self.session

    def _take(self, label: str, text: str) -> None:
        session = self.session
        match label:
            case "KIND":
                session.kind = text
            case "LANGUAGE":
                session.language = text
            case "FACT":
                word, _, pattern = text.partition(" | ")
                session.facts.append(Fact(word, pattern))
            case "NOT":
                session.facts[-1] = session.facts[-1]._replace(wrong=text)
            case "SECRET":
                session.secrets.append(text)
            case "FILL":
                session.rounds += (self._everyday() for _ in range(int(text)))
            case "USER":
                session.rounds.append([user(text)])
            case "TITLE":
                pass
            case _:
                self._take_reply(label, text)

    def _take_reply(self, label: str, text: str) -> None:
        messages = self.session.rounds[-1]
        if label == "AI":
            messages.append(assistant(text))
        elif label == "CALL":
            name, _, given = text.partition(" ")
            self.call_id = f"call{len(self.session.rounds)}-{len(messages)}"
            messages.append(calls((self.call_id, name, json.loads(given))))
        elif label == "RESULT":
            messages.append(result(self.call_id, json.loads(text) if text[:1] == "{" else text))
        else:
            kind, _, lines = text.partition(" ")
            messages[-1]["content"] += "\n" + self._paste(kind, int(lines))

    def _paste(self, kind: str, lines: int) -> str:
        if kind == "log":
            pick = self.chance.choice
            return "\n".join(
                f"2026-02-{n % 28 + 1:02d}T10:{n % 60:02d}:07Z {pick(_LEVELS)} {pick(_MODULES)}: "
                f"{pick(_EVENTS)} in {self.chance.randrange(900)} ms id={n:05d}"
                for n in range(lines)
            )
        prose = _ZH_PROSE if self.session.language == "zh" else _EN_PROSE
        return "\n".join(self.chance.choice(prose) for _ in range(lines))

    def _everyday(self) -> list[dict[str, Any]]:
        """Make up a round of work or small talk that carries nothing to remember."""
        room = _EVERYDAY[self.session.kind, self.session.language]
        asked, told, tool = self.chance.choice(room.talks)
        slots = {
            "file": self.chance.choice(room.files),
            "name": self.chance.choice(room.names),
            "n": self.chance.randrange(3, 400),
            "m": self.chance.randrange(2, 30),
        }
        id_ = f"made{len(self.session.rounds)}-{self.chance.randrange(10**6)}"
        messages = [user(asked.format(**slots))]
        if tool:
            messages += self._tool(id_, tool, slots, room.lines)
        tail = self.chance.choice(room.tails)
        return [*messages, assistant(f"{told} {tail}".strip().format(**slots))]

    def _tool(
        self, id_: str, tool: str, slots: dict[str, Any], lines: Sequence[str]
    ) -> list[dict[str, Any]]:
        path, pick = slots["file"], self.chance.choice
        text = "\n".join(pick(lines) for _ in range(self.chance.randrange(20, 120)))
        if tool == "Read":
            return [calls((id_, tool, {"file_path": path})), result(id_, text)]
        if tool == "Grep":
            found = [{"file": path, "line": n * 7, "text": pick(lines)} for n in range(1, 6)]
            asked = {"pattern": slots["name"], "path": path.split("/")[0]}
            return [calls((id_, tool, asked)), result(id_, {"matches": found})]
        if tool == "Bash":
            ran = {"stdout": text, "stderr": "", "exit_code": 0}
            return [calls((id_, tool, {"command": f"make check {path}"})), result(id_, ran)]
        changed = {"file_path": path, "old_string": pick(lines), "new_string": pick(lines)}
        return [
            calls((f"{id_}r", "Read", {"file_path": path})),
            result(f"{id_}r", text),
            calls((id_, tool, changed)),
            result(id_, f"{path} updated"),
        ]


class _Everyday(NamedTuple):
    """What everyday rounds are made of; a talk is a request, a reply and a tool or none."""

    files: Sequence[str]
    names: Sequence[str]
    lines: Sequence[str]
    talks: Sequence[tuple[str, str, str]]
    tails: Sequence[str]


_LEVELS = ("INFO", "WARN", "DEBUG", "ERROR")
_MODULES = ("http.server", "worker", "pool", "scheduler", "cache")
_EVENTS = ("request served", "connection reused", "retry", "slow call", "queue drained")
_EN_PROSE = (
    "The wind had gone round in the night and the shutters were quiet at last.",
    "She counted the steps as she always did, and lost the number, as she always did.",
    "Nobody spoke at breakfast. The butter was passed, and passed back.",
    "Beyond the glass there was only more of the same grey, and the sound of it.",
    "He had a way of standing in doors that made a room feel smaller.",
)
_ZH_PROSE = (
    "窗外的雨停了，巷子里有人在扫水，一下，又一下。",
    "他把茶碗转了半圈，没有喝，又放回桌上。",
    "灯芯爆了一声，屋里的人都抬起头来，又都低下去。",
    "远处有汽笛，拖得很长，像是谁在叹气。",
    "她把信折好，压在砚台下面，过了一会儿又抽出来看。",
)
_EN_CODING = _Everyday(
    files=("lib/pages/list.ts", "lib/forms/input.ts", "pkg/mail/send.py", "docs/setup.md"),
    names=("formatDate", "renderRow", "send_mail", "Sidebar", "parse_header"),
    lines=(
        "    return value if value else default",
        "  const rows = items.map(renderRow)",
        "import logging",
        "# see the comment above",
        "def send_mail(to, subject): ...",
        "export default function Sidebar() {",
    ),
    talks=(
        ("can you rename {name} in {file}?", "Renamed, {m} places.", "Edit"),
        ("what does {name} do?", "It formats what the list shows. Nothing special.", "Read"),
        ("The build is red again, look at {file}", "A missing import, mended.", "Bash"),
        ("format {file} please", "Formatted.", "Edit"),
        ("where is {name} used?", "In {m} places, all below {file}.", "Grep"),
        ("thanks!", "You're welcome.", ""),
        ("why is this line so long?", "Because the linter lets 100 characters pass.", ""),
        ("Bump the copyright year in {file}", "Done, {n} lines looked at.", "Edit"),
        ("is {file} still needed?", "Yes, {name} is imported from two pages.", "Grep"),
        ("add a comment to {name}", "Added one line above it.", "Edit"),
        ("the spacing in the sidebar looks off", "It was 7 px instead of 8 px; changed.", "Edit"),
        ("run the linter", "Clean, {n} files.", "Bash"),
        ("hmm, one second", "Sure.", ""),
    ),
    tails=(
        "",
        "",
        "Anything else?",
        "I left the rest alone.",
        "I'll look at the next one if you like.",
        "The tests should not mind.",
        "It took {m} ms.",
    ),
)
_ZH_CODING = _Everyday(
    files=("src/pages/list.ts", "src/form/input.ts", "cmd/mail/send.go", "docs/安装.md"),
    names=("formatDate", "renderRow", "sendMail", "Sidebar", "parseHeader"),
    lines=(
        "  return value ?? fallback",
        "  const rows = items.map(renderRow)",
        "// 见上面的说明",
        "func sendMail(to, subject string) error {",
        "import { Sidebar } from './sidebar'",
    ),
    talks=(
        ("把 {file} 里的 {name} 改个名字", "改了 {m} 处。", "Edit"),
        ("{name} 是干什么的？", "给列表排版用的，没什么特别。", "Read"),
        ("构建又红了，看看 {file}", "少了一个导入，补上了。", "Bash"),
        ("{file} 格式化一下", "格式化好了。", "Edit"),
        ("{name} 在哪里用到？", "有 {m} 处，都在 {file} 下面。", "Grep"),
        ("谢谢", "不客气。", ""),
        ("这一行怎么这么长", "因为检查只管一百个字符以上的。", ""),
        ("{name} 上面加一句注释", "加好了。", "Edit"),
        ("侧栏间距不对", "原来是 7 像素，调成了 8 像素。", "Edit"),
        ("跑一下检查", "没有问题，一共 {n} 个文件。", "Bash"),
        ("等一下，我接个电话", "好的。", ""),
    ),
    tails=("", "", "还有别的吗？", "其他地方没动。", "要的话我接着看下一个。", "用了 {m} 毫秒。"),
)
_EN_NOVEL = _Everyday(
    files=("notes/weather.md", "scraps/opening.md", "notes/meals.md", "scraps/harbour.md"),
    names=("grey", "door", "suddenly", "window", "cold"),
    lines=_EN_PROSE,
    talks=(
        ("that paragraph about the {name} is clumsy, smooth it", "Smoother now.", "Edit"),
        ("how often do I use the word {name}?", "{m} times in this file.", "Grep"),
        ("read me {file} again", "It is a quiet page, mostly weather.", "Read"),
        ("give me three other words for {name}", "Pale, dull, ashen.", ""),
        ("is this sentence too long?", "A little, because it has four commas.", ""),
        ("I slept badly", "I'm sorry to hear that. We can go slowly today.", ""),
        ("count the words of {file}", "{n} words.", "Bash"),
        ("typo in {file}, fix it", "Fixed, one letter.", "Edit"),
        ("more coffee, back in a minute", "Take your time.", ""),
        ("does the {name} sound right to you?", "It does, the rhythm carries it.", "Read"),
        ("try that opening again", "Here is another: the shutters were quiet at last.", "Edit"),
    ),
    tails=(
        "",
        "",
        "Shall I go on?",
        "I kept the rest as it was.",
        "Read it aloud once, it helps.",
        "It lost {m} words.",
    ),
)
_ZH_NOVEL = _Everyday(
    files=("笔记/天气.md", "草稿/开头.md", "笔记/饮食.md", "草稿/街景.md"),
    names=("灯", "窗", "忽然", "雨", "冷"),
    lines=_ZH_PROSE,
    talks=(
        ("写{name}的那一段有点别扭，顺一顺", "顺过了，读起来轻一些。", "Edit"),
        ("「{name}」这个字我用了多少次？", "这个文件里 {m} 次。", "Grep"),
        ("把 {file} 再念给我看看", "很安静的一页，多半是写天气。", "Read"),
        ("「{name}」换个说法", "可以用「昏」「暗」「沉」。", ""),
        ("这句是不是太长？", "有一点，因为逗号太多。", ""),
        ("昨晚没睡好", "那今天慢一点写。", ""),
        ("数一下 {file} 的字数", "{n} 字。", "Bash"),
        ("{file} 有错别字", "改了一个字。", "Edit"),
        ("倒杯水，马上回来", "不急。", ""),
        ("开头再试一版", "换了一版，从声音写起。", "Edit"),
    ),
    tails=("", "", "要接着写吗？", "其他没有动。", "可以念出声听听。", "少了 {m} 个字。"),
)
_EVERYDAY = {
    ("coding", "en"): _EN_CODING,
    ("coding", "zh"): _ZH_CODING,
    ("novel", "en"): _EN_NOVEL,
    ("novel", "zh"): _ZH_NOVEL,
}
