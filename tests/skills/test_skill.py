import re
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.language import ManuscriptLanguage
from creonowd.context.plan import ContextRules
from creonowd.skills import skill
from creonowd.skills.skill import (
    KEYS,
    MAX_BYTES,
    MOST_FAULTS,
    ParsedSkill,
    Prompt,
    Skill,
    parse,
)
from testing.fuzz import damaged_inputs

BUILT_IN = [
    path.read_bytes()
    for path in sorted((Path(skill.__file__).parent / "builtin").glob("*/SKILL.md"))
]
PIECES = (
    *(b"\n---\n", b"\ncontext_rules:\n", b"  surrounding: 5\n", b"prompt: |\n", b"\n  user: >-\n"),
    *(
        b"{{text}}",
        b"{{",
        b"!!map",
        b"<<: *a",
        b"? ",
        b"- ",
        b"# ",
        b"\n...\n",
        b"!!python/object:x",
    ),
)
SEED_EXAMPLE = """---
name: 润色文本
description: 优化表达和用词，使文字更加流畅

context_rules:
  surrounding: 500          # 前后各 N 字（单位：字符数）
  user_preferences: true    # 注入用户偏好
  style_guide: true         # 注入项目风格指南
  characters: false         # 是否需要人物卡
  recent_summary: 3         # 最近 N 次运行摘要

prompt:
  system: |
    你是写作助手。请按要求改写。
  user: |
    {{text}}
---
"""


def read(header: str, body: str = "") -> ParsedSkill:
    return parse(f"---\n{header}\n---\n{body}".encode())


def faults(header: str) -> list[tuple[str, int | None]]:
    return [(fault.key, fault.line) for fault in read(header).faults]


@pytest.mark.requirement("SK-004", "SK-005", "SK-007")
def test_the_example_of_the_seed_is_read_as_it_stands() -> None:
    parsed = parse(SEED_EXAMPLE.encode())

    assert parsed.faults == ()
    assert parsed.skill == skill.Skill(
        name="润色文本",
        description="优化表达和用词，使文字更加流畅",
        context_rules=ContextRules(
            surrounding=500, user_preferences=True, style_guide=True, recent_summary=3
        ),
        prompt=Prompt(system="你是写作助手。请按要求改写。\n", user="{{text}}\n"),
    )


def test_windows_line_ends_give_the_same_skill() -> None:
    assert parse(SEED_EXAMPLE.replace("\n", "\r\n").encode()) == parse(SEED_EXAMPLE.encode())


def test_rules_may_stand_where_the_open_standard_allows() -> None:
    parsed = read("""name: x\nmetadata: {"creonow.context_rules": "{\\"surrounding\\": 9}"}""")

    assert parsed.skill.context_rules == ContextRules(surrounding=9)


def test_rules_in_both_places_must_agree() -> None:
    both = """context_rules: {surrounding: %d}\nmetadata:\n  creonow.context_rules: '{"surrounding": 9}'"""

    agreed = read(both % 9)
    (fault,) = read(both % 8).faults

    assert agreed.skill.context_rules == ContextRules(surrounding=9)
    assert fault.line == 2
    assert "`context_rules` and `metadata.creonow.context_rules` differ" in fault.message


def test_a_fault_in_the_metadata_names_its_own_line() -> None:
    header = """name: x\nmetadata:\n  creonow.context_rules: '{"surounding": 9}'"""

    assert faults(header) == [("metadata.creonow.context_rules.surounding", 4)]


@pytest.mark.requirement("SK-029")
def test_every_fault_has_its_key_and_line() -> None:
    header = (
        "name: 5\ntitle: x\ncontext_rules:\n  surrounding: -1\n  outline: yes\n"
        "prompt:\n  user: '{{selektion}}'\n  assistant: x"
    )

    assert sorted(faults(header), key=lambda fault: fault[1] or 0) == [
        ("name", 2),
        ("title", 3),
        ("context_rules.surrounding", 5),
        ("context_rules.outline", 6),
        ("prompt.user", 8),
        ("prompt.assistant", 9),
    ]


