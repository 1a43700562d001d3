"""The one exception, and the catalogue of every error and warning code of the protocol."""

import contextlib
import errno
import os
import re
from collections.abc import Generator
from enum import StrEnum
from typing import Any, NamedTuple

from creonowd.model import Model

PARSE = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803

_FULL = {errno.ENOSPC, errno.EDQUOT}
_FULL_ON_WINDOWS = {39, 112}


class ErrorCode(StrEnum):
    """The stable string that clients test."""

    PARSE_ERROR = "PARSE_ERROR"
    INVALID_REQUEST = "INVALID_REQUEST"
    IPC_PAYLOAD_TOO_LARGE = "IPC_PAYLOAD_TOO_LARGE"
    IPC_CHANNEL_FORBIDDEN = "IPC_CHANNEL_FORBIDDEN"
    IPC_BACKPRESSURE = "IPC_BACKPRESSURE"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    INTERNAL = "INTERNAL"
    CANCELED = "CANCELED"
    TIMEOUT = "TIMEOUT"
    FORBIDDEN = "FORBIDDEN"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    UNSUPPORTED = "UNSUPPORTED"
    IO_ERROR = "IO_ERROR"
    STORAGE_FULL = "STORAGE_FULL"
    VERSION_TOO_NEW = "VERSION_TOO_NEW"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    DISCONNECTED = "DISCONNECTED"
    HOST_ERROR = "HOST_ERROR"
    CONSTRAINT_VALIDATION_ERROR = "CONSTRAINT_VALIDATION_ERROR"
    CONSTRAINT_NOT_FOUND = "CONSTRAINT_NOT_FOUND"
    CONSTRAINT_CONFLICT = "CONSTRAINT_CONFLICT"
    CONTEXT_BUDGET_CONFLICT = "CONTEXT_BUDGET_CONFLICT"
    CONTEXT_TOKENIZER_MISMATCH = "CONTEXT_TOKENIZER_MISMATCH"
    CONTEXT_BUDGET_INVALID_RATIO = "CONTEXT_BUDGET_INVALID_RATIO"
    CONTEXT_BUDGET_INVALID_MINIMUM = "CONTEXT_BUDGET_INVALID_MINIMUM"
    CONTEXT_SCOPE_VIOLATION = "CONTEXT_SCOPE_VIOLATION"
    CONTEXT_INPUT_TOO_LARGE = "CONTEXT_INPUT_TOO_LARGE"
    CONTEXT_BACKPRESSURE = "CONTEXT_BACKPRESSURE"
    CONTEXT_INSPECT_FORBIDDEN = "CONTEXT_INSPECT_FORBIDDEN"
    SKILL_SELECTION_REQUIRED = "SKILL_SELECTION_REQUIRED"
    UPSTREAM_ERROR = "UPSTREAM_ERROR"
    AI_AUTH_FAILED = "AI_AUTH_FAILED"
    AI_RATE_LIMITED = "AI_RATE_LIMITED"
    AI_NOT_CONFIGURED = "AI_NOT_CONFIGURED"


class Language(StrEnum):
    """The language of messages; prompts never depend on it.

    `DEFAULT` is that of a client which names no `locale`: English, but for the warnings that the
    specification spells out in Chinese.
    """

    DEFAULT = "default"
    ENGLISH = "en"
    CHINESE = "zh"


def language_of(locale: str | None) -> Language:
    """Return the language of a locale such as `zh-CN`, `zh_CN.UTF-8` or `en`."""
    if not locale:
        return Language.DEFAULT
    is_chinese = re.match(r"zh(?![a-z])", locale, re.IGNORECASE)
    return Language.CHINESE if is_chinese else Language.ENGLISH


class Wording(NamedTuple):
    """A text for people, in both languages."""

    english: str
    chinese: str

    def text(self, *, chinese: bool) -> str:
        """Return the text in one language."""
        return self.chinese if chinese else self.english

    def format(self, *values: object) -> "Wording":
        """Put values into both texts."""
        return Wording(self.english.format(*values), self.chinese.format(*values))


def same_wording(text: str) -> Wording:
    """Return what reads the same in both languages: a name, a path, a quotation."""
    return Wording(text, text)


