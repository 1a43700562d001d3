"""`tokens:count` — how many tokens a text has for a model."""

from anyio import to_thread
from msgspec import UNSET, UnsetType

from creonowd.channels.session import Session
from creonowd.errors import DaemonError, ErrorCode, WarningCode
from creonowd.model import Params, Result
from creonowd.rpc.channel import Channel
from creonowd.tokens.tables import encoding_for, tokenizer_version
from creonowd.tokens.tokenizer import Tokenizer, has_endless_run


class CountTokens(Params):
    """A text and the model that will read it; `tokenizerVersion`, if named, must be ours."""

    text: str
    model: str | None = None
    tokenizer_version: str | None = None


class TokenCount(Result):
    """The count; `tokenizerExact` is false for a model whose tokenizer is not public.

    It is false as well where bytes had to be counted, and then a warning says why.
    """

    tokens: int
    tokenizer_id: str
    tokenizer_version: str
    tokenizer_exact: bool
    warnings: list[str] | UnsetType = UNSET


async def count_tokens(session: Session, params: CountTokens) -> TokenCount:
    """Count the tokens of a text; the text of a special token is plain text."""
    match = encoding_for(params.model)
    check_tokenizer_version(match.encoding, params.tokenizer_version)
    tokenizer = await session.tokenizers.get(match.encoding)
    tokens, bytes_why = await to_thread.run_sync(
        _counted,
        tokenizer,
        params.text,
        abandon_on_cancel=True,
        limiter=session.tokenizers.encoders,
    )
    return TokenCount(
        tokens=tokens,
        tokenizer_id=tokenizer.id,
        tokenizer_version=tokenizer.version,
        tokenizer_exact=match.exact and not bytes_why,
        warnings=[f"{WarningCode.CONTEXT_BUDGET_FALLBACK}: {bytes_why}"] if bytes_why else UNSET,
    )


def _counted(tokenizer: Tokenizer, text: str) -> tuple[int, str]:
    """Count a text, and say why if bytes had to be counted."""
    if not tokenizer.exact:
        return tokenizer.count(text), "the tokenizer is unusable, bytes were counted"
    abyss = "white space beyond what the tokenizer takes was counted in bytes"
    return tokenizer.count(text), abyss if has_endless_run(text) else ""


def check_tokenizer_version(encoding: str, named: str | None) -> None:
    """Refuse a request that was made for another tokenizer with CONTEXT_TOKENIZER_MISMATCH."""
    version = tokenizer_version(encoding)
    if named is not None and named != version:
        raise DaemonError(
            ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
            f"The daemon counts with {encoding} {version}; read the budget again.",
            tokenizerId=encoding,
            tokenizerVersion=version,
        )


CHANNELS = (Channel("tokens:count", count_tokens),)
