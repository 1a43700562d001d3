"""A value near a word for a secret: what stands before, behind and between the two, and who answers whom."""

import re
from enum import Enum, auto
from functools import cached_property, lru_cache

from creonowd.redaction.rules import MatchSpan
from creonowd.redaction.secret_names import NO_SECRET_TAILS
from creonowd.redaction.shape import Oddity, has_sign, is_random, oddity, word_set

LONGEST_BLOCK = 400
"""How far below the word a value may stand."""
LONGEST_QUESTION = 120
LONGEST_GIVER = 24
LONGEST_JOINT = 3
MOST_DIGITS = 10
LONGEST_CLAUSE = 14
ROWS_TO_ANSWER = 4
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[。！？]")
BEFORE_VALUE = " \t\u3000\"'`(*_“‘„«‹「『（["
_GIVING_SIGNS = frozenset(
    ":：=＝→⇒>【】–—|是为為成用改换換叫填输打入はがをにで는은이가를을로인试試"
)
_GIVING_QUOTES = frozenset('(（「『“„«"`')
_GIVING_WORDS = word_set(
    "wants takes needs accepts expects verlangt will braucht demande veut pide quiere vuole chiede pede quer vraagt wil требует просит "
    "is was are be now to as use using type enter try with called word wort mot palabra read reads still again paste put ist lautet lauten war jetzt nun auf mit "
    "heißt nämlich est c'est c’est était maintenant avec taper tapez tape sera es era ahora con será agora com ora adesso usa nu met "
    "är er jest é è это теперь на был была стал - it's that's it’s that’s"
)
_TELLING_SIGNS = frozenset(":：=＝→–—是为為成用改换換填输入はを는은를을")
_TELLING_WORDS = word_set(
    "is was now to type enter try with lautet ist jetzt auf mit est c'est c’est avec es ahora con é è это теперь на it's it’s para"
)
_OTHER_NAMES = word_set(
    "user username user-name for of account by login log-in named called id handle host server ssid network réseau netz netzwerk rete rede netwerk version file commit sha "
    "sha1 sha256 md5 model port room order invoice isbn benutzer benutzername nutzer nutzername konto identifiant utilisateur usuario "
    "utente usuário cuenta логин пользователь at in on from via page chapter session uid pid request request-id trace trace-id"
    " correlation-id correlation ticket error charset encoding collation codec region instance driver timeout build release revision ref reference"
    " digest checksum etag vorgang vorgangsnummer zeichensatz fassung dossier référence numéro encodage número referencia versión codificación"
)
_ENTERED_IN = ("key in ", "punch in ", "put in ", "type in ", "tap in ")
_PLACES = word_set("at in on from via for of by to")
_OTHER_HAN_NAMES = (
    "用户", "用户名", "账号", "帐号", "账户", "帐户", "賬號", "帳號", "登录名", "ユーザー", "ユーザー名", "アカウント", "아이디", "계정",
    "电话", "電話", "手机", "手機", "微信", "热线", "전화", "编号", "編號", "单号", "單號", "工单", "流水号", "流水", "序号", "会话", "會話", "字符集", "编码", "編碼", "端口", "版本", "主机", "地区", "型号", "文件",
    "番号", "文字コード", "バージョン", "ホスト", "번호", "문자셋", "버전", "포트", "호스트",
)  # fmt: skip
_SHORT_ANSWER = re.compile(
    r"[0-9]{1,3}[A-Z][0-9]{2,5}\Z|[a-z]{3,12}[-_][0-9]{2,4}\Z|[A-Z]?[0-9]{3,6}[A-Z#*]?\Z|(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]{4}\Z|[0-9]{5,10}[a-z]{1,4}\Z|(?=[^0-9]*[0-9])(?=[^a-z]*[a-z])(?=[^A-Z]*[A-Z])[A-Za-z0-9]{5,7}\Z|[A-Za-z]{3,24}(?:_[A-Za-z]{3,24}){1,3}\Z"
)
_GROUPED_ANSWER = re.compile(
    r"(?!(?:19|20)[0-9]{2}-)(?=(?:-?[0-9]){5,12}\Z)[0-9]{2,6}-[0-9]{2,6}\Z"
)
_ASKS_FOR_OTHER = re.compile(
    r"\b(?:when|who|whom|why|how|where|wann|wer|warum|wo|quand|qui|pourquoi|cuándo|quién|phone|telephone|fax|number of|telefon\w*|téléphone|teléfono|price|date|score|time|times|pages?|chapters?|characters?|digits|letters|extension|invoice|article|part number|booking|order|item|catalogue|catalog|flight|train|seat|shelf|colou?r|isbn|buchung\w*|bestell\w*|artikel\w*|réservation|commande|reserva|pedido)\b"
    r"|电话|手机号|订单|订单号|货号|车次|航班|几位|几个|多长|第几|哪[一几]?[页章]|何時|何ページ|何文字|電話|전화|몇",
    re.IGNORECASE,
)
_REPLY = re.compile(
    r"[ \t]{0,4}(?:[-*>•–—][ \t])?(?:[<\[(（【][^\n>\])）】]{1,24}[>\])）】][ \t]?){0,3}"
    r"(?:[0-9][0-9/.:, APMapm年月日上下午-]{3,24}(?:[-–][ ])?)?"
    r"(?:[^\n:：<>]{0,24}?(?:[ \t(（]+[0-9]{1,2}:[0-9]{2}[^\n:：]{0,8})?[:：>|](?:\*\*)?[ \t]?){0,2}(?P<words>[^\n.!?。！？]{0,32}?(?<=[ ,，:：/是用还還])|)[\"'“「`«]?[ ]?\Z"
)
_FILLING = re.compile(
    r"(?:(?:[\w-]{3,24} or|here (?:you go|it is|goes)|there you go|pls|ok it['’]?s|sure[ ]?[-–—]|it['’]?s|it|is|still|try|use|that['’]s|the|same|as|before|again|ok|oh|sure|yes|yep|here|this|one|ja|ist|immer|noch|nimm|probier|mal|das|wieder|hier"
    r"|c['’]est|oui|toujours|essaie|prends|voilà|voici|es|sí|sigue|siendo|prueba|usa|la|el|è|ancora|sempre|prova|é|ainda|tenta|это|да|всё|ещё|попробуй|het|nog|steeds|probeer"
    r"|root|admin)[ ,:]{1,2}|[\w.@-]{2,24}[ ]?/[ ]?|还是|還是|就是|是|用的?|试试|好像|应该|まだ|たしか|아마|그냥){0,5}[\"'“「`«]?[ ]?\Z",
    re.IGNORECASE,
)
_STAMP = re.compile(
    r"[^\n]{1,32}?[ \t][^\n]{0,20}?[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?:[ ]?[AaPp]\.?[Mm]\.?)?\]?[ \t]*\r?\n"
)
_ASKS = re.compile(
    r"[?？]|\b(?:what|whats|send|give|tell|need|again|cuál|quel|welche|wie|weet|nog|pide|pasas|dimmi|chiede|envoie|wants|asks|please|pls|plz|resend|share|remind|confirm|read me|dm me)\b|скинь|давай|多少|发我|发一下|给我|告诉|什么|啥|来着|提供|教えて|何|なん"
    r"|ください|뭐|알려|무엇|как[ао]й",
    re.IGNORECASE,
)
_ASKS_HOW_MANY = re.compile(
    r"\b(?:how (?:many|much|long|old|far)|(?:zip|area|post|postal|post|country|dress|error|source|product|promo|discount|bar|qr|order|sort|swift|tracking|exit|status)[- ]?code|postleitzahl|plz|vorwahl|(?:what|which) (?:chapter|page|scene|year|room)|wie ?viele?|combien|cu[áa]nt[oa]s?|quant[oiae]s?|сколько)\b|几[个次章页]|邮编|区号|多少[字个章次页年]|何[回話章年]|몇",
    re.IGNORECASE,
)
_ASKED_AND_ANSWERED = re.compile(
    r"[?？][ \t]*(?:(?:it['’]s|it is|es ist|c['’]est|es|è|é|это)[ ])?[\"'“„«]?\Z", re.IGNORECASE
)
_ANSWER_ON_LINE = re.compile(r"[ ][A-Za-z]{2,16}:[ \t]{1,4}[A-Za-z]{2,12}[ \t]*\r?\Z")
_BULLET = re.compile(
    r"[ \t\u3000>*•·☐☑✓✔□■▪+–—-]{0,24}(?:[0-9]{1,2}[.)、][ \t]{1,3})?[\"'`“「*]{0,3}\Z"
)
_ENDS_ROW = re.compile(
    r"[\"'`”」*,.;|!?]{0,4}(?:[ \t\u3000]*(?:\r?\n|\Z)|[ \t\u3000]+(?:[<←(（#;|]|//|--|[–—])|[ \t]{2})"
)
_CLAUSE_ENDS = re.compile(r"[\"'”’」』]?[,，。；、！!.;](?=[^\x00-\x7f]|\s)")
_NOTHING_BETWEEN = re.compile(
    r"[\s`~]{0,16}(?:(?<=[`~]{3})te?xt[ \t]*\r?\n)?(?:[^\n:：]{0,8}(?:[0-9]{1,2}:[0-9]{2})?[^\n:：]{0,24}[:：][ \t]{0,4}\r?\n)?[\s`~]{0,16}"
)
"""What may stand between a word and the line of its value: blank lines, a fence, or who speaks."""
_HEADING = re.compile(r"[^\n.!?。！？]{0,64}[!！]{0,3}[)）:：]{0,2}[ \t]*\r?\Z")
_THINGS = NO_SECRET_TAILS - word_set(
    "reset resets changed confirmed message text value at for id type list group"
)
_OTHER_THING = re.compile(
    rf"[ _-]?(?i:{'|'.join(sorted(_THINGS, key=len, reverse=True))})(?![a-z])|管理|提示|学|學|锁|鎖|本(?![子身来地人月年日])|策略|强度|長度|长度|规则|规范|错误|錯誤|不正确|不对|找回|生成器|保护功能|ヒント|マネージャ|エラー|ポリシー"
    r"|[ ]?(?:힌트|관리자|오류|정책|길이)"
)
_PLACE_HAN = ("在", "到", "第")
_MADE_VOID = re.compile(
    r"[\"'`”»)）,，]{0,2}[ ]?(?:作废|失效|不能用|停用|过期|已废|no longer|does(?:n['’]t| not) work|is dead|is old|ya no|ne (?:marche|fonctionne)"
    r"|funktioniert nicht|gilt nicht|non funziona|não funciona|больше не|не работает)",
    re.IGNORECASE,
)
_VERBS = (" is", " ist", " est", " es", "是", "は", "는")


