"""Counts add up at joints, in both encodings, whatever stands on either side."""

from itertools import pairwise

import pytest
from hypothesis import given, settings

from creonowd.tokens.additive import joints
from tests.tokens.vocabulary import ENCODINGS, texts, tokenizer


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=1000)
@given(text=texts)
def test_counts_add_up_at_every_joint(encoding: str, text: str) -> None:
    counter = tokenizer(encoding)
    found = [0, *joints(text, 0, len(text)), len(text)]

    parts = [text[start:end] for start, end in pairwise(found)]

    assert sum(map(counter.count, parts)) == counter.count(text)


def test_prose_has_joints_everywhere() -> None:
    assert joints("他走了。她说：「好」 and left.\n", 0, 24) == [3, 6, 9, 14, 19]