class Meaning(Model):
    """The number and the general message of an error code."""

    number: int
    retryable: bool
    english: str
    chinese: str


class DaemonError(Exception):
    """A failure that is reported to the client: a code, a message that says what to do, details.

    A message that is given in English alone has the catalogue's text as its Chinese one.
    """

    def __init__(
        self, code: ErrorCode, message: "str | Wording | None" = None, **details: Any
    ) -> None:
        self.code = code
        general = CATALOGUE[code]
        if message is None:
            message = general.english
        if isinstance(message, str):
            message = Wording(message, general.chinese)
        self.wording = message
        self.details = details
        super().__init__(f"{code}: {self.message}")

    @property
    def message(self) -> str:
        """The message in English."""
        return self.wording.english

    @property
    def meaning(self) -> Meaning:
        """The entry of the catalogue for this code."""
        return CATALOGUE[self.code]


def _domain(english: str, chinese: str, *, retryable: bool = False) -> Meaning:
    return Meaning(number=REQUEST_FAILED, retryable=retryable, english=english, chinese=chinese)


def _wire(number: int, english: str, chinese: str) -> Meaning:
    return Meaning(number=number, retryable=False, english=english, chinese=chinese)


CATALOGUE: dict[ErrorCode, Meaning] = {
    ErrorCode.PARSE_ERROR: _wire(PARSE, "The message is not valid JSON.", "消息不是合法的 JSON。"),
    ErrorCode.INVALID_REQUEST: _wire(
        INVALID_REQUEST,
        "The message is not a JSON-RPC 2.0 request.",
        "消息不是 JSON-RPC 2.0 请求。",
    ),
    ErrorCode.IPC_PAYLOAD_TOO_LARGE: _wire(
        INVALID_REQUEST, "The message is larger than the limit.", "消息超过大小上限。"
    ),
    ErrorCode.IPC_CHANNEL_FORBIDDEN: _wire(
        METHOD_NOT_FOUND,
        "There is no such channel; `rpc.discover` lists them.",
        "没有这个通道；rpc.discover 列出全部通道。",
    ),
    ErrorCode.INVALID_ARGUMENT: _wire(
        INVALID_PARAMS, "The payload does not fit the channel.", "参数不符合通道的要求。"
    ),
    ErrorCode.INTERNAL: _wire(
        INTERNAL, "Something went wrong inside the daemon.", "守护进程内部出错。"
    ),
    ErrorCode.CANCELED: _wire(REQUEST_CANCELLED, "The request was cancelled.", "请求已取消。"),
    ErrorCode.IPC_BACKPRESSURE: _domain(
        "Too many requests are in flight on this connection; wait for replies.",
        "此连接上进行中的请求过多，请等待回复。",
        retryable=True,
    ),
    ErrorCode.TIMEOUT: _domain(
        "The request took too long; try again, or allow it more with `_meta.timeoutMs`.",
        "请求超时；请重试，或用 _meta.timeoutMs 延长时限。",
        retryable=True,
    ),
    ErrorCode.FORBIDDEN: _domain(
        "This connection may not do that; an owner's may.", "此连接无权执行该操作，需由所有者执行。"
    ),
    ErrorCode.UNAUTHENTICATED: _domain(
        "This connection has not shown a valid token; send it with `initialize`.",
        "此连接尚未出示有效令牌；请在 initialize 中提供。",
    ),
    ErrorCode.NOT_FOUND: _domain("There is no such thing.", "找不到所请求的对象。"),
    ErrorCode.CONFLICT: _domain(
        "Someone else changed this first; look again.",
        "已被他人先行修改，请重新读取。",
        retryable=True,
    ),
    ErrorCode.UNSUPPORTED: _domain("This is not supported.", "不支持该操作。"),
    ErrorCode.IO_ERROR: _domain(
        "The disk refused; check rights and space, then try again.",
        "磁盘读写失败；请检查权限与空间后重试。",
        retryable=True,
    ),
    ErrorCode.STORAGE_FULL: _domain(
        "The disk is full; free some space and try again.",
        "磁盘已满，请释放空间后重试。",
        retryable=True,
    ),
    ErrorCode.VERSION_TOO_NEW: _domain(
        "The file was written by a newer version; update creonowd.",
        "文件由更新的版本写入，请升级 creonowd。",
    ),
    ErrorCode.SHUTTING_DOWN: _domain(
        "The daemon is shutting down.", "守护进程正在退出。", retryable=True
    ),
    ErrorCode.DISCONNECTED: _domain("The other side has gone.", "对端已断开。", retryable=True),
    ErrorCode.HOST_ERROR: _domain(
        "The host answered with an error.", "宿主返回了错误。", retryable=True
    ),
    ErrorCode.CONSTRAINT_VALIDATION_ERROR: _domain(
        "The constraint or the constraints file is not valid.", "约束或约束文件不合法。"
    ),
    ErrorCode.CONSTRAINT_NOT_FOUND: _domain(
        "There is no such constraint; list them again.", "找不到该约束，请重新读取列表。"
    ),
    ErrorCode.CONSTRAINT_CONFLICT: _domain(
        "The constraints changed, or this one exists already; list them again.",
        "约束已变化或已存在，请重新读取列表。",
        retryable=True,
    ),
    ErrorCode.CONTEXT_BUDGET_CONFLICT: _domain(
        "The budget was changed by someone else; read it again.",
        "预算已被他人修改，请重新读取。",
        retryable=True,
    ),
    ErrorCode.CONTEXT_TOKENIZER_MISMATCH: _domain(
        "The request names another tokenizer or version; `context:budget:get` returns the right one.",
        "请求指定的分词器或版本不一致；以 context:budget:get 的结果为准。",
    ),
    ErrorCode.CONTEXT_BUDGET_INVALID_RATIO: _domain(
        "The budget ratios are not valid.", "预算比例不合法。"
    ),
    ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM: _domain(
        "The budget minimums are not valid.", "预算最小保障不合法。"
    ),
    ErrorCode.CONTEXT_SCOPE_VIOLATION: _domain(
        "The text belongs to another project or scope.", "内容属于其他项目或作用域。"
    ),
    ErrorCode.CONTEXT_INPUT_TOO_LARGE: _domain(
        "The input is larger than one assembly may be; narrow it.", "输入过大，请缩小检索范围。"
    ),
    ErrorCode.CONTEXT_BACKPRESSURE: _domain(
        "Too many assemblies of this document wait; try again soon.",
        "该文档的组装请求过多，请稍后重试。",
        retryable=True,
    ),
    ErrorCode.CONTEXT_INSPECT_FORBIDDEN: _domain(
        "Inspecting needs `debugMode: true`, an owner's connection and a daemon started with"
        " --debug; `creonowd view` brings all of that along.",
        "检查上下文需要 debugMode: true、所有者连接和以 --debug 启动的守护进程；"
        "也可以使用 creonowd view。",
    ),
    ErrorCode.SKILL_SELECTION_REQUIRED: _domain(
        "This skill works on selected text; select some and send it as `selection`.",
        "此技能需要选中的文字；请先选中一段，并在 selection 中给出。",
    ),
    ErrorCode.UPSTREAM_ERROR: _domain(
        "The AI provider failed; try again later.", "AI 服务出错，请稍后重试。", retryable=True
    ),
    ErrorCode.AI_AUTH_FAILED: _domain(
        "The AI provider refused the key; check it.", "AI 服务拒绝了密钥，请检查。"
    ),
    ErrorCode.AI_RATE_LIMITED: _domain(
        "The AI provider asks to slow down; try again later.",
        "AI 服务要求降低频率，请稍后重试。",
        retryable=True,
    ),
    ErrorCode.AI_NOT_CONFIGURED: _domain(
        "No AI provider is configured; set aiProvider and its key.",
        "尚未配置 AI 服务；请设置 aiProvider 和密钥。",
    ),
}


