"""Each model has its encoding, and says how its counts relate to the model's own."""

import re

from creonowd.tokens import CountKind
from creonowd.tokens.models import (
    MODELS,
    MODELS_AS_OF,
    PACKAGED,
    CacheRule,
    cache_facts,
    facts_for,
)

EXACT, BOUND, ROUGH = CountKind.EXACT, CountKind.BOUND, CountKind.APPROXIMATE


def test_a_model_counts_with_its_encoding() -> None:
    rows = (
        (None, ("o200k_base", EXACT)),
        ("", ("o200k_base", EXACT)),
        ("gpt-4o", ("o200k_base", EXACT)),
        ("gpt-4o-mini-2024-07-18", ("o200k_base", EXACT)),
        ("openai/GPT-4.1-mini", ("o200k_base", EXACT)),
        ("gpt-5", ("o200k_base", EXACT)),
        ("gpt-5.1-codex", ("o200k_base", EXACT)),
        ("o3-mini", ("o200k_base", EXACT)),
        ("ft:gpt-4o:acme:novel", ("o200k_base", EXACT)),
        ("gpt-4", ("cl100k_base", EXACT)),
        ("gpt-4-turbo", ("cl100k_base", EXACT)),
        ("gpt-3.5-turbo", ("cl100k_base", EXACT)),
        ("text-embedding-3-small", ("cl100k_base", EXACT)),
        ("o1000", ("o200k_base", ROUGH)),
        ("gpt-4omega", ("o200k_base", ROUGH)),
        ("claude-sonnet-4-5", ("claude_v3", BOUND)),
        ("claude-3-5-sonnet-20241022", ("claude_v3", BOUND)),
        ("claude-sonnet-4-20250514", ("claude_v3", BOUND)),
        ("claude-opus-4-6", ("claude_v3", BOUND)),
        ("us.anthropic.claude-opus-4-7-v1:0", ("claude_v4_7", BOUND)),
        ("anthropic/claude-opus-4.8", ("claude_v4_7", BOUND)),
        ("claude-sonnet-5", ("claude_v4_7", BOUND)),
        ("claude-2.1", ("claude_v4_7", ROUGH)),
        ("claude-next", ("claude_v4_7", ROUGH)),
        ("deepseek-chat", ("deepseek_v4", EXACT)),
        ("deepseek-ai/DeepSeek-V3.2", ("deepseek_v4", EXACT)),
        ("deepseek-v4-pro", ("deepseek_v4", EXACT)),
        ("deepseek-r1", ("deepseek_v4", EXACT)),
        ("deepseek-r1:14b", ("deepseek_v4", ROUGH)),
        ("deepseek-r1-distill-qwen-7b", ("deepseek_v4", ROUGH)),
        ("qwen3-max", ("qwen3", EXACT)),
        ("qwen3:8b", ("qwen3", EXACT)),
        ("Qwen/Qwen2.5-7B-Instruct", ("qwen3", EXACT)),
        ("qwen2:7b", ("qwen3", EXACT)),
        ("qwen3.5-plus", ("qwen3_6", EXACT)),
        ("qwen3.6", ("qwen3_6", EXACT)),
        ("qwen4", ("qwen3", ROUGH)),
        ("qwen-max", ("qwen3", ROUGH)),
        ("zai-org/GLM-5.2", ("glm5_2", EXACT)),
        ("glm-4.6", ("glm5_2", ROUGH)),
        ("open-mistral-nemo", ("mistral_tekken", EXACT)),
        ("mistral-large-2411", ("o200k_base", ROUGH)),
        ("mixtral-8x7b", ("o200k_base", ROUGH)),
        ("kimi-k3", ("o200k_base", ROUGH)),
        ("llama3:8b", ("o200k_base", ROUGH)),
        ("gemini-2.5-pro", ("o200k_base", ROUGH)),
        ("fake", ("o200k_base", ROUGH)),
    )

    wrong = [
        f"{model!r} counts with {got}, not {expected}"
        for model, expected in rows
        if (got := PACKAGED.encoding_for(model)) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_a_model_without_a_table_counts_with_the_encoding_of_the_profile() -> None:
    assert PACKAGED.encoding_for("gemini-2.5-pro", "cl100k_base") == ("cl100k_base", ROUGH)


def test_rows_of_the_table_hold_what_an_assembly_needs() -> None:
    rows = (
        ("gpt-4o", ("openai", 128_000, 16_384, 1024, False)),
        ("gpt-5-mini", ("openai", 400_000, 128_000, 1024, True)),
        ("claude-3-5-haiku-20241022", ("claude", 200_000, 8192, 2048, False)),
        ("claude-haiku-4-5", ("claude", 200_000, 64_000, 4096, False)),
        ("claude-opus-4-5-20251101", ("claude", 200_000, 64_000, 4096, False)),
        ("claude-sonnet-4-20250514", ("claude", 200_000, 64_000, 1024, False)),
        ("gpt-5-chat-latest", ("openai", 128_000, 16_384, 1024, False)),
        ("gpt-5.5-2026-04-23", ("openai", 1_050_000, 128_000, 1024, True)),
        ("claude-opus-5", ("claude", 1_000_000, 128_000, 512, False)),
        ("claude-opus-5-5", ("claude", 1_000_000, 128_000, 1024, True)),
        ("claude-opus-4-8", ("claude", None, None, 1024, False)),
        ("claude-sonnet-5-20260630", ("claude", 1_000_000, 128_000, 1024, False)),
        ("deepseek-v4-pro", ("deepseek", 1_000_000, None, 64, False)),
        ("deepseek-reasoner", ("deepseek", None, None, 64, True)),
    )

    found = [(model, _figures(model)) for model, _ in rows]

    assert found == list(rows)


def _figures(model: str) -> tuple[object, ...]:
    facts = facts_for(model)
    assert facts is not None
    return facts.family, facts.window, facts.output_limit, facts.cache_minimum, facts.thinks


def test_the_table_is_dated_and_has_no_row_twice() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", MODELS_AS_OF)
    assert len({facts.names for facts in MODELS}) == len(MODELS)


def test_each_provider_caches_by_its_own_rule_and_minimum() -> None:
    rows = (
        ("claude-sonnet-4-5", (CacheRule.MARKS, 1024)),
        ("claude-opus-4-7", (CacheRule.MARKS, 2048)),
        ("claude-opus-5", (CacheRule.MARKS, 512)),
        ("anthropic/claude-haiku-4-5-20251001", (CacheRule.MARKS, 4096)),
        ("gpt-5.6", (CacheRule.BREAK_POINTS, 1024)),
        ("openai/gpt-6.1-sol", (CacheRule.BREAK_POINTS, 1024)),
        ("gpt-5.4", (CacheRule.PREFIX, 1024)),
        ("gpt-4o", (CacheRule.PREFIX, 1024)),
        ("deepseek-chat", (CacheRule.UNITS, 64)),
        ("gemini-3.8-flash", (CacheRule.PREFIX, 4096)),
        ("gemini-2.5-pro", (CacheRule.PREFIX, 2048)),
        ("some-model", (CacheRule.UNKNOWN, 1024)),
        ("", (CacheRule.UNKNOWN, 1024)),
    )

    for model, expected in rows:
        assert cache_facts(model) == expected, model
