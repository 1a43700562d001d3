"""`skill:*` — list, read, write and validate skills."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, structs

from creonowd.context.plan import ContextRules, Summary
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.model import Model, Params, Result
from creonowd.redaction import Redactor
from creonowd.rpc.channel import Channel
from creonowd.skills.context_rules import canonical_rules
from creonowd.skills.library import LibraryEntry, Scope
from creonowd.skills.skill import Prompt, parse
from creonowd.storage.front_matter import Fault
from creonowd.workspace.projects import Project


class ListSkills(Params):
    """Without a project, its own skills are left out."""

    project_id: str | None = None


class ReadSkill(Params):
    """A skill by its id, such as `builtin:continue`, or by a slug that any scope may have."""

    skill_id: Annotated[str, Meta(min_length=1)]
    project_id: str | None = None


class WriteSkill(Params):
    """A whole SKILL.md; without `slug` the skill's own id or name makes one."""

    scope: Literal["global", "project"]
    content: str
    slug: str | None = None
    project_id: str | None = None


class ValidateSkill(Params):
    """A whole SKILL.md, which need not be stored."""

    content: str


class SkillFault(Model):
    """What is wrong with a key (dotted; empty for the file as a whole), and on which line.

    `message` is in the language of the connection.
    """

    key: str
    message: str
    line: int | UnsetType = UNSET


class BothLanguages(Model):
    """A text for people in English and in Chinese; the same twice if the skill has but one."""

    en: str
    zh: str


class SkillInfo(Result):
    """One skill. An invalid one has `errors`, and its other fields may be defaults.

    `name` and `description` are in the language of the connection; without a `locale` they are as
    the file has them. `contextRulesText` is the one canonical spelling of `contextRules`, as JSON. `targetTokens`
    is how far Retrieved fills a prompt of this skill; it cuts nothing else. `summaries` are those
    that it relies on; where neither the project nor a host gives one, runs warn SKILL_SOURCE_ABSENT. One
    that `requiresSelection` fails with SKILL_SELECTION_REQUIRED where nothing is selected.
    """

    id: str
    name: str
    description: str
    names: BothLanguages
    descriptions: BothLanguages
    scope: Scope
    slug: str
    path: str
    valid: bool
    errors: list[SkillFault]
    context_rules: ContextRules
    context_rules_text: str
    requires_selection: bool
    target_tokens: int | UnsetType = UNSET
    summaries: tuple[Summary, ...] | UnsetType = UNSET


class SkillDetail(SkillInfo):
    """One skill with its text and with what it asks the model to do."""

    content: str
    prompt: Prompt


class SkillList(Result):
    """Every skill once; where two scopes have one id, the later scope's."""

    items: list[SkillInfo]


class SkillReply(Result):
    """The skill as it is stored now."""

    skill: SkillDetail


class Validity(Result):
    """Whether a SKILL.md can be used, and every reason why not, up to a hundred."""

    valid: bool
    errors: list[SkillFault]


async def list_skills(session: Session, params: ListSkills) -> SkillList:
    """List the skills, invalid ones with their errors."""
    entries = await session.skills.entries(await _project(session, params.project_id))
    return SkillList(items=[_info(session, entry) for entry in entries])


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
        name=redactor.hide_secrets(_in_language(entry.names, entry.name, language)),
        description=redactor.hide_secrets(
            _in_language(entry.descriptions, skill.description, language)
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
    fields = structs.asdict(_info(session, entry))
    return SkillDetail(**fields, content=entry.content, prompt=entry.skill.prompt)


def _in_language(texts: Wording, own: str, language: Language) -> str:
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
    Channel("skill:read", read_skill),
    Channel("skill:write", write_skill),
    Channel("skill:validate", validate_skill),
)
