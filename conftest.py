"""What all tests share: random examples, garbage collection, threads, signals, and the processes of pytest-xdist."""

import gc
import os
import signal
from contextlib import suppress

import pytest
from _pytest.runner import runtestprotocol

# The processes that tests start multiply no matrices: without threads for that, numpy is imported in three quarters of
# the time, and each of several hundred processes imports it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A program goes on ignoring a signal if it was started so: SIGHUP under `nohup`, SIGINT in the background of a shell.
for number, handler in ((signal.SIGHUP, signal.SIG_DFL), (signal.SIGINT, signal.default_int_handler)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

with suppress(ImportError):  # the environment for Ray has no Hypothesis
    from hypothesis import settings

    # The same 60 examples in each run, unless a test says how many; `--hypothesis-profile=default` tries others. Its
    # limits of 200 ms an example and 1 s for the input fail on a machine that has other work.
    settings.register_profile("repeated", settings.get_profile("ci"), max_examples=60)
    settings.load_profile("repeated")


def pytest_configure(config: pytest.Config) -> None:
    """Have every other process of pytest-xdist begin its collection at the end.

    pytest compiles each test file once for all: where nothing is compiled yet, each of two processes compiles half.
    """
    gc.disable()  # a million objects come with the tests and stay: to look through them takes a fifth of the time
    number = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    if config.args == config.getini("testpaths") and int(number) % 2:
        config.args.reverse()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In a process of pytest-xdist: report the call of a test, and its setup and teardown where they did not pass.

    It sends six messages a test otherwise, of which the summary uses two; four take 1 ms of processor time. All are
    sent where somebody wants durations, a report in XML or the name of each test.
    """
    detailed = [item.config.getoption(name, None) for name in ("durations", "xmlpath")]
    if not hasattr(item.config, "workerinput") or detailed != [None, None] or item.config.get_verbosity() > 0:
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the tests in one order for all processes, which pytest-xdist demands."""
    folders: list[str] = config.getini("testpaths")
    if sorted(config.args) == sorted(folders):
        items.sort(key=lambda item: folders.index(item.nodeid.partition("/")[0]))


def pytest_collection_finish() -> None:
    """Have garbage collections skip the objects of the collected tests, which would take each of them 0.5 s.

    They come after 10,000 new objects instead of 700, as in a server: a twentieth of the tests' time was theirs.
    """
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()
