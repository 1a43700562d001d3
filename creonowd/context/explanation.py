"""Why a prompt has something or has it not: verdicts that follow from the evidence, in words.

There is no second path: what was a candidate is answered by the decision on it.
"""

from collections.abc import Sequence
from enum import StrEnum

from msgspec import UNSET, UnsetType, field

from creonowd.context.assemble import Assembly
from creonowd.context.candidates import Decision
from creonowd.context.fragment import FragmentKind, Layer, Reason, Rule, rank_key
from creonowd.context.plan import Need
from creonowd.context.prompt_coverage import PieceKind, kind_of
from creonowd.errors import Wording
from creonowd.model import Model, Result


class ExplainVerdict(StrEnum):
    """Whether the model knows something."""

    IN = "in"
    """It stands in the prompt."""
    LEFT_OUT = "left_out"
    """It was considered, and something else came first."""
    NEVER_CONSIDERED = "never_considered"
    """It is in the project and was no candidate."""
    NOT_IN_PROJECT = "not_in_project"
    """It stands nowhere in the project."""


class Cause(StrEnum):
    """Why something is not in a prompt."""

    OVER_BUDGET = "over_budget"
    """There was no room."""
    TARGET = "target"
    """The skill fills its prompt no further than its target."""
    OVER_LIMIT = "over_limit"
    """There are more such pieces than one prompt takes, or this one is too large."""
    DUPLICATE = "duplicate"
    """The same text is in the prompt already."""
    NOT_MENTIONED = "not_mentioned"
    """It comes only when it is mentioned, or there is room only for those that are."""
    SKILL_DOES_NOT_READ = "skill_does_not_read"
    """The skill's `context_rules` do not ask for such text."""
    OUTSIDE_WINDOW = "outside_window"
    """It lies outside of the text around the cursor that the skill reads."""
    NO_SHARED_WORDS = "no_shared_words"
    """It shares too little with the text at the cursor to be found."""
    SET_TO_MANUAL = "set_to_manual"
    """Its file says `inject: manual`, and the author did not name it in the request."""
    SET_TO_NEVER = "set_to_never"
    """Its file says `inject: never`."""
    FUTURE = "future"
    """It lies after the cursor in the story."""
    NOT_YET = "not_yet"
    """It holds only from a later place of the story on."""
    NO_LONGER = "no_longer"
    """It holds only up to an earlier place of the story."""
    BROKEN_FILE = "broken_file"
    """Its file has a fault or cannot be read."""
    INDEX_BUILDING = "index_building"
    """The index of passages is still being built."""
    IGNORED = "ignored"
    """Its file is ignored."""
    LAYER_OFF = "layer_off"
    """The budget gives its layer nothing."""
    EMPTY = "empty"
    """Its file says nothing of its own."""
    SOURCE_FAILED = "source_failed"
    """What reads such text failed or took too long."""


class RemedyKind(StrEnum):
    """What an author can do about it."""

    PIN = "pin"
    """Pin `sourceRef`."""
    RAISE_BUDGET = "raise_budget"
    """Raise the budget to `totalBudgetTokens`."""
    SET_INJECT = "set_inject"
    """Set `inject` of the file `path`."""
    FIX_FILE = "fix_file"
    """Fix the file `path` at `line`."""
    CHANGE_SKILL = "change_skill"
    """Use a skill that asks for `need`; no skill at all asks for everything."""
    WIDEN_WINDOW = "widen_window"
    """Use a skill with a larger `surrounding`; no skill shows as much as fits."""
    MOVE_CURSOR = "move_cursor"
    """Go to `position` in `documentId`."""
    MENTION = "mention"
    """Mention `name` in the text, or in the request."""
    INCLUDE_FILE = "include_file"
    """Stop ignoring the file `path`: take out or change `line` of `ignoreFile`."""
    WAIT = "wait"
    """Try again in a moment."""
    WRITE_DOWN = "write_down"
    """Write down who or what `name` is."""


