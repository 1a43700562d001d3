"""The tools of an agent: a description, arguments, and what to call for them.

The table is the same in every run, byte for byte, so that prompt caches keep it. A tool's text is
for the model to read; what is longer than a conversation should hold becomes a context file.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from difflib import get_close_matches
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple

import anyio
import msgspec
from msgspec import Meta

from creonowd.errors import DaemonError, ErrorCode, WarningCode
from creonowd.mcp.daemon_link import DaemonLink, OnProgress
from creonowd.model import Model
from creonowd.text import join_lines

MOST_PASSAGES = 50
MOST_LEFT_OUT = 12
MOST_AT_ONCE = 8
# Texts over this are offered to the inline rule of context files, which decides.
INLINE_CHARACTERS = 2000
# A position behind the end of any document, which the daemon takes for its end.
END = 1 << 40
# How much of a wrong name an error repeats.
LONGEST_ECHO = 80

TextPosition = Annotated[
    int, Meta(ge=0, description="Place in the document, in Unicode code points; default: its end.")
]
DocumentPath = Annotated[
    str, Meta(min_length=1, description="A chapter's path, such as `chapters/07.md`.")
]
FileId = Annotated[str, Meta(min_length=1, description="The `id` of a context file.")]


class Agent(NamedTuple):
    """The daemon, the conversation whose context files are meant, and where progress goes."""

    link: DaemonLink
    conversation_id: str
    on_progress: OnProgress | None = None

    async def call(self, channel: str, *, repeatable: bool = True, **payload: Any) -> Any:
        """Call a channel; what is None is left out."""
        given = {name: value for name, value in payload.items() if value is not None}
        return await self.link.call(
            channel, given, repeatable=repeatable, on_progress=self.on_progress
        )

    async def files(self, channel: str, **payload: Any) -> Any:
        """Call a channel of the conversation's context files."""
        return await self.call(channel, conversationId=self.conversation_id, **payload)


class ToolReply(NamedTuple):
    """The answer of a tool: a text for the model, and the same as data."""

    text: str
    data: dict[str, Any]


class AgentTool(NamedTuple):
    """One tool; `channels` are what it calls."""

    name: str
    title: str
    description: str
    arguments: type[Model]
    run: Callable[[Agent, Any], Awaitable[ToolReply]]
    channels: tuple[str, ...]
    writes: bool = False
    idempotent: bool = True

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return input_schema(self.arguments)


def input_schema(arguments: type[Model]) -> dict[str, Any]:
    """Return the JSON Schema of arguments, without names of ours; nothing else is accepted."""
    _, components = msgspec.json.schema_components([arguments])
    made = components[arguments.__name__]
    return {
        "type": "object",
        "properties": made["properties"],
        "required": made["required"],
        "additionalProperties": False,
    }


def read_arguments(tool: AgentTool, given: dict[str, Any]) -> Any:
    """Read the arguments of a call; INVALID_ARGUMENT names what does not fit."""
    names = {field.encode_name for field in msgspec.structs.fields(tool.arguments)}
    if unknown := sorted(given.keys() - names):
        known = ", ".join(sorted(names))
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            f"{tool.name} has no argument {unknown[0][:LONGEST_ECHO]!r}; it takes: {known}.",
            field=unknown[0][:LONGEST_ECHO],
        )
    try:
        return msgspec.convert(given, tool.arguments)
    except msgspec.ValidationError as error:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, f"{tool.name}: {error}.") from None


class ListFiles(Model):
    """Which context files to list."""

    kind: Annotated[
        Literal["artifact", "history", "catalog"] | None,
        Meta(description="Only files of this kind."),
    ] = None
    limit: Annotated[int, Meta(ge=1, le=500, description="The newest so many.")] = 50


async def list_files(agent: Agent, arguments: ListFiles) -> ToolReply:
    """List the newest context files, one a line."""
    result = await agent.files("context.list", kind=arguments.kind, limit=arguments.limit)
    lines = [_file_line(item) for item in result["items"]]
    return ToolReply("\n".join(lines) or "There are no context files yet.", result)


def _file_line(item: dict[str, Any]) -> str:
    size = f"{item['byteSize']} bytes" if "byteSize" in item else "made when read"
    return f"{item['id']}  {item['kind']}  {size}  {join_lines(item['hint'])}"


class PageOfFile(Model):
    """Which bytes of a file."""

    id: FileId
    offset: Annotated[int, Meta(ge=0, description="First byte; 0 or a `nextOffset`.")] = 0
    limit: Annotated[int, Meta(ge=1, description="How many bytes at most.")] = 8192


