"""The conversations used last, kept so that the next look at one does not read its folder again.

Bounded by how many there are and by how many records they hold. Knows no disk.
"""

from collections import OrderedDict

from creonowd.artifacts.conversation import Conversation

MOST_CONVERSATIONS = 1024
MOST_RECORDS = 100_000


class Recent:
    """Not guarded: its owner holds a lock."""

    def __init__(
        self, conversations: int = MOST_CONVERSATIONS, records: int = MOST_RECORDS
    ) -> None:
        self._most = conversations
        self._most_records = records
        self._kept: OrderedDict[int, tuple[Conversation, int]] = OrderedDict()
        self._records = 0

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, conversation: Conversation) -> None:
        """Keep a conversation as the newest; the oldest make room, but never this one."""
        self.forget(conversation)
        records = conversation.count()
        self._kept[id(conversation)] = (conversation, records)
        self._records += records
        while len(self._kept) > 1 and self._too_much():
            _, (_, fewer) = self._kept.popitem(last=False)
            self._records -= fewer

    def forget(self, conversation: Conversation) -> None:
        """Keep a conversation no longer."""
        _, records = self._kept.pop(id(conversation), (None, 0))
        self._records -= records

    def _too_much(self) -> bool:
        return len(self._kept) > self._most or self._records > self._most_records
