"""Private parts of grpcio: the releases that they are used with, and the environment of its core."""

import os
from importlib import metadata

TESTED_VERSIONS = ("1.85.1",)
"""The releases of grpcio whose private parts are known: add one when the tests of this folder pass with it.

With any other release the frontend uses the public interface alone, which answers the same calls more slowly.
"""

VARIABLE = "GRPC_EXPERIMENTS"

VERBOSITY = "GRPC_VERBOSITY"

POLLING = "-event_engine_listener"
"""The thread that waits for events also reads from connections, instead of a pool of threads that hands over to it.

At 16 concurrent requests that saves 2 to 3 thread switches and 15 % of the processor time of each request.
"""


def is_tested() -> bool:
    """Whether the installed grpcio is one of `TESTED_VERSIONS`; does not import it."""
    return metadata.version("grpcio") in TESTED_VERSIONS


def choose_polling() -> None:
    """Set the polling experiment of a tested grpcio, unless the environment sets experiments.

    No effect after grpcio's first use.
    """
    if is_tested():
        os.environ.setdefault(VARIABLE, POLLING)


def silence_core() -> None:
    """Keep the core's log off stderr, unless the environment sets its verbosity.

    It writes text from clients, such as the debug text of a GOAWAY frame, unescaped: a client could forge lines of our
    log, and filled a disk with 458 MB in three seconds.
    """
    os.environ.setdefault(VERBOSITY, "NONE")
