"""What went wrong upstream, as a code that a client can act on. Knows no SDK.

Nothing that a provider says goes on unless it has been redacted: some repeat the key.
"""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction.redactor import Redactor

SAID = 300
LONGEST = 20_000

_AUTH = {401, 403}
_AUTH_KINDS = {"authentication_error", "permission_error", "invalid_api_key"}
_LIMIT_KINDS = {"rate_limit_error", "rate_limit_exceeded", "insufficient_quota"}


class Complaint:
    """What a provider answered instead of text."""

    def __init__(
        self,
        provider: str,
        *,
        status: int,
        kind: str | None = None,
        said: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.provider = provider
        self.status = status
        self.kind = kind or ""
        self.said = said
        self.headers = headers or {}

    def as_error(self, secret: str) -> DaemonError:
        """Tell refused keys, rate limits and everything else apart."""
        said = redacted(self.said, secret)
        details: dict[str, Any] = {"provider": self.provider, "status": self.status}
        if self.kind in _AUTH_KINDS or self.status in _AUTH:
            return DaemonError(
                ErrorCode.AI_AUTH_FAILED,
                f"{self.provider} refused the key; check it and its permissions.",
                **details,
            )
        if self.kind in _LIMIT_KINDS or self.status == 429:
            return _rate_limited(self, details)
        if 300 <= self.status < 400:
            return DaemonError(
                ErrorCode.UPSTREAM_ERROR,
                f"{self.provider} points to another address; check aiBaseUrl.",
                **details,
            )
        about = f": {said}" if said else ""
        return DaemonError(
            ErrorCode.UPSTREAM_ERROR,
            f"{self.provider} answered {redacted(self.kind, secret) or self.status}{about}",
            **details,
        )


def cut(provider: str) -> DaemonError:
    """Say that an answer ended before its end."""
    message = f"The answer of {provider} broke off; try again."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="cut")


def unreachable(provider: str) -> DaemonError:
    """Say that nobody answered."""
    message = f"{provider} cannot be reached; check the network and aiBaseUrl."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="unreachable")


def nonsense(provider: str) -> DaemonError:
    """Say that an answer is not in the provider's own format."""
    message = f"{provider} answered in a form that cannot be read; check aiBaseUrl."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="garbage")


def endless(provider: str) -> DaemonError:
    """Say that an answer is longer than any that was asked for."""
    message = f"The answer of {provider} does not end; check aiBaseUrl and the model."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="endless")


def silent(provider: str, idle_ms: int) -> DaemonError:
    """Say that the provider said nothing for too long."""
    message = f"{provider} said nothing for {idle_ms} ms; try again, or raise aiIdleTimeoutMs."
    return DaemonError(ErrorCode.TIMEOUT, message, provider=provider, reason="upstream_silent")


def not_installed(provider: str) -> DaemonError:
    """Say which extra is missing."""
    message = f"The {provider} library is not installed: pip install 'creonowd[{provider}]'."
    return DaemonError(ErrorCode.AI_NOT_CONFIGURED, message, provider=provider)


def redacted(said: str, secret: str) -> str:
    """Take secrets out of what a provider said, above all the key it was given.

    Nothing is told of what is no sentence but a book: to go through one takes seconds.
    """
    if len(said) > LONGEST:
        return ""
    clean = Redactor(secrets=[secret] if secret else []).redact(said.replace(secret or "\0", ""))
    line = " ".join(clean.text.split())
    return line if len(line) <= SAID else f"{line[:SAID]}…"


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Read how long a provider asks to wait: milliseconds, seconds or a date."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    for name, factor in (("retry-after-ms", 1), ("retry-after", 1000)):
        try:
            return max(0, round(float(lower[name]) * factor))
        except (KeyError, ValueError, OverflowError):
            continue
    try:
        wait = parsedate_to_datetime(lower["retry-after"]) - parsedate_to_datetime(lower["date"])
        return max(0, round(wait.total_seconds() * 1000))
    except (KeyError, ValueError, TypeError):
        return None


def _rate_limited(complaint: Complaint, details: dict[str, Any]) -> DaemonError:
    wait = retry_after_ms(complaint.headers)
    advice = "try again later" if wait is None else f"try again in {wait / 1000:g} s"
    known: dict[str, Any] = {} if wait is None else {"retryAfterMs": wait}
    return DaemonError(
        ErrorCode.AI_RATE_LIMITED,
        f"{complaint.provider} asks to slow down; {advice}.",
        **details,
        **known,
    )
