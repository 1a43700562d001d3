"""Entries of notes, cards and pages: a label, whatever sets it off, and a value to the end of the line or cell.

`passwords` and `labels` know colons and signs of equality. Here a gap, a row of dots, a bracket, a dash,
an arrow or the tags of a page may stand between the two, and the label may say which one it is. The
plainer the value, the clearer must be that the line is an entry and no sentence.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import cached_property
from typing import NamedTuple

from creonowd.redaction.labels import password_of_pair
from creonowd.redaction.passwords import REMARK_WORDS, is_plain_pair, is_plain_sentence
from creonowd.redaction.rules import NOTHING, PLACEHOLDER, MatchSpan, RedactionRule
from creonowd.redaction.secret_names import (
    FOREIGN_NAMES,
    HAN_LABELS,
    NO_SECRET_TAILS,
    Strength,
    strength_of,
)
from creonowd.redaction.shape import (
    BLANK_VALUES,
    COMMON_VALUES,
    FUNCTION_WORDS,
    SENTENCE_WORDS,
    STORY_WORDS,
    Oddity,
    has_digit_and_letter,
    has_sign,
    is_blank,
    is_blank_han,
    is_code,
    is_common_value,
    is_latin,
    is_passphrase,
    is_plain_value,
    is_reference,
    is_remark_han,
    is_stand_in,
    names_a_secret,
    oddity,
    unaccented,
    word_set,
)

LONGEST_HEAD = 60
LONGEST_VALUE = 96
LONGEST_QUALIFIER = 40
MOST_QUALIFIERS = 4
MOST_WORDS = 8
MOST_WORDS_BELOW = 5
SHORTEST_NUMBER = 6
LINES_AROUND = 3
LONGEST_NEIGHBOUR = 120

_LATIN = "A-Za-z\u00c0-\u024f"
_LETTER = rf"{_LATIN}\u0400-\u04ff"
_PLAIN_NAMES = (
    "password", "passwd", "passwort", "passcode", "passphrase", "pswd", "pwd", "pw", "pass word", "online-pin", "telefon-pin",
    "memorable word", "security word", "secret word", "pre-shared key", "preshared key", "pre shared key",
)  # fmt: skip
_NAMES_OF_BANKS = frozenset(("memorable word", "security word", "secret word"))
_OWN_NAMES = frozenset(
    (
        "pre-shared key",
        "preshared key",
        "pre shared key",
        "online-pin",
        "telefon-pin",
        "memorable word",
        "security word",
        "secret word",
    )
)
_HAN_NAMES = tuple(name for name in HAN_LABELS if name[-1] not in ":：")
_JOINED_NAMES = tuple(name.replace(" ", "_") for name in FOREIGN_NAMES if " " in name)
NAMES = tuple(
    dict.fromkeys(map(str.lower, (*_PLAIN_NAMES, *FOREIGN_NAMES, *_JOINED_NAMES, *_HAN_NAMES)))
)
KEY_NAMES = (
    "clé", "clef", "clave", "chiave", "chave", "schlüssel", "schluessel", "sleutel", "klucz", "klíč", "nyckel", "nøgle", "nøkkel", "ключ", "key", "anahtar",
    "kulcs", "code", "código", "codice", "код", "parola", "キー", "키", "pin", "pass", "secret",
)  # fmt: skip
"""Words that name a password only beside a network or an account."""
_PLAIN_KEYS = ("key", "code", "pin", "pass", "secret")
_OTHER_KEYS = tuple(name for name in KEY_NAMES if name not in _PLAIN_KEYS)
_NAMES_OF_ACCOUNTS = frozenset(("clave", "parola", "pin", "pass", "chave", "secret"))

_CLUES = frozenset(("clave", "chave", "parola"))
"""Those of them that are passwords below a network, and clues or words elsewhere."""
_NAMES_NETWORK = re.compile(
    r"(?:\A|\n)[ \t>*-]{0,8}(?:ssid|wi-?fi|wlan|red|rete|rede)\b[^\n:=]{0,24}[:=]", re.IGNORECASE
)

_TAIL = (
    r"(?P<tail>s?(?:[ ]?[#№]?[0-9]{1,2}(?![0-9A-Za-z#*@&]))?(?:[ ]?(?:\([^()\n]{1,40}\)|（[^（）\n]{1,40}）|\[[^\[\]\n]{1,24}\])){0,2}"
    r"(?:[ ](?:(?u:[^\W_][\w.@/'’-]{0,24})[ ]?){1,5}?(?=[:：=\t…|<~•·→⇒►▶»👉–—]|[ ](?:[-–—=~•·]|[ ])|\.{3}|[-=]>)|[ ](?:[-–—]|for|of|on|to|für|fürs|zum|zur|vom|im|pour|du|de|del|della|do|da|para|per|van|voor|от|для|на|к|від|till)[ ](?:(?u:[^\W_][\w.@/'’-]{0,24})[ ]?){1,4}(?=[ \t]*[:：]?[ \t]*\r?\n))?)"
)
_MARKS = r"[*_`\"'”’»]{0,4}"
_JOINT = (
    r"(?:(?P<firm>[ \t\u3000]{0,24}(?:[:：]{1,2}(?!//|[ \t]{0,4}[\r\n])|={1,2}>?|＝|≈|(?:[.…·・_][ ]?){3,60}[:：]?|…)"
    r"|[ ]{0,2}(?:\t[\t ]{0,24}|[ ]{2,40}|\u3000{1,24})|[】』」\]][ \t\u3000]{0,8}[:：]?(?=[^\s,.;)])|[ \t]{0,4}(?:</\w{1,8}>[ \t]{0,4}){1,3}[:：]?\s{0,24}(?:<\w{1,8}(?:\s[^<>\n]{0,80})?>\s{0,16}){0,3}|>)"
    r"|(?P<loose>[ ]{0,4}(?:[-–—~•·][ ]|[-=]{1,2}>|[→⇒⟶➜➔»›►▶▸☞]|👉|➡\ufe0f?|\|(?=[ ])|[(（\[]|(?=[„“‘«‹「『【《\"'`*])))"
    r"|(?P<below>[ \t]?[:：]?[ \t]{0,4}\r?\n(?:[ \t]{0,4}[-=~]{3,60}[ \t]{0,4}\r?\n)?(?:[ \t]{0,8}\r?\n){0,2}(?:[ \t]{0,8}(?:```|~~~)[a-z]{0,12}[ \t]*\r?\n)?[ \t]{0,12}(?:>[ ]?|[-*+•][ ]{1,3}|[0-9]{1,2}[.)][ ])??[*_`]{0,3}(?=[^\s>*+•-])))"
    r"[ \t\u3000]{0,24}(?:~~[^~\n]{1,40}~~[ ]?(?:→|->)?[ ]?|<(?:s|del)>[^<\n]{1,40}</(?:s|del)>[ ]?)?(?:[(（][^()（）\n0-9]{1,24}[)）][ ]{1,2}(?=\S))?[*_`]{0,3}"
)
_BLANK = r"(?P<tail>)(?P<firm>\A(?!))?(?P<loose>\A(?!))?(?P<below>\A(?!))?[ ](?=[^\s:=|(\[-])"
"""A mere blank, in the groups of other joints."""
_BEFORE_NUMBER = (
    _BLANK
    + r"(?=[0-9]{6,24}(?![0-9A-Za-z.:/-])|[a-z0-9]{2,12}(?:[-_][a-z0-9]{1,12}){2,6}(?![\w@/-])|www\.[\w.-]{4,40}[ \t]*(?:[\r\n]|\Z))"
)
_BEFORE_DIGIT = _BLANK + r"(?=[A-Za-z]{0,12}[!-/:-@]?[A-Za-z]{0,12}[0-9])"
_QUOTED = re.compile(
    r"[„“‘«‹「『《【\"'`][ \u00a0]?([^\n\"“”‘’„«»‹›「」『』《》【】`]{2,64}?)[ \u00a0]?[“”‘’»›」』》】\"'`]"
)
_DOUBLED = re.compile(r"'((?:[^'\n]|''){1,48}''(?:[^'\n]|''){1,48})'(?!')")
"""A string with a quote in it, as SQL and YAML write it: `'it''s'`."""
_BARE = re.compile(rf"[!-;=?-\[\]-{{}}~\u00a1-\u024f\u0400-\u04ff]{{3,{LONGEST_VALUE}}}+")
_PHRASE = re.compile(
    rf"(?:[{_LETTER}0-9][{_LETTER}0-9'’-]{{0,19}},?[ ]){{1,7}}[{_LETTER}0-9][{_LETTER}0-9'’-]{{0,19}}"
)
_HAN_PHRASE = re.compile(
    r"(?:(?:[\u3041-\u30ff\u4e00-\u9fff]{1,4}|[0-9]{1,4})[ ]){2,11}(?:[\u3041-\u30ff\u4e00-\u9fff]{1,4}|[0-9]{1,4})(?=[ \t]*(?:[\r\n（(]|\Z))"
)
_HAN_WORDS = re.compile(r"[\w@#$%^&*!+-]{2,16}(?=[ \t]*(?:[\r\n（(|<]|\Z))")
_ENDS = re.compile(
    r"[\"'`*_“”’»」』】)\]）]{0,4}[.!。]?(?:[ \t\u3000]*(?:[\r\n|<,;，；。、（(#–—]|//|\Z)|[ \t]{2,}|\t)"
)
_END_OF_CLAUSE = re.compile(r"[\"'`*_“”’»」』】)\]）]{0,4}[.,;:!?，。；、]*(?:\s|\Z|[^\x00-\x7f])")
_LINE_ENDS = re.compile(r"[\"'`*_“”’»」』】)\]）]{0,4}[.。]?[ \t\u3000]*(?:[\r\n|<]|\Z)")
_COUNTED = re.compile(
    r"[ ]?(?:[-–~至到][ ]?\d|[位个個字次元年月日号號章层層分秒天%]|文字|桁|자리|자\b|(?:characters|chars|digits|letters|times|attempts|tries"
    r"|minutes|days|words|Zeichen|Stellen|Ziffern|caractères|chiffres|caracteres|cifras|dígitos|caratteri|tekens|znak\w*|символ\w*|цифр\w*)\b)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}\Z")
_HEAD_MARKS = re.compile(
    r"(?:.*(?:[,;|:：，；、。（(【「\[<>\t—–•→]|[ ]{2}|[ ][-/][ ]|\u3000))?[\s#>*+•·○●◦▪■□☐☑✓✔🔑🔐🔒📶🛜①-⑳_`\"'\[-]*(?:[0-9]{1,2}[.)、][ ])?",
    re.DOTALL,
)
_SETTING = re.compile(r"[A-Za-z_][\w.-]{0,48}=(?=.)")
_IDENTIFIER_BEFORE = re.compile(rf"[{_LETTER}0-9_.$-]{{1,48}}\Z")
_ACCOUNT = re.compile(
    r"(?:\Aname\b|user\b|user[ _-]?(?:name|id)|username|login|log-in|account|e-?mail|ssid|network|netzwerk|netz\b|benutzer|nutzer|konto|kundennummer|anmeldename"
    r"|identifiant|utilisateur|compte|réseau|usuario|cuenta|correo|\bred\b|utente|conto|rete\b|usuário|utilizador|conta\b|rede\b|gebruiker|netwerk"
    r"|użytkownik|konto|sieć|användar|nätverk|bruker|bruger|логин|пользователь|сеть|почта|аккаунт|kullanıcı|用户|用戶|账号|帐号|帳號|账户|帐户|帳戶|登录名"
    r"|会员名|昵称|邮箱|网络|網絡|無線名|无线名|WiFi名|ユーザー|アカウント|メール|ネットワーク|아이디|계정|네트워크|이메일|\bid\b)[^\n:：=|\t]{0,24}(?:[:：=＝|】\t→–—]|[ ]{2}|[ ]-[ ]|</|\u3000|[ \t]*\Z)",
    re.IGNORECASE,
)
_QUOTED_USER = re.compile(
    r"(?:user|login|username|benutzer|benutzername|konto|identifiant|utilisateur|compte|usuario|cuenta|utente|usuário|логин|пользователь)[ :]{1,2}[«“„\"「'‘][^\n]{1,40}[»”“\"」'’][^\n.]{1,24}\Z",
    re.IGNORECASE,
)
_WITH_USER = re.compile(
    r"(?:con|with|mit|avec|como|come|comme|als|as|com|met|user|usuario|utente|usuário|login)[ :]{1,2}[\w.@-]{2,40},?[ ](?:y|and|und|et|e|en|i|con|com)[ ](?:la |tu |su |a |el |the )?\Z",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"wi-?fi|wlan|\bwpa|\bwep\b|netz|réseau|\bred\b|\brete\b|rede\b|netwerk|sieci|nätverk|сет[иь]|无线|無線|ネットワーク|와이파이|router|box\b|hotspot|login|acces|accès|access",
    re.IGNORECASE,
)
_NETWORK_ABOVE = re.compile(r"wi-?fi|wlan|ssid", re.IGNORECASE)
_NO_ENTRY = re.compile(r"[()=;{}$]|\b(?:def|const|let|var|return|if|self|import|function)\b|--")
_OPENED_BY = {")": "(", "]": "[", "}": "{"}
_SIGNS_BEFORE_HAN = frozenset(" :：=＝】」")
_WHICH = re.compile(
    r"[-–—#№(（\[0-9]|(?:for|of|to|on|für|fürs|zum|zur|vom|von|des|der|im|am|beim|do|da|de|del|della|di|du|des|pour|sur|para|en|no|na|per|van|voor|от|для|на|к|від|till|til|für)\b",
    re.IGNORECASE,
)
_NO_QUALIFIERS = FUNCTION_WORDS - word_set("my our your the a for of i")
_PASSWORD_BEFORE = re.compile(rf"{'|'.join(map(re.escape, NAMES))}|パス|wi-?fi|wlan", re.IGNORECASE)
_OF_ARCHIVES = ("解压", "解壓", "压缩包", "压缩", "解凍", "압축 ", "압축")
"""What stands before 密码 where the password is often the address of a site."""
_MODEL = re.compile(r"[A-Za-z]+[-_.]?[0-9]{1,4}[A-Za-z]*\Z|[A-Z]+-?[0-9]+\Z")
_TITLE = re.compile(r"S[0-9]{2}E[0-9]{2}\Z|[A-Z][a-z]+[0-9]{1,2}\Z")
_OTHER_TAILS = word_set(
    "day tages jour día giorno dia dnia dagen dag"
) | NO_SECRET_TAILS - word_set("id at for main service test value type group")
_BLANK_WORDS = (
    BLANK_VALUES
    | REMARK_WORDS
    | word_set(
        "ask asking pedir pide pida demander demande demandez fragen frag chiedere chiedi vragen vraag spør fråga zapytaj spytaj спросить спроси même misma mismo mesma mesmo stessa stesso siempre sempre toujours immer"
        " qui que chez avec beim dans là où dove donde onde quello celle celui hier ici aquí qui ici"
    )
)
_LETTERS = word_set("a i")
"""English words that are “and” or “to” in other languages."""
_NOT_WORDS = COMMON_VALUES | SENTENCE_WORDS | STORY_WORDS


_PHRASES = ("phras", "フレーズ", "프레이즈")


class _Joint(IntEnum):
    """How clearly what stands between a label and a value joins the two."""

    APART = 0
    BELOW = 1
    CELL = 2
    LOOSE = 3
    FIRM = 4


class _Label:
    """A label, where it stands, and what stands around it."""

    def __init__(self, match: "re.Match[str]") -> None:
        text, start = match.string, match.start()
        first = max(0, start - LONGEST_HEAD)
        line = text.rfind("\n", first, start) + 1
        self.text = text
        self.is_cut = not line and first > 0
        self.line = max(first, line)
        self.head = text[self.line : start]
        self.name = match["name"]
        self.tail = (match["tail"] or "").strip()
        self.end = match.end("tail")

    @property
    def is_named(self) -> bool:
        """Whether the whole label names a password, and not a manager or a hint of passwords."""
        words = re.findall(r"\w+", self.tail.lower())
        if not _OTHER_TAILS.isdisjoint(words) or not STORY_WORDS.isdisjoint(words):
            return False
        if self.name.lower() in KEY_NAMES:
            return self._names_key
        name = self.name.lower().replace("_", " ")
        if not name.isascii() or name in FOREIGN_NAMES or name in _OWN_NAMES:
            return True
        before = _IDENTIFIER_BEFORE.search(self.head)
        return strength_of((before[0] if before else "") + self.name) >= Strength.PASSWORD

    @property
    def _cell(self) -> str:
        """The words before it on its line or in its cell."""
        marks = _HEAD_MARKS.match(self.head)
        return self.head[marks.end() :] if marks else self.head

    @property
    def _names_key(self) -> bool:
        """Whether a key is that of a network, or a word such as `clave` stands beside a user."""
        if self.head.endswith(("<", "/")) or not self.is_entry:
            return False
        cell = self._cell
        is_apart = not cell or cell[-1] in " -_" or cell[-1] > "\u2e80"
        if not is_apart and not _NETWORK.search(cell):
            return False
        if _NETWORK.search(f"{cell}{self.name} {self.tail}"):
            return True
        if self.begins_line and not cell.strip() and _NETWORK_ABOVE.search(self._above):
            return True
        if self.name.lower() not in _NAMES_OF_ACCOUNTS:
            return False
        return (
            self.is_beside_user
            or self.is_beside_account
            or (self.begins_line and not cell.strip() and self.names_one)
        )

    @cached_property
    def is_entry(self) -> bool:
        """Whether only a few words stand before it on its line or in its cell, and no sentence."""
        if _NO_ENTRY.search(self.head):
            return False
        marks = _HEAD_MARKS.match(self.head)
        if self.is_cut and not (marks and marks.end()):
            return False
        words = self.head[marks.end() if marks else 0 :].lower().split()
        if len(words) > MOST_QUALIFIERS or not _NO_QUALIFIERS.isdisjoint(words):
            return False
        return not words or words[-1].isascii() or len(words[-1]) <= LONGEST_QUALIFIER

    @property
    def names_phrase(self) -> bool:
        """Whether it names a whole phrase."""
        return any(part in self.name.lower() for part in _PHRASES)

    @property
    def names_foreign_thing(self) -> bool:
        """Whether one word says what a password opens, in another language than English: `Kennwort Telekom`."""
        is_word = self.tail.isalpha() and not is_blank(self.tail)
        return is_word and self.name.lower() in FOREIGN_NAMES

    @property
    def is_beside_user(self) -> bool:
        """Whether “as bob and the” or the like stands right before it."""
        return _WITH_USER.search(self.head) is not None

    def is_heading(self, text: str, end: int) -> bool:
        """Whether the label is alone on its line, and the value that ends here alone below it."""
        return (
            self.begins_line
            and self.is_entry
            and self.names_one
            and _LINE_ENDS.match(text, end) is not None
        )

    @property
    def names_one(self) -> bool:
        """Whether nothing follows its name, or only words that say which password it is."""
        return not self.tail or _WHICH.match(self.tail) is not None

    @cached_property
    def begins_line(self) -> bool:
        """Whether nothing but marks and a few letters stand before it on its line."""
        marks = _HEAD_MARKS.match(self.head)
        return marks is not None and not re.search(r"[\w，。]", self.head[: marks.end()])

    @property
    def _above(self) -> str:
        """The lines right above it."""
        first = self.line
        for _ in range(LINES_AROUND):
            nearest = max(0, first - LONGEST_NEIGHBOUR)
            first = max(nearest, self.text.rfind("\n", nearest, max(0, first - 1)) + 1)
        return self.text[first : self.line]

    @property
    def is_below_network(self) -> bool:
        """Whether a network is named on one of the lines right above."""
        return _NAMES_NETWORK.search(self._above) is not None

    @cached_property
    def is_beside_account(self) -> bool:
        """Whether the name of a user or a network stands before it on its line, or begins a line beside it."""
        if _ACCOUNT.search(self.head) or any(map(_ACCOUNT.search, self._above.splitlines())):
            return True
        end = self.text.find("\n", self.end, self.end + LONGEST_NEIGHBOUR)
        below = self.text[end + 1 : end + 1 + LONGEST_NEIGHBOUR].split("\n")[0] if end >= 0 else ""
        return _ACCOUNT.search(below) is not None


class _Entry(NamedTuple):
    """A value, the label before it, and what joins the two."""

    text: str
    first: int
    last: int
    label: _Label
    joint: _Joint
    is_quoted: bool

    @property
    def value(self) -> str:
        """The value without its accents."""
        return unaccented(self.text[self.first : self.last])

    @property
    def ends_clause(self) -> bool:
        """Whether a clause, a cell or the line ends behind it."""
        return _ENDS.match(self.text, self.last) is not None

    @property
    def is_of_archive(self) -> bool:
        """Whether it opens an archive: its password is often the address of a site."""
        is_whole = self.is_quoted or _LINE_ENDS.match(self.text, self.last) is not None
        return is_whole and self.label.head.endswith(_OF_ARCHIVES) and "://" not in self.value


def _entry(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, place = match.string, match.end()
    if text[place : place + 1] in {"", "\r", "\n"} or text.startswith(
        PLACEHOLDER.lstrip("*"), place
    ):
        return NOTHING
    label = _Label(match)
    if not label.is_named:
        return NOTHING
    if match["below"] is None and (pair := password_of_pair(label.head, text, place)):
        return NOTHING if text[slice(*pair)] == PLACEHOLDER else (pair,)
    first, last, is_quoted = _value(text, place)
    return _spans(_Entry(text, first, last, label, _joint(match), is_quoted))


def _spans(entry: _Entry) -> Sequence[MatchSpan]:
    text, first, last, label, joint, is_quoted = entry
    span = (first, last)
    if is_quoted and "''" in entry.value and text[first - 1] == "'":
        return NOTHING if is_stand_in(entry.value) else (span,)
    if last > first and " " not in entry.value and _is_password(entry):
        return (span,)
    may_be_phrase = joint is _Joint.FIRM or (joint is _Joint.LOOSE and label.names_phrase)
    if may_be_phrase and label.is_entry:
        return _words(text, first, label)
    return _words_below(text, first, label) if joint is _Joint.BELOW else NOTHING


def _joint(match: "re.Match[str]") -> _Joint:
    if match["firm"] is not None:
        return _Joint.FIRM
    if match["below"] is not None:
        return _Joint.BELOW
    if match["loose"] is None:
        return _Joint.APART
    return _Joint.CELL if match["loose"].endswith("|") else _Joint.LOOSE


def _value(text: str, place: int) -> tuple[int, int, bool]:
    """Find the value at a place: between quotes of any kind, or up to a blank."""
    quoted = _DOUBLED.match(text, place) or _QUOTED.match(text, place)
    if quoted is not None:
        return (*quoted.span(1), True)
    bare = _BARE.match(text, place)
    if bare is None:
        return place, place, False
    value = bare[0]
    while value and (
        value[-1] in ".,;:!?*`\"'»" or (value[-1] in ")]}" and _OPENED_BY[value[-1]] not in value)
    ):
        value = value[:-1]
    return place, place + len(value), False


def _is_password(entry: _Entry) -> bool:
    """Return whether a value without blanks is a password, given its label and what joins the two."""
    value, label = entry.value, entry.label
    written = entry.text[entry.first : entry.last]
    if len(value) < 3 or is_blank(written) or _COUNTED.match(entry.text, entry.last):
        return False
    if entry.is_of_archive:
        return not is_stand_in(value)
    is_below = entry.joint is _Joint.BELOW
    if _is_other(value) or (is_below and not label.is_heading(entry.text, entry.last)):
        return False
    if is_below and _SETTING.match(value):
        return False
    if entry.joint is _Joint.APART:
        return label.is_entry and entry.ends_clause and _stands_apart(entry)
    is_number = value.strip("#*").isdigit()
    return _is_number(entry) if is_number else _is_odd(entry) or _is_word(entry)


def _stands_apart(entry: _Entry) -> bool:
    """Return whether a mere blank may stand before a value: a long number, a chain, or what no word is."""
    value, name = entry.value, entry.label.name.lower()
    if name in _NAMES_OF_BANKS:
        return value.isalpha() and value.lower() not in _NOT_WORDS
    if value.isdigit():
        return len(value) >= SHORTEST_NUMBER
    is_odd = oddity(value) >= Oddity.ODD
    if name in _NAMES_OF_ACCOUNTS:
        return (is_odd or has_digit_and_letter(value)) and entry.label.is_beside_user
    return _is_chain(value, 4) or (name in KEY_NAMES and is_odd)


def _is_number(entry: _Entry) -> bool:
    """Return whether a number is a password: not a year, nor in a cell behind another one."""
    value, label = entry.value, entry.label
    if entry.joint is _Joint.BELOW:
        return len(value) >= SHORTEST_NUMBER
    if (
        len(value) < 4
        or _YEAR.match(value)
        or (entry.joint is _Joint.CELL and not label.begins_line)
    ):
        return False
    return label.is_entry and entry.ends_clause


def _is_odd(entry: _Entry) -> bool:
    """Return whether a value looks like a password; how much so depends on the joint."""
    value, label, is_firm = entry.value, entry.label, entry.joint is _Joint.FIRM
    level = oddity(value)
    if label.name.lower() in _NAMES_OF_ACCOUNTS and level < Oddity.ODD and not _is_chain(value, 3):
        return False
    if entry.joint is _Joint.LOOSE and _TITLE.match(value):
        return False
    if level >= Oddity.UNSAYABLE or (is_firm and level >= Oddity.NUMBERED):
        return True
    is_mixed = has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6)
    if is_mixed or level >= Oddity.ODD:
        return label.is_entry and (entry.ends_clause or is_firm)
    return entry.joint is _Joint.BELOW and _is_chain(value, 3)


def _is_word(entry: _Entry) -> bool:
    """Return whether a word is all that the line of a label says."""
    value, label = entry.value, entry.label
    words = re.split("[-_.]", value.lower())
    if entry.is_quoted and len(value) >= 6 and _QUOTED_USER.search(label.head):
        return len(words) > 1 and FUNCTION_WORDS.isdisjoint(words)
    if entry.joint is not _Joint.FIRM or entry.is_quoted or len(value) < 4:
        return False
    name = label.name.lower()
    is_clue = name in _NAMES_OF_ACCOUNTS and not (name in _CLUES and label.is_below_network)
    if is_clue and not _is_chain(value, 3):
        return False
    is_named = label.names_one or label.names_foreign_thing
    is_alone = is_named and label.is_entry and label.begins_line
    is_alone = is_alone and _LINE_ENDS.match(entry.text, entry.last) is not None
    return is_alone and all(map(str.isalpha, words)) and _NOT_WORDS.isdisjoint(words)


def _is_chain(value: str, fewest: int) -> bool:
    return value.islower() and "-" in value and is_passphrase(value, fewest)


def _is_other(value: str) -> bool:
    """Return whether a value says that there is none, or is a variable, a path or an expression."""
    if not is_plain_value(value, code=False):
        return True
    return (
        is_reference(value)
        or is_code(value)
        or (names_a_secret(value) and not has_digit_and_letter(value))
    )


def _words_below(text: str, first: int, label: _Label) -> Sequence[MatchSpan]:
    """Take a few words with a number below a label, beside the name of a user."""
    phrase = _PHRASE.match(text, first)
    if (
        phrase is None
        or not label.is_heading(text, phrase.end())
        or label.name.lower() in KEY_NAMES
    ):
        return NOTHING
    words = phrase[0].lower().split()
    is_short = len(words) <= MOST_WORDS_BELOW and _NOT_WORDS.isdisjoint(words)
    is_numbered = re.search("[0-9]", phrase[0]) is not None
    return (phrase.span(),) if is_short and is_numbered and label.is_beside_account else NOTHING


def _words(text: str, first: int, label: _Label) -> Sequence[MatchSpan]:
    """Take words to the end of the line: spaced Han words, or any beside the name of a user."""
    if label.name.lower() in KEY_NAMES:
        return NOTHING
    spaced = _HAN_PHRASE.match(text, first)
    if spaced is not None:
        return NOTHING if is_blank_han(spaced[0]) else (spaced.span(),)
    han = _HAN_WORDS.match(text, first)
    if text[first - 1] == "\t" or text[first - 2 : first] == "  ":
        han = None
    if (
        han is not None
        and text[first - 1] in _SIGNS_BEFORE_HAN
        and not is_latin(han[0])
        and label.is_beside_account
        and not label.name.isascii()
    ):
        is_other = is_blank_han(han[0]) or is_remark_han(han[0])
        is_other = is_other or (text.startswith("(", han.end()) and "=" in text[label.end : first])
        return NOTHING if is_other else (han.span(),)
    phrase = _PHRASE.match(text, first)
    if (
        phrase is None
        or not label.names_one
        or text.startswith((". ", ".\n", ".\r"), phrase.end())
        or not label.begins_line
        or not _LINE_ENDS.match(text, phrase.end())
    ):
        return NOTHING
    words = phrase[0].lower().replace(",", "").split()
    is_numbered = re.search("[0-9]", phrase[0]) is not None
    is_phrase = label.names_phrase and len(words) >= 3 and words[0] not in _BLANK_WORDS
    if (is_phrase and is_numbered) or (phrase[0][0].islower() and is_plain_sentence(words)):
        return (phrase.span(),)
    other = _NOT_WORDS - _LETTERS if label.name.lower() in FOREIGN_NAMES else _NOT_WORDS
    is_sentence = not other.isdisjoint(words) or not _BLANK_WORDS.isdisjoint(words)
    is_sentence = is_sentence or not (is_latin(phrase[0]) or is_numbered)
    is_enough = len(words) > 2 or (is_plain_pair(words) and label.is_beside_account)
    return NOTHING if is_sentence or not is_enough else (phrase.span(),)


def _quoted_change(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take both of «X» → «Y» behind a label, if one of them cannot be a word."""
    values = match["old"], match["new"]
    is_odd = any(
        re.search("[0-9]", value) or oddity(unaccented(value)) >= Oddity.ODD for value in values
    )
    is_sure = is_odd and not any(map(is_stand_in, values))
    return (match.span("old"), match.span("new")) if is_sure else NOTHING


