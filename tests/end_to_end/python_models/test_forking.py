"""Models that fork: their children hold nothing of the server, nor of the process of an isolated instance."""

import signal

import pytest
from tritonclient.utils import InferenceServerException

from ..running import Running, until
from .conftest import Ask
from .writing import PythonModel

_ABOVE = """
import logging
import os
import signal


def forked():
    child = os.fork()
    if child == 0:
        logging.getLogger("child").error("the child logs")
        time.sleep(20)
        os._exit(0)
    return child
"""
MODELS = {
    "leaving": PythonModel(
        """
        child = forked()
        if value(requests[0].inputs()) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return [answer(child) for each in requests]
        """,
        above=_ABOVE,
        config='parameters { key: "isolation" value { string_value: "process" } }',
    ),
    "forking": PythonModel(
        """
        child = forked()
        time.sleep(value(requests[0].inputs()))
        os.kill(child, signal.SIGTERM)
        return [answer(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) for each in requests]
        """,
        above=_ABOVE,
    ),
}


def test_an_isolated_instance_that_kills_itself_comes_back_while_its_children_live(running: Running, ask: Ask) -> None:
    assert ask("leaving", 1) > 0
    with pytest.raises(InferenceServerException, match="SIGKILL"):
        ask("leaving", 0)

    until(lambda: running.ask("GET", "/v2/models/leaving/ready").status == 200)
    assert ask("leaving", 1) > 0


def test_a_child_ends_with_the_signal_that_stops_the_server(ask: Ask) -> None:
    assert ask("forking", 0) == -signal.SIGTERM
    assert ask("forking", 1) == -signal.SIGTERM
