"""What stays of LS, Glob and Grep: where it looked, how much there is, the first few."""

import re
from typing import Any, NamedTuple

from creonowd.conversations.excerpts import amount, clip, first_lines, lines_of, one_line
from creonowd.conversations.observation import as_fields, as_items
from creonowd.conversations.seen import Seen

_ENTRIES = ("entries", "items", "files", "children", "paths", "matches", "results", "list")
_MATCHES = ("matches", "results", "hits", "items", "lines")
_NAMES = ("path", "name", "file", "filename", "file_path", "filePath")
_MATCH_LINE = re.compile(r"(?P<file>(?:[A-Za-z]:)?[^:\n]+?)[:-](?P<line>\d+)[:-](?P<text>.*)")
_NOTHING = re.compile(
    r"(?:no|0) (?:files?|match(?:es)?|results?|entries)\b[^\n]{0,80}|(?:未找到|没有)[^\n]{0,80}",
    re.IGNORECASE,
)
_FOUND = re.compile(r"found \d+ [a-z ]{1,40}[:.]?|total \d+", re.IGNORECASE)
_LOOKED_AT = 10_000
_LONG_FOLDER = re.compile(r"d[rwxsStT-]{9}[.+@]?\s")
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
    folders = sum(_is_folder(name) for name in entries)
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
    found = _matches(seen)
    hits = [_hit(item) for item in found[:_LOOKED_AT]]
    total = max(seen.number(*_COUNTS) or 0, len(found))
    files = {hit.file for hit in hits if hit.file}
    least = "at least " if len(found) > len(hits) else ""
    among = f" in {least}{amount(len(files), 'file')}" if files else ""
    headline = f"{_pattern(seen)}{_within(seen)}: {amount(total, 'match')}{among}"
    shown = [clip(str(hit), 400) for hit in hits[: seen.limits.matches]]
    return [headline, *_honest(shown, total, seen.limits.matches)]


def _honest(shown: list[str], total: int, limit: int) -> list[str]:
    """Count what the tool itself left out, too."""
    kept = shown[:limit]
    rest = total - len(kept)
    return [*kept, f"… {rest} more matches"] if rest > 0 else kept


def _entries(seen: Seen) -> list[str]:
    items = seen.items(*_ENTRIES)
    if items is None:
        return _told_lines(seen)
    return [_entry(item) for item in items]


def _told_lines(seen: Seen) -> list[str]:
    """Take a listing apart; a line that only says how much or that nothing was found is none."""
    lines = [line for line in lines_of(seen.text) if line.strip() and line.strip() != "--"]
    if len(lines) == 1 and _NOTHING.fullmatch(lines[0].strip()):
        return []
    return lines[1:] if lines and _FOUND.fullmatch(lines[0].strip()) else lines


def _is_folder(entry: str) -> bool:
    return entry.endswith(("/", "\\")) or _LONG_FOLDER.match(entry) is not None


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


def _matches(seen: Seen) -> list[Any]:
    items = seen.items(*_MATCHES)
    if items is not None:
        return items
    by_file = next(filter(None, (as_fields(seen.fields.get(name)) for name in _MATCHES)), None)
    if by_file is None:
        return list(_told_lines(seen))
    return [_with_file(file, item) for file, found in by_file.items() for item in _each(found)]


def _each(found: Any) -> list[Any]:
    return as_items(found) or [found]


def _with_file(file: str, item: Any) -> dict[str, Any]:
    """Tell a match of its file, under which the tool has put it."""
    return {"file": file, **(as_fields(item) or {"text": str(item)})}


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
