"""Every kind of write that a client can ask for: how it is asked, and how to see that it is kept.

A write is numbered. `missing` gets the acknowledged numbers with their answers and yields the numbers
that are not kept as they should be.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from creonowd.workspace.runs import Runs
from testing.clients import RpcError

Call = Callable[[str, Any], Any]
Asked = tuple[str, dict[str, Any]]
Acknowledged = dict[int, Any]

BURST = 6
CHAPTER = "一.md"
TEXT = "林远推开门，屋里没有人。\n\n他站了一会儿，听见楼上的脚步声。\n"
LONG = "".join(f"第{n}行：雨下了一夜，檐水滴在石阶上。\n" for n in range(200))


class World(NamedTuple):
    """A project to write in, and where everything else is."""

    home: Path
    user_data: Path
    project_id: str

    @property
    def root(self) -> Path:
        return self.home / "小说"

    @property
    def archive(self) -> Path:
        return self.home / "archive.zip"

    def chat(self, name: str = "chat") -> dict[str, Any]:
        """A conversation of this project; their ids are unique among all projects."""
        return {"projectId": self.project_id, "conversationId": f"{name}-{self.project_id[4:24]}"}

    def own(self, **more: Any) -> dict[str, Any]:
        return {"projectId": self.project_id, **more}


class Kind(NamedTuple):
    """One kind of write."""

    name: str
    ask: Callable[[World, int], Asked]
    missing: Callable[[World, Call, Acknowledged], Iterator[int]]


def make_world(home: Path, user_data: Path, call: Call) -> World:
    """Make a project with a chapter and an archive to import."""
    root = home / "小说"
    root.mkdir(parents=True)
    (root / CHAPTER).write_bytes(TEXT.encode())
    made = call("project:create", {"rootPath": str(root)})
    world = World(home, user_data, made["projectId"])
    for n in range(3):
        call("context:files:put", world.chat("packed") | _file(n))
    call("context:files:export", world.chat("packed") | {"path": str(world.archive)})
    call("context:files:delete", world.chat("packed"))
    return world


def register(world: World, n: int) -> Asked:
    folder = world.home / f"其他 {n}"
    folder.mkdir(exist_ok=True)
    return "project:create", {"rootPath": str(folder)}


def unregistered(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    known = {one["projectId"]: one["rootPath"] for one in call("project:list", {})["items"]}
    for n, answer in acknowledged.items():
        if known.get(answer["projectId"]) != answer["rootPath"]:
            yield n


def ensure(world: World, n: int) -> Asked:
    return "context:creonow:ensure", world.own()


def unensured(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    if not acknowledged:
        return
    listed = call("context:creonow:rules:list", world.own())["items"]
    names = {Path(item["path"]).name for item in listed}
    if not {"style.md", "terminology.json", "constraints.json"} <= names:
        yield max(acknowledged)


def constrain(world: World, n: int) -> Asked:
    return "constraints:create", world.own(constraint={"text": f"第{n}条约束"})


def unconstrained(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    known = {one["id"]: one["text"] for one in call("constraints:list", world.own())["constraints"]}
    for n, answer in acknowledged.items():
        if known.get(answer["constraint"]["id"]) != f"第{n}条约束":
            yield n


def budget(world: World, n: int) -> Asked:
    """Each update of a burst names the version that the one before it makes."""
    file = world.user_data / "budgets" / f"{world.project_id}.json"
    kept = json.loads(file.read_bytes())["profile"]["version"] if file.exists() else 1
    return "context:budget:update", world.own(
        version=kept + n % BURST, totalBudgetTokens=4000 + n % 1000
    )


def unbudgeted(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    kept = call("context:budget:get", world.own())
    for n, answer in acknowledged.items():
        same = kept["totalBudgetTokens"] == answer["totalBudgetTokens"]
        if kept["version"] < answer["version"] or (kept["version"] == answer["version"]) > same:
            yield n


def save(world: World, n: int) -> Asked:
    conversation = {
        "id": f"talk-{n}",
        "messages": [{"role": "user", "content": f"第{n}句。{LONG}"}],
    }
    return "context:creonow:conversations:save", world.own(conversation=conversation)


def unsaved(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    listed = call("context:creonow:conversations:list", world.own(limit=200))["items"]
    known = {item["id"] for item in listed}
    for n in acknowledged:
        asked = world.own(conversationId=f"talk-{n}")
        found = _or_none(call, "context:creonow:conversations:read", asked)
        saved = found and found["conversation"]["messages"][0]["content"]
        if saved != f"第{n}句。{LONG}" or f"talk-{n}" not in known:
            yield n


def put(world: World, n: int) -> Asked:
    return "context:files:put", world.chat() | _file(n)


def not_put(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    listed = call("context.list", world.chat() | {"limit": 500})["items"]
    known = {item["id"] for item in listed}
    for n, answer in acknowledged.items():
        wanted = {"id": answer["ref"]["id"], "limit": 65536, "raw": True}
        found = _or_none(call, "context.read", world.chat() | wanted)
        if wanted["id"] not in known or not found or found["content"] != _file(n)["content"]:
            yield n


def take_in(world: World, n: int) -> Asked:
    return "context:files:import", world.chat(f"in-{n}") | {"path": str(world.archive)}


def not_taken_in(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n, answer in acknowledged.items():
        listed = call("context.list", world.chat(f"in-{n}"))["items"]
        reads = [
            call("context.read", world.chat(f"in-{n}") | {"id": item["id"], "raw": True})
            for item in listed
        ]
        whole = [found["content"].startswith("第") for found in reads] == [True] * 3
        if [item["id"] for item in listed] != [item["id"] for item in answer["items"]] or not whole:
            yield n


def discard(world: World, n: int) -> Asked:
    return "context:files:delete", world.chat(f"in-{n}")


def append(world: World, n: int) -> Asked:
    messages = [
        {"role": "user", "content": f"问{n}"},
        {"role": "assistant", "content": f"答{n}：{LONG[:500]}"},
    ]
    return "context:history:append", world.chat() | {"messages": messages}


def not_appended(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    if not acknowledged:
        return
    rounds = call("context:history:read", world.chat())["rounds"]
    questions = [one["messages"][0]["content"] for one in rounds if len(one["messages"]) == 2]
    for n in acknowledged:
        if questions.count(f"问{n}") != 1:
            yield n


def write_skill(world: World, n: int) -> Asked:
    content = f"---\nname: 技能{n}\ncontext_rules:\n  surrounding: {n + 1}\n---\n"
    return "skill:write", world.own(scope="project", slug=f"skill-{n}", content=content)


def unwritten(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n, answer in acknowledged.items():
        asked = world.own(skillId=answer["skill"]["id"])
        found = _or_none(call, "skill:read", asked)
        if not found or found["skill"]["content"] != answer["skill"]["content"]:
            yield n


def run(world: World, n: int) -> Asked:
    """The runs of two documents: some begin a file, most add to one."""
    document = f"{n % 2}{CHAPTER}"
    (world.root / document).write_bytes(TEXT.encode())
    asked = world.own(documentId=document, cursorPosition=0, skillId="builtin:continue")
    return "ai:skill:run", asked | {"runId": f"run_{n}", "judge": "off"}


def unrecorded(world: World, _call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    """Only the last few of a document are kept, so only its last acknowledged one must be there."""
    for parity in (0, 1):
        numbers = [n for n in acknowledged if n % 2 == parity]
        kept = anyio.run(Runs(world.user_data).recent, world.project_id, f"{parity}{CHAPTER}")
        if numbers and f"run_{max(numbers)}" not in {one.run_id for one in kept}:
            yield max(numbers)


def sync(world: World, n: int) -> Asked:
    """An open document lives as long as its connection; a kill must leave the file in its place."""
    return "context:document:sync", world.own(documentId=CHAPTER, version=n, text=f"{n}{LONG}")


def unsynced(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    asked = world.own(documentId=CHAPTER)
    listed = call("context:document:list", asked)["items"]
    found = next(item for item in listed if item["documentId"] == CHAPTER)
    if acknowledged and (found["open"], found["length"]) != (False, len(TEXT)):
        yield max(acknowledged)


def index(world: World, n: int) -> Asked:
    (world.root / f"{n}.md").write_bytes(f"# 第{n}章\n\n船过了湾，灯{n}照见马桩。\n".encode())
    return _question(world, n)


def _question(world: World, n: int) -> Asked:
    wanted = {"documentId": CHAPTER, "cursorPosition": 0, "query": f"第{n}章 马桩", "wait": True}
    return "context:retrieve", world.own(**wanted)


def unindexed(world: World, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n in acknowledged:
        _, asked = _question(world, n)
        found = call("context:retrieve", asked | {"limit": 100})["passages"]
        if f"{n}.md" not in {passage["documentId"] for passage in found}:
            yield n


def _file(n: int) -> dict[str, Any]:
    content = f"第{n}份。\n{LONG}"
    return {"kind": "artifact", "hint": f"file {n}", "key": f"call_{n}", "content": content}


def _or_none(call: Call, channel: str, payload: Any) -> Any:
    try:
        return call(channel, payload)
    except RpcError:
        return None


KINDS = (
    Kind("project registry", register, unregistered),
    Kind(".creonow tree", ensure, unensured),
    Kind("constraints", constrain, unconstrained),
    Kind("budget", budget, unbudgeted),
    Kind("conversation save", save, unsaved),
    Kind("context file put", put, not_put),
    Kind("context file import", take_in, not_taken_in),
    Kind("history append", append, not_appended),
    Kind("skill write", write_skill, unwritten),
    Kind("run summary", run, unrecorded),
    Kind("document sync", sync, unsynced),
    Kind("retrieval index", index, unindexed),
)
