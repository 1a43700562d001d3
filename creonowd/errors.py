"""The one exception, and the catalogue of every error and warning code of the protocol."""

import contextlib
import errno
import os
import re
import sys
from collections.abc import Callable, Generator
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
    """The bytes are no JSON, no UTF-8, or nested too deeply.

    Send one JSON-RPC object per message; a program that builds JSON by hand is the usual culprit.
    """
    INVALID_REQUEST = "INVALID_REQUEST"
    """The JSON is no JSON-RPC 2.0 request, or reuses the id of a request that is still in flight.

    Send `jsonrpc`, `method` and an id of its own with each request.
    """
    IPC_PAYLOAD_TOO_LARGE = "IPC_PAYLOAD_TOO_LARGE"
    """The message is larger than `limits.maxMessageBytes` of `initialize`.

    Send less: edits instead of the whole text, a context file instead of an inline output.
    """
    IPC_CHANNEL_FORBIDDEN = "IPC_CHANNEL_FORBIDDEN"
    """There is no channel of this name, or the app's bridge does not let pages call it.

    Check the spelling against `creonowd call --list`.
    """
    IPC_BACKPRESSURE = "IPC_BACKPRESSURE"
    """Too many requests of this connection wait for their replies.

    Wait for replies, then send the next; `details.retryAfterMs` says when.
    """
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    """A field is missing, of the wrong type or outside its limits; `details.field` names it.

    Fix the payload; `creonowd call CHANNEL --help` lists the fields.
    """
    INTERNAL = "INTERNAL"
    """A defect of the daemon. The client gets a reference only.

    Look in `<userData>/logs/main.log` under `details.reference` and report it.
    """
    CANCELED = "CANCELED"
    """The client sent `$/cancelRequest` or `ai:skill:cancel`, or its page went away.

    Nothing; what was done so far is kept where the channel says so.
    """
    TIMEOUT = "TIMEOUT"
    """The request took longer than its deadline.

    Try again, or allow it more with `_meta.timeoutMs`.
    """
    FORBIDDEN = "FORBIDDEN"
    """The connection's role or token does not allow it.

    Let the main process, which is an owner, make the call.
    """
    UNAUTHENTICATED = "UNAUTHENTICATED"
    """The connection has shown no token, a wrong one, or one that ran out or was revoked.

    Send a token from `endpoint.json` or `session:grant` with `initialize`; open the viewer anew.
    """
    NOT_FOUND = "NOT_FOUND"
    """The project, document, file, skill, run or conversation does not exist, or not any more.

    List again what there is.
    """
    CONFLICT = "CONFLICT"
    """Someone else changed the same thing first, or the version that an edit was made for is not
    the daemon's.

    Read it again and repeat the change; for a document, send the whole text.
    """
    UNSUPPORTED = "UNSUPPORTED"
    """This daemon, platform or provider cannot do it, or the client speaks a protocol that is too
    old.

    Follow the message; update the older of the two sides.
    """
    IO_ERROR = "IO_ERROR"
    """The disk refused: rights, a lock, a folder that is gone.

    Check the rights of the named file, then try again.
    """
    STORAGE_FULL = "STORAGE_FULL"
    """The disk, or the quota, is full. Nothing was half written.

    Free some space and try again.
    """
    VERSION_TOO_NEW = "VERSION_TOO_NEW"
    """A file was written by a newer version of the daemon; it is left alone.

    Update creonowd.
    """
    SHUTTING_DOWN = "SHUTTING_DOWN"
    """The daemon takes no new requests because it is ending.

    Connect to the next one; the Electron package does that by itself.
    """
    DISCONNECTED = "DISCONNECTED"
    """The client that should answer, such as a host's source, has gone.

    Connect it again.
    """
    HOST_ERROR = "HOST_ERROR"
    """The host answered the daemon's call with an error.

    Look into the host; the message repeats its own.
    """
    CONSTRAINT_VALIDATION_ERROR = "CONSTRAINT_VALIDATION_ERROR"
    """A constraint's text, type, priority or place is not valid, or
    `.creonow/rules/constraints.json` is broken.

    Fix the field or the file that the message names.
    """
    CONSTRAINT_NOT_FOUND = "CONSTRAINT_NOT_FOUND"
    """There is no constraint of this id.

    List them again.
    """
    CONSTRAINT_CONFLICT = "CONSTRAINT_CONFLICT"
    """`expectedRevision` is not the file's any more, or a constraint of this text exists.

    List them again and repeat the change.
    """
    CONTEXT_BUDGET_CONFLICT = "CONTEXT_BUDGET_CONFLICT"
    """`version` is not the budget's any more.

    Read it with `context:budget:get` and repeat the change.
    """
    CONTEXT_TOKENIZER_MISMATCH = "CONTEXT_TOKENIZER_MISMATCH"
    """The request names another tokenizer or version than that of the model.

    Leave it out, or take the one that `context:budget:get` returns.
    """
    CONTEXT_BUDGET_INVALID_RATIO = "CONTEXT_BUDGET_INVALID_RATIO"
    """A ratio is not between 0 and 1, or all together are over 1.

    Lower the ratios.
    """
    CONTEXT_BUDGET_INVALID_MINIMUM = "CONTEXT_BUDGET_INVALID_MINIMUM"
    """A minimum is no whole number, or all together are over the total.

    Lower the minimums, or raise the total.
    """
    CONTEXT_SCOPE_VIOLATION = "CONTEXT_SCOPE_VIOLATION"
    """A host's chunk belongs to another project, or a path leads outside of the project.

    Fix the host or the path; nothing of another project may enter a prompt.
    """
    CONTEXT_INPUT_TOO_LARGE = "CONTEXT_INPUT_TOO_LARGE"
    """What may not be cut (rules that are never left out, the selection, the instruction) is
    larger than the whole budget.

    Shorten it, or raise the budget.
    """
    CONTEXT_BACKPRESSURE = "CONTEXT_BACKPRESSURE"
    """Too many assemblies of this document run and wait.

    Try again soon; an editor should wait for the author to pause.
    """
    CONTEXT_INSPECT_FORBIDDEN = "CONTEXT_INSPECT_FORBIDDEN"
    """`context:inspect` needs `debugMode: true`, an owner, and a daemon with `--debug` or a page
    that `creonowd view` opened.

    Use `creonowd view`, or start the daemon with `--debug`.
    """
    SKILL_SELECTION_REQUIRED = "SKILL_SELECTION_REQUIRED"
    """The skill works on selected text, and nothing is selected.

    Let the author select a passage, and send it as `selection`.
    """
    UPSTREAM_ERROR = "UPSTREAM_ERROR"
    """The AI provider failed, answered nonsense, or fell silent for too long.

    Try again later; `creonowd ai test` shows what it says.
    """
    AI_AUTH_FAILED = "AI_AUTH_FAILED"
    """The AI provider refused the key.

    Check the key: `creonowd ai list` says where it comes from.
    """
    AI_RATE_LIMITED = "AI_RATE_LIMITED"
    """The AI provider asks to slow down.

    Try again after `details.retryAfterMs`, if it names a time.
    """
    AI_MODEL_UNKNOWN = "AI_MODEL_UNKNOWN"
    """The AI provider does not know the model, or the address is wrong.

    Check both with `creonowd ai list`; `creonowd ai test` tries them.
    """
    AI_NOT_CONFIGURED = "AI_NOT_CONFIGURED"
    """No AI provider is configured, or what is configured cannot be used.

    `creonowd ai add` sets one up.
    """


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
        """Put values into both texts; of a value that is a wording itself, each gets its own."""
        english, chinese = (
            [value[number] if isinstance(value, Wording) else value for value in values]
            for number in range(2)
        )
        return Wording(self.english.format(*english), self.chinese.format(*chinese))


