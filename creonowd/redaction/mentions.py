"""Secrets in a passage that mentions one: in its sentence, in the answer to it, in the lines around it.

`passwords` reads what stands right behind a label. Here anything may stand between the two, and the
value may come first; in exchange it must look like a secret. How much so depends on the word, on how
near the value stands, and on what stands right before it.

A password of which it is said how it is spelt (`… is three small otters, all lower case`, 全小写, 全拼)
may be plain words: nobody says so of anything that is not to be typed in.
"""

import re
import string
from collections.abc import Callable, Iterator, Mapping, Sequence

from creonowd.redaction.access_codes import NO_NUMBER, opens_lock
from creonowd.redaction.mentioned_values import (
    LONGEST_BLOCK,
    LONGEST_GIVER,
    LONGEST_JOINT,
    ROWS_TO_ANSWER,
    Mention,
    MentionedValue,
    MentionPassage,
    is_answer,
)
from creonowd.redaction.rules import NOTHING, Judge, MatchSpan, RedactionRule
from creonowd.redaction.secret_names import (
    FOREIGN_NAMES,
    HAN_LABELS,
    MENTIONS_IN_QUESTIONS,
    MENTIONS_OF_ACCESS,
    MENTIONS_OF_KEYS,
    MENTIONS_OF_LOCKS,
    MENTIONS_OF_OPENING,
    MENTIONS_OF_PASSWORDS,
    MENTIONS_OF_SERVICES,
)
from creonowd.redaction.shape import (
    BLANK_VALUES,
    COMMON_VALUES,
    FUNCTION_WORDS,
    Oddity,
    has_digit_and_letter,
    has_sign,
    is_code_group,
    is_hash,
    is_key_like,
    is_random,
    is_reference,
    is_stand_in,
    names_a_secret,
    oddity,
    unaccented,
)

LONGEST_GAP = 160
"""How far behind the word a value may stand on its line."""
LONGEST_BEFORE = 80
"""How far before the word a value may stand."""
SHORTEST_VALUE = 4
LONGEST_OWNER = 12
LONGEST_SIGNS = 48
LONGEST_ROW = 40
MOST_ROWS = 8

