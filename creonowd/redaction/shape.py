"""What a short string looks like: words, a stand-in, code, a reference, or a secret."""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise

LONGEST_LOOK = 96
CACHED_VALUES = 4096
LIKENESS_OF_WORDS = 0.5

_ENOUGH_IF_SHORT, _ENOUGH_IF_LONG = 0.55, 0.6
_LONG = 20

_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_LETTER = re.compile("[A-Za-z]")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_DIGITS_INSIDE = re.compile(r"[A-Za-z][0-9]+[A-Za-z]|[0-9][A-Za-z]+[0-9]")
_NAMES_A_SECRET = re.compile(r"passw|pwd|secret|token|key|credential|auth", re.IGNORECASE)
_VARIABLE = re.compile(
    r"(?i:passw|pwd|secret|token|credential)|(?:\A|[_.-])(?i:auth|key|pass)(?:\Z|[_.A-Z-])|[a-z](?:Key|Pass|Auth)"
)
_MARKS_A_PLACE = re.compile(
    r"x(?:x{7}|(?<![a-z0-9]x)xx+(?![a-z0-9]))|\*\*\*|••|\.\.\.|…|\$[{(]|\{\{|your(?<![a-z]your)(?![a-z]{2})"
    r"|placeholder|change[-_]?me|replace[-_]?(?:me|this|with)|insert[-_]|-here\Z|_here\Z"
    r"|dummy(?<![a-z]dummy)(?![a-z])"
)
_IS_A_PLACE = re.compile(r"[<\[{]|%\w+%\Z|\$[a-z_]+\Z|[x*•●○■□.·…?#_=\-\s]*\Z")
_SIGN, _SIGN_BEFORE_WORD = re.compile("[!@#$%^&*+]"), re.compile(r"[!@#$%^&*+~](?=\w)")
_NO_PASSWORD = re.compile(
    r"[()\[\]{}<>=;|/\\:,'’]|\*\*|\.[A-Za-z]{1,5}\Z|\A[A-Z]+-?[0-9.]+(?:-[0-9]+[A-Z]?)?\Z|\A[0-9.,]+-?[A-Za-z]{1,12}\Z|\A[vV]?[0-9]+\.|[0-9]x[0-9]|[-_]v[0-9]|\A[A-Z]*-?[0-9]+(?:-[0-9]+)+[A-Za-z]?\Z|[-_][25](?:\.4)?G\Z"
)
_SIGN_INSIDE = re.compile(r"[A-Za-z0-9][!@#$%^&*?~][A-Za-z0-9]")
_SIGN_OF_TEXTS = re.compile(
    r"\.[a-z]{2,5}#|\A[a-z][\w.-]*@[a-z][a-z0-9-]*\Z|@[0-9]{1,3}\.[0-9]|%[0-9A-Fa-f]{2}|@[0-9]{1,2}\Z|\A[A-Z]{1,3}\$[0-9]|\A[a-z]+#[0-9]+\Z|\A[A-Z]#[0-9]"
)
_JOINED = re.compile(
    r"[A-Za-z]{3,}(?:[-_.][A-Za-z]{2,})*[-_.]?[0-9]{1,4}\Z|[A-Za-z]{3,}[-_.][0-9]{1,4}[-_.][A-Za-z]{3,}\Z"
)
_WORDS_AND_SIGNS = re.compile(r"[A-Za-z]{2,}(?:[!&#?*$^~+%][A-Za-z]{2,}){1,4}[!?]?\Z")
_CASES_INSIDE = re.compile("[a-z][A-Z].*[a-z]|[A-Z]{2}[a-z]+[A-Z]")
_HASH = re.compile(r"[0-9a-f]{7,}\Z")
_FINGERPRINT = re.compile(r"[0-9A-F]{40}\Z|(?:[0-9A-F]{4} ){4,9}[0-9A-F]{4}\Z")
_NUMBERED = re.compile(
    r"[A-Za-z][a-z]*[-. ][0-9]{1,2}[a-z]?\Z|[a-z]+_[0-9]{1,2}[a-z]?\Z|[A-Z]{1,3}[0-9]{2,4}\Z"
)
_SHORTCUT = re.compile(
    r"(?:ctrl|control|strg|alt|altgr|option|opt|shift|cmd|command|win|meta|fn|super|maj|umschalt)[+-]",
    re.IGNORECASE,
)
_SLASHES = re.compile(r"[A-Za-z][0-9][A-Za-z]+(?:/[A-Za-z0-9]{2,12}){1,4}\Z")
_KEY = re.compile(
    r"(?:0x)?[0-9a-fA-F]{64}\Z|(?=[A-Z-]*[0-9])(?=[0-9-]*[A-Z])[A-Z0-9]{4,5}(?:-[A-Z0-9]{4,5}){3,5}\Z|[0-9]{6}(?:-[0-9]{6}){7}\Z|[A-Z0-9]{2}(?:-[A-Z0-9]{5,6}){5,7}\Z|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[a-z]{2})?\Z"
)
_RUN = re.compile(r"[A-Za-z0-9+/]{16,}={0,2}\Z|[A-Za-z0-9_-]*[A-Za-z0-9]{12,}[A-Za-z0-9_-]*\Z")
_NUMBERED_WORD = re.compile(r"[A-Za-z]{3,24}_[0-9]{3,8}\Z")
_JOINT = re.compile("[-_./:]")
_NO_NAME = re.compile(r"[A-Z]_[A-Z]|[0-9]{6}|\A(?=[A-Za-z]*[0-9])[A-Za-z0-9]+\Z|\A[a-z]{24,}\Z")
_CODE = re.compile(
    r"([A-Za-z_$][\w$]*+)((?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*+)*+)([(\[].*)?\Z", re.DOTALL
)
_DOTTED_NAMES = re.compile(
    r"(?:(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+(?![a-z]))++\.)++(?:[A-Z]?[a-z]{2,}+|[A-Z]{2,}+(?![a-z]))++\Z"
)
_INDEXED = re.compile(
    r"[A-Za-z_]\w*\[[0-9]{1,2}\]\Z|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+(?:\[(?:-?[0-9]{1,3}|[\"'][\w.-]+[\"'])\]|\(\))\Z"
)
_TYPE = re.compile(r"(?:Big)?U?[Ii]nt[0-9]{1,3}(?:_t|(?:Clamped)?Array)?\Z|Float[0-9]{2}Array\Z")
_CALL = re.compile(r"[(\[](?:[\w.,:=*\"'-]|[(\[]|[)\]](?!\w))*(?<=[()\]])\Z")
_CMDLET = re.compile(
    r"(?:Add|Convert|ConvertFrom|ConvertTo|Export|Get|Import|Invoke|Join|New|Out|Read|Select|Set|Start|Test|Unprotect|Protect|Write)-[A-Z][A-Za-z]+\Z"
)
_NAME = re.compile(r"\w{3,}")
_NUMBER_OR_FLAG = re.compile(r"0[xX][0-9a-fA-F]{1,8}\Z|#[0-9a-fA-F]{3,8}\Z|--[a-z]")
_SNAKE_CALL = re.compile(r"[a-z]\w*_\w*\(")
_HUMPS = re.compile(r"(?:[A-Z][a-z]{3,}+){2,}+\Z")
_TERM = re.compile(
    r"x509|pbkdf2|argon2|ed448|(?:x|ed)25519|sha(?:1|2|3|224|256|384|512)|nistp?(?:256|384|521)|md5|base(?:32|64)|utf(?:8|16)|oauth[12]"
    r"|(?:big)?u?int(?:8|16|32|64|128)|float(?:16|32|64)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.+-]+@[\w-]+(?:\.[\w-]+)+\Z|www\.", re.IGNORECASE)
