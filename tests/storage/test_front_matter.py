import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.storage import front_matter
from creonowd.storage.front_matter import MAX_BYTES, FrontMatter


def matter(header: str) -> FrontMatter:
    read = front_matter.read(f"---\n{header}\n---\nbody\n")
    assert read is not None
    return read


def only_fault(header: str) -> tuple[str, str, int | None]:
    (fault,) = matter(header).faults
    return fault.key, fault.message, fault.line


def test_values_body_and_lines_are_separated() -> None:
    read = matter("name: 林远\n\nrules:\n  first: 1 # why\n  'second': true")

    assert read.values == {"name": "林远", "rules": {"first": 1, "second": True}}
    assert read.body == "body\n"
    assert read.lines == {"name": 2, "rules": 4, "rules.first": 5, "rules.second": 6}


def test_a_text_without_front_matter_has_none() -> None:
    assert front_matter.read("# 第一章\n---\n") is None
    assert front_matter.read("") is None


def test_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    plain = front_matter.read("---\na: |\n  x\n  y\n---\nbody")

    assert front_matter.read("\ufeff---\r\na: |\r\n  x\r\n  y\r\n---\r\nbody") == plain
    assert front_matter.read("---\ra: |\r  x\r  y\r---\rbody") == plain


def test_the_words_of_yaml_1_1_are_strings() -> None:
    read = matter("a: on\nb: no\nc: yes\nd: off\ne: y")

    assert read.values == {"a": "on", "b": "no", "c": "yes", "d": "off", "e": "y"}


def test_front_matter_that_never_ends_is_a_fault_of_line_one() -> None:
    read = front_matter.read("---\nname: x\n")

    assert read is not None
    assert [(fault.message, fault.line) for fault in read.faults] == [
        ("The front matter is not closed by a line `---`.", 1)
    ]


@pytest.mark.parametrize(
    "header",
    [
        "a: &x 1\nb: *x",
        "a: 1\nb: [*x]",
        "a: 1\n&k b: 2",
        "a: 1\nb: {c: &x 1}",
        "a: 1\nb: !t &x 1",
        "a: 1\n? *x\n: 2",
        "a: 1\nb:\n  *x",
        "a: 润色\nb: &x 1",
        "a: é😀𠀀\nb: [润, *x]",
        "润: &润 1",
    ],
)
def test_anchors_and_aliases_are_refused_before_they_are_followed(header: str) -> None:
    _, message, line = only_fault(header)

    assert message.startswith("Anchors and aliases are not allowed")
    assert line is not None
    assert {"&", "*"} & set(header.split("\n")[line - 2])


def test_ampersands_and_asterisks_are_text_where_they_begin_no_node() -> None:
    read = matter("a: |\n  * one\n  & two\nb: 'a & b'\nc: x * y\nd: x\n  *y*\ne: \"*\"  # & *")

    assert read.faults == ()
    assert read.values == {
        "a": "* one\n& two\n",
        "b": "a & b",
        "c": "x * y",
        "d": "x *y*",
        "e": "*",
    }


def test_an_alias_bomb_costs_nothing() -> None:
    levels = [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 30)]

    _, message, line = only_fault("\n".join(["l0: &l0 lol", *levels]))

    assert message.startswith("Anchors")
    assert line == 2


@pytest.mark.parametrize("header", ["? " * 20_000, "- " * 20_000, "[" * 60_000, "? - " * 10_000])
def test_nesting_that_would_end_the_process_is_a_fault(header: str) -> None:
    read = matter(header)

    assert read.faults


def test_a_staircase_of_indentation_is_a_fault_with_its_line() -> None:
    _, message, line = only_fault("\n".join(" " * n + "a:" for n in range(40)))

    assert message == "This is nested more than 32 levels deep."
    assert line == 34


