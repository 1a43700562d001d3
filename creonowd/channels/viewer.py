"""`viewer:*` — the address of the context viewer, and what its page lists."""

import hmac
import json
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlencode

from anyio import to_thread
from msgspec import Meta

from creonowd.channels.document import mask
from creonowd.channels.project import ProjectId
from creonowd.channels.skill import in_language
from creonowd.engine.services import Session, may_inspect
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Empty, Model, Params, Result
from creonowd.redaction import Redactor
from creonowd.retrieval.document_list import IGNORE_FILES
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Channel, Role
from creonowd.skills.library import LibraryEntry
from creonowd.storage.safe_folder import LinkedFolder, invalid_path, problem_with
from creonowd.text import decode_text, well_formed
from creonowd.threads import call_in_thread, until_stopped
from creonowd.workspace.creonow_tree import (
    LIMIT_BYTES,
    SUFFIXES,
    CreonowFolder,
    folder_of,
    in_scope,
)
from creonowd.workspace.documents import MAX_EDITS, Edit, text_revision, unredacted_path
from creonowd.workspace.file_edits import WrittenFile

TOKEN_MS = 24 * 3600 * 1000
MOST_NAME = 80
MOST_TEXT = 20_000
# Characters that Windows allows in no file name, and those that would make a name a path.
_FORBIDDEN = re.compile(r'[\x00-\x1f<>:"/\\|?*#]+')


class OpenViewer(Params):
    """The project and the document to show first; the page can show any.

    A `transient` token ends with this daemon. A page asks for one to keep for a reload: after a
    crash another program may serve the same address and read what the page has stored there.
    """

    project_id: str | None = None
    """The project to show first; the page can show any."""
    document_id: str | None = None
    """The document to show first."""
    transient: bool = False
    """Whether the token ends with this daemon. A page asks for such a one to keep for a reload:
    after a crash another program may serve the same address."""


class ViewerAddress(Result):
    """Open `url` in a browser of this machine; `token` is the one in it."""

    url: str
    """Open this in a browser of this machine, once; it holds an owner's token."""
    token: str
    """The token that is in `url`; `session:revoke` ends it."""


class Prove(Params):
    """A random text that was not used before."""

    nonce: Annotated[str, Meta(min_length=32, max_length=128)]
    """A random text that was not used before."""


class Proofs(Result):
    """HMAC-SHA256 of the nonce with the SHA-256 of each recent token as the key, in hex."""

    proofs: list[str]
    """HMAC-SHA256 of the nonce with the SHA-256 of each recent token as the key, in hex. A page
    that has the token finds its own among them, and so knows the daemon again."""


class ViewerProject(Model):
    """A project by name, without its path."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    name: str
    """What it is called."""


class ViewerProjects(Result):
    """All projects, in the order in which they were created."""

    items: list[ViewerProject]
    """The projects."""


class ViewerSkill(Model):
    """A skill by its name in the connection's language; one that is not `valid` cannot be run."""

    id: str
    """The skill's id, such as `builtin:continue`."""
    name: str
    """What it is called."""
    valid: bool
    """Whether it can be run."""


class ViewerSkills(Result):
    """Every skill that the project can use."""

    items: list[ViewerSkill]
    """The skills."""


class LookAtTree(Params):
    """The project whose `.creonow` the page asks about; with `make` the missing parts are made."""

    project_id: str
    """Whose `.creonow`."""
    make: bool = False
    """Make what is missing; nothing that exists is changed."""


class ViewerTree(Result):
    """Whether the project has a `.creonow` now. Unlike `context:creonow:status` it names no path."""

    exists: bool
    """There is a `.creonow` folder now."""
    document_writes: bool
    """Whether `context:document:write` may change files and make new ones."""


class NoteKind(StrEnum):
    """What the author writes down: a `person` in `characters`, a `note` in `settings`."""

    PERSON = "person"
    """A file of `.creonow/characters`."""
    NOTE = "note"
    """A file of `.creonow/settings`."""


_FOLDERS = {NoteKind.PERSON: CreonowFolder.CHARACTERS, NoteKind.NOTE: CreonowFolder.SETTINGS}


