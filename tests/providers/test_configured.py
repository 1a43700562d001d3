import os
import sys
from pathlib import Path
from time import monotonic

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.configured import Backends, Readiness, SentPrefixes, public_url
from creonowd.redaction import PLACEHOLDER
from creonowd.settings import Settings, api_key
from testing.providers import KEY


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"CREONOW_{name}", raising=False)


def write_key(user_data: Path, provider: str, mode: int = 0o600) -> Path:
    path = user_data / "keys" / provider
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{KEY}\n", encoding="utf-8")
    path.chmod(mode)
    return path


async def test_the_fake_is_the_default_and_needs_nothing(tmp_path: Path) -> None:
    configured = Backends(Settings(), tmp_path, monotonic)

    assert (await configured.current()).name == "fake"
    assert await configured.readiness() == Readiness(ready=True, stands_in=True)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_without_a_key_the_daemon_runs_and_says_what_is_missing(
    tmp_path: Path, provider: str
) -> None:
    configured = Backends(Settings(ai_provider=provider, ai_model="m"), tmp_path, monotonic)  # pyright: ignore[reportArgumentType]

    with pytest.raises(DaemonError) as caught:
        await configured.current()
    readiness = await configured.readiness()

    assert caught.value.code is ErrorCode.AI_NOT_CONFIGURED
    assert f"{provider.upper()}_API_KEY" in caught.value.message
    assert (readiness.ready, readiness.problem) == (False, caught.value.message)


async def test_a_key_that_appears_later_is_found_without_a_restart(tmp_path: Path) -> None:
    configured = Backends(Settings(ai_provider="openai"), tmp_path, monotonic)
    before = await configured.readiness()

    write_key(tmp_path, "openai")

    assert not before.ready
    assert await configured.readiness() == Readiness(ready=True, judges=True, key_origin="file")
    assert (await configured.current()).name == "openai"


async def test_anthropic_needs_a_model_of_its_own(tmp_path: Path) -> None:
    write_key(tmp_path, "anthropic")

    readiness = await Backends(Settings(ai_provider="anthropic"), tmp_path, monotonic).readiness()

    assert readiness.problem == "Set aiModel to one of Anthropic's models."


async def test_a_missing_library_is_reported_before_the_first_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    settings = Settings(ai_provider="openai", ai_base_url="http://127.0.0.1:1/v1")

    readiness = await Backends(settings, tmp_path, monotonic).readiness()

    assert not readiness.ready
    assert "pip install 'creonowd[openai]'" in (readiness.problem or "")


async def test_a_server_on_this_machine_needs_no_key(tmp_path: Path) -> None:
    settings = Settings(ai_provider="openai", ai_base_url="http://127.0.0.1:11434/v1")

    assert await Backends(settings, tmp_path, monotonic).readiness() == Readiness(
        ready=True, judges=True
    )


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    write_key(tmp_path, "openai")
    settings = Settings(ai_provider="openai")

    from_file = api_key(settings, tmp_path, {})
    from_environment = api_key(settings, tmp_path, {"OPENAI_API_KEY": " sk-a "})
    own = api_key(settings, tmp_path, {"OPENAI_API_KEY": "sk-a", "CREONOW_OPENAI_API_KEY": "sk-b"})

    assert from_file is not None
    assert (from_file.value, from_file.origin) == (KEY, "file")
    assert from_environment is not None
    assert (from_environment.value, from_environment.origin) == ("sk-a", "environment")
    assert own is not None
    assert own.value == "sk-b"
    assert KEY not in repr(from_file)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no permission bits to get wrong")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
async def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    write_key(tmp_path, "openai", mode)

    readiness = await Backends(Settings(ai_provider="openai"), tmp_path, monotonic).readiness()

    assert readiness.problem == "Others may read the key file; chmod 600 it first."


@pytest.mark.parametrize("value", ["sk-密钥", "sk-1\nsk-2", "sk-\x00", "sk-\u200b1"])
async def test_a_key_that_cannot_be_sent_is_no_fault_of_the_provider(
    tmp_path: Path, value: str
) -> None:
    write_key(tmp_path, "openai").write_text(value, encoding="utf-8")

    readiness = await Backends(Settings(ai_provider="openai"), tmp_path, monotonic).readiness()

    assert readiness.ready is False
    assert "a character that no key has" in (readiness.problem or "")
    assert "sk-" not in (readiness.problem or "")


def test_a_byte_order_mark_is_no_part_of_a_key(tmp_path: Path) -> None:
    write_key(tmp_path, "openai").write_text(f"{KEY}\r\n", encoding="utf-8-sig")

    found = api_key(Settings(ai_provider="openai"), tmp_path, {})

    assert found is not None
    assert found.value == KEY


def test_an_empty_or_unreadable_key_file_is_no_key(tmp_path: Path) -> None:
    path = write_key(tmp_path, "openai")
    settings = Settings(ai_provider="openai")

    path.write_bytes(b" \n")
    empty = api_key(settings, tmp_path, {})
    path.write_bytes(b"\xff\xfe")
    binary = api_key(settings, tmp_path, {})

    assert (empty, binary) == (None, None)


async def test_the_model_of_the_settings_wins_over_the_profile(tmp_path: Path) -> None:
    assert Backends(Settings(ai_model="a"), tmp_path, monotonic).model("b") == "a"
    assert Backends(Settings(), tmp_path, monotonic).model("b") == "b"


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://me:secret@host:8/v1?key=s#f", "https://host:8/v1"),
        ("http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
        ("http://me:secret@[::1", PLACEHOLDER),
        ("", ""),
    ],
)
def test_an_address_is_made_public_without_its_secrets(url: str, public: str) -> None:
    assert public_url(url) == public


def likely_prefixes(*hashes: str, capacity: int = 256) -> list[bool]:
    prefixes = SentPrefixes(capacity)
    likely: list[bool] = []
    for prefix in hashes:
        likely.append(prefixes.is_likely("p", prefix))
        prefixes.note("p", prefix)
    return likely


def test_the_first_call_is_marked_so_that_the_second_can_hit() -> None:
    assert likely_prefixes("a", "a", "a") == [True, True, True]


def test_a_prefix_that_changes_with_every_call_is_not_worth_it() -> None:
    assert likely_prefixes("a", "b", "c", "d", "d", "d") == [True, False, False, False, True, True]


def test_a_change_after_reuse_is_worth_it_again() -> None:
    assert likely_prefixes("a", "a", "b", "b", "c") == [True, True, True, True, True]


def test_two_skills_in_turn_keep_both_their_prefixes() -> None:
    assert likely_prefixes("a", "b", "a", "b", "a") == [True, False, True, True, True]


def test_projects_do_not_affect_each_other() -> None:
    prefixes = SentPrefixes()
    prefixes.note("p", "a")
    prefixes.note("p", "b")

    assert prefixes.is_likely("q", "c")


def test_old_prefixes_are_forgotten() -> None:
    assert likely_prefixes(*(str(n) for n in range(1000)), capacity=4)[-1] is False
