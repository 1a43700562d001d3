"""The words of a wallet's recovery phrase, behind their name: in a row, numbered, in a list, a table or an array."""

import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.shape import FUNCTION_WORDS

LONGEST_PHRASE = 400
FEWEST_WORDS = 12
MOST_WORDS = 24
_NEXT_WORD = r"(?:[ \t,]{1,8}|[\"'],\s{0,8}[\"']|-|[ \t]{0,4}\r?\n[ \t>*-]{0,6})"
_NUMBER = r"(?:[0-9]{1,2}[.):]?[ \t]{1,2})"
_PHRASE = re.compile(
    r"(?:[^\n.!?。！？(（]{0,24}[(（][^()（）\n]{0,32}[)）])?[^\n.!?。！？]{0,48}?\s{0,12}(?:[-*>] )?(?P<phrase>"
    rf"(?<![A-Za-z]){_NUMBER}?[a-zà-ÿ]{{3,10}}(?:{_NEXT_WORD}{_NUMBER}?[a-zà-ÿ]{{3,10}}){{11,25}}(?![A-Za-z])"
    r"|[A-Z]{3,10}(?:[ ,]{1,2}[A-Z]{3,10}){11,23}(?![A-Za-z])|[A-Z][a-z]{2,9}(?:[ ,]{1,2}[A-Z][a-z]{2,9}){11,23}(?![A-Za-z])"
    r"|[\uac00-\ud7a3]{1,6}(?:[ ,]{1,2}[\uac00-\ud7a3]{1,6}){11,23}(?![\uac00-\ud7a3])"
    r"|[а-яё]{3,10}(?:[ ,]{1,2}[а-яё]{3,10}){11,23}(?![а-яё])"
    r"|[\u3041-\u3096]{2,8}(?:[ \u3000]{1,2}[\u3041-\u3096]{2,8}){11,23}(?![\u3041-\u3096])"
    r"|[\u4e00-\u9fff]{1,3}(?:[ \u3000,，、]{1,2}[\u4e00-\u9fff]{1,3}){11,23}(?![\u4e00-\u9fff]))"
)
_NUMBERED_PHRASE = re.compile(
    rf"{_NUMBER}[a-z]{{3,8}}(?:{_NEXT_WORD}{_NUMBER}[a-z]{{3,8}}){{5,23}}(?![A-Za-z])"
    r"|(?<![0-9])1[.、)）]?[ ]?[\u4e00-\u9fff](?:[\s,，、]{1,8}[0-9]{1,2}[.、)）]?[ ]?[\u4e00-\u9fff]){5,23}(?![\u4e00-\u9fff])"
)
_TABLE_OF_WORDS = re.compile(
    r"(?:[ \t]{0,4}\|?[ ]{0,4}[0-9]{1,2}[ ]{0,4}\|[ ]{0,4}[a-z]{3,10}[ ]{0,12}\|?[ ]{0,4}\r?\n?){6,24}"
)
_RUN_OF_SIGNS = re.compile(r"[:：\s]{1,4}((?:[\u4e00-\u9fff]{3}){4,8})(?=[\s。]|\Z)")
_BEGINS_LIST = re.compile(
    r"\n[ \t>*-]{0,8}1[.):]?[ \t]{1,3}[a-z]{3,10}[ \t]{0,12}(?:\r?\n[ \t>*-]{0,8})?[,;|]?[ \t]{0,8}2[.):]?[ \t]"
)
_LETTER = "[a-zà-ÿа-яёąćęłńóśźż]"
_BETWEEN_WORDS = r"(?:[ \t]{0,3}[-/·•|,;、，][ \t]{0,3}|[ \t\u3000]{1,8}|[ \t]{0,4}\r?\n[ \t]{0,8}(?:>[ ]?){0,3}(?:[-*•·][ \t]{1,3})?)"
_KANA = "[\u3041-\u309a]"
_PHRASE_BEHIND_NAME = re.compile(
    r"[^\"“「]{0,120}?[:：\n\"“「][\s>*•·\"“「-]{0,12}(?P<phrase>"
    rf"{_NUMBER}?{_LETTER}{{3,12}}(?:{_BETWEEN_WORDS}{_NUMBER}?{_LETTER}{{3,12}}){{5,23}}(?![\w'’-])"
    rf"|{_NUMBER}?[\u4e00-\u9fff]{{1,3}}(?:{_BETWEEN_WORDS}{_NUMBER}?[\u4e00-\u9fff]{{1,3}}){{5,23}}(?![\u4e00-\u9fff])"
    rf"|{_NUMBER}?{_KANA}{{2,10}}(?:{_BETWEEN_WORDS}{_NUMBER}?{_KANA}{{2,10}}){{11,23}}(?!{_KANA}))"
    r"[\"”」]?[ \t]*(?=[.。，,;]?(?:[\r\n]|\Z)|[.。\"”」])"
)
"""Six words or more, in a list, in pairs or behind signs, on a line of their own."""
_CLEAR_NAME = re.compile(
    r"recovery|backup|seed phrase|mnemonic|助|恢|种子|種子|復元フレーズ|リカバリー|シードフレーズ|ニーモニック|니모닉|복구|frase|phrase|wieder|(?u:фраза)|recuper",
    re.IGNORECASE,
)
_PHRASE_WORD = re.compile(
    rf"[A-Z]{{3,12}}|[A-Z]?{_LETTER}{{2,12}}|{_KANA}{{2,10}}|[\u4e00-\u9fff]{{1,3}}|[\uac00-\ud7a3]{{1,6}}"
)
_ENDS_OF_SENTENCES = ("ください", "です", "ます", "ました", "ません", "でした", "ましょう")
_MAY_GROW = re.compile("seed|semilla|ledger|wallet", re.IGNORECASE)
_NAMES_A_PHRASE = re.compile("phrase|words?\\b|mnemonic|recover|backup|wallet", re.IGNORECASE)
_NAME_ON_LINE = re.compile(
    r"(?:(?:secret|recovery|backup|seed)[ ]){1,3}(?:phrase|words)[ \t\r]*", re.IGNORECASE
)
"""The rest of a name, such as `metamask secret recovery phrase`, with the phrase below it."""
_OF_WALLET = re.compile(
    "phrase|mnemonic|recover|backup|wallet|ledger|trezor|metamask|seed|crypto|bitcoin|vault",
    re.IGNORECASE,
)
NEAR_LIST = 80


