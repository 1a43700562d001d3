"""`creonowd doctor` — what is wrong with this installation or project, and how to fix it.

A check is a function that yields findings; the tables at the end list all checks in order.
"""

import argparse
import os
import re
import shutil
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timedelta
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import msgspec

from creonowd import __version__, settings
from creonowd.cli.client import connect, show, terminal_safe, without_secrets, write
from creonowd.clock import make_clock
from creonowd.context.budget import Budget, BudgetProfile, budget_of, fit_to_model
from creonowd.context.story import DoubtKind, Story
from creonowd.context_files import record_store
from creonowd.context_files.search import find_ripgrep
from creonowd.daemon import endpoint
from creonowd.engine.health import INSTALL_AGAIN, SMALLER_PROJECT
from creonowd.errors import (
    WARNINGS,
    DaemonError,
    ErrorCode,
    Language,
    WarningCode,
    Wording,
    same_wording,
)
from creonowd.logs import LOG_FILE, LOG_FOLDER
from creonowd.model import Model
from creonowd.providers.configured import Backends
from creonowd.redaction import Redactor
from creonowd.retrieval import passages, project_index
from creonowd.retrieval.document_list import find_documents
from creonowd.skills import skill
from creonowd.skills.library import slug_of
from creonowd.sources.project_files import (
    ThreadState,
    file_warnings,
    place_warnings,
    plot_threads,
    thread_state,
)
from creonowd.sources.synopsis import STORY_FILE, read_story
from creonowd.storage import journal, stored_files
from creonowd.storage.safe_folder import EFFECTIVE
from creonowd.tokens.tables import (
    BOUNDS,
    ENCODINGS,
    TableError,
    list_tables,
    load_costs,
    load_table,
    packaged_tables,
    verify,
)
from creonowd.tokens.tables import FOLDER as USER_TABLES
from creonowd.workspace import budgets, projects, runs
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import PROJECT_FILE, TREE, CreonowFolder, Tree
from creonowd.workspace.projects import Project
from creonowd.workspace.watcher import MAX_FOLDERS, take_snapshot, unwatched_folders

OK, NOTE, BAD = "ok", "note", "bad"
PACKAGE = "creonowd"
ANSWER_SECONDS = 3.0
STARTED, STOPPED = "daemon_started", "daemon_stopped"
LOG_BYTES = 4 * 1024 * 1024
CLOCK_STEP = timedelta(minutes=1)
WARNING_LEVELS = {"warning", "error", "critical"}
MOST_NAMED = 5
LITTLE_SPACE = 64 * 1024 * 1024

LogLine = dict[str, Any]
_FileProblem = tuple[Wording | None, int | None]


NO_REMEDY = Wording("", "")


