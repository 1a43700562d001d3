"""Three novels with an author at work in them, and what the engine must find for that author.

Each question is asked in a chapter and answered by a passage of an earlier one, known from the
story and not from what the index finds. Two novels are those of `../shared/corpus`; the modern
Chinese one was written for this. The cards are made up.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from testing.retrieval_questions import CORPUS as CLASSICAL_CORPUS

ENGLISH_CORPUS = CLASSICAL_CORPUS.with_name("pride-and-prejudice.txt")
MODERN_TEXT = Path(__file__).with_name("modern_novel.txt")

# An author's last sentence, which must bring the passage that it is about.
ALLUSION = "allusion"


class StoryQuestion(NamedTuple):
    """What an author writes or asks in the chapter `at`, and words of the passage that answers.

    `chapter` is where that passage is.
    """

    kind: str
    at: int
    query: str
    chapter: int
    quote: str


class StoryNovel(NamedTuple):
    """A novel in chapters, its questions, and cards with their front matter, by name.

    With the allusions among the questions and with `further` ones the thresholds were chosen.
    `held_out` were written down before that and measured afterwards. `unseen` were written later,
    before anything was changed to fix those of `held_out` that failed.
    """

    name: str
    chapters: list[str]
    questions: tuple[StoryQuestion, ...]
    further: tuple[StoryQuestion, ...]
    held_out: tuple[StoryQuestion, ...]
    unseen: tuple[StoryQuestion, ...]
    cards: Mapping[str, str]
    protagonists: Mapping[str, tuple[str, ...]]


def novels() -> list[StoryNovel]:
    """Return the novels that are there."""
    asked = (MODERN, MODERN_FURTHER, MODERN_HELD_OUT, MODERN_UNSEEN)
    made = [StoryNovel("modern Chinese", modern(), *asked, {}, {})]
    if CLASSICAL_CORPUS.is_file():
        classical = _split(CLASSICAL_CORPUS, r"(?m)^(?=第\d+章 )")
        asked = (CLASSICAL, CLASSICAL_FURTHER, CLASSICAL_HELD_OUT, CLASSICAL_UNSEEN)
        made.append(StoryNovel("红楼梦", classical, *asked, CHINESE_CARDS, CHINESE_PEOPLE))
    if ENGLISH_CORPUS.is_file():
        english = _split(ENGLISH_CORPUS, r"(?m)^(?=Chapter \d+)")
        name = "Pride and Prejudice"
        asked = (ENGLISH, ENGLISH_FURTHER, ENGLISH_HELD_OUT, ENGLISH_UNSEEN)
        made.append(StoryNovel(name, english, *asked, ENGLISH_CARDS, ENGLISH_PEOPLE))
    return made


def modern() -> list[str]:
    """Return the chapters of the modern Chinese novel."""
    return _split(MODERN_TEXT, r"(?m)^(?=第\d+章 )")


def _split(path: Path, heading: str) -> list[str]:
    text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    return re.split(heading, text)[1:]


def holds(text: str, quote: str) -> bool:
    """Return whether a text holds the words of a quote, however its lines are broken."""
    return " ".join(quote.split()) in " ".join(text.split())


CLASSICAL = (
    StoryQuestion(ALLUSION, 60, "他想起焦大那日醉后满口混骂，连爬灰的话都嚷了出来。", 7, "爬灰"),
    StoryQuestion(ALLUSION, 50, "那面风月宝鉴，正面原是照不得的。", 12, "风月宝鉴"),
    StoryQuestion(ALLUSION, 62, "那年他编的小耗子偷香芋的故典，至今想来好笑。", 19, "小耗子"),
    StoryQuestion(ALLUSION, 76, "梅花上收的雪，原盛在一个鬼脸青的花瓮里。", 41, "鬼脸青"),
    StoryQuestion(ALLUSION, 84, "那件孔雀金线的氅衣，是晴雯病中挣着命补好的。", 52, "孔雀金线"),
    StoryQuestion(ALLUSION, 90, "他还记得那只金西洋自行船，被掖在被里不许人动。", 57, "自行船"),
    StoryQuestion("word", 30, "冷香丸", 7, "冷香丸"),
    StoryQuestion("word", 64, "茄鲞", 41, "茄鲞"),
    StoryQuestion("name", 100, "乌进孝", 53, "乌进孝"),
    StoryQuestion("name", 60, "张道士", 29, "张道士"),
    StoryQuestion("event", 55, "刘老老被插了一头的花", 40, "插了一头"),
    StoryQuestion("event", 40, "晴雯把扇子撕成两半", 31, "扇子"),
    StoryQuestion("paraphrase", 80, "丫头哄他说姑娘要回苏州去", 57, "苏州"),
    StoryQuestion("paraphrase", 90, "风雨的秋夜，她对着窗写了一首诗", 45, "秋窗"),
)
ENGLISH = (
    StoryQuestion(
        ALLUSION,
        30,
        "She remembered her petticoat, six inches deep in mud, and how they had laughed.",
        8,
        "six inches deep in mud",
    ),
    StoryQuestion(
        ALLUSION,
        37,
        "Once he had called her tolerable, but not handsome enough to tempt him.",
        3,
        "not handsome enough to tempt me",
    ),
    StoryQuestion(
        ALLUSION,
        40,
        "The chimney-piece that had cost eight hundred pounds was praised once more.",
        16,
        "chimney-piece alone had cost eight hundred pounds",
    ),
    StoryQuestion(
        ALLUSION,
        50,
        "Her uncle spoke again of the trout, and of the fishing tackle that had been offered.",
        43,
        "fishing tackle",
    ),
    StoryQuestion(
        ALLUSION,
        45,
        "At Ramsgate, with Mrs. Younge to help him, he had almost succeeded.",
        35,
        "to Ramsgate; and thither also went Mr. Wickham",
    ),
    StoryQuestion(
        ALLUSION,
        33,
        "Somebody had left Fordyce's Sermons upon the table.",
        14,
        "he chose Fordyce's Sermons",
    ),
    StoryQuestion("word", 30, "shoe-roses", 17, "shoe-roses"),
    StoryQuestion("word", 20, "white soup", 11, "white soup"),
    StoryQuestion("word", 25, "backgammon", 14, "backgammon"),
    StoryQuestion("word", 12, "a plain dish and a ragout", 8, "prefer a plain dish to a ragout"),
    StoryQuestion("name", 40, "Sir Lewis de Bourgh", 13, "widow of Sir Lewis de Bourgh"),
    StoryQuestion("name", 55, "Haggerston", 49, "Haggerston"),
    StoryQuestion("name", 58, "Mrs. Reynolds the housekeeper", 43, "Mrs. Reynolds"),
    StoryQuestion("name", 50, "Mrs. Jenkinson", 28, "Mrs. Jenkinson"),
    StoryQuestion(
        "event",
        30,
        "Mr. Collins says that young ladies usually reject the man they mean to accept",
        19,
        "it is usual with young ladies to reject the addresses",
    ),
    StoryQuestion(
        "event",
        50,
        "Darcy tells Elizabeth how ardently he admires and loves her",
        34,
        "how ardently I admire and love you",
    ),
    StoryQuestion(
        "event",
        59,
        "Lady Catherine asks whether the shades of Pemberley are to be polluted",
        56,
        "shades of Pemberley",
    ),
    StoryQuestion(
        "paraphrase", 20, "the mother wants her to ride because it may rain", 7, "likely to rain"
    ),
    StoryQuestion(
        "paraphrase",
        50,
        "she buys an ugly bonnet and means to take it apart",
        39,
        "I have bought this bonnet",
    ),
    StoryQuestion(
        "paraphrase",
        55,
        "his debts come to more than a thousand pounds",
        48,
        "more than a thousand pounds would be necessary",
    ),
)
MODERN = (
    StoryQuestion(ALLUSION, 12, "她又想起那张底片，一座没有桥面的桥。", 1, "没有桥面的桥"),
    StoryQuestion(ALLUSION, 13, "副驾驶上那半盒板栗，到底是谁买的？", 3, "半盒没吃完的板栗"),
    StoryQuestion(ALLUSION, 14, "修表匠的女儿总得有一只不修的表。", 6, "一只不修的表"),
    StoryQuestion(ALLUSION, 15, "三条腿的狗又在门房外面叫。", 10, "三条腿的狗"),
    StoryQuestion(ALLUSION, 16, "收据背面那行铅笔字，她一直记得。", 9, "一行铅笔字"),
    StoryQuestion(ALLUSION, 16, "铁皮青蛙的肚子底下刻着三个字。", 5, "何记修"),
    StoryQuestion("name", 12, "罗八", 2, "罗八"),
    StoryQuestion("name", 15, "小段", 14, "小段"),
    StoryQuestion("name", 16, "邵培礼", 9, "邵培礼"),
    StoryQuestion("word", 9, "雨靴", 1, "雨靴"),
    StoryQuestion("word", 15, "定影液", 13, "定影液"),
    StoryQuestion("word", 14, "灯鱼", 8, "灯鱼"),
    StoryQuestion("event", 12, "有人砸开冲印店，罗八摔断了腿", 7, "消防斧"),
    StoryQuestion("event", 16, "弟弟用硬币变戏法，叫孩子们不要上学", 14, "明天不要来上学"),
    StoryQuestion("event", 13, "退休前的警察说有人来查过一个车牌", 3, "尾号是七七三"),
    StoryQuestion("paraphrase", 13, "不说话的摄影师替人照相，只收鸭蛋", 11, "只要鸭蛋"),
    StoryQuestion("paraphrase", 15, "上报的钢筋比真正用的多得多", 13, "进场的是十一吨"),
    StoryQuestion("paraphrase", 14, "他从高处数着树开了几次花，看着病床", 12, "泡桐开了十五次花"),
    StoryQuestion("paraphrase", 15, "他说出事那天在给母亲守灵", 8, "给我母亲守灵"),
)
CLASSICAL_FURTHER = (
    StoryQuestion(
        ALLUSION, 75, "头一回进府时，老老听见柱子上那匣子当的一声，唬得直展眼。", 6, "金钟"
    ),
    StoryQuestion(ALLUSION, 65, "芸儿当年买冰片麝香的银子，还是那醉汉倪二借的。", 24, "冰片、麝香"),
    StoryQuestion(ALLUSION, 80, "挨打那日，偏是个耳聋的婆子，把要紧听成了跳井。", 33, "跳井"),
    StoryQuestion(ALLUSION, 88, "薛大爷在苇子坑里喝脏水的事，底下人至今当笑话讲。", 47, "苇"),
    StoryQuestion(ALLUSION, 71, "那日湘云吃醉了睡在山石上，芍药花落了一身。", 62, "芍药花飞了一身"),
    StoryQuestion(
        ALLUSION, 95, "那个绣着妖精打架的香囊，原是傻大姐掏促织时捡着的。", 73, "妖精打架"
    ),
    StoryQuestion(ALLUSION, 58, "不过是二十把旧扇子，弄得石呆子家破人亡。", 48, "石呆子"),
    StoryQuestion(
        ALLUSION, 105, "抄检那夜，三姑娘扬手就给了王善保家的一个嘴巴。", 74, "王善保家的"
    ),
    StoryQuestion(ALLUSION, 40, "他还记得乡下那个纺线的二丫头，抱着小孩子站在路边。", 15, "二丫头"),
    StoryQuestion(
        ALLUSION, 110, "那夜占花名儿，宝钗掣着的是一枝牡丹，任是无情也动人。", 63, "任是无情也动人"
    ),
)
ENGLISH_FURTHER = (
    StoryQuestion(
        ALLUSION,
        20,
        "Miss Bingley, who had once begged to mend his pen for him, was silent.",
        10,
        "mend it for you",
    ),
    StoryQuestion(
        ALLUSION,
        26,
        "Mary would still be singing, had her father not said that she had delighted them enough.",
        18,
        "You have delighted us long enough",
    ),
    StoryQuestion(
        ALLUSION,
        38,
        "He counted the windows for them, and told what the glazing had cost Sir Lewis.",
        29,
        "enumeration of the windows",
    ),
    StoryQuestion(
        ALLUSION,
        35,
        "Charlotte had seen him from an upper window, and met him by accident in the lane.",
        22,
        "meet him accidentally in the lane",
    ),
    StoryQuestion(
        ALLUSION,
        46,
        "He had danced only four dances, though gentlemen were scarce.",
        31,
        "only four dances",
    ),
    StoryQuestion(
        ALLUSION,
        52,
        "It was like the salad and cucumber for which the others had to lend the money.",
        39,
        "salad and cucumber",
    ),
    StoryQuestion(
        ALLUSION,
        55,
        "Jane had kept that sheet of elegant, hot-pressed paper in its envelope.",
        21,
        "hot-pressed",
    ),
    StoryQuestion(
        ALLUSION,
        59,
        "In her fancy Lydia had sat beneath a tent, flirting with six officers at once.",
        41,
        "six officers at once",
    ),
    StoryQuestion(
        ALLUSION,
        48,
        "Her mother used to say that they dined with four-and-twenty families.",
        9,
        "four-and-twenty families",
    ),
    StoryQuestion(
        ALLUSION,
        60,
        "Her aunt wished for a low phaeton and a pair of ponies, to go round the park.",
        52,
        "low phaeton",
    ),
)
MODERN_FURTHER = (
    StoryQuestion(ALLUSION, 11, "纪平说过，那天他值夜班，没有替父亲查车牌。", 3, "让他第二天再来"),
    StoryQuestion(ALLUSION, 15, "罗八左手缺了两根手指，底片照样夹得很稳。", 2, "左手缺了两根手指"),
    StoryQuestion(ALLUSION, 16, "那天晚上，是守采石场的人划船送走了父亲。", 10, "划船把他送到对岸"),
    StoryQuestion(ALLUSION, 14, "一天四十斤土豆，弟弟的手上全是口子。", 4, "四十斤土豆"),
    StoryQuestion(ALLUSION, 13, "学生都爱学他用左手写板书，字往右下斜。", 8, "粉笔字往右下斜"),
    StoryQuestion(ALLUSION, 16, "鸭棚每翻修一次，他就把抽屉挪一回。", 13, "每次都跟着挪一回"),
)
CLASSICAL_HELD_OUT = (
    StoryQuestion(
        ALLUSION, 55, "他曾在南华经后头续了几句焚花散麝的话，被颦儿取笑。", 21, "焚花散麝"
    ),
    StoryQuestion(ALLUSION, 66, "薛蟠行令时说的那个大马猴，满席都笑倒了。", 28, "大马猴"),
    StoryQuestion(ALLUSION, 72, "宝钗开画具单子时，有人说还该要铁锅和生姜。", 42, "生姜"),
    StoryQuestion(
        ALLUSION, 85, "江南甄家也有一个宝玉，还是那年来请安的四个女人说的。", 56, "四个女人"
    ),
    StoryQuestion(ALLUSION, 92, "王道士编的那剂疗妒汤，不过是一个秋梨，二钱冰糖。", 80, "疗妒汤"),
    StoryQuestion(ALLUSION, 100, "君弦忽然崩断的那晚，妙玉听了起身就走。", 87, "君弦"),
    StoryQuestion(ALLUSION, 99, "那箱从虎丘带来的泥人儿里，有一个薛蟠自己的小像。", 67, "虎丘"),
    StoryQuestion(ALLUSION, 45, "翠缕缠着姑娘问什么是阴阳，问得好笑。", 31, "阴阳"),
    StoryQuestion(ALLUSION, 118, "海棠冬天里开了花，探春那时就想必非好兆。", 94, "必非好兆"),
    StoryQuestion(ALLUSION, 77, "为一碗炖鸡蛋，司棋带人把小厨房砸了。", 61, "鸡蛋"),
)
ENGLISH_HELD_OUT = (
    StoryQuestion(
        ALLUSION,
        25,
        "A single man with four or five thousand a year had been thought a fine thing for the girls.",
        1,
        "four or five thousand a year",
    ),
    StoryQuestion(
        ALLUSION,
        44,
        "Three times he had met her, as if by chance, in her favourite walk in the park.",
        33,
        "favourite haunt",
    ),
    StoryQuestion(
        ALLUSION,
        57,
        "Her mother had kept her room, with tremblings and flutterings and spasms in her side.",
        47,
        "such flutterings",
    ),
    StoryQuestion(
        ALLUSION,
        36,
        "Every savage can dance, he had told Sir William at the Lucases.",
        6,
        "Every savage can dance",
    ),
    StoryQuestion(
        ALLUSION,
        53,
        "She had let down the side-glass so that William Goulding might see the ring.",
        51,
        "William Goulding",
    ),
    StoryQuestion(
        ALLUSION,
        28,
        "The ladies had laughed heartily at an uncle who lived near Cheapside.",
        8,
        "near Cheapside",
    ),
    StoryQuestion(
        ALLUSION,
        42,
        "Lady Catherine found fault with the furniture, and thought the joints of meat too large.",
        30,
        "too large",
    ),
    StoryQuestion(
        ALLUSION,
        61,
        "Her mother was never to see her again, if she did not marry Mr. Collins.",
        20,
        "will never see you again",
    ),
    StoryQuestion(
        ALLUSION,
        58,
        "Jane had happened to look round, and to smile, and he placed himself by her.",
        54,
        "placed himself by her",
    ),
    StoryQuestion(
        ALLUSION,
        27,
        "He had known all about her thousand pounds in the four per cents.",
        19,
        "four per cents",
    ),
)
MODERN_HELD_OUT = (
    StoryQuestion(ALLUSION, 12, "登记簿上那一行写着，取件人未到。", 2, "取件人未到"),
    StoryQuestion(ALLUSION, 16, "真东西原来就压在药水桶底下。", 7, "药水桶底下"),
    StoryQuestion(ALLUSION, 13, "外婆把粮票和户口本收在同一只饼干盒里。", 5, "饼干盒"),
    StoryQuestion(ALLUSION, 15, "锡纸里包着的另外半卷，她等了十八年。", 6, "锡纸"),
    StoryQuestion(ALLUSION, 14, "绳子上夹着的照片，全是同一棵树。", 11, "几十张照片"),
    StoryQuestion(ALLUSION, 16, "三楼的走廊塌了一段，幸好楼里没有人。", 14, "走廊塌了一段"),
)
CLASSICAL_UNSEEN = (
    StoryQuestion(
        ALLUSION, 70, "老太太说过的那个笑话，第十个媳妇嘴巧，是因为吃了猴儿尿。", 54, "猴儿尿"
    ),
    StoryQuestion(ALLUSION, 60, "挨打之后送来的那两条旧手帕，她连夜在灯下题了三首。", 34, "绢子"),
    StoryQuestion(ALLUSION, 40, "秦钟临终时，那些鬼判一听宝玉来了，自己先慌了手脚。", 16, "鬼判"),
    StoryQuestion(ALLUSION, 90, "玉钏儿只顾看人，把一碗莲叶羹泼在他手上。", 35, "汤泼"),
    StoryQuestion(ALLUSION, 101, "晴雯咬下的那两管指甲，他一直收着。", 77, "葱管"),
    StoryQuestion(ALLUSION, 65, "那年吃螃蟹，平儿失手抹了凤姐一脸蟹黄。", 38, "蟹黄"),
    StoryQuestion(ALLUSION, 48, "北静王给的香串他当宝贝转赠，她却嫌是臭男人拿过的。", 16, "臭男人"),
    StoryQuestion(ALLUSION, 95, "香菱那条石榴裙子沾了泥水，是袭人拿自己的换下来的。", 62, "石榴"),
    StoryQuestion(ALLUSION, 112, "藕官在杏子树下烧纸，亏他替她圆了谎。", 58, "烧纸"),
    StoryQuestion(ALLUSION, 84, "三姐儿把那口雌锋往颈上只一横，就再也救不转了。", 66, "项上一横"),
)
ENGLISH_UNSEEN = (
    StoryQuestion(
        ALLUSION,
        30,
        "He was known to prepare his little elegant compliments beforehand.",
        14,
        "little elegant compliments",
    ),
    StoryQuestion(
        ALLUSION,
        40,
        "She had once declared that she could have forgiven his pride, if he had left her own alone.",
        5,
        "easily forgive",
    ),
    StoryQuestion(
        ALLUSION,
        34,
        "To be noticed by him, Miss Bingley had made her walk up and down the room with her.",
        11,
        "turn about the room",
    ),
    StoryQuestion(
        ALLUSION,
        21,
        "Mary, deep in her thorough bass and her extracts, had nothing new to tell them but morality.",
        12,
        "thorough-bass",
    ),
    StoryQuestion(
        ALLUSION,
        41,
        "A girl likes to be crossed in love now and then, her father had told her.",
        24,
        "crossed in love",
    ),
    StoryQuestion(
        ALLUSION,
        42,
        "What were men, she had cried, compared to rocks and mountains!",
        27,
        "rocks and mountains",
    ),
    StoryQuestion(
        ALLUSION,
        60,
        "Her Ladyship had found a prettyish sort of wilderness on one side of the lawn.",
        56,
        "prettyish",
    ),
    StoryQuestion(
        ALLUSION,
        53,
        "Fifty miles of good road he had thought a very easy distance from one's family.",
        32,
        "easy distance",
    ),
    StoryQuestion(
        ALLUSION,
        56,
        "Her mother would have bought calico and muslin and cambric that very day.",
        49,
        "calico",
    ),
    StoryQuestion(
        ALLUSION,
        58,
        "The housekeeper had known him since he was four years old, and never had a cross word.",
        43,
        "cross word",
    ),
)
MODERN_UNSEEN = (
    StoryQuestion(ALLUSION, 12, "罗八退回来的那十块钱，她还欠着。", 2, "退回来十块"),
    StoryQuestion(ALLUSION, 13, "那把黑伞断了一根伞骨。", 7, "断了一根伞骨"),
    StoryQuestion(ALLUSION, 11, "四百多条里，她认出了那只停住的钟。", 5, "停在四点十分的钟"),
    StoryQuestion(ALLUSION, 15, "聋子管理员在纸上写字，笔画很重。", 9, "笔画很重"),
    StoryQuestion(ALLUSION, 14, "他在桥底下拍鱼鹰，什么都拍到了。", 10, "拍鱼鹰"),
    StoryQuestion(ALLUSION, 16, "千斤顶撬开的抽屉里，纸都糊在一起。", 13, "千斤顶"),
    StoryQuestion(ALLUSION, 10, "城西砖厂的烟囱，父亲带她拍过一回。", 1, "拍烟囱"),
    StoryQuestion(ALLUSION, 11, "护士总把母亲排在靠窗第三张床。", 4, "靠窗的第三张"),
    StoryQuestion(ALLUSION, 13, "毕业照上每个人都睁着眼。", 8, "每个人都睁着眼"),
    StoryQuestion(ALLUSION, 16, "倒闭宾馆的电梯停在三层，她一直爬到天台。", 12, "电梯停在三层"),
)

_CHINESE_NAMES = (
    "贾宝玉 林黛玉 薛宝钗 王熙凤 史湘云 贾探春 贾迎春 贾惜春 贾元春 秦可卿 李纨 妙玉 贾母 贾政 王夫人 贾琏"
    " 贾珍 贾蓉 贾赦 邢夫人 尤氏 尤二姐 尤三姐 柳湘莲 薛姨妈 薛蟠 香菱 袭人 晴雯 麝月 紫鹃 雪雁 平儿 鸳鸯"
    " 司棋 赵姨娘 贾环 刘老老 贾雨村 甄士隐 冷子兴 焦大"
)
_CHINESE_ALIASES = {"王熙凤": "凤姐, 凤姐儿", "贾母": "老太太", "贾宝玉": "宝二爷"}
CHINESE_CARDS = {
    name: f"---\nname: {name}\naliases: [{_CHINESE_ALIASES.get(name, '')}]\n---\n"
    f"{name}：年纪、相貌、性情、来历、口吻，作者都在这里写下。说话先想三分，待人有亲有疏，"
    "心里的事不轻易说，一旦说了便不改口；最怕人提旧事，最喜欢雨后的园子。\n"
    for name in _CHINESE_NAMES.split()
}
CHINESE_PEOPLE = {
    "贾宝玉": ("宝玉",),
    "林黛玉": ("黛玉",),
    "薛宝钗": ("宝钗",),
    "王熙凤": ("熙凤", "凤姐"),
}
_ENGLISH_NAMES = (
    "Elizabeth Bennet, Jane Bennet, Mary Bennet, Catherine Bennet, Lydia Bennet, Fitzwilliam Darcy,"
    " Georgiana Darcy, Charles Bingley, Caroline Bingley, Louisa Hurst, George Wickham,"
    " William Collins, Charlotte Lucas, Maria Lucas, William Lucas, Edward Gardiner,"
    " Catherine de Bourgh, Anne de Bourgh, Colonel Forster, Harriet Forster, Mrs. Phillips,"
    " Mrs. Reynolds, Mrs. Younge, Mrs. Jenkinson, Captain Denny, Mary King, Mr. Hurst, Mrs. Hill"
)
_ENGLISH_ALIASES = {
    "Fitzwilliam Darcy": "Mr. Darcy",
    "Charles Bingley": "Mr. Bingley",
    "Catherine de Bourgh": "Lady Catherine",
    "Catherine Bennet": "Kitty",
    "Elizabeth Bennet": "Lizzy, Eliza",
}
ENGLISH_CARDS = {
    name: f"---\nname: {name}\naliases: [{_ENGLISH_ALIASES.get(name, '')}]\n---\n"
    f"{name}: age, looks, temper, fortune and manner of speech, as the author has settled them."
    " Speaks seldom of the past, forgives slowly, likes long walks better than cards, and never"
    " takes back a word that was said before company.\n"
    for name in _ENGLISH_NAMES.split(", ")
}
ENGLISH_PEOPLE = {
    "Elizabeth Bennet": ("Elizabeth",),
    "Fitzwilliam Darcy": ("Mr. Darcy",),
    "Jane Bennet": ("Jane",),
    "George Wickham": ("Wickham",),
}
