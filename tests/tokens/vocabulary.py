"""Texts that tokenizers trip over, for Hypothesis to mix."""

from functools import cache

from hypothesis import strategies as st

from creonowd.tokens import Tokenizer, Tokenizers, tables

ENCODINGS = tuple(tables.ENCODINGS)
ALL_TABLES = (*ENCODINGS, *tables.BOUNDS)

PIECES = (
    *"abzAZéß0189 \t\n\r'’\"/#.,!?-_()",
    *"林远的她「」『』。！？，、；：“”…—　",
    *"かなカナ한글яЖωΩ",
    *"鏵촱ゑ⁘‸｡",
    *(
        "\r\n",
        "  ",
        "　　",
        "\n\n",
        "'s",
        "'LL",
        "don't",
        "it's",
        "we've",
        "I'll",
        "'re",
        "3.14",
        "Mr. ",
        "。」",
        "！？",
    ),
    *("hello world", "她走了。", "第一章", "<|endoftext|>", "xxxxxxxx", "哈哈哈哈", "\n/", " /"),
    *(
        "e\u0301",
        "👨\u200d👩\u200d👧",
        "🇨🇳🇯🇵",
        "👍🏽",
        "\u0301",
        "\u200d",
        "\ufe0f",
        "𠮷",
        "각",
        "नि",
        "か\u3099",
        "\u1112\u1161\u11ab",
        "\u03b1\u0313\u0300\u0345",
        "\x01\x02",
        "\ue000",
        "\u200b",
        "・゠",
    ),
    *("\x1c", "\x85", "\xa0", "\u2028", "\u2029", "\x0b", "٣", "²", "ǅ", "ſ"),
)

texts = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@cache
def tokenizer(encoding: str) -> Tokenizer:
    """Load an encoding once for all tests."""
    return Tokenizers().load(encoding)
