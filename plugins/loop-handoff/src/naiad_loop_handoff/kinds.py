"""The kinds of worker that this plugin registers: threads that run the event loop, and the event loop itself."""

import functools

from naiad.backend import BackendTraits
from naiad.errors import InvalidArgumentError
from naiad.extend import MakeWorker
from naiad_config import ModelConfig
from naiad_loop_handoff.event_loop_worker import EventLoopWorker
from naiad_loop_handoff.handoff import LoopHandoff
from naiad_loop_handoff.workers import HandoffWorker, NativeHandoffWorker, NativeWorker


class HandoffKind:
    """Instances whose threads run the event loop while they have most of the batches and execute them quickly.

    That is for models that ask for no kind of worker and are not decoupled, where `leads` is set. Models outside of
    Python get the short switch interval on any thread.
    """

    name = "loop_handoff"
    choice = ""

    def __init__(self, handoff: LoopHandoff, leads: bool = True) -> None:
        self._handoff = handoff
        self._leads = leads

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        """See `WorkerKind`."""
        policy = config.model_transaction_policy
        if self._leads and not execute_on and (policy is None or not policy.decoupled):
            return functools.partial(NativeHandoffWorker if traits.framework else HandoffWorker, self._handoff)
        if traits.framework and execute_on in ("", "thread"):
            return functools.partial(NativeWorker, self._handoff)
        return None


class EventLoopKind:
    """Instances on the event loop's thread, for models that ask for it."""

    name = choice = "event_loop"

    def worker_for(self, config: ModelConfig, traits: BackendTraits, execute_on: str) -> MakeWorker | None:
        """See `WorkerKind`."""
        if execute_on != self.choice:
            return None
        policy = config.model_transaction_policy
        if policy is not None and policy.decoupled:
            raise InvalidArgumentError(
                f"model '{config.name}' is decoupled and cannot execute on the event loop, which must not wait for "
                "slow readers; drop parameter 'execute_on'"
            )
        return EventLoopWorker