async def read_file(agent: Agent, arguments: PageOfFile) -> ToolReply:
    """Read a page of a context file."""
    page = await agent.files(
        "context.read", id=arguments.id, offset=arguments.offset, limit=arguments.limit
    )
    note = "end of file" if page["done"] else f"go on with offset {page['nextOffset']}"
    return ToolReply(f"{page['content']}\n[{note}]", page)


class TailFile(Model):
    """How many of the last lines."""

    id: FileId
    lines: Annotated[int, Meta(ge=1, description="How many of the last lines.")] = 200


async def tail_file(agent: Agent, arguments: TailFile) -> ToolReply:
    """Read the last lines of a context file."""
    tail = await agent.files("context.tail", id=arguments.id, lines=arguments.lines)
    note = f"the last {tail['lines']} lines, from byte {tail['offset']}"
    if tail["truncated"]:
        note += "; their beginning is left out, read it with context_read"
    return ToolReply(f"{tail['content']}\n[{note}]", tail)


class GrepFile(Model):
    """What to search for, line by line."""

    id: FileId
    pattern: Annotated[str, Meta(min_length=1, description="A regular expression (RE2).")]
    max_results: Annotated[int, Meta(ge=1, le=200, description="How many lines at most.")] = 50
    context_lines: Annotated[
        int, Meta(ge=0, le=50, description="Lines before and after each match.")
    ] = 0
    case_sensitive: Annotated[bool, Meta(description="Whether case matters.")] = False
    cursor: Annotated[
        str | None, Meta(description="The `cursor` of an earlier search, to go on.")
    ] = None


async def grep_file(agent: Agent, arguments: GrepFile) -> ToolReply:
    """Search a context file; the text is what grep prints."""
    payload = msgspec.to_builtins(arguments)
    found = await agent.files("context.grep", **payload)
    lines: list[str] = []
    for match in found["matches"]:
        before, after = match.get("before", []), match.get("after", [])
        if lines and (before or after):
            lines.append("--")
        number = match["line"]
        lines += [f"{number - len(before) + n}-{line}" for n, line in enumerate(before)]
        lines.append(f"{number}:{match['content']}")
        lines += [f"{number + 1 + n}-{line}" for n, line in enumerate(after)]
    note = f"{len(found['matches'])} of {found['totalMatches']} matching lines"
    if found["timedOut"]:
        note += "; the search ran out of time, narrow the pattern"
    if "cursor" in found:
        note += f"; go on with cursor {found['cursor']}"
    return ToolReply("\n".join([*lines, f"[{note}]"]), found)


class SearchStory(Model):
    """What to find, and where the author is."""

    query: Annotated[str, Meta(min_length=1, max_length=2000, description="Words to find.")]
    document: Annotated[
        str | None,
        Meta(description="The chapter being written; later ones are then left out. Default: all."),
    ] = None
    position: TextPosition | None = None
    future: Annotated[
        bool, Meta(description="Search also what comes after `document` in the story.")
    ] = False
    limit: Annotated[int, Meta(ge=1, le=MOST_PASSAGES, description="How many at most.")] = 8


async def search_story(agent: Agent, arguments: SearchStory) -> ToolReply:
    """Find passages of the manuscript, with where they stand and why they were found."""
    place: dict[str, Any] = {}
    if arguments.document is not None:
        await _check_document(agent, arguments.document)
        place = _place(arguments.document, arguments.position) | {"future": arguments.future}
    elif arguments.position is not None:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "`position` is a place in a `document`; name that too.",
            field="position",
        )
    found = await agent.call(
        "context:retrieve", query=arguments.query, limit=arguments.limit, wait=True, **place
    )
    parts = [_passage(number, one) for number, one in enumerate(found["passages"], 1)]
    warnings = _warnings(found, arguments.position)
    text = "\n\n".join([*parts, *(f"[{warning}]" for warning in warnings)])
    data = {"passages": found["passages"], "warnings": warnings}
    if not found["passages"]:
        text = "\n\n".join(["No passage has these words.", text]).strip()
    return await _shorten(agent, text, data, f"story_search: {arguments.query[:80]}")


