"""The verdict on an output, and the criteria that a prompt gives it."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field
from msgspec.structs import replace

from creonowd.context.assemble import Assembly
from creonowd.context.evidence import Decision
from creonowd.context.fragment import TIMING, FragmentKind, Layer
from creonowd.context.language import CONSTRAINTS_FILE
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.judge.rule_judge import Term, read_terms
from creonowd.model import Model
from creonowd.workspace.creonow_tree import TERMINOLOGY_FILE, CreonowFolder, Tree
from creonowd.workspace.documents import to_utf16, utf16_length
from creonowd.workspace.projects import Project

SOURCE = "constraints"


class Status(StrEnum):
    """The verdict as a whole; `unchecked` if nothing is violated but not all could be checked."""

    PASSED = "passed"
    """Every constraint was checked, and none is broken."""
    VIOLATED = "violated"
    """At least one constraint is broken."""
    UNCHECKED = "unchecked"
    """Nothing is broken as far as was checked, but not all could be."""


class Checker(StrEnum):
    """Who checked: a program, or a model."""

    RULES = "rules"
    """A program, by rules that cannot err or say how sure they are."""
    MODEL = "model"
    """A model."""


class Violation(Model):
    """Where an output breaks a constraint, and how sure that is."""

    constraint_id: str
    """The constraint's id, or the term's."""
    constraint: str
    """Its text."""
    by: Checker
    """Who found it."""
    confidence: Annotated[float, Meta(ge=0, le=1)]
    """1 for banned words, marks and terms; below 1 for what a model finds, and for the person of
    the narration, which rules conclude from pronouns."""
    quote: str = ""
    """The passage of the output; empty if a model named none that is there."""
    message: str = ""
    """What is wrong, in the connection's language."""
    start: int | UnsetType = field(default=UNSET, name="from")
    """Where the passage begins in the output, in the connection's position encoding; absent
    without a passage."""
    end: int | UnsetType = field(default=UNSET, name="to")
    """Where it ends."""


class UncheckedCode(StrEnum):
    """Why a constraint was not checked."""

    OFF = "off"
    """Judging is off, by the setting `aiJudge` or by the run."""
    ECHO = "echo"
    """The output only repeats the prompt, as the fake provider does."""
    LEFT_OUT = "left_out"
    """The constraint did not fit into the prompt, so the model never saw it."""
    UNREAD = "unread"
    """The file of constraints could not be read."""
    NO_MODEL = "no_model"
    """Rules cannot check it, and no model is configured to judge."""
    MODEL_FAILED = "model_failed"
    """The judging model failed; `error` says how."""
    MODEL_UNREADABLE = "model_unreadable"
    """The judging model's reply was no verdict."""
    MODEL_UNSURE = "model_unsure"
    """The judging model was not sure."""


REASONS: Mapping[UncheckedCode, Wording] = {
    UncheckedCode.OFF: Wording("judging is off", "未开启评判"),
    UncheckedCode.ECHO: Wording(
        "the output is only an echo of the prompt", "输出只是提示词的回显，不作评判"
    ),
    UncheckedCode.LEFT_OUT: Wording("it was left out of the prompt", "未能放入提示词"),
    UncheckedCode.UNREAD: Wording("the file cannot be read", "文件无法读取"),
    UncheckedCode.NO_MODEL: Wording("no model is configured to judge", "没有可用于评判的模型"),
    UncheckedCode.MODEL_FAILED: Wording("the model failed", "模型出错"),
    UncheckedCode.MODEL_UNREADABLE: Wording(
        "the model's verdict could not be read", "模型的评判无法读取"
    ),
    UncheckedCode.MODEL_UNSURE: Wording("the model was not sure", "模型无法确定"),
}


class Unchecked(Model):
    """A constraint that could not be checked, and why."""

    constraint_id: str
    """The constraint's id."""
    constraint: str
    """Its text."""
    code: UncheckedCode
    """Why, for programs."""
    reason: str
    """The same in the connection's language."""
    error: ErrorCode | UnsetType = UNSET
    """The code of the error, if the judging model failed."""


class Verdict(Model):
    """The result for every constraint."""

    status: Status
    """The verdict as a whole."""
    checked: int = 0
    """How many constraints could be checked."""
    violations: tuple[Violation, ...] = ()
    """Where constraints are broken."""
    unchecked: tuple[Unchecked, ...] = ()
    """Which could not be checked."""


class PromptConstraint(Model):
    """One constraint that an output has to keep."""

    id: str
    text: str


class Criteria(Model):
    """What the output of a prompt is judged by.

    `constraints` are in the prompt, `left_out` are not for want of room; `unread` if the list of
    constraints could not be read. `terms` are those in the prompt; None if it does not hold the
    project's terminology.
    """

    constraints: tuple[PromptConstraint, ...] = ()
    left_out: tuple[PromptConstraint, ...] = ()
    unread: bool = False
    terms: tuple[Term, ...] | None = None


