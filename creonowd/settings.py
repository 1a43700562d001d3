"""The settings: flags over environment over `<userData>/settings.json`.

No other module reads the environment.
"""

import contextlib
import difflib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import platformdirs
from msgspec import Meta

from creonowd.errors import DaemonError, ErrorCode, Language, Wording, language_of, version_too_new
from creonowd.model import Model
from creonowd.redaction import Redactor

APP = "CreoNow"
PREFIX = "CREONOW_"
FILE = "settings.json"

# Variables that are no settings: the place of user data, and those of tests.
_OTHER_VARIABLES = {
    "CREONOW_USER_DATA_DIR",
    "CREONOW_DAEMON",
    "CREONOW_CHROMIUM",
    "CREONOW_TEST_KILLS",
}

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]


class Settings(Model, forbid_unknown_fields=True):
    """Everything that can be set. `CREONOW_MAX_IN_FLIGHT=8` sets `maxInFlight`."""

    version: Annotated[int, Meta(description="format of settings.json", ge=1, le=1)] = 1
    debug: Annotated[bool, Meta(description="allow context:inspect to owners")] = False
    e2e: Annotated[bool, Meta(description="run under an end-to-end harness")] = False
    deterministic: Annotated[
        bool, Meta(description="count ids and clock instead of rolling them; for harnesses")
    ] = False
    warm_up: Annotated[
        bool, Meta(description="load the tokenizer soon after the start, not when first needed")
    ] = True
    log_level: Annotated[
        str,
        Meta(
            description="what is logged from on: debug, info, warning or error",
            pattern="^(debug|info|warning|error)$",
        ),
    ] = "info"
    log_max_bytes: Annotated[Positive, Meta(description="size at which main.log rotates")] = (
        5_000_000
    )
    log_backups: Annotated[Count, Meta(description="rotated logs kept")] = 3
    max_message_bytes: Annotated[Positive, Meta(description="largest message")] = 10 * 1024 * 1024
    max_in_flight: Annotated[Positive, Meta(description="requests in flight per connection")] = 256
    max_batch: Annotated[Positive, Meta(description="requests in one batch")] = 64
    max_outbound_bytes: Annotated[
        Positive, Meta(description="bytes buffered for a slow reader before work on it waits")
    ] = 1024 * 1024
    request_timeout_ms: Annotated[Positive, Meta(description="deadline of a request")] = 30_000
    skill_timeout_ms: Annotated[Positive, Meta(description="deadline of ai:skill:run")] = 600_000
    source_timeout_ms: Annotated[
        Positive, Meta(description="how long an assembly waits for a source that is no host")
    ] = 10_000
    fragment_limit: Annotated[
        Positive, Meta(description="code points to which one settings or host text is cut")
    ] = 20_000
    assemble_running: Annotated[
        Positive, Meta(description="assemblies of one document that run at once")
    ] = 4
    assemble_waiting: Annotated[
        Count, Meta(description="assemblies of one document that wait; 0 refuses at once")
    ] = 16
    assemble_memory: Annotated[
        Positive, Meta(description="characters that the engine remembers between assemblies")
    ] = 8_000_000
    tokenizer_tables: Annotated[
        str, Meta(description="folder of rank tables to use instead of the packaged ones")
    ] = ""
    drain_ms: Annotated[Count, Meta(description="time to finish work at shutdown")] = 2_000
    max_inline_chars: Annotated[
        int, Meta(description="characters that may stand in a conversation whole", ge=500)
    ] = 4_000
    max_inline_bytes: Annotated[
        int, Meta(description="bytes that may stand in a conversation whole", ge=500)
    ] = 16 * 1024
    context_max_bytes: Annotated[
        Count, Meta(description="context files per project; above it lazy ones are cleaned")
    ] = 2 * 1024**3
    context_lazy_days: Annotated[
        Count, Meta(description="days after their last use that lazy context files are kept")
    ] = 7
    context_eager_days: Annotated[
        Positive, Meta(description="days after their arrival that eager context files are kept")
    ] = 90
    context_sensitive: Annotated[
        bool, Meta(description="redact context files by the wider rules always")
    ] = False
    context_host_timeout_ms: Annotated[
        Positive, Meta(description="time a host has to make a piece of a lazy context file")
    ] = 10_000
    context_import_max_bytes: Annotated[
        Positive, Meta(description="bytes that an imported archive may unpack to")
    ] = 4 * 1024**3
    context_read_max_bytes: Annotated[
        Positive, Meta(description="largest page of context.read", le=1024 * 1024)
    ] = 64 * 1024
    context_tail_max_lines: Annotated[
        Positive, Meta(description="most lines of context.tail", le=100_000)
    ] = 2_000
    grep_timeout_ms: Annotated[
        Positive, Meta(description="time after which context.grep answers with what it has")
    ] = 5_000
    ripgrep: Annotated[
        str, Meta(description="auto, off, or the path of the program that context.grep runs")
    ] = "auto"
    tool_ls_lines: Annotated[Count, Meta(description="entries that history keeps of LS")] = 10
    tool_glob_lines: Annotated[Count, Meta(description="hits that history keeps of Glob")] = 10
    tool_grep_lines: Annotated[Count, Meta(description="matches that history keeps of Grep")] = 5
    tool_read_lines: Annotated[Count, Meta(description="lines that history keeps of Read")] = 500
    tool_edit_lines: Annotated[
        Count, Meta(description="lines that history keeps of Edit, MultiEdit and Write")
    ] = 40
    tool_stderr_lines: Annotated[
        Count, Meta(description="last lines of errors that history keeps of Bash and failures")
    ] = 20
    tool_other_lines: Annotated[
        Count, Meta(description="lines that history keeps of tools that are not in the table")
    ] = 10
    tool_line_chars: Annotated[
        Positive, Meta(description="code points that history keeps of one line")
    ] = 2_000
    tool_summary_chars: Annotated[
        Positive, Meta(description="code points that history keeps of one result")
    ] = 64_000
    history_rounds: Annotated[
        Positive, Meta(description="recent rounds that context:build keeps beside a summary")
    ] = 5
    history_rounds_floor: Annotated[
        Positive, Meta(description="recent rounds that even a full budget leaves")
    ] = 2
    history_budget_tokens: Annotated[
        Positive, Meta(description="budget of context:build unless the request names one")
    ] = 16_000
    history_summary_at: Annotated[
        float,
        Meta(description="share of the budget at which old rounds are summarised", gt=0, le=1),
    ] = 0.5
    history_summary_tokens: Annotated[
        Positive, Meta(description="tokens that a summary of rounds may have in any case")
    ] = 1_200
    history_summary_share: Annotated[
        float,
        Meta(description="share of the tokens of its rounds that a summary may have", ge=0, le=1),
    ] = 0.25
    history_summariser: Annotated[
        Literal["extractive", "model"], Meta(description="who writes history summaries")
    ] = "extractive"
    history_summary_timeout_ms: Annotated[
        Positive, Meta(description="time a model has to write a history summary")
    ] = 20_000
    ai_provider: Annotated[
        Literal["fake", "openai", "anthropic"], Meta(description="who answers ai:skill:run")
    ] = "fake"
    ai_model: Annotated[str, Meta(description="its model; else the budget profile's")] = ""
    ai_base_url: Annotated[str, Meta(description="its address, if not the provider's own")] = ""
    ai_key_file: Annotated[
        str, Meta(description="file with its key, mode 0600; else <userData>/keys/<provider>")
    ] = ""
    ai_idle_timeout_ms: Annotated[
        Positive, Meta(description="longest silence of the provider within a run")
    ] = 120_000
    ai_prompt_cache: Annotated[bool, Meta(description="ask the provider to cache prefixes")] = True
    ai_judge: Annotated[
        Literal["off", "rules", "model"],
        Meta(description="check outputs against constraints: by rules only, or by a model as well"),
    ] = "model"
    ai_fake_script: Annotated[str, Meta(description="JSON file of answers for the fake")] = ""