def _passage(number: int, one: dict[str, Any]) -> str:
    heading = " › ".join(one["heading"])
    where = f"{one['sourceRef']}{f' ({heading})' if heading else ''}"
    why = one["why"]
    words = ", ".join(term["term"] for term in why.get("terms", [])[:6])
    named = ", ".join(why.get("names", []))
    reasons = "; ".join(filter(None, (words and f"words: {words}", named and f"names: {named}")))
    return f"{number}. {where}, score {one['score']:.2f}; {reasons}\n{one['content'].strip()}"


async def _check_document(agent: Agent, document: str) -> None:
    """Fail if a document is not there, and name some that are."""
    story = await agent.call("project:story")
    known = [one["path"] for one in (*story["documents"], *story["outside"])]
    if document not in known:
        near = get_close_matches(document, known, n=3, cutoff=0.4) or known[:3]
        raise DaemonError(
            ErrorCode.NOT_FOUND,
            f"There is no document {document[:LONGEST_ECHO]!r}. story_outline lists them; there are {len(known)},"
            f" such as: {', '.join(near)}.",
            document=document[:LONGEST_ECHO],
        )


def _place(document: str, position: int | None) -> dict[str, Any]:
    return {"documentId": document, "cursorPosition": END if position is None else position}


def _warnings(result: dict[str, Any], position: int | None) -> list[str]:
    """Return the warnings; without a position, the one about a position behind the end is left out."""
    code = WarningCode.CONTEXT_CURSOR_CLAMPED if position is None else None
    return [f"{one['code']}: {one['message']}" for one in result["notices"] if one["code"] != code]


class ContextOf(Model):
    """A place, and what for."""

    document: DocumentPath
    position: TextPosition | None = None
    skill: Annotated[
        str | None,
        Meta(description="A skill's id, such as `builtin:continue`; default: all sources."),
    ] = None
    instruction: Annotated[str | None, Meta(description="What the author wants.")] = None


async def context_of(agent: Agent, arguments: ContextOf) -> ToolReply:
    """Assemble what a model should see at a place, with what was left out and why."""
    await _check_document(agent, arguments.document)
    made = await agent.call(
        "context:assemble",
        **_place(arguments.document, arguments.position),
        skillId=arguments.skill,
        additionalInput=arguments.instruction,
    )
    left_out = [one for one in made["trimEvidence"] if one["action"] != "kept"]
    total = made["budget"]["maxInputTokens"]
    warnings = _warnings(made, arguments.position)
    lines = [f"{made['tokenCount']} of {total} tokens.", *warnings, "", made["prompt"]]
    if left_out:
        lines += [f"\nLeft out or shortened ({len(left_out)}):"]
        lines += [f"- {_evidence(one)}" for one in left_out[:MOST_LEFT_OUT]]
    names = ("tokenCount", "promptHash", "stablePrefixHash", "layers")
    data = {name: made[name] for name in names} | {
        "warnings": warnings,
        "leftOut": [
            {name: one[name] for name in ("layer", "sourceRef", "action", "rule", "beforeTokens")}
            for one in left_out
        ],
    }
    return await _shorten(agent, "\n".join(lines), data, f"story_context: {arguments.document}")


def _evidence(one: dict[str, Any]) -> str:
    return f"{one['sourceRef']}: {one['action']} ({one['rule']}), {one['beforeTokens']} tokens"


class ExplainStory(Model):
    """What somebody thinks the model should know, at a place."""

    about: Annotated[
        str, Meta(min_length=1, max_length=200, description="A person, chapter, rule or any words.")
    ]
    document: DocumentPath
    position: TextPosition | None = None
    skill: Annotated[str | None, Meta(description="A skill's id; default: all sources.")] = None


async def explain_story(agent: Agent, arguments: ExplainStory) -> ToolReply:
    """Return whether a prompt at a place holds something, else why not and what would change that."""
    await _check_document(agent, arguments.document)
    result = await agent.call(
        "context:explain",
        about=arguments.about,
        **_place(arguments.document, arguments.position),
        skillId=arguments.skill,
        debugMode=True,
    )
    lines = [f"{result['verdict']}: {result['sentence']}"]
    if "quote" in result:
        lines.append(f"> {result['quote']}")
    lines += [f"- would change it: {_remedy(one)}" for one in result["remedies"]]
    lines += [f"also: {one['sentence']}" for one in result.get("others", [])]
    return ToolReply("\n".join(lines), result)


def _remedy(remedy: dict[str, Any]) -> str:
    details = ", ".join(f"{name} {value}" for name, value in remedy.items() if name != "do")
    return f"{remedy['do']}{f' ({details})' if details else ''}"


