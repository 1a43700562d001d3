"""What is known of the models: how their tokens are counted, and their limits.

One table, dated; a model that is not here counts with the encoding of the budget, approximately.
Read on that day: Claude 5 on its provider's page; GPT-4o, GPT-5, o3, o4, Claude 3.7 to 4.5 and
DeepSeek V4 on pages of gateways and clients, as were the cache minimums. The other figures are from
memory of what was published with each model; None means unknown.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.tokens.tables import BOUNDS, DEFAULT_ENCODING, ENCODINGS, KNOWN, UserTable

MODELS_AS_OF = "2026-11-18"
USUAL_CACHE_MINIMUM = 1024
_KEPT_NAMES = 256


class CountKind(StrEnum):
    """How a count relates to the model's own."""

    EXACT = "exact"
    """Counted with the model's own table."""
    BOUND = "bound"
    """The model has no public table; the count is an upper bound."""
    APPROXIMATE = "approximate"
    """Another model's table, or bytes, so it may be off either way."""


class CacheRule(StrEnum):
    """By which rule a model's provider caches prompts."""

    MARKS = "marks"
    """Up to blocks that the request marks, at most four."""
    BREAK_POINTS = "breakPoints"
    """Exactly at break points that the request names."""
    PREFIX = "prefix"
    """The longest common prefix, by itself."""
    UNITS = "units"
    """Earlier inputs and prefixes that requests had in common, by itself."""
    UNKNOWN = "unknown"
    """Nobody says."""


class ModelFacts(Model):
    """One row: what holds for the models whose name begins with `names`, a regular expression.

    `encoding` is empty where no table fits. `window` and `output_limit` are tokens, or None where
    they are not stated; `thinks` says whether it spends output on reasoning unless a call says
    otherwise.
    """

    names: str
    family: str
    encoding: str = ""
    kind: CountKind = CountKind.EXACT
    window: int | None = None
    output_limit: int | None = None
    cache_minimum: int = USUAL_CACHE_MINIMUM
    thinks: bool = False


def _openai(
    names: str, encoding: str, window: int, output_limit: int, *, thinks: bool = False
) -> ModelFacts:
    return ModelFacts(
        names=names,
        family="openai",
        encoding=encoding,
        window=window,
        output_limit=output_limit,
        thinks=thinks,
    )


def _claude(
    names: str,
    encoding: str,
    output_limit: int | None,
    *,
    window: int | None = 200_000,
    cache_minimum: int = USUAL_CACHE_MINIMUM,
    thinks: bool = False,
) -> ModelFacts:
    return ModelFacts(
        names=names,
        family="claude",
        encoding=encoding,
        kind=CountKind.BOUND,
        window=window,
        output_limit=output_limit,
        cache_minimum=cache_minimum,
        thinks=thinks,
    )


def _open(
    names: str,
    family: str,
    encoding: str,
    kind: CountKind = CountKind.EXACT,
    *,
    window: int | None = None,
    cache_minimum: int = USUAL_CACHE_MINIMUM,
    thinks: bool = False,
) -> ModelFacts:
    return ModelFacts(
        names=names,
        family=family,
        encoding=encoding,
        kind=kind,
        window=window,
        cache_minimum=cache_minimum,
        thinks=thinks,
    )


_ROUGH = CountKind.APPROXIMATE
_DATE = r"(?:[-@]\d{6,8})?"

