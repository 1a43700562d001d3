"""What precise injection saves, and what a run costs beside its assembly, through a daemon on stdio.

The project has 120 chapters, 8 characters, 10 settings files, an outline, preferences, terms and 12
constraints. The fake provider answers at once: with the whole prompt, its default, and with a few
hundred characters, as a model would. Before anything is measured the index is complete. Assembly and
run take turns, each call one character further on than the one before: so each makes its prompt
anew, of texts that were redacted and counted before, and none is answered with what another made.
"""

# requirement: SK-038

import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.novel import DOCUMENT, chapters, to_json, write
from creonowd.cli.client import Client, connect
from testing.corpus import chinese, origin

SKILLS = ("polish", "condense", "expand", "dialogue", "continue", "consistency")
EVERYTHING = "bench:everything"
INDEXING = "RETRIEVAL_INDEXING"
WIDE = 60_000
ROUNDS = 61
COSTED = ("continue", "polish")
ON_SELECTION = ("polish", "condense", "expand")
ANSWER_CHARS = 400

Timer = Callable[[int], float]


def main(argv: list[str]) -> None:
    """Print two tables."""
    del argv
    with tempfile.TemporaryDirectory() as folder:
        root, text = Path(folder) / "小说", chinese()
        chapter = _write_project(root, text)
        cursor = len(chapter) * 3 // 4
        with connect(Path(folder) / "user data") as client:
            here = _open_project(client, root, cursor)
            print(f"Texts: {origin()}.\n")
            _injection(client, here)
            print("| what | measured | goal |\n|---|---|---|")
            _cost(client, here, "the prompt echoed")
        scripted = Path(folder) / "scripted"
        _script(scripted, chapter[cursor : cursor + ANSWER_CHARS])
        with connect(scripted) as client:
            _cost(
                client,
                _open_project(client, root, cursor),
                f"an answer of {ANSWER_CHARS} characters",
            )


def _open_project(client: Client, root: Path, cursor: int) -> dict[str, Any]:
    made = client.request("project:create", {"rootPath": str(root)})
    here = {"projectId": made["projectId"], "documentId": DOCUMENT, "cursorPosition": cursor}
    _wait_for_index(client, here)
    return here


def _script(user_data: Path, answer: str) -> None:
    """Make the fake give the same answer in every run, streamed or not."""
    steps = [{"text": answer}] * (2 * len(COSTED) * ROUNDS)
    script = user_data / "script.json"
    write(script, to_json({"steps": steps}))
    write(user_data / "settings.json", to_json({"version": 1, "aiFakeScript": str(script)}))


def _wait_for_index(client: Client, here: dict[str, Any]) -> None:
    """Assemble until every passage can be found: full injection needs them all."""
    while any(INDEXING in warning for warning in _assemble(client, here, EVERYTHING)["warnings"]):
        time.sleep(0.2)


def _injection(client: Client, here: dict[str, Any]) -> None:
    budget = client.request("context:budget:get", {"projectId": here["projectId"]})
    wide = budget | {"contextWindowTokens": WIDE + 2000}
    client.request("context:budget:update", {"projectId": here["projectId"], "profile": wide})
    full = _tokens(client, here, EVERYTHING)
    print("| skill | target | precise | everything | saved |\n|---|---|---|---|---|")
    for slug in SKILLS:
        made = _assemble(client, here, f"builtin:{slug}")
        precise = made["tokenCount"]
        saved = f"{100 * (1 - precise / full):.0f} %"
        print(f"| {slug} | {made['targetTokens']} | {precise} | {full} | {saved} |", flush=True)
    print()
    again = client.request("context:budget:get", {"projectId": here["projectId"]})
    narrow = again | {"contextWindowTokens": budget["contextWindowTokens"]}
    client.request("context:budget:update", {"projectId": here["projectId"], "profile": narrow})


def _cost(client: Client, here: dict[str, Any], answer: str) -> None:
    for slug in COSTED:
        payload = here | _selection(here) | {"skillId": f"builtin:{slug}"}
        assembly = _timer(client, "context:assemble", payload)
        run = _timer(client, "ai:skill:run", payload)
        streamed = _timer(client, "ai:skill:run", payload | {"stream": True})
        alone, whole, in_pieces = _medians((assembly, run, streamed))
        ratio = f"{whole / alone:.2f} ({1000 * whole:.1f} ms)"
        print(f"| {slug}: run ÷ assembly, {answer} | {ratio} | ≤ 1.2 |", flush=True)
        print(
            f"| {slug}: streamed run ÷ assembly, {answer} | {in_pieces / alone:.2f} | – |",
            flush=True,
        )


def _timer(client: Client, channel: str, payload: dict[str, Any]) -> Timer:
    def time_call(step: int) -> float:
        moved = payload | {"cursorPosition": payload["cursorPosition"] + step}
        started = time.perf_counter()
        client.request(channel, moved)
        return time.perf_counter() - started

    return time_call


def _medians(timers: Sequence[Timer]) -> list[float]:
    """Return the median of each timer; they take turns, so that no other load favours one of them."""
    taken: list[list[float]] = [[] for _ in timers]
    steps = itertools.count()
    for turn in range(ROUNDS):
        for shift in range(len(timers)):
            chosen = (turn + shift) % len(timers)
            taken[chosen].append(timers[chosen](next(steps)))
    return [statistics.median(times[3:]) for times in taken]


def _assemble(client: Client, here: dict[str, Any], skill_id: str) -> Any:
    chosen = _selection(here) if skill_id.removeprefix("builtin:") in ON_SELECTION else {}
    return client.request("context:assemble", here | chosen | {"skillId": skill_id})


def _selection(here: dict[str, Any]) -> dict[str, Any]:
    return {"selection": {"from": here["cursorPosition"] - 120, "to": here["cursorPosition"]}}


def _tokens(client: Client, here: dict[str, Any], skill_id: str) -> int:
    return _assemble(client, here, skill_id)["tokenCount"]


def _write_project(root: Path, text: str) -> str:
    parts = chapters(text)
    for number, chapter in enumerate(parts, start=1):
        write(root / f"chapters/{number:03}.md", chapter)
    tree = root / ".creonow"
    for number in range(8):
        write(tree / f"characters/人物{number:02}.md", text[number * 900 :][:160])
    for number in range(10):
        write(tree / f"settings/设定{number:02}.md", text[number * 4000 :][:200])
    write(tree / "settings/outline.md", "\n".join(part[:20] for part in parts[:40]))
    rules = [{"text": f"偏好{n}：动作场景用短句。", "confidence": 0.9} for n in range(20)]
    write(tree / "settings/memory.json", to_json({"version": 1, "rules": rules}))
    write(tree / "rules/style.md", "短句为主，少用成语，不用感叹号。\n" * 10)
    terms = [{"term": f"术语{n}", "avoid": [f"别名{n}"]} for n in range(20)]
    write(tree / "rules/terminology.json", to_json({"terms": terms}))
    items = [f"第{n}条：主角在第{n + 1}回之前不知道真相。" for n in range(12)]
    write(tree / "rules/constraints.json", to_json({"version": 1, "items": items}))
    return parts[41]
