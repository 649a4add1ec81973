"""How soon a thread that waits for the interpreter asks for it, while models compute outside of Python."""

import sys

import pytest

from naiad._kernel.native_worker import EAGER, NativeWorker, SwitchInterval
from naiad._kernel.worker import Work


@pytest.fixture
def patient():
    """What the interval of this process is outside of this test."""
    interval = sys.getswitchinterval()
    yield interval
    sys.setswitchinterval(interval)


@pytest.fixture
def shared(monkeypatch):
    made = SwitchInterval()
    made.allowed = True
    monkeypatch.setattr("naiad._kernel.native_worker.SWITCH_INTERVAL", made)
    return made


@pytest.fixture
def worker(shared):
    return NativeWorker("m_0", lambda: None, None, None, lambda _work: None, lambda *_death: None)


def work(place):
    return Work(place, (place,), (), None)


def test_it_is_short_while_anybody_computes_and_what_it_was_afterwards(patient):
    interval = SwitchInterval()
    interval.allowed = True

    seen = []
    for step in (interval.hasten, interval.hasten, interval.relax, interval.relax):
        step()
        seen.append(sys.getswitchinterval())

    assert seen == pytest.approx([EAGER, EAGER, EAGER, patient])


def test_programs_that_embed_a_server_keep_their_own(patient):
    interval = SwitchInterval()

    interval.hasten()

    assert sys.getswitchinterval() == patient


def test_batches_ask_for_it_until_they_are_back(patient, worker):
    first, second = work(0), work(1)

    seen = []
    for step, batch in ((worker.execute, first), (worker.execute, second), (worker._arrived, first)):
        step(batch)
        seen.append(sys.getswitchinterval())
    worker._arrived(second)
    worker._arrived(second)  # which was told twice

    assert seen == pytest.approx([EAGER] * 3)
    assert sys.getswitchinterval() == patient


def test_batches_that_die_with_their_worker_ask_for_it_no_more(patient, worker):
    worker.execute(work(0))
    worker.execute(work(1))

    worker._bury("it died")

    assert sys.getswitchinterval() == patient
