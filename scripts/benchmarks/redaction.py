"""How well redaction does on a labelled file."""

import json
from collections import Counter
from pathlib import Path

from creonowd.redaction import redact


def score(path: Path) -> None:
    """Print recall, harm and prose loss per tier, after everything that went wrong."""
    tally: dict[str, Counter[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        output = redact(row["text"]).text
        survived = [secret for secret in row["must_redact"] if secret in output]
        harmed = [kept for kept in row["must_keep"] if kept not in output]
        changed = not row["must_redact"] and output != row["text"]
        if survived or harmed or changed:
            print(row["id"], repr(row["text"]), repr(output), survived, harmed)
        tally.setdefault(row["tier"], Counter()).update(
            secrets=len(row["must_redact"]),
            survived=len(survived),
            kept=len(row["must_keep"]),
            harmed=len(harmed),
            clean=int(not row["must_redact"]),
            changed=int(changed),
        )
    for tier, counts in sorted(tally.items()):
        print(tier, dict(counts))


def main(argv: list[str]) -> None:
    """Score the file behind `--score`."""
    score(Path(argv[argv.index("--score") + 1]))