class OutlineStory(Model):
    """Which chapters."""

    first: Annotated[
        int, Meta(ge=1, description="The first chapter, by its place in the story.")
    ] = 1
    last: (
        Annotated[int, Meta(ge=1, description="The last one; default: the last there is.")] | None
    ) = None
    full: Annotated[bool, Meta(description="Whole summaries instead of a sentence each.")] = False


async def outline_story(agent: Agent, arguments: OutlineStory) -> ToolReply:
    """List the chapters in the order of the story, with what happens in each."""
    story = await agent.call("project:story")
    chapters: list[dict[str, Any]] = story["documents"]
    chosen = list(enumerate(chapters, 1))[arguments.first - 1 : arguments.last]
    summaries = await _call_each(
        [chapter["path"] for _, chapter in chosen],
        lambda path: agent.call("story:summary:get", documentId=path),
    )
    items: list[dict[str, Any]] = [
        {
            "number": number,
            "document": chapter["path"],
            "length": chapter.get("length"),
            "summary": summary["text"] if arguments.full else summary.get("brief", ""),
            "origin": summary.get("origin", "none"),
        }
        for (number, chapter), summary in zip(chosen, summaries, strict=True)
    ]
    lines = [f"{one['number']}. {one['document']}: {one['summary'] or '(empty)'}" for one in items]
    data = {"chapters": items, "outside": [one["path"] for one in story["outside"]]}
    none = f"There are {len(chapters)} chapters, none of them in this range."
    text = "\n".join(lines) or (none if chapters else "The project has no chapters yet.")
    return await _shorten(agent, text, data, "story_outline")


