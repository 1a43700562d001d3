"""What a model thinks before it speaks is not kept. Knows how models mark their thoughts."""

import re

_TAGS = "think|thinking|thought|thoughts|reasoning|scratchpad"
_CLOSED = re.compile(rf"<({_TAGS})\b[^>]*>.*?</\1\s*>\s*", re.DOTALL | re.IGNORECASE)
_ONLY_CLOSED = re.compile(rf"\A.*</(?:{_TAGS})\s*>\s*", re.DOTALL | re.IGNORECASE)
_ONLY_OPENED = re.compile(rf"<(?:{_TAGS})\b[^>]*>.*\Z", re.DOTALL | re.IGNORECASE)
_STEP = re.compile(
    r"^(?:Thoughts?|思考)[ \t]*(?:\d+[ \t]*)?[:：].*?"
    r"(?=^(?:Action|Observation|Final Answer|Answer|Finish|行动|观察|最终答案)\b|\n[ \t]*\n|\Z)",
    re.DOTALL | re.MULTILINE,
)


def without_thoughts(content: str) -> str:
    """Leave out what is marked as thought: tags, and the `Thought:` steps of a ReAct trace."""
    for pattern in (_CLOSED, _ONLY_CLOSED, _ONLY_OPENED, _STEP):
        content = pattern.sub("", content)
    return content.strip("\n") if content.strip() else ""
