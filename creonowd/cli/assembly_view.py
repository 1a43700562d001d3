"""An assembly as text for a terminal: bars, what happened to whom, hashes. Pure."""

import difflib
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from creonowd.cli.last_assembly import Remembered
from creonowd.errors import WARNINGS

WIDTH = 28
LAYERS = ("rules", "settings", "retrieved", "immediate")

_MARKS = {"kept": "✓", "trimmed": "✂", "dropped": "✗"}
_COLOURS = {"kept": "32", "trimmed": "33", "dropped": "31"}

Told = dict[str, Any]


def view(result: Told, budget: Told, *, colour: bool = False) -> str:
    """Draw the layers, the fate of every candidate and the hashes."""
    lines = [
        *_bars(result, budget),
        "",
        *_fates(result["trimEvidence"], colour=colour),
        *(f"! {_spelled(warning)}" for warning in result["warnings"]),
        *_redactions(result["redactionEvidence"]),
        "",
        *_hashes(result),
    ]
    return "\n".join(lines) + "\n"


def differences(before: Remembered | None, result: Told) -> str:
    """Tell line by line what changed in the prompt since the last call."""
    if before is None:
        return "There is no earlier call to compare with.\n"
    if before.prompt_hash == result["promptHash"]:
        return f"The prompt is the same as last time ({result['tokenCount']} tokens).\n"
    changed = difflib.unified_diff(
        before.prompt.splitlines(),
        result["prompt"].splitlines(),
        f"last ({before.token_count} tokens)",
        f"now ({result['tokenCount']} tokens)",
        lineterm="",
        n=1,
    )
    return "\n".join(changed) + "\n"


def _bars(result: Told, budget: Told) -> Iterator[str]:
    total = result["budget"]["maxInputTokens"]
    for layer in LAYERS:
        told = result["layers"][layer]
        wanted = result["budget"]["estimate"][f"{layer}Tokens"]
        minimum = budget["layers"][layer]["minimumTokens"]
        cut = "  cut" if told["truncated"] else ""
        yield (
            f"{layer:<10} {_bar(told['tokens'], total)} {told['tokens']:>6} tokens"
            f"  of {wanted} offered, {minimum} promised{cut}"
        )
    yield f"{'template':<10} {_bar(result['fixedTokens'], total)} {result['fixedTokens']:>6} tokens"
    exact = "" if result["tokenizerExact"] else ", not the model's own"
    yield (
        f"{'total':<10} {_bar(result['tokenCount'], total)} {result['tokenCount']:>6} tokens"
        f"  of {total} ({result['tokenizerId']}{exact})"
    )


def _bar(tokens: int, total: int) -> str:
    full = min(WIDTH, round(WIDTH * tokens / max(1, total)))
    return "█" * full + "░" * (WIDTH - full)


def _fates(evidence: Sequence[Told], *, colour: bool) -> Iterator[str]:
    """Tell one line per candidate; what was kept of one file is told together."""
    for (layer, file, action, rule), group in groupby(evidence, key=_alike):
        entries = list(group)
        before = sum(entry["beforeTokens"] for entry in entries)
        after = sum(entry["afterTokens"] for entry in entries)
        shown = entries[0]["sourceRef"] if len(entries) == 1 else f"{file} × {len(entries)}"
        tokens = f"{after}" if action == "kept" else f"{before}→{after}"
        reason = "" if action == "kept" else f"  {entries[0]['reason']}, {rule}"
        mark = _painted(_MARKS[action], _COLOURS[action]) if colour else _MARKS[action]
        yield f"{mark} {layer:<10} {tokens:>12}  {shown}{reason}"


def _alike(entry: Told) -> tuple[str, str, str, str]:
    file = entry["sourceRef"].partition("#")[0]
    return (entry["layer"], file, entry["action"], entry["rule"])


def _spelled(warning: str) -> str:
    """Say what a warning means, and what it says beyond that."""
    code, _, said = warning.partition(": ")
    meaning = next((known for name, known in WARNINGS.items() if name == code), None)
    if meaning is None:
        return warning
    more = "" if said in {"", meaning.chinese} else f" ({said})"
    return f"{code}: {meaning.english}{more}"


def _redactions(evidence: Sequence[Told]) -> Iterator[str]:
    for found in evidence:
        yield f"* {found['matchCount']} × {found['patternId']} taken out of {found['sourceRef']}"


def _hashes(result: Told) -> Iterator[str]:
    state = "unchanged" if result["stablePrefixUnchanged"] else "new"
    change = result.get("prefixChange")
    if change is not None:
        state = f"changed: {change['sourceRef']} was {change['change']}"
    yield f"stable prefix  {result['stablePrefixHash']}  {state}"
    yield f"prompt         {result['promptHash']}"


def _painted(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"
