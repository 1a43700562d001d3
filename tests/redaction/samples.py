"""Texts that hold fake secrets, and texts that hold none, for the tests of every rule.

A template such as `ghp_{A36}` becomes a secret that never was: `fake_secret` fills in letters.
"""

import random
import re
import string
from collections.abc import Iterable, Iterator
from pathlib import Path

from hypothesis import strategies as st

from creonowd.redaction import PLACEHOLDER, redact

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "B": string.ascii_letters + string.digits + "+/",
    "C": string.ascii_letters,
    "D": "123456789",
    "H": "0123456789abcdef",
    "K": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "L": string.ascii_lowercase,
    "U": string.ascii_uppercase + "234567",
    "W": string.ascii_letters + string.digits + "_-",
}
_BLANK = re.compile(r"\{([A-Z])(\d+)\}")

_AI_KEYS = {
    "anthropic_api_key": ("sk-ant-api03-{W93}AA", "sk-ant-oat01-{W90}", "sk-ant-admin01-{W93}AA"),
    "cerebras_api_key": ("csk-{A48}",),
    "coze_access_token": ("pat_{A64}",),
    "elevenlabs_api_key": ("sk_{H48}",),
    "fireworks_api_key": ("fw_{A24}",),
    "google_api_key": ("AIza{W35}", "AIzaSy{W33}", "AQ.Ab8{W48}"),
    "google_oauth_secret": ("GOCSPX-{W28}",),
    "google_oauth_token": ("ya29.{W120}", "1//0{W60}"),
    "groq_api_key": ("gsk_{A52}",),
    "huggingface_token": ("hf_{C34}", "api_org_{C34}"),
    "jina_api_key": ("jina_{W60}",),
    "langfuse_secret_key": ("sk-lf-{H8}-{H4}-{H4}-{H4}-{H12}",),
    "langsmith_api_key": ("lsv2_pt_{H32}_{H10}", "lsv2_sk_{H32}_{H10}", "ls__{H32}"),
    "llamacloud_api_key": ("llx-{A48}",),
    "nvidia_api_key": ("nvapi-{W64}",),
    "openai_api_key_sk": (
        "sk-{A48}", "sk-{A20}T3BlbkFJ{A20}", "sk-proj-{W156}", "sk-svcacct-{W60}",
        "sk-{H32}", "sk-{L48}", "sk-THIS_SHOULD_BE_REDACTED", "sk-THIS-SHOULD-BE-REDACTED",
        "sk-THIS_SHOULD_BE_REDACTED_0123456789abcdef", "sk-thisisaverysecretkey123456",
    ),
    "openai_session_sess": ("sess-{A40}",),
    "openrouter_api_key": ("sk-or-v1-{H64}",),
    "perplexity_api_key": ("pplx-{A48}",),
    "pinecone_api_key": ("pcsk_{A6}_{A60}",),
    "replicate_api_token": ("r8_{A37}",),
    "tavily_api_key": ("tvly-dev-{A32}",),
    "together_api_key": ("tgp_v1_{W43}",),
    "xai_api_key": ("xai-{A80}",),
}  # fmt: skip

_CHINESE_VENDORS = {
    "dingtalk_secret": ("SEC{H64}",),
    "alibaba_access_key_id": ("LTAI5t{A18}", "LTAI{A12}"),
    "qianfan_access_key": ("ALTAK-{A21}",),
    "qianfan_api_key": ("bce-v3/ALTAK-{A21}/{H40}",),
    "tencent_secret_id": ("AKID{A32}",),
    "volcengine_access_key": ("AKLT{A44}",),
    "zhipu_api_key": ("{H32}.{A16}", "{H32}.4zxVeMopBortZVTa"),
}

_CODE_HOSTS = {
    "atlassian_api_token": ("ATATT3x{W180}",),
    "bitbucket_app_password": ("ATBB{A32}",),
    "docker_token": ("dckr_pat_{W27}",),
    "github_fine_grained_pat": ("github_pat_{A22}_{A59}",),
    "github_token_gho": ("gho_{A36}", "gho_THIS_SHOULD_BE_REDACTED"),
    "github_token_ghp": ("ghp_{A36}",),
    "github_token_ghr": ("ghr_{A76}",),
    "github_token_ghs": ("ghs_{A36}",),
    "github_token_ghu": ("ghu_{A36}",),
    "gitlab_runner_token": ("GR1348941{W20}",),
    "gitlab_token": (
        "glpat-{W20}", "glptt-{H40}", "gldt-{W20}", "glrt-{W20}", "glcbt-{A2}_{W20}",
        "glpat-{W27}.01.{A9}",
    ),
    "linear_api_key": ("lin_api_{A40}",),
    "linear_oauth_token": ("lin_oauth_{H64}",),
    "npm_token": ("npm_{A36}", "npm_2VzYwk1ruDzduMmYm5q549cWsFUjAvkhHenp"),
    "pypi_token": ("pypi-AgEIcHlwaS5vcmc{W150}",),
    "rubygems_api_key": ("rubygems_{H48}",),
}  # fmt: skip

