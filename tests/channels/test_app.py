from pathlib import Path
from typing import Any

import pytest

from creonowd import __version__
from creonowd.retrieval.project_index import Indexes
from testing.clients import Client
from testing.novels import Novel


async def test_a_fresh_daemon_is_healthy(client: Client) -> None:
    health = await client.call("app:health")

    assert (health["status"], health["degraded"]) == ("ok", [])
    assert health["version"] == __version__
    assert health["uptimeMs"] >= 0


@pytest.mark.parametrize(
    ("locale", "reason", "remedy"),
    [
        ("en", "projects.json could not be read", "Look into the kept file"),
        ("zh", "projects.json 无法读取", "请查看另存的文件"),
    ],
)
async def test_a_list_of_projects_that_was_set_aside_is_reported(
    client: Client, server_data: Path, locale: str, reason: str, remedy: str
) -> None:
    (server_data / "projects.json").write_bytes(b"half a fi")
    await client.call("initialize", {"locale": locale})

    await client.call("project:list")
    health = await client.call("app:health")

    (part,) = health["degraded"]
    assert (health["status"], part["part"]) == ("degraded", "projects")
    assert part["reason"].startswith(reason)
    assert "projects.damaged-1.json" in part["reason"]
    assert part["remedy"].startswith(remedy)
    assert str(server_data) not in str(health)


async def test_a_project_that_cannot_be_indexed_is_named_with_the_reason(
    novel: Novel, monkeypatch: pytest.MonkeyPatch
) -> None:
    def problems(_indexes: Indexes) -> dict[str, str]:
        return {novel.project_id: "STORAGE_FULL"}

    monkeypatch.setattr(Indexes, "problems", problems)

    health = await novel.client.call("app:health")

    (part,) = health["degraded"]
    assert part["part"] == "retrieval"
    assert part["reason"].endswith(f"{novel.project_id} (STORAGE_FULL)")


async def test_calls_and_refusals_are_counted_by_channel(client: Client) -> None:
    before: Any = await client.call("app:metrics")
    for _ in range(3):
        await client.call("app:health")
    await client.failure("project:delete", {"projectId": "prj_none"})

    after: Any = await client.call("app:metrics")

    assert "app:health" not in before["channels"]
    assert after["channels"]["app:health"]["count"] == 3
    assert after["channels"]["project:delete"]["errors"] == {"NOT_FOUND": 1}
    assert after["connections"] == 1