class WriteDown(Params):
    """A person or a note that the project does not have yet.

    `name` names the file and, in its front matter, the person; `text` is what the model reads.
    """

    project_id: str
    """Where it is written down."""
    kind: NoteKind
    """What it is."""
    name: Annotated[str, Meta(min_length=1, max_length=MOST_NAME)]
    """What the author calls it; what no file name may have becomes a hyphen in that of the file."""
    text: Annotated[str, Meta(max_length=MOST_TEXT)] = ""
    """What the model gets to read; without it, the name alone."""


class ReadNoteFile(Params):
    """A file of `.creonow`, or an ignore file, that the author wants to correct."""

    project_id: str
    """Whose file."""
    path: str
    """Below the project: a file of `rules`, `settings`, `characters` or `threads` of `.creonow`, or
    an ignore file of any folder."""


class NoteFile(Result):
    """The text of a file of `.creonow`, for the author's eyes."""

    path: str
    """The file."""
    text: str
    """The whole text with its front matter; each secret is masked by as many blocks as it has
    characters."""
    revision: str
    """Names exactly this text; edits are made for it."""


class WriteNoteFile(ReadNoteFile):
    """Edits to a file of `.creonow`, so that a masked secret stays what it is."""

    revision: str
    """The `revision` that the edits are made for; CONFLICT if the file has another text."""
    edits: Annotated[list[Edit], Meta(max_length=MAX_EDITS)]
    """Changes in order, each to what the one before has left."""


class WrittenNoteFile(Result):
    """The file after the edits."""

    revision: str
    """Names the new text."""
    undo: str
    """What `context:undo` takes it back with; blank if nothing changed."""


class WrittenDown(Result):
    """The file that was made, below the project."""

    path: str
    """Below the project, `.creonow/characters/…` or `.creonow/settings/…`."""
    undo: str
    """What `context:undo` removes the file with, unless it has changed since."""


async def open_viewer(session: Session, params: OpenViewer) -> ViewerAddress:
    """Serve the viewer on loopback, and return its address with a one-time token that may inspect."""
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    address = await session.viewer.address()
    expires = session.clock.now_ms() + TOKEN_MS
    own = session.connection.grant
    grant = Grant(
        Role.OWNER,
        expires_at_ms=expires,
        single_use=True,
        inspects=True,
        transient=params.transient,
        parent=own,
    )
    token = session.server.grants.mint(grant)
    if not params.transient:
        await session.viewer.save_tokens()
    shown = {"token": token, "project": params.project_id, "document": params.document_id}
    fields = urlencode({name: value for name, value in shown.items() if value})
    return ViewerAddress(url=f"{address}/#{fields}", token=token)


def prove(session: Session, params: Prove) -> Proofs:
    """Prove that this daemon knows the digests of the pages' tokens.

    Another program may listen on the port, and a link from elsewhere may name a token; a page asks
    for this proof before it sends any.
    """
    nonce = params.nonce.encode()
    digests = session.server.grants.digests()
    return Proofs(proofs=[hmac.digest(digest, nonce, "sha256").hex() for digest in digests])


async def list_projects(session: Session, _params: Empty) -> ViewerProjects:
    """List all projects, without paths and redacted."""
    projects = await session.projects.list()
    return ViewerProjects(
        items=[
            ViewerProject(project_id=one.project_id, name=_redact(session.redactor, one.name))
            for one in projects
        ]
    )


async def list_skills(session: Session, params: ProjectId) -> ViewerSkills:
    """List a project's skills, without paths and redacted."""
    project = await session.projects.find(params.project_id)
    entries = await session.skills.entries(project)
    return await call_in_thread(_visible_skills, session, entries)


def _visible_skills(session: Session, entries: Sequence[LibraryEntry]) -> ViewerSkills:
    language = session.connection.language
    return ViewerSkills(
        items=[
            ViewerSkill(
                id=session.redactor.redact_name(one.id),
                name=_redact(session.redactor, in_language(one.names, one.name, language)),
                valid=not one.faults,
            )
            for one in until_stopped(entries)
        ]
    )


async def look_at_tree(session: Session, params: LookAtTree) -> ViewerTree:
    """Return whether the project has a `.creonow`, and make it if that is wished."""
    project = await session.projects.find(params.project_id)
    if params.make:
        await session.tree.ensure(project)
    exists = await session.tree.exists(project)
    return ViewerTree(exists=exists, document_writes=session.settings.document_writes)


