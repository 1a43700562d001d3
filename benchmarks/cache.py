"""What providers would read from their prompt caches while an author writes, by their own rules.

Sessions are recorded with a real daemon and its index built, in a project as large as the
specification says, with the default budget. A prompt is sent in four ways: in our blocks, with the
system prompt as the only block of its own, as one block, and with a window that slides with the
cursor, which is how libraries that keep the newest text cut it. Tokens are those of `o200k_base`.
The document grows by 100 characters a minute, half of them typed and half taken over from answers;
one session is slower. In that project rules, settings and window fill the skill's target, and no
passages are left; so two smaller projects follow, in which passages are a good part of the prompt,
and the first one with a budget that lets the system prompt reach every provider's minimum.
`--quick` records the typing sessions only. Below each of these the peers of `bench peers` get the
same rules, settings and text, in as many tokens, and keep the end of the story. The last table has the budget for long windows beside
the default one.
"""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.assemble import Server, run_daemon
from benchmarks.novel import SPECIFIED, Size, make_project, write
from benchmarks.peers import peers
from benchmarks.programs.contest import PASSAGE_TOKENS, Work
from creonowd.tokens.tables import packaged_encoding
from creonowd.workspace.usage import (
    ModelPrice,
    TokenUse,
    cost_of,
    cost_without_cache,
    packaged_prices,
)
from testing.cache_rules import (
    AN_HOUR,
    RULES_AS_OF,
    BreakPointCache,
    CacheUse,
    MarkedCache,
    PrefixCache,
    PromptCache,
    Request,
    UnitCache,
    possible,
)
from testing.corpus import chinese, english, origin

CHARACTERS_A_MINUTE = 100
CALLS = 30
CHAPTER = 42
SELECTED = 200
USUAL_TOKENS, WIDE_TOKENS = 6_000, 12_000
SMALL = Size(constraints=10, characters=8, settings=1)
MODEL = "gpt-5.6"
SKILL = "builtin:continue"
SKILLS = ("builtin:continue", "builtin:expand", "builtin:dialogue")
TYPING = "typing at the end"
WAYS = ("blocks", "system prompt marked", "one block", "sliding window")


class Provider(NamedTuple):
    """A provider's cache and the model whose prices count; a mark lives for an hour, or less."""

    name: str
    model: str
    cache: Callable[[], PromptCache]
    an_hour: bool = False

    @property
    def price(self) -> ModelPrice:
        """The price of its model."""
        price = packaged_prices().price_of(self.model)
        assert price is not None, self.model
        if self.an_hour:
            return ModelPrice(
                name=price.name,
                input=price.input,
                output=price.output,
                cache_read=price.cache_read,
                cache_write=price.cache_write_hour,
            )
        return price


PROVIDERS = (
    Provider("Anthropic, 5 min", "claude-sonnet-5-5", lambda: MarkedCache(1024)),
    Provider("Anthropic, 1 h", "claude-sonnet-5-5", lambda: MarkedCache(1024, AN_HOUR), True),
    Provider("OpenAI, break points", "gpt-6.1-sol", BreakPointCache),
    Provider("OpenAI, before 5.6", "gpt-5.4", lambda: PrefixCache(1024, 128)),
    Provider("DeepSeek", "deepseek-flash", UnitCache),
    Provider("Gemini", "gemini-3.8-flash", lambda: PrefixCache(4096)),
)


class Call(NamedTuple):
    """One prompt of a session: how it was assembled, what stands before the cursor, and when."""

    result: dict[str, Any]
    before: str
    at: float


def main(argv: list[str]) -> None:
    """Record every session, then print a table for each."""
    prices = packaged_prices()
    print(
        f"Texts: {origin()}; rules of {RULES_AS_OF}, prices of {prices.as_of} in {prices.currency}"
        " for a million input tokens as they were used."
    )
    with tempfile.TemporaryDirectory() as folder, run_daemon(Path(folder) / "user data") as daemon:
        root = Path(folder) / "小说"
        author = Author(daemon, root, make_project(root, chinese(), SPECIFIED))
        for name, calls in author.sessions(quick="--quick" in argv):
            _print_session(name, calls)
            if name.startswith(TYPING):
                _print_peers(calls)
        for language, text in (("Chinese", chinese()), ("English", english())):
            root = Path(folder) / language
            writer = Author(daemon, root, make_project(root, text, SMALL))
            for name, calls in writer.small_sessions(language):
                _print_session(name, calls)
        _print_long(author)


