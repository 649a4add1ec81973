import resource

import pytest

from naiad import Server
from naiad.errors import UnavailableError
from naiad_kit.frontends.byte_budget import ByteBudget, default_limit, memory_limit


def test_what_fits_is_reserved_until_it_is_released():
    budget = ByteBudget(100)

    budget.reserve(60)
    budget.reserve(40)
    budget.release(60)

    assert (budget.reserved, budget.peak) == (40, 100)


def test_more_than_the_limit_is_refused_and_reserves_nothing():
    budget = ByteBudget(100)
    budget.reserve(60)

    with pytest.raises(UnavailableError, match="--max-bytes-in-flight") as refused:
        budget.reserve(41)

    assert (budget.reserved, refused.value.retry_after) == (60, 1.0)


def test_an_answer_that_exists_is_counted_even_above_the_limit():
    budget = ByteBudget(100)

    budget.add(150)

    assert budget.reserved == 150


def test_the_default_is_half_of_the_memory_that_the_process_may_use(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 20, resource.RLIM_INFINITY))

    assert (memory_limit(), default_limit()) == (1 << 20, 1 << 19)


def test_an_option_sets_the_limit_of_the_server():
    limited, automatic = Server(plugins=[], options={"max-bytes-in-flight": 4096}), Server(plugins=[])

    assert (limited.service(ByteBudget).limit, automatic.service(ByteBudget).limit) == (4096, default_limit())


def test_all_frontends_of_a_server_share_one_budget():
    server = Server(plugins=[])

    assert server.service(ByteBudget) is server.service(ByteBudget)
