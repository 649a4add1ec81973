"""When a server that ended is started again."""

import pytest

from naiad_cli.supervisor import RestartPolicy


@pytest.mark.parametrize("served", [True, False])
def test_a_server_that_stopped_in_order_is_not_started_again(served: bool) -> None:
    assert RestartPolicy().next_delay(0, served, 100.0) is None


def test_a_server_that_could_not_start_is_not_started_again() -> None:
    assert RestartPolicy().next_delay(1, served=False, lifetime=0.5) is None


@pytest.mark.parametrize(("status", "served"), [(-11, True), (-11, False), (1, True), (70, True)])
def test_a_server_that_crashed_is_started_again_after_a_second(status: int, served: bool) -> None:
    assert RestartPolicy().next_delay(status, served, lifetime=5.0) == 1.0


def test_the_delay_doubles_up_to_half_a_minute_and_starts_anew_after_a_minute_of_life() -> None:
    policy = RestartPolicy()

    delays = [policy.next_delay(-11, True, lifetime=5.0) for _ in range(7)]

    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert [policy.next_delay(-11, True, lifetime) for lifetime in (61.0, 5.0)] == [1.0, 2.0]