class Remedy(Model):
    """One thing that changes the answer; which fields are there depends on `do`."""

    do: RemedyKind
    """What to do."""
    source_ref: str | UnsetType = UNSET
    """What to pin."""
    total_budget_tokens: int | UnsetType = UNSET
    """The budget that would be enough."""
    path: str | UnsetType = UNSET
    """The file to change, relative to the project."""
    line: int | UnsetType = UNSET
    """The line to look at."""
    ignore_file: str | UnsetType = UNSET
    """The ignore file that hides `path`, relative to the project; absent if none does."""
    inject: str | UnsetType = UNSET
    """The value to set."""
    need: Need | UnsetType = UNSET
    """The key of `context_rules` that would ask for it."""
    document_id: str | UnsetType = UNSET
    """The document to go to."""
    position: int | UnsetType = UNSET
    """The place to go to, in the connection's position encoding."""
    name: str | UnsetType = UNSET
    """What to mention or to write down."""


class QuotedPlace(Model):
    """A place in the prompt."""

    start: int = field(name="from")
    """Where it begins."""
    end: int = field(name="to")
    """Where it ends."""


class RankedAhead(Model):
    """A candidate that came first."""

    source_ref: str
    """What it is; the same as in `trimEvidence`."""
    name: str
    """What an author calls it."""
    tokens: int
    """What it takes of the prompt."""
    score: float | UnsetType = UNSET
    """How well it answers the text at the cursor."""


class SubjectAnswer(Result):
    """What became of one thing that an author asked about."""

    verdict: ExplainVerdict
    """Whether the model knows it."""
    kind: str
    """What it is: `person`, `note`, `rule`, `thread`, `chapter`, `passage`, `summary` or `words`."""
    name: str
    """What an author calls it."""
    sentence: str
    """The answer as a sentence, in the connection's language."""
    remedies: list[Remedy]
    """What would change it, the best first; none if all of it is in the prompt."""
    source_ref: str | UnsetType = UNSET
    """Where it stands; for a candidate the same as in `trimEvidence`."""
    document_id: str | UnsetType = UNSET
    """The document it stands in."""
    start: int | UnsetType = field(name="from", default=UNSET)
    """Where it begins in that document."""
    end: int | UnsetType = field(name="to", default=UNSET)
    """Where it ends there."""
    cause: Cause | UnsetType = UNSET
    """Why it is not in the prompt."""
    rule: Rule | UnsetType = UNSET
    """The step that decided, if it was a candidate."""
    layer: Layer | UnsetType = UNSET
    """The layer it belongs to, if it was a candidate."""
    trimmed: bool | UnsetType = UNSET
    """Whether only a part of it is in the prompt."""
    quote: str | UnsetType = UNSET
    """How it begins, redacted: in the prompt, else where it stands."""
    places: list[QuotedPlace] | UnsetType = UNSET
    """Where it stands in the prompt, as `context:inspect` shows it."""
    rank: int | UnsetType = UNSET
    """Its place among the candidates of its kind, from 1."""
    among: int | UnsetType = UNSET
    """How many of those there are."""
    taken: int | UnsetType = UNSET
    """How many of them are in the prompt."""
    missing_tokens: int | UnsetType = UNSET
    """How many more tokens of budget would have kept all of it."""
    ahead: list[RankedAhead] | UnsetType = UNSET
    """What came before it, the best first."""
    line: int | UnsetType = UNSET
    """The line of its file that has a fault."""
    problem: str | UnsetType = UNSET
    """What is wrong with its file."""


class Explanation(SubjectAnswer):
    """The answer to what an author asked about."""

    about: str
    """What was asked about."""
    others: list[SubjectAnswer]
    """Other things that are called so, or places where the words stand."""


