"""Where a prompt is cut into blocks: between parts that change at different times.

Rules change in days, settings in hours, the story so far with a chapter, passages every page or
two, what single sentences allude to and the window every few hundred characters, and what stands
behind the window with every call. Everything is a
pure function of the prompt.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from creonowd.context.evidence import Decision
from creonowd.context.fragment import FragmentKind, Layer
from creonowd.context.language import title
from creonowd.context.stable_prefix import SystemPrompt
from creonowd.context.text_tools import TextTools
from creonowd.context.user_content import UserContent
from creonowd.tokens.boundaries import LINE_START

BLOCK_BYTES = 360
WINDOW_POINTS = 4

PartName = Literal["rules", "systemPrompt", "story", "passages", "allusions", "window"]

_PARAGRAPH_END = re.compile(rf"\n(?={LINE_START})")


class PromptPlace(NamedTuple):
    """A place in the prompt: the part before it, and the hash, bytes and tokens up to it."""

    after: PartName
    hash: str
    bytes: int
    tokens: int


def prompt_places(
    system_prompt: SystemPrompt, user: UserContent, tools: TextTools
) -> tuple[PromptPlace, ...]:
    """Return where parts that change at different times meet, in the order of the prompt."""
    return tuple(_places(system_prompt, user, tools))


def _places(
    system_prompt: SystemPrompt, user: UserContent, tools: TextTools
) -> Iterator[PromptPlace]:
    rules, prompt = system_prompt.up_to_rules, system_prompt.prompt
    yield PromptPlace("rules", system_prompt.rules_hash, _size(rules.text), rules.tokens)
    size, tokens = _size(prompt.text), prompt.tokens
    yield PromptPlace("systemPrompt", system_prompt.hash, size, tokens)
    hasher = system_prompt.hasher.copy()
    for after, text, count in _parts(user, tools):
        data = text.encode()
        hasher.update(data)
        size, tokens = size + len(data), tokens + count
        if after is not None:
            yield PromptPlace(after, hasher.hexdigest(), size, tokens)


def _size(text: str) -> int:
    return len(text.encode())


_Part = tuple[PartName | None, str, int]


def _parts(user: UserContent, tools: TextTools) -> Iterator[_Part]:
    """Walk over the user content up to the last whole block before the cursor.

    A part without a name ends at no break point.
    """
    retrieved = [decision for decision in user.retrieved if decision.is_kept]
    synopsis = [decision for decision in retrieved if decision.kind is FragmentKind.SYNOPSIS]
    heading = title(Layer.RETRIEVED, empty=not retrieved)
    # Where the last whole chapter begins, the story so far ended while that one was written.
    last = synopsis[-1:] if user.whole_chapters else []
    if before := synopsis[: len(synopsis) - len(last)]:
        yield "story", *_join(heading, before, tools)
        heading = ""
    if last or not before:
        yield "story" if last else None, *_join(heading, last, tools)
    passages = retrieved[len(synopsis) :]
    held = next((n for n, decision in enumerate(passages) if decision.late), len(passages))
    if held:
        yield "passages", *_join("", passages[:held], tools)
    if held < len(passages):
        yield "allusions", *_join("", passages[held:], tools)
    immediate = [decision for decision in user.immediate if decision.is_kept]
    document = next((n for n, decision in enumerate(immediate) if decision.settled), None)
    if document is None:
        return
    heading = title(Layer.IMMEDIATE, empty=False)
    text, tokens = _join(heading, immediate[:document], tools)
    blocks = list(_settled_blocks(immediate[document]))
    for number, block in enumerate(blocks):
        is_late = number >= len(blocks) - WINDOW_POINTS
        yield "window" if is_late else None, text + block, tokens + tools.count(block)
        text, tokens = "", 0


def _join(heading: str, decisions: Sequence[Decision], tools: TextTools) -> tuple[str, int]:
    text = heading + "".join(decision.rendered for decision in decisions)
    tokens = tools.count(heading) if heading else 0
    return text, tokens + sum(decision.tokens for decision in decisions)


def _settled_blocks(document: Decision) -> Iterator[str]:
    """Cut what stands before the cursor at paragraphs, from its beginning on.

    Typing adds blocks and changes none of those before.
    """
    start = 0
    for match in _PARAGRAPH_END.finditer(document.rendered, 0, document.settled):
        block = document.rendered[start : match.end()]
        if _size(block) >= BLOCK_BYTES:
            yield block
            start = match.end()
