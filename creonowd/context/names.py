"""The names that a text mentions, and the parts of names as prose uses them.

Chinese names need no word boundaries, Latin ones do; of names that overlap the longest counts. A
part, 黛玉 of 林黛玉 or Elizabeth of Elizabeth Bennet, counts for a character only if it can mean
nobody else in the project.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Sized
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from creonowd.memo import Memo
from creonowd.tokens.boundaries import additive_parts, settled_end

if TYPE_CHECKING:
    from ahocorasick_rs import AhoCorasick

# The names in a text of up to this many characters are kept for the text as a whole.
LONGEST_KEPT_WHOLE = 32_000
KEPT_TEXTS = 16
MOST_KINDS = 8

Names = frozenset[str]
_FIRST_IDEOGRAPH = "\u2e80"
_COMPOUND = frozenset(
    str.split(
        "欧阳 司马 上官 诸葛 司徒 东方 独孤 南宫 夏侯 尉迟 皇甫 慕容 令狐 长孙 宇文 轩辕 公孙 端木"
        " 百里 东郭 西门 呼延 申屠 太史 淳于 濮阳 钟离 鲜于 闾丘 完颜 耶律 纳兰 拓跋 赫连 澹台"
        " 司空 司寇 万俟 公冶 公羊 公西 宗政 仲孙 太叔 闻人 南门 巫马 漆雕 颛孙 羊舌 左丘 乐正 叶赫"
    )
)
_SURNAMES = frozenset(
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏水窦章云苏潘葛奚范彭郎"
    "鲁韦昌马苗凤花方俞任袁柳酆鲍史唐费廉岑薛雷贺倪汤滕殷罗毕郝邬安常乐于时傅皮卞齐康伍余元卜顾孟平黄"
    "和穆萧尹姚邵湛汪祁毛禹狄米贝明臧计伏成戴谈宋茅庞熊纪舒屈项祝董梁杜阮蓝闵席季麻强贾路娄危江童颜郭"
    "梅盛林刁钟徐邱骆高夏蔡田樊胡凌霍虞万支柯管卢莫经房裘缪干解应宗丁宣邓郁单杭洪包诸左石崔吉龚程嵇邢"
    "裴陆荣翁荀甄曲封储靳段巫乌焦巴弓牧隗山谷车侯伊宁仇栾甘厉戎祖武符刘景詹束龙叶幸司韶黎薄印白蒲邰从"
    "索籍赖卓蔺屠蒙池乔闻党翟谭劳姬申冉桑桂边扈燕尚温庄晏柴瞿阎慕连习容向古易廖庾终居衡步耿满匡文寇广"
    "东殳利蔚越隆师巩聂晁勾敖融冷辛阚那简饶曾关红游权盖益桓公岳帅有亢况郈琴商佘佴伯赏墨哈谯年爱阳佟"
)
# What follows a surname here is no given name: everybody's grandmother is 姥姥.
_TITLES = frozenset(
    str.split(
        "姥姥 奶奶 太太 老爷 夫人 姑娘 先生 公子 小姐 师父 师傅 大人 将军 掌柜 大夫 嬷嬷 妈妈 姨妈 姨娘"
        " 大娘 婶子 嫂子 爷爷 老师 医生 警官 队长 经理 老太 老头 大爷 大叔 大哥 大姐 老板 道长 和尚"
    )
)
_HONORIFICS = frozenset(
    str.split(
        "mr mrs ms miss mx dr prof professor sir lady lord dame madam madame monsieur colonel captain"
        " general major sergeant lieutenant reverend rev father mother brother sister aunt uncle"
        " king queen prince princess duke duchess count countess baron baroness saint st the"
    )
)
_SUFFIXES = frozenset(str.split("jr sr junior senior esq phd md ii iii iv vi vii viii ix"))
_PARTICLES = frozenset(str.split("de du des la le van von der den di da dos del of and"))
_NO_NAMES = _HONORIFICS | _PARTICLES | _SUFFIXES
_DOTS = re.compile(r"[·•・‧\s]+")
_HAN = re.compile(r"[\u3400-\u9fff\U00020000-\U0003ffff]+")
_SHORTEST_WORD = 3
_SHORTEST_HAN = 2
_LONGEST_HAN = 4


class Mentions:
    """Find names in texts, searching only those parts of a text that are new.

    All but the last lines of a text are kept as one: as an author writes on, only those change.
    """

    def __init__(self, capacity: int = 8_000_000) -> None:
        self._found: Memo[tuple[tuple[str, ...], str], Names] = Memo(capacity, _weigh)
        self._counts: Memo[tuple[tuple[str, ...], str], Counter[str]] = Memo(capacity, _weigh)
        self._in_heads: Memo[str, Memo[tuple[str, ...], Names]] = Memo(capacity, _weigh_head)
        self._spots: Memo[tuple[tuple[str, ...], str], tuple[_Spots, ...]] = Memo(capacity, _weigh)

    def find(self, names: Iterable[str], text: str) -> Names:
        """Return which of the names a text mentions."""
        wanted = _sorted_names(tuple(names))
        if not wanted:
            return frozenset()
        end = settled_end(text) if len(text) <= LONGEST_KEPT_WHOLE else 0
        if not end:
            return self._find_in_parts(wanted, text)
        head = text[:end]
        # Several kinds of names are looked for in the same text.
        known = self._in_heads.get(head, lambda: Memo[tuple[str, ...], Names](MOST_KINDS))
        found = known.get(wanted, lambda: self._find_in_parts(wanted, head))
        last = self._find_in_parts(wanted, text[end:])
        return found | last if last else found

    def spot(self, names: Iterable[str], text: str) -> "SpottedNames":
        """Search a text once for many names, to ask then which of some of them it mentions."""
        wanted = _sorted_names(tuple(names))
        if not wanted:
            return SpottedNames(())
        end = settled_end(text) if len(text) <= LONGEST_KEPT_WHOLE else 0
        head, last = text[:end], text[end:]
        in_head = self._spots_in(wanted, head) if head else ()
        return SpottedNames(in_head + self._spots_in(wanted, last))

    def _spots_in(self, names: tuple[str, ...], text: str) -> "tuple[_Spots, ...]":
        def search() -> tuple[_Spots, ...]:
            parts = _parts_of(text)
            if len(parts) > 1:
                return tuple([one for part in parts for one in self._spots_in(names, part)])
            spots = _spots(names, text)
            return (spots,) if spots else ()

        return self._spots.get((names, text), search)

    def count(self, names: Iterable[str], text: str) -> Counter[str]:
        """Return how often a text mentions each of the names."""
        wanted = _sorted_names(tuple(names))
        if not wanted:
            return Counter()
        if len(text) > LONGEST_KEPT_WHOLE:
            return self._count_in_parts(wanted, text)
        end = settled_end(text) or len(text)
        head = text[:end]
        counts = self._counts.get((wanted, head), lambda: self._count_in_parts(wanted, head))
        last = self._count_in_parts(wanted, text[end:]) if end < len(text) else None
        return counts + last if last else counts

    def _count_in_parts(self, names: tuple[str, ...], text: str) -> Counter[str]:
        counts: Counter[str] = Counter()
        for part in _parts_of(text):
            counts.update(self._counts.get((names, part), lambda p=part: _count(names, p)))
        return counts

    def locate(self, names: Iterable[str], text: str) -> Iterator[tuple[str, int, int]]:
        """Return each name that a text mentions with where it begins and ends, in order."""
        wanted = _sorted_names(tuple(names))
        return _matches(wanted, text) if wanted else iter(())

    def _find_in_parts(self, names: tuple[str, ...], text: str) -> Names:
        parts = _parts_of(text)
        if len(parts) == 1:
            return self._find_in_part(names, text)
        return frozenset[str]().union(*(self._find_in_part(names, part) for part in parts))

    def _find_in_part(self, names: tuple[str, ...], part: str) -> Names:
        return self._found.get((names, part), lambda: _find(names, part))


def _parts_of(text: str) -> tuple[str, ...]:
    return tuple(additive_parts(text)) if len(text) > LONGEST_KEPT_WHOLE else _kept_parts(text)


# Several kinds of names are looked for in the same text, one after the other.
@lru_cache(maxsize=KEPT_TEXTS)
def _kept_parts(text: str) -> tuple[str, ...]:
    return tuple(additive_parts(text))


@lru_cache(maxsize=64)
def _sorted_names(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(sorted({name for name in names if name.strip()}))


def _find(names: tuple[str, ...], text: str) -> Names:
    return frozenset(name for name, _, _ in _matches(names, text))


def _count(names: tuple[str, ...], text: str) -> Counter[str]:
    return Counter(name for name, _, _ in _matches(names, text))


def _matches(names: tuple[str, ...], text: str) -> Iterator[tuple[str, int, int]]:
    """Find whole names from left to right, at each place the longest."""
    covered = 0
    for start, end, name in _spots(names, text):
        if start >= covered:
            yield name, start, end
            covered = end


_Spots = tuple[tuple[int, int, str], ...]


def _spots(names: tuple[str, ...], text: str) -> _Spots:
    """Find whole names wherever they stand, from left to right, at each place the longest first."""
    matches = _automaton(names).find_matches_as_indexes(text, overlapping=True)
    ordered = sorted(((s, e) for _, s, e in matches), key=lambda m: (m[0], -m[1]))
    return tuple([(s, e, text[s:e]) for s, e in ordered if _is_whole_name(text, s, e)])


class SpottedNames:
    """Where the parts of a text mention any of many names."""

    def __init__(self, parts: tuple[_Spots, ...]) -> None:
        self._parts = parts

    def of(self, names: Container[str]) -> Names:
        """Return which of some of the names are mentioned, as if only those had been searched for."""
        found: set[str] = set()
        for spots in self._parts:
            covered = 0
            for start, end, name in spots:
                if start >= covered and name in names:
                    found.add(name)
                    covered = end
        return frozenset(found)


@lru_cache(maxsize=32)
def _automaton(names: tuple[str, ...]) -> "AhoCorasick":
    from ahocorasick_rs import AhoCorasick

    return AhoCorasick(names)


def _is_whole_name(text: str, start: int, end: int) -> bool:
    joined_left = start > 0 and _is_latin(text[start - 1]) and _is_latin(text[start])
    joined_right = end < len(text) and _is_latin(text[end - 1]) and _is_latin(text[end])
    return not joined_left and not joined_right


def _is_latin(character: str) -> bool:
    return character.isalnum() and character < _FIRST_IDEOGRAPH


def _weigh_head(head: str, _found: object) -> int:
    return 1000 + len(head)


def _weigh(key: tuple[tuple[str, ...], str], found: Sized) -> int:
    return 200 + len(key[1]) + len(found)


class NameParts(NamedTuple):
    """The parts that count for each character, and those that several could be called by."""

    own: dict[str, tuple[str, ...]]
    ambiguous: dict[str, tuple[str, ...]]


def unambiguous_parts(names: Mapping[str, Sequence[str]]) -> NameParts:
    """Return by character which parts of its names mean nobody else."""
    parts: dict[str, list[str]] = defaultdict(list)
    ambiguous: dict[str, tuple[str, ...]] = {}
    for part, characters in sorted(_claims(names).items()):
        if len([one for one in characters if part in names[one][1:]]) == 1:
            # One character's file declares it as an alias, so it is no guess.
            continue
        if len(characters) > 1:
            ambiguous[part] = tuple(sorted(characters))
            continue
        (character,) = characters
        if part not in names[character]:
            parts[character].append(part)
    return NameParts({character: tuple(found) for character, found in parts.items()}, ambiguous)


def _claims(names: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Return by part of a name who could be called so."""
    claims: dict[str, set[str]] = defaultdict(set)
    for character, own in names.items():
        for name in own:
            for part in parts_of(name):
                claims[part].add(character)
    for character, own in names.items():
        for name in own:
            if name in claims:
                claims[name].add(character)
    return claims