class Mention(Enum):
    """What kind of word mentions a secret."""

    PASSWORD = auto()
    KEY = auto()
    ACCESS = auto()
    SERVICE = auto()
    OPENING = auto()
    LOCK = auto()
    QUESTION = auto()


class MentionPassage:
    """A word that mentions a secret, and the line in which it stands."""

    def __init__(self, text: str, kind: Mention, start: int, end: int) -> None:
        self.text = text
        self.kind = kind
        self.start = start
        self.end = end
        # Of a longer line only what is near: a text may be one line of such words.
        first = max(0, start - LONGEST_BLOCK)
        self.line_start = max(first, text.rfind("\n", first, start) + 1)
        line_end = text.find("\n", end, end + LONGEST_BLOCK)
        self.line_end = min(len(text), end + LONGEST_BLOCK) if line_end < 0 else line_end

    @cached_property
    def is_heading(self) -> bool:
        """Whether the line is short and no sentence, nor the row of a table."""
        if self.text.find("|", self.line_start, self.line_end) >= 0:
            return False
        return _HEADING.match(self.text, self.line_start, self.line_end) is not None

    @property
    def ends_line(self) -> bool:
        """Whether little more than a verb follows it on its line, as in `パスワードです`."""
        return self.line_end - self.end <= LONGEST_JOINT + 2

    @property
    def ends_with_colon(self) -> bool:
        """Whether a colon ends its line."""
        return self.text[self.start : self.line_end].rstrip().endswith((":", "："))

    @property
    def is_ascii(self) -> bool:
        """Whether the word is ASCII; others leave less doubt."""
        return self.text[self.start : self.end].isascii()

    @cached_property
    def is_answered(self) -> bool:
        """Whether the word begins a label that has a value of its own on its line."""
        return _ANSWER_ON_LINE.match(self.text, self.end, self.line_end) is not None

    @cached_property
    def asks_how_many(self) -> bool:
        """Whether the line asks for a number of something: a chapter, words, a price."""
        return _ASKS_HOW_MANY.search(self.text, self.line_start, self.line_end) is not None

    @cached_property
    def asks_for_other(self) -> bool:
        """Whether the line asks when, who or where, or for what has numbers in groups: a telephone."""
        return _ASKS_FOR_OTHER.search(self.text, self.line_start, self.line_end) is not None

    @cached_property
    def asks(self) -> bool:
        """Whether the line asks for something, near the word."""
        first = max(self.line_start, self.start - LONGEST_QUESTION)
        last = min(self.line_end, self.end + LONGEST_QUESTION)
        return _asks(self.text[first:last])


