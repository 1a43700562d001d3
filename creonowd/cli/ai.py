"""`creonowd ai` — add, list, choose, test and remove the models that answer."""

import argparse
import getpass
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from creonowd import settings
from creonowd.cli.client import Client, connect, show, terminal_safe, write, write_wording
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.providers.configured import PRESETS
from creonowd.providers.local_server import is_local
from creonowd.settings import KEYS, Backend, console_language, user_data_dir
from creonowd.storage import stored_files

LONGEST_KEY = 4096


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "ai", description="Add, list, choose, test and remove the models that answer."
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", parents=[shared], help="list the back ends")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=list_backends)
    adding = actions.add_parser(
        "add",
        parents=[shared],
        help="add a back end and try one call",
        description="Add a back end, try one call, and choose it. The key is asked for without echo"
        f" or, without a terminal, read from stdin. Known names: {', '.join(PRESETS)}.",
    )
    adding.add_argument("name", metavar="NAME")
    adding.add_argument("--preset", choices=PRESETS, help="if NAME is none of the known names")
    adding.add_argument("--provider", choices=("openai", "anthropic", "ollama"))
    adding.add_argument("--model", help="(default: the preset's)")
    adding.add_argument("--base-url", metavar="URL")
    adding.add_argument("--key-variable", metavar="NAME", help="environment variable with the key")
    adding.add_argument("--key-file", metavar="PATH", help="file with the key, closed to others")
    adding.add_argument("--no-test", action="store_true", help="choose it without trying a call")
    adding.set_defaults(run=add_backend)
    for action, run, summary in (
        ("use", use_backend, "choose who answers; `default` is what aiProvider says"),
        ("remove", remove_backend, "remove a back end and its key"),
    ):
        each = actions.add_parser(action, parents=[shared], help=summary)
        each.add_argument("name", metavar="NAME")
        each.set_defaults(run=run)
    test = actions.add_parser("test", parents=[shared], help="try one call")
    test.add_argument("name", metavar="NAME", nargs="?", help="(default: the one that is chosen)")
    test.set_defaults(run=test_backend)


def list_backends(arguments: argparse.Namespace) -> int:
    """Print every back end; the chosen one has a star."""
    with connect(user_data_dir(arguments.user_data)) as client:
        config = client.request("ai:config:get")
    if arguments.json:
        show({"backend": config["backend"], "backends": config["backends"]})
        return 0
    for one in config["backends"]:
        star = "*" if one["name"] == config["backend"] else " "
        fields = (one["name"], one["provider"], one["model"] or "-", one.get("baseUrl", ""))
        write(f"{star} {'  '.join(terminal_safe(list(fields)))}".rstrip() + "\n")
    if "problem" in config:
        write(f"{terminal_safe(config['problem'])}\n", sys.stderr)
    elif config["provider"] == "fake":
        write("fake: no AI is connected; `creonowd ai add NAME` connects one.\n", sys.stderr)
    return 0


def add_backend(arguments: argparse.Namespace) -> int:
    """Store the key, add the back end, try one call, and choose it if that is answered."""
    user_data = user_data_dir(arguments.user_data)
    backend = _new_backend(arguments)
    settings.check_backends({arguments.name: backend})
    key = _ask_key(arguments.name, backend, user_data)
    with connect(user_data, seconds=None) as client:
        if key:
            _write_key(user_data, arguments.name, key)
        fields = msgspec.to_builtins(backend)
        client.request("ai:config:set", {"backends": {arguments.name: fields}})
        if not arguments.no_test:
            try:
                _test(client, arguments.name)
            except DaemonError:
                write_wording(_ADDED_ONLY.format(arguments.name), sys.stderr)
                raise
        client.request("ai:config:set", {"use": arguments.name})
    write_wording(_CHOSEN.format(arguments.name))
    return 0


def use_backend(arguments: argparse.Namespace) -> int:
    """Choose who answers from now on."""
    with connect(user_data_dir(arguments.user_data)) as client:
        client.request("ai:config:set", {"use": arguments.name})
    write_wording(_CHOSEN.format(arguments.name))
    return 0


def test_backend(arguments: argparse.Namespace) -> int:
    """Try one call and print what came of it."""
    with connect(user_data_dir(arguments.user_data), seconds=None) as client:
        _test(client, arguments.name)
    return 0


def remove_backend(arguments: argparse.Namespace) -> int:
    """Remove a back end, and the key that was stored for it."""
    user_data = user_data_dir(arguments.user_data)
    with connect(user_data) as client:
        client.request("ai:config:set", {"backends": {arguments.name: None}})
        (user_data / KEYS / arguments.name).unlink(missing_ok=True)
    write_wording(_REMOVED.format(arguments.name))
    return 0


