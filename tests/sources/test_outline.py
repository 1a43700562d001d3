import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.fragment import Span
from creonowd.context.plan import Ask, Document
from creonowd.sources.outline import NEAR, HeadingsSource, outline

NOVEL = "# 红楼\n序。\n\n## 第一回 甄士隐\n正文。\n\n## 第二回 贾夫人\n正文。\n\n### 葬花\n正文。\n"


def at(text: str, cursor: int) -> Document:
    return Document(source_ref="章/一.md", text=text, cursor=cursor)


def test_the_heading_above_the_cursor_is_marked() -> None:
    assert outline(at(NOVEL, NOVEL.index("贾夫人") + 8)) == (
        "- 红楼\n  - 第一回 甄士隐\n  → 第二回 贾夫人\n    - 葬花"
    )


def test_before_the_first_heading_nothing_is_marked() -> None:
    assert outline(at("引子\n# 一\n", 1)) == "- 一"


def test_chapters_of_plain_text_are_headings() -> None:
    text = "第一回 甄士隐梦幻\r\n\r\n正文。\r\n第二回 贾夫人\r\n正文。\r\n"

    assert outline(at(text, len(text))) == "- 第一回 甄士隐梦幻\n→ 第二回 贾夫人"


def test_a_comment_in_code_is_no_heading() -> None:
    text = "# 一\n```\n# no heading\n```\n# 二\n"

    assert outline(at(text, len(text))) == "- 一\n→ 二"


def test_a_text_without_headings_has_no_outline() -> None:
    assert outline(at("第二天早晨，他走了很远的路，一直走到河边。\n", 3)) == ""


def test_of_a_long_novel_only_what_is_near_is_shown() -> None:
    text = "".join(f"# 第{n}章\n正文\n" for n in range(500))

    lines = outline(at(text, text.index("第250章"))).split("\n")

    assert len(lines) == 2 * NEAR + 1
    assert lines[NEAR] == "→ 第250章"


def test_a_selection_counts_from_its_beginning() -> None:
    selection = Span(NOVEL.index("贾夫人"), len(NOVEL))

    shown = outline(Document(source_ref="a.md", text=NOVEL, cursor=0, selection=selection))

    assert "→ 第二回 贾夫人" in shown


@pytest.mark.requirement("SK-013")
async def test_the_source_says_where_it_comes_from() -> None:
    ask = Ask(project_id="p", skill_id="s", limit=9, document=at(NOVEL, 0))

    (fragment,) = (await HeadingsSource().fetch(ask)).fragments
    nothing = await HeadingsSource().fetch(Ask(project_id="p", skill_id="s", limit=9))

    assert fragment.source_ref == "章/一.md#outline"
    assert fragment.score == 1.0
    assert nothing.fragments == ()


@given(st.text(alphabet="# \n第一章回`~\r\u3000abc", max_size=300), st.integers(0, 300))
def test_at_most_one_heading_is_marked(text: str, cursor: int) -> None:
    shown = outline(at(text, min(cursor, len(text))))

    assert sum(line.lstrip().startswith("→ ") for line in shown.split("\n")) <= 1
