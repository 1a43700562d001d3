from pathlib import Path

import pytest

from creonowd.settings import Settings
from testing.clients import Client
from testing.providers import KEY

SECRETIVE = Settings(
    e2e=True,
    ai_provider="openai",
    ai_model="gpt-5",
    ai_base_url=f"https://user:{KEY}@example.com/v1?key={KEY}",
)
KEYLESS = Settings(e2e=True, ai_provider="openai")


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes before `client` in a test, so that the daemon starts with the key."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


@pytest.fixture
def no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "CREONOW_OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


async def test_the_fake_answers_unless_told_otherwise(client: Client) -> None:
    assert await client.call("ai:config:get") == {
        "provider": "fake",
        "model": "gpt-4o",
        "ready": True,
        "judge": "model",
        "promptCache": True,
    }


@pytest.mark.parametrize("daemon_settings", [SECRETIVE])
async def test_nothing_secret_is_told(key: None, client: Client) -> None:
    config = await client.call("ai:config:get")

    assert config["baseUrl"] == "https://example.com/v1"
    assert (config["model"], config["keyOrigin"]) == ("gpt-5", "environment")
    assert KEY not in repr(config)


@pytest.mark.parametrize("daemon_settings", [KEYLESS])
async def test_what_is_missing_is_told(no_key: None, client: Client, tmp_path: Path) -> None:
    config = await client.call("ai:config:get")

    assert config["ready"] is False
    assert "OPENAI_API_KEY" in config["problem"]
    assert str(tmp_path) not in config["problem"]


async def test_an_unknown_project_is_not_found(client: Client) -> None:
    assert (await client.failure("ai:config:get", {"projectId": "prj_x"})).code == "NOT_FOUND"


@pytest.mark.parametrize("daemon_settings", [SECRETIVE])
async def test_only_the_fake_follows_a_script(key: None, client: Client) -> None:
    assert (await client.failure("e2e:ai:script")).code == "UNSUPPORTED"