class Finding(Model):
    """The result of one check; a remedy where something is wrong, and the line of a file."""

    part: str
    state: str
    found: Wording
    remedy: Wording = NO_REMEDY
    line: int | None = None

    def in_language(self, *, chinese: bool) -> dict[str, str]:
        """Return the finding in one language, without secrets that are a file's name."""
        found, remedy = self.found.text(chinese=chinese), self.remedy.text(chinese=chinese)
        texts = {"part": self.part, "found": found, "remedy": remedy}
        return {"state": self.state, **without_secrets(texts)}


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "doctor",
        parents=[shared],
        description="Look at the installation, the user data, the running daemon and a project.",
    )
    parser.add_argument("--project", type=Path, metavar="DIR", help="also look at this project")
    parser.add_argument(
        "--settings", action="store_true", help="list every setting, its value and its origin"
    )
    parser.add_argument("--json", action="store_true", help="everything, for scripts")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the findings, problems first; the exit status is 1 if anything is bad."""
    user_data = settings.user_data_dir(arguments.user_data)
    chinese = settings.console_language() is Language.CHINESE
    findings = list(_examine(user_data))
    if arguments.project is not None:
        findings += check_project(arguments.project.expanduser().absolute())
    if arguments.json:
        show(
            {
                "version": __version__,
                "findings": [finding.in_language(chinese=chinese) for finding in findings],
                "settings": msgspec.to_builtins(_setting_reports(user_data)),
            }
        )
    else:
        reports = _setting_reports(user_data) if arguments.settings else ()
        colour = sys.stdout.isatty()
        write(
            "".join(
                (
                    *_report_lines(findings, chinese=chinese, colour=colour),
                    *map(_setting_line, reports),
                )
            ),
            painted=True,
        )
    return int(any(finding.state == BAD for finding in findings))


def _examine(user_data: Path) -> Iterator[Finding]:
    """Run all checks that can be run on this user-data folder."""
    checks = CHECKS_OF_INSTALLATION
    if _is_readable(user_data):
        checks += CHECKS_OF_DAEMON
        if user_data.is_dir():
            checks += CHECKS_OF_STORED_FILES
    for check in checks:
        yield from check(user_data)


def _report_lines(findings: list[Finding], *, chinese: bool, colour: bool) -> Iterator[str]:
    """Yield what is bad, then the notes, then one line for all that is fine."""
    for state in (BAD, NOTE):
        for finding in findings:
            if finding.state == state:
                yield _finding_line(finding, chinese=chinese, colour=colour)
    fine = [without_secrets(finding.part) for finding in findings if finding.state == OK]
    if fine:
        summary = _FINE_PARTS.format(len(fine), ", ".join(fine)).text(chinese=chinese)
        yield f"{paint(OK, colour=colour)} {summary}\n"


def _finding_line(finding: Finding, *, chinese: bool, colour: bool) -> str:
    shown = terminal_safe(finding.in_language(chinese=chinese))
    remedy = f"\n    → {shown['remedy']}" if shown["remedy"] else ""
    return f"{paint(finding.state, colour=colour)} {shown['part']}: {shown['found']}{remedy}\n"


def paint(state: str, *, colour: bool) -> str:
    """Return the sign of a state, in its colour if that is wanted."""
    sign = {OK: "✓", NOTE: "·", BAD: "✗"}[state]
    code = {OK: "32", NOTE: "33", BAD: "31"}[state]
    return f"\x1b[{code}m{sign}\x1b[0m" if colour else sign


_FINE_PARTS = Wording("{} parts are fine: {}", "{} 项正常：{}")


def _setting_line(report: settings.SettingReport) -> str:
    value = terminal_safe(f"{report.value}")
    return f"  {report.name} = {value} ({report.origin})  {report.description}\n"


def _setting_reports(user_data: Path) -> list[settings.SettingReport]:
    try:
        return settings.origins(user_data)
    except (DaemonError, OSError):
        return []


def _is_readable(folder: Path) -> bool:
    """Return whether this user may read a folder, or it does not exist yet."""
    return not folder.is_dir() or _has_access(folder, os.R_OK | os.X_OK)


def _has_access(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=EFFECTIVE)


def _unwritable_finding(part: str, found: Wording) -> Finding:
    remedy = Wording(
        "Give yourself the right to write in it; until then writes are refused with IO_ERROR.",
        "请为自己加上写权限；在此之前写入会以 IO_ERROR 被拒绝。",
    )
    return Finding(part=part, state=BAD, found=found, remedy=remedy)


def _check_packages(user_data: Path) -> Iterator[Finding]:  # noqa: ARG001 - the form of a check
    yield Finding(part="python", state=OK, found=same_wording(sys.version.split()[0]))
    for name in _required_packages():
        try:
            yield Finding(part=name, state=OK, found=same_wording(version(name)))
        except PackageNotFoundError:
            found = Wording("not installed", "未安装")
            yield Finding(part=name, state=BAD, found=found, remedy=_install_again())


def _install_again() -> Wording:
    """Return how to repair an installation: with pip, unless an app brought a daemon without Python."""
    if getattr(sys, "frozen", False):
        return Wording(
            "Install the app again that brought creonowd; files of it are missing.",
            "请重新安装带有 creonowd 的应用；它的部分文件缺失。",
        )
    return Wording(
        "Install creonowd again: pip install --force-reinstall creonowd",
        "请重新安装：pip install --force-reinstall creonowd",
    )


def _required_packages() -> list[str]:
    """Return the packages that creonowd requires; itself, if it is not installed as a package."""
    try:
        lines = [line for line in requires(PACKAGE) or () if "extra ==" not in line]
    except PackageNotFoundError:
        return [PACKAGE]
    return [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in lines]


def _check_tokenizer_tables(user_data: Path) -> Iterator[Finding]:
    try:
        folder = settings.load(user_data, {}).tokenizer_tables
    except (DaemonError, OSError):
        folder = ""
    tables = Path(folder) if folder else packaged_tables()
    for name in (*ENCODINGS, *BOUNDS):
        try:
            (load_costs if name in BOUNDS else verify)(name, tables)
            yield Finding(part=name, state=OK, found=Wording("the table is whole", "词表完好"))
        except TableError as error:
            yield Finding(part=name, state=BAD, found=error.wording, remedy=INSTALL_AGAIN)
    yield from _own_tables(user_data)


def _own_tables(user_data: Path) -> Iterator[Finding]:
    """Report each table that the user brought, and whether it can be used."""
    for name, table in list_tables(user_data).items():
        part = f"{USER_TABLES}/{name}"
        try:
            load_table(table)
        except TableError as error:
            remedy = Wording(
                "Fix or remove it; until then its models are counted in bytes.",
                "请修正或删除；在此之前其模型按字节计数。",
            )
            yield Finding(part=part, state=BAD, found=error.wording, remedy=remedy)
            continue
        found = Wording("your table {} is whole", "自备词表 {} 完好").format(table.version)
        yield Finding(part=part, state=OK, found=found)


def _check_programs(user_data: Path) -> Iterator[Finding]:
    """Report whether the tokenizer's library can be loaded, and which program searches files."""
    try:
        import_module("tiktoken")
        yield Finding(part="tokenizer", state=OK, found=Wording("can be loaded", "可以加载"))
    except ImportError as error:
        yield Finding(
            part="tokenizer", state=BAD, found=same_wording(str(error)), remedy=_install_again()
        )
    try:
        setting = settings.load(user_data, {}).ripgrep
    except (DaemonError, OSError):
        setting = "auto"
    program = find_ripgrep(setting)
    found = Wording("none; files are searched by the daemon itself", "无；由守护进程自行搜索文件")
    yield Finding(part="ripgrep", state=OK, found=same_wording(str(program)) if program else found)


