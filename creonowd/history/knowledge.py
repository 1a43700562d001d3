"""Key knowledge: the sentences of a conversation that decide, constrain, explain or give a figure.

The weight of a sentence depends on the words in it; a later decision about the same thing replaces
the earlier one. A round in which the user changes their mind replaces all that was kept of the round
that it corrects, even where the sentences differ. Sentences are quoted and never reworded.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from creonowd.text import late_pattern
from creonowd.tokens.boundaries import sentences
from creonowd.tokens.truncate import clip, one_line

LEAST_SENTENCE = 6
LONGEST_SENTENCE = 220
LONGEST_TEXT = 20_000
LONGEST_WEIGHED = 400
LONGEST_TOPIC = 1_500
MOST_PER_MESSAGE = 12
MOST_FACTS = 400
LEAST_WEIGHT = 1.0
STATEMENT_WEIGHT = 0.5
REQUEST_WEIGHT = -1.0
TERMS_OF_FULL_WEIGHT = 12
TERMS_BESIDE_FIGURE = 4
# A correction is about a round if they share such a part of its topic, and the shared words are
# rare enough: each counts one divided by the number of rounds that have it.
LEAST_SHARED_TOPIC = 0.1
LEAST_LINK = 1.0
# From such a share of common terms on, two facts are about one thing, or say the same.
SAME_SUBJECT = 0.45
SAME_SUBJECT_IF_CHANGED = 0.25
SAME_WORDS = 0.8

_FENCE = late_pattern(r"[ \t]*(?:```|~~~)")
_BULLET = late_pattern(r"^[ \t]*(?:[-*•>]|\d{1,3}[.)、]|#{1,6})[ \t]+")
_DECISION = late_pattern(
    r"\b(?:must(?:n['’]t)?|shall|should(?:n['’]t)?|never|always|do not|don['’]t|cannot|can['’]t"
    r"|required?|requires|decided?|decision|agreed?|from now on|stick (?:to|with)|let['’]s (?:use|go with|keep)"
    r"|we(?:['’]ll| will)? (?:use|keep|go with|call|name)|is called|are called|only (?:if|when|after|by|for|the)"
    r"|(?:at most|at least|no more than|no longer|not allowed)|the rule is|named|default(?:s)? to|prefer)\b"
    r"|必须|务必|不要|不得|不能|不可|不准|禁止|严禁|只能|只许|一律|统一|决定|定为|定成|约定|规定|采用|保留|不再"
    r"|以.{1,20}为准|应当|应该|要求|绝不|永远|始终|从此|就叫|名叫|叫做|改名|设定为|默认",
    re.IGNORECASE,
)
_CHANGE = late_pattern(
    r"\b(?:instead(?: of)?|rather than|change[ds]? (?:it )?(?:to|from)|switch(?:ed)? to|replaced? (?:by|with)"
    r"|scrap that|forget (?:that|what)|on second thought|not .{1,30}? but|was wrong|correction|renamed?|moved? to"
    r"|chang(?:e|ed|ing) (?:my|our) minds?|after all|from now on|make (?:it|that|them)"
    r"|too (?:low|high|short|long|big|small|many|few|slow|fast|much|little|obvious|late|early))\b"
    r"|\A(?:actually|in fact)\b|\A其实|改为|改成|改用|改到|改回|换成|换为|换人|而不是|推翻|作废|更正|收回|重新[定想]|改名"
    r"|改主意|改变主意|想了一夜|想了想|还是.{1,12}吧|太[长短高低多少大小快慢早晚]了?|太(?:明显|复杂|简单)",
    re.IGNORECASE,
)
_CAUSE = late_pattern(
    r"\b(?:because|root cause|cause[ds]?(?: by)?|due to|the reason|turned out|turns out|that['’]s why|so that"
    r"|the (?:bug|problem|issue|culprit) (?:is|was)|fixed by|fix(?:es|ed)?|resolved by|works now|fails? (?:when|if|since|because|with))\b"
    r"|因为|由于|原因|根因|结论|导致|所以|原来是|症结|修好|解决|修复|真相",
    re.IGNORECASE,
)
_FAILURE = late_pattern(
    r"\b(?:error|exception|traceback|failed|failure|timeout|refused|denied|[45]\d\d (?:error|status))\b"
    r"|报错|失败|异常|出错|超时|拒绝",
    re.IGNORECASE,
)
_FIGURE = late_pattern(
    r"\d[\d,.]*[ ]?(?:ms|s|min|h|hours?|minutes?|seconds?|days?|weeks?|years?|%|percent|[KMG]i?B|bytes?|px|tokens?|words?"
    r"|characters?|lines?|chapters?|rounds?|req(?:uest)?s?|times?|°|km|m\b|cm|kg|yuan|dollars?|字|章|节|人|年|岁|次|天|日|月|"
    r"元|块|两|里|米|公里|页|行|条|个|名|点|分|秒|小时|回|卷|封|枚|号|级)"
    r"|[一二三四五六七八九十百千万两]{1,6}(?:字|章|节|人|年|岁|次|天|日|元|两|里|米|页|条|个|名|点|回|卷|封|枚|号)"
    r"|\b\d{2,}\b|\bv?\d+\.\d+",
)
_CODE = late_pattern(
    r"`[^`\n]{1,80}`|\b[a-z]+_[a-z0-9_]+\b|\b[a-z]+[A-Z]\w+\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b"
    r"|\b[\w.-]+/[\w./-]+\b|(?<!\w)--?[a-z][\w-]+|\b\w+\(\)|\b\w+\.(?:py|ts|js|md|json|toml|yaml|sql|rs|go)\b"
)
_ADDRESS = late_pattern(r"\bhttps?://\S+")
_NAME = late_pattern(
    r"[「『《“\"][^」』》”\"\n]{1,30}[」』》”\"]|(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)?"
)
_OFFER = late_pattern(
    r"\b(?:anything else|if you (?:like|want|wish)|(?:shall|should) I (?:go on|continue|proceed)|let me know|want me to)\b"
    r"|还有别的|要的话|需要的话|要不要(?:继续|接着)|要(?:继续|接着)",
    re.IGNORECASE,
)
_LOG_LINE = late_pattern(
    r"\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d|(?:INFO|DEBUG|WARN(?:ING)?)\b"
)
_QUESTION = late_pattern(r"[?？]\s*[」』”\"']?\s*\Z|(?:吗|呢)[。.]?\s*\Z")
_SMALL_TALK = late_pattern(
    r"(?:sure|ok(?:ay)?|thanks?|thank you|great|got it|done|will do|sounds good|of course|no problem|perfect|nice|alright"
    r"|hi|hello|hey|good (?:morning|evening)|welcome|you['’]re welcome|enjoy|hm+|one second"
    r"|好的|好|收到|明白|没问题|谢谢|辛苦|可以|行|嗯|当然|你好|您好|不客气|不急)[\s,.!，。！~]*\Z",
    re.IGNORECASE,
)
_REQUEST = late_pattern(
    r"\A(?:(?:please|now|then|and|ok(?:ay)?|hi|also|can you|could you|would you|will you)[ ,]+){0,3}"
    r"(?:rename|format|run|show|read|look|find|search|count|fix|add|try|give|check|open|list|explain|tell me|go on|continue"
    r"|bump|smooth|compare|review|write down|draft)\b"
    r"|\A(?:请|帮我|麻烦|再|先)*(?:看看|看一下|看一看|跑|数一下|数数|查|整理|格式化|念|列|写一下|试|打开|继续|接着)"
    r"|一下[。.]?\Z|\A把.{1,40}(?:看看|顺一顺)",
    re.IGNORECASE,
)
_INTENTION = late_pattern(
    r"\b(?:next(?: step)?(?:,| is|:| I| we)|I(?:['’]ll| will| am going to)|we(?:['’]ll| will)|then I|remaining|still (?:to do|need)"
    r"|to ?do|left to do|after that|tomorrow)\b|接下来|下一步|然后|随后|还要|还需|待办|剩下|下一章|之后再|明天",
    re.IGNORECASE,
)
_ENDS_IN_QUOTATION = late_pattern(r"(?<![。！？!?…])[」』]+\s*\Z")
_NUMERAL = late_pattern(r"\d[\d,.]*|[一二三四五六七八九十百千万两]+")
_WORD = late_pattern(r"[A-Za-z][A-Za-z0-9_']+|[\u3400-\u9fff]+")
_COMMON = frozenset(
    re.findall(
        r"\S+",
        """
        the a an and or but of to in on at for with by from as is are was were be been it its
        this that these those we you i they he she will would should must shall can could may
        might not no do does did so if then than use uses used using also just only when what
        which who how there here have has had our your their into out up all any each every more
        most some such very per via let lets don't won't instead rather always never i'll i'm
        i've i'd we'll we're we've it's that's there's one now please about after before because
        make made get got still well like too much many can't doesn't isn't didn't okay yes him
        her his them my me us
        """,
    )
)


class Fact(NamedTuple):
    """A sentence worth keeping, with its weight, its round and the terms of its subject.

    `changes` says that the sentence itself corrects something, `corrects` that its round does.
    `topic` is what its round is about, with numbers.
    """

    text: str
    weight: float
    round: int
    terms: frozenset[str]
    changes: bool = False
    corrects: bool = False
    topic: frozenset[str] = frozenset()


def facts_in(text: str, round_index: int, *, by_user: bool) -> list[Fact]:
    """Return the sentences of a message that are worth keeping, in their order."""
    found: list[Fact] = []
    has_log_line = False
    for sentence in _sentences(text[:LONGEST_TEXT]):
        weight = weigh(sentence, by_user=by_user)
        if weight >= LEAST_WEIGHT and _LOG_LINE.match(sentence):
            # Of a log one line is kept; the others are in the archive.
            weight, has_log_line = (0.0 if has_log_line else weight), True
        if weight >= LEAST_WEIGHT:
            shown = clip(sentence, LONGEST_SENTENCE)
            changes = _CHANGE.search(sentence[:LONGEST_WEIGHED]) is not None
            found.append(Fact(shown, weight, round_index, topic_terms(shown), changes))
    best = sorted(found, key=lambda fact: -fact.weight)[:MOST_PER_MESSAGE]
    return [fact for fact in found if fact in best]


def facts_of_round(request: str, replies: Sequence[str], round_index: int) -> tuple[Fact, ...]:
    """Return the facts of a round, with what the round is about and whether it corrects."""
    found = facts_in(request, round_index, by_user=True)
    for reply in replies:
        found += facts_in(reply, round_index, by_user=False)
    if not found:
        return ()
    topic = topic_of(" ".join(text[:LONGEST_TOPIC] for text in (request, *replies)))
    corrects = corrects_earlier(request)
    return tuple(fact._replace(topic=topic, corrects=corrects) for fact in found)


def weigh(sentence: str, *, by_user: bool) -> float:
    """Return the weight of one sentence; from `LEAST_WEIGHT` on it is worth keeping.

    A user's statement weighs more than its words do: people, places and rules of a story are simply
    stated. A request to do something now weighs less.
    """
    if len(sentence) < LEAST_SENTENCE or _SMALL_TALK.match(sentence) or _QUESTION.search(sentence):
        return 0.0
    head = _ADDRESS.sub(" ", sentence[:LONGEST_WEIGHED])
    if _LOG_LINE.match(head):
        return LEAST_WEIGHT if _FAILURE.search(head) else 0.0
    weight = 2.0 if _DECISION.search(head) else 0.0
    weight += 2.0 if _CHANGE.search(head) else 0.0
    weight += 2.0 if _CAUSE.search(head) else 0.0
    weight += 1.0 if _FAILURE.search(head) else 0.0
    terms = len(topic_terms(head))
    if _FIGURE.search(head):
        weight += 1.0 if terms >= TERMS_BESIDE_FIGURE else 0.5
    weight += 0.75 if _CODE.search(head) else 0.0
    weight += 0.75 if _NAME.search(head) else 0.0
    weight += min(1.0, terms / TERMS_OF_FULL_WEIGHT)
    if by_user:
        weight += REQUEST_WEIGHT if _REQUEST.search(head) else STATEMENT_WEIGHT
    return weight


def merge_facts(before: Sequence[Fact], new: Iterable[Fact]) -> tuple[Fact, ...]:
    """Add facts; each replaces earlier ones that it repeats or corrects. The lightest leave."""
    facts = list(before)
    corrected = -1
    for fact in new:
        if fact.corrects and fact.round != corrected:
            corrected = fact.round
            facts = _without_corrected(facts, fact)
        facts = [known for known in facts if not _replaces(fact, known)]
        facts.append(fact)
    if len(facts) > MOST_FACTS:
        kept = set(sorted(facts, key=_rank)[:MOST_FACTS])
        facts = [fact for fact in facts if fact in kept]
    return tuple(facts)


def drop_corrected(facts: Sequence[Fact], later: Iterable[Fact]) -> list[Fact]:
    """Return facts together with later ones, without those that a later one corrects.

    A later fact on the same subject that corrects nothing removes none.
    """
    kept_facts = list(facts)
    corrected = -1
    for fact in later:
        if fact.corrects and fact.round != corrected:
            corrected = fact.round
            kept_facts = _without_corrected(kept_facts, fact)
        if fact.corrects or fact.changes:
            kept_facts = [known for known in kept_facts if not _replaces(fact, known)]
        kept_facts.append(fact)
    return kept_facts


def _without_corrected(facts: Sequence[Fact], correction: Fact) -> list[Fact]:
    """Drop the facts of the round that a correction is about.

    It is the one with which the correction shares most words that few other rounds have.
    """
    topics = {fact.round: fact.topic for fact in facts if fact.round < correction.round}
    frequency = Counter(term for topic in topics.values() for term in topic)
    shared = {index: topic & correction.topic for index, topic in topics.items()}
    links = {
        index: sum(1 / frequency[term] for term in terms)
        for index, terms in shared.items()
        if len(terms) >= LEAST_SHARED_TOPIC * len(topics[index])
    }
    closest = max(links, key=lambda index: (links[index], index), default=-1)
    if links.get(closest, 0) < LEAST_LINK:
        return list(facts)
    return [fact for fact in facts if fact.round != closest]


def best_facts(facts: Sequence[Fact], most: int) -> list[str]:
    """Return the texts of the heaviest facts, the newest first."""
    chosen = sorted(sorted(facts, key=_rank)[:most], key=lambda fact: -fact.round)
    return [fact.text for fact in chosen]


def intention_in(text: str) -> str:
    """Return the last sentence that says what comes next; nothing if none does."""
    found = _sentences(text[-LONGEST_TEXT:])
    stated = [s for s in found if _INTENTION.search(s) and not _OFFER.search(s)]
    return clip(stated[-1], LONGEST_SENTENCE) if stated else ""


def question_in(text: str) -> str:
    """Return the question that a text ends with; nothing if it ends otherwise."""
    found = list(_sentences(text[-LONGEST_TEXT:]))
    asked = [s for s in found[-2:] if _QUESTION.search(s) and not _OFFER.search(s)]
    return clip(asked[-1], LONGEST_SENTENCE) if asked else ""


def corrects_earlier(text: str) -> bool:
    """Return whether a request changes what was said before."""
    return any(
        _CHANGE.search(sentence)
        for sentence in _sentences(text[:LONGEST_TOPIC])
        if not _REQUEST.search(sentence) and not _QUESTION.search(sentence)
    )


def opening_of(text: str, most: int) -> str:
    """Return the first sentences of a text, without a greeting, in so many characters."""
    opening = ""
    for sentence in _sentences(text[: 4 * most]):
        if opening and len(opening) + len(sentence) >= most:
            break
        if not _SMALL_TALK.match(sentence):
            opening = f"{opening} {sentence}" if opening else sentence
    return one_line(opening or text[: 4 * most], most)


def topic_terms(text: str) -> frozenset[str]:
    """Return what a text is about: its words without common ones, and pairs of Han characters.

    What it says about that, numbers and words such as "must", is left out: two statements about
    one thing have the same terms.
    """
    return _words(_NUMERAL.sub(" ", _CHANGE.sub(" ", _DECISION.sub(" ", text))))


def topic_of(text: str) -> frozenset[str]:
    """Return what a round is about: its words and its numbers."""
    numbers = (each for each in _NUMERAL.findall(text) if each.isascii() or len(each) > 1)
    return _words(_CHANGE.sub(" ", text)) | frozenset(numbers)


def _words(text: str) -> frozenset[str]:
    terms: set[str] = set()
    for word in _WORD.findall(text.lower()):
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
    of_smaller = shared / min(len(new.terms), len(known.terms))
    of_both = shared / len(new.terms | known.terms)
    if of_both >= SAME_WORDS or new.round == known.round:
        return of_both >= SAME_WORDS
    least = SAME_SUBJECT_IF_CHANGED if new.changes else SAME_SUBJECT
    return of_both >= least and of_smaller >= 0.5


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text, line by line, without code blocks and bullets."""
    for line in _outside_fences(text.splitlines()):
        flat = one_line(_BULLET.sub("", line), LONGEST_TEXT)
        for sentence in whole_sentences(flat):
            if stripped := sentence.strip().strip("*"):
                yield stripped


def whole_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of one line; a quotation within a sentence does not end it."""
    start = 0
    for end in (*sentences(text, 0, len(text)), len(text)):
        if end < len(text) and _ENDS_IN_QUOTATION.search(text[max(start, end - 8) : end]):
            continue
        if start < end:
            yield text[start:end]
        start = end


def _outside_fences(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines that stand in no code block; a fence that is never closed begins none."""
    fences = [number for number, line in enumerate(lines) if _FENCE.match(line)]
    start = 0
    for first, last in zip(fences[::2], fences[1::2], strict=False):
        yield from lines[start:first]
        start = last + 1
    yield from lines[start:]
