"""Ask one daemon everything that is compared, and keep what it answers."""

import random
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from scripts.checkouts import messages
from scripts.checkouts.daemon import Daemon
from scripts.checkouts.novels import Files, write
from scripts.checkouts.worlds import DOCUMENT, World

GENERAL = "general"
CHAT = "chat"
SETTINGS = {
    "DETERMINISTIC": "1",
    "DEBUG": "1",
    "REQUEST_TIMEOUT_MS": "600000",
    "SOURCE_TIMEOUT_MS": "60000",
    "GREP_TIMEOUT_MS": "60000",
}
SOURCE_TIMEOUT_MS = 30_000
MODELS = ("gpt-4o", "gpt-4", "claude-sonnet-4", "unheard-of")


@dataclass(frozen=True)
class Inputs:
    """What is asked about, the same for every checkout."""

    sample: Files
    corpus: Files
    worlds: list[World]
    contract: Path
    queries: int = 300
    chapters: int = 8


@dataclass(frozen=True)
class Item:
    """One answer: which table row it belongs to, what was asked, and the reply."""

    section: str
    label: str
    reply: Any


def record(checkout: Path, inputs: Inputs, home: Path) -> list[Item]:
    """Run the checkout's daemon in an empty folder and ask it everything."""
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    with Daemon(checkout, home / "user-data", settings=SETTINGS) as daemon:
        recorder = _Recorder(daemon, home)
        recorder.contract()
        recorder.novel(
            "sample", inputs.sample, chapters=3, queries=60, budgets=(None, 500, 900, 2500)
        )
        if inputs.corpus:
            recorder.novel(
                "corpus",
                inputs.corpus,
                chapters=inputs.chapters,
                queries=inputs.queries,
                budgets=(None, 2000, 60_000),
            )
        recorder.worlds(inputs.worlds)
        sample = recorder.project("agent", inputs.sample)
        recorder.files(sample)
        recorder.conversation(sample)
        recorder.runs(sample, inputs.sample)
        recorder.edits(sample)
        recorder.errors(sample, inputs.contract)
    return recorder.items