def _check_user_data(user_data: Path) -> Iterator[Finding]:
    if (problem := endpoint.rights_problem(user_data)) is not None:
        yield Finding(part="user data", state=BAD, found=problem)
        return
    existing = next(place for place in (user_data, *user_data.parents) if place.exists())
    if existing.is_dir() and _is_readable(existing) and _has_access(existing, os.W_OK):
        state = Wording("{} (will be made at the first start)", "{}（首次启动时创建）")
        if existing == user_data:
            state = Wording("{} (writable)", "{}（可写）")
        yield Finding(part="user data", state=OK, found=state.format(user_data))
        return
    trouble = Wording("{} is not a folder", "{} 不是文件夹")
    if existing.is_dir():
        trouble = Wording("{} cannot be read", "{} 无法读取")
        if _is_readable(existing):
            trouble = Wording("{} is not writable", "{} 不可写")
    remedy = Wording(
        "Fix that, or name another with --user-data or CREONOW_USER_DATA_DIR.",
        "请修正，或用 --user-data 或 CREONOW_USER_DATA_DIR 指定别处。",
    )
    yield Finding(part="user data", state=BAD, found=trouble.format(existing), remedy=remedy)


def _check_settings(user_data: Path) -> Iterator[Finding]:
    try:
        changed = [one for one in settings.origins(user_data) if one.origin != "default"]
        listed = ", ".join(f"{one.name}={one.value} ({one.origin})" for one in changed)
        found = same_wording(listed) if listed else Wording("all defaults", "均为默认值")
        yield Finding(part="settings", state=OK, found=found)
    except DaemonError as error:
        remedy = Wording("Fix or remove it.", "请修正或删除它。")
        yield Finding(part="settings", state=BAD, found=error.wording, remedy=remedy)
    for name in settings.unknown_variables():
        found = Wording("{} is no setting", "{} 不是设置项").format(name)
        remedy = Wording(
            "It changes nothing; `creonowd doctor --settings` lists what would.",
            "它不起作用；creonowd doctor --settings 列出全部设置项。",
        )
        yield Finding(part="environment", state=NOTE, found=found, remedy=remedy)


def _check_ai(user_data: Path) -> Iterator[Finding]:
    """Report which back end answers, whether it is ready, and the real window of a local server."""
    try:
        backends = Backends(settings.load(user_data), user_data, time.monotonic)
        stored = budgets.load(user_data / budgets.FOLDER / f"{budgets.DEFAULT}.json")
        budget = budget_of(BudgetProfile() if stored is None else stored)
        yield from anyio.run(_ai_findings, backends, budget)
    except (DaemonError, OSError, stored_files.DamagedFileError):
        # Other checks report settings and budgets that cannot be read.
        return


