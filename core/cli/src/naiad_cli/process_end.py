"""Process exit of `naiad serve`: flushes the output and exits even if threads of models never end."""

import logging
import os
import sys
import threading
from contextlib import suppress

_SECONDS_TO_FLUSH = 1.5
_SECONDS_TO_LEAVE = 1.0


def end_process(status: int) -> None:
    """End the process at once, without waiting for threads; what the log and stdout hold is written if it can be."""
    try:
        flush()
    finally:
        os._exit(status)


def flush() -> bool:
    """Write what is buffered for the log, stdout and stderr; False when that takes long, as on a full pipe."""
    flushing = threading.Thread(target=_flush, name="naiad-flush", daemon=True)
    flushing.start()
    flushing.join(_SECONDS_TO_FLUSH)
    return not flushing.is_alive()


def end_process_later(status: int) -> None:
    """End the process even if a thread of a pool never ends: it may still load a model, or be one of a model's own."""
    alarm = threading.Timer(_SECONDS_TO_LEAVE, end_process, (status,))
    alarm.daemon = True
    alarm.start()


def _flush() -> None:
    """As `flush`; a pipe that is not read makes this wait for ever."""
    for stream in (*logging.getLogger().handlers, sys.stdout, sys.stderr):
        with suppress(Exception):  # closed by a model, or a full disk
            stream.flush()
