"""`context:creonow:rules:get` — every rule of a project in one reply, and what is wrong with some."""

from typing import Annotated

from msgspec import Meta

from creonowd.channels.project import ProjectId
from creonowd.channels.redacting import redacted
from creonowd.channels.session import Session
from creonowd.errors import ErrorCode
from creonowd.model import Model, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel
from creonowd.storage.relative_paths import CreonowFolder, folder_of
from creonowd.text import as_text, is_json
from creonowd.workspace.creonow_tree import Folder, Problem, TreeFile

KINDS = {
    f"{folder_of(CreonowFolder.RULES)}/style.md": "style",
    f"{folder_of(CreonowFolder.RULES)}/terminology.json": "terminology",
    f"{folder_of(CreonowFolder.RULES)}/constraints.json": "constraints",
}
OTHER = "other"
ORDER = ("style", "terminology", OTHER, "constraints")


class RuleFragment(Model):
    """One file of the rules, without its secrets."""

    kind: Annotated[str, Meta(description="style, terminology, constraints or other")]
    path: str
    content: str
    updated_at_ms: int


class RuleError(Model):
    """A file that cannot be used; `reason` is what trim evidence would say of it."""

    path: str
    code: ErrorCode
    reason: Annotated[str, Meta(description="invalid_format, too_large or read_error")]
    message: str


class Rules(Result):
    """The rules in reading order; a file that cannot be used is an error and no fragment."""

    fragments: list[RuleFragment]
    errors: list[RuleError]
    redaction_evidence: list[RedactionEvidence]


async def get_rules(session: Session, params: ProjectId) -> Rules:
    """Read all rules at once, redacted."""
    project = await session.projects.find(params.project_id)
    folder = await session.tree.read_all(project, CreonowFolder.RULES)
    usable, errors = _sorted_out(folder)
    texts = [(file.path, text) for file, text in usable]
    contents, evidence = await redacted(session, project.project_id, texts)
    fragments = [_fragment(file, text) for (file, _), text in zip(usable, contents, strict=True)]
    return Rules(fragments=fragments, errors=errors, redaction_evidence=evidence)


def _sorted_out(folder: Folder) -> tuple[list[tuple[TreeFile, str]], list[RuleError]]:
    usable: list[tuple[TreeFile, str]] = []
    errors = [_unread(problem) for problem in folder.problems]
    for file in sorted(folder.files, key=lambda file: (ORDER.index(_kind(file.path)), file.path)):
        text = as_text(file.data)
        if text is None or (file.path.lower().endswith(".json") and not is_json(text)):
            errors.append(_unusable(file, "JSON" if text is not None else "UTF-8"))
        else:
            usable.append((file, text))
    return usable, sorted(errors, key=lambda error: error.path)


def _kind(path: str) -> str:
    return KINDS.get(path, OTHER)


def _fragment(file: TreeFile, content: str) -> RuleFragment:
    return RuleFragment(
        kind=_kind(file.path), path=file.path, content=content, updated_at_ms=file.updated_at_ms
    )


def _unread(problem: Problem) -> RuleError:
    reason = "too_large" if problem.error.details.get("reason") == "too_large" else "read_error"
    return RuleError(
        path=problem.path,
        code=problem.error.code,
        reason=reason,
        message=problem.error.message,
    )


def _unusable(file: TreeFile, wanted: str) -> RuleError:
    return RuleError(
        path=file.path,
        code=ErrorCode.UNSUPPORTED,
        reason="invalid_format",
        message=f"The file is not valid {wanted}; mend it.",
    )


CHANNELS = (Channel("context:creonow:rules:get", get_rules),)
