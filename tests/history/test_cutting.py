"""Where the summary ends: the same answer in one step per turn as from the beginning."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.budget_fit import Cost, Prices, SummaryCut, SummaryThreshold, cut_point
from creonowd.history.rounds import Message, Round, Speaker

KEEP = 3
LINE = SummaryThreshold(tokenizer="by eye", fixed=5, limit=60, keep=KEEP, summary_tokens=9)


def rounds_of(costs: list[int]) -> list[Round]:
    said = [Message(role=Speaker.USER, content="x" * cost) for cost in costs]
    return [Round(index, [message]) for index, message in enumerate(said)]


def price(one: Round) -> Cost:
    size = len(one.request)
    return Cost(size // 2, size, size)


def price_of_summary(covers: int) -> int:
    return 3 + covers % 5


def cut(rounds: list[Round], prices: Prices) -> SummaryCut:
    return cut_point(rounds, 1, LINE, prices)


costs = st.lists(st.integers(1, 30), max_size=40)


@given(costs)
def test_turn_by_turn_is_the_same_as_from_the_beginning(sizes: list[int]) -> None:
    prices = Prices(price, price_of_summary)
    growing = rounds_of(sizes)

    stepwise = [cut(growing[:turn], prices) for turn in range(len(sizes) + 1)]
    anew = [cut(rounds_of(sizes[:turn]), prices) for turn in range(len(sizes) + 1)]

    assert stepwise == anew


@given(costs)
def test_it_moves_on_only_when_the_line_is_reached_and_leaves_those_to_keep(
    sizes: list[int],
) -> None:
    growing = rounds_of(sizes)

    for turn in range(len(sizes) + 1):
        found = cut(growing[:turn], Prices(price, price_of_summary))

        assert found.covers == plainly(sizes[:turn])
        assert found.covers <= max(0, turn - KEEP)
        assert found.gone.whole == sum(sizes[: found.covers])


def plainly(sizes: list[int]) -> int:
    """The same, with nothing remembered and nothing added up beforehand."""
    covers = 0
    for turn, request in enumerate([*(size // 2 for size in sizes), 1]):
        summary = price_of_summary(covers) if covers else 0
        prompt = LINE.fixed + summary + sum(sizes[covers:turn]) + request
        if prompt >= LINE.limit:
            covers = max(covers, turn - KEEP)
    return covers


def test_a_turn_looks_at_one_round_however_long_the_conversation_is() -> None:
    looked: list[int] = []

    def watched(one: Round) -> Cost:
        looked.append(one.index)
        return price(one)

    prices = Prices(watched, price_of_summary)
    rounds = rounds_of([9] * 500)
    cut(rounds[:-1], prices)
    looked.clear()

    cut(rounds, prices)

    assert set(looked) <= {*range(490, 500)}
    assert 499 in looked


@given(costs, st.data())
def test_a_summary_written_down_later_is_reckoned_with_as_if_it_always_was(
    sizes: list[int], data: st.DataObject
) -> None:
    growing = rounds_of(sizes)
    prices = Prices(price, price_of_summary)
    cuts = {cut(growing[:turn], prices).covers for turn in range(len(sizes) + 1)} - {0}
    kept = sorted(data.draw(st.sets(st.sampled_from(sorted(cuts))))) if cuts else []

    def dearer(covers: int) -> int:
        return 25 if covers in kept else price_of_summary(covers)

    found = cut(growing, Prices(price, dearer, kept))

    assert found == cut(rounds_of(sizes), Prices(price, dearer, kept))
