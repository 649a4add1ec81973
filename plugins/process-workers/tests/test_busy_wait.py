"""When waiting busily pays: where waits are short, and while it is not in vain."""

from naiad_process_workers.busy_wait import BusyWait


def after(*lengths: float) -> BusyWait:
    busy_wait = BusyWait(100e-6)
    for length in lengths:
        busy_wait.ended(length)
    return busy_wait


def test_nothing_waits_busily_before_waits_were_short() -> None:
    assert not BusyWait(100e-6).pays


def test_short_waits_are_waited_busily() -> None:
    assert after(*[150e-6] * 20).pays  # so long while the other side must be woken


def test_long_waits_are_slept_through() -> None:
    assert not after(*[1e-3] * 20).pays


def test_one_long_wait_among_short_ones_changes_nothing() -> None:
    assert after(*[50e-6] * 20, 60.0).pays


def test_what_was_in_vain_eight_times_is_given_up_and_tried_again_later() -> None:
    assert not after(*[150e-6] * 30).pays
    assert after(*[150e-6] * 256).pays
