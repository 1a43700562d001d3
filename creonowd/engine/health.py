"""The parts of a daemon that can be degraded: what is wrong with each, and how to fix it."""

from collections.abc import Callable

from creonowd.context.fragment import Caution
from creonowd.errors import Wording
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.retrieval.project_index import Indexes
from creonowd.sources.hosts import Hosts
from creonowd.tokens import Tokenizers
from creonowd.tokens.tables import FOLDER as OWN_TABLES
from creonowd.tokens.tables import KNOWN
from creonowd.workspace.budgets import Budgets
from creonowd.workspace.projects import Projects
from creonowd.workspace.watcher import MAX_FOLDERS, Watcher


class Trouble(Model):
    """Why a part does not work as it should, and how to fix it."""

    reason: Wording
    remedy: Wording


class Troubles:
    """The checks of the parts that can be degraded."""

    def __init__(
        self,
        *,
        projects: Projects,
        budgets: Budgets,
        tokenizers: Tokenizers,
        hosts: Hosts,
        indexes: Indexes,
        watcher: Watcher,
        redactor: Redactor,
    ) -> None:
        self._checks: dict[str, Callable[[], Trouble | None]] = {
            "projects": lambda: _unreadable_projects(projects.set_aside),
            "budgets": lambda: _unreadable_budgets(budgets.set_aside()),
            "tokenizer": lambda: _unusable_tokenizers(tokenizers.problems()),
            "sources": lambda: _failing_parts(
                hosts.paused_sources(), _FAILING_SOURCES, _SOURCE_REMEDY
            ),
            "retrieval": lambda: _failing_parts(
                indexes.problems(), _UNINDEXED_PROJECTS, _INDEX_REMEDY
            ),
            "documents": lambda: _projects_cut_short(indexes.left_out(), redactor.redact_name),
            "watching": lambda: _projects_watched_in_part(watcher.projects_over_limit()),
        }

    def current(self) -> dict[str, Trouble]:
        """Run every check, and return what is degraded by part."""
        found = ((part, check()) for part, check in self._checks.items())
        return {part: trouble for part, trouble in found if trouble is not None}


def _unreadable_projects(kept: str | None) -> Trouble | None:
    if kept is None:
        return None
    return Trouble(
        reason=Wording(
            f"projects.json could not be read and was kept as {kept}",
            f"projects.json 无法读取，已另存为 {kept}",
        ),
        remedy=Wording(
            "Look into the kept file; create your projects again if they are missing.",
            "请查看另存的文件；若缺少项目，请重新创建。",
        ),
    )


def _unreadable_budgets(kept: dict[str, str]) -> Trouble | None:
    if not kept:
        return None
    return Trouble(
        reason=Wording(
            f"stored budgets could not be read and were kept as {', '.join(kept.values())}",
            f"已存的预算无法读取，已另存为 {'、'.join(kept.values())}",
        ),
        remedy=Wording(
            "The default budget serves; set the budget again.", "现用默认预算；请重新设置。"
        ),
    )


def _unusable_tokenizers(problems: dict[str, Wording]) -> Trouble | None:
    if not problems:
        return None
    return Trouble(
        reason=Wording(
            f"{'; '.join(one.english for one in problems.values())}; bytes are counted instead",
            f"{'；'.join(one.chinese for one in problems.values())}；改按字节计数",
        ),
        remedy=_OWN_TABLE if problems.keys().isdisjoint(KNOWN) else INSTALL_AGAIN,
    )


INSTALL_AGAIN = Wording(
    "Install creonowd again; until then prompts hold less than they could.",
    "请重新安装 creonowd；在此之前提示词会比本可容纳的短。",
)
_OWN_TABLE = Wording(
    f"Fix or remove the table in {OWN_TABLES} of user data, and start the daemon again.",
    f"请修正或删除用户数据 {OWN_TABLES} 文件夹中的词表，然后重启守护进程。",
)


def _failing_parts(names: dict[str, str], reason: Wording, remedy: Wording) -> Trouble | None:
    """Return the trouble of parts that fail, each with why; `reason` has a place for their names."""
    if not names:
        return None
    listed = ", ".join(f"{name} ({error})" for name, error in sorted(names.items()))
    return Trouble(reason=reason.format(listed), remedy=remedy)


_FAILING_SOURCES = Wording(
    "host sources failed repeatedly and are not asked for a while: {}",
    "宿主数据源屡次出错，暂不询问：{}",
)
_SOURCE_REMEDY = Wording(
    "Look into the host that offers them; they are tried again by themselves.",
    "请检查提供它们的宿主；稍后会自动重试。",
)
_UNINDEXED_PROJECTS = Wording(
    "passages of these projects cannot be indexed: {}", "以下项目无法建立索引：{}"
)
_INDEX_REMEDY = Wording(
    "Check that user data can be written and has space; it is tried again with each use.",
    "请检查用户数据可写且有空间；每次使用时会重试。",
)


def _projects_cut_short(
    left_out: dict[str, tuple[Caution, ...]], clean: Callable[[str], str]
) -> Trouble | None:
    if not left_out:
        return None
    texts = [
        (project, text)
        for project, cautions in sorted(left_out.items())
        for one in cautions
        if (text := one.with_redacted_texts(clean).wording) is not None
    ]
    return Trouble(
        reason=Wording(
            " ".join(f"{project}: {text.english}" for project, text in texts),
            "".join(f"{project}：{text.chinese}" for project, text in texts),
        ),
        remedy=SMALLER_PROJECT,
    )


SMALLER_PROJECT = Wording(
    "Make the novel's own folder the project, and shorten the ignore file.",
    "请以小说自身的文件夹作为项目，并精简忽略规则文件。",
)


def _projects_watched_in_part(projects: list[str]) -> Trouble | None:
    if not projects:
        return None
    names = ", ".join(projects)
    return Trouble(
        reason=Wording(
            f"only the {MAX_FOLDERS} folders nearest to the top are watched of: {names}",
            f"以下项目仅监视最靠近顶层的 {MAX_FOLDERS} 个文件夹：{names}",
        ),
        remedy=Wording(
            "Make the novel's own folder the project; until then changes below are noticed late.",
            "请以小说自身的文件夹作为项目；在此之前更深处的改动会较晚被发现。",
        ),
    )
