"""Parameters of a configuration for Caffe2: how a net is executed."""

from collections.abc import Mapping

from naiad.errors import Problem
from naiad_config import ModelConfig
from naiad_kit.backends.onnx_runtime import SESSION_PARAMETERS, SessionSettings, read_session_settings
from naiad_kit.backends.parameters import KnownNames, ParameterReader

NAMES = KnownNames("ONNX Runtime", SESSION_PARAMETERS)


def run_settings(config: ModelConfig, settings: Mapping[str, str]) -> SessionSettings:
    """The settings of a model; `settings` are the `--backend-config` values.

    Raises ConfigError with all invalid values, misspelt names, and for execution accelerators.
    """
    reader = ParameterReader(config, settings)
    session = read_session_settings(reader)
    policy = config.optimization
    if policy is not None and policy.execution_accelerators is not None:
        reader.problems.append(
            Problem(
                "there are no execution accelerators for nets of Caffe2",
                "optimization.execution_accelerators",
                hint="remove them; KIND_GPU runs the net with CUDA",
            )
        )
    reader.refuse_misspelt(NAMES)
    reader.finish()
    return session
