"""`creonowd` and `python -m creonowd`: the first of our modules in a process.

What lies in the current folder is not ours: before anything else is imported, that folder leaves
the import path, where `python -m` and an empty entry in PYTHONPATH put it.
"""

import os
import stat
import sys


def without_current_folder(entries: list[str]) -> list[str]:
    """Return an import path without the current folder, in whatever spelling."""
    try:
        here = os.path.realpath(os.getcwd())  # noqa: PTH109 - pathlib is not imported yet
    except OSError:
        return [entry for entry in entries if os.path.isabs(entry)]  # noqa: PTH117
    return [entry for entry in entries if os.path.realpath(entry) != here]


def main() -> int:
    """Run the command line."""
    sys.path[:] = without_current_folder(sys.path)
    _restrict_new_files()
    if sys.argv[1:2] in (["serve"], ["mcp"], ["view"]):
        from creonowd import signals

        signals.ignore()
    # structlog loads rich where that is installed, for tracebacks that we do not print: measured,
    # 60 of the 390 ms of processor time that a start takes.
    sys.modules.setdefault("rich", None)  # pyright: ignore[reportArgumentType]
    from creonowd import cli

    return cli.main()


def _restrict_new_files() -> None:
    """Take the right to write new files from others; a umask that gives it to the group alone stays."""
    umask = os.umask(0o077)
    os.umask(umask if umask & stat.S_IWOTH else umask | stat.S_IWGRP | stat.S_IWOTH)


if __name__ == "__main__":
    raise SystemExit(main())
