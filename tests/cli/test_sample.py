"""The sample novel, as it is shown to somebody who opens it for the first time, in both languages."""

from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from creonowd.cli.view import SAMPLE_PLACES, SAMPLES
from creonowd.testing.harness import Harness
from tests.cli.commands import creonowd_process

BROKEN = {"en": "jetty", "zh": "码头"}
CHAPTERS = range(10, 13)
# Two to four pages of a book: so many words, or Chinese characters.
PAGES = {"en": range(500, 1600), "zh": range(700, 2400)}


class Sample(NamedTuple):
    """One language of the sample, opened."""

    language: str
    daemon: Harness
    place: dict[str, Any]
    seen: dict[str, Any]

    @property
    def evidence(self) -> list[dict[str, Any]]:
        return self.seen["trimEvidence"]

    def rows(self, part: str, action: str) -> list[dict[str, Any]]:
        rows = (row for row in self.evidence if part in row["sourceRef"])
        return [row for row in rows if row["action"] == action]

    def run(self, **more: Any) -> dict[str, Any]:
        return self.daemon.call("ai:skill:run", self.place | more)


@pytest.fixture(scope="module", params=sorted(SAMPLE_PLACES))
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Generator[Sample]:
    language = request.param
    home = tmp_path_factory.mktemp("sample")
    with Harness(home, debug=True, CREONOW_AI_FAKE="assistant") as daemon:
        opened = creonowd_process(daemon.user_data, "view", "--sample", language)
        assert (opened.returncode, opened.stderr) == (0, b"")
        (project,) = daemon.call("project:list")["items"]
        place = {
            "projectId": project["projectId"],
            "documentId": SAMPLE_PLACES[language],
            "cursorPosition": 2**53 - 1,
            "skillId": "builtin:continue",
        }
        daemon.call("context:retrieve", place | {"limit": 1, "wait": True})
        seen = daemon.call("context:inspect", place | {"debugMode": True, "show": ["why"]})
        yield Sample(language, daemon, place, seen)


def test_somebody_is_left_out_and_it_says_why(sample: Sample) -> None:
    out = sample.rows("characters/", "dropped")

    assert out
    assert {row["rule"] for row in out} <= {"not_mentioned", "rules_line"}


def test_a_long_note_is_shortened(sample: Sample) -> None:
    (row,) = sample.rows("settings/", "trimmed")

    assert 0 < row["afterTokens"] < row["beforeTokens"]


def test_a_key_in_the_style_guide_is_blacked_out(sample: Sample) -> None:
    (row,) = sample.seen["redactionEvidence"]

    assert row["sourceRef"] == ".creonow/rules/style.md"
    assert row["patternId"].startswith("openai")


def test_passages_of_four_chapters_name_the_words_that_brought_them(sample: Sample) -> None:
    pieces = sample.seen["layersDetail"]["retrieved"]["fragments"]
    passages = [piece for piece in pieces if piece["kind"] == "passage"]
    chapters = {piece["sourceRef"].partition("#")[0] for piece in passages}

    assert len(chapters) >= 4
    assert all(piece["why"]["terms"] or piece["why"]["names"] for piece in passages)


def test_nothing_of_later_chapters_is_seen(sample: Sample) -> None:
    here = SAMPLE_PLACES[sample.language]
    names = [f"chapters/{path.name}" for path in chapters_of(sample.language)]
    later = [name for name in names if name > here]
    prompt = sample.daemon.call("context:assemble", sample.place)["prompt"]

    assert later
    assert not any(name in prompt for name in later)
    assert {row["rule"] for row in sample.rows("chapters/", "dropped")} >= {"future"}


def test_the_assistant_has_four_answers_of_which_one_breaks_a_rule(sample: Sample) -> None:
    runs = [sample.run() for _ in range(5)]

    outputs = [run["output"] for run in runs]
    broken = [[one["quote"] for one in run["verdict"]["violations"]] for run in runs]
    assert len(set(outputs)) == 4
    assert outputs[4] == outputs[0]
    assert broken == [[], [BROKEN[sample.language]], [], [], []]
    assert all(len(text) > 150 and not text.startswith("#") for text in outputs)


def test_on_another_novel_the_answer_says_that_no_ai_is_connected(
    sample: Sample, tmp_path: Path
) -> None:
    text = {"en": "The rain had stopped at noon. " * 30, "zh": "雨是中午停的。" * 40}[
        sample.language
    ]
    novel = sample.daemon.make_novel({"01.md": text}, root=tmp_path / "other")

    run = novel.run()

    assert "creonowd ai add" in run["output"]
    assert run["output"].isascii() == (sample.language == "en")
    assert run["verdict"]["violations"] == []


def test_the_novel_has_its_chapters_people_threads_rules_and_a_skill(sample: Sample) -> None:
    files = [path for path in (SAMPLES / sample.language / ".creonow").rglob("*") if path.is_file()]
    lengths = [length(path, sample.language) for path in chapters_of(sample.language)]

    assert len(lengths) in CHAPTERS
    assert [one for one in lengths if one not in PAGES[sample.language]] == []
    assert {path.parent.name for path in files} >= {"characters", "settings", "threads", "rules"}
    assert any(path.name == "SKILL.md" for path in files)


def chapters_of(language: str) -> list[Path]:
    return sorted((SAMPLES / language / "chapters").iterdir())


def length(chapter: Path, language: str) -> int:
    text = chapter.read_text(encoding="utf-8")
    return len(text.split()) if language == "en" else len("".join(text.split()))
