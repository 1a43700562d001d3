"""What stays of LS, Glob and Grep: where it looked, how much there is, the first few."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from creonowd.history.observation import (
    Form,
    Observation,
    as_fields,
    as_items,
    cleaned,
    parsed,
    relative,
)
from creonowd.history.tool_result import (
    TEXTS,
    USUAL,
    LineLimits,
    ToolUse,
    amount,
    clip,
    described,
    first_lines,
    last_lines,
    lines_of,
    one_line,
    read_items,
    recap,
)
from creonowd.redaction import Redactor

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


class MatchedLine(NamedTuple):
    """A line that matched."""

    file: str
    line: str
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text.strip()}" if place else self.text.strip()


def list_folder(seen: ToolUse) -> list[str]:
    """Keep the folder, statistics and the first entries."""
    entries = _entries(seen)
    folders = sum(_is_folder(name) for name in entries)
    counted = f"{amount(len(entries) - folders, 'file')}, {amount(folders, 'folder')}"
    headline = f"{seen.path or '.'}: {amount(len(entries), 'entry')} ({counted})"
    return [headline, *first_lines(entries, seen.limits.listed, "entries")]


def find_files(seen: ToolUse) -> list[str]:
    """Keep the pattern, the number of hits and the first of them."""
    entries = _entries(seen)
    total = max(seen.number(*_COUNTS) or 0, len(entries))
    headline = f"{_pattern(seen)}{_within(seen)}: {amount(total, 'match')}"
    shown = first_lines(entries, seen.limits.globbed, "matches")
    return [headline, *_honest(shown, total, seen.limits.globbed)]


def find_lines(seen: ToolUse) -> list[str]:
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


def _entries(seen: ToolUse) -> list[str]:
    items = seen.items(*_ENTRIES)
    if items is None:
        return _told_lines(seen)
    return [_entry(item) for item in items]


def _told_lines(seen: ToolUse) -> list[str]:
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


def _matches(seen: ToolUse) -> list[Any]:
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


def _hit(item: Any) -> MatchedLine:
    fields = as_fields(item)
    if not fields:
        found = _MATCH_LINE.fullmatch(str(item))
        return (
            MatchedLine(found["file"], found["line"], found["text"])
            if found
            else MatchedLine("", "", str(item))
        )
    file = next((str(fields[key]) for key in _NAMES if fields.get(key)), "")
    numbers = ("line", "line_number", "lineNumber", "lineno")
    line = next((fields[key] for key in numbers if isinstance(fields.get(key), int)), "")
    texts = ("text", "content", "match", "line_text", "lineText", "line")
    told = (fields.get(key) for key in texts)
    return MatchedLine(file, str(line), next((text for text in told if isinstance(text, str)), ""))


def _pattern(seen: ToolUse) -> str:
    found = seen.find("pattern", "query", "regex")
    return f'"{one_line(str(found))}"' if found else "(no pattern)"


def _within(seen: ToolUse) -> str:
    place = next((seen.arguments[k] for k in ("path", "dir", "cwd") if seen.arguments.get(k)), "")
    return f" in {one_line(str(place))}" if place else ""


_EXITS = ("exit_code", "exitCode", "returncode", "return_code", "code")


def run_command(seen: ToolUse) -> list[str]:
    """Keep the command, how it ended, what its output amounts to and the end of its errors."""
    command = seen.arguments.get("command", seen.arguments.get("cmd", seen.fields.get("command")))
    code = seen.number(*_EXITS)
    ended = f"exit code {code}" if code is not None else "finished"
    errors = seen.fields.get("stderr")
    lines = lines_of(errors) if isinstance(errors, str) else []
    tail = [clip(line, seen.limits.line) for line in lines]
    return [
        f"{one_line(str(command or '(no command)'))}: {ended}",
        f"stdout: {_amounts_to(_stdout(seen))}",
        *(["stderr:", *last_lines(tail, seen.limits.errors, "lines")] if lines else []),
    ]


def write_todo(seen: ToolUse) -> list[str]:
    """Keep the recap alone."""
    told = seen.fields.get("recap")
    if isinstance(told, str) and told.strip():
        return [one_line(told, 400)]
    found: Iterable[Any] = (
        place.get(key) for place in (seen.fields, seen.arguments) for key in ("todos", "items")
    )
    lists = [as_items(items) for items in (*found, seen.observation.value)]
    listed = next(filter(None, lists), None)
    if listed is None and seen.text.strip():
        return [one_line(seen.text, 400)]
    return [recap(read_items(listed))]


def tell_failure(seen: ToolUse, reason: str) -> list[str]:
    """Keep what was tried and the end of what went wrong."""
    tried = seen.arguments.get("command", seen.find("pattern", "query", "url")) or seen.path
    about = f" ({one_line(str(tried))})" if tried else ""
    lines = [clip(line, 500) for line in lines_of(reason)]
    code = seen.number(*_EXITS)
    ended = f", exit code {code}" if code is not None else ""
    return [f"failed{about}{ended}:", *last_lines(lines, seen.limits.errors, "lines")]


def tell_anything(seen: ToolUse) -> list[str]:
    """Keep the outline of JSON, the first lines of text."""
    value = seen.observation.value
    if isinstance(value, list):
        listed = [f"- {described(item)}" for item in as_items(value)]
        return [amount(len(listed), "item"), *first_lines(listed, seen.limits.other, "items")]
    if seen.fields:
        named = [f"{clip(key, 80)}: {described(item)}" for key, item in seen.fields.items()]
        return [amount(len(named), "field"), *first_lines(named, seen.limits.other, "fields")]
    if seen.observation.form is Form.JSON:
        return [described(value)]
    lines = [clip(line, 400) for line in lines_of(seen.text)]
    return [_size(seen.text), *first_lines(lines, seen.limits.other, "lines")]


def _stdout(seen: ToolUse) -> str:
    told = seen.fields.get("stdout", seen.fields.get("output"))
    return told if isinstance(told, str) else seen.text


def _amounts_to(text: str) -> str:
    lines = [line for line in lines_of(text) if line.strip()]
    if not lines:
        return "empty"
    first, last = described(lines[0]), described(lines[-1])
    if text.lstrip()[:1] in {"{", "["}:
        return f"{_size(text)}, {described(text) if len(lines) == 1 else 'structured'}"
    return f"{_size(text)}: {first}" + (f" … {last}" if len(lines) > 1 else "")


def _size(text: str) -> str:
    return f"{amount(len(lines_of(text)), 'line')}, {amount(len(text), 'character')}"


_NUMBERED = re.compile(r"\s*(\d+)(?:\t|→|: |:\t| ?\| ?)(.*)")
_STARTS = ("start_line", "startLine", "offset", "line_start", "lineStart")
_ENDS = ("end_line", "endLine", "line_end", "lineEnd")
_SAMPLE = 100
_TOTALS = ("total_lines", "totalLines", "line_count", "lineCount")


def read_file(seen: ToolUse) -> list[str]:
    """Keep the lines of the range read, each with its number; of JSON that is no text an outline."""
    text = _text(seen)
    if text is None:
        headline, *outline = tell_anything(seen)
        return [f"{seen.path or '(no path)'}: {headline}", *outline]
    page = _wanted(seen, _numbered(lines_of(text), _start(seen)))
    kept = [
        f"{page.number(n)}: {clip(page.text(n), seen.limits.line)}"
        for n in range(min(len(page.lines), seen.limits.read))
    ]
    rest = len(page.lines) - len(kept)
    more = [f"… {rest} more lines"] if rest else []
    return [_headline(seen, page), *kept, *more]


class NumberedLines(NamedTuple):
    """Lines of a file from `start` on, or with their own numbers before them."""

    lines: list[str]
    start: int
    own: bool

    def number(self, place: int) -> int:
        """Tell the number of a line in the file."""
        match = _NUMBERED.fullmatch(self.lines[place]) if self.own else None
        return int(match[1]) if match else self.start + place

    def text(self, place: int) -> str:
        """Give a line without its number."""
        match = _NUMBERED.fullmatch(self.lines[place]) if self.own else None
        return match[2] if match else self.lines[place]

    def part(self, first: int, last: int | None) -> "NumberedLines":
        """Give the lines within a range, of a file whose numbers rise."""
        places = range(len(self.lines))
        begin = bisect_left(places, first, key=self.number)
        end = len(places) if last is None else bisect_right(places, last, key=self.number)
        return NumberedLines(self.lines[begin:end], self.start + begin, self.own)


def _text(seen: ToolUse) -> str | None:
    """Find the words of the file; JSON of several lines that was given as a text is the file."""
    listed = seen.fields.get("lines")
    if isinstance(listed, list):
        return "\n".join(str(line) for line in as_items(listed))
    if seen.text or seen.observation.form is not Form.JSON or _told(seen):
        return seen.text
    seen_whole = seen.observation.verbatim and "\n" in seen.observation.text
    return seen.observation.text if seen_whole and seen.path else None


def _told(seen: ToolUse) -> bool:
    """Whether the result has a place for words, though there are none."""
    return any(isinstance(seen.fields.get(name), str) for name in TEXTS)


def _headline(seen: ToolUse, page: NumberedLines) -> str:
    total = seen.number(*_TOTALS)
    of = f" of {total}" if total else ""
    place = seen.path or "(no path)"
    if not page.lines:
        return f"{place}: empty"
    return f"{place}: lines {page.number(0)}-{page.number(len(page.lines) - 1)}{of}"


def _start(seen: ToolUse) -> int:
    return max(1, seen.number(*_STARTS) or 1)


def _numbered(lines: list[str], start: int) -> NumberedLines:
    """Take over the numbers that a tool has put before its lines, else count from `start`."""
    sample = [*lines[:_SAMPLE], *lines[-_SAMPLE:]]
    return NumberedLines(lines, start, own=all(map(_NUMBERED.fullmatch, sample)))


def _wanted(seen: ToolUse, page: NumberedLines) -> NumberedLines:
    """Leave out what a tool gave beyond the range that was asked for."""
    first = _start(seen)
    limit = seen.arguments.get("limit")
    last = seen.number(*_ENDS)
    if last is None and isinstance(limit, int) and limit > 0:
        last = first + limit - 1
    within = page.part(first, last)
    return within if within.lines else page


_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_OLD = ("old_string", "oldString", "old_text", "old")
_NEW = ("new_string", "newString", "new_text", "new")
_CREATED = re.compile(r"\b(?:created|new file)\b|新建|已创建", re.IGNORECASE)
_OVERWRITTEN = re.compile(r"\b(?:overw\w+|updated|replaced|modified)\b|覆盖", re.IGNORECASE)


def edit_file(seen: ToolUse) -> list[str]:
    """Keep the file, the range and the key lines; of a big change only what it amounts to."""
    diff = _diff(seen)
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    edits = len(_edits(seen)) or 1
    headline = f"{seen.path or '(no path)'}: {amount(edits, 'edit')}{_range(seen)}"
    headline += f", {amount(added, 'line')} added, {removed} removed" if diff else ""
    if len(diff) > seen.limits.changed:
        return [headline, f"(the change of {len(diff)} lines is too long to keep here)"]
    return [headline, *(clip(line, seen.limits.line) for line in diff)]


def write_file(seen: ToolUse) -> list[str]:
    """Keep the file, whether it is new, and its first lines."""
    content = seen.arguments.get("content", seen.fields.get("content", ""))
    lines = lines_of(content) if isinstance(content, str) else []
    size = f", {amount(len(lines), 'line')}" if lines else ""
    kept = [clip(line, seen.limits.line) for line in lines]
    headline = f"{seen.path or '(no path)'}: {_fate(seen)}{size}"
    return [headline, *first_lines(kept, seen.limits.changed, "lines")]


def _fate(seen: ToolUse) -> str:
    flags = {name: seen.fields.get(name) for name in ("created", "is_new", "isNew", "new_file")}
    told = " ".join(
        str(seen.fields.get(name, ""))
        for name in ("operation", "action", "mode", "type", "message")
    )
    if any(flag is True for flag in flags.values()) or _CREATED.search(f"{told} {seen.text}"):
        return "new file"
    overwritten = any(flag is False for flag in flags.values()) or seen.fields.get("overwritten")
    return "overwritten" if overwritten or _OVERWRITTEN.search(f"{told} {seen.text}") else "written"


def _diff(seen: ToolUse) -> list[str]:
    found = next((seen.fields.get(k) for k in ("diff", "patch", "diff_preview")), None)
    if isinstance(found, str) and found:
        return [line for line in lines_of(found) if not line.startswith(("---", "+++"))]
    return [line for edit in _edits(seen) for line in _replaced(edit)]


def _edits(seen: ToolUse) -> list[dict[str, Any]]:
    many = [as_fields(edit) for edit in as_items(seen.arguments.get("edits"))]
    single = any(seen.arguments.get(name) for name in (*_OLD, *_NEW))
    return many or ([seen.arguments] if single else [])


def _replaced(edit: dict[str, Any]) -> list[str]:
    old = next((edit[k] for k in _OLD if isinstance(edit.get(k), str)), "")
    new = next((edit[k] for k in _NEW if isinstance(edit.get(k), str)), "")
    return [*(f"-{line}" for line in lines_of(old)), *(f"+{line}" for line in lines_of(new))]


def _range(seen: ToolUse) -> str:
    hunks = [
        (int(match[1]), int(match[1]) + max(0, int(match[2] or 1) - 1))
        for match in _HUNK.finditer("\n".join(_diff(seen)))
    ]
    first = seen.number("start_line", "startLine", "line")
    if first is not None and not hunks:
        hunks = [(first, seen.number("end_line", "endLine") or first)]
    return " at lines " + ", ".join(f"{a}-{b}" for a, b in hunks[:8]) if hunks else ""


Compressor = Callable[[ToolUse], list[str]]

_REF = re.compile(r"Full output: (ctx_[a-z0-9]{16,26})\Z")
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]")
_LONGEST_NAME = 64
_LONGEST_FAILURE = 20


def compress(
    tool: str, arguments: dict[str, Any], observation: Observation, limits: LineLimits = USUAL
) -> str:
    """Write the summary of one result for the history, its headline first."""
    seen = ToolUse(arguments, observation, observation.fields, limits)
    headline, *rest = _lines(tool, seen)
    name = clip(" ".join(tool.split()), _LONGEST_NAME) or "tool"
    note = " (its JSON is malformed)" if observation.form is Form.MALFORMED else ""
    told = "\n".join([f"[{name}] {headline}{note}", *rest])
    return clip(_COLOURS.sub("", told), limits.total)


def with_ref(summary: str, ref_id: str) -> str:
    """Let a summary say where the full output is."""
    return f"{summary}\nFull output: {ref_id}"


def ref_in(summary: str) -> str | None:
    """Find the ref that a summary carries."""
    found = _REF.search(summary)
    return found[1] if found else None


def headline_of(summary: str) -> str:
    """Give a summary's first line."""
    return summary.partition("\n")[0]