class Author:
    """Somebody who writes in a project and asks for prompts."""

    def __init__(self, daemon: Server, root: Path, chapters: Sequence[str]) -> None:
        self._daemon, self._root, self._chapters = daemon, root, chapters
        project = daemon.ask("project:create", rootPath=str(root))["projectId"]
        self._project = {"projectId": project}
        self._version = 0
        place = {"documentId": _path(1), "cursorPosition": 0, "query": "雨", "limit": 1}
        for _ in range(2):
            limit = {"timeoutMs": 600_000}
            daemon.ask("context:retrieve", **self._project, **place, wait=True, _meta=limit)

    def sessions(self, *, quick: bool) -> Iterator[tuple[str, list[Call]]]:
        """Record the sessions."""
        for step in (24, 60, 400):
            yield f"{TYPING}, a call every {step} characters", list(self._typing_calls(step))
        slow = [call._replace(at=2 * call.at) for call in self._typing_calls(400)]
        yield "the same at 50 characters a minute: a call every 8 minutes", slow
        self._change_budget(**_budget(WIDE_TOKENS))
        for step in (24, 400):
            title = f"a budget of {WIDE_TOKENS} tokens, a call every {step} characters"
            yield title, list(self._typing_calls(step))
        self._change_budget(kind="default", **_budget(USUAL_TOKENS))
        if quick:
            return
        yield "editing in the middle, a call every 60 characters", list(self._editing_calls())
        yield "another chapter with every tenth call, 60 characters", list(self._switching_calls())
        yield "a setting changes with every tenth call, 60 characters", list(self._settings())
        yield "three skills in turn, 60 characters", list(self._three_skills())

    def small_sessions(self, language: str) -> Iterator[tuple[str, list[Call]]]:
        """Record sessions in a project with few rules and settings."""
        for step in (24, 60, 400):
            title = f"a small project in {language}, a call every {step} characters"
            yield title, list(self._typing_calls(step))

    def long_sessions(self) -> Iterator[tuple[str, list[Call], list[Call]]]:
        """Record sessions with the default budget and with the one for long windows."""
        sessions: dict[str, Callable[[], Iterator[Call]]] = {
            "a call every 60 characters": lambda: self._typing_calls(60),
            "a call every 400 characters": lambda: self._typing_calls(400),
            "another chapter with every tenth call": self._switching_calls,
        }
        usual = {name: list(record()) for name, record in sessions.items()}
        self._change_budget(kind="long")
        for name, record in sessions.items():
            yield name, usual[name], list(record())
        self._change_budget(kind="default")

    def _change_budget(self, **change: Any) -> None:
        change |= {"version": self._daemon.ask("context:budget:get", **self._project)["version"]}
        self._daemon.ask("context:budget:update", **self._project, profile=change)

    def _typing_calls(self, step: int, skill: str = SKILL) -> Iterator[Call]:
        story = "".join(self._chapters[CHAPTER - 1 : CHAPTER + 8])
        start = 2_000
        for n in range(CALLS):
            end = start + n * step
            yield self._call(story[:end], end, n * step, skill)

    def _editing_calls(self) -> Iterator[Call]:
        text = self._chapters[CHAPTER - 1]
        cursor, typed = len(text) // 2, self._chapters[CHAPTER + 1]
        for n in range(CALLS):
            added = typed[: n * 60]
            yield self._call(text[:cursor] + added + text[cursor:], cursor + len(added), n * 60)

    def _switching_calls(self) -> Iterator[Call]:
        for n in range(CALLS):
            number = CHAPTER + n // 10
            end = 1_500 + n % 10 * 60
            yield self._call(self._chapters[number - 1][:end], end, n * 60, number=number)

    def _settings(self) -> Iterator[Call]:
        for n, call in enumerate(self._typing_calls(60)):
            yield call
            if n % 10 == 9:
                path = self._root / ".creonow/settings/设定003.md"
                write(path, f"渡口的灯在第{n}夜熄灭。\n")

    def _three_skills(self) -> Iterator[Call]:
        text = self._chapters[CHAPTER - 1]
        for n in range(CALLS):
            end = 1_500 + n * 60
            yield self._call(text[:end], end, n * 60, SKILLS[n % len(SKILLS)])

    def _call(
        self, text: str, cursor: int, typed: int, skill: str = SKILL, number: int = CHAPTER
    ) -> Call:
        self._version += 1
        place = {**self._project, "documentId": _path(number)}
        self._daemon.ask("context:document:sync", **place, version=self._version, text=text)
        selection = None if skill == SKILL else {"from": cursor - SELECTED, "to": cursor}
        result = self._daemon.ask(
            "context:assemble",
            **place,
            skillId=skill,
            cursorPosition=cursor,
            selection=selection,
            model=MODEL,
        )
        return Call(result, text[:cursor], 60 * typed / CHARACTERS_A_MINUTE)


