"""Every vendor's token is found wherever it stands: one row of made-up examples per pattern id."""

import json

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from creonowd.redaction.rulebook import RULES
from tests.redaction.made_up import made_up

AI_KEYS = {
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

CHINESE_VENDORS = {
    "alibaba_access_key_id": ("LTAI5t{A18}", "LTAI{A12}"),
    "qianfan_access_key": ("ALTAK-{A21}",),
    "qianfan_api_key": ("bce-v3/ALTAK-{A21}/{H40}",),
    "tencent_secret_id": ("AKID{A32}",),
    "volcengine_access_key": ("AKLT{A44}",),
    "zhipu_api_key": ("{H32}.{A16}", "{H32}.4zxVeMopBortZVTa"),
}

CODE_HOSTS = {
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

SERVICES = {
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
    "twitter_bearer_token": ("AAAAAAAAAAAAAAAAAAAAA{A80}",),
}  # fmt: skip

CLOUDS = {
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

TOKENS = AI_KEYS | CHINESE_VENDORS | CODE_HOSTS | SERVICES | CLOUDS

SURROUNDINGS = (
    "{}",
    "密钥是{}，请勿外传。",
    "你把{}填进设置里就行",
    "My key is {}. Please rotate it tonight.",
    "“{}”他念道，声音越来越低。",
    "他念出「{}」然后沉默。",
    "《{}》【{}】（{}）",
    "| 服务 | {} | 2024-05-01 |",
    "provider:\n  thing: {}\n  region: cn-north-1\n",
    "先执行 `export X={}`，然后重启。",
    "client = Client('{}')  # 换成环境变量",
    "https://example.com/?q={}&lang=zh",
    "**{}** [{}] ({})",
    "{},{};{}\t{}\r\n{}",
    "é{}é",
    "\x1b[32m{}\x1b[0m",
)

EXAMPLES = [(name, template) for name, templates in TOKENS.items() for template in templates]


@pytest.mark.requirement("CN-047", "CN-049")
@pytest.mark.parametrize(("name", "template"), EXAMPLES)
def test_a_token_is_found_in_any_surroundings(name: str, template: str) -> None:
    secret = made_up(template)

    for around in SURROUNDINGS:
        text, evidence = redact(around.replace("{}", secret))

        assert text == around.replace("{}", PLACEHOLDER), around
        assert [piece.pattern_id for piece in evidence] == [name]


@pytest.mark.parametrize(("name", "template"), EXAMPLES)
def test_a_token_is_found_in_json_with_every_escape(name: str, template: str) -> None:
    secret = made_up(template)
    note = f"第一行\n{secret}\n密钥{secret}\t末行"

    for escaped in (
        json.dumps(note),
        json.dumps(note, ensure_ascii=False),
        json.dumps([json.dumps(note)]),
    ):
        text, evidence = redact(escaped)

        assert secret not in text
        assert text.count(PLACEHOLDER) == 2
        assert [piece.pattern_id for piece in evidence] == [name]


@pytest.mark.parametrize(("name", "template"), EXAMPLES)
def test_most_made_up_tokens_of_a_kind_are_found(name: str, template: str) -> None:
    """Random letters now and then look like words; that may cost one in hundreds, never more."""
    secrets = [made_up(template, seed) for seed in range(40)]

    missed = [secret for secret in secrets if secret in redact(f"见 {secret} 。").text]

    assert len(missed) <= 1, name


def test_every_pattern_has_an_example() -> None:
    elsewhere = {
        "access_key_pair", "authorization_header", "basic_credentials", "bearer_token",
        "command_line_password", "discord_webhook_url", "feishu_webhook_url", "file_url_abs_path",
        "json_web_token", "labelled_secret", "labelled_secret_zh", "private_key_pem",
        "private_key_putty", "request_signature", "session_cookie", "slack_webhook_url",
        "unc_abs_path", "unix_abs_path", "url_credentials", "wecom_webhook_url", "windows_abs_path",
    }  # fmt: skip

    assert {rule.pattern_id for rule in RULES} == set(TOKENS) | elsewhere
