"""The backend `pytorch`: completes configurations from packages, and loads models of every form."""

from typing import TYPE_CHECKING

from naiad.backend import BackendTraits, ModelContext
from naiad_config import ModelConfig
from naiad_kit.backends.interface import is_complete
from naiad_kit.backends.parameters import default_batch_size
from naiad_torch.parameters import NAMES, run_settings
from naiad_torch.runtime import runtime

if TYPE_CHECKING:
    from naiad_torch.model import TorchModel


class TorchBackend:
    """Serves models with PyTorch."""

    traits = BackendTraits(
        name="pytorch",
        platforms=("pytorch_libtorch", "torch_aoti"),
        files={"model.pt": "pytorch_libtorch", "model.pt2": "torch_aoti"},
        aliases=("torch",),
        framework="torch",
        executes_files=True,  # pickled modules, Python, and packages with shared libraries
    )

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill batching, inputs and outputs from a package; the other forms do not describe theirs.

        Raises NaiadError when the file is missing or broken.
        """
        config = context.config
        runtime()
        run_settings(config, context.settings)
        if is_complete(config):
            return config
        from naiad_torch.files import model_file
        from naiad_torch.interface import completed_from
        from naiad_torch.package import open_package
        from naiad_torch.plan import require_tensors

        path = model_file(context)
        artefact = open_package(path, config.name) if path.suffix == ".pt2" else None
        if artefact is None or not artefact.takes or not (config.output or artefact.gives):
            context.logger.warning(
                "skipping model configuration auto-complete for '%s': not supported for pytorch backend, but for "
                "packages (model.pt2) that describe their tensors; write its inputs and outputs",
                config.name,
            )
            require_tensors(config)  # so that `naiad check` says what a load would
            return config
        return completed_from(config, artefact, default_batch_size(context.settings))

    def load(self, context: ModelContext) -> "TorchModel":
        """Load one version.

        Raises ConfigError for invalid parameters and a configuration that does not fit the model, and other
        NaiadErrors when PyTorch, the file or a device is not there.
        """
        from naiad_torch.files import model_file
        from naiad_torch.model import TorchModel

        runtime()
        settings = run_settings(context.config, context.settings)
        NAMES.warn_of_unread(context)
        return TorchModel(context, model_file(context), settings)
