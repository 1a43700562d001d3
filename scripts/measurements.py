"""The benchmarks by name, and their sections in docs/benchmarks.md."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

PAGE = Path(__file__).resolve().parents[1] / "docs" / "benchmarks.md"

BENCHMARKS = {
    "assemble": "an assembly beside one count of its text, and the specification's milliseconds",
    "attack": "floods and other attacks: withstood, memory, an owner's worst ping; [KIND …]",
    "cache": "what providers would read from their prompt caches, and its cost; [--quick]",
    "faults": "kills during every kind of write, and every other fault; [KILLS] [SEED]",
    "files": "context files beside ripgrep, `re` and plain reads; [--quick]",
    "history": "a long conversation: the cost of a turn, and facts still there; [cost] [recall]",
    "install": "start, memory and disk size of an installed wheel",
    "load": "mixed traffic of 1, 8, 64 and 500 clients; [--seconds N] [--clients 1,8]",
    "peers": "packing beside prompt-tsx, LangChain and LlamaIndex; [--quick]",
    "redaction": "time beside counting tokens, and the score on examples; [--score FILE]",
    "retrieval": "recall, and search beside a scan of the text; [--quick]",
    "rpc": "the wire beside vscode-jsonrpc and pygls, start, memory; [wire] [start] [memory]",
    "skills": "tokens that precise injection saves, and a run beside its assembly",
    "story": "future text, allusions, new chapters, people; [--before REVISION|none]",
    "tokens": "counting and cutting beside one encode; a keystroke beside a copy",
    "viewer": "the writer's desk in Chromium: its first view, and from a key to the updated page",
}


def usage() -> str:
    """Describe the command and list the benchmarks, one per line."""
    width = max(map(len, BENCHMARKS))
    lines = [f"  {name:{width}}  {what}" for name, what in BENCHMARKS.items()]
    head = (
        "usage: scripts/bench NAME [arguments] [--write]\n\n"
        "Prints what was measured as Markdown tables; --write also replaces the section of NAME\n"
        "in docs/benchmarks.md, if the benchmark succeeds.\n"
    )
    return "\n".join([head, *lines])


def replace_section(page: str, name: str, content: str) -> str:
    """Replace what stands between the markers of a benchmark; add a section if there is none."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in page:
        page = f"{page.rstrip()}\n\n## {name}\n\n{begin}\n{end}\n"
    before, _, rest = page.partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise ValueError(f"docs/benchmarks.md has no {end}")
    return f"{before}{begin}\n{content.strip()}\n{end}{after}"


def conditions(name: str, arguments: list[str], python: str) -> str:
    """State the command and where and when it ran."""
    command = " ".join(["scripts/bench", name, *arguments])
    machine = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"
    today = datetime.now(UTC).date().isoformat()
    return f"`{command}` on {machine}, {python}, {today}."
