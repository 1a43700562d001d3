"""Absolute paths go, to their end and no further; relative paths, URLs and routes stay."""

import json
from itertools import product

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.samples import wrong_redactions

WINDOWS = (
    r"C:\Users\zhouxun\novel\ch1.md",
    r"c:\users\zhouxun\novel",
    r"D:\写作\长篇\第一卷.docx",
    r"C:\Users\欧阳 娜\我的 小说\第 一 章.md",
    r"C:\Program Files (x86)\CreoNow\app.exe",
    r"E:\OneDrive - 公司\草稿\第一卷（修订）.docx",
    r"C:\Users\o'brien\drafts\final.txt",
    r"C:\Users\-",
    r"C:\Documents and Settings\zhouxun\Desktop\ch1.md",
    r"D:\The Lord of the Rings\zhouxun\The End of the Third Age.md",
    r"D:\text\小说.md",
    r"D:\novel_2\第一章.md",
    r"C:\log\beta.txt",
    "C:/Users/zhouxun/novel/ch1.md",
)
UNIX = (
    "/home/lisi/book",
    "/Users/wanglei/Desktop/outline.md",
    "/Users/mei ling/Library/Application Support/CreoNow/context.db",
    "/home/张三/稿/第一章.md",
    "/root/.ssh/id_rsa",
    "/mnt/c/Users/zhouxun/novel.md",
    "/c/Users/zhouxun/novel.md",
    "/cygdrive/c/Users/zhouxun/novel.md",
    "/Volumes/写作盘/长篇/第一卷.docx",
    "/private/var/folders/x1/T/novel.tmp",
    "/Library/Application Support/CreoNow/context.db",
    "/Applications/CreoNow.app/Contents/MacOS/CreoNow",
    "/var/lib/creonow/context.db",
    "/tmp/creonow/main.log",
    "/Users/mei/The Lord of the Rings/ch1.md",
    "/home//lisi/book.md",
)
NETWORK = (
    r"\\NAS-WANG\share\novel.docx",
    r"\\192.168.1.5\文档\长篇\第一卷.docx",
    r"\\wsl$\Ubuntu\home\chenlu\novel",
    r"\\wsl.localhost\Ubuntu-22.04\home\chenlu\novel.md",
    r"\\text\drafts\novel.md",
)
FILE_URLS = (
    "file:///C:/Users/tangbo/novel/ch1.md",
    "file:///home/lisi/book.md",
    "file:///D:/写作/封面.png",
    "file://server/share/novel.md",
    "file:///Users/mei%20ling/a.md",
)
KINDS = {
    "windows_abs_path": WINDOWS,
    "unix_abs_path": UNIX,
    "unc_abs_path": NETWORK,
    "file_url_abs_path": FILE_URLS,
}

SURROUNDINGS = (
    "{}",
    "打开 {} 即可",
    "已保存到{}\n　　雨停了。",
    "Look in {}, then tell me what you see.",
    '"cwd": "{}", "n": 2',
    "`{}` 是稿子",
    "（{}）后文",
    "[稿]({}) 见此。",
    "路径：{}。后文",
    "素材目录：{}；封面另存。",
    "    at load ({}:10:5)\n    at next",
    '<img src="{}">图',
    "cd {} && make\necho done",
    "| 路径 | {} | 备注 |",
    "“{}”他说",
    "见{}、下一个",
    "log: {}\r\nnext",
)


@pytest.mark.requirement("CN-048", "CN-049")
@pytest.mark.parametrize("kind", KINDS)
def test_a_path_goes_to_its_end_and_no_further(kind: str) -> None:
    wrong = wrong_redactions(
        (around.replace("{}", path), around.replace("{}", PLACEHOLDER), kind)
        for path in KINDS[kind]
        for around in SURROUNDINGS
    )

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("kind", KINDS)
def test_a_path_goes_from_json_with_every_escape(kind: str) -> None:
    rows: list[tuple[str, str, str]] = []
    for path in KINDS[kind]:
        value, clean = ({"path": text, "words": 1200} for text in (path, PLACEHOLDER))
        slashed = json.dumps(value).replace("/", "\\/")
        spellings = (json.dumps(value), json.dumps(value, ensure_ascii=False), slashed)
        rows += ((spelling, json.dumps(clean), kind) for spelling in spellings)

    wrong = wrong_redactions(rows)

    assert not wrong, "\n".join(wrong)


