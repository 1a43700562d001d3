"""The words that name a secret, and how sure an identifier or a label makes us of one.

Identifiers are read in any style (`DB_KENNWORT`, `motDePasseFtp`, `pass_plain`) and language.
"""

import re
import unicodedata
from enum import IntEnum
from functools import lru_cache

from creonowd.redaction.shape import word_set
from creonowd.text import normal_form

CHINESE_NAMES = (
    "密码", "口令", "密钥", "秘钥", "密匙", "令牌", "私钥", "授权码", "通行码", "访问码", "凭证", "凭据",
    "密令", "钥匙", "密碼", "金鑰", "密鑰", "秘鑰", "私鑰", "憑證", "憑據", "權杖", "授權碼", "通行碼", "訪問碼",
    "激活码", "激活碼", "注册码", "註冊碼", "卡密", "秘密鍵", "暗号鍵", "復号鍵", "共有鍵",
    "APIキー", "シークレットキー", "シークレット", "アクセスキー", "認証キー", "暗号化キー", "ライセンスキー", "トークン",
    "토큰", "API 키", "API키", "비밀키", "비밀 키", "인증키", "인증 키", "암호키", "암호화 키", "개인키", "액세스 키",
    "액세스키", "라이선스 키", "시크릿",
)  # fmt: skip

FOREIGN_NAMES = (
    "passwort", "passwörter", "kennwort", "kennwörter", "kenncode", "zugangscode", "losungswort", "codewort", "mot de passe", "mots de passe", "mot_de_passe",
    "mot-de-passe", "motdepasse", "mdp", "phrase de passe", "phrase secrète", "code d'accès", "code d’accès", "contraseña", "contraseñas", "contrasena", "contrasenya",
    "código de acceso", "clave de acceso", "palabra clave", "senha", "senhas", "palavra-passe", "palavra passe", "código de acesso",
    "codice di accesso", "codice d'accesso", "parola d'ordine", "parola d’ordine", "parola chiave", "wachtwoord", "wachtwoorden", "şifresi", "sifresi", "parolası", "toegangscode", "lösenord", "passord", "adgangskode",
    "kodeord", "salasana", "hasło", "hasła", "haslo", "heslo", "lozinka", "zaporka", "parolă", "aðgangsorð", "lykilorð", "slaptažodis", "sifre", "losenord", "jelszó", "şifre",
    "пароль", "пароли", "парола", "лозинка", "κωδικός πρόσβασης", "κωδικός", "סיסמה",
    "סיסמא", "كلمة المرور", "كلمة السر", "पासवर्ड", "รหัสผ่าน", "mật khẩu", "kata sandi", "kata laluan",
)  # fmt: skip
"""Names of passwords in other languages."""

HAN_LABELS = (
    "密码", "密碼", "口令", "提取码", "提取碼", "通行码", "访问码", "验证码", "驗證碼", "动态码", "校验码",
    "解压码", "解壓碼", "解锁码", "安全码", "恢复码", "PIN码", "🔑", "🔐",
    "パスワード", "パスフレーズ", "パスコード", "パス：", "パス:", "暗証番号", "暗証コード", "合言葉", "認証コード", "確認コード", "PINコード", "PIN番号",
    "비밀번호", "비밀 번호", "비번", "암호", "패스워드", "패스프레이즈", "패스코드", "인증번호", "인증코드", "인증 코드", "핀번호", "PIN 번호",
)  # fmt: skip
"""Names of passwords and codes in Chinese, Japanese and Korean."""

