"""`scripts/names.py`: a name of a module, a class or a type alias is used once in the package."""

from pathlib import Path

from scripts.names import ROOT, TWINS, duplicates


def plant(package: Path, **modules: str) -> None:
    for name, text in modules.items():
        path = package / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def test_the_package_uses_no_name_twice() -> None:
    assert duplicates(ROOT / "creonowd") == []


def test_every_module_is_named_in_the_architecture() -> None:
    """A reader looks there first; channels and commands are found by their own names."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    modules = [
        path for path in (ROOT / "creonowd").rglob("*.py") if path.stem.strip("_") == path.stem
    ]

    missing = [
        path.name
        for path in modules
        if path.parent.name not in TWINS and f"`{path.stem}`" not in page
    ]

    assert missing == []


def test_a_name_that_is_used_twice_is_found(tmp_path: Path) -> None:
    package = tmp_path / "package"
    inner = "def make():\n    class _Row:\n        pass\n"
    plant(package, one__window="class Row:\n    pass\n", two__window=inner, two__other="")

    assert duplicates(package) == [
        "module window: package/one/window.py, package/two/window.py",
        "type Row: package/one/window.py, package/two/window.py",
    ]


def test_an_alias_of_a_type_counts_as_a_class_does(tmp_path: Path) -> None:
    package = tmp_path / "package"
    plant(package, one="Key = tuple[str, str]\n", two="class Key:\n    pass\n", three="MOST = 3\n")
    plant(package, four="MOST = 4\nlog = None\nKey = str\n", five="log = None\n")
    plant(package, six="if log:\n    _Key = bytes\n")

    assert duplicates(package) == [
        "type Key: package/four.py, package/one.py, package/six.py, package/two.py"
    ]


def test_channels_and_commands_are_named_after_what_they_give_access_to(tmp_path: Path) -> None:
    package = tmp_path / "package"
    plant(package, skills__skill="", channels__skill="", cli__skill="")

    assert duplicates(package) == []
