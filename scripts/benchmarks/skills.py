"""What precise injection saves, and what a run costs beside its assembly, through a daemon on stdio.

The novel is made of ../shared/corpus if that is there and else of made-up prose; the project has
8 characters, 10 settings files, an outline, preferences, terms and 12 constraints. The fake
provider answers at once: with the whole prompt, which is what it does by itself, and with a few
hundred characters, which is what a model would. Before anything is measured the index is complete
and the place has been assembled, so that assembly and run, which take turns, both find everything
warm.
"""

# requirement: SK-038

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from creonowd.cli.client import Client, connect
from scripts.benchmarks.novel.project import CORPUS, chapters, novel

SKILLS = ("polish", "condense", "expand", "dialogue", "continue", "consistency")
EVERYTHING = "bench:everything"
DOCUMENT = "chapters/042.md"
INDEXING = "RETRIEVAL_INDEXING"
WIDE = 60_000
ROUNDS = 61
COSTED = ("continue", "polish")
USUAL = 400

Timer = Callable[[int], float]


def main(argv: list[str]) -> None:
    """Print two tables."""
    del argv
    with tempfile.TemporaryDirectory() as folder:
        root, text = Path(folder) / "小说", novel()
        chapter = _write_project(root, text)
        cursor = len(chapter) * 3 // 4
        with connect(Path(folder) / "user data") as client:
            here = _at_work(client, root, cursor)
            print(f"texts: {'corpus' if CORPUS.is_dir() else 'made up'}\n")
            _injection(client, here)
            print("| what | measured | goal |\n|---|---|---|")
            _cost(client, here, "the prompt echoed")
        scripted = Path(folder) / "scripted"
        _script(scripted, chapter[cursor : cursor + USUAL])
        with connect(scripted) as client:
            _cost(client, _at_work(client, root, cursor), f"an answer of {USUAL} characters")


def _at_work(client: Client, root: Path, cursor: int) -> dict[str, Any]:
    made = client.request("project:create", {"rootPath": str(root)})
    here = {"projectId": made["projectId"], "documentId": DOCUMENT, "cursorPosition": cursor}
    _wait_for_index(client, here)
    return here


def _script(user_data: Path, said: str) -> None:
    """Let the fake say the same in every run, streamed or not."""
    steps = [{"text": said}] * (2 * len(COSTED) * ROUNDS)
    script = user_data / "script.json"
    _write(script, _json({"steps": steps}))
    _write(user_data / "settings.json", _json({"version": 1, "aiFakeScript": str(script)}))


def _wait_for_index(client: Client, here: dict[str, Any]) -> None:
    """Assemble until every passage can be found; without them everything would be too little."""
    while any(INDEXING in said for said in _assembled(client, here, EVERYTHING)["warnings"]):
        time.sleep(0.2)


def _injection(client: Client, here: dict[str, Any]) -> None:
    budget = client.request("context:budget:get", {"projectId": here["projectId"]})
    wide = budget | {"contextWindowTokens": WIDE + 2000}
    client.request("context:budget:update", {"projectId": here["projectId"], "profile": wide})
    full = _tokens(client, here, EVERYTHING)
    print("| skill | target | precise | everything | saved |\n|---|---|---|---|---|")
    for slug in SKILLS:
        made = _assembled(client, here, f"builtin:{slug}")
        precise = made["tokenCount"]
        saved = f"{100 * (1 - precise / full):.0f} %"
        print(f"| {slug} | {made['targetTokens']} | {precise} | {full} | {saved} |", flush=True)
    print()
    again = client.request("context:budget:get", {"projectId": here["projectId"]})
    narrow = again | {"contextWindowTokens": budget["contextWindowTokens"]}
    client.request("context:budget:update", {"projectId": here["projectId"], "profile": narrow})


def _cost(client: Client, here: dict[str, Any], said: str) -> None:
    for slug in COSTED:
        payload = here | {"skillId": f"builtin:{slug}"}
        assembly = _timer(client, "context:assemble", payload)
        run = _timer(client, "ai:skill:run", payload)
        streamed = _timer(client, "ai:skill:run", payload | {"stream": True})
        alone, whole, told = _medians(assembly, (assembly, run, streamed))
        ratio = f"{whole / alone:.2f} ({1000 * whole:.1f} ms)"
        print(f"| {slug}: run ÷ assembly, {said} | {ratio} | ≤ 1.2 |", flush=True)
        print(f"| {slug}: streamed run ÷ assembly, {said} | {told / alone:.2f} | – |", flush=True)


def _timer(client: Client, channel: str, payload: dict[str, Any]) -> Timer:
    def timed(turn: int) -> float:
        moved = payload | {"cursorPosition": payload["cursorPosition"] + turn}
        started = time.perf_counter()
        client.request(channel, moved)
        return time.perf_counter() - started

    return timed


def _medians(warm: Timer, timers: Sequence[Timer]) -> list[float]:
    """Take turns, so that whatever else this machine does hits all alike, and none is always first."""
    taken: list[list[float]] = [[] for _ in timers]
    for turn in range(ROUNDS):
        for shift in range(len(timers)):
            chosen = (turn + shift) % len(timers)
            warm(turn)
            taken[chosen].append(timers[chosen](turn))
    return [statistics.median(times[3:]) for times in taken]


def _assembled(client: Client, here: dict[str, Any], skill_id: str) -> Any:
    selection = {"from": here["cursorPosition"] - 120, "to": here["cursorPosition"]}
    chosen = {"selection": selection} if "polish" in skill_id or "condense" in skill_id else {}
    return client.request("context:assemble", here | chosen | {"skillId": skill_id})


def _tokens(client: Client, here: dict[str, Any], skill_id: str) -> int:
    return _assembled(client, here, skill_id)["tokenCount"]


def _write_project(root: Path, text: str) -> str:
    parts = chapters(text)
    for number, chapter in enumerate(parts, start=1):
        _write(root / f"chapters/{number:03}.md", chapter)
    tree = root / ".creonow"
    for number in range(8):
        _write(tree / f"characters/人物{number:02}.md", text[number * 900 :][:160])
    for number in range(10):
        _write(tree / f"settings/设定{number:02}.md", text[number * 4000 :][:200])
    _write(tree / "settings/outline.md", "\n".join(part[:20] for part in parts[:40]))
    rules = [{"text": f"偏好{n}：动作场景用短句。", "confidence": 0.9} for n in range(20)]
    _write(tree / "settings/memory.json", _json({"version": 1, "rules": rules}))
    _write(tree / "rules/style.md", "短句为主，少用成语，不用感叹号。\n" * 10)
    terms = [{"term": f"术语{n}", "avoid": [f"别名{n}"]} for n in range(20)]
    _write(tree / "rules/terminology.json", _json({"terms": terms}))
    items = [f"第{n}条：主角在第{n + 1}回之前不知道真相。" for n in range(12)]
    _write(tree / "rules/constraints.json", _json({"version": 1, "items": items}))
    return parts[41]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())


if __name__ == "__main__":
    main(sys.argv[1:])
