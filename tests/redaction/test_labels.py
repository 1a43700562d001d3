"""A name gives a value away, in English and Chinese, in prose, code, markup and on command lines; also a broken one."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.samples import LABELLED_VALUES, fake_secret, wrong_redactions

ENGLISH = {
    "settings": (
        "password: {}\nport: 5432",
        "PASSWORD={}\nx=1",
        "spring.datasource.password={}",
        "Server=db;User Id=sa;Pwd={};Database=x",
        "passphrase: {}",
        "api_key: {}\nmodel: glm-4",
        "apiKey: '{}',",
        "auth_token: {}",
        "access_token={}",
        "client_secret={}",
        "export MY_SECRET={}\necho ok",
        "SECRET_KEY_BASE={}",
        "AWS_SECRET_ACCESS_KEY={}",
        "AZURE_STORAGE_KEY={}\nCONTAINER=drafts",
        "AccountKey={};EndpointSuffix=core.windows.net",
        "OPENAI_KEY={}",
        "BOT_TOKEN={}",
        "DB_PASSWORD_PROD={}",
        "pass: {}\nuser: bob",
        "password => {}",
        'password := "{}"',
        "password:\n  {}\nport: 1",
        "$env:API_KEY='{}'",
        "setx API_KEY {}",
        "IDENTIFIED BY x; SET PASSWORD '{}'",
        "pw: {}\nuser: bob",
        "db_pw={}",
        "appkey={}",
        "accesskey={}",
        "requirepass {}",
        "AccessKey Secret：{}\n地域：杭州",
        "Token：{}\n备注：测试用",
    ),
    "headers and URLs": (
        "access_token={}&state=ok",
        "https://example.com/#access_token={}&state=ok",
        "?x=1%26token%3D{}",
        "X-Api-Key: {}\nHost: api.example.com",
        "x-auth-token: {}",
        "Ocp-Apim-Subscription-Key: {}",
        "PRIVATE-TOKEN: {}",
    ),
    "JSON and markup": (
        '"password": "{}", "n": 3',
        "{'passwd': '{}'}",
        '"api_key":"{}","stream":true',
        '{\\"api_key\\": \\"{}\\", \\"n\\": 3}',
        "<password>{}</password>",
        '<add key="ApiKey" value="{}"/>',
        "- name: DB_PASSWORD\n  value: {}",
        "| password | {} |",
        "**Password:** {}",
        "`password`: `{}`",
        "&quot;token&quot;:&quot;{}&quot;,",
        '<string name="api_key">{}</string>',
        "Token:\n\n{}\n",
        "Token:\n```text\n{}\n```\n",
    ),
    "prose": (
        "Here is the token: {}",
        "password：{}，别改",
        "password - {}",
        "the password for the admin account is {}",
        "Password for li@example.com: {}",
        "password [admin]: {}",
        "the admin password has been set to {}",
    ),
    "flags": (
        "--password {} --host x",
        "--password={}",
        "--api-key {}",
        '--token "{}"',
        "-Password {}",
    ),
}
CHINESE = (
    "数据库密码：{}，请勿外传。",
    "访问令牌：{}；过期时间：明天",
    "密码（管理员）：{}",
    "WiFi密码:{} 一楼可用",
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
    "凭证：{}",
    "凭据：{}",
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


@pytest.mark.parametrize("where", ENGLISH)
def test_a_value_with_an_english_label_goes_and_nothing_else(where: str) -> None:
    wrong = wrong_redactions(
        (around.replace("{}", value), around.replace("{}", PLACEHOLDER), "labelled_secret")
        for around in ENGLISH[where]
        for value in LABELLED_VALUES
    )

    assert not wrong, "\n".join(wrong)


def test_a_value_with_a_chinese_label_goes_and_nothing_else() -> None:
    wrong = wrong_redactions(
        (around.replace("{}", value), around.replace("{}", PLACEHOLDER), "labelled_secret_zh")
        for around in CHINESE
        for value in LABELLED_VALUES
    )

    assert not wrong, "\n".join(wrong)


def test_labels_in_the_query_of_a_url_are_read() -> None:
    token = fake_secret("{A40}")
    texts = (
        f"https://example.com/cb?access_token={token}&state=ok",
        f"https://example.com/x?sv=2020&sig={token}&se=1",
    )

    wrong = wrong_redactions(
        (text, text.replace(token, PLACEHOLDER), "labelled_secret") for text in texts
    )

    assert not wrong, "\n".join(wrong)


def test_passwords_that_people_choose_are_found() -> None:
    texts = (
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
    )

    missed = [text for text in texts if PLACEHOLDER not in redact(text).text]

    assert not missed, "\n".join(missed)


def test_two_named_values_in_one_line_are_two() -> None:
    first, second = LABELLED_VALUES[:2]

    for around in ("授权码是{};token={};", "password=>{}&token={}", "Pwd={},secret={}"):
        text = redact(around.replace("{}", first, 1).replace("{}", second)).text

        assert text == around.replace("{}", PLACEHOLDER)


def test_a_long_value_is_taken_to_its_end() -> None:
    value = fake_secret("{A2000}")

    assert redact(f"aws_session_token={value} rest").text == f"aws_session_token={PLACEHOLDER} rest"


def test_a_pair_of_cloud_keys_is_found() -> None:
    text = fake_secret("AK：LTAI5t{A18} SK：{A30}")

    assert redact(text).text == f"AK：{PLACEHOLDER} SK：{PLACEHOLDER}"


def test_a_name_counts_by_its_last_word() -> None:
    value = fake_secret("{A20}")

    assert redact(f"secretName: {value}").text == f"secretName: {value}"
    assert redact(f"nameSecret: {value}").text == f"nameSecret: {PLACEHOLDER}"


@pytest.mark.parametrize(
    "label",
    [
        "P A S S W O R D:", "p.a.s.s.w.o.r.d =", "PASS WORD:", "**P**assword:", "<b>Pass</b>word:", "K E N N W O R T :", "密　码：", "密-码：", "パ ス ワ ー ド：",
        "비 밀 번 호:", "授权 码：",
    ],
)  # fmt: skip
def test_the_value_goes_and_the_broken_label_stays(label: str) -> None:
    text = f"Notes\n{label} Fen&Dyke31\nport: 5432\n"

    assert redact(text).text == f"Notes\n{label} {PLACEHOLDER}\nport: 5432\n"


def test_a_hyphen_at_the_end_of_a_line_hides_no_label() -> None:
    text = "The pass-\nword for the tapes is “Sp1ndle-drift”, dash included."

    assert redact(text).text == f"The pass-\nword for the tapes is “{PLACEHOLDER}”, dash included."


@pytest.mark.parametrize(
    "text",
    ["P A R T  T W O", "The pass-\nport was gone.", "The pass word system of chapter 12b", "秘 密"],
)
def test_other_words_in_pieces_stay(text: str) -> None:
    assert redact(text).text == text


def test_a_text_of_broken_labels_is_read_once() -> None:
    """There is no clock here: were every label read with all that follow, this would take minutes."""
    text = "p a s s w o r d : Fen&Dyke31\n" * 2_000

    assert redact(text).text == f"p a s s w o r d : {PLACEHOLDER}\n" * 2_000