def same_wording(text: str) -> Wording:
    """Return what reads the same in both languages: a name, a path, a quotation."""
    return Wording(text, text)


def extra_missing(extra: str) -> Wording:
    """Return how to get a library that is optional: with pip, unless an app brought creonowd."""
    if getattr(sys, "frozen", False):
        return Wording(
            f"The creonowd of this app has no {extra} library; its maker adds it with"
            f" `scripts/package --with {extra}`.",
            f"此应用自带的 creonowd 不含 {extra} 的库；应用的制作者可用"
            f" `scripts/package --with {extra}` 加入。",
        )
    return Wording(
        f"The {extra} library is not installed: pip install 'creonowd[{extra}]'.",
        f"未安装 {extra} 的库：pip install 'creonowd[{extra}]'。",
    )


class Meaning(Model):
    """The number and the general message of an error code."""

    number: int
    retryable: bool
    english: str
    chinese: str


class DaemonError(Exception):
    """A failure that is reported to the client: a code, a message that says what to do, details.

    A message that is given in English alone is looked up in `CHINESE`; if it is not there, its
    Chinese is the catalogue's text and the field or file that the details name.
    """

    def __init__(
        self, code: ErrorCode, message: "str | Wording | None" = None, **details: Any
    ) -> None:
        self.code = code
        general = CATALOGUE[code]
        if message is None:
            message = Wording(general.english, general.chinese)
        if isinstance(message, str):
            message = Wording(message, CHINESE.get(message) or _general(general, details))
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
    ErrorCode.AI_MODEL_UNKNOWN: _domain(
        "The AI provider does not know the model; check its name and the address.",
        "AI 服务没有该模型；请检查模型名与地址。",
    ),
    ErrorCode.AI_NOT_CONFIGURED: _domain(
        "No AI provider is configured; `creonowd ai add` does that.",
        "尚未配置 AI 服务；可用 creonowd ai add 配置。",
    ),
}