_UNREAD = {
    CONSTRAINTS_FILE: Wording("the constraints", "创作约束"),
    TERMINOLOGY_FILE: Wording("the terminology", "术语表"),
}


def criteria_of(assembly: Assembly) -> Criteria:
    """Find the constraints and terms of a prompt, in the words that the model sees."""
    constraints: list[PromptConstraint] = []
    left_out: list[PromptConstraint] = []
    unread = any(failure.source == SOURCE for failure in assembly.failures)
    terms: tuple[Term, ...] | None = None
    for decision in assembly.layers[Layer.RULES].decisions:
        ref = decision.evidence.source_ref
        unread = unread or ref == CONSTRAINTS_FILE
        if decision.evidence.rule in TIMING:
            continue
        if decision.kind is FragmentKind.CONSTRAINT:
            (constraints if decision.is_kept else left_out).append(_constraint(decision))
        elif ref == TERMINOLOGY_FILE and decision.is_kept:
            terms = read_terms(decision.text.encode())
    return Criteria(
        constraints=tuple(constraints), left_out=tuple(left_out), unread=unread, terms=terms
    )


def _constraint(decision: Decision) -> PromptConstraint:
    return PromptConstraint(id=decision.evidence.source_ref.rpartition("#")[2], text=decision.text)


async def terms_of(tree: Tree, project: Project) -> tuple[Term, ...] | None:
    """Read the project's terms: none if there is no file, None if it cannot be read."""
    try:
        return read_terms((await tree.read(project, CreonowFolder.RULES, TERMINOLOGY_FILE)).data)
    except DaemonError as error:
        return () if error.code is ErrorCode.NOT_FOUND else None


def conclude(
    constraints: int, violations: Sequence[Violation], unchecked: Sequence[Unchecked]
) -> Verdict:
    """Sum up; what was not checked never counts as kept."""
    status = Status.UNCHECKED if unchecked else Status.PASSED
    return Verdict(
        status=Status.VIOLATED if violations else status,
        checked=constraints - len(unchecked),
        violations=tuple(violations),
        unchecked=tuple(unchecked),
    )


def all_unchecked(
    constraints: Iterable[PromptConstraint], code: UncheckedCode, *, chinese: bool
) -> list[Unchecked]:
    """Mark constraints as unchecked for one reason."""
    reason = REASONS[code].text(chinese=chinese)
    return [
        Unchecked(constraint_id=c.id, constraint=c.text, code=code, reason=reason)
        for c in constraints
    ]


def verdict_without_judge(criteria: Criteria, code: UncheckedCode, *, chinese: bool) -> Verdict:
    """Return the verdict of a run that nobody judges: everything is unchecked."""
    constraints = (*criteria.constraints, *criteria.left_out)
    unchecked = all_unchecked(constraints, code, chinese=chinese)
    return Verdict(status=Status.UNCHECKED, unchecked=tuple(unchecked))


def add_missing(
    verdict: Verdict, criteria: Criteria, terms: tuple[Term, ...] | None, *, chinese: bool
) -> Verdict:
    """Add as unchecked what could not be judged: constraints left out, files that are unreadable."""
    files: list[str] = []
    if criteria.unread:
        files.append(CONSTRAINTS_FILE)
    if terms is None:
        files.append(TERMINOLOGY_FILE)
    unread = [PromptConstraint(id=file, text=_UNREAD[file].text(chinese=chinese)) for file in files]
    missing = (
        *all_unchecked(criteria.left_out, UncheckedCode.LEFT_OUT, chinese=chinese),
        *all_unchecked(unread, UncheckedCode.UNREAD, chinese=chinese),
    )
    if not missing:
        return verdict
    status = Status.UNCHECKED if verdict.status is Status.PASSED else verdict.status
    return replace(verdict, status=status, unchecked=(*verdict.unchecked, *missing))


def in_client_units(verdict: Verdict, output: str, *, utf16: bool) -> Verdict:
    """Convert positions from code points to the units that the client counts in."""
    if not utf16 or not verdict.violations or utf16_length(output) == len(output):
        return verdict
    ends = (end for violation in verdict.violations for end in (violation.start, violation.end))
    units = to_utf16(output, (end for end in ends if isinstance(end, int)))
    return replace(verdict, violations=tuple(_convert(v, units) for v in verdict.violations))


def _convert(violation: Violation, units: Mapping[int, int]) -> Violation:
    start, end = violation.start, violation.end
    if not isinstance(start, int) or not isinstance(end, int):
        return violation
    return replace(violation, start=units[start], end=units[end])
