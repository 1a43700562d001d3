"""The made-up novel of the tests: its words, its folder, and clients that work on it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from creonowd.testing.harness import CHAPTER, TEXT, NovelFolder, write_files
from testing.clients import Client, RpcError

__all__ = [
    "CHAPTER",
    "NAMES",
    "SECRET",
    "SENTENCES",
    "TEXT",
    "Chat",
    "Novel",
    "NovelFolder",
    "make_chat",
    "make_novel",
    "warnings_beside_index",
    "write_files",
]

SECRET = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz3"
NAMES = ("林远", "林远山", "苏晴", "Anna", "Ann")
SENTENCES = (
    "林远推开门，雨还在下。",
    "苏晴没有抬头，只问了一句：“你来了？”",
    "「走吧。」他说。",
    "The rain had not stopped since noon. Anna waited.",
    "　　远处传来钟声，一下，又一下。",
    "林远山是另一个人！",
    "……",
    f"密钥是 {SECRET} 。",
)


class Novel(NovelFolder):
    """A novel that a client works on."""

    def __init__(self, client: Client, root: Path, project_id: str, **cursor: Any) -> None:
        super().__init__(root, project_id, **cursor)
        self.client = client

    async def assemble(self, **changes: Any) -> Any:
        """Assemble the context at the cursor."""
        return await self.client.call("context:assemble", self.payload(**changes))

    async def run(self, **changes: Any) -> Any:
        """Run the skill at the cursor."""
        return await self.client.call("ai:skill:run", self.payload(**changes))

    async def start(self, name: str, **changes: Any) -> None:
        """Start a run of this id without waiting for its reply, which has the same id."""
        params = self.payload(runId=name, **changes)
        await self.client.post(
            {"jsonrpc": "2.0", "id": name, "method": "ai:skill:run", "params": params}
        )

    async def script(self, *steps: dict[str, Any], verdicts: tuple[str, ...] = ()) -> None:
        """Set what the fake provider does next."""
        await self.client.call("e2e:ai:script", {"steps": steps, "verdicts": verdicts})

    async def constrain(self, *texts: str) -> None:
        """Set the constraints of the project."""
        items = {"constraints": {"version": 1, "items": list(texts)}}
        await self.client.call("constraints:set", self.params | items)


async def make_novel(
    client: Client, root: Path, files: Mapping[str, str | bytes] | None = None, **cursor: Any
) -> Novel:
    """Make a project with these files, or with one chapter."""
    write_files(root, {CHAPTER: TEXT} if files is None else files)
    project = await client.call("project:create", {"rootPath": str(root)})
    return Novel(client, root, project["projectId"], **cursor)


def warnings_beside_index(result: Mapping[str, Any]) -> list[str]:
    """Return what a result warns of, but for an index that a busy machine still builds."""
    return [one for one in result["warnings"] if not one.startswith("RETRIEVAL_INDEXING")]


class Chat:
    """A conversation of a fresh project on one connection."""

    def __init__(self, client: Client, project_id: str, conversation_id: str = "chat-1") -> None:
        self.client = client
        self.key = {"projectId": project_id, "conversationId": conversation_id}

    async def call(self, channel: str, **payload: Any) -> Any:
        """Call a channel for this conversation."""
        return await self.client.call(channel, {**self.key, **payload})

    async def failure(self, channel: str, **payload: Any) -> RpcError:
        """Call a channel that must fail, and return the error."""
        return await self.client.failure(channel, {**self.key, **payload})

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


async def make_chat(client: Client, folder: Path, conversation_id: str = "chat-1") -> Chat:
    """Make a folder a project and begin a conversation in it."""
    folder.mkdir(exist_ok=True)
    project = await client.call("project:create", {"rootPath": str(folder)})
    return Chat(client, project["projectId"], conversation_id)
