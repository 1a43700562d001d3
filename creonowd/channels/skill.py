"""`skill:*` — list, read, write and validate skills."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, structs

from creonowd.context.plan import ContextRules, Summary
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.model import Model, Params, Result
from creonowd.redaction import Redactor
from creonowd.rpc.channel import Channel
from creonowd.skills.library import LibraryEntry, Scope
from creonowd.skills.skill import Prompt, canonical_rules, parse
from creonowd.storage.front_matter import Fault
from creonowd.threads import call_in_thread, until_stopped
from creonowd.workspace.projects import Project


class ListSkills(Params):
    """Without a project, its own skills are left out."""

    project_id: str | None = None
    """Whose own skills to list as well; without it, only the packaged and the global ones."""


class ReadSkill(Params):
    """A skill by its id, such as `builtin:continue`, or by a slug that any scope may have."""

    skill_id: Annotated[str, Meta(min_length=1)]
    """The skill's id, such as `builtin:continue`, or a slug that any scope may have."""
    project_id: str | None = None
    """Look among this project's own skills too."""


class WriteSkill(Params):
    """A whole SKILL.md; without `slug` the skill's own id or name makes one."""

    scope: Literal["global", "project"]
    """For this project, or for all projects of this user."""
    content: str
    """The whole SKILL.md; INVALID_ARGUMENT if it is not valid, or if it has `***REDACTED***`, which
    stands for a secret where a skill is read and would replace it."""
    slug: str | None = None
    """The name of its folder; without it, the skill's own id or name makes one."""
    project_id: str | None = None
    """The project; needed if `scope` is `project`."""


class ValidateSkill(Params):
    """A whole SKILL.md, which need not be stored."""

    content: str
    """The text of a SKILL.md; it need not be stored."""


class SkillFault(Model):
    """What is wrong with a SKILL.md, and where."""

    key: str
    """The key, dotted, such as `context_rules.surrounding`; empty for the file as a whole."""
    message: str
    """What is wrong, in the connection's language."""
    line: int | UnsetType = UNSET
    """The line of the file, from 1; absent if it concerns no line."""


class BothLanguages(Model):
    """A text for people in English and in Chinese; the same twice if the skill has but one."""

    en: str
    """In English."""
    zh: str
    """In Chinese."""


class SkillInfo(Result):
    """One skill. An invalid one has `errors`, and its other fields may be defaults."""

    id: str
    """Its id, to run it by."""
    name: str
    """What it is called, in the connection's language; without a `locale`, as the file has it."""
    description: str
    """What it does, likewise."""
    names: BothLanguages
    """The name in both languages."""
    descriptions: BothLanguages
    """The description in both languages."""
    scope: Scope
    """Whose it is."""
    slug: str
    """The name of its folder."""
    path: str
    """Where its SKILL.md is: below the project's folder, below user data, or in the package."""
    valid: bool
    """Whether it can be run."""
    errors: list[SkillFault]
    """What is wrong with it; empty if it is valid."""
    context_rules: ContextRules
    """What it asks to see."""
    context_rules_text: str
    """The one canonical spelling of `contextRules`, as JSON."""
    requires_selection: bool
    """Whether it fails with SKILL_SELECTION_REQUIRED where nothing is selected."""
    target_tokens: int | UnsetType = UNSET
    """How far Retrieved fills a prompt of this skill; it cuts nothing else. Absent: as far as the
    budget goes."""
    summaries: tuple[Summary, ...] | UnsetType = UNSET
    """What it relies on; where neither the project nor a host gives one, runs warn
    SKILL_SOURCE_ABSENT."""


class SkillDetail(SkillInfo):
    """One skill with its text and with what it asks the model to do."""

    content: str
    """The whole SKILL.md, with `***REDACTED***` in place of secrets."""
    prompt: Prompt
    """What it asks the model to do, likewise."""


class SkillList(Result):
    """Every skill once; where two scopes have one id, the later scope's."""

    items: list[SkillInfo]
    """The skills, each id once."""


class SkillReply(Result):
    """The skill as it is stored now."""

    skill: SkillDetail
    """The skill."""


