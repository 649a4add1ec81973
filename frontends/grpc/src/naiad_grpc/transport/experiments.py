"""How grpcio's core reads from its sockets, and what it logs: chosen before it is first used in this process."""

import os

VARIABLE = "GRPC_EXPERIMENTS"

VERBOSITY = "GRPC_VERBOSITY"

POLLING = "-event_engine_listener"
"""Connections are read by the thread that waits for events, and not by a pool of threads that hands over to it.

At 16 concurrent requests that is 2 to 3 changes of thread less for each of them, and 15 % less of its processor time.
"""


def choose_polling() -> None:
    """Choose it, unless whoever started the process has chosen experiments; without effect once grpcio is at work."""
    os.environ.setdefault(VARIABLE, POLLING)


def silence_core() -> None:
    """Keep the core's log off stderr, unless whoever started the process has chosen its verbosity.

    It writes what clients send, such as the debug text of a GOAWAY frame, as it is: a client could forge lines of our
    log, and filled a disk with 458 MB in three seconds.
    """
    os.environ.setdefault(VERBOSITY, "NONE")
