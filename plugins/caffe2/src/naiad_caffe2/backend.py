"""The backend `caffe2`: completes configurations from nets, and loads them."""

from typing import TYPE_CHECKING

from naiad.backend import BackendTraits, ModelContext
from naiad_caffe2.parameters import NAMES, run_settings
from naiad_caffe2.sessions import runtime
from naiad_config import ModelConfig
from naiad_kit.backends.interface import completed, is_complete
from naiad_kit.backends.parameters import default_batch_size

if TYPE_CHECKING:
    from naiad_caffe2.model import Caffe2Model


class Caffe2Backend:
    """Serves nets of Caffe2 on ONNX Runtime."""

    traits = BackendTraits(
        name="caffe2",
        platforms=("caffe2_netdef",),
        files={"model.netdef": "caffe2_netdef"},
        framework="onnxruntime",
    )

    def complete(self, context: ModelContext) -> ModelConfig:
        """Fill the outputs from the net, where they are not written; its inputs must be.

        Raises NaiadError when files are missing or broken, when the configuration says too little of the inputs, or
        when the net cannot be translated.
        """
        runtime()
        run_settings(context.config, context.settings)
        if is_complete(context.config):
            return context.config
        # these import onnx, which takes a third of a second
        from naiad_caffe2.files import read_nets
        from naiad_caffe2.interface import refuse_unknown_dims
        from naiad_caffe2.model import describe

        _, interface = describe(context.config, read_nets(context))
        refuse_unknown_dims(context.config, interface)
        return completed(context.config, interface, default_batch_size(context.settings))

    def load(self, context: ModelContext) -> "Caffe2Model":
        """Load one version.

        Raises ConfigError with everything in which the configuration and the net contradict each other, and other
        NaiadErrors when ONNX Runtime, a file, a device, or the meaning of an operator is not there.
        """
        runtime()
        from naiad_caffe2.files import read_nets
        from naiad_caffe2.model import Caffe2Model

        settings = run_settings(context.config, context.settings)
        NAMES.warn_of_unread(context)
        return Caffe2Model(context, read_nets(context), settings)
