"""The grammatical person that a constraint asks of the narration, and whether an output has it.

Only the pronouns outside dialogue count, and only a clear case is decided: an output with few of
them, or with both persons side by side, is left to a model.
"""

import re
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

LONGEST_CONSTRAINT = 200
LEAST_EVIDENCE = 3
# How sure it is, by the number of pronouns; no count makes it certain.
CONFIDENCE = ((12, 0.95), (6, 0.9), (LEAST_EVIDENCE, 0.8))
LONGEST_QUOTE = 200


class Person(StrEnum):
    """Who narrates."""

    FIRST = "first"
    THIRD = "third"


class PersonFound(NamedTuple):
    """The person of a narration, a sentence that has it, and how sure that is."""

    person: Person
    start: int
    end: int
    pronouns: int
    confidence: float


_CHINESE_PERSON = {"一": Person.FIRST, "三": Person.THIRD}
_ENGLISH_PERSON = {
    "first": Person.FIRST,
    "1st": Person.FIRST,
    "third": Person.THIRD,
    "3rd": Person.THIRD,
}
_OTHER = {Person.FIRST: Person.THIRD, Person.THIRD: Person.FIRST}

_TEXT = "(?:全文|全书|全篇|通篇|本书|本文|正文|小说|作品|故事|叙述|叙事|旁白|视角|人称)"
_CHINESE = re.compile(
    rf"(?:请?{_TEXT}?(?:中|里)?[，,：:]?)?(?:请|必须|务必|要|应|应当|严格|始终|一律|全程|坚持|统一|只|只能|均|都)*"
    r"(?P<not>不要|不得|不可以|不可|不能|不许|不准|不|避免|禁止|严禁|禁用|切勿|请勿|别)?"
    r"(?:使用|采用|运用|遵循|遵守|保持|坚持|限于|用|以|为|是|按照?|从|出现)?(?:严格的?)?(?:主角的?|主人公的?)?"
    r"第(?P<person>[一三])人称(?:的)?(?:有限|限知|全知|限制)?(?:的)?"
    r"(?:视角|视点|口吻|角度|方式|叙述视角|叙事视角)?(?:来|进行)?"
    r"(?:叙述|叙事|写作|写|讲述|行文|描写|展开)?(?:故事|全文|正文)?[。.！!；;\s]*"
)
_ENGLISH = re.compile(
    r"(?:please\s+)?(?:always\s+|only\s+|strictly\s+)?"
    r"(?P<not>(?:do\s+not|don['’]t|never|must\s+not|avoid|no)\s+)?"
    r"(?:(?:use|using|write|writing|narrate|narrating|tell|keep\s+to|stick\s+to|stay|remain|narration|"
    r"the\s+narration\s+(?:is|must\s+be)|told|written)\s+)?(?:the\s+(?:story|novel|text)\s+)?(?:only\s+)?"
    r"(?:in\s+)?(?:the\s+)?(?:strict(?:ly)?\s+)?(?P<person>first|third|1st|3rd)[\s-]person"
    r"(?:[\s-]+(?:limited|omniscient|singular))?(?:\s+(?:narration|narrative|narrator|pov|perspective|voice"
    r"|point\s+of\s+view))?(?:\s+(?:only|throughout|strictly))*[.!;\s]*",
    re.IGNORECASE,
)

_DIALOGUE = re.compile(
    r"“[^“”\n]*(?:”|$)|「[^「」\n]*(?:」|$)|『[^『』\n]*(?:』|$)|«[^«»\n]*(?:»|$)"
    r'|"[^"\n]*(?:"|$)|‘[^‘\n]*?(?:’(?!\w)|$)'
    r"|(?<!\w)'[^\n]*?(?<=[,.!?…-])'(?!\w)"
    r"|^[ \t\u3000]*(?:#|>|[-–—]).*$",
    re.MULTILINE,
)
_MIND = "(?:暗暗|心里|心中|心想|不禁|忽然|突然|隐约)*(?:想|觉得|知道|感到|感觉|明白|意识到|记得|希望|害怕|后悔|心)"
_FIRST = re.compile(
    r"(?<![自忘小])(?:我|咱|俺)"
    r"|\b(?:I|me|my|My|mine|myself|we|We|us|our|Our|ours|ourselves)\b"
)
_THIRD = re.compile(
    rf"(?:她|(?<![其吉利排维])他(?![人乡日国杀山]))(?P<mind>们?{_MIND})?"
    r"|\b(?:[Hh]e|[Ss]he)\b(?P<thought>\s+(?:thought|felt|knew|wondered|reali[sz]ed|remembered|wanted"
    r"|hoped|feared)\b)?"
    r"|\b(?:[Hh]im|[Hh]is|[Hh]er|hers|himself|herself|[Tt]hey|[Tt]hem|[Tt]heir|themselves)\b"
)
_SENTENCE_END = re.compile(r"[。！？!?\n]|\.(?=\s|$)")


@lru_cache(maxsize=2048)
def forbidden_person(constraint: str) -> Person | None:
    """Return the person that a constraint forbids the narration; None if it is about something else.

    To ask for one is to forbid the other.
    """
    text = constraint.strip()
    if len(text) > LONGEST_CONSTRAINT:
        return None
    if match := _CHINESE.fullmatch(text):
        person = _CHINESE_PERSON[match["person"]]
    elif match := _ENGLISH.fullmatch(text):
        person = _ENGLISH_PERSON[match["person"].lower()]
    else:
        return None
    return person if match["not"] else _OTHER[person]


def find_person(text: str, person: Person) -> PersonFound | None:
    """Return where a text is clearly narrated in this person; None if it is not, or not clearly.

    The narrator of a first-person story speaks of others in the third person too, so that only a
    text without any first person is clearly in the third. What others think nobody but a narrator in
    the third person knows: it counts twice.
    """
    narration = _DIALOGUE.sub(lambda match: " " * len(match[0]), text)
    first = list(_FIRST.finditer(narration))
    third = list(_THIRD.finditer(narration))
    if person is Person.THIRD:
        insights = sum(1 for match in third if match["mind"] or match["thought"])
        count = 0 if first else len(third) + insights
        shown = third
    else:
        count = len(first) if len(first) >= len(third) else 0
        shown = first
    if count < LEAST_EVIDENCE:
        return None
    confidence = next(sure for least, sure in CONFIDENCE if count >= least)
    start, end = _sentence(text, shown[0].start())
    return PersonFound(person, start, end, len(shown), confidence)


def _sentence(text: str, place: int) -> tuple[int, int]:
    """Return where the sentence around a place begins and ends; of a long one, a part."""
    start = max((m.end() for m in _SENTENCE_END.finditer(text, 0, place)), default=0)
    start += len(text[start:place]) - len(text[start:place].lstrip())
    start = max(start, place - LONGEST_QUOTE // 2)
    stop = _SENTENCE_END.search(text, place)
    return start, min(len(text) if stop is None else stop.end(), start + LONGEST_QUOTE)