def _general(meaning: Meaning, details: dict[str, Any]) -> str:
    named = next((details[key] for key in ("field", "path", "file") if details.get(key)), "")
    return f"{meaning.chinese.removesuffix('。')}（{named}）。" if named else meaning.chinese


# The Chinese of messages that read the same each time; others are a `Wording` where they are made.
CHINESE = {
    "text must not be blank; send null to take it back.": "text 不能为空；传 null 可收回。",
    "The story has no such document; `project:story` lists those that it has.": "故事中没有此文档；project:story 可列出已有的文档。",
    "The model returned no summary; try again.": "模型没有返回摘要，请重试。",
    "The documents that pages have open are too large together; close some first.": "页面打开的文档合计过大，请先关闭一些。",
    "This connection needs a `token`; endpoint.json names one.": "此连接需要 token；endpoint.json 中有一个。",
    "The token is wrong or has run out.": "令牌有误或已过期。",
    "constraintId must not be blank.": "constraintId 不能为空。",
    "Send either content or base64.": "请在 content 与 base64 中只传一个。",
    "Only an owner may read raw; leave `raw` out.": "只有所有者可以读取原始内容；请去掉 raw。",
    "base64 cannot be redacted; ask for it with `raw`.": "base64 无法脱敏；请加上 raw。",
    "The file has damaged text; save it as UTF-8.": "文件中的文字已损坏，请另存为 UTF-8。",
    "The document has changed; read it again.": "文档已有改动，请重新读取。",
    "`position` is a place in a `document`; name that too.": "position 是 document 中的位置；请同时指明 document。",
    "`document` is missing.": "缺少 document。",
    "`selection` must be like 120-180.": "selection 须形如 120-180。",
    "Send either `text`, or `baseVersion` and `edits`.": "请传 text，或 baseVersion 与 edits。",
    "documentId must not be blank.": "documentId 不能为空。",
    "A conversation belongs to a project; name it with projectId.": "会话属于项目；请用 projectId 指明。",
    "Only a tool's content may be something else than a text.": "只有工具消息的 content 可以不是文本。",
    "There is no such skill; list the skills.": "没有这个技能；请列出全部技能。",
    "name must not be blank.": "name 不能为空。",
    "`version` is missing: send the version of the budget that you saw.": "缺少 version：请传您读到的预算版本。",
    "The window, the system prompt and the output reserve must not be negative.": "窗口、系统提示与输出预留不能为负数。",
    "There is no such archive.": "没有这个归档文件。",
    "There is no such conversation.": "没有这个会话。",
    "The folder of the archive does not exist.": "归档文件所在的文件夹不存在。",
    "The file was cleaned as soon as it was made; try again.": "文件刚生成即被清理，请重试。",
    "This conversation has no such file; list what it has.": "此会话没有该文件；请列出已有文件。",
    "The conversation was deleted meanwhile; try again.": "会话已被删除，请重试。",
    "No host is connected that could make this file; connect it again.": "能生成此文件的宿主未连接，请重新连接。",
    "The host sent an empty piece without `done: true`.": "宿主返回了空片段，且没有 done: true。",
    "The file was replaced while it was copied; try again.": "复制过程中文件被替换，请重试。",
    "The project has no such file, or it is hidden or ignored.": "项目中没有该文件，或它被隐藏或忽略。",
    "The file would be larger than all context files of a project may be together.": "文件会超过上下文文件的总上限。",
    "Something in the conversation's folder is a link or no plain file; it is not followed.": "会话文件夹中有链接或非普通文件，不予跟随。",
    "runId holds a secret; choose another.": "runId 含有密钥；请换一个。",
    "The key names another file already; choose another key or delete that file.": "该 key 已指向另一文件；请换一个 key，或删除那个文件。",
    "The conversation has another file under the same id or key; import into a new one.": "会话中已有相同 id 或 key 的文件；请导入到新会话。",
    "conversationId must be 1 to 64 of A-Z, a-z, 0-9, _ and -, and no device's name.": "conversationId 须为 1 至 64 个 A-Z、a-z、0-9、_ 或 -，且不是设备名。",
    "The cursor does not belong to this file; start the search again.": "游标不属于该文件，请重新搜索。",
    "Another conversation's id differs only in case; choose a different id.": "已有仅大小写不同的会话 id，请换一个。",
    "The conversation belongs to another project; use another conversationId for this one.": "该会话属于另一项目；请为各项目使用各自的 id。",
    "This daemon serves no pages.": "此守护进程不提供页面。",
    "A run with this runId is under way; use another.": "该 runId 正在运行，请换一个。",
    "The run was cancelled.": "运行已取消。",
    "The conversation has other rounds than the archive; import into a new one.": "会话与归档的轮次不同；请导入到新会话。",
    "The rounds of this file were erased from the history.": "此文件对应的轮次已从历史中清除。",
    "input is empty and no round is unfinished.": "input 为空，且没有未完成的轮次。",
    "Set aiModel to one of Anthropic's models.": "请将 aiModel 设为 Anthropic 的模型。",
    "`params` must be an object with named fields, not a list or a scalar.": "params 须为带字段名的对象，不能是列表或标量。",
    "The payload is not UTF-8.": "参数不是 UTF-8。",
    "The payload is nested too deeply.": "参数嵌套过深。",
    "The client answered with an error.": "客户端返回了错误。",
    "A request with this id is still in flight; use another.": "相同 id 的请求仍在进行，请换一个。",
    "Send `initialize` with a valid token first.": "请先用有效令牌发送 initialize。",
    "Others may read the key file; chmod 600 it first.": "密钥文件可被他人读取；请先 chmod 600。",
    "The history is a link to somewhere else; put the file itself in its place.": "历史文件是指向别处的链接；请换成文件本身。",
    "Another process has been writing here for too long; try again.": "另一进程写入过久，请重试。",
    "path is not a file; list the folder and read its files.": "path 不是文件；请列出文件夹并读取其中的文件。",
    "There is no such file; list what there is.": "没有这个文件；请列出已有文件。",
    "The file is not text in UTF-8, UTF-16 or GB18030; save it as UTF-8.": "文件不是 UTF-8、UTF-16 或 GB18030 文本，请另存为 UTF-8。",
    "Another process is listening on the socket.": "另一进程正在监听该套接字。",
    "Something that is not a socket is in the way.": "该位置已有并非套接字的文件。",
    "There is no such project.": "没有这个项目。",
    "The conversation's file is damaged; fix or delete it.": "会话文件已损坏，请修正或删除。",
    "There is a conversation whose id differs only in case; choose another id.": "已有仅大小写不同的会话 id，请换一个。",
    "Constraints of the knowledge graph are changed there, not here.": "知识图谱的约束请在图谱中修改。",
    "There is a constraint with this text already; change that one.": "已有内容相同的约束，请修改那一条。",
    "The project's folder is gone; bring it back or choose another.": "项目文件夹已不在；请放回，或选择另一个。",
    "The edits are for another version than the daemon has; send the whole text.": "编辑所基于的版本与守护进程的不同；请传全文。",
    "The document is neither open nor a file of the project.": "文档未打开，也不是项目中的文件。",
    "projectId must not be blank.": "projectId 不能为空。",
    "No project is current; set one first.": "尚无当前项目，请先设置。",
    "Only owners may name a path; let the main process create the project.": "只有所有者可以指定路径；请由主进程创建项目。",
    "Send `rootPath`, or a `name` for a new folder.": "请传 rootPath，或为新文件夹传 name。",
    "The file is no text of a kind that is read.": "该文件不是可读取的文本类型。",
    "The folder does not exist; create it first or check its spelling.": "文件夹不存在；请先创建，或检查拼写。",
    "The folder cannot be written to; change its permissions or choose another.": "文件夹不可写；请修改权限，或选择另一个。",
    "prices.json cannot be understood; fix it, or delete it to use the packaged prices.": "无法理解 prices.json；请修正，或删除以使用内置价格。",
    "There is no such run any more; `ai:run:list` lists those that can be decided on.": "该运行已不存在；ai:run:list 列出可处理的运行。",
    "The system cannot watch this folder now; everything works without that, only slower.": "系统暂时无法监视该文件夹；不影响使用，只是稍慢。",
    "The project's folder is gone; bring it back first.": "项目文件夹已不在，请先放回。",
    "Name the model with --model.": "请用 --model 指明模型。",
    "Someone else changes settings.json; try again.": "settings.json 正被他人修改，请重试。",
    "Only the fake provider follows a script.": "只有假的 AI 服务按脚本回答。",
}


