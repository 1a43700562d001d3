"""`initialize`, `shutdown`, `exit`, `rpc.discover`, `ipc:invoke`, `session:*` — the connection itself."""

from typing import Annotated, Any, cast

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
    """Its name, such as `CreoNow`; shown in logs."""
    version: str = ""
    """Its version; free text."""


class Initialize(Params):
    """The client, its rights and its language. All optional: each transport has defaults.

    `initialize` may be sent again, for instance to change the locale.
    """

    client_info: Program | None = None
    """Who is calling; only for logs."""
    protocol_version: int | None = None
    """The protocol that the client was written for; UNSUPPORTED if the daemon no longer speaks
    it."""
    parent_pid: Annotated[int, Meta(ge=1)] | None = None
    """The process that started the daemon; when it ends, the daemon ends. Only an owner's
    counts."""
    position_encoding: Annotated[str, Meta(pattern="^utf-(16|32)$")] | None = None
    """How positions in texts are counted on this connection: `utf-16` as JavaScript's strings do,
    `utf-32` in code points. Without it, `utf-32`."""
    token: str | None = None
    """The right to connect, from `endpoint.json` or `session:grant`. Not needed on stdio and the
    Unix socket."""
    locale: str | None = None
    """The language of errors, warnings, verdicts and skill names, such as `zh-CN` or `en`; never
    of a prompt. Without it English, but for the warnings that have a fixed Chinese text."""


class Limits(Model):
    """The limits of the daemon."""

    max_message_bytes: int
    """The largest message in bytes; a larger one is skipped and answered with
    IPC_PAYLOAD_TOO_LARGE."""
    max_in_flight: int
    """How many requests of one connection may be unanswered; the next gets IPC_BACKPRESSURE."""
    max_batch: int
    """How many requests one JSON-RPC batch may have."""
    request_timeout_ms: int
    """How long a request may take, in milliseconds, if it names no `_meta.timeoutMs`; then
    TIMEOUT."""


class Initialized(Result):
    """The daemon, its protocol, and what this connection may call."""

    server_info: Program
    """The daemon's name and version."""
    protocol_version: int
    """The protocol that the daemon speaks."""
    min_compatible: int
    """The oldest protocol that it still understands."""
    contract_hash: str
    """SHA-256 of the contract (`rpc.discover`); two daemons with the same hash offer the same."""
    role: Role
    """What this connection may do from now on."""
    position_encoding: str
    """How positions are counted on this connection: `utf-16` or `utf-32`."""
    limits: Limits
    """The limits that this daemon enforces."""
    channels: list[str]
    """The names of all channels that this connection may call, sorted."""


class Invoke(Params):
    """A channel and its payload."""

    channel: str
    """The channel to call, such as `context:assemble`."""
    payload: Raw = field(default_factory=Raw)
    """Its payload; without one, an empty one."""


class Envelope(Result):
    """The result for a renderer: `data` if `ok`, else `error`."""

    ok: bool
    """Whether the call went well."""
    data: Any | UnsetType = UNSET
    """The channel's result, if `ok`."""
    error: dict[str, Any] | UnsetType = UNSET
    """`code`, `message` and perhaps `details` of the failure, if not `ok`."""


class GrantToken(Params):
    """Which role a new token has, for which of its channels, and for how long."""

    role: Role
    """What the holder of the token may do."""
    channels: list[str] | None = None
    """The only channels that it may call; without them, all that the role may."""
    ttl_ms: Annotated[int, Meta(ge=1, le=LONGEST_GRANT_MS)] = 24 * 3600 * 1000
    """For how many milliseconds it is valid; at most as long as the caller's own right."""
    inspects: bool = False
    """Whether an owner with this token may inspect although the daemon does not run with
    `--debug`, as the viewer's page may."""


class GrantedToken(Result):
    """The new token; another connection sends it in `initialize`."""

    token: str
    """The secret; another connection sends it as `token` of `initialize`."""
    role: Role
    """What its holder may do."""
    expires_at_ms: int
    """When it ends, in milliseconds since 1970 (UTC)."""


class RevokeToken(Params):
    """The token to revoke."""

    token: str
    """A token that `session:grant` or `viewer:open` returned."""


class Revoked(Result):
    """Whether there was such a token."""

    revoked: bool
    """False if there was no such token, or not any more."""


async def initialize(session: Session, params: Initialize) -> Initialized:
    """Agree on positions, language and rights."""
    peer = session.connection
    if params.token is not None:
        await _authenticate(session, params.token)
    if not peer.is_admitted:
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
    return _initialize_result(session)


async def _authenticate(session: Session, token: str) -> None:
    async with session.connection.authentication:
        grant = await session.server.throttle.redeem(token, session.peer.id)
    if grant is None:
        raise DaemonError(ErrorCode.UNAUTHENTICATED, "The token is wrong or has run out.")
    session.server.admit(session.connection, grant)


def _initialize_result(session: Session) -> Initialized:
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


def exit_daemon(session: Session, params: Empty) -> None:
    """End the daemon."""
    session.server.exit("exit requested")


def discover(session: Session, params: Empty) -> dict[str, Any]:
    """Return the contract as an OpenRPC document: every channel, type, error and event."""
    # It is encoded already, in some hundred kilobytes; the type is for the contract.
    return cast("dict[str, Any]", Raw(session.server.host.document))


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
    grant = Grant(params.role, channels, expires, inspects=params.inspects, parent=own)
    token = session.server.grants.mint(grant)
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
    Channel("initialize", initialize, open=True, errors=(ErrorCode.UNSUPPORTED,)),
    Channel("shutdown", shutdown, role=Role.OWNER),
    Channel("exit", exit_daemon, role=Role.OWNER),
    Channel("rpc.discover", discover),
    Channel("ipc:invoke", invoke, deadline=Deadline.NONE, envelope=True),
    Channel("session:grant", grant_token, role=Role.OWNER),
    Channel("session:revoke", revoke_token, role=Role.OWNER),
)
