"""Summaries that take reading the whole novel, and so come from a host or not at all.

Knows which kind of host gives which; whether what it gives is any good is nobody's business here.
"""

from collections.abc import Iterable

from creonowd.context.plan import ContextRules, Summary, wants
from creonowd.errors import WarningCode
from creonowd.sources.host_answer import HostKind
from creonowd.sources.hosts import HostSource

GIVEN_BY = {
    Summary.FULL_TEXT: {HostKind.RAG, HostKind.CUSTOM},
    Summary.RELATIONS: {HostKind.KG},
}

_SAID = {Summary.FULL_TEXT: "全文摘要未注入", Summary.RELATIONS: "人物关系摘要未注入"}


def absent(
    summaries: Iterable[Summary], rules: ContextRules | None, offered: Iterable[HostSource]
) -> tuple[str, ...]:
    """Warn of every summary that a skill relies on and no host that it asks offers."""
    kinds = {source.offer.kind for source in offered if wants(rules, source.need)}
    missing = (summary for summary in summaries if not kinds & GIVEN_BY[summary])
    return tuple(f"{WarningCode.SKILL_SOURCE_ABSENT}: {_SAID[summary]}" for summary in missing)
