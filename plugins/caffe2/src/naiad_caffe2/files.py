"""Model files of Caffe2: the predict net and the init net that makes its weights, found and read."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from naiad.backend import ModelContext
from naiad.errors import InvalidArgumentError
from naiad_caffe2.messages import parse_net

DEFAULT_FILE = "model.netdef"
INIT_PREFIX = "init_"


@dataclass(frozen=True, slots=True)
class Nets:
    """Two `NetDef` messages, and the file that the first is from."""

    net: Any
    init: Any
    path: Path


def read_nets(context: ModelContext) -> Nets:
    """The net, and the init net: the file of the same name with `init_` in front.

    Raises NotFoundError when one is missing, and InvalidArgumentError when one is not a NetDef.
    """
    path = context.existing_path(context.model_path(DEFAULT_FILE))
    init = context.existing_path(path.with_name(INIT_PREFIX + path.name))
    return Nets(_read(path, context.config.name), _read(init, context.config.name), path)


def _read(path: Path, model: str) -> Any:
    try:
        return parse_net(path.read_bytes())
    except (ValueError, OSError) as error:
        raise InvalidArgumentError(f"failed to load model '{model}' from '{path.name}': {error}") from error
