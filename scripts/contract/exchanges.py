"""One real exchange per channel: a small novel, and what a daemon of its own answers about it.

What differs from run to run (ids, times, secrets, paths) is replaced, and what is long is cut, so
that an exchange changes only when the protocol or the daemon does.
"""

import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from creonowd.testing.harness import Harness

LONGEST_TEXT = 120
LONGEST_LIST = 2
LONGEST_MAP = 3
HOME = "/home/ming"
TIME = 1_767_225_600_000

FILES = {
    ".creonow/rules/style.md": "Short sentences. Third person, past tense.\n",
    ".creonow/rules/terminology.json": '{"terms": [{"term": "the Ferry", "avoid": ["the boat"]}]}\n',
    ".creonow/characters/mara.md": "---\nname: Mara\naliases: [the ferrywoman]\n---\n\nRows alone. Owes Ferrin a winter.\n",
    ".creonow/settings/river.md": "The river freezes in the last week of the year.\n",
    ".creonow/threads/key.md": "---\nplanted: 1\ndue: 3\n---\n\nWhose key did Mara find?\n",
    "chapters/01.md": "# Chapter 1\n\nMara found a key on the Ferry and told nobody.\n",
    "chapters/02.md": "# Chapter 2\n\nFerrin asked about the key. Mara rowed on.\n",
    "chapters/03.md": "# Chapter 3\n\nIce closed the river. Mara turned the key in her hand.\n",
}
SKILL = "---\nname: Whisper\ncontext_rules:\n  surrounding: 400\n---\n\nWrite the next line as a whisper.\n"
OUTPUT = "“It is yours,” she said, and gave him the key."
CONVERSATION = "cnv_tools"
NONCE = "0123456789abcdef0123456789abcdef"

Exchange = dict[str, Any]
Call = Callable[..., Any]


