"""Secrets that stand apart from their name: on a line below it, in its column, in an element after it.

A table is read from its header, whichever column has the name of a secret.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from creonowd.redaction.rules import NOTHING, PLACEHOLDER, UUID, MatchSpan, RedactionRule
from creonowd.redaction.secret_names import (
    CHINESE_NAMES,
    FOREIGN_NAMES,
    HAN_LABELS,
    NO_SECRET_TAILS,
    Strength,
    strength_of,
)
from creonowd.redaction.shape import (
    FUNCTION_WORDS,
    Oddity,
    has_digit_and_letter,
    has_sign,
    is_blank,
    is_blank_han,
    is_code_group,
    is_common_value,
    is_gibberish,
    is_hash,
    is_key_like,
    is_latin,
    is_passphrase,
    is_plain_value,
    is_random,
    is_reference,
    is_remark_han,
    is_secret,
    is_stand_in,
    names_a_secret,
    oddity,
    unaccented,
    word_set,
)

LONGEST_HEAD = 60
LONGEST_ROW = 2048
LONGEST_BLOCK = 400
LONGEST_CELL = 40
SHORTEST_KEY = 20
MOST_EMPTY_ROWS = 64
COST_OF_A_NAME = 8
MOST_HEADERS = 256
MOST_DEVICES = 32
_SIGNS = "\t,;|│｜"
_ACCOUNT = re.compile(
    r"(?:\A|[ \u3000])(?:user(?:name)?|login|account|e?-?mail|id|[账帐帳賬][号號户戶]|用户名?|アカウント|아이디|계정)[ \u3000]",
    re.IGNORECASE,
)
"""Names of the column beside a password, without which words in a row are no header."""
MOST_COLUMNS = 64
MOST_WORDS = 7
MOST_LETTERS = 24
_NO_PHRASE = word_set(
    "ask same see none no yes not n/a in on at with uses use sign google apple facebook login via as is my your our the a an must should login"
    " written printed stored saved kept unknown lost forgotten changed expired optional required min max least varchar string text phone only"
    " sms mail e-mail email card free trial face finger fragen wie demander idem igual pedir come chiedere через спросить"
)

_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_ENGLISH_NAMES = (
    "password", "passwd", "pwd", "passphrase", "passcode", "token", "secret", "key", "pass", "pin", "pw",
    "secret word", "code word", "parola chiave",
)  # fmt: skip
_NAMES = (*_ENGLISH_NAMES, *FOREIGN_NAMES)
_COMMON_HAN = tuple(sorted({*HAN_LABELS, *CHINESE_NAMES} - {"钥匙"}, key=len, reverse=True))
_NAME = rf"(?P<name>(?iu:{'|'.join(_NAMES)})s?|(?:{'|'.join(_COMMON_HAN)}))"
_OTHER_NAMES = tuple(dict.fromkeys(name.lower() for name in (*FOREIGN_NAMES, *_COMMON_HAN)))
_SECRET_WORDS = frozenset(
    (
        "secret word",
        "secret answer",
        "security answer",
        "secret_answer",
        "security_answer",
        "safe word",
        "code word",
        "memorable word",
        "parola chiave",
        "codewort",
        "kod",
        "haslo",
    )
)
_CODE_HEADER = re.compile(
    r"(?:door|gate|alarm|entry|access|key[ -]?safe|lock(?:box)?|locker|garage|room|t[üu]r|haust[üu]r|zimmer|alarm|tor|tresor|spind)[ _-]?(?:code|pin)\Z"
    r"|(?:code|código|codice|kod|kode|pin)[ _](?:(?:de|du|da|do|del|della|d['’])[ ]?)?(?:la |l['’])?(?:porte|portail|porta|puerta|portão|portal|alarma?e?|accès|acceso|accesso|entrée|entrada|chambre|habitación|caja|coffre)\Z"
    r"|(?:门禁|門禁|门锁|开锁|取件|开柜|入户)[码碼]\Z|コード番号\Z|解錠(?:番号|コード)\Z|код (?:двери|домофона|доступа|сейфа)\Z",
    re.IGNORECASE,
)
_CODE_ANCHORS = (
    "code",
    "alarm-pin",
    "alarma",
    "门禁码",
    "门锁码",
    "开锁码",
    "取件码",
    "porte",
    "portail",
    "puerta",
    "porta",
    "解錠番号",
    "домофона",
)
_CODE_COLUMNS = word_set("code código codice kode kod код Code Código Codice Kode Kod Код CODE")
_KEYS_OR_CODES = _CODE_COLUMNS | word_set(
    "key keys schlüssel clé clave chiave chave ключ Key Keys Schlüssel Clé Clave Chiave Chave Ключ KEY"
)
_LOCK_CODE = re.compile(r"[#*]?(?=[A-Z]?[0-9]{3})[0-9A-Z]{3,8}[#*]?\Z")
_LOCK_IN_ROW = re.compile(
    r"(?:\b(?:alarm|key ?(?:safe|box)|lock ?box|doors?|gate|garage|safe|padlock|keypad|lobby|tür|haustür|tor|tresor|porte|portail|coffre|puerta|portal|porta|cancello|cofre|дверь|сейф|ворота)|[门門]|保险[柜箱])[ ]*(?:[|,;\t]|[ ]{2}|\Z)",
    re.IGNORECASE,
)
_UUID = re.compile(f"{UUID}\\Z")
_NETWORK_TAIL = re.compile(
    r"[ _](?:(?:for|of|do|da|de|del|della|du|des|от|від|till|voor)[ _])?(?:wi-?fi|wlan|router|red|rete|rede|réseau)\Z",
    re.IGNORECASE,
)
_KEYS_OF_NETWORKS = word_set(
    "clé clef clave chiave chave schlüssel sleutel klucz ключ key code nyckel nøgle"
)
_BARE_NAMES = frozenset(("pass", "pw"))
"""Names of passwords that are also plain words, unless they stand alone."""
_MAY_BE_HEADER = re.compile("|".join((*_NAMES, *_COMMON_HAN)), re.IGNORECASE)
_BEFORE_VALUE_BELOW = (
    "\n", "\r", ":\n", ":\r", " :\n", " :\r", "**", ":**", "=\n", "=\r", " =\n", " =\r"
)  # fmt: skip
_BEFORE_NEXT_CELL = (*',;|\t\n\r"*│｜', " |", " │", " /", "  ", " \n", " \r")

_LINE = r"[ \t]{0,8}\r?\n"
_VALUE_BELOW = (
    r"(?:[ \t]?[(（][^()（）\n]{0,24}[)）]|[ \t]\[[^\[\]\n]{0,24}\]|)[*_`]{0,3}"
    r"(?:[ \t](?:for|of)(?:[ \t][\w@.'’-]{1,24}){1,4}|)"
    r"(?:[ \t]?(?:is|are|as)?[ \t]?(?:below|follows)|[ \t]is(?=:)|如下|在下面|见下"
    r"|(?:は|が)?(?:以下|次|下記)の?(?:通り|とおり)?(?:です|になります)?|[는은]?[ ]?(?:아래|다음)(?:와 같습니다|와 같아요|입니다)?"
    r"|[ ]?[↓▼👇⬇]\ufe0f?|[ ](?=[:=]))?[.:：。=]{0,1}[*_`]{0,3}"
    rf"{_LINE}(?:[-=]{{3,60}}{_LINE})?(?:{_LINE}){{0,2}}(?:[ \t]{{0,8}}(?:```|~~~)[a-z]{{0,12}}{_LINE})?"
    r"[ \t]{0,12}(?P<item>(?:[-*+>•:→↳➜‣▸▪◦·]|[└├]─{1,2}|[0-9]{1,2}[.)])[ \t]{1,4}(?:[^\s:：][^\n:：]{0,23}[:：][ \t]{0,4})?)?(?P<marks>[*_`\"']{0,3})(?:(?P<value>[!-~\u00c0-\u024f]{4,128}+)|(?P<phrase>(?u:[^\W_][\w'’-]{0,19})(?:,?[ ](?u:[^\W_][\w'’-]{0,19})){2,8}))"
    r"[ \t]{0,8}(?=\r?\n|\Z)"
)
_ITEM = re.compile(
    r"[ \t]{0,8}\r?\n[ \t]{0,12}(?:[-*+>•]|[0-9]{1,2}[.)])[ \t]{1,4}(?:[^\s:：][^\n:：]{0,23}[:：][ \t]{0,4})?[*_`\"']{0,3}([!-~]{4,128}+)[ \t]{0,8}(?=\r?\n|\Z)"
)
_OTHER_LINE = re.compile(
    r"v?[0-9]+(?:[-./:][0-9]+)+\Z|[A-Za-z_][\w.-]{0,48}=(?=.*[^=]\Z)|[\w.+-]+@[\w-]+(?:\.[\w-]+)+[:;|/]"
)
"""A date or a version, a setting such as `LEVEL=info`, or an address with more behind it."""
_CHAIN = re.compile(r"[a-z]{2,}(?:([-._])[a-z]{2,})(?:\1[a-z]{2,}){1,7}\Z")
_WORD_OF_CHAIN = r"(?:[A-Z]?[a-z]{2,24}|[A-Z]{2,24})"
_MIXED_CHAIN = re.compile(
    rf"(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z]){_WORD_OF_CHAIN}(?:([-._]){_WORD_OF_CHAIN})(?:\1{_WORD_OF_CHAIN}){{1,7}}\Z"
)
_SHOUTED_WORD = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])")
_INDENT = re.compile(r"[ \t]*(?:- )?")
_VALUE_FIELD = re.compile(
    r"(?<![\w.-])[\"']?(?P<name>(?i:default(?:_?value)?|value|parametervalue|secretstring))[\"']?[ \t]{0,24}(?:=>|[:=])[ \t]{0,8}"
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\"'\n]{3,128})(?P=quote)|(?P<bare>[^\s\"'{}\[\],;]{3,128})(?=[,;]?[ \t]*(?:[\r\n}#]|\Z)))"
)
_NO_MORE = re.compile(r"[ \t]*(?:\r?\n[ \t]*(?:\r?\n|\Z)|\Z)")
_ABOUT_PHRASES = word_set(
    "she he her his him they them it we i you your who whom nobody everyone anyone knows knew known told asked asks needed kept stored saved hidden written printed forgotten lost same see ask must should least characters whatever tells says said"
    " words password passphrase phrase required optional chapter scene key is are was were be been will would can could"
)
"""Words of sentences about a passphrase, or of a story."""
_SAID_BELOW = re.compile(
    r"です|ます|した\Z|ない\Z|なし\Z|ください|密[码碼]|口令|合言葉|パス|第.{1,3}[章話回]|[她他你我]|彼|知道|忘|说|問|问|言|記|记|写|書"
)
_DEVICE_ROW = re.compile(
    r"(?:\A|(?<=\n))[ \t]{0,8}(?:[-*+•][ ])?(?P<name>[^\W\d_](?u:[\w '’/()*.-]){1,27}?)[ ]?[:：][*_]{0,2}(?:[ \t]{1,8}|(?<=：))[`*_]{0,2}(?P<value>[^\s:：][^\n:：]{1,39}?)[ \t]*(?:\r?\n|\Z)"
)
_BLOCK_ENDS = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_DEVICE = re.compile(
    r"\b(?:laptop|tablet|phone|desktop|computer|pc|mac(?:book)?|ipad|iphone|kindle|e-?mail|mail|router|wi-?fi|wlan|nas|blog|website|bank|printer|server|cloud|dropbox|netflix|amazon|google|apple|steam|github|zoom|handy|rechner|drucker|ordinateur|téléphone|tablette|portátil|móvil|ноутбук|планшет|телефон|почта|роутер)\b"
    r"|电脑|手机|平板|邮箱|路由器?|网盘|笔记本|微信|打印机|スマホ|パソコン|タブレット|メール|노트북|휴대폰|태블릿|메일",
    re.IGNORECASE,
)
_OF_POLICY = re.compile(
    r"length|minimum|maximum|expir|rotat|reset|rule|note|hint|count|manager|polic|author|date|page|chapter|länge|长度|规则|备注|有效|作者",
    re.IGNORECASE,
)
_CONTACT = re.compile(r"[+(]?[0-9][0-9 ()/-]{6,}\Z|(?:[a-z0-9-]+\.)+[a-z]{2,8}\Z", re.IGNORECASE)
"""A telephone number or a host."""
_REMARKS = word_set(
    "needs need weak strong reused reuse broken sold gone given stolen old new old-fashioned okay fine still ready done later soon tomorrow today yesterday he she they it them we you i"
    " is was are were has had schwach stark kaputt verkauft faible forte cassé débil roto сломан продан"
)
_ENDS_SENTENCE = re.compile(r"[.!?,;。！？，；]\Z")
_NO_PHRASE_BELOW = FUNCTION_WORDS - word_set(
    "a an the of in on at by for from with and or to my your our"
)
_NAME_OF_VARIABLE = re.compile(r"(?:\n|\A)[ \t]*-?[ \t]*name[ ]?:[ ]?[\"']?[A-Z0-9_]*\Z")
_HEADING_ONLY = re.compile(r"[^\n\t|,;!?，。；！？]{0,60}\Z")

_POINTS_DOWN = re.compile(
    r"\b(?:below|underneath|following|this (?:code )?block|next block|unten|unterhalb|folgenden?|dessous|suivant|abajo|siguiente|sotto|seguente|abaixo|seguinte|hieronder|ниже|следующ\w{2,3})\b|下面|下方|以下|如下|下の|次の|아래|다음",
    re.IGNORECASE,
)
_NAMED_ABOVE = re.compile(
    rf"(?P<password>(?<![A-Za-z])(?:passwords?|passphrase|passcode|{'|'.join(map(re.escape, FOREIGN_NAMES))})(?![A-Za-z])|{'|'.join(HAN_LABELS[:3])}|パスワード|비밀번호)"
    r"|(?<![A-Za-z])(?:tokens?|secret|jeton|api[ -]key|access key|signing key|private key|clé (?:api|secrète)|clave (?:api|secreta))(?![A-Za-z])|token\b|[Ss]chlüssel\b|токен|令牌|密[钥鑰]|[秘私][钥鑰]|金鑰|トークン|シークレット|APIキー|토큰",
    re.IGNORECASE,
)
_OTHER_IN_BLOCK = re.compile(
    r"\b(?:hash\w*|checksums?|digests?|fingerprint|commits?|revision|public|primary|foreign|ids?|uuid|placeholder|example|sample|fake|dummy|output|regex|pattern|policy|rules?|length|strength|format|"
    r"prüfsumme|beispiel|öffentliche\w?|exemple|ejemplo|esempio|exemplo|пример)\b|哈希|校验|摘要|指纹|公钥|示例|例子|占位|格式|规则|强度|正则|例|公開鍵",
    re.IGNORECASE,
)
_FILE = re.compile(r"[A-Za-z0-9]\.[a-z]{2,4}\Z")
LONGEST_SENTENCE = 200

_USER_WITH = re.compile(
    r"(?:user(?:[ -]?names?)?|log-?in(?:[ -]?names?)?|accounts?(?:[ -]?names?)?|e-?mails?(?:[ -]address)?|benutzer(?:name)?|nutzer(?:name)?|konto|kennung|identifiants?|utilisateur|compte|usuario|cuenta|correo|utente|conto|usuário|conta|gebruiker(?:snaam)?|логин|пользователь"
    r"|用户名?|用戶名?|[账帐帳賬][号號户戶]名?|登[录錄]名|邮箱|ユーザー名?|アカウント|아이디|계정)[ ]?(?:and|und|et|y|e|en|и|和|与|與|及|と|[및와과]|[&+/,、])[ ]?(?:the |das |le |la |il |o |het )?\Z",
    re.IGNORECASE,
)
_BESIDE_USERS = (
    "password", "passwort", "kennwort", "mot de passe", "mdp", "contraseña", "senha", "wachtwoord", "пароль", "密码", "密碼", "口令", "パスワード", "비밀번호",
)  # fmt: skip
_USER_IN_ROW = re.compile(r"[\w.+-]{2,64}(?:@[\w.-]{3,64})?\Z")

_CELLS = {
    sign: re.compile(
        rf"(?:(?<={re.escape(sign)})|(?<!.))(?:[ ]?\"(?:[^\"]|\"\")*+\"[ ]?(?={re.escape(sign)}|\Z)|[^{re.escape(sign)}]*+)"
    )
    for sign in _SIGNS
} | {
    " ": re.compile(r"[^ \t\u3000]+"),
    "  ": re.compile(r"\S+(?:[ ]\S+)*"),
    "/": re.compile(r"(?:[^/]|(?<![ ])/|/(?![ ]))+"),
}


_TITLE_BEFORE = re.compile(r"<(?:key|h[1-6]|dt|th|b|strong|label)>[^<>\n]{0,40}\Z", re.IGNORECASE)
_COUNTED = re.compile(r"[0-9][ ]?[位个個字次元年月日天%]|文字|桁|자리")
_LICENCE_ABOVE = re.compile(
    r"<[\w:-]{0,24}(?:licen[cs]e|activation|registration|product|lizenz|subscription)",
    re.IGNORECASE,
)
_NO_HEADER = frozenset('="')
_GAP = re.compile(r"\S[ ]{2,}(?=\S)")
_HTML_CELL = re.compile(r"<t[hd](?:\s[^<>]{0,120})?>(?:\s{0,8}<\w{1,6}>)?([^<>]{0,128})<")


def _with_endings(names: Sequence[str], endings: Sequence[str]) -> tuple[str, ...]:
    """Return anchors that include what must follow a name, so that the name alone starts no match."""
    return tuple(name.lower() + ending for name in names for ending in endings)


def _below(match: "re.Match[str]") -> Sequence[MatchSpan]:
    start = match.start()
    line = match.string.rfind("\n", max(0, start - LONGEST_HEAD), start) + 1
    if not line and start > LONGEST_HEAD:
        return NOTHING
    if not _HEADING_ONLY.match(match.string, line, start):
        return NOTHING
    strength = _strength(match)
    if match["phrase"]:
        return (match.span("phrase"),) if _is_phrase_below(match, strength) else NOTHING
    value = match["value"].rstrip("*_`\"'" if match["marks"] else "")
    if ":" in value and match.string[start - 1 : start] == ":":
        return NOTHING
    is_chain = _is_chain(value, strength, phrase="phrase" in match["name"].lower())
    if strength < Strength.SECRET or not (is_chain or _is_below(value, strength)):
        return NOTHING
    first = match.start("value")
    return ((first, first + len(value)), *_next_items(match, strength))


def _is_chain(value: str, strength: Strength, *, phrase: bool) -> bool:
    """Return whether words are joined to a passphrase, in any case: `walnut-NINETY-dormouse-sleet`."""
    if _CHAIN.match(value):
        return phrase
    if strength < Strength.PASSWORD or not _MIXED_CHAIN.match(value) or names_a_secret(value):
        return False
    words = re.split("[-._]", value)
    if not FUNCTION_WORDS.isdisjoint(map(str.lower, words)):
        return False
    is_shouted = _SHOUTED_WORD.search(value) is not None
    return (is_shouted and len(words) > (2 if phrase else 3)) or (phrase and len(words) > 3)


def _is_phrase_below(match: "re.Match[str]", strength: Strength) -> bool:
    """Return whether words on a line of their own are a passphrase: marked, or as no sentence has them."""
    words = match["phrase"].lower().replace(",", "").split()
    if is_blank(match["phrase"]):
        return False
    if all(map(has_digit_and_letter, words)):
        return strength is Strength.PASSWORD
    if "phrase" not in match["name"].lower():
        return False
    if _stands_below(match) and _is_wordy(words):
        return True
    is_told = re.search("[0-9]", words[-1]) and not re.match("(?:1[5-9]|20)[0-9]{2}\\Z", words[-1])
    is_told = is_told and _NO_PHRASE_BELOW.isdisjoint(words)
    return bool(match["item"] or match["marks"] or is_told)


def _stands_below(match: "re.Match[str]") -> bool:
    """Return whether words stand alone below a label that begins its line, deeper than it."""
    text = match.string
    line = text.rfind("\n", 0, match.start()) + 1
    row = text.rfind("\n", 0, match.start("phrase")) + 1
    is_label = not text[line : match.start()].strip(" \t>*#_-•")
    is_deeper = match.start("phrase") - row >= match.start() - line + 2
    return is_label and is_deeper and _NO_MORE.match(text, match.end()) is not None


def _is_wordy(words: Sequence[str]) -> bool:
    """Return whether words may be a passphrase: they say nothing of one, nor of who knows it."""
    return len(words) >= 4 and _ABOUT_PHRASES.isdisjoint(words) and not is_common_value(words[0])


def _han_below(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a line of Chinese or Japanese that stands alone below a label with a remark or a colon."""
    text, start = match.string, match.start()
    line = text.rfind("\n", max(0, start - LONGEST_HEAD), start) + 1
    is_label = not re.search(r"[。！？，、「」“”|]", text[line:start]) and start - line <= 12
    value = match["value"]
    is_told = is_blank_han(value) or is_remark_han(value) or _SAID_BELOW.search(value) is not None
    return (match.span("value"),) if is_label and not is_told else NOTHING


