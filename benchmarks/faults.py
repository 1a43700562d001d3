"""Faults tried, survived, and records lost (goal 0): kills by the thousand, then every other fault.

`scripts/bench faults [KILLS] [SEED]`. A kill is a SIGKILL at a random disk operation or moment, while
a whole daemon answers a burst of writes of one kind. After it the doctor is run, the daemon is
started again, and everything of that kind that was ever acknowledged is read. A daemon that does not
come back ends the benchmark with an error. The default is a thousand kills, about seven minutes.
"""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

USUAL_KILLS = 1008
STORIES = "e2e/test_faults.py"


def main(argv: list[str]) -> None:
    """Print a table of kills and one of the other faults."""
    kills = int(argv[0]) if argv else USUAL_KILLS
    seed = argv[1] if len(argv) > 1 else "1"
    with tempfile.TemporaryDirectory() as folder:
        _print_kills(_kill(folder, kills, seed), seed)
        _print_other_faults(_other_faults(Path(folder) / "stories.xml"))


def _print_kills(report: dict[str, Any], seed: str) -> None:
    print(
        f"| kill −9 during (seed {seed}) | kills | before all were answered | survived "
        "| reported by the doctor | writes acknowledged | lost |\n|---|---|---|---|---|---|---|"
    )
    for kind, kills in report["kills"].items():
        lost = len({one for one in report["lost"] if one.startswith(f"{kind} ")})
        inside, reported, acknowledged = (
            report[name].get(kind, 0) for name in ("inside", "reported", "acknowledged")
        )
        print(f"| {kind} | {kills} | {inside} | {kills} | {reported} | {acknowledged} | {lost} |")
    kills, inside, reported, acknowledged = (
        sum(report[name].values()) for name in ("kills", "inside", "reported", "acknowledged")
    )
    lost = len(set(report["lost"]))
    totals = f"{kills} | {inside} | {kills} | {reported} | {acknowledged} | {lost}"
    print(f"| **together** | {totals} |", flush=True)


def _print_other_faults(stories: list[tuple[str, bool]]) -> None:
    print("\n| other faults | survived, nothing lost |\n|---|---|")
    for name, passed in stories:
        print(f"| {name} | {'yes' if passed else 'NO, see the test'} |")
    survived = sum(passed for _, passed in stories)
    print(f"| **together** | {survived} of {len(stories)} |")


def _kill(folder: str, kills: int, seed: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "testing.kills", folder, str(kills), seed]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def _other_faults(report: Path) -> list[tuple[str, bool]]:
    """Run the end-to-end tests of the other faults; a skipped one was not tried."""
    others = ["-k", "not any_moment", "-q", f"--junit-xml={report}"]
    command = [sys.executable, "-m", "pytest", STORIES, *others]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    cases = Xml.parse(report).getroot().iter("testcase")
    return [
        (
            case.attrib["name"].removeprefix("test_").replace("_", " "),
            case.find("failure") is None and case.find("error") is None,
        )
        for case in cases
        if case.find("skipped") is None
    ]