async def _ai_findings(backends: Backends, budget: Budget) -> list[Finding]:
    name = backends.chosen_name
    backend, readiness = backends.get(name), await backends.readiness()
    model = backend.model or budget.profile.model
    await backends.aclose()
    if not readiness.ready:
        remedy = Wording(
            "`creonowd ai add NAME` asks for the key and tries one call.",
            "creonowd ai add 名称 会询问密钥并试一次调用。",
        )
        found = same_wording(readiness.problem or "")
        return [Finding(part="ai", state=BAD, found=found, remedy=remedy)]
    if backend.provider == "fake":
        found = Wording(
            "none is connected; ready answers stand in for one", "未连接；以现成的回答代替"
        )
        return [Finding(part="ai", state=OK, found=found)]
    asked = Wording("{}: {} with {}", "{}：{}，模型 {}").format(name, backend.provider, model)
    findings = [Finding(part="ai", state=OK, found=asked)]
    try:
        await backends.ask_server(name, model)
    except DaemonError as error:
        return [Finding(part="ai", state=NOTE, found=error.wording)]
    limits = backends.limits(name, model)
    fitted = fit_to_model(
        budget,
        window=limits.window,
        thinks=limits.thinks,
        output_tokens=backend.max_output_tokens,
        output_limit=limits.output_limit,
    )
    findings += [
        Finding(part="ai window", state=NOTE, found=one.wording)
        for one in fitted.warnings
        if one.code is WarningCode.CONTEXT_WINDOW_REDUCED and one.wording is not None
    ]
    return findings


def _check_daemon(user_data: Path) -> Iterator[Finding]:
    if endpoint.rights_problem(user_data) is not None:
        # Whoever connects closes the folder, or is refused.
        return
    if not endpoint.is_running(user_data):
        stale = (user_data / endpoint.RUN / endpoint.FILE).exists()
        found = Wording("not running", "未运行")
        if stale:
            found = Wording(
                "not running; it left an endpoint file behind", "未运行；留下了端点文件"
            )
        yield Finding(part="daemon", state=NOTE, found=found)
        return
    try:
        with connect(user_data, ANSWER_SECONDS) as client:
            health = client.request("app:health")
    except DaemonError as error:
        remedy = Wording("Stop pid {} and start it again.", "请结束进程 {} 后重新启动。")
        pid = endpoint.running_pid(user_data)
        found = error.wording
        yield Finding(part="daemon", state=BAD, found=found, remedy=remedy.format(pid))
        return
    pid = endpoint.running_pid(user_data)
    found = Wording("pid {}, version {}", "进程 {}，版本 {}").format(pid, health["version"])
    yield Finding(part="daemon", state=OK, found=found)
    for trouble in health["degraded"]:
        # The daemon's texts are in the language of this connection.
        found, remedy = same_wording(trouble["reason"]), same_wording(trouble["remedy"])
        yield Finding(part=trouble["part"], state=BAD, found=found, remedy=remedy)


def _check_log(user_data: Path) -> Iterator[Finding]:
    """Report a clock that was set back, the warnings since the last start, and the last end."""
    lines = _log_lines(user_data / LOG_FOLDER / LOG_FILE)
    starts = [index for index, line in enumerate(lines) if line.get("event") == STARTED]
    yield from _clock_steps(lines)
    if starts:
        yield from _warnings(lines[starts[-1] :])
    last_pid = endpoint.running_pid(user_data)
    running = last_pid if endpoint.is_running(user_data) else None
    ended = [index for index in starts if lines[index].get("pid") != running]
    if last_pid != running:
        yield _kill_finding(Wording("with pid {}", "进程 {} ").format(last_pid))
    elif ended:
        yield _last_end(lines[ended[-1] :])


def _log_lines(path: Path) -> list[LogLine]:
    """Read the end of the log; a line that a kill or a full disk has cut is left out."""
    try:
        if not path.is_file():
            return []
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except OSError:
        return []
    return [line for text in data.split(b"\n") if (line := _log_line(text)) is not None]


def _log_line(text: bytes) -> LogLine | None:
    try:
        return msgspec.json.decode(text, type=LogLine)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _clock_steps(lines: list[LogLine]) -> Iterator[Finding]:
    """Report a clock that was set back; one that was set ahead looks like a long pause."""
    times = [time for line in lines if (time := _time(line)) is not None]
    back = [pair for pair in pairwise(times) if pair[0] - pair[1] > CLOCK_STEP]
    if back:
        before, after = (time.isoformat(timespec="seconds") for time in back[-1])
        found = Wording("it was set back from {} to {}", "时钟曾从 {} 拨回 {}").format(
            before, after
        )
        remedy = Wording(
            "Nothing to fix: what is kept is in the order in which it came.",
            "无需修正：已存内容按到达顺序保存。",
        )
        yield Finding(part="clock", state=NOTE, found=found, remedy=remedy)


def _time(line: LogLine) -> datetime | None:
    try:
        return datetime.fromisoformat(str(line.get("time")))
    except ValueError:
        return None


def _warnings(lines: list[LogLine]) -> Iterator[Finding]:
    counts = Counter(_event(line) for line in lines if line.get("level") in WARNING_LEVELS)
    if counts:
        listed = ", ".join(f"{count} × {name}" for name, count in counts.most_common())
        remedy = Wording("{} has them in full.", "详见 {}。").format(f"{LOG_FOLDER}/{LOG_FILE}")
        yield Finding(part="log", state=NOTE, found=same_wording(listed), remedy=remedy)


