"""Every kind of write that a client can request, and how to see whether it is kept.

Writes are numbered. `missing` gets the acknowledged numbers with their replies and yields those
that are not kept as they should be.
"""

import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anyio

from creonowd.errors import DaemonError
from creonowd.testing.harness import Harness
from creonowd.workspace.runs import RunRecord, Runs, RunSummary
from testing.clients import RpcError
from testing.novels import CHAPTER, TEXT, write_files

Call = Callable[[str, Any], Any]
Request = tuple[str, dict[str, Any]]
Acknowledged = dict[int, Any]

BURST = 6
_NO_ROOM = {"ENOSPC", "EDQUOT", "EROFS", "EACCES"}
LONG = "".join(f"第{n}行：雨下了一夜，檐水滴在石阶上。\n" for n in range(200))


class WriteProject(NamedTuple):
    """A project to write in, and the folders beside it."""

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

    def params(self, **more: Any) -> dict[str, Any]:
        """Return a payload that names the project."""
        return {"projectId": self.project_id, **more}


class WriteKind(NamedTuple):
    """One kind of write."""

    name: str
    request: Callable[[WriteProject, int], Request]
    missing: Callable[[WriteProject, Call, Acknowledged], Iterator[int]]


def make_project(home: Path, user_data: Path, call: Call) -> WriteProject:
    """Make a project with a chapter and an archive to import."""
    root = home / "小说"
    write_files(root, {CHAPTER: TEXT})
    made = call("project:create", {"rootPath": str(root)})
    project = WriteProject(home, user_data, made["projectId"])
    for n in range(3):
        call("context:files:put", project.chat("packed") | _file(n))
    call("context:files:export", project.chat("packed") | {"path": str(project.archive)})
    call("context:files:delete", project.chat("packed"))
    for n in range(3):
        call("context:files:put", project.chat("exported") | _file(n))
    return project


def register(project: WriteProject, n: int) -> Request:
    folder = project.home / f"其他 {n}"
    folder.mkdir(exist_ok=True)
    return "project:create", {"rootPath": str(folder)}


