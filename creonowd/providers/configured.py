"""The back ends that the settings name: which of them gets a call, and the provider of each.

A provider is made for its first call. A missing key is looked for again at every call, so that
adding one needs no restart; back ends are added, removed and chosen while others are in use. Those
in `PRESETS` are added by name alone.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import anyio
import msgspec
from anyio import to_thread
from msgspec.structs import asdict, replace

from creonowd import settings as configuration
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.providers import ollama, openai
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.fake import Assistant, Fake, read_script
from creonowd.providers.local_server import ServerReport, ask_server, is_local
from creonowd.providers.ollama import OllamaChat
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Answer, Call, Effort, OnText, Provider, Sampling
from creonowd.providers.sdk import Address, is_installed, library_missing
from creonowd.redaction import PLACEHOLDER
from creonowd.settings import FILE, OWN_BACKEND, Backend, Key, Settings
from creonowd.storage import stored_files
from creonowd.tokens.models import facts_for

PRESETS: dict[str, Backend] = {
    "openai": Backend(model="gpt-5", key_variable="OPENAI_API_KEY"),
    "anthropic": Backend(
        provider="anthropic", model="claude-sonnet-4-6", key_variable="ANTHROPIC_API_KEY"
    ),
    "gemini": Backend(
        model="gemini-flash-latest",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai",
        key_variable="GEMINI_API_KEY",
    ),
    "deepseek": Backend(
        model="deepseek-chat",
        base_url="https://api.deepseek.com/v1",
        key_variable="DEEPSEEK_API_KEY",
    ),
    "qwen": Backend(
        model="qwen-plus",
        base_url="https://dashscope.aliyuncs.com/compatible-mode/v1",
        key_variable="DASHSCOPE_API_KEY",
    ),
    "glm": Backend(
        model="glm-5.2",
        base_url="https://open.bigmodel.cn/api/paas/v4",
        key_variable="ZHIPUAI_API_KEY",
    ),
    "kimi": Backend(
        model="kimi-k3",
        base_url="https://api.moonshot.cn/v1",
        key_variable="MOONSHOT_API_KEY",
    ),
    "openrouter": Backend(
        base_url="https://openrouter.ai/api/v1", key_variable="OPENROUTER_API_KEY"
    ),
    "ollama": Backend(provider="ollama", base_url="http://127.0.0.1:11434"),
    "lmstudio": Backend(base_url="http://127.0.0.1:1234/v1"),
    "llamacpp": Backend(base_url="http://127.0.0.1:8080/v1"),
}


REPORT_SECONDS = 60.0
_KEPT_REPORTS = 256
_WRITE_TRIES = 5


class Readiness(Model):
    """Whether runs can be made, where the key came from, and what is missing if not.

    `judges` if the model can be asked for a verdict, `echoes` if it only returns the prompt,
    `stands_in` if no model would write the next answer.
    """

    ready: bool
    judges: bool = False
    echoes: bool = False
    stands_in: bool = False
    key_origin: str | None = None
    problem: str | None = None


class CallPreferences(Model):
    """The back end, model and parameters that a run, a skill or an assembly asks for; None for any.

    `model` is the name of a back end, or of a model.
    """

    backend: str | None = None
    model: str | None = None
    sampling: Sampling = Sampling()
    max_output_tokens: int | None = None


class Choice(Model):
    """The back end and the model that get a call; `model` is empty if the budget's profile says."""

    backend: str
    provider: str
    model: str
    sampling: Sampling = Sampling()
    max_output_tokens: int | None = None


class ModelLimits(Model):
    """What is known of a model at its back end; None where it is not.

    `window` is the tokens of prompt and answer together, `server` what the server itself reported.
    """

    window: int | None = None
    output_limit: int | None = None
    thinks: bool = False
    server: ServerReport | None = None


