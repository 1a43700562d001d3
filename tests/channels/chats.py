"""A model's conversation over the wire, for tests of context files."""

from pathlib import Path
from typing import Any

from tests.clients import Client, RpcError


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