def _recovery_phrase(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the twelve words or more behind their name, or the numbered ones before it."""
    text = match.string
    if "助" in match[0] and (run := _RUN_OF_SIGNS.match(text, match.end())):
        return (run.span(1),)
    span = next(_phrases(match), None)
    if span is None or not _is_named(match, span):
        return NOTHING
    words = list(_PHRASE_WORD.finditer(text, *span))
    line = text.find("\n", *span)
    if "\n" not in text[match.end() : span[0]] and 0 < sum(one.start() < line for one in words) < 3:
        below = [word for word in words if word.start() > line]
        words = below if len(below) >= FEWEST_WORDS else words
    if line > 0 and _NAME_ON_LINE.fullmatch(text, words[0].start(), line):
        words = [word for word in words if word.start() > line]
    while len(words) > FEWEST_WORDS and words[0][0] in FUNCTION_WORDS:
        del words[0]
    del words[MOST_WORDS:]
    if sum(word[0] in FUNCTION_WORDS for word in words) > 1:
        return NOTHING
    if any(word[0].endswith(_ENDS_OF_SENTENCES) for word in words):
        return NOTHING
    if re.search("[0-9\n]", text[slice(*span)]) is None:
        return ((words[0].start(), words[-1].end()),)
    return [word.span() for word in words]


def _phrases(match: "re.Match[str]") -> Iterator[MatchSpan]:
    """Yield what may be the phrase, in the order of how clear its form is."""
    text, start, end = match.string, match.start(), match.end()
    is_list = _BEGINS_LIST.search(text, end, end + NEAR_LIST) is not None
    if not is_list and (row := _PHRASE.match(text, end)):
        yield row.span("phrase")
    if numbered := _NUMBERED_PHRASE.search(text, end, end + LONGEST_PHRASE):
        yield numbered.span()
    elif text.rfind("(", max(0, start - 24), start) >= 0 and (
        before := _NUMBERED_PHRASE.search(text, max(0, start - LONGEST_PHRASE), start)
    ):
        yield before.span()
    if table := _TABLE_OF_WORDS.search(text, end, end + LONGEST_PHRASE):
        yield table.span()
    if _CLEAR_NAME.match(match[0]) and (line := _PHRASE_BEHIND_NAME.match(text, end)):
        yield line.span("phrase")


def _is_named(match: "re.Match[str]", span: MatchSpan) -> bool:
    """Return whether the name leaves no doubt where the words alone do: in capitals, or with commas."""
    text, start = match.string, match.start()
    if text.find(",", *span) >= 0 and _MAY_GROW.match(match[0]):
        line = text[text.rfind("\n", max(0, start - LONGEST_PHRASE), start) + 1 : span[0]]
        if not _NAMES_A_PHRASE.search(line):
            return False
    if text.find(",", *span) >= 0 and match[0][:2] in {"12", "24"}:
        near = text[max(0, start - LONGEST_PHRASE // 4) : span[0]]
        if not _OF_WALLET.search(near):
            return False
    signs = (":", "：", " phrase", " words")
    is_clear = _CLEAR_NAME.match(match[0]) or text.startswith(signs, match.end())
    return not text[span[0]].isupper() or bool(is_clear)


RULES = (
    RedactionRule(
        "recovery_phrase",
        (
            "recovery phrase",
            "recovery words",
            "recovery_words",
            "seed_words",
            "mnemonic",
            "backup phrase",
            "secret phrase",
            "12-word",
            "24-word",
            "12 words",
            "24 words",
            "wiederherstellungswörter",
            "seed",
            "wallet",
            "metamask",
            "recovery key",
            "恢复词",
            "恢復詞",
            "恢复口令",
            "恢復口令",
            "リカバリーフレーズ",
            "シードフレーズ",
            "復元フレーズ",
            "시드",
            "복구 문구",
            "복구문구",
            "助记词",
            "助記詞",
            "恢复短语",
            "恢復短語",
            "种子短语",
            "種子短語",
            "ニーモニック",
            "니모닉",
            "복구 구문",
            "frase semilla",
            "frase de recuperación",
            "frase de recuperação",
            "frase di recupero",
            "phrase de récupération",
            "phrase mnémonique",
            "wiederherstellungsphrase",
            "сид-фраза",
            "ledger",
            "trezor",
            "electrum",
            "monero",
            "semilla",
            "palabras de la cartera",
            "mots du portefeuille",
            "wörter vom ",
            "wörter der ",
            "parole del wallet",
            "지갑",
            "ウォレット",
            "钱包",
            "бекап-фраза",
            "бэкап-фраза",
            "фраза восстановления",
            "секретная фраза",
            "резервная фраза",
            "리커버리",
            "복구 단어",
            "мнемоническая фраза",
        ),
        r"(?i)(?:(?:recovery|backup|secret)[ _](?:phrase|words|key)|seed|wallet|metamask|ledger|trezor|electrum|monero|mnemonic|semilla|palabras de la cartera|mots du portefeuille|w(?u:ö)rter (?:vom|der) |parole del wallet|지갑|ウォレット|钱包|(?:12|24)[- ]words?|wiederherstellungsw(?u:ö)rter"
        "|助记词|助記詞|恢复短语|恢復短語|恢复词|恢復詞|恢复口令|恢復口令|种子短语|種子短語|ニーモニック|リカバリーフレーズ|シードフレーズ|復元フレーズ"
        r"|니모닉|시드|복구 ?[구문][문구]|리커버리|복구 단어|frase (?:semilla|d[ei] rec\w{1,8}[óãe]\w{0,3}n?)|phrase (?:de récupération|mnémonique)"
        "|wiederherstellungsphrase|(?u:(?:сид|бекап|бэкап)-фраза|(?:мнемоническая|секретная|резервная) фраза|фраза восстановления))",
        _recovery_phrase,
        bounded=False,
        names=True,
    ),
)
