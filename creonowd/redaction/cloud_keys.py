"""The keys of clouds, databases and vaults.

Knows prefixes and lengths; labelled secret keys without a shape of their own are found by label.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import ALNUM, END, HEX, NOTHING, WORD, Rule, Span, token, unless_words


def _azure_secret(match: "re.Match[str]") -> Sequence[Span]:
    """Look back for the four characters before the mark that every client secret has."""
    before = match.string[max(0, match.start() - 4) : match.start()]
    head = re.search(r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\Z", before)
    return NOTHING if head is None else ((match.start() - 3, match.end()),)


def _terraform_token(match: "re.Match[str]") -> Sequence[Span]:
    before = match.string[max(0, match.start() - 15) : match.start()]
    head = re.search(r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\Z", before)
    return NOTHING if head is None else ((match.start() - 14, match.end()),)


RULES = (
    Rule(
        "aws_access_key_id",
        ("akia", "asia", "abia", "acca"),
        rf"A(?:KIA|SIA|BIA|CCA)([A-Z0-9]{{16}}){END}",
        unless_words,
    ),
    token("aws_bedrock_api_key", "ABSK", r"[A-Za-z0-9+/]{100,200}+={0,2}"),
    Rule(
        "azure_client_secret",
        tuple(f"{digit}q~" for digit in range(10)),
        r"[0-9]Q~[A-Za-z0-9_~.-]{31,36}+",
        _azure_secret,
        bounded=False,
    ),
    Rule(
        "digitalocean_token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        rf"do[opr]_v1_({HEX}{{64}}){END}",
        unless_words,
    ),
    token("digitalocean_spaces_key", "DO00", r"[A-Z0-9]{16}"),
    token("databricks_token", "dapi", rf"{HEX}{{32}}(?:-\d{{1,2}})?"),
    Rule(
        "vault_token",
        ("hvs.", "hvb.", "hvr."),
        rf"hv[sbr]\.({WORD}{{20,400}}+)",
        unless_words,
    ),
    token("vault_token", "s.", rf"(?=[A-Za-z]*\d)(?=[^A-Z]*[A-Z]){ALNUM}{{24}}"),
    Rule(
        "terraform_token",
        (".atlasv1.",),
        rf"\.atlasv1\.{WORD}{{50,80}}+",
        _terraform_token,
        bounded=False,
    ),
)
