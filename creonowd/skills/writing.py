"""Where a new SKILL.md goes and how it gets there. Knows names and folders; knows no scope."""

import re
import unicodedata
from pathlib import Path

from creonowd.errors import DaemonError, ErrorCode
from creonowd.skills.skill import Skill
from creonowd.storage import atomic
from creonowd.storage.relative_paths import problem_with_name
from creonowd.workspace.creonow_tree import make_folder

MAX_SLUG = 64

_NOT_A_WORD = re.compile(r"[^\w]+")


def put(root: Path, path: str, data: bytes, *, mode: int) -> None:
    """Make the folders of a path that are missing and write the file, all at once."""
    folders = path.split("/")[:-1]
    for depth in range(len(folders)):
        make_folder(root, "/".join(folders[: depth + 1]))
    atomic.replace(root / path, data, mode=mode)


def slug_for(skill: Skill) -> str:
    """Make a slug of what a skill calls itself."""
    return _NOT_A_WORD.sub("-", skill.id.rpartition(":")[2] or skill.name).strip("-")


def plain_slug(slug: str) -> str:
    """Spell a slug in one way on every disk, or refuse it."""
    plain = unicodedata.normalize("NFC", slug).lower()
    if len(plain) > MAX_SLUG or plain.startswith(".") or problem_with_name(plain):
        raise refused("slug", f"`slug` must be one plain name of at most {MAX_SLUG} characters.")
    return plain


def refused(field: str, message: str) -> DaemonError:
    """Say that a field of the request cannot be used."""
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field=field)
