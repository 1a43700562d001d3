"""`code_law.md`, the guidelines of a repository, and the prompt by which an agent may generate it.

The file is read when it changes and never written here.
"""

import hashlib
import os
from pathlib import Path

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage.stored_files import disk_errors
from creonowd.workspace.documents import DocumentFiles

FILE = "code_law.md"

_BROKEN_LINK = "code_law.md is a link that leads nowhere or out of the project; replace it."


class CodeLaw(Model):
    """The file as it is now; `text` is None if there is none or it cannot be read as text."""

    exists: bool
    text: str | None = None
    mtime_ms: int = 0
    size_bytes: int = 0
    problem: str = ""

    @property
    def sha256(self) -> str:
        """The hash of the text."""
        return hashlib.sha256((self.text or "").encode()).hexdigest()


class CodeLaws:
    """The guidelines of all projects; a file that has not changed is not read again."""

    def __init__(self, clock: Clock) -> None:
        self._files = DocumentFiles(clock)

    @property
    def reads(self) -> int:
        """How many times a file was read from the disk."""
        return self._files.reads

    def current(self, root: Path) -> CodeLaw:
        """Read the guidelines of the project at `root`. Blocks its thread."""
        try:
            buffer = self._files.read(root, FILE)
            with disk_errors(FILE):
                status = (root / FILE).stat()
        except DaemonError as error:
            absent = error.code is ErrorCode.NOT_FOUND
            if absent and not os.path.lexists(root / FILE):
                return CodeLaw(exists=False)
            if absent:
                return CodeLaw(exists=True, problem=_BROKEN_LINK)
            return CodeLaw(exists=True, problem=error.message)
        return CodeLaw(
            exists=True,
            text=buffer.text.replace("\r\n", "\n"),
            mtime_ms=status.st_mtime_ns // 1_000_000,
            size_bytes=status.st_size,
        )


GENERATE = """Generate a file named code_law.md that serves as a contributor guide for this
repository.
Your goal is to produce a clear, concise, and well-structured document with
descriptive headings and actionable explanations for each section.
Follow the outline below, but adapt as needed — add sections if relevant, and omit
those that do not apply to this project.

Document Requirements

- Title the document "Repository Guidelines".
- Use Markdown headings (#, ##, etc.) for structure.
- Keep the document concise. 200-400 words is optimal.
- Keep explanations short, direct, and specific to this repository.
- Provide examples where helpful (commands, directory paths, naming patterns).
- Maintain a professional, instructional tone.

Recommended Sections

Project Structure & Module Organization

- Outline the project structure, including where the source code, tests, and assets
are located.

Build, Test, and Development Commands

- List key commands for building, testing, and running locally (e.g., npm test,
make build).
- Briefly explain what each command does.

Coding Style & Naming Conventions

- Specify indentation rules, language-specific style preferences, and naming
patterns.
- Include any formatting or linting tools used.

Testing Guidelines

- Identify testing frameworks and coverage requirements.
- State test naming conventions and how to run tests.

Commit & Pull Request Guidelines

- Summarize commit message conventions found in the project’s Git history.
- Outline pull request requirements (descriptions, linked issues, screenshots,
etc.).

(Optional) Add other sections if relevant, such as Security & Configuration Tips,
Architecture Overview, or Agent-Specific Instructions."""
