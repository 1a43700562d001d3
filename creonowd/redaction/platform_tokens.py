"""The tokens of code hosts, package registries and the services a writer's tools talk to.

Knows prefixes and lengths; knows nothing of clouds and AI vendors.
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
    first_group,
    token,
    unless_a_name,
    whole,
    with_head,
)
from creonowd.redaction.shape import has_mixture, is_stand_in, is_words

UUID = f"{HEX}{{8}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{4}}-{HEX}{{12}}"


def _mixed(match: "re.Match[str]") -> Sequence[Span]:
    body = match[0]
    sayable = not has_mixture(body) or is_words(body) or is_stand_in(body)
    return NOTHING if sayable else (match.span(),)


def _github(kind: str) -> Rule:
    return Rule(
        f"github_token_{kind}", (f"{kind}_",), rf"{kind}_([A-Za-z0-9_]{{16,255}}+)", unless_a_name
    )


CODE_HOSTS = (
    *map(_github, ("ghp", "gho", "ghu", "ghs", "ghr")),
    token("github_fine_grained_pat", "github_pat_", r"[A-Za-z0-9_]{36,255}+"),
    Rule(
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
        _mixed,
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
    Rule(
        "slack_token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.", "xoxc-", "xoxd-"),
        r"xox[a-z][.-](?:xox[bp]-)?[A-Za-z0-9%/+=-]{20,400}+",
        _mixed,
    ),
    token("slack_app_token", "xapp-", r"\d-[A-Z0-9]{6,20}-\d{8,16}-[A-Za-z0-9]{32,128}+"),
    Rule(
        "slack_webhook_url",
        ("hooks.slack.com/",),
        rf"hooks\.slack\.com/(?:services|workflows|triggers)/({ALNUM}{{6,20}}/[A-Za-z0-9/]{{16,120}}+)",
        first_group,
        bounded=False,
    ),
    Rule(
        "discord_webhook_url",
        ("/api/webhooks/",),
        rf"/api/webhooks/(\d{{15,21}}/{WORD}{{50,100}}+)",
        first_group,
        bounded=False,
    ),
    Rule(
        "discord_bot_token",
        (),
        rf"\.{WORD}{{5,8}}\.{WORD}{{24,48}}+",
        with_head(f"[MNO]{WORD}{{22,28}}", 30),
    ),
    token("discord_mfa_token", "mfa.", rf"{WORD}{{80,96}}+"),
    Rule(
        "telegram_bot_token",
        tuple(f"{digit}:" for digit in range(10)),
        rf"[0-9]:{WORD}{{34,36}}+(?!{WORD})",
        with_head("(?:bot)?[0-9]{7,11}", 15),
        bounded=False,
    ),
    Rule(
        "feishu_webhook_url",
        ("/bot/v2/hook/",),
        rf"/bot/v2/hook/({WORD}{{20,64}}+)",
        first_group,
        bounded=False,
    ),
    Rule(
        "wecom_webhook_url",
        ("/cgi-bin/webhook/send?key=",),
        rf"/cgi-bin/webhook/send\?key=({WORD}{{20,64}}+)",
        first_group,
        bounded=False,
    ),
)

SERVICES = (
    Rule(
        "stripe_secret_key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_"),
        rf"[sr]k_(?:live|test)_{ALNUM}{{16,255}}+",
        _mixed,
    ),
    token("stripe_webhook_secret", "whsec_", r"[A-Za-z0-9+/]{24,80}+={0,2}"),
    token("sendgrid_api_key", "SG.", rf"{WORD}{{16,32}}\.{WORD}{{32,64}}+"),
    Rule(
        "twilio_key",
        tuple(f"{kind}{digit}" for kind in ("ac", "sk") for digit in "0123456789abcdef"),
        rf"(?:AC|SK){HEX}{{32}}{END}",
        whole,
    ),
    token("notion_token", "ntn_", rf"{ALNUM}{{40,64}}+"),
    token("notion_token", "secret_", rf"{ALNUM}{{40,50}}+"),
    Rule(
        "shopify_token",
        ("shpat_", "shpca_", "shppa_", "shpss_", "shpua_", "shptka_"),
        rf"shp(?:at|ca|pa|ss|ua|tka)_[0-9a-fA-F]{{32,64}}+{END}",
        whole,
    ),
    token("mailgun_api_key", "key-", rf"{HEX}{{32}}"),
    Rule(
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
    token("age_secret_key", "AGE-SECRET-KEY-1", r"[0-9A-Z]{58}"),
    token("onepassword_token", "ops_", rf"eyJ{WORD}{{100,1000}}+"),
    token("contentful_token", "CFPAT-", rf"{WORD}{{40,50}}+"),
    token("tailscale_key", "tskey-", rf"{WORD}{{20,80}}+"),
    token("buildkite_token", "bkua_", rf"{HEX}{{40}}"),
    token("facebook_access_token", "EAACEdEose0cBA", rf"{ALNUM}{{20,300}}+"),
    token("twitter_bearer_token", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{40,120}+"),
)


RULES = CODE_HOSTS + CHATS + SERVICES
