"""`viewer:*` in memory: what the page may choose from, and who serves pages."""

import hashlib
import hmac
from pathlib import Path

from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.server import Server
from testing.clients import Client, in_memory
from testing.novels import Novel

SECRET = "sk-proj-Q7fK2mX9pL4vB8nT1wZ6cR3yH5dJ0sGa"


async def test_projects_are_listed_by_name_without_their_place(
    client: Client, novel: Novel, tmp_path: Path
) -> None:
    other = tmp_path / "二"
    other.mkdir()
    name = f"写在 {other} 里，{SECRET}"
    made = await client.call("project:create", {"rootPath": str(other), "name": name})

    reply = await client.call("viewer:projects")

    assert reply["items"][0] == {"projectId": novel.project_id, "name": "红楼梦"}
    assert reply["items"][1]["projectId"] == made["projectId"]
    assert str(other) not in str(reply)
    assert SECRET not in str(reply)


async def test_skills_are_listed_by_name_and_whether_they_can_run(
    client: Client, novel: Novel
) -> None:
    novel.put(
        ".creonow/skills/leaky/SKILL.md", f"---\nname: {SECRET}\ndescription: 夜\n---\n写。\n"
    )
    novel.put(".creonow/skills/broken/SKILL.md", "---\nname: [\n---\n")

    reply = await client.call("viewer:skills", novel.params)

    skills = {one["id"]: one for one in reply["items"]}
    assert skills["builtin:continue"] == {"id": "builtin:continue", "name": "续写", "valid": True}
    assert skills["project:broken"]["valid"] is False
    assert skills["project:leaky"]["name"] == "***REDACTED***"
    assert SECRET not in str(reply)


async def test_whoever_knows_the_digest_of_a_token_can_prove_it(server: Server) -> None:
    grant = Grant(Role.OWNER, None, 4_000_000_000_000, single_use=True, inspects=True)
    token = server.grants.mint(grant)
    nonce = "0123456789abcdef" * 4
    digest = hashlib.sha256(token.encode()).digest()
    async with in_memory(server, role=None) as stranger:
        reply = await stranger.call("viewer:prove", {"nonce": nonce})
        guessed = await stranger.failure("viewer:prove", {"nonce": ""})

    assert reply["proofs"] == [hmac.digest(digest, nonce.encode(), "sha256").hex()]
    assert guessed.code == "INVALID_ARGUMENT"


async def test_a_daemon_without_a_process_serves_no_pages(client: Client, novel: Novel) -> None:
    refused = await client.failure("viewer:open", novel.params)
    unknown = await client.failure("viewer:open", {"projectId": "prj_0123456789abcdefghij"})

    assert refused.code == "UNSUPPORTED"
    assert unknown.code == "NOT_FOUND"