class WarningCode(StrEnum):
    """The codes that warnings in a result begin with."""

    CONTEXT_BUDGET_FALLBACK = "CONTEXT_BUDGET_FALLBACK"
    """The stored budget or the tokenizer's table could not be used; the default budget was, or
    bytes were counted.

    Set the budget again; install creonowd again if a table is missing.
    """
    CONTEXT_BUDGET_CLAMPED = "CONTEXT_BUDGET_CLAMPED"
    """The window has room for more than 64 000 tokens; a prompt has no more than that.

    Nothing; more text makes answers worse and more expensive.
    """
    CONTEXT_WINDOW_REDUCED = "CONTEXT_WINDOW_REDUCED"
    """The model's server gives it a smaller window than the budget assumes; the prompt was made to
    fit.

    Give the model a larger window on the server, or lower the budget.
    """
    CONTEXT_RULES_OVERBUDGET = "CONTEXT_RULES_OVERBUDGET"
    """The rules are over their share, so characters that the document does not mention were left
    out.

    Shorten the rules, mark characters `inject: mentioned`, or raise the share of Rules.
    """
    CONTEXT_MINIMUM_UNMET = "CONTEXT_MINIMUM_UNMET"
    """A layer got fewer tokens than its minimum, because what stands before it took the room.

    Raise the budget, or shorten what stands before.
    """
    CONTEXT_CONSTRAINT_LIMIT = "CONTEXT_CONSTRAINT_LIMIT"
    """There are more constraints than one prompt may hold; the last ones were left out.

    Merge constraints, or limit them to parts of the story with `from` and `until`.
    """
    CONTEXT_RETRIEVED_CHUNK_LIMIT = "CONTEXT_RETRIEVED_CHUNK_LIMIT"
    """More passages were found than one prompt may hold.

    Nothing; the best were taken.
    """
    CONTEXT_RETRIEVED_STARVED = "CONTEXT_RETRIEVED_STARVED"
    """The document took all the room, so no passage of earlier chapters is in the prompt.

    Declare `surrounding` in the skill, or raise the budget.
    """
    CONTEXT_CURSOR_CLAMPED = "CONTEXT_CURSOR_CLAMPED"
    """The cursor was past the end of the document and was moved there.

    Sync the document before you assemble; check the position encoding.
    """
    IMMEDIATE_UNAVAILABLE = "IMMEDIATE_UNAVAILABLE"
    """The document is neither open nor on the disk, or cannot be read.

    Check `documentId`: a path below the project's folder.
    """
    RULES_UNAVAILABLE = "RULES_UNAVAILABLE"
    """A file of `.creonow/rules` could not be read or makes no sense.

    Fix the file that `sourceRef` names.
    """
    SETTINGS_UNAVAILABLE = "SETTINGS_UNAVAILABLE"
    """A file of `.creonow/settings` could not be read.

    Fix the file that `sourceRef` names; save it as UTF-8.
    """
    CONSTRAINTS_UNAVAILABLE = "CONSTRAINTS_UNAVAILABLE"
    """`.creonow/rules/constraints.json` could not be read, so the prompt has no constraints.

    Fix the file before the next run.
    """
    CHARACTERS_UNAVAILABLE = "CHARACTERS_UNAVAILABLE"
    """A file of `.creonow/characters` could not be read.

    Fix the file that `sourceRef` names.
    """
    KG_UNAVAILABLE = "KG_UNAVAILABLE"
    """A host's knowledge graph did not answer in time or failed; its part is missing.

    Look into the host; it is asked again with the next prompt.
    """
    MEMORY_UNAVAILABLE = "MEMORY_UNAVAILABLE"
    """The memory, a file or a host's, could not be read; its part is missing.

    Fix `.creonow/settings/memory.json`, or look into the host.
    """
    RAG_UNAVAILABLE = "RAG_UNAVAILABLE"
    """The search did not answer in time or failed; no passages are in the prompt.

    Try again; `app:health` says what is wrong if it persists.
    """
    SOURCE_UNAVAILABLE = "SOURCE_UNAVAILABLE"
    """A host's own source did not answer in time or failed; its part is missing.

    Look into the host that `sourceRef` names.
    """
    SOURCE_WARNING = "SOURCE_WARNING"
    """A host's source has something to say to the person.

    Read the message; it is the host's own.
    """
    RETRIEVAL_INDEXING = "RETRIEVAL_INDEXING"
    """The index is still being built; passages may be missing.

    Try again in a moment, or call `context:retrieve` with `wait`.
    """
    DOCUMENTS_LEFT_OUT = "DOCUMENTS_LEFT_OUT"
    """The project's folder is too big; only the documents nearest to its top are used.

    Make the novel's own folder the project, or name what is not part of it in `.ignore`.
    """
    IGNORE_FILE_CUT = "IGNORE_FILE_CUT"
    """Not every line of an ignore file counts: those of a project have a limit together.

    Shorten them; those in folders near the top count first.
    """
    OUTLINE_UNAVAILABLE = "OUTLINE_UNAVAILABLE"
    """The outline could not be read.

    Fix the file that `sourceRef` names.
    """
    RUNS_UNAVAILABLE = "RUNS_UNAVAILABLE"
    """What recent runs wrote could not be read; the prompt goes without.

    Look at the rights of user data.
    """
    PROJECT_FILE_INVALID = "PROJECT_FILE_INVALID"
    """`.creonow/project.json` is not used, because it is no JSON with `version` 1 and, if any, a
    `language` of `zh` or `en`.

    Fix the file.
    """
    SKILL_UNKNOWN = "SKILL_UNKNOWN"
    """There is no such skill, so the general profile was used.

    List the skills with `skill:list`.
    """
    SKILL_SOURCE_ABSENT = "SKILL_SOURCE_ABSENT"
    """The skill relies on something that neither the project nor a host gives.

    Write summaries or relations, connect the host, or take it out of the skill.
    """
    AI_REWRITE_FAILED = "AI_REWRITE_FAILED"
    """Writing again after a broken constraint failed; the first attempt is the result.

    Run it again; the verdict says what was broken.
    """
    AI_PARAMETER_DROPPED = "AI_PARAMETER_DROPPED"
    """The back end does not know a parameter such as `temperature`; it answered without it.

    Take the parameter out of the run, the skill or the back end.
    """
    PROMPT_TRUNCATED_BY_SERVER = "PROMPT_TRUNCATED_BY_SERVER"
    """The server read far fewer tokens than were sent, so the model did not see all of the prompt.

    Give the model a larger window on the server.
    """
    OUTPUT_EMPTY_AFTER_THINKING = "OUTPUT_EMPTY_AFTER_THINKING"
    """The model spent its whole answer on thinking and wrote nothing.

    Raise `maxOutputTokens`, or lower `effort`.
    """
    SUMMARY_FALLBACK = "SUMMARY_FALLBACK"
    """The model could not summarise older rounds; an extract took its place.

    Nothing; it is tried again with the next summary.
    """
    HISTORY_TORN_LINE = "HISTORY_TORN_LINE"
    """A crash tore the last line of the history; it was dropped.

    Nothing; the line was never acknowledged.
    """
    HISTORY_DAMAGED_LINE = "HISTORY_DAMAGED_LINE"
    """Lines of the history are damaged and were left out.

    Restore the file from a backup if they matter.
    """
    CODE_LAW_UNAVAILABLE = "CODE_LAW_UNAVAILABLE"
    """`code_law.md` is there but cannot be read as text.

    Save it as UTF-8.
    """
    STORY_UNAVAILABLE = "STORY_UNAVAILABLE"
    """The order of the documents could not be read, so only the current one was used.

    Try again; look at the rights of the project's folder.
    """
    STORY_PLACE_UNCLEAR = "STORY_PLACE_UNCLEAR"
    """A `from`, `until` or progression names a place that does not exist, or more than one.

    Name the place as `project:story` lists it.
    """
    CHARACTER_NAME_AMBIGUOUS = "CHARACTER_NAME_AMBIGUOUS"
    """A part of a name belongs to several characters and counts for none of them.

    Write `aliases` into their files.
    """
    SYNOPSIS_UNAVAILABLE = "SYNOPSIS_UNAVAILABLE"
    """The story so far was not ready in time; it is missing.

    Try again; summaries that are stored come at once.
    """
    SUMMARY_STALE = "SUMMARY_STALE"
    """Chapters changed after the author edited their summaries.

    Look at the summaries and edit or confirm them.
    """
    THREADS_UNAVAILABLE = "THREADS_UNAVAILABLE"
    """A file of `.creonow/threads` could not be read.

    Fix the file that `sourceRef` names.
    """
    CONTEXT_THREAD_LIMIT = "CONTEXT_THREAD_LIMIT"
    """More threads are open than one prompt shows; those due first are shown.

    Mark threads that are resolved.
    """