# The first row that fits counts, so narrow rows stand before wide ones.
MODELS: tuple[ModelFacts, ...] = (
    _openai(r"(?:chat)?gpt-4o", "o200k_base", 128_000, 16_384),
    _openai(r"gpt-4\.1", "o200k_base", 1_047_576, 32_768),
    _openai(r"gpt-4\.5", "o200k_base", 128_000, 16_384),
    _openai(r"gpt-5(?:[.]\d)?-chat", "o200k_base", 128_000, 16_384),
    _openai(r"gpt-5[.][4-9]", "o200k_base", 1_050_000, 128_000, thinks=True),
    _openai(r"gpt-5", "o200k_base", 400_000, 128_000, thinks=True),
    _openai(r"gpt-oss", "o200k_base", 131_072, 131_072, thinks=True),
    _openai(r"o1-(?:mini|preview)", "o200k_base", 128_000, 65_536, thinks=True),
    _openai(r"o[134]", "o200k_base", 200_000, 100_000, thinks=True),
    _openai(r"gpt-4-(?:turbo|1106|0125)", "cl100k_base", 128_000, 4096),
    _openai(r"gpt-4-32k", "cl100k_base", 32_768, 32_768),
    _openai(r"gpt-4", "cl100k_base", 8192, 8192),
    _openai(r"gpt-3\.?5", "cl100k_base", 16_385, 4096),
    _openai(r"text-embedding-(?:3|ada-002)", "cl100k_base", 8191, 0),
    _openai(r"(?:davinci|babbage)-002", "cl100k_base", 16_384, 16_384),
    _claude(r"claude-3-haiku", "claude_v3", 4096, cache_minimum=2048),
    _claude(r"claude-3-5-haiku|claude-haiku-3[-.]5", "claude_v3", 8192, cache_minimum=2048),
    _claude(r"claude-3[-.]7|claude-sonnet-3[-.]7", "claude_v3", 64_000),
    _claude(r"claude-3[-.]5|claude-sonnet-3[-.]5", "claude_v3", 8192),
    _claude(r"claude-3|claude-(?:haiku|sonnet|opus)-3", "claude_v3", 4096),
    _claude(r"claude-haiku-4", "claude_v3", 64_000, cache_minimum=4096),
    _claude(r"claude-opus-4[-.]5", "claude_v3", 64_000, cache_minimum=4096),
    _claude(r"claude-opus-4[-.]6", "claude_v3", 128_000, cache_minimum=4096),
    _claude(rf"claude-opus-4(?:[-.][01])?{_DATE}$", "claude_v3", 32_000),
    _claude(rf"claude-sonnet-4(?:[-.][0-6])?{_DATE}$", "claude_v3", 64_000),
    _claude(r"claude-opus-4[-.]7", "claude_v4_7", None, window=None, cache_minimum=2048),
    _claude(r"claude-[a-z]+-4[-.](?:[7-9]|[1-9]\d)", "claude_v4_7", None, window=None),
    _claude(
        r"claude-fable-5(?:[-.]0)?" + _DATE + "$",
        "claude_v4_7",
        128_000,
        window=1_000_000,
        cache_minimum=512,
        thinks=True,
    ),
    _claude(
        r"claude-(?:opus|mythos)-5(?:[-.]0)?" + _DATE + "$",
        "claude_v4_7",
        128_000,
        window=1_000_000,
        cache_minimum=512,
    ),
    _claude(
        r"claude-(?:fable-5|opus-5[-.]5)", "claude_v4_7", 128_000, window=1_000_000, thinks=True
    ),
    _claude(r"claude-(?:opus|sonnet)-5", "claude_v4_7", 128_000, window=1_000_000),
    _claude(r"claude-haiku-5", "claude_v4_7", 128_000, window=1_000_000, cache_minimum=4096),
    _claude(r"claude-[a-z]+-(?:[5-9]|[1-9]\d)", "claude_v4_7", None, window=None),
    _open(r"claude-(?:[12]|instant)", "claude", "claude_v4_7", _ROUGH),
    _open(r"claude.*", "claude", "claude_v4_7", _ROUGH),
    _open(
        r"deepseek-(?:r1-distill|r1:|v2|coder|llm|moe|math).*", "deepseek", "deepseek_v4", _ROUGH
    ),
    _open(r"deepseek-(?:r1|reasoner)", "deepseek", "deepseek_v4", cache_minimum=64, thinks=True),
    _open(r"deepseek-v4", "deepseek", "deepseek_v4", window=1_000_000, cache_minimum=64),
    _open(r"deepseek-(?:chat|v3)", "deepseek", "deepseek_v4", cache_minimum=64),
    _open(r"deepseek.*", "deepseek", "deepseek_v4", _ROUGH, cache_minimum=64),
    _open(r"qwen-?3[.][56]", "qwen", "qwen3_6", thinks=True),
    _open(r"qwen-?3(?![.\d])", "qwen", "qwen3", thinks=True),
    _open(r"qwen-?2(?:\.5)?(?![.\d])", "qwen", "qwen3", window=32_768),
    _open(r"qwq", "qwen", "qwen3", thinks=True),
    _open(r"qwen.*", "qwen", "qwen3", _ROUGH),
    _open(r"glm-?5\.2", "glm", "glm5_2", thinks=True),
    _open(r"(?:chat)?glm.*", "glm", "glm5_2", _ROUGH),
    _open(
        r"(?:open-)?mi[sx]tral-(?:7b|8x|large-24|small-24|medium-23|tiny).*", "mistral", "", _ROUGH
    ),
    _open(
        r"(?:open-)?mistral-(?:nemo|small|medium|large)|ministral|pixtral|devstral",
        "mistral",
        "mistral_tekken",
    ),
    _open(r"magistral", "mistral", "mistral_tekken", thinks=True),
    _open(r"(?:(?:open-)?mi[sx]tral|codestral).*", "mistral", "mistral_tekken", _ROUGH),
    _open(r"kimi-k3", "kimi", "kimi_k3", thinks=True),
    _open(r"llama-?3", "llama", "llama3"),
)
_PATTERNS = [re.compile(rf"(?:{facts.names})(?![a-z0-9])") for facts in MODELS]
_SELLER = re.compile(r"(?:[a-z-]{2,6}\.)?(?:anthropic|deepseek|qwen|mistral|meta|zai)\.")


