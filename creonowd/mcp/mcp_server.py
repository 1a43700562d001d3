"""The MCP server: tools, resources and prompts of one project, over standard input and output.

It speaks both generations of the protocol that the SDK knows: with a handshake, and without.
"""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, unquote

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.session import ServerSession
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ServerEvent,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from creonowd import __version__
from creonowd.errors import CATALOGUE, DaemonError, ErrorCode
from creonowd.mcp.agent_tools import (
    END,
    LONGEST_ECHO,
    Agent,
    AgentTool,
    channels_of,
    read_arguments,
    tools,
)
from creonowd.mcp.daemon_link import DaemonLink, OnProgress

INSTRUCTIONS = (
    "A novel and everything its author has written down about it. story_outline shows the chapters,"
    " story_search finds passages, story_context gives what to know before you write at a place."
    " Long outputs are context files: context_list, then context_grep, then context_read."
)
CONTEXT_URI = "creonow://context/"
STORY_URI = "creonow://story/"
POLL_SECONDS = 3.0
RESOURCE_BYTES = 256 * 1024
PAGE_BYTES = 64 * 1024
PAGE_ITEMS = 200
LONGEST_NUMBER = 15
# The channels that resources and prompts call, and those that are asked for changes.
CHANNELS = (
    "context.list",
    "context.read",
    "context:document:read",
    "context:assemble",
    "project:story",
    "skill:list",
)

T = TypeVar("T")
_Context = ServerRequestContext[Any]


