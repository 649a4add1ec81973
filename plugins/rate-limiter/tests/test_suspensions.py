"""An execution that waits for other models: when it goes on, and with which answers."""

from naiad_rate_limiter.suspensions import OneSuspension, SuspendedExecution


class Execution:
    """One that waits; `wants` is how often it asked to go on, `answers` those that it went on with."""

    def __init__(self) -> None:
        self.suspended = SuspendedExecution()
        self.wants = 0
        self.answers: list[str] = []

    def suspend(self) -> OneSuspension:
        return OneSuspension(self.suspended, self._want)

    def answer(self, suspension: OneSuspension, name: str) -> None:
        suspension.resume(lambda: self.answers.append(name))

    def _want(self) -> None:
        self.wants += 1


def test_an_answer_is_passed_on_when_the_execution_holds_its_resources_again() -> None:
    execution = Execution()
    suspension = execution.suspend()

    execution.answer(suspension, "a")
    before = list(execution.answers)
    execution.suspended.end()

    assert (execution.wants, before, execution.answers) == (1, [], ["a"])


def test_one_with_several_calls_out_goes_on_when_all_are_answered() -> None:
    execution = Execution()
    first, second, third = execution.suspend(), execution.suspend(), execution.suspend()

    execution.answer(third, "third")
    execution.answer(first, "first")
    before = execution.wants
    execution.answer(second, "second")
    execution.suspended.end()

    assert (before, execution.wants) == (0, 1)
    assert execution.answers == ["third", "first", "second"]


def test_what_is_answered_after_an_execution_is_passed_on_at_once() -> None:
    execution = Execution()
    suspension = execution.suspend()
    execution.suspended.end()

    execution.answer(suspension, "late")

    assert (execution.wants, execution.answers) == (0, ["late"])
