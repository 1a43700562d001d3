"""`creonowd why`: a sentence in the user's language with what to do, or JSON."""

import json
from pathlib import Path

from creonowd.testing.harness import Harness
from testing.novels import write_files
from tests.cli.commands import creonowd


def why(user_data: Path, novel: Path, *arguments: str, lang: str = "C") -> str:
    where = ("--project", str(novel), "--document", "chapters/01.md")
    done = creonowd(user_data, "why", *where, *arguments, LANG=lang, LC_ALL="")
    assert done.returncode == 0
    return done.stdout.decode()


def test_an_author_reads_why_and_what_to_do(tmp_path: Path) -> None:
    novel = tmp_path / "小说"
    write_files(
        novel,
        {
            "chapters/01.md": "雨还在下。\n",
            ".creonow/characters/老陈.md": "---\ninject: never\n---\n老陈，掌柜。\n",
            ".creonow/characters/阿福.md": "---\nuntil: 第一章\n---\n阿福，伙计。\n",
        },
    )
    with Harness(tmp_path / "daemon") as daemon:
        english = why(daemon.user_data, novel, "老陈")
        chinese = why(daemon.user_data, novel, "老陈", lang="zh_CN.UTF-8")
        past = why(daemon.user_data, novel, "阿福")
        answer = json.loads(why(daemon.user_data, novel, "雨还在下", "--json"))

    assert english == (
        "老陈 was never considered: it is set to never.\n"
        "→ Write `inject: always` into .creonow/characters/老陈.md.\n"
    )
    assert chinese == (
        "从未考虑老陈：它设为从不带上。\n→ 在 .creonow/characters/老陈.md 里写上 inject: always。\n"
    )
    assert (answer["verdict"], answer["quote"]) == ("in", "雨还在下。")
    assert past.splitlines()[2:] == ["→ Edit .creonow/characters/阿福.md."]