MENTIONS_OF_PASSWORDS = (
    "password", "passwrd", "pasword", "passwrod", "pwrd", "psswd", "passwd", "passcode", "passphrase", "pwd", "pw", *FOREIGN_NAMES, "mi clave", "la clave", "tu clave", "su clave", "una clave", "minha chave", "şifresi", "sifresi", "parolası", "la contra", "пароля", "паролем", "паролей", "密码",
    "密碼", "口令", "パスワード", "パスコード", "パスは", "パス：", "合言葉", "パスなん", "パス教", "パス変", "パス ", "пасс", " пас ", "パスも変", "パスを変", "パス忘", "パス更新", "パスって", "暗号化キー", "暗証キー", "セキュリティキー", "ネットワークキー", "비밀번호", "비번", "패스워드", "암호", "code wifi", "code wi-fi", "memorable information",
    "memorable info", "2-step", "two-step password", "cloud password", "parola chiave", "parola d'ordine", "ww", "wpa", "wpa2", "psk", "pre-shared key", "preshared key", "pre-shared-key", "パスフレーズ", "プリシェアードキー", "预共享密钥", "phrase secrète", "团体字", "snmp-server community", "snmp community", "community string", "masterauth",
    "暗号", "暗码", "暗碼", "鎖屏碼", "锁屏码", "losung", "转移码", "轉移碼", "auth code", "authcode", "epp code", "auth-code", "wifi code", "wi-fi code", "wlan-code", "código wifi", "codice wifi",
)  # fmt: skip
"""Names behind which a value is a password, and little else is."""

MENTIONS_OF_KEYS = (
    "filevault", "bitlocker", "psn", "xbox", "nintendo", "eshop", "playstation", "applicationkey",
    "application secret", "application key", "client secret", "consumer secret", "consumer key", "app secret", "shared secret", "secret access", "签名校验", "签名密钥", "加签",
    "邀请码", "邀請碼", "invite code", "invitation code", "gift card", "oauth", "token", "токен", "voucher", "gutschein", "api", "apikey", "key", "licence", "license", "serial",
    "registered to", "licensed to", "lizenziert für", "activation", "redeem", "steam", "cdkey", "lizenz", "freischaltcode", "aktivierungscode", "aktivierungsschlüssel", "lizenzcode", "lizenzschlüssel", "lizenznummer", "produktschlüssel", "serial number", "code d'activation", "codice di attivazione", "código de activación", "número de licencia", "код активации", "シリアル番号", "認証コード", "jeton", "sleutel", "klucz", "nyckel", "nøgle", "nøkkel", "klíč", "kulcs", "anahtar",
    "seriennummer", "schlüssel", "clé", "clef", "numéro de série", "clave", "licencia", "número de serie", "licença",
    "chave", "licenza", "chiave", "seriale", "ключ", "серийный", "лицензи", "激活码", "激活碼", "序列号", "序列號", "注册码",
    "註冊碼", "兑换码", "兌換碼", "密钥", "密鑰", "秘钥", "密匙", "私钥", "私鑰", "シリアル", "プロダクトキー", "ライセンス", "キー", "시리얼",
    "제품 키", "라이선스", "인증키", "2fa", "two-factor", "two factor", "authenticator", "authy", "totp", "two-step",
    "两步验证", "兩步驗證", "双重验证", "二段階認証", "2단계",
)  # fmt: skip
"""Names of what a machine has made."""

MENTIONS_OF_ACCESS = (
    "光猫", "超密", "telecomadmin", "超级管理员", "share login", "portal", "ftp", "ftps", "zugang", "accès", "log on", "basic auth", "sudo asks", "guest network", "get into", "gets you in", "lets you in", "let me in", "hotspot", "netflix", "spotify", "disney+", "prime video", "streaming", "abonnement", "suscripción",
    "kommst du", "kommt man", "kommen sie", "reinkommen", "komme ich", "tu entres", "on entre", "vous entrez", "entras", "se entra", "si entra", "entra-se", "where it asks", "when it asks", "when asked", "when prompted", "at the prompt", "login", "log in", "log-in", "logging in", "logged in", "signing in", "sign in", "sign-in", "credential", "creds", "protected", "encrypted", "zugangsdaten",
    "anmeldung", "anmelden", "einloggen", "geschützt", "verschlüsselt", "identifiant", "connexion", "protégé", "chiffré",
    "acceso", "accesso", "acesso", "protegid", "cifrad", "protett", "inloggen", "вход", "доступ", "登录", "登錄", "登陆", "登入",
    "账密", "会员", "connecte", "connecte-toi", "connectez", "connectez-vous", "connecter", "melde dich", "inicia sesión", "iniciar sesión", "entra con", "entrar con", "accedi con", "entre com", "zaloguj", "войди", "войти", "logga in", "log ind", "加密", "ログイン", "로그인", "접속",
)  # fmt: skip
"""Words near which people write down how to get in."""