@pytest.mark.parametrize(
    ("above", "body"),
    [
        ("---\na: 1\n---\n", "body\n"),
        ("---\na: 1\n...\n\n \t\n", "  indented"),
        ("\ufeff---\r\na: |\r\n  x\r\n---\r\n\r\n", "body\r\rrest"),
        ("---\ra: 1\r---\r", "body"),
        ("---\n---\n", "body"),
        ("---\na: 1\n---", ""),
        ("", "---\na: 1\n----\nbody"),
        ("", "---\nprose\n---\nbody"),
        ("", "---\na: [\n---\nbody"),
        ("", "# 第一章\n---\na: 1\n---\n"),
        ("", "---\n" + "a: 1\n" * MAX_BYTES),
        ("", ""),
    ],
)
def test_a_text_is_cut_below_its_front_matter(above: str, body: str) -> None:
    parts = front_matter.split(above + body)

    assert (parts.front_matter, parts.body) == (above, body)


def test_front_matter_over_the_limit_is_not_parsed() -> None:
    _, message, _ = only_fault("a: " + "林" * (MAX_BYTES // 3))

    assert "is the limit" in message


@pytest.mark.parametrize(
    ("header", "key", "line"),
    [
        ("a: 1\nb: 2\na: 3", "a", 4),
        ("r:\n  a: 1\n  b: 2\n  a: 3", "r.a", 5),
        ("r: {a: 1, b: 2, 'a': 3}", "r.a", 2),
        ("r: {a: 1, # a: 2\n  b: [a, b], a: 3}", "r.a", 2),
        ('r:\n  {"a": 1, "a": 2}', "r.a", 2),
    ],
)
def test_a_key_that_stands_twice_is_a_fault(header: str, key: str, line: int) -> None:
    fault = matter(header).faults[0]

    assert (fault.key, fault.line) == (key, line)
    assert "second time" in fault.message


def test_the_same_key_in_two_mappings_is_no_repetition() -> None:
    read = matter(
        "x:\n  - a: 1\n    b: 2\n  - a: 3\n    b: 4\n"
        "y: {a: {a: 1}, b: 'x, a: 1'}\nz: |\n  a: 1\n  a: 2\na: 1"
    )

    assert read.faults == ()


@pytest.mark.parametrize(
    ("header", "line", "english", "chinese"),
    [
        ("name: x\naliases: [one, two", 3, "a bracket is not closed", "括号没有成对"),
        ("aliases: [one, two\nx: 1", 3, "a bracket is not closed", "括号没有成对"),
        ("aliases: {a: 1\n\n", 2, "a bracket is not closed", "括号没有成对"),
        ("name: a]]\nx: ]", 3, "closes nothing", "括号没有成对"),
        ("name: 'abc", 2, "a quotation mark is not closed", "引号没有成对"),
        ("name: 'it's'", 2, "text follows a quotation mark", "引号结束之后还有文字"),
        ('name: "\\q"', 2, "use single quotes", "请改用单引号"),
        ("name:\n\t- x", 3, "indent with spaces", "缩进请用空格"),
        ("name: @x", 2, "a text must not begin like this", "请加引号"),
        ("name: a: b", 2, "quote text that has a colon", "含冒号的文字请加引号"),
        ("name：x\nb: y", 3, "a second colon", "冒号须为半角"),
        ("name: x\nfoo", 3, "no `key: value`", "不是“键: 值”"),
        ("a:\n  - b\n c: d", 4, "its indentation does not fit", "缩进不齐"),
        ("a: x #y\n z: 1", 2, "its indentation does not fit", "缩进不齐"),
        ("a: !<x", 2, "verbatim tag", "写法有误"),
    ],
)
def test_what_is_no_yaml_is_reported_in_both_languages(
    header: str, line: int, english: str, chinese: str
) -> None:
    (fault,) = matter(header).faults

    assert fault.line == line
    assert english in fault.wording.english
    assert chinese in fault.wording.chinese
    assert re.findall("[A-Za-z]{2,}", fault.wording.chinese) == ["YAML"]


def test_tags_and_keys_that_are_no_text_are_faults() -> None:
    assert only_fault("a: !py x") == ("a", "Tags are not allowed.", 2)
    assert only_fault("a: {1: 2}") == ("a", "The key 1 must be text; quote it.", 2)


def test_control_characters_are_faults_and_hide_nothing() -> None:
    assert only_fault("a: 1\nb: \0\nc: 2") == ("", "This has the control character '\\x00'.", 3)


@pytest.mark.parametrize("header", ["- a", "just text", "42"])
def test_front_matter_that_is_no_mapping_is_a_fault(header: str) -> None:
    assert only_fault(header)[1] == "The front matter must be a mapping."


def test_a_syntax_error_names_its_line_in_the_file() -> None:
    assert only_fault("a: 1\nb: c: d")[2] == 3


@given(st.text(alphabet=" \n\t-?:&*!|>'\"[]{},#%@`ab1林😀\r\0", max_size=200))
def test_no_text_is_an_error(text: str) -> None:
    read = front_matter.read(f"---\n{text}\n---\n")

    assert read is not None
    assert not (read.faults and read.values)


def test_this_module_knows_no_key(request: pytest.FixtureRequest) -> None:
    """Settings files have front matter too: nothing of skills may creep in here."""
    source = Path(front_matter.__file__).read_text(encoding="utf-8")

    assert "context_rules" not in source
    assert "confidence" not in source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "---\ninject: never\n---\n"),
        ("正文😀\r\n", "---\r\ninject: never\r\n---\r\n正文😀\r\n"),
        ("\ufeff正文\n", "\ufeff---\ninject: never\n---\n正文\n"),
        ("---\n---\nx", "---\ninject: never\n---\nx"),
        ("---\n# why\n\n---\nx", "---\n# why\n\ninject: never\n---\nx"),
        ("---\ninject: always\n---\nx", "---\ninject: never\n---\nx"),
        (
            "---\r\nname: 林 # 甲\r\ninject:   'always'  # 乙\r\nb:  1\r\n...\r\nx",
            "---\r\nname: 林 # 甲\r\ninject:   never  # 乙\r\nb:  1\r\n...\r\nx",
        ),
        ("---\ninject: # soon\na: 1\n---\n", "---\ninject: never # soon\na: 1\n---\n"),
        ('---\n"inject": always\n---\n', '---\n"inject": never\n---\n'),
        ("---\n  a: 1\n---\n", "---\n  a: 1\n  inject: never\n---\n"),
        (
            "---\nnotes: |\n  inject: always\n\n---\ninject: always\n",
            "---\nnotes: |\n  inject: always\n\ninject: never\n---\ninject: always\n",
        ),
        ("---\na: {inject: always}\n---\n", "---\na: {inject: always}\ninject: never\n---\n"),
        ("---\ninject:   never\n---\n", "---\ninject:   never\n---\n"),
    ],
)
def test_a_value_is_set_and_no_other_byte_changes(before: str, after: str) -> None:
    assert front_matter.with_value(before, "inject", "never") == after


@pytest.mark.parametrize(
    "header",
    [
        "{name: 林, inject: always}",
        "inject: |\n  always",
        "inject:\n  always",
        "a: [",
        "a: 1\na: 2",
    ],
)
def test_a_value_is_not_set_where_other_lines_would_change_their_meaning(header: str) -> None:
    assert front_matter.with_value(f"---\n{header}\n---\nx", "inject", "never") is None
    assert front_matter.with_value(f"---\n{header}\nx", "inject", "never") is None


@given(st.text(alphabet="---\n\r:# ainject\ufeff林😀", max_size=60))
def test_any_text_keeps_its_body_when_a_value_is_set(text: str) -> None:
    changed = front_matter.with_value(text, "inject", "never")

    if changed is not None:
        found = front_matter.read(changed)
        assert found is not None
        assert found.values["inject"] == "never"
        assert changed.endswith(front_matter.split(text).body.removeprefix("\ufeff"))
