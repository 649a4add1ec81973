"""The options of the kernel itself; names and defaults are those that users of Triton know."""

import math

from naiad.options import LOG_OPTIONS, Option, boolean, positive


def _count(text: str) -> int:
    """A whole number from 0 up."""
    value = int(text)
    if value < 0:
        raise ValueError(f"'{text}' is negative; write 0 or more")
    return value


def _seconds(text: str) -> float:
    """A finite time in seconds from 0 up."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(f"'{text}' is not a time in seconds; write a number from 0 up")
    return value


KERNEL_OPTIONS = (
    Option("model-repository", (), "a folder of models; may be given several times", metavar="DIR", repeatable=True),
    Option(
        "model-control-mode",
        "none",
        "none: load all at start; poll: follow changes on disk; explicit: load and unload on request",
        choices=("none", "poll", "explicit"),
    ),
    Option(
        "repository-poll-secs", 15.0, "seconds between two looks at the repositories in poll mode", _seconds, "SECS"
    ),
    Option(
        "load-model", (), "a model to load at start in explicit mode, or * for all", metavar="NAME", repeatable=True
    ),
    Option("model-config-name", "", "use configs/NAME.pbtxt of a model where it has one", metavar="NAME"),
    Option("disable-auto-complete-config", False, "take every config.pbtxt as it is, without completing it", boolean),
    Option("allow-uploaded-code", False, "let load requests bring files that are code, which runs here", boolean),
    Option("model-load-thread-count", 4, "how many models load at the same time", positive, "N"),
    Option("model-load-retry-count", 0, "how often a failed load is tried again", _count, "N"),
    Option(
        "backend-config",
        (),
        "a setting of one backend, as onnxruntime,default-max-batch-size=8, or of all, as default-max-batch-size=8",
        metavar="[BACKEND,]KEY=VALUE",
        repeatable=True,
    ),
    Option("id", "naiad", "the name that the server gives itself"),
    Option("strict-readiness", True, "ready only while every model is ready", boolean),
    Option("exit-on-error", True, "exit when a model fails to load at start", boolean),
    Option(
        "max-bytes-in-flight",
        0,
        "the most bytes of bodies, messages and answers held at once; 0 takes half of the memory there is",
        _count,
        "BYTES",
    ),
    Option(
        "watchdog-secs",
        60.0,
        "end the process, with status 70, when its event loop has stood still for so long; 0 never does",
        _seconds,
        "SECS",
    ),
    Option("exit-timeout-secs", 30.0, "how long a stopping server waits for requests in flight", _seconds, "SECS"),
    Option("restart", False, "start the server again, from a parent process, when it crashed", boolean),
    Option(
        "lame-duck-secs",
        1.0,
        "how long a stopping server that is no longer ready still answers clients that are connected",
        _seconds,
        "SECS",
    ),
    *LOG_OPTIONS,
)
"""Every option of the kernel."""
