"""The property tests' worlds as projects that a client could have: files, a host's text, a budget."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.checkouts.daemon import environment
from scripts.checkouts.novels import Files, constraint, constraints_file

DRAW = Path(__file__).with_name("draw.py")
DOCUMENT = "chapters/07.md"
SKILL = "world"

_RULES = (
    "user_preferences: true\n  style_guide: true\n  characters: true\n  outline: true\n"
    "  knowledge_graph: true\n  retrieval: true"
)


@dataclass(frozen=True)
class World:
    """A project, what a host adds to it, and where its author is."""

    files: Files
    chunks: dict[str, list[dict[str, Any]]]
    text: str
    position: dict[str, Any]
    budget: dict[str, Any]


def draw(checkouts: tuple[Path, ...], count: int) -> list[World]:
    """Draw worlds in the first checkout whose property tests can be read; all are asked the same.

    They become files and messages, so that no checkout has to know the classes of the other.
    """
    problems: list[str] = []
    for checkout in checkouts:
        ran = subprocess.run(
            [sys.executable, str(DRAW), str(checkout), str(count)],
            env=environment(checkout),
            cwd=checkout,
            capture_output=True,
            check=False,
        )
        try:
            if ran.returncode == 0:
                return [_world(drawn) for drawn in json.loads(ran.stdout)]
            problems.append(f"{checkout}: {ran.stderr.decode()[-2000:]}")
        except KeyError as error:
            problems.append(f"{checkout}: a world has no field {error}; see {Path(__file__).name}")
    raise SystemExit("No worlds could be drawn.\n" + "\n".join(problems))


def _world(drawn: dict[str, Any]) -> World:
    selection = drawn["selection"]
    position: dict[str, Any] = {
        "documentId": DOCUMENT,
        "cursorPosition": drawn["cursor"],
        "skillId": f"project:{SKILL}",
        "additionalInput": drawn["additional_input"],
        "selection": selection and {"from": selection[0], "to": selection[1]},
    }
    profile = drawn["profile"]
    layers = {
        name: {"ratio": layer["ratio"], "minimumTokens": layer["minimum_tokens"]}
        for name, layer in profile["layers"].items()
    }
    return World(
        files=_rules(drawn["rules"]) | _settings(drawn["settings"]) | _skill(drawn),
        chunks={
            "retrieved": [_chunk(fragment) for fragment in drawn["retrieved"]],
            "immediate": [_chunk(fragment) for fragment in drawn["notes"]],
        },
        text=drawn["text"],
        position=position,
        budget={"totalBudgetTokens": profile["total_budget_tokens"], "layers": layers},
    )


def _rules(fragments: list[dict[str, Any]]) -> Files:
    files: Files = {}
    items: list[dict[str, object]] = []
    for number, fragment in enumerate(fragments):
        if fragment["kind"] == "constraint":
            one = constraint(
                number,
                fragment["text"],
                fragment["origin"],
                fragment["priority"],
                degradable=fragment["degradable"],
            )
            items.append(one)
        elif fragment["names"]:
            front = f"---\nname: {fragment['names'][0]}\ntype: character\n---\n"
            files[f".creonow/characters/{number}.md"] = front + fragment["text"]
        else:
            files[f".creonow/rules/{number}.md"] = fragment["text"]
    return files | {".creonow/rules/constraints.json": constraints_file(items)}


def _settings(fragments: list[dict[str, Any]]) -> Files:
    files: Files = {}
    for number, fragment in enumerate(fragments):
        name, confidence, text = (
            f".creonow/settings/{number}",
            fragment["confidence"],
            fragment["text"],
        )
        if fragment["whole"]:
            held = {"confidence": confidence, "text": text}
            files[f"{name}.json"] = json.dumps(held, ensure_ascii=False)
        else:
            files[f"{name}.md"] = f"---\nconfidence: {confidence}\n---\n{text}"
    return files


def _skill(drawn: dict[str, Any]) -> Files:
    """Write the world's skill; a world without `surrounding` and task has none, and asks for all."""
    if drawn["surrounding"] is None and not drawn["task"]:
        return {}
    text = (
        f"---\nname: World\ndescription: a made-up skill\ncontext_rules:\n"
        f"  surrounding: {drawn['surrounding'] or 0}\n  {_RULES}\n"
        f"prompt:\n  system: {json.dumps('写作。')}\n  user: {json.dumps(drawn['task'])}\n---\n"
    )
    return {f".creonow/skills/{SKILL}/SKILL.md": text}


def _chunk(fragment: dict[str, Any]) -> dict[str, Any]:
    return {
        "source": fragment["source_ref"],
        "content": fragment["text"],
        "score": fragment["score"],
    }
