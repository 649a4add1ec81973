"""Which requests are picked, and what becomes of the counters when settings change."""

import pytest

from naiad_tracing.sampling import Sampler, Scopes
from naiad_tracing.selection import Selection


def picked(sampler: Sampler, requests: int) -> list[int]:
    """Which of so many requests are traced, counted from 1."""
    return [number for number in range(1, requests + 1) if sampler.sample()]


@pytest.mark.parametrize(
    ("rate", "count", "expected"),
    [(1, -1, [1, 2, 3, 4, 5, 6, 7]), (3, -1, [3, 6]), (3, 1, [3]), (1, 2, [1, 2]), (1, 0, []), (0, -1, [])],
)
def test_every_nth_request_is_traced_until_the_count_is_used_up(rate: int, count: int, expected: list[int]) -> None:
    assert picked(Sampler(Selection(("TIMESTAMPS",), rate, count)), 7) == expected


def test_a_forced_request_is_traced_whatever_the_rate_and_not_counted_for_it() -> None:
    sampler = Sampler(Selection(rate=2))

    forced = [sampler.sample(forced=True) for _ in range(3)]

    assert (forced, picked(sampler, 2)) == ([True, True, True], [2])


def test_forced_requests_use_up_the_count() -> None:
    sampler = Sampler(Selection(rate=0, count=2))

    assert [sampler.sample(forced=True) for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize(
    ("rate", "count", "takes_callers", "may"),
    [(1, -1, False, True), (1, 0, False, False), (0, -1, False, False), (0, -1, True, True), (0, 0, True, False)],
)
def test_a_sampler_knows_whether_it_could_pick_any(rate: int, count: int, takes_callers: bool, may: bool) -> None:
    assert Sampler(Selection(rate=rate, count=count)).may_sample(takes_callers) is may


def test_models_without_settings_share_one_counter() -> None:
    scopes = Scopes(Selection(rate=2))

    assert [scopes.sampler(model).sample() for model in ("a", "b", "a", "b")] == [False, True, False, True]


def test_a_model_with_a_setting_of_its_own_counts_for_itself() -> None:
    scopes = Scopes(Selection(rate=2))

    scopes.update({"levels": ("TENSORS",)}, "a")

    assert [scopes.sampler(model).sample() for model in ("a", "b", "a", "b")] == [False, False, True, True]


def test_a_setting_follows_the_wider_scope_where_a_scope_has_none() -> None:
    scopes = Scopes(Selection(("TIMESTAMPS",), 10, -1, 4))

    scopes.update({"rate": 5})
    scopes.update({"log_frequency": 1}, "a")
    scopes.update({"levels": ()})

    assert scopes.sampler("a").selection == Selection((), 5, -1, 1)
    assert scopes.sampler("b").selection == Selection((), 5, -1, 4)


def test_clearing_a_setting_goes_back_to_the_wider_scope() -> None:
    scopes = Scopes(Selection(rate=10))
    scopes.update({"rate": 5})
    scopes.update({"rate": 2}, "a")

    scopes.update({"rate": None}, "a")
    of_model = scopes.sampler("a").selection.rate
    scopes.update({"rate": None})

    assert (of_model, scopes.sampler("a").selection.rate) == (5, 10)


def test_a_model_without_settings_of_its_own_counts_with_the_others_again() -> None:
    scopes = Scopes(Selection())
    scopes.update({"rate": 2}, "a")

    scopes.update({"rate": None}, "a")

    assert scopes.sampler("a") is scopes.sampler("b")


def test_other_changes_leave_what_remains_of_a_count() -> None:
    scopes = Scopes(Selection(rate=1, count=7))
    picked(scopes.sampler(), 3)

    scopes.update({"rate": 2})
    scopes.update({"rate": 1}, "a")

    assert (scopes.sampler().remaining, scopes.sampler("a").remaining) == (4, 4)


def test_a_new_count_starts_anew_for_all_that_have_none_of_their_own() -> None:
    scopes = Scopes(Selection(rate=1, count=7))
    scopes.update({"rate": 1}, "a")
    scopes.update({"count": 2}, "b")
    for name in ("", "a", "b"):
        picked(scopes.sampler(name), 1)

    scopes.update({"count": 9})

    assert [scopes.sampler(name).remaining for name in ("", "a", "b")] == [9, 9, 1]


def test_clearing_a_count_starts_that_of_the_command_line_anew() -> None:
    scopes = Scopes(Selection(rate=1, count=7))
    picked(scopes.sampler(), 3)

    scopes.update({"count": None})

    assert scopes.sampler().remaining == 7


def test_any_asks_every_scope() -> None:
    scopes = Scopes(Selection(rate=0))

    scopes.update({"rate": 3}, "a")

    assert scopes.any(lambda sampler: sampler.selection.rate == 3)
    assert not scopes.any(lambda sampler: sampler.selection.rate == 4)
