"""A name gives a value away, in English and Chinese, in prose, code, markup and on command lines."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.made_up import made_up

VALUES = tuple(
    made_up(template) for template in ("{A12}", "{A20}", "{H32}", "{B40}", "Kd83!{A6}pL")
)

ENGLISH = (
    "password: {}\nport: 5432",
    "PASSWORD={}\nx=1",
    "spring.datasource.password={}",
    '"password": "{}", "n": 3',
    "{'passwd': '{}'}",
    "Server=db;User Id=sa;Pwd={};Database=x",
    "passphrase: {}",
    "api_key: {}\nmodel: glm-4",
    '"api_key":"{}","stream":true',
    '{\\"api_key\\": \\"{}\\", \\"n\\": 3}',
    "apiKey: '{}',",
    "X-Api-Key: {}\nHost: api.example.com",
    "x-auth-token: {}",
    "Ocp-Apim-Subscription-Key: {}",
    "PRIVATE-TOKEN: {}",
    "auth_token: {}",
    "access_token={}",
    "access_token={}&state=ok",
    "https://example.com/#access_token={}&state=ok",
    "client_secret={}",
    "export MY_SECRET={}\necho ok",
    "SECRET_KEY_BASE={}",
    "AWS_SECRET_ACCESS_KEY={}",
    "AZURE_STORAGE_KEY={}\nCONTAINER=drafts",
    "AccountKey={};EndpointSuffix=core.windows.net",
    "OPENAI_KEY={}",
    "BOT_TOKEN={}",
    "Here is the token: {}",
    "DB_PASSWORD_PROD={}",
    "password：{}，别改",
    "pass: {}\nuser: bob",
    "<password>{}</password>",
    '<add key="ApiKey" value="{}"/>',
    "- name: DB_PASSWORD\n  value: {}",
    "| password | {} |",
    "**Password:** {}",
    "`password`: `{}`",
    "password => {}",
    'password := "{}"',
    "password:\n  {}\nport: 1",
    "$env:API_KEY='{}'",
    "setx API_KEY {}",
    "IDENTIFIED BY x; SET PASSWORD '{}'",
    "password - {}",
    "the password for the admin account is {}",
    "Password for li@example.com: {}",
    "password [admin]: {}",
    "the admin password has been set to {}",
    "pw: {}\nuser: bob",
    "db_pw={}",
    "appkey={}",
    "requirepass {}",
    "&quot;token&quot;:&quot;{}&quot;,",
    "?x=1%26token%3D{}",
    '<string name="api_key">{}</string>',
    "Token:\n\n{}\n",
    "Token:\n```text\n{}\n```\n",
)

CHINESE = (
    "数据库密码：{}，请勿外传。",
    "访问令牌：{}；过期时间：明天",
    "密码（管理员）：{}",
    "WiFi密码:{} 一楼可用",
    "AccessKey Secret：{}\n地域：杭州",
    "Token：{}\n备注：测试用",
    "密码是{}，记住",
    "服务口令为 {}。",
    "API 密钥: {}",
    "登录密码={}",
    "密码“{}”",
    "密码「{}」",
    "**密码**：{}",
    "| 密码 | {} |",
    "密码改成了{}",
    "账号：admin，密码：{}。",
    '"密码": "{}"',
    "密码：\n{}\n下一行",
    "私钥：{}",
    "授权码：{}",
    "密碼：{}",
    "密码已重置为{}。",
    "密码更新为：{}",
    "把密码设置成{}",
    "密码写的是{}",
    "密码:　{}",
    "密码——{}",
    "账号密码：admin / {}",
    "密钥：\n```\n{}\n```",
)

FLAGS = (
    "--password {} --host x",
    "--password={}",
    "--api-key {}",
    '--token "{}"',
    "-Password {}",
    "curl -u admin:{} https://example.com",
    "mysql -u root -p{} wn",
    "sshpass -p {} ssh a@b",
    "redis-cli -a {} ping",
    "docker login -u bob -p {}",
    "CREATE USER li IDENTIFIED BY '{}';",
    "echo {} | sudo -S ls",
)


@pytest.mark.parametrize("around", ENGLISH + CHINESE + FLAGS)
@pytest.mark.parametrize("value", VALUES)
def test_a_named_value_is_replaced_and_nothing_else(around: str, value: str) -> None:
    text, evidence = redact(around.replace("{}", value))

    assert text == around.replace("{}", PLACEHOLDER)
    assert sum(piece.match_count for piece in evidence) == 1


@pytest.mark.parametrize(
    "text",
    [
        "my api key is Ik!+e_xYmwm@Xq9E and it still works",
        "the password's Tr0ub4dor&3, remember?",
        "pass: Summer2024!",
        "password: hunter22",
        "密码：888888",
        "密码是19990101。",
        "secret=mysecret123",
        "password=hunter2-Xy9-really-secret",
        "the password=correct-horse-battery-staple still works",
        "api_key: my-planted-key-0001",
        "密碼設為Kd83mQz71pL",
        "password=xkqzvbtrwm",
        "use token 7cfdcbc5ff77b8cf0960a8bfe9c0753b261d5d4b please",
    ],
)
def test_passwords_that_people_make_up_are_found(text: str) -> None:
    assert PLACEHOLDER in redact(text).text


def test_two_named_values_in_one_breath_are_two() -> None:
    first, second = VALUES[:2]

    for around in ("授权码是{};token={};", "password=>{}&token={}", "Pwd={},secret={}"):
        text = redact(around.replace("{}", first, 1).replace("{}", second)).text

        assert text == around.replace("{}", PLACEHOLDER)


def test_a_long_value_is_taken_to_its_end() -> None:
    value = made_up("{A2000}")

    assert redact(f"aws_session_token={value} rest").text == f"aws_session_token={PLACEHOLDER} rest"


def test_a_pair_of_cloud_keys_is_found() -> None:
    text = made_up("AK：LTAI5t{A18} SK：{A30}")

    assert redact(text).text == f"AK：{PLACEHOLDER} SK：{PLACEHOLDER}"


def test_a_name_counts_by_its_last_word() -> None:
    value = made_up("{A20}")

    assert redact(f"secretName: {value}").text == f"secretName: {value}"
    assert redact(f"nameSecret: {value}").text == f"nameSecret: {PLACEHOLDER}"
