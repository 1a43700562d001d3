"""One SKILL.md: what it declares and what it asks the model to do, or its faults.

Its `context_rules` are checked by key, type and limit, and are written in one canonical form.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, cast

import msgspec

from creonowd.context.language import ManuscriptLanguage
from creonowd.context.plan import (
    EVERYTHING,
    MAX_RECENT_SUMMARY,
    MAX_SURROUNDING,
    MAX_SYNOPSIS,
    PLACES,
    ContextRules,
    Summary,
)
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.providers.provider import Effort, Sampling
from creonowd.storage import front_matter
from creonowd.storage.front_matter import Fault, FrontMatter

RULES_KEY = "context_rules"
RULES_METADATA_KEY = "creonow.context_rules"
LIMITS = {"surrounding": MAX_SURROUNDING, "recent_summary": MAX_RECENT_SUMMARY}
SYNOPSIS = "synopsis"
MOST_FAULTS = 100
RULE_KEYS = tuple(field.name for field in msgspec.structs.fields(ContextRules))

FLAG = Wording("true or false", "true 或 false")
FLAG_OR_ALL = Wording("true, false or `all`", "true、false 或 `all`")
WHOLE_NUMBER = Wording("a whole number", "整数")
FLAG_OR_COUNT = Wording("true, false or a whole number", "true、false 或整数")
TEXT = Wording("text", "文本")
MAPPING = Wording("a mapping", "“键: 值”的集合")

_LONGEST_NAME = 80
_KINDS = (
    (bool, FLAG),
    (int, WHOLE_NUMBER),
    (float, Wording("a number with a fraction", "小数")),
    (str, TEXT),
    (list, Wording("a list", "列表")),
    (dict, MAPPING),
)
_NOTHING = Wording("nothing", "空值")
_WANTED = Wording("`{}` must be {}, not {}.", "`{}` 须为 {}，不能是 {}。")
_JSON_TEXT = Wording("JSON in a string", "字符串中的 JSON")
_NOT_JSON = Wording("`{}` is not valid JSON: {}.", "`{}` 不是合法的 JSON：{}。")
_TOO_DEEP = Wording("`{}` is nested too deeply.", "`{}` 嵌套过深。")
_RANGE = Wording("`{}` must be from 0 to {}, not {}.", "`{}` 须在 0 到 {} 之间，不能是 {}。")
_UNKNOWN = Wording("`{}` is not known; {}", "`{}` 不认识；{}")
_SIMILAR = Wording("did you mean `{}`?", "是否想写 `{}`？")
_KNOWN = Wording("known are {}.", "可用的有 {}。")


class RulesCheck(NamedTuple):
    """The rules that a value declares, or its faults."""

    rules: ContextRules
    faults: tuple[Fault, ...] = ()


def check_rules(value: Any, key: str = RULES_KEY) -> RulesCheck:
    """Check a decoded `context_rules`; whatever is left out is off."""
    if not isinstance(value, dict):
        return _invalid_rules(key, wrong_kind(key, MAPPING, value))
    declared = cast("dict[str, Any]", value)
    faults = tuple(islice(_rule_faults(declared, key), MOST_FAULTS))
    return RulesCheck(ContextRules() if faults else ContextRules(**declared), faults)


def check_rules_json(text: Any, key: str) -> RulesCheck:
    """Check `context_rules` as the open standard carries it: JSON in a string."""
    if not isinstance(text, str):
        return _invalid_rules(key, wrong_kind(key, _JSON_TEXT, text))
    try:
        return check_rules(json.loads(text, object_pairs_hook=_without_repeated_keys), key)
    except ValueError as error:
        return _invalid_rules(key, _NOT_JSON.format(key, error))
    except RecursionError:
        return _invalid_rules(key, _TOO_DEEP.format(key))


def canonical_rules(rules: ContextRules) -> str:
    """Write rules as JSON in their one form: every key, in the order of the table, no white space."""
    return json.dumps({key: getattr(rules, key) for key in RULE_KEYS}, separators=(",", ":"))


def unknown_name(key: str, name: str, names: Iterable[str]) -> Fault:
    """Make the fault of an unknown name; it suggests the most similar name, or lists all."""
    import difflib

    choices = list(names)
    near = difflib.get_close_matches(name.lower().replace("-", "_"), choices, n=1, cutoff=0.5)
    advice = _SIMILAR.format(near[0]) if near else _KNOWN.format(", ".join(choices))
    return Fault(key=shorten_name(key), wording=_UNKNOWN.format(shorten_name(name), advice))


def wrong_kind(key: str, wanted: Wording, value: Any) -> Wording:
    """Return the message that a key must have one kind of value, and which kind it has."""
    found = next((name for kind, name in _KINDS if isinstance(value, kind)), _NOTHING)
    return _WANTED.format(key, wanted, found)


def shorten_name(name: str) -> str:
    """Cut a name from a file for a message."""
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}…"


def _invalid_rules(key: str, wording: Wording) -> RulesCheck:
    return RulesCheck(ContextRules(), (Fault(key=key, wording=wording),))


def _rule_faults(declared: Mapping[str, Any], above: str) -> Iterator[Fault]:
    for name, value in declared.items():
        key = f"{above}.{name}"
        if name not in RULE_KEYS:
            yield unknown_name(key, name, RULE_KEYS)
        elif name == SYNOPSIS:
            if not isinstance(value, bool):
                yield from _count_faults(key, value, MAX_SYNOPSIS, FLAG_OR_COUNT)
        elif name in LIMITS:
            yield from _count_faults(key, value, LIMITS[name])
        elif name == "retrieval" and value == EVERYTHING:
            continue
        elif not isinstance(value, bool):
            wanted = FLAG_OR_ALL if name == "retrieval" else FLAG
            yield Fault(key=key, wording=wrong_kind(name, wanted, value))


def _count_faults(
    key: str, value: Any, limit: int, wanted: Wording = WHOLE_NUMBER
) -> Iterator[Fault]:
    name = key.rpartition(".")[2]
    if isinstance(value, bool) or not isinstance(value, int):
        yield Fault(key=key, wording=wrong_kind(name, wanted, value))
    elif not 0 <= value <= limit:
        yield Fault(key=key, wording=_RANGE.format(name, limit, value))


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise ValueError(f"`{shorten_name(name)}` stands twice")
        fields[name] = value
    return fields


MAX_BYTES = 256 * 1024
MAX_TARGET_TOKENS = 64_000
MAX_OUTPUT_TOKENS = 1_000_000
LONGEST_MODEL = 256
LABELS = ("name", "name_en", "name_zh", "description", "description_en", "description_zh")
TEXTS = ("id", *LABELS, "license", "compatibility", "allowed-tools", "version", "model")
FLAGS = ("requires_selection",)
# The prompt for a manuscript in one language; `prompt` is for all others.
PROMPTS = {f"prompt_{language}": language for language in ManuscriptLanguage}
KEYS = (
    *TEXTS,
    *FLAGS,
    *("metadata", "target_tokens", "summaries", "context_rules", "prompt"),
    *("temperature", "topP", "effort", "maxOutputTokens"),
    *PROMPTS,
)
PROMPT_KEYS = ("system", "user")
DEFAULT_USER = "{{text}}"
PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")

_ID = re.compile(r"[\w.:/-]{1,128}")

_INVALID = Wording("The skill{} is not valid{}: {}", "技能{}不合法{}：{}")
_LINE = Wording(" (line {})", "（第 {} 行）")
_TOO_LARGE = Wording("The file has {} bytes; {} is the limit.", "文件有 {} 字节，上限为 {}。")
_NOT_UTF8 = Wording("The file is not UTF-8; save it as UTF-8.", "文件不是 UTF-8，请另存为 UTF-8。")
_NO_FRONT_MATTER = Wording(
    "The file must begin with front matter between two lines `---`.",
    "文件须以两行 --- 之间的文件头开始。",
)
_PLACEHOLDER = Wording("The placeholder {}", "占位符 {}")
_NOT_CLOSED = Wording("A placeholder is not closed at `{}`.", "占位符没有闭合：`{}`。")
_QUOTED = Wording("text between quotes", "引号中的文本")
_BLANK_NAME = Wording("`name` must not be blank.", "`name` 不能为空。")
_BAD_ID = Wording(
    "`id` must have 1 to 128 letters, digits or any of _ - . : /.",
    "`id` 须为 1 至 128 个字母、数字或 _ - . : /。",
)
_BAD_TARGET = Wording(
    f"`target_tokens` must be a whole number from 1 to {MAX_TARGET_TOKENS}.",
    f"`target_tokens` 须为 1 至 {MAX_TARGET_TOKENS} 的整数。",
)
_BAD_OUTPUT = Wording(
    f"`maxOutputTokens` must be a whole number from 1 to {MAX_OUTPUT_TOKENS}.",
    f"`maxOutputTokens` 须为 1 至 {MAX_OUTPUT_TOKENS} 的整数。",
)
_BAD_MODEL = Wording("`model` must have 1 to 256 characters.", "`model` 须为 1 至 256 个字符。")
_BAD_SAMPLING = {
    "temperature": Wording(
        "`temperature` must be a number from 0 to 2.", "`temperature` 须为 0 至 2 的数。"
    ),
    "topP": Wording(
        "`topP` must be a number above 0, at most 1.", "`topP` 须为大于 0 且不超过 1 的数。"
    ),
    "effort": Wording(
        f"`effort` must be one of {', '.join(Effort)}.", f"`effort` 须为 {'、'.join(Effort)} 之一。"
    ),
}
_BAD_SUMMARIES = Wording(
    f"`summaries` must be a list of any of {', '.join(Summary)}.",
    f"`summaries` 须为列表，各项为 {'、'.join(Summary)} 之一。",
)
_TWO_RULES = Wording(
    "`{}` and `{}` differ; keep one of them.", "`{}` 与 `{}` 不一致，请只保留一处。"
)


class Prompt(Model):
    """What a skill asks the model to do."""

    system: str = ""
    """What stands first in the system prompt."""
    user: str = DEFAULT_USER
    """The task, with places such as `{{text}}`, `{{selection}}`, `{{instruction}}` and `{{title}}`
    for values of the run."""


class Skill(Model):
    """The content of one SKILL.md; `id` and `name` are empty if the file's path gives them.

    `summaries` are those that it needs and only a host can give. A run of a skill that
    `requires_selection` fails where nothing is selected. `model` is a model's name or that of a back
    end; it, `sampling` and `max_output_tokens` hold unless the run names others. `names` and
    `descriptions` are for people; a prompt has `name`, whatever language the client has.
    """

    id: str = ""
    name: str = ""
    description: str = ""
    names: Wording = Wording("", "")
    descriptions: Wording = Wording("", "")
    context_rules: ContextRules = ContextRules()
    target_tokens: int | None = None
    summaries: tuple[Summary, ...] = ()
    requires_selection: bool = False
    model: str = ""
    sampling: Sampling = Sampling()
    max_output_tokens: int | None = None
    prompt: Prompt = Prompt()
    prompts: tuple[tuple[ManuscriptLanguage, Prompt], ...] = ()

    def prompt_in(self, language: ManuscriptLanguage) -> Prompt:
        """Return the prompt for a manuscript in a language."""
        return dict(self.prompts).get(language, self.prompt)


class ParsedSkill(NamedTuple):
    """A skill, or all its faults."""

    skill: Skill
    faults: tuple[Fault, ...] = ()


def parse(data: bytes) -> ParsedSkill:
    """Read the bytes of a SKILL.md."""
    if len(data) > MAX_BYTES:
        return _unreadable(_TOO_LARGE.format(len(data), MAX_BYTES))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        return _unreadable(_NOT_UTF8, data.count(b"\n", 0, error.start) + 1)
    read = front_matter.read(text)
    if read is None:
        return _unreadable(_NO_FRONT_MATTER, 1)
    if read.faults:
        return ParsedSkill(Skill(), read.faults)
    return _interpret(read)


def invalid_skill(faults: tuple[Fault, ...], skill_id: str = "") -> DaemonError:
    """Make the error of a skill that is not valid; it names the first fault and lists all."""
    first = faults[0]
    where = "" if first.line is None else _LINE.format(first.line)
    named = Wording(f" {skill_id}", f" {skill_id} ") if skill_id else ""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        _INVALID.format(named, where, first.wording),
        field="content",
        key=first.key,
        errors=[_fields(fault) for fault in faults],
    )


def _fields(fault: Fault) -> dict[str, Any]:
    fields = {"key": fault.key, "message": fault.wording}
    return fields if fault.line is None else fields | {"line": fault.line}


def _unreadable(wording: Wording, line: int | None = None) -> ParsedSkill:
    return ParsedSkill(Skill(), (Fault(key="", wording=wording, line=line),))


def _interpret(read: FrontMatter) -> ParsedSkill:
    rules = _rules(read.values)
    prompt = _prompt(read.values, read.body)
    prompts = {key: _declared_prompt(read.values[key]) for key in PROMPTS if key in read.values}
    found = chain(
        _value_faults(read.values),
        rules.faults,
        *(
            chain(
                _prompt_faults(read.values, key),
                _placeholder_faults(texts.system, f"{key}.system"),
                _placeholder_faults(texts.user, f"{key}.user"),
            )
            for key, texts in {"prompt": prompt, **prompts}.items()
        ),
    )
    if faults := tuple(_with_line(fault, read) for fault in islice(found, MOST_FAULTS)):
        return ParsedSkill(_id_and_name(read.values), faults)
    return ParsedSkill(
        Skill(
            id=read.values.get("id", ""),
            name=read.values.get("name", ""),
            description=read.values.get("description", ""),
            names=_in_both(read.values, "name"),
            descriptions=_in_both(read.values, "description"),
            context_rules=rules.rules,
            target_tokens=read.values.get("target_tokens"),
            summaries=tuple(map(Summary, read.values.get("summaries", ()))),
            requires_selection=read.values.get("requires_selection", False),
            model=read.values.get("model", "").strip(),
            sampling=msgspec.convert(_sampling_values(read.values), Sampling),
            max_output_tokens=read.values.get("maxOutputTokens"),
            prompt=prompt,
            prompts=tuple((PROMPTS[key], texts) for key, texts in prompts.items()),
        )
    )


def _in_both(values: Mapping[str, Any], key: str) -> Wording:
    """Return a name or description in the languages that the file has it in."""
    return Wording(values.get(f"{key}_en", ""), values.get(f"{key}_zh", ""))


def _placeholder_faults(prompt: str, key: str) -> Iterator[Fault]:
    """Find unknown placeholders, each once, and one that is not closed, with lines of the prompt."""
    seen: set[str] = set(PLACES)
    for match in PLACEHOLDER.finditer(prompt):
        if (name := match[1].strip()) not in seen:
            seen.add(name)
            found = unknown_name(key, name, PLACES)
            line = prompt.count("\n", 0, match.start()) + 1
            yield Fault(key=key, wording=_PLACEHOLDER.format(found.wording), line=line)
    rest = PLACEHOLDER.sub(lambda match: "\n" * match[0].count("\n"), prompt)
    if (start := rest.find("{{")) >= 0:
        broken = shorten_name(rest[start:].partition("\n")[0])
        line = rest.count("\n", 0, start) + 1
        yield Fault(key=key, wording=_NOT_CLOSED.format(broken), line=line)


def _with_line(fault: Fault, read: FrontMatter) -> Fault:
    """Add the line of a fault: that of its key or, if the body is the prompt, the line there."""
    if fault.key == "prompt.system" and "prompt" not in read.values:
        skipped = len(read.body) - len(read.body.lstrip("\n"))
        return msgspec.structs.replace(fault, line=read.body_line + skipped + (fault.line or 1) - 1)
    return msgspec.structs.replace(fault, line=read.line_of(fault.key))


def _id_and_name(values: Mapping[str, Any]) -> Skill:
    """Keep the id and name of an invalid skill, so that it still replaces one with its id."""
    own, name = values.get("id"), values.get("name")
    skill_id = own if isinstance(own, str) and _ID.fullmatch(own) else ""
    return Skill(id=skill_id, name=name if isinstance(name, str) else "")


def _value_faults(values: Mapping[str, Any]) -> Iterator[Fault]:
    for key, value in values.items():
        if key not in KEYS:
            yield unknown_name(key, key, KEYS)
        elif key in TEXTS and not isinstance(value, str):
            yield Fault(key=key, wording=wrong_kind(key, _QUOTED, value))
        elif key == "metadata" and not isinstance(value, dict):
            yield Fault(key=key, wording=wrong_kind(key, MAPPING, value))
        elif key in FLAGS and not isinstance(value, bool):
            yield Fault(key=key, wording=wrong_kind(key, FLAG, value))
        elif key in _BAD_SAMPLING and not _is_sampling(key, value):
            yield Fault(key=key, wording=_BAD_SAMPLING[key])
        elif key in _CHECKS and not _CHECKS[key].holds(value):
            yield Fault(key=key, wording=_CHECKS[key].fault)


def _is_filled(value: str, most: int | None = None) -> bool:
    return bool(value.strip()) and (most is None or len(value) <= most)


def _is_id(value: str) -> bool:
    return _ID.fullmatch(value) is not None


def _is_count(value: Any, most: int) -> bool:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 1 <= value <= most


class _FieldCheck(NamedTuple):
    """What a value must be, and the message if it is not."""

    holds: Callable[[Any], bool]
    fault: Wording


def _is_sampling(key: str, value: Any) -> bool:
    try:
        msgspec.convert({key: value}, Sampling)
    except msgspec.ValidationError:
        return False
    return value is not None


def _sampling_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: values[key] for key in _BAD_SAMPLING if key in values}


def _are_summaries(value: Any) -> bool:
    known = list(Summary)
    return isinstance(value, list) and all(item in known for item in cast("list[Any]", value))


_CHECKS: dict[str, _FieldCheck] = {
    "name": _FieldCheck(_is_filled, _BLANK_NAME),
    "id": _FieldCheck(_is_id, _BAD_ID),
    "model": _FieldCheck(partial(_is_filled, most=LONGEST_MODEL), _BAD_MODEL),
    "target_tokens": _FieldCheck(partial(_is_count, most=MAX_TARGET_TOKENS), _BAD_TARGET),
    "maxOutputTokens": _FieldCheck(partial(_is_count, most=MAX_OUTPUT_TOKENS), _BAD_OUTPUT),
    "summaries": _FieldCheck(_are_summaries, _BAD_SUMMARIES),
}


def _rules(values: Mapping[str, Any]) -> RulesCheck:
    """Read `context_rules` at the top, in the metadata of the open standard, or in both if equal."""
    metadata = values.get("metadata")
    in_metadata = cast("dict[str, Any]", metadata) if isinstance(metadata, dict) else {}
    standard = f"metadata.{RULES_METADATA_KEY}"
    if RULES_METADATA_KEY not in in_metadata:
        return check_rules(values.get(RULES_KEY, {}))
    there = check_rules_json(in_metadata[RULES_METADATA_KEY], standard)
    if RULES_KEY not in values:
        return there
    here = check_rules(values[RULES_KEY])
    if not (faults := here.faults + there.faults) and here != there:
        wording = _TWO_RULES.format(RULES_KEY, standard)
        return RulesCheck(ContextRules(), (Fault(key=RULES_KEY, wording=wording),))
    return RulesCheck(here.rules, faults)


def _prompt_faults(values: Mapping[str, Any], key: str) -> Iterator[Fault]:
    prompt = values.get(key, {})
    if not isinstance(prompt, dict):
        yield Fault(key=key, wording=wrong_kind(key, MAPPING, prompt))
        return
    for name, value in cast("dict[str, Any]", prompt).items():
        if name not in PROMPT_KEYS:
            yield unknown_name(f"{key}.{name}", name, PROMPT_KEYS)
        elif not isinstance(value, str):
            dotted = f"{key}.{name}"
            yield Fault(key=dotted, wording=wrong_kind(dotted, TEXT, value))


def _prompt(values: Mapping[str, Any], body: str) -> Prompt:
    """Read the prompt from the front matter; if there is none, the body is the prompt."""
    declared = values.get("prompt")
    return Prompt(system=body.strip("\n")) if declared is None else _declared_prompt(declared)


def _declared_prompt(declared: Any) -> Prompt:
    if not isinstance(declared, dict):
        return Prompt()
    texts = {
        key: value
        for key, value in cast("dict[str, Any]", declared).items()
        if isinstance(value, str)
    }
    return Prompt(system=texts.get("system", ""), user=texts.get("user", DEFAULT_USER))