_MAIL_OR_URL = re.compile(
    r"[a-z][a-z0-9+.-]*://|[\w.+-]+@[\w-]+(?:\.[A-Za-z-]{2,})+\Z", re.IGNORECASE
)
_PLACE = re.compile(r"(?:~|\.{1,2})?[\\/]|[A-Za-z]:[\\/]|[\w.-]+/[\w./-]+\.\w{1,5}\Z")


def word_set(text: str) -> frozenset[str]:
    """Make a set of the words of a string."""
    return frozenset(text.split())


COMMON_PAIRS = word_set(
    "he th er in an re ha ou en on at nd ed to is it as ng hi te ve be ar ne of or se le es st nt "
    "no el me li ti ll ea co sh al wa ot ho ur et de wi ce ly ad wh ch fo om si yo io ri di ee rs "
    "ma ro ut ow ss so we ul il im pe us ld nc ec ai ab ta su gh ie mi ir ns ic la un ev ca em av "
    "sa ra pr am lo id ry oo mo ge rt ct ay tt ey fe ac os bu ei da ke po uc ol bl wo pa ht do pl "
    "iv ig ug rd vi ni ag fr my fi tr nn fa ap ty tu ex ga if mu ia mp pp sp bo gr qu ep op od ov "
    "au up ck zh uo ao xi"
)