def _new_backend(arguments: argparse.Namespace) -> Backend:
    """Return the back end of a preset, changed by the options of the command line."""
    preset = arguments.preset or (arguments.name if arguments.name in PRESETS else None)
    backend = Backend() if preset is None else PRESETS[preset]
    given = {
        "provider": arguments.provider,
        "model": arguments.model,
        "base_url": arguments.base_url,
        "key_variable": arguments.key_variable,
        "key_file": arguments.key_file and str(Path(arguments.key_file).expanduser().absolute()),
    }
    if preset is None and not (arguments.provider or arguments.base_url):
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, _UNKNOWN.format(", ".join(PRESETS)))
    backend = replace(backend, **{name: value for name, value in given.items() if value})
    if not backend.model:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, "Name the model with --model.", field="model")
    try:
        return msgspec.convert(msgspec.to_builtins(backend), Backend)
    except msgspec.ValidationError as error:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, f"{error}.") from None


def _ask_key(name: str, backend: Backend, user_data: Path) -> str:
    """Return the key to store; empty if it is elsewhere, or if none is needed."""
    preset = PRESETS.get(name)
    referenced = backend.key_file or backend.key_variable not in {
        "",
        preset and preset.key_variable,
    }
    is_compatible = backend.provider == "openai" and is_local(backend.base_url)
    keyless = backend.provider == "ollama" or (is_compatible and not backend.key_variable)
    if referenced or keyless:
        return ""
    if sys.stdin.isatty():
        prompt = _PROMPT.format(name).text(chinese=console_language() is Language.CHINESE)
        key = getpass.getpass(prompt).strip()
    else:
        key = (
            sys.stdin.buffer.readline(LONGEST_KEY + 2)
            .decode("utf-8", "replace")
            .strip("\ufeff \r\n\t")
        )
    if not key and settings.backend_key(name, backend, user_data) is None:
        raise DaemonError(ErrorCode.AI_NOT_CONFIGURED, _NO_KEY.format(name))
    if key and not (
        key.isascii() and key.isprintable() and " " not in key and len(key) <= LONGEST_KEY
    ):
        raise DaemonError(ErrorCode.AI_NOT_CONFIGURED, _BAD_KEY)
    return key


def _write_key(user_data: Path, name: str, key: str) -> None:
    """Write a key so that only this user can read it."""
    path = user_data / KEYS / name
    stored_files.make_folders(path.parent)
    if path.exists():
        path.chmod(stored_files.PRIVATE)
    stored_files.replace(path, f"{key}\n".encode(), mode=stored_files.PRIVATE)
    if os.name == "nt":
        # Windows ignores modes: take away inherited rights, and give the file to this user alone.
        rights = ["/inheritance:r", "/grant:r", f"{getpass.getuser()}:F"]
        program = str(settings.windows_program("icacls.exe"))
        subprocess.run([program, str(path), *rights], check=False, capture_output=True)


def _test(client: Client, name: str | None) -> None:
    """Try one call; a failure is raised."""
    found = client.request("ai:config:probe", {"backend": name, "ask": True})
    window, total = found["contextWindowTokens"], found["totalBudgetTokens"]
    wording = _ANSWERS if found.get("answered") else _ONLY_THOUGHT
    write_wording(wording.format(found["backend"], found["model"], window, total))
    for notice in found["notices"]:
        write(f"{terminal_safe(notice['message'])}\n")


_PROMPT = Wording("Key of {} (not shown): ", "{} 的密钥（不显示）：")
_NO_KEY = Wording(
    "There is no key for {}: type it, pipe it in, or name it with --key-variable or --key-file.",
    "没有 {} 的密钥：请输入、从管道传入，或用 --key-variable 或 --key-file 指明。",
)
_BAD_KEY = Wording(
    "The key has a character that no key has; copy it anew.",
    "密钥含有密钥不会有的字符；请重新复制。",
)
_UNKNOWN = Wording(
    "There is no preset of this name; name --preset or --base-url. Presets: {}.",
    "没有这个名称的预设；请用 --preset 或 --base-url 指明。预设：{}。",
)
_ADDED_ONLY = Wording(
    "{0} was added but did not answer; `creonowd ai test {0}` tries again, `ai use {0}` chooses it.",
    "{0} 已添加，但没有作答；creonowd ai test {0} 可重试，ai use {0} 可选用。",
)
_ANSWERS = Wording(
    "{} answers: {}, window {}, prompts of up to {} tokens.",
    "{} 可用：{}，窗口 {}，提示至多 {} 个词元。",
)
_ONLY_THOUGHT = Wording(
    "{} can be reached: {} thought and wrote nothing within the test; window {}, prompts of up to {}"
    " tokens.",
    "{} 可连接：{} 在测试中只思考而未作答；窗口 {}，提示至多 {} 个词元。",
)
_CHOSEN = Wording("{} answers from now on.", "此后由 {} 作答。")
_REMOVED = Wording("{} is removed.", "{} 已移除。")
