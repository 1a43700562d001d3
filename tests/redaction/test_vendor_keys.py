"""Every vendor's key is found wherever it stands, and so is the secret part of a webhook."""

import json

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.samples import VENDORS, fake_secret, vendor_templates, wrong_redactions

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

WEBHOOKS = (
    ("discord_webhook_url", "https://discord.com/api/webhooks/", "{D18}/{W68}"),
    ("feishu_webhook_url", "https://open.feishu.cn/open-apis/bot/v2/hook/", "{H8}-{H4}-{H4}-{H12}"),
    ("slack_webhook_url", "https://hooks.slack.com/services/", "T{U10}/B{U10}/{A24}"),
    (
        "wecom_webhook_url",
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=",
        "{H8}-{H4}-{H16}",
    ),
)


@pytest.mark.requirement("CN-047", "CN-049")
@pytest.mark.parametrize("vendor", VENDORS)
def test_a_key_is_found_in_any_surroundings(vendor: str) -> None:
    wrong = wrong_redactions(
        (around.replace("{}", fake_secret(template)), around.replace("{}", PLACEHOLDER), pattern_id)
        for pattern_id, template in vendor_templates([vendor])
        for around in SURROUNDINGS
    )

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("vendor", VENDORS)
def test_a_key_is_found_in_json_with_every_escape(vendor: str) -> None:
    rows: list[tuple[str, str, str]] = []
    for pattern_id, template in vendor_templates([vendor]):
        secret = fake_secret(template)
        note = f"第一行\n{secret}\n密钥{secret}\t末行"
        spellings = (
            json.dumps(note),
            json.dumps(note, ensure_ascii=False),
            json.dumps([json.dumps(note)]),
        )
        rows += ((text, text.replace(secret, PLACEHOLDER), pattern_id) for text in spellings)

    wrong = wrong_redactions(rows)

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("vendor", VENDORS)
def test_most_fake_keys_of_a_template_are_found(vendor: str) -> None:
    """Random letters now and then look like words; that may cost one in hundreds, never more."""
    wrong: list[str] = []
    for pattern_id, template in vendor_templates([vendor]):
        secrets = [fake_secret(template, seed) for seed in range(40)]
        missed = [secret for secret in secrets if secret in redact(f"见 {secret} 。").text]
        if len(missed) > 1:
            wrong.append(f"{pattern_id}: {missed}")

    assert not wrong, "\n".join(wrong)


def test_the_secret_part_of_a_webhook_goes() -> None:
    wrong = wrong_redactions(
        (f"见 {address}{fake_secret(template)}，改", f"见 {address}{PLACEHOLDER}，改", pattern_id)
        for pattern_id, address, template in WEBHOOKS
    )

    assert not wrong, "\n".join(wrong)