TECHNICAL_TERMS = word_set(
    "oauth oauth1 oauth2 sha1 sha224 sha256 sha384 sha512 md5sum base32 base64 aes128 aes192 aes256 "
    "hs256 hs384 hs512 rs256 rs384 rs512 es256 es384 es512 ps256 rsa1024 rsa3072 rsa2048 rsa4096 ed25519 "
    "x25519 secp256k1 argon2id pbkdf2 bcrypt aes128cbc aes128gcm aes256cbc aes256gcm sm4cbc utf8 utf16 ascii 1password lastpass bitwarden keepass"
)

FUNCTION_WORDS = word_set(
    "a an the this that these those and or but if of to in on at by for from with without as is are was "
    "were be been has have had do does not no never nobody none i you he she it we they my your his her "
    "its our their what which who where when why how there here see ask must should can could will would "
    "please enter choose pick use used set get try send sent keep write read look call contact about "
    "only just same any some all each every than then too very so forgot forgotten "
)
"""Words of sentences; where one stands, a password does not."""

SENTENCE_WORDS = FUNCTION_WORDS | word_set(
    "ist sind war wird werden wurde wurden nicht kein keine steht stehen liegt liegen hängt bitte siehe noch wir ihr sie haben habe hat "
    "est sont était sera seront pas voir nous vous ils elle notre votre ont "
    "está están será fue era son ver nuestro nuestra tiene "
    "sono era sarà vedi nostro nostra abbiamo são foi será veja nosso nossa "
    "staat staan ligt zijn wordt werd niet zie wij jij onze hebben jest są był jak tak nie "
)
"""The same with words of other languages that make a sentence of a phrase."""

STORY_WORDS = word_set(
    "chapter chapters scene scenes novel plot motif kapitel szene szenen roman motiv handlung figur heldin chapitre scène intrigue capítulo escena novela trama capitolo romanzo racconto"
)
"""Words of what an author notes about a story, and of no passphrase."""

