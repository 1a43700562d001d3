"""What a history keeps of a tool's result: a summary of a few lines, by the table of tools.

The table `_SUMMARIES` stands at the end: each tool has a function that returns a headline and
lines. A tool that is not in it is summarised by the shape of its result, and so is a result of a
shape that its tool's function does not know, so that nothing is left out.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from creonowd.history.tool_result import (
    DEFAULT_LIMITS,
    PATH_KEYS,
    TEXT_KEYS,
    TODO_LISTS,
    Form,
    LineLimits,
    Observation,
    ToolUse,
    amount,
    as_fields,
    as_items,
    describe,
    parse_json,
    read_todo,
    redact_json,
    summarise_todo,
    without_root,
)
from creonowd.redaction import Redactor
from creonowd.text import MOST_VALUES, TextLines
from creonowd.threads import until_stopped
from creonowd.tokens.truncate import clip, one_line

T = TypeVar("T")
Summarise = Callable[[ToolUse], list[str]]

_COLOUR_CODES = re.compile(r"\x1b\[[0-9;?]{0,32}[ -/]?[@-~]")
_REF = re.compile(r"Full output: (ctx_[a-z0-9]{16,26})\Z")
_LONGEST_NAME = 64
_LONGEST_FAILURE = 20
_ENTRY_KEYS = (
    "entries",
    "items",
    "files",
    "children",
    "paths",
    "matches",
    "results",
    "list",
    "filenames",
)
_FOLDER_KEYS = ("directories", "dirs", "folders", "subdirectories", "subdirs", "subfolders")
_FOLDER_KINDS = frozenset({"dir", "directory", "folder", "d", "tree"})
_FOLDER_FLAGS = ("is_dir", "isDir", "isDirectory", "is_directory", "directory")
_LISTING_TEXT_KEYS = ("content", "text", "stdout", "output", "result", "body", "data", "listing")
_MATCH_KEYS = ("matches", "results", "hits", "items", "lines")
_FILE_LIST_KEYS = ("filenames", "files", "paths")
_NAME_KEYS = ("path", "name", "file", "filename", "file_path", "filePath", "relative_path", "uri")
_COUNT_KEYS = ("total", "total_matches", "totalMatches", "match_count", "count", "num_matches")
_STATUS_KEYS = ("exit_code", "exitCode", "returncode", "return_code")
_EXIT_CODE_KEYS = (*_STATUS_KEYS, "code")
_OUTPUT_KEYS = ("stdout", "output")
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
_LONG_LISTING_FOLDER = re.compile(r"d[rwxsStT-]{9}[.+@]?\s|\[DIR\] |\d.*\s<DIR>\s")
_BROKEN_JSON = re.compile(r"\s*(?:\{\s*\"|\[\s*[\"{\[])")
_MOST_MATCHES = 10_000
_LINE_NUMBER = re.compile(r"\s*(\d+)(?:\t|→|: |:\t| ?\| ?)(.*)")
_SAMPLE_LINES = 100
_MOST_HUNKS = 8
_HUNK = re.compile(r"@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")
_CREATED_WORDS = re.compile(r"\b(?:created|new file)\b|新建|已创建", re.IGNORECASE)
_JSON_FILE = re.compile(r"\.(?:[a-z]*json[a-z0-9]*|ipynb|webmanifest)\Z", re.IGNORECASE)
_RANGE_KEYS = frozenset({*_FIRST_LINE_KEYS, *_LAST_LINE_KEYS, *_LINE_COUNT_KEYS})
_COMMAND_KEYS = frozenset({"stdout", "stderr", *_STATUS_KEYS})
_STATE_KEYS = frozenset(
    [
        "status",
        "success",
        "ok",
        "error",
        "isError",
        "is_error",
        "type",
        "truncated",
        "interrupted",
        "isImage",
        "signal",
        "cwd",
        "command",
        "duration",
        "duration_ms",
        "durationMs",
        "timed_out",
        "timedOut",
    ]
)
_FILE_KEYS = frozenset(
    ["code", "lines", "limit", "encoding", "language", "mimeType", "mime_type", "size", "bytes"]
)
_WRAPPER_KEYS = frozenset(
    {*TEXT_KEYS, *PATH_KEYS, *_RANGE_KEYS, *_COMMAND_KEYS, *_STATE_KEYS, *_FILE_KEYS}
)
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


def shorten_summary(summary: str, lines: int = 1) -> str:
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
    own_text = summarise in {_summarise_read, _summarise_command} and _is_own_text(use)
    reason = None if own_text else use.failure
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
    if has_stderr or is_log:
        return summarise(use)
    exit_keys = _EXIT_CODE_KEYS if summarise is _summarise_command else _STATUS_KEYS
    return _summarise_failure(use, reason, use.number(*exit_keys))


def _is_own_text(use: ToolUse) -> bool:
    """Return whether JSON that came as a text is the file or output itself, not wrapped around it."""
    if not use.observation.verbatim or use.observation.form is Form.TEXT:
        return False
    keys = as_fields(use.observation.value).keys()
    if keys & _COMMAND_KEYS or ("content" in keys and keys & _RANGE_KEYS):
        return False
    if not keys or not keys <= _WRAPPER_KEYS:
        return True
    if _JSON_FILE.search(use.path) and not keys & {"content", "lines", "error"}:
        return True
    return use.failure is None and not _has_text_field(use) and "lines" not in keys


def _summarise_failure(use: ToolUse, reason: str, exit_code: int | None) -> list[str]:
    """Keep what was tried, the error's codes and the end of the error."""
    tried = use.arguments.get("command", use.find("pattern", "query", "url")) or use.path
    about = f" ({one_line(str(tried))})" if tried else ""
    return [
        f"failed{about}{_codes(use, exit_code)}:",
        *_last_lines(TextLines(reason), use.limits.errors, 500),
    ]


