"""`constraints:*` — the rules that no generated text may break, as a plain list and as items."""

import msgspec
from msgspec import UNSET, UnsetType

from creonowd.channels.project import ProjectId
from creonowd.engine.assembly import ASSEMBLY_ERRORS
from creonowd.engine.services import Session
from creonowd.engine.skill_run import check_text
from creonowd.errors import DaemonError, ErrorCode
from creonowd.logs import log_redaction
from creonowd.model import Model, Params, Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel
from creonowd.threads import call_in_thread
from creonowd.workspace.constraints import (
    PATH,
    Constraint,
    ConstraintFile,
    ConstraintPatch,
    NewConstraint,
    invalid,
)

PLAIN_VERSION = 1

# What a change of the constraints may fail with.
CONSTRAINT_ERRORS = (
    ErrorCode.CONSTRAINT_VALIDATION_ERROR,
    ErrorCode.CONSTRAINT_NOT_FOUND,
    ErrorCode.CONSTRAINT_CONFLICT,
    ErrorCode.CONTEXT_SCOPE_VIOLATION,
)


class PlainConstraints(Model):
    """The user's constraints as texts, in order; those of the knowledge graph are not among them."""

    version: int
    """The format of this list; 1."""
    items: list[str]
    """The texts, one per constraint."""


class SetConstraints(Params):
    """The new texts of the user's constraints, in order."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    constraints: PlainConstraints
    """The texts that there shall be; those that exist keep their ids, others are added or
    deleted."""
    expected_revision: str | None = None
    """Fail with CONSTRAINT_CONFLICT unless the file still has this `revision`; without it, the
    last writer wins."""


class PlainConstraintsAt(Result):
    """The user's constraints as texts at one revision."""

    constraints: PlainConstraints
    """The texts."""
    revision: str
    """SHA-256 of the file's bytes; send it as `expectedRevision` with the next change."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""
    undo: str | UnsetType = UNSET
    """What `context:undo` takes the change back with: the same ids in the same places."""


class CreateConstraint(Params):
    """A new constraint of the user."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    constraint: NewConstraint
    """The new constraint; it gets an id."""
    expected_revision: str | None = None
    """Fail with CONSTRAINT_CONFLICT unless the file still has this `revision`; without it, the
    last writer wins."""


class UpdateConstraint(Params):
    """A change to a constraint of the user."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    constraint_id: str
    """The id from the list."""
    patch: ConstraintPatch
    """The fields to change."""
    expected_revision: str | None = None
    """Fail with CONSTRAINT_CONFLICT unless the file still has this `revision`; without it, the
    last writer wins."""


class DeleteConstraint(Params):
    """A constraint of the user to delete."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    constraint_id: str
    """The id from the list."""
    expected_revision: str | None = None
    """Fail with CONSTRAINT_CONFLICT unless the file still has this `revision`; without it, the
    last writer wins."""


class ConstraintList(Result):
    """All constraints, in the order of the file, at one revision."""

    constraints: list[Constraint]
    """The user's and those of the knowledge graph."""
    revision: str
    """SHA-256 of the file's bytes; send it as `expectedRevision` with the next change."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""


class ConstraintAt(Result):
    """One constraint, and the new revision."""

    constraint: Constraint
    """The constraint as it is stored now, without secrets."""
    revision: str
    """SHA-256 of the file's bytes after the change."""
    redaction_evidence: list[RedactionEvidence] | UnsetType = UNSET
    """Which kinds of secrets were taken out of this reply, and how often; never the secrets."""
    undo: str | UnsetType = UNSET
    """What `context:undo` takes the change back with: the same ids in the same places."""


class DeletedConstraint(Result):
    """The deleted constraint, and the revision without it."""

    deleted_constraint_id: str
    """The id that exists no more."""
    revision: str
    """SHA-256 of the file's bytes after the change."""
    undo: str | UnsetType = UNSET
    """What `context:undo` takes the change back with: the same ids in the same places."""


async def get_constraints(session: Session, params: ProjectId) -> PlainConstraintsAt:
    """Read the user's constraints as texts; without a file there are none."""
    project = await session.projects.find(params.project_id)
    file = await session.constraints.list(project)
    return await _plain_constraints(session, project.project_id, file)