COMMON_VALUES = word_set(
    "passwort kennwort contraseña senha palavra-passe wachtwoord lösenord adgangskode passord salasana hasło heslo jelszó şifre parolă пароль "
    "string str text varchar char bytes buffer boolean bool int integer float number any object array list "
    "dict map function class void null none nil undefined nan true false yes no on off ok na n/a tbd todo "
    "fixme required optional hidden visible invalid valid missing incorrect correct wrong right expired "
    "unchanged changed disabled enabled protected masked redacted removed empty blank default unset unknown "
    "auto automatic random generated encrypted encoded decoded hash hashed salted plain plaintext clear "
    "value values input output data args kwargs params props self this user username login account field "
    "column key keys secret secrets token tokens password passwords passwd pwd pass passphrase passcode pin "
    "mandatory strict strong weak medium case sensitive below above reset forgot confirm repeat show hide "
    "example sample dummy placeholder prompt stdin env config settings file vault bearer basic access "
    "refresh digest oauth readonly secure private public minlength maxlength min max length type name label "
    "title description error message warning info success failed denied accepted rejected same different "
    "option options select submit cancel save edit delete update create identifier keyword comment newline "
    "eof classvar secretstr passwordfield charfield textfield stringfield undefined1 email e-mail phone code "
    "later soon driving nothing something anything everything maybe sure thanks sorry hello"
)
"""What stands behind a label in code, forms and tables without being a secret."""

_COMMON_IN_PHRASES = word_set(
    "correct clear plain strong right map string array list object field column public private random phone key pin"
    " table title label soon driving thanks hello sorry nothing something everything anything code message case true"
)
"""Common values that a phrase of several words may have too."""


_TRANSLATED = re.compile(
    r"(?:passwort|kennwort|mot de passe|contraseña|senha|palavra-passe|wachtwoord|lösenord|adgangskode|passord|salasana|hasło|heslo|jelszó|şifre|parolă|пароль)"
    r"(?:[ ](?:vergessen|oublié|olvidada|esquecida|vergeten|ändern|bestätigen|wiederholen|anzeigen|zurücksetzen|confirmer|забыт))?[ ]?[?:]?\Z"
    r"|(?=.{0,40}(?:password|passwort|kennwort|mot de passe|contraseña|senha|wachtwoord|пароль))[^\W\d_¿]?[^\d_?]{4,60}\?\Z",
    re.IGNORECASE,
)
"""The word for a password with what buttons say of it, or a question about one."""
BLANK_VALUES = word_set(
    "unset unchanged hidden none nothing unknown undisclosed shown masked omitted withheld forgotten same usual ditto "
    "erforderlich notwendig freiwillig pflichtfeld requis requise obligatoire facultatif facultative requerido requerida obligatorio obligatoria opcional "
    "richiesto richiesta obbligatorio obbligatoria facoltativo obrigatório obrigatória verplicht optioneel wymagane wymagany opcjonalne krävs påkrævet vaaditaan требуется обязательно обязателен "
    "keins keine keiner keines kein unverändert unveraendert gleich gleiches verborgen versteckt geheim leer unbekannt folgt entfällt entfaellt "
    "ausgeblendet geändert geaendert vergessen wie siehe steht liegt wird ist nicht nur beim auf per bei "
    "falsch richtig abgelaufen ungültig gesperrt zurückgesetzt incorrecte incorrecta expiré expirée caducada errata scaduta неверный неверен "
    "fourni fournie fournis collé collée noté notée écrit écrite scotché scotchée rangé rangée affiché affichée envoyé envoyée transmis communiqué geschickt verschickt enviada inviata verzonden klebt hängt notiert pegada apuntada anotada escrita guardada attaccata scritta incollata segnata colada bloqueado bloqueada bloccata bloccato bloqué bloquée activé désactivé "
    "aucun aucune inchangé inchange inchangée masqué masque masquée caché cachée identique inconnu voir idem néant vide oublié secret confidentiel "
    "ninguno ninguna oculta oculto igual mismo misma vacía vacío desconocida olvidada cambiada secreta ver idéntica sin "
    "nenhuma nenhum oculto vazia mesma mesmo veja sem alterada inalterada esquecida "
    "nessuna nessuno nascosta invariata uguale stessa vuota vedi senza dimenticata "
    "geen geheim verborgen hetzelfde zelfde zie ongewijzigd onbekend leeg idem vergeten niet "
    "brak ukryte ukryty bez zmian patrz żadne zadne takie samo nieznane puste "
    "ingen inget dold dolt oförändrat samma skjult uændret ukendt ingenting se "
    "нет скрыт тот же прежний см не без неизвестен смотри пусто"
)
"""Words that say of a secret that it is not there, not shown or written elsewhere."""


