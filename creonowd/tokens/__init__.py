"""Count the tokens of texts and cut texts to a number of tokens. Knows no prompt and no project.

Importing this package is cheap: tiktoken and its tables are loaded by `Tokenizers`, on demand.
"""

from creonowd.tokens.models import CountKind, KnownTables
from creonowd.tokens.tables import DEFAULT_ENCODING
from creonowd.tokens.tokenizer import ByteTokenizer, Tokenizer, Tokenizers
from creonowd.tokens.truncate import Cut, exceeds, keep_head, keep_tail

__all__ = [
    "DEFAULT_ENCODING",
    "ByteTokenizer",
    "CountKind",
    "Cut",
    "KnownTables",
    "Tokenizer",
    "Tokenizers",
    "exceeds",
    "keep_head",
    "keep_tail",
]
