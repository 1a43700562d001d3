"""One value, two forms: the strings and the notices of a result cannot differ."""

from typing import Any

import pytest

from creonowd.channels import CONTRACT
from creonowd.context.fragment import Caution, Layer, caution, show
from creonowd.errors import WARNINGS, Language, WarningCode, Wording, language_of
from scripts.contract.openrpc import describe

HAN = range(0x4E00, 0xA000)


def has_han(text: str) -> bool:
    return any(ord(character) in HAN for character in text)


@pytest.mark.parametrize("code", list(WarningCode))
def test_each_language_stands_alone(code: WarningCode) -> None:
    english = show([caution(code)], Language.ENGLISH)
    chinese = show([caution(code)], Language.CHINESE)

    assert english.warnings == [f"{code}: {english.notices[0].message}"]
    assert chinese.warnings == [f"{code}: {chinese.notices[0].message}"]
    assert not has_han(english.warnings[0])
    assert has_han(chinese.warnings[0])


def test_without_a_locale_only_what_the_specification_spells_out_is_chinese() -> None:
    spelt_out = [code for code in WarningCode if has_han(caution(code).text())]

    assert spelt_out == [WarningCode.KG_UNAVAILABLE]
    assert caution(WarningCode.KG_UNAVAILABLE).text() == "KG_UNAVAILABLE: 知识图谱数据未注入"


def test_a_warning_without_a_text_of_its_own_has_the_catalogues_in_its_notice() -> None:
    code = WarningCode.SKILL_UNKNOWN

    shown = show([Caution(code=code)], Language.ENGLISH)

    assert shown.warnings == [code]
    assert shown.notices[0].message == WARNINGS[code].english


def test_a_notice_has_layer_source_and_figures() -> None:
    given = Caution(
        code=WarningCode.CONTEXT_MINIMUM_UNMET,
        wording=Wording("settings (1 / 2 tokens)", "settings（1 / 2 tokens）"),
        layer=Layer.SETTINGS,
        source_ref="a.md",
        details=(("tokens", 1),),
    )

    notice = given.notice(Language.CHINESE)

    assert notice.message == "settings（1 / 2 tokens）"
    assert (notice.layer, notice.source_ref, notice.details) == ("settings", "a.md", {"tokens": 1})


def test_every_text_but_the_catalogues_is_cleaned() -> None:
    given = Caution(
        code=WarningCode.SOURCE_WARNING,
        wording=Wording("secret", "secret 密"),
        source_ref="secret.md",
        details=(("host", "secret"), ("lines", 3)),
    )

    cleaned = given.with_redacted_texts(lambda text: text.replace("secret", "***"))

    assert "secret" not in str(cleaned)
    assert cleaned.details == (("host", "***"), ("lines", 3))
    assert caution(WarningCode.RAG_UNAVAILABLE).with_redacted_texts(lambda _: "") == caution(
        WarningCode.RAG_UNAVAILABLE
    )


@pytest.mark.parametrize(
    ("locale", "language"),
    [
        (None, Language.DEFAULT),
        ("", Language.DEFAULT),
        ("zh", Language.CHINESE),
        ("zh-CN", Language.CHINESE),
        ("ZH_hant", Language.CHINESE),
        ("zh_CN.UTF-8", Language.CHINESE),
        ("zha", Language.ENGLISH),
        ("en", Language.ENGLISH),
        ("fr-FR", Language.ENGLISH),
        ("\0", Language.ENGLISH),
    ],
)
def test_a_locale_is_a_language(locale: str | None, language: Language) -> None:
    assert language_of(locale) is language


def results() -> list[tuple[str, dict[str, Any]]]:
    document = describe(CONTRACT)
    schemas = document["components"]["schemas"]
    named = (
        (method["name"], method["result"]["schema"].get("$ref", "").rpartition("/")[2])
        for method in document["methods"]
    )
    return [(name, schemas[ref]["properties"]) for name, ref in named if ref in schemas]


def test_every_result_with_warnings_has_notices() -> None:
    warning = [(name, fields) for name, fields in results() if "warnings" in fields]

    notice = {"$ref": "#/components/schemas/Notice"}
    assert len(warning) >= 9
    for name, fields in warning:
        assert fields["notices"]["items"] == notice, name