def capture() -> dict[str, Exchange]:
    """Start a daemon, call every channel once, and return what was sent and answered, by channel."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        exchanges: dict[str, Exchange] = {}
        with Harness(home, deterministic=True, debug=True, CREONOW_DOCUMENT_WRITES="1") as harness:

            def call(channel: str, /, **payload: Any) -> Any:
                result = harness.call(channel, payload)
                exchanges.setdefault(channel, {"payload": payload, "result": result})
                return result

            project = harness.make_project("The Ferry", FILES)
            harness.script({"steps": [{"text": OUTPUT}]})
            for part in (_connection, _project, _context, _conversation, _farewell):
                part(call, project)
        # An archive holds times, which it deflates to more or fewer bytes.
        exchanges["context:files:export"]["result"]["bytes"] = 1100
        return {name: _normalise(exchanges[name], str(home)) for name in sorted(exchanges)}


def _connection(call: Call, project: Any) -> None:
    call("initialize", clientInfo={"name": "CreoNow", "version": "1.0.0"}, locale="en")
    for name in ("app:ping", "app:health", "app:metrics", "rpc.discover", "project:list"):
        call(name)
    call("ipc:invoke", channel="app:ping", payload={})
    granted = call("session:grant", role="renderer", channels=["app:ping"], ttlMs=60_000)
    call("session:revoke", token=granted["token"])
    call("viewer:open", projectId=project["projectId"], documentId="chapters/03.md")
    call("viewer:prove", nonce=NONCE)
    call("viewer:projects")
    call("viewer:skills", projectId=project["projectId"])
    call("viewer:tree", projectId=project["projectId"])


def _project(call: Call, project: Any) -> None:
    of = {"projectId": project["projectId"]}
    call("project:create", rootPath=project["rootPath"], name="The Ferry")
    call("project:setCurrent", **of)
    call("project:getCurrent")
    call("project:story", **of)
    tree = "context:creonow"
    for name in ("ensure", "status", "watch:start", "watch:stop", "rules:get"):
        call(f"{tree}:{name}", **of)
    for kind, path in (
        ("rules", "rules/style.md"),
        ("settings", "settings/river.md"),
        ("characters", "characters/mara.md"),
    ):
        call(f"{tree}:{kind}:list", **of)
        call(f"{tree}:{kind}:read", **of, path=f".creonow/{path}")
    text = "Nobody ever says what the key opens."
    made = call("constraints:create", **of, constraint={"text": text, "priority": 120})
    one = made["constraint"]["id"]
    call("constraints:update", **of, constraintId=one, patch={"until": "3"})
    call("constraints:list", **of)
    call("constraints:delete", **of, constraintId=one)
    call("constraints:set", **of, constraints={"version": 1, "items": [text]})
    call("constraints:get", **of)
    chapter = "chapters/03.md"
    call("constraints:check", **of, documentId=chapter, text="The boat was still there.")
    call("skill:list", **of)
    call("skill:validate", content=SKILL.replace("400", "many"))
    call("skill:write", **of, scope="project", slug="whisper", content=SKILL)
    call("skill:read", **of, skillId="builtin:continue")
    call("story:summarise", **of, dryRun=True)
    call("story:summary:set", **of, documentId="chapters/01.md", text="Mara finds a key.")
    call("story:summary:get", **of, documentId="chapters/01.md")
    call("story:summary:list", **of)
    call("story:threads", **of, documentId="chapters/03.md")


def _context(call: Call, project: Any) -> None:
    of = {"projectId": project["projectId"]}
    chapter = {**of, "documentId": "chapters/03.md"}
    place = {**chapter, "cursorPosition": 67}
    call("context:document:sync", **chapter, version=1, text=FILES["chapters/03.md"])
    call("context:document:list", **of)
    call("context:retrieve", **place, wait=True)
    call("context:assemble", **place, skillId="builtin:continue")
    call("context:inspect", **place, debugMode=True)
    call("context:explain", **place, debugMode=True, skillId="builtin:continue", about="Mara")
    call("context:subjects", **of)
    run = call("ai:skill:run", **place, skillId="builtin:continue", input="He learns whose it is.")
    call("ai:run:list", **of, limit=10)
    call("ai:run:accept", **of, runId=run["runId"])
    call("ai:run:discard", **of, runId=run["runId"])
    call("ai:skill:cancel", runId="run_that_has_ended")
    call("ai:config:get", **of)
    call("ai:config:probe", **of)
    call("ai:config:set", backends={"home": {"provider": "ollama", "model": "qwen3:8b"}})
    call("ai:usage", groupBy="model")
    budget = call("context:budget:get", **of)
    wide = {"version": budget["version"], "contextWindowTokens": 16_000}
    call("context:budget:update", **of, profile=wide)
    call("tokens:count", text="Mara rowed on.", model="gpt-4o")
    call("tokens:corrections:list")
    call("tokens:corrections:reset")
    graph = {"layer": "retrieved", "name": "graph"}
    call("context:source:register", **of, **graph, kind="kg", timeoutMs=1500)
    call("context:source:unregister", **of, **graph)
    call("context:document:close", **chapter)
    read = call("context:document:read", **chapter)
    edits = [{"from": read["length"], "to": read["length"], "text": "Nobody came.\n"}]
    wrote = call("context:document:write", **chapter, revision=read["revision"], edits=edits)
    call("context:undo", **of, undo=wrote["undo"])
    card = {"path": ".creonow/characters/mara.md", "inject": "mentioned"}
    eye = call("context:creonow:inject:set", **of, **card)
    call("context:undo", **of, undo=eye["undo"])


def _conversation(call: Call, project: Any) -> None:
    of = {"projectId": project["projectId"]}
    talk = {**of, "conversationId": CONVERSATION}
    text = "line 1: the ice\nline 2: the key\n"
    put = call(
        "context:files:put", **talk, kind="artifact", hint="grep key", content=text, key="call_1"
    )
    file = {**talk, "id": put["ref"]["id"]}
    call("context.list", **talk)
    call("context.read", **file)
    call("context.tail", **file, lines=1)
    call("context.grep", **file, pattern="key")
    recipe = {"type": "json", "value": {"tools": ["grep"]}}
    call("context:files:register", **talk, kind="catalog", hint="the tools", recipe=recipe)
    call("context:files:stats", **of)
    call("context:tool:compress", tool="grep", args={"pattern": "key"}, result=text)
    messages = [
        {"role": "user", "content": "Whose is the key?"},
        {"role": "assistant", "content": "Ferrin's, by chapter 2."},
    ]
    call("context:history:append", **talk, messages=messages)
    call("context:history:read", **talk, limit=1)
    call("context:build", **talk, input="Are you sure?", systemPrompt="You help an author.")
    call("context:codelaw:status", **of)
    archive = str(Path(project["rootPath"]).parent / "talk.zip")
    call("context:files:export", **talk, path=archive)
    call("context:files:import", **of, conversationId="cnv_again", path=archive)
    call("context:files:prune", **of, maxBytes=0)
    call("context:files:delete", **file)
    call("context:history:clear", **talk)
    chats = "context:creonow:conversations"
    chat = {"documentId": "chapters/03.md", "messages": messages}
    saved = call(f"{chats}:save", **of, conversation=chat)
    one = {**of, "conversationId": saved["index"]["id"]}
    call(f"{chats}:analysis:update", **one, analysis={"summary": "Whose the key is."})
    call(f"{chats}:list", **of)
    call(f"{chats}:read", **one)


def _farewell(call: Call, project: Any) -> None:
    about = {"kind": "note", "name": "Landing", "text": "The landing stage is on the east bank."}
    written = call("viewer:write_down", projectId=project["projectId"], **about)
    note = {"projectId": project["projectId"], "path": written["path"]}
    read = call("viewer:file:read", **note)
    more = {"from": len(read["text"]), "to": len(read["text"]), "text": "Nobody calls it a pier.\n"}
    call("viewer:file:write", **note, revision=read["revision"], edits=[more])
    call("project:delete", projectId=project["projectId"])
    call("shutdown")
    call("exit")


_HASH = re.compile(r"\b[0-9a-f]{64}\b")
_ISO = re.compile(r"\b20\d\d-\d\d-\d\dT[\d:.]+Z")
_DAY = re.compile(r"^20\d\d-\d\d-\d\d$")
# By name, what is not the same in two runs.
_REPLACED = {
    "pid": 4711,
    "uptimeMs": 3000,
    "token": "…",
    "url": "http://127.0.0.1:51234/#token=…",
    **{f"p{percent}Ms": 0.4 for percent in (50, 95, 99)},
}


def _normalise(value: Any, home: str, key: str = "") -> Any:
    """Replace what differs from run to run, and cut what is long."""
    if key in _REPLACED:
        return _REPLACED[key]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        if "openrpc" in members:
            members = {name: members[name] for name in ("openrpc", "info")}
        is_map = key in {"channels", "counters", "kinds"}
        kept = list(members.items())[: LONGEST_MAP if is_map else None]
        return {name: _normalise(held, home, name) for name, held in kept}
    if isinstance(value, list):
        items = cast("list[Any]", value)[:LONGEST_LIST]
        return [_normalise(item, home) for item in items]
    if isinstance(value, str):
        return _normalise_text(value, home, key)
    is_time = isinstance(value, int) and not isinstance(value, bool) and value > TIME // 2
    return TIME if is_time else value


def _normalise_text(text: str, home: str, key: str) -> str:
    clean = _HASH.sub("4b227777…", text.replace(home, HOME))
    clean = _ISO.sub("2026-01-01T00:00:00.000Z", clean)
    if key == "key" and _DAY.match(clean):
        clean = "2026-01-01"
    return clean if len(clean) <= LONGEST_TEXT else f"{clean[:LONGEST_TEXT]}…"