_LETTERS = "\u00c0-\u024f\u0400-\u04ff"
_VALUE = re.compile(
    rf"(?<![!-~{_LETTERS}])(?:[A-Za-z0-9]{{4}}(?:[ ][A-Za-z0-9]{{4}}){{3,15}}(?![!-~])"
    rf"|[0-9](?:[ ·][0-9]){{2,7}}(?![!-~])"
    rf"|(?=[!-~{_LETTERS}]{{4}})[!-/:-~{_LETTERS}]{{0,40}}+[0-9][!-~{_LETTERS}]{{0,80}}+"
    r"|[A-Za-z]{3,24}(?:_[A-Za-z]{3,24}){1,3}(?![\w@/(\[{.=-])"
    r"|(?=[A-Za-z]{2,32}[!&#?*$^~+%][A-Za-z]|[A-Za-z]{0,8}[a-z][A-Z]|[A-Z]{2,8}[a-z])[A-Za-z!&#?*$^~+%]{6,40}+(?![A-Za-z0-9_@/(\[{.=-]))"
)
_DIGIT = re.compile("[0-9]")
_SIGNS = re.compile(
    r"(?<![a-z])[a-z]{4}(?: [a-z]{4}){3}(?![a-z])|[A-Za-z][!&#?*$^~+%_][A-Za-z]|[a-z][A-Z]|[A-Z]{2}[a-z]"
)
_OPENING = "\"'`(*_“‘„«‹「『【（<[:=>"
_CLOSING = "\"'`()*_”’»›」』】）>,.!?;:，。、；][<"
_PARTNER = re.compile(
    r"(?:[!-~][ ]?[/|:][ ]?|(?:root|admin|administrator|\.[a-z]{2,8}(?:,|[ ]\|)?[ ]\w[\w.@-]{1,31}|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?::[0-9]{2,5})?,?[ ]\w[\w.@-]{1,31})(?:,|[ ]\|)?[ ]|[\w.+-]@[\w.-]{3,64}[)）]?(?:,? (?:and|und|et|y|e|with|mit)|[,，和及])[ ]?"
    r"|(?:e-?mail|address|user ?name|account|Adresse|Konto|correo|courriel|адрес\w*)(?:,? (?:and|with|und|mit|et|avec|y|con|e|com|en|и)|,)[ ]"
    r"|[ ](?:as|als|comme|como|come|als|jako|как|with|avec|mit|con|com|met|с)[ ](?:user |usuario |utilisateur |benutzer )?[a-z][\w.-]{1,24}[ ](?:with|and|mit|und|avec|et|con|y|com|e|met|en|i|и)[ ](?:the password |password )?)[\"'`“]?\Z"
)
_NUMBER = re.compile(
    r"[0-9]{4}(?: [0-9]{4}){3,5}\Z|[#*]?(?:[0-9]{4,20}|[0-9]{1,2}(?:-[0-9]{1,2}){2,5})[#*]?\Z"
)
_USER_AND = re.compile(r"[\w.@-]{2,}[ ]?(?:/|と|和|,|，|&|\band|\bund|\bet|\by)[ ]?[\"'`“]?\Z")
_TO_ENTER = re.compile(
    r"(?:输入?|填入?|键入|敲|輸入?|\b(?:[Tt]ype|[Ee]nter|[Uu]se|tippe|gib|tapez|tape|saisis|escribe|teclea|digita|введи|набери)[ ])[ ]?[\"'“‘「«]?[ ]?\Z"
)
_TO_LOG_IN = re.compile(r"[\"'`”]?[ ]?(?:で|来|to|zum|pour|para|)[ ]?")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z", re.IGNORECASE)
_KEY_OWNERS = (
    "api ", "api-", "secret ", "access ", "license ", "licence ", "product ", "recovery ", "setup ", "private ", "activation ",
)  # fmt: skip
_ISSUE = re.compile(r"[A-Za-z]#[0-9]{1,6}\Z")
"""The end of the number of an issue, or of a name such as `marlow#1923`."""
_DIGIT_GROUPS = re.compile(r"[0-9]{4,6}(?:[- ][0-9]{4,6}){2,5}\Z")
_TWO_GROUPS = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Z]*[A-Z])[A-Z0-9]{4,6}-[A-Z0-9]{4,6}\Z")
_NAMES_OF_CODES = (
    "activation",
    "serial",
    "licen",
    "gift",
    "voucher",
    "gutschein",
    "lizenz",
    "redeem",
    "激活",
    "序列",
    "兑换",
)
_ASKING_FOR_ONE = frozenset(("basic auth", "sudo asks", "guest network", "hotspot"))
_COUNTS_THINGS = re.compile(r"[ ][a-z]{3,}s\b")
_JOINED_WORDS = re.compile(r"[A-Za-z]{3,24}(?:_[A-Za-z]{3,24}){1,3}\Z")
_LEADS_TO_NAME = re.compile(
    r"[\"'”’»`)\]*_!]{0,3}(?:[ ]?(?:←|<-|[–—]|[ ]-[ ]|[(（]|这(?:个|就)?是|就是)|,?[ ](?:is|was|as|for|ist|est|es|é|è|als|comme|como|come|jako|som|mint|de|como|pour|para|per|как)[ ]"
    r"|[ ]?(?:是|为|為|作为|作為|当|做|が|は))[^\n.!?。！？0-9:：=]{0,40}\Z"
)
_ASSIGNED = re.compile(r"[\"'`*_)）】」]{0,3}[ \t]{0,4}(?:[:：=＝]|is\b|是)")
_CELL_BEFORE = re.compile(r"(?:\t[ ]{0,4}|[ \u3000]{2}|[|/:：=→–—-][ \t\u3000])[\"'`*]{0,3}\Z")
_PAIR_BEFORE = re.compile(
    r"[^\s/→…—–=:：.](?:[ ]?\.{3,}|[ ]?…+|[ ]?→|[ ][/—–=]|\t|[ ]?[:：])[ \t]?\Z"
)
_LOGIN_PAIR = re.compile(r"[\w@.+-][ ]?(?:/|→)[ ]\Z")
_NETWORK = re.compile(
    r"wi-?fi|network|wlan|\bwpa|\bwep\b|rout(?:er|eur)|netz|réseau|\bla red\b|acceso|correo|servidor|hotspot|сети|无线|sudo|staging|portal|cuenta|banco",
    re.IGNORECASE,
)
_USER_AND_SLASH = re.compile(r"[a-z][a-z0-9._-]*/[^/]+\Z")
_MIXED_KEY = re.compile(
    r"(?!.*[a-z]{4})(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])(?=(?:[A-Za-z]*[0-9]){2})(?=.*(?:[a-z][A-Z]|[0-9][A-Za-z][0-9A-Z]))[A-Za-z0-9]{10,}\Z"
)
_VALUE_LABEL = re.compile(
    r"[ \t>*-]{0,12}(?i:value|key|code|serial|number|token|secret|wert|schlüssel|valeur|clé|valor|clave|valore|chiave|chave|waarde|значение|ключ|值|密钥|値|キー|값|키)[ \t]?[:：=][ \t]{0,8}[\"'`]?\Z"
)
_GLUED_LABEL = re.compile(r"[^)\]:=]{0,24}[)\]][:=](?=[^/])")
"""The end of a label in brackets, right before a value: `code):k8#Vd`."""
_CHOSEN_KEY = re.compile("key|schl|cl[éea]|chave|chiave|ключ|密|秘", re.IGNORECASE)
_PART_OF_BOOK = re.compile(
    r"(?:chapter|scene|part|act|psalm|verse|page|draft|vol|book|canto|sonnet|episode|track|version|kapitel|szene|teil|seite|chapitre|cap[ií]tulo)[-_. ]?[0-9]",
    re.IGNORECASE,
)
_WITH = re.compile(r"\b(?:mit|avec|con|com|with|met)[ ][\"'“„«]?[ ]?\Z", re.IGNORECASE)
_SET_TO = re.compile(r"\b(?:set|reset|changed|switched)[ ](?:[\w'’-]{1,20}[ ]){1,4}to[ ][\"'`“]?\Z")
_TO_GET_IN = re.compile(
    r"[\"'`”»]?[ ](?:to[ ]|in order to[ ]|um[ ]|pour[ ]|para[ ]|per[ ]|(?:when|where|if)[ ](?:it|the|you|they)[ ])?(?:[\w'’-]{1,16}[ ]){0,2}"
)
_GIVEN_IN_QUOTES = re.compile(
    r"(?:\b(?:with|mit|avec|con|com|met|type|enter|use|using)|用|输入)[ \t]{0,2}[\"'`“„«「]\Z",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"(?<![!-~])[\"'`“„«]?([A-Za-z0-9][!-~]{4,63}?)[\"'`”“»]?[ ]?(?:(?:to|auf|zu|in|à|a|por|на|naar)[ ]|→|->|=>|改为|改成|换成|换为|更新为|改為)[ ]?[\"'`“„«]?\Z"
)
_CLAUSE = re.compile(
    r"(?:[ ](?:for|of|to|fürs?|zum|zur|vom|von|im|des|du|del?|della|di|do|da|pour|para|per|van|voor|от|для|на|к)(?:[ ][\w'’-]{2,20}){1,3})[ ]"
)
_COMPOUNDS = ("passw", "kennw", "zugan", "schlü")
_NAME_BEFORE = frozenset(string.ascii_letters + string.digits + "_.$/")


