"""The keys of clouds, databases and vaults.

Knows prefixes and lengths; labelled secret keys without a shape of their own are found by label.
"""

from creonowd.redaction.rules import (
    ALNUM,
    END,
    HEX,
    WORD,
    Rule,
    token,
    unless_words,
    whole,
    with_head,
)

RULES = (
    Rule(
        "aws_access_key_id",
        ("akia", "asia", "abia", "acca"),
        rf"A(?:KIA|(?:SIA|BIA|CCA)(?=[A-Z]*[0-9]))[A-Z0-9]{{16}}{END}",
        whole,
    ),
    token("aws_bedrock_api_key", "ABSK", r"[A-Za-z0-9+/]{100,200}+={0,2}"),
    Rule(
        "azure_client_secret",
        tuple(f"{digit}q~" for digit in range(10)),
        r"[0-9]Q~[A-Za-z0-9_~.-]{31,36}+",
        with_head("[A-Za-z0-9_~.-]{3}", 3),
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