_SERVICES = {
    "age_secret_key": ("AGE-SECRET-KEY-1{U58}",),
    "airtable_token": ("pat{A14}.{H64}",),
    "buildkite_token": ("bkua_{H40}",),
    "contentful_token": ("CFPAT-{W43}",),
    "discord_bot_token": ("M{A23}.{W6}.{W27}", "N{W25}.{W6}.{W38}"),
    "discord_mfa_token": ("mfa.{W84}",),
    "doppler_token": ("dp.pt.{A43}",),
    "facebook_access_token": ("EAACEdEose0cBA{A120}",),
    "figma_token": ("figd_{W40}",),
    "grafana_token": ("glsa_{A32}_{H8}", "glc_{B80}"),
    "heroku_api_key": ("HRKU-{W60}",),
    "hubspot_token": ("pat-na1-{H8}-{H4}-{H4}-{H4}-{H12}",),
    "mailchimp_api_key": ("{H32}-us12",),
    "mailgun_api_key": ("key-{H32}",),
    "netlify_token": ("nfp_{A40}",),
    "newrelic_key": ("NRAK-{U27}",),
    "notion_token": ("ntn_{D11}{A35}", "secret_{A43}"),
    "onepassword_token": ("ops_eyJ{W250}",),
    "planetscale_token": ("pscale_tkn_{W43}", "pscale_pw_{W43}"),
    "postman_api_key": ("PMAK-{H24}-{H34}",),
    "prefect_token": ("pnu_{A36}",),
    "pulumi_token": ("pul-{H40}",),
    "sendgrid_api_key": ("SG.{W22}.{W43}",),
    "sentry_token": ("sntrys_{W120}", "sntryu_{H64}"),
    "shopify_token": ("shpat_{H32}", "shpca_{H32}", "shppa_{H32}", "shpss_{H32}"),
    "slack_app_token": ("xapp-1-A{U10}-{D13}-{H64}",),
    "slack_token": (
        "xoxb-{D12}-{D13}-{A24}", "xoxp-{D12}-{D12}-{D13}-{H32}", "xoxe.xoxp-1-{A146}",
        "xoxa-2-{D12}-{H32}", "xoxr-{D12}-{A24}", "xoxs-{D12}-{A24}",
    ),
    "square_token": ("sq0atp-{W22}", "sq0csp-{W43}"),
    "stripe_secret_key": ("sk_live_{A24}", "sk_test_51{A97}", "rk_live_{A24}"),
    "stripe_webhook_secret": ("whsec_{A32}",),
    "supabase_token": ("sbp_{H40}", "sb_secret_{W31}"),
    "tailscale_key": ("tskey-auth-{A12}-{A32}",),
    "telegram_bot_token": ("{D10}:AA{W33}", "{D9}:{W35}", "bot{D10}:AA{W33}"),
    "twilio_key": ("SK{H32}", "AC{H32}"),
    "dify_api_key": ("app-{A24}",),
    "dropbox_access_token": ("sl.B{W120}",),
    "fastgpt_api_key": ("fastgpt-{A48}",),
    "matrix_access_token": ("syt_{A8}_{C20}_{A6}",),
    "vk_access_token": ("vk1.a.{W120}",),
    "yandex_oauth_token": ("y0_{W55}",),
    "wallet_private_key": ("xprv{K107}", "zprv{K107}"),
    "twitter_bearer_token": ("AAAAAAAAAAAAAAAAAAAAA{A80}",),
}  # fmt: skip

_CLOUDS = {
    "aws_access_key_id": ("AKIA{U16}", "ASIA{U15}7", "AKIAIOSFODNN7EXAMPLE"),
    "aws_bedrock_api_key": ("ABSK{B128}",),
    "azure_api_key": ("{A52}JQQJ99{A26}",),
    "azure_client_secret": ("{A3}8Q~{W34}",),
    "databricks_token": ("dapi{H32}", "dapi{H32}-2"),
    "digitalocean_spaces_key": ("DO00{U16}",),
    "digitalocean_token": ("dop_v1_{H64}", "doo_v1_{H64}", "dor_v1_{H64}"),
    "terraform_token": ("{A14}.atlasv1.{W67}",),
    "vault_token": ("hvs.{W95}", "hvb.{W138}", "s.{A24}"),
}