MENTIONS_OF_SERVICES = (
    "admin", "router", "wordpress", "dropbox", "icloud", "apple id", "google", "gmail", "outlook", "github", "gitlab", "nextcloud", "synology", "paypal", "amazon", "ebay", "kdp",
    "mailchimp", "substack", "patreon", "canva", "adobe", "steam", "zoom", "skype", "instagram", "facebook", "twitter", "mastodon", "discord", "telegram", "微博", "豆瓣", "知乎", "公众号", "邮箱", "网盘", "淘宝",
    "支付宝", "微信", "メール", "구글", "네이버", "почта",
)  # fmt: skip
"""Services and devices beside which only what cannot be a word is a password."""

MENTIONS_OF_OPENING = (
    "to open the", "to open it", "打不开", "开不了", "加了锁", "上了锁", "wake it with", "wakes with", "log on with", "unlock", "unzip", "decrypt", "opens with", "open it with", "get in with", "gets in with", "entsperr", "öffnen mit",
    "öffnet mit", "entpack", "déverrouill", "ouvre avec", "ouvrir avec", "s'ouvre", "desbloque", "se abre", "sblocc",
    "si apre", "разблок", "解压", "解壓", "解锁", "解鎖", "解开", "解開", "开锁", "開鎖", "解凍", "解錠", "ロック解除", "开机", "開機", "锁屏", "鎖屏", "屏保", "잠금", "압축",
)  # fmt: skip
"""Words near which people write down what opens a thing."""

MENTIONS_OF_LOCKS = (
    "keypad", "lockbox", "lock box", "key safe", "padlock", "garage", "gate", "door", "alarm", "safe", "locker", "suitcase", "entry", "building", "deur", "sleutelkluis", "单元门", "东门", "南门", "西门", "北门", "后门", "haustür", "tür",
    "alarmanlage", "schloss", "digicode", "porte", "portail", "coffre", "alarme", "cadenas", "puerta", "portal", "portón", "alarma",
    "caja fuerte", "porta", "portone", "portão", "cancello", "allarme", "cassaforte", "brama", "bramy", "домофон", "подъезд", "дверь", "сейф", "门禁", "門禁",
    "门锁", "大门", "房门", "电子锁", "键盘", "道闸", "车库", "闸机", "储物柜", "寄存柜", "快递柜", "門鎖", "ipad", "iphone", "handy", "locker", "报警器", "报警", "的锁", "箱锁", "挂锁", "ロッカー", "ロック", "スマホの", "家の鍵", "폰 잠금", "잠금", "자물쇠", "antifurto", "l'alarme", "vorhängeschloss", "fahrradschloss", "fiets", "schloss am",
    "padlock", "entsperren", "сигнализация", "сигнализацию", "замок", "замке", "cofre", "cadeado", "candado", "lucchetto", "kluis", "sejf", "ворота", "калитка", "шлагбаум", "гараж", "poort", "slagboom", "grind", "garaje", "trastero", "verja", "trappa", "alarm panel", "burglar alarm", "safe deposit", "tresor", "schlüsseltresor", "zahlenschloss", "building", "entrance", "immeuble", "interphone", "保险箱", "保险柜", "玄関", "金庫", "キーボックス", "オートロック", "鍵箱", "key box", "keybox", "schlüsselbox", "schlüsselkasten", "boîte à clés", "レジ", "鍵は", "ロックは", "keller", "cave", "コード", "番号", "ドア", "현관", "금고", "도어락",
)  # fmt: skip
"""What is opened by a number."""

