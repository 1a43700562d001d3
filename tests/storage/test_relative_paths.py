import contextlib
import ntpath
import posixpath

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.relative_paths import problem_with
from creonowd.workspace.creonow_tree import CreonowFolder, in_scope

GOOD = [
    ".creonow/settings/世界观.md",
    ".creonow/settings/第一卷：风起/（上）.md",
    ".creonow/settings/……序章.md",
    ".creonow/settings/9¾站台.md",
    ".creonow/settings/👨‍👩‍👧.md",
    ".creonow/settings/a b.c.d.json",
    ".creonow/settings/.hidden.md",
    ".creonow/settings/console.md",
    ".creonow/settings/𠮷𡈽.txt",
    ".creonow/settings",
]

BAD = [
    "",
    "/",
    ".",
    "..",
    "/etc/passwd",
    "//server/share/x.md",
    "\\\\server\\share\\x.md",
    "\\\\?\\C:\\x.md",
    "C:/Users/x.md",
    "C:x.md",
    "c:\\x.md",
    "世界观.md",
    "settings/世界观.md",
    ".creonow/rules/style.md",
    ".creonow/settingsx/a.md",
    ".creonow/Settings/a.md",
    ".CREONOW/settings/a.md",
    "./.creonow/settings/a.md",
    "x/../.creonow/settings/a.md",
    ".creonow/settings/",
    ".creonow/settings//a.md",
    ".creonow/settings/./a.md",
    ".creonow/settings/..",
    ".creonow/settings/../rules/style.md",
    ".creonow/settings/../../a.md",
    ".creonow/settings/..\\..\\a.md",
    ".creonow\\settings\\a.md",
    ".creonow/settings/a.md\0",
    ".creonow/settings/\0",
    ".creonow/settings/a\n.md",
    ".creonow/settings/a\x7f.md",
    ".creonow/settings/a.md:stream",
    ".creonow/settings/a.md::$DATA",
    ".creonow/settings/a.md.",
    ".creonow/settings/a.md ",
    ".creonow/settings/dir./a.md",
    ".creonow/settings/dir /a.md",
    ".creonow/settings/... /a.md",
    ".creonow/settings/CON",
    ".creonow/settings/con.md",
    ".creonow/settings/NUL.txt.md",
    ".creonow/settings/aux/a.md",
    ".creonow/settings/Com1.json",
    ".creonow/settings/LPT¹.md",
    ".creonow/settings/CON .md",
    ".creonow/settings/ＮＵＬ.md",
    ".creonow/settings/CONIN$",
    ".creonow/settings/‥/rules/style.md",
    ".creonow/settings/．．/rules/style.md",
    ".creonow/settings/․․/rules/style.md",
    ".creonow/settings/..\u200c/rules/style.md",
    ".creonow/settings/\u200b/a.md",
    ".creonow/settings／a.md",
    ".creonow/settings/..／rules／style.md",
    ".creonow/settings/..∕rules∕style.md",
    ".creonow/settings/..⁄rules.md",
    ".creonow/settings/..＼rules.md",
    ".creonow/settings/a．",
    "．creonow/settings/a.md",
    ".creonow/ѕettings/a.md",
    ".creonow/settings/" + "长" * 2000,
]


@pytest.mark.parametrize("path", GOOD)
def test_a_plain_path_in_its_scope_is_allowed(path: str) -> None:
    assert in_scope(path, CreonowFolder.SETTINGS) == path


@pytest.mark.parametrize("path", BAD)
def test_anything_else_is_refused_without_repeating_it(path: str) -> None:
    with pytest.raises(DaemonError) as caught:
        in_scope(path, CreonowFolder.SETTINGS)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details["field"] == "path"
    assert len(path) < 5 or path not in f"{caught.value} {caught.value.details}"


STEPS = st.sampled_from(
    ["..", ".", "", "a", "世界", "‥", "．．", "..\u200b", "C:", "con", "a.", "a ", "\\", "／", "~"]
)
NAMES = st.one_of(STEPS, st.text(min_size=0, max_size=8))


@given(st.lists(NAMES, min_size=1, max_size=6), st.sampled_from(["/", "\\", "／", "//"]))
@example(["..", "..", "x"], "\\")
def test_no_allowed_path_leaves_the_tree_on_any_system(names: list[str], separator: str) -> None:
    path = ".creonow/settings/" + separator.join(names)

    if problem_with(path) is None:
        for flavour in (posixpath, ntpath):
            base = flavour.normpath("/project/.creonow/settings")
            joined = flavour.normpath(flavour.join("/project", path))
            assert flavour.commonpath([base, joined]) == base
            assert not flavour.isabs(path)
            assert flavour.splitdrive(path)[0] == ""
        assert "\0" not in path


@given(st.text(max_size=40))
def test_whatever_is_allowed_begins_with_its_scope(path: str) -> None:
    with contextlib.suppress(DaemonError):
        assert in_scope(path, CreonowFolder.RULES).split("/")[:2] == [".creonow", "rules"]
