"""Secrets in a passage that mentions one: in its sentence, in the answer to it, in the lines around it.

`passwords` reads what stands right behind a label. Here anything may stand between the two, and the
value may come first; in exchange it must look like a secret. How much so depends on the word, on how
near the value stands, and on what stands right before it.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property

from creonowd.redaction.labels import FOREIGN_NAMES
from creonowd.redaction.rules import NOTHING, Judge, MatchSpan, RedactionRule
from creonowd.redaction.shape import Oddity, is_code_group, is_hash, is_key_like, oddity, word_set

LONGEST_GAP = 160
"""How far behind the word a value may stand on its line."""
LONGEST_BLOCK = 400
"""How far below the word a value may stand."""
LONGEST_BEFORE = 80
"""How far before the word a value may stand."""
LONGEST_GIVER = 24
LONGEST_JOINT = 3
SHORTEST_VALUE = 4
LONGEST_OWNER = 12
LONGEST_SIGNS = 48
ROWS_TO_ANSWER = 2
LONGEST_ROW = 40
MOST_ROWS = 8

PASSWORD_NAMES = (
    "password", "passwrd", "pasword", "passwrod", "pwrd", "psswd", "passwd", "passcode", "passphrase", "pwd", "pw", *FOREIGN_NAMES, "la contra", "пароля", "паролем", "密码",
    "密碼", "口令", "パスワード", "パスコード", "パスは", "パス：", "パスなん", "パス教", "パスって", "暗号化キー", "暗証キー", "セキュリティキー", "ネットワークキー", "비밀번호", "비번", "패스워드", "암호", "code wifi", "code wi-fi", "memorable information",
    "memorable info", "parola chiave", "parola d'ordine", "ww", "wpa", "wpa2", "phrase secrète", "团体字", "snmp-server community", "snmp community", "community string", "masterauth",
    "wifi code", "wi-fi code", "wlan-code", "código wifi", "codice wifi",
)  # fmt: skip
"""Names behind which a value is a password, and little else is."""

KEY_NAMES = (
    "邀请码", "邀請碼", "invite code", "invitation code", "gift card", "oauth", "token", "токен", "voucher", "gutschein", "api", "apikey", "key", "licence", "license", "serial",
    "activation", "redeem", "steam", "cdkey", "lizenz",
    "seriennummer", "schlüssel", "clé", "clef", "numéro de série", "clave", "licencia", "número de serie", "licença",
    "chave", "licenza", "chiave", "seriale", "ключ", "серийный", "лицензи", "激活码", "激活碼", "序列号", "序列號", "注册码",
    "註冊碼", "兑换码", "兌換碼", "密钥", "密鑰", "秘钥", "密匙", "私钥", "私鑰", "シリアル", "プロダクトキー", "ライセンス", "キーは", "시리얼",
    "제품 키", "라이선스", "인증키", "2fa", "two-factor", "two factor", "authenticator", "authy", "totp", "two-step",
    "两步验证", "兩步驗證", "双重验证", "二段階認証", "2단계",
)  # fmt: skip
"""Names of what a machine has made."""

ACCESS_NAMES = (
    "login", "log in", "log-in", "sign in", "sign-in", "credential", "creds", "protected", "encrypted", "zugangsdaten",
    "anmeldung", "anmelden", "einloggen", "geschützt", "verschlüsselt", "identifiant", "connexion", "protégé", "chiffré",
    "acceso", "accesso", "acesso", "protegid", "cifrad", "protett", "inloggen", "вход", "доступ", "登录", "登錄", "登陆", "登入",
    "账密", "会员", "加密", "ログイン", "로그인", "접속",
)  # fmt: skip
"""Words near which people write down how to get in."""

OPENING_NAMES = (
    "wake it with", "wakes with", "log on with", "unlock", "unzip", "decrypt", "opens with", "open it with", "get in with", "gets in with", "entsperr", "öffnen mit",
    "öffnet mit", "entpack", "déverrouill", "ouvre avec", "ouvrir avec", "s'ouvre", "desbloque", "se abre", "sblocc",
    "si apre", "разблок", "解压", "解壓", "解锁", "解鎖", "开锁", "開鎖", "解凍", "解錠", "ロック解除", "开机", "開機", "锁屏", "鎖屏", "屏保", "잠금", "압축",
)  # fmt: skip
"""Words near which people write down what opens a thing."""

LOCK_NAMES = (
    "keypad", "lockbox", "lock box", "key safe", "padlock", "garage", "gate", "door", "alarm", "safe", "locker", "suitcase", "entry", "building", "deur", "sleutelkluis", "单元门", "东门", "南门", "西门", "北门", "后门", "haustür", "tür",
    "alarmanlage", "schloss", "digicode", "porte", "portail", "coffre", "alarme", "cadenas", "puerta", "portal", "portón", "alarma",
    "caja fuerte", "porta", "portão", "cancello", "allarme", "cassaforte", "brama", "bramy", "домофон", "подъезд", "дверь", "сейф", "门禁", "門禁",
    "门锁", "大门", "房门", "电子锁", "键盘", "保险箱", "保险柜", "玄関", "金庫", "レジ", "コード", "番号", "ドア", "현관", "금고", "도어락",
)  # fmt: skip
"""What is opened by a number."""

QUESTION_NAMES = (
    "wifi", "wi-fi", "wlan", "вайфа", "와이파이", "pin", "code", "codice", "código", "kod", "код", "пин", "暗証", "コード", "코드",
)  # fmt: skip
"""Words of a question whose answer may be a secret."""

_LETTERS = "\u00c0-\u024f\u0400-\u04ff"
_VALUE = re.compile(
    rf"(?<![!-~{_LETTERS}])(?:[A-Za-z0-9]{{4}}(?:[ ][A-Za-z0-9]{{4}}){{3,15}}(?![!-~])"
    rf"|[0-9](?:[ ·][0-9]){{2,7}}(?![!-~])"
    rf"|(?=[!-~{_LETTERS}]{{4}})[!-/:-~{_LETTERS}]{{0,40}}+[0-9][!-~{_LETTERS}]{{0,80}}+"
    r"|(?=[A-Za-z]{2,32}[!&#?*$^~+%][A-Za-z]|[A-Za-z]{0,8}[a-z][A-Z]|[A-Z]{2,8}[a-z])[A-Za-z!&#?*$^~+%]{6,40}+(?![A-Za-z0-9_@/(\[{.=-]))"
)
_DIGIT = re.compile("[0-9]")
_SIGNS = re.compile(
    r"(?<![a-z])[a-z]{4}(?: [a-z]{4}){3}(?![a-z])|[A-Za-z][!&#?*$^~+%][A-Za-z]|[a-z][A-Z]|[A-Z]{2}[a-z]"
)
_OPENING = "\"'`(*_“‘„«‹「『【（<["
_CLOSING = "\"'`)*_”’»›」』】）>,.!?;:，。、；]"
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
_BEFORE_VALUE = " \t\u3000\"'`(*_“‘„«‹「『（["
_GIVING_SIGNS = frozenset(":：=＝→⇒>【】–—|是为為成用改换換叫填输打入はがをにで는은이가를을로인")
_GIVING_QUOTES = frozenset('(（「『“„«"`')
_GIVING_WORDS = word_set(
    "is was are be now to as use using type enter try with called word wort mot palabra read reads still again paste put ist lautet lauten war jetzt nun auf mit "
    "heißt nämlich est c'est c’est était maintenant avec taper tapez tape sera es era ahora con será agora com ora adesso usa nu met "
    "är er jest é è это теперь на был была стал - it's that's it’s that’s"
)
_TELLING_SIGNS = frozenset(":：=＝→–—是为為成用改换換填输入はを는은를을")
_TELLING_WORDS = word_set(
    "is was now to type enter try with lautet ist jetzt auf mit est c'est c’est avec es ahora con é è это теперь на it's it’s para"
)
_PARTNER = re.compile(
    r"(?:[!-~][ ]?[/|:][ ]?|[\w.+-]@[\w.-]{3,64}[)）]?(?:,? (?:and|und|et|y|e|with|mit)|[,，和及])[ ]?)[\"'`“]?\Z"
)
_OTHER_NAMES = word_set(
    "user username user-name for of account by login log-in named called id handle host server ssid network version file commit sha "
    "sha1 sha256 md5 model port room order invoice isbn benutzer benutzername nutzer nutzername konto identifiant utilisateur usuario "
    "utente usuário cuenta логин пользователь at in on from via page chapter session uid pid"
)
_OTHER_HAN_NAMES = (
    "用户", "用户名", "账号", "帐号", "账户", "帐户", "賬號", "帳號", "登录名", "ユーザー", "ユーザー名", "アカウント", "아이디", "계정",
)  # fmt: skip
_NUMBER = re.compile(
    r"[0-9]{4}(?: [0-9]{4}){3,5}\Z|[#*]?(?:[0-9]{4,20}|[0-9]{1,2}(?:-[0-9]{1,2}){2,5})[#*]?\Z"
)
_LOCK_NUMBER = re.compile(
    r"[#*]?[0-9]{3,8}[#*]?\Z|[0-9]{1,4}[*#][0-9]{1,4}\Z|[A-Z]-?[0-9]{3,6}(?:-?[A-Z])?\Z|[0-9]{3,6}-?[A-Z]\Z|[0-9](?:[ ·-][0-9]){2,7}\Z"
    r"|[0-9]{1,2}(?:-[0-9]{1,2}){2,5}\Z"
)
_ENTERING_WORDS = word_set(
    "type press dial enter punch key typing pressing dialling tippen drücken taper tapez composer composez teclear marcar pulsar digitar "
    "digitare digita premere наберите набрать нажать ключ wpisz toets"
)
_ENTERING_SIGNS = frozenset("输按押入打")
_ON_KEYPAD = re.compile(r"[ ]?(?:on the keypad|am Tastenfeld|を押|を入力|入力|进|进入|开门|再按)")
_USER_AND = re.compile(r"[\w.@-]{2,}[ ]?(?:/|と|和|,|，|&|\band|\bund|\bet|\by)[ ]?[\"'`“]?\Z")
_TO_LOG_IN = re.compile(r"[\"'`”]?[ ]?(?:で|来|to|zum|pour|para|)[ ]?")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_KEY_OWNERS = (
    "api ", "api-", "secret ", "access ", "license ", "licence ", "product ", "recovery ", "setup ", "private ", "activation ",
)  # fmt: skip
_ONLY_LOCKS = frozenset(
    (
        "keypad",
        "lockbox",
        "lock box",
        "key safe",
        "padlock",
        "digicode",
        "cadenas",
        "domofon",
        "домофон",
        "门锁",
        "电子锁",
        "门禁",
        "門禁",
        "도어락",
    )
)
_SET_TO = ("设的是", "設的是", "设为", "设成", "設為", "always set", "set it to", "set to")
_KEYPAD_SIGNS = frozenset("#*")
_LOCK_SIGNS = frozenset(":：=→(（")
_SHORT_ANSWER = re.compile(
    r"[0-9]{1,3}[A-Z][0-9]{2,5}\Z|[a-z]{3,12}[-_][0-9]{2,4}\Z|[A-Z]?[0-9]{3,6}[A-Z#*]?\Z"
)
_NO_NUMBER = re.compile(
    r"[\"'”’」』]?[ ]?(?:[吗么嗎?？]|か[？?。]|인가|이냐|[-–~至到/.:][ ]?\d|[位个個字次元年月日号號章层層分秒天%条條]|文字|桁|자리|자\b|(?:characters|chars|digits|letters|times|attempts"
    r"|tries|minutes|days|bits?|bytes|Zeichen|caractères|caracteres)\b|символ)"
)
_LEADS_TO_NAME = re.compile(
    r"[\"'”’»`)\]*_!]{0,3}(?:[ ]?(?:←|<-|[–—]|[ ]-[ ]|[(（]|这(?:个|就)?是|就是)|[ ](?:is|was|as|ist|est|es|é|è|als|comme|como|come|как)[ ]"
    r"|[ ]?(?:是|为|為|作为|作為|当|做|が|は))[^\n.!?。！？0-9:：=]{0,40}\Z"
)
_ASSIGNED = re.compile(r"[\"'`*_)）】」]{0,3}[ \t]{0,4}(?:[:：=＝]|is\b|是)")
_REPLY = re.compile(
    r"[ \t]{0,4}(?:[-*>•–—][ \t])?(?:[<\[(（【][^\n>\])）】]{1,24}[>\])）】][ \t]?){0,3}"
    r"(?:[0-9][0-9/.:, APMapm年月日上下午-]{3,24}(?:[-–][ ])?)?"
    r"(?:[^\n:：<>]{0,24}?(?:[ \t(（]+[0-9]{1,2}:[0-9]{2}[^\n:：]{0,8})?[:：>][ \t]?)?[\"'“「`]?\Z"
)
_STAMP = re.compile(r"[^\n]{1,32}?[ \t][^\n]{0,20}?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?[ \t]*\r?\n")
_ASKS = re.compile(
    r"[?？]|\b(?:what|whats|send|give|tell|need|again|cuál|quel|welche|wie|weet|nog|pide|pasas|dimmi|chiede|envoie|wants|asks)\b|скинь|давай|多少|发我|发一下|给我|告诉|什么|啥|来着|提供|教えて|何|なん"
    r"|ください|뭐|알려|무엇|как[ао]й",
    re.IGNORECASE,
)
_BULLET = re.compile(
    r"[ \t\u3000>*•·☐☑✓✔□■▪+–—-]{0,24}(?:[0-9]{1,2}[.)、][ \t]{1,3})?[\"'`“「*]{0,3}\Z"
)
_ENDS_ROW = re.compile(
    r"[\"'`”」*,.;|!?]{0,4}(?:[ \t\u3000]*(?:\r?\n|\Z)|[ \t\u3000]+(?:[<←(（#;|]|//|--|[–—])|[ \t]{2})"
)
_HEADING = re.compile(r"[^\n.!?。！？]{0,64}[!！]{0,3}[)）:：]{0,2}[ \t]*\r?\Z")
_CELL_BEFORE = re.compile(r"(?:\t[ ]{0,4}|[ \u3000]{2}|[|/:：=→–—-][ \t\u3000])[\"'`*]{0,3}\Z")
_PAIR_BEFORE = re.compile(r"[^\s/→…—–=:：.](?:[ ]?\.{3,}|[ ]?…+|[ ]?→|[ ][/—–=]|\t|[:：])[ \t]?\Z")
_LOGIN_PAIR = re.compile(r"[\w@.+-][ ]?(?:/|→)[ ]\Z")
_NETWORK = re.compile(
    r"wi-?fi|network|wlan|\bwpa|\bwep\b|rout(?:er|eur)|netz|réseau|\bla red\b|acceso|correo|servidor|hotspot|сети|无线|sudo|staging|portal|cuenta|banco",
    re.IGNORECASE,
)
_CHOSEN_KEY = re.compile("key|schl|cl[éea]|chave|chiave|ключ|密|秘", re.IGNORECASE)
_GIVEN_IN_QUOTES = re.compile(
    r"(?:\b(?:with|mit|avec|con|com|met|type|enter|use|using)|用|输入)[ \t]{0,2}[\"'`“„«「]\Z",
    re.IGNORECASE,
)
_PLACE_HAN = ("在", "到", "第")
_CHANGE = re.compile(
    r"(?<![!-~])[\"'`“„«]?([A-Za-z0-9][!-~]{4,63}?)[\"'`”“»]?[ ]?(?:(?:to|auf|zu|in|à|a|por|на|naar)[ ]|→|->|=>|改为|改成|换成|换为|更新为|改為)[ ]?[\"'`“„«]?\Z"
)
_MADE_VOID = re.compile(
    r"[\"'`”»)）,，]{0,2}[ ]?(?:作废|失效|不能用|停用|过期|已废|no longer|does(?:n['’]t| not) work|is dead|is old|ya no|ne (?:marche|fonctionne)"
    r"|funktioniert nicht|gilt nicht|non funziona|não funciona|больше не|не работает)",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"(?:[ ](?:for|of|to|fürs?|zum|zur|vom|von|im|des|du|del?|della|di|do|da|pour|para|per|van|voor|от|для|на|к)(?:[ ][\w'’-]{2,20}){1,3})[ ]"
)
_VERBS = (" is", " ist", " est", " es", "是", "は", "는")
_COMPOUNDS = ("passw", "kennw", "zugan", "schlü")
_NAME_BEFORE = frozenset(string.ascii_letters + string.digits + "_.$/")


class Mention(Enum):
    """What kind of word mentions a secret."""

    PASSWORD = auto()
    KEY = auto()
    ACCESS = auto()
    OPENING = auto()
    LOCK = auto()
    QUESTION = auto()


class _Passage:
    """A word that mentions a secret, and the line in which it stands."""

    def __init__(self, text: str, kind: Mention, start: int, end: int) -> None:
        self.text = text
        self.kind = kind
        self.start = start
        self.end = end
        self.line_start = text.rfind("\n", max(0, start - LONGEST_BLOCK), start) + 1
        line_end = text.find("\n", end, end + LONGEST_BLOCK)
        self.line_end = len(text) if line_end < 0 else line_end

    @cached_property
    def is_heading(self) -> bool:
        """Whether the line is short and no sentence, nor the row of a table."""
        if self.text.find("|", self.line_start, self.line_end) >= 0:
            return False
        return _HEADING.match(self.text, self.line_start, self.line_end) is not None

    @property
    def ends_with_colon(self) -> bool:
        return self.text[self.start : self.line_end].rstrip().endswith((":", "："))

    @cached_property
    def asks(self) -> bool:
        """Whether the line asks for something."""
        return _ASKS.search(self.text, self.line_start, self.line_end) is not None


class _Candidate:
    """A value that may be the secret, and how it stands to the word that mentions one."""

    def __init__(self, passage: _Passage, value: str, start: int) -> None:
        self.passage = passage
        self.value = value
        self.level = oddity(value)
        self.start = start
        self.end = start + len(value)

    @property
    def span(self) -> MatchSpan:
        return self.start, self.end

    @cached_property
    def is_given(self) -> bool:
        """Whether what stands right before it hands it over: a colon, a quote, “is”, “mit”, 是."""
        head = self.before
        bare = head.rstrip(_BEFORE_VALUE)
        if not _GIVING_QUOTES.isdisjoint(head[len(bare) :]):
            return True
        return _ends_with(head, bare, _GIVING_SIGNS, _GIVING_WORDS)

    @cached_property
    def is_told(self) -> bool:
        """Whether a verb or a colon hands it over, as even a number is."""
        return _ends_with(
            self.before, self.before.rstrip(_BEFORE_VALUE), _TELLING_SIGNS, _TELLING_WORDS
        )

    @cached_property
    def has_other_name(self) -> bool:
        """Whether what stands right before it says that it is something else: a user, a file, a page."""
        bare = self.before.rstrip(_BEFORE_VALUE + ":：=")
        if bare.endswith(_PLACE_HAN):
            return True
        for verb in _VERBS:
            bare = bare.removesuffix(verb)
        words = bare.rsplit(None, 1)
        return bool(words) and (
            words[-1].lower() in _OTHER_NAMES or bare.endswith(_OTHER_HAN_NAMES)
        )

    @cached_property
    def before(self) -> str:
        """What stands right before it."""
        passage = self.passage
        first = passage.start if self.start > passage.start else passage.line_start
        return passage.text[max(first, self.start - LONGEST_GIVER) : self.start]

    @cached_property
    def in_sentence(self) -> bool:
        """Whether no sentence ends between the two."""
        first, last = sorted((self.passage.end, self.start))
        return _SENTENCE_END.search(self.passage.text, first, last) is None

    @cached_property
    def row(self) -> int:
        """Where its line begins."""
        return self.passage.text.rfind("\n", self.passage.end, self.start) + 1

    @cached_property
    def between(self) -> str:
        """The lines between the two."""
        return self.passage.text[self.passage.line_end + 1 : self.row]

    @cached_property
    def ends_row(self) -> bool:
        """Whether nothing, or only a remark, follows it on its line."""
        return _ENDS_ROW.match(self.passage.text, self.end) is not None

    @cached_property
    def is_alone(self) -> bool:
        """Whether its line has nothing else, save a bullet and a remark."""
        return self.ends_row and _BULLET.match(self.passage.text, self.row, self.start) is not None

    @cached_property
    def is_next(self) -> bool:
        """Whether only blank lines stand between the two."""
        return not self.between.strip()

    @cached_property
    def is_void(self) -> bool:
        """Whether it is said of it that it is no longer valid."""
        return _MADE_VOID.match(self.passage.text, self.end) is not None


def _ends_with(head: str, bare: str, signs: frozenset[str], words: frozenset[str]) -> bool:
    if not bare:
        return False
    if bare[-1] in signs:
        return True
    return len(bare) < len(head) and bare.rsplit(None, 1)[-1].lower() in words


def _judge(kind: Mention) -> Judge:
    def judge(match: "re.Match[str]") -> Sequence[MatchSpan]:
        text, start, end = match.string, match.start(), match.end()
        if _is_part_of_name(text, start) or text[end : end + 2].lstrip(" ").startswith("|"):
            return NOTHING
        has_before = kind in _VALUES_BEFORE and (
            _DIGIT.search(text, max(0, start - LONGEST_GAP), start) is not None
        )
        if not has_before and not _has_value(text, kind, end):
            return NOTHING
        actual = Mention.PASSWORD if kind is Mention.KEY and _is_of_network(match) else kind
        passage = _Passage(text, actual, start, end)
        return tuple(_behind(passage)) or (tuple(_before(passage)) if has_before else NOTHING)

    return judge


def _has_value(text: str, kind: Mention, end: int) -> bool:
    """Return whether there may be a value behind the word; most words are followed by none."""
    reach = LONGEST_GAP if kind in _NUMBERS_ONLY else LONGEST_BLOCK
    if _DIGIT.search(text, end, end + reach):
        return True
    return kind not in _NUMBERS_ONLY and _SIGNS.search(text, end, end + LONGEST_SIGNS) is not None


def _is_part_of_name(text: str, start: int) -> bool:
    """Return whether a name of code goes on before the word: `user_password`, `$pw`, `--password`."""
    if not start or not text[start].isascii():
        return False
    before = text[start - 1]
    if before == "-":
        return not text[max(0, start - 2)].isalpha()
    if before in string.ascii_letters and text[start : start + 5].lower() in _COMPOUNDS:
        return False
    return before in _NAME_BEFORE


def _is_of_network(match: "re.Match[str]") -> bool:
    """Return whether a key is what people type in to get into a network."""
    if not _CHOSEN_KEY.match(match[0]):
        return False
    return _NETWORK.search(match.string, max(0, match.start() - 24), match.end() + 40) is not None


def _candidates(passage: _Passage, first: int, last: int) -> Iterator[_Candidate]:
    """Yield the words that are more than letters, without the punctuation around them."""
    for found in _VALUE.finditer(passage.text, first, last):
        bare = found[0].lstrip(_OPENING)
        start = found.end() - len(bare)
        bare = bare.rstrip(_CLOSING)
        user, slash, rest = bare.partition("/")
        if slash and user.isalnum() and len(rest) >= SHORTEST_VALUE and "/" not in rest:
            yield _Candidate(passage, rest, start + len(user) + 1)
        is_cut = found.end() == last < len(passage.text)
        if len(bare) >= SHORTEST_VALUE and not is_cut:
            yield _Candidate(passage, bare, start)


def _behind(passage: _Passage) -> Iterator[MatchSpan]:
    text, end = passage.text, passage.end
    on_line, below = _ACCEPTED[passage.kind]
    for candidate in _candidates(passage, end, _reach(passage)):
        is_on_line = candidate.start < passage.line_end
        if is_on_line:
            is_taken = candidate.start - end <= LONGEST_GAP and on_line(candidate)
        else:
            is_taken = _is_in_reach(candidate) and below(candidate)
        if is_taken and not candidate.has_other_name:
            yield candidate.span
            yield from _value_before_change(text, end, candidate.start)


def _reach(passage: _Passage) -> int:
    """Find how far the text goes in which a value may stand: below a heading further than elsewhere."""
    text, end = passage.text, passage.end
    if passage.is_heading:
        return min(len(text), end + LONGEST_BLOCK)
    last = min(len(text), end + LONGEST_GAP)
    place = passage.line_end
    for _ in range(ROWS_TO_ANSWER + 1):
        place = text.find("\n", place + 1, last)
        if place < 0:
            return last
    return place


def _is_in_reach(candidate: _Candidate) -> bool:
    return candidate.between.count("\n") <= MOST_ROWS and "\n\n\n" not in candidate.between


def _password_on_line(candidate: _Candidate) -> bool:
    level = candidate.level
    if level is Oddity.PLAIN:
        return _is_stated_number(candidate)
    if level is Oddity.UNMISTAKABLE or candidate.is_void:
        return True
    if level is Oddity.NUMBERED:
        follows = _CLAUSE.fullmatch(candidate.passage.text, candidate.passage.end, candidate.start)
        return candidate.in_sentence and (candidate.is_told or follows is not None)
    is_beside = candidate.start - candidate.passage.end <= LONGEST_JOINT
    return is_beside or candidate.is_given or (level is Oddity.UNSAYABLE and candidate.in_sentence)


def _is_stated_number(candidate: _Candidate) -> bool:
    is_number = _NUMBER.match(candidate.value) is not None
    return (
        is_number
        and candidate.is_told
        and candidate.in_sentence
        and not _NO_NUMBER.match(candidate.passage.text, candidate.end)
    )


def _password_below(candidate: _Candidate) -> bool:
    level = candidate.level
    if level is Oddity.UNMISTAKABLE or _is_answer(candidate):
        return True
    if candidate.passage.is_heading and level >= Oddity.NUMBERED and _is_paired(candidate):
        return True
    if level <= Oddity.NUMBERED:
        return False
    if candidate.is_alone and (candidate.is_next or candidate.passage.is_heading):
        return True
    if level is not Oddity.UNSAYABLE or not candidate.passage.is_heading:
        return False
    text, row, start = candidate.passage.text, candidate.row, candidate.start
    is_cell = start - row <= LONGEST_ROW or _CELL_BEFORE.search(text, row, start) is not None
    return is_cell and candidate.ends_row


def _is_paired(candidate: _Candidate) -> bool:
    """Return whether a row of a list ends with the value, behind a sign: `Amazon … rosie1947`."""
    text, row, start = candidate.passage.text, candidate.row, candidate.start
    return candidate.ends_row and _PAIR_BEFORE.search(text, row, start) is not None


def _key_on_line(candidate: _Candidate) -> bool:
    if not _is_key(candidate):
        return False
    is_beside = candidate.start - candidate.passage.end <= LONGEST_JOINT
    return is_beside or candidate.is_given or is_code_group(candidate.value)


def _key_below(candidate: _Candidate) -> bool:
    is_listed = candidate.is_next or candidate.passage.is_heading
    is_row = candidate.is_alone or (candidate.ends_row and is_code_group(candidate.value))
    return is_listed and is_row and _is_key(candidate)


def _is_key(candidate: _Candidate) -> bool:
    """Return whether a value is what a machine makes; of a mere `key` an id is none, nor is a public one."""
    text, start, end = candidate.passage.text, candidate.passage.start, candidate.passage.end
    if not is_key_like(candidate.value):
        return False
    if text[start:end].lower() not in {"key", "keys"}:
        return True
    owner = text[max(0, start - LONGEST_OWNER) : start].lower()
    if owner.endswith("public "):
        return False
    return _ID.match(candidate.value) is None or owner.endswith(_KEY_OWNERS)


def _access_on_line(candidate: _Candidate) -> bool:
    level, start = candidate.level, candidate.start
    if level <= Oddity.NUMBERED or level is Oddity.UNMISTAKABLE:
        return level is Oddity.UNMISTAKABLE
    text, end = candidate.passage.text, candidate.passage.end
    in_brackets = start - end <= LONGEST_JOINT and text[start - 1] in "(（"
    return (
        in_brackets
        or _GIVEN_IN_QUOTES.search(text, max(end, start - LONGEST_GIVER), start) is not None
        or _PARTNER.search(text, max(end, start - LONGEST_BEFORE), start) is not None
    )


def _opening_on_line(candidate: _Candidate) -> bool:
    if candidate.level is Oddity.PLAIN:
        return _is_stated_number(candidate)
    if candidate.level is Oddity.UNMISTAKABLE:
        return True
    return candidate.level >= Oddity.ODD and candidate.is_given and candidate.in_sentence


def _lock_on_line(candidate: _Candidate) -> bool:
    """Take a number that is typed in; one behind a colon only if the thing is nothing but a lock."""
    passage, value = candidate.passage, candidate.value
    if candidate.start - passage.end > LONGEST_BEFORE or not _LOCK_NUMBER.match(value):
        return False
    if _NO_NUMBER.match(passage.text, candidate.end):
        return False
    head = candidate.before
    bare = head.rstrip(_BEFORE_VALUE)
    if _ends_with(head, bare, _ENTERING_SIGNS, _ENTERING_WORDS):
        return True
    if _ON_KEYPAD.match(passage.text, candidate.end) or bare.endswith(_SET_TO):
        return True
    is_lock = passage.text[passage.start : passage.end].lower() in _ONLY_LOCKS
    gap = passage.text[passage.end : candidate.start]
    is_beside = len(gap) <= LONGEST_JOINT or not _LOCK_SIGNS.isdisjoint(gap[-LONGEST_JOINT:])
    is_sure = len(value) > 4 or not value.isdigit() or not value.startswith(("19", "20"))
    if (
        is_beside
        and not _KEYPAD_SIGNS.isdisjoint(value)
        and passage.text[candidate.start - 1] in " :：*#"
    ):
        return True
    return is_lock and is_beside and is_sure and candidate.in_sentence


def _access_below(candidate: _Candidate) -> bool:
    level, passage = candidate.level, candidate.passage
    if _is_answer(candidate):
        return True
    if (
        passage.is_heading
        and level >= Oddity.NUMBERED
        and _LOGIN_PAIR.search(passage.text, candidate.row, candidate.start)
    ):
        return candidate.ends_row
    if level <= Oddity.NUMBERED or not (candidate.is_alone or passage.is_heading):
        return False
    if level is Oddity.UNMISTAKABLE:
        return True
    if not candidate.is_alone:
        return False
    is_announced = candidate.is_next and passage.ends_with_colon
    is_second = "@" in candidate.between and passage.is_heading and level is Oddity.UNSAYABLE
    return is_announced or is_second


def _nowhere(_candidate: _Candidate) -> bool:
    return False


def _is_answer(candidate: _Candidate) -> bool:
    """Return whether somebody who was asked for the password begins with the value."""
    passage, row = candidate.passage, candidate.row
    if candidate.level is Oddity.PLAIN and not _SHORT_ANSWER.match(candidate.value):
        return False
    if candidate.between.count("\n") > ROWS_TO_ANSWER:
        return False
    if not passage.asks:
        return False
    if not _REPLY.fullmatch(passage.text, row, candidate.start):
        return False
    if passage.text[row : candidate.start].strip():
        return True
    is_sure = passage.kind in {Mention.PASSWORD, Mention.OPENING}
    is_reply = not candidate.between or _STAMP.fullmatch(candidate.between) is not None
    return is_sure and is_reply


_ACCEPTED: Mapping[Mention, tuple[Callable[[_Candidate], bool], Callable[[_Candidate], bool]]] = {
    Mention.PASSWORD: (_password_on_line, _password_below),
    Mention.KEY: (_key_on_line, _key_below),
    Mention.ACCESS: (_access_on_line, _access_below),
    Mention.OPENING: (_opening_on_line, _access_below),
    Mention.LOCK: (_lock_on_line, _nowhere),
    Mention.QUESTION: (_nowhere, _is_answer),
}
"""What is accepted on the line of the word, and on the lines below."""


_VALUES_BEFORE = frozenset(Mention) - {Mention.QUESTION, Mention.LOCK}
_NUMBERS_ONLY = frozenset((Mention.QUESTION, Mention.LOCK))


def _value_before_change(text: str, first: int, start: int) -> Iterator[MatchSpan]:
    """Yield the old value of “from X to Y” and “X → Y”."""
    change = _CHANGE.search(text, max(first, start - LONGEST_BEFORE), start)
    if change is not None and oddity(change[1] + "1!") > Oddity.PLAIN and not change[1].isdigit():
        yield change.span(1)


def _before(passage: _Passage) -> Iterator[MatchSpan]:
    """Take X of “X is the password”, “X ← the password” and “Mail is X, Web is Y (passwords)”."""
    text, start = passage.text, passage.start
    if _ASSIGNED.match(text, passage.end):
        return
    for candidate in _candidates(passage, max(0, start - LONGEST_GAP), start):
        if candidate.start < passage.line_start:
            is_near = "\n\n" not in text[candidate.end : passage.line_start]
            is_taken = is_near and candidate.ends_row and _is_in_list(candidate)
        elif passage.kind is Mention.PASSWORD:
            is_taken = _is_before_password(candidate)
        elif passage.kind is Mention.KEY:
            is_taken = is_code_group(candidate.value)
        else:
            is_taken = candidate.level >= Oddity.ODD and _with_user(candidate)
        if is_taken:
            yield candidate.span


def _is_in_list(candidate: _Candidate) -> bool:
    """Return whether a value above the word ends a row of the list of which the word speaks."""
    if candidate.level is Oddity.UNMISTAKABLE:
        return True
    text, start = candidate.passage.text, candidate.start
    row = text.rfind("\n", max(0, start - LONGEST_GAP), start) + 1
    is_paired = _PAIR_BEFORE.search(text, row, start) is not None
    is_list = candidate.passage.kind is Mention.PASSWORD and candidate.level >= Oddity.ODD
    return is_list and is_paired and not candidate.has_other_name


def _with_user(candidate: _Candidate) -> bool:
    """Return whether a value stands behind a user's name and before “to log in”: `mei と X でログイン`."""
    text, start = candidate.passage.text, candidate.start
    if not _TO_LOG_IN.fullmatch(text, candidate.end, candidate.passage.start):
        return False
    return _USER_AND.search(text, max(candidate.passage.line_start, start - 40), start) is not None


