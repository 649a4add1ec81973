"""What reading a configuration gives: as much as could be read, and what could not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from naiad_config.errors import ConfigError, Problem
from naiad_config.lexer import Place
from naiad_config.model import ModelConfig


@dataclass(frozen=True, slots=True)
class Parsed:
    """A configuration and where its keys stand: `places` maps a path, as `input[0].dims`, to line and column from 1.

    An element of a list has a place of its own (`input[0].dims[1]`); the path "" is the start of the text. `problems`
    are unknown keys, wrong values and double keys; what they concern is missing in `config`.
    """

    config: ModelConfig
    places: Mapping[str, Place] = field(default_factory=dict)
    problems: Sequence[Problem] = ()

    def sound(self) -> "Parsed":
        """Itself. Raises ConfigError when there are problems."""
        if self.problems:
            raise ConfigError(self.problems)
        return self