def _devices(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the values of `device: value` below a title, if every line of the block is such a one."""
    text, place = match.string, match.end()
    line = text.rfind("\n", max(0, match.start() - LONGEST_HEAD), match.start()) + 1
    if text[line : match.start()].strip(" \t>*#_-•=【[") or (
        not line and match.start() > LONGEST_HEAD
    ):
        return NOTHING
    rows: list[re.Match[str]] = []
    while len(rows) <= MOST_DEVICES and (row := _DEVICE_ROW.match(text, place)):
        rows.append(row)
        place = row.end()
    if not 2 <= len(rows) <= MOST_DEVICES or not _BLOCK_ENDS.match(text, place):
        return NOTHING
    names = [row["name"].strip(" *_").lower() for row in rows]
    if not any(map(_DEVICE.search, names)) or any(map(_OF_POLICY.search, names)):
        return NOTHING
    values = [row["value"].rstrip(" \t*_`") for row in rows]
    if any(len(value.split()) > 4 or _ENDS_SENTENCE.search(value) for value in values):
        return NOTHING
    return [
        (row.start("value"), row.start("value") + len(value))
        for row, value in zip(rows, values, strict=True)
        if _is_of_device(value)
    ]


def _is_of_device(value: str) -> bool:
    words = value.lower().split()
    if len(value) < 3 or is_stand_in(value) or is_reference(value) or words[0] in _NO_PHRASE:
        return False
    if _CONTACT.match(value) or not _REMARKS.isdisjoint(words):
        return False
    if not is_latin(value):
        return not (is_blank_han(value) or is_remark_han(value))
    return not any(map(is_common_value, words)) and not any(map(is_blank, words))


def _below_network(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the only line below a heading that names a network, if nobody would call one so."""
    text, start = match.string, match.start()
    line = text.rfind("\n", max(0, start - LONGEST_HEAD), start) + 1
    value = match["value"].rstrip("*_`")
    is_taken = (
        not text[line:start].strip(" \t>*#_-•📶")
        and is_plain_value(value)
        and (oddity(value) >= Oddity.UNSAYABLE or (has_sign(value) and has_digit_and_letter(value)))
    )
    first = match.start("value")
    return ((first, first + len(value)),) if is_taken else NOTHING


def _next_items(match: "re.Match[str]", strength: Strength) -> Iterator[MatchSpan]:
    """Yield what stands in the items of a list below the first one."""
    place = match.end()
    while match["item"] and (item := _ITEM.match(match.string, place)):
        if not _is_below(item[1], strength):
            return
        yield item.span(1)
        place = item.end()


def _strength(match: "re.Match[str]") -> Strength:
    """Return the strength of the whole name that ends here, with the word before it."""
    name = match["name"]
    if not name.isascii():
        is_password = name.endswith(HAN_LABELS) or name.lower().endswith(FOREIGN_NAMES)
        return Strength.PASSWORD if is_password else Strength.SECRET
    head = match.string[max(0, match.start() - LONGEST_HEAD) : match.start()]
    apart = head.rstrip(_NAME_CHARS)
    own = head[len(apart) :] + (name if name.lower().endswith("ss") else name.removesuffix("s"))
    strength = strength_of(own)
    if own.lower() in _BARE_NAMES and not apart.rpartition("\n")[2].strip(" \t>*-+•"):
        return Strength.PASSWORD
    if strength is Strength.PASSWORD or not apart.endswith(" "):
        return strength
    before = apart.rstrip(" ")
    return max(strength, strength_of(f"{before[len(before.rstrip(_NAME_CHARS)) :]} {own}"))


def _is_below(value: str, strength: Strength) -> bool:
    value = unaccented(value)
    if is_reference(value) or not is_plain_value(value) or _OTHER_LINE.match(value):
        return False
    if strength < Strength.PASSWORD:
        return is_random(value, 12) or is_gibberish(value)
    if value.isdigit():
        return len(value) >= 6
    if has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6):
        return len(value) >= 4 and not value.endswith((":", "：", ","))
    if is_gibberish(value):
        return True
    return value.islower() and "_" not in value and is_passphrase(value, 3)


