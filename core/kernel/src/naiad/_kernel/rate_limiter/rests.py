"""The time that an execution spends waiting for other models, in which it lends what it holds."""

from collections.abc import Callable


class Visit:
    """One execution that waits for other models: `calls_out` are the calls that have not been answered.

    It goes on when all of them have been, and holds again what it needs: who goes on after the first answer may wait
    for the second in a way that nobody can see, and would keep what it holds.
    """

    __slots__ = ("_ready", "calls_out", "over")

    def __init__(self, over: bool = False) -> None:
        self.calls_out = 0
        self.over = over
        self._ready: list[Callable[[], None]] = []

    def answered(self, go_on: Callable[[], None]) -> bool:
        """One call has been answered; whether all have been, and the execution is to go on."""
        if self.over:
            go_on()
            return False
        self._ready.append(go_on)
        self.calls_out -= 1
        return self.calls_out == 0

    def end(self) -> None:
        """Let the execution go on, or what is left of it when it is over."""
        self.over = True
        ready, self._ready = self._ready, []
        for go_on in ready:
            go_on()


class Rest:
    """One wait for the answer of another model. For the event loop's thread."""

    __slots__ = ("_visit", "_want_back")

    def __init__(self, visit: Visit, want_back: Callable[[], None]) -> None:
        visit.calls_out += 1
        self._visit = visit
        self._want_back = want_back

    @property
    def is_the_last(self) -> bool:
        """Whether the execution waits for nothing else."""
        return self._visit.calls_out <= 1

    def over(self, go_on: Callable[[], None]) -> None:
        """The answer is there: `go_on` is called, perhaps at once, when the execution holds again what it needs.

        To be called once; `go_on` must return at once.
        """
        if self._visit.answered(go_on):
            self._want_back()
