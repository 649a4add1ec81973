"""Process-wide settings of TensorFlow: thread pools, as large as the first session requests."""

import logging
import threading

from naiad_tensorflow.parameters import RunSettings

_lock = threading.Lock()
_chosen: dict[str, int] = {}


def note_threads(settings: RunSettings, logger: "logging.LoggerAdapter[logging.Logger]") -> None:
    """Remember what the first session asked for, and log a warning for one that asks for something else."""
    wishes = {"TF_NUM_INTRA_THREADS": settings.intra_op_threads}
    if not settings.per_session_threads:
        wishes["TF_NUM_INTER_THREADS"] = settings.inter_op_threads
    with _lock:
        for key, wish in wishes.items():
            chosen = _chosen.setdefault(key, wish)
            in_caller = key == "TF_NUM_INTER_THREADS" and settings.runs_in_caller
            if wish not in (0, chosen) and not in_caller:
                current = f"is {chosen}" if chosen else "was left to TensorFlow"
                logger.warning(
                    "%s %s when the first session of this process was opened, and %d has no effect any more%s",
                    key,
                    current,
                    wish,
                    "; give the model threads of its own with TF_USE_PER_SESSION_THREADS" if "INTER" in key else "",
                )