class Validity(Result):
    """Whether a SKILL.md can be used, and every reason why not, up to a hundred."""

    valid: bool
    """Whether it can be used."""
    errors: list[SkillFault]
    """Every reason why not, up to a hundred."""


async def list_skills(session: Session, params: ListSkills) -> SkillList:
    """List the skills, invalid ones with their errors."""
    entries = await session.skills.entries(await _project(session, params.project_id))
    return await call_in_thread(_skill_list, session, entries)


def _skill_list(session: Session, entries: Sequence[LibraryEntry]) -> SkillList:
    """Hide the secrets in names; of a thousand skills that takes 200 ms."""
    return SkillList(items=[_info(session, entry) for entry in until_stopped(entries)])


async def read_skill(session: Session, params: ReadSkill) -> SkillReply:
    """Read one skill; NOT_FOUND if there is none of that id."""
    project = await _project(session, params.project_id)
    entry = await session.skills.find(params.skill_id, project)
    if entry is None:
        raise DaemonError(ErrorCode.NOT_FOUND, "There is no such skill; list the skills.")
    return SkillReply(skill=_detail(session, entry))


async def write_skill(session: Session, params: WriteSkill) -> SkillReply:
    """Write a skill; INVALID_ARGUMENT names the key and line that make it invalid."""
    project = await _project(session, params.project_id)
    scope = Scope(params.scope)
    entry = await session.skills.write(scope, params.slug, params.content, project)
    return SkillReply(skill=_detail(session, entry))


def validate_skill(session: Session, params: ValidateSkill) -> Validity:
    """Check a SKILL.md without storing it."""
    faults = parse(params.content.encode("utf-8", "replace")).faults
    return Validity(valid=not faults, errors=[_fault(session, fault) for fault in faults])


async def _project(session: Session, project_id: str | None) -> Project | None:
    return None if project_id is None else await session.projects.find(project_id)


def _info(session: Session, entry: LibraryEntry) -> SkillInfo:
    skill, language, redactor = entry.skill, session.connection.language, session.redactor
    return SkillInfo(
        id=redactor.redact_name(entry.id),
        name=redactor.hide_secrets(in_language(entry.names, entry.name, language)),
        description=redactor.hide_secrets(
            in_language(entry.descriptions, skill.description, language)
        ),
        names=_both(redactor, entry.names),
        descriptions=_both(redactor, entry.descriptions),
        scope=entry.scope,
        slug=redactor.redact_name(entry.slug),
        path=redactor.redact_name(entry.path),
        valid=not entry.faults,
        errors=[_fault(session, fault) for fault in entry.faults],
        context_rules=skill.context_rules,
        context_rules_text=canonical_rules(skill.context_rules),
        requires_selection=skill.requires_selection,
        target_tokens=UNSET if skill.target_tokens is None else skill.target_tokens,
        summaries=skill.summaries or UNSET,
    )


def _detail(session: Session, entry: LibraryEntry) -> SkillDetail:
    fields, clean = structs.asdict(_info(session, entry)), session.redactor.hide_secrets
    prompt = entry.skill.prompt
    shown = Prompt(system=clean(prompt.system), user=clean(prompt.user))
    return SkillDetail(**fields, content=clean(entry.content), prompt=shown)


def in_language(texts: Wording, own: str, language: Language) -> str:
    """Return a skill's label in a client's language; its own for a client that named none."""
    if language is Language.DEFAULT:
        return own
    return texts.text(chinese=language is Language.CHINESE)


def _both(redactor: Redactor, texts: Wording) -> BothLanguages:
    clean = redactor.hide_secrets
    return BothLanguages(en=clean(texts.english), zh=clean(texts.chinese))


def _fault(session: Session, fault: Fault) -> SkillFault:
    line = UNSET if fault.line is None else fault.line
    clean = session.redactor.hide_secrets
    message = clean(fault.wording.text(chinese=session.connection.language is Language.CHINESE))
    return SkillFault(key=clean(fault.key), message=message, line=line)


CHANNELS = (
    Channel("skill:list", list_skills),
    Channel("skill:read", read_skill, errors=(ErrorCode.NOT_FOUND,)),
    Channel("skill:write", write_skill, errors=(ErrorCode.CONFLICT,)),
    Channel("skill:validate", validate_skill),
)