@pytest.mark.parametrize(
    ("header", "key"),
    [
        ("context_rules:", "context_rules"),
        ("context_rules: []", "context_rules"),
        ("prompt: text", "prompt"),
        ("prompt: {user: 5}", "prompt.user"),
        ("metadata: x", "metadata"),
        ("target_tokens: 0", "target_tokens"),
        ("target_tokens: true", "target_tokens"),
        ("target_tokens: 99999999999999999999", "target_tokens"),
        ("summaries: relations", "summaries"),
        ("summaries: [everything]", "summaries"),
        ("summaries: [[relations]]", "summaries"),
        ("summaries:", "summaries"),
        ("id: 'a b'", "id"),
        ("id: ''", "id"),
        ("name: ' '", "name"),
        ("description: [x]", "description"),
        ("metadata: {creonow.context_rules: null}", "metadata.creonow.context_rules"),
    ],
)
def test_what_does_not_fit_is_a_fault_of_its_key(header: str, key: str) -> None:
    assert faults(header) == [(key, 2)]


def test_a_boolean_word_of_yaml_1_1_is_no_boolean() -> None:
    (fault,) = read("context_rules: {outline: on}").faults

    assert fault.message == "`outline` must be true or false, not text."


def test_a_word_that_looks_like_a_boolean_may_be_a_name() -> None:
    assert read("name: no").skill.name == "no"


def test_without_a_prompt_the_body_is_the_instruction() -> None:
    parsed = read("name: x", "\n# How\n\nRewrite it.\n")

    assert parsed.skill.prompt == Prompt(system="# How\n\nRewrite it.", user="{{text}}")


def test_with_a_prompt_the_body_is_for_people() -> None:
    assert read("prompt: {system: Do it.}", "Notes.").skill.prompt.system == "Do it."


@pytest.mark.parametrize("prompt", ["{{foo}}", "{{ }}", "{{text", "{{text}} {{", "{{a.b}}"])
def test_a_placeholder_that_nobody_knows_is_an_error(prompt: str) -> None:
    (fault,) = read(f"prompt:\n  user: '{prompt}'").faults

    assert (fault.key, fault.line) == ("prompt.user", 3)


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("{{foo}}", 4),
        ("\n\n# How\n\nDo it with {{ foo }} and {{foo}}.\n", 8),
        ("# How\n{{text\n}} and {{text", 6),
    ],
)
def test_a_wrong_placeholder_in_the_body_is_found_on_its_line(body: str, line: int) -> None:
    (fault,) = read("name: x", body).faults

    assert (fault.key, fault.line) == ("prompt.system", line)


@pytest.mark.parametrize("prompt", ["{{" + " " * 100_000, "{{" * 50_000, "{{ text " * 20_000])
def test_a_placeholder_without_an_end_takes_no_time(prompt: str) -> None:
    (fault,) = read("name: x", prompt).faults

    assert "is not closed" in fault.message


@pytest.mark.parametrize(
    "text",
    [
        *("", "---\nname: x\n", "---\n- a\n---\n", "---\nname: [\n---\n"),
        *("---\nname: *x\n---\n", "---\nname: !t x\n---\n", "---\nname: 1\nname: 2\n---\n"),
        *("---\n1: x\n---\n", "---\nname: 5\n---\n", "---\nname: ' '\n---\n"),
        *("---\nid: 'a b'\n---\n", "---\nmetadata: 5\n---\n", "---\ntarget_tokens: x\n---\n"),
        *("---\nsummaries: x\n---\n", "---\nrequires_selection: 1\n---\n"),
        *("---\nprompt: x\n---\n", "---\nprompt: {user: 5}\n---\n", "---\nzzz: 1\n---\n"),
        *("---\ncontext_rules: {surrounding: x}\n---\n", "---\ncontext_rules: 5\n---\n"),
        *("---\ncontext_rules: {surrounding: -1}\n---\n", "---\n---\n{{foo}}", "---\n---\n{{"),
        "---\nmetadata: {creonow.context_rules: '{'}\n---\n",
        "---\nmetadata: {creonow.context_rules: 5}\n---\n",
    ],
)
def test_every_fault_reads_in_both_languages(text: str) -> None:
    faults = parse(text.encode()).faults

    assert faults
    for fault in faults:
        assert re.search(r"[\u4e00-\u9fff]", fault.wording.chinese)
        assert not re.search(r"[\u4e00-\u9fff]|\{\}", fault.wording.english)
        assert "{}" not in fault.wording.chinese


