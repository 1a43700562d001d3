"""What stays of LS, Glob and Grep: where it looked, how much there is, the first few."""

import re
from typing import Any, NamedTuple

from creonowd.conversations.excerpts import amount, clip, first_lines, lines_of, one_line
from creonowd.conversations.observation import Form, as_fields
from creonowd.conversations.seen import Seen

_ENTRIES = ("entries", "items", "files", "children", "paths", "matches", "results", "list")
_MATCHES = ("matches", "results", "hits", "items", "lines")
_NAMES = ("path", "name", "file", "filename", "file_path", "filePath")
_MATCH_LINE = re.compile(r"(?P<file>(?:[A-Za-z]:)?[^:\n]+?)[:-](?P<line>\d+)[:-](?P<text>.*)")
_COUNTS = ("total", "total_matches", "totalMatches", "match_count", "count", "num_matches")


class Hit(NamedTuple):
    """A line that matched."""

    file: str
    line: str
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text.strip()}" if place else self.text.strip()


def list_folder(seen: Seen) -> list[str]:
    """Keep the folder, statistics and the first entries."""
    entries = _entries(seen)
    folders = sum(name.endswith(("/", "\\")) for name in entries)
    counted = f"{amount(len(entries) - folders, 'file')}, {amount(folders, 'folder')}"
    headline = f"{seen.path or '.'}: {amount(len(entries), 'entry')} ({counted})"
    return [headline, *first_lines(entries, seen.limits.listed, "entries")]


def find_files(seen: Seen) -> list[str]:
    """Keep the pattern, the number of hits and the first of them."""
    entries = _entries(seen)
    total = max(seen.number(*_COUNTS) or 0, len(entries))
    headline = f"{_pattern(seen)}{_within(seen)}: {amount(total, 'match')}"
    shown = first_lines(entries, seen.limits.globbed, "matches")
    return [headline, *_honest(shown, total, seen.limits.globbed)]


def find_lines(seen: Seen) -> list[str]:
    """Keep the pattern, the number of matches and the first, each with its file and line."""
    hits = _hits(seen)
    total = max(seen.number(*_COUNTS) or 0, len(hits))
    files = {hit.file for hit in hits if hit.file}
    among = f" in {amount(len(files), 'file')}" if files else ""
    headline = f"{_pattern(seen)}{_within(seen)}: {amount(total, 'match')}{among}"
    shown = first_lines([clip(str(hit), 400) for hit in hits], seen.limits.matches, "matches")
    return [headline, *_honest(shown, total, seen.limits.matches)]


def _honest(shown: list[str], total: int, limit: int) -> list[str]:
    """Count what the tool itself left out, too."""
    kept = shown[:limit]
    rest = total - len(kept)
    return [*kept, f"… {rest} more matches"] if rest > 0 else kept


def _entries(seen: Seen) -> list[str]:
    items = seen.items(*_ENTRIES)
    if items is None:
        return [line for line in lines_of(seen.text) if line.strip()]
    return [_entry(item) for item in items]


def _entry(item: Any) -> str:
    fields = as_fields(item)
    if not fields:
        return one_line(str(item))
    name = next((str(fields[key]) for key in _NAMES if fields.get(key)), "?")
    kind = str(fields.get("type", fields.get("kind", ""))).lower()
    folder = kind in {"dir", "directory", "folder"} or fields.get(
        "is_dir", fields.get("isDirectory")
    )
    return one_line(name) + ("/" if folder and not name.endswith("/") else "")


def _hits(seen: Seen) -> list[Hit]:
    items = seen.items(*_MATCHES)
    if items is not None:
        return [_hit(item) for item in items]
    if seen.observation.form is Form.EMPTY:
        return []
    lines = [line for line in lines_of(seen.text) if line.strip() and line.strip() != "--"]
    return [_hit(line) for line in lines]


def _hit(item: Any) -> Hit:
    fields = as_fields(item)
    if not fields:
        found = _MATCH_LINE.fullmatch(str(item))
        return Hit(found["file"], found["line"], found["text"]) if found else Hit("", "", str(item))
    file = next((str(fields[key]) for key in _NAMES if fields.get(key)), "")
    numbers = ("line", "line_number", "lineNumber", "lineno")
    line = next((fields[key] for key in numbers if isinstance(fields.get(key), int)), "")
    texts = ("text", "content", "match", "line_text", "lineText", "line")
    told = (fields.get(key) for key in texts)
    return Hit(file, str(line), next((text for text in told if isinstance(text, str)), ""))


def _pattern(seen: Seen) -> str:
    found = seen.find("pattern", "query", "regex")
    return f'"{one_line(str(found))}"' if found else "(no pattern)"


def _within(seen: Seen) -> str:
    place = next((seen.arguments[k] for k in ("path", "dir", "cwd") if seen.arguments.get(k)), "")
    return f" in {one_line(str(place))}" if place else ""