class _OpenProvider:
    """A provider, and how many use it now."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.users = 0
        self.retired = False


class _BorrowedProvider:
    """A back end that is borrowed for each of its answers."""

    def __init__(self, backends: "Backends", backend: str, provider: Provider) -> None:
        self._backends = backends
        self._backend = backend
        self.name = provider.name
        self.judges = provider.judges

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Ask the back end as it is now."""
        async with self._backends.borrow(self._backend) as provider:
            return await provider.answer(call, on_text)

    async def close(self) -> None:
        """Do nothing: others use the back end as well."""


class Backends:
    """The back ends of a daemon."""

    def __init__(
        self,
        settings: Settings,
        user_data: Path,
        monotonic: Callable[[], float],
        hide: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._own = configuration.own_backend(settings)
        self._user_data = user_data
        self._monotonic = monotonic
        self._hide = hide
        self._lock = anyio.Lock()
        self._opened: dict[str, _OpenProvider] = {}
        self._reports: Memo[tuple[str, str], tuple[float, ServerReport]] = Memo(_KEPT_REPORTS)

    @property
    def chosen_name(self) -> str:
        """The name of the back end that answers unless another is asked for."""
        return self._settings.ai_backend or OWN_BACKEND

    def all(self) -> dict[str, Backend]:
        """Return every back end by its name; first the one that the settings describe by themselves."""
        return {OWN_BACKEND: self._own, **dict(sorted(self._settings.backends.items()))}

    def get(self, name: str) -> Backend:
        """Return a back end; NOT_FOUND names those that there are."""
        found = self._find(name)
        if found is None:
            raise DaemonError(
                ErrorCode.NOT_FOUND, _NO_BACKEND.format(", ".join(self.all())), field="backend"
            )
        return found

    def _find(self, name: str) -> Backend | None:
        if name == OWN_BACKEND:
            return self._own
        return self._settings.backends.get(name)

    def choose(self, *preferences: CallPreferences) -> Choice:
        """Choose the back end and the model of a call: the first preference that names one, else the settings.

        A model that is the name of a back end chooses that back end. A model of another back end
        chooses that one, unless a back end is named as well.
        """
        asked = next((each.backend for each in preferences if each.backend is not None), None)
        model = next((each.model for each in preferences if each.model), "")
        name = self._settings.ai_backend or OWN_BACKEND if asked is None else asked
        if asked is None and model:
            if model in self._settings.backends:
                name, model = model, ""
            elif self.get(name).model != model:
                others = sorted(self._settings.backends.items())
                name = next((n for n, other in others if other.model == model), name)
        backend = self.get(name)
        most = (*(each.max_output_tokens for each in preferences), backend.max_output_tokens)
        return Choice(
            backend=name,
            provider=backend.provider,
            model=model or backend.model,
            sampling=_sampling(backend, preferences),
            max_output_tokens=next((one for one in most if one is not None), None),
        )

    async def current(self) -> Provider:
        """Return the chosen back end as a provider; AI_NOT_CONFIGURED says what is missing.

        It stays the same one, and open while it answers, whatever is chosen or changed meanwhile.
        """
        name = self.chosen_name
        return _BorrowedProvider(self, name, await self.open_provider(name))

    async def open_provider(self, name: str) -> Provider:
        """Return the provider of a back end itself; a change of the back end may close it at any time."""
        return (await self._open(name)).provider

    @contextlib.asynccontextmanager
    async def borrow(self, name: str) -> AsyncGenerator[Provider]:
        """Return the provider of a back end for the block; changes meanwhile do not close it.

        AI_NOT_CONFIGURED says what is missing. After a key was refused it is read again.
        """
        opened = await self._open(name)
        opened.users += 1
        try:
            yield opened.provider
        except DaemonError as error:
            if error.code is ErrorCode.AI_AUTH_FAILED and self._opened.get(name) is opened:
                self._retire(name)
            raise
        finally:
            opened.users -= 1
            if opened.retired and not opened.users:
                with anyio.CancelScope(shield=True):
                    await opened.provider.close()

    async def _open(self, name: str) -> _OpenProvider:
        backend = self.get(name)
        async with self._lock:
            if (found := self._opened.get(name)) is None:
                provider = await to_thread.run_sync(self._make_provider, name, backend)
                found = self._opened[name] = _OpenProvider(provider)
        return found

    def _retire(self, name: str) -> _OpenProvider | None:
        """Use a provider for no new call; it is closed when its last call has ended."""
        opened = self._opened.pop(name, None)
        if opened is not None:
            opened.retired = True
        return opened

    def _make_provider(self, name: str, backend: Backend) -> Provider:
        if backend.provider == "fake":
            settings, script = self._settings, self._settings.ai_fake_script
            echoes = settings.ai_fake == "echo" or (settings.ai_fake == "auto" and settings.e2e)
            return Fake(
                read_script(Path(script).expanduser()) if script else None,
                None if echoes else Assistant(),
            )
        key = configuration.backend_key(name, backend, self._user_data)
        if key is not None:
            self._hide(key.value)
        address = self._address(name, backend, key)
        if backend.provider == "openai":
            return OpenAIChat(address)
        if backend.provider == "ollama":
            return OllamaChat(address)
        if not backend.model:
            raise DaemonError(
                ErrorCode.AI_NOT_CONFIGURED, "Set aiModel to one of Anthropic's models."
            )
        return AnthropicMessages(address)

    def _address(self, name: str, backend: Backend, key: Key | None) -> Address:
        """Make the address; only a server that is not the provider's own may have no key."""
        elsewhere = backend.provider == "openai" and backend.base_url not in {"", openai.OWN_URL}
        keyless = backend.provider == "ollama" or (elsewhere and not backend.key_variable)
        if key is None and not keyless:
            raise _no_key(name, backend)
        if key is not None and not (key.value.isascii() and key.value.isprintable()):
            raise DaemonError(
                ErrorCode.AI_NOT_CONFIGURED,
                _BAD_KEY.format(_label(name, backend)),
                provider=backend.provider,
            )
        return Address(
            key="" if key is None else key.value,
            url=backend.base_url,
            idle_ms=backend.idle_timeout_ms or self._settings.ai_idle_timeout_ms,
            prompt_cache=backend.prompt_cache,
        )

    async def readiness(self, name: str | None = None) -> Readiness:
        """Return whether a back end can be used, without using it."""
        name = self.chosen_name if name is None else name
        try:
            backend = self.get(name)
            key = None
            if backend.provider != "fake":
                key = await to_thread.run_sync(
                    configuration.backend_key, name, backend, self._user_data
                )
            provider = (await self._open(name)).provider
            await to_thread.run_sync(_check_installed, provider)
        except DaemonError as error:
            return Readiness(ready=False, problem=error.message)
        return Readiness(
            ready=True,
            judges=provider.judges,
            echoes=isinstance(provider, Fake) and provider.echoes,
            stands_in=isinstance(provider, Fake) and provider.stands_in,
            key_origin=None if key is None else key.origin,
        )

    def model(self, profile_model: str) -> str:
        """Return the model of the chosen back end, else the budget profile's."""
        return self.get(self.chosen_name).model or profile_model

    def limits(self, name: str, model: str) -> ModelLimits:
        """Return what is known of a model, first what its server reported; nothing is sent."""
        # A run may still use a back end that was removed meanwhile.
        backend, facts = self._find(name) or Backend(), facts_for(model)
        kept = self._reports.peek((name, model))
        server = None if kept is None else kept[1]
        windows = (
            _server_window(backend, server),
            backend.context_window_tokens,
            None if facts is None else facts.window,
        )
        thinks = False if facts is None else facts.thinks
        if server is not None and server.thinks is not None:
            thinks = server.thinks
        return ModelLimits(
            window=next((one for one in windows if one is not None), None),
            output_limit=None if facts is None else facts.output_limit or None,
            thinks=thinks,
            server=server,
        )

    def is_local(self, name: str) -> bool:
        """Return whether a back end is a server that is asked for its window."""
        backend = self.get(name)
        is_compatible = backend.provider == "openai" and is_local(backend.base_url)
        return backend.provider == "ollama" or is_compatible

    async def ask_server(self, name: str, model: str) -> ServerReport | None:
        """Ask a server for the window of a model, and keep the answer; None if it does not report one."""
        if not self.is_local(name) or not model:
            return None
        backend = self.get(name)
        key = await to_thread.run_sync(configuration.backend_key, name, backend, self._user_data)
        address = self._address(name, backend, key)
        report = await ask_server(
            backend.provider, replace_url(address, backend.base_url or ollama.OWN_URL), model
        )
        if report is not None and self._find(name) == backend:
            self._reports.put((name, model), (self._monotonic(), report))
        return report

    async def learn_window(self, name: str, model: str) -> None:
        """Ask a server for its window before a run, unless it was asked a short while ago.

        If it does not answer, nothing is raised.

        A window that was only assumed is asked for again.
        """
        kept = self._reports.peek((name, model))
        now = self._monotonic()
        if kept is not None and not kept[1].assumed and now - kept[0] < REPORT_SECONDS:
            return
        with contextlib.suppress(DaemonError):
            await self.ask_server(name, model)

    def forget_window(self, name: str, model: str) -> None:
        """Forget the window that a server reported for a model, since it was wrong."""
        self._reports.forget((name, model))

    async def change(self, backends: Mapping[str, Backend | None], use: str | None) -> None:
        """Add, replace or (None) remove back ends and choose one, here and in `settings.json`.

        CONFLICT if the environment of the daemon decides who answers.
        """
        async with self._lock:
            changed = {name: one for name, one in backends.items() if one is not None}
            configuration.check_backends(changed)
            for name in backends.keys() - changed.keys():
                self.get(name)
            kept = {n: b for n, b in self._settings.backends.items() if n not in backends}
            everything = kept | changed
            chosen = self._settings.ai_backend if use is None else use.removeprefix(OWN_BACKEND)
            if chosen and chosen not in everything:
                if use is not None:
                    raise DaemonError(
                        ErrorCode.NOT_FOUND, _NO_BACKEND.format(", ".join(everything)), field="use"
                    )
                chosen = ""
            if use is not None and (variables := configuration.variables_of_backend()):
                raise DaemonError(
                    ErrorCode.CONFLICT, _OVERRULED.format(", ".join(variables)), field="use"
                )
            await to_thread.run_sync(
                _store, self._user_data / FILE, everything, chosen, use is None
            )
            self._settings = replace(self._settings, backends=everything, ai_backend=chosen)
            keys = await to_thread.run_sync(
                configuration.backend_keys, self._settings, self._user_data
            )
            for key in keys:
                self._hide(key)
            idle = [one for name in backends if (one := self._retire(name)) and not one.users]
            self._reports = Memo(_KEPT_REPORTS)
        for one in idle:
            await one.provider.close()

    async def aclose(self) -> None:
        """Close the providers' connections."""
        for opened in self._opened.values():
            await opened.provider.close()


def replace_url(address: Address, url: str) -> Address:
    """Return an address with another URL."""
    return Address(address.key, url, address.idle_ms, address.prompt_cache)


def _server_window(backend: Backend, server: ServerReport | None) -> int | None:
    """Return the window at a server; Ollama gives the one that a call asks for."""
    if server is None:
        return None
    return server.largest if backend.provider == "ollama" else server.window


def _sampling(backend: Backend, preferences: Sequence[CallPreferences]) -> Sampling:
    """Return each value of the first preference that has it, else of the back end."""
    sampling = Sampling(
        temperature=backend.temperature,
        top_p=backend.top_p,
        effort=None if backend.effort is None else Effort(backend.effort),
    )
    for each in reversed(preferences):
        given = {name: value for name, value in asdict(each.sampling).items() if value is not None}
        sampling = replace(sampling, **given)
    return sampling


def _store(path: Path, backends: Mapping[str, Backend], chosen: str, keep_choice: bool) -> None:  # noqa: FBT001 - called in a thread
    """Write the back ends into the settings, whose other values stay as they are, in their order."""
    for _ in range(_WRITE_TRIES):
        data = stored_files.content(path, limit=stored_files.LIMIT_BYTES)
        values = configuration.stored_values(data)
        values["backends"] = {
            name: msgspec.to_builtins(one) for name, one in sorted(backends.items())
        }
        if not keep_choice or values.get("aiBackend", "") not in {"", *backends}:
            values["aiBackend"] = chosen
        written = msgspec.json.format(msgspec.json.encode(values), indent=2) + b"\n"
        if stored_files.replace_unchanged(path, written, data, mode=stored_files.PRIVATE):
            return
    raise DaemonError(ErrorCode.CONFLICT, "Someone else changes settings.json; try again.")


_NO_BACKEND = Wording("There is no such back end; there are: {}.", "没有这个后端；现有：{}。")
_OVERRULED = Wording(
    "The environment of the daemon decides who answers ({}); take that out, then choose.",
    "守护进程的环境变量（{}）决定由谁作答；请先去掉，再选择。",
)
_BAD_KEY = Wording(
    "The key for {} has a character that no key has; write it anew on one line.",
    "{} 的密钥含有密钥不会有的字符；请重新写在一行内。",
)
_NO_KEY = Wording(
    "There is no key for {}; set {}, or put it into a file that you alone can read: <userData>/keys/{}.",
    "没有 {} 的密钥；请设置 {}，或存入仅您可读的文件 <userData>/keys/{}。",
)


def _label(name: str, backend: Backend) -> str:
    return backend.provider if name == OWN_BACKEND else name


def _no_key(name: str, backend: Backend) -> DaemonError:
    variable = backend.key_variable or f"{backend.provider.upper()}_API_KEY"
    label = _label(name, backend)
    return DaemonError(
        ErrorCode.AI_NOT_CONFIGURED,
        _NO_KEY.format(label, variable, label),
        provider=backend.provider,
    )


def public_url(url: str) -> str:
    """Return an address without what may be secret in it: user, password, query.

    An address that cannot be parsed is replaced by the placeholder, since any part of it may be secret.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return PLACEHOLDER
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _check_installed(provider: Provider) -> None:
    if not isinstance(provider, Fake) and not is_installed(provider.name):
        raise library_missing(provider.name)


class SentPrefixes:
    """Counts which prefixes were sent for each project, to know what is worth caching."""

    def __init__(self, capacity: int = 256) -> None:
        self._uses: Memo[tuple[str, str], int] = Memo(capacity)
        self._newest: Memo[str, str] = Memo(capacity)
        self._places: Memo[tuple[str, str], bool] = Memo(capacity)

    def is_likely(self, project_id: str, prefix_hash: str) -> bool:
        """Return whether a prefix will probably be sent again: this one was, or the newest one was.

        The first prefix of a project counts as likely, so that the second call can already hit.
        """
        if (project_id, prefix_hash) in self._uses:
            return True
        newest = self._newest.peek(project_id)
        uses = None if newest is None else self._uses.peek((project_id, newest))
        return uses is None or uses > 1

    def comes_again(self, project_id: str, place_hash: str) -> bool:
        """Return whether the prompt up to a place was sent before, and note that it is sent now."""
        known = (project_id, place_hash) in self._places
        self._places.put((project_id, place_hash), value=True)
        return known

    def note(self, project_id: str, prefix_hash: str) -> None:
        """Count a prefix that is sent."""
        key = (project_id, prefix_hash)
        uses = self._uses.peek(key) or 0
        if uses == 0:
            self._newest.put(project_id, prefix_hash)
        self._uses.put(key, uses + 1)