def test_of_very_many_faults_the_first_are_listed() -> None:
    header = "\n".join(f"unknown_{number}: 1" for number in range(3000))

    assert len(read(header).faults) == MOST_FAULTS


def test_every_placeholder_that_is_known_may_be_used() -> None:
    user = "{{text}} {{ selection }} {{instruction}} {{title}} {single}"

    assert read(f"prompt: {{user: '{user}'}}").skill.prompt.user == user


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "must begin with front matter"),
        (b"# no front matter", "must begin with front matter"),
        (b"---\nname: \xff\n---\n", "not UTF-8"),
        ("---\nname: 林\n---\n".encode("gbk"), "not UTF-8"),
        ("---\nname: x\n---\n".encode("utf-16"), "not UTF-8"),
        (b"---\nname: x\n---\n" + b"x" * MAX_BYTES, "is the limit"),
    ],
)
def test_a_file_that_is_no_skill_says_why(data: bytes, reason: str) -> None:
    (fault,) = parse(data).faults

    assert reason in fault.message


@pytest.mark.requirement("SK-022", "SK-023", "SK-024", "SK-025", "SK-026")
def test_the_built_in_skills_declare_what_the_matrix_asks_for() -> None:
    builtin = Path(skill.__file__).parent / "builtin"

    found = {path.parent.name: parse(path.read_bytes()) for path in builtin.glob("*/SKILL.md")}
    declared = {
        slug: (parsed.skill.target_tokens, parsed.skill.context_rules)
        for slug, parsed in found.items()
    }

    assert [parsed.faults for parsed in found.values()] == [()] * 6
    assert declared == {
        "polish": (1500, REWRITING),
        "condense": (1500, REWRITING),
        "expand": (
            3000,
            ContextRules(
                surrounding=1000,
                style_guide=True,
                characters=True,
                outline=True,
                retrieval=True,
                synopsis=True,
            ),
        ),
        "dialogue": (
            2500,
            ContextRules(surrounding=1500, style_guide=True, characters=True, knowledge_graph=True),
        ),
        "consistency": (
            4000,
            ContextRules(
                surrounding=1500,
                characters=True,
                knowledge_graph=True,
                retrieval="all",
                synopsis=True,
            ),
        ),
        "continue": (
            3500,
            ContextRules(
                surrounding=2000,
                user_preferences=True,
                style_guide=True,
                characters=True,
                outline=True,
                recent_summary=3,
                knowledge_graph=True,
                retrieval=True,
                synopsis=True,
            ),
        ),
    }


def test_the_built_in_skills_that_rewrite_require_a_selection() -> None:
    builtin = Path(skill.__file__).parent / "builtin"

    found = {path.parent.name: parse(path.read_bytes()) for path in builtin.glob("*/SKILL.md")}

    requiring = {slug for slug, parsed in found.items() if parsed.skill.requires_selection}
    assert requiring == {"polish", "condense", "expand"}


@pytest.mark.parametrize("value", ["1", "'true'", "[]", "yes", "null", "{selection: true}"])
def test_requires_selection_is_true_or_false(value: str) -> None:
    (fault,) = parse(f"---\nname: x\nrequires_selection: {value}\n---\n".encode()).faults

    assert (fault.key, fault.line) == ("requires_selection", 3)
    assert "must be true or false" in fault.message


def test_a_misspelt_requires_selection_gets_a_suggestion() -> None:
    (fault,) = parse(b"---\nname: x\nrequire-selection: true\n---\n").faults

    assert "did you mean `requires_selection`?" in fault.message


