"""The same work through four contestants and a daemon, in one run.

Two hundred scored chunks, half English, half Chinese, and a manuscript that grows by a sentence
in each of thirty turns are fitted into 8k, 32k and 60k tokens. Everyone counts with `o200k_base`
from our packaged table, loaded beforehand. Cold is the first turn of a fresh start, warm the
median of the others; what was real is counted here, from the prompts. Reuse is measured twice:
with the chunks, and with a story longer than the budget that grows by a passage each turn.
`--quick` takes one budget.
"""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from creonowd.model import Model
from creonowd.tokens.tables import packaged_encoding
from scripts.benchmarks.beside import installing
from scripts.benchmarks.beside.material import work as make_work
from scripts.benchmarks.beside.ours import Daemon, Engine
from scripts.benchmarks.beside.walk import Told, Work, walk
from scripts.benchmarks.novel.project import CORPUS
from scripts.benchmarks.novel.writing import common_prefix

HERE = Path(__file__).resolve().parent / "beside"
HEAD = (
    "budget",
    "who",
    "cold ms",
    "warm ms",
    "tokenised ÷ input",
    "reported − real",
    "fill",
    "bytes reused",
    "of a long story",
    "dropped and named",
)


class Walked(Model):
    """What one contestant did with one budget."""

    budget: int
    cold: float
    warm: float
    tokenised: float
    told: list[Told]
    stories: list[str]


def main(argv: list[str]) -> None:
    """Let everyone do the work, then print them beside each other."""
    work = make_work()
    if "--quick" in argv:
        work = work._replace(budgets=work.budgets[:1])
    print(f"texts: {'corpus' if CORPUS.is_dir() else 'made up'}; {_size(work)}\n")
    everyone = list(_everyone(work))
    print(f"| {' | '.join(HEAD)} |\n|" + "---|" * len(HEAD))
    for number, budget in enumerate(work.budgets):
        for name, walked in everyone:
            if walked is None:
                print(f"| {budget} | {name} | could not be installed or run |" + " – |" * 7)
            else:
                print(_row(work, name, walked[number]))


def _size(work: Work) -> str:
    count = packaged_encoding("o200k_base").encode_ordinary
    chunks = sum(len(count(chunk.text)) for chunk in work.chunks)
    ends = [len(count(text)) for text in (work.manuscripts[0], work.manuscripts[-1])]
    return f"{chunks} tokens in {len(work.chunks)} chunks, a manuscript of {ends[0]} to {ends[1]}"


def _everyone(work: Work) -> Iterator[tuple[str, list[Walked] | None]]:
    yield "creonowd, the engine", _ours(work, Engine)
    yield "creonowd, the daemon", _ours(work, Daemon)
    with tempfile.TemporaryDirectory() as folder:
        given, table = Path(folder) / "work.json", installing.tables()
        given.write_bytes(msgspec.json.encode(list(work)))
        modules, python = installing.node_modules(), installing.python()
        tsx = ["node", str(HERE / "prompt_tsx.mjs"), str(modules), str(table)]
        yield "@vscode/prompt-tsx", modules and _peer(tsx, given)
        for name, module in (("LangChain", "langchain_trim"), ("LlamaIndex", "llama_pack")):
            command = [str(python), "-m", f"scripts.benchmarks.beside.{module}"]
            yield name, python and _peer(command, given)


def _ours(work: Work, make: type[Engine] | type[Daemon]) -> list[Walked]:
    made: list[Engine | Daemon] = []

    def fresh(budget: int) -> Engine | Daemon:
        if made:
            made.pop().close()
        made.append(make(work, budget))
        return made[0]

    try:
        return msgspec.convert(walk(work, fresh), list[Walked])
    finally:
        made.pop().close()


def _peer(command: list[str], given: Path) -> list[Walked] | None:
    output = given.with_name("told.json")
    environment = os.environ | {"TIKTOKEN_CACHE_DIR": str(installing.BENCH / "tables")}
    output.unlink(missing_ok=True)
    subprocess.run(
        [*command, str(given), str(output)], cwd=installing.ROOT, env=environment, check=False
    )
    if not output.exists():
        return None
    return msgspec.json.decode(output.read_bytes(), type=list[Walked])


def _row(work: Work, name: str, walked: Walked) -> str:
    real = [_count(told.prompt) for told in walked.told]
    fill = sum(real) / len(real) / walked.budget
    over = sum(count > walked.budget for count in real)
    tokenised = f"{walked.tokenised:.3f}" if walked.tokenised else "as the engine"
    cells = (
        f"{walked.budget}",
        name,
        f"{walked.cold:.1f}",
        f"{walked.warm:.2f}",
        tokenised,
        _exactness(walked.told, real),
        f"{fill:.1%}" + (f", {over} turns over" if over else ""),
        f"{_reused([told.prompt for told in walked.told]):.1%}",
        f"{_reused(walked.stories):.1%}",
        _evidence(work, walked.told[-1]),
    )
    return f"| {' | '.join(cells)} |"


def _count(text: str) -> int:
    return len(packaged_encoding("o200k_base").encode_ordinary(text))


def _exactness(told: list[Told], real: list[int]) -> str:
    pairs = zip(told, real, strict=True)
    off = [each.reported - count for each, count in pairs if each.reported is not None]
    if not off:
        return "tells none"
    return "0" if not any(off) else f"{min(off):+} to {max(off):+}"


def _reused(texts: list[str]) -> float:
    prompts = [text.encode() for text in texts]
    shared = sum(map(common_prefix, prompts, prompts[1:]))
    return shared / sum(map(len, prompts[1:]))


def _evidence(work: Work, told: Told) -> str:
    missing = {chunk.id for chunk in work.chunks if chunk.text.strip() not in told.prompt}
    named = missing & set(told.dropped or ())
    return f"{len(named)} of {len(missing)}"