def _codes(use: ToolUse, exit_code: int | None) -> str:
    """Write the codes of a failure: that of the process and those of the error."""
    ended = f", exit code {exit_code}" if exit_code is not None else ""
    codes = ", ".join(code for code in use.error_codes if code != str(exit_code))
    return f"{ended}, code {codes}" if codes else ended


def _summarise_other(use: ToolUse) -> list[str]:
    """Keep the outline of JSON, the first lines of text."""
    value = use.observation.value
    if isinstance(value, list):
        items = as_items(value)
        kept = _first_items(items, use.limits.other, "items", lambda item: f"- {describe(item)}")
        return [amount(len(items), "item"), *kept]
    if use.fields:
        fields = list(use.fields.items())
        kept = _first_items(
            fields,
            use.limits.other,
            "fields",
            lambda pair: f"{clip(pair[0], 80)}: {describe(pair[1])}",
        )
        return [amount(len(fields), "field"), *kept]
    if use.observation.form is Form.JSON:
        return [describe(value)]
    if use.observation.form is Form.EMPTY:
        return ["empty result"]
    lines = TextLines(use.text)
    kept = _first_items(
        lines,
        use.limits.other,
        "lines",
        lambda line: clip(line, 400) if parse_json(line) is None else describe(line),
    )
    return [_size(use.text, lines), *kept]


def _summarise_unknown(use: ToolUse, place: str) -> list[str]:
    """Summarise as for a tool that is not in the table; `place` stands first."""
    headline, *rest = _summarise_other(use)
    return [f"{place}: {headline}", *rest]


def _size(text: str, lines: Sequence[str]) -> str:
    return f"{amount(len(lines), 'line')}, {amount(len(text), 'character')}"


def _summarise_listing(use: ToolUse) -> list[str]:
    """Keep the folder, statistics and the first entries."""
    entries = _entries(use)
    if entries is None:
        return _summarise_unknown(use, use.path or ".")
    folders = sum(_is_folder(name) for name in entries)
    kinds = f"{amount(len(entries) - folders, 'file')}, {amount(folders, 'folder')}"
    headline = f"{use.path or '.'}: {amount(len(entries), 'entry')} ({kinds})"
    return [headline, *_first_items(entries, use.limits.listing, "entries")]


def _entries(use: ToolUse) -> Sequence[str] | None:
    """List the entries of a listing; None if its shape is not known."""
    items = use.items(*_ENTRY_KEYS)
    named = [as_items(use.fields.get(key)) for key in _FOLDER_KEYS]
    folders = [f"{_entry(item).rstrip('/')}/" for found in named for item in found]
    if items is not None or folders:
        files = [_entry(item) for item in items or []]
        return [*folders, *(name for name in files if f"{name.rstrip('/')}/" not in folders)]
    by_name = next(filter(None, (as_fields(use.fields.get(key)) for key in _ENTRY_KEYS)), None)
    if by_name is not None:
        return [_entry({"name": name, **_about_entry(found)}) for name, found in by_name.items()]
    return _listing_lines(use, *_ENTRY_KEYS)


def _about_entry(value: Any) -> dict[str, Any]:
    """Read what a listing has under an entry's name: its fields, or its kind."""
    fields = {name: item for name, item in as_fields(value).items() if name != "name"}
    return fields if isinstance(value, dict) else {"type": value}


