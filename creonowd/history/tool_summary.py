"""What a history keeps of a tool's result: a summary of a few lines, by the table of tools.

The table `_SUMMARIES` stands at the end: each tool has a function that returns a headline and
lines. A tool that is not in it is summarised by the shape of its result.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from creonowd.history.observation import (
    Form,
    Observation,
    as_fields,
    as_items,
    parse_json,
    redact_json,
    without_root,
)
from creonowd.history.tool_result import (
    DEFAULT_LIMITS,
    TEXT_KEYS,
    LineLimits,
    ToolUse,
    amount,
    clip,
    describe,
    first_lines,
    last_lines,
    one_line,
    read_todo,
    recap,
    split_lines,
)
from creonowd.redaction import Redactor

Summarise = Callable[[ToolUse], list[str]]

_COLOUR_CODES = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]")
_REF = re.compile(r"Full output: (ctx_[a-z0-9]{16,26})\Z")
_LONGEST_NAME = 64
_LONGEST_FAILURE = 20
_ENTRY_KEYS = ("entries", "items", "files", "children", "paths", "matches", "results", "list")
_MATCH_KEYS = ("matches", "results", "hits", "items", "lines")
_NAME_KEYS = ("path", "name", "file", "filename", "file_path", "filePath")
_COUNT_KEYS = ("total", "total_matches", "totalMatches", "match_count", "count", "num_matches")
_EXIT_CODE_KEYS = ("exit_code", "exitCode", "returncode", "return_code", "code")
_FIRST_LINE_KEYS = ("start_line", "startLine", "offset", "line_start", "lineStart")
_LAST_LINE_KEYS = ("end_line", "endLine", "line_end", "lineEnd")
_LINE_COUNT_KEYS = ("total_lines", "totalLines", "line_count", "lineCount")
_OLD_TEXT_KEYS = ("old_string", "oldString", "old_text", "old")
_NEW_TEXT_KEYS = ("new_string", "newString", "new_text", "new")
_MATCH_LINE = re.compile(r"(?P<file>(?:[A-Za-z]:)?[^:\n]+?)[:-](?P<line>\d+)[:-](?P<text>.*)")
_NO_MATCHES = re.compile(
    r"(?:no|0) (?:files?|match(?:es)?|results?|entries)\b[^\n]{0,80}|(?:未找到|没有)[^\n]{0,80}",
    re.IGNORECASE,
)
_MATCH_COUNT = re.compile(r"found \d+ [a-z ]{1,40}[:.]?|total \d+", re.IGNORECASE)
_LONG_LISTING_FOLDER = re.compile(r"d[rwxsStT-]{9}[.+@]?\s")
_MOST_MATCHES = 10_000
_LINE_NUMBER = re.compile(r"\s*(\d+)(?:\t|→|: |:\t| ?\| ?)(.*)")
_SAMPLE_LINES = 100
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_CREATED_WORDS = re.compile(r"\b(?:created|new file)\b|新建|已创建", re.IGNORECASE)
_OVERWRITTEN_WORDS = re.compile(r"\b(?:overw\w+|updated|replaced|modified)\b|覆盖", re.IGNORECASE)


def summarise_result(
    tool: str,
    arguments: dict[str, Any],
    observation: Observation,
    limits: LineLimits = DEFAULT_LIMITS,
) -> str:
    """Write the summary of one result for the history, its headline first."""
    use = ToolUse(arguments, observation, observation.fields, limits)
    headline, *rest = _summary_lines(tool, use)
    name = clip(" ".join(tool.split()), _LONGEST_NAME) or "tool"
    note = " (its JSON is malformed)" if observation.form is Form.MALFORMED else ""
    summary = "\n".join([f"[{name}] {headline}{note}", *rest])
    return clip(_COLOUR_CODES.sub("", summary), limits.total)


def with_ref(summary: str, ref_id: str) -> str:
    """Add to a summary the context file with the full output."""
    return f"{summary}\nFull output: {ref_id}"


def ref_in(summary: str) -> str | None:
    """Return the ref at the end of a summary, if there is one."""
    found = _REF.search(summary)
    return found[1] if found else None


def headline_of(summary: str) -> str:
    """Return a summary's first line."""
    return summary.partition("\n")[0]


