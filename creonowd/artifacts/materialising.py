"""Lazy files made when they are wanted, each by one maker at a time.

Knows hosts and recipes; what a recipe means stands with its maker.
"""

import anyio
from anyio import to_thread

from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.recipes import Making, Recipes
from creonowd.artifacts.refs import Record
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.peer import Peer
from creonowd.settings import Settings
from creonowd.threads import entered

Key = tuple[str, str]


class Workshop:
    """Makes lazy files, and remembers which hosts offered to."""

    def __init__(self, recipes: Recipes, settings: Settings) -> None:
        self._recipes = recipes
        self._timeout_ms = settings.context_host_timeout_ms
        self._most_bytes = settings.context_max_bytes
        self._hosts: dict[str, list[Peer]] = {}
        self._making: dict[Key, anyio.Lock] = {}

    def remember(self, conversation_id: str, host: Peer) -> None:
        """Note that a host registered files of a conversation; the latest is asked first."""
        hosts = self._hosts.setdefault(conversation_id, [])
        if host in hosts:
            hosts.remove(host)
        else:
            host.when_closed(lambda: self._forget(conversation_id, host))
        hosts.insert(0, host)

    async def make(self, conversation: Conversation, record: Record, asker: Peer | None) -> None:
        """Make a file unless someone has done so meanwhile."""
        key = (conversation.id, record.id)
        lock = self._making.setdefault(key, anyio.Lock())
        try:
            async with lock:
                if await to_thread.run_sync(conversation.presence, record) is None:
                    await self._make(conversation, record, asker)
        finally:
            if not lock.statistics().tasks_waiting and not lock.locked():
                self._making.pop(key, None)

    async def _make(self, conversation: Conversation, record: Record, asker: Peer | None) -> None:
        hosts = [host for host in self._hosts.get(conversation.id, []) if host.connected]
        if asker is not None and asker not in hosts:
            hosts.append(asker)
        pull = self._recipes.follow(Making(conversation, record, hosts, self._timeout_ms))
        async with entered(conversation.filling(record)) as file:
            while (piece := await pull()) is not None:
                self._refuse_too_large(file.size + len(piece))
                await to_thread.run_sync(file.write, piece)

    def _refuse_too_large(self, size: int) -> None:
        if size > self._most_bytes:
            raise DaemonError(
                ErrorCode.IO_ERROR,
                "The file would be larger than all context files may be.",
                reason="too_large",
                limitBytes=self._most_bytes,
            )

    def _forget(self, conversation_id: str, host: Peer) -> None:
        hosts = self._hosts[conversation_id]
        hosts.remove(host)
        if not hosts:
            del self._hosts[conversation_id]
