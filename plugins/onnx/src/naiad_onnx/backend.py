"""The backend `onnxruntime`: completes configurations from ONNX files, and loads them."""

from dataclasses import replace

from naiad.backend import BackendTraits, ModelContext
from naiad_config import InstanceKind, ModelConfig
from naiad_kit.backends.interface import completed, is_complete, with_shapes_as_rows
from naiad_kit.backends.parameters import default_batch_size
from naiad_onnx.accelerators import accelerators_of
from naiad_onnx.model import OnnxModel
from naiad_onnx.parameters import NAMES, RunSettings, run_settings
from naiad_onnx.sessions import model_file, read_interface, runtime


class OnnxBackend:
    """Serves ONNX models on ONNX Runtime."""

    traits = BackendTraits(
        name="onnxruntime",
        platforms=("onnxruntime_onnx",),
        files={"model.onnx": "onnxruntime_onnx"},
        aliases=("onnx",),
        framework="onnxruntime",
        cpu_instances=2,
    )

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill batching, inputs, outputs and dynamic batching from the model's file, where they are not written.

        Raises NaiadError when the file is missing or broken, or cannot be batched as the configuration asks.
        """
        runtime()
        settings = _settings(context)
        accelerators_of(context.config)
        if is_complete(context.config):
            return context.config
        interface = read_interface(model_file(context), context.config.name, settings)
        interface = with_shapes_as_rows(interface, context.config)
        if not context.config.output:
            for output in interface.outputs:
                if output.data_type is None:
                    context.logger.warning("output '%s' is %s, which no client can take", output.name, output.type)
        return completed(context.config, interface, default_batch_size(context.settings))

    def load(self, context: ModelContext) -> OnnxModel:
        """Load one version.

        Raises ConfigError with everything in which the configuration and the file contradict each other, and other
        NaiadErrors when ONNX Runtime, the file, or what the configuration asks for is not there.
        """
        runtime()
        config = context.config
        settings = _settings(context)
        NAMES.warn_of_unread(context)
        accelerators = accelerators_of(config)
        kinds = {group.kind for group in config.instance_group}
        for side, unused in (("gpu", InstanceKind.KIND_CPU), ("cpu", InstanceKind.KIND_GPU)):
            if getattr(accelerators, f"on_{side}") and kinds <= {unused}:
                used = unused.name.removeprefix("KIND_")
                context.logger.warning(
                    "all instances are on the %s, where %s_execution_accelerator has no effect", used, side
                )
        return OnnxModel(context, model_file(context), settings)


def _settings(context: ModelContext) -> RunSettings:
    config = context.config
    operations = config.model_operations
    libraries = (
        context.path_inside(name, f"op_library_filename '{name}' of model '{config.name}'")
        for name in (operations.op_library_filename if operations is not None else ())
    )
    return replace(run_settings(config, context.settings), libraries=tuple(map(str, libraries)))