def _budget(total: int) -> dict[str, int]:
    """Return figures of a budget with this total, and what a model must have room for besides."""
    return {"totalBudgetTokens": total, "contextWindowTokens": total + 2_000}


def _path(number: int) -> str:
    return f"chapters/{number:03}.md"


def _print_session(name: str, calls: Sequence[Call]) -> None:
    ways = {
        "blocks": list(_in_blocks(calls)),
        "system prompt marked": [_system_marked(call) for call in calls],
        "one block": [_one_block(call) for call in calls],
        "sliding window": [_sliding_window(call) for call in calls],
    }
    tokens = sum(len(request.tokens) for request in ways["blocks"]) // len(calls)
    stable = _points(calls[0].result)["systemPrompt"]
    retrieved = sum(c.result["layers"]["retrieved"]["tokens"] for c in calls) // len(calls)
    title = f"{len(calls)} calls of {tokens} tokens, {stable} of them system prompt"
    print(f"\n{name}: {title}, {retrieved} retrieved\n")
    print("| provider | " + " | ".join(f"{way}: read, price" for way in WAYS) + " |")
    print("|---|" + "---|" * len(WAYS))
    for provider in PROVIDERS:
        cells = [_cell(provider, ways[way]) for way in WAYS]
        print(f"| {provider.name} | " + " | ".join(cells) + " |")
    print("| possible at all | " + " | ".join(f"{possible(ways[way]):.0%}" for way in WAYS) + " |")


def _print_peers(calls: Sequence[Call]) -> None:
    """Print the same for what libraries make of the text, if they can be had."""
    work = _peers_work(calls)
    every = {name: results for name, results in peers(work) if results is not None}
    head = work.system[:100]
    made = {
        name: results for name, results in every.items() if results[0].stories[0].startswith(head)
    }
    for name in sorted(every.keys() - made.keys()):
        print(f"\n{name} gave the text without the rules before it, and is left out.")
    if not made:
        print("\nNo peer could be installed.")
        return
    print(f"\n| provider | {' | '.join(f'{name}: read, price' for name in made)} |")
    print("|---|" + "---|" * len(made))
    requests = {
        name: [
            _peer_request(text, work, call) for text, call in zip(one.stories, calls, strict=True)
        ]
        for name, (one,) in made.items()
    }
    for provider in PROVIDERS:
        cells = [_cell(provider, sent) for sent in requests.values()]
        print(f"| {provider.name} | " + " | ".join(cells) + " |")
    print(
        "| possible at all | " + " | ".join(f"{possible(r):.0%}" for r in requests.values()) + " |"
    )


