"""Sessions: one graph with its variables on one device, with the options of the model."""

from collections.abc import Sequence
from typing import Any

from naiad.backend import ModelContext, Placement
from naiad.errors import InvalidArgumentError, UnsupportedError
from naiad_tensorflow.artefact import Artefact
from naiad_tensorflow.files import init_ops
from naiad_tensorflow.parameters import RunSettings
from naiad_tensorflow.process import note_threads
from naiad_tensorflow.runtime import describe_error, runtime


def open_session(artefact: Artefact, context: ModelContext, settings: RunSettings, placement: Placement) -> Any:
    """A `tf.compat.v1.Session` with the model in it, on the device of that instance.

    Raises UnsupportedError for a GPU that TensorFlow does not have, InvalidArgumentError for a broken model.
    """
    tensorflow = runtime()
    device = _device(placement)
    graph = tensorflow.Graph()
    config = session_config(settings, placement.kind)
    note_threads(settings, context.logger)
    with graph.as_default(), tensorflow.device(device):
        session = tensorflow.compat.v1.Session(graph=graph, config=config)
        try:
            artefact.load(session)
            _run_init_ops(session, init_ops(context, settings), context.config.name)
        except BaseException:
            session.close()
            raise
    return session


def session_config(settings: RunSettings, kind: str) -> Any:
    """The `tf.compat.v1.ConfigProto` for an instance of that kind (`CPU`, `GPU` or `MODEL`).

    The accelerators of GPUs are for instances that may have one. Raises UnsupportedError when TensorRT is asked for
    and not built in.
    """
    v1 = runtime().compat.v1
    config = v1.ConfigProto(
        intra_op_parallelism_threads=settings.intra_op_threads,
        inter_op_parallelism_threads=settings.inter_op_threads,
        use_per_session_threads=settings.per_session_threads,
        allow_soft_placement=settings.soft_placement,
    )
    if kind == "CPU":
        config.device_count["GPU"] = 0  # or else nodes that name a GPU go there
    config.gpu_options.allow_growth = True
    config.gpu_options.per_process_gpu_memory_fraction = settings.memory_fraction
    levels = {-1: v1.OptimizerOptions.OFF, 1: v1.OptimizerOptions.ON_1, 2: v1.OptimizerOptions.ON_2}
    if settings.jit_level:
        config.graph_options.optimizer_options.global_jit_level = levels[settings.jit_level]
    if kind != "CPU":
        _accelerate(config.graph_options.rewrite_options, settings)
    return config


def _accelerate(rewriting: Any, settings: RunSettings) -> None:
    """Add what the accelerators ask for to a `RewriterConfig`."""
    if settings.mixed_precision:
        rewriting.auto_mixed_precision = 1  # ON, of RewriterConfig.Toggle
    if settings.tensorrt is not None:
        _require_tensorrt()
        optimizer = rewriting.custom_optimizers.add(name="TensorRTOptimizer")
        for key, value in settings.tensorrt.items():
            entry = optimizer.parameter_map[key]
            if isinstance(value, str):
                entry.s = value.encode()
            else:
                entry.i = value
        optimizer.parameter_map["is_dynamic_op"].b = True


def _device(placement: Placement) -> str:
    if placement.kind == "MODEL":
        return ""
    if placement.kind == "CPU":
        return "/CPU:0"
    there = runtime().config.list_physical_devices("GPU")
    if placement.device >= len(there):
        raise UnsupportedError(
            f"instance '{placement.name}' needs GPU {placement.device}, and this TensorFlow ({runtime().__version__}) "
            f"has {len(there)}; install 'naiad-tensorflow[gpu]' and the driver of the GPU, or use KIND_CPU"
        )
    return f"/GPU:{placement.device}"


def _require_tensorrt() -> None:
    if not runtime().sysconfig.get_build_info().get("is_tensorrt_build", False):
        raise UnsupportedError(
            f"this TensorFlow ({runtime().__version__}) was built without TensorRT; remove the accelerator 'tensorrt'"
        )


def _run_init_ops(session: Any, names: Sequence[str], model: str) -> None:
    for name in names:
        try:
            session.run(name)
        except Exception as error:
            raise InvalidArgumentError(
                f"init op '{name}' of model '{model}' failed: {describe_error(error)}"
            ) from error
