"""Numbers of locks, alarms and safes: given in an order, set on a dial, or beside the name of the lock.

`access_codes` reads what is called a code or a PIN. Here the text speaks of a thing that opens, and the
number is known by what is done with it.
"""

import re

from creonowd.redaction.mentioned_values import (
    BEFORE_VALUE,
    LONGEST_GIVER,
    LONGEST_JOINT,
    MentionedValue,
    ends_in,
)
from creonowd.redaction.shape import word_set

NEAR_LOCK = 80
BEYOND_NUMBER = 12

_LOCK_NUMBER = re.compile(
    r"[0-9]{1,3}[A-ZА-Я][0-9]{2,5}[#*]?\Z|[#*]?[0-9]{3,8}[#*]?\Z|[0-9]{1,4}[*#][0-9]{1,4}\Z|[A-Z]-?[0-9]{3,6}(?:-?[A-Z])?\Z|[0-9]{3,6}-?[A-Z]\Z|[0-9](?:[ ·-][0-9]){2,7}\Z"
    r"|[0-9]{1,2}(?:-[0-9]{1,2}){2,5}\Z"
)
_ENTERING_WORDS = word_set(
    "tippe tipp tippst drücke drück drückst gib tape tapes compose composes fais faites entre entrez marca marque marcas teclea pulsa pulse introduce digite digito digiti componi"
    " toets druk typ wpisujesz naciśnij slå tryck knappa набери наберите введи введите нажми нажмите жми punching entering"
    " type press dial enter punch key typing pressing dialling tippen drücken taper tapez composer composez teclear marcar pulsar digitar "
    "digitare digita premere наберите набрать нажать ключ wpisz toets"
)
_ENTERING_SIGNS = frozenset("输按押入打")
_ON_KEYPAD = re.compile(r"[ ]?(?:on the keypad|am Tastenfeld|を押|を入力|入力|进|进入|开门|再按)")
_ONLY_LOCKS = frozenset(
    (
        "keypad",
        "lockbox",
        "lock box",
        "key safe",
        "padlock",
        "キーボックス",
        "鍵箱",
        "key box",
        "keybox",
        "schlüsselbox",
        "schlüsselkasten",
        "boîte à clés",
        "digicode",
        "cadenas",
        "domofon",
        "домофон",
        "сигнализация",
        "门锁",
        "电子锁",
        "门禁",
        "門禁",
        "도어락",
    )
)
_SET_TO = (
    "设的是",
    "設的是",
    "设为",
    "设成",
    "設為",
    "调到",
    "拨到",
    "转到",
    "对到",
    "always set",
    "set it to",
    "set to",
)
_DIAL = re.compile(r"[0-9]{1,2}(?:-[0-9]{1,2}){2,5}\Z")
_OPENS = re.compile(
    r"open|unlock|disarm|öffn|auf(?:geht|machen)|geht auf|offen|entsperr|ouvr|déverrouill|désarm|abr|desbloq|apr[eioa]|sblocc|otw|öppna|откры|сним|отключ|выключ|desact|désact|désarm|coupe|apaga|spegn|disatt|abgeschalt|ausgeschalt|scharf|deaktiv|off\b|开|開|解除|撤防|열|끄",
    re.IGNORECASE,
)
_CODE_WORD = re.compile("code|код|コード|kod|코드|digi|keypad|[:：]", re.IGNORECASE)
_VERBS_OF_CODES = frozenset(("", "is", "ist", "est", "es", "è", "é", "是", "は", "-", "–", "/"))
_LOCK_AND_CODE = re.compile(
    r"(?iu:(?:alarm\w{0,8}|tor|tür|haustür|keller|gate|door|garage|safe|lockbox|keypad|portail|porte|cave|coffre|puerta|portal|garaje|caja|porta|cancello|portão|cofre|poort|deur|дверь|ворота|гараж|подъезд|门|大门|车库|门禁|保险箱)"
    r"[ ]?(?:is|ist|est|es|è|é|是|は|:|：|=|–|-)?[ ]{0,2})([A-Z]?[0-9]{4,6}[A-Z#*]?)(?![0-9A-Za-z.:])"
)
_SPACED_DIGITS = re.compile(r"[0-9](?:[ ·-][0-9]){3,7}\Z")
_DASHED = frozenset(("– ", "— ", "- ", "= ", ": ", "…"))
_SINGLE_DIGITS = re.compile(r"[0-9](?:-[0-9]){3,7}\Z")
_ENTERED_AFTER = re.compile(
    r"[\"'”’」』]?,?[ ]?(?:eingeben|eintippen|tippen|drücken|intoetsen|を?入力|って入れ|を?押|누르|누르고|입력|(?:and |then |und |dann |puis |y |e |et |и |seguid[oa] de |suivi de |followed by |gefolgt von )?(?:the |l['’]|la |le |o )?"
    r"(?:star|asterisk|asterisco|cardinal|étoile|dièse|raute|sternchen|hash|pound key|almohadilla|решётк|звёздочк|井号|星号|井|再按))",
    re.IGNORECASE,
)
_EASTERN_LOCKS = (
    "ロッカー",
    "ロックは",
    "鍵は",
    "ロック",
    "잠금",
    "금고",
    "도어락",
    "자물쇠",
    "报警器",
)
_ONLY_PADLOCKS = frozenset(
    (
        "candado",
        "lucchetto",
        "cadenas",
        "cadeado",
        "padlock",
        "vorhängeschloss",
        "fahrradschloss",
        "fietsslot",
        "挂锁",
    )
)
_WITH_DIALS = frozenset(
    (
        "safe",
        "tresor",
        "coffre",
        "coffre-fort",
        "caja fuerte",
        "cofre",
        "cassaforte",
        "kluis",
        "sejf",
        "сейф",
        "замок",
        "cadeado",
        "candado",
        "lucchetto",
        "cadenas",
        "padlock",
        "schloss",
        "zahlenschloss",
        "保险箱",
        "保险柜",
        "金庫",
        "금고",
        "locker",
        "suitcase",
    )
)
_WITH = word_set(
    "code кодом código codice il le el o with mit avec con com met med с by per par via as is auf sur en op"
)
_KEY_IN = re.compile(r"\b[Kk]ey(?:ed|ing)? in[ ]\Z|\b[Pp]unch in[ ]\Z|\b[Pp]ut in[ ]\Z")
_SET_ON = re.compile(
    r"(?:moves|moved|changes|changed|switches|goes|wechselt|passe|passera|cambia|pasa|muda|steht|stehen|gestellt|set|réglé\w*|puest[oa]|impostat[oa]) (?:auf|to|on|at|sur|en|su|zu|à|a|para)[ ]\Z",
    re.IGNORECASE,
)
_PRESS_THEN = re.compile(
    r"(?:press|drück\w{0,2}|appuy\w{1,3}|pulsa\w?|premi|按|押し)[^\n.。]{0,16}(?:then|dann|puis|luego|poi|再按?|后|て)[ :,，、]{0,3}\Z",
    re.IGNORECASE,
)
_ENDS_ORDER = re.compile(
    r"[\"'”’」』]?(?:[ \t]*(?:[\r\n,.;:!?)，。；、）#*]|\Z)|[ ](?:and|then|to|within|before|und|scharf|unscharf|aus|off|dann|et|puis|y|e|en|и|dans|nach|after|twice)\b|[^\x00-\x7f])"
)
_LETTER_AND_NUMBER = re.compile(
    r"[0-9]{1,3}[A-ZА-Я][0-9]{2,5}[#*]?\Z|[A-Z][0-9]{4,5}\Z|[0-9]{4,5}[A-Z]\Z"
)
_KEYPAD_SIGNS = frozenset("#*")
_LOCK_SIGNS = frozenset(":：=→(（")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}\Z")
_THEN = re.compile(r"[\"'`」』]?[ ]?(?:→|->|=>|➜)")
NO_NUMBER = re.compile(
    r"[\"'”’」』]?[ ]?(?:[吗么嗎?？]|か[？?。]|인가|이냐|[-–~至到/.:][ ]?\d|[位个個字次元年月日号號章层層分秒天%条條]|文字|桁|자리|자\b|(?:characters|chars|digits|letters|times|attempts"
    r"|tries|minutes|days|bits?|bytes|Zeichen|caractères|caracteres)\b|символ)"
)


