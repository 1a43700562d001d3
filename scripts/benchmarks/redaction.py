"""How long redaction takes beside counting the same text's tokens; `--score FILE`: how well it does.

The prose is that of `../shared/corpus`, or made up where that is not at hand; the table says which.
"""

import base64
import random
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from time import process_time

import msgspec

from creonowd.model import Model
from creonowd.redaction import redact
from creonowd.tokens.tables import load_encoding, packaged_tables

SIZE = 300_000
ROUNDS = 5
CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"

ADVERSARIAL = (
    "eyJ", "eyJaaaaaaaa.", "sk-", "AKIA", "ghp_", "password", "password=", "password: ", "token=token=",
    "key=", "密码：", "C:\\", "C:\\a\\", "/home/", "/home/a ", "file:///a ", "://a:b", "cookie: a=b;",
    "-----BEGIN PRIVATE KEY-----", "\\u94a5", "a\u200b", ".aaaaaa.", "sk-aB3xZ9kQ2mN7pL4rT8vW ",
    "password=Xy9k3Qz8\n", "C:\\Users\\li\\a.md ",
)  # fmt: skip


class Example(Model, rename=None):
    """A labelled text: what may not survive, and what may not be harmed."""

    id: str
    tier: str
    text: str
    must_redact: tuple[str, ...] = ()
    must_keep: tuple[str, ...] = ()


class Score(Model):
    """What came of one tier's examples."""

    secrets: int = 0
    survived: tuple[str, ...] = ()
    kept: int = 0
    harmed: tuple[str, ...] = ()
    clean: int = 0
    changed: tuple[str, ...] = ()

    @property
    def recall(self) -> float:
        """Of what must go, the share that is gone."""
        return 1 - len(self.survived) / max(1, self.secrets)

    @property
    def harm(self) -> float:
        """Of what must stay, the share that is harmed."""
        return len(self.harmed) / max(1, self.kept)

    @property
    def loss(self) -> float:
        """Of the texts without a secret, the share that changed at all."""
        return len(self.changed) / max(1, self.clean)


def main(argv: list[str]) -> None:
    """Measure, or score the file behind `--score`."""
    if "--score" in argv:
        print_scores(score(read_examples(Path(argv[argv.index("--score") + 1]))))
    else:
        print_times()


def read_examples(path: Path) -> list[Example]:
    """Read one example per line."""
    decode = msgspec.json.Decoder(Example).decode
    return [decode(line) for line in path.read_bytes().splitlines() if line.strip()]


def score(
    examples: Iterable[Example], redacting: Callable[[str], str] = lambda text: redact(text).text
) -> dict[str, Score]:
    """Redact every example and add up what went wrong, by tier."""
    scores: dict[str, Score] = {}
    for example in examples:
        scores[example.tier] = _added(
            scores.get(example.tier, Score()), example, redacting(example.text)
        )
    return dict(sorted(scores.items()))


def _added(so_far: Score, example: Example, output: str) -> Score:
    survived = [example.id for secret in example.must_redact if secret in output]
    harmed = [example.id for kept in example.must_keep if kept not in output]
    changed = [example.id] if not example.must_redact and output != example.text else []
    return Score(
        secrets=so_far.secrets + len(example.must_redact),
        survived=(*so_far.survived, *survived),
        kept=so_far.kept + len(example.must_keep),
        harmed=(*so_far.harmed, *harmed),
        clean=so_far.clean + (not example.must_redact),
        changed=(*so_far.changed, *changed),
    )


def print_scores(scores: Mapping[str, Score]) -> None:
    """Print one row per tier, and the ids of what went wrong."""
    print("| tier | secrets | recall | kept | harm | without secrets | changed |")
    print("|---|---|---|---|---|---|---|")
    for tier, result in scores.items():
        print(
            f"| {tier} | {result.secrets} | {result.recall:.2%} | {result.kept} | {result.harm:.2%}"
            f" | {result.clean} | {result.loss:.2%} |"
        )
    for result in scores.values():
        for what in ("survived", "harmed", "changed"):
            if getattr(result, what):
                print(f"\n{what}: {', '.join(getattr(result, what))}")


def print_times() -> None:
    """Print how long each text takes as a ratio to tiktoken, and how time grows with length."""
    count = load_encoding("o200k_base", packaged_tables()).encode_ordinary
    redact("warm up: password=Zq8Lw2Xv9")
    print(
        f"{SIZE // 1000} KB each; prose from {'../shared/corpus' if CORPUS.exists() else 'chance'}.\n"
    )
    print("| text | redaction / counting tokens | twice the text |")
    print("|---|---|---|")
    for name, text in texts().items():
        whole, half = _best(redact, text), _best(redact, text[: len(text) // 2])
        print(f"| {name} | {whole / _best(count, text):.2f} | × {whole / half:.1f} |")


def texts() -> dict[str, str]:
    """Make the texts; the adversarial ones repeat what rules look for."""
    chinese = _prose("hongloumeng.txt", "雨停了他没有回头她把灯吹灭江面结冰，。“”")
    english = _prose("pride-and-prejudice.txt", "the rain had stopped and he did not look back, .")
    mixed = "".join(
        chinese[place : place + 200] + english[place : place + 200]
        for place in range(0, SIZE // 4, 200)
    )
    encoded = base64.b64encode(random.Random(7).randbytes(SIZE)).decode()
    hostile = {repr(piece)[1:-1].replace("|", "\\|"): piece * SIZE for piece in ADVERSARIAL}
    whole = {
        "Chinese prose": chinese,
        "mixed": mixed * 3,
        "English prose": english,
        "base64": encoded,
    }
    return {name: _cut(text) for name, text in (whole | hostile).items()}


def _prose(name: str, letters: str) -> str:
    path = CORPUS / name
    if path.exists():
        return path.read_text(encoding="utf-8")
    return "".join(random.Random(7).choices(letters, k=SIZE))


def _cut(text: str) -> str:
    return text[:SIZE].encode()[:SIZE].decode(errors="ignore")


def _best(work: Callable[[str], object], text: str) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begun = process_time()
        work(text)
        best = min(best, process_time() - begun)
    return best
