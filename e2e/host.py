"""A host in a process of its own: connects to a running daemon and offers one source.

`python -m e2e.host USER_DATA MANNER OFFER` registers OFFER (JSON), prints `ready` on stdout and
answers `context:source:fetch` in its manner until its stdin ends.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
from anyio import to_thread
from msgspec import UNSET

from creonowd.testing.async_client import AsyncClient, endpoints_of, over_socket, over_tcp

FETCH = "context:source:fetch"
SENTENCE = "他推开门，雨还在下，檐水滴在石阶上，她没有抬头。"
ENTITY = {"source": "kg:林远", "content": "林远是北城的更夫，话很少。"}

Answer = dict[str, Any]


def fine(_asked: Any) -> Answer:
    return {"chunks": [ENTITY], "warnings": ["图谱停在昨天"]}


def constraint(_asked: Any) -> Answer:
    return {"chunks": [ENTITY | {"content": "林远不会大声喊叫", "constraint": True}]}


def memory(asked: Any) -> Answer:
    content = f"上回也写过：{asked.get('query', '')[-10:]}"
    return {"chunks": [{"source": "memory:episode-1", "content": content, "score": 0.95}]}


def echo(asked: Any) -> Answer:
    """Return the question as the text of a chunk."""
    content = json.dumps(asked, ensure_ascii=False, sort_keys=True)
    return {"chunks": [{"source": "kg:question", "content": f"问：{content}"}]}


def slow(_asked: Any) -> Any:
    return NotImplemented


def dead(_asked: Any) -> Answer:
    os._exit(1)


def foreign_project(_asked: Any) -> Answer:
    return {"chunks": [ENTITY, ENTITY | {"projectId": "prj_someone_elses"}]}


def malformed_chunks(_asked: Any) -> Answer:
    counts = [ENTITY | {"tokenCount": count} for count in (-5, 10**12, 1.5)]
    ranks = [ENTITY | rank for rank in ({"score": 2}, {"confidence": -1}, {"score": "very"})]
    return {"chunks": [ENTITY, *counts, *ranks, {"source": "kg:nothing"}, None]}


def malformed_answer(_asked: Any) -> Answer:
    return {"answer": "no"}


def generous(_asked: Any) -> Answer:
    chunks = [
        {"source": f"rag:{n:03}", "content": f"第{n}段。", "score": n / 250} for n in range(250)
    ]
    return {"chunks": chunks}


def heavy(_asked: Any) -> Answer:
    chunks = [{"source": f"rag:{n}", "content": f"{n}{SENTENCE * 150}"} for n in range(30)]
    return {"chunks": chunks}


def ten_scores(_asked: Any) -> Answer:
    chunks = [
        {"source": f"rag:{n}", "content": f"第{n}段：{SENTENCE * 10}", "score": n / 10}
        for n in range(10)
    ]
    return {"chunks": chunks}


MANNERS: dict[str, Callable[[Any], Any]] = {
    manner.__name__: manner
    for manner in (
        *(fine, constraint, memory, echo, slow, dead),
        *(foreign_project, malformed_chunks, malformed_answer, generous, heavy, ten_scores),
    )
}


async def main(user_data: Path, manner: str, offer: dict[str, Any]) -> None:
    async with await visit(user_data) as client:
        client.handlers[FETCH] = MANNERS[manner]
        await client.call("context:source:register", offer)
        print("ready", flush=True)
        await to_thread.run_sync(sys.stdin.read)


async def visit(user_data: Path) -> AbstractAsyncContextManager[AsyncClient]:
    ways = await endpoints_of(user_data)
    if "unix" in ways:
        return over_socket(Path(ways["unix"].address))
    token = ways["tcp"].token
    return over_tcp(ways["tcp"].address, None if token is UNSET else token)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