def _judge(kind: Mention) -> Judge:
    def judge(match: "re.Match[str]") -> Sequence[MatchSpan]:
        text, start, end = match.string, match.start(), match.end()
        if _is_part_of_name(text, start) or text[end : end + 2].lstrip(" ").startswith("|"):
            return NOTHING
        actual = Mention.PASSWORD if kind is Mention.KEY and _is_of_network(match) else kind
        passage = MentionPassage(text, actual, start, end)
        found = tuple(_behind(passage)) if _has_value(text, kind, end) else NOTHING
        if found or kind not in _VALUES_BEFORE or not _has_value_before(text, start):
            return found
        return tuple(_before(passage))

    return judge


def _has_value(text: str, kind: Mention, end: int) -> bool:
    """Return whether there may be a value behind the word; most words are followed by none."""
    reach = LONGEST_GAP if kind in _NUMBERS_ONLY else LONGEST_BLOCK
    if _DIGIT.search(text, end, end + reach):
        return True
    return kind not in _NUMBERS_ONLY and _SIGNS.search(text, end, end + LONGEST_SIGNS) is not None


def _has_value_before(text: str, start: int) -> bool:
    """Return whether there may be a value before the word."""
    if _DIGIT.search(text, max(0, start - LONGEST_GAP), start):
        return True
    return _SIGNS.search(text, max(0, start - LONGEST_SIGNS), start) is not None


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
    return (
        _NETWORK.search(match.string, max(0, match.start() - LONGEST_BEFORE), match.end() + 40)
        is not None
    )