def _event(line: LogLine) -> str:
    code = line.get("code")
    return f"{line.get('event')} ({code})" if isinstance(code, str) else str(line.get("event"))


def _last_end(lines: list[LogLine]) -> Finding:
    following = [line["event"] for line in lines[1:] if line.get("event") in {STARTED, STOPPED}]
    if following[:1] == [STOPPED]:
        reason = next(line.get("reason") for line in lines if line.get("event") == STOPPED)
        found = Wording("in order: {}", "正常结束：{}").format(reason)
        return Finding(part="last end", state=OK, found=found)
    return _kill_finding(Wording("of {}", "{} 启动的").format(lines[0].get("time")))


def _kill_finding(daemon: Wording) -> Finding:
    found = Wording(
        f"the daemon {daemon.english} was killed or the machine went down",
        f"{daemon.chinese}守护进程被强行结束，或机器断电",
    )
    remedy = Wording(
        "Nothing to fix: what was acknowledged is on the disk.",
        "无需修正：已确认的内容都在磁盘上。",
    )
    return Finding(part="last end", state=NOTE, found=found, remedy=remedy)


def _check_space(user_data: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(user_data).free
    if free < LITTLE_SPACE:
        found = Wording(
            "only {} KiB are free where user data lies", "用户数据所在磁盘仅剩 {} KiB"
        ).format(free // 1024)
        remedy = Wording(
            "Free some space; until then writes are refused with STORAGE_FULL.",
            "请释放空间；在此之前写入会以 STORAGE_FULL 被拒绝。",
        )
        yield Finding(part="disk", state=BAD, found=found, remedy=remedy)


def _check_folders(user_data: Path) -> Iterator[Finding]:
    for place in sorted(filter(Path.is_dir, user_data.iterdir())):
        if not os.access(place, os.W_OK):
            yield _unwritable_finding(
                place.name, Wording("the folder cannot be written", "文件夹不可写")
            )


def _check_stored_files(user_data: Path) -> Iterator[Finding]:
    findings = [*_project_findings(user_data), *_damaged_files(user_data)]
    yield from findings
    yield from _files_kept_aside(user_data)
    if not any("." in finding.part for finding in findings):
        yield Finding(part="stored files", state=OK, found=Wording("all can be read", "均可读取"))


def _project_findings(user_data: Path) -> Iterator[Finding]:
    try:
        known = projects.read(user_data)
    except (stored_files.DamagedFileError, DaemonError) as error:
        usual = Wording(
            "At the next use it is kept aside; then create your projects again.",
            "下次使用时会另存该文件；请随后重新创建项目。",
        )
        yield _damage_finding(projects.FILE, error, usual)
        return
    for project in known:
        if not project.root.is_dir():
            found = Wording("the folder of {} is not there: {}", "{} 的文件夹不存在：{}")
            found = found.format(project.name, project.root)
            remedy = Wording(
                "Bring it back, or forget the project with project:delete.",
                "请将其放回，或用 project:delete 移除该项目。",
            )
            yield Finding(part=project.project_id, state=BAD, found=found, remedy=remedy)
        elif not os.access(project.root, os.W_OK):
            found = Wording("the folder of {} cannot be written: {}", "{} 的文件夹不可写：{}")
            yield _unwritable_finding(project.project_id, found.format(project.name, project.root))


def _damaged_files(user_data: Path) -> Iterator[Finding]:
    for pattern, problem_in, remedy in STORED_FILES:
        for path in sorted(user_data.glob(pattern)):
            if stored_files.is_aside(path):
                continue
            try:
                problem = problem_in(path)
            except (stored_files.DamagedFileError, DaemonError, OSError) as error:
                problem = error
            if problem:
                yield _damage_finding(path.relative_to(user_data).as_posix(), problem, remedy)


def _damage_finding(part: str, problem: Exception | Wording, usual: Wording) -> Finding:
    """Report a damaged file, or one of a newer version, which is not damaged and stays as it is."""
    remedy = usual
    if isinstance(problem, DaemonError):
        found = problem.wording
        if problem.code is ErrorCode.VERSION_TOO_NEW:
            remedy = Wording(
                "Start the newer creonowd again; this one leaves the file as it is.",
                "请启动较新的 creonowd；当前版本不会改动该文件。",
            )
    elif isinstance(problem, Wording):
        found = problem
    else:
        found = Wording(f"cannot be read: {problem}", "无法读取")
    return Finding(part=part, state=BAD, found=found, remedy=remedy)


def _files_kept_aside(user_data: Path) -> Iterator[Finding]:
    for path in sorted(user_data.rglob("*.damaged-*")):
        if stored_files.is_aside(path):
            part = path.relative_to(user_data).as_posix()
            found = Wording("could not be read once and was kept aside", "曾无法读取，已另存")
            remedy = Wording(
                "Look in it for what you miss, then delete it.", "请从中找回所需内容，然后删除。"
            )
            yield Finding(part=part, state=NOTE, found=found, remedy=remedy)


_DAMAGED_LINES = Wording("{} damaged lines", "{} 行已损坏")


def _budget_problem(path: Path) -> Wording | None:
    budgets.load(path)
    return None


def _corrections_problem(path: Path) -> Wording | None:
    budgets.load_corrections(path)
    return None


def _history_problem(path: Path) -> Wording | None:
    lines = journal.replay(path)
    damaged = _DAMAGED_LINES.format(lines.damaged) if lines.damaged else None
    if not lines.torn:
        return damaged
    incomplete = Wording("its last line is incomplete", "末行残缺")
    if damaged is None:
        return incomplete
    return Wording(
        f"{damaged.english}, {incomplete.english}", f"{damaged.chinese}，{incomplete.chinese}"
    )


def _runs_problem(path: Path) -> Wording | None:
    head, *lines = _bytes_of(path).split(b"\n")
    stored_files.decode(head, msgspec.Raw, version=runs.VERSION, name=path.name)
    torn = [line for line in lines if line and not runs.is_whole(line)]
    return _DAMAGED_LINES.format(len(torn)) if torn else None


def _manifest_problem(path: Path) -> Wording | None:
    readable = record_store.read_manifest(path.parent)
    return None if readable else Wording("cannot be read", "无法读取")


def _binding_problem(path: Path) -> Wording | None:
    stored_files.load(path, record_store.Binding, version=record_store.VERSION)
    return None


def _index_problem(path: Path) -> Wording | None:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
            (mark,) = connection.execute("PRAGMA application_id").fetchone()
            (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.DatabaseError as error:
        return Wording(f"is damaged: {error}", "已损坏") if passages.is_damage(error) else None
    whole = (mark, verdict) == (passages.MARK, "ok")
    return None if whole else Wording("is damaged", "已损坏")


def check_project(root: Path) -> Iterator[Finding]:
    """Report what is wrong with a project, its `.creonow` folder and its story."""
    if not root.is_dir():
        found = Wording("{} is not a folder", "{} 不是文件夹").format(root)
        remedy = Wording("Name the folder of a novel.", "请指定小说所在的文件夹。")
        yield Finding(part="project", state=BAD, found=found, remedy=remedy)
        return
    if not _has_access(root, os.W_OK):
        found = Wording("{} is not writable", "{} 不可写").format(root)
        remedy = Wording("Give yourself the right to write in it.", "请为自己加上写权限。")
        yield Finding(part="project", state=BAD, found=found, remedy=remedy)
    folder = root / ".creonow"
    if folder.exists() and not folder.is_dir():
        remedy = Wording(
            "Move it away; `context:creonow:ensure` then makes the folder.",
            "请将其移走；context:creonow:ensure 随后会创建该文件夹。",
        )
        found = Wording("is not a folder", "不是文件夹")
        yield Finding(part=".creonow", state=BAD, found=found, remedy=remedy)
    elif not folder.exists():
        found = Wording(
            "absent; context:creonow:ensure makes it", "不存在；context:creonow:ensure 会创建"
        )
        yield Finding(part=".creonow", state=NOTE, found=found)
    else:
        yield Finding(part=".creonow", state=OK, found=Wording("present", "存在"))
        yield from _creonow_files(root)
    yield from _bounds_findings(root)
    yield from _story_findings(root)


def _bounds_findings(root: Path) -> Iterator[Finding]:
    """Report what a huge folder leaves out, and how many of its folders are not watched."""
    for caution in find_documents(root).cautions():
        assert caution.wording is not None
        part = caution.source_ref or "documents"
        found = Wording(*(_without_path(caution.source_ref, text) for text in caution.wording))
        yield Finding(part=part, state=NOTE, found=found, remedy=SMALLER_PROJECT)
    if unwatched_folders(take_snapshot(root)):
        found = Wording(
            "only the {} folders nearest to the top are watched", "仅监视最靠近顶层的 {} 个文件夹"
        )
        found = found.format(MAX_FOLDERS)
        yield Finding(part="watching", state=NOTE, found=found, remedy=SMALLER_PROJECT)


def _story_findings(root: Path) -> Iterator[Finding]:
    """Report the order of the documents, and what is unclear about it."""
    story = read_story(root)
    if story.documents:
        first, last = story.documents[0].path, story.documents[-1].path
        found = Wording("{} documents in order, from {} to {}", "{} 篇文档依次排列，自 {} 至 {}")
        found = found.format(len(story.documents), first, last)
        yield Finding(part="story", state=OK, found=found)
    for doubt in story.doubts:
        found, remedy = _DOUBTS[doubt.kind]
        named = ", ".join(doubt.paths[:MOST_NAMED])
        more = len(doubt.paths) - MOST_NAMED
        rest = Wording(" and {} more", " 等，另有 {} 篇").format(more) if more > 0 else NO_REMEDY
        found = Wording(
            f"{found.english}: {named}{rest.english}", f"{found.chinese}：{named}{rest.chinese}"
        )
        state = BAD if doubt.kind is DoubtKind.INVALID_FILE else NOTE
        yield Finding(part="story", state=state, found=found, remedy=remedy)
    yield from _place_findings(root, story)
    yield from _thread_findings(root, story)


def _place_findings(root: Path, story: Story) -> Iterator[Finding]:
    """Report `from`, `until` and the like that name no place, or several."""
    clock = make_clock(deterministic=False)
    tree, project = Tree(clock), Project(project_id="", name=root.name, root=root)
    for warning in place_warnings(tree, Constraints(tree, clock, Redactor()), project, story):
        assert warning.wording is not None
        remedy = Wording(
            "Name a document, a chapter number or a heading that the story has.",
            "请写故事中已有的文档、章号或标题。",
        )
        yield Finding(part="story", state=NOTE, found=warning.wording, remedy=remedy)


def _thread_findings(root: Path, story: Story) -> Iterator[Finding]:
    """Report the threads that should have been resolved in what is written."""
    threads = plot_threads(
        Tree(make_clock(deterministic=False)).read_all_now(root, CreonowFolder.THREADS)
    ).fragments
    last = len(story.documents) - 1
    late = [
        f"{one.source_ref} ({one.due})"
        for one in threads
        if thread_state(one, story, last) is ThreadState.OVERDUE
    ]
    if late:
        found = Wording("overdue threads: {} ({})", "{} 条伏笔已过期：{}")
        yield Finding(
            part="threads",
            state=NOTE,
            found=found.format(len(late), ", ".join(late[:MOST_NAMED])),
            remedy=Wording(
                "Resolve them and set `status: resolved`, or move `due`.",
                "请回收并写 status: resolved，或推迟 due。",
            ),
        )


_ORDER_REMEDY = Wording(
    f"Name them in {STORY_FILE}, or give each an `order` in its front matter.",
    f"请在 {STORY_FILE} 中列出它们，或在各自的文件头写明 order。",
)
_DOUBTS = {
    DoubtKind.SAME_PLACE: (
        Wording("these have the same number, so their names decide", "序号相同，按名称排列"),
        _ORDER_REMEDY,
    ),
    DoubtKind.NO_NUMBER: (
        Wording(
            "these have no number while other documents do, so they come last",
            "其他文档有序号而它们没有，故排在最后",
        ),
        Wording(
            f"{_ORDER_REMEDY.english} Notes belong under `outside`.",
            f"{_ORDER_REMEDY.chinese}笔记请列入 outside。",
        ),
    ),
    DoubtKind.NO_MATCH: (
        Wording(
            f"an entry of {STORY_FILE} fits no document", f"{STORY_FILE} 中有一项不对应任何文档"
        ),
        Wording("Fix or remove it.", "请修正或删除它。"),
    ),
    DoubtKind.INVALID_ORDER: (
        Wording("the `order` in the front matter is no number", "文件头中的 order 不是数字"),
        Wording("Write a number, or `outside`.", "请写数字，或 outside。"),
    ),
    DoubtKind.INVALID_FILE: (
        Wording("this cannot be used, so names decide the order", "无法使用，改按名称排列"),
        Wording(
            'Fix it: {"version": 1, "order": [paths or globs], "outside": [globs]}.',
            '请修正：{"version": 1, "order": [路径或通配符], "outside": [通配符]}。',
        ),
    ),
}


def _creonow_files(root: Path) -> Iterator[Finding]:
    """Report the files that an assembly would leave out, read as it reads them."""
    clock = make_clock(deterministic=False)
    tree, project = Tree(clock), Project(project_id="", name=root.name, root=root)
    constraints = Constraints(tree, clock, Redactor())
    for warning in sorted(file_warnings(tree, constraints, project), key=lambda w: w.source_ref):
        assert warning.wording is not None
        if warning.code is WarningCode.CHARACTER_NAME_AMBIGUOUS:
            yield Finding(part="characters", state=NOTE, found=warning.wording, remedy=_ALIASES)
            continue
        prefix = warning.source_ref
        found = Wording(*(_without_path(prefix, text) for text in warning.wording))
        line = dict(warning.details).get("line")
        yield Finding(
            part=prefix,
            state=BAD,
            found=found,
            remedy=_LEFT_OUT,
            line=line if isinstance(line, int) else None,
        )
    if tree.read_project_file_now(root) is None:
        found = WARNINGS[WarningCode.PROJECT_FILE_INVALID]
        yield Finding(part=PROJECT_FILE, state=BAD, found=found, remedy=_LEFT_OUT)
    others = (path for path in (root / TREE).rglob("*.json") if not _is_read_by_sources(root, path))
    skills = root / TREE / "skills"
    files = (f for f in skills.rglob("*.md") if slug_of(f.relative_to(skills).as_posix()))
    for path in sorted((*files, *others)):
        problem, line = (_json_problem if path.suffix == ".json" else _skill_problem)(path)
        if problem:
            part = path.relative_to(root).as_posix()
            yield Finding(part=part, state=BAD, found=problem, remedy=_LEFT_OUT, line=line)


_ALIASES = Wording(
    "Give the one who is meant the name as an alias, or write full names.",
    "请把该称呼写进所指角色的 aliases，或在文中写全名。",
)
_LEFT_OUT = Wording(
    "Fix the file; until then it is left out.", "请修正该文件；在此之前它不会被使用。"
)


def _without_path(path: str, text: str) -> str:
    """Drop the path that a warning begins with; the finding names it already."""
    return text.removeprefix(path).lstrip(",:： ")


def _is_read_by_sources(root: Path, path: Path) -> bool:
    known = path.relative_to(root / TREE).parts[0] in list(CreonowFolder)
    return known or path in {root / STORY_FILE, root / PROJECT_FILE}


def _json_problem(path: Path) -> _FileProblem:
    try:
        msgspec.json.decode(_bytes_of(path))
    except DaemonError as error:
        return _UNREADABLE.format(error.wording), None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return _UNREADABLE.format(error), None
    return None, None


def _bytes_of(path: Path) -> bytes:
    return stored_files.content(path, limit=stored_files.LIMIT_BYTES) or b""


def _skill_problem(path: Path) -> _FileProblem:
    try:
        faults = skill.parse(_bytes_of(path)).faults
    except DaemonError as error:
        return _UNREADABLE.format(error.wording), None
    if not faults:
        return None, None
    english, chinese = zip(*(fault.wording for fault in faults), strict=True)
    return Wording(" ".join(english), "".join(chinese)), faults[0].line


_UNREADABLE = Wording("cannot be read: {}", "无法读取：{}")


STORED_FILES: tuple[tuple[str, Callable[[Path], Wording | None], Wording], ...] = (
    (
        f"{budgets.FOLDER}/*.json",
        _budget_problem,
        Wording("The default budget is used; set the budget again.", "现用默认预算；请重新设置。"),
    ),
    (
        budgets.CORRECTIONS_FILE,
        _corrections_problem,
        Wording("It is kept aside, and learned anew.", "将另存该文件并重新学习。"),
    ),
    (
        f"{record_store.HISTORIES}/*/*.jsonl",
        _history_problem,
        Wording(
            "What was whole is kept; it goes on from there.", "完好的部分已保留，将从那里继续。"
        ),
    ),
    (
        f"{runs.FOLDER}/*/*.jsonl",
        _runs_problem,
        Wording("It is repaired by the next run.", "下次运行时修复。"),
    ),
    (
        f"{record_store.FOLDER}/*/{record_store.MANIFEST}",
        _manifest_problem,
        Wording("It is made anew from the records.", "将由记录重建。"),
    ),
    (
        f"{record_store.FOLDER}/*/{record_store.BINDING}",
        _binding_problem,
        Wording("It is read from the records instead.", "将改从记录中读取。"),
    ),
    (
        f"{project_index.FOLDER}/*.sqlite3",
        _index_problem,
        Wording("It is made anew at the next use.", "下次使用时重建。"),
    ),
)

Check = Callable[[Path], Iterator[Finding]]

CHECKS_OF_INSTALLATION: tuple[Check, ...] = (
    _check_packages,
    _check_tokenizer_tables,
    _check_programs,
    _check_user_data,
)
CHECKS_OF_DAEMON: tuple[Check, ...] = (_check_settings, _check_ai, _check_daemon, _check_log)
CHECKS_OF_STORED_FILES: tuple[Check, ...] = (_check_space, _check_folders, _check_stored_files)
