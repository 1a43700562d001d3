"""The provider that the settings name, made when it is first needed.

A missing key is looked for again at every call, so that adding one needs no restart.
"""

from collections import OrderedDict
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import anyio
from anyio import to_thread

from creonowd import settings as configuration
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.providers import openai
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.fake import Fake, read_script
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Provider
from creonowd.providers.sdk import Address, is_installed, not_installed
from creonowd.redaction import PLACEHOLDER
from creonowd.settings import Key, Settings


class Readiness(Model):
    """Whether runs can be made, where the key came from, and what is missing if not."""

    ready: bool
    key_origin: str | None = None
    problem: str | None = None


class Configured:
    """Holds the one provider of a daemon."""

    def __init__(self, settings: Settings, user_data: Path) -> None:
        self._settings = settings
        self._user_data = user_data
        self._making = anyio.Lock()
        self._provider: Provider | None = None

    async def current(self) -> Provider:
        """Give the provider, or fail with AI_NOT_CONFIGURED saying what is missing."""
        if self._provider is None:
            async with self._making:
                if self._provider is None:
                    made = await to_thread.run_sync(_made, self._settings, self._user_data)
                    self._provider = made
        return self._provider

    async def readiness(self) -> Readiness:
        """Tell whether the provider can be used, without using it."""
        try:
            key = await to_thread.run_sync(_key, self._settings, self._user_data)
            provider = await self.current()
            await to_thread.run_sync(_check_installed, provider)
        except DaemonError as error:
            return Readiness(ready=False, problem=error.message)
        return Readiness(ready=True, key_origin=None if key is None else key.origin)

    def model(self, profile_model: str) -> str:
        """Tell which model is asked: the one in the settings, else the budget profile's."""
        return self._settings.ai_model or profile_model

    async def aclose(self) -> None:
        """Let go of the provider's connections."""
        if self._provider is not None:
            await self._provider.close()


def shown_url(url: str) -> str:
    """Spell an address without what may be secret in it: user, password, query.

    Of one that nobody can read, nothing is known to be harmless.
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
        raise not_installed(provider.name)


def _made(settings: Settings, user_data: Path) -> Provider:
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
    """Only someone else's server, such as one on this machine, may be asked without a key."""
    name = settings.ai_provider
    keyless = name == "openai" and settings.ai_base_url not in {"", openai.OWN_URL}
    if key is None and not keyless:
        raise DaemonError(
            ErrorCode.AI_NOT_CONFIGURED,
            f"There is no key for {name}; set {name.upper()}_API_KEY, or put it into a file with"
            f" mode 0600 at <userData>/keys/{name}.",
            provider=name,
        )
    if key is not None and not (key.value.isascii() and key.value.isprintable()):
        raise DaemonError(
            ErrorCode.AI_NOT_CONFIGURED,
            f"The key for {name} has a character that no key has; write it anew on one line.",
            provider=name,
        )
    return Address(
        key="" if key is None else key.value,
        url=settings.ai_base_url,
        idle_ms=settings.ai_idle_timeout_ms,
        prompt_cache=settings.ai_prompt_cache,
    )


KEPT = 256


class SentPrefixes:
    """Which prefixes were sent, and whether prefixes have lately been sent again."""

    def __init__(self, capacity: int = KEPT) -> None:
        self._capacity = capacity
        self._uses: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._newest: dict[str, str] = {}

    def is_likely(self, whose: str, prefix_hash: str) -> bool:
        """Tell whether a prefix will probably come again: it did, or the one before it did.

        The first prefix of anyone counts as likely, so that the second call can already hit.
        """
        before = self._newest.get(whose)
        again = (whose, prefix_hash) in self._uses
        return again or before is None or self._uses.get((whose, before), 1) > 1

    def note(self, whose: str, prefix_hash: str) -> None:
        """Remember that a prefix was sent."""
        key = (whose, prefix_hash)
        if key not in self._uses:
            self._newest[whose] = prefix_hash
        self._uses[key] = self._uses.get(key, 0) + 1
        self._uses.move_to_end(key)
        while len(self._uses) > self._capacity:
            (owner, gone), _ = self._uses.popitem(last=False)
            if self._newest.get(owner) == gone:
                del self._newest[owner]