def shorten(summary: str, lines: int = 1) -> str:
    """Cut a summary to its first lines and its ref."""
    ref = ref_in(summary)
    head = "\n".join(clip(line) for line in summary.split("\n")[:lines])
    if ref is None or ref in head:
        return head
    return with_ref(head, ref)


def read_arguments(arguments: Any, redactor: Redactor, root: str = "") -> dict[str, Any]:
    """Read a call's arguments, an object or its JSON, and redact them."""
    found = parse_json(arguments) if isinstance(arguments, str) else arguments
    if isinstance(arguments, str) and found is None and arguments.strip():
        found = {"input": arguments}
    return as_fields(redact_json(without_root(as_fields(found), root), redactor))


def _summary_lines(tool: str, use: ToolUse) -> list[str]:
    summarise = _SUMMARIES.get(re.sub(r"[^a-z]", "", tool.lower()), _summarise_other)
    form = use.observation.form
    place = f"{use.path}: " if use.path else ""
    if form is Form.BINARY:
        size = amount(len(use.observation.text.encode()), "byte")
        return [f"{place}binary, {size}"]
    if form is Form.EMPTY and summarise in {_summarise_other, _summarise_read}:
        return [f"{place}empty result"]
    reason = use.failure
    if reason is None:
        return summarise(use)
    # A command with its own stderr reports its failure itself.
    has_stderr = summarise is _summarise_command and isinstance(use.fields.get("stderr"), str)
    # A file that begins like a failure and goes on is no failure; it may be a log.
    is_log = (
        summarise is _summarise_read
        and form is Form.TEXT
        and use.text.count("\n") > _LONGEST_FAILURE
    )
    return summarise(use) if has_stderr or is_log else _summarise_failure(use, reason)


def _summarise_failure(use: ToolUse, reason: str) -> list[str]:
    """Keep what was tried and the end of the error."""
    tried = use.arguments.get("command", use.find("pattern", "query", "url")) or use.path
    about = f" ({one_line(str(tried))})" if tried else ""
    lines = [clip(line, 500) for line in split_lines(reason)]
    code = use.number(*_EXIT_CODE_KEYS)
    ended = f", exit code {code}" if code is not None else ""
    return [f"failed{about}{ended}:", *last_lines(lines, use.limits.errors, "lines")]


def _summarise_other(use: ToolUse) -> list[str]:
    """Keep the outline of JSON, the first lines of text."""
    value = use.observation.value
    if isinstance(value, list):
        items = [f"- {describe(item)}" for item in as_items(value)]
        return [amount(len(items), "item"), *first_lines(items, use.limits.other, "items")]
    if use.fields:
        fields = [f"{clip(key, 80)}: {describe(item)}" for key, item in use.fields.items()]
        return [amount(len(fields), "field"), *first_lines(fields, use.limits.other, "fields")]
    if use.observation.form is Form.JSON:
        return [describe(value)]
    lines = [clip(line, 400) for line in split_lines(use.text)]
    return [_size(use.text), *first_lines(lines, use.limits.other, "lines")]


def _size(text: str) -> str:
    return f"{amount(len(split_lines(text)), 'line')}, {amount(len(text), 'character')}"


def _summarise_listing(use: ToolUse) -> list[str]:
    """Keep the folder, statistics and the first entries."""
    entries = _entries(use)
    folders = sum(_is_folder(name) for name in entries)
    kinds = f"{amount(len(entries) - folders, 'file')}, {amount(folders, 'folder')}"
    headline = f"{use.path or '.'}: {amount(len(entries), 'entry')} ({kinds})"
    return [headline, *first_lines(entries, use.limits.listing, "entries")]


def _entries(use: ToolUse) -> list[str]:
    items = use.items(*_ENTRY_KEYS)
    if items is None:
        return _listing_lines(use)
    return [_entry(item) for item in items]


def _listing_lines(use: ToolUse) -> list[str]:
    """Split a listing into its entries, without lines such as `total 8` or `No files found`."""
    lines = [line for line in split_lines(use.text) if line.strip() and line.strip() != "--"]
    if len(lines) == 1 and _NO_MATCHES.fullmatch(lines[0].strip()):
        return []
    return lines[1:] if lines and _MATCH_COUNT.fullmatch(lines[0].strip()) else lines