async def set_constraints(session: Session, params: SetConstraints) -> PlainConstraintsAt:
    """Replace the user's constraints; texts that stay keep their ids and settings."""
    project = await session.projects.find(params.project_id)
    if params.constraints.version != PLAIN_VERSION:
        raise invalid("constraints.version must be 1.", field="constraints.version")
    file = await session.constraints.replace(
        project, params.constraints.items, params.expected_revision
    )
    return await _plain_constraints(session, project.project_id, file)


async def list_constraints(session: Session, params: ProjectId) -> ConstraintList:
    """List all constraints; without a file there are none."""
    project = await session.projects.find(params.project_id)
    file = await session.constraints.list(project)
    clean, evidence = await _redact(session, project.project_id, file.constraints)
    return ConstraintList(constraints=clean, revision=file.revision, redaction_evidence=evidence)


async def create_constraint(session: Session, params: CreateConstraint) -> ConstraintAt:
    """Add a constraint; the same text twice is CONSTRAINT_CONFLICT."""
    project = await session.projects.find(params.project_id)
    file = await session.constraints.create(project, params.constraint, params.expected_revision)
    return await _one_constraint(session, project.project_id, file, file.constraints[-1].id)


async def update_constraint(session: Session, params: UpdateConstraint) -> ConstraintAt:
    """Change a constraint of the user."""
    project = await session.projects.find(params.project_id)
    _refuse_blank(params.constraint_id)
    file = await session.constraints.update(
        project, params.constraint_id, params.patch, params.expected_revision
    )
    return await _one_constraint(session, project.project_id, file, params.constraint_id)


async def delete_constraint(session: Session, params: DeleteConstraint) -> DeletedConstraint:
    """Delete a constraint of the user."""
    project = await session.projects.find(params.project_id)
    _refuse_blank(params.constraint_id)
    file = await session.constraints.delete(project, params.constraint_id, params.expected_revision)
    return DeletedConstraint(
        deleted_constraint_id=params.constraint_id,
        revision=file.revision,
        undo=file.undo or UNSET,
    )


def _refuse_blank(constraint_id: str) -> None:
    if not constraint_id.strip():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "constraintId must not be blank.", field="constraintId"
        )


async def _plain_constraints(
    session: Session, project_id: str, file: ConstraintFile
) -> PlainConstraintsAt:
    ours = [constraint for constraint in file.constraints if constraint.source == "user"]
    clean, evidence = await _redact(session, project_id, ours)
    return PlainConstraintsAt(
        constraints=PlainConstraints(version=PLAIN_VERSION, items=[each.text for each in clean]),
        revision=file.revision,
        redaction_evidence=evidence,
        undo=file.undo or UNSET,
    )


async def _one_constraint(
    session: Session, project_id: str, file: ConstraintFile, constraint_id: str
) -> ConstraintAt:
    found = [constraint for constraint in file.constraints if constraint.id == constraint_id]
    (clean,), evidence = await _redact(session, project_id, found)
    return ConstraintAt(
        constraint=clean,
        revision=file.revision,
        redaction_evidence=evidence,
        undo=file.undo or UNSET,
    )


async def _redact(
    session: Session, project_id: str, constraints: list[Constraint]
) -> tuple[list[Constraint], list[RedactionEvidence] | UnsetType]:
    texts = [(PATH, constraint.text) for constraint in constraints]
    clean_texts, evidence = await call_in_thread(session.redactor.redact_texts, texts)
    log_redaction(project_id, evidence)
    clean = [
        msgspec.structs.replace(constraint, text=text)
        for constraint, text in zip(constraints, clean_texts, strict=True)
    ]
    return clean, evidence or UNSET


CHANNELS = (
    Channel("constraints:get", get_constraints, errors=(ErrorCode.CONSTRAINT_VALIDATION_ERROR,)),
    Channel("constraints:set", set_constraints, errors=CONSTRAINT_ERRORS),
    Channel("constraints:list", list_constraints, errors=(ErrorCode.CONSTRAINT_VALIDATION_ERROR,)),
    Channel("constraints:create", create_constraint, errors=CONSTRAINT_ERRORS),
    Channel("constraints:update", update_constraint, errors=CONSTRAINT_ERRORS),
    Channel("constraints:delete", delete_constraint, errors=CONSTRAINT_ERRORS),
    Channel("constraints:check", check_text, errors=ASSEMBLY_ERRORS),
)
