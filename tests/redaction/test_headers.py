"""What HTTP carries: authorization, bearer tokens, signatures, cookies, and secrets in URLs."""

import base64

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.made_up import made_up

TOKEN = made_up("{A40}")
PASSWORD = made_up("{A14}")
BASIC = base64.b64encode(f"bob:{PASSWORD}".encode()).decode()
HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
CLAIMS = base64.urlsafe_b64encode(b'{"sub":"13375558","name":"u"}').decode().rstrip("=")
JWT = f"{HEADER}.{CLAIMS}.{made_up('{W43}')}"

EXAMPLES = (
    ("authorization_header", f"curl -H 'Authorization: Bearer {TOKEN}' https://example.com", TOKEN),
    ("authorization_header", f"Authorization: Token {TOKEN}\nHost: x", TOKEN),
    ("authorization_header", f'"authorization": "{TOKEN}", "n": 1', TOKEN),
    ("authorization_header", f"Proxy-Authorization: Basic {BASIC}", BASIC),
    ("bearer_token", f"then send Bearer {TOKEN}.", TOKEN),
    ("basic_credentials", f"credentials go as Basic {BASIC} there", BASIC),
    ("request_signature", f"X-Amz-Signature={made_up('{H64}')}&x=1", made_up("{H64}")),
    ("session_cookie", f"Cookie: theme=dark; sessionid={TOKEN}; lang=zh", TOKEN),
    ("session_cookie", f"Set-Cookie: connect.sid={TOKEN}; Path=/; HttpOnly", TOKEN),
    ("session_cookie", f"the link has ;jsessionid={TOKEN} in it", TOKEN),
    ("labelled_secret", f"https://example.com/cb?access_token={TOKEN}&state=ok", TOKEN),
    ("labelled_secret", f"https://example.com/x?sv=2020&sig={TOKEN}&se=1", TOKEN),
    ("url_credentials", f"mysql://root:{PASSWORD}@127.0.0.1:3306/wn", PASSWORD),
    ("url_credentials", f"redis://:{PASSWORD}@cache:6379/0", PASSWORD),
    ("url_credentials", f"mssql+pyodbc://sa:{PASSWORD}@sql.local/wn", PASSWORD),
    ("url_credentials", f"https://{TOKEN}@example.com/repo.git", TOKEN),
    ("url_credentials", f'"url": "postgres:\\/\\/app:{PASSWORD}@db\\/novel"', PASSWORD),
    ("url_credentials", f"root:{PASSWORD}@tcp(127.0.0.1:3306)/wn", PASSWORD),
    ("json_web_token", f"登录后返回的令牌是{JWT}，有效期两小时。", JWT),
    ("json_web_token", f'{{"a": "x\\n{JWT}\\n"}}', JWT),
    ("json_web_token", f"两段的 {HEADER}.{CLAIMS}. 也算", f"{HEADER}.{CLAIMS}."),
    ("json_web_token", f"My key is {JWT}. Rotate it.", JWT),
    (
        "slack_webhook_url",
        made_up("见 https://hooks.slack.com/services/T{U10}/B{U10}/{A24}，改"),
        made_up("见 https://hooks.slack.com/services/T{U10}/B{U10}/{A24}，改")[35:-2],
    ),
)  # fmt: skip

WEBHOOKS = (
    ("discord_webhook_url", "https://discord.com/api/webhooks/{D18}/{W68}"),
    ("feishu_webhook_url", "https://open.feishu.cn/open-apis/bot/v2/hook/{H8}-{H4}-{H4}-{H12}"),
    ("wecom_webhook_url", "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={H8}-{H4}-{H16}"),
)


@pytest.mark.parametrize(("name", "text", "secret"), EXAMPLES)
def test_the_secret_goes_and_the_rest_stays(name: str, text: str, secret: str) -> None:
    redacted, evidence = redact(text)

    assert redacted == text.replace(secret, PLACEHOLDER)
    assert [piece.pattern_id for piece in evidence] == [name]


@pytest.mark.parametrize(("name", "template"), WEBHOOKS)
def test_the_secret_part_of_a_webhook_goes(name: str, template: str) -> None:
    url = made_up(template)

    text, evidence = redact(f"通知地址：{url}，改完测一下。")

    assert url[-16:] not in text
    assert text.endswith(f"{PLACEHOLDER}，改完测一下。")
    assert [piece.pattern_id for piece in evidence] == [name]