def _entry(item: Any) -> str:
    fields = as_fields(item)
    if not fields:
        return one_line(str(item))
    name = next((str(fields[key]) for key in _NAME_KEYS if fields.get(key)), "?")
    kind = str(fields.get("type", fields.get("kind", ""))).lower()
    folder = kind in {"dir", "directory", "folder"} or fields.get(
        "is_dir", fields.get("isDirectory")
    )
    return one_line(name) + ("/" if folder and not name.endswith("/") else "")


def _is_folder(entry: str) -> bool:
    return entry.endswith(("/", "\\")) or _LONG_LISTING_FOLDER.match(entry) is not None


def _summarise_glob(use: ToolUse) -> list[str]:
    """Keep the pattern, the number of hits and the first of them."""
    entries = _entries(use)
    total = max(use.number(*_COUNT_KEYS) or 0, len(entries))
    headline = f"{_pattern(use)}{_in_folder(use)}: {amount(total, 'match')}"
    return [headline, *_with_rest(entries[: use.limits.glob], total)]


def _pattern(use: ToolUse) -> str:
    found = use.find("pattern", "query", "regex")
    return f'"{one_line(str(found))}"' if found else "(no pattern)"


def _in_folder(use: ToolUse) -> str:
    place = next((use.arguments[k] for k in ("path", "dir", "cwd") if use.arguments.get(k)), "")
    return f" in {one_line(str(place))}" if place else ""


def _with_rest(first: list[str], total: int) -> list[str]:
    """Add how many matches are left out, those that the tool left out included."""
    rest = total - len(first)
    return [*first, f"… {rest} more matches"] if rest > 0 else first


def _summarise_grep(use: ToolUse) -> list[str]:
    """Keep the pattern, the number of matches and the first, each with its file and line."""
    found = _matches(use)
    hits = [_match(item) for item in found[:_MOST_MATCHES]]
    total = max(use.number(*_COUNT_KEYS) or 0, len(found))
    files = {hit.file for hit in hits if hit.file}
    least = "at least " if len(found) > len(hits) else ""
    among = f" in {least}{amount(len(files), 'file')}" if files else ""
    headline = f"{_pattern(use)}{_in_folder(use)}: {amount(total, 'match')}{among}"
    first = [clip(str(hit), 400) for hit in hits[: use.limits.grep]]
    return [headline, *_with_rest(first, total)]


class MatchedLine(NamedTuple):
    """A line that matched."""

    file: str
    line: str
    text: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text.strip()}" if place else self.text.strip()


def _matches(use: ToolUse) -> list[Any]:
    items = use.items(*_MATCH_KEYS)
    if items is not None:
        return items
    by_file = next(filter(None, (as_fields(use.fields.get(name)) for name in _MATCH_KEYS)), None)
    if by_file is None:
        return list(_listing_lines(use))
    return [
        _with_file(file, item)
        for file, found in by_file.items()
        for item in (as_items(found) or [found])
    ]


def _with_file(file: str, item: Any) -> dict[str, Any]:
    """Add to a match the file under which the tool lists it."""
    return {"file": file, **(as_fields(item) or {"text": str(item)})}


def _match(item: Any) -> MatchedLine:
    fields = as_fields(item)
    if not fields:
        found = _MATCH_LINE.fullmatch(str(item))
        return (
            MatchedLine(found["file"], found["line"], found["text"])
            if found
            else MatchedLine("", "", str(item))
        )
    file = next((str(fields[key]) for key in _NAME_KEYS if fields.get(key)), "")
    numbers = ("line", "line_number", "lineNumber", "lineno")
    line = next((fields[key] for key in numbers if isinstance(fields.get(key), int)), "")
    texts = ("text", "content", "match", "line_text", "lineText", "line")
    values = (fields.get(key) for key in texts)
    return MatchedLine(
        file, str(line), next((text for text in values if isinstance(text, str)), "")
    )


def _summarise_read(use: ToolUse) -> list[str]:
    """Keep the lines of the range read, each with its number; of JSON that is no text an outline."""
    text = _file_text(use)
    if text is None:
        headline, *outline = _summarise_other(use)
        return [f"{use.path or '(no path)'}: {headline}", *outline]
    page = _requested_lines(use, _numbered_lines(split_lines(text), _first_line(use)))
    kept = [
        f"{page.number(n)}: {clip(page.text(n), use.limits.line)}"
        for n in range(min(len(page.lines), use.limits.read))
    ]
    rest = len(page.lines) - len(kept)
    more = [f"… {rest} more lines"] if rest else []
    return [_read_headline(use, page), *kept, *more]