@lru_cache(maxsize=256)
def _asks(line: str) -> bool:
    return "?" in line or _ASKS.search(line) is not None


class MentionedValue:
    """A value that may be the secret, and where it stands relative to the word for a secret."""

    def __init__(self, passage: MentionPassage, value: str, start: int) -> None:
        self.passage = passage
        self.value = value
        self.level = oddity(value)
        self.start = start
        self.end = start + len(value)
        self.row = max(passage.line_start, passage.text.rfind("\n", passage.end, start) + 1)
        """Where its line begins."""

    @property
    def span(self) -> MatchSpan:
        """Where the value is."""
        return self.start, self.end

    @property
    def is_given(self) -> bool:
        """Whether it is introduced right before: by a colon, a quote, “is”, “mit”, 是."""
        head = self.before
        bare = head.rstrip(BEFORE_VALUE)
        if not _GIVING_QUOTES.isdisjoint(head[len(bare) :]):
            return True
        return ends_in(head, bare, _GIVING_SIGNS, _GIVING_WORDS)

    @property
    def is_told(self) -> bool:
        """Whether a verb or a colon introduces it, which is enough even for a number."""
        return ends_in(
            self.before, self.before.rstrip(BEFORE_VALUE), _TELLING_SIGNS, _TELLING_WORDS
        )

    @property
    def is_beside(self) -> bool:
        """Whether only a joint stands between the two, or the blanks between columns."""
        gap = self.passage.text[self.passage.end : self.start]
        return len(gap) <= LONGEST_JOINT or (len(gap) <= LONGEST_GIVER and gap.isspace())

    @property
    def is_alone_behind(self) -> bool:
        """Whether nothing but a sign or blanks stands before it, and nothing follows it."""
        gap = self.passage.text[self.passage.end : self.start]
        return self.is_beside and self.ends_clause and not gap.strip(" \t\u3000:：=→-")

    @property
    def ends_short_clause(self) -> bool:
        """Whether a few Chinese, Japanese or Korean letters and a blank lead to it, and nothing follows it."""
        gap = self.passage.text[self.passage.end : self.start]
        is_short = (
            1 < len(gap) <= LONGEST_CLAUSE and gap.endswith(" ") and not gap.strip().isascii()
        )
        return is_short and gap.strip().isalpha() and self.ends_clause

    @property
    def answers_itself(self) -> bool:
        """Whether a question right before it is all that stands between the two: `비번 물어봤지? danpung77`."""
        is_asked = _ASKED_AND_ANSWERED.search(self.before) is not None
        return is_asked and self.start - self.passage.end <= LONGEST_GIVER and self.ends_row

    @property
    def is_glued(self) -> bool:
        """Whether it stands right behind a Chinese letter and ends the clause: `公积金Gjj@0571`."""
        has_both = has_sign(self.value) and sum(map(str.isdigit, self.value)) > 2
        return has_both and "\u4e00" <= self.before[-1:] <= "\u9fff" and self.ends_clause

    @property
    def is_behind_colon(self) -> bool:
        """Whether a colon stands right before it."""
        return self.before.rstrip(BEFORE_VALUE).endswith((":", "："))

    @property
    def is_of_other_thing(self) -> bool:
        """Whether the word belongs to another one: a manager, a hint or an error of passwords."""
        return _OTHER_THING.match(self.passage.text, self.passage.end, self.start) is not None

    @property
    def ends_clause(self) -> bool:
        """Whether its line ends behind it, or a Chinese clause."""
        return self.ends_row or _CLAUSE_ENDS.match(self.passage.text, self.end) is not None

    @property
    def has_other_name(self) -> bool:
        """Whether the word right before it names something else: a user, a file, a page."""
        before = self.before
        if before.lower().endswith(_ENTERED_IN):
            return False
        if self.start > self.passage.end:
            before = before[-(self.start - self.passage.end) :]
        bare = before.rstrip(BEFORE_VALUE + ":：=")
        if bare.endswith(_PLACE_HAN):
            return True
        name = bare
        for verb in _VERBS:
            name = name.removesuffix(verb)
        words = name.rsplit(None, 1)
        if name.endswith(_OTHER_HAN_NAMES):
            return True
        is_place = name is not bare and words[-1:] and words[-1].lower() in _PLACES
        return bool(words) and words[-1].lower() in _OTHER_NAMES and not is_place

    @property
    def before(self) -> str:
        """What stands right before it."""
        passage = self.passage
        first = passage.start if self.start > passage.start else passage.line_start
        return passage.text[max(first, self.start - LONGEST_GIVER) : self.start]

    @property
    def in_sentence(self) -> bool:
        """Whether no sentence ends between the two."""
        first, last = sorted((self.passage.end, self.start))
        return _SENTENCE_END.search(self.passage.text, first, last) is None

    @property
    def between(self) -> str:
        """The lines between the two."""
        return self.passage.text[self.passage.line_end + 1 : self.row]

    @property
    def ends_row(self) -> bool:
        """Whether nothing, or only a remark, follows it on its line."""
        return _ENDS_ROW.match(self.passage.text, self.end) is not None

    @property
    def is_alone(self) -> bool:
        """Whether its line has nothing else, save a bullet and a remark."""
        return self.ends_row and _BULLET.match(self.passage.text, self.row, self.start) is not None

    @property
    def is_next(self) -> bool:
        """Whether only blank lines stand between the two."""
        return _NOTHING_BETWEEN.fullmatch(self.between) is not None

    @property
    def is_void(self) -> bool:
        """Whether the text says that it is no longer valid."""
        return _MADE_VOID.match(self.passage.text, self.end) is not None


