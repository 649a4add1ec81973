"""Auto-completion by a TritonPythonModel's `auto_complete_config`."""

import json

from naiad.errors import ConfigError, InvalidArgumentError, NaiadError
from naiad_config import ModelConfig
from naiad_config.json import parse_json, to_json
from naiad_custom.files import ModelFile
from naiad_custom.triton import model_config


def auto_completed(config: ModelConfig, file: ModelFile, model: type) -> ModelConfig:
    """The configuration as `auto_complete_config` leaves it; unchanged when the class has none.

    Raises InvalidArgumentError with file, line and the model's own words when it raises or returns something else.
    """
    complete = getattr(model, "auto_complete_config", None)
    if complete is None:
        return config
    try:
        answer = complete(model_config.ModelConfig(json.dumps(to_json(config))))
    except NaiadError:
        raise
    except Exception as error:
        message = f"{file.location(error)}: auto_complete_config failed: {type(error).__name__}: {error}"
        raise InvalidArgumentError(message) from error
    if not isinstance(answer, model_config.ModelConfig):
        raise InvalidArgumentError(
            f"auto_complete_config function in model '{config.name}' must return a valid pb.ModelConfig object. "
            f"It returned {type(answer).__name__}; end it with 'return config' ({file.path})"
        )
    try:
        return parse_json(_with_names(answer.as_dict()), file=f"auto_complete_config of {file.path}")
    except ConfigError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidArgumentError(f"{file.path}: auto_complete_config left no configuration: {error}") from error


def _with_names(config: dict[str, object]) -> dict[str, object]:
    """The configuration without what numpy or enums slipped in: everything as JSON has it."""
    plain_config: dict[str, object] = json.loads(json.dumps(config, default=_plain))
    return plain_config


def _plain(value: object) -> object:
    """What JSON has for a numpy number or array."""
    convert = getattr(value, "tolist", None)
    if convert is None:
        raise TypeError(f"{value!r} is not a JSON value")
    return convert()
