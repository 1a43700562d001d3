"""`viewer:*` — the address of the context viewer, and what its page lists."""

import hmac
from typing import Annotated
from urllib.parse import urlencode

from msgspec import Meta

from creonowd.channels.project import ProjectId
from creonowd.engine.services import Session
from creonowd.errors import ErrorCode
from creonowd.model import Empty, Model, Params, Result
from creonowd.redaction import Redactor
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Channel, Role

TOKEN_MS = 24 * 3600 * 1000


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
    """A skill by name; one that is not `valid` cannot be run."""

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
    return ViewerSkills(
        items=[
            ViewerSkill(
                id=session.redactor.redact_name(one.id),
                name=_redact(session.redactor, one.name),
                valid=not one.faults,
            )
            for one in entries
        ]
    )


def _redact(redactor: Redactor, name: str) -> str:
    return redactor.redact(name, "")[0]


CHANNELS = (
    Channel("viewer:open", open_viewer, role=Role.OWNER, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("viewer:prove", prove, open=True),
    Channel("viewer:projects", list_projects),
    Channel("viewer:skills", list_skills),
)
