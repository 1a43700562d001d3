"""Numbers that open something: PINs, door codes, combinations, cards, backup codes, answers to questions.

A number is a secret only by its name. `code` alone names nothing, so that a door, an alarm or the
like must stand beside it. Where a text speaks of a lock, an alarm or a safe and of no code, the number
is known by what is done with it: given in an order, set on a dial, or put beside the name of the lock
(`opens_lock`, which `mentions` asks).
"""

import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.mentioned_values import (
    BEFORE_VALUE,
    LONGEST_GIVER,
    LONGEST_JOINT,
    MentionedValue,
    ends_in,
)
from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.shape import is_stand_in, word_set

NEAR_CODE = 72
LONGEST_THING = 64
MOST_CODES = 24
LONGEST_QUESTIONS = 500
LONGEST_ANSWER = 40
LONGEST_LIST = 120

PIN_NAMES = (
    "pin", "puk", "otp", "tan", "mtan", "einmalcode", "einmalpasswort", "one-time code", "one-time password", "one-time passcode", "sicherheitscode", "security code", "zutrittscode", "cvv2", "cvv", "cvc", "digicode", "geheimzahl", "türcode", "tür-code", "torcode", "zahlencode", "zahlenkombination",
    "kombination", "combination", "combo", "combinaison", "combinación", "combinação", "combinazione", "lockbox", "keypad",
    "padlock", "key box", "keybox", "schlüsselsafe", "schlüsselbox", "alarmcode", "toegangscode", "inlogcode", "pincode", "kod do", "kod pin",
    "código do", "código da", "código de la", "código del", "codice del", "codice di", "child lock", "parental control", "parental controls", "kindersicherung", "jugendschutz", "contrôle parental", "control parental", "controllo parentale", "家长锁", "童锁", "儿童锁", "家长控制", "ペアレンタルコントロール", "haustür-code", "haustürcode", "tresorcode", "garagencode", "kellercode", "schlosscode", "displaycode", "gerätecode", "handycode", "anmeldecode", "logincode", "login-code", "verifizierungscode", "code de connexion", "code de vérification", "schlüsseltresor", "schlüsselkasten", "schlüsseldepot", "zugangscode",
    "security number", "telefoonbank", "電子錠", "电子锁", "門鎖", "门锁", "密码锁", "門禁", "门禁", "锁屏密码", "bike lock", "luggage lock", "door lock", "combination lock", "cadenas", "candado", "lucchetto", "key safe", "host key", "пин-код", "пинкод", "пин", "код домофона", "код двери", "код подъезда", "код доступа",
    "код от", "код на", "комбинация", "锁码", "门禁码", "pin码", "主持人密钥", "取件码", "暗証番号", "暗証コード", "解錠番号", "registration lock", "gerätesperre", "displaysperre", "bildschirmsperre", "tastensperre", "sperrcode", "entsperrcode", "screen lock", "lock screen", "code de déverrouillage", "code de verrouillage", "bloqueo de pantalla",
    "código de desbloqueo", "código de desbloqueio", "codice di sblocco", "код разблокировки", "暗証", "zahlenschloss", "zahlenschloß", "vorhängeschloss", "fahrradschloss", "kofferschloss", "antivol", "cijferslot",
    "fietsslot", "密码盒", "密码箱", "钥匙盒", "钥匙箱", "挂锁", "行李箱锁", "ダイヤル錠", "南京錠", "자물쇠", "鍵の番号", "ロック番号", "도어락", "공동현관",
)  # fmt: skip
_CODE_NAMES = (
    "code",
    "clave",
    "código",
    "codigo",
    "codice",
    "kode",
    "kod",
    "koden",
    "код",
    "celui de",
    "celui du",
    "celle de",
    "celle du",
    "the one for",
    "the one on",
    "quello del",
    "quello della",
    "番号",
    "번호",
    "コード",
    "코드",
)
_OTHER_CODE_NAMES = (
    "and the one for", "and the one on", "and the one to", "und der für", "und die für", "und der am", "und der zum", "und der vom", "et celui de", "et celui du", "et celle de", "et celle du",
    "y el de", "y el del", "y la de", "y la del", "e quello del", "e quello della", "e quello dell'", "e quella del", "e quella della", "e o do", "e o da", "e a do", "e a da", "en die van", "a ten do",
)  # fmt: skip
"""Names of one more code behind another one."""
_CODE_BEFORE = re.compile(
    r"(?:code|código|codigo|codice|kode|kod|pin|clave)\b[^\n0-9]{1,40}[#*]?(?P<number>(?=[A-Z]{0,3}[0-9])[0-9A-Z-]{3,9})[#*]?[,;]?[ ]\Z",
    re.IGNORECASE,
)
_LISTED_CODE = re.compile(
    r"(?:(?<![^\n,;、，|/–—(:：.])|(?<=[,;、，|/–—(:：.] )|(?<=and )|(?<=und )|(?<=et )|(?<= [eyi] ))(?P<thing>(?u:[^\W\d_][\w'’-]{1,19}[ ]?){1,4})[:=]?[ ]?"
    r"(?P<number>[#*]?(?:[A-Z]?[0-9]{4,6}[A-Z]?)[#*]?)(?=[ \t]*(?:[,;、，)(–—/|.]|\r?\n|\Z|and\b|und\b|et\b|[eyi]\b))"
)
_WITH_THREE_DIGITS = re.compile(
    r"\b(?:suitcase|luggage|koffer|valise|maleta|valigia|mala|bike|fahrrad|vélo|bici)\b[^\n]{0,16}\Z",
    re.IGNORECASE,
)
_OF_OTHER_THING = re.compile(
    r" (?:of|for|des?|du|der|das|del|delle|dei|dos|das) (?:the |les |las |los )?(?:chapters?|chapitres?|scenes?|scènes?|cap[ií]tul\w+|kapitel|szenen?|colou?rs?|couleurs?|colores|farben|errors?|erreurs?)",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"[ ]?[(（](?![^()（）\n]*(?i:denied|error|fail|invalid|locked))([^()（）\n0-9]{3,32})[)）]"
)
_OTHER_ONE = re.compile(r"celui|celle|the one|quell", re.IGNORECASE)
_OPENED = re.compile(
    r"\b(?:i?phone|ipad|tablet|handy|téléphone|tablette|móvil|teléfono|cellulare|telefono|celular|telefon|laptop|voicemail|mailbox|garasje\w*|port\w{0,3}|dør\w{0,3}|lås\w{0,3}|hus\w{0,3}|clavier|teclado|tastiera|tastatur|türschloss|torschloss|vorhängeschloss|toetsenbord|panel|(?:key|lock|mail|post)?[ -]?box|schlüssel(?:box|kasten|safe|tresor|fach)|door|gate|alarm|lock|locker|lockbox|keypad|garage|entry|entrance|building|safe|house|flat|apartment|phone|wi-?fi|wlan|access"
    r"|security|duress|panic|burglar|bike|suitcase|shed|storage|voicemail|card|verification|printer|copier|scanner|drucker|kopierer|imprimante|impresora|stampante|boiler|login|sms|one-time|2fa|two-factor"
    r"|authenticat\w*|confirmation|sign-in|parental|pairing|meeting|conference|webinar|personal|secret|cottage|cabin|barn|studio|hotel"
    r"|airbnb|room|entrée|porte|immeuble|portail|coffre|carte|vélo|puerta|portal|casa|portón|caja|tarjeta|cajero|bicicleta|porta|portone"
    r"|cassaforte|cancello|cofre|tür|haus|tresor|karte|deur|sleutelkluis|kluis|домофон\w*|подъезд\w*|двер\w*|сейф\w*|карт\w*"
    r"|interphone|hall|cage|escalier|parking|cave|grille|barrière|ascenseur|résidence|bâtiment|boîte à clés|local|schranke|hof|hinterhof|hauseingang"
    r"|eingang|keller|aufzug|tor|gartentor|haustür|wohnung|büro|schließfach|spind|fahrrad|koffer|briefkasten|schlüsselkasten|schlüsseltresor"
    r"|interfono|portero|garaje|trastero|cancela|verja|ascensor|piso|edificio|finca|buzón|maleta|taquilla|alarma|citofono|ascensore|palazzo"
    r"|condominio|cantina|valigia|allarme|lucchetto|interfone|portão|prédio|garagem|elevador|alarme|mala|cadeado|poort|slagboom|voordeur|gebouw"
    r"|lift|fiets|koffer|domofon\w*|bram\w*|furtk\w*|drzwi|klatk\w*|sejf\w*|garaż\w*|ворот\w*|калитк\w*|шлагбаум\w*|гараж\w*|замк\w*|квартир\w*"
    r"|dörr\w*|grind|port|intercom|barrier|bin store|basement|lobby|stairwell|courtyard|yard|marina|pool|gym|staff)\b|ドア|玄関|金庫|キーボックス|オートロック|ロッカー|自転車|倉庫|車庫|鍵|현관|금고|자물쇠|자전거|도어락|사물함|창고|대문|차고",
    re.IGNORECASE,
)
_NO_SECRET_CODE = re.compile(
    r"\b(?:error|area|zip|postal|post|country|status|exit|source|dress|bar|colou?r|product|promo|discount|coupon|dial(?:l?ing)?|http"
    r"|response|return|morse|airport|currency|tax|sort|swift|genetic|penal|civil|building|fire|highway|course|module|language|qr|unit"
    r"|item|reference|order|booking|tracking)[ -]\Z",
    re.IGNORECASE,
)
_SENT_TO = re.compile(
    r"\b(?:your|ihr|dein|votre|ton|tu|su|il tuo|seu)[ ](?:[\w.-]{2,20}[ ]){0,2}\Z", re.IGNORECASE
)
_ENDS_SENTENCE = re.compile(r"[.!,;。，]|[ \t]*(?:[\r\n]|\Z)")
_REFERS_BACK = re.compile(
    r"[ ](?:for|to|of|on) (?:it|them|that|this)\b|[ ](?:dafür|dazu|davon)\b", re.IGNORECASE
)
_BEGINS_SENTENCE = re.compile(
    r"(?:the|its|der|die|das|le|son|el|il|lo|o|a|de|het|su)[ ]|", re.IGNORECASE
)
_DIGITS = re.compile("[0-9]")
_NUMBER = (
    r"[~*_`]{0,3}(?P<number>[#*]?[0-9](?:[0-9]|[ ]?[–—·/-][ ]?(?=[0-9])|[ ](?=[0-9])){2,15}[#*]?"
    r"|(?=[A-Za-zА-я]{0,5}[0-9])[0-9A-Za-zА-я]{4,8}|[A-Z0-9]{2,6}(?:-[A-Z0-9]{2,6}){1,3}|G-[0-9]{6})(?![\w*]|[.:/,]\d|[ ]?%|-\w)"
)
_WORDS = r"(?:[ ](?u:(?:[^\W\d_]|[0-9]{1,2}(?=[ ][A-Za-z]))[\w'’-]{0,19})){0,8}?"
_JOINT = (
    r"(?P<joint>[:：]?[*_]{0,2}[ \t]{0,8}(?:\r?\n[ \t]{0,8}){1,2}(?:[-*+>•][ \t]{1,3})?"
    r"(?=[*_`]{0,3}[#*]?[0-9][0-9 –-]{2,14}[#*]?[*_`]{0,3}[ \t]{0,8}(?:[\r\n]|\Z))"
    r"|[ \t]{0,2}(?:[:：]['*_]{2,3}|[:：=–—|]|->|→|-(?=[ ])|\.{3,}|…+|[(（](?:[^()（）\n0-9]{1,24}[)）][ ]?(?:[:：=–—|]|->|→|\.{3,}|…+))?)[ \t]{0,4}(?:(?:now|jetzt|nun|ora|ahora|maintenant|agora|теперь) )?"
    r"|['’]s[ ]|[ ]{2,24}|\t{1,4}|[ ](?i:is|was|(?:is |ist |est )?(?:set to|set at|eingestellt auf|réglé sur)|wants|needs|takes|accepts|expects|asks for|verlangt|will|braucht|demande|veut|pide|quiere|vuole|chiede|pede|ist|lautet|war|est|es|é|è|er|är|eh|c['’]est|(?:moves|changes|goes|becomes|switches|wechselt|passe|passa|cambia|muda)(?: to| auf| zu| à| a| para| in)?|(?:is|ist|est|es|é|è) (?:the|der|die|das|le|la|les|el|los|il|lo|o|a|de|het)|(?:is |ist |est |es )?(?:now|still|jetzt|maintenant|ahora)|это|теперь)[ :]{1,2}"
    r"|,?[ ](?=[wqcd])(?:which|qui|que|che|die|der|das|welche[rs]?) (?:is|reads|est|es|è|é|ist|lautet)[ :]{1,2}"
    r"|(?:[，,][ ]?)?就?(?:是|为|為|は|는|은)[ ]?)"
)
_COUNTED = re.compile(
    r"[ ]?(?:[-–~至到][ ]?\d|[位个個字次元年月日章层層分秒天%]|文字|桁|자리|자\b|(?:characters|chars|digits|letters|times|attempts|tries|minutes"
    r"|days|hours|points|people|words|pages|bits?|Stellen|Ziffern|chiffres|cifras)\b)",
    re.IGNORECASE,
)
_TURN = re.compile(
    r"(?:[左右](?:[^0-9，。\n]{0,4}[转轉圈旋到][^0-9，。\n]{0,3}|[にへ]|(?:쪽)?으로[ ]?|[ ])?|\b(?i:left|right|links|rechts|[LR])[ ]?(?i:to )?)([0-9]{1,2})(?![0-9])"
    r"|\b([0-9]{1,2})[ ](?i:left|right|links|rechts)\b"
)
_NUMBER_BEFORE = re.compile(r"(?<![A-Za-z0-9.])(?:[A-Z]-)?([0-9]{4,8}|[0-9]{3}[- ][0-9]{3})\Z")
_CLEAR_NAMES = frozenset(
    (
        "key safe",
        "lockbox",
        "schlüsselkasten",
        "schlüsselbox",
        "пин",
        "пин-код",
        "пинкод",
        "geheimzahl",
        "digicode",
        "код от",
        "pin码",
    )
)
_OTHER_CODES = frozenset(
    "号號编編代条條尺页頁数數解起乱亂源价價筹籌维維形区區国國密转轉译節节機机制砝流"
)
_BRACKET_BEFORE = re.compile(r"(?<![A-Za-z0-9.-])([0-9]{4,8}[#*]?)[ ]?[(（][^()（）\n0-9]{0,32}\Z")
_SHORT_NAMES = (
    "cv",
    "puk",
    "combo",
    "lockbox",
    "combin",
    "kombin",
    "luggage",
    "bike",
    "antivol",
    "zahlenschl",
    "vorhänge",
    "fahrradschl",
    "kofferschl",
    "cijferslot",
    "fietsslot",
    "挂锁",
    "行李箱锁",
    "ダイヤル錠",
    "南京錠",
    "자물쇠",
    "padlock",
    "密码锁",
    "cadenas",
    "candado",
    "lucchetto",
)
_STRUCK_OUT = re.compile(r"(?:~~|</s>|</del>)[ ,→>-]{0,4}([0-9]{3,12}[#*]?)(?![0-9])")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}\Z")
_LINE_ENDS = re.compile(r"[ \t]*(?:[\r\n,.;)（(#—–]|\Z)")