def _is_before_password(candidate: _Candidate) -> bool:
    level, passage = candidate.level, candidate.passage
    if level <= Oddity.NUMBERED or candidate.end < passage.start - LONGEST_BEFORE:
        return False
    if is_hash(candidate.value) or candidate.has_other_name:
        return False
    if _LEADS_TO_NAME.match(passage.text, candidate.end, passage.start):
        return True
    return candidate.in_sentence and (candidate.is_given or candidate.is_void)


def _rule(kind: Mention, names: tuple[str, ...], ending: str = "s?") -> RedactionRule:
    pattern = "|".join(map(re.escape, names))
    return RedactionRule(
        "mentioned_secret",
        names,
        rf"(?iu:(?:{pattern}){ending})(?![A-Za-z0-9_(\[=\"'/-]|\.\w)",
        _judge(kind),
        bounded=False,
        swallows=False,
        names=True,
    )


RULES = (
    _rule(Mention.PASSWORD, PASSWORD_NAMES),
    _rule(Mention.KEY, KEY_NAMES),
    _rule(Mention.ACCESS, ACCESS_NAMES, "[a-z]{0,3}"),
    _rule(Mention.OPENING, OPENING_NAMES, "[a-z]{0,3}"),
    _rule(Mention.LOCK, LOCK_NAMES),
    _rule(Mention.QUESTION, QUESTION_NAMES),
)