_CAUSES = {
    Rule.NOT_YET: Cause.NOT_YET,
    Rule.NO_LONGER: Cause.NO_LONGER,
    Rule.FUTURE: Cause.FUTURE,
    Rule.UNREADABLE: Cause.BROKEN_FILE,
    Rule.NOT_MENTIONED: Cause.NOT_MENTIONED,
    Rule.TARGET: Cause.TARGET,
    Rule.DUPLICATE: Cause.DUPLICATE,
    Rule.CONSTRAINT_LIMIT: Cause.OVER_LIMIT,
    Rule.THREAD_LIMIT: Cause.OVER_LIMIT,
    Rule.CHUNK_LIMIT: Cause.OVER_LIMIT,
    Rule.SIZE_LIMIT: Cause.OVER_LIMIT,
}
_NOT_CONSIDERED = {Cause.NOT_YET, Cause.NO_LONGER, Cause.FUTURE, Cause.BROKEN_FILE}


def verdict_on(decision: Decision) -> tuple[ExplainVerdict, Cause | None]:
    """Return what the evidence on a candidate means."""
    if decision.is_kept:
        return ExplainVerdict.IN, None
    cause = _CAUSES.get(decision.evidence.rule, Cause.OVER_BUDGET)
    if decision.evidence.reason is Reason.TOO_LARGE:
        cause = Cause.OVER_LIMIT
    considered = cause not in _NOT_CONSIDERED
    return (ExplainVerdict.LEFT_OUT if considered else ExplainVerdict.NEVER_CONSIDERED), cause


def best_decision(decisions: Sequence[Decision]) -> Decision | None:
    """Return the decision that answers for several parts of one thing: a kept one, if any."""
    order = (ExplainVerdict.IN, ExplainVerdict.LEFT_OUT, ExplainVerdict.NEVER_CONSIDERED)
    return min(
        decisions,
        key=lambda one: (order.index(verdict_on(one)[0]), *rank_key(one.fragment)),
        default=None,
    )


def rivals(assembly: Assembly, decision: Decision) -> list[Decision]:
    """Return the candidates that a decision was ranked among, the best first; none if it was not.

    Retrieved text is ranked by its score, settings by their confidence, people by how often they
    are mentioned.
    """
    layer = decision.evidence.layer
    ranked = [one for one in assembly.layers[layer].decisions if _is_ranked(one, assembly)]
    if decision not in ranked:
        return []
    if layer is Layer.RETRIEVED:
        return sorted(ranked, key=_chunk_rank)
    if layer is Layer.SETTINGS:
        return sorted(ranked, key=lambda one: (not one.fragment.pinned, -_confidence(one)))
    if decision.fragment.kind is FragmentKind.ENTITY:
        people = [one for one in ranked if one.fragment.kind is FragmentKind.ENTITY]
        order = assembly.system_prompt.ranking
        return sorted(people, key=lambda one: order.key(one.fragment))
    return []


def _chunk_rank(decision: Decision) -> tuple[object, ...]:
    fragment = decision.fragment
    return (not fragment.pinned, fragment.is_allusion, *rank_key(fragment))


def _is_ranked(decision: Decision, assembly: Assembly) -> bool:
    cause = verdict_on(decision)[1]
    story_kinds = {PieceKind.SUMMARY, PieceKind.CHAPTER}
    is_story = kind_of(decision, assembly.plan.document_id) in story_kinds
    return cause not in _NOT_CONSIDERED and not is_story


def _confidence(decision: Decision) -> float:
    confidence = decision.fragment.confidence
    return 1.0 if confidence is None else confidence