class NumberedLines(NamedTuple):
    """Lines of a file from `start` on, or with their own numbers before them."""

    lines: list[str]
    start: int
    own: bool

    def number(self, place: int) -> int:
        """Return the number of a line in the file."""
        match = _LINE_NUMBER.fullmatch(self.lines[place]) if self.own else None
        return int(match[1]) if match else self.start + place

    def text(self, place: int) -> str:
        """Return a line without its number."""
        match = _LINE_NUMBER.fullmatch(self.lines[place]) if self.own else None
        return match[2] if match else self.lines[place]

    def part(self, first: int, last: int | None) -> "NumberedLines":
        """Return the lines within a range of numbers, which ascend."""
        places = range(len(self.lines))
        begin = bisect_left(places, first, key=self.number)
        end = len(places) if last is None else bisect_right(places, last, key=self.number)
        return NumberedLines(self.lines[begin:end], self.start + begin, self.own)


def _file_text(use: ToolUse) -> str | None:
    """Find the text of the file; JSON of several lines that came as a text is the file itself."""
    lines = use.fields.get("lines")
    if isinstance(lines, list):
        return "\n".join(str(line) for line in as_items(lines))
    if use.text or use.observation.form is not Form.JSON or _has_text_field(use):
        return use.text
    has_lines = use.observation.verbatim and "\n" in use.observation.text
    return use.observation.text if has_lines and use.path else None


def _has_text_field(use: ToolUse) -> bool:
    """Return whether the result has a field for the text, though it may be empty."""
    return any(isinstance(use.fields.get(name), str) for name in TEXT_KEYS)


def _first_line(use: ToolUse) -> int:
    return max(1, use.number(*_FIRST_LINE_KEYS) or 1)


def _numbered_lines(lines: list[str], start: int) -> NumberedLines:
    """Use the numbers that a tool puts before its lines, else count from `start`."""
    sample = [*lines[:_SAMPLE_LINES], *lines[-_SAMPLE_LINES:]]
    return NumberedLines(lines, start, own=all(map(_LINE_NUMBER.fullmatch, sample)))


def _requested_lines(use: ToolUse, page: NumberedLines) -> NumberedLines:
    """Drop the lines outside of the range that was asked for."""
    first = _first_line(use)
    limit = use.arguments.get("limit")
    last = use.number(*_LAST_LINE_KEYS)
    if last is None and isinstance(limit, int) and limit > 0:
        last = first + limit - 1
    within = page.part(first, last)
    return within if within.lines else page


def _read_headline(use: ToolUse, page: NumberedLines) -> str:
    total = use.number(*_LINE_COUNT_KEYS)
    of = f" of {total}" if total else ""
    place = use.path or "(no path)"
    if not page.lines:
        return f"{place}: empty"
    return f"{place}: lines {page.number(0)}-{page.number(len(page.lines) - 1)}{of}"


def _summarise_edit(use: ToolUse) -> list[str]:
    """Keep the file, the range and the changed lines; of a long change only its size."""
    diff = _diff_lines(use)
    added = sum(line.startswith("+") for line in diff)
    removed = sum(line.startswith("-") for line in diff)
    edits = len(_edits(use)) or 1
    headline = f"{use.path or '(no path)'}: {amount(edits, 'edit')}{_edit_range(use)}"
    headline += f", {amount(added, 'line')} added, {removed} removed" if diff else ""
    if len(diff) > use.limits.edit:
        return [headline, f"(the change of {len(diff)} lines is too long to keep here)"]
    return [headline, *(clip(line, use.limits.line) for line in diff)]


def _diff_lines(use: ToolUse) -> list[str]:
    found = next((use.fields.get(k) for k in ("diff", "patch", "diff_preview")), None)
    if isinstance(found, str) and found:
        return [line for line in split_lines(found) if not line.startswith(("---", "+++"))]
    return [line for edit in _edits(use) for line in _edit_lines(edit)]


def _edits(use: ToolUse) -> list[dict[str, Any]]:
    many = [as_fields(edit) for edit in as_items(use.arguments.get("edits"))]
    single = any(use.arguments.get(name) for name in (*_OLD_TEXT_KEYS, *_NEW_TEXT_KEYS))
    return many or ([use.arguments] if single else [])


