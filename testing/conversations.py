"""Conversations for tests: made-up ones, long ones, and random ones."""

from typing import Any

from hypothesis import strategies as st

TOOLS = ("LS", "Glob", "Grep", "Read", "Edit", "MultiEdit", "Write", "Bash", "TodoWrite", "Web")
SECRETS = ("Zq8vR2mT5wLpK3nY", "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789")


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(*tool_calls: tuple[str, str, Any]) -> dict[str, Any]:
    made = [{"id": id_, "name": name, "arguments": given} for id_, name, given in tool_calls]
    return {"role": "assistant", "content": "", "toolCalls": made}


def result(call_id: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "toolCallId": call_id, "content": content}


def realistic_round(number: int) -> list[dict[str, Any]]:
    """A turn of an agent at work: it searches, reads, changes and runs, with secrets in between."""
    path = f"src/chapter_{number % 12}.py"
    text = "\n".join(f"line {n} of draft {number}: 林远推开门，夜色很深。" for n in range(12))
    matches = [{"file": path, "line": n, "text": f"def step_{n}()"} for n in range(9)]
    ran = {"stdout": "ok\n12 passed", "stderr": f"password={SECRETS[0]}", "exit_code": number % 2}
    return [
        user(f"Please improve step {number} of {path}. Keep its tone."),
        calls((f"g{number}", "Grep", {"pattern": "step", "path": "src"})),
        result(f"g{number}", {"matches": matches, "api_key": SECRETS[1]}),
        calls(
            (f"r{number}", "Read", {"file_path": path}),
            (f"b{number}", "Bash", {"command": "pytest"}),
        ),
        result(f"b{number}", ran),
        result(f"r{number}", text),
        assistant(f"Step {number} is better now. See https://example.org/{number} for more."),
    ]


def broken_pairs(messages: list[dict[str, Any]]) -> list[str]:
    """List the calls and results that do not stand side by side."""
    waiting: list[str] = []
    broken: list[str] = []
    for message in messages:
        if message["role"] == "tool" and "toolCallId" in message:
            if message["toolCallId"] in waiting:
                waiting.remove(message["toolCallId"])
            else:
                broken.append(message["toolCallId"])
            continue
        broken += waiting
        waiting = [call["id"] for call in message.get("toolCalls", [])]
    return broken + waiting


_words = st.text('abc 林远夜。.\n🖋️{}"', min_size=1, max_size=60)
_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | _words,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["stdout", "password", "matches", "content", "x"]), inner)
    ),
    max_leaves=6,
)


@st.composite
def random_round(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A round in which calls may wait for ever, and results come in any order."""
    messages = [user(draw(_words.filter(str.strip)))]
    for step in range(draw(st.integers(0, 2))):
        named = draw(st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2))
        made = [(f"c{step}{n}", name, {"path": "a.md"}) for n, name in enumerate(named)]
        messages.append(calls(*made))
        answered = draw(st.permutations([id_ for id_, _, _ in made]))
        messages += [result(i, draw(_values)) for i in answered if draw(st.booleans())]
    if draw(st.booleans()):
        messages.append(assistant(draw(_words)))
    return messages


conversations = st.lists(random_round(), max_size=9)
