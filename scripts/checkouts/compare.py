"""Prove that two checkouts answer alike: `scripts/compare REVISION_OR_FOLDER`."""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from scripts.checkouts.differences import NUMBERED, VOLATILE, compare, contract_change, table
from scripts.checkouts.novels import corpus_files, folder_files
from scripts.checkouts.record import Inputs, record
from scripts.checkouts.worlds import draw
from scripts.environment import ROOT, say


def main(argv: list[str]) -> int:
    """Record both, one after the other in the same folder, and compare."""
    arguments = _arguments(argv)
    with (
        tempfile.TemporaryDirectory(prefix="creonowd-compare-") as made,
        checkout_of(arguments.other, Path(made)) as other,
    ):
        say(f"{arguments.worlds} worlds are drawn …")
        inputs = Inputs(
            sample=folder_files(ROOT / "e2e" / "sample"),
            corpus=_corpus(arguments.corpus),
            worlds=draw((ROOT, other), arguments.worlds) if arguments.worlds else [],
            contract=ROOT / "protocol" / "openrpc.json",
            queries=arguments.queries,
            chapters=arguments.chapters,
        )
        home = Path(made) / "home"
        say("This checkout is asked …")
        ours = record(ROOT, inputs, home)
        say("The other one is asked …")
        theirs = record(other, inputs, home)
    sections = compare(ours, theirs)
    print(table(sections))
    print(contract_change(ours, theirs))
    print(f"Not compared: the fields {', '.join(sorted(VOLATILE))}.")
    print(f"Compared by order of appearance: ids, and the fields {', '.join(sorted(NUMBERED))}.")
    if not inputs.corpus:
        print(f"{arguments.corpus} was not found: the corpus was left out.")
    return int(any(section.differing for section in sections))


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/compare", description=__doc__)
    parser.add_argument("other", metavar="REVISION_OR_FOLDER")
    parser.add_argument(
        "--corpus", type=Path, default=ROOT.parent / "shared" / "corpus", metavar="FOLDER"
    )
    parser.add_argument("--worlds", type=int, default=300, metavar="COUNT")
    parser.add_argument("--queries", type=int, default=300, metavar="COUNT")
    parser.add_argument("--chapters", type=int, default=8, metavar="COUNT")
    return parser.parse_args(argv)


@contextmanager
def checkout_of(named: str, made: Path) -> Generator[Path]:
    """Give the folder of another checkout; a revision is unpacked for as long as it is needed."""
    if Path(named).is_dir():
        yield Path(named).resolve()
        return
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", named],
        stdout=subprocess.PIPE,
        check=False,
    )
    if archive.returncode:
        raise SystemExit(f"{named} is neither a folder nor a revision.")
    folder = made / "checkout"
    folder.mkdir()
    packed = made / "checkout.tar"
    packed.write_bytes(archive.stdout)
    shutil.unpack_archive(packed, folder)
    yield folder


def _corpus(folder: Path) -> dict[str, str]:
    return corpus_files(folder) if folder.is_dir() else {}


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