def _peers_work(calls: Sequence[Call]) -> Work:
    """Cut a session into the passages that a peer gets: some at once, and one more with each call."""
    budget = max(call.result["tokenCount"] for call in calls)
    first = budget // PASSAGE_TOKENS
    start = calls[0].before
    size = -(-len(start) // first)
    passages = [start[n * size : (n + 1) * size] for n in range(first)]
    passages += [later.before[len(one.before) :] for one, later in pairwise(calls)]
    return Work(calls[0].result["systemPrompt"], [], ["." for _ in calls], [budget], passages)


def _peer_request(text: str, work: Work, call: Call) -> Request:
    """Mark where the rules and settings end, as far as the peer left them as they were."""
    tokens = _encode(text)
    pairs = enumerate(zip(tokens, _encode(work.system), strict=False))
    system = next((n for n, (one, other) in pairs if one != other), len(_encode(work.system)))
    return Request(tokens, (system or len(tokens),), call.at)


def _print_long(author: Author) -> None:
    """Print what a call costs with whole chapters in the prompt, beside the default budget."""
    for name, usual, long in author.long_sessions():
        sizes = [
            sum(call.result["tokenCount"] for call in calls) // len(calls)
            for calls in (usual, long)
        ]
        first = long[0].result["tokenCount"]
        print(
            f"\n`kind: long`, {name}: {sizes[1]} tokens a call (the first {first}), default {sizes[0]}\n"
        )
        print(
            "| provider | default: a thousand calls | long: read, a thousand calls | long, nothing cached | long ÷ default |"
        )
        print("|---|---|---|---|---|")
        for provider in PROVIDERS:
            small, large = (_cost_of(provider, list(_in_blocks(calls))) for calls in (usual, long))
            read = large.use.read / large.tokens
            print(
                f"| {provider.name} | {small.paid:.2f} | {read:.0%}, {large.paid:.2f} "
                f"| {large.plain:.2f} | {large.paid / small.paid:.1f} |"
            )


class SessionCost(NamedTuple):
    """What a session used, its tokens, and what a thousand such calls cost with and without cache."""

    use: TokenUse
    tokens: int
    paid: float
    plain: float


def _cost_of(provider: Provider, requests: Sequence[Request]) -> SessionCost:
    cache = provider.cache()
    used = [cache.send(request) for request in requests]
    total = CacheUse(*(sum(column) for column in zip(*used, strict=True)))
    use = TokenUse(fresh=total.fresh, read=total.read, written=total.written)
    thousand = 1000 / len(requests)
    paid, plain = cost_of(provider.price, use), cost_without_cache(provider.price, use)
    return SessionCost(use, total.total, thousand * paid, thousand * plain)


def _cell(provider: Provider, requests: Sequence[Request]) -> str:
    spent = _cost_of(provider, requests)
    million = 1000 * len(requests) / spent.tokens
    paid, plain = million * spent.paid, million * spent.plain
    return f"{spent.use.read / spent.tokens:.0%}, {paid:.2f} of {plain:.2f}"


def _points(result: dict[str, Any]) -> dict[str, int]:
    return {point["after"]: point["tokens"] for point in result["cacheBreakPoints"]}


def _in_blocks(calls: Sequence[Call]) -> Iterator[Request]:
    """Cut prompts where their break points say, and mark as a run does.

    A run marks the window once what stands before it comes again.
    """
    sent: set[str] = set()
    for call in calls:
        points = call.result["cacheBreakPoints"]
        before = [point["hash"] for point in points if point["after"] != "window"][-1]
        wanted = [p for p in points if p["marked"] and (p["after"] != "window" or before in sent)]
        sent.add(before)
        ends = tuple(sorted({point["tokens"] for point in points}))
        marked = tuple(sorted({point["tokens"] for point in wanted}))
        yield Request(_encode(call.result["prompt"]), ends, call.at, marked)


def _system_marked(call: Call) -> Request:
    system = _encode(call.result["systemPrompt"])
    return Request(system + _encode(call.result["userContent"]), (len(system),), call.at)


def _one_block(call: Call) -> Request:
    tokens = _encode(call.result["prompt"])
    return Request(tokens, (len(tokens),), call.at)


def _sliding_window(call: Call) -> Request:
    """Show the newest text that fits beside the same rules and settings."""
    system = _encode(call.result["systemPrompt"])
    room = call.result["tokenCount"] - len(system)
    return Request(system + _encode(call.before)[-room:], (len(system),), call.at)


def _encode(text: str) -> tuple[int, ...]:
    return tuple(packaged_encoding("o200k_base").encode_ordinary(text))
