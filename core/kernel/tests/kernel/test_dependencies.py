"""Which dependents a change reaches, in which order, and which of them are part of themselves."""

from hypothesis import given
from hypothesis import strategies as st

from naiad._lifecycle.binding import circle, dependents

CHAIN = {"c": ("b", "m"), "b": ("a",), "a": ("m",), "other": ("n",)}


def test_a_change_reaches_all_that_depends_on_it_each_after_what_it_needs() -> None:
    assert dependents(CHAIN, "m") == ["a", "b", "c"]
    assert dependents(CHAIN, "n") == ["other"]
    assert dependents(CHAIN, "c") == []


def test_a_circle_is_the_way_back_to_where_it_starts() -> None:
    needs = {"a": ("m", "b"), "b": ("c",), "c": ("m", "a")}

    assert circle(needs, "a") == ("a", "b", "c", "a")
    assert circle(needs, "b") == ("b", "c", "a", "b")


def test_what_only_leads_into_a_circle_is_not_part_of_it() -> None:
    assert circle({"outside": ("a",), "a": ("b",), "b": ("a",)}, "outside") == ()


def test_a_change_reaches_what_is_in_a_circle_too() -> None:
    assert sorted(dependents({"a": ("b", "m"), "b": ("a",)}, "m")) == ["a", "b"]


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdefmn"), max_size=4).map(tuple)))
def test_nothing_is_reached_twice_or_before_what_it_needs(needs: dict[str, tuple[str, ...]]) -> None:
    result = dependents(needs, "m")

    assert len(set(result)) == len(result)
    for index, name in enumerate(result):
        if not any(circle(needs, each) for each in result):
            assert not set(needs[name]) & set(result[index:])