def test_a_path_ends_where_it_ends() -> None:
    rows = (
        ("sqlite:////home/qianqi/wn/context.db", f"sqlite:///{PLACEHOLDER}"),
        ("scp a.md bob@host:/home/lisi/x", f"scp a.md bob@host:{PLACEHOLDER}"),
        ("gcc -I/home/lisi/include -c", f"gcc -I{PLACEHOLDER} -c"),
        ("+/home/lisi/x\n-/home/lisi/y", f"+{PLACEHOLDER}\n-{PLACEHOLDER}"),
        ("PATH=/home/lisi/bin:/usr/bin", f"PATH={PLACEHOLDER}:/usr/bin"),
        (r"vim /Users/mei\ ling/a.md now", f"vim {PLACEHOLDER} now"),
        (r"\\?\C:\Users\li\a.md", rf"\\?\{PLACEHOLDER}"),
        ("vscode://file/Users/li/a.md:3", f"vscode://file{PLACEHOLDER}:3"),
        (r"“C:\Users\li\x.md is where I keep it,” she said.", f"“{PLACEHOLDER} is where I keep it,” she said."),
        ("文件在/home/lisi/book目录里", f"文件在{PLACEHOLDER}目录里"),
        (r"D:\写作\第一章.md里有", f"{PLACEHOLDER}里有"),
        ("/home/lisi/a.md and/or b", f"{PLACEHOLDER} and/or b"),
        ("cp /home/lisi/a.md docs/b.md", f"cp {PLACEHOLDER} docs/b.md"),
        ("/home/lisi/书 and docs/x.md", f"{PLACEHOLDER} and docs/x.md"),
        (r"C:\li\my notes.md and more", f"{PLACEHOLDER} and more"),
        (r"C:\Users\li and docs\x.md", rf"{PLACEHOLDER} and docs\x.md"),
        (r"路径:\\NAS\share\a.md", f"路径:{PLACEHOLDER}"),
        ("打开/tmp/li/a.md看看", f"打开{PLACEHOLDER}看看"),
        ("他的/mnt/c/Users/li/a.md没了", f"他的{PLACEHOLDER}没了"),
        (r'cwd=C:/Users/li\"', rf'cwd={PLACEHOLDER}\"'),
        (r'"C:\Users\li is the folder"', f'"{PLACEHOLDER} is the folder"'),
    )  # fmt: skip

    wrong = [
        f"{text!r} became {redacted!r}, not {expected!r}"
        for text, expected in rows
        if (redacted := redact(text).text) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_a_path_goes_from_json_in_json() -> None:
    clean = json.dumps(json.dumps({"path": PLACEHOLDER, "words": 1200}))
    paths = [("windows_abs_path", path) for path in WINDOWS[:4]]
    paths += [("unc_abs_path", path) for path in NETWORK]

    wrong = wrong_redactions(
        (json.dumps(json.dumps({"path": path, "words": 1200})), clean, pattern_id)
        for pattern_id, path in paths
    )

    assert not wrong, "\n".join(wrong)


def test_two_paths_in_a_row_are_two() -> None:
    for first, second in product(UNIX[:3], WINDOWS[:3]):
        text = redact(f"{first}\n{second}\n{first}").text

        assert text == "\n".join([PLACEHOLDER] * 3)


def test_a_name_of_many_words_keeps_no_part_of_the_user() -> None:
    """The file's own name may be cut short at a space; the folder that names a person may not."""
    text = redact(r"见 C:\Users\欧阳 娜\我的 小说 那里").text

    assert "欧阳" not in text
    assert "娜" not in text