async def write_down(session: Session, params: WriteDown) -> WrittenDown:
    """Write a person or a note into a new file; CONFLICT if there is one of that name."""
    project = await session.projects.find(params.project_id)
    name = " ".join(well_formed(params.name).split())
    stem = _FORBIDDEN.sub("-", name).strip(" .-")
    if not stem:
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, "name must not be blank.", field="name")
    path = f"{folder_of(_FOLDERS[params.kind])}/{stem}.md"
    text = well_formed(params.text).strip()
    heading = f"---\nname: {json.dumps(name, ensure_ascii=False)}\n---\n\n"
    content = f"{heading}{text or name}\n"
    await session.tree.create(project, path, content)
    data, within = content.encode("utf-8", "replace"), folder_of(_FOLDERS[params.kind])
    return WrittenDown(
        path=path, undo=session.edits.remember(project.root, path, None, data, within)
    )


async def read_note_file(session: Session, params: ReadNoteFile) -> NoteFile:
    """Return the text of a file of `.creonow` with its secrets masked; for owners that may inspect."""
    if not may_inspect(session):
        raise DaemonError(ErrorCode.CONTEXT_INSPECT_FORBIDDEN)
    project = await session.projects.find(params.project_id)

    def read() -> NoteFile:
        path = unredacted_path(project.root, params.path, session.redactor)
        folder = LinkedFolder(project.root, _editable_folder(path))
        text = decode_text(folder.snapshot(path, limit=LIMIT_BYTES).data).text
        shown = mask(text, session.redactor.find(text), utf16=session.peer.utf16)
        return NoteFile(
            path=session.redactor.redact_name(path), text=shown, revision=text_revision(text)
        )

    return await to_thread.run_sync(read)


async def write_note_file(session: Session, params: WriteNoteFile) -> WrittenNoteFile:
    """Change a file of `.creonow`; what is not edited stays as it is."""
    if not may_inspect(session):
        raise DaemonError(ErrorCode.CONTEXT_INSPECT_FORBIDDEN)
    project = await session.projects.find(params.project_id)
    files, utf16 = session.documents.files, session.peer.utf16

    def write() -> WrittenFile:
        path = unredacted_path(project.root, params.path, session.redactor)
        return session.edits.change_now(
            project.root,
            path,
            lambda data: files.apply_edits(data, params.revision, params.edits, utf16=utf16),
            within=_editable_folder(path),
        )

    written = await to_thread.run_sync(write)
    revision = text_revision(decode_text(written.data).text)
    return WrittenNoteFile(revision=revision, undo=written.undo)


def _editable_folder(path: str) -> str:
    """Return the folder that no link may lead out of; INVALID_ARGUMENT if the file is not editable."""
    above, _, name = path.rpartition("/")
    if name in IGNORE_FILES:
        if problem := problem_with(path):
            raise invalid_path(problem)
        return above
    scope = next((one for one in _EDITABLE if path.startswith(f"{folder_of(one)}/")), None)
    if scope is None or not path.lower().endswith(SUFFIXES[scope]):
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, _NOT_EDITABLE, field="path")
    in_scope(path, scope)
    return folder_of(scope)


_EDITABLE = (
    CreonowFolder.RULES,
    CreonowFolder.SETTINGS,
    CreonowFolder.CHARACTERS,
    CreonowFolder.THREADS,
)
_NOT_EDITABLE = Wording(
    "Only ignore files and texts of .creonow that enter prompts can be changed here.",
    "此处只能改动忽略文件和 .creonow 里会进入提示的文本。",
)


def _redact(redactor: Redactor, name: str) -> str:
    return redactor.redact(name, "")[0]


CHANNELS = (
    Channel("viewer:open", open_viewer, role=Role.OWNER, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("viewer:prove", prove, open=True),
    Channel("viewer:projects", list_projects),
    Channel("viewer:skills", list_skills),
    Channel("viewer:tree", look_at_tree, role=Role.OWNER),
    Channel("viewer:write_down", write_down, role=Role.OWNER, errors=(ErrorCode.CONFLICT,)),
    Channel(
        "viewer:file:read",
        read_note_file,
        role=Role.OWNER,
        refusal=ErrorCode.CONTEXT_INSPECT_FORBIDDEN,
        errors=(ErrorCode.UNSUPPORTED,),
    ),
    Channel(
        "viewer:file:write",
        write_note_file,
        role=Role.OWNER,
        refusal=ErrorCode.CONTEXT_INSPECT_FORBIDDEN,
        errors=(ErrorCode.CONFLICT, ErrorCode.UNSUPPORTED),
    ),
)
