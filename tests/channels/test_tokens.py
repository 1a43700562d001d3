"""`tokens:count` over the wire."""

from pathlib import Path
from typing import Any

import pytest

from creonowd.settings import Settings
from testing.clients import Client, daemon

COUNT = "tokens:count"


@pytest.mark.requirement("CE-023")
@pytest.mark.parametrize(
    ("model", "tokenizer", "tokens"),
    [
        (None, ("o200k_base", "446a9538cb6c348e", True), 8),
        ("gpt-4o", ("o200k_base", "446a9538cb6c348e", True), 8),
        ("gpt-4", ("cl100k_base", "223921b76ee99bde", True), 9),
        ("claude-sonnet-4-5", ("o200k_base", "446a9538cb6c348e", False), 8),
    ],
)
async def test_a_text_is_counted_with_the_tokenizer_of_its_model(
    client: Client, model: str | None, tokenizer: tuple[str, str, bool], tokens: int
) -> None:
    result = await client.call(COUNT, {"text": "お誕生日おめでとう", "model": model})

    assert result == {
        "tokens": tokens,
        "tokenizerId": tokenizer[0],
        "tokenizerVersion": tokenizer[1],
        "tokenizerExact": tokenizer[2],
    }


@pytest.mark.parametrize("text", ["", "<|endoftext|>", "👨\u200d👩\u200d👧", "a" * 100_000])
async def test_any_text_has_a_count(client: Client, text: str) -> None:
    assert (await client.call(COUNT, {"text": text}))["tokens"] >= bool(text)


async def test_white_space_that_no_tokenizer_takes_is_not_called_exact(client: Client) -> None:
    for length, exact in ((800_000, True), (1_200_000, False)):
        result = await client.call(COUNT, {"text": "前" + " " * length + "后"})

        assert result["tokenizerExact"] is exact
        assert ("warnings" in result) is not exact


async def test_another_tokenizer_version_is_a_mismatch(client: Client) -> None:
    same = await client.call(COUNT, {"text": "a", "tokenizerVersion": "446a9538cb6c348e"})
    error = await client.failure(COUNT, {"text": "a", "tokenizerVersion": "2"})

    assert same["tokens"] == 1
    assert (error.number, error.code) == (-32803, "CONTEXT_TOKENIZER_MISMATCH")
    assert error.details["tokenizerVersion"] == "446a9538cb6c348e"


@pytest.mark.parametrize("payload", [{}, {"text": 5}, {"text": "a", "model": 1}])
async def test_a_count_of_the_wrong_shape_is_an_invalid_argument(
    client: Client, payload: dict[str, Any]
) -> None:
    assert (await client.failure(COUNT, payload)).code == "INVALID_ARGUMENT"


@pytest.mark.requirement("CE-062")
async def test_without_its_table_the_daemon_counts_bytes_and_says_so(tmp_path: Path) -> None:
    settings = Settings(tokenizer_tables=str(tmp_path))
    answers: list[Any] = []

    async with daemon(tmp_path / "data", settings) as client:
        for method, payload in (("app:health", {}), (COUNT, {"text": "林远"}), ("app:health", {})):
            answers.append(await client.call(method, payload))

    healthy, result, health = answers
    assert healthy["status"] == "ok"
    assert (result["tokens"], result["tokenizerId"]) == (6, "utf8_bytes")
    assert result["tokenizerExact"] is False
    assert result["warnings"][0].startswith("CONTEXT_BUDGET_FALLBACK: ")
    assert health["status"] == "degraded"
    assert [part["part"] for part in health["degraded"]] == ["tokenizer"]
    assert str(tmp_path) not in str(health)
