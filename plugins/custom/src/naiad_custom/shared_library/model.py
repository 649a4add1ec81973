"""One loaded version of a model that is a shared library."""

from naiad.backend import ModelContext, Placement
from naiad.errors import ConfigError, Problem
from naiad_config import ModelConfig
from naiad_custom.shared_library.instance import LibraryInstance, ListeningInstance
from naiad_custom.shared_library.library import Library
from naiad_custom.shared_library.outputs import Outputs
from naiad_custom.shared_library.setup import Preparation


class LibraryModel:
    """Makes instances. Raises ConfigError for what a library cannot do."""

    def __init__(self, context: ModelContext, library: Library) -> None:
        problems = _unsupported(context.config)
        if problems:
            raise ConfigError(problems)
        self._context = context
        self._library = library
        self._outputs = Outputs(context.config)

    def instantiate(self, placement: Placement) -> LibraryInstance:
        """Call naiad_initialize, and raise what it says when it fails."""
        preparation = Preparation(self._context, placement)
        code, state = self._library.initialize(preparation.struct)
        if code:
            raise preparation.error("naiad_initialize", code)
        instance_type = ListeningInstance if self._library.has("naiad_sequence_ended") else LibraryInstance
        return instance_type(self._library, state, preparation, self._outputs)

    def close(self) -> None:
        """Nothing: the library stays in the process, because a thread that it has left behind may still run."""


def _unsupported(config: ModelConfig) -> list[Problem]:
    problems = []
    policy = config.model_transaction_policy
    if policy is not None and policy.decoupled:
        message = "a shared library answers each request once"
        problems.append(Problem(message, "model_transaction_policy.decoupled", hint="serve it with a model.py"))
    for key, entries in (("batch_input", config.batch_input), ("batch_output", config.batch_output)):
        if entries:
            message = "a shared library sees each request with its own shapes, and needs none of it"
            problems.append(Problem(message, key, hint=f"leave {key} out"))
    return problems
