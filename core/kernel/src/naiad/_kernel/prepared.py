"""A configuration that a servable factory has prepared, and that waits for the models it depends on."""

from dataclasses import dataclass

from naiad._kernel.configs import WrittenConfig
from naiad.backend import ModelContext
from naiad.servables import PreparedServable
from naiad_config import ModelConfig


@dataclass(frozen=True, slots=True, eq=False)
class PreparedDependent:
    """A configuration that a servable factory has prepared, with a context for each version to serve.

    `kind` is the factory's name; `written` tells where the keys of the configuration stand.
    """

    kind: str
    contexts: tuple[ModelContext, ...]
    written: WrittenConfig
    servable: PreparedServable

    @property
    def config(self) -> ModelConfig:
        """The configuration, the same for every version."""
        return self.contexts[-1].config