def _pin(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, name, number = match.string, match["name"].lower(), match["number"]
    digits = len(_DIGITS.findall(number))
    is_mixed = number.strip("#*- –0123456789") != ""
    least = 3 if name.startswith(_SHORT_NAMES) else 2 if is_mixed else 4
    if digits < least or (digits == 3 and match["words"] and match["joint"] is None):
        return NOTHING
    if _COUNTED.match(text, match.end("number")) or (is_mixed and not _is_code(number)):
        return NOTHING
    if name == "tan" and (match["name"] != "TAN" or match["joint"] is None):
        return NOTHING
    if match["joint"] is None and not _may_follow(match, name, is_mixed=is_mixed):
        return NOTHING
    return (match.span("number"), *_number_after(text, match.end("number")))


def _number_after(text: str, end: int) -> Sequence[MatchSpan]:
    """Take the new number behind an old one that is struck out: `~~1180~~ 5527`."""
    new = _STRUCK_OUT.match(text, end)
    return NOTHING if new is None else (new.span(1),)


def _is_code(value: str) -> bool:
    """Return whether letters stand among digits as in `47B09`, and not as in `GPIO12`."""
    return (
        re.search(
            r"[0-9].*[^0-9].*[0-9]|[^0-9][0-9]{3,}\Z|\A[0-9]{4,}[A-Z]\Z|\A[^0-9]{1,2}[0-9]{2,}[^0-9]+\Z",
            value,
        )
        is not None
    )


def _may_follow(match: "re.Match[str]", name: str, *, is_mixed: bool) -> bool:
    """Return whether a number may stand right behind its name: `PIN 4471`, `Digicode 47B09`."""
    number = match["number"]
    if match["words"]:
        if is_mixed and _ends_label(match) and match["words"].count(" ") == 1:
            return name.startswith(("código", "codice", "kod ", "код "))
        is_clear = match["name"] == "PIN" or name in _CLEAR_NAMES
        return (
            is_clear and match["words"].count(" ") <= 4 and not is_mixed and not _YEAR.match(number)
        )
    if name == "pin" and match["name"] == "pin":
        return (
            not is_mixed
            and 4 <= len(number) <= 8
            and not _YEAR.match(number)
            and _LINE_ENDS.match(match.string, match.end("number")) is not None
        )
    return name == "pin" or not _YEAR.match(number)


def _code(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the number of a code, if what it opens stands beside it."""
    text, start, number = match.string, match.start(), match["number"]
    first = max(0, start - NEAR_CODE)
    line = text.rfind("\n", first, start) + 1
    sentences = re.split(r"(?<![0-9])[.!?][ ]", text[max(first, line) : start])
    head = sentences[-1]
    if not head.strip() or _REFERS_BACK.match(match["words"]) or _BEGINS_SENTENCE.fullmatch(head):
        head = sentences[-2][-NEAR_CODE:] + ". " + head if len(sentences) > 1 else head
    if not re.search(r"\w", head + match["words"]) and match["joint"]:
        head = text[max(0, start - LONGEST_THING) : start] + head
    is_mixed = number.strip("#*- –0123456789") != ""
    is_keyed = number.endswith(("#", "*")) and (match["joint"] is not None or not match["words"])
    is_sent = match["joint"] is not None and _SENT_TO.search(head + match["words"]) is not None
    is_sent = is_sent and _ENDS_SENTENCE.match(text, match.end("number")) is not None
    is_keyed = is_keyed or (match["joint"] and _SINGLE_DIGITS.match(number) is not None)
    is_known = is_keyed or is_sent or _OPENED.search(head + match["words"]) is not None
    is_known = is_known or (match["joint"] is not None and _opens_behind(match))
    is_other = _OTHER_ONE.match(match[0]) and not _CODE_WORD.search(text, first, start)
    if is_other or _NO_SECRET_CODE.search(head) or not is_known:
        return NOTHING
    if match["joint"] is None and (head is not sentences[-1] or "–" in number):
        return NOTHING
    digits = len(_DIGITS.findall(number))
    fewest = 3 if _WITH_THREE_DIGITS.search(head) else 4
    if digits < (2 if is_mixed else fewest) or _COUNTED.match(text, match.end("number")):
        return NOTHING
    if is_mixed and not (_is_code(number) or match["joint"]):
        return NOTHING
    if match["joint"] is None and (
        _YEAR.match(number) or (is_mixed and match["words"] and not _ends_label(match))
    ):
        return NOTHING
    return (match.span("number"),)


def _opens_behind(match: "re.Match[str]") -> bool:
    """Return whether brackets behind a code name what it opens: `Code: 4490 (green gate)`."""
    remark = _REMARK.match(match.string, match.end("number"))
    return remark is not None and _OPENED.search(remark[1]) is not None


def _other_code(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the number of one more code: `The door code is 3381 and the one for the shed, 4460`."""
    text, start = match.string, match.start()
    before = _CODE_BEFORE.search(text, max(0, start - NEAR_CODE), start)
    if before is None or _COUNTED.match(text, match.end("number")):
        return NOTHING
    if _YEAR.match(before["number"]) and _YEAR.match(match["number"]):
        return NOTHING
    is_known = (
        _OPENED.search(match["words"]) is not None and len(_DIGITS.findall(match["number"])) > 2
    )
    return (match.span("number"),) if is_known else NOTHING


def _listed_codes(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the numbers of a line that speaks of codes and lists what they open: `Codes: gate 5512, attic 9904`."""
    text, start = match.string, match.start()
    first = max(text.rfind("\n", max(0, start - LONGEST_LIST), start) + 1, start - LONGEST_LIST)
    end = text.find("\n", match.end(), match.end() + LONGEST_LIST)
    last = min(len(text), match.end() + LONGEST_LIST) if end < 0 else end
    if not _DIGITS.search(text, first, last):
        return NOTHING
    if _NO_SECRET_CODE.search(text, first, start) or _OF_OTHER_THING.match(text, match.end(), last):
        return NOTHING
    listed = list(_LISTED_CODE.finditer(text, first, last))
    if all(_YEAR.match(one["number"]) for one in listed):
        return NOTHING
    is_list = len(listed) > 1 and any(_OPENED.search(one["thing"]) for one in listed)
    return tuple(one.span("number") for one in listed) if is_list else NOTHING


def _ends_label(match: "re.Match[str]") -> bool:
    """Return whether a short label and its code are all that the line or clause says."""
    is_short = match["words"].count(" ") <= 3 and match["number"].isalnum()
    return is_short and _LINE_ENDS.match(match.string, match.end("number")) is not None


def _dial(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the numbers to which the dial of a safe is turned."""
    first, last = max(0, match.start() - NEAR_CODE), match.end() + NEAR_CODE
    turns = [turn.span(turn.lastindex or 1) for turn in _TURN.finditer(match.string, first, last)]
    is_doubtful = match[0].lower().startswith("turn") or match.string.startswith(" (", match.end())
    fewest = 3 if is_doubtful else 2
    return turns if len(turns) >= fewest else NOTHING


def _number_before(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from “is your code” and “to verify your account” for the number."""
    found = _NUMBER_BEFORE.search(match.string, max(0, match.start() - 24), match.start())
    return NOTHING if found is None else (found.span(1),)


def _han_code(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the number of any 码 that is no number of something, such as 号码 and 编码."""
    is_other = match.string[max(0, match.start() - 1) : match.start()] in _OTHER_CODES
    return NOTHING if is_other or _COUNTED.match(match.string, match.end(1)) else (match.span(1),)


def _before_brackets(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from “(the PIN)” for the number that it explains."""
    found = _BRACKET_BEFORE.search(match.string, max(0, match.start() - NEAR_CODE), match.start())
    return NOTHING if found is None else (found.span(1),)


def _new_code(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1), match.span(2))


_CODE = re.compile(
    r"[ \t]{0,8}(?:(?:[-*+•][ \t]{1,3})?(?:[-*•·☐☑□▢✓✔]|\[[ xX]?\]|[0-9]{1,3}[.):]?)[ \t]{1,3}|[・●○◦①-⑳][ ]?)?[\"'`]?"
    r"([A-Za-z0-9]{3,16}(?:[- ][A-Za-z0-9]{3,10}){0,11})[\"'`]?(?=[ \t]*(?:[\r\n,、;，。/|(（–—]|\Z)|[ ]{2})[ \t]*[,、;，/|–—]?(?:\r?\n)?"
)
_REST_OF_LABEL = re.compile(
    r"[^\n:：→–—]{0,60}(?:[:：→–—-]{1,2}[ \t]*)?(?:\r?\n){0,2}(?:[^\n0-9]{2,120}(?:\r?\n){1,2}(?=[ \t]{0,8}[^\w\n]{0,3}(?:[0-9]{1,2}[.)][ ])?[A-Za-z0-9]{4,10}[- ]?[0-9A-Za-z]{0,10}[ \t]*(?:[\r\n]|[ ]{2})))?"
)


def _backup_codes(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the codes behind their name, on its line or on the lines below, each in a list or not."""
    spans: list[MatchSpan] = []
    place = match.end()
    first = _CODE.match(match.string, place)
    if first is None or not _DIGITS.search(first[1]):
        rest = _REST_OF_LABEL.match(match.string, place)
        place = place if rest is None else rest.end()
    while len(spans) < MOST_CODES and (code := _CODE.match(match.string, place)):
        if not _DIGITS.search(code[1]) or is_stand_in(code[1]):
            break
        spans.append(code.span(1))
        place = code.end()
    return spans


_ANSWER = re.compile(
    r"(?:(?:\b(?:A|Answer|Antwort|Réponse|Respuesta|Resposta|Risposta|Ответ)|答案|答え|回答|답변?|答)(?:[ \t]?[:：=填]|[】\]」])[ \t]{0,4}[\"'“「]?|？[ ]?|[A-Za-z][^\n:：]{2,40}[ ](?:->|→|=>)[ ]|(?i:first|favou?rite|mother|father|maiden|childhood|best)[^\n:：,]{2,28}[:：=][ ]|(?i:maiden name|first pet|first school|first street|first car|birthplace)[ ](?=[A-Z]))"
    r"([^\s,;，。；\"”」](?:[^\n,;，。；\"”」 ]|[ ](?![ ])){0,40}?)(?=[\"”」]?(?:[ \t]*(?:\r?\n|\Z)|[ ]{2}|[,;，。；]))"
)


def _answers(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the answers to the questions by which a bank or a site knows somebody."""
    return tuple(_short_answers(match))


def _short_answers(match: "re.Match[str]") -> Iterator[MatchSpan]:
    end = min(len(match.string), match.end() + LONGEST_QUESTIONS)
    for answer in _ANSWER.finditer(match.string, match.end(), end):
        if len(answer[1].split()) <= 4 and not is_stand_in(answer[1]):
            yield answer.span(1)


_CARD = r"(?<![0-9])([3-6][0-9]{3}(?:[ -]?[0-9]{4}){2,3}(?:[ -]?[0-9]{1,4})?)(?![0-9])"


def is_card_number(value: str) -> bool:
    """Return whether the last digit of a card's number is the right one."""
    digits = [int(char) for char in value if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(digits[::-2]) + sum(doubled)) % 10 == 0


def _card(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_card_number(match[1]) else NOTHING


def _any_of(names: Sequence[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_BACKUP_NAMES = (
    "backup code", "backup-code", "backupcode", "recovery code", "recovery-code", "scratch code", "emergency code",
    "wiederherstellungscode", "notfallcode", "ersatzcode", "codes de secours", "code de secours", "codes de récupération",
    "code de récupération", "códigos de recuperación", "código de recuperación", "códigos de respaldo", "códigos de backup",
    "códigos de recuperação", "codici di backup", "codici di recupero", "tan-liste", "tan list", "liste de codes", "резервные коды", "коды восстановления", "备用验证码",
    "2fa recovery", "2fa backup", "two-factor recovery", "two-factor backup", "rescue code", "codes d'urgence", "códigos de emergencia", "códigos de reserva", "códigos de emergência", "codici di emergenza", "codici di riserva",
    "herstelcode", "back-upcode", "reservecode", "noodcode", "kody zapasowe", "zapasowe kody", "kody odzyskiwania", "reservkod", "запасные коды", "аварийные коды", "备份验证码", "备份登录码", "备用登录码", "备用登陆码",
    "应急验证码", "应急码", "应急代码", "救援码", "恢复验证码", "一次性备份码", "備份驗證碼", "備用驗證碼", "救援碼", "恢复代码", "备用码", "备份码", "恢复码", "備用碼", "恢復碼", "バックアップコード", "バックアップ用コード", "リカバリーコード", "リカバリコード", "予備コード", "緊急コード", "回復コード", "복구 코드", "복구코드", "백업 코드", "백업코드", "예비 코드",
)  # fmt: skip
_QUESTION_NAMES = (
    "memorable answer", "找回密码的", "security question", "security answer", "sicherheitsantwort", "réponse secrète", "respuesta secreta", "risposta segreta", "resposta secreta", "secret question", "memorable word", "sicherheitsfrage", "question secrète",
    "question de sécurité", "questions de sécurité", "pregunta de seguridad", "preguntas de seguridad", "pregunta secreta",
    "pergunta de segurança", "domanda di sicurezza", "секретный вопрос", "контрольный вопрос", "密保", "安全问题", "秘密の質問",
    "비밀 질문", "본인 확인 질문", "入群验证", "进群验证", "加群验证", "验证问题", "security questions",
)  # fmt: skip
_CARD_NAMES = (
    "card number", "card no", "kartennummer", "numéro de carte", "número de tarjeta", "número do cartão", "numero di carta",
    "номер карты", "卡号", "卡號", "カード番号", "카드번호", "카드 번호", "visa", "mastercard", "amex",
)  # fmt: skip

_CODE_NEAR = re.compile(
    r"\b(?:pin|code|password|passcode|combination|lock|door|alarm|card|senha|c[óo]digo|clave|contraseña|mot de passe|kennwort|passwort|geheimzahl|codice|kod)|код|пин|暗証|証明|番号|密[码碼]|口令|验证|비밀|번호",
    re.IGNORECASE,
)
_COUNTS_OF_DIGITS = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8}


def _counted_digits(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a number whose count of digits was given just before: 4桁:2719, `6 dígitos 730264`."""
    count = match["count"]
    first = max(0, match.start() - LONGEST_THING)
    if not _CODE_NEAR.search(match.string, first, match.start("number")) or _COUNTED.match(
        match.string, match.end()
    ):
        return NOTHING
    expected = int(count) if count.isdigit() else _COUNTS_OF_DIGITS[count]
    return (match.span("number"),) if len(match["number"]) == expected else NOTHING


def _word_for_company(match: "re.Match[str]") -> Sequence[MatchSpan]:
    first = max(0, match.start() - LONGEST_THING)
    is_plain = match[0].lower().startswith("the word")
    if is_plain and not _ASKED_FOR.search(match.string, first, match.start()):
        return NOTHING
    return (match.span(1),)


def _asked_code(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the number with which somebody who was asked for a code answers: `Me: 583 204`."""
    first = match.string.rfind("\n", max(0, match.start() - NEAR_CODE), match.start()) + 1
    asks = _ASKS_FOR_CODE.search(
        match.string, max(first, match.start() - NEAR_CODE), match.start("row")
    )
    return (match.span("number"),) if asks else NOTHING


def _told_number(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the number that ends a short clause about a password: 暗証番号は誕生日の0925です."""
    is_other = _YEAR.match(match[1]) or _COUNTED.match(match.string, match.end(1))
    return NOTHING if is_other else (match.span(1),)


def _quoted_digits(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),)


_WORDS_ASKED_FOR = (
    "the word:",
    "code word:",
    "safe word:",
    "password word:",
    "duress word:",
    "codeword:",
    "safeword:",
    "the word is ",
    "code word is ",
    "safe word is ",
    "codeword is ",
    "safe word for ",
    "code word for ",
    "codeword for ",
    "safeword for ",
)
_ASKED_FOR = re.compile(
    r"\b(?:ask|asks|asked|asking|say|quote|give|bank|company|police|operator|alarm|phone|ring|call)\b",
    re.IGNORECASE,
)
_ASKS_FOR_CODE = re.compile(
    r"[?？]|\b(?:please|pls|can|could|read|tell|give|send|enter|confirm|what|need|bitte|nenne|quel|donne|dime|cuál|dimmi|qual|какой|скажи)\b|多少|发|请|請|提供|收到|告诉|報|报|教えて|알려",
    re.IGNORECASE,
)
_DIGIT_WORDS = (
    "桁",
    "位\n",
    "位\r",
    "位数字",
    "位數字",
    "位密",
    "位数",
    "位：",
    "位:",
    "자리",
    "-digit",
    " digits",
    " digit",
    "-stellig",
    " stellig",
    " stellen",
    " chiffres",
    " dígitos",
    " cifras",
    " cifre",
    " cijfers",
    " цифр",
)
RULES = (
    RedactionRule(
        "labelled_pin",
        ("密码", "密碼", "口令"),
        r"(?:密[码碼]|口令)(?:就?是|[:：])?[ ]?([零〇一二三四五六七八九幺两]{4,8}|(?:井号|星号|米字)?[0-9]{3,8}(?:井号|星号|＃|井)|(?:井号|星号)[0-9]{3,8})(?=[\s，。；！（(、]|\Z)",
        _quoted_digits,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        ("暗証番号は", "パスワードは", "비밀번호는", "비번은", "密码是", "密码还是", "密碼是"),
        r"(?u:暗証番号は|パスワードは|비밀번호는|비번은|密[码碼](?:是|还是))[^\x00-\x7f，。、；“「『]{1,8}[ ]?([0-9]{4,8})(?=です|だ|예요|이에요|입니다|[\s，。、；！]|\Z)",
        _told_number,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "security_answer",
        _WORDS_ASKED_FOR,
        r"(?i:the|code|safe|duress|password)[ ]?word(?i: for(?: the| our| my)?(?: [a-z]{2,12}){1,3}?)?(?::| is) ?(?=[A-Z])([A-Z][A-Za-z'’-]{2,24})(?=[.;,]?[ \t]*(?:[\r\n]|\Z))",
        _word_for_company,
    ),
    RedactionRule(
        "labelled_pin",
        tuple(
            f"{count}{word}"
            for count in "45678四五六八"
            for word in _DIGIT_WORDS
            if count.isdigit() or word > "\u2e80"
        ),
        r"(?P<count>[4-8四五六八])(?i:桁|位(?:数字|數字|数)?|자리|[- ](?:digits?|stellig(?:e[rn]?)?|stellen|chiffres|d[íi]gitos|cifras|cifre|cijfers|цифр))(?u:の|的)?(?:[ ]?(?u:pin|code|number|password|暗証番号|密码|数字|код|código|clave|senha|codice|contraseña))?"
        r"(?:[ ]?[)）])?(?:[ ]?[:：=–—-]|[ ]?(?:は|是|为|is|ist|est|es|è|é)(?=[ :0-9]))?(?:[ ]{0,2}|[ \t]{0,4}\r?\n[ \t>*-]{0,8}(?=[0-9]{4,8}[ \t]*(?:[\r\n]|\Z)))[\"“「*`]{0,2}(?P<number>[0-9]{4,8})(?![0-9A-Za-z])",
        _counted_digits,
        bounded=False,
    ),
    RedactionRule(
        "labelled_pin",
        (
            "-time code",
            "time passcode",
            "verification code",
            "security code",
            "code we ",
            "code i ",
            "code you ",
            "code from ",
            "sms code",
            " digits",
            "digit code",
            "2fa code",
            "login code",
            "验证码",
            "驗證碼",
            "认证码",
            "動態碼",
            "动态码",
            "인증번호",
            "認証コード",
            "確認コード",
            "bestätigungscode",
            "sms-code",
            "code reçu",
            "code sms",
            "código de verificación",
            "código que",
            "codice di verifica",
            "código de verificação",
            "код из смс",
            "код подтверждения",
        ),
        r"(?u:[^\n]{2,100})\r?\n(?P<row>[ \t>]{0,4})(?u:[^\n:：>0-9]{0,32}[:：>])?[ \t]{0,2}(?iu:(?:sure|ok|okay|yes|yep|ja|oui|sí|here|it['’]?s|it is|it says|this is|the code is|code|das ist|c['’]est|es|è|是|好的?|这是),?[ ]?){0,3}(?P<number>[0-9]{2,4}(?:[ -]?[0-9]{2,4}){1,3})(?=[ \t.,!。]{0,4}(?:[\r\n]|\Z))",
        _asked_code,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "labelled_pin",
        ("番号", "番號", "コード", "密码", "密碼", "번호"),
        r"(?:番[号號]|コード|密[码碼]|번호)[^\n0-9]{1,6}((?:[「『“‘][0-9][」』”’][、→, ]{0,2}){3,10})",
        _quoted_digits,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        ("码", "碼", "卡密"),
        r"(?:[码碼]|卡密)(?:[我已]?[发發给給][给給]?[你您]了?|如下|在这)?(?:是|为|為|[:：])?[ ]?([0-9]{1,4}(?:-[0-9]{1,5}){2,3}|[0-9]{4,8}[#*]?|(?=[a-z]{0,7}[0-9])(?=[0-9]{0,7}[a-z])[a-z0-9]{4,8}(?=[\s,，。；、)）」』】]|\Z))(?![0-9A-Za-z.:/%_-])",
        _han_code,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        PIN_NAMES,
        rf"(?P<name>(?iu:{_any_of(PIN_NAMES)}))(?:[12](?=[:： ])|[- ](?i:code|number|nummer)|[码碼])?(?:[ ]?[(（][^()（）\n0-9]{{1,24}}[)）])?[】」』)\]\"'*`]{{0,3}}(?P<words>{_WORDS})"
        rf"(?:{_JOINT}|[ ]{{0,2}})[\"“「『]?{_NUMBER}",
        _pin,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        _CODE_NAMES,
        rf"(?iu:{_any_of(_CODE_NAMES)})[】」』)\]\"'*`]{{0,3}}(?P<words>{_WORDS})(?:{_JOINT}|[ ]{{1,2}})[\"“「『]?{_NUMBER}",
        _code,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        ("codes", "códigos", "codici", "коды"),
        r"(?iu:codes|códigos|codici|коды)(?!\w)",
        _listed_codes,
    ),
    RedactionRule(
        "labelled_pin",
        _OTHER_CODE_NAMES,
        rf"(?iu:{_any_of(_OTHER_CODE_NAMES)})(?P<words>{_WORDS})(?:{_JOINT}|,?[ ]){_NUMBER}",
        _other_code,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        ("code from ", "pin from ", "combination from "),
        r"(?i)(?:code|pin|combination) from ([0-9]{4,8}) to ([0-9]{4,8})(?![0-9])",
        _new_code,
    ),
    RedactionRule(
        "labelled_pin",
        (
            "保险柜",
            "保险箱",
            "保險箱",
            "密码：",
            "密码:",
            "金庫",
            "combination",
            "ダイヤル",
            "郵便受け",
            "turns right",
            "turns left",
            "turn right",
            "turn left",
            "safe:",
            "safe is",
            "safe opens",
            "safe (",
            "tresor",
        ),
        r"(?i)保险[柜箱]|保險箱|密码[:：]|金庫|ダイヤル|郵便受け|turns? (?:right|left)|combination|safe(?=:| is| opens| \()|tresor",
        _dial,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_pin",
        (
            " is your ",
            " is the ",
            " ist ihr ",
            " ist dein ",
            " est votre ",
            " es tu ",
            " es su ",
            " to verify",
            " to log in",
            " to sign in",
            " to confirm your",
        ),
        r"(?i) (?:is your|ist ihr|ist dein|est votre|es tu|es su) [^\n.]{0,40}?(?:code|pin|passcode|otp|código|verifi)| to (?:verify|log in|sign in|confirm your)\b| is the (?:[a-z-]{2,12} )?(?:key|code|pin|passcode|password|combination)\b",
        _number_before,
        bounded=False,
    ),
    RedactionRule(
        "labelled_pin",
        (
            "pin)",
            "pin）",
            "code)",
            "code）",
            "password)",
            "passcode)",
            "combination)",
            "暗証番号）",
            "密码）",
            "密码)",
            "비밀번호)",
            "код)",
            "пин)",
        ),
        r"(?iu:pin|code|password|passcode|combination|暗証番号|密码|비밀번호|код|пин)[)）]",
        _before_brackets,
        bounded=False,
    ),
    RedactionRule(
        "recovery_code",
        _BACKUP_NAMES,
        rf"(?iu:{_any_of(_BACKUP_NAMES)})(?:[sn]|es)?",
        _backup_codes,
        bounded=False,
    ),
    RedactionRule(
        "security_answer",
        _QUESTION_NAMES,
        rf"(?iu:{_any_of(_QUESTION_NAMES)})",
        _answers,
        bounded=False,
    ),
    RedactionRule(
        "bank_card_number",
        _CARD_NAMES,
        rf"(?iu:{_any_of(_CARD_NAMES)})[^\n0-9]{{0,24}}{_CARD}",
        _card,
        bounded=False,
    ),
)


NEAR_LOCK = 80
LAST_MINUTE = 2400
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
    r"open|unlock|disarm|öffn|auf(?:geht|machen)|geht auf|offen|entsperr|ouvr|déverrouill|désarm|abr|desbloq|apr[eioa]|sblocc|otw|öppna|откры|сним|отключ|выключ|desact|désact|désarm|coupe|apaga|spegn|disatt|abgeschalt|ausgeschalt|scharf|deaktiv|\barm(?:s|ed|ing|er|ez|ar|are|a)?\b|\b(?:set|on|ein|an) (?:with|mit)\b|activ|布防|off\b|开|開|解除|撤防|열|끄",
    re.IGNORECASE,
)
_CODE_WORD = re.compile("code|код|コード|kod|코드|digi|keypad|[:：]", re.IGNORECASE)
_NAMES_CODE = re.compile(r"\b(?:code|codice|código|kod|код|pin)\b", re.IGNORECASE)
_VERBS_OF_CODES = frozenset(("", "is", "ist", "est", "es", "è", "é", "是", "は", "-", "–", "/"))
_LOCK_AND_CODE = re.compile(
    r"(?iu:(?:alarm\w{0,8}|panic|duress|tor|tür|haustür|keller|gate|door|garage|safe|lockbox|keypad|portail|porte|cave|coffre|puerta|portal|garaje|caja|porta|cancello|portão|cofre|poort|deur|дверь|ворота|гараж|подъезд|门|大门|车库|门禁|保险箱)"
    r"[ ]?(?:is|ist|est|es|è|é|是|は|:|：|=|–|-)?[ ]{0,2})([A-Z]?[0-9]{4,6}[A-Z#*]?)(?![0-9A-Za-z:]|\.\w)"
)
_NAMED_CODE = re.compile(
    r"[^.!?。！？\n]{0,60}[,;，；–—(（-][ ]?(?:the |der |le |il |el |o )?(?:code|pin|combination|kode|código|codice|kod|код|zahlencode|密[码碼]|コード)(?: is| ist| est| es| è)?[ ]?[:：]?[ ]?",
    re.IGNORECASE,
)
"""What stands between a lock and its code, if the sentence names the code: `, code 2086`."""
_SPACED_DIGITS = re.compile(r"[0-9](?:[ ·-][0-9]){3,7}\Z")
_DASHED = frozenset(("– ", "— ", "- ", "= ", ": ", "…"))
_SINGLE_DIGITS = re.compile(r"[0-9](?:-[0-9]){3,7}\Z")
_ENTERED_AFTER = re.compile(
    r"[\"'”’」』]?,?[ ]?(?:\+[ ])?(?:eingeben|eintippen|tippen|drücken|intoetsen|を?入力|って入れ|を?押|누르|누르고|입력|(?:and |then |und |dann |puis |y |e |et |и |seguid[oa] de |suivi de |followed by |gefolgt von )?(?:the |l['’]|la |le |o )?"
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
    if name in _ONLY_LOCKS and _NAMED_CODE.fullmatch(gap) and _ends_order(candidate):
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
    is_number = all(map(str.isdigit, codes))
    # Of two numbers that both are times of day, neither need be a code.
    is_time = is_number and any(int(code) < LAST_MINUTE for code in codes)
    if is_time and _NAMES_CODE.search(passage.text, passage.line_start, passage.start):
        is_time = all(int(code) < LAST_MINUTE for code in codes)
    is_listed = _ENDS_SENTENCE.match(passage.text, candidate.end) is not None
    return len(codes) > 1 and (not is_number or (is_listed and not is_time))


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
    bare = candidate.before.rstrip(BEFORE_VALUE)
    is_lock = is_lock or (
        bare.endswith((":", "：", "→")) and _LETTER_AND_NUMBER.match(value) is not None
    )
    return is_lock and is_sure and candidate.in_sentence


def _ends_order(candidate: MentionedValue) -> bool:
    return _ENDS_ORDER.match(candidate.passage.text, candidate.end) is not None