def shortened(summary: str, lines: int = 1) -> str:
    """Leave a summary's first lines and its ref."""
    ref = ref_in(summary)
    head = "\n".join(clip(line) for line in summary.split("\n")[:lines])
    if ref is None or ref in head:
        return head
    return with_ref(head, ref)


def read_arguments(arguments: Any, redactor: Redactor, root: str = "") -> dict[str, Any]:
    """Read a call's arguments, given as an object or as its JSON, without their secrets."""
    found = parsed(arguments) if isinstance(arguments, str) else arguments
    if isinstance(arguments, str) and found is None and arguments.strip():
        found = {"input": arguments}
    return as_fields(cleaned(relative(as_fields(found), root), redactor))


def _lines(tool: str, seen: ToolUse) -> list[str]:
    compressor = _TABLE.get(re.sub(r"[^a-z]", "", tool.lower()), tell_anything)
    if seen.observation.form is Form.BINARY:
        size = amount(len(seen.observation.text.encode()), "byte")
        return [f"{seen.path + ': ' if seen.path else ''}binary, {size}"]
    if seen.observation.form is Form.EMPTY and compressor in _SAY_NOTHING_OF_NOTHING:
        return [f"{seen.path + ': ' if seen.path else ''}empty result"]
    reason = seen.failure
    if reason is None or _tells_failures(compressor, seen) or _is_content(compressor, seen):
        return compressor(seen)
    return tell_failure(seen, reason)


def _is_content(compressor: Compressor, seen: ToolUse) -> bool:
    """Whether what looks like a failure is a long text that begins like one, such as a log."""
    plain = seen.observation.form is Form.TEXT
    return plain and compressor is read_file and seen.text.count("\n") > _LONGEST_FAILURE


def _tells_failures(compressor: Compressor, seen: ToolUse) -> bool:
    return compressor is run_command and _has_streams(seen)


def _has_streams(seen: ToolUse) -> bool:
    return isinstance(seen.fields.get("stderr"), str)


_SAY_NOTHING_OF_NOTHING = (tell_anything, read_file)
_TABLE: dict[str, Compressor] = {
    "ls": list_folder,
    "list": list_folder,
    "listdir": list_folder,
    "glob": find_files,
    "grep": find_lines,
    "read": read_file,
    "readfile": read_file,
    "edit": edit_file,
    "multiedit": edit_file,
    "write": write_file,
    "writefile": write_file,
    "bash": run_command,
    "shell": run_command,
    "todowrite": write_todo,
}
