"""How people write secrets down, and how they write of secrets without showing any.

`secret_forms.txt` and `harmless_forms.txt` are what the rules were written with, the forms that other
hands wrote for a measure among them, once they were measured; nobody looks into the held-out files
when a rule is written, so that their score says how other texts fare.
"""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from creonowd.redaction import redact
from testing.redaction_examples import SETS, harms, leaks, read_forms, read_harmless

FORMS = read_forms(SETS / "secret_forms.txt")
HARMLESS = read_harmless(SETS / "harmless_forms.txt")
KINDS = sorted({form.id.rpartition(" ")[0] for form in FORMS})

DISGUISES: dict[str, Callable[[str], str]] = {
    "Windows lines": lambda text: text.replace("\n", "\r\n"),
    "in a chapter": lambda text: f"　　雨停了。\n\n{text}\n\n“走吧。”她说。\n",
    "invisible characters": lambda text: text.replace("ssw", "ss\u200bw").replace("码", "\u2060码"),
    "wide letters": lambda text: text.replace("password", "ｐａｓｓｗｏｒｄ").replace(
        "Key", "Ｋｅｙ"
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_of_every_kind_of_form_the_secret_goes(kind: str) -> None:
    forms = [form for form in FORMS if form.id.startswith(kind)]

    assert leaks(forms) == []


def test_what_stands_around_a_secret_stays() -> None:
    assert harms(FORMS) == []


@pytest.mark.parametrize("name", DISGUISES)
def test_a_form_is_known_in_disguise(name: str) -> None:
    disguise = DISGUISES[name]

    assert leaks(replace(form, text=disguise(form.text)) for form in FORMS) == []


def test_texts_that_only_speak_of_secrets_stay() -> None:
    changed = [text for text in HARMLESS if redact(text).text != text]

    assert len(HARMLESS) > 800
    assert changed == []


def test_no_form_is_changed_by_a_second_pass() -> None:
    texts = [redact(form.text).text for form in FORMS]

    assert [text for text in texts if redact(text).text != text] == []


def test_of_forms_that_no_rule_was_written_for_nearly_all_go() -> None:
    """Only the share is looked at: what passes here is no example for a rule."""
    forms = read_forms(SETS / "held_out_forms.txt")
    texts = read_harmless(SETS / "held_out_harmless.txt")

    changed = [text for text in texts if redact(text).text != text]

    assert len(leaks(forms)) <= 0.05 * len(forms)
    assert len(changed) <= 0.005 * len(texts)