def _edit_lines(edit: dict[str, Any]) -> list[str]:
    old = next((edit[k] for k in _OLD_TEXT_KEYS if isinstance(edit.get(k), str)), "")
    new = next((edit[k] for k in _NEW_TEXT_KEYS if isinstance(edit.get(k), str)), "")
    return [*(f"-{line}" for line in split_lines(old)), *(f"+{line}" for line in split_lines(new))]


def _edit_range(use: ToolUse) -> str:
    hunks = [
        (int(match[1]), int(match[1]) + max(0, int(match[2] or 1) - 1))
        for match in _HUNK.finditer("\n".join(_diff_lines(use)))
    ]
    first = use.number("start_line", "startLine", "line")
    if first is not None and not hunks:
        hunks = [(first, use.number("end_line", "endLine") or first)]
    return " at lines " + ", ".join(f"{a}-{b}" for a, b in hunks[:8]) if hunks else ""


def _summarise_write(use: ToolUse) -> list[str]:
    """Keep the file, whether it is new, and its first lines."""
    content = use.arguments.get("content", use.fields.get("content", ""))
    lines = split_lines(content) if isinstance(content, str) else []
    size = f", {amount(len(lines), 'line')}" if lines else ""
    kept = [clip(line, use.limits.line) for line in lines]
    headline = f"{use.path or '(no path)'}: {_write_kind(use)}{size}"
    return [headline, *first_lines(kept, use.limits.edit, "lines")]


def _write_kind(use: ToolUse) -> str:
    names = ("created", "is_new", "isNew", "new_file")
    flags = [flag for name in names if isinstance(flag := use.fields.get(name), bool)]
    report = " ".join(
        str(use.fields.get(name, "")) for name in ("operation", "action", "mode", "type", "message")
    )
    words = f"{report} {use.text}"
    if True in flags or _CREATED_WORDS.search(words):
        return "new file"
    overwritten = False in flags or use.fields.get("overwritten")
    return "overwritten" if overwritten or _OVERWRITTEN_WORDS.search(words) else "written"


def _summarise_command(use: ToolUse) -> list[str]:
    """Keep the command, its exit code, the size of its output and the end of its errors."""
    command = use.arguments.get("command", use.arguments.get("cmd", use.fields.get("command")))
    code = use.number(*_EXIT_CODE_KEYS)
    ended = f"exit code {code}" if code is not None else "finished"
    errors = use.fields.get("stderr")
    lines = split_lines(errors) if isinstance(errors, str) else []
    tail = [clip(line, use.limits.line) for line in lines]
    return [
        f"{one_line(str(command or '(no command)'))}: {ended}",
        f"stdout: {_output_outline(_stdout_of(use))}",
        *(["stderr:", *last_lines(tail, use.limits.errors, "lines")] if lines else []),
    ]


def _stdout_of(use: ToolUse) -> str:
    output = use.fields.get("stdout", use.fields.get("output"))
    return output if isinstance(output, str) else use.text


def _output_outline(text: str) -> str:
    lines = [line for line in split_lines(text) if line.strip()]
    if not lines:
        return "empty"
    first, last = describe(lines[0]), describe(lines[-1])
    if text.lstrip()[:1] in {"{", "["}:
        return f"{_size(text)}, {describe(text) if len(lines) == 1 else 'structured'}"
    return f"{_size(text)}: {first}" + (f" … {last}" if len(lines) > 1 else "")


def _summarise_todo(use: ToolUse) -> list[str]:
    """Keep the recap alone."""
    own = use.fields.get("recap")
    if isinstance(own, str) and own.strip():
        return [one_line(own, 400)]
    places: list[Any] = [
        place.get(key) for place in (use.fields, use.arguments) for key in ("todos", "items")
    ]
    lists = [as_items(place) for place in (*places, use.observation.value)]
    items = next(filter(None, lists), None)
    if items is None and use.text.strip():
        return [one_line(use.text, 400)]
    return [recap(read_todo(items))]


_SUMMARIES: dict[str, Summarise] = {
    "ls": _summarise_listing,
    "list": _summarise_listing,
    "listdir": _summarise_listing,
    "glob": _summarise_glob,
    "grep": _summarise_grep,
    "read": _summarise_read,
    "readfile": _summarise_read,
    "edit": _summarise_edit,
    "multiedit": _summarise_edit,
    "write": _summarise_write,
    "writefile": _summarise_write,
    "bash": _summarise_command,
    "shell": _summarise_command,
    "todowrite": _summarise_todo,
}
