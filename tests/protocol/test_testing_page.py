"""The page about testing prints the stories that are run from outside of the clone."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_its_stories_are_those_that_are_run() -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    bridge = (ROOT / "protocol" / "electron" / "README.md").read_text(encoding="utf-8")
    javascript = bridge.partition("```js\n// story.test.mjs\n")[2].partition("```")[0]
    python = (ROOT / "docs" / "stories" / "test_story.py").read_text(encoding="utf-8")

    assert page.partition("```python\n")[2].partition("```")[0] == python
    assert page.partition("```js\n")[2].partition("```")[0] == javascript
