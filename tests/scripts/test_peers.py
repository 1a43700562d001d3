"""What `scripts/bench peers` measures of ours is ours: real tokens, and nothing left uncounted."""

from contextlib import closing

from creonowd.tokens.tables import packaged_encoding
from scripts.benchmarks.beside.ours import Engine
from scripts.benchmarks.beside.walk import Chunk, Work


def test_the_engine_in_the_bench_counts_real_tokens() -> None:
    chunks = [
        Chunk(f"{n}", f"第{n}段。" + "雨还在下，她没有抬头。" * 60, n / 100) for n in range(40)
    ]
    work = Work("短句为主。", chunks, ["林远推门。"], [8000], passages=[])

    with closing(Engine(work, 8000)) as engine:
        told = engine.turn(work.manuscripts[0])

    assert told.reported == len(packaged_encoding("o200k_base").encode_ordinary(told.prompt))
    assert engine.tokenised >= sum(len(chunk.text) for chunk in chunks)
