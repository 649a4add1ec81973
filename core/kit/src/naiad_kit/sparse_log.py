"""Rate-limited warnings: one a minute, with the number of those that were omitted."""

import logging
from time import monotonic

SECONDS_BETWEEN = 60.0
"""A warning that comes more often is logged once in this time."""


class SparseLog:
    """Logs the first warning, and from then on at most one a minute."""

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._next = 0.0
        self._left_out = 0

    def warning(self, message: str, *values: object) -> None:
        """Log it, unless another one was logged within the last minute."""
        now = monotonic()
        if now < self._next:
            self._left_out += 1
            return
        more = f" ({self._left_out} more since the last such line)" if self._left_out else ""
        self._next, self._left_out = now + SECONDS_BETWEEN, 0
        self._logger.warning(message + more, *values)