_BLANK_HAN = re.compile(
    r"[后後不都没可自待任随必见看问找向请請无無未没沒略忘]|不变|不详|不明|同[上前]|相同|如[下上]|另行|私信|评论|群|后缀|为空|默认|初始|错误|錯誤|重置|管理|设置|修改|提示|保密|公众号|关注|回复|正确|必填|选填|可选|加密|隐藏|一样|或|和|与|的|了|入力|输入|輸入|입력"
    r"|なし|同じ|参照|未設定|別途|不要|変更|忘|없|동일|참조|문의|공지|변경|분실|아래|위와"
)


_REMARK_HAN = re.compile(
    r"主角|女主|男主|反派|主人公|读者|讀者|作者|伏笔|伏筆|线索|線索|悬念|懸念|象征|贯穿|揭[开開示晓]|[贴貼放写寫存藏记記刻]在|发给|发了|告诉|告訴|知道|必须|至少|要求|改过|[换改]一次|发放|通知|提供|索[要取]|领取|扫码|前台|开会|口头|工号|学号|生日|身份证|手机号|[两三几]次|再[发定说议給给]|每[隔两三半]|一样|相同|同样"
    r"|第[一二三四五六七八九十]+[章节回卷]"
)


_NEIGHBOURS = frozenset((first, second) for first, second in COMMON_PAIRS)


def is_wordlike(letters: str) -> bool:
    """Distinguish words from random letters by how many pairs are common in English or pinyin."""
    low = letters[:LONGEST_LOOK].lower()
    enough = _ENOUGH_IF_LONG if len(low) >= _LONG else _ENOUGH_IF_SHORT
    return len(low) < 4 or _likeness(low) >= enough


def is_gibberish(value: str) -> bool:
    """Return whether a value is lower-case letters in an order that no language has."""
    return len(value) >= 10 and value.isalpha() and value.islower() and _likeness(value) < 0.35


def _likeness(letters: str) -> float:
    """Return the share of pairs of neighbours that are common in English or pinyin."""
    return sum(map(_NEIGHBOURS.__contains__, pairwise(letters))) / (len(letters) - 1)


def is_words(value: str) -> bool:
    """Return whether a value is only words and small numbers, in kebab, snake, camel or dotted case."""
    look = value[:LONGEST_LOOK]
    if _DIGITS_INSIDE.search(look):
        look = _TERM.sub("", look)
        if _DIGITS_INSIDE.search(look):
            return False
    words = _WORD.findall(look)
    letters = "".join(words)
    digits = len(_DIGIT.findall(look))
    shortest_word = 3.2 if len(look) == len(letters) + digits else 2.5
    if len(letters) < shortest_word * len(words) or 2 * digits > len(letters) + 4:
        return False
    return is_wordlike(letters)


def is_stand_in(value: str) -> bool:
    """Return whether a value only marks the place of a secret: a mask, a variable, `your-key-here`."""
    low = value[:LONGEST_LOOK].lower()
    if _MARKS_A_PLACE.search(low):
        return True
    if low.isalnum():
        return not low.strip("x")
    return _IS_A_PLACE.match(low) is not None or low.endswith(">")


def is_passphrase(value: str, fewest: int) -> bool:
    """Return whether words are strung together by hyphens as people do for passwords."""
    return len(re.split("[-_]", value[:LONGEST_LOOK])) >= fewest and not re.search("[./:]", value)


def is_shouted(value: str) -> bool:
    """Return whether words are written as no class or function is: `THIS_IS_SECRET`, `mysecret123456`."""
    return value.isupper() or _NO_NAME.search(value, 0, LONGEST_LOOK) is not None