REWRITING = ContextRules(surrounding=500, user_preferences=True, style_guide=True, recent_summary=3)


def test_the_built_in_skills_instruct_in_one_language_at_a_time() -> None:
    for path in (Path(skill.__file__).parent / "builtin").glob("*/SKILL.md"):
        read = parse(path.read_bytes()).skill
        chinese = read.prompt_in(ManuscriptLanguage.CHINESE)
        english = read.prompt_in(ManuscriptLanguage.ENGLISH)

        assert any("\u4e00" <= character <= "\u9fff" for character in chinese.system)
        assert "the" not in chinese.system.split()
        assert "language of the" in english.system
        assert english.system.isascii()
        assert chinese.user == english.user


def test_a_prompt_for_one_language_is_checked_like_the_other() -> None:
    text = "---\nname: x\nprompt_en:\n  system: '{{txt}}'\n  usr: x\nprompt_zh: 5\nprompt_fr: {}\n---\n"

    faults = {fault.key: fault for fault in parse(text.encode()).faults}

    assert set(faults) == {"prompt_en.system", "prompt_en.usr", "prompt_zh", "prompt_fr"}
    assert faults["prompt_en.system"].line == 4
    assert "did you mean `text`?" in faults["prompt_en.system"].message
    assert "must be a mapping" in faults["prompt_zh"].message


def test_without_a_prompt_for_its_language_a_skill_has_one_for_all() -> None:
    read = parse(b"---\nname: x\nprompt:\n  user: a\nprompt_en:\n  user: b\n---\n").skill

    assert read.prompt_in(ManuscriptLanguage.CHINESE).user == "a"
    assert read.prompt_in(ManuscriptLanguage.ENGLISH).user == "b"


LINES = st.one_of(
    st.builds(
        "{}: {}".format,
        st.sampled_from([*KEYS, "surounding", "", "- a", "林"]),
        st.sampled_from(
            ["1", "true", "|", "{}", "[", "&a *a", '"', "林远", "{{text}}", "{{no}}", "~", "1e999"]
        ),
    ),
    st.sampled_from(
        [
            "---",
            "  surrounding: 5",
            "  system: |",
            "    {{input}}",
            "\t",
            "# x",
            "...",
            "  - a",
            "\ufeff",
            "{{",
        ]
    ),
    st.text(max_size=20),
)


@pytest.mark.fuzz
@given(
    st.lists(LINES, max_size=12).map(lambda lines: "---\n" + "\n".join(lines)),
    st.sampled_from(["\n---\n", "\n---", "", "\r\n---\r\n正文 {{selection}}"]),
    st.binary(max_size=3),
)
def test_any_file_is_a_skill_or_says_what_is_wrong(head: str, end: str, tail: bytes) -> None:
    parsed = parse(f"{head}{end}".encode("utf-8", "replace") + tail)

    assert all(fault.message for fault in parsed.faults)
    assert all(fault.line is None or fault.line >= 1 for fault in parsed.faults)
    named = parsed.skill
    plate = Skill(id=named.id, name=named.name, description=named.description)
    assert not parsed.faults or named == plate


@pytest.mark.fuzz
@given(damaged_inputs(BUILT_IN, PIECES))
def test_a_spoilt_skill_is_a_skill_or_says_what_is_wrong(data: bytes) -> None:
    parsed = parse(data)

    assert all(fault.message for fault in parsed.faults)
    lines = data.count(b"\n") + 1
    assert all(fault.line is None or 1 <= fault.line <= lines for fault in parsed.faults)


def test_texts_that_were_checked_are_not_kept_in_memory() -> None:
    tracemalloc.start()
    try:
        for number in range(40):
            parse(b"---\nname: %d\n---\n" % number + b"x" * (2 * MAX_BYTES))
            parse(b"---\nname: %d\n---\n" % number + b"x" * (MAX_BYTES - 100))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 2 * MAX_BYTES
