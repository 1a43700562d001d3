"""When someone who keeps failing is left alone."""

from creonowd.sources.hosts import Breaker


def failing(times: int) -> Breaker:
    breaker = Breaker(most_failures=3, rest_seconds=30)
    for _ in range(times):
        breaker.failed(100.0, "timeout")
    return breaker


def test_a_few_failures_are_forgiven():
    assert failing(2).allows(100.0)


def test_a_success_wipes_the_slate():
    breaker = failing(2)

    breaker.succeeded()

    assert not breaker.failed(101.0, "timeout")
    assert breaker.allows(101.0)


def test_too_many_in_a_row_earn_a_rest():
    breaker = failing(3)

    assert breaker.is_open
    assert not breaker.allows(129.9)


def test_after_the_rest_one_question_is_let_through():
    breaker = failing(3)

    assert breaker.allows(130.0)
    assert not breaker.allows(130.1)


def test_a_failure_after_the_rest_earns_another():
    breaker = failing(3)
    breaker.allows(130.0)

    assert not breaker.failed(135.0, "timeout")
    assert not breaker.allows(164.9)
    assert breaker.allows(165.0)


def test_an_answer_after_the_rest_ends_it():
    breaker = failing(3)
    breaker.allows(130.0)

    breaker.succeeded()

    assert not breaker.is_open
    assert breaker.allows(130.1)


def test_only_the_failure_that_is_too_much_is_news():
    breaker = Breaker(most_failures=2)

    assert [breaker.failed(0.0, "timeout") for _ in range(3)] == [False, True, False]