@dataclass
class _Recorder:
    daemon: Daemon
    home: Path
    items: list[Item] = field(default_factory=list[Item])

    def ask(self, section: str, method: str, payload: Any, label: str = "") -> Any:
        """Ask, keep the reply, and return its result if there is one."""
        reply = self.daemon.request(method, payload)
        self.items.append(Item(section, f"{method} {label or payload}", reply))
        return reply.get("result")

    def contract(self) -> None:
        """Keep the contract itself."""
        document = self.daemon.call("rpc.discover")
        self.items.append(Item("contract", "rpc.discover", document))

    def project(self, name: str, files: Files) -> str:
        """Write a project and register it."""
        root = self.home / "projects" / name
        root.mkdir(parents=True)
        write(root, files)
        made = self.daemon.call("project:create", {"rootPath": str(root), "name": name})
        return made["projectId"]

    def novel(
        self,
        name: str,
        files: Files,
        *,
        chapters: int,
        queries: int,
        budgets: tuple[int | None, ...],
    ) -> None:
        """Assemble and inspect at many places of a novel, and search in it."""
        project = self.project(name, files)
        documents = {path: text for path, text in files.items() if not path.startswith(".")}
        first = next(iter(documents))
        self._index(project, first)
        listed = self.ask(f"files: {name}", "skill:list", {"projectId": project})
        skills = [skill["id"] for skill in listed["items"]] + [GENERAL]
        chosen = dict(list(documents.items())[:: max(1, len(documents) // chapters)])
        for budget in budgets:
            if budget is not None:
                self._budget(f"assembly: {name}", project, _total(budget))
            for position in _positions(project, chosen, skills):
                self._assemble(name, position, inspected=budget is None)
        self._retrieve(name, project, documents, queries)

    def worlds(self, worlds: list[World]) -> None:
        """Assemble each world in a project of its own, cold and warm, and inspect it."""
        for number, world in enumerate(worlds):
            project = self.project(f"world-{number:04}", world.files)
            chunks = world.chunks
            self.daemon.host = lambda _, asked, chunks=chunks: {
                "chunks": chunks.get(asked["layer"], [])
            }
            kinds = {"retrieved": "rag", "immediate": "memory"}
            for layer, kind in kinds.items():
                offer = {"layer": layer, "name": kind, "kind": kind, "projectId": project}
                self.daemon.call(
                    "context:source:register", offer | {"timeoutMs": SOURCE_TIMEOUT_MS}
                )
            document = {"projectId": project, "documentId": DOCUMENT}
            self.daemon.call("context:document:sync", document | {"version": 1, "text": world.text})
            self._index(project, DOCUMENT)
            self._budget("assembly: worlds", project, world.budget)
            position = {"projectId": project} | world.position
            for turn in ("cold", "warm"):
                self.ask("assembly: worlds", "context:assemble", position, f"{number} {turn}")
            inspected = position | {"debugMode": True}
            self.ask("inspection: worlds", "context:inspect", inspected, f"{number}")
            self._budget(
                "assembly: worlds", project, _total(world.budget["totalBudgetTokens"] // 2)
            )
            self.ask("assembly: worlds", "context:assemble", position, f"{number} with half of it")
            for layer, kind in kinds.items():
                gone = {"layer": layer, "name": kind, "projectId": project}
                self.daemon.call("context:source:unregister", gone)

    def files(self, project: str) -> None:
        """Make context files and look into them; read the files of the project."""
        chat = {"projectId": project, "conversationId": CHAT}
        for method, payload in messages.context_files():
            made = self.ask("context files", method, chat | payload, f"{payload['hint']}")
            for look, question in messages.looks(made["ref"]["id"]) if made else ():
                found = self.ask("context files", look, chat | question)
                if found and "cursor" in found:
                    self.ask("context files", look, chat | question | {"cursor": found["cursor"]})
        for kind in (None, "artifact", "catalog", "history"):
            self.ask("context files", "context.list", chat | {"kind": kind})
        self.ask("context files", "context:files:stats", {"projectId": project})
        for scope in ("rules", "settings", "characters"):
            listed = self.ask(
                "files: sample", f"context:creonow:{scope}:list", {"projectId": project}
            )
            for item in listed["items"]:
                read = {"projectId": project, "path": item["path"]}
                self.ask("files: sample", f"context:creonow:{scope}:read", read)
        self.ask("files: sample", "context:creonow:rules:get", {"projectId": project})
        self.ask("files: sample", "context:document:list", {"projectId": project})

    def conversation(self, project: str) -> None:
        """Append a recorded conversation round by round and build turns on the way."""
        chat = {"projectId": project, "conversationId": "recorded"}
        prompts = {
            "systemPrompt": "You are an editor.",
            "toolPrompts": ["Grep finds.", "Read reads."],
        }
        todo = [{"text": "step 1", "status": "completed"}, {"text": "step 2"}]
        for number, round_ in enumerate(messages.rounds(12)):
            self.ask(
                "conversation",
                "context:history:append",
                chat | {"messages": round_},
                f"round {number}",
            )
            for budget, model in product((None, 1500, 6000, 40_000), ("gpt-4o", "gpt-4")):
                turn = chat | prompts | {"input": "Go on.", "todo": todo, "model": model}
                self.ask(
                    "conversation",
                    "context:build",
                    turn | {"budgetTokens": budget},
                    f"after round {number}, {budget} tokens, {model}",
                )
        unfinished = messages.rounds(13)[12][:4]
        self.ask(
            "conversation", "context:history:append", chat | {"messages": unfinished}, "unfinished"
        )
        self.ask("conversation", "context:build", chat | prompts | {"input": ""}, "unfinished")
        self.ask("conversation", "context:history:read", chat)
        self.ask("conversation", "context:history:read", chat | {"limit": 3, "before": 7})
        self.ask("conversation", "context.list", chat)
        for message in unfinished:
            compressed = {"tool": "Read", "result": message, "args": {"file_path": "a.md"}}
            self.ask("conversation", "context:tool:compress", compressed)
        self.ask("conversation", "context:codelaw:status", {"projectId": project})

    def runs(self, project: str, files: Files) -> None:
        """Run every skill with the provider that needs no network, and assemble after each."""
        listed = self.daemon.call("skill:list", {"projectId": project})
        path, text = next((p, t) for p, t in files.items() if not p.startswith("."))
        at = {"projectId": project, "documentId": path, "cursorPosition": len(text) // 2}
        for skill, judge in product(
            [one["id"] for one in listed["items"]], ("off", "rules", "model")
        ):
            selection = {"from": len(text) // 2, "to": len(text) // 2 + 60}
            asked = at | {"skillId": skill, "selection": selection, "judge": judge}
            self.ask("skill runs", "ai:skill:run", asked | {"input": "写得更紧张一些。"})
            self.ask(
                "skill runs", "context:assemble", at | {"skillId": skill, "selection": selection}
            )

    def edits(self, project: str) -> None:
        """Change constraints, documents, skills and saved conversations; count tokens."""
        own = {"projectId": project}
        made = self.ask(
            "changes", "constraints:create", own | {"constraint": {"text": "不许下雨。"}}
        )
        one = own | {"constraintId": made["constraint"]["id"]}
        self.ask(
            "changes", "constraints:update", one | {"patch": {"priority": 3, "degradable": True}}
        )
        self.ask("changes", "constraints:list", own)
        self.ask("changes", "constraints:delete", one)
        new = {"version": 1, "items": ["一条", "两条"]}
        self.ask("changes", "constraints:set", own | {"constraints": new})
        self.ask("changes", "constraints:get", own)
        document = own | {"documentId": "draft.md"}
        text = "林远推开门。\n雨还在下。\n" * 40
        self.ask("changes", "context:document:sync", document | {"version": 1, "text": text})
        at = document | {"cursorPosition": 300, "skillId": GENERAL}
        self.ask("changes", "context:assemble", at)
        edits = [{"from": 10, "to": 14, "text": "停了"}]
        changed = document | {"version": 2, "baseVersion": 1, "edits": edits}
        self.ask("changes", "context:document:sync", changed)
        self.ask("changes", "context:assemble", at)
        for model in MODELS:
            self.ask("changes", "tokens:count", {"text": text, "model": model})
            self.ask("changes", "context:assemble", at | {"model": model, "provider": "anthropic"})
        skill = "---\nname: Mine\ndescription: mine\nprompt:\n  user: 写 {{text}}\n---\n"
        for content in (skill, "---\nname: x\n---\n", "no front matter", "---\nname: [\n---\n"):
            self.ask("changes", "skill:validate", {"content": content})
            self.ask("changes", "skill:write", own | {"scope": "project", "content": content})
        talk = {"id": "saved", "messages": [{"role": "user", "content": "key sk-" + "a" * 40}]}
        self.ask("changes", "context:creonow:conversations:save", own | {"conversation": talk})
        self.ask("changes", "context:creonow:conversations:list", own)
        read = own | {"conversationId": "saved"}
        self.ask("changes", "context:creonow:conversations:read", read)

    def errors(self, project: str, contract: Path) -> None:
        """Send what is not valid; of a call that is answered after all only that is kept."""
        for line in messages.lines_that_are_no_request():
            self.items.append(Item("errors", repr(line), self.daemon.line(line)))
        known = {
            "projectId": project,
            "documentId": "draft.md",
            "conversationId": CHAT,
            "cursorPosition": 3,
            "skillId": GENERAL,
            "input": "text",
            "systemPrompt": "text",
            "text": "text",
            "path": "rules/style.md",
            "limit": 3,
            "debugMode": True,
        }
        for method, payload in messages.malformed_calls(contract, known):
            reply = self.daemon.request(method, payload)
            kept = reply if "error" in reply else "answered"
            self.items.append(Item("errors", f"{method} {payload!r}", kept))

    def _index(self, project: str, document: str) -> None:
        """Wait for the index; it counts as complete once two looks in a row find it so."""
        asked = {"projectId": project, "documentId": document, "cursorPosition": 0, "wait": True}
        complete = 0
        while complete < 2:
            state = self.daemon.call("context:retrieve", asked)["index"]
            complete = complete + 1 if state["complete"] else 0

    def _budget(self, section: str, project: str, budget: dict[str, Any]) -> None:
        current = self.daemon.call("context:budget:get", {"projectId": project})
        asked = {"projectId": project, "version": current["version"]} | budget
        self.ask(section, "context:budget:update", asked)

    def _assemble(self, name: str, position: dict[str, Any], *, inspected: bool) -> None:
        self.ask(f"assembly: {name}", "context:assemble", position)
        if inspected:
            asked = position | {"debugMode": True}
            self.ask(f"inspection: {name}", "context:inspect", asked)
            less = asked | {"whatIf": {"profile": _total(1234)}}
            self.ask(f"inspection: {name}", "context:inspect", less)

    def _retrieve(self, name: str, project: str, documents: Files, count: int) -> None:
        chance = random.Random(count)
        paths = list(documents)
        for number in range(count):
            path = chance.choice(paths)
            cursor = chance.randrange(len(documents[path]))
            asked: dict[str, Any] = {
                "projectId": project,
                "documentId": path,
                "cursorPosition": cursor,
            }
            if number % 3:
                other = documents[chance.choice(paths)]
                start = chance.randrange(len(other))
                asked["query"] = other[start : start + chance.choice((2, 4, 12, 60, 400))]
            self.ask(
                f"retrieval: {name}",
                "context:retrieve",
                asked | {"limit": chance.choice((1, 5, 20))},
            )


def _total(tokens: int) -> dict[str, Any]:
    """Make a budget of so many tokens, a quarter of them set aside for the document."""
    minimums = {"rules": 0, "settings": 0, "retrieved": 0, "immediate": tokens // 4}
    layers = {name: {"minimumTokens": minimum} for name, minimum in minimums.items()}
    return {"totalBudgetTokens": tokens, "layers": layers}


def _positions(project: str, documents: Files, skills: list[str]) -> Iterator[dict[str, Any]]:
    for (path, text), skill in product(documents.items(), skills):
        size = len(text)
        at = {"projectId": project, "documentId": path, "skillId": skill}
        for cursor in (0, size // 3, size):
            yield at | {"cursorPosition": cursor}
        selection = {"from": size // 2, "to": min(size, size // 2 + 120)}
        yield at | {
            "cursorPosition": size // 2,
            "selection": selection,
            "additionalInput": "写得更紧张一些。",
        }