def _listing_lines(use: ToolUse, *keys: str) -> Sequence[str] | None:
    """Split a listing into its entries, without lines such as `total 8` or `No files found`.

    None if there is no text, or one that is the beginning of broken JSON.
    """
    if use.observation.form is Form.EMPTY:
        return []
    texts = [use.fields.get(key) for key in (*keys, *_LISTING_TEXT_KEYS)]
    if use.observation.form is Form.TEXT:
        texts = [use.observation.text]
    found = [text for text in texts if isinstance(text, str)]
    text = next(filter(str.strip, found), "")
    if not found or _is_broken_json(text):
        return None
    lines = TextLines(text).where(lambda line: line.strip() not in {"", "--"})
    if len(lines) == 1 and _NO_MATCHES.fullmatch(lines[0].strip()):
        return []
    return lines[1:] if lines and _MATCH_COUNT.fullmatch(lines[0].strip()) else lines


def _entry(item: Any) -> str:
    fields = as_fields(item)
    name = next((str(fields[key]) for key in _NAME_KEYS if fields.get(key)), None)
    if name is None:
        return one_line(item) if isinstance(item, str) else describe(item)
    kind = str(fields.get("type", fields.get("kind", ""))).lower()
    folder = kind in _FOLDER_KINDS or any(fields.get(flag) is True for flag in _FOLDER_FLAGS)
    return one_line(name) + ("/" if folder and not name.endswith("/") else "")


def _is_folder(entry: str) -> bool:
    return entry.endswith(("/", "\\")) or _LONG_LISTING_FOLDER.match(entry) is not None


def _summarise_glob(use: ToolUse) -> list[str]:
    """Keep the pattern, the number of hits and the first of them."""
    entries = _entries(use)
    if entries is None:
        return _summarise_unknown(use, f"{_pattern(use)}{_in_folder(use)}")
    total = max(use.number(*_COUNT_KEYS) or 0, len(entries))
    headline = f"{_pattern(use)}{_in_folder(use)}: {amount(total, 'match')}"
    return [headline, *_with_rest(entries[: use.limits.glob], total)]


def _pattern(use: ToolUse) -> str:
    found = use.find("pattern", "query", "regex")
    return f'"{one_line(str(found))}"' if found else "(no pattern)"


def _in_folder(use: ToolUse) -> str:
    place = next((use.arguments[k] for k in ("path", "dir", "cwd") if use.arguments.get(k)), "")
    return f" in {one_line(str(place))}" if place else ""


def _with_rest(first: Sequence[str], total: int) -> list[str]:
    """Add how many matches are left out, those that the tool left out included."""
    rest = total - len(first)
    return [*first, *([f"… {rest} more matches"] if rest > 0 else [])]


def _summarise_grep(use: ToolUse) -> list[str]:
    """Keep the pattern, the number of matches and the first, each with its file and line."""
    found = _matches(use)
    if found is None:
        return _summarise_unknown(use, f"{_pattern(use)}{_in_folder(use)}")
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


def _matches(use: ToolUse) -> Sequence[Any] | None:
    """List the matches; None if the shape of the result is not known."""
    items = use.items(*_MATCH_KEYS)
    if items:
        return items
    by_file = next(filter(None, (as_fields(use.fields.get(name)) for name in _MATCH_KEYS)), None)
    if by_file is not None:
        return [
            _with_file(file, item)
            for file, found in by_file.items()
            for item in (as_items(found) or [found])
        ]
    lines = _listing_lines(use, *_MATCH_KEYS)
    if lines:
        return _json_matches(lines) or lines
    files = use.items(*_FILE_LIST_KEYS)
    counted_none = use.number(*_COUNT_KEYS) == 0
    return files or ([] if (items, lines, files) != (None, None, None) or counted_none else None)


def _json_matches(lines: Sequence[str]) -> list[Any]:
    """Read matches that stand as JSON in one line each, as ripgrep writes them; of very many none."""
    if len(lines) > MOST_VALUES:
        return []
    values = [as_fields(parse_json(line)) for line in lines]
    if not all(values):
        return []
    return [value for value in values if value.get("type", "match") == "match"] or list(values)


def _with_file(file: str, item: Any) -> dict[str, Any]:
    """Add to a match the file under which the tool lists it."""
    return {"file": file, **(as_fields(item) or {"text": str(item)})}