def ends_in(head: str, bare: str, signs: frozenset[str], words: frozenset[str]) -> bool:
    """Return whether what stands before a value ends in one of the signs or words that hand it over."""
    if not bare:
        return False
    if bare[-1] in signs:
        return True
    return len(bare) < len(head) and bare.rsplit(None, 1)[-1].lower() in words


def is_answer(candidate: MentionedValue) -> bool:
    """Return whether somebody who was asked for the password begins with the value."""
    passage, row = candidate.passage, candidate.row
    value = candidate.value
    is_odd = candidate.level is not Oddity.PLAIN or _SHORT_ANSWER.match(value) is not None
    is_odd = is_odd or (is_random(value, 12) and passage.kind is not Mention.ACCESS)
    if value.isdigit():
        is_odd = (is_odd or passage.kind is Mention.PASSWORD) and len(value) <= MOST_DIGITS
        is_odd = is_odd and not passage.asks_how_many
    elif not is_odd and _GROUPED_ANSWER.match(value):
        is_odd = not (passage.asks_how_many or passage.asks_for_other)
    if not is_odd or candidate.between.count("\n") > ROWS_TO_ANSWER or not passage.asks:
        return False
    reply = _REPLY.fullmatch(passage.text, row, candidate.start)
    if reply is None or (reply["words"] and not _FILLING.match(reply["words"])):
        return False
    if passage.text[row : candidate.start].strip():
        return True
    is_stamped = _STAMP.fullmatch(candidate.between) is not None
    is_sure = passage.kind in {Mention.PASSWORD, Mention.OPENING}
    is_sure = is_sure or (is_stamped and passage.kind is Mention.QUESTION)
    return is_sure and (not candidate.between or is_stamped)
