"""A worker without a thread, for models that take less time than waking a thread does."""

from collections.abc import Callable

from naiad.backend import Instance
from naiad.errors import NaiadError
from naiad.extend import ItemT
from naiad.threads import on_event_loop
from naiad.workers import InstanceWorker


class EventLoopWorker(InstanceWorker[ItemT]):
    """Makes, executes and closes its instance on the thread that runs the event loop; with hand-off these are several.

    So what a model keeps for one thread (`threading.local`, a connection of sqlite3) is not there each time. No thread
    has to be woken for a batch and its answer, which saves some 60 µs of latency. Everything else stands still while
    the model is loaded or executes, so this is for models whose executions are far shorter than that.
    """

    _instance: Instance
    _current: ItemT | None = None

    def execute(self, item: ItemT) -> None:
        """Execute a batch in the next round of the event loop."""
        self.in_flight[item] = None
        self.loop.call_soon(self._execute, item)

    def instruct(self, instruction: Callable[[Instance], None]) -> None:
        """Call that with the instance, after the batches before."""
        self.loop.call_soon(self._instruct, instruction)

    def stop(self) -> None:
        """Close the instance after the batches before."""
        self.loop.call_soon(self._close)

    def begin(self) -> None:
        """Make the instance in the next round of the event loop."""
        self.loop.call_soon(self._make)

    def hand_back(self, item: ItemT) -> None:
        """The batch was executed: take it back at once, unless that comes from amid other work of the event loop."""
        if not on_event_loop(self.loop):  # the future of an instance that answers later
            super().hand_back(item)
        elif self._current is item:
            self.arrived(item)
        else:  # who sets such a future may be in the middle of a decision of the queue
            self.loop.call_soon(self.arrived, item)

    def _make(self) -> None:
        try:
            self._instance = self.host.make_instance()
        except NaiadError as error:
            self.started.set_exception(error)
            self.ended.set_result(None)
        else:
            self.started.set_result(self._instance)

    def _execute(self, item: ItemT) -> None:
        if item not in self.in_flight:
            return  # it was lost with the instance
        self._current = item
        try:
            self.host.execute(self._instance, item, self.hand_back)
        except BaseException as error:  # noqa: BLE001 - a model that calls sys.exit loses its instance only
            self._die(error)
        finally:
            self._current = None

    def _instruct(self, instruction: Callable[[Instance], None]) -> None:
        if self.ended.done():
            return
        try:
            instruction(self._instance)
        except BaseException as error:  # noqa: BLE001 - a model that calls sys.exit loses its instance only
            self._die(error)

    def _die(self, error: BaseException) -> None:
        self.fail_in_flight(self.host.report_death(error))
        self._close()

    def _close(self) -> None:
        if not self.ended.done():
            self.host.close_instance(self._instance)
            self.ended.set_result(None)