def _candidates(passage: MentionPassage, first: int, last: int) -> Iterator[MentionedValue]:
    """Yield the words that are more than letters, without the punctuation around them."""
    for found in _VALUE.finditer(passage.text, first, last):
        glued = _GLUED_LABEL.match(found[0]) if ":" in found[0] else None
        bare = found[0][0 if glued is None else glued.end() :].lstrip(_OPENING)
        start = found.end() - len(bare)
        bare = bare.rstrip(_CLOSING)
        user, slash, rest = bare.partition("/")
        if slash and user.isalnum() and len(rest) >= SHORTEST_VALUE and "/" not in rest:
            yield MentionedValue(passage, rest, start + len(user) + 1)
        is_cut = found.end() == last < len(passage.text)
        if len(bare) >= SHORTEST_VALUE and not is_cut:
            yield MentionedValue(passage, bare, start)


def _behind(passage: MentionPassage) -> Iterator[MatchSpan]:
    text, end = passage.text, passage.end
    on_line, below = _ACCEPTED[passage.kind]
    for candidate in _candidates(passage, end, _reach(passage)):
        is_on_line = candidate.start < passage.line_end
        if is_on_line:
            is_taken = candidate.start - end <= LONGEST_GAP and on_line(candidate)
        else:
            if passage.is_answered:
                return
            is_taken = _is_in_reach(candidate) and below(candidate)
        if is_taken and not candidate.has_other_name:
            yield candidate.span
            if is_on_line:
                yield from _value_before_change(text, end, candidate.start)
            if not is_on_line and not passage.is_heading:
                return


def _reach(passage: MentionPassage) -> int:
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


def _is_in_reach(candidate: MentionedValue) -> bool:
    between = candidate.between
    return between.count("\n") <= MOST_ROWS and "\n\n\n" not in between


def _password_on_line(candidate: MentionedValue) -> bool:
    level = candidate.level
    if _ID.match(candidate.value):
        return candidate.is_beside
    if level is not Oddity.UNMISTAKABLE and candidate.is_of_other_thing:
        return False
    if level <= Oddity.ODD and _PART_OF_BOOK.match(candidate.value):
        return False
    return (candidate.is_behind_colon and _is_announced(candidate)) or _is_stated(candidate)


def _is_stated(candidate: MentionedValue) -> bool:
    level = candidate.level
    if level >= Oddity.NUMBERED and candidate.answers_itself:
        return True
    if level is Oddity.PLAIN:
        return _is_stated_number(candidate) or _is_joined(candidate)
    if level is Oddity.UNMISTAKABLE or candidate.is_void:
        return True
    follows = _CLAUSE.fullmatch(candidate.passage.text, candidate.passage.end, candidate.start)
    if level is Oddity.NUMBERED:
        is_told = candidate.is_told or follows is not None or candidate.ends_short_clause
        return candidate.in_sentence and (is_told or candidate.is_alone_behind)
    return (
        (follows is not None and candidate.ends_clause and not _DIGIT.search(follows[0]))
        or candidate.is_beside
        or candidate.is_given
        or (level is Oddity.UNSAYABLE and (candidate.in_sentence or candidate.is_glued))
    )


def _is_announced(candidate: MentionedValue) -> bool:
    """Return whether the value behind a colon ends its line or clause and is no plain word."""
    if not candidate.ends_clause or not candidate.in_sentence:
        return False
    value = unaccented(candidate.value)
    if _USER_AND_SLASH.match(value) or is_reference(value):
        return False
    if candidate.level >= Oddity.NUMBERED or _JOINED_WORDS.match(value):
        return not names_a_secret(value)
    if is_random(value, 8):
        return True
    is_numbered = any(map(str.isdigit, value)) and not candidate.passage.is_ascii
    return (is_numbered and len(value) >= 6) or (
        candidate.is_beside and len(value) >= 8 and has_digit_and_letter(value)
    )


def _is_joined(candidate: MentionedValue) -> bool:
    """Return whether words with `_` between them are told, as no sentence has them: `fengxue_shanmiao`."""
    if not _JOINED_WORDS.match(candidate.value) or names_a_secret(candidate.value):
        return False
    is_near = candidate.start - candidate.passage.end <= LONGEST_GIVER
    return is_near and candidate.is_told and candidate.in_sentence


def _is_stated_number(candidate: MentionedValue) -> bool:
    is_number = _NUMBER.match(candidate.value) is not None
    is_long = len(candidate.value) >= 6 and candidate.ends_short_clause
    return (
        is_number
        and (candidate.is_told or is_long)
        and candidate.in_sentence
        and not NO_NUMBER.match(candidate.passage.text, candidate.end)
    )


