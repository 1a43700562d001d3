"""A daemon that starts loads what it serves with, and nothing that only some requests need."""

import subprocess
import sys

HEAVY = ("tiktoken", "websockets", "openai", "anthropic", "httpx", "playwright")
LATER = ("regex", "watchfiles", "sqlite3", "creonowd.channels")


def loaded_with(*modules: str) -> set[str]:
    script = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
        timeout=60,
    )
    return set(ran.stdout.split())


def test_the_first_sign_of_life_waits_for_no_feature() -> None:
    assert not loaded_with("creonowd.daemon.run") & {*HEAVY, *LATER}


def test_tokenizer_web_server_and_providers_are_loaded_only_when_needed() -> None:
    assert not loaded_with("creonowd.daemon.run", "creonowd.daemon.build") & {*HEAVY}