def is_code(value: str) -> bool:
    """Return whether a value is an expression that leads to a secret instead of being one."""
    if _CMDLET.match(value):
        return True
    expression = _CODE.match(value)
    if expression is None or not (expression[2] or expression[3]):
        return False
    if _DOTTED_NAMES.match(value) or _SNAKE_CALL.match(value) or _INDEXED.match(value):
        return True
    path, call = expression[1] + expression[2], expression[3] or ""
    return any(map(is_words, _NAME.findall(path + call if _CALL.match(call) else path)))


def is_reference(value: str) -> bool:
    """Return whether a value is a URL, an e-mail address or a path."""
    return _ADDRESS.match(value) is not None or (
        _PLACE.match(value) is not None and is_words(value)
    )


def is_random(value: str, shortest: int) -> bool:
    """Return whether a value looks made by a machine: long, mixed, and no words in it."""
    if len(value) < shortest or is_stand_in(value) or is_reference(value):
        return False
    if is_words(value) or is_code(value) or len(_LETTER.findall(value)) < len(value) / 6:
        return False
    return has_mixture(value) or (value.isalpha() and len(value) >= 2 * shortest)


def has_mixture(value: str) -> bool:
    """Return whether letters stand among digits, or both cases among each other."""
    lower, upper, digit = _kinds(value)
    return (digit and (lower or upper)) or (lower and upper)


def has_all_kinds(value: str) -> bool:
    """Return whether a value has letters of both cases and digits."""
    return all(_kinds(value))


def is_secret(value: str, *, digits: bool = False) -> bool:
    """Return whether a value that stands behind a secret's name may be the secret itself.

    `digits` admits plain numbers, as in passwords.
    """
    if len(value) < 6 or is_stand_in(value) or _is_term(value) or _NUMBER_OR_FLAG.match(value):
        return False
    if value.isdigit():
        return digits and len(value) <= 20
    if value.isalnum():
        return not value.isalpha() or _is_no_word(value)
    return not is_reference(value) and _is_no_word(value) and not is_code(value)


def _is_term(value: str) -> bool:
    plain = value.replace("-", "").replace("_", "").lower()
    return plain in TECHNICAL_TERMS or _TYPE.match(value) is not None


def _is_no_word(value: str) -> bool:
    lower, upper, digit = _kinds(value)
    if digit and (lower or upper):
        return not is_words(value) or not _JOINT.search(value) or _is_no_name(value)
    if digit or _NAMES_A_SECRET.search(value, 0, LONGEST_LOOK):
        return False
    if len(value) >= 8 and _SIGN_BEFORE_WORD.search(value):
        return not is_words(value) or (lower and upper)
    if len(value) < (8 if lower and upper else 16) or _HUMPS.match(value):
        return False
    return not is_words(value)


def _is_no_name(value: str) -> bool:
    """Return whether words with a digit are written as nobody names a thing."""
    return _SIGN.search(value) is not None or is_passphrase(value, 3)


def _kinds(value: str) -> tuple[bool, bool, bool]:
    return (
        _LOWER.search(value, 0, LONGEST_LOOK) is not None,
        _UPPER.search(value, 0, LONGEST_LOOK) is not None,
        _DIGIT.search(value, 0, LONGEST_LOOK) is not None,
    )


def is_common_value(value: str) -> bool:
    """Return whether a value is a word that forms and code have in the place of a password.

    In a file of translations it is the word for one, or a question: `Passwort vergessen?`.
    """
    if " " in value and _TRANSLATED.match(value):
        return True
    return value.partition("(")[0].strip("()[]{}<>.,;:!?\"'`*").lower() in COMMON_VALUES or (
        value[:1] == "(" and value.strip("()[]{}<>.,;:!?\"'`*").lower() in COMMON_VALUES
    )


