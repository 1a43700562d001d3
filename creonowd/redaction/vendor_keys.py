"""Keys and tokens with the prefix of a vendor: of AI, code hosts, chats, services and clouds."""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import (
    ALNUM,
    END,
    HEX,
    NOTHING,
    UUID,
    WORD,
    Judge,
    MatchSpan,
    RedactionRule,
    short_key,
    token,
    unless_a_name,
    unless_stand_in,
    unless_words,
    whole,
    with_head,
)
from creonowd.redaction.shape import has_mixture, is_random, is_stand_in, is_words


def _aws_key_id(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Spare a continent in capitals; with a digit, or after `AKIA`, it is a key."""
    shouted = match[1].isalpha() and not match[0].startswith("AKIA") and is_words(match[1])
    return (
        NOTHING if shouted or is_stand_in(match[1]) else (match.span(), *_secret_after(match, 40))
    )


def _id_and_secret(length: int) -> Judge:
    """Take an id together with the secret that stands beside it."""
    return lambda match: (match.span(), *_secret_after(match, length))


def _secret_after(match: "re.Match[str]", length: int) -> Sequence[MatchSpan]:
    found = _SECRET_BESIDE[length].match(match.string, match.end())
    if found is None or not has_mixture(found[1]) or is_words(found[1]) or found[1].islower():
        return NOTHING
    return (found.span(1),)


_SECRET_BESIDE = {
    length: re.compile(
        rf"(?=[^A-Za-z0-9]){gap}(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{{{length}}})(?![A-Za-z0-9/+])"
    )
    for length, gap in (
        (30, r"[^\n]{0,32}?\n?[^\n]{0,16}?"),
        (32, r"[^\n]{0,32}?\n?[^\n]{0,16}?"),
        # Nothing else has forty such characters, so that it may stand in the next sentence.
        (40, r"[^\n]{0,80}?(?:\r?\n[^\n]{0,80}?){0,2}?"),
    )
}


def _random_segments(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the rest of a webhook's path from the first segment that nobody could guess."""
    head = match.string[max(0, match.start() - 80) : match.start()]
    if "://" not in head + match[0] or re.search(r"\s", head.rpartition("://")[2]):
        return NOTHING
    place = match.start("path")
    for segment in match["path"].split("/")[1:]:
        place += 1
        if _UUID.match(segment) or is_random(segment, 16):
            return ((place, match.end("path")),)
        place += len(segment)
    return NOTHING


def _webhook_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return NOTHING if is_stand_in(match[1]) or match[1].isalpha() else (match.span(1),)


_UUID = re.compile(UUID)


def _named_short_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take `sk-test` behind the name of a key."""
    head = match.string[max(0, match.start() - 24) : match.start()]
    if is_stand_in(match[1]) or not _KEY_NAME_BEFORE.search(head):
        return NOTHING
    return (match.span(1),)


_KEY_NAME_BEFORE = re.compile(r"(?i:key|token|secret)[\"']?[ ]{0,2}\Z")


def _random_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    body = match[0]
    sayable = not has_mixture(body) or is_words(body) or is_stand_in(body)
    return NOTHING if sayable else (match.span(),)


def _github(kind: str) -> RedactionRule:
    return RedactionRule(
        f"github_token_{kind}",
        (f"{kind}_",),
        rf"{kind}_([A-Za-z0-9]{{12,15}}+(?![A-Za-z0-9_])|[A-Za-z0-9_]{{16,255}}+)",
        unless_a_name,
        wraps=True,
    )


AI_KEYS = (
    token("anthropic_api_key", "sk-ant-", rf"{WORD}{{20,400}}+"),
    token("openrouter_api_key", "sk-or-", rf"(?:v\d-)?{ALNUM}{{32,128}}+"),
    token("langfuse_secret_key", "sk-lf-", UUID),
    RedactionRule(
        "openai_api_key_sk", ("sk-",), rf"sk-({WORD}{{16,400}}+)", unless_a_name, wraps=True
    ),
    RedactionRule(
        "openai_api_key_sk", ("sk-",), rf"sk-({WORD}{{8,15}}+){END}", short_key, wraps=True
    ),
    RedactionRule(
        "openai_api_key_sk",
        ("=sk-", '="sk-', "='sk-", ": sk-", ':"sk-', ': "sk-'),
        rf"[=:][ ]?[\"']?(sk-{WORD}{{3,15}}+){END}",
        _named_short_key,
        bounded=False,
    ),
    RedactionRule(
        "google_api_key", ("aiza",), rf"AIza({WORD}{{8,34}}+){END}", short_key, wraps=True
    ),
    RedactionRule(
        "huggingface_token", ("hf_",), rf"hf_({ALNUM}{{8,29}}+){END}", short_key, wraps=True
    ),
    token("yandex_oauth_token", "y0_", rf"{WORD}{{40,80}}+"),
    token("vk_access_token", "vk1.a.", rf"{WORD}{{40,240}}+"),
    token("dropbox_access_token", "sl.B", rf"{WORD}{{40,240}}+"),
    token("dify_api_key", "app-", rf"{ALNUM}{{24}}"),
    token("fastgpt_api_key", "fastgpt-", rf"{ALNUM}{{32,64}}+"),
    token("matrix_access_token", "syt_", r"[A-Za-z0-9+/=]{2,64}_[A-Za-z]{20}_[A-Za-z0-9]{6}"),
    token("wallet_private_key", "xprv", r"[1-9A-HJ-NP-Za-km-z]{100,112}+"),
    token("wallet_private_key", "zprv", r"[1-9A-HJ-NP-Za-km-z]{100,112}+"),
    token("wallet_private_key", "nsec1", r"[02-9ac-hj-np-z]{58}"),
    token("openai_session_sess", "sess-", rf"{ALNUM}{{40}}"),
    token("google_api_key", "AIza", rf"{WORD}{{35,39}}+"),
    token("google_api_key", "AQ.", rf"Ab8{WORD}{{40,60}}+"),
    token("google_oauth_token", "ya29.", rf"{WORD}{{20,400}}+"),
    token("google_oauth_token", "1//0", rf"{WORD}{{40,120}}+"),
    token("google_oauth_secret", "GOCSPX-", rf"{WORD}{{24,40}}+"),
    token("huggingface_token", "hf_", rf"{ALNUM}{{30,42}}+"),
    token("huggingface_token", "api_org_", rf"{ALNUM}{{30,42}}+"),
    token("groq_api_key", "gsk_", rf"{ALNUM}{{40,64}}+"),
    token("xai_api_key", "xai-", rf"{ALNUM}{{60,128}}+"),
    token("perplexity_api_key", "pplx-", rf"{ALNUM}{{40,64}}+"),
    token("replicate_api_token", "r8_", rf"{ALNUM}{{30,48}}+"),
    token("langsmith_api_key", "lsv2_", rf"(?:pt|sk)_{HEX}{{32}}_{HEX}{{10}}"),
    token("langsmith_api_key", "ls__", rf"{HEX}{{32}}"),
    token("cerebras_api_key", "csk-", rf"{ALNUM}{{40,64}}+"),
    token("nvidia_api_key", "nvapi-", rf"{WORD}{{50,100}}+"),
    token("together_api_key", "tgp_v1_", rf"{WORD}{{30,80}}+"),
    token("fireworks_api_key", "fw_", rf"{ALNUM}{{20,40}}+"),
    token("jina_api_key", "jina_", rf"{WORD}{{40,80}}+"),
    token("tavily_api_key", "tvly-", rf"{WORD}{{20,64}}+"),
    token("pinecone_api_key", "pcsk_", rf"{ALNUM}{{4,10}}_{ALNUM}{{40,80}}+"),
    token("elevenlabs_api_key", "sk_", rf"{HEX}{{48}}"),
    token("llamacloud_api_key", "llx-", rf"{ALNUM}{{40,64}}+"),
    token("coze_access_token", "pat_", rf"{ALNUM}{{60,68}}+"),
    token("qianfan_api_key", "bce-v3/ALTAK", rf"-?{ALNUM}{{16,32}}/{HEX}{{32,64}}+"),
    token("qianfan_access_key", "ALTAK", rf"-?{ALNUM}{{16,40}}+"),
    RedactionRule(
        "tencent_secret_id", ("akid",), rf"AKID(?!x{{4}}){ALNUM}{{28,40}}+{END}", _id_and_secret(32)
    ),
    RedactionRule(
        "alibaba_access_key_id",
        ("ltai",),
        rf"LTAI(?!x{{4}}){ALNUM}{{12,26}}+{END}",
        _id_and_secret(30),
    ),
    token("volcengine_access_key", "AKLT", rf"{ALNUM}{{30,70}}+"),
    RedactionRule(
        "zhipu_api_key",
        (),
        rf"\.{ALNUM}{{16}}{END}",
        with_head(f"{HEX}{{32}}", 32, sufficient=True),
    ),
)

CODE_HOSTS = (
    *map(_github, ("ghp", "gho", "ghu", "ghs", "ghr")),
    token("github_fine_grained_pat", "github_pat_", r"[A-Za-z0-9_]{36,255}+"),
    RedactionRule(
        "github_fine_grained_pat",
        ("github_pat_",),
        rf"github_pat_([A-Za-z0-9_]{{8,35}}+){END}",
        short_key,
    ),
    RedactionRule(
        "gitlab_token", ("glpat-",), rf"glpat-({WORD}{{8,19}}+){END}", short_key, wraps=True
    ),
    RedactionRule("npm_token", ("npm_",), rf"npm_({ALNUM}{{8,29}}+){END}", short_key, wraps=True),
    RedactionRule(
        "gitlab_token",
        (
            "glpat-",
            "glptt-",
            "gldt-",
            "glrt-",
            "glrtr-",
            "glcbt-",
            "glft-",
            "glsoat-",
            "glimt-",
            "glagent-",
            "gloas-",
            "glffct-",
        ),
        rf"gl[a-z]{{2,5}}-(?:t\d_)?{WORD}{{20,300}}+(?:\.{WORD}{{2,40}}+){{0,3}}",
        _random_key,
    ),
    token("gitlab_runner_token", "GR1348941", rf"{WORD}{{20,30}}+"),
    token("npm_token", "npm_", rf"{ALNUM}{{30,48}}+"),
    token("pypi_token", "pypi-", rf"{WORD}{{50,600}}+"),
    token("rubygems_api_key", "rubygems_", rf"{HEX}{{48}}"),
    token("docker_token", "dckr_pat_", rf"{WORD}{{20,60}}+"),
    token("docker_token", "dckr_oat_", rf"{WORD}{{20,60}}+"),
    token("atlassian_api_token", "ATATT3", r"[A-Za-z0-9_=-]{50,400}+"),
    token("atlassian_api_token", "ATCTT3", r"[A-Za-z0-9_=-]{50,400}+"),
    token("bitbucket_app_password", "ATBB", rf"{ALNUM}{{30,64}}+"),
    token("linear_api_key", "lin_api_", rf"{ALNUM}{{30,64}}+"),
    token("linear_oauth_token", "lin_oauth_", rf"{ALNUM}{{40,80}}+"),
)

CHATS = (
    RedactionRule(
        "slack_token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xoxc-", "xoxd-"),
        r"xox[a-z][.-](?:xox[bp]-)?[A-Za-z0-9%/+=-]{20,400}+",
        _random_key,
    ),
    RedactionRule(
        "slack_token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxs-"),
        rf"xox[abps]-([A-Za-z0-9-]{{8,19}}+){END}",
        short_key,
    ),
    token("slack_app_token", "xapp-", r"\d-[A-Z0-9]{6,20}-\d{8,16}-[A-Za-z0-9]{32,128}+"),
    RedactionRule(
        "slack_webhook_url",
        ("hooks.slack.com/",),
        rf"hooks\.slack\.com/(?:services|workflows|triggers)/({ALNUM}{{6,20}}/[A-Za-z0-9/]{{16,120}}+)",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "discord_webhook_url",
        ("/api/webhooks/",),
        rf"/api/webhooks/(\d{{15,21}}/{WORD}{{50,100}}+)",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "discord_bot_token",
        (),
        rf"\.{WORD}{{5,8}}\.{WORD}{{24,48}}+",
        with_head(f"[MNO]{WORD}{{22,28}}", 30),
    ),
    token("discord_mfa_token", "mfa.", rf"{WORD}{{80,96}}+"),
    RedactionRule(
        "telegram_bot_token",
        tuple(f"{digit}:" for digit in range(10)),
        rf"[0-9]:{WORD}{{34,36}}+(?!{WORD})",
        with_head("(?:bot)?[0-9]{7,11}", 15),
        bounded=False,
    ),
    token("dingtalk_secret", "SEC", rf"{HEX}{{40,80}}+"),
    RedactionRule(
        "feishu_webhook_url",
        ("/bot/v2/hook/",),
        rf"/bot/v2/hook/({WORD}{{20,64}}+)",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "wecom_webhook_url",
        ("/cgi-bin/webhook/send?key=",),
        rf"/cgi-bin/webhook/send\?key=({WORD}{{20,64}}+)",
        unless_stand_in,
        bounded=False,
    ),
)

SERVICES = (
    RedactionRule(
        "stripe_secret_key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        rf"[sr]k_(?:live|test)_{ALNUM}{{16,255}}+",
        _random_key,
    ),
    RedactionRule(
        "stripe_secret_key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        rf"[sr]k_(?:live|test)_({ALNUM}{{7,15}}+){END}",
        short_key,
    ),
    RedactionRule(
        "stripe_secret_key",
        ("pk_test_", "pk_live_"),
        rf"pk_(?:test|live)_({ALNUM}{{8,120}}+){END}",
        short_key,
    ),
    RedactionRule(
        "shopify_token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        rf"shp(?:at|ca|pa|ss)_({ALNUM}{{8,64}}+){END}",
        short_key,
    ),
    RedactionRule(
        "digitalocean_token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        rf"do[opr]_v1_({ALNUM}{{8,64}}+){END}",
        short_key,
    ),
    RedactionRule("pypi_token", ("pypi-",), rf"pypi-({WORD}{{8,49}}+){END}", short_key),
    RedactionRule(
        "sendgrid_api_key", ("sg.",), rf"SG\.({WORD}{{8,64}}(?:\.{WORD}{{4,64}})?){END}", short_key
    ),
    RedactionRule(
        "stripe_webhook_secret", ("whsec_",), rf"whsec_({ALNUM}{{8,23}}+){END}", short_key
    ),
    token("stripe_webhook_secret", "whsec_", r"[A-Za-z0-9+/]{24,80}+={0,2}"),
    token("sendgrid_api_key", "SG.", rf"{WORD}{{16,32}}\.{WORD}{{32,64}}+"),
    RedactionRule(
        "twilio_key",
        tuple(f"{kind}{digit}" for kind in ("ac", "sk") for digit in "0123456789abcdef"),
        rf"(?:AC|SK){HEX}{{32}}{END}",
        whole,
    ),
    token("notion_token", "ntn_", rf"{ALNUM}{{40,64}}+"),
    token("notion_token", "secret_", rf"{ALNUM}{{40,50}}+"),
    RedactionRule(
        "shopify_token",
        ("shpat_", "shpca_", "shppa_", "shpss_", "shpua_", "shptka_"),
        rf"shp(?:at|ca|pa|ss|ua|tka)_[0-9a-fA-F]{{32,64}}+{END}",
        whole,
    ),
    token("mailgun_api_key", "key-", rf"{HEX}{{32}}"),
    RedactionRule(
        "mailchimp_api_key",
        ("-us",),
        rf"-us[0-9]{{1,2}}{END}",
        with_head(f"{HEX}{{32}}", 32),
        bounded=False,
    ),
    token("postman_api_key", "PMAK-", rf"{HEX}{{24}}-{HEX}{{34}}"),
    token("airtable_token", "pat", rf"{ALNUM}{{14}}\.{HEX}{{64}}"),
    token("figma_token", "figd_", rf"{WORD}{{30,64}}+"),
    token("square_token", "sq0atp-", rf"{WORD}{{20,40}}+"),
    token("square_token", "sq0csp-", rf"{WORD}{{40,60}}+"),
    token("square_token", "EAAA", rf"{WORD}{{56,64}}+"),
    token("newrelic_key", "NRAK-", rf"{ALNUM}{{27}}"),
    token("sentry_token", "sntrys_", r"[A-Za-z0-9_=+/-]{40,400}+"),
    token("sentry_token", "sntryu_", rf"{HEX}{{64}}"),
    token("supabase_token", "sbp_", rf"{HEX}{{40}}"),
    token("supabase_token", "sb_secret_", rf"{WORD}{{20,64}}+"),
    token("netlify_token", "nfp_", rf"{ALNUM}{{36,48}}+"),
    token(
        "planetscale_token",
        "pscale_",
        r"(?:tkn|pw|oauth)_(?:[A-Za-z0-9_=-]|\.(?=[A-Za-z0-9])){30,80}+",
    ),
    token(
        "doppler_token",
        "dp.",
        r"(?:pt|st|ct|sa|scim|audit)\.(?:[A-Za-z0-9_-]|\.(?=[A-Za-z0-9])){40,80}+",
    ),
    token("grafana_token", "glsa_", rf"{ALNUM}{{32}}_{HEX}{{8}}"),
    token("grafana_token", "glc_", r"[A-Za-z0-9+/=]{32,400}+"),
    token("pulumi_token", "pul-", rf"{HEX}{{40}}"),
    token("prefect_token", "pnu_", rf"{ALNUM}{{36}}"),
    token("heroku_api_key", "HRKU-", rf"{WORD}{{30,70}}+"),
    token("hubspot_token", "pat-", rf"(?:na|eu)\d-{UUID}"),
    token("age_secret_key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{36,74}+"),
    token("onepassword_token", "ops_", rf"eyJ{WORD}{{100,1000}}+"),
    token("contentful_token", "CFPAT-", rf"{WORD}{{40,50}}+"),
    token("tailscale_key", "tskey-", rf"{WORD}{{20,80}}+"),
    token("buildkite_token", "bkua_", rf"{HEX}{{40}}"),
    token("facebook_access_token", "EAACEdEose0cBA", rf"{ALNUM}{{20,300}}+"),
    token("twitter_bearer_token", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{40,120}+"),
)

CLOUDS = (
    RedactionRule(
        "aws_access_key_id",
        ("akia", "asia", "abia", "acca"),
        rf"A(?:KIA|SIA|BIA|CCA)([A-Z0-9]{{16}}){END}",
        _aws_key_id,
    ),
    RedactionRule(
        "aws_access_key_id", ("akia",), rf"AKIA([A-Z0-9]{{12,15}}){END}", short_key, wraps=True
    ),
    token("aws_bedrock_api_key", "ABSK", r"[A-Za-z0-9+/]{100,200}+={0,2}"),
    RedactionRule(
        "azure_client_secret",
        tuple(f"{digit}q~" for digit in range(10)),
        r"[0-9]Q~(?:[A-Za-z0-9_~-]|\.(?=[A-Za-z0-9_~-])){31,36}+",
        with_head("[A-Za-z0-9_~.-]{3}", 3),
        bounded=False,
    ),
    RedactionRule(
        "azure_api_key",
        ("jqqj99",),
        rf"JQQJ99{ALNUM}{{20,30}}+",
        with_head(f"{ALNUM}{{52}}", 52),
        bounded=False,
    ),
    RedactionRule(
        "digitalocean_token",
        ("dop_v1_", "doo_v1_", "dor_v1_"),
        rf"do[opr]_v1_({HEX}{{64}}){END}",
        unless_words,
    ),
    token("digitalocean_spaces_key", "DO00", r"[A-Z0-9]{16}"),
    token("databricks_token", "dapi", rf"{HEX}{{32}}(?:-\d{{1,2}})?"),
    RedactionRule(
        "vault_token",
        ("hvs.", "hvb.", "hvr."),
        rf"hv[sbr]\.({WORD}{{20,400}}+)",
        unless_words,
    ),
    token("vault_token", "s.", rf"{ALNUM}{{24}}"),
    RedactionRule(
        "terraform_token",
        (".atlasv1.",),
        rf"\.atlasv1\.{WORD}{{50,80}}+",
        with_head(f"{ALNUM}{{14}}", 14),
        bounded=False,
    ),
)

OTHER_WEBHOOKS = (
    RedactionRule(
        "webhook_url",
        ("hook",),
        r"hook[A-Za-z0-9.-]{0,60}(?P<path>(?:/[\w.@~-]{1,160}){1,8})",
        _random_segments,
        bounded=False,
    ),
    RedactionRule(
        "webhook_url",
        ("hooks/catch/", "/with/key/", "ntfy.sh/", ".ftqq.com/", "api.day.app/"),
        r"(?:hooks/catch/(?=[0-9]{4,12}/)|/with/key/|ntfy\.sh/(?=[\w-]*[0-9])(?=[\w-]{12})|\.ftqq\.com/(?=SCT|SCU|sctp)|api\.day\.app/)"
        r"([A-Za-z0-9_-]{7,64}+(?:/[A-Za-z0-9]{5,16}(?=[/\s?\"']|\Z)|))",
        _webhook_key,
        bounded=False,
    ),
)

_PRIVATE_STEPS = (
    "private", "privat", "privé", "prive", "privado", "secret", "geheim", "hidden", "unlisted", "invite", "invitation", "einladung", "magic",
    "magic-link", "magiclink", "token", "reset", "verify", "confirm", "ical", "webcal", "public-calendars", "share-link",
)  # fmt: skip
_PRIVATE_WORDS = (
    "private link", "private url", "private calendar", "private feed", "private address", "secret link", "secret url", "secret address", "magic link",
    "invite link", "do not share", "don't share", "geheime adresse", "geheimer link", "privater link", "private adresse", "nicht weitergeben",
    "nicht teilen", "lien privé", "lien secret", "adresse privée", "adresse secrète", "ne pas partager", "enlace privado", "enlace secreto",
    "dirección privada", "no compartir", "link privato", "link segreto", "indirizzo segreto", "non condividere", "link privado", "link secreto",
    "não compartilhar", "privélink", "geheime link", "niet delen", "секретная ссылка", "приватная ссылка", "не делиться",
    "私密链接", "私有链接", "私密地址", "私人链接", "私有地址", "勿外传", "別外傳", "别外传", "不要外传", "非公開url", "非公開リンク", "共有しない", "비공개 링크", "비공개 주소", "공유 금지",
)  # fmt: skip


def _private_address(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the steps of an address that nobody could guess, if the address says that it is private."""
    text, start = match.string, match.start()
    if match["words"] is None:
        head = text[max(0, start - 160) : start]
        if "://" not in head or re.search(r"[\s\"'<>]", head.rpartition("://")[2]):
            return NOTHING
    steps = match["address"]
    first = match.start("address")
    return [
        (first + step.start(1), first + step.end(1))
        for step in re.finditer(r"(?:(?:private|secret|token)-)?([A-Za-z0-9_-]{10,})", steps)
        if _is_unguessable(step[1])
    ]


def _is_unguessable(step: str) -> bool:
    has_digit = any(map(str.isdigit, step))
    return has_digit and (is_random(step, 12) or _UUID.match(step) is not None)


def _stream_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_random(match[1], 10) else NOTHING


PRIVATE_ADDRESSES = (
    RedactionRule(
        "url_credentials",
        ("rtmp://", "rtmps://"),
        r"(?i)rtmps?://[^\s/]{1,120}/[\w-]{1,32}/([A-Za-z0-9_-]{10,80}+)",
        _stream_key,
    ),
    RedactionRule(
        "url_credentials",
        (*(f"/{step}{sign}" for step in _PRIVATE_STEPS for sign in "/-?"), *_PRIVATE_WORDS),
        rf"(?iu:(?P<words>{'|'.join(map(re.escape, _PRIVATE_WORDS))})[^\n]{{0,60}}?https?://[^\s\"'<>/]{{1,80}}|/(?:{'|'.join(sorted(_PRIVATE_STEPS, key=len, reverse=True))})(?=[/?-]))"
        r"(?P<address>[/?-][^\s\"'<>，。）)]{8,300})",
        _private_address,
        bounded=False,
    ),
)

RULES = AI_KEYS + CODE_HOSTS + CHATS + SERVICES + CLOUDS + OTHER_WEBHOOKS + PRIVATE_ADDRESSES
