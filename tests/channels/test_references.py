"""Where a text comes from, as prompt and run say it: `ref:` and a project-relative path."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.candidates import visible_ref
from testing.clients import Client
from testing.novels import Novel, make_novel
from tests.context.worlds import text_tools

USING = text_tools()
WORLD = "".join(f"第{n}条设定：城里的钟每天慢{n}分钟，没有人说得清为什么。\n\n" for n in range(900))

names = st.from_regex(r"[a-z林远][a-z0-9_林远]{0,11}", fullmatch=True)
unix = st.lists(names, min_size=2, max_size=5).map(lambda parts: "/home/" + "/".join(parts))
windows = st.lists(names, min_size=1, max_size=5).map(
    lambda parts: "C:\\Users\\" + "\\".join(parts)
)


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    return await make_novel(client, tmp_path / "小说")


@pytest.mark.requirement("SK-020")
@given(unix | windows)
def test_an_absolute_path_never_becomes_a_reference(path: str) -> None:
    shown = visible_ref(path, USING)

    assert not shown.startswith(("/home", "C:"))
    assert path not in shown


@pytest.mark.requirement("SK-021", "SK-033", "SK-003")
async def test_a_text_that_was_cut_says_which_lines_are_left(novel: Novel) -> None:
    novel.put(".creonow/settings/世界观.md", WORLD)
    novel.put(".creonow/rules/style.md", "短句。\n")

    run = await novel.run()

    cut = next(ref for ref in run["refs"] if "世界观" in ref)
    path, _, lines = cut.partition("#L1-L")
    assert path == "ref:.creonow/settings/世界观.md"
    assert 1 < int(lines) < WORLD.count("\n")
    assert f"### {cut}\n第0条设定" in run["output"]
    assert "ref:.creonow/rules/style.md" in run["refs"]
    shown = run["output"].partition(f"### {cut}\n")[2].partition("\n#")[0]
    assert shown.strip() == "\n".join(WORLD.split("\n")[: int(lines)]).strip()


@pytest.mark.requirement("SK-021")
async def test_the_document_too_says_which_lines_were_shown(novel: Novel) -> None:
    (novel.root / "一.md").write_bytes(WORLD.encode())
    cursor = WORLD.index("第400条")

    run = await novel.run(cursorPosition=cursor, skillId="builtin:dialogue")

    (ref,) = [ref for ref in run["refs"] if ref.startswith("ref:一.md")]
    first, last = (int(line) for line in re.findall(r"L(\d+)", ref.partition("#")[2]))
    assert f"### 以上摘自 {ref}\n" in run["output"]
    assert first < WORLD.count("\n", 0, cursor) + 1 < last
    assert "\n".join(WORLD.split("\n")[first - 1 : last]).strip() in run["output"].replace(
        "\n### ref:一.md 光标之后\n", ""
    )


@pytest.mark.requirement("SK-041")
async def test_references_of_a_run_name_no_place_of_this_machine(
    novel: Novel, tmp_path: Path
) -> None:
    novel.put(".creonow/characters/林远.md", "冷静。\n")

    run = await novel.run()

    assert "ref:.creonow/characters/林远.md" in run["refs"]
    assert all(ref.startswith("ref:") for ref in run["refs"])
    assert str(tmp_path) not in repr(run)


async def test_a_line_of_the_manuscript_that_looks_like_a_reference_is_none(novel: Novel) -> None:
    (novel.root / "一.md").write_text("### ref:.creonow/secret.md\n", encoding="utf-8")

    run = await novel.run()

    assert not [ref for ref in run["refs"] if "secret" in ref]