def _password_below(candidate: MentionedValue) -> bool:
    if is_answer(candidate):
        return True
    if _ID.match(candidate.value) or is_hash(candidate.value):
        return candidate.is_next and candidate.is_alone
    is_heading, level = candidate.passage.is_heading, candidate.level
    is_paired = is_heading and level >= Oddity.NUMBERED and _is_paired(candidate)
    if level is Oddity.UNMISTAKABLE or is_paired:
        return True
    if level <= Oddity.NUMBERED:
        is_told = level is Oddity.NUMBERED and not candidate.passage.is_ascii
        return is_told and candidate.is_alone and candidate.is_next and candidate.passage.ends_line
    if candidate.is_alone and (candidate.is_next or is_heading):
        return not _PART_OF_BOOK.match(candidate.value)
    return is_heading and candidate.level is Oddity.UNSAYABLE and _is_last_cell(candidate)


def _is_last_cell(candidate: MentionedValue) -> bool:
    text, row, start = candidate.passage.text, candidate.row, candidate.start
    is_cell = start - row <= LONGEST_ROW or _CELL_BEFORE.search(text, row, start) is not None
    return is_cell and candidate.ends_row


def _is_paired(candidate: MentionedValue) -> bool:
    """Return whether a row of a list ends with the value, behind a sign: `Amazon … rosie1947`."""
    text, row, start = candidate.passage.text, candidate.row, candidate.start
    return candidate.ends_row and _PAIR_BEFORE.search(text, row, start) is not None


def _key_on_line(candidate: MentionedValue) -> bool:
    is_beside = candidate.is_beside
    if candidate.is_behind_colon and is_beside and _TWO_GROUPS.match(candidate.value):
        name = candidate.passage.text[candidate.passage.start : candidate.passage.end].lower()
        return name.endswith(("码", "碼", "code", "serial", "voucher", "gutschein"))
    if candidate.is_behind_colon and _DIGIT_GROUPS.match(candidate.value):
        name = candidate.passage.text[candidate.passage.start : candidate.passage.end].lower()
        return name.startswith(_NAMES_OF_CODES)
    if not _is_key(candidate):
        is_told = is_beside or candidate.is_told
        return is_told and candidate.in_sentence and _MIXED_KEY.match(candidate.value) is not None
    return is_beside or candidate.is_given or is_code_group(candidate.value)


def _key_below(candidate: MentionedValue) -> bool:
    is_file = re.search(r"\.[A-Za-z]{2,4}\Z", candidate.value) is not None
    if is_random(candidate.value, 12) and not is_file and is_answer(candidate):
        return True
    is_listed = candidate.is_next or candidate.passage.is_heading
    is_row = candidate.is_alone or (candidate.ends_row and is_code_group(candidate.value))
    is_field = (
        _VALUE_LABEL.match(candidate.passage.text, candidate.row, candidate.start) is not None
    )
    return is_listed and (is_row or (is_field and candidate.ends_row)) and _is_key(candidate)


def _is_key(candidate: MentionedValue) -> bool:
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


def _access_on_line(candidate: MentionedValue) -> bool:
    level, start = candidate.level, candidate.start
    if level <= Oddity.NUMBERED or level is Oddity.UNMISTAKABLE:
        return level is Oddity.UNMISTAKABLE
    name = candidate.passage.text[candidate.passage.start : candidate.passage.end].lower()
    if name in _ASKING_FOR_ONE and candidate.is_given and candidate.in_sentence:
        return True
    text, end = candidate.passage.text, candidate.passage.end
    in_brackets = start - end <= LONGEST_JOINT and text[start - 1] in "(（"
    return (
        in_brackets
        or _SET_TO.search(text, candidate.passage.line_start, start) is not None
        or _GIVEN_IN_QUOTES.search(text, max(end, start - LONGEST_GIVER), start) is not None
        or _PARTNER.search(text, max(end, start - LONGEST_BEFORE), start) is not None
    )


def _service_on_line(candidate: MentionedValue) -> bool:
    if candidate.level is Oddity.UNMISTAKABLE:
        return not _ISSUE.search(candidate.value)
    text, start = candidate.passage.text, candidate.start
    first = max(candidate.passage.end, start - LONGEST_BEFORE)
    is_lower = candidate.value.islower() and sum(map(str.isdigit, candidate.value)) > 1
    has_both = (has_sign(candidate.value) or is_lower) and candidate.level >= Oddity.ODD
    if candidate.level >= Oddity.ODD and _SET_TO.search(text, candidate.passage.line_start, start):
        return not _ISSUE.search(candidate.value)
    return (
        has_both
        and not _ISSUE.search(candidate.value)
        and _PARTNER.search(text, first, start) is not None
    )