def facts_for(model: str) -> ModelFacts | None:
    """Return the row of a model, whatever shop or fine-tuning its name mentions."""
    return _facts_for(model)


@lru_cache(_KEPT_NAMES)
def bare_name(model: str) -> str:
    """Return a model's name in lower case, without gateway, vendor and the mark of fine-tuning."""
    name = model.strip().lower().rpartition("/")[2].removeprefix("ft:")
    return _SELLER.sub("", name, count=1)


@lru_cache(_KEPT_NAMES)
def _facts_for(model: str) -> ModelFacts | None:
    name = bare_name(model)
    return next(
        (facts for facts, names in zip(MODELS, _PATTERNS, strict=True) if names.match(name)), None
    )


class CacheFacts(NamedTuple):
    """By which rule a model's provider caches prompts, and from how many tokens on."""

    rule: CacheRule
    minimum: int


_CACHE_RULES = {
    "claude": CacheRule.MARKS,
    "openai": CacheRule.PREFIX,
    "deepseek": CacheRule.UNITS,
}
_WITH_BREAK_POINTS = re.compile(r"gpt-(?:5[.](?:[6-9]|[1-9]\d)|[6-9]|[1-9]\d)(?!\d)")
_GEMINI = {"gemini-2.5": 2048, "gemini": 4096}


@lru_cache(_KEPT_NAMES)
def cache_facts(model: str) -> CacheFacts:
    """Return how a model's provider caches prompts."""
    name = bare_name(model)
    if _WITH_BREAK_POINTS.match(name):
        return CacheFacts(CacheRule.BREAK_POINTS, USUAL_CACHE_MINIMUM)
    for family, minimum in _GEMINI.items():
        if name.startswith(family):
            return CacheFacts(CacheRule.PREFIX, minimum)
    facts = facts_for(model)
    if facts is None:
        return CacheFacts(CacheRule.UNKNOWN, USUAL_CACHE_MINIMUM)
    return CacheFacts(_CACHE_RULES.get(facts.family, CacheRule.UNKNOWN), facts.cache_minimum)


class EncodingMatch(NamedTuple):
    """An encoding, and how its counts relate to the model's own."""

    encoding: str
    kind: CountKind

    @property
    def exact(self) -> bool:
        """Whether the encoding is the model's own."""
        return self.kind is CountKind.EXACT


class KnownTables:
    """The tables that can be loaded: those that ship, and those that a user brought.

    `listed` has also those of the user that bear the name of one that ships, and do not count.
    """

    def __init__(self, user: Mapping[str, UserTable] | None = None) -> None:
        self.listed = dict(user or {})
        self.user = {name: one for name, one in self.listed.items() if name not in KNOWN}

    def encoding_for(self, model: str | None, otherwise: str = DEFAULT_ENCODING) -> EncodingMatch:
        """Find the model's encoding; a model without a table gets `otherwise`, approximately.

        Without a model `otherwise` is exact. A table of the user's comes before ours.
        """
        if not model:
            return EncodingMatch(otherwise, CountKind.EXACT)
        brought = self._table_for(bare_name(model))
        if brought is not None:
            return EncodingMatch(brought.name, CountKind.EXACT)
        facts = facts_for(model)
        if facts is None or facts.encoding not in self:
            return EncodingMatch(otherwise, CountKind.APPROXIMATE)
        return EncodingMatch(facts.encoding, facts.kind)

    def _table_for(self, name: str) -> UserTable | None:
        """Find the user's table of a model by the beginning of its name; the longest one counts."""
        fitting = [
            (len(start), table)
            for table in self.user.values()
            for start in table.model_names
            if name.startswith(start) and not name[len(start) : len(start) + 1].isalnum()
        ]
        return max(fitting, key=lambda pair: pair[0])[1] if fitting else None

    def __contains__(self, encoding: object) -> bool:
        return encoding in KNOWN or encoding in self.user

    def version(self, encoding: str) -> str:
        """Name the exact table of an encoding without loading it."""
        brought = self.user.get(encoding)
        if brought is not None:
            return brought.version
        return (BOUNDS.get(encoding) or ENCODINGS[encoding].sha256)[:16]

    def check_version(self, encoding: str, version: str | None) -> None:
        """Raise CONTEXT_TOKENIZER_MISMATCH if a request was made for another tokenizer."""
        own = self.version(encoding)
        if version is not None and version != own:
            raise DaemonError(
                ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
                f"The daemon counts with {encoding} {own}; read the budget again.",
                tokenizerId=encoding,
                tokenizerVersion=own,
            )


PACKAGED = KnownTables()