@dataclass(frozen=True)
class Key:
    """The secret key of a provider, and its origin."""

    value: str = field(repr=False)
    origin: Literal["environment", "file"]


class SettingReport(Model):
    """A setting: its value, where that came from, and what it does."""

    name: str
    value: Any
    origin: str
    description: str


def user_data_dir(flag: Path | None = None, environ: Mapping[str, str] | None = None) -> Path:
    """Return the user-data folder: the flag, `CREONOW_USER_DATA_DIR`, else the platform's report."""
    named = (os.environ if environ is None else environ).get(f"{PREFIX}USER_DATA_DIR")
    if flag is not None:
        return flag.expanduser().absolute()
    if named:
        return Path(named).expanduser().absolute()
    return Path(platformdirs.user_data_dir(APP, appauthor=False))


def console_language(environ: Mapping[str, str] | None = None) -> Language:
    """Return the language of the terminal: `LC_ALL`, `LC_MESSAGES` or `LANG`, else English."""
    variables = os.environ if environ is None else environ
    named = (variables.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    found = language_of(next(filter(None, named), ""))
    return Language.CHINESE if found is Language.CHINESE else Language.ENGLISH


def load(
    user_data: Path,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Merge the three origins; INVALID_ARGUMENT names a value that does not fit and its origin."""
    return msgspec.convert(
        {report.name: report.value for report in origins(user_data, flags, environ)}, Settings
    )


def origins(
    user_data: Path,
    flags: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> list[SettingReport]:
    """List every setting with its value and where that came from, in the order of the struct."""
    layers = (
        ("flag", {name: value for name, value in (flags or {}).items() if value is not None}),
        ("environment", _from_environment(os.environ if environ is None else environ)),
        (FILE, _from_file(user_data / FILE)),
    )
    return [_check(_report(name, layers)) for name in _wire_names()]


def api_key(
    settings: Settings, user_data: Path, environ: Mapping[str, str] | None = None
) -> Key | None:
    """Return the key of the configured provider: from the environment, else from its file.

    AI_NOT_CONFIGURED if other users may read the file.
    """
    provider = settings.ai_provider
    variables = os.environ if environ is None else environ
    for name in (f"{PREFIX}{provider.upper()}_API_KEY", f"{provider.upper()}_API_KEY"):
        if value := variables.get(name, "").strip():
            return Key(value, "environment")
    path = Path(settings.ai_key_file or user_data / "keys" / provider).expanduser()
    try:
        if os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise DaemonError(
                ErrorCode.AI_NOT_CONFIGURED, "Others may read the key file; chmod 600 it first."
            )
        value = path.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return Key(value, "file") if value else None


def variable(wire_name: str) -> str:
    """Return the environment variable of a setting: `CREONOW_MAX_IN_FLIGHT` for `maxInFlight`."""
    return PREFIX + "".join(f"_{c}" if c.isupper() else c.upper() for c in wire_name)


def process_environment(environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a process of ours: Python finds nothing in the current folder."""
    given = dict(os.environ if environ is None else environ)
    entries = given.pop("PYTHONPATH", "").split(os.pathsep)
    if kept := [entry for entry in entries if Path(entry).is_absolute()]:
        given["PYTHONPATH"] = os.pathsep.join(kept)
    return given | {"PYTHONSAFEPATH": "1"}


def unknown_variables(environ: Mapping[str, str] | None = None) -> list[str]:
    """List variables that look like settings and are none, with the nearest setting."""
    known = [variable(name) for name in _wire_names()]
    given = os.environ if environ is None else environ
    found = sorted(name for name in given if name.startswith(PREFIX))
    return [
        f"{name}{_suggestion(name, known, PREFIX)}"
        for name in found
        if name not in {*known, *_OTHER_VARIABLES} and not name.endswith("_API_KEY")
    ]


def _wire_names() -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(Settings)]


def _suggestion(name: str, known: list[str], prefix: str = "") -> str:
    bare = [each.removeprefix(prefix) for each in known]
    near = difflib.get_close_matches(name.removeprefix(prefix), bare, n=1)
    return f" (did you mean {prefix}{near[0]}?)" if near else ""


def _report(name: str, layers: tuple[tuple[str, Mapping[str, Any]], ...]) -> SettingReport:
    field = next(f for f in msgspec.structs.fields(Settings) if f.encode_name == name)
    description = _description(get_type_hints(Settings, include_extras=True)[field.name])
    for origin, values in layers:
        if name in values:
            return SettingReport(
                name=name, value=values[name], origin=origin, description=description
            )
    return SettingReport(name=name, value=field.default, origin="default", description=description)


def _description(hint: Any) -> str:
    notes = (note for note in get_args(hint) if isinstance(note, Meta))
    return next((note.description for note in notes if note.description), "")


_INVALID = Wording(
    "The setting {} ({}) is not valid: {}. It is {}: {}.",
    "设置项 {}（{}）不合法：{}。它须为 {}：{}。",
)
_NO_OBJECT = Wording(
    f"{FILE} is not a JSON object: {{}}. Mend it, or move it away for the defaults.",
    f"{FILE} 不是 JSON 对象：{{}}。请修正，或移走它以使用默认值。",
)
_UNKNOWN = Wording(
    f"{FILE} holds unknown settings: {{}}. Take them out.",
    f"{FILE} 含有未知的设置项：{{}}。请删去。",
)
_ONE_OF = Wording("one of {}", "{} 之一")
_KINDS = {
    bool: Wording("true or false", "true 或 false"),
    int: Wording("a whole number", "整数"),
    float: Wording("a number", "数字"),
}
_TEXT = Wording("a text", "文本")


def _kind(hint: Any) -> Wording:
    """Return in words what a setting may be."""
    bare = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(bare) is Literal:
        return _ONE_OF.format(", ".join(get_args(bare)))
    return _KINDS.get(bare, _TEXT)


def _check(report: SettingReport) -> SettingReport:
    hints = get_type_hints(Settings, include_extras=True)
    field = next(f.name for f in msgspec.structs.fields(Settings) if f.encode_name == report.name)
    try:
        value = msgspec.convert(report.value, hints[field], strict=report.origin != "environment")
    except msgspec.ValidationError as error:
        where = variable(report.name) if report.origin == "environment" else report.origin
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            _INVALID.format(report.name, where, error, _kind(hints[field]), report.description),
        ) from None
    return msgspec.structs.replace(report, value=value)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found = ((name, environ.get(variable(name))) for name in _wire_names())
    return {name: text for name, text in found if text is not None and name != "version"}


def _from_file(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        values = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            _NO_OBJECT.format(error),
        ) from None
    if unknown := sorted(set(values) - set(_wire_names())):
        named = ", ".join(f"{name}{_suggestion(name, _wire_names())}" for name in unknown)
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, _UNKNOWN.format(named))
    if isinstance(found := values.get("version"), int) and found > 1:
        raise version_too_new(FILE, found, 1)
    return values


def user_redactor(settings: Settings, user_data: Path) -> Redactor:
    """Return the redactor of prompts, replies and logs; it also hides this user's home and key."""
    return Redactor(_home(), _keys(settings, user_data))


def _home() -> Path | None:
    """Return the home folder; some service accounts have none."""
    with contextlib.suppress(RuntimeError):
        return Path.home()
    return None


def _keys(settings: Settings, user_data: Path) -> list[str]:
    """Return the key of the provider, if there is one."""
    with contextlib.suppress(DaemonError):
        key = None if settings.ai_provider == "fake" else api_key(settings, user_data)
        return [] if key is None else [key.value]
    return []
