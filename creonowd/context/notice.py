"""Warnings: one value each, of which a result's `warnings` and `notices` are both made.

The language of a client decides how they read; it never reaches a prompt.
"""

from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from creonowd.context.fragment import Layer
from creonowd.errors import WARNINGS, Language, WarningCode, Wording
from creonowd.model import Model

# The specification spells these out, so a client that names no locale gets them as they stand there.
SPELT_OUT = frozenset({WarningCode.KG_UNAVAILABLE})

Detail = str | int


class Notice(Model):
    """A warning in parts: test `code`, show `message`."""

    code: WarningCode
    """The code, for programs."""
    message: str
    """What it means, in the connection's language."""
    layer: Layer | UnsetType = UNSET
    """The layer of the prompt that it concerns; absent if it concerns none."""
    source_ref: str | UnsetType = UNSET
    """The file, document or host that it is about; absent if it is about none."""
    details: dict[str, Detail] | UnsetType = UNSET
    """Figures and names by themselves, such as how many tokens a layer got."""


class Caution(Model, cache_hash=True):
    """What a result warns of.

    `wording` stands behind the code in `warnings`; without it the code stands alone there, and the
    notice has the catalogue's text.
    """

    code: WarningCode
    wording: Wording | None = None
    layer: Layer | None = None
    source_ref: str = ""
    details: tuple[tuple[str, Detail], ...] = ()

    def text(self, language: Language = Language.DEFAULT) -> str:
        """Return `CODE` or `CODE: text`."""
        return str(self.code) if self.wording is None else f"{self.code}: {self._message(language)}"

    def notice(self, language: Language = Language.DEFAULT) -> Notice:
        """Return the parts."""
        return Notice(
            code=self.code,
            message=self._message(language),
            layer=self.layer or UNSET,
            source_ref=self.source_ref or UNSET,
            details=dict(self.details) or UNSET,
        )

    def with_redacted_texts(self, redact: Callable[[str], str]) -> "Caution":
        """Return the same with every text redacted, except for the catalogue's own."""
        details = ((k, redact(v) if isinstance(v, str) else v) for k, v in self.details)
        return replace(
            self,
            wording=self.wording
            and (self.wording if _is_general(self) else Wording(*map(redact, self.wording))),
            source_ref=self.source_ref and redact(self.source_ref),
            details=tuple(details),
        )

    def _message(self, language: Language) -> str:
        chinese = language is Language.CHINESE
        if language is Language.DEFAULT and self.code in SPELT_OUT:
            chinese = True
        return (self.wording or WARNINGS[self.code]).text(chinese=chinese)


class ShownWarnings(NamedTuple):
    """The warnings of a result, in both of their forms."""

    warnings: list[str]
    notices: list[Notice]


def show(cautions: Iterable[Caution], language: Language = Language.DEFAULT) -> ShownWarnings:
    """Return warnings for a client, in its language."""
    given = tuple(cautions)
    return ShownWarnings([c.text(language) for c in given], [c.notice(language) for c in given])


@cache
def _general(code: WarningCode) -> Caution:
    return Caution(code=code, wording=WARNINGS[code])


def caution(code: WarningCode, source_ref: str = "") -> Caution:
    """Warn with the text of the catalogue."""
    if not source_ref:
        return _general(code)
    return Caution(code=code, wording=WARNINGS[code], source_ref=source_ref)


def _is_general(given: Caution) -> bool:
    return given.wording == WARNINGS[given.code]
