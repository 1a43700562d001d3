"""What a model thinks before it speaks is not kept. Knows how models mark their thoughts."""

import re

_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>think|thinking|thoughts?|reasoning|scratchpad)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"^(?:Thoughts?|思考)[ \t]*(?:\d+[ \t]*)?[:：].*?"
    r"(?=^(?:Action|Observation|Final Answer|Answer|Finish|行动|观察|最终答案)\b|\n[ \t]*\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_QUOTES = "`'\"“「"


def without_thoughts(content: str) -> str:
    """Leave out what is marked as thought: tags, and the `Thought:` steps of a ReAct trace."""
    content = _STEP.sub("", _without_tags(content))
    return content.strip("\n") if content.strip() else ""


def _without_tags(content: str) -> str:
    """Go over the tags once. Half a pair counts unless a quote shows that it is talked about."""
    tags = list(_TAG.finditer(content))
    last_end = {_name(tag): tag.start() for tag in tags if tag["end"]}
    kept: list[str] = []
    inside, start = "", 0
    for tag in tags:
        name = _name(tag)
        if inside and not (tag["end"] and name == inside):
            continue
        if inside:
            inside, start = "", tag.end()
        elif tag["end"] and not _quoted(content, tag):
            kept, start = [], tag.end()
        elif not tag["end"] and last_end.get(name, -1) > tag.start():
            inside = name
            kept.append(_spoken(content, start, tag.start()))
        elif not tag["end"] and not _quoted(content, tag):
            return "".join([*kept, _spoken(content, start, tag.start())])
    return "".join([*kept, _spoken(content, start, len(content))])


def _spoken(content: str, start: int, end: int) -> str:
    """Give what stands between two thoughts."""
    text = content[start:end]
    return text.lstrip() if start else text


def _name(tag: re.Match[str]) -> str:
    return tag["name"].lower()


def _quoted(content: str, tag: re.Match[str]) -> bool:
    return content[max(0, tag.start() - 1) : tag.start()] in _QUOTES and tag.start() > 0
