"""Faults tried, faults survived, records lost (goal 0): kills by the thousand, then every other fault.

`scripts/bench faults [KILLS] [SEED]`. A kill is a SIGKILL at a touch of the disk or a moment that
chance picks, while a whole daemon answers a burst of writes of one kind; after it the
doctor is asked what happened, and the daemon is started again and asked for everything of that
kind that was ever acknowledged. A daemon that does not come back ends the bench with an error, so a
kill that has a row was survived. The default is a thousand kills, about seven minutes.
"""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Xml
from pathlib import Path
from typing import Any

USUAL_KILLS = 1008
COUNTED = ("inside", "told", "acknowledged")
STORIES = "e2e/test_faults.py"


def main(argv: list[str]) -> None:
    kills = int(argv[0]) if argv else USUAL_KILLS
    seed = argv[1] if len(argv) > 1 else "1"
    print(f"| fault (seed {seed}) | tried | while writing | survived | told by the doctor", end="")
    print(" | writes acknowledged | lost |\n|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as place:
        report = _killed(place, kills, seed)
        for kind, count in report["kills"].items():
            lost = len({one for one in report["lost"] if one.startswith(f"{kind} ")})
            inside, told, kept = (report[name].get(kind, 0) for name in COUNTED)
            print(f"| kill −9: {kind} | {count} | {inside} | {count} | {told} | {kept} | {lost} |")
        total = sum(report["kills"].values())
        inside, told, kept = (sum(report[name].values()) for name in COUNTED)
        lost = len(set(report["lost"]))
        print(f"| **kills together** | {total} | {inside} | {total} | {told} | {kept} | {lost} |")
        for name, passed in _stories(Path(place) / "stories.xml"):
            survived, lost = (1, "0") if passed else (0, "see the test")
            print(f"| {name} | 1 | – | {survived} | {survived} | – | {lost} |")


def _killed(place: str, kills: int, seed: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "testing.kills", place, str(kills), seed]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def _stories(report: Path) -> list[tuple[str, bool]]:
    """Run the other faults as the tests that they are; a skipped one was not tried."""
    others = ["-k", "not any_moment", "-q", f"--junit-xml={report}"]
    command = [sys.executable, "-m", "pytest", STORIES, *others]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)
    cases = Xml.parse(report).getroot().iter("testcase")
    return [
        (case.attrib["name"].removeprefix("test_").replace("_", " "), case.find("failure") is None)
        for case in cases
        if case.find("skipped") is None
    ]
