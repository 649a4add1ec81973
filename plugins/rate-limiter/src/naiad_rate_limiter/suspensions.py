"""Suspensions: executions that wait for other models or for their callers, and hold no resources meanwhile."""

from collections.abc import Callable

from naiad.foreign_errors import logged


class SuspendedExecution:
    """One execution with `open_waits` waits, each of which is a suspension.

    It goes on when all of them are over, and holds its resources again. If it went on after the first, it could wait
    for the second where the server does not see it, and would keep what it holds.
    """

    __slots__ = ("_ready", "ended", "open_waits")

    def __init__(self) -> None:
        self.open_waits = 0
        self.ended = False
        self._ready: list[Callable[[], None]] = []

    def wait_is_over(self, go_on: Callable[[], None]) -> bool:
        """Note that one wait is over; returns whether it was the last, so that the execution needs its resources."""
        if self.ended:
            go_on()
            return False
        self._ready.append(go_on)
        self.open_waits -= 1
        return self.open_waits == 0

    def end(self) -> None:
        """The execution holds its resources again, or has returned: call back the waits that are over."""
        self.ended = True
        ready, self._ready = self._ready, []
        for go_on in ready:
            with logged("letting an execution go on"):  # a callback of a model may raise SystemExit
                go_on()


class OneSuspension:
    """One wait of a suspended execution; see `naiad.extend.Suspension`. `resume` asks for its resources again."""

    __slots__ = ("_execution", "_want_again")

    def __init__(self, execution: SuspendedExecution, want_again: Callable[[], None]) -> None:
        execution.open_waits += 1
        self._execution = execution
        self._want_again = want_again

    @property
    def is_last(self) -> bool:
        """Whether this is the only open suspension of its execution."""
        return self._execution.open_waits <= 1

    def resume(self, go_on: Callable[[], None]) -> None:
        """The wait is over: `go_on` is called, perhaps at once, when the execution holds its resources again."""
        if self._execution.wait_is_over(go_on):
            self._want_again()