def opens_lock(candidate: MentionedValue) -> bool:
    """Return whether a value near the name of a lock is the number that opens it."""
    passage = candidate.passage
    if candidate.start - passage.end > NEAR_LOCK or not _LOCK_NUMBER.match(candidate.value):
        return False
    if NO_NUMBER.match(passage.text, candidate.end):
        return False
    return _is_entered(candidate) or _is_set(candidate) or _is_beside_lock(candidate)


def _is_entered(candidate: MentionedValue) -> bool:
    """Return whether somebody is told to type it in: “press 4471”, “tapez”, 输, “4471 then star”."""
    head, bare = candidate.before, candidate.before.rstrip(BEFORE_VALUE)
    if ends_in(head, bare, _ENTERING_SIGNS, _ENTERING_WORDS):
        return True
    if _KEY_IN.search(head) or _PRESS_THEN.search(head):
        return True
    text, end = candidate.passage.text, candidate.end
    if _ENTERED_AFTER.match(text, end) or _ON_KEYPAD.match(text, end):
        return True
    return bare.endswith("→") and _THEN.match(text, end) is not None


def _is_set(candidate: MentionedValue) -> bool:
    """Return whether a lock is opened with it or set to it, or its form is that of a dial."""
    passage, value, head = candidate.passage, candidate.value, candidate.before
    bare = head.rstrip(BEFORE_VALUE)
    if _SINGLE_DIGITS.match(value) or bare.endswith(_SET_TO):
        return True
    if not _YEAR.match(value):
        first = max(0, passage.start - NEAR_LOCK)
        is_with = ends_in(head, bare, frozenset(), _WITH) and _ends_order(candidate)
        if _SET_ON.search(head) or (
            is_with and _OPENS.search(passage.text, first, candidate.start)
        ):
            return True
    if _SPACED_DIGITS.match(value) and candidate.in_sentence:
        return candidate.is_told or head[-2:] in _DASHED
    is_dial = candidate.is_told and _DIAL.match(value) is not None
    last = candidate.end + BEYOND_NUMBER
    return is_dial and _OPENS.search(passage.text, passage.start, last) is not None


