"""Key knowledge: the sentences of a conversation that decide, constrain, explain or give a figure.

A sentence is weighed by the words in it; a later decision about the same thing replaces the
earlier one. Nothing here is understood: what is kept is quoted.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from creonowd.history.tool_result import clip, one_line
from creonowd.tokens.boundaries import sentences

SHORTEST = 6
LONGEST = 220
LONGEST_TEXT = 20_000
MOST_PER_MESSAGE = 12
MOST_FACTS = 400
ENOUGH = 1.5
SAME_THING = 0.45
SAME_THING_IF_CHANGED = 0.25
SAME_WORDS = 0.8

_FENCE = re.compile(r"^[ \t]*(?:```|~~~).*?^[ \t]*(?:```|~~~)[ \t]*$", re.MULTILINE | re.DOTALL)
_BULLET = re.compile(r"^[ \t]*(?:[-*•>]|\d{1,3}[.)、]|#{1,6})[ \t]+")
_DECISION = re.compile(
    r"\b(?:must(?:n['’]t)?|shall|should(?:n['’]t)?|never|always|do not|don['’]t|cannot|can['’]t"
    r"|required?|requires|decided?|decision|agreed?|from now on|stick (?:to|with)|let['’]s (?:use|go with|keep)"
    r"|we(?:['’]ll| will)? (?:use|keep|go with|call|name)|is called|are called|only (?:if|when|after|by|for|the)"
    r"|(?:at most|at least|no more than|no longer|not allowed)|the rule is|named|default(?:s)? to|prefer)\b"
    r"|必须|务必|不要|不得|不能|不可|不准|禁止|严禁|只能|只许|一律|统一|决定|定为|定成|约定|规定|采用|保留|不再"
    r"|以.{1,20}为准|应当|应该|要求|绝不|永远|始终|从此|就叫|名叫|叫做|改名|设定为|默认",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:instead(?: of)?|rather than|no longer|change[ds]? (?:it )?(?:to|from)|switch(?:ed)? to|replaced? (?:by|with)"
    r"|actually|scrap that|forget (?:that|what)|on second thought|not .{1,30}? but|was wrong|correction|renamed?|moved? to)\b"
    r"|改为|改成|改用|改到|换成|换为|而不是|不再|推翻|作废|更正|收回|其实|重新定|改名",
    re.IGNORECASE,
)
_CAUSE = re.compile(
    r"\b(?:because|root cause|cause[ds]?(?: by)?|due to|the reason|turned out|turns out|that['’]s why|so that"
    r"|the (?:bug|problem|issue|culprit) (?:is|was)|fixed by|fix(?:es|ed)?|resolved by|works now|fails? (?:when|if|since|because|with))\b"
    r"|因为|由于|原因|根因|结论|导致|所以|原来是|症结|修好|解决|修复|真相",
    re.IGNORECASE,
)
_FAILURE = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|timeout|refused|denied|[45]\d\d (?:error|status))\b"
    r"|报错|失败|异常|出错|超时|拒绝",
    re.IGNORECASE,
)
_FIGURE = re.compile(
    r"\d[\d,.]*[ ]?(?:ms|s|min|h|hours?|minutes?|seconds?|days?|weeks?|years?|%|percent|[KMG]i?B|bytes?|px|tokens?|words?"
    r"|characters?|lines?|chapters?|rounds?|req(?:uest)?s?|times?|°|km|m\b|cm|kg|yuan|dollars?|字|章|节|人|年|岁|次|天|日|月|"
    r"元|块|两|里|米|公里|页|行|条|个|名|点|分|秒|小时|回|卷|封|枚|号|级)"
    r"|[一二三四五六七八九十百千万两]{1,6}(?:字|章|节|人|年|岁|次|天|日|元|两|里|米|页|条|个|名|点|回|卷|封|枚|号)"
    r"|\b\d{2,}\b|\bv?\d+\.\d+",
)
_CODE = re.compile(
    r"`[^`\n]{1,80}`|\b[a-z]+_[a-z0-9_]+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"
    r"|\b[\w.-]+/[\w./-]+\b|(?<!\w)--?[a-z][\w-]+|\b\w+\(\)|\bhttps?://\S+|\b\w+\.(?:py|ts|js|md|json|toml|yaml|sql|rs|go)\b"
)
_NAME = re.compile(
    r"[「『《“\"][^」』》”\"\n]{1,30}[」』》”\"]|(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)?"
)
_QUESTION = re.compile(r"[?？]\s*[」』”\"']?\s*\Z|(?:吗|呢)[。.]?\s*\Z")
_SMALL_TALK = re.compile(
    r"(?:sure|ok(?:ay)?|thanks?|thank you|great|got it|done|will do|sounds good|of course|no problem|perfect|nice|alright"
    r"|好的|好|收到|明白|没问题|谢谢|辛苦|可以|行|嗯|当然)[\s,.!，。！~]*\Z",
    re.IGNORECASE,
)
_INTENTION = re.compile(
    r"\b(?:next(?: step)?(?:,| is|:| I| we)|I(?:['’]ll| will| am going to)|we(?:['’]ll| will)|then I|remaining|still (?:to do|need)"
    r"|to ?do|left to do|after that|tomorrow)\b|接下来|下一步|然后|随后|还要|还需|待办|剩下|下一章|之后再|明天",
    re.IGNORECASE,
)
_NUMERAL = re.compile(r"\d[\d,.]*|[一二三四五六七八九十百千万两]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_']+|[\u3400-\u9fff]+")
_COMMON = frozenset(
    [
        "the",
        "a",
        "an",
        "and",
        "or",
        "but",
        "of",
        "to",
        "in",
        "on",
        "at",
        "for",
        "with",
        "by",
        "from",
        "as",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "it",
        "its",
        "this",
        "that",
        "these",
        "those",
        "we",
        "you",
        "i",
        "they",
        "he",
        "she",
        "will",
        "would",
        "should",
        "must",
        "shall",
        "can",
        "could",
        "may",
        "might",
        "not",
        "no",
        "do",
        "does",
        "did",
        "so",
        "if",
        "then",
        "than",
        "use",
        "uses",
        "used",
        "using",
        "also",
        "just",
        "only",
        "when",
        "what",
        "which",
        "who",
        "how",
        "there",
        "here",
        "have",
        "has",
        "had",
        "our",
        "your",
        "their",
        "into",
        "out",
        "up",
        "all",
        "any",
        "each",
        "every",
        "more",
        "most",
        "some",
        "such",
        "very",
        "per",
        "via",
        "let",
        "lets",
        "don't",
        "won't",
        "instead",
        "rather",
        "always",
        "never",
    ]
)


class Fact(NamedTuple):
    """A sentence worth keeping: how much, in which round, and what it is about."""

    text: str
    weight: float
    round: int
    terms: frozenset[str]
    changes: bool = False


def facts_in(text: str, round_index: int, *, by_user: bool) -> list[Fact]:
    """Return the sentences of a message that are worth keeping, in their order."""
    found: list[Fact] = []
    for sentence in _sentences(text[:LONGEST_TEXT]):
        weight = weigh(sentence, by_user=by_user)
        if weight >= ENOUGH:
            shown = clip(sentence, LONGEST)
            changes = _CHANGE.search(sentence) is not None
            found.append(Fact(shown, weight, round_index, terms_of(shown), changes))
    best = sorted(found, key=lambda fact: -fact.weight)[:MOST_PER_MESSAGE]
    return [fact for fact in found if fact in best]


def weigh(sentence: str, *, by_user: bool) -> float:
    """Weigh one sentence; `ENOUGH` is worth keeping."""
    if len(sentence) < SHORTEST or _SMALL_TALK.match(sentence) or _QUESTION.search(sentence):
        return 0.0
    weight = 2.0 if _DECISION.search(sentence) else 0.0
    weight += 2.0 if _CHANGE.search(sentence) else 0.0
    weight += 2.0 if _CAUSE.search(sentence) else 0.0
    weight += 1.0 if _FAILURE.search(sentence) else 0.0
    weight += 1.0 if _FIGURE.search(sentence) else 0.0
    weight += 0.75 if _CODE.search(sentence) else 0.0
    weight += 0.75 if _NAME.search(sentence) else 0.0
    if weight and by_user:
        weight += 0.75
    return weight


def merge_facts(before: Sequence[Fact], new: Iterable[Fact]) -> tuple[Fact, ...]:
    """Add facts; each replaces earlier ones that it repeats or corrects. The lightest leave."""
    facts = list(before)
    for fact in new:
        facts = [known for known in facts if not _replaces(fact, known)]
        facts.append(fact)
    if len(facts) > MOST_FACTS:
        kept = set(sorted(facts, key=_rank)[:MOST_FACTS])
        facts = [fact for fact in facts if fact in kept]
    return tuple(facts)


def best_facts(facts: Sequence[Fact], most: int) -> list[str]:
    """Return the texts of the heaviest facts, the newest first."""
    chosen = sorted(sorted(facts, key=_rank)[:most], key=lambda fact: -fact.round)
    return [fact.text for fact in chosen]


def intention_in(text: str) -> str:
    """Return the last sentence that says what comes next; nothing if none does."""
    stated = [s for s in _sentences(text[-LONGEST_TEXT:]) if _INTENTION.search(s)]
    return clip(stated[-1], LONGEST) if stated else ""


def question_in(text: str) -> str:
    """Return the question that a text ends with; nothing if it ends otherwise."""
    said = list(_sentences(text[-LONGEST_TEXT:]))
    asked = [s for s in said[-2:] if _QUESTION.search(s)]
    return clip(asked[-1], LONGEST) if asked else ""


def changes_course(text: str) -> bool:
    """Return whether a request changes what was asked for before."""
    return _CHANGE.search(text[:600]) is not None


def terms_of(text: str) -> frozenset[str]:
    """Return what a text is about: its words without common ones, and pairs of Han characters.

    What it says about that, numbers and words such as "must", is left out: two statements about
    one thing have the same terms.
    """
    terms: set[str] = set()
    about = _NUMERAL.sub(" ", _CHANGE.sub(" ", _DECISION.sub(" ", text)))
    for word in _WORD.findall(about.lower()):
        if word[0] >= "\u3400":
            terms.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in _COMMON and len(word) > 2:
            terms.add(_stem(word))
    return frozenset(terms)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _rank(fact: Fact) -> tuple[float, int]:
    return (-fact.weight, -fact.round)


def _replaces(new: Fact, known: Fact) -> bool:
    shared = len(new.terms & known.terms)
    if not shared:
        return new.text == known.text
    alike = shared / min(len(new.terms), len(known.terms))
    together = shared / len(new.terms | known.terms)
    if together >= SAME_WORDS:
        return True
    return together >= (SAME_THING_IF_CHANGED if new.changes else SAME_THING) and alike >= 0.5


def _sentences(text: str) -> Iterable[str]:
    """Walk the sentences of a text, line by line, without code blocks and bullets."""
    for line in _FENCE.sub("\n", text).splitlines():
        flat = one_line(_BULLET.sub("", line), LONGEST_TEXT)
        start = 0
        for end in (*sentences(flat, 0, len(flat)), len(flat)):
            if sentence := flat[start:end].strip().strip("*"):
                yield sentence
            start = end