WARNINGS: dict[WarningCode, Wording] = {
    WarningCode.CONTEXT_BUDGET_FALLBACK: Wording(
        "The budget or the tokenizer could not be used; the default profile was.",
        "预算或分词器不可用，已回退到默认预算。",
    ),
    WarningCode.CONTEXT_BUDGET_CLAMPED: Wording(
        "The window has room for more than 64 000 tokens; a prompt has no more than that.",
        "窗口可容纳更多，但总预算以 64 000 为上限。",
    ),
    WarningCode.CONTEXT_WINDOW_REDUCED: Wording(
        "The model's window is smaller than the budget's; the prompt was made to fit.",
        "模型的窗口小于预算的窗口，提示已相应缩短。",
    ),
    WarningCode.CONTEXT_RULES_OVERBUDGET: Wording(
        "Rules and people take more than their share; the least relevant people were left out.",
        "规则与人物超出了份额，已略去最不相关的人物。",
    ),
    WarningCode.CONTEXT_MINIMUM_UNMET: Wording(
        "The named layer has fewer tokens than its minimum, though it has more text.",
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
    WarningCode.DOCUMENTS_LEFT_OUT: Wording(
        "The project's folder is too big; only the documents nearest to its top are used.",
        "项目文件夹过大，仅使用最靠近顶层的文档。",
    ),
    WarningCode.IGNORE_FILE_CUT: Wording(
        "Not every line of an ignore file counts: those of a project have a limit together.",
        "忽略规则文件并非每一行都生效：一个项目的忽略文件合计有上限。",
    ),
    WarningCode.OUTLINE_UNAVAILABLE: Wording("The outline could not be read.", "大纲无法读取。"),
    WarningCode.RUNS_UNAVAILABLE: Wording(
        "The summaries of recent runs could not be read.", "最近运行摘要无法读取。"
    ),
    WarningCode.PROJECT_FILE_INVALID: Wording(
        ".creonow/project.json is not used: it must be JSON with `version` 1 and, if any, a "
        "`language` of zh or en.",
        "未采用 .creonow/project.json：它须为 JSON，version 为 1，language 如有须为 zh 或 en。",
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
    WarningCode.AI_PARAMETER_DROPPED: Wording(
        "The back end does not know the named parameter; it answered without it.",
        "后端不认识所列参数，作答时未使用。",
    ),
    WarningCode.PROMPT_TRUNCATED_BY_SERVER: Wording(
        "The server read far less than it was sent, so the model did not see all of the prompt.",
        "服务器读到的远少于所发送的，模型没有看到完整的提示。",
    ),
    WarningCode.OUTPUT_EMPTY_AFTER_THINKING: Wording(
        "The model spent its whole answer on thinking and wrote nothing.",
        "模型把全部回答用于思考，没有写出正文。",
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
    WarningCode.STORY_UNAVAILABLE: Wording(
        "The order of the documents could not be read, so only the current one was used.",
        "无法读取各文档的故事顺序，只使用了当前文档。",
    ),
    WarningCode.STORY_PLACE_UNCLEAR: Wording(
        "A `from`, `until` or progression names a place that is unknown or not the only one.",
        "from、until 或进展所指的位置不存在，或不止一处。",
    ),
    WarningCode.CHARACTER_NAME_AMBIGUOUS: Wording(
        "A part of a name belongs to several characters and so counts for none.",
        "名字的一部分属于多个角色，因此不作为任何人的称呼。",
    ),
    WarningCode.SYNOPSIS_UNAVAILABLE: Wording(
        "The story so far was not ready in time; it is missing.",
        "前情提要未能及时给出，未注入。",
    ),
    WarningCode.SUMMARY_STALE: Wording(
        "Chapters changed after their summaries were edited.", "章节在其摘要编辑之后又有改动。"
    ),
    WarningCode.THREADS_UNAVAILABLE: Wording(
        "A file of `.creonow/threads` could not be read.", "伏笔文件无法读取。"
    ),
    WarningCode.CONTEXT_THREAD_LIMIT: Wording(
        "More threads are open than one prompt shows; those due first are shown.",
        "未收的伏笔多于单次所示，已取最先到期的。",
    ),
    WarningCode.CODE_LAW_UNAVAILABLE: Wording(
        "code_law.md is there but cannot be read as text.", "code_law.md 无法作为文本读取。"
    ),
}


def version_too_new(what: str, found: int, known: int, **details: str) -> DaemonError:
    """Return the error for a file that a newer daemon wrote; this one must not change it."""
    message = Wording(
        f"{what} has version {found}, this daemon knows {known}; update creonowd.",
        f"{what} 的版本为 {found}，此守护进程只认识 {known}；请升级 creonowd。",
    )
    return DaemonError(ErrorCode.VERSION_TOO_NEW, message, **details, found=found, known=known)


def disk_error(error: OSError, what: str) -> DaemonError:
    """Return the error for a failure of the disk; it names `what`, and no path."""
    reason = errno.errorcode.get(error.errno or 0, "UNKNOWN")
    if error.errno in _FULL or getattr(error, "winerror", None) in _FULL_ON_WINDOWS:
        return DaemonError(
            ErrorCode.STORAGE_FULL,
            Wording(
                f"There is no space left for {what}; free some and try again.",
                f"没有空间写入 {what}；请释放空间后重试。",
            ),
            reason=reason,
        )
    text = os.strerror(error.errno) if error.errno else "unknown reason"
    wording = Wording(f"The disk refused {what}: {text}.", f"磁盘拒绝了 {what}（{reason}）。")
    return DaemonError(ErrorCode.IO_ERROR, wording, file=what, reason=reason)


@contextlib.contextmanager
def library_errors(error_of: Callable[[str], Exception]) -> Generator[None]:
    """Turn all that a library raises into the error that is made of the exception's name.

    Code in Rust may also panic, which is no `Exception`.
    """
    try:
        yield
    except BaseException as error:
        name = type(error).__name__
        if not isinstance(error, Exception) and name != "PanicException":
            raise
        raise error_of(name) from error
