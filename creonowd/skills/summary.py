"""What a run came to, in a few lines that a later prompt can hold.

A pure function of skill, instruction and output: no clock, no id, no model.
"""

from creonowd.tokens.boundaries import grapheme_ceiling, grapheme_floor, sentences

HEAD = 120
TAIL = 120
INSTRUCTION = 200
LOOK = 1000


def summarise(skill_name: str, instruction: str, output: str) -> str:
    """Tell which skill ran, what it was told, and how its output begins and ends."""
    lines = [f"技能：{_line(skill_name)}"]
    if asked := _line(instruction):
        lines.append(f"指令：{_head(asked, INSTRUCTION)}")
    written = _extract(output)
    lines.append(f"产出（{len(output)} 字）：{written}" if written else "产出：无")
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _extract(text: str) -> str:
    """Keep beginning and end; of a long text nothing else is looked at."""
    if len(text) > 2 * LOOK:
        return f"{_head(_line(text[:LOOK]), HEAD)} …… {_tail(_line(text[-LOOK:]), TAIL)}"
    line = _line(text)
    return line if len(line) <= HEAD + TAIL else f"{_head(line, HEAD)} …… {_tail(line, TAIL)}"


def _head(text: str, limit: int) -> str:
    """Keep the beginning, up to a sentence if one ends in its second half."""
    if len(text) <= limit:
        return text
    ends = list(sentences(text, limit // 2, limit))
    return text[: ends[-1] if ends else grapheme_floor(text, limit)].rstrip()


def _tail(text: str, limit: int) -> str:
    """Keep the end, from a sentence if one begins in its first half."""
    start = max(0, len(text) - limit)
    begins = next(sentences(text, start, start + limit // 2), None)
    return text[grapheme_ceiling(text, start) if begins is None else begins :]
