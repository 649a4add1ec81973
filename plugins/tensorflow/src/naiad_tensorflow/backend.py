"""The backend `tensorflow`: completes configurations from models, and loads them."""

from naiad.backend import BackendTraits, ModelContext
from naiad_config import ModelConfig
from naiad_kit.backends.interface import completed, is_complete
from naiad_kit.backends.parameters import default_batch_size
from naiad_tensorflow.files import FROZEN_GRAPH, SAVED_MODEL, model_path, read_artefact
from naiad_tensorflow.frozen_graph import FrozenGraph
from naiad_tensorflow.model import TensorFlowModel
from naiad_tensorflow.parameters import NAMES, run_settings
from naiad_tensorflow.runtime import runtime


class TensorFlowBackend:
    """Serves SavedModels and frozen graphs with TensorFlow."""

    traits = BackendTraits(
        name="tensorflow",
        platforms=(SAVED_MODEL, FROZEN_GRAPH),
        files={"model.savedmodel": SAVED_MODEL, "model.graphdef": FROZEN_GRAPH},
        framework="tensorflow",
        cpu_instances=2,
        executes_files=True,  # "TensorFlow models are programs", says its SECURITY.md: they read and write files
    )

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill batching, inputs, outputs and dynamic batching from the model, where they are not written.

        A frozen graph does not say which of its nodes are outputs: these must be written. Raises NaiadError when the
        model is missing or broken, or cannot be batched as the configuration asks.
        """
        config = context.config
        runtime()
        settings = run_settings(config, context.settings)
        if is_complete(config):
            return config
        artefact = read_artefact(model_path(context), context, settings)
        if isinstance(artefact, FrozenGraph) and not config.output:
            context.logger.warning(
                "skipping model configuration auto-complete for '%s': a graph does not say which of its nodes are "
                "outputs; write these, and the rest is filled",
                config.name,
            )
            return config
        return completed(config, artefact.interface, default_batch_size(context.settings))

    def load(self, context: ModelContext) -> TensorFlowModel:
        """Load one version.

        Raises ConfigError with everything in which the configuration and the model contradict each other, and other
        NaiadErrors when TensorFlow, the model or a device is not there.
        """
        runtime()
        settings = run_settings(context.config, context.settings)
        NAMES.warn_of_unread(context)
        return TensorFlowModel(context, model_path(context), settings)
