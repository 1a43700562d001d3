"""`initialize`, `shutdown`, `exit`, `rpc.discover`, `ipc:invoke`, `session:*` — the connection itself."""

from typing import Annotated, Any

from msgspec import UNSET, Meta, Raw, UnsetType, field

from creonowd import __version__
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode, language_of
from creonowd.model import Empty, Model, Params, Result
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Channel, Deadline, Role

PROTOCOL_VERSION = 1
MIN_COMPATIBLE = 1
LONGEST_GRANT_MS = 30 * 24 * 3600 * 1000


class Program(Model):
    """A program's name and version."""

    name: str
    version: str = ""


class Initialize(Params):
    """The client, and how it counts positions. All optional: each transport has defaults.

    `locale`, such as `zh-CN` or `en`, is the language of every message: errors, warnings, the
    judge's reasons, the names of skills. It never changes a prompt.
    """

    client_info: Program | None = None
    protocol_version: int | None = None
    parent_pid: Annotated[int, Meta(ge=1)] | None = None
    position_encoding: Annotated[str, Meta(pattern="^utf-(16|32)$")] | None = None
    token: str | None = None
    locale: str | None = None


class Limits(Model):
    """The limits of the daemon."""

    max_message_bytes: int
    max_in_flight: int
    max_batch: int
    request_timeout_ms: int


class Initialized(Result):
    """The daemon, its protocol, and what this connection may call."""

    server_info: Program
    protocol_version: int
    min_compatible: int
    contract_hash: str
    role: Role
    position_encoding: str
    limits: Limits
    channels: list[str]


class Invoke(Params):
    """A channel and its payload."""

    channel: str
    payload: Raw = field(default_factory=Raw)


class Envelope(Result):
    """The result for a renderer: `data` if `ok`, else `error`."""

    ok: bool
    data: Any | UnsetType = UNSET
    error: dict[str, Any] | UnsetType = UNSET


class GrantToken(Params):
    """Which role a new token has, for which of its channels, and for how long."""

    role: Role
    channels: list[str] | None = None
    ttl_ms: Annotated[int, Meta(ge=1, le=LONGEST_GRANT_MS)] = 24 * 3600 * 1000


class GrantedToken(Result):
    """The new token; another connection sends it in `initialize`."""

    token: str
    role: Role
    expires_at_ms: int


class RevokeToken(Params):
    """The token to revoke."""

    token: str


class Revoked(Result):
    """Whether there was such a token."""

    revoked: bool


async def initialize(session: Session, params: Initialize) -> Initialized:
    """Agree on positions, language and rights."""
    peer = session.connection
    if params.token is not None:
        await _authenticate(session, params.token)
    if not peer.admitted:
        raise DaemonError(
            ErrorCode.UNAUTHENTICATED, "This connection needs a `token`; endpoint.json names one."
        )
    if params.protocol_version is not None and params.protocol_version < MIN_COMPATIBLE:
        raise DaemonError(
            ErrorCode.UNSUPPORTED,
            f"Protocol {params.protocol_version} is too old.",
            minCompatible=MIN_COMPATIBLE,
        )
    peer.utf16 = params.position_encoding == "utf-16"
    peer.language = language_of(params.locale)
    peer.client = "" if params.client_info is None else params.client_info.name[:100]
    if params.parent_pid is not None and peer.role is Role.OWNER:
        session.server.host.watch_parent(params.parent_pid)
    return _introduction(session)


async def _authenticate(session: Session, token: str) -> None:
    async with session.connection.authentication:
        grant = await session.server.throttle.redeem(token, session.peer.id)
    if grant is None:
        raise DaemonError(ErrorCode.UNAUTHENTICATED, "The token is wrong or has run out.")
    session.connection.admit(grant)


def _introduction(session: Session) -> Initialized:
    settings = session.settings
    grant = session.connection.grant
    channels = session.server.channels.values()
    return Initialized(
        server_info=Program(name="creonowd", version=__version__),
        protocol_version=PROTOCOL_VERSION,
        min_compatible=MIN_COMPATIBLE,
        contract_hash=session.server.contract_hash,
        role=session.peer.role,
        position_encoding="utf-16" if session.peer.utf16 else "utf-32",
        limits=Limits(
            max_message_bytes=settings.max_message_bytes,
            max_in_flight=settings.max_in_flight,
            max_batch=settings.max_batch,
            request_timeout_ms=settings.request_timeout_ms,
        ),
        channels=sorted(c.name for c in channels if grant is not None and grant.allows(c)),
    )


async def shutdown(session: Session, params: Empty) -> None:
    """Accept no new requests and finish those that run; `exit` then ends the daemon."""
    session.server.stop("shutdown requested")
    await session.server.wait_for_last_request()


def leave(session: Session, params: Empty) -> None:
    """End the daemon."""
    session.server.exit("exit requested")


def discover(session: Session, params: Empty) -> dict[str, Any]:
    """Return the OpenRPC document."""
    return session.server.document


async def invoke(session: Session, params: Invoke) -> Envelope:
    """Call a channel; the result and any failure are returned in an IPC envelope."""
    return Envelope(ok=True, data=await session.connection.invoke(params.channel, params.payload))


def grant_token(session: Session, params: GrantToken) -> GrantedToken:
    """Make a token for another connection; it never allows more than the caller may do."""
    known = session.server.channels
    if unknown := sorted(set(params.channels or ()) - known.keys()):
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, f"There is no channel {unknown[0]!r}.", field="channels"
        )
    own = session.connection.grant
    names = None if params.channels is None else frozenset(params.channels)
    channels = _allowed_channels(own, names)
    expires = _expiry(own, session.clock.now_ms() + params.ttl_ms)
    token = session.server.grants.mint(Grant(params.role, channels, expires, parent=own))
    return GrantedToken(token=token, role=params.role, expires_at_ms=expires)


def _allowed_channels(own: Grant | None, names: frozenset[str] | None) -> frozenset[str] | None:
    """Return the channels of a new token; FORBIDDEN if the caller may not call one of them."""
    if own is None or own.channels is None:
        return names
    if beyond := sorted((names or own.channels) - own.channels):
        raise DaemonError(
            ErrorCode.FORBIDDEN,
            f"This connection may not call {beyond[0]} itself.",
            field="channels",
        )
    return own.channels if names is None else names


def _expiry(own: Grant | None, expires_at_ms: int) -> int:
    """Return the expiry of a new token, which is not later than that of the caller's."""
    limit = None if own is None else own.expires_at_ms
    return expires_at_ms if limit is None else min(limit, expires_at_ms)


def revoke_token(session: Session, params: RevokeToken) -> Revoked:
    """Revoke a token, also for connections that use it now.

    Tokens that were requested with it are revoked as well.
    """
    return Revoked(revoked=session.server.revoke(params.token))


CHANNELS = (
    Channel("initialize", initialize, open=True),
    Channel("shutdown", shutdown, role=Role.OWNER),
    Channel("exit", leave, role=Role.OWNER),
    Channel("rpc.discover", discover),
    Channel("ipc:invoke", invoke, deadline=Deadline.NONE, envelope=True),
    Channel("session:grant", grant_token, role=Role.OWNER),
    Channel("session:revoke", revoke_token, role=Role.OWNER),
)