@lru_cache(maxsize=4096)
def parts_of(name: str) -> frozenset[str]:
    """Return the parts of a full name by which prose may call its bearer."""
    words = [word for word in _DOTS.split(name.strip()) if word]
    if len(words) > 1:
        return frozenset(_word_parts(words))
    if words and _HAN.fullmatch(words[0]):
        given = _given_name(words[0])
        return frozenset({given} if given else ())
    return frozenset()


def _given_name(name: str) -> str:
    """Return the given name of a Chinese full name; blank if it has none of its own."""
    if not _SHORTEST_HAN < len(name) <= _LONGEST_HAN:
        return ""
    surname = 2 if name[:2] in _COMPOUND else 1
    if surname == 1 and name[0] not in _SURNAMES:
        return ""
    given = name[surname:]
    is_name = len(given) == _SHORTEST_HAN and given not in _TITLES
    return given if is_name else ""


def _word_parts(words: Sequence[str]) -> set[str]:
    """Return the first and the last of several words, titles, particles and suffixes aside."""
    bare = [word.rstrip(",") for word in words]
    named = [word for word in bare if word.rstrip(".").casefold() not in _NO_NAMES]
    return {word for word in (*named[:1], *named[-1:]) if _can_stand_alone(word)}


def _can_stand_alone(word: str) -> bool:
    if _HAN.fullmatch(word):
        return len(word) >= _SHORTEST_HAN
    return len(word) >= _SHORTEST_WORD and word[0].isupper() and not word.endswith(".")
