"""The lifeline of processes: a pipe from the server, at whose end the system kills them (`bootstrap.end_with`)."""

import os
import threading


class Lifeline:
    """A pipe whose other end every process has: the system kills them when the server is gone."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.register_at_fork(after_in_child=self._leave)

    def _leave(self) -> None:
        """In a child of the server, which may live longer: only the server's end of the pipe counts.

        In a child of that child, the number may be that of another file.
        """
        writer, self.writer = self.writer, -1
        if writer >= 0:
            os.close(writer)


_lock = threading.Lock()
_lifelines: list[Lifeline] = []


def lifeline_reader() -> int:
    """The end that processes get of the one lifeline of this server, which begins with the first of them."""
    with _lock:
        if not _lifelines:
            _lifelines.append(Lifeline())
        return _lifelines[0].reader
