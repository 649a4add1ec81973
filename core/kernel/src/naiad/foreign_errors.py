"""Errors of plugin and model code: contained on the event loop, except Ctrl-C, and described in a sentence."""

import signal
import threading

from naiad_config.errors import describe_error as describe_error


def raise_interrupt(error: BaseException) -> None:
    """Raise a KeyboardInterrupt again if it is the user's Ctrl-C; return for anything else.

    Python raises it in whatever the main thread executes while its own handler of SIGINT is installed. `naiad serve`
    and `asyncio.run` install theirs, so with them a KeyboardInterrupt is what the plugin itself raised.
    """
    if (
        isinstance(error, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        raise error
