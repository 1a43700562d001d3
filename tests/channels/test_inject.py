"""`context:creonow:inject:set`: the eye writes one line of a card or a note, and that can be undone."""

import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from testing.clients import Client, RpcError, in_memory
from testing.novels import Novel

CARD = ".creonow/characters/林远.md"
NOTE = ".creonow/settings/渡口.md"
BOM = b"\xef\xbb\xbf"
TEXT = "---\r\n# 主角\r\nname: 林远\r\ninject: always # 一直在\r\n---\r\n😀冷静。\r\n"


async def set_inject(client: Client, novel: Novel, path: str, **more: Any) -> Any:
    return await client.call(
        "context:creonow:inject:set", novel.params | {"path": path, "inject": "never"} | more
    )


async def refusal(client: Client, novel: Novel, path: str, **more: Any) -> RpcError:
    return await client.failure(
        "context:creonow:inject:set", novel.params | {"path": path, "inject": "never"} | more
    )


async def test_one_value_changes_and_comes_back_byte_for_byte(client: Client, novel: Novel) -> None:
    file = novel.put(CARD, BOM + TEXT.encode())
    revision = sha256(file.read_bytes()).hexdigest()

    done = await set_inject(client, novel, CARD, inject="mentioned", expectedRevision=revision)
    after = file.read_bytes()
    stale = await refusal(client, novel, CARD, expectedRevision=revision)
    same = await set_inject(client, novel, CARD, inject="mentioned")
    await client.call("context:undo", novel.params | {"undo": done["undo"]})

    assert after == BOM + TEXT.replace("always #", "mentioned #").encode()
    assert (done["previous"], done["inject"], done["path"]) == ("always", "mentioned", CARD)
    assert done["revision"] == sha256(after).hexdigest()
    assert stale.code == "CONFLICT"
    assert (same["undo"], same["revision"]) == ("", done["revision"])
    assert file.read_bytes() == BOM + TEXT.encode()


async def test_what_the_subjects_list_is_what_was_set(client: Client, novel: Novel) -> None:
    novel.put(CARD, "冷静。\n")
    novel.put(NOTE, "在城南。\n")

    for path in (CARD, NOTE):
        for inject in ("mentioned", "manual", "never", "always"):
            done = await set_inject(client, novel, path, inject=inject)
            listed = (await client.call("context:subjects", novel.params))["items"]
            (item,) = [one for one in listed if one["sourceRef"] == path]

            assert (item["inject"], item["revision"]) == (inject, done["revision"])
    assert (novel.root / NOTE).read_text(encoding="utf-8") == "---\ninject: always\n---\n在城南。\n"


@pytest.mark.parametrize(
    "path",
    [
        "now.md",
        ".creonow/rules/style.md",
        ".creonow/settings/../rules/style.md",
        ".creonow/settings/船.json",
        ".creonow/settings/memory.json",
        ".creonow/characters/林远.txt",
        ".creonow/settings",
        "../x.md",
        "",
    ],
)
async def test_only_texts_of_cards_and_notes_are_changed(
    client: Client, novel: Novel, path: str
) -> None:
    novel.put(".creonow/rules/style.md", "短句。\n")
    novel.put(".creonow/settings/船.json", "{}")

    assert (await refusal(client, novel, path)).code == "INVALID_ARGUMENT"
    assert (novel.root / ".creonow/settings/船.json").read_text(encoding="utf-8") == "{}"


async def test_what_cannot_be_changed_stays_as_it_is(client: Client, novel: Novel) -> None:
    broken = {
        CARD: "---\nname: [\n---\n冷静。\n".encode(),
        NOTE: b"---\n{inject: always}\n---\n",
        ".creonow/settings/旧.md": "渡口".encode("gb18030"),
    }
    for path, data in broken.items():
        novel.put(path, data)

    codes = [(await refusal(client, novel, path)).code for path in broken]
    absent = await refusal(client, novel, ".creonow/settings/无.md")
    odd = await refusal(client, novel, NOTE, inject="sometimes")

    assert codes == ["UNSUPPORTED"] * 3
    assert (absent.code, odd.code) == ("NOT_FOUND", "INVALID_ARGUMENT")
    assert {path: (novel.root / path).read_bytes() for path in broken} == broken


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_no_link_leads_out_of_its_folder(
    client: Client, novel: Novel, tmp_path: Path
) -> None:
    rule = novel.put(".creonow/rules/style.md", "短句。\n")
    outside = tmp_path / "outside.md"
    outside.write_text("别处。\n", encoding="utf-8")
    folder = novel.root / ".creonow/characters"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "甲.md").symlink_to(rule)
    (folder / "乙.md").symlink_to(outside)

    errors = [await refusal(client, novel, f".creonow/characters/{name}.md") for name in "甲乙"]

    assert [error.code for error in errors] == ["INVALID_ARGUMENT"] * 2
    assert rule.read_text(encoding="utf-8") == "短句。\n"
    assert outside.read_text(encoding="utf-8") == "别处。\n"


async def test_a_renderer_may_not_set_it(server: Server, novel: Novel) -> None:
    file = novel.put(CARD, TEXT.encode())

    async with in_memory(server, role=Role.RENDERER) as page:
        error = await refusal(page, novel, CARD)

    assert error.code == "FORBIDDEN"
    assert file.read_bytes() == TEXT.encode()
