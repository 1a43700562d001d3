"""A project with one chapter and a client that works on it, for tests of whole runs."""

from pathlib import Path
from typing import Any

from tests.clients import Client

TEXT = "林远推开门，屋里没有人。\n\n他站了一会儿，听见楼上的脚步声。\n"


class Desk:
    """What an author has in front of them."""

    def __init__(self, client: Client, root: Path, project_id: str) -> None:
        self.client = client
        self.root = root
        self.project_id = project_id

    def payload(self, **more: Any) -> dict[str, Any]:
        return {
            "projectId": self.project_id,
            "skillId": "builtin:continue",
            "documentId": "一.md",
            "cursorPosition": len(TEXT),
        } | more

    async def assemble(self, **more: Any) -> Any:
        return await self.client.call("context:assemble", self.payload(**more))

    async def run(self, **more: Any) -> Any:
        return await self.client.call("ai:skill:run", self.payload(**more))

    async def start(self, name: str, **more: Any) -> None:
        """Start a run of this id without waiting for its reply, which has the same id."""
        params = self.payload(runId=name, **more)
        await self.client.post(
            {"jsonrpc": "2.0", "id": name, "method": "ai:skill:run", "params": params}
        )

    async def script(self, *steps: dict[str, Any], verdicts: tuple[str, ...] = ()) -> None:
        await self.client.call("e2e:ai:script", {"steps": steps, "verdicts": verdicts})

    async def constrain(self, *texts: str) -> None:
        items = {"constraints": {"version": 1, "items": list(texts)}}
        await self.client.call("constraints:set", {"projectId": self.project_id} | items)

    def put(self, path: str, content: str) -> None:
        """Write a file of the `.creonow` tree."""
        file = self.root / ".creonow" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())


async def at_desk(client: Client, root: Path) -> Desk:
    """Make the project."""
    root.mkdir()
    (root / "一.md").write_bytes(TEXT.encode())
    project = await client.call("project:create", {"rootPath": str(root)})
    return Desk(client, root, project["projectId"])
