"""Which kind of worker the instances of a model get: the one that it asks for, or the server's choice."""

from collections.abc import Callable, Sequence

from naiad.backend import Backend, BackendTraits, ModelContext
from naiad.errors import InvalidArgumentError
from naiad.extend import HostingKind, MakeWorker, WorkerKind
from naiad_config import ModelConfig

EXECUTE_ON = "execute_on"
"""The model parameter that chooses; without it the server does."""


def hosted(context: ModelContext, backend: Backend, kinds: Sequence[WorkerKind]) -> Backend:
    """The backend as the kind of worker that takes the model loads models: itself, unless that is elsewhere."""
    others = (kind.backend_for(context, backend) for kind in kinds if isinstance(kind, HostingKind))
    return next((other for other in others if other is not None), backend)


def worker_for(
    config: ModelConfig,
    traits: BackendTraits,
    kinds: Sequence[WorkerKind],
    what_to_install: Callable[[str, str], str] = lambda kind, name: "",
) -> MakeWorker:
    """How the instances of a model of that backend are run: the answer of the first kind that has one.

    Raises InvalidArgumentError when the model asks for a kind that there is not, or that cannot run it;
    `what_to_install` has a sentence for that.
    """
    parameter = config.parameters.get(EXECUTE_ON)
    execute_on = parameter.string_value if parameter is not None else ""
    choices = dict.fromkeys(kind.choice for kind in kinds if kind.choice)
    if parameter is None or execute_on in choices:
        in_order = sorted(kinds, key=lambda kind: not isinstance(kind, HostingKind))
        for make in (kind.worker_for(config, traits, execute_on) for kind in in_order):
            if make is not None:
                return make
    message = f"parameter '{EXECUTE_ON}' of model '{config.name}' is '{execute_on}'; it can be {' or '.join(choices)}"
    raise InvalidArgumentError(". ".join(filter(None, (message, what_to_install("worker", execute_on)))))