def is_common_phrase(words: Sequence[str]) -> bool:
    """Return whether words that stand behind a label are of forms and code, not of a passphrase."""
    common = [word for word in words if is_common_value(word)]
    return len(words) - len(common) < 2 or not _COMMON_IN_PHRASES.issuperset(common)


def is_blank(value: str) -> bool:
    """Return whether a value says that there is none to be seen: `keins`, `wird nicht angezeigt`."""
    words = value.strip("()[]{}<>.,;:!?\"'`*-–—").lower().split()
    return not words or words[0] in BLANK_VALUES


def is_blank_han(value: str) -> bool:
    """Return whether Chinese, Japanese or Korean words say that there is none, or where it is."""
    return _BLANK_HAN.search(value.replace(" ", "")) is not None


def is_remark_han(value: str) -> bool:
    """Return whether Chinese words tell something about a password: where it is kept, whose, in which chapter."""
    return _REMARK_HAN.search(value) is not None


def is_plain_value(value: str, *, code: bool = True) -> bool:
    """Return whether a value may be a password that somebody chose, however short or wordy it is.

    `code`: whether it may also be an expression, which is none.
    """
    if not is_latin(value) or is_stand_in(value) or is_common_value(value) or _is_term(value):
        return False
    if is_blank(value):
        return False
    value = unaccented(value)
    if _NUMBER_OR_FLAG.match(value) or (
        value[0] in "$<{[(%|,;:.=/\\&?!+~" and not has_digit_and_letter(value)
    ):
        return False
    if _MAIL_OR_URL.match(value) or (code and is_reference(value)):
        return False
    return not (code and is_code(value))


def has_digit_and_letter(value: str) -> bool:
    """Return whether letters and digits stand together, and not as in a name such as `step_2`."""
    lower, upper, digit = _kinds(value)
    if not digit or not (lower or upper):
        return False
    return "_" not in value or (lower and upper) or not is_words(value)


def is_unsayable(value: str) -> bool:
    """Return whether a value is nothing that a sentence, a file or a model of something is called.

    `Tweed2024` and `n33dle!` are; `iPhone15`, `RFC2898`, `128bit`, `chapter12.md` and `step_2` are
    not.
    """
    if not 6 <= len(value) <= 40 or not has_digit_and_letter(value) or _NO_PASSWORD.search(value):
        return False
    if is_stand_in(value) or _is_term(value) or is_reference(value) or names_a_secret(value):
        return False
    digits = len(_DIGIT.findall(value))
    return has_sign(value) or digits >= 3 or _DIGITS_INSIDE.search(value) is not None


class Oddity(IntEnum):
    """How little a value looks like anything that a text names."""

    PLAIN = 0
    NUMBERED = 1
    ODD = 2
    UNSAYABLE = 3
    UNMISTAKABLE = 4


@lru_cache(maxsize=CACHED_VALUES)
def oddity(value: str) -> Oddity:
    """Return how odd a value is.

    `kettle_4` is numbered, `Fog-Kettle-41` is odd, nobody says `kettle2024`, and `Kettle&Fog41` can
    only be a password; `iPhone15`, `RFC2898`, `128bit`, `chapter12.md` and `step_2` are plain.
    """
    if is_code_group(value):
        return Oddity.UNMISTAKABLE
    value = unaccented(value)
    if not 5 <= len(value) <= 64 or not _LETTER.search(value) or is_stand_in(value):
        return Oddity.PLAIN
    if _NUMBER_OR_FLAG.match(value) or _SHORTCUT.match(value):
        return Oddity.PLAIN
    if _SLASHES.search(value):
        return Oddity.ODD
    if _NO_PASSWORD.search(value) or _is_term(value) or is_reference(value):
        return Oddity.PLAIN
    has_digit = _DIGIT.search(_TERM.sub("", value)) is not None
    return _oddity_of_mixture(value) if has_digit else _oddity_of_letters(value)


