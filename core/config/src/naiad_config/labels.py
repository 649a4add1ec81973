"""Label files: the lines of text that name the elements of an output, as classification returns them."""

from collections.abc import Callable
from pathlib import Path

from naiad_config.errors import InvalidArgumentError
from naiad_config.model import ModelConfig


def read_labels(config: ModelConfig, path_inside: Callable[[str, str], Path]) -> dict[str, tuple[str, ...]]:
    """The lines of each output's label file. `path_inside(path, subject)` is the file in the model's folder.

    Raises InvalidArgumentError when a file is not there or not UTF-8, and what `path_inside` raises.
    """
    labels = {}
    for output in config.output:
        if not output.label_filename:
            continue
        path = path_inside(output.label_filename, f"label file '{output.label_filename}'")
        try:
            lines = path.read_bytes().decode("utf-8-sig").removesuffix("\n").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidArgumentError(
                f"label file '{path}' of output '{output.name}' of model '{config.name}' cannot be read: "
                f"{error}; it must be text in UTF-8, a label a line"
            ) from error
        labels[output.name] = tuple(line.removesuffix("\r") for line in lines)
    return labels
