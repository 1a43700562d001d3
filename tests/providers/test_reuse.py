from creonowd.providers.configured import SentPrefixes


def sent(*hashes: str, capacity: int = 256) -> list[bool]:
    reuse = SentPrefixes(capacity)
    likely: list[bool] = []
    for prefix in hashes:
        likely.append(reuse.is_likely("p", prefix))
        reuse.note("p", prefix)
    return likely


def test_the_first_call_is_marked_so_that_the_second_can_hit() -> None:
    assert sent("a", "a", "a") == [True, True, True]


def test_a_prefix_that_changes_with_every_call_is_not_worth_it() -> None:
    assert sent("a", "b", "c", "d", "d", "d") == [True, False, False, False, True, True]


def test_a_change_after_reuse_is_worth_it_again() -> None:
    assert sent("a", "a", "b", "b", "c") == [True, True, True, True, True]


def test_two_skills_in_turn_keep_both_their_prefixes() -> None:
    assert sent("a", "b", "a", "b", "a") == [True, False, True, True, True]


def test_projects_do_not_know_of_each_other() -> None:
    reuse = SentPrefixes()
    reuse.note("p", "a")
    reuse.note("p", "b")

    assert reuse.is_likely("q", "c")


def test_memory_is_bounded() -> None:
    assert sent(*(str(n) for n in range(1000)), capacity=4)[-1] is False