def _opening_on_line(candidate: MentionedValue) -> bool:
    if candidate.level is Oddity.PLAIN:
        is_number = candidate.value.isdigit() and len(candidate.value) >= SHORTEST_VALUE + 1
        is_alone = candidate.is_alone_behind and not candidate.passage.is_ascii
        if _COUNTS_THINGS.match(candidate.passage.text, candidate.end):
            return False
        return _is_stated_number(candidate) or (is_number and is_alone)
    if candidate.level is Oddity.UNMISTAKABLE:
        return True
    if _PART_OF_BOOK.match(candidate.value):
        return False
    if candidate.level is Oddity.NUMBERED:
        return candidate.is_beside and candidate.value.count("-") + candidate.value.count("_") > 1
    return candidate.level >= Oddity.ODD and candidate.is_given and candidate.in_sentence


def _access_below(candidate: MentionedValue) -> bool:
    level, passage = candidate.level, candidate.passage
    if is_answer(candidate):
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


def _entered_on_line(candidate: MentionedValue) -> bool:
    """Return whether it is said that the value is typed in: `连的时候输 moxiang2020`."""
    passage, start = candidate.passage, candidate.start
    if candidate.level < Oddity.NUMBERED or start - passage.end > LONGEST_BEFORE:
        return False
    return (
        _TO_ENTER.search(passage.text, max(passage.end, start - LONGEST_GIVER), start) is not None
    )


def _nowhere(_candidate: MentionedValue) -> bool:
    return False


_ACCEPTED: Mapping[
    Mention, tuple[Callable[[MentionedValue], bool], Callable[[MentionedValue], bool]]
] = {
    Mention.PASSWORD: (_password_on_line, _password_below),
    Mention.KEY: (_key_on_line, _key_below),
    Mention.ACCESS: (_access_on_line, _access_below),
    Mention.SERVICE: (_service_on_line, _nowhere),
    Mention.OPENING: (_opening_on_line, _access_below),
    Mention.LOCK: (opens_lock, _nowhere),
    Mention.QUESTION: (_entered_on_line, is_answer),
}
"""What is accepted on the line of the word, and on the lines below."""


_VALUES_BEFORE = frozenset(Mention) - {Mention.QUESTION, Mention.LOCK, Mention.SERVICE}
_NUMBERS_ONLY = frozenset((Mention.QUESTION, Mention.LOCK))


def _value_before_change(text: str, first: int, start: int) -> Iterator[MatchSpan]:
    """Yield the old value of “from X to Y” and “X → Y”."""
    change = _CHANGE.search(text, max(first, start - LONGEST_BEFORE), start)
    if change is None or change[1].isdigit() or is_reference(change[1]):
        return
    if oddity(change[1] + "1!") > Oddity.PLAIN:
        yield change.span(1)


def _before(passage: MentionPassage) -> Iterator[MatchSpan]:
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
        elif _is_entered(candidate):
            is_taken = candidate.level >= Oddity.ODD and candidate.in_sentence
        else:
            is_taken = candidate.level >= Oddity.ODD and _with_user(candidate)
        if is_taken:
            yield candidate.span
            yield from _value_before_change(text, passage.line_start, candidate.start)


def _is_entered(candidate: MentionedValue) -> bool:
    """Return whether it is said that a value before the word is typed in: “use X to get into …”."""
    text, start, kind = candidate.passage.text, candidate.start, candidate.passage.kind
    head = text[max(0, start - LONGEST_GIVER) : start]
    if (
        kind is Mention.ACCESS
        and _WITH.search(head)
        and text[candidate.end : candidate.passage.start].strip("\"'”» ") == ""
    ):
        return True
    if not _TO_ENTER.search(head):
        return False
    if kind is Mention.OPENING:
        return not text.startswith("to open", candidate.passage.start)
    follows = _TO_GET_IN.fullmatch(text, candidate.end, candidate.passage.start)
    return kind is Mention.ACCESS and follows is not None


def _is_in_list(candidate: MentionedValue) -> bool:
    """Return whether a value above the word ends a row of the list of which the word speaks."""
    if _ID.match(candidate.value):
        return False
    if candidate.level is Oddity.UNMISTAKABLE:
        return True
    text, start = candidate.passage.text, candidate.start
    first = max(0, start - LONGEST_GAP)
    row = max(first, text.rfind("\n", first, start) + 1)
    is_paired = _PAIR_BEFORE.search(text, row, start) is not None
    is_list = candidate.passage.kind is Mention.PASSWORD and candidate.level >= Oddity.ODD
    return is_list and is_paired and not candidate.has_other_name