class ProjectServer:
    """Answers the requests of a client for one project."""

    def __init__(self, link: DaemonLink, offered: tuple[AgentTool, ...], conversation: str) -> None:
        self._link, self._offered = link, {tool.name: tool for tool in offered}
        self._conversation = conversation
        self._bus = InMemorySubscriptionBus()
        self._sessions: list[ServerSession] = []
        self._state: dict[type[ServerEvent], object] = {}

    def server(self) -> Server[Any]:
        """Return the server of the SDK."""
        return Server(
            "creonowd",
            version=__version__,
            title="CreoNow",
            instructions=INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read_resource,
            on_list_prompts=self._list_prompts,
            on_get_prompt=self._get_prompt,
            on_subscriptions_listen=ListenHandler(self._bus),
        )

    async def look_for_changes(self) -> None:
        """Announce new lists of resources and prompts, as long as somebody may listen."""
        while True:
            await anyio.sleep(POLL_SECONDS)
            try:
                await self._announce()
            except DaemonError:
                continue

    async def _announce(self) -> None:
        agent = self._agent()
        resources = [one.uri for one in await _resources(agent)]
        prompts = [one.model_dump_json() for one in await _prompts(agent)]
        for kind, now in ((ResourcesListChanged, resources), (PromptsListChanged, prompts)):
            before = self._state.get(kind)
            self._state[kind] = now
            if before in (None, now):
                continue
            await self._bus.publish(kind())
            for session in self._sessions:
                if kind is ResourcesListChanged:
                    await session.send_resource_list_changed()
                else:
                    await session.send_prompt_list_changed()

    def _agent(self, on_progress: OnProgress | None = None) -> Agent:
        conversation = self._conversation or f"mcp-{self._link.project_id.removeprefix('prj_')}"
        return Agent(self._link, conversation, on_progress)

    async def _list_tools(self, _context: _Context, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool(tool) for tool in self._offered.values()])

    async def _call_tool(
        self, context: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        self._remember_session(context)
        tool = self._offered.get(params.name)
        if tool is None:
            raise MCPError(
                types.INVALID_PARAMS,
                f"There is no tool {params.name[:LONGEST_ECHO]!r}; there are:"
                f" {', '.join(self._offered)}.",
            )
        try:
            await self._link.open()
            arguments = read_arguments(tool, params.arguments or {})
            reply = await tool.run(self._agent(partial(_report, context)), arguments)
        except DaemonError as error:
            return types.CallToolResult(
                content=[types.TextContent(text=_advice(error))],
                structured_content={
                    "code": error.code,
                    "message": error.message,
                    "details": error.details,
                },
                is_error=True,
            )
        return types.CallToolResult(
            content=[types.TextContent(text=reply.text)], structured_content=reply.data
        )

    async def _list_resources(
        self, context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        self._remember_session(context)
        with _as_protocol_error():
            await self._link.open()
            every = await _resources(self._agent())
        page, cursor = _page(every, params)
        return types.ListResourcesResult(resources=page, next_cursor=cursor)

    async def _list_templates(
        self, _context: _Context, _params: Any
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=f"{CONTEXT_URI}{{id}}",
                    name="context file",
                    description="A long output that is kept as a file.",
                    mime_type="text/plain",
                ),
                types.ResourceTemplate(
                    uri_template=f"{STORY_URI}{{+document}}",
                    name="document",
                    description="A chapter or note of the manuscript.",
                    mime_type="text/markdown",
                ),
            ]
        )

    async def _read_resource(
        self, context: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        self._remember_session(context)
        uri = str(params.uri)
        with _as_protocol_error():
            await self._link.open()
            text, kind = await _resource_text(self._agent(), uri)
        content = types.TextResourceContents(uri=uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[content])

    async def _list_prompts(
        self, context: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        self._remember_session(context)
        with _as_protocol_error():
            await self._link.open()
            every = await _prompts(self._agent())
        page, cursor = _page(every, params)
        return types.ListPromptsResult(prompts=page, next_cursor=cursor)

    async def _get_prompt(
        self, context: _Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        self._remember_session(context)
        with _as_protocol_error():
            await self._link.open()
            return await _filled_prompt(self._agent(), params.name, params.arguments or {})

    def _remember_session(self, context: _Context) -> None:
        """Keep the session of a client with a handshake, which is notified of changes without asking."""
        if context.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS and not self._sessions:
            self._sessions.append(context.session)


def serve_project(user_data: Path, root: Path, conversation: str, *, write: bool) -> None:
    """Serve a project until standard input ends."""
    anyio.run(_serve, user_data, root, conversation, tools(write=write))


async def _serve(
    user_data: Path, root: Path, conversation: str, offered: tuple[AgentTool, ...]
) -> None:
    channels = sorted({*channels_of(offered), *CHANNELS})
    async with anyio.create_task_group() as tasks:
        link = DaemonLink(user_data, root, channels, tasks)
        try:
            await _answer(link, offered, conversation)
        finally:
            await link.aclose()
            tasks.cancel_scope.cancel()


async def _answer(link: DaemonLink, offered: tuple[AgentTool, ...], conversation: str) -> None:
    project = ProjectServer(link, offered, conversation)
    server = project.server()
    options = server.create_initialization_options(
        NotificationOptions(prompts_changed=True, resources_changed=True)
    )
    async with stdio_server() as (reader, writer), anyio.create_task_group() as tasks:
        tasks.start_soon(project.look_for_changes)
        await server.run(reader, writer, options)
        tasks.cancel_scope.cancel()


def _tool(tool: AgentTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.schema,
        annotations=types.ToolAnnotations(
            read_only_hint=not tool.writes,
            destructive_hint=False,
            idempotent_hint=tool.idempotent,
            open_world_hint=False,
        ),
    )


async def _report(context: _Context, params: dict[str, Any]) -> None:
    """Report the daemon's progress to the client, where it counts something."""
    value = params.get("value", params)
    done, total = value.get("done"), value.get("documents", value.get("total"))
    if isinstance(done, int):
        await context.session.report_progress(done, total, f"{done} of {total} documents")


def _advice(error: DaemonError) -> str:
    """Return what went wrong and whether to try again, in words for a model."""
    text = f"{error.message} [{error.code}]"
    again = CATALOGUE[error.code].retryable and not error.details.get("mayBeDone")
    return f"{text} Try again in a moment." if again else text


@contextmanager
def _as_protocol_error() -> Generator[None]:
    """Raise errors of the daemon as those of the protocol, which has no results for them here."""
    try:
        yield
    except DaemonError as error:
        client_errors = {
            ErrorCode.INVALID_ARGUMENT,
            ErrorCode.NOT_FOUND,
            ErrorCode.SKILL_SELECTION_REQUIRED,
        }
        code = types.INVALID_PARAMS if error.code in client_errors else types.INTERNAL_ERROR
        data = {"code": error.code, "details": error.details}
        raise MCPError(code, _advice(error), data) from None


def _page(
    every: list[T], params: types.PaginatedRequestParams | None
) -> tuple[list[T], str | None]:
    cursor = params.cursor if params is not None and params.cursor else "0"
    if not _is_number(cursor):
        raise MCPError(types.INVALID_PARAMS, "The cursor is not one that a list returned.")
    start = int(cursor)
    end = start + PAGE_ITEMS
    return every[start:end], str(end) if end < len(every) else None


async def _resources(agent: Agent) -> list[types.Resource]:
    story = await agent.call("project:story")
    files = await agent.files("context.list", limit=500)
    documents = [
        types.Resource(
            uri=f"{STORY_URI}{quote(one['path'])}", name=one["path"], mime_type="text/markdown"
        )
        for one in (*story["documents"], *story["outside"])
    ]
    return documents + [
        types.Resource(
            uri=f"{CONTEXT_URI}{item['id']}",
            name=item["id"],
            title=item["hint"],
            mime_type=item.get("mimeType"),
            size=item.get("byteSize"),
        )
        for item in files["items"]
    ]


async def _resource_text(agent: Agent, uri: str) -> tuple[str, str]:
    """Return the redacted text of a resource and its media type."""
    if uri.startswith(CONTEXT_URI):
        return await _file_text(agent, unquote(uri.removeprefix(CONTEXT_URI))), "text/plain"
    if uri.startswith(STORY_URI):
        path = unquote(uri.removeprefix(STORY_URI))
        found = await agent.call("context:document:read", documentId=path)
        return found["text"], "text/markdown"
    raise DaemonError(
        ErrorCode.NOT_FOUND,
        f"There is no resource {uri[:LONGEST_ECHO]!r}; resources/list names them.",
    )


async def _file_text(agent: Agent, file_id: str) -> str:
    """Read a context file, page by page, as much of it as a resource may have."""
    text, offset = "", 0
    while True:
        page = await agent.files("context.read", id=file_id, offset=offset, limit=PAGE_BYTES)
        text += page["content"]
        offset = page["nextOffset"]
        if page["done"]:
            return text
        if offset >= RESOURCE_BYTES:
            return f"{text}\n[the rest: context_read {file_id} from offset {offset}]"


async def _prompts(agent: Agent) -> list[types.Prompt]:
    skills = await agent.call("skill:list")
    return [
        types.Prompt(
            name=skill["id"],
            title=skill["name"],
            description=skill["description"] or skill["name"],
            arguments=[*_PLACE, *((_SELECTION,) if skill["requiresSelection"] else ())],
        )
        for skill in skills["items"]
        if skill["valid"]
    ]


_PLACE = (
    types.PromptArgument(name="document", description="A chapter's path.", required=True),
    types.PromptArgument(name="position", description="A place in code points; default: its end."),
    types.PromptArgument(name="instruction", description="What the author wants."),
)
_SELECTION = types.PromptArgument(
    name="selection", description="What it is about: `from-to`, in code points.", required=True
)


async def _filled_prompt(agent: Agent, name: str, given: dict[str, str]) -> types.GetPromptResult:
    """Assemble the prompt of a skill at a place."""
    skills = {one["id"]: one for one in (await agent.call("skill:list"))["items"] if one["valid"]}
    if name not in skills:
        raise DaemonError(
            ErrorCode.NOT_FOUND,
            f"There is no skill {name[:LONGEST_ECHO]!r}; prompts/list names them.",
        )
    if not given.get("document"):
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, "`document` is missing.", field="document")
    made = await agent.call(
        "context:assemble",
        documentId=given["document"],
        cursorPosition=_number(given, "position", END),
        skillId=name,
        additionalInput=given.get("instruction"),
        selection=_selection(given),
    )
    message = types.PromptMessage(role="user", content=types.TextContent(text=made["prompt"]))
    return types.GetPromptResult(description=skills[name]["name"], messages=[message])


def _number(given: dict[str, str], name: str, otherwise: int) -> int:
    text = given.get(name, "")
    if not text:
        return otherwise
    if not _is_number(text):
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            f"`{name}` must be a number, not {text[:LONGEST_ECHO]!r}.",
            field=name,
        )
    return int(text)


def _is_number(text: str) -> bool:
    """Return whether a text is a number of a sensible length."""
    return text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER


def _selection(given: dict[str, str]) -> dict[str, int] | None:
    text = given.get("selection", "")
    if not text:
        return None
    start, _, end = text.partition("-")
    if not (_is_number(start) and _is_number(end)):
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "`selection` must be like 120-180.", field="selection"
        )
    return {"from": int(start), "to": int(end)}
