"""Questions about the 120 chapters of 红楼梦, and the chapter that must be among the answers.

The chapters are known from the story, not from what the index finds. Spellings are those of the
edition in `../shared/corpus`, where the old woman from the country is 刘老老.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from creonowd.model import Model

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus" / "hongloumeng.txt"


class Question(NamedTuple):
    kind: str
    query: str
    chapter: int


class QuestionScore(Model):
    """How well a set of questions was answered; chapters are looked for among the passages."""

    asked: int
    recall_at_5: float
    recall_at_20: float
    reciprocal_rank: float


def chapters() -> list[str]:
    """The chapters of the novel, in order; of a stand-in where the shared corpus is absent."""
    if CORPUS.is_file():
        novel = CORPUS.read_bytes().decode("utf-8-sig")
        return re.split(r"(?m)^(?=第\d+章 )", novel)[1:]
    return stand_in()


def stand_in() -> list[str]:
    """A novel of which only the questions' words are known: each stands in its chapter."""
    filler = "　　众人说了一回闲话，吃了茶，看了一回花，各自散去，一宿无话。\r\n"
    texts = [f"第{number}章\r\n{filler * 40}" for number in range(1, 121)]
    for _, query, chapter in QUESTIONS:
        texts[chapter - 1] += f"　　{query}。\r\n{filler}"
    return texts


def measure(questions: Sequence[Question], answer: Callable[[str], Sequence[int]]) -> QuestionScore:
    """Ask all questions; `answer` gives the chapters of the best passages, best first."""
    places = [_place(answer(question.query), question.chapter) for question in questions]
    return QuestionScore(
        asked=len(places),
        recall_at_5=sum(place <= 5 for place in places) / len(places),
        recall_at_20=sum(place <= 20 for place in places) / len(places),
        reciprocal_rank=sum(1 / place for place in places) / len(places),
    )


def _place(found: Sequence[int], chapter: int) -> float:
    return found.index(chapter) + 1 if chapter in found else float("inf")


NAMES = {
    "冷子兴": 2,
    "冯渊": 4,
    "警幻": 5,
    "板儿": 6,
    "焦大": 7,
    "秦钟": 7,
    "金荣": 9,
    "贾瑞": 12,
    "智能": 15,
    "贾芸": 24,
    "倪二": 24,
    "马道婆": 25,
    "张道士": 29,
    "龄官": 36,
    "傅秋芳": 35,
    "鲍二": 44,
    "柳湘莲": 47,
    "宝琴": 49,
    "乌进孝": 53,
    "藕官": 58,
    "春燕": 59,
    "尤三姐": 66,
    "张华": 68,
    "秋桐": 69,
    "傻大姐": 73,
    "司棋": 74,
    "孙绍祖": 79,
    "王一贴": 80,
    "包勇": 93,
    "何三": 111,
    "甄宝玉": 115,
}
PLACES = {
    "葫芦庙": 1,
    "青埂峰": 1,
    "太虚幻境": 5,
    "馒头庵": 15,
    "铁槛寺": 15,
    "稻香村": 17,
    "滴翠亭": 27,
    "清虚观": 29,
    "梨香院": 36,
    "秋爽斋": 37,
    "栊翠庵": 41,
    "水仙庵": 43,
    "芦雪庭": 50,
    "凹晶馆": 76,
    "天齐庙": 80,
    "散花寺": 101,
    "急流津": 103,
    "陵驿": 120,
}
WORDS = {
    "宫花": 7,
    "灯谜": 22,
    "麒麟": 31,
    "螃蟹": 38,
    "牙牌": 40,
    "鹿肉": 49,
    "茯苓": 60,
    "石榴": 62,
    "九龙": 64,
    "风筝": 70,
    "柳絮": 70,
    "香囊": 73,
    "芙蓉": 78,
    "琴谱": 86,
}
EVENTS = {
    "焦大喝醉了酒骂人": 7,
    "贾瑞被冻了一夜": 12,
    "宝玉挨了板子": 33,
    "晴雯把扇子撕成两半": 31,
    "香菱学做诗": 48,
    "鸳鸯铰头发不嫁": 46,
    "晴雯病中补雀金裘": 52,
    "湘云醉卧石凳": 62,
    "尤二姐吞金自尽": 69,
    "探春打了王善保家的一巴掌": 74,
    "黛玉把诗稿撂在火盆里": 97,
    "妙玉被强盗劫走": 112,
    "巧姐被舅舅卖给外藩": 118,
}
PARAPHRASES = {
    "顽石想到人间走一遭": 1,
    "黛玉初次进府众人都出来相见": 3,
    "道士送来一面镜子只许照背面": 12,
    "姑娘扛着花锄扫落花埋起来": 23,
    "乡下老太婆在园子里吃饭逗大家笑": 40,
    "用梅花上收的雪水烹茶": 41,
    "薛大爷被打得满身泥水": 47,
    "庄头来交租子的单子": 53,
    "丫头哄他说姑娘要回苏州去": 57,
    "两个人深夜在水边对诗": 76,
    "锦衣府的人来查抄家产": 105,
    "雪地里有人披着斗篷向船头下拜": 120,
}
QUESTIONS = [
    Question(kind, query, chapter)
    for kind, asked in (
        ("name", NAMES),
        ("place", PLACES),
        ("word", WORDS),
        ("event", EVENTS),
        ("paraphrase", PARAPHRASES),
    )
    for query, chapter in asked.items()
]
