"""Result of reading a configuration: what could be read, and the problems of the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from naiad_config.errors import ConfigError, Problem
from naiad_config.lexer import Position
from naiad_config.model import ModelConfig


@dataclass(frozen=True, slots=True)
class Parsed:
    """A configuration, the positions of its keys in the text, and its mistakes.

    `positions` maps a path, as `input[0].dims`, to line and column from 1; an element of a list has one of its own
    (`input[0].dims[1]`), and the path "" is the start of the text. `problems` are unknown keys, wrong values and double
    keys, which are missing in `config`.
    """

    config: ModelConfig
    positions: Mapping[str, Position] = field(default_factory=dict)
    problems: Sequence[Problem] = ()

    def sound(self) -> "Parsed":
        """Itself. Raises ConfigError when there are problems."""
        if self.problems:
            raise ConfigError(self.problems)
        return self
