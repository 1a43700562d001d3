"""Where the summary ends: the same answer in one step per turn as from the beginning."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.budget_fit import Costs, RoundCost, SummaryCut, SummaryThreshold, summary_cut
from creonowd.history.rounds import Message, Round, Speaker

KEEP = 3
THRESHOLD = SummaryThreshold(tokenizer="by eye", fixed=5, limit=60, keep=KEEP)

costs = st.lists(st.integers(1, 30), max_size=40)


def rounds_of(costs: list[int]) -> list[Round]:
    messages = [Message(role=Speaker.USER, content="x" * cost) for cost in costs]
    return [Round(index, [message]) for index, message in enumerate(messages)]


def round_cost(one: Round) -> RoundCost:
    size = len(one.request)
    return RoundCost(size // 2, size, size)


def summary_cost(covers: int) -> int:
    return 3 + covers % 5


def cut(rounds: list[Round], costs_of: Costs) -> SummaryCut:
    return summary_cut(rounds, 1, THRESHOLD, costs_of)


@given(costs)
def test_turn_by_turn_is_the_same_as_from_the_beginning(sizes: list[int]) -> None:
    costs_of = Costs(round_cost, summary_cost)
    growing = rounds_of(sizes)

    stepwise = [cut(growing[:turn], costs_of) for turn in range(len(sizes) + 1)]
    anew = [cut(rounds_of(sizes[:turn]), costs_of) for turn in range(len(sizes) + 1)]

    assert stepwise == anew


@given(costs)
def test_it_moves_on_only_when_the_line_is_reached_and_leaves_those_to_keep(
    sizes: list[int],
) -> None:
    growing = rounds_of(sizes)

    for turn in range(len(sizes) + 1):
        found = cut(growing[:turn], Costs(round_cost, summary_cost))

        assert found.covers == plainly(sizes[:turn])
        assert found.covers <= max(0, turn - KEEP)
        assert found.covered.total == sum(sizes[: found.covers])


def plainly(sizes: list[int]) -> int:
    """The same, with nothing remembered and nothing added up beforehand."""
    covers = 0
    for turn, request in enumerate([*(size // 2 for size in sizes), 1]):
        summary = summary_cost(covers) if covers else 0
        prompt = THRESHOLD.fixed + summary + sum(sizes[covers:turn]) + request
        if prompt >= THRESHOLD.limit:
            covers = max(covers, turn - KEEP)
    return covers


def test_a_turn_looks_at_one_round_however_long_the_conversation_is() -> None:
    looked: list[int] = []

    def watched(one: Round) -> RoundCost:
        looked.append(one.index)
        return round_cost(one)

    costs_of = Costs(watched, summary_cost)
    rounds = rounds_of([9] * 500)
    cut(rounds[:-1], costs_of)
    looked.clear()

    cut(rounds, costs_of)

    assert set(looked) <= {*range(490, 500)}
    assert 499 in looked


@given(costs, st.data())
def test_a_summary_written_down_later_is_reckoned_with_as_if_it_always_was(
    sizes: list[int], data: st.DataObject
) -> None:
    growing = rounds_of(sizes)
    costs_of = Costs(round_cost, summary_cost)
    cuts = {cut(growing[:turn], costs_of).covers for turn in range(len(sizes) + 1)} - {0}
    kept = sorted(data.draw(st.sets(st.sampled_from(sorted(cuts))))) if cuts else []

    def dearer(covers: int) -> int:
        return 25 if covers in kept else summary_cost(covers)

    found = cut(growing, Costs(round_cost, dearer, kept))

    assert found == cut(rounds_of(sizes), Costs(round_cost, dearer, kept))
