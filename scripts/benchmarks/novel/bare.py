"""The least that a cold assembly can be, done straight on the project's files with nothing around it.

Files read, text looked through for secrets, tokens counted, a line of evidence for each candidate.
Nothing is chosen, cut, rendered, hashed or remembered: what an engine adds to this is its own.
"""

import os
from itertools import pairwise
from pathlib import Path

import msgspec
import tiktoken

from creonowd.context.evidence import TrimEvidence
from creonowd.context.fragment import Action, Layer, Reason, Rule
from creonowd.tokens.tokenizer import BETWEEN
from scripts.benchmarks.novel.desk import REDACTOR

AT_ONCE = 200


def bare_work(root: Path, chapter: str, encoding: tiktoken.Encoding) -> list[TrimEvidence]:
    """Do it, on one core."""
    texts = [chapter, *_constraints(root), *_settings(root)]
    for start in range(0, len(texts), AT_ONCE):
        REDACTOR.spotless(texts[start : start + AT_ONCE])
    joined = BETWEEN.join(texts)
    tokens = encoding.encode(joined, allowed_special={BETWEEN}, disallowed_special=())
    ends = [place for place, token in enumerate(tokens) if token == encoding.eot_token]
    counts = [end - start for start, end in pairwise([-1, *ends, len(tokens)])]
    return [_evidence(len(text), count - 1) for text, count in zip(texts, counts, strict=True)]


def _constraints(root: Path) -> list[str]:
    document = msgspec.json.decode((root / ".creonow/rules/constraints.json").read_bytes())
    return [item["text"] for item in document["items"]]


def _settings(root: Path) -> list[str]:
    texts: list[str] = []
    with os.scandir(root / ".creonow/settings") as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            size = entry.stat().st_size
            descriptor = os.open(entry.path, os.O_RDONLY)
            texts.append(os.read(descriptor, size + 1).decode())
            os.close(descriptor)
    return texts


def _evidence(characters: int, tokens: int) -> TrimEvidence:
    return TrimEvidence(
        layer=Layer.SETTINGS,
        source_ref="settings",
        action=Action.KEPT,
        reason=Reason.OVER_BUDGET,
        rule=Rule.SETTINGS_SHARE,
        before_chars=characters,
        after_chars=characters,
        before_tokens=tokens,
        after_tokens=tokens,
    )