VENDORS = {
    "AI": _AI_KEYS,
    "Chinese AI and clouds": _CHINESE_VENDORS,
    "code hosts": _CODE_HOSTS,
    "services": _SERVICES,
    "clouds": _CLOUDS,
}
"""Templates of keys by pattern id, by kind of vendor."""


def fake_secret(template: str, seed: int = 7) -> str:
    """Fill every `{A36}` with so many characters of the alphabet; same template, same text."""
    chance = random.Random(f"{template}{seed}")
    return _BLANK.sub(lambda blank: _letters(chance, blank[1], int(blank[2])), template)


def _letters(chance: random.Random, alphabet: str, length: int) -> str:
    """Begin and end with a letter or digit: after `-` or `_` the end of a secret is not clear."""
    middle = "".join(chance.choice(ALPHABETS[alphabet]) for _ in range(max(0, length - 2)))
    edges = [char for char in ALPHABETS[alphabet] if char.isalnum()]
    return f"{chance.choice(edges)}{middle}{chance.choice(edges)}"[:length]


LABELLED_VALUES = tuple(
    fake_secret(template) for template in ("{A12}", "{A20}", "{H32}", "{B40}", "Kd83!{A6}pL")
)
"""Secrets that no vendor's shape gives away, only what stands before them."""


def wrong_redactions(rows: Iterable[tuple[str, str, str]]) -> list[str]:
    """Describe every text that is not redacted as expected; a row is text, result, pattern id.

    The evidence must count all placeholders of the result under that one pattern id; with an
    empty id there must be no evidence.
    """
    wrong: list[str] = []
    for text, expected, pattern_id in rows:
        redacted, evidence = redact(text)
        found = [(piece.pattern_id, piece.match_count) for piece in evidence]
        counted = [(pattern_id, expected.count(PLACEHOLDER))] if pattern_id else []
        if (redacted, found) != (expected, counted):
            wrong.append(f"{text!r} became {redacted!r} by {found}, not {expected!r} by {counted}")
    return wrong


def vendor_templates(vendors: Iterable[str] = VENDORS) -> Iterator[tuple[str, str]]:
    """List the pattern id and the template of every key of these kinds of vendors."""
    for vendor in vendors:
        for pattern_id, templates in VENDORS[vendor].items():
            for template in templates:
                yield pattern_id, template


def _harmless_text() -> dict[str, list[str]]:
    lines = Path(__file__).with_name("harmless_text.txt").read_text(encoding="utf-8").splitlines()
    by_heading: dict[str, list[str]] = {}
    heading = ""
    for line in lines:
        if line.startswith("## "):
            heading = line.removeprefix("## ")
        elif line:
            by_heading.setdefault(heading, []).append(line)
    return by_heading


HARMLESS = _harmless_text()
"""Lines that only look like a secret or a path, by heading."""
HARMLESS_LINES = [line for lines in HARMLESS.values() for line in lines]

_PIECES = (
    "sk-", fake_secret("sk-{A20}"), fake_secret("AKIA{U16}"), fake_secret("ghp_{A36}"), "password", "=", ": ",
    "：", "密码", "是", "/home/lisi", "/x", "C:\\", "\\", "Users\\", "li ", ".md", " ", "\n", '"', "'",
    PLACEHOLDER, "***", "REDACTED", "eyJhbGciOiJIUzI1NiJ9", ".", "eyJzdWIiOiIx", "://", "@", "user:",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", fake_secret("{B40}"), "token", "key",
    "Bearer ", "Authorization", "cookie: ", "session=", fake_secret("{A9}"), "，", "。", "a", "1", "-", "_",
    "\\n", "\\u94a5", "\u200b", "%3D", "file:///", "\\\\srv\\share", "&", "?", "--", fake_secret("{H32}"),
    fake_secret("{D8}"), " -p", " -u", "mysql", "<", ">", "|", "(", ")", "é", "Ｓ", "ｋ", "－", "+",
)  # fmt: skip
MOSAICS = st.lists(st.sampled_from(_PIECES), max_size=16).map("".join)
"""Texts of fragments that rules look for, joined in any order."""