def _match(item: Any) -> MatchedLine:
    if not isinstance(item, dict):
        text = item if isinstance(item, str) else describe(item)
        found = _MATCH_LINE.fullmatch(text)
        return MatchedLine(*found.group("file", "line", "text") if found else ("", "", text))
    fields = as_fields(item)
    fields |= as_fields(fields.get("data"))
    file = next(filter(None, (_plain(fields.get(key)) for key in _NAME_KEYS)), "")
    numbers = ("line", "line_number", "lineNumber", "lineno")
    line = next((fields[key] for key in numbers if isinstance(fields.get(key), int)), "")
    keys = ("text", "content", "match", "line_text", "lineText", "lines", "line")
    text = next(filter(None, (_plain(fields.get(key)) for key in keys)), "")
    return MatchedLine(file, str(line), text if file or text else describe(item))


def _plain(value: Any) -> str:
    """Return a text, or the one that an object such as ripgrep's `{"text": …}` holds."""
    text = as_fields(value).get("text", value)
    return text if isinstance(text, str) else ""


def _summarise_read(use: ToolUse) -> list[str]:
    """Keep the lines of the range read, each with its number; of JSON that is no text an outline."""
    text = _file_text(use)
    if text is None:
        return _summarise_unknown(use, use.path or "(no path)")
    page = _requested_lines(use, _numbered_lines(TextLines(text), _first_line(use)))
    kept = [
        f"{page.number(n)}: {clip(page.text(n), use.limits.line)}"
        for n in range(min(len(page.lines), use.limits.read))
    ]
    rest = len(page.lines) - len(kept)
    more = [f"… {rest} more lines"] if rest else []
    return [_read_headline(use, page), *kept, *more]


class NumberedLines(NamedTuple):
    """Lines of a file from `start` on, or with their own numbers before them."""

    lines: Sequence[str]
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
    """Find the text of the file; JSON that came as a text may be the file itself."""
    if _is_own_text(use):
        return use.observation.text if use.path else None
    lines = use.fields.get("lines")
    if isinstance(lines, list):
        return "\n".join(
            line if isinstance(line, str) else describe(line) for line in as_items(lines)
        )
    known = use.text or use.observation.form is not Form.JSON or _has_text_field(use)
    return use.text if known else None


def _has_text_field(use: ToolUse) -> bool:
    """Return whether the result has a field for the text, though it may be empty."""
    return any(isinstance(use.fields.get(name), str) for name in TEXT_KEYS)


def _first_line(use: ToolUse) -> int:
    return max(1, use.number(*_FIRST_LINE_KEYS) or 1)


def _numbered_lines(lines: Sequence[str], start: int) -> NumberedLines:
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
    changed = _edit_range(use, diff)
    if not diff and not _edits(use) and not changed:
        return _summarise_unknown(use, use.path or "(no path)")
    headline = f"{use.path or '(no path)'}: {amount(edits, 'edit')}{changed}"
    headline += f", {amount(added, 'line')} added, {removed} removed" if diff else ""
    if len(diff) > use.limits.edit:
        return [headline, f"(the change of {len(diff)} lines is too long to keep here)"]
    return [headline, *(clip(line, use.limits.line) for line in diff)]


def _diff_lines(use: ToolUse) -> Sequence[str]:
    found = next((use.fields.get(k) for k in ("diff", "patch", "diff_preview")), None)
    if isinstance(found, str) and found:
        return TextLines(found).where(lambda line: not line.startswith(("---", "+++")))
    return TextLines("".join(map(_edit_text, _edits(use))))


def _edits(use: ToolUse) -> list[dict[str, Any]]:
    many = [as_fields(edit) for edit in as_items(use.arguments.get("edits"))]
    single = any(use.arguments.get(name) for name in (*_OLD_TEXT_KEYS, *_NEW_TEXT_KEYS))
    return many or ([use.arguments] if single else [])


def _edit_text(edit: dict[str, Any]) -> str:
    """Return the lines that an edit takes away and adds, each behind its sign."""
    old = next((edit[k] for k in _OLD_TEXT_KEYS if isinstance(edit.get(k), str)), "")
    new = next((edit[k] for k in _NEW_TEXT_KEYS if isinstance(edit.get(k), str)), "")
    return _signed("-", old) + _signed("+", new)


def _signed(sign: str, text: str) -> str:
    return "".join(f"{sign}{line}\n" for line in until_stopped(TextLines(text)))


def _edit_range(use: ToolUse, diff: Sequence[str]) -> str:
    found = (match for line in until_stopped(diff) for match in _HUNK.finditer(line))
    hunks = [
        (int(match[1]), int(match[1]) + max(0, int(match[2] or 1) - 1))
        for match in islice(found, _MOST_HUNKS)
    ]
    first = use.number("start_line", "startLine", "line")
    if first is not None and not hunks:
        hunks = [(first, use.number("end_line", "endLine") or first)]
    return " at lines " + ", ".join(f"{a}-{b}" for a, b in hunks) if hunks else ""