MENTIONS_IN_QUESTIONS = (
    "提取码", "提取碼", "访问码", "验证码", "解压码", "会议码", "인증번호", "wifi", "wi-fi", "wlan", "вайфа", "와이파이", "pin", "code", "codice", "código", "kod", "код", "пин", "暗証", "コード", "코드",
)  # fmt: skip
"""Words of a question whose answer may be a secret."""

PAIR_NAMES = (
    "guest network", "guest wifi", "guest wi-fi", "gästenetz", "gastnetz", "gäste-wlan", "réseau invité", "réseau invités", "red de invitados", "rete ospiti", "访客网络", "访客wifi", "hotspot", "ssid", "credenziali", "credenciais", "credenciales", "anmeldedaten", "logindaten", "login-daten", "учётка", "учетка", "учётные данные", "учетные данные", "ログイン情報", "アクセス情報", "계정 정보", "계정정보", "登录信息",
    "wifi", "wi-fi", "wlan", "kontodaten", "zugangsdaten", "zugang", "account", "konto", "router", "identifiants", "accès", "acceso",
    "accesso", "acesso", "inloggegevens", "logowanie", "доступ", "вход", "ログイン", "アカウント", "와이파이", "로그인", "계정", "登录", "登入", "无线", "無線",
)  # fmt: skip
"""Labels of a user and a password with a slash between them."""

PASSWORD_ENDINGS = (
    "password", "passwd", "pwd", "pswd", "passphrase", "passcode", "passwort", "kennwort", "requirepass",
    "motdepasse", "contrasena", "wachtwoord", "palavrapasse", "losenord", "adgangskode", "salasana",
)  # fmt: skip
PASSWORD_WORDS = word_set(
    "sshpass mima senha pw dbpw userpw rootpw bindpw ftppw psk mdp codewort losungswort passord kodeord haslo heslo lozinka jelszo"
    " sifre slaptazodis lykilord passphrasen passworter kennworter contrasenya"
)
PASSWORD_PHRASES = word_set(
    "wifikey wlankey networkkey wpakey wepkey wifischlussel wlanschlussel passeword password motdepasse phrasedepasse palavrapasse palavradepasse"
)
"""Names of several words, written as one."""
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
    "sharedkey",
    "encryptionkey",
    "signingkey",
    "masterkey",
    "licensekey",
    "licencekey",
    "securitykey",
    "clientkey",
    "serverkey",
    "groupkey",
)
SECRET_WORDS = word_set(
    "cle clave schlussel schluessel chave totp pass dbpass userpass mypass ftppass credential credentials creds bearer jwt sas jeton"
)
WEAK_WORDS = word_set(
    "key auth authorization sig sign signature session cookie authentication"
).union(SECRET_ENDINGS, PASSWORD_ENDINGS)

SECRET_HEADERS = ("authorization", "cookie", "cookies")

KEY_OWNERS = word_set(
    "api access secret private encryption encrypt decryption signing account storage shared master "
    "service subscription app auth client bot admin root deploy hmac aes jwt webhook consumer crypto "
    "cipher sas license openai anthropic claude deepseek dashscope zhipu qwen moonshot kimi gemini "
    "siliconflow openrouter mistral cohere groq google azure aws aliyun tencent baidu stripe llm model "
    "session cookie user database db vault wallet recovery deepl unsplash pexels mapbox notion zotero unseal"
)
PUBLIC_KINDS = word_set(
    "public primary foreign cache partition sort row object hash idempotency dedupe index shortcut hot "
    "group registry answer routing unique composite json dict query i18n locale translation next "
    "document file content chapter item entry node event element field page continuation sync cancel cancellation cursor start end max min num total prompt completion "
    "input output pad eos bos mask sep cls unk stop special per"
)
NO_SECRET_WORDS = word_set(
    "name names path paths file files filename dir folder url uri link id ids count type types length "
    "len size limit limits field fields hint label labels policy rule rules reset expiry expires expire "
    "expiration ttl at version manager provider store hash hashed digest index usage budget regex "
    "pattern schema stdin prompt strength format input form error message required enabled disabled "
    "placeholder protected env var ref refs ring board word words tokens secrets keys passwords title "
    "status state age days hours minutes seconds second ms algorithm alg method scheme mode class "
    "function generator parser reader writer tokenizer kind description desc text"
)
NO_SECRET_TAILS = NO_SECRET_WORDS | word_set(
    "hasher hashers salt attempts retries tries box dialog view page screen button btn icon changed confirm confirmation confirmed"
    " validator validators validation checker check error errors handler helper service test tests spec strategy encoder decoder"
    " property properties setting settings config configuration option options requirement requirements storage source lookup"
    " locator selector visible visibility toggle command script program utils util module manager managers cache group list"
    " feld hinweis champ indice campo pista veld hint pole fehlt fehler falsch richtig geandert vergessen oublie olvidada esquecida"
    " match matches mismatch needed history recovery resets safe sharing protection"
)
"""What turns the name of a password into that of something else."""
NAME_TAILS = word_set(
    "prod production dev test testing staging stage live local main old new backup default value val "
    "base b64 base64 plain raw v free pro trial demo beta primary secondary ro rw readonly"
)
MOST_TAILS = 3