def _old_and_new(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take both of “old X, new Y” behind a label, if one of them cannot be a word."""
    first, last = match.span("label_end")
    if _OTHER_BETWEEN.search(match.string, first, last):
        return NOTHING
    spans: list[MatchSpan] = []
    for group in ("old", "new"):
        value = match[group].rstrip("\"'`.!?…)）。")
        if len(value) < 3 or value.lower() in FUNCTION_WORDS or is_stand_in(value):
            return NOTHING
        spans.append((match.start(group), match.start(group) + len(value)))
    values = [match.string[start:end] for start, end in spans]
    is_odd = any(
        (re.search("[0-9]", value) and re.search(r"[^\W\d_]", value))
        or oddity(unaccented(value)) >= Oddity.ODD
        for value in values
    )
    return spans if is_odd and not any(map(_is_said, values)) else NOTHING


def _is_said(value: str) -> bool:
    """Return whether a value is a date, a count or a word of a remark."""
    is_number = value.isdigit() and len(value) < 4
    return is_number or value.lower() in REMARK_WORDS or is_common_value(value) or is_blank(value)


def _whole_phrase(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return NOTHING if is_blank(match[1]) or is_stand_in(match[1]) else (match.span(1),)


def _new_one(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what is told of “the new one”, if a password was spoken of before."""
    first = max(0, match.start() - LONGEST_NEIGHBOUR)
    value = match["value"].rstrip(".,;:!?。，；\"'“”»」)")
    if not _PASSWORD_BEFORE.search(match.string, first, match.start()) or _is_other(value):
        return NOTHING
    is_odd = oddity(value) >= Oddity.ODD or (
        has_digit_and_letter(value) and not _MODEL.match(value)
    )
    start = match.start("value")
    return ((start, start + len(value)),) if is_odd and len(value) >= 5 else NOTHING


def _rule(names: Sequence[str], joint: str, *, bounded: bool = False) -> RedactionRule:
    pattern = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    return RedactionRule(
        "labelled_password",
        tuple(names),
        rf"(?P<name>(?iu:{pattern}))(?![A-Za-z\u00c0-\u024f\u0400-\u04ff]){joint}",
        _entry,
        bounded=bounded,
        swallows=False,
        names=True,
    )


_NAMES_OF_CHANGE = (
    *(name for name in NAMES if name not in KEY_NAMES), "пароля", "паролем", "wpa", "pw",
)  # fmt: skip
_OLD = (
    r"(?:(?<![\w-])(?:old|was|were|used to be|before|previously|formerly|until now|vorher|früher|bisher|alt|altes|war|ancien(?:ne)?|avant|était|antes|era|anterior|vieja?|viejo|prima|vecchi[ao]|velha|oud|oude|eerst|был[аои]?|раньше|старый|прежний|stare|było)[ ]?[:：=]?[ ]"
    r"|[旧舊][的是：: ]{0,3}|原来?[是：: ]{1,3}|以前[はの是：: ]{1,3}|之前[是：: ]{1,3}|(?:이전|예전|기존)(?:은|는|에는|엔)?[:： ]{1,3})"
)
_NEW = (
    r"(?:(?:and |but |und |et |y |e |en |и |а |i )?(?:is |it is |it['’]s |ist |est |es |è |é )?(?:new|now|jetzt|nun|neu|neues|ab jetzt|nouveau|nouvelle|maintenant|ahora|nueva|nuevo|ora|adesso|nuova|nuovo|agora|nova|novo|nu|nieuw|nieuwe|nowe|teraz|стал[аои]?|теперь|сейчас|новый)(?: is| ist| est| es)?[ ]?[:：=]?[ ]"
    r"|新[的是：: ]{0,3}|[现現]在[是：: ]{0,3}|今は[ ]?|[现現]改[成为][ ]?|改成[ ]?|(?:현재|지금|새로운|새)(?:은|는)?[:： ]{1,3})"
)
_OTHER_BETWEEN = re.compile(
    r"[.。!！?？](?:\s|\Z)|\b(?:polic\w+|length|manager|hint|reset|rules?|error|field|version)\b|长度|規則|规则",
    re.IGNORECASE,
)
_ONE_OF_TWO = r"(?:[^\s,;:，、；：。\"'`“”„«»「」]{3,48})"
_OPENING, _CLOSING = "[„“‘«‹「『\"'`]", "[“”‘’»›」』\"'`]"
_NEW_ONES = (
    "the new one", "the old one", "new one is", "das neue", "das alte", "le nouveau", "la nouvelle", "l'ancien", "el nuevo", "la nueva", "la anterior", "il nuovo", "la nuova", "o novo", "a nova", "het nieuwe",
    "nowe to", "новый", "старый", "新的", "旧的", "新密码", "新しいの", "新しいパス", "새 비번", "새로운", "now it's", "now it is", "jetzt ist es", "maintenant c'est", "ahora es", "adesso è", "теперь",
)  # fmt: skip
RULES = (
    _rule(NAMES, f"{_TAIL}{_MARKS}{_JOINT}"),
    _rule(_PLAIN_KEYS, f"{_TAIL}{_MARKS}{_JOINT}", bounded=True),
    _rule(_OTHER_KEYS, f"{_TAIL}{_MARKS}{_JOINT}"),
    _rule(NAMES, _BEFORE_NUMBER),
    _rule(_PLAIN_KEYS[:2], _BEFORE_DIGIT, bounded=True),
    _rule(_OTHER_KEYS, _BEFORE_DIGIT),
    _rule((*sorted(_NAMES_OF_BANKS), "clave", "parola", "chave"), _BLANK),
    RedactionRule(
        "labelled_password",
        NAMES,
        rf"(?iu:{'|'.join(sorted(map(re.escape, NAMES), key=len, reverse=True))})[^\n.。:：„“‘«‹「『\"'`]{{0,32}}{_OPENING} ?(?P<old>[^\n„“”‘’«»‹›「」『』\"`]{{3,64}}?) ?{_CLOSING}"
        rf"[ ]?(?:to|into|→|->|=>|auf|zu|in|a|à|ad|na|на|naar|til|till|para|por|[换換改变變]?[成为為]|改成|换成|から|에서)[ ]?{_OPENING} ?(?P<new>[^\n„“”‘’«»‹›「」『』\"`]{{3,64}}?) ?{_CLOSING}",
        _quoted_change,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        (
            "passphrase",
            "phrase de passe",
            "passwortsatz",
            "frase de contraseña",
            "frase-senha",
            "密码短语",
            "パスフレーズ",
        ),
        r"(?iu:passphrase|phrase de passe|passwortsatz|frase de contraseña|frase-senha|密码短语|パスフレーズ)[^\n.。„“‘«‹「『\"`]{0,40}[„“«‹「『\"`] ?((?:[^\s„“”‘’«»‹›「」『』\"`]{1,20} ){2,8}[^\s„“”«»‹›「」『』\"`]{1,20}?|(?<=[「『])[^\s「」『』]{1,20}[ \u3000][^\s「」『』]{1,20})[,.]? ?[“”»›」』\"`]",
        _whole_phrase,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        _NEW_ONES,
        rf"(?iu:{'|'.join(map(re.escape, _NEW_ONES))})(?:[ ](?:is|was|now|ist|heißt|lautet|war|est|c['’]est|es|era|è|é|is|to|это)|是|就是|叫|换成|改成|は|은|는|が|：|:|,)?[ ]?(?:now |nun |jetzt )?[„“‘«「\"'`]?(?P<value>[!-~]{{5,64}})",
        _new_one,
        bounded=False,
    ),
)

CHANGE_RULES = (
    RedactionRule(
        "labelled_password",
        _NAMES_OF_CHANGE,
        rf"(?iu:{'|'.join(sorted(map(re.escape, _NAMES_OF_CHANGE), key=len, reverse=True))})(?![A-Za-z])(?P<label_end>[^\n]{{0,48}}?)(?iu:{_OLD})[\"'`“„«「]?(?P<old>{_ONE_OF_TWO})[\"'`”“»」]?"
        rf"[ ]?(?:[,;，、；/|.。]|→|->|[–—-](?=[ ])|(?=[ ]))[ ]?(?iu:{_NEW})[\"'`“„«「]?(?P<new>{_ONE_OF_TWO})",
        _old_and_new,
        bounded=False,
        swallows=False,
        names=True,
    ),
)
"""Both values of a change, looked for before a rule takes the first alone."""
