"""The call that the tests of the providers make."""

from creonowd.providers.provider import Call

PATIENCE = 60
CALL = Call(
    model="some-model",
    system="# CreoNow\n规则 😀\n",
    user="## Task\n续写\n",
    max_output_tokens=1500,
    prefix_hash="ab" * 32,
)


def ignore(_text: str) -> None:
    """Ignore a piece of text."""
