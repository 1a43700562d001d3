"""The settings: flags over environment over `<userData>/settings.json`.

No other module reads the environment. The AI that answers is a back end: one of `backends`, chosen
by `aiBackend`, or else the one that `aiProvider`, `aiModel`, `aiBaseUrl` and `aiKeyFile` describe.
An environment that sets one of these four wins over an `aiBackend` of the file.
"""

import contextlib
import functools
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import NODEFAULT, Meta
from msgspec.structs import FieldInfo

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

# The back end that the four settings of their own describe.
OWN_BACKEND = "default"
KEYS = "keys"
LARGEST_FILE = 1024 * 1024
_OWN_BACKEND_SETTINGS = ("aiProvider", "aiModel", "aiBaseUrl", "aiKeyFile")
_AS_JSON = {"backends"}
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z)")

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
BackendName = Annotated[str, Meta(pattern="^[a-z0-9][a-z0-9._-]{0,31}$")]
ProviderName = Literal["fake", "openai", "anthropic", "ollama"]


class Backend(Model, forbid_unknown_fields=True, omit_defaults=True):
    """One AI back end: who answers, with which model, at which address. There is no key in it."""

    provider: ProviderName = "openai"
    """The format that the address speaks; most speak `openai`."""
    model: Annotated[str, Meta(max_length=256)] = ""
    """Its model, by the provider's name for it."""
    base_url: Annotated[str, Meta(max_length=2048)] = ""
    """Its address; empty for the provider's own."""
    key_variable: Annotated[str, Meta(pattern="^([A-Z][A-Z0-9_]{0,127})?$")] = ""
    """The environment variable that has the key; empty if a file has it."""
    key_file: Annotated[str, Meta(max_length=4096)] = ""
    """The file that has the key; empty for `<userData>/keys/NAME`."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely it writes, where neither the run nor the skill says so."""
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    """From which share of the likely words it chooses, where neither the run nor the skill says
    so."""
    effort: Literal["none", "low", "medium", "high"] | None = None
    """How long it may think, where neither the run nor the skill says so."""
    max_output_tokens: Positive | None = None
    """How long its answers may be, where neither the run nor the skill says so."""
    context_window_tokens: Positive | None = None
    """The model's window, where the server does not report it."""
    idle_timeout_ms: Positive | None = None
    """How long it may be silent before the run fails, in milliseconds; without it, the
    setting's."""
    prompt_cache: bool = True
    """Whether to ask the provider to cache prompts."""


def check_backends(backends: Mapping[str, Backend]) -> None:
    """Fail with INVALID_ARGUMENT if a back end's name or address cannot be used.

    The name is also that of a key file. An address with a secret in it would be shown to clients.
    """
    for name, backend in backends.items():
        problem = _bad_name(name) or _bad_address(backend.base_url)
        if problem is not None:
            field = f"backends.{name}"
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT, _BAD_BACKEND.format(field, problem), field=field
            )


def _bad_name(name: str) -> Wording | None:
    if name == OWN_BACKEND or name.endswith(".") or _DEVICE.match(name):
        return Wording("this name is taken; choose another", "该名称已被占用，请换一个")
    return None


def _bad_address(url: str) -> Wording | None:
    try:
        parts = urlsplit(url)
        is_address = not url or (parts.scheme in {"http", "https"} and bool(parts.hostname))
        is_public = "@" not in parts.netloc and not parts.query and not parts.fragment
    except ValueError:
        is_address, is_public = False, True
    if not is_address:
        return Wording(
            "baseUrl must begin with http:// or https:// and name a server",
            "baseUrl 须以 http:// 或 https:// 开头并指明服务器",
        )
    if not is_public:
        return Wording(
            "baseUrl must have no user, password or query; name the key with keyVariable or keyFile",
            "baseUrl 不得含有用户名、密码或查询参数；密钥请用 keyVariable 或 keyFile 指明",
        )
    return None


_BAD_BACKEND = Wording("{}: {}.", "{}：{}。")