def _oddity_of_mixture(value: str) -> Oddity:
    """Return how odd a value with letters and digits is."""
    if _SIGN_INSIDE.search(value) and not _SIGN_OF_TEXTS.search(value):
        is_long = len(value) >= 8 and len(_LETTER.findall(value)) >= 4
        return Oddity.UNMISTAKABLE if is_long else Oddity.UNSAYABLE
    if names_a_secret(value):
        return Oddity.PLAIN
    if is_unsayable(value) and not is_hash(value) and not is_numbered_word(value):
        return Oddity.UNSAYABLE
    lower, upper, _ = _kinds(value)
    is_mixed = (lower and upper) or len(_DIGIT.findall(value)) >= 2
    if len(value) >= 6 and is_mixed and not _NUMBERED.match(value):
        return Oddity.ODD
    return Oddity.NUMBERED if _JOINED.match(value) else Oddity.PLAIN


def _oddity_of_letters(value: str) -> Oddity:
    """Return how odd a value without digits is: random letters, or words with a sign between them."""
    if names_a_secret(value):
        return Oddity.PLAIN
    if _WORDS_AND_SIGNS.match(value):
        return Oddity.ODD
    is_random_run = value.isalpha() and len(value) >= 8 and _CASES_INSIDE.search(value) is not None
    return Oddity.ODD if is_random_run and not is_wordlike(value) else Oddity.PLAIN


def is_code_group(value: str) -> bool:
    """Return whether a value is written in groups as machines do: `7K2Q-M9XD-44TP`, `jx4r m2kd 7qpt zu3a`."""
    groups = value.split("-" if "-" in value else " ")
    if len(groups) < 3 or not all(4 <= len(group) <= 8 for group in groups[1:]):
        return False
    if not (3 if len(groups) < 4 else 2) <= len(groups[0]) <= 8 or not all(
        map(str.isalnum, groups)
    ):
        return False
    if not value.isascii() or (" " in value and len(groups) < 4) or any(map(_is_term, groups)):
        return False
    if value.islower() and value.replace(" ", "").isalpha():
        return len(groups) == 4 and _likeness(value.replace(" ", "")) < LIKENESS_OF_WORDS
    if _FINGERPRINT.match(value):
        return False
    mixed = sum(not group.isalpha() and not group.isdigit() for group in groups)
    is_shouted_code = value.isupper() and len(_DIGIT.findall(value)) >= 2
    return 2 * mixed >= len(groups) or (mixed > 0 and is_shouted_code)


def is_hash(value: str) -> bool:
    """Return whether a value is nothing but hexadecimal digits, as the names of commits are."""
    return _HASH.match(value) is not None


def is_key_like(value: str) -> bool:
    """Return whether a value is what a machine makes: groups, or a long random string."""
    if _FINGERPRINT.match(value) or value.count("/") > 2:
        return False
    if is_code_group(value) or _KEY.match(value):
        return True
    is_run = _RUN.match(value) is not None and _DIGIT.search(value) is not None
    return is_run and is_random(value, 16) and not _TERM.search(value)


def is_latin(value: str) -> bool:
    """Return whether a value has no character beyond the Latin ones with accents."""
    return value.isascii() or max(value) < "\u0250"


def unaccented(value: str) -> str:
    """Return a value with an `e` for each letter that is not ASCII."""
    return value if value.isascii() else "".join(one if one < "\x80" else "e" for one in value)


def is_numbered_word(value: str) -> bool:
    """Return whether a word ends in a year or a number such as nobody numbers things with: `tsuki_2004`."""
    return _NUMBERED_WORD.match(value) is not None


def has_sign(value: str) -> bool:
    """Return whether a sign stands inside a value, as nobody writes it in a sentence."""
    return re.search(r"[A-Za-z0-9][!@#$%^&*+~?=][A-Za-z0-9]", value) is not None


def names_a_secret(value: str) -> bool:
    """Return whether a value has the name of a secret in it, as variables have."""
    return _VARIABLE.search(value, 0, LONGEST_LOOK) is not None
