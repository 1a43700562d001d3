"""The keys of clouds, databases and vaults.

Knows prefixes and lengths; labelled secret keys without a shape of their own are found by label.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import (
    ALNUM,
    END,
    HEX,
    NOTHING,
    WORD,
    Rule,
    Span,
    token,
    unless_words,
    with_head,
)
from creonowd.redaction.shape import is_stand_in, is_words


def _aws_key_id(match: "re.Match[str]") -> Sequence[Span]:
    """Spare a continent in capitals; with a digit, or after `AKIA`, it is a key."""
    shouted = match[1].isalpha() and not match[0].startswith("AKIA") and is_words(match[1])
    return NOTHING if shouted or is_stand_in(match[1]) else (match.span(),)


RULES = (
    Rule(
        "aws_access_key_id",
        ("akia", "asia", "abia", "acca"),
        rf"A(?:KIA|SIA|BIA|CCA)([A-Z0-9]{{16}}){END}",
        _aws_key_id,
    ),
    token("aws_bedrock_api_key", "ABSK", r"[A-Za-z0-9+/]{100,200}+={0,2}"),
    Rule(
        "azure_client_secret",
        tuple(f"{digit}q~" for digit in range(10)),
        r"[0-9]Q~(?:[A-Za-z0-9_~-]|\.(?=[A-Za-z0-9_~-])){31,36}+",
        with_head("[A-Za-z0-9_~.-]{3}", 3),
        bounded=False,
    ),
    Rule(
        "azure_api_key",
        ("jqqj99",),
        rf"JQQJ99{ALNUM}{{20,30}}+",
        with_head(f"{ALNUM}{{52}}", 52),
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
    token("vault_token", "s.", rf"{ALNUM}{{24}}"),
    Rule(
        "terraform_token",
        (".atlasv1.",),
        rf"\.atlasv1\.{WORD}{{50,80}}+",
        with_head(f"{ALNUM}{{14}}", 14),
        bounded=False,
    ),
)
