"""One SKILL.md: what it declares and what it asks the model to do, or what is wrong with it.

Knows the form of the file; knows no folder.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain, islice
from typing import Any, NamedTuple, cast

import msgspec

from creonowd.context.plan import PLACES, ContextRules, Summary
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.skills import context_rules
from creonowd.skills.context_rules import MOST_FAULTS, Checked, kind_of, shorten, unknown
from creonowd.storage import front_matter
from creonowd.storage.front_matter import Fault, FrontMatter

PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")


def faults(prompt: str, key: str) -> Iterator[Fault]:
    """Find what looks like a placeholder and is none, each once; lines are those of the prompt."""
    known: set[str] = set(PLACES)
    for match in PLACEHOLDER.finditer(prompt):
        if (name := match[1].strip()) not in known:
            known.add(name)
            found = unknown(key, name, PLACES)
            line = prompt.count("\n", 0, match.start()) + 1
            yield Fault(key=key, message=f"The placeholder {found.message}", line=line)
    rest = PLACEHOLDER.sub(_blank, prompt)
    if (start := rest.find("{{")) >= 0:
        broken = shorten(rest[start:].partition("\n")[0])
        line = rest.count("\n", 0, start) + 1
        yield Fault(key=key, message=f"A placeholder is not closed at `{broken}`.", line=line)


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")


MAX_BYTES = 256 * 1024
MAX_TARGET_TOKENS = 64_000
TEXTS = ("id", "name", "description", "license", "compatibility", "allowed-tools", "version")
KEYS = (*TEXTS, "metadata", "target_tokens", "summaries", "context_rules", "prompt")
PROMPT_KEYS = ("system", "user")
DEFAULT_USER = "{{text}}"

_ID = re.compile(r"[\w.:/-]{1,128}")


class Prompt(Model):
    """What a skill asks the model to do; `{{text}}` and its kin stand for values of the run."""

    system: str = ""
    user: str = DEFAULT_USER


class Skill(Model):
    """What one SKILL.md says. `id` and `name` are empty where the file leaves them to its place.

    `summaries` are those that it relies on and only a host can give.
    """

    id: str = ""
    name: str = ""
    description: str = ""
    context_rules: ContextRules = ContextRules()
    target_tokens: int | None = None
    summaries: tuple[Summary, ...] = ()
    prompt: Prompt = Prompt()


class Parsed(NamedTuple):
    """A skill, or every fault that keeps it from being one."""

    skill: Skill
    faults: tuple[Fault, ...] = ()


@lru_cache(maxsize=512)
def parse(data: bytes) -> Parsed:
    """Read the bytes of a SKILL.md."""
    if len(data) > MAX_BYTES:
        return _broken(f"The file has {len(data)} bytes; {MAX_BYTES} is the limit.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _broken(
            "The file is not UTF-8; save it as UTF-8.", data.count(b"\n", 0, error.start) + 1
        )
    read = front_matter.read(text)
    if read is None:
        return _broken("The file must begin with front matter between two lines `---`.", 1)
    if read.faults:
        return Parsed(Skill(), read.faults)
    return _interpreted(read)


def refuse(faults: tuple[Fault, ...], what: str) -> DaemonError:
    """Say that a skill cannot be used, naming the first fault and listing all."""
    first = faults[0]
    where = "" if first.line is None else f" (line {first.line})"
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"{what}{where}: {first.message}",
        field="content",
        key=first.key,
        errors=[spelled(fault) for fault in faults],
    )


def spelled(fault: Fault) -> dict[str, Any]:
    """Spell a fault for the wire, without a line where none is known."""
    return {key: value for key, value in msgspec.to_builtins(fault).items() if value is not None}


def _broken(message: str, line: int | None = None) -> Parsed:
    return Parsed(Skill(), (Fault(key="", message=message, line=line),))


def _interpreted(read: FrontMatter) -> Parsed:
    rules = _rules(read.values)
    prompt = _prompt(read.values, read.body)
    found = chain(
        _unknown_or_mistyped(read.values),
        rules.faults,
        _prompt_faults(read.values),
        _places(prompt),
    )
    if located := tuple(_located(fault, read) for fault in islice(found, MOST_FAULTS)):
        return Parsed(_nameplate(read.values), located)
    return Parsed(
        Skill(
            id=read.values.get("id", ""),
            name=read.values.get("name", ""),
            description=read.values.get("description", ""),
            context_rules=rules.rules,
            target_tokens=read.values.get("target_tokens"),
            summaries=tuple(map(Summary, read.values.get("summaries", ()))),
            prompt=prompt,
        )
    )


def _places(prompt: Prompt) -> Iterator[Fault]:
    for part in PROMPT_KEYS:
        yield from faults(getattr(prompt, part), f"prompt.{part}")


def _located(fault: Fault, read: FrontMatter) -> Fault:
    """Say where a fault is: on the line of its key or, in a prompt that is the body, there."""
    if fault.key == "prompt.system" and "prompt" not in read.values:
        skipped = len(read.body) - len(read.body.lstrip("\n"))
        return msgspec.structs.replace(fault, line=read.body_line + skipped + (fault.line or 1) - 1)
    return msgspec.structs.replace(fault, line=read.line_of(fault.key))


def _nameplate(values: Mapping[str, Any]) -> Skill:
    """Keep who an invalid skill says it is, so that it hides what it was to replace."""
    told, name = values.get("id"), values.get("name")
    own = told if isinstance(told, str) and _ID.fullmatch(told) else ""
    return Skill(id=own, name=name if isinstance(name, str) else "")


def _unknown_or_mistyped(values: Mapping[str, Any]) -> Iterator[Fault]:
    for key, value in values.items():
        if key not in KEYS:
            yield unknown(key, key, KEYS)
        elif key in TEXTS and not isinstance(value, str):
            yield Fault(key=key, message=f"`{key}` must be text, not {kind_of(value)}; quote it.")
        elif key == "name" and not value.strip():
            yield Fault(key=key, message="`name` must not be blank.")
        elif key == "id" and not _ID.fullmatch(value):
            message = "`id` must have 1 to 128 letters, digits or any of _ - . : /."
            yield Fault(key=key, message=message)
        elif key == "metadata" and not isinstance(value, dict):
            yield Fault(key=key, message=f"`metadata` must be a mapping, not {kind_of(value)}.")
        elif key == "target_tokens" and not _is_target(value):
            message = f"`target_tokens` must be a whole number from 1 to {MAX_TARGET_TOKENS}."
            yield Fault(key=key, message=message)
        elif key == "summaries" and not _are_summaries(value):
            message = f"`summaries` must be a list of any of {', '.join(Summary)}."
            yield Fault(key=key, message=message)


def _is_target(value: Any) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 1 <= value <= MAX_TARGET_TOKENS


def _are_summaries(value: Any) -> bool:
    known = list(Summary)
    return isinstance(value, list) and all(item in known for item in cast("list[Any]", value))


def _rules(values: Mapping[str, Any]) -> Checked:
    """Read `context_rules` in our own place, in the open standard's, or in both if they agree."""
    metadata = values.get("metadata")
    carried = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    standard = f"metadata.{context_rules.METADATA_KEY}"
    if context_rules.METADATA_KEY not in carried:
        return context_rules.check(values.get(context_rules.KEY, {}))
    there = context_rules.check_json(carried[context_rules.METADATA_KEY], standard)
    if context_rules.KEY not in values:
        return there
    here = context_rules.check(values[context_rules.KEY])
    if not (faults := here.faults + there.faults) and here != there:
        message = f"`{context_rules.KEY}` and `{standard}` differ; keep one of them."
        return Checked(ContextRules(), (Fault(key=context_rules.KEY, message=message),))
    return Checked(here.rules, faults)


def _prompt_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    prompt = values.get("prompt", {})
    if not isinstance(prompt, dict):
        yield Fault(key="prompt", message=f"`prompt` must be a mapping, not {kind_of(prompt)}.")
        return
    for name, value in cast("dict[str, Any]", prompt).items():
        if name not in PROMPT_KEYS:
            yield unknown(f"prompt.{name}", name, PROMPT_KEYS)
        elif not isinstance(value, str):
            message = f"`prompt.{name}` must be text, not {kind_of(value)}."
            yield Fault(key=f"prompt.{name}", message=message)


def _prompt(values: Mapping[str, Any], body: str) -> Prompt:
    """Take the prompt from the front matter; a file without one asks for what its body says."""
    declared = values.get("prompt")
    if declared is None:
        return Prompt(system=body.strip("\n"))
    if not isinstance(declared, dict):
        return Prompt()
    texts = {
        key: value
        for key, value in cast("dict[str, Any]", declared).items()
        if isinstance(value, str)
    }
    return Prompt(system=texts.get("system", ""), user=texts.get("user", DEFAULT_USER))
