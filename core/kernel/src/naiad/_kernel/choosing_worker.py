"""Which kind of worker a model gets: of its own choice, or by where it computes."""

import functools

from naiad._kernel.leading.leading_worker import LeadingNativeWorker, LeadingWorker
from naiad._kernel.leading.relay import Relay
from naiad._kernel.loop_worker import LoopWorker
from naiad._kernel.native_worker import NativeWorker
from naiad._kernel.worker import MakeWorker, Worker
from naiad.backend import BackendTraits
from naiad.errors import InvalidArgumentError
from naiad_config import ModelConfig

EXECUTE_ON = "execute_on"
"""The model parameter that chooses: `thread` or `event_loop`; without it the server does, again and again."""

_CHOICES = ("thread", "event_loop")


def worker_for(config: ModelConfig, traits: BackendTraits, relay: Relay | None = None) -> MakeWorker:
    """The kind of worker for a model of that backend. Raises InvalidArgumentError when it asks for one there is not.

    Without a relay the event loop belongs to a program that embeds the server, and stays on its thread.
    """
    parameter = config.parameters.get(EXECUTE_ON)
    asked = parameter.string_value if parameter is not None else ""
    if parameter is not None and asked not in _CHOICES:
        raise InvalidArgumentError(
            f"parameter '{EXECUTE_ON}' of model '{config.name}' is '{asked}'; it can be {' or '.join(_CHOICES)}"
        )
    policy = config.model_transaction_policy
    decoupled = policy is not None and policy.decoupled
    if asked == "event_loop":
        if decoupled:
            raise InvalidArgumentError(
                f"model '{config.name}' is decoupled and cannot execute on the event loop, which must not wait for "
                f"slow readers; drop parameter '{EXECUTE_ON}'"
            )
        return LoopWorker
    if relay is None or asked or decoupled:
        return NativeWorker if traits.framework else Worker
    return functools.partial(LeadingNativeWorker if traits.framework else LeadingWorker, relay)