async def _call_each(
    given: Sequence[str], call: Callable[[str], Awaitable[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Make several calls at once, not too many; the results stand in the order given."""
    results: list[dict[str, Any]] = [{} for _ in given]
    failures: list[DaemonError] = []
    limiter = anyio.CapacityLimiter(MOST_AT_ONCE)

    async def one(index: int) -> None:
        try:
            async with limiter:
                results[index] = await call(given[index])
        except DaemonError as error:
            failures.append(error)
            tasks.cancel_scope.cancel()

    async with anyio.create_task_group() as tasks:
        for index in range(len(given)):
            tasks.start_soon(one, index)
    if failures:
        raise failures[0]
    return results


class CheckConstraints(Model):
    """A text and where it belongs."""

    text: Annotated[str, Meta(min_length=1, max_length=200_000, description="The text to judge.")]
    document: DocumentPath


async def check_constraints(agent: Agent, arguments: CheckConstraints) -> ToolReply:
    """Judge a text by the project's rules; those that no program can judge are listed."""
    result = await agent.call(
        "constraints:check", text=arguments.text, documentId=arguments.document
    )
    verdict = result["verdict"]
    lines = [f"{verdict['status']}: {verdict['checked']} rules checked."]
    lines += [f"- broken: {one['constraint']} — {_quote(one)}" for one in verdict["violations"]]
    lines += [f"- judge yourself: {one['constraint']}" for one in verdict["unchecked"]]
    return ToolReply("\n".join(lines), verdict)


def _quote(violation: dict[str, Any]) -> str:
    place = f" at {violation['from']}–{violation['to']}" if "from" in violation else ""
    return f"“{violation['quote']}”{place} {violation.get('message', '')}".strip()


class PutFile(Model):
    """A text to keep."""

    content: Annotated[str, Meta(min_length=1, description="The text.")]
    hint: Annotated[str, Meta(min_length=1, max_length=500, description="One line: what it is.")]
    kind: Annotated[
        Literal["artifact", "history", "catalog"], Meta(description="What it holds.")
    ] = "artifact"


async def put_file(agent: Agent, arguments: PutFile) -> ToolReply:
    """Keep a text as a context file."""
    payload = {"content": arguments.content, "hint": arguments.hint, "kind": arguments.kind}
    put = await agent.files("context:files:put", repeatable=False, **payload)
    return ToolReply(f"Kept as {_file_line(put['ref'])}", put)


class AddConstraint(Model):
    """A rule of the author."""

    text: Annotated[str, Meta(min_length=1, max_length=2000, description="The rule, a sentence.")]


async def add_constraint(agent: Agent, arguments: AddConstraint) -> ToolReply:
    """Add a constraint."""
    made = await agent.call(
        "constraints:create", repeatable=False, constraint={"text": arguments.text}
    )
    return ToolReply(f"Added as {made['constraint']['id']}.", made)


class RunToAccept(Model):
    """A run of a skill."""

    run_id: Annotated[str, Meta(min_length=1, description="The run's id, `run_…`.")]


async def accept_run(agent: Agent, arguments: RunToAccept) -> ToolReply:
    """Accept a run."""
    result = await agent.call("ai:run:accept", runId=arguments.run_id)
    return ToolReply(f"{arguments.run_id} is accepted; later prompts remember it.", result)


async def _shorten(agent: Agent, text: str, data: dict[str, Any], hint: str) -> ToolReply:
    """Return a reply; if the inline rule finds it too long, a preview and the ref of the whole."""
    if len(text) <= INLINE_CHARACTERS:
        return ToolReply(text, data)
    # The key makes the same answer the same file, so that asking twice leaves one.
    key = f"mcp-{sha256(f'{hint} {text}'.encode()).hexdigest()[:40]}"
    file = {"content": text, "hint": hint, "kind": "artifact", "key": key}
    put = await agent.files("context:files:put", **file)
    if "preview" not in put:
        return ToolReply(text, data)
    ref = put["ref"]
    note = f"[The whole is context file {ref['id']}: context_grep and context_read show the rest.]"
    return ToolReply(f"{put['preview']}\n{note}", {"ref": ref})


def tools(*, write: bool) -> tuple[AgentTool, ...]:
    """Return the tools that are offered."""
    return tuple(tool for tool in TOOLS if write or not tool.writes)


def channels_of(chosen: Iterable[AgentTool]) -> list[str]:
    """Return the channels that tools call."""
    return sorted({channel for tool in chosen for channel in tool.channels})


_INLINE = "context:files:put"

TOOLS = (
    AgentTool(
        "context_list",
        "List context files",
        "List the context files of this conversation: long outputs kept as files. Start here, then"
        " context_grep or context_tail.",
        ListFiles,
        list_files,
        ("context.list",),
    ),
    AgentTool(
        "context_read",
        "Read a context file",
        "Read a page of a context file by byte offset.",
        PageOfFile,
        read_file,
        ("context.read",),
    ),
    AgentTool(
        "context_tail",
        "Read the end of a context file",
        "Read the last lines of a context file, where errors usually are.",
        TailFile,
        tail_file,
        ("context.tail",),
    ),
    AgentTool(
        "context_grep",
        "Search a context file",
        "Search one context file by a regular expression, like ripgrep: line numbers, context"
        " lines, a cursor to go on.",
        GrepFile,
        grep_file,
        ("context.grep",),
    ),
    AgentTool(
        "story_search",
        "Search the manuscript",
        "Find passages of the novel by words or names. Give `document` to leave out what comes"
        " later in the story.",
        SearchStory,
        search_story,
        ("context:retrieve", "project:story", _INLINE),
    ),
    AgentTool(
        "story_context",
        "Assemble the context of a place",
        "Get what a writer's model should see at a place: rules, people, world, earlier passages,"
        " the text at the cursor; and what was left out.",
        ContextOf,
        context_of,
        ("context:assemble", "project:story", _INLINE),
    ),
    AgentTool(
        "story_explain",
        "Why doesn't it know?",
        "Ask whether the context of a place holds a person, chapter, rule or words; if not, why,"
        " and what would change that.",
        ExplainStory,
        explain_story,
        ("context:explain", "project:story"),
    ),
    AgentTool(
        "story_outline",
        "Outline of the story",
        "List the chapters in story order with a summary each.",
        OutlineStory,
        outline_story,
        ("project:story", "story:summary:get", _INLINE),
    ),
    AgentTool(
        "constraints_check",
        "Check a text by the rules",
        "Judge a text by the author's rules before you hand it over; it also lists the rules that"
        " you must judge yourself.",
        CheckConstraints,
        check_constraints,
        ("constraints:check",),
    ),
    AgentTool(
        "context_put",
        "Keep a context file",
        "Keep a long text as a context file of this conversation.",
        PutFile,
        put_file,
        (_INLINE,),
        writes=True,
        idempotent=False,
    ),
    AgentTool(
        "constraints_add",
        "Add a rule",
        "Add a rule that no generated text may break. Only when the author asks for it.",
        AddConstraint,
        add_constraint,
        ("constraints:create",),
        writes=True,
        idempotent=False,
    ),
    AgentTool(
        "run_accept",
        "Accept a run",
        "Accept what a skill wrote, so that later prompts remember it. Only when the author does.",
        RunToAccept,
        accept_run,
        ("ai:run:accept",),
        writes=True,
    ),
)
