"""Why did my cache miss: the first source that differs, and how."""

import pytest
from msgspec.structs import replace

from creonowd.context.fragment import Fragment, FragmentKind, Layer
from creonowd.context.prefix import (
    Change,
    PrefixComparison,
    PrefixDigest,
    PrefixKey,
    PrefixMemory,
    first_change,
)
from creonowd.sources.in_memory import piece
from tests.context.worlds import World, assemble_world

KEY = PrefixKey("prj", "skill", "openai", "gpt-4o", "o200k_base")


def digest(*sources: str) -> PrefixDigest:
    pairs = (source.partition("=") for source in sources)
    return PrefixDigest(hash="+".join(sources), sources=tuple((n, hash(v)) for n, _, v in pairs))


@pytest.mark.parametrize(
    ("before", "after", "ref", "change"),
    [
        (("a=1", "b=1"), ("a=1", "b=2"), "b", Change.CHANGED),
        (("a=1",), ("a=1", "b=1"), "b", Change.ADDED),
        (("b=1",), ("a=1", "b=1"), "a", Change.ADDED),
        (("a=1", "b=1"), ("a=1",), "b", Change.REMOVED),
        (("a=1", "b=1"), ("b=1",), "a", Change.REMOVED),
        (("a=1", "b=1"), ("b=1", "a=1"), "b", Change.REORDERED),
        (("a=1", "b=1"), ("a=1", "c=1"), "c", Change.ADDED),
    ],
)
def test_the_first_difference_is_named(
    before: tuple[str, ...], after: tuple[str, ...], ref: str, change: Change
) -> None:
    found = first_change(digest(*before), digest(*after))

    assert found is not None
    assert (found.source_ref, found.change) == (ref, change)


def test_equal_prefixes_have_no_difference() -> None:
    assert first_change(digest("a=1"), digest("a=1")) is None


def test_each_caller_has_its_own_previous_call() -> None:
    memory = PrefixMemory()

    memory.remember(KEY, digest("a=1"))

    assert memory.compare(KEY, digest("a=1")).unchanged
    assert memory.compare(KEY._replace(model="gpt-4"), digest("a=1")) == PrefixComparison()


def test_it_forgets_the_oldest_caller_first() -> None:
    memory = PrefixMemory(capacity=2)

    for model in ("a", "b", "c"):
        memory.remember(KEY._replace(model=model), digest())

    assert memory.compare(KEY._replace(model="c"), digest()).unchanged
    assert not memory.compare(KEY._replace(model="a"), digest()).unchanged


def what_stays_of(setting: Fragment) -> str:
    return assemble_world(World(settings=(setting,))).system_prompt.settings.decisions[0].text


RULE = piece(Layer.RULES, "kg:林远", "林远不会大声喊叫", kind=FragmentKind.ENTITY)
LONG = piece(Layer.SETTINGS, "w.md", "他沿着河走。\n\n" * 4000)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (World(rules=(RULE,)), World(rules=(replace(RULE, kind=FragmentKind.CONSTRAINT),))),
        (World(rules=(RULE,)), World(settings=(replace(RULE, layer=Layer.SETTINGS),))),
        (
            World(settings=(LONG,)),
            World(settings=(replace(LONG, text=what_stays_of(LONG)),)),
        ),
    ],
)
def test_a_source_that_says_the_same_in_another_way_is_named(before: World, after: World) -> None:
    """Set as a constraint, in another layer, or no longer as a part: the bytes are others."""
    old, new = (assemble_world(world).system_prompt for world in (before, after))

    change = first_change(old.digest, new.digest)

    assert old.hash != new.hash
    assert change is not None
    assert change.change is Change.CHANGED