def _in_block(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the only line of a block, if the sentence above says that a password or key is in there."""
    text, start = match.string, match.start()
    first = max(0, start - LONGEST_SENTENCE)
    above = text[first:start].rstrip().rpartition("\n")[2]
    named = _NAMED_ABOVE.search(above)
    if named is None or not _POINTS_DOWN.search(above) or _OTHER_IN_BLOCK.search(above):
        return NOTHING
    strength = Strength.PASSWORD if named["password"] else Strength.SECRET
    is_taken = _is_below(match["value"], strength) and not _FILE.search(match["value"])
    return (match.span("value"),) if is_taken else NOTHING


def _below_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the second of the two lines that are announced as a user and a password."""
    text, start = match.string, match.start()
    head = text[max(0, start - LONGEST_HEAD) : start]
    words = re.findall(r"\w+", match["rest"].lower())
    if not NO_SECRET_TAILS.isdisjoint(words) or not _USER_WITH.search(head):
        return NOTHING
    user, value = match["user"], match["value"]
    is_user = _USER_IN_ROW.match(user) is not None and user.lower() not in FUNCTION_WORDS
    if not is_user or is_blank(user) or is_common_value(user):
        return NOTHING
    return (match.span("value"),) if _is_below(value, Strength.PASSWORD) else NOTHING


def _field_of_block(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take `default = "…"` or `value: …` of the block, object or entry whose title names a password."""
    strength = _strength(match)
    if strength < Strength.SECRET:
        return NOTHING
    text, end = match.string, match.end()
    field = _VALUE_FIELD.search(text, end, _end_of_block(match))
    if field is None:
        return NOTHING
    kind = "quoted" if field["quoted"] is not None else "bare"
    value = unaccented(field[kind])
    if not is_latin(value) or not is_plain_value(value, code=kind == "bare"):
        return NOTHING
    if strength < Strength.PASSWORD:
        is_taken = is_random(value, 12)
    else:
        is_setting = (
            match["braces"] is not None and kind == "quoted" and field["name"].lower() == "default"
        )
        is_taken = (
            is_setting or has_digit_and_letter(value) or has_sign(value) or _CHAIN.match(value)
        )
    return (field.span(kind),) if is_taken else NOTHING


def _variable(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a variable that is set in two lines, its name and its value."""
    head = match.string[max(0, match.start() - LONGEST_HEAD) : match.start()]
    is_variable = _NAME_OF_VARIABLE.search(head) is not None
    return (match.span("value"),) if is_variable and is_plain_value(match["value"]) else NOTHING


def _end_of_block(match: "re.Match[str]") -> int:
    """Find where the braces close, or the first line that is indented no deeper than the title."""
    text, end = match.string, match.end()
    limit = min(len(text), end + LONGEST_BLOCK)
    if match["lines"] is None:
        closing = text.find("}", end, limit)
        return limit if closing < 0 else closing
    line = text.rfind("\n", max(0, match.start() - LONGEST_HEAD), match.start()) + 1
    indent = _INDENT.match(text, line)
    deeper = re.compile(rf"\r?\n[ ]{{{len(indent[0]) + 1 if indent else 1}}}[^\n]*")
    place = end
    while place < limit and (row := deeper.match(text, place)):
        place = row.end()
    return min(place, limit)


def _element(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the content of `<password>`, of an element so named, and of the one after its `<key>`."""
    start = match.start("name")
    head = match.string[max(0, start - LONGEST_HEAD) : start]
    apart = head.rstrip(_NAME_CHARS + ":")
    name = (head[len(apart) :] + match["name"]).rpartition(":")[2]
    strength = _header_strength(name)
    is_key = _TITLE_BEFORE.search(head) is not None
    if not is_key and not apart.lower().endswith(
        ("<", "<key>", 'name="', "name='", 'key="', "key='")
    ):
        return NOTHING
    kind = "content" if match["content"] is not None else "attribute"
    value = match[kind].strip()
    is_phrase = "phrase" in name.lower() and FUNCTION_WORDS.isdisjoint(value.lower().split())
    if strength < Strength.SECRET or not value or not (_is_cell(value, strength) or is_phrase):
        return NOTHING
    if value == PLACEHOLDER:
        return NOTHING
    start = match.start(kind) + match[kind].index(value)
    return ((start, start + len(value)),)


def _code_element(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the code in `<serial>`, and in the `<key>` of a licence or a registration."""
    if match["code"] is None:
        first = max(0, match.start() - LONGEST_BLOCK)
        if _LICENCE_ABOVE.search(match.string, first, match.start()) is None:
            return NOTHING
    is_code = is_code_group(match["value"]) or is_key_like(match["value"])
    return (match.span("value"),) if is_code else NOTHING


def _column(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the values of all columns with a secret's name, down to the end of the table."""
    text, place = match.string, match.start()
    start = text.rfind("\n", place - LONGEST_ROW if place > LONGEST_ROW else 0, place) + 1
    below = text.find("\n", place, place + LONGEST_ROW) + 1
    if (
        not below
        or (not start and place > LONGEST_ROW)
        or text.startswith(text[start:below], below)
    ):
        return NOTHING
    end = _line_end(text, place)
    above = text.rfind("\n", max(0, start - LONGEST_ROW), max(0, start - 1)) + 1
    if text.startswith("|", start) and above < start and text.startswith("|", above):
        return NOTHING
    header = _read_header(text[start:end])
    return NOTHING if header is None else tuple(_secret_cells(text, end, header))


def _html_column(match: "re.Match[str]") -> Iterator[MatchSpan]:
    """Yield the values below the cells of a table in HTML that have a secret's name."""
    text, start = match.string, match.start()
    first = text.rfind("<tr", max(0, start - LONGEST_ROW), start)
    end = text.find("</tr>", start, start + LONGEST_ROW)
    if first < 0 or end < 0 or text.find("</tr>", first, start) >= 0:
        return
    names = [cell[1].strip() for cell in _HTML_CELL.finditer(text, first, end)]
    secret = {
        at: found
        for at, name in enumerate(names)
        if (found := _header_strength(name)) >= Strength.SECRET
    }
    for _ in range(MOST_EMPTY_ROWS if secret else 0):
        first, end = end, text.find("</tr>", end + 1, end + 1 + LONGEST_ROW)
        cells = list(_HTML_CELL.finditer(text, first, end)) if end > 0 else []
        if len(cells) != len(names):
            return
        for column, strength in secret.items():
            value = cells[column][1].strip()
            if _is_cell(value, strength):
                place = cells[column].start(1) + cells[column][1].index(value)
                yield place, place + len(value)


def _html(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return tuple(_html_column(match))


class _Header(NamedTuple):
    """The header of a table: its names, and how strong those are that a secret has, by column."""

    delimiter: str
    names: Sequence[str]
    secret: Mapping[int, Strength]


def _read_header(line: str) -> _Header | None:
    """Read a line as the header of a table; None if it is none, or no column has a secret's name."""
    delimiter = _delimiter(line)
    names = [_cell_text(line, cell) for cell in _cells(line, delimiter)] if delimiter else []
    if not 2 <= len(names) <= MOST_COLUMNS or not _is_header(
        names, is_typed=delimiter in "\t/" or line.lstrip().startswith("|")
    ):
        return None
    if not all(names) and delimiter == "|" and not line.lstrip().startswith("|"):
        return None
    has_bars = line.lstrip().startswith("|")
    strengths = {
        column: _header_strength(name)
        for column, name in enumerate(names)
        if has_bars or not name.lower().endswith(" pw")
    }
    secret = {
        column: found
        for column, found in strengths.items()
        if found >= Strength.SECRET or names[column] in _KEYS_OR_CODES
    }
    if _ACCOUNT.search(f" {'  '.join(names)} "):
        named = ("secret", "pass")
        secret |= {at: Strength.PASSWORD for at in secret if names[at].lower() in named}
    return _Header(delimiter, names, secret) if secret else None


def header_above(above: str, row: str, first_lines: str = "") -> str:
    """Return the header, with a column of secrets, of the table that goes on with `row`; else "".

    `above` are the lines right above it. If all of them may be rows of that table, its header may
    also be among the `first_lines` of the file.
    """
    signs = [sign for sign in _SIGNS if sign in row]
    if not signs:
        return ""
    lines = above.splitlines()
    tried = 0
    for line in reversed(lines):
        if not any(sign in line for sign in signs):
            return ""
        if tried < MOST_HEADERS and _MAY_BE_HEADER.search(line):
            tried += 1
            if _is_header_of(line, row):
                return line
    return next((line for line in first_lines.splitlines() if _is_header_of(line, row)), "")


def _is_header_of(line: str, row: str) -> bool:
    header = _read_header(line) if len(line) <= LONGEST_ROW else None
    return header is not None and len(_cells(row, header.delimiter)) == len(header.names)


def _secret_cells(text: str, end: int, header: _Header) -> Iterator[MatchSpan]:
    """Yield the values of columns, row by row, until one has other cells or is the header again."""
    delimiter, names, secret = header
    first_column, misses = min(secret), 0
    for row_start, row in _rows(text, end, delimiter):
        cells = _cells(row, delimiter)
        if len(cells) != len(names) or misses >= MOST_EMPTY_ROWS:
            return
        if _cell_text(row, cells[first_column]) == names[first_column]:
            return
        is_name = _header_strength(_cell_text(row, cells[first_column])) >= Strength.SECRET
        misses += COST_OF_A_NAME if is_name else 1
        for column, strength in secret.items():
            first, last = cells[column]
            is_key = strength < Strength.SECRET and names[column] not in _CODE_COLUMNS
            if is_key and last - first < SHORTEST_KEY:
                continue
            first, last = _trim(row, (first, last))
            value = row[first:last]
            if value == PLACEHOLDER:
                misses = 0
            elif (
                _is_weak_cell(value, names[column], row)
                if strength < Strength.SECRET
                else _is_cell(value, strength)
                and (value.isdigit() or not names[column].endswith("PIN"))
            ):
                misses = 0
                yield row_start + first, row_start + last


def _rows(text: str, end: int, delimiter: str) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each row below a header; not the line that Markdown draws."""
    while (start := text.find("\n", end) + 1) > 0 and (end := _line_end(text, start)) >= 0:
        row = text[start:end]
        if delimiter not in "|│" or row.strip("|-+=: \t│─┼├┤═╪╞╡"):
            yield start, row
        if end == len(text):
            return


def _line_end(text: str, place: int) -> int:
    """Find the end of a line without its break; -1 if it is too long."""
    end = text.find("\n", place, place + LONGEST_ROW)
    if end < 0:
        return len(text) if len(text) - place <= LONGEST_ROW else -1
    return end - 1 if text[end - 1] == "\r" else end


def _delimiter(header: str) -> str:
    if header.lstrip().startswith("|"):
        return "|"
    found = next((sign for sign in _SIGNS if sign in header), "")
    if header.count(" / ") > 1:
        return "/"
    if not found and len(_GAP.findall(header.strip())) > 1:
        return "  "
    return found or (" " if _ACCOUNT.search(header) else "")


@lru_cache(maxsize=2 * MOST_EMPTY_ROWS)
def _cells(row: str, delimiter: str) -> Sequence[MatchSpan]:
    """List where the cells of a row are; of a Markdown row without its outer bars.

    Where every row may be a header, each is read for those above it: one of 60 cells takes 10 µs.
    """
    first, last = 0, len(row)
    if delimiter in "|│":
        last = len(row.rstrip(" \t")) - (1 if row.rstrip(" \t").endswith(delimiter) else 0)
        if row.lstrip().startswith(delimiter):
            first = row.index(delimiter) + 1
    if last < first:
        return []
    pattern = _CELLS[delimiter]
    return [match.span() for match in pattern.finditer(row, first, last)]


def _trim(row: str, cell: MatchSpan) -> MatchSpan:
    """Narrow a cell to what is in it, without blanks, quotes and backticks."""
    first, last = cell
    inside = row[first:last]
    bare = inside.strip(" \t\"'`*")
    first += inside.find(bare) if bare else 0
    return first, first + len(bare)


def _cell_text(row: str, cell: MatchSpan) -> str:
    first, last = _trim(row, cell)
    return row[first:last]


def _is_header(names: Sequence[str], *, is_typed: bool = False) -> bool:
    """Distinguish the names of columns from a sentence with commas; none has tabs in it."""
    return all(
        len(name) <= LONGEST_CELL
        and len(words) <= (MOST_WORDS if is_typed else 4)
        and (is_typed or FUNCTION_WORDS.isdisjoint(words))
        and _NO_HEADER.isdisjoint(name)
        and (is_typed or name.count("(") == name.count(")"))
        and not (
            name.endswith(".") and not (is_typed or name.lower().endswith(("no.", "nr.", "№.")))
        )
        and not name.endswith(("!", "?", "。", "！", "？", ":", "："))
        for name in names
        for words in [name.lower().split()]
    )


@lru_cache(maxsize=1024)
def _header_strength(name: str) -> Strength:
    if not name or name.endswith(("钥匙",)):
        return Strength.NONE
    if name.endswith((*HAN_LABELS, "PIN")):
        return Strength.PASSWORD
    if name.replace(" ", "").replace("\u3000", "").endswith(HAN_LABELS):
        return Strength.PASSWORD
    if name.lower() in _SECRET_WORDS:
        return Strength.PASSWORD
    if _CODE_HEADER.search(name):
        return Strength.PASSWORD
    bare = _NETWORK_TAIL.sub("", name)
    return (
        Strength.PASSWORD
        if bare is not name and bare.lower() in _KEYS_OF_NETWORKS
        else strength_of(bare)
    )


def _is_weak_cell(value: str, name: str, row: str) -> bool:
    """Return whether a cell below a mere `key` is what a machine makes, or one below `code` that of a lock."""
    if name in _CODE_COLUMNS:
        is_priced = re.search(r"[0-9][.,][0-9]{2}(?![0-9])", row) is not None
        return bool(_LOCK_CODE.match(value) and _LOCK_IN_ROW.search(row)) and not is_priced
    return is_random(value, SHORTEST_KEY) and not is_hash(value) and _UUID.match(value) is None


def _is_cell(value: str, strength: Strength) -> bool:
    if len(value) < 3 or is_stand_in(value) or is_common_value(value):
        return False
    if not is_latin(value):
        has_more = re.search(r"[0-9!@#$%^&*_+]", value) is not None
        is_told = "," in value or not is_blank_han(value)
        is_short = len(value) <= MOST_LETTERS and not _COUNTED.search(value)
        return strength is Strength.PASSWORD and has_more and is_told and is_short
    words = value.lower().split()
    if len(words) > 1:
        is_phrase = len(words) <= MOST_WORDS and words[0] not in _NO_PHRASE
        is_odd = re.search("[0-9]", value) is not None or has_sign(value) or value.istitle()
        return is_phrase and is_odd and strength is Strength.PASSWORD
    if strength < Strength.PASSWORD:
        return is_secret(value) or (len(value) >= 8 and has_digit_and_letter(value))
    return is_plain_value(unaccented(value), code=False) and value.lower() not in FUNCTION_WORDS


RULES = (
    RedactionRule(
        "secret_below_label",
        (
            *_with_endings(
                _ENGLISH_NAMES,
                (
                    *_BEFORE_VALUE_BELOW,
                    " (",
                    " for ",
                    " is:",
                    " is below",
                    " follows",
                    " as follows",
                    " ↓",
                    "↓",
                    " ▼",
                    " 👇",
                    "👇",
                ),
            ),
            *_with_endings(("passwords", "tokens", "secrets", "keys"), _BEFORE_VALUE_BELOW),
            *_OTHER_NAMES,
        ),
        rf"(?<![\t|,;!?，。；！？]){_NAME}{_VALUE_BELOW}",
        _below,
        bounded=False,
        swallows=False,
        wraps=True,
        names=True,
    ),
    RedactionRule(
        "secret_below_label",
        _with_endings(
            _ENGLISH_NAMES,
            ('" {', '"{', '": {', '":{', "': {", "':{", ": {", ":\n", ":\r", '",', "',"),
        ),
        rf"{_NAME}[\"']?(?:[ ]{{0,4}}:?[ ]{{0,4}}(?P<braces>\{{)|(?P<lines>:)[ \t]{{0,4}}(?=\r?\n)|,)",
        _field_of_block,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "secret_below_label",
        _with_endings(
            ("password", "passwd", "passphrase", "pass", "pwd", "pw"), ("\n", "\r", '"\n')
        ),
        r"(?P<name>PASSWORD|PASSWD|PASSPHRASE|PASS|PWD|PW)[\"']?[ \t]*\r?\n[ \t]{0,16}value[ ]?:[ ]?[\"']?(?P<value>[!-~]{3,64}?)[\"']?[ \t]*(?=[\r\n]|\Z)",
        _variable,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "secret_below_label",
        ("\n```", "\n~~~", "\n  ```", "\n  ~~~"),
        r"\n[ ]{0,2}(?:```|~~~)(?:te?xt|plain|console|none|secret|)[ \t]*\r?\n[ \t]{0,8}(?P<value>[!-~]{8,128}+)[ \t]*\r?\n[ ]{0,2}(?:```|~~~)",
        _in_block,
        bounded=False,
        swallows=False,
        wraps=True,
    ),
    RedactionRule(
        "secret_below_label",
        _BESIDE_USERS,
        rf"(?iu:{'|'.join(map(re.escape, _BESIDE_USERS))})(?P<rest>[^\n:：]{{0,60}})[:：]?[ \t]*\r?\n(?:[ \t]*\r?\n)?(?:(?:```|~~~)[a-z]{{0,8}}[ \t]*\r?\n)?"
        r"[ \t>]{0,8}(?:[-*+•][ ]{1,3}|[0-9][.)][ ])?(?P<user>[^\s:：]{2,64})[ \t]*\r?\n[ \t>]{0,8}(?:[-*+•][ ]{1,3}|[0-9][.)][ ])?(?P<value>[!-~\u00c0-\u024f]{5,64}+)[ \t]*(?=[\r\n]|\Z)",
        _below_user,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "secret_below_label",
        (
            "合言葉",
            "パスワード",
            "パスフレーズ",
            "暗号",
            "密码",
            "密碼",
            "口令",
            "暗号",
            "비밀번호",
            "암호",
        ),
        r"(?:合言葉|パスワード|パスフレーズ|暗号|密[码碼]|口令|비밀번호|암호)(?:[（(][^（）()\n]{1,30}[）)][:：]?|[:：])[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t\u3000]{0,8}"
        r"(?P<value>[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{5,16}(?:[ \u3000][\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{1,12}){0,4})[ \t]*(?=\r?\n[ \t]*(?:\r?\n|\Z)|\Z)",
        _han_below,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "secret_below_label",
        _with_endings(
            (
                "passwords",
                "passwörter",
                "kennwörter",
                "mots de passe",
                "contraseñas",
                "senhas",
                "wachtwoorden",
                "hasła",
                "пароли",
                "密码",
                "密碼",
                "パスワード",
                "비밀번호",
            ),
            ("\n", "\r", ":\n", ":\r", "：\n", "：\r", "**", "】", " =", "]"),
        ),
        r"(?iu:passwords|passwörter|kennwörter|mots de passe|contraseñas|senhas|wachtwoorden|hasła|пароли|密[码碼]|パスワード|비밀번호)[*_ =】\]]{0,6}[:：]?[ \t]*\r?\n(?:[-=]{3,40}[ \t]*\r?\n)?(?:[ \t]*\r?\n)?",
        _devices,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "secret_below_label",
        ("wi-fi", "wifi", "wlan", "无线网", "와이파이"),
        r"(?iu:wi-?fi|wlan|无线网|와이파이)(?:[ ]?[(（][^()（）\n]{1,24}[)）]|(?u:[ ][\w'’-]{1,16})){0,2}[*_:：]{0,4}[ \t]*\r?\n(?:[ \t]*\r?\n)?[ \t>]{0,8}(?:[-*•→↳][ ])?[*_`]{0,3}"
        r"(?P<value>[!-~]{6,64}+)[ \t]*(?=\r?\n[ \t]*(?:\r?\n|\Z)|\r?\n?\Z)",
        _below_network,
        bounded=False,
        swallows=False,
        names=True,
    ),
    RedactionRule(
        "secret_in_markup",
        (
            *_with_endings(_ENGLISH_NAMES, ("<", ">", '">', '" ', "'>", "' ")),
            *_with_endings(("<password", "<pass", ":password"), " "),
            *_with_endings(_COMMON_HAN, ("</key",)),
        ),
        rf"(?i)[<:]?(?P<name>password|passwd|pwd|passphrase|passcode|pass|token|secret|key|{'|'.join(_COMMON_HAN)})(?:"
        r"(?:</(?:key|h[1-6]|dt|th|b|strong|label)>\s{0,32}<(?:string|value|pre|p|code|dd|td|span)(?:\s[^<>\n]{0,60})?>|[\"']?(?:\s[^<>\n]{0,80})?>\s{0,16}(?:<value>)?)(?P<content>[^<>\n]{1,128})\s{0,16}</"
        r"|[\"']\s{1,8}value=[\"'](?P<attribute>[^\"'\n]{1,128})[\"'])",
        _element,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "secret_in_markup",
        ("<serial", "<licen", "<activation", "<registration", "<product", "<key>", "<code>"),
        r"(?i)<(?:(?P<code>serial|licen[cs]e|activation|registration|product)(?:[_-]?(?:key|code|number|no|nr|serial))?|key|code)(?:\s[^<>\n]{0,60})?>\s{0,16}(?P<value>[A-Za-z0-9-]{8,64})\s{0,16}</",
        _code_element,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "secret_in_column",
        (*_with_endings(_ENGLISH_NAMES, ("</th", "</td", "</b", "</s")), *_OTHER_NAMES),
        rf"{_NAME}\s{{0,4}}</",
        _html,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "secret_in_column",
        (
            *_with_endings(_ENGLISH_NAMES, _BEFORE_NEXT_CELL),
            *_with_endings(("password", "passwd", "pwd", "pass", "passwort", "kennwort"), ("_",)),
            *_with_endings(("answer",), ("\n", ",", '"', "\t", " |")),
            *_with_endings(_CODE_ANCHORS, (",", ";", "|", "\t", "\n", "\r", " |", "  ")),
            *_OTHER_NAMES,
        ),
        # A header is looked at once, whichever of its names is met first.
        rf"(?:{_NAME}|(?iu:answer|{'|'.join(_CODE_ANCHORS)}))(?:_[a-z0-9]{{1,12}})?[\"'`*)\] \t]{{0,60}}(?=[,;|│｜/\t\r\n]|(?<=[ ]{{2}})\S|(?<=[\u3000\t])\S)[^\n]{{0,{LONGEST_ROW}}}+",
        _column,
        bounded=False,
        names=True,
    ),
)
