"""How long redaction takes beside counting the same text's tokens, and how well it does.

How well is measured on ../shared/redaction/examples.jsonl, or on the file after `--score`, which
then is all that is measured; and on the held-out forms and texts of tests/redaction, which nobody
looks at when a rule is written.
"""

import base64
import random
from collections.abc import Callable
from pathlib import Path
from time import process_time

from creonowd.redaction import redact
from creonowd.tokens.tables import load_encoding, packaged_tables
from testing.corpus import chinese, english, origin
from testing.redaction_examples import (
    SETS,
    SHARED,
    harms,
    leaks,
    read_examples,
    read_forms,
    read_harmless,
    score,
)

SIZE = 300_000
ROUNDS = 5
PARAGRAPHS = 800

ADVERSARIAL = (
    "eyJ", "eyJaaaaaaaa.", "sk-", "AKIA", "ghp_", "password", "password=", "password: ", "token=token=",
    "key=", "密码：", "C:\\", "C:\\a\\", "/home/", "/home/a ", "file:///a ", "://a:b", "cookie: a=b;",
    "-----BEGIN PRIVATE KEY-----", "\\u94a5", "a\u200b", ".aaaaaa.", "sk-aB3xZ9kQ2mN7pL4rT8vW ",
    "password=Xy9k3Qz8\n", "C:\\Users\\li\\a.md ", "mnemonic: ", "a:b1@a.bc ", "Bo: password?\nMei: Xy9k3Qz8\n",
    "| a | password |\n|---|---|\n| b | Xy9k3Qz8 |\n", "sk-aB3xZ9kQ2mN7pL4rT8vW\naB3xZ9kQ2mN7pL4rT8vW\n",
    "code: 1234\n", "Password ..... ", "p a s s w o r d : …\n", "p a s s w o r d : x\n", "PIN 1234 ", "token: abc\n",
    "mot de passe: ", "recovery phrase: ", "密 码 ", "wifi code ", "desbloque 1234 ", "lower case ",
    "Passwort (neu) ", "code for the ", "user bob:x ", "a@b.example, ", "пароль от ", "0x",
    "passphrase:\n- walnut-NINETY-", "The token is below.\n```\n9d1c04be77a25f3380c6e1b2\n```\n", "user and password:\nbo\nTeasel!9\n",
    "復元フレーズ:\nひつじ ", "key — passphrase: aa bb cc dd ee\n", "电脑的密码：我家的猫叫豆包\n", "Q: passcode?\nA: 55-0192.\n",
)  # fmt: skip


def main(argv: list[str]) -> None:
    """Print the tables."""
    if "--score" in argv:
        print_scores(Path(argv[argv.index("--score") + 1]))
        return
    print_times()
    if SHARED.is_file():
        print()
        print_scores(SHARED)
    print()
    print_held_out()


def print_scores(path: Path) -> None:
    """Print one row per tier, and the ids of the examples that went wrong."""
    scores = score(read_examples(path))
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


def print_held_out() -> None:
    """Print what the held-out forms leak and which held-out texts, and prose, are changed."""
    forms = read_forms(SETS / "held_out_forms.txt")
    kept = [form for form in forms if harms([form])]
    harmless = [*read_harmless(SETS / "held_out_harmless.txt"), *paragraphs()]
    changed = [text for text in harmless if redact(text).text != text]
    gone = 1 - len(leaks(forms)) / len(forms)
    print("| held out | number | gone | text around a secret changed | texts changed |")
    print("|---|---|---|---|---|")
    print(f"| forms of secrets | {len(forms)} | {gone:.1%} | {len(kept) / len(forms):.1%} | – |")
    print(f"| texts without | {len(harmless)} | – | – | {len(changed) / len(harmless):.2%} |")


def paragraphs() -> list[str]:
    """Return paragraphs of both novels, from all over them."""
    both = (chinese().split("\n"), english().split("\n\n"))
    long = [[text for text in novel if len(text) > 40] for novel in both]
    return [text for novel in long for text in novel[:: max(1, len(novel) // PARAGRAPHS)]]


def print_times() -> None:
    """Print how long each text takes as a ratio to tiktoken, and how time grows with length."""
    count = load_encoding("o200k_base", packaged_tables()).encode_ordinary
    redact("warm up: password=Zq8Lw2Xv9")
    print(f"Texts: {origin()}, {SIZE // 1000} KB each.\n")
    print("| text | redaction / counting tokens | twice the text |")
    print("|---|---|---|")
    for name, text in texts().items():
        whole, half = _best(redact, text), _best(redact, text[: len(text) // 2])
        print(f"| {name} | {whole / _best(count, text):.2f} | × {whole / half:.1f} |")


def texts() -> dict[str, str]:
    """Make the texts by name; the adversarial ones repeat what rules look for."""
    both = chinese(), english()
    mixed = "".join(
        both[0][place : place + 200] + both[1][place : place + 200]
        for place in range(0, SIZE // 4, 200)
    )
    encoded = base64.b64encode(random.Random(7).randbytes(SIZE)).decode()
    hostile = {repr(piece)[1:-1].replace("|", "\\|"): piece * SIZE for piece in ADVERSARIAL}
    whole = {
        "Chinese prose": both[0],
        "mixed": mixed * 3,
        "English prose": both[1],
        "base64": encoded,
    }
    return {name: _cut(text) for name, text in (whole | hostile).items()}


def _cut(text: str) -> str:
    return text[:SIZE].encode()[:SIZE].decode(errors="ignore")


def _best(work: Callable[[str], object], text: str) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        begun = process_time()
        work(text)
        best = min(best, process_time() - begun)
    return best
