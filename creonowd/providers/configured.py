"""The provider that the settings name, made for the first call, and the prefixes sent to it.

A missing key is looked for again at every call, so that adding one needs no restart.
"""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import anyio
from anyio import to_thread

from creonowd import settings as configuration
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.providers import openai
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.fake import Fake, read_script
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Provider
from creonowd.providers.sdk import Address, is_installed, library_missing
from creonowd.redaction import PLACEHOLDER
from creonowd.settings import Key, Settings


class Readiness(Model):
    """Whether runs can be made, where the key came from, and what is missing if not.

    `judges` if the model can be asked for a verdict, `echoes` if it only returns the prompt.
    """

    ready: bool
    judges: bool = False
    echoes: bool = False
    key_origin: str | None = None
    problem: str | None = None


class ConfiguredProvider:
    """The one provider of a daemon."""

    def __init__(self, settings: Settings, user_data: Path) -> None:
        self._settings = settings
        self._user_data = user_data
        self._lock = anyio.Lock()
        self._provider: Provider | None = None

    async def current(self) -> Provider:
        """Return the provider; AI_NOT_CONFIGURED says what is missing."""
        if self._provider is None:
            async with self._lock:
                if self._provider is None:
                    self._provider = await to_thread.run_sync(
                        _make_provider, self._settings, self._user_data
                    )
        return self._provider

    async def readiness(self) -> Readiness:
        """Return whether the provider can be used, without using it."""
        try:
            key = await to_thread.run_sync(_key, self._settings, self._user_data)
            provider = await self.current()
            await to_thread.run_sync(_check_installed, provider)
        except DaemonError as error:
            return Readiness(ready=False, problem=error.message)
        return Readiness(
            ready=True,
            judges=provider.judges,
            echoes=isinstance(provider, Fake) and provider.echoes,
            key_origin=None if key is None else key.origin,
        )

    def model(self, profile_model: str) -> str:
        """Return the model to ask: the one in the settings, else the budget profile's."""
        return self._settings.ai_model or profile_model

    async def aclose(self) -> None:
        """Close the provider's connections."""
        if self._provider is not None:
            await self._provider.close()


def public_url(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query.

    Any part of an address that cannot be parsed may be secret, so that the placeholder stands for it.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return PLACEHOLDER
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _key(settings: Settings, user_data: Path) -> Key | None:
    return None if settings.ai_provider == "fake" else configuration.api_key(settings, user_data)


def _check_installed(provider: Provider) -> None:
    if not isinstance(provider, Fake) and not is_installed(provider.name):
        raise library_missing(provider.name)


def _make_provider(settings: Settings, user_data: Path) -> Provider:
    if settings.ai_provider == "fake":
        script = settings.ai_fake_script
        return Fake(read_script(Path(script).expanduser()) if script else None)
    address = _address(settings, configuration.api_key(settings, user_data))
    if settings.ai_provider == "openai":
        return OpenAIChat(address)
    if not settings.ai_model:
        raise DaemonError(ErrorCode.AI_NOT_CONFIGURED, "Set aiModel to one of Anthropic's models.")
    return AnthropicMessages(address)


def _address(settings: Settings, key: Key | None) -> Address:
    """Make the address; only a server that is not the provider's own may have no key."""
    name = settings.ai_provider
    keyless = name == "openai" and settings.ai_base_url not in {"", openai.OWN_URL}
    if key is None and not keyless:
        raise DaemonError(
            ErrorCode.AI_NOT_CONFIGURED,
            Wording(
                f"There is no key for {name}; set {name.upper()}_API_KEY, or put it into a file"
                f" with mode 0600 at <userData>/keys/{name}.",
                f"没有 {name} 的密钥；请设置 {name.upper()}_API_KEY，或存入权限为 0600 的文件"
                f" <userData>/keys/{name}。",
            ),
            provider=name,
        )
    if key is not None and not (key.value.isascii() and key.value.isprintable()):
        raise DaemonError(
            ErrorCode.AI_NOT_CONFIGURED,
            Wording(
                f"The key for {name} has a character that no key has; write it anew on one line.",
                f"{name} 的密钥含有密钥不会有的字符；请重新写在一行内。",
            ),
            provider=name,
        )
    return Address(
        key="" if key is None else key.value,
        url=settings.ai_base_url,
        idle_ms=settings.ai_idle_timeout_ms,
        prompt_cache=settings.ai_prompt_cache,
    )


class SentPrefixes:
    """Counts which prefixes were sent for each project, to know what is worth caching."""

    def __init__(self, capacity: int = 256) -> None:
        self._uses: Memo[tuple[str, str], int] = Memo(capacity)
        self._newest: Memo[str, str] = Memo(capacity)

    def is_likely(self, project_id: str, prefix_hash: str) -> bool:
        """Return whether a prefix will probably come again: it did, or the one before it did.

        The first prefix of a project counts as likely, so that the second call can already hit.
        """
        if (project_id, prefix_hash) in self._uses:
            return True
        newest = self._newest.peek(project_id)
        uses = None if newest is None else self._uses.peek((project_id, newest))
        return uses is None or uses > 1

    def note(self, project_id: str, prefix_hash: str) -> None:
        """Count a prefix that is sent."""
        key = (project_id, prefix_hash)
        uses = self._uses.peek(key) or 0
        if uses == 0:
            self._newest.put(project_id, prefix_hash)
        self._uses.put(key, uses + 1)
