"""The backend `openvino`: completes configurations from models, and loads them."""

from typing import TYPE_CHECKING

from naiad.backend import BackendTraits, ModelContext
from naiad_config import ModelConfig
from naiad_kit.backends.interface import completed, is_complete
from naiad_kit.backends.parameters import default_batch_size
from naiad_openvino.files import FILES, make_core, model_file, read_model
from naiad_openvino.interface import batching_interface
from naiad_openvino.parameters import NAMES, run_settings
from naiad_openvino.runtime import runtime

if TYPE_CHECKING:
    from naiad_openvino.model import OpenVinoModel


class OpenVinoBackend:
    """Serves models with OpenVINO."""

    traits = BackendTraits(name="openvino", files=dict.fromkeys(FILES, ""), framework="openvino", uses_gpus=False)

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill batching, inputs, outputs and dynamic batching from the model's file, where they are not written.

        Raises NaiadError when the file is missing or broken, or cannot be batched as the configuration asks.
        """
        runtime()
        settings = run_settings(context.config, context.settings)
        if is_complete(context.config):
            return context.config
        model = read_model(make_core(context, settings), model_file(context), context.config, settings)
        return completed(
            context.config, batching_interface(model, context.config), default_batch_size(context.settings)
        )

    def load(self, context: ModelContext) -> "OpenVinoModel":
        """Load one version.

        Raises ConfigError with everything in which the configuration and the file contradict each other, and other
        NaiadErrors when OpenVINO, the file or the device is not there.
        """
        from naiad_openvino.model import OpenVinoModel

        runtime()
        settings = run_settings(context.config, context.settings)
        NAMES.warn_of_unread(context)
        return OpenVinoModel(context, model_file(context), settings)