IN_PROMPT = Wording("{0} is in the prompt.", "提示里有{0}。")
PARTLY_IN_PROMPT = Wording("A part of {0} is in the prompt.", "提示里有{0}的一部分。")
NOT_IN_PROJECT = Wording("{0} stands nowhere in your project.", "你的项目里没有{0}。")
RANKED = Wording(
    "{0} is left out: it is number {1} of {2}, and only {3} had room.",
    "没带上{0}：它排第 {1}（共 {2}），只放得下 {3} 个。",
)
RANKED_NONE_FIT = Wording(
    "{0} is left out: it is number {1} of {2}, and none of them had room.",
    "没带上{0}：它排第 {1}（共 {2}），一个也放不下。",
)
ONE_TOKEN_MISSING = Wording(" One more token would do.", "再多 1 个 token 就放得下。")
TOKENS_MISSING = Wording(" {:,} more tokens would do.", "再多 {:,} 个 token 就放得下。")
NO_ROOM = Wording("{0} is left out: there was no room.", "没带上{0}：放不下。")
FAULT = Wording(
    "{0} was never considered: its file cannot be used{1}.", "从未考虑{0}：它的文件无法使用{1}。"
)
NOT_NAMED = Wording(
    "{0} is left out: rules and people filled their room, and this chapter does not name {0}.",
    "没带上{0}：规则与人物占满了，而这一章没有提到{0}。",
)
TOO_LARGE = Wording(
    "{0} is left out: it is too large for a prompt and cannot be cut.",
    "没带上{0}：它太大，又无法截短。",
)
AT_LINE = Wording(" (line {})", "（第 {} 行）")
CAUSE_SENTENCES = {
    Cause.OVER_BUDGET: NO_ROOM,
    Cause.TARGET: Wording(
        "{0} is left out: “{1}” fills its prompt only up to its target, and others came first.",
        "没带上{0}：“{1}”的提示只填到目标长度，别的排在前面。",
    ),
    Cause.OVER_LIMIT: Wording(
        "{0} is left out: one prompt takes no more of these.",
        "没带上{0}：一次提示容不下更多此类内容。",
    ),
    Cause.DUPLICATE: Wording(
        "{0} is left out: the same text is in the prompt already.",
        "没带上{0}：同样的文字已在提示里。",
    ),
    Cause.NOT_MENTIONED: Wording(
        "{0} was never considered: the text near the cursor does not mention that name.",
        "从未考虑{0}：光标附近的文字没有提到。",
    ),
    Cause.SKILL_DOES_NOT_READ: Wording(
        "{0} was never considered: “{1}” does not read such text.",
        "从未考虑{0}：“{1}”不读这类内容。",
    ),
    Cause.OUTSIDE_WINDOW: Wording(
        "{0} was never considered: it lies outside of the text around the cursor that “{1}” reads.",
        "从未考虑{0}：它在“{1}”所读的光标附近文字之外。",
    ),
    Cause.NO_SHARED_WORDS: Wording(
        "{0} was never considered: it shares too little with the text at the cursor.",
        "从未考虑{0}：它与光标处的文字没有足够的共同词语。",
    ),
    Cause.SET_TO_MANUAL: Wording(
        "{0} was never considered: it is set to come only when you name it in a request.",
        "从未考虑{0}：它设为只在你的指令点名时才带上。",
    ),
    Cause.SET_TO_NEVER: Wording(
        "{0} was never considered: it is set to never.", "从未考虑{0}：它设为从不带上。"
    ),
    Cause.FUTURE: Wording(
        "{0} was never considered: it lies after the cursor in the story.",
        "从未考虑{0}：它在故事里位于光标之后。",
    ),
    Cause.NOT_YET: Wording(
        "{0} was never considered: it holds only later in the story.",
        "从未考虑{0}：它要到故事的后面才成立。",
    ),
    Cause.NO_LONGER: Wording(
        "{0} was never considered: it no longer holds at this place of the story.",
        "从未考虑{0}：在故事的这个位置它已不再成立。",
    ),
    Cause.INDEX_BUILDING: Wording(
        "{0} was never considered: the index is still being built.",
        "从未考虑{0}：索引仍在建立。",
    ),
    Cause.IGNORED: Wording(
        "{0} was never considered: it stands only in files that are ignored.",
        "从未考虑{0}：它只出现在被忽略的文件里。",
    ),
    Cause.LAYER_OFF: Wording(
        "{0} was never considered: the budget gives its layer nothing.",
        "从未考虑{0}：预算没有分给它所在的层。",
    ),
    Cause.EMPTY: Wording(
        "{0} was never considered: its file says nothing yet.", "从未考虑{0}：它的文件还没有内容。"
    ),
    Cause.SOURCE_FAILED: Wording(
        "{0} was never considered: reading it failed or took too long.",
        "从未考虑{0}：读取失败或超时。",
    ),
}
