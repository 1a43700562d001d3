"""What a conversation holds, in memory: records by id and key, in order, and which names are taken.

Knows records; knows no disk.
"""

from bisect import insort
from collections.abc import Iterable

from creonowd.artifacts.refs import Kind, Record


class Index:
    """The records of one conversation. Not guarded: its owner holds a lock."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[str, Record] = {}
        self._ids_by_key: dict[str, str] = {}
        self._ordered: list[tuple[int, int, str]] = []
        self.paths: set[str] = set()
        self.next_sequence = 0
        for record in records:
            self.add(record)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, ref_id: object) -> bool:
        return ref_id in self._records

    def get(self, ref_id: str) -> Record | None:
        """Find a record by its id."""
        return self._records.get(ref_id)

    def by_key(self, key: str) -> Record | None:
        """Find a record by the key that its host gave it."""
        return self._records.get(self._ids_by_key.get(key, ""))

    def add(self, record: Record) -> None:
        """Take in a record that is new."""
        self._records[record.id] = record
        self.paths.add(record.path.lower())
        self.next_sequence = max(self.next_sequence, record.sequence + 1)
        insort(self._ordered, record.order)
        if record.key is not None:
            self._ids_by_key[record.key] = record.id

    def change(self, record: Record) -> None:
        """Replace what is known of a file; its id, key, path and order stay."""
        self._records[record.id] = record

    def remove(self, record: Record) -> None:
        """Forget a record."""
        del self._records[record.id]
        self.paths.discard(record.path.lower())
        self._ordered.remove(record.order)
        if record.key is not None:
            self._ids_by_key.pop(record.key, None)

    def all(self) -> list[Record]:
        """List every record, oldest first."""
        return [self._records[ref_id] for _, _, ref_id in self._ordered]

    def newest(self, kind: Kind | None, limit: int) -> list[Record]:
        """List the newest `limit` records of a kind, oldest first."""
        found: list[Record] = []
        for _, _, ref_id in reversed(self._ordered):
            record = self._records[ref_id]
            if kind is None or record.kind is kind:
                found.append(record)
                if len(found) == limit:
                    break
        return found[::-1]