def _with_user(candidate: MentionedValue) -> bool:
    """Return whether a value stands behind a user's name and before “to log in”: `mei と X でログイン`."""
    text, start = candidate.passage.text, candidate.start
    if not _TO_LOG_IN.fullmatch(text, candidate.end, candidate.passage.start):
        return False
    return _USER_AND.search(text, max(candidate.passage.line_start, start - 40), start) is not None


def _is_before_password(candidate: MentionedValue) -> bool:
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
        rf"(?iu:(?:{pattern}){ending})(?:(?<=[はをも])|(?![A-Za-z0-9_(\[=\"'/-]|\.\w))",
        _judge(kind),
        bounded=False,
        swallows=False,
        names=True,
        wraps=kind is Mention.KEY,
    )


RULES = (
    _rule(Mention.PASSWORD, MENTIONS_OF_PASSWORDS, "(?:s|et|en|ets|em|om|ом|а|у|ów|a|y|i)?"),
    _rule(Mention.KEY, MENTIONS_OF_KEYS),
    _rule(Mention.ACCESS, MENTIONS_OF_ACCESS, "[a-z]{0,3}"),
    _rule(Mention.SERVICE, MENTIONS_OF_SERVICES),
    _rule(Mention.OPENING, MENTIONS_OF_OPENING, "[a-z]{0,3}"),
    _rule(Mention.LOCK, MENTIONS_OF_LOCKS),
    _rule(Mention.QUESTION, MENTIONS_IN_QUESTIONS),
)


LONGEST_SENTENCE = 140

REMARKS = (
    "all lower case", "all lowercase", "all in lower case", "capitals", "caps and all", "mind the capitals", "lower case", "lowercase", "all small letters", "small letters", "no spaces", "without spaces",
    "without the spaces", "with the spaces", "with spaces", "all one word", "one word", "no capitals", "no caps", "all caps", "capital ", "dash included",
    "including the dash", "with the dash", "alles klein", "kleingeschrieben", "klein geschrieben", "in kleinbuchstaben", "zusammengeschrieben",
    "in einem wort", "ohne leerzeichen", "großgeschrieben", "mit großem", "tout en minuscules", "en minuscules", "sans espace", "tout attaché",
    "en un seul mot", "avec une majuscule", "todo en minúsculas", "en minúsculas", "sin espacios", "todo junto", "con mayúscula",
    "tutto minuscolo", "tutto in minuscolo", "senza spazi", "tutto attaccato", "con la maiuscola", "tudo minúsculo", "em minúsculas", "sem espaços",
    "tudo junto", "kleine letters", "zonder spaties", "aan elkaar", "małymi literami", "bez spacji", "строчными", "маленькими буквами",
    "без пробелов", "слитно", "全小写", "全部小写", "都是小写", "小写字母", "全拼", "拼音", "不带空格", "没有空格", "无空格", "不加空格", "连写", "首字母大写", "全小寫", "都是小寫",
    "すべて小文字", "全部小文字", "小文字", "スペースなし", "ローマ字", "전부 소문자", "모두 소문자", "소문자", "띄어쓰기 없이", "영문으로",
)  # fmt: skip
_LABEL_IN_SENTENCE = re.compile(
    rf"(?<![A-Za-z])(?:passwords?|passphrase|passcode|l['’]ordi|ordinateur|laptop|rechner|computer|tablette|hotspot|(?:opens|unlocks)(?= with)|pass ?word|pwd?|pin|wi-?fi|wlan|{'|'.join(map(re.escape, FOREIGN_NAMES))})(?![a-z])|{'|'.join(HAN_LABELS)}",
    re.IGNORECASE,
)
_QUOTED_VALUE = re.compile(r"[\"“„«「『‘]([^\"“”„«»「」『』‘’\n]{3,60})[\"”“»」』’]")
_VALUE_BEFORE_REMARK = re.compile(
    r"(?:[:：=→是为為叫はがを는은을]|[ ][–—-](?=[ ])|(?<![^\s\"'])(?:is|was|to|with|ist|lautet|est|c['’]est|es|è|é|to jest|это)(?=\s))[ \t\u3000]{0,2}"
    r"(?P<value>[A-Za-z0-9\u00c0-\u024f\u0400-\u04ff][!-+\--:<-~\u00c0-\u024f\u0400-\u04ff]{2,39}(?: [A-Za-z0-9\u00c0-\u024f\u0400-\u04ff'’-]{1,20}){0,6})[ ]?[,，、(（.。;；–—-]{0,2}[ ]?\Z"
)
_VALUE_BEHIND_REMARK = re.compile(
    r"[^\x00-\x7f，。\n]{0,8}[,，:：是 ]{1,3}(?P<value>[a-z0-9][a-z0-9_.-]{5,39})(?![A-Za-z0-9])"
)