class WarningCode(StrEnum):
    """The codes that warnings in a result begin with."""

    CONTEXT_BUDGET_FALLBACK = "CONTEXT_BUDGET_FALLBACK"
    CONTEXT_BUDGET_CLAMPED = "CONTEXT_BUDGET_CLAMPED"
    CONTEXT_RULES_OVERBUDGET = "CONTEXT_RULES_OVERBUDGET"
    CONTEXT_MINIMUM_UNMET = "CONTEXT_MINIMUM_UNMET"
    CONTEXT_CONSTRAINT_LIMIT = "CONTEXT_CONSTRAINT_LIMIT"
    CONTEXT_RETRIEVED_CHUNK_LIMIT = "CONTEXT_RETRIEVED_CHUNK_LIMIT"
    CONTEXT_RETRIEVED_STARVED = "CONTEXT_RETRIEVED_STARVED"
    CONTEXT_CURSOR_CLAMPED = "CONTEXT_CURSOR_CLAMPED"
    IMMEDIATE_UNAVAILABLE = "IMMEDIATE_UNAVAILABLE"
    RULES_UNAVAILABLE = "RULES_UNAVAILABLE"
    SETTINGS_UNAVAILABLE = "SETTINGS_UNAVAILABLE"
    CONSTRAINTS_UNAVAILABLE = "CONSTRAINTS_UNAVAILABLE"
    CHARACTERS_UNAVAILABLE = "CHARACTERS_UNAVAILABLE"
    KG_UNAVAILABLE = "KG_UNAVAILABLE"
    MEMORY_UNAVAILABLE = "MEMORY_UNAVAILABLE"
    RAG_UNAVAILABLE = "RAG_UNAVAILABLE"
    SOURCE_UNAVAILABLE = "SOURCE_UNAVAILABLE"
    SOURCE_WARNING = "SOURCE_WARNING"
    RETRIEVAL_INDEXING = "RETRIEVAL_INDEXING"
    OUTLINE_UNAVAILABLE = "OUTLINE_UNAVAILABLE"
    RUNS_UNAVAILABLE = "RUNS_UNAVAILABLE"
    SKILL_UNKNOWN = "SKILL_UNKNOWN"
    SKILL_SOURCE_ABSENT = "SKILL_SOURCE_ABSENT"
    AI_REWRITE_FAILED = "AI_REWRITE_FAILED"
    SUMMARY_FALLBACK = "SUMMARY_FALLBACK"
    HISTORY_TORN_LINE = "HISTORY_TORN_LINE"
    HISTORY_DAMAGED_LINE = "HISTORY_DAMAGED_LINE"
    CODE_LAW_UNAVAILABLE = "CODE_LAW_UNAVAILABLE"