def missing_projects(
    project: WriteProject, call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    known = {one["projectId"]: one["rootPath"] for one in call("project:list", {})["items"]}
    for n, answer in acknowledged.items():
        if known.get(answer["projectId"]) != answer["rootPath"]:
            yield n


def ensure(project: WriteProject, n: int) -> Request:
    return "context:creonow:ensure", project.params()


def missing_tree(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    if not acknowledged:
        return
    listed = call("context:creonow:rules:list", project.params())["items"]
    names = {Path(item["path"]).name for item in listed}
    if not {"style.md", "terminology.json", "constraints.json"} <= names:
        yield max(acknowledged)


def constrain(project: WriteProject, n: int) -> Request:
    return "constraints:create", project.params(constraint={"text": f"第{n}条约束"})


def missing_constraints(
    project: WriteProject, call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    known = {
        one["id"]: one["text"] for one in call("constraints:list", project.params())["constraints"]
    }
    for n, answer in acknowledged.items():
        if known.get(answer["constraint"]["id"]) != f"第{n}条约束":
            yield n


def open_eye(project: WriteProject, n: int) -> Request:
    """A card of its own, which the author has put on the disk."""
    card = project.root / _card(n)
    for folder in (card.parent.parent, card.parent):
        folder.mkdir(exist_ok=True)
    card.write_bytes(TEXT.encode())
    card.chmod(0o644)
    return "context:creonow:inject:set", project.params(path=_card(n), inject="mentioned")


def missing_eyes(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n in acknowledged:
        expected = f"---\ninject: mentioned\n---\n{TEXT}".encode()
        if (project.root / _card(n)).read_bytes() != expected:
            yield n


def _card(n: int) -> str:
    return f".creonow/characters/人物{n}.md"


def reset_corrections(project: WriteProject, n: int) -> Request:
    return "tokens:corrections:reset", {"model": f"model-{n}"}


def missing_corrections(
    project: WriteProject, call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    """The file is whole, and is not kept aside as damaged."""
    file = project.user_data / "corrections.json"
    whole = file.exists() and json.loads(file.read_bytes())["version"] == 1
    if acknowledged and (not whole or [*project.user_data.glob("corrections.damaged*")]):
        yield max(acknowledged)


def budget(project: WriteProject, n: int) -> Request:
    """Each update of a burst names the version that the one before it makes."""
    file = project.user_data / "budgets" / f"{project.project_id}.json"
    kept = json.loads(file.read_bytes())["profile"]["version"] if file.exists() else 1
    return "context:budget:update", project.params(
        version=kept + n % BURST, totalBudgetTokens=4000 + n % 1000
    )


def missing_budgets(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    kept = call("context:budget:get", project.params())
    for n, answer in acknowledged.items():
        same = kept["totalBudgetTokens"] == answer["totalBudgetTokens"]
        if kept["version"] < answer["version"] or (kept["version"] == answer["version"]) > same:
            yield n


def save(project: WriteProject, n: int) -> Request:
    conversation = {
        "id": f"talk-{n}",
        "messages": [{"role": "user", "content": f"第{n}句。{LONG}"}],
    }
    return "context:creonow:conversations:save", project.params(conversation=conversation)


def missing_chats(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    listed = call("context:creonow:conversations:list", project.params(limit=200))["items"]
    known = {item["id"] for item in listed}
    for n in acknowledged:
        asked = project.params(conversationId=f"talk-{n}")
        found = _or_none(call, "context:creonow:conversations:read", asked)
        saved = found and found["conversation"]["messages"][0]["content"]
        if saved != f"第{n}句。{LONG}" or f"talk-{n}" not in known:
            yield n


def put(project: WriteProject, n: int) -> Request:
    return "context:files:put", project.chat() | _file(n)


def missing_files(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    listed = call("context.list", project.chat() | {"limit": 500})["items"]
    known = {item["id"] for item in listed}
    for n, answer in acknowledged.items():
        wanted = {"id": answer["ref"]["id"], "limit": 65536, "raw": True}
        found = _or_none(call, "context.read", project.chat() | wanted)
        if wanted["id"] not in known or not found or found["content"] != _file(n)["content"]:
            yield n


def import_archive(project: WriteProject, n: int) -> Request:
    return "context:files:import", project.chat(f"in-{n}") | {"path": str(project.archive)}


def missing_imports(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n, answer in acknowledged.items():
        listed = call("context.list", project.chat(f"in-{n}"))["items"]
        reads = [
            call("context.read", project.chat(f"in-{n}") | {"id": item["id"], "raw": True})
            for item in listed
        ]
        whole = [found["content"].startswith("第") for found in reads] == [True] * 3
        if [item["id"] for item in listed] != [item["id"] for item in answer["items"]] or not whole:
            yield n


def export_archive(project: WriteProject, n: int) -> Request:
    """Some make a new archive, most replace one."""
    path = str(_export_path(project, n))
    return "context:files:export", project.chat("exported") | {"path": path}


def missing_exports(
    project: WriteProject, _call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    for n in acknowledged:
        try:
            with zipfile.ZipFile(_export_path(project, n)) as archive:
                is_whole = archive.testzip() is None and len(archive.namelist()) > 3
        except (OSError, zipfile.BadZipFile):
            is_whole = False
        if not is_whole:
            yield n


def _export_path(project: WriteProject, n: int) -> Path:
    return project.home / f"exported {n % 4}.zip"


def register_lazy(project: WriteProject, n: int) -> Request:
    recipe = {"type": "json", "value": f"第{n}份。"}
    lazy = {"kind": "artifact", "hint": f"lazy {n}", "key": f"lazy_{n}", "recipe": recipe}
    return "context:files:register", project.chat("lazy") | lazy


def missing_lazy(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    """A disk that takes no file keeps the recipe and refuses to follow it: nothing is lost then."""
    for n, answer in acknowledged.items():
        wanted = {"id": answer["ref"]["id"], "raw": True}
        try:
            is_right = (
                f"第{n}份。" in call("context.read", project.chat("lazy") | wanted)["content"]
            )
        except RpcError as error:
            is_right = error.details.get("reason") in _NO_ROOM
        if not is_right:
            yield n


def summarise(project: WriteProject, n: int) -> Request:
    """A summary that the daemon makes, of a chapter of its own."""
    (project.root / f"made {n}.md").write_bytes(f"# 第{n}章\n\n{TEXT}".encode())
    return "story:summarise", project.params(documents=[f"made {n}.md"])


def edit_summary(project: WriteProject, n: int) -> Request:
    (project.root / f"edited {n}.md").write_bytes(f"# 第{n}章\n\n{TEXT}".encode())
    return "story:summary:set", project.params(documentId=f"edited {n}.md", text=f"摘要{n}")


def missing_made(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n, answer in acknowledged.items():
        found = _or_none(call, "story:summary:get", project.params(documentId=f"made {n}.md"))
        if answer["documents"] and not (found and found["stored"] and "脚步声" in found["text"]):
            yield n


def missing_edited(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n in acknowledged:
        found = _or_none(call, "story:summary:get", project.params(documentId=f"edited {n}.md"))
        if not found or found["text"] != f"摘要{n}":
            yield n


def append(project: WriteProject, n: int) -> Request:
    messages = [
        {"role": "user", "content": f"问{n}"},
        {"role": "assistant", "content": f"答{n}：{LONG[:500]}"},
    ]
    return "context:history:append", project.chat() | {"messages": messages}


def missing_rounds(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    if not acknowledged:
        return
    rounds = call("context:history:read", project.chat())["rounds"]
    questions = [one["messages"][0]["content"] for one in rounds if len(one["messages"]) == 2]
    for n in acknowledged:
        if questions.count(f"问{n}") != 1:
            yield n


def write_skill(project: WriteProject, n: int) -> Request:
    content = f"---\nname: 技能{n}\ncontext_rules:\n  surrounding: {n + 1}\n---\n"
    return "skill:write", project.params(scope="project", slug=f"skill-{n}", content=content)


def missing_skills(project: WriteProject, call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    for n, answer in acknowledged.items():
        asked = project.params(skillId=answer["skill"]["id"])
        found = _or_none(call, "skill:read", asked)
        if not found or found["skill"]["content"] != answer["skill"]["content"]:
            yield n


def run(project: WriteProject, n: int) -> Request:
    """The runs of two documents: some begin a file, most add to one."""
    document = f"{n % 2}{CHAPTER}"
    (project.root / document).write_bytes(TEXT.encode())
    asked = project.params(documentId=document, cursorPosition=0, skillId="builtin:continue")
    return "ai:skill:run", asked | {"runId": f"run_{n}", "judge": "off"}


def missing_runs(project: WriteProject, _call: Call, acknowledged: Acknowledged) -> Iterator[int]:
    """Only the last few of a document are kept, so only its last acknowledged one must be there."""
    for parity in (0, 1):
        numbers = [n for n in acknowledged if n % 2 == parity]
        kept = anyio.run(Runs(project.user_data).recent, project.project_id, f"{parity}{CHAPTER}")
        if numbers and f"run_{max(numbers)}" not in {one.run_id for one in kept}:
            yield max(numbers)


def accept(project: WriteProject, n: int) -> Request:
    """Accept a run of a document of its own, which is put on the disk first."""
    record = RunRecord(
        run_id=f"decided_{n}",
        skill_id="builtin:continue",
        at_ms=n,
        provider="fake",
        model="m",
        prompt_hash="",
        stable_prefix_hash="",
        token_count=1,
        summary=RunSummary(excerpt=f"第{n}次"),
    )
    try:
        anyio.run(Runs(project.user_data).record, project.project_id, f"decided {n}", record)
    except DaemonError as error:
        raise OSError from error
    return "ai:run:accept", project.params(runId=record.run_id)


def missing_decisions(
    project: WriteProject, call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    for n in acknowledged:
        asked = project.params(documentId=f"decided {n}", status="accepted")
        if [run["runId"] for run in call("ai:run:list", asked)["runs"]] != [f"decided_{n}"]:
            yield n


def sync(project: WriteProject, n: int) -> Request:
    """An open document lives as long as its connection; a kill must leave the file in its place."""
    return "context:document:sync", project.params(documentId=CHAPTER, version=n, text=f"{n}{LONG}")


def missing_document(
    project: WriteProject, call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    asked = project.params(documentId=CHAPTER)
    listed = call("context:document:list", asked)["items"]
    found = next(item for item in listed if item["documentId"] == CHAPTER)
    if acknowledged and (found["open"], found["length"]) != (False, len(TEXT)):
        yield max(acknowledged)


def index(project: WriteProject, n: int) -> Request:
    (project.root / f"{n}.md").write_bytes(f"# 第{n}章\n\n船过了湾，灯{n}照见马桩。\n".encode())
    return _question(project, n)


def _question(project: WriteProject, n: int) -> Request:
    wanted = {"documentId": CHAPTER, "cursorPosition": 0, "query": f"第{n}章 马桩", "wait": True}
    return "context:retrieve", project.params(**wanted)


def missing_passages(
    project: WriteProject, call: Call, acknowledged: Acknowledged
) -> Iterator[int]:
    for n in acknowledged:
        _, asked = _question(project, n)
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
    WriteKind("project registry", register, missing_projects),
    WriteKind(".creonow tree", ensure, missing_tree),
    WriteKind("constraints", constrain, missing_constraints),
    WriteKind("file edit", open_eye, missing_eyes),
    WriteKind("budget", budget, missing_budgets),
    WriteKind("corrections", reset_corrections, missing_corrections),
    WriteKind("conversation save", save, missing_chats),
    WriteKind("context file put", put, missing_files),
    WriteKind("context file import", import_archive, missing_imports),
    WriteKind("context file export", export_archive, missing_exports),
    WriteKind("context file recipe", register_lazy, missing_lazy),
    WriteKind("history append", append, missing_rounds),
    WriteKind("skill write", write_skill, missing_skills),
    WriteKind("run summary", run, missing_runs),
    WriteKind("run decision", accept, missing_decisions),
    WriteKind("summary made", summarise, missing_made),
    WriteKind("summary edited", edit_summary, missing_edited),
    WriteKind("document sync", sync, missing_document),
    WriteKind("retrieval index", index, missing_passages),
)


class AcknowledgedWrites(NamedTuple):
    """What a daemon has acknowledged, by kind of write."""

    project: WriteProject
    replies: dict[str, Acknowledged]
    bursts: list[int]

    def next_number(self) -> int:
        """Return a number that no write has had."""
        self.bursts.append(len(self.bursts) * BURST)
        return self.bursts[-1]

    def find_lost(self, harness: Harness, *but: str) -> list[str]:
        """List the writes that are not kept, of every kind but those named."""
        return [
            f"{kind.name} {n}"
            for kind in KINDS
            if kind.name not in but
            for n in kind.missing(self.project, harness.call, self.replies[kind.name])
        ]


def write_all_kinds(harness: Harness) -> AcknowledgedWrites:
    """Make a project and write twice of every kind in it."""
    project = make_project(harness.home / "project", harness.user_data, harness.call)
    writes = AcknowledgedWrites(project, {kind.name: {} for kind in KINDS}, [])
    assert refusals(harness, writes) == refusals(harness, writes) == {}
    return writes


def refusals(harness: Harness, writes: AcknowledgedWrites) -> dict[str, str]:
    """Write once more of every kind, and return the error code of each that fails.

    A write that first needs a file of the author's is skipped if that cannot be written.
    """
    found: dict[str, str] = {}
    n = writes.next_number()
    for kind in KINDS:
        try:
            request = kind.request(writes.project, n)
        except OSError:
            continue
        try:
            writes.replies[kind.name][n] = harness.call(*request)
        except RpcError as error:
            found[kind.name] = error.code
    return found
