"""Projects on one connection, for tests: one with a chapter, and one with a conversation."""

from pathlib import Path
from typing import Any

from testing.clients import Client, RpcError

TEXT = "林远推开门，屋里没有人。\n\n他站了一会儿，听见楼上的脚步声。\n"


class Desk:
    """A project with one chapter, and a client that works on it."""

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


class Chat:
    """A conversation of a fresh project on one connection."""

    def __init__(self, client: Client, project_id: str, conversation_id: str = "chat-1") -> None:
        self.client = client
        self.where = {"projectId": project_id, "conversationId": conversation_id}

    async def call(self, channel: str, **payload: Any) -> Any:
        """Ask about this conversation."""
        return await self.client.call(channel, {**self.where, **payload})

    async def failure(self, channel: str, **payload: Any) -> RpcError:
        """Ask, and return the error that must come."""
        return await self.client.failure(channel, {**self.where, **payload})

    async def put(self, content: str, **payload: Any) -> str:
        """Put a text and return its id."""
        put = {"kind": "artifact", "hint": "a hint", "content": content} | payload
        result = await self.call("context:files:put", **put)
        return result["ref"]["id"]

    async def register(self, recipe: dict[str, Any], **payload: Any) -> str:
        """Register a recipe and return its ref's id."""
        new = {"kind": "history", "hint": "a hint", "recipe": recipe} | payload
        result = await self.call("context:files:register", **new)
        return result["ref"]["id"]


async def chat_on(client: Client, folder: Path, conversation_id: str = "chat-1") -> Chat:
    """Make a folder a project and begin a conversation."""
    folder.mkdir(exist_ok=True)
    project = await client.call("project:create", {"rootPath": str(folder)})
    return Chat(client, project["projectId"], conversation_id)
