"""The words and letter pairs that shapes and names are judged by.

Knows lists only; what they mean is decided where they are used.
"""


def words(text: str) -> frozenset[str]:
    """Read a list that is written as one string."""
    return frozenset(text.split())


COMMON_PAIRS = words(
    "he th er in an re ha ou en on at nd ed to is it as ng hi te ve be ar ne of or se le es st nt "
    "no el me li ti ll ea co sh al wa ot ho ur et de wi ce ly ad wh ch fo om si yo io ri di ee rs "
    "ma ro ut ow ss so we ul il im pe us ld nc ec ai ab ta su gh ie mi ir ns ic la un ev ca em av "
    "sa ra pr am lo id ry oo mo ge rt ct ay tt ey fe ac os bu ei da ke po uc ol bl wo pa ht do pl "
    "iv ig ug rd vi ni ag fr my fi tr nn fa ap ty tu ex ga if mu ia mp pp sp bo gr qu ep op od ov "
    "au up ck zh uo ao xi"
)

TECHNICAL_TERMS = words(
    "oauth oauth1 oauth2 sha1 sha224 sha256 sha384 sha512 md5sum base32 base64 aes128 aes192 aes256 "
    "hs256 hs384 hs512 rs256 rs384 rs512 es256 es384 es512 ps256 rsa1024 rsa3072 rsa2048 rsa4096 ed25519 "
    "x25519 secp256k1 argon2id pbkdf2 bcrypt aes128cbc aes128gcm aes256cbc aes256gcm sm4cbc utf8 utf16 ascii 1password lastpass bitwarden keepass"
)

JOINING_WORDS = words(
    "a an and are as at but by for from in into is it not of on or that the then this to was where "
    "which will with"
)

CHINESE_NAMES = (
    "密码", "口令", "密钥", "秘钥", "密匙", "令牌", "私钥", "授权码", "通行码", "访问码", "凭证", "凭据",
    "密令", "钥匙", "密碼", "金鑰", "憑證", "權杖",
)  # fmt: skip

ENGLISH_NAMES = (
    "pass", "pwd", "secret", "token", "key", "credential", "creds", "auth", "sig", "jwt",
    "kennwort", "pw:", "pw=", "pw：", 'pw"', "pw'",
)  # fmt: skip

PASSWORD_ENDINGS = (
    "password", "passwd", "pwd", "passphrase", "passcode", "passwort", "kennwort", "requirepass",
)  # fmt: skip
PASSWORD_WORDS = words("pw dbpw userpw rootpw")
SECRET_ENDINGS = (
    "secret",
    "token",
    "apikey",
    "secretkey",
    "accesskey",
    "privatekey",
    "authkey",
    "appkey",
    "passkey",
)
SECRET_WORDS = words("pass dbpass userpass mypass credential credentials creds bearer jwt sas")
FAINT_WORDS = words("key auth authorization sig sign signature session cookie authentication")

HEADERS_THAT_HOLD_SECRETS = ("authorization", "cookie", "cookies")

LOCKED_BY_KEY = words(
    "api access secret private encryption encrypt decryption signing account storage shared master "
    "service subscription app auth client bot admin root deploy hmac aes jwt webhook consumer crypto "
    "cipher sas license openai anthropic claude deepseek dashscope zhipu qwen moonshot kimi gemini "
    "siliconflow openrouter mistral cohere groq google azure aws aliyun tencent baidu stripe llm model "
    "session cookie user database db vault wallet recovery"
)
OPEN_KINDS = words(
    "public primary foreign cache partition sort row object hash idempotency dedupe index shortcut hot "
    "map group registry answer routing unique composite json dict query i18n locale translation next "
    "page continuation sync cancel cancellation cursor start end max min num total prompt completion "
    "input output pad eos bos mask sep cls unk stop special per"
)
ABOUT_A_SECRET = words(
    "name names path paths file files filename dir folder url uri link id ids count type types length "
    "len size limit limits field fields hint label labels policy rule rules reset expiry expires expire "
    "expiration ttl at version manager provider store hash hashed digest index usage budget regex "
    "pattern schema stdin prompt strength format input form error message required enabled disabled "
    "placeholder protected env var ref refs ring board word words tokens secrets keys passwords title "
    "status state age days hours minutes seconds second ms algorithm alg method scheme mode class "
    "function generator parser reader writer tokenizer kind description desc text"
)
NAME_TAILS = words(
    "prod production dev test testing staging stage live local main old new backup default value val "
    "base b64 base64 plain raw v"
)