def _is_beside_lock(candidate: MentionedValue) -> bool:
    """Return whether it stands right beside the name of what is nothing but a lock, or in a row of codes."""
    passage, value = candidate.passage, candidate.value
    name = passage.text[passage.start : passage.end].lower()
    gap = passage.text[passage.end : candidate.start]
    if candidate.is_told and _LETTER_AND_NUMBER.match(value):
        is_code = _CODE_WORD.search(passage.text, passage.line_start, candidate.start) is not None
        return candidate.in_sentence and is_code
    if not _YEAR.match(value) and _ends_order(candidate):
        is_padlock = name in _ONLY_PADLOCKS and len(gap) <= LONGEST_GIVER
        is_eastern = name.endswith(_EASTERN_LOCKS) and not gap.strip(" は는은:：")
        if is_eastern or (is_padlock and gap.replace(" ", "").isalpha()):
            return True
    if name in _WITH_DIALS and not gap.isspace() and candidate.is_beside and _DIAL.match(value):
        return True
    return _is_one_of_codes(candidate, gap) or _is_joined(candidate, name, gap)


def _is_one_of_codes(candidate: MentionedValue, gap: str) -> bool:
    """Return whether numbers of several locks stand in a row: `Alarm 3090, gate B2684`."""
    passage = candidate.passage
    is_joined = gap.strip(" :：=").lower() in _VERBS_OF_CODES
    if not is_joined or _YEAR.match(candidate.value) or not _ends_order(candidate):
        return False
    first = max(0, passage.start - NEAR_LOCK, passage.line_start)
    last = min(passage.line_end, candidate.end + NEAR_LOCK)
    codes = set(_LOCK_AND_CODE.findall(passage.text, first, last))
    return len(codes) > 1 and not all(map(str.isdigit, codes))


def _is_joined(candidate: MentionedValue, name: str, gap: str) -> bool:
    """Return whether a sign joins it to the name, and the one or the other leaves no doubt."""
    value = candidate.value
    if len(gap) > LONGEST_JOINT and _LOCK_SIGNS.isdisjoint(gap[-LONGEST_JOINT:]):
        return False
    before = candidate.passage.text[candidate.start - 1]
    if not _KEYPAD_SIGNS.isdisjoint(value) and before in " :：*#":
        return True
    is_sure = len(value) > 4 or not value.isdigit() or not value.startswith(("19", "20"))
    is_lock = name in _ONLY_LOCKS
    is_lock = is_lock or (candidate.is_behind_colon and _LETTER_AND_NUMBER.match(value) is not None)
    return is_lock and is_sure and candidate.in_sentence


def _ends_order(candidate: MentionedValue) -> bool:
    return _ENDS_ORDER.match(candidate.passage.text, candidate.end) is not None