class Settings(Model, forbid_unknown_fields=True):
    """Everything that can be set. `CREONOW_MAX_IN_FLIGHT=8` sets `maxInFlight`."""

    version: Annotated[int, Meta(description="format of settings.json", ge=1, le=1)] = 1
    debug: Annotated[bool, Meta(description="allow context:inspect to owners")] = False
    document_writes: Annotated[
        bool, Meta(description="allow owners to change documents with context:document:write")
    ] = False
    e2e: Annotated[bool, Meta(description="run under an end-to-end harness")] = False
    deterministic: Annotated[
        bool,
        Meta(
            description="use counted ids and a stepping clock instead of random ids and the real time; for test harnesses"
        ),
    ] = False
    warm_up: Annotated[
        bool, Meta(description="load the tokenizer soon after the start, not when first needed")
    ] = True
    quick_checks: Annotated[
        bool,
        Meta(
            description="look at no file of which Linux reports that it has not changed; false "
            "checks each file of a project for each assembly"
        ),
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
    backends: Annotated[
        dict[BackendName, Backend],
        Meta(description="AI back ends by name; `creonowd ai add` makes them", max_length=64),
    ] = msgspec.field(default_factory=dict)
    ai_backend: Annotated[
        str,
        Meta(
            description="which of the back ends answers; else aiProvider and the settings beside it"
        ),
    ] = ""
    ai_provider: Annotated[ProviderName, Meta(description="who answers ai:skill:run")] = "fake"
    ai_model: Annotated[str, Meta(description="its model; else the budget profile's")] = ""
    ai_base_url: Annotated[str, Meta(description="its address, if not the provider's own")] = ""
    ai_key_file: Annotated[
        str,
        Meta(description="file with its key, closed to others; else <userData>/keys/<provider>"),
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
    ai_fake: Annotated[
        Literal["auto", "assistant", "echo"],
        Meta(
            description="what the fake answers without a script: ready answers, or the prompt"
            " itself; auto is the prompt in end-to-end tests, else ready answers"
        ),
    ] = "auto"

    @property
    def index_grace_seconds(self) -> float:
        """How long an assembly waits for a change of few documents to be indexed.

        An end-to-end test waits longer, so that its result does not depend on a busy machine.
        """
        return 30.0 if self.e2e else 0.25


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
    import platformdirs

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
    reports = [_check(_report(name, layers)) for name in _wire_names()]
    of_process = {
        each.name: each.origin for each in reports if each.origin not in {"default", FILE}
    }
    for name in _OWN_BACKEND_SETTINGS:
        if name in of_process:
            overruled = (FILE, of_process[name])
            return [
                _overrule(each, *overruled) if each.name == "aiBackend" else each
                for each in reports
            ]
    return reports


def _overrule(report: SettingReport, weaker: str, origin: str) -> SettingReport:
    if report.origin != weaker:
        return report
    return msgspec.structs.replace(report, value="", origin=origin)


def variables_of_backend(environ: Mapping[str, str] | None = None) -> list[str]:
    """List the variables of the environment that decide which back end answers."""
    given = os.environ if environ is None else environ
    names = map(variable, ("aiBackend", *_OWN_BACKEND_SETTINGS))
    return [name for name in names if given.get(name)]


def own_backend(settings: Settings) -> Backend:
    """Return the back end that the settings describe by themselves.

    Its address may have a secret in it: unlike that of a named back end it is not checked.
    """
    return Backend(
        provider=settings.ai_provider,
        model=settings.ai_model,
        base_url=settings.ai_base_url,
        key_file=settings.ai_key_file,
        prompt_cache=settings.ai_prompt_cache,
    )


def api_key(
    settings: Settings, user_data: Path, environ: Mapping[str, str] | None = None
) -> Key | None:
    """Return the key of the provider that the settings describe by themselves."""
    return backend_key(OWN_BACKEND, own_backend(settings), user_data, environ)


def backend_key(
    name: str, backend: Backend, user_data: Path, environ: Mapping[str, str] | None = None
) -> Key | None:
    """Return the key of a back end: from the environment, else from its file.

    The key of a provider goes to the provider's own address, or where the settings alone send it:
    a named back end elsewhere has a key of its own. AI_NOT_CONFIGURED if other users may read the
    file.
    """
    provider = backend.provider
    at_home = name == OWN_BACKEND or not backend.base_url
    usual = f"{provider.upper()}_API_KEY" if at_home else ""
    variables = os.environ if environ is None else environ
    for named in filter(None, (backend.key_variable, usual)):
        for each in (f"{PREFIX}{named}", named):
            if value := variables.get(each, "").strip():
                return Key(value, "environment")
    own = user_data / KEYS / (provider if name == OWN_BACKEND else name)
    if found := _key_in(Path(backend.key_file or own).expanduser()):
        return found
    return _key_in(user_data / KEYS / provider) if at_home and not backend.key_file else None


def _key_in(path: Path) -> Key | None:
    try:
        if os.name != "nt" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise DaemonError(
                ErrorCode.AI_NOT_CONFIGURED, "Others may read the key file; chmod 600 it first."
            )
        value = (_content(path) or b"").decode("utf-8-sig").strip()
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


def windows_program(name: str, environ: Mapping[str, str] | None = None) -> PureWindowsPath:
    """Return where a program of Windows is; by its name alone one of the current folder would run."""
    given = os.environ if environ is None else environ
    return PureWindowsPath(given.get("SYSTEMROOT", r"C:\Windows"), "System32", name)


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


@functools.cache
def _fields() -> dict[str, tuple[FieldInfo, Any]]:
    """Map the name of each setting to its field and its type, in the order of the struct.

    Worked out once: again for every setting, it took 20 ms of each start.
    """
    hints = get_type_hints(Settings, include_extras=True)
    fields = msgspec.structs.fields(Settings)
    return {field.encode_name: (field, hints[field.name]) for field in fields}


def _wire_names() -> list[str]:
    return list(_fields())


def _suggestion(name: str, known: list[str], prefix: str = "") -> str:
    import difflib

    bare = [each.removeprefix(prefix) for each in known]
    near = difflib.get_close_matches(name.removeprefix(prefix), bare, n=1)
    return f" (did you mean {prefix}{near[0]}?)" if near else ""


def _report(name: str, layers: tuple[tuple[str, Mapping[str, Any]], ...]) -> SettingReport:
    field, hint = _fields()[name]
    description = _description(hint)
    for origin, values in layers:
        if name in values:
            return SettingReport(
                name=name, value=values[name], origin=origin, description=description
            )
    default = field.default_factory() if field.default is NODEFAULT else field.default
    return SettingReport(name=name, value=default, origin="default", description=description)


def _description(hint: Any) -> str:
    notes = (note for note in get_args(hint) if isinstance(note, Meta))
    return next((note.description for note in notes if note.description), "")


_INVALID = Wording(
    "The setting {} ({}) is not valid: {}. It is {}: {}.",
    "设置项 {}（{}）不合法：{}。它须为 {}：{}。",
)
_NO_OBJECT = Wording(
    f"{FILE} is not a JSON object: {{}}. Fix it, or move it away for the defaults.",
    f"{FILE} 不是 JSON 对象：{{}}。请修正，或移走它以使用默认值。",
)
_UNKNOWN = Wording(
    f"{FILE} holds unknown settings: {{}}. Take them out.",
    f"{FILE} 含有未知的设置项：{{}}。请删去。",
)
_ONE_OF = Wording("one of {}", "{} 之一")
_BY_NAME = Wording("an object by name", "以名称为键的对象")
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
    if get_origin(bare) is dict:
        return _BY_NAME
    return _KINDS.get(bare, _TEXT)


def _check(report: SettingReport) -> SettingReport:
    _, hint = _fields()[report.name]
    try:
        value = msgspec.convert(report.value, hint, strict=report.origin != "environment")
    except msgspec.ValidationError as error:
        where = variable(report.name) if report.origin == "environment" else report.origin
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            _INVALID.format(report.name, where, error, _kind(hint), report.description),
        ) from None
    if report.name == "backends":
        check_backends(value)
    return msgspec.structs.replace(report, value=value)


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    found = ((name, environ.get(variable(name))) for name in _wire_names())
    return {
        name: _decode_variable(text) if name in _AS_JSON else text
        for name, text in found
        if text is not None and name != "version"
    }


def _decode_variable(text: str) -> Any:
    """Decode a variable as JSON; a text that is no JSON is returned, and refused with other bad values."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _from_file(path: Path) -> dict[str, Any]:
    return stored_values(_content(path))


def _content(path: Path) -> bytes | None:
    """Return the bytes of a plain file, or the first megabyte; None if there is none."""
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return file.read(LARGEST_FILE)


def stored_values(data: bytes | None) -> dict[str, Any]:
    """Return the values of the bytes of settings.json, in their order; none without a file."""
    if data is None:
        return {}
    try:
        values = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
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
    return Redactor(_home(), backend_keys(settings, user_data))


def _home() -> Path | None:
    """Return the home folder; some service accounts have none."""
    with contextlib.suppress(RuntimeError):
        return Path.home()
    return None


def backend_keys(settings: Settings, user_data: Path) -> list[str]:
    """Return the keys of all back ends."""
    found: list[str] = []
    for name, backend in {OWN_BACKEND: own_backend(settings), **settings.backends}.items():
        with contextlib.suppress(DaemonError):
            key = None if backend.provider == "fake" else backend_key(name, backend, user_data)
            found += [] if key is None else [key.value]
    return found
