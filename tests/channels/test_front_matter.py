"""Front matter is for the daemon: no prompt has it, and what is left of a text says something."""

import pytest

from testing.clients import Client
from testing.novels import Novel

HEADER = "---\nname: 沈青禾\naliases: [青禾]\npriority: 7\nconfidence: 0.5\norder: 3\n---\n\n"
KEYS = ("aliases", "priority:", "confidence:", "order:", "\n---\n")


def without_header(prompt: str) -> bool:
    return not any(key in prompt for key in KEYS)


@pytest.mark.parametrize("folder", ["characters", "settings", "rules"])
async def test_a_text_is_sent_as_name_and_body(novel: Novel, folder: str) -> None:
    novel.put(f".creonow/{folder}/shen.md", f"{HEADER}水文站的站长。\n")

    result = await novel.assemble(skillId="none")

    ref = f".creonow/{folder}/shen.md"
    assert f"### ref:{ref}\n# 沈青禾\n水文站的站长。\n" in result["systemPrompt"]
    assert without_header(result["prompt"])
    (evidence,) = [e for e in result["trimEvidence"] if e["sourceRef"] == ref]
    assert evidence["beforeChars"] == len("水文站的站长。\n")


async def test_a_cut_note_keeps_a_sentence_or_leaves_whole(novel: Novel) -> None:
    paragraph = "海港三面环山，雨季很长。" * 500
    novel.put(".creonow/settings/大.md", f"{HEADER}# 海港\n\n---\n\n{paragraph}\n")

    result = await novel.assemble(skillId="none")

    (evidence,) = [e for e in result["trimEvidence"] if e["layer"] == "settings"]
    assert (evidence["action"], evidence["afterTokens"]) == ("dropped", 0)
    assert "## Settings\n(none)\n" in result["prompt"]


async def test_the_lines_of_a_cut_note_are_those_of_its_file(novel: Novel) -> None:
    paragraph = "海港三面环山，雨季很长。" * 30
    text = f"{HEADER}海港。\n\n" + f"{paragraph}\n\n" * 40
    novel.put(".creonow/settings/大.md", text)

    prompt = (await novel.assemble(skillId="none"))["systemPrompt"]

    lines = text.splitlines()
    assert lines[8] == "海港。"
    (ref,) = [line for line in prompt.splitlines() if line.startswith("### ref:")]
    last = int(ref.rpartition("-L")[2])
    assert ref == f"### ref:.creonow/settings/大.md#L9-L{last}"
    kept = prompt.partition(f"{ref}\n# 沈青禾\n")[2].partition("\n# 以上")[0]
    assert kept.rstrip() == "\n".join(lines[8:last]).rstrip()


async def test_the_document_is_sent_without_its_front_matter(novel: Novel) -> None:
    body = "第一章\n\n" + "".join(f"林远推开第{n}扇门，雨还在下。\n" for n in range(600))
    text = HEADER + body
    novel.put("一.md", text)

    whole = await novel.assemble(skillId="none", cursorPosition=len(HEADER) + 20)
    far = await novel.assemble(cursorPosition=len(text))
    inside = await novel.assemble(cursorPosition=5, selection={"from": 2, "to": 9})

    assert "### ref:一.md\n第一章\n" in whole["prompt"]
    assert all(without_header(one["prompt"]) for one in (whole, far, inside))
    assert (
        far["prompt"]
        .rpartition("ref:一.md#L")[2]
        .partition("\n")[0]
        .endswith(f"-L{len(text.splitlines())}")
    )
    assert "第一章\n" in inside["prompt"].partition("ref:一.md 光标之后\n")[2]


async def test_no_passage_has_front_matter(client: Client, novel: Novel) -> None:
    novel.put("一.md", f"{HEADER}林远在水文站等船，船没有来。\n")
    novel.put("notes.md", f"{HEADER}水文站的船来了。\n")

    params = novel.payload(query="aliases 青禾 水文站", cursorPosition=0, wait=True)
    found = await client.call("context:retrieve", params)
    cursor = len(HEADER) + 5
    asked = {"cursorPosition": cursor, "additionalInput": "水文站的船"}
    result = await novel.assemble(skillId="none", **asked)

    by_ref = {passage["sourceRef"]: passage["content"] for passage in found["passages"]}
    assert by_ref["notes.md#L9-L9"] == "水文站的船来了。"
    assert without_header(result["prompt"])
    assert "### ref:notes.md#L9-L9\n水文站的船来了。\n" in result["prompt"]
    assert "### ref:一.md#L" not in result["prompt"]
