"""A summary made of the rounds' own words: deterministic, quick, and without a model.

Knows rounds and the form; the same rounds always give the same summary.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from creonowd.conversations.compress import headline_of, ref_in
from creonowd.conversations.excerpts import one_line
from creonowd.conversations.messages import Message, Speaker, ToolCall
from creonowd.conversations.observation import as_fields, parsed
from creonowd.conversations.rounds import NO_RESULT, Round
from creonowd.conversations.summary import NOTHING, Summary
from creonowd.tokens.boundaries import sentences

FILES = 20
FACTS = 5
ACTIONS = 4

_PATHS = ("file_path", "filePath", "path", "file", "notebook_path")
_URL = re.compile(r"https?://[^\s<>\"'）)\]，。；、]{4,200}")
_DEEDS = {"write": "written", "edit": "changed", "multiedit": "changed", "read": "read"}


class Digest(NamedTuple):
    """What one round leaves: everything that a summary may quote of it."""

    request: str
    answer: str
    files: tuple[tuple[str, str], ...]
    links: tuple[str, ...]
    actions: tuple[str, ...]
    waiting: str


_known: WeakKeyDictionary[Round, Digest] = WeakKeyDictionary()


def extract(rounds: Sequence[Round]) -> Summary:
    """Fill the form from old rounds."""
    digests = [digest(each) for each in rounds]
    requests = [each.request for each in digests if each.request]
    answers = [each.answer for each in digests if each.answer]
    actions = [action for each in digests[-2 * ACTIONS :] for action in each.actions]
    return Summary(
        overall_goal=_goal(requests),
        plan_and_progress=_progress(len(digests), answers),
        files=", ".join(_files(digests)) or NOTHING,
        knowledge="; ".join(_facts(digests)) or NOTHING,
        recent_actions="; ".join(actions[-ACTIONS:]) or NOTHING,
        left_off=_left_off(digests[-1]) if digests else NOTHING,
    )


def digest(one: Round) -> Digest:
    """Take from a round what a summary may quote; done once for each."""
    known = _known.get(one)
    if known is None:
        known = _known[one] = _digest(one)
    return known


def _digest(one: Round) -> Digest:
    spoken = [m.content for m in one.messages if m.role is Speaker.ASSISTANT and m.content.strip()]
    words = " ".join(m.content for m in one.messages if m.role is not Speaker.TOOL)
    return Digest(
        request=_sentence(one.request),
        answer=_sentence(spoken[-1]) if spoken else "",
        files=tuple(_touched(one.messages)),
        links=tuple(dict.fromkeys(_URL.findall(words))),
        actions=tuple(_actions(one)),
        waiting=_waiting(one),
    )


def _goal(requests: Sequence[str]) -> str:
    if not requests:
        return NOTHING
    first, latest = requests[0], requests[-1]
    return first if first == latest else f"{first} Now: {latest}"


def _progress(count: int, answers: Sequence[str]) -> str:
    done = f"{count} round{'s' if count != 1 else ''} done"
    return f"{done}, the last with: {answers[-1]}" if answers else done


def _files(digests: Iterable[Digest]) -> list[str]:
    """List the files last touched, each with what was last done to it; changes outweigh reading."""
    deeds: dict[str, str] = {}
    for each in digests:
        for path, deed in each.files:
            before = deeds.pop(path, "")
            deeds[path] = before if deed == "read" and before else deed
    return [f"{path} ({deed})" for path, deed in list(deeds.items())[-FILES:]]


def _facts(digests: Sequence[Digest]) -> list[str]:
    answers = [each.answer for each in digests if each.answer]
    links = list(dict.fromkeys(link for each in digests[-20:] for link in each.links))
    return [
        *dict.fromkeys(answer.replace("; ", ", ") for answer in answers[-FACTS:]),
        *links[-FACTS:],
    ]


def _left_off(last: Digest) -> str:
    if last.waiting:
        return last.waiting
    return f"{last.request} → {last.answer}" if last.answer else last.request or NOTHING


def _waiting(one: Round) -> str:
    unanswered = [m.name for m in one.view if m.content == NO_RESULT]
    return f"waiting for the result of {unanswered[-1]}" if unanswered else ""


def _touched(messages: Iterable[Message]) -> Iterable[tuple[str, str]]:
    for message in messages:
        for call in message.calls:
            arguments = _arguments(call)
            path = next((arguments[k] for k in _PATHS if isinstance(arguments.get(k), str)), "")
            deed = _DEEDS.get(call.name.lower().replace("_", ""))
            if path and deed:
                yield one_line(path, 120), deed


def _actions(one: Round) -> Iterable[str]:
    for message in one.view:
        if message.role is Speaker.TOOL:
            ref = ref_in(message.content)
            headline = one_line(headline_of(message.content), 120).replace("; ", ", ")
            yield f"{headline} ({ref})" if ref else headline


def _arguments(call: ToolCall) -> dict[str, Any]:
    given = call.arguments
    return as_fields(parsed(given) if isinstance(given, str) else given)


def _sentence(text: str) -> str:
    """Take the first sentence of a text, on one line."""
    flat = one_line(text, 600)
    end = next(iter(sentences(flat, 0, len(flat))), len(flat))
    return one_line(flat[:end], 160)