def _summarise_write(use: ToolUse) -> list[str]:
    """Keep the file, whether it is new, and its first lines."""
    content = use.arguments.get("content", use.fields.get("content", ""))
    lines = TextLines(content if isinstance(content, str) else "")
    if not lines and not use.path:
        return _summarise_unknown(use, "(no path)")
    size = f", {amount(len(lines), 'line')}" if lines else ""
    headline = f"{use.path or '(no path)'}: {_write_kind(use)}{size}"
    shorten = partial(clip, limit=use.limits.line)
    return [headline, *_first_items(lines, use.limits.edit, "lines", shorten)]


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
    name = one_line(str(command or "(no command)"))
    if _is_own_text(use):
        return [f"{name}: finished", f"stdout: {_output_outline(use.observation.text)}"]
    code = use.number(*_EXIT_CODE_KEYS)
    ended = f"exit code {code}" if code is not None else "finished"
    failed = _codes(use, code).removeprefix(f", exit code {code}") if use.failure else ""
    lines = TextLines(_join_texts(use.fields.get("stderr")) or "")
    return [
        f"{name}: {ended}{failed}",
        *_output_lines(use),
        *(["stderr:", *_last_lines(lines, use.limits.errors, use.limits.line)] if lines else []),
    ]


def _output_lines(use: ToolUse) -> list[str]:
    """Keep the size and the ends of what a command wrote, or the outline of what came instead."""
    streams = [use.fields[key] for key in _OUTPUT_KEYS if key in use.fields]
    found = next((text for text in map(_join_texts, streams) if text), None)
    if found is None and streams:
        other = next((stream for stream in streams if stream not in (None, "", [])), None)
        return [f"stdout: {'empty' if other is None else describe(other)}"]
    text = found if found is not None else use.text
    if text or use.observation.form in {Form.TEXT, Form.EMPTY} or _has_text_field(use):
        return [f"stdout: {_output_outline(text)}"]
    if use.fields and use.fields.keys() <= _COMMAND_KEYS | _STATE_KEYS | {"code"}:
        return ["stdout: empty"]
    return _summarise_unknown(use, "stdout")


def _is_broken_json(text: str) -> bool:
    """Return whether a text begins like JSON, and its first line is not JSON of its own."""
    first = text.lstrip().partition("\n")[0]
    return _BROKEN_JSON.match(text) is not None and parse_json(first) is None


def _join_texts(value: Any) -> str | None:
    """Return a text, or a list of texts as the lines that they are; None for anything else."""
    lines = as_items(value)
    if lines and all(isinstance(line, str) for line in lines):
        return "\n".join(line.rstrip("\n") for line in lines)
    return value if isinstance(value, str) else None


def _output_outline(text: str) -> str:
    all_lines = TextLines(text)
    lines, size = all_lines.where(str.strip), _size(text, all_lines)
    if not lines:
        return "empty"
    if parse_json(text) is not None:
        return f"{size}, {describe(text)}"
    if _is_broken_json(text):
        return f"{size}, structured: {one_line(text)}"
    first, last = describe(lines[0]), describe(lines[-1])
    return f"{size}: {first}" + (f" … {last}" if len(lines) > 1 else "")


def _summarise_todo(use: ToolUse) -> list[str]:
    """Keep the recap alone."""
    own = use.fields.get("recap")
    if isinstance(own, str) and own.strip():
        return [one_line(own, 400)]
    places: list[Any] = [
        place.get(key) for place in (use.fields, use.arguments) for key in TODO_LISTS
    ]
    given = [*places, use.observation.value]
    lists = [parse_json(one) if isinstance(one, str) else one for one in given]
    found = [as_items(one) for one in lists if isinstance(one, list)]
    if found:
        return [summarise_todo(read_todo(next(filter(None, found), found[0])))]
    if use.text.strip():
        return [one_line(use.text, 400)]
    return _summarise_other(use)


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


def _first_items(
    items: Sequence[T], limit: int, noun: str, show: Callable[[T], str] = str
) -> list[str]:
    """Show the first items and add how many follow."""
    rest = len(items) - limit
    return [*map(show, items[:limit]), *([f"… {rest} more {noun}"] if rest > 0 else [])]


def _last_lines(lines: Sequence[str], limit: int, longest: int) -> list[str]:
    """Keep the last lines, each up to a length, and add how many come before."""
    rest = len(lines) - limit
    note = [f"… {rest} lines before"] if rest > 0 else []
    return [*note, *(clip(line, longest) for line in lines[max(0, rest) :])]
