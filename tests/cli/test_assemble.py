"""`creonowd assemble` as a person and as a script would use it."""

import json
import os
import re
import subprocess
from collections.abc import Generator
from hashlib import sha256
from pathlib import Path

import pytest

from creonowd.cli.assemble import LastAssembly, StoredAssembly, differences, view
from creonowd.testing.harness import Harness
from testing.novels import write_files
from tests.cli.commands import creonowd, creonowd_process

CHAPTER = "第一章\n\n雨还在下。\n"


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    root = tmp_path / "小说 一"
    settings = "---\nconfidence: 0.2\n---\n" + "海港的设定，一条又一条。\n" * 900
    write_files(
        root,
        {
            ".creonow/rules/style.md": "短句为主。",
            ".creonow/settings/世界观.md": settings,
            "chapters/01.md": CHAPTER,
        },
    )
    return root


@pytest.fixture(scope="module")
def user_data(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """That of a daemon which is running already: to start one takes five times as long as a command."""
    with Harness(tmp_path_factory.mktemp("daemon")) as daemon:
        yield daemon.user_data


def run(
    user_data: Path, novel: Path, *arguments: str, lang: str = "C"
) -> "subprocess.CompletedProcess[str]":
    where = ["--project", str(novel), "--document", "chapters/01.md"]
    done = creonowd(user_data, "assemble", *where, *arguments, LANG=lang, LC_ALL="")
    return subprocess.CompletedProcess(
        done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
    )


def test_a_person_sees_bars_decisions_and_hashes(tmp_path: Path, novel: Path) -> None:
    """No daemon runs there; the command starts one for itself."""
    done = run(tmp_path / "用户", novel)

    assert done.returncode == 0, done.stderr
    assert "█" in done.stdout
    assert "✓ rules" in done.stdout
    assert "✂ settings" in done.stdout
    assert "over_budget, settings_share" in done.stdout
    assert "stable prefix  " in done.stdout
    assert "too short" not in done.stdout
    assert "SKILL_UNKNOWN" not in done.stdout
    assert "CLAMPED" not in done.stdout


def test_a_prefix_that_no_provider_caches_is_called_too_short(user_data: Path, novel: Path) -> None:
    for path in (novel / ".creonow" / "settings").rglob("*.*"):
        path.unlink()

    done = run(user_data, novel)

    said = r"stable prefix  \w{64}  new; too short to be cached \(\d+ of 1024\)"
    assert re.search(said, done.stdout), done.stdout


def test_a_script_gets_the_whole_result(user_data: Path, novel: Path) -> None:
    done = run(
        user_data, novel, "--json", "--cursor", "4", "--input", "写紧张些。", "--model", "gpt-4"
    )

    result = json.loads(done.stdout)
    assert result["tokenizerId"] == "cl100k_base"
    assert "写紧张些。" in result["userContent"]
    assert "光标之后" in result["userContent"]


def test_diff_shows_what_changed_since_the_last_call(user_data: Path, novel: Path) -> None:
    first = run(user_data, novel, "--diff")
    same = run(user_data, novel, "--diff")
    (novel / "chapters/01.md").write_text(CHAPTER + "她来了。\n", encoding="utf-8")
    changed = run(user_data, novel, "--diff")

    assert "no earlier call" in first.stdout
    assert "the same as last time" in same.stdout
    assert "+她来了。" in changed.stdout
    assert "短句为主" not in changed.stdout


def test_a_document_outside_the_project_is_refused_in_words(
    user_data: Path, tmp_path: Path, novel: Path
) -> None:
    outside = tmp_path / "else.md"
    outside.write_text("x", encoding="utf-8")

    done = run(user_data, novel, "--document", str(outside))

    assert done.returncode == 1
    assert "outside the project" in done.stderr
    assert not done.stdout


def test_a_project_that_is_not_there_is_refused_in_words(
    user_data: Path, tmp_path: Path, novel: Path
) -> None:
    done = run(user_data, novel, "--project", str(tmp_path / "nowhere"))

    assert done.returncode == 1
    assert "does not exist" in done.stderr


def test_the_prompt_is_printed_byte_for_byte(user_data: Path, novel: Path) -> None:
    (novel / "chapters/01.md").write_bytes(f"{CHAPTER}😀 𠮷\r\n".encode())
    whole = json.loads(run(user_data, novel, "--json").stdout)

    where = ("--project", str(novel), "--document", "chapters/01.md", "--prompt")
    done = creonowd_process(user_data, "assemble", *where)

    assert done.stdout == whole["prompt"].encode()
    assert sha256(done.stdout).hexdigest() == whole["promptHash"]


@pytest.mark.parametrize(
    ("document", "suggestion"),
    [
        ("nope.md", None),
        ("chapters/1.md", "chapters/01.md"),
        ("01.md", "chapters/01.md"),
        ("chapters", "chapters/01.md"),
        ("", None),
    ],
)
def test_a_document_that_is_not_there_fails_with_a_suggestion(
    user_data: Path, novel: Path, document: str, suggestion: str | None
) -> None:
    done = run(user_data, novel, "--no-wait", "--document", document)

    assert done.returncode == 1
    assert not done.stdout
    assert ("Did you mean" in done.stderr) is (suggestion is not None)
    if suggestion is not None:
        assert f"Did you mean {suggestion}?" in done.stderr


@pytest.mark.parametrize(
    ("lang", "advice"),
    [
        ("en_GB.UTF-8", "Did you mean builtin:continue?"),
        ("zh_CN.UTF-8", "您要的是 builtin:continue 吗？"),
    ],
)
def test_a_misspelt_skill_gets_a_suggestion_in_one_language(
    user_data: Path, novel: Path, lang: str, advice: str
) -> None:
    done = run(user_data, novel, "--no-wait", "--skill", "builtin:contineu", lang=lang)

    assert done.returncode == 1
    assert not done.stdout
    assert advice in done.stderr
    assert ("skill" in done.stderr) is lang.startswith("en")


def test_it_waits_for_the_index_unless_asked_not_to(user_data: Path, novel: Path) -> None:
    for number in range(2, 400):
        write_files(novel, {f"chapters/{number:03}.md": f"第{number}章\n\n雨还在下。\n" * 40})

    waited = run(user_data, novel, "--json")

    codes = [notice["code"] for notice in json.loads(waited.stdout)["notices"]]
    assert "RETRIEVAL_INDEXING" not in codes
    assert "Waiting" not in waited.stderr


def test_a_damaged_memory_of_the_last_call_is_no_obstacle(tmp_path: Path) -> None:
    last = LastAssembly(tmp_path, ("a", "b"))
    last.write({"prompt": "x", "promptHash": "h", "tokenCount": 1})
    (file,) = (tmp_path / "assemble").iterdir()

    kept = last.read()
    damaged: list[StoredAssembly | None] = []
    for data in (b"{", b'{"\xff":1}', b'{"a":' + b"[" * 200_000):
        file.write_bytes(data)
        damaged.append(last.read())

    assert kept == StoredAssembly(version=1, prompt="x", prompt_hash="h", token_count=1)
    assert damaged == [None, None, None]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_no_pipe_in_the_place_of_the_last_call_is_waited_for(tmp_path: Path) -> None:
    last = LastAssembly(tmp_path, ("a", "b"))
    last.write({"prompt": "x", "promptHash": "h", "tokenCount": 1})
    (file,) = (tmp_path / "assemble").iterdir()
    file.unlink()
    os.mkfifo(file)

    assert last.read() is None


def test_a_changed_prefix_says_which_source_changed() -> None:
    result = {
        "budget": {"maxInputTokens": 100, "estimate": dict.fromkeys(_ESTIMATES, 1)},
        "layers": {name: {"tokens": 1, "truncated": False} for name in _LAYERS},
        "fixedTokens": 1,
        "tokenCount": 5,
        "tokenizerId": "o200k_base",
        "tokenizerExact": False,
        "trimEvidence": [],
        "notices": [{"code": "RULES_UNAVAILABLE", "message": "x: it is no valid JSON"}],
        "redactionEvidence": [{"matchCount": 2, "patternId": "jwt", "sourceRef": "style.md"}],
        "stablePrefixUnchanged": False,
        "prefixChange": {"sourceRef": "style.md", "change": "changed"},
        "stablePrefixHash": "s",
        "promptHash": "p",
        "prompt": "new",
    }
    budget = {"layers": {name: {"minimumTokens": 0} for name in _LAYERS}}

    shown = view(result, budget, colour=True)

    assert "changed: style.md was changed" in shown
    assert "not the model's own" in shown
    assert "2 × jwt taken out of style.md" in shown
    assert "! RULES_UNAVAILABLE: x: it is no valid JSON\n" in shown
    assert "2 × jwt 已从 style.md 中隐去" in view(result, budget, chinese=True)
    before = StoredAssembly(version=1, prompt="old", prompt_hash="o", token_count=4)
    assert "-old\n+new" in differences(before, result)


_LAYERS = ("rules", "settings", "retrieved", "immediate")
_ESTIMATES = tuple(f"{name}Tokens" for name in _LAYERS)