LONGEST_NAME = 96

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_LETTERS_WITHOUT_MARK = str.maketrans("łŁøØđĐıß", "lLoOdDis")


class Strength(IntEnum):
    """How sure a name makes us of a secret; the surer, the less the value must look like one."""

    NONE = 0
    WEAK = 1
    SECRET = 2
    QUALIFIED = 3
    PASSWORD = 4


@lru_cache(maxsize=1024)
def strength_of(name: str) -> Strength:
    """Return the strength of a name by its last word, and of a `key` by the word before it.

    A password that is qualified behind its name, as in `PASSWORD_FTP`, must look more like one.
    """
    bare = name.rstrip()
    if bare.endswith(CHINESE_NAMES) or bare.lower().endswith(FOREIGN_NAMES):
        return Strength.PASSWORD
    words = words_of(name[-LONGEST_NAME:])
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in NAME_TAILS):
        words.pop()
    return _strength_of_words(words) if words else Strength.NONE


def is_secret_name(name: str) -> bool:
    """Return whether any value of this name is a secret."""
    return strength_of(name) >= Strength.SECRET or name.lower().endswith(SECRET_HEADERS)


def words_of(name: str) -> list[str]:
    """Split an identifier into its words, in lower case and without accents."""
    if not name.isascii():
        marked = normal_form("NFD", name.translate(_LETTERS_WITHOUT_MARK))
        name = "".join(char for char in marked if not unicodedata.combining(char))
    return [word.lower() for word in _WORD.findall(name)]


def _strength_of_words(words: list[str]) -> Strength:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in NO_SECRET_WORDS and before + last not in {*PASSWORD_PHRASES, "apihash"}:
        return Strength.NONE
    if _ends_in_password(words):
        return Strength.PASSWORD
    if before in PUBLIC_KINDS:
        return Strength.NONE
    is_owned = (last == "key" and before in KEY_OWNERS) or before + last == "apihash"
    if is_owned or last.endswith(SECRET_ENDINGS) or last in SECRET_WORDS:
        return Strength.SECRET
    if _has_qualified_password(words):
        return Strength.QUALIFIED
    return Strength.NONE if WEAK_WORDS.isdisjoint(words) else Strength.WEAK


def _ends_in_password(words: list[str]) -> bool:
    last = words[-1]
    if last.endswith(PASSWORD_ENDINGS) or last in PASSWORD_WORDS:
        return True
    return any("".join(words[-count:]) in PASSWORD_PHRASES for count in (2, 3, 4))


def _has_qualified_password(words: list[str]) -> bool:
    """Return whether the name of a password is followed by a few words that say which one it is."""
    for count in range(1, MOST_TAILS + 1):
        if words[-count] in NO_SECRET_TAILS or len(words) <= count:
            return False
        if _ends_in_password(words[:-count]):
            return True
    return False