def _spelt(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look for a label in the sentence, and for the value between it and the remark, or around them."""
    text, start = match.string, match.start()
    first = max(0, start - LONGEST_SENTENCE)
    first = max(first, text.rfind("\n", first, start) + 1)
    labels = list(_LABEL_IN_SENTENCE.finditer(text, first, start))
    if not labels:
        return NOTHING
    label = labels[-1]
    quoted = list(_QUOTED_VALUE.finditer(text, label.end(), start))
    told = _VALUE_BEFORE_REMARK.search(text, label.end(), start)
    behind = _VALUE_BEHIND_REMARK.match(text, match.end())
    if quoted:
        found = quoted[-1].span(1)
    elif told is not None:
        found = told.span("value")
    elif behind is not None and not text[label.start() : label.end()].isascii():
        found = behind.span("value")
    else:
        before = list(_QUOTED_VALUE.finditer(text, first, label.start()))
        if not before or start - label.end() > len(label[0]):
            return NOTHING
        found = before[-1].span(1)
    return (found,) if _is_typed_in(text[slice(*found)]) else NOTHING


def _is_typed_in(value: str) -> bool:
    words = value.lower().split()
    other = FUNCTION_WORDS | COMMON_VALUES | BLANK_VALUES
    return other.isdisjoint(words) and not is_stand_in(value)


_LOCKED = (
    "비밀번호가", "비번이", "암호가", "패스워드가", "パスワードが", "パスワードがかか", "パスがかか", "パスワード付き", "パスワード保護", "有密码", "有密碼", "设了密码", "設了密碼", "加了密码", "加了密碼", "带密码", "需要密码", "需要密碼",
    "has a password", "needs a password", "asks for a password", "asks for the password", "wants a password", "password protected", "password-protected", "passwortgeschützt", "verlangt ein passwort",
    "demande un mot de passe", "pide una contraseña", "спрашивает пароль", "просит пароль",
)  # fmt: skip
_ENTERED_NEXT = re.compile(
    r"[^\n.。!?！？，,;；]{0,24}[.。!！，,;；]\s?(?P<verb>(?:请|請)?(?:输入|輸入|填写?|打)[ ]?|(?:[Jj]ust |[Pp]lease )?(?:[Tt]ype|[Ee]nter|[Uu]se|[Pp]ut in)(?: in)? |(?:[Gg]ib|[Tt]ippe|[Tt]apez|[Tt]ape|[Ee]scribe|[Tt]eclea|[Вв]ведите|[Вв]веди|[Нн]абери) |)"
    r"[\"'`“„«「『]?(?P<value>[!-~]{4,48}+)[\"'`”“»」』]?(?P<tail>[ ]?(?:(?:을|를|라고|이라고|하고)?[ ]?(?:입력|치면|치세요|넣으|누르)|[をと](?:入力|入れ|打)|(?:即可|就能|就可以|便可))|(?=[\s，。；！]|\Z))"
)


def _entered_next(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what the next sentence says is to be typed in where a password is asked for."""
    entered = _ENTERED_NEXT.match(match.string, match.end())
    if entered is None or not (entered["verb"] or entered["tail"].strip()):
        return NOTHING
    value = entered["value"].rstrip(".,;\"'`")
    start = entered.start("value")
    is_sure = has_digit_and_letter(value) or has_sign(value) or oddity(value) >= Oddity.ODD
    is_sure = is_sure or (value.isdigit() and bool(entered["tail"].strip()))
    return ((start, start + len(value)),) if is_sure and not is_stand_in(value) else NOTHING


SPELLING_RULES = (
    RedactionRule(
        "mentioned_secret",
        _LOCKED,
        f"(?iu:{'|'.join(map(re.escape, _LOCKED))})",
        _entered_next,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "labelled_password",
        REMARKS,
        f"(?iu:{'|'.join(map(re.escape, REMARKS))})",
        _spelt,
        bounded=False,
    ),
)
