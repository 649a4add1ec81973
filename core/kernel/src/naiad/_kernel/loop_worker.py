"""A worker without a thread, for models that take less time than waking a thread does."""

from collections.abc import Callable
from concurrent.futures import Future

from naiad._kernel.threads import runs_here
from naiad._kernel.worker import Work, Worker, close_quietly, tellable
from naiad.backend import Answer, Instance
from naiad.foreign_errors import describe_error


class LoopWorker(Worker):
    """Makes, executes and closes its instance on the event loop's own thread.

    That saves two wake-ups of a thread for each batch, some 60 µs of latency. Everything else stands still while the
    model is loaded or executes, so it is for models whose executions are far shorter than that.
    """

    _instance: Instance

    def execute(self, work: Work) -> None:
        """Run a batch in the next round of the event loop."""
        self._flying[work.place] = work
        self._loop.call_soon(self._serve, work)

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, after what was given to it before."""
        self._loop.call_soon(self._follow, instruction)

    def stop(self) -> None:
        """Close the instance after what was given to it before. `ended` tells when it has."""
        self._loop.call_soon(self._close)

    def _begin(self) -> None:
        self._loop.call_soon(self._bear)

    def _bear(self) -> None:
        try:
            self._instance = self._make()
        except BaseException as error:  # noqa: BLE001 - whatever it was, the one who waits for the instance is told
            self.started.set_exception(tellable(error, self.name))
            self.ended.set_result(None)
        else:
            self.started.set_result(self._instance)

    def _serve(self, work: Work) -> None:
        if self._flying.get(work.place) is not work:
            return  # it was lost with the instance
        try:
            self._execute(self._instance, work)
        except BaseException as error:  # noqa: BLE001 - a model that wants to end the process only loses its instance
            self._die(error)

    def _follow(self, instruction: Callable[[Instance], None]) -> None:
        if self.ended.done():
            return
        try:
            instruction(self._instance)
        except BaseException as error:  # noqa: BLE001 - a model that wants to end the process only loses its instance
            self._die(error)

    def _die(self, error: BaseException) -> None:
        self._report_death(error)
        self._bury(describe_error(error))
        self._close()

    def _close(self) -> None:
        if not self.ended.done():
            close_quietly(self._instance, self.name)
            self.ended.set_result(None)

    def _finish_later(self, work: Work, future: "Future[Answer]") -> None:
        if runs_here(self._loop):  # who sets it may be in the middle of a decision of the queue
            self._loop.call_soon(super()._finish_later, work, future)
        else:
            super()._finish_later(work, future)

    def _tell(self, listener: Callable[..., None], *arguments: object) -> None:
        if runs_here(self._loop):
            listener(*arguments)
        else:  # the future of an instance that answers later
            super()._tell(listener, *arguments)