WARNINGS: dict[WarningCode, Wording] = {
    WarningCode.CONTEXT_BUDGET_FALLBACK: Wording(
        "The budget or the tokenizer could not be used; the default profile was.",
        "预算或分词器不可用，已回退到默认预算。",
    ),
    WarningCode.CONTEXT_BUDGET_CLAMPED: Wording(
        "The window has room for more than 64 000 tokens; a prompt has no more than that.",
        "窗口可容纳更多，但总预算以 64 000 为上限。",
    ),
    WarningCode.CONTEXT_RULES_OVERBUDGET: Wording(
        "Rules are over their line; the least relevant entities were left out.",
        "规则层超出预算线，已略去相关度最低的实体。",
    ),
    WarningCode.CONTEXT_MINIMUM_UNMET: Wording(
        "The named layer has more text than it was given room for: its tokens, its minimum.",
        "所列层级未达到最小保障（实得 / 保障）。",
    ),
    WarningCode.CONTEXT_CONSTRAINT_LIMIT: Wording(
        "There are more constraints than one assembly may hold; the last ones were left out.",
        "约束条目超过单次上限，已略去末尾的条目。",
    ),
    WarningCode.CONTEXT_RETRIEVED_CHUNK_LIMIT: Wording(
        "More passages were found than one assembly may hold.", "召回片段超过单次上限。"
    ),
    WarningCode.CONTEXT_RETRIEVED_STARVED: Wording(
        "The document left no room for passages; declare `surrounding` in the skill.",
        "正文占满预算，未能注入召回片段；请在技能中声明 surrounding。",
    ),
    WarningCode.CONTEXT_CURSOR_CLAMPED: Wording(
        "The cursor was past the end of the document and was moved there.",
        "光标超出文档末尾，已移至末尾。",
    ),
    WarningCode.IMMEDIATE_UNAVAILABLE: Wording(
        "The named document is not open and not on disk, or cannot be read.",
        "所列文档未打开且不在磁盘上，或无法读取。",
    ),
    WarningCode.RULES_UNAVAILABLE: Wording("A rules file could not be read.", "规则文件无法读取。"),
    WarningCode.SETTINGS_UNAVAILABLE: Wording(
        "A settings file could not be read.", "设定文件无法读取。"
    ),
    WarningCode.CONSTRAINTS_UNAVAILABLE: Wording(
        "The constraints file could not be read, so the prompt has no constraints.",
        "约束文件无法读取，所有约束均未注入。",
    ),
    WarningCode.CHARACTERS_UNAVAILABLE: Wording(
        "A character file could not be read.", "角色文件无法读取。"
    ),
    WarningCode.KG_UNAVAILABLE: Wording(
        "The knowledge graph did not answer; its part is missing.", "知识图谱数据未注入"
    ),
    WarningCode.MEMORY_UNAVAILABLE: Wording(
        "The memory did not answer; its part is missing.", "记忆数据未注入"
    ),
    WarningCode.RAG_UNAVAILABLE: Wording(
        "Retrieval did not answer; its part is missing.", "检索数据未注入"
    ),
    WarningCode.SOURCE_UNAVAILABLE: Wording(
        "A host source did not answer; its part is missing.", "宿主数据源未注入"
    ),
    WarningCode.SOURCE_WARNING: Wording(
        "The named host source has something to say.", "所列宿主数据源的提示"
    ),
    WarningCode.RETRIEVAL_INDEXING: Wording(
        "The index is still being built; passages may be missing.", "索引尚在建立，召回可能不完整。"
    ),
    WarningCode.OUTLINE_UNAVAILABLE: Wording("The outline could not be read.", "大纲无法读取。"),
    WarningCode.RUNS_UNAVAILABLE: Wording(
        "The summaries of recent runs could not be read.", "最近运行摘要无法读取。"
    ),
    WarningCode.SKILL_UNKNOWN: Wording(
        "There is no such skill; the general profile was used. `skill:list` names all skills.",
        "没有此技能，已使用通用配置；skill:list 列出全部技能。",
    ),
    WarningCode.SKILL_SOURCE_ABSENT: Wording(
        "The skill asks for a source that nobody offers.", "技能所需的数据源不存在。"
    ),
    WarningCode.AI_REWRITE_FAILED: Wording(
        "Writing again failed with the named code; the first attempt is given.",
        "重写失败（见所列代码），保留第一稿。",
    ),
    WarningCode.SUMMARY_FALLBACK: Wording(
        "The model could not summarise; an extract took its place.",
        "模型摘要失败，已改用抽取式摘要。",
    ),
    WarningCode.HISTORY_TORN_LINE: Wording(
        "The last line of the history was torn by a crash and was dropped.",
        "历史记录最后一行因崩溃损坏，已丢弃。",
    ),
    WarningCode.HISTORY_DAMAGED_LINE: Wording(
        "Lines of the history were damaged and left out; the number follows.",
        "历史记录中有损坏的行，已跳过。",
    ),
    WarningCode.CODE_LAW_UNAVAILABLE: Wording(
        "code_law.md is there but cannot be read as text.", "code_law.md 无法作为文本读取。"
    ),
}


def version_too_new(what: str, found: int, known: int, **details: str) -> DaemonError:
    """Report that a newer daemon wrote a file, which this one must leave alone."""
    message = f"{what} has version {found}, this daemon knows {known}; update creonowd."
    return DaemonError(ErrorCode.VERSION_TOO_NEW, message, **details, found=found, known=known)


def disk_error(error: OSError, what: str) -> DaemonError:
    """Return the error for a failure of the disk; it names `what`, and no path."""
    reason = errno.errorcode.get(error.errno or 0, "UNKNOWN")
    if error.errno in _FULL or getattr(error, "winerror", None) in _FULL_ON_WINDOWS:
        return DaemonError(
            ErrorCode.STORAGE_FULL,
            f"There is no space left for {what}; free some and try again.",
            reason=reason,
        )
    text = os.strerror(error.errno) if error.errno else "unknown reason"
    return DaemonError(
        ErrorCode.IO_ERROR, f"The disk refused {what}: {text}.", file=what, reason=reason
    )


@contextlib.contextmanager
def disk_errors(what: str) -> Generator[None]:
    """Turn errors of the disk into STORAGE_FULL or IO_ERROR about `what`, a name and no path."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, what) from error
