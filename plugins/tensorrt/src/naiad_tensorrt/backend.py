"""The backend `tensorrt`: completes configurations from engines, and loads them."""

from typing import TYPE_CHECKING

from naiad.backend import BackendTraits, ModelContext
from naiad.errors import ConfigError, Problem, UnsupportedError
from naiad_config import InstanceKind, ModelConfig
from naiad_kit.backends.interface import is_complete
from naiad_tensorrt.interface import completed_config
from naiad_tensorrt.machine import Gpus, Machine
from naiad_tensorrt.parameters import NAMES, run_settings, without_effect
from naiad_tensorrt.plans import head_of, plan_path
from naiad_tensorrt.runtime import DISTRIBUTIONS, runtime_for

if TYPE_CHECKING:
    from naiad_tensorrt.model import TensorRtModel


class TensorRtBackend:
    """Serves engines of TensorRT, and of TensorRT for RTX, on the GPUs of a machine."""

    traits = BackendTraits(
        name="tensorrt",
        platforms=("tensorrt_plan",),
        files={"model.plan": "tensorrt_plan"},
        framework=DISTRIBUTIONS,
        executes_files=True,  # a plan is code for the GPU, and may bring code for the host
    )

    def __init__(self, machine: Machine | None = None) -> None:
        self._machine: Machine = machine or Gpus()

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill batching, inputs, outputs and dynamic batching from the engine, where they are not written.

        Raises NaiadError when the file is missing or no engine, when there is no GPU to open it on, or when it cannot
        be batched as the configuration asks. Where there is no GPU, a configuration that is whole is left as it is.
        """
        config = context.config
        settings = run_settings(config, context.settings)
        if is_complete(config) and not self._machine.device_count():
            return config
        self._require_gpu(config)
        device = next((group.gpus[0] for group in config.instance_group if group.gpus), 0)
        path = plan_path(context, self._machine.compute_capability(device))
        runtime_for(head_of(path), config.name)
        if is_complete(config):
            return config
        from naiad_tensorrt.model import open_for

        return completed_config(config, open_for(context, settings, self._machine, device, path).description)

    def load(self, context: ModelContext) -> "TensorRtModel":
        """Load one version.

        Raises ConfigError with everything in which the configuration and the engine contradict each other, and other
        NaiadErrors when TensorRT, the file or a GPU is not there.
        """
        from naiad_tensorrt.model import TensorRtModel  # two dozen modules, which no other command needs

        config = context.config
        settings = run_settings(config, context.settings)
        NAMES.warn_of_unread(context)
        self._require_gpu(config)
        _refuse_other_kinds(config)
        for key in without_effect(config):
            context.logger.warning("'%s' of model '%s' has no effect on an engine of TensorRT", key, config.name)
        return TensorRtModel(context, settings, self._machine)

    def _require_gpu(self, config: ModelConfig) -> None:
        if not self._machine.device_count():
            raise UnsupportedError(
                f"model '{config.name}' is an engine of TensorRT, which needs an NVIDIA GPU, and CUDA finds none on "
                "this machine; run nvidia-smi to see whether there is one with a driver, or serve the model as ONNX"
            )


def _refuse_other_kinds(config: ModelConfig) -> None:
    problems = [
        Problem(
            f"instance group '{group.name}' of model '{config.name}' has the kind {group.kind.name}, and engines of "
            "TensorRT run on GPUs alone",
            f"instance_group[{index}].kind",
            hint="use KIND_GPU, or leave the kind out",
        )
        for index, group in enumerate(config.instance_group)
        if group.kind is not InstanceKind.KIND_GPU
    ]
    if problems:
        raise ConfigError(problems)
