"""Whatever a payload holds, every channel answers it or says which field is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from creonowd.settings import Settings
from testing.clients import Client
from testing.fuzz import scaled_examples
from testing.novels import make_novel
from tests.channels.payloads import ODD, Payloads

CONTRACT = json.loads(Path("protocol/openrpc.json").read_bytes())
HEALTHY = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
SKIPPED = {"exit", "shutdown", "initialize", "session:revoke", "viewer:open", "project:delete"}
KNOWN: dict[str, list[Any]] = {
    "projectId": ["PROJECT", "PROJECT", "PROJECT", "PROJECT", "prj_0123456789abcdefghij"],
    "documentId": ["一.md", "二.md", "open", "no.md", ".creonow/rules/style.md"],
    "conversationId": ["chat", "chat", "Chat", "x" * 65],
    "path": ["rules/style.md", "settings/a.md", ".creonow/rules/style.md", "HOME/a.zip"],
    "rootPath": ["HOME", "HOME/new", "HOME/novel/一.md", "relative"],
    "channel": ["app:ping", "context:assemble", "ipc:invoke", "no:such"],
    "cursorPosition": [0, 5, 10**9],
    "skillId": ["builtin:continue", "builtin:polish", "unknown"],
    "timeoutMs": [1, 1000],
    "debugMode": [True],
    "model": ["gpt-4o", "claude", None],
    "tokenizerVersion": [None],
    "id": ["REF", "REF", "ctx_0123456789abcdefghij"],
    "recipe": [{"type": "json", "value": [1, {}]}, {"type": "history"}, {"type": "no"}, {}],
    "content": ["---\nname: x\n---\n{{text}}", "---\n", "长" * 5000, "sk-" + "a" * 40],
    "pattern": ["a", "^", "(", "\\p{Han}+", "长|a{2,}"],
    "mimeType": ["text/plain", None],
    "baseVersion": [0, 1, 2],
    "version": [0, 1, 2, 3],
    "text": ["", "林远", "a\nb\r\nc", "😀" * 300],
}
SCHEMAS = CONTRACT["components"]["schemas"]
FITTING, ODDLY = Payloads(SCHEMAS, KNOWN), Payloads(SCHEMAS, KNOWN, ODD)
CALLS = st.one_of(
    [
        st.tuples(st.just(method["name"]), payloads.of(method["x-payload"]))
        for method in CONTRACT["methods"]
        for payloads in (FITTING, FITTING, ODDLY)
        if method["name"] not in SKIPPED
    ]
)


@pytest.fixture
def daemon_settings() -> Settings:
    return Settings(e2e=True, warm_up=False, debug=True)


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> dict[str, str]:
    """A project with a chapter; gives what stands for it in payloads."""
    made = await make_novel(client, tmp_path / "novel")
    await client.call("context:creonow:ensure", made.params)
    chat = {**made.params, "conversationId": "chat"}
    file = {"kind": "artifact", "hint": "a log", "content": "长夜\n" * 3000}
    put = await client.call("context:files:put", chat | file)
    return {"PROJECT": made.project_id, "HOME": str(tmp_path), "REF": put["ref"]["id"]}


@pytest.mark.fuzz
@settings(scaled_examples(2), suppress_health_check=HEALTHY)
@given(call=CALLS)
async def test_no_payload_is_an_internal_error(
    client: Client, novel: dict[str, str], call: tuple[str, Any]
) -> None:
    method, payload = call
    client.accepts_repeated_replies = True
    await client.frame(_spelt(method, payload, novel))

    reply = await client.reply("x")

    assert reply.get("error", {}).get("data", {}).get("code") != "INTERNAL", (method, payload)
    assert (await client.call("app:ping"))["pong"] is True


def _spelt(method: str, payload: Any, words: dict[str, str]) -> bytes:
    """Spell a request as JavaScript does, with this run's project and folder in their places."""
    text = json.dumps({"jsonrpc": "2.0", "id": "x", "method": method, "params": payload})
    for word, meant in words.items():
        text = text.replace(word, json.dumps(meant)[1:-1])
    return text.encode()
